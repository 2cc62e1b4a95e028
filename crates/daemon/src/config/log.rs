//! What the daemon tells on standard error, and in which form.

use crate::keys;
use clap::ValueEnum;
use outlast_scenario::Reader;

/// What is told on standard error.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Log {
    /// What is written.
    pub level: LogLevel,
    /// In which form.
    pub format: LogFormat,
}

/// How much is told.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, clap::ValueEnum)]
pub enum LogLevel {
    /// What ends the daemon.
    Error,
    /// What an operator should look at.
    Warn,
    /// What the link does, too.
    #[default]
    Info,
    /// What connections do, too.
    Debug,
    /// Single packets, too.
    Trace,
}

/// In which form.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum LogFormat {
    /// Lines for people and for systemd's journal.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

impl Log {
    /// Reads the table `[log]`.
    pub(super) fn read(table: &Reader<'_>) -> Self {
        let level = table.choice(&keys::LOG_LEVEL);
        let format = table.choice(&keys::LOG_FORMAT);
        Self {
            level: level
                .and_then(|name| LogLevel::from_str(name, false).ok())
                .unwrap_or_default(),
            format: format
                .and_then(|name| LogFormat::from_str(name, false).ok())
                .unwrap_or_default(),
        }
    }
}
