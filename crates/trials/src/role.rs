//! A role of `outlast run` whose configuration is a table of its own, as an operator starts it.

use crate::gateway_matrix::trial::TrialError;
use crate::gateway_matrix::wait;
use outlast_base::time::Duration;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(10);

/// Starts a role with this configuration file, and says where its log is.
pub(crate) fn run(
    outlast: &Path,
    role: &str,
    host: &Namespace,
    config: &Path,
) -> Result<(ContainedProcess, PathBuf), TrialError> {
    let log = config.with_extension("log");
    let mut command = Command::new(outlast);
    command
        .args(["run", "--role", role, "--config"])
        .arg(config);
    command.env("NO_COLOR", "1");
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(File::create(&log).map_err(io_error)?);
    Ok((ContainedProcess::spawn(host, command)?, log))
}

/// Starts the agent of the role `host` with its control socket there and these further keys of `[host]`, and waits until it
/// has begun.
pub(crate) fn agent(
    outlast: &Path,
    host: &Namespace,
    control: &Path,
    keys: &str,
    cancel: &Cancel,
) -> Result<ContainedProcess, TrialError> {
    let config = control.with_extension("toml");
    let text = format!("[host]\ncontrol = {control:?}\n{keys}");
    fs::write(&config, text).map_err(io_error)?;
    let (process, log) = run(outlast, "host", host, &config)?;
    await_words(&log, "the host agent begins", cancel)?;
    Ok(process)
}

/// Waits until the log has these words.
pub(crate) fn await_words(log: &Path, words: &str, cancel: &Cancel) -> Result<(), TrialError> {
    let given_up = clock::now() + PATIENCE;
    loop {
        let said = fs::read_to_string(log).map_err(io_error)?;
        if said.contains(words) {
            return Ok(());
        }
        if clock::now() > given_up {
            return Err(TrialError::Daemon(said.trim().to_owned()));
        }
        wait(cancel, None, LOOK)?;
    }
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "run a role",
        source,
    }
}
