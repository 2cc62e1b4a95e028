//! `outlast run`, as an operator starts it and asks it.

use super::trial::TrialError;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use outlast_scenario::Mechanism;
use outlast_testbed::site::LINK;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the daemon says of itself.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Noticed {
    /// Whether it holds the link, or the peer behind it, for down, or suspects it for its silence.
    pub down: bool,
    /// Packets that it has taken instead of letting them be lost.
    pub taken: u64,
    /// Packets that it has sent.
    pub injected: u64,
    /// How packets come to it.
    pub data_path: String,
    /// The mechanism.
    pub mechanism: String,
}

/// What the daemon is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Duty {
    /// A gateway with `hold`.
    Hold,
    /// A supervisor host as published.
    MTcp,
    /// A supervisor host for senders of today, too.
    MTcpAdaptive,
}

impl Duty {
    const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Hold => &["--mechanism", "hold"],
            Self::MTcp => &["--role", "supervisor", "--mechanism", "m-tcp"],
            Self::MTcpAdaptive => &["--role", "supervisor", "--mechanism", "m-tcp-adaptive"],
        }
    }

    /// The mechanism.
    #[must_use]
    pub const fn mechanism(self) -> Mechanism {
        match self {
            Self::Hold => Mechanism::Hold,
            Self::MTcp => Mechanism::MTcp,
            Self::MTcpAdaptive => Mechanism::MTcpAdaptive,
        }
    }
}

/// `outlast run` on the link. It ends when this is dropped.
pub(crate) struct Daemon<'t> {
    outlast: &'t Path,
    control: PathBuf,
    _process: ContainedProcess,
    /// Closed, the daemon could not log any more.
    _said: BufReader<io::PipeReader>,
}

impl<'t> Daemon<'t> {
    /// `outlast run` with `hold` and these arguments on the link, once packets go through it.
    pub(crate) fn start(
        keeper: &Namespace,
        outlast: &'t Path,
        control: PathBuf,
        arguments: &[&str],
    ) -> Result<Self, TrialError> {
        Self::start_on(LINK, Duty::Hold, keeper, outlast, control, arguments)
    }

    /// `outlast run` with this `duty` and these arguments on `interface`.
    pub(crate) fn start_on(
        interface: &str,
        duty: Duty,
        keeper: &Namespace,
        outlast: &'t Path,
        control: PathBuf,
        arguments: &[&str],
    ) -> Result<Self, TrialError> {
        let (said, to_us) = io::pipe().map_err(io_error)?;
        let mut command = Command::new(outlast);
        command.args(["run", "--interface", interface]);
        command.args(duty.arguments()).args(arguments);
        command.arg("--control").arg(&control);
        command.env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(to_us);
        let process = ContainedProcess::spawn(keeper, command)?;
        let mut said = BufReader::new(said);
        let mut introduction = String::new();
        while !introduction.contains("Control socket") {
            let length = said.read_line(&mut introduction).map_err(io_error)?;
            if length == 0 {
                return Err(TrialError::Daemon(introduction.trim().to_owned()));
            }
        }
        Ok(Self {
            outlast,
            control,
            _process: process,
            _said: said,
        })
    }

    /// What it says now.
    pub(crate) fn status(&self) -> Result<Noticed, TrialError> {
        let status = status(self.outlast, &self.control)?;
        Noticed::of(&status).ok_or_else(|| of_another_version(&status))
    }
}

/// How many acknowledgements the agent of the role `host` with this control socket has marked as a reconnection.
pub(crate) fn marked_acks(outlast: &Path, control: &Path) -> Result<u64, TrialError> {
    let status = status(outlast, control)?;
    let count = status["counters"]["marked_acks"].as_u64();
    count.ok_or_else(|| of_another_version(&status))
}

/// What `outlast status` says of the daemon with this control socket.
fn status(outlast: &Path, control: &Path) -> Result<Value, TrialError> {
    let mut command = Command::new(outlast);
    command.args(["status", "--json", "--control"]);
    command.arg(control).stdin(Stdio::null());
    let said = command.output().map_err(io_error)?;
    let refused = || {
        let text = String::from_utf8_lossy(&said.stderr);
        TrialError::Daemon(text.trim().to_owned())
    };
    if !said.status.success() {
        return Err(refused());
    }
    serde_json::from_slice(&said.stdout).map_err(|_| refused())
}

fn of_another_version(status: &Value) -> TrialError {
    TrialError::Daemon(format!("its status is of another version: {status}"))
}

impl Noticed {
    /// `None` where the status lacks something of that.
    fn of(status: &Value) -> Option<Self> {
        let count = |name: &str| status["counters"][name].as_u64();
        let text = |name: &str| Some(status[name].as_str()?.to_owned());
        let has_some = |name: &str| Some(!status[name].as_array()?.is_empty());
        let link = status["link"]["state"].as_str()?;
        Some(Self {
            down: has_some("peers_down")? | has_some("silent")? | (link == "down"),
            taken: count("taken")?,
            injected: count("resent")? + count("acks_resent")? + count("rereceived")?,
            data_path: text("data_path")?,
            mechanism: text("mechanism")?,
        })
    }
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "run the daemon",
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_that_lacks_a_count_is_not_taken_for_none() {
        let mut status = json!({
            "link": { "state": "up" }, "peers_down": [], "silent": [{ "peer": null }],
            "counters": { "taken": 3, "resent": 4, "acks_resent": 5, "rereceived": 6 },
            "data_path": "eBPF", "mechanism": "hold",
        });
        let noticed = Noticed::of(&status).expect("all is there");
        assert!(noticed.down && noticed.taken == 3 && noticed.injected == 15);
        let counters = status["counters"].as_object_mut().expect("an object");
        counters.remove("resent");
        assert_eq!(Noticed::of(&status), None);
    }
}
