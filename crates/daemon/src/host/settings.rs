//! The table `[host]` of the configuration file.

use super::damping::Damping;
use super::user_timeout::UserTimeout;
use crate::config::{Endpoint, control_of};
use crate::failure::Failure;
use crate::tables;
use outlast_host::{Limits, Mechanism};
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// What the daemon is called among those that `outlast status` finds.
const NAME: &str = "host";

/// The longest name of an interface.
const LONGEST_NAME: usize = 15;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    host: Settings,
}

/// What restarts a stalled connection, by its name in scenarios, too.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Restart {
    #[default]
    RetransmissionTrigger,
    FastRetransmit,
    MTcp,
}

impl Restart {
    pub(super) const fn mechanism(self) -> Mechanism {
        match self {
            Self::RetransmissionTrigger => Mechanism::RetransmissionTrigger,
            Self::FastRetransmit => Mechanism::FastRetransmit,
            Self::MTcp => Mechanism::MTcp,
        }
    }

    /// As in the configuration file.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::RetransmissionTrigger => "retransmission-trigger",
            Self::FastRetransmit => "fast-retransmit",
            Self::MTcp => "m-tcp",
        }
    }
}

/// What `[host]` says.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Settings {
    /// The interfaces whose return counts; none: all but the loopback.
    pub(super) interfaces: Vec<String>,
    /// What restarts a stalled connection.
    pub(super) mechanism: Restart,
    /// Connections that are made to retransmit in a second at most.
    pub(super) per_second: u32,
    /// And at once.
    pub(super) burst: u32,
    /// Whether peers that wait for a timeout are told to send again.
    pub(super) wakes_peers: bool,
    /// Whether peers that run the agent are asked to, and their requests heard; `None`: where the kernel
    /// allows it.
    pub(super) immediate_retransmission: Option<bool>,
    /// Whether connections that were away for less than their timeouts start slowly where the path is new.
    pub(super) slow_start_on_new_path: bool,
    /// Try silent peers at pauses that grow slowly.
    pub(super) probes_silent_peers: bool,
    /// How indicators that flap are damped.
    pub(super) damping: Damping,
    /// The User Timeout Option; `None`: it is not sent.
    pub(super) user_timeout: Option<UserTimeout>,
    /// Where the daemon listens for `outlast status`; `None`: at the usual place.
    control: Option<PathBuf>,
    /// Where metrics are served, if they are.
    pub(super) metrics: Option<Endpoint>,
}

impl Default for Settings {
    fn default() -> Self {
        let limits = Limits::default();
        Self {
            interfaces: Vec::new(),
            mechanism: Restart::default(),
            per_second: limits.per_second,
            burst: limits.burst,
            wakes_peers: false,
            immediate_retransmission: None,
            slow_start_on_new_path: true,
            probes_silent_peers: true,
            damping: Damping::default(),
            user_timeout: None,
            control: None,
            metrics: None,
        }
    }
}

impl Settings {
    /// Reads and checks the file; without one the defaults.
    pub(super) fn load(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::default());
        };
        let shown = path.display();
        let file: File = tables::read(path)?;
        match file.host.problem() {
            Some(problem) => Err(Failure::Usage(format!("{shown}: {problem}"))),
            None => Ok(file.host),
        }
    }

    /// Where the daemon listens for those who operate it.
    pub(super) fn control(&self) -> PathBuf {
        self.control.clone().unwrap_or_else(|| control_of(NAME))
    }

    /// Whether the control socket would be elsewhere, which cannot be while the daemon runs.
    pub(super) fn moves_control(&self, next: &Self) -> bool {
        self.control != next.control
    }

    /// Keys that differ from those in force and may change.
    pub(super) fn free_differences(&self, next: &Self) -> Vec<&'static str> {
        let all = [
            ("interfaces", self.interfaces != next.interfaces),
            ("mechanism", self.mechanism != next.mechanism),
            ("per_second", self.per_second != next.per_second),
            ("burst", self.burst != next.burst),
            ("wakes_peers", self.wakes_peers != next.wakes_peers),
            (
                "immediate_retransmission",
                self.immediate_retransmission != next.immediate_retransmission,
            ),
            (
                "slow_start_on_new_path",
                self.slow_start_on_new_path != next.slow_start_on_new_path,
            ),
            (
                "probes_silent_peers",
                self.probes_silent_peers != next.probes_silent_peers,
            ),
            ("damping", self.damping != next.damping),
            ("metrics", self.metrics != next.metrics),
            ("user_timeout", self.user_timeout != next.user_timeout),
        ];
        let differing = all.iter().filter(|(_, differs)| *differs);
        differing.map(|(name, _)| *name).collect()
    }

    /// What is wrong, if anything is.
    fn problem(&self) -> Option<String> {
        let is_name = |name: &&String| name.is_empty() || name.len() > LONGEST_NAME;
        if let Some(name) = self.interfaces.iter().find(is_name) {
            return Some(format!(
                "interfaces: {name:?}: 1 to {LONGEST_NAME} bytes are allowed"
            ));
        }
        for (key, value) in [("per_second", self.per_second), ("burst", self.burst)] {
            if value == 0 {
                return Some(format!("{key} = 0: at least 1 is needed"));
            }
        }
        if self.mechanism == Restart::MTcp && self.wakes_peers {
            return Some(
                "wakes_peers = true: mechanism = \"m-tcp\" tells supervisor hosts alone; remove one of the two"
                    .into(),
            );
        }
        let of_option = self.user_timeout.as_ref().and_then(UserTimeout::problem);
        of_option.or_else(|| self.damping.problem())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> Option<String> {
        let file: File = toml::from_str(text).expect("it can be read");
        file.host.problem()
    }

    #[test]
    fn an_empty_file_has_the_defaults() {
        let file: File = toml::from_str("").expect("it can be read");
        assert_eq!(file.host, Settings::default());
    }

    #[test]
    fn mechanisms_have_the_names_of_scenarios() {
        for restart in [
            Restart::RetransmissionTrigger,
            Restart::FastRetransmit,
            Restart::MTcp,
        ] {
            let text = format!("[host]\nmechanism = \"{}\"\n", restart.name());
            let file: File = toml::from_str(&text).expect("it can be read");
            assert_eq!(file.host.mechanism, restart);
        }
    }

    #[test]
    fn what_differs_is_named() {
        let read = |text: &str| -> Settings {
            let file: File = toml::from_str(text).expect("it can be read");
            file.host
        };
        let before = Settings::default();
        let after = read("[host]\nburst = 7\nmetrics = \"127.0.0.1:9464\"\n");
        assert_eq!(before.free_differences(&before), [""; 0]);
        assert_eq!(before.free_differences(&after), ["burst", "metrics"]);
        assert!(!before.moves_control(&after));
        assert!(before.moves_control(&read("[host]\ncontrol = \"/run/host.sock\"\n")));
    }

    #[test]
    fn what_cannot_hold_is_refused() {
        assert_eq!(problem("[host]\nburst = 1"), None);
        for text in [
            "per_second = 0",
            "burst = 0",
            "interfaces = [\"\"]",
            "mechanism = \"m-tcp\"\nwakes_peers = true",
            "damping = { reuse = 4000 }",
            "damping = { cut_off = 1500 }",
        ] {
            assert!(problem(&format!("[host]\n{text}")).is_some(), "{text}");
        }
        for text in [
            "mechanism = \"hold\"",
            "damping = { half_life = \"1 ms\" }",
            "damping = { cut_off = 0 }",
            "metrics = \"nowhere\"",
            "metrics = \"unix:/run/outlast/host.sock\"",
        ] {
            let file = toml::from_str::<File>(&format!("[host]\n{text}"));
            assert!(file.is_err(), "{text}");
        }
    }
}
