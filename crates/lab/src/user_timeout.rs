//! `[outlast] user_timeout`: the hosts' kernels tell each other by the User Timeout Option (RFC 5482).
//!
//! Programs at cgroups write and read the option, and set the timeout of every connection of the two
//! namespaces. Where they cannot be had, as in user namespaces, the sockets have the timeout
//! (`TCP_USER_TIMEOUT`) and nothing is told: a warning says so.

use crate::error::LabError;
use crate::host::Host;
use outlast_base::time::Duration;
use outlast_host::user_timeout::{AdoptionLimits, UserTimeoutOption};
use outlast_linux::user_timeout::{UserTimeoutConfig, UserTimeouts};

/// How the user timeout of a run comes to its connections.
#[derive(Debug, Default)]
pub(crate) struct UserTimeout {
    /// What each socket is to set itself.
    pub(crate) of_sockets: Option<Duration>,
    /// What is to be said of it.
    pub(crate) warning: Option<String>,
    /// They last as long as this.
    _programs: Option<[UserTimeouts; 2]>,
}

impl UserTimeout {
    /// Has both hosts tell each other of `timeout`, and adopt it.
    pub(crate) fn arrange(timeout: Option<Duration>, hosts: [&Host; 2]) -> Result<Self, LabError> {
        let Some(timeout) = timeout else {
            return Ok(Self::default());
        };
        let config = UserTimeoutConfig {
            // Whatever the peer says: both say the same.
            option: UserTimeoutOption {
                advertise: timeout,
                at_least: timeout,
                at_most: timeout,
            },
            limits: AdoptionLimits::default(),
            is_one_sided: true,
            cgroups: Vec::new(),
            in_outage: None,
            rules: Vec::new(),
        };
        let [fixed, mobile] = hosts.map(|host| host.run(|| UserTimeouts::attach(&config)));
        Ok(match (fixed?, mobile?) {
            (Ok(fixed), Ok(mobile)) => Self {
                _programs: Some([fixed, mobile]),
                ..Self::default()
            },
            (Err(error), _) | (_, Err(error)) => Self {
                of_sockets: Some(timeout),
                warning: Some(format!(
                    "the hosts keep the user timeout, but do not tell each other by the option of RFC \
                     5482: {}",
                    error.with_causes()
                )),
                _programs: None,
            },
        })
    }
}
