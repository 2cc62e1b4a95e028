//! Telling the kernel to ask for neighbours, on a thread of its own.
//!
//! Whoever tells the kernel anything about a network waits for the lock that all share who change
//! any (`rtnl_mutex`): for hundreds of milliseconds where interfaces or containers come and go. No
//! packet is to wait with it.

use outlast_linux::netlink::{InterfaceIndex, NetlinkError, RouteSocket};
use std::io;
use std::net::IpAddr;
use std::sync::mpsc::{self, SyncSender, TrySendError};
use std::thread;

/// Questions that may wait. What is too much is asked again anyway.
const MOST_WAITING: usize = 64;

/// Tells the kernel whom to ask for. It begins with the first question, so that its thread has no
/// more privileges than the daemon has kept.
#[derive(Debug, Default)]
pub(crate) struct KernelAsker {
    questions: Option<SyncSender<(InterfaceIndex, IpAddr)>>,
}

impl KernelAsker {
    /// Makes the kernel ask for a neighbour, unless it knows or is asking, as soon as that can be. The
    /// answer comes as a [`Change`](outlast_linux::monitor::Change).
    pub(crate) fn ask(&mut self, interface: InterfaceIndex, peer: IpAddr) {
        let questions = match &self.questions {
            Some(questions) => questions,
            None => match begin() {
                Ok(questions) => self.questions.insert(questions),
                Err(error) => {
                    tracing::debug!(%peer, "cannot make the kernel ask for a neighbour: {error}");
                    return;
                }
            },
        };
        match questions.try_send((interface, peer)) {
            Ok(()) | Err(TrySendError::Full(_)) => {}
            // It begins again with the next one.
            Err(TrySendError::Disconnected(_)) => self.questions = None,
        }
    }
}

fn begin() -> io::Result<SyncSender<(InterfaceIndex, IpAddr)>> {
    let mut route = RouteSocket::open().map_err(io::Error::other)?;
    let (questions, asked) = mpsc::sync_channel(MOST_WAITING);
    let ask = move || {
        for (interface, peer) in asked {
            let told: Result<(), NetlinkError> = route.probe_neighbour(interface, peer);
            if let Err(error) = told {
                // The interface is gone again, as its next change will tell.
                tracing::debug!("{error}");
            }
        }
    };
    thread::Builder::new().name("asker".into()).spawn(ask)?;
    Ok(questions)
}
