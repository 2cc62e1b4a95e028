//! What the daemon is to do: the command line, and a file for what it leaves open.

use crate::failure::Failure;
use outlast_core::mechanisms::path::{Level, PathMechanismKind};
use serde::Deserialize;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Where control sockets are, unless somebody says otherwise: one per interface.
const RUNTIME_DIRECTORY: &str = "/run/outlast";

/// The mark of packets that the daemon sends, unless somebody says otherwise: "outl".
const MARK: u32 = 0x6f75_746c;

/// Everything that is decided before the daemon begins.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Settings {
    pub(crate) interface: String,
    pub(crate) mechanism: Mechanism,
    pub(crate) control: PathBuf,
    /// The NFQUEUE to take; `None`: the first one that is free.
    pub(crate) queue: Option<u16>,
    pub(crate) mark: u32,
    pub(crate) indicators: Watched,
}

/// Which indicators tell the link's state. `outlast notify` always does.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Watched {
    pub(crate) carrier: bool,
    pub(crate) address: bool,
    pub(crate) neighbour: bool,
}

impl Default for Watched {
    fn default() -> Self {
        Self {
            carrier: true,
            address: true,
            neighbour: true,
        }
    }
}

/// The configuration file.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct File {
    interface: Option<String>,
    mechanism: Option<Mechanism>,
    control: Option<PathBuf>,
    queue: Option<u16>,
    mark: Option<u32>,
    indicators: Watched,
}

/// A path mechanism by its name.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(try_from = "String")]
pub(crate) struct Mechanism(pub(crate) PathMechanismKind);

impl Mechanism {
    /// All that the daemon offers.
    const ALL: [PathMechanismKind; 9] = [
        PathMechanismKind::None,
        PathMechanismKind::SmartLink(Level::One),
        PathMechanismKind::SmartLink(Level::Two),
        PathMechanismKind::SmartLink(Level::Three),
        PathMechanismKind::SmartLink(Level::Four),
        PathMechanismKind::Hold,
        PathMechanismKind::RetransmissionCache,
        PathMechanismKind::ZeroWindowAck,
        PathMechanismKind::AcknowledgeAhead,
    ];
}

impl FromStr for Mechanism {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kind| kind.info().name == name);
        found.map(Self).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|kind| kind.info().name).collect();
            format!(
                "\"{name}\" is no mechanism of `outlast run`; there are {}",
                names.join(", ")
            )
        })
    }
}

impl TryFrom<String> for Mechanism {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What the command line says; it goes before the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given {
    pub(crate) interface: Option<String>,
    pub(crate) mechanism: Option<Mechanism>,
    pub(crate) control: Option<PathBuf>,
}

impl File {
    /// Reads the file at `path`.
    pub(crate) fn load(path: &Path) -> Result<Self, Failure> {
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::Usage(format!("cannot read {}: {error}", path.display())))?;
        Self::parse(&text).map_err(|error| Failure::Usage(format!("{}: {error}", path.display())))
    }

    fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The settings, where `given` leaves them open.
    pub(crate) fn complete(self, given: Given) -> Result<Settings, Failure> {
        let interface = given.interface.or(self.interface).ok_or_else(|| {
            Failure::Usage(
                "which interface leads to the disconnecting link? Name it with --interface, or \
                 as `interface` in the configuration file"
                    .into(),
            )
        })?;
        let control = given.control.or(self.control);
        Ok(Settings {
            mechanism: given
                .mechanism
                .or(self.mechanism)
                .unwrap_or(Mechanism(PathMechanismKind::Hold)),
            control: control.unwrap_or_else(|| control_of(&interface)),
            interface,
            queue: self.queue,
            mark: self.mark.unwrap_or(MARK),
            indicators: self.indicators,
        })
    }
}

/// Where the daemon of `interface` listens, unless somebody says otherwise.
pub(crate) fn control_of(interface: &str) -> PathBuf {
    Path::new(RUNTIME_DIRECTORY).join(format!("{interface}.sock"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_the_file_and_the_file_before_defaults() {
        let file = "interface = \"wwan0\"\nmechanism = \"smart-link-3\"\nqueue = 9\n\
                    [indicators]\nneighbour = false\n";
        let file = File::parse(file).expect("a configuration");
        let given = Given {
            mechanism: Some("hold".parse().expect("a mechanism")),
            ..Given::default()
        };
        let settings = file.complete(given).expect("complete");
        assert_eq!(settings.interface, "wwan0");
        assert_eq!(settings.mechanism, Mechanism(PathMechanismKind::Hold));
        assert_eq!((settings.queue, settings.mark), (Some(9), MARK));
        assert_eq!(settings.control, Path::new("/run/outlast/wwan0.sock"));
        let Watched {
            carrier,
            address,
            neighbour,
        } = settings.indicators;
        assert!(carrier && address && !neighbour);
    }

    #[test]
    fn mistakes_are_named_with_what_is_allowed() {
        let unknown = File::parse("mechanism = \"m-tcp\"").expect_err("not offered");
        let text = unknown.to_string();
        assert!(
            text.contains("line 1") && text.contains("smart-link-1, "),
            "{text}"
        );
        let misspelt = File::parse("interfaces = \"a\"").expect_err("no such key");
        assert!(misspelt.to_string().contains("interface"), "{misspelt}");
        assert!(matches!(
            File::default().complete(Given::default()),
            Err(Failure::Usage(_))
        ));
    }
}
