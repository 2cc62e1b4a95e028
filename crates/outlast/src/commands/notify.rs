//! `outlast notify`: tells a running gateway that its link, or a peer's, is gone or back.

use crate::daemon::config::control_of;
use crate::daemon::control::{Notified, Request, ask};
use crate::failure::Failure;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What has become of the link.
    state: Notified,

    /// Of the link to this peer alone: a neighbour's address on the interface.
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<IpAddr>,

    #[command(flatten)]
    whom: Whom,
}

/// Which daemon.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Whom {
    /// The daemon of this interface.
    #[arg(short, long, value_name = "NAME")]
    interface: Option<String>,

    /// The daemon that listens at this socket.
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
}

impl Whom {
    /// Where it listens.
    pub(crate) fn control(&self) -> Result<PathBuf, Failure> {
        match (&self.control, &self.interface) {
            (Some(control), _) => Ok(control.clone()),
            (None, Some(interface)) => Ok(control_of(interface)),
            (None, None) => Err(Failure::Usage("name a daemon with --interface".into())),
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = Request::Notify {
        state: arguments.state,
        peer: arguments.peer,
    };
    ask(&arguments.whom.control()?, request).map(drop)
}
