//! A gateway daemon on the role's device, which is told of registrations.
//!
//! What is complete is said at once, in order, by a thread of its own: the role does not wait for the answer.

use crate::control::{Notified, Request, ask};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread;

/// Notices that wait for the gateway to take them: as many mobile nodes may come at once.
const MOST_WAITING: usize = 4096;

/// A gateway, at its control socket.
#[derive(Debug)]
pub(super) struct Gateway {
    control: PathBuf,
    /// To the thread that tells it; `None` until there is something to tell, as the thread has the
    /// privileges of that moment.
    notices: Option<SyncSender<Request>>,
}

impl Gateway {
    /// The one that listens at `control`.
    pub(super) const fn at(control: PathBuf) -> Self {
        Self {
            control,
            notices: None,
        }
    }

    /// The mobile node of this home address, or this host itself, can be reached or not.
    pub(super) fn tell(&mut self, state: Notified, peer: Option<IpAddr>) {
        let request = Request::Notify {
            state,
            peer,
            link: None,
        };
        let notices = match &self.notices {
            Some(notices) => notices,
            None => match self.begin() {
                Ok(notices) => self.notices.insert(notices),
                Err(error) => return tracing::warn!(%error, "the gateway is not told"),
            },
        };
        if let Err(error) = notices.try_send(request) {
            let why = match error {
                TrySendError::Full(_) => "it takes too long",
                TrySendError::Disconnected(_) => "the thread that tells it has ended",
            };
            tracing::warn!(why, "the gateway is not told");
        }
    }

    fn begin(&self) -> std::io::Result<SyncSender<Request>> {
        let (notices, inbox) = sync_channel(MOST_WAITING);
        let control = self.control.clone();
        let tell = move || {
            for request in inbox {
                if let Err(error) = ask(&control, request) {
                    tracing::warn!(%error, control = %control.display(), "the gateway is not told");
                }
            }
        };
        thread::Builder::new().name("notices".into()).spawn(tell)?;
        Ok(notices)
    }
}
