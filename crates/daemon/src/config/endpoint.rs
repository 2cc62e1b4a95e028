//! Where the daemon listens for those who collect its metrics.

use super::may_be_control;
use outlast_scenario::Reader;
use outlast_scenario::keys::Key;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// Where somebody listens.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Endpoint {
    /// TCP.
    Tcp(SocketAddr),
    /// A Unix socket.
    Unix(PathBuf),
}

impl FromStr for Endpoint {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text.strip_prefix("unix:") {
            Some(path) if path.starts_with('/') => Ok(Self::Unix(path.into())),
            Some(_) => Err(()),
            None => text.parse().map(Self::Tcp).map_err(drop),
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "http://{address}/metrics"),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// For the files of roles with a table of their own.
impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        let text = String::deserialize(value)?;
        let endpoint = text.parse().map_err(|()| {
            D::Error::custom(format!(
                "`{text}` is no place to listen at; expected an IP address with a port, or unix: and an \
                 absolute path"
            ))
        })?;
        match endpoint {
            Self::Unix(path) if may_be_control(&path) => Err(D::Error::custom(format!(
                "metrics = \"{text}\": so control sockets are called there"
            ))),
            endpoint => Ok(endpoint),
        }
    }
}

impl Endpoint {
    /// What a key of a configuration file says, with what is wrong about it noted.
    pub(super) fn read(top: &Reader<'_>, key: &'static Key) -> Option<Self> {
        let text = top.text(key)?;
        let endpoint: Option<Self> = text.parse().ok();
        let mistake = match &endpoint {
            None => Some((
                format!("`{text}` is no place to listen at"),
                "expected an IP address with a port, or unix: and an absolute path",
            )),
            Some(Self::Unix(path)) if may_be_control(path) => Some((
                format!("`{text}` has the name of a control socket"),
                "`outlast status` takes what is called so there for another daemon",
            )),
            Some(_) => None,
        };
        let Some((what, expected)) = mistake else {
            return endpoint;
        };
        top.note(
            top.span_of(key).unwrap_or_default(),
            what,
            expected,
            format!(
                "write `{0} = {1}`, `{0} = \"[::1]:9464\"` or `{0} = \"unix:/run/outlast/wwan0.metrics\"`",
                key.name, key.example
            ),
        );
        None
    }
}
