//! `outlast notify`: tells a running daemon that its link, or a peer's, is gone or back.

use crate::failure::Failure;
use outlast_daemon::config::{CONTROL_EXTENSION, RUNTIME_DIRECTORY, control_of, interface_name};
use outlast_daemon::control::{Notified, Request, ask, is_left_behind};
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The state of the link from now on.
    state: Notified,

    /// Only the link to this peer: a neighbour's address on the interface.
    #[arg(long, value_name = "ADDRESS", value_parser = peer)]
    peer: Option<IpAddr>,

    /// Only this interface: for a daemon of the role host, which watches several.
    #[arg(long, value_name = "NAME", value_parser = interface_name)]
    link: Option<String>,

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

/// Where daemons listen in `directory`, in the order of their names.
fn daemons_in(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut sockets = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let is_socket = path
            .extension()
            .is_some_and(|kind| kind == CONTROL_EXTENSION);
        // One that was killed has left its own; whom one may not ask is there.
        if is_socket && !is_left_behind(&path).unwrap_or(false) {
            sockets.push(path);
        }
    }
    sockets.sort();
    Ok(sockets)
}

/// Where the only daemon listens.
fn only_one() -> Result<PathBuf, Failure> {
    let sockets = daemons_in(Path::new(RUNTIME_DIRECTORY)).map_err(|error| {
        Failure::Usage(format!(
            "cannot look for daemons in {RUNTIME_DIRECTORY}: {error}; name one with --interface or \
             --control"
        ))
    })?;
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
        link: arguments.link.clone(),
    };
    ask(&arguments.whom.control()?, request)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn what_a_killed_daemon_has_left_is_no_daemon() {
        let place = tempfile::tempdir().expect("a place");
        let at = |name: &str| place.path().join(name);
        let daemons = || daemons_in(place.path()).expect("ours");
        assert!(daemons().is_empty());
        drop(UnixListener::bind(at("wwan9.sock")).expect("ours"));
        // A process that another test is just starting has it, too, until it is another program.
        while UnixStream::connect(at("wwan9.sock")).is_ok() {
            std::thread::yield_now();
        }
        std::fs::write(at("wireguard-wg7.away"), "").expect("ours");
        let _wwan = UnixListener::bind(at("wwan0.sock")).expect("ours");
        assert_eq!(daemons(), [at("wwan0.sock")]);
        let _wlan = UnixListener::bind(at("wlan0.sock")).expect("ours");
        assert_eq!(daemons(), [at("wlan0.sock"), at("wwan0.sock")]);
        assert!(daemons_in(&at("absent")).expect("nothing").is_empty());
        assert!(daemons_in(&at("wwan0.sock")).is_err(), "no directory");
    }
}
