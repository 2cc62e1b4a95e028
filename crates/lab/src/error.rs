//! Why a lab cannot be built or run.

use outlast_linux::namespace::NamespaceError;
use outlast_linux::netlink::NetlinkError;
use outlast_linux::process::ProcessError;
use outlast_linux::socket::SocketError;
use outlast_linux::stack::StackError;
use outlast_linux::sysctl::SysctlError;
use outlast_linux::tun::TunError;
use outlast_scenario::Mechanism;
use outlast_world::Side;
use std::io;
use std::path::PathBuf;

/// Why a lab cannot be built or run.
///
/// What goes wrong with the workload itself, such as a connection given up, is no error but part
/// of the result.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// The lab does not have what the scenario asks for.
    #[error("the lab has no mechanism \"{mechanism}\" at `{key}` (it has: {available})")]
    NoSuchMechanism {
        /// What was asked for.
        mechanism: Mechanism,
        /// Where, such as `outlast.gateway` or `hops.fixed_end`.
        key: &'static str,
        /// What it has there.
        available: &'static str,
    },
    /// The lab cannot have such a list of tables.
    #[error("the lab cannot run these `[[{table}]]`: {reason}")]
    Topology {
        /// The table that asks for it.
        table: &'static str,
        /// Why, and what would work instead.
        reason: String,
    },
    /// The process may not have as many file descriptors as the connections need.
    #[error(
        "{needed} file descriptors are needed for so many connections, and {allowed} allowed: raise \
         the limit (`ulimit -n`), or write smaller `count`s"
    )]
    Descriptors {
        /// What the run needs.
        needed: u64,
        /// The most that the process may have.
        allowed: u64,
    },
    /// A network namespace cannot be had.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// A TUN device cannot be had.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// Interfaces and addresses cannot be set.
    #[error("cannot set up a host")]
    Netlink(#[from] NetlinkError),
    /// The TCP of a host cannot be set as asked.
    #[error("cannot tune a host")]
    Sysctl(#[from] SysctlError),
    /// A socket does not take an option.
    #[error(transparent)]
    Option(#[from] SocketError),
    /// A socket or another descriptor cannot be had.
    #[error("cannot {action}")]
    Socket {
        /// What was to be done.
        action: &'static str,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
    /// `stack.timer_phase` asks for what only root may know.
    #[error("cannot read the kernel's tick counter, which `stack.timer_phase` needs")]
    Ticks(#[source] io::Error),
    /// The emulator broke down.
    #[error("the emulated link broke down")]
    Emulator(#[source] io::Error),
    /// A program of the scenario does not start.
    #[error("the {side} host cannot run its command")]
    Program {
        /// Where.
        side: Side,
        /// Why.
        #[source]
        source: ProcessError,
    },
    /// A file cannot be written or read.
    #[error("cannot use {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The host agent cannot act on the kernel's TCP.
    #[error("the host agent cannot run")]
    Stack(#[source] Box<StackError>),
    /// The user asked for an end.
    #[error("cancelled")]
    Cancelled,
}

impl LabError {
    /// Whether this machine lacks something, rather than the scenario being wrong or the run
    /// having failed.
    #[must_use]
    pub fn is_missing_capability(&self) -> bool {
        matches!(
            self,
            Self::Namespace(_)
                | Self::Tun(_)
                | Self::Ticks(_)
                | Self::Stack(_)
                | Self::Descriptors { .. }
                | Self::Option(
                    SocketError::NoSuchCongestionControl { .. }
                        | SocketError::CongestionControlNotAllowed { .. }
                )
        )
    }
}
