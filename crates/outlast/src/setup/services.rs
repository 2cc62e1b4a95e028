//! The programs of the system that a set-up calls: systemd's.

use anyhow::{Context, bail, ensure};
use std::process::{Command, Stdio};

/// Starts and stops daemons, and makes their user.
pub(crate) trait Services {
    /// Makes the user that the description file names.
    fn make_account(&mut self) -> anyhow::Result<()>;
    /// Removes that user.
    fn remove_account(&mut self) -> anyhow::Result<()>;
    /// Has systemd read changed units again.
    fn read_units(&mut self) -> anyhow::Result<()>;
    /// True for a unit that starts at boot.
    fn is_enabled(&mut self, unit: &str) -> anyhow::Result<bool>;
    /// True for a unit that runs.
    fn is_active(&mut self, unit: &str) -> anyhow::Result<bool>;
    /// Has a unit start at boot, and start now; one that runs already reads its configuration again.
    fn start(&mut self, unit: &str) -> anyhow::Result<()>;
    /// Ends a unit, and has it start at boot no more, as far as it did not do so before.
    fn stop(&mut self, unit: &str, was_enabled: bool, was_active: bool) -> anyhow::Result<()>;
}

/// The machine's own systemd.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Systemd;

impl Services for Systemd {
    fn make_account(&mut self) -> anyhow::Result<()> {
        call("systemd-sysusers", &["outlast.conf"])
    }

    fn remove_account(&mut self) -> anyhow::Result<()> {
        call("userdel", &["outlast"])
    }

    fn read_units(&mut self) -> anyhow::Result<()> {
        call("systemctl", &["daemon-reload"])
    }

    fn is_enabled(&mut self, unit: &str) -> anyhow::Result<bool> {
        asks(&["is-enabled", "--quiet", unit])
    }

    fn is_active(&mut self, unit: &str) -> anyhow::Result<bool> {
        asks(&["is-active", "--quiet", unit])
    }

    fn start(&mut self, unit: &str) -> anyhow::Result<()> {
        let runs = self.is_active(unit)?;
        let outcome = call("systemctl", &["enable", "--now", unit]);
        let outcome = match runs {
            true => outcome.and_then(|()| call("systemctl", &["reload-or-restart", unit])),
            false => outcome,
        };
        outcome.with_context(|| format!("{unit} does not start; `journalctl -u {unit}` says why"))
    }

    fn stop(&mut self, unit: &str, was_enabled: bool, was_active: bool) -> anyhow::Result<()> {
        if !was_enabled {
            call("systemctl", &["disable", unit])?;
        }
        match was_active {
            true => call("systemctl", &["try-reload-or-restart", unit]),
            false => call("systemctl", &["stop", unit]),
        }
    }
}

/// A machine below another root directory: nothing of it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elsewhere;

impl Services for Elsewhere {
    fn make_account(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn remove_account(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn read_units(&mut self) -> anyhow::Result<()> {
        Ok(())
    }

    fn is_enabled(&mut self, _: &str) -> anyhow::Result<bool> {
        Ok(false)
    }

    fn is_active(&mut self, _: &str) -> anyhow::Result<bool> {
        Ok(false)
    }

    fn start(&mut self, _: &str) -> anyhow::Result<()> {
        Ok(())
    }

    fn stop(&mut self, _: &str, _: bool, _: bool) -> anyhow::Result<()> {
        Ok(())
    }
}

/// Runs a program to its end; its complaint, if it has one.
fn call(program: &str, arguments: &[&str]) -> anyhow::Result<()> {
    let line = || format!("`{program} {}`", arguments.join(" "));
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run {}", line()))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{} failed: {}",
        line(),
        complaint.trim().replace('\n', "; ")
    );
    Ok(())
}

/// Asks systemctl a question whose answer is its exit code.
fn asks(arguments: &[&str]) -> anyhow::Result<bool> {
    let status = Command::new("systemctl")
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run `systemctl`")?;
    match status.code() {
        Some(code) => Ok(code == 0),
        None => bail!("`systemctl {}` was killed", arguments.join(" ")),
    }
}
