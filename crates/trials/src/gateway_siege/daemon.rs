//! `outlast run` that is killed, and started again.
//!
//! Its process is in no container: what it leaves beside itself is to outlive it, as on a real gateway.

use crate::gateway_matrix::trial::{TrialError, pause_until};
use outlast_base::time::Duration;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process;
use outlast_testbed::site::LINK;
use rustix::fd::AsFd;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// How a daemon is started.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start<'t> {
    /// The program.
    pub(super) outlast: &'t Path,
    /// Its namespace.
    pub(super) gateway: &'t Namespace,
    /// The directory of its control socket and of what it says.
    pub(super) directory: &'t Path,
    /// `--mechanism`.
    pub(super) mechanism: &'t str,
    /// `--data-path`.
    pub(super) data_path: &'t str,
}

/// A daemon that was started. It is killed when this is dropped.
#[derive(Debug)]
pub(super) struct Daemon<'t> {
    start: Start<'t>,
    child: Child,
}

/// How long a daemon may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often what it does is looked at.
const LOOK: Duration = Duration::from_millis(10);

impl<'t> Start<'t> {
    fn control(&self) -> PathBuf {
        self.directory.join("control")
    }

    fn said(&self) -> PathBuf {
        self.directory.join("said")
    }

    /// Starts it, and waits for nothing.
    pub(super) fn spawn(self) -> Result<Daemon<'t>, TrialError> {
        let said = File::create(self.said()).map_err(io_error)?;
        let mut command = Command::new(self.outlast);
        command.args(["run", "--interface", LINK, "--mechanism", self.mechanism]);
        command.args(["--data-path", self.data_path, "--control"]);
        command.arg(self.control()).env("NO_COLOR", "1");
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(said);
        let network = self.gateway.as_fd().try_clone_to_owned();
        process::place(&mut command, None, network.map_err(io_error)?);
        let child = command.spawn().map_err(io_error)?;
        Ok(Daemon { start: self, child })
    }
}

impl Daemon<'_> {
    /// Waits until packets go through it.
    pub(super) fn wait_until_ready(&mut self, cancel: &Cancel) -> Result<(), TrialError> {
        let given_up = clock::now() + PATIENCE;
        loop {
            let said = std::fs::read_to_string(self.start.said()).map_err(io_error)?;
            if said.contains("Control socket") {
                return Ok(());
            }
            if !self.is_alive()? || clock::now() > given_up {
                return Err(TrialError::Daemon(said.trim().to_owned()));
            }
            pause_until(cancel, clock::now() + LOOK)?;
        }
    }

    /// Whether its process runs.
    pub(super) fn is_alive(&mut self) -> Result<bool, TrialError> {
        Ok(self.child.try_wait().map_err(io_error)?.is_none())
    }

    /// Ends it by SIGKILL.
    pub(super) fn kill(mut self) -> Result<(), TrialError> {
        if !self.is_alive()? {
            return Err(self.ended());
        }
        self.child.kill().map_err(io_error)?;
        self.child.wait().map_err(io_error)?;
        Ok(())
    }

    /// Asks it to end, and waits until it has.
    pub(super) fn stop(mut self, cancel: &Cancel) -> Result<(), TrialError> {
        if !self.is_alive()? {
            return Err(self.ended());
        }
        let asked = kill_process(Pid::from_child(&self.child), Signal::TERM);
        asked.map_err(|errno| io_error(errno.into()))?;
        let given_up = clock::now() + PATIENCE;
        while self.is_alive()? {
            if clock::now() > given_up {
                return Err(TrialError::Daemon("it does not end".to_owned()));
            }
            pause_until(cancel, clock::now() + LOOK)?;
        }
        Ok(())
    }

    /// What it says of itself.
    pub(super) fn status(&self) -> Result<Value, TrialError> {
        let mut command = Command::new(self.start.outlast);
        command.args(["status", "--json", "--control"]);
        command.arg(self.start.control()).stdin(Stdio::null());
        let said = command.output().map_err(io_error)?;
        let parsed = serde_json::from_slice(&said.stdout);
        parsed.map_err(|_| {
            let text = String::from_utf8_lossy(&said.stderr);
            TrialError::Daemon(text.trim().to_owned())
        })
    }

    /// The most memory that it has had so far, in bytes.
    pub(super) fn peak_memory(&self) -> Result<u64, TrialError> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).map_err(io_error)?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
        let kilobytes = kilobytes.ok_or_else(|| io_error(io::ErrorKind::InvalidData.into()))?;
        Ok(kilobytes << 10)
    }

    fn ended(&self) -> TrialError {
        let said = std::fs::read_to_string(self.start.said()).unwrap_or_default();
        TrialError::Daemon(format!("it has ended by itself: {}", said.trim()))
    }
}

impl Drop for Daemon<'_> {
    fn drop(&mut self) {
        // It has ended already, or ends now.
        if matches!(self.child.try_wait(), Ok(None)) && self.child.kill().is_ok() {
            drop(self.child.wait());
        }
    }
}

/// What daemons have left in the gateway's namespace and in their directory, once all have ended.
pub(super) fn left_behind(
    gateway: &Namespace,
    directory: &Path,
) -> Result<Vec<String>, TrialError> {
    let mut left = inhabitants(gateway).map_err(io_error)?;
    let mut nft = Command::new("nft");
    nft.args(["list", "ruleset"]).stdin(Stdio::null());
    let network = gateway.as_fd().try_clone_to_owned();
    process::place(&mut nft, None, network.map_err(io_error)?);
    let rules = nft.output().map_err(io_error)?;
    if !rules.status.success() {
        let said = String::from_utf8_lossy(&rules.stderr).into_owned();
        return Err(io_error(io::Error::other(said)));
    }
    let rules = String::from_utf8_lossy(&rules.stdout).into_owned();
    left.extend(rules.lines().next().map(|first| format!("rules: {first}")));
    for entry in std::fs::read_dir(directory).map_err(io_error)? {
        let name = entry.map_err(io_error)?.file_name();
        if name != "said" {
            left.push(format!("file {}", name.to_string_lossy()));
        }
    }
    Ok(left)
}

/// The processes whose network namespace is this one.
fn inhabitants(place: &Namespace) -> io::Result<Vec<String>> {
    let net = place.id()?.to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let process = entry?.path();
        // A process that has ended meanwhile is nowhere.
        if std::fs::read_link(process.join("ns/net")).is_ok_and(|link| link == *net) {
            let name = std::fs::read_to_string(process.join("comm")).unwrap_or_default();
            found.push(format!("process {}", name.trim()));
        }
    }
    Ok(found)
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "run the daemon",
        source,
    }
}
