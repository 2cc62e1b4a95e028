//! `outlast run`: a gateway on a real interface.

use crate::failure::Failure;
use crate::terminal;
use outlast_daemon::config::{
    DataPathChoice, Given, Log, LogFormat, LogLevel, Mechanism, PathRole, Settings, interface_name,
};
use outlast_daemon::logging::Logging;
use outlast_daemon::{hip, host, mobility};
use outlast_report::unit::Unit;
use std::path::{Path, PathBuf};

/// Keep the connections that cross an interface alive, and resume them when its link is back.
///
/// What the command line leaves open is read from a configuration file: the one that --config
/// names, or else /etc/outlast/INTERFACE.toml, or else /etc/outlast/config.toml, if there is one.
/// SIGHUP and `outlast reload` make it read that again; SIGTERM ends it.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The part that this daemon plays.
    #[arg(long, value_name = "ROLE", value_enum, default_value_t = Role::Gateway)]
    role: Role,

    /// The interface that leads to the disconnecting link.
    #[arg(short, long, value_name = "NAME", value_parser = interface_name)]
    interface: Option<String>,

    /// What to do for the connections that cross [default: hold, for a supervisor m-tcp-adaptive, or
    /// what the configuration file says].
    #[arg(short, long, value_name = "NAME", value_parser = Mechanism::parser())]
    mechanism: Option<Mechanism>,

    /// How packets get to the gateway [default: auto, or what the configuration file says].
    #[arg(long, value_name = "PATH", value_enum)]
    data_path: Option<DataPathChoice>,

    /// The configuration file (see outlast.toml(5)).
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Check the configuration, print what would hold, and end.
    #[arg(long)]
    check_config: bool,

    /// Where to listen for `outlast status` and `outlast notify` [default: /run/outlast/NAME.sock].
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,

    /// What to log on standard error [default: info, or what the configuration file says].
    #[arg(long, value_name = "LEVEL", value_enum)]
    log_level: Option<LogLevel>,

    /// The form of the log [default: text, or what the configuration file says].
    #[arg(long, value_name = "FORM", value_enum)]
    log_format: Option<LogFormat>,
}

/// What a daemon is.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
enum Role {
    /// A gateway on an interface.
    Gateway,
    /// A supervisor host of M-TCP on an interface; its mechanism is m-tcp-adaptive or m-tcp.
    Supervisor,
    /// A host that speaks HIP; takes --config, whose table is `[hip]`.
    Hip,
    /// A rendezvous server for hosts that speak HIP; takes --config, whose table is `[hip]`.
    Rendezvous,
    /// A home agent of Mobile IP; takes --config, whose table is `[home_agent]`.
    HomeAgent,
    /// A foreign agent of Mobile IP; takes --config, whose table is `[foreign_agent]`.
    ForeignAgent,
    /// A mobile node of Mobile IP; takes --config, whose table is `[mobile_node]`.
    MobileNode,
    /// A host whose programs reach mobile nodes of Mobile IPv6 where they are; takes --config, whose table
    /// is `[correspondent]`.
    Correspondent,
    /// An agent beside this host's own TCP; takes --config, whose table is `[host]`, or nothing.
    Host,
}

/// A role whose configuration is a table of its own.
#[derive(Clone, Copy, Debug)]
enum Own {
    Hip(hip::Kind),
    Mobility(mobility::Kind),
    Host,
}

impl Own {
    const fn table(self) -> &'static str {
        match self {
            Self::Hip(_) => "hip",
            Self::Mobility(kind) => kind.table(),
            Self::Host => "host",
        }
    }
}

/// Runs a role with a table of its own, or checks its configuration.
fn run_own(role: Own, arguments: &Arguments, log: Log) -> Result<(), Failure> {
    let is_for_gateways = arguments.interface.is_some()
        || arguments.mechanism.is_some()
        || arguments.data_path.is_some();
    if is_for_gateways {
        let message = "--interface, --mechanism and --data-path are for gateways";
        return Err(Failure::Usage(message.into()));
    }
    let config = arguments.config.as_deref();
    let needed = || {
        config.ok_or_else(|| {
            Failure::Usage(format!(
                "this role needs --config FILE with a table [{}]",
                role.table()
            ))
        })
    };
    if arguments.check_config {
        return terminal::print(&match role {
            Own::Hip(_) => hip::check(needed()?)?,
            Own::Mobility(kind) => mobility::check(kind, needed()?)?,
            Own::Host => host::check(config)?,
        });
    }
    let _logging = Logging::begin(log);
    match role {
        Own::Hip(kind) => hip::run(kind, needed()?, arguments.control.as_deref())?,
        Own::Mobility(kind) => mobility::run(kind, needed()?, arguments.control.as_deref())?,
        Own::Host => host::run(config, arguments.control.as_deref())?,
    }
    Ok(())
}

/// `verbose` is how often `-v` was given.
pub(crate) fn run(arguments: &Arguments, verbose: u8) -> Result<(), Failure> {
    let by_count = match verbose {
        0 => None,
        1 => Some(LogLevel::Debug),
        _ => Some(LogLevel::Trace),
    };
    let own = match arguments.role {
        Role::Gateway | Role::Supervisor => None,
        Role::Hip => Some(Own::Hip(hip::Kind::Host)),
        Role::Rendezvous => Some(Own::Hip(hip::Kind::Rendezvous)),
        Role::HomeAgent => Some(Own::Mobility(mobility::Kind::HomeAgent)),
        Role::ForeignAgent => Some(Own::Mobility(mobility::Kind::ForeignAgent)),
        Role::MobileNode => Some(Own::Mobility(mobility::Kind::MobileNode)),
        Role::Correspondent => Some(Own::Mobility(mobility::Kind::Correspondent)),
        Role::Host => Some(Own::Host),
    };
    if let Some(own) = own {
        let log = Log {
            level: arguments.log_level.or(by_count).unwrap_or_default(),
            format: arguments.log_format.unwrap_or_default(),
        };
        return run_own(own, arguments, log);
    }
    let role = match arguments.role {
        Role::Supervisor => PathRole::Supervisor,
        _ => PathRole::Gateway,
    };
    let given = Given {
        role,
        interface: arguments.interface.clone(),
        mechanism: arguments.mechanism,
        data_path: arguments.data_path,
        control: arguments.control.clone(),
        config: arguments.config.clone(),
        log_level: arguments.log_level.or(by_count),
        log_format: arguments.log_format,
    };
    let settings = given.settle()?;
    if arguments.check_config {
        settings.check()?;
        for warning in settings.warnings() {
            terminal::say(&format!("warning: {warning}"));
        }
        return terminal::print(&summary(&given, &settings));
    }
    let logging = Logging::begin(settings.log);
    Ok(outlast_daemon::run(given, settings, logging)?)
}

/// What would hold.
fn summary(given: &Given, settings: &Settings) -> String {
    let file = given.file();
    let file = file.map_or("no configuration file".into(), |file| {
        file.display().to_string()
    });
    let rate = settings
        .rate
        .map_or("not known".into(), |rate| rate.to_string());
    let metrics = settings.metrics.as_ref();
    let metrics = metrics.map_or("off".into(), ToString::to_string);
    let is_there = Path::new("/sys/class/net")
        .join(&settings.interface)
        .exists();
    let waits = match is_there {
        true => "",
        false => " (not there now: the daemon waits for it)",
    };
    format!(
        "{file}: sound\n  interface {}{waits}\n  mechanism {}\n  rate      {rate}\n  control   {}\n  \
         metrics   {metrics}\n  flows     up to {}, and up to {} kept for them\n",
        settings.interface,
        settings.mechanism,
        settings.control.display(),
        settings.limits.flows,
        memory(settings.limits.held_in_all.0),
    )
}

/// An amount of memory as configuration files have it: whole mebibytes stay such.
fn memory(bytes: u64) -> String {
    const MEBIBYTE: u64 = 1 << 20;
    match bytes % MEBIBYTE {
        0 => format!("{} MiB", bytes / MEBIBYTE),
        _ => Unit::Bytes.show(bytes as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::memory;

    #[test]
    fn memory_is_shown_as_it_was_written() {
        assert_eq!(memory(32 << 20), "32 MiB");
        assert_eq!(memory(2_000_000), "2.00 MB");
    }
}
