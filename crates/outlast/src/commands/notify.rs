//! `outlast notify`: tells a running gateway that its link, or a peer's, is gone or back.

use crate::daemon::config::{RUNTIME_DIRECTORY, control_of, interface_name};
use crate::daemon::control::{Notified, Request, ask};
use crate::failure::Failure;
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// What has become of the link.
    state: Notified,

    /// Of the link to this peer alone: a neighbour's address on the interface.
    #[arg(long, value_name = "ADDRESS", value_parser = peer)]
    peer: Option<IpAddr>,

    #[command(flatten)]
    whom: Whom,
}

/// An address that a host may have.
fn peer(text: &str) -> Result<IpAddr, String> {
    let address: IpAddr = text.parse().map_err(|error| format!("{error}"))?;
    if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
        return Err("no neighbour has this address; `ip neigh` shows those that some have".into());
    }
    Ok(address)
}

/// Which daemon; needless where only one runs.
#[derive(Debug, clap::Args)]
pub(crate) struct Whom {
    /// The daemon of this interface.
    #[arg(short, long, value_name = "NAME", value_parser = interface_name)]
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
            (None, None) => only_one(),
        }
    }
}

/// Where the only daemon listens.
fn only_one() -> Result<PathBuf, Failure> {
    let entries = match std::fs::read_dir(RUNTIME_DIRECTORY) {
        Ok(entries) => Some(entries),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => {
            return Err(Failure::Usage(format!(
                "cannot look for daemons in {RUNTIME_DIRECTORY}: {error}; name one with \
                 --interface or --control"
            )));
        }
    };
    let paths = entries.into_iter().flatten().flatten();
    let mut sockets: Vec<_> = paths
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "sock"))
        .collect();
    sockets.sort();
    match &sockets[..] {
        [only] => Ok(only.clone()),
        [] => Err(Failure::Usage(format!(
            "no daemon listens in {RUNTIME_DIRECTORY}: `outlast run --interface NAME` starts one; \
             name one that listens elsewhere with --control"
        ))),
        several => {
            let names = several.iter().filter_map(|path| path.file_stem());
            let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
            Err(Failure::Usage(format!(
                "which daemon? Name one with --interface: there are {}",
                names.join(", ")
            )))
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
