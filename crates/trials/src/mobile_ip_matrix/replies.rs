//! When registrations were accepted: the home agent's replies, as they come by.

use crate::gateway_matrix::trial::TrialError;
use crate::gateway_matrix::wait;
use outlast_base::time::{Duration, Instant};
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::frames::{PacketLink, Wanted};
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::poller::{Interest, Poller, Ready, Token};
use outlast_linux::waker::Waker;
use outlast_wire::mobile_ip::{PORT, RegistrationReply, ReplyCode};
use outlast_wire::{Packet, Transport};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

const PACKETS: Token = Token(0);
const END: Token = Token(1);
const LONGEST: usize = 2048;
const LOOK: Duration = Duration::from_millis(10);

/// Looks on.
pub(crate) struct Replies {
    end: Arc<Waker>,
    accepted: Receiver<Instant>,
    thread: JoinHandle<io::Result<()>>,
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "look for registrations",
        source,
    }
}

impl Replies {
    /// Begins, at an interface of a host.
    pub(crate) fn watch(host: &Namespace, interface: &str) -> Result<Self, TrialError> {
        let open = || -> Result<PacketLink, TrialError> {
            let mut routes = RouteSocket::open().map_err(LabError::from)?;
            let interface = routes.interface(interface).map_err(LabError::from)?;
            // Advertisements and solicitations do not come here.
            let wanted = Wanted {
                port: PORT,
                icmp: [9, 10],
            };
            PacketLink::open(interface, 0, wanted).map_err(io_error)
        };
        let packets = host.run(open).map_err(LabError::from)??;
        let end = Arc::new(Waker::new().map_err(io_error)?);
        let ended = Arc::clone(&end);
        let (told, accepted) = mpsc::channel();
        let thread = thread::spawn(move || watch(&packets, &ended, &told));
        Ok(Self {
            end,
            accepted,
            thread,
        })
    }

    /// Forgets what came until now.
    pub(crate) fn discard(&self) {
        while self.accepted.try_recv().is_ok() {}
    }

    /// When the next accepting reply comes; `None` if none does until then.
    pub(crate) fn next_until(
        &self,
        then: Instant,
        cancel: &Cancel,
    ) -> Result<Option<Instant>, TrialError> {
        loop {
            if let Ok(at) = self.accepted.try_recv() {
                return Ok(Some(at));
            }
            if clock::now() > then {
                return Ok(None);
            }
            wait(cancel, None, LOOK)?;
        }
    }

    /// When each accepting reply came that was not asked for.
    pub(crate) fn end(self) -> Result<Vec<Instant>, TrialError> {
        self.end.wake();
        let joined = self.thread.join();
        let watched = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        watched.map_err(io_error)?;
        Ok(self.accepted.into_iter().collect())
    }
}

fn watch(packets: &PacketLink, end: &Waker, accepted: &Sender<Instant>) -> io::Result<()> {
    let mut poller = Poller::new()?;
    poller.add(packets, PACKETS, Interest::Readable)?;
    poller.add(end, END, Interest::Readable)?;
    let mut buffer = vec![0; LONGEST];
    loop {
        let is_over = poller.wait()?.any(|Ready { token, .. }| token == END);
        let now = clock::now();
        while let Some(frame) = packets.receive(&mut buffer)? {
            if accepts(frame.bytes) && accepted.send(now).is_err() {
                // Nobody looks any more.
                return Ok(());
            }
        }
        if is_over {
            return Ok(());
        }
    }
}

/// Whether a packet is a reply that accepts a registration.
fn accepts(bytes: &[u8]) -> bool {
    let Ok(packet) = Packet::parse(bytes.to_vec().into()) else {
        return false;
    };
    let is_datagram = matches!(packet.header().transport, Transport::Udp(_));
    let payload = packet.payload().unwrap_or_default();
    let reply = RegistrationReply::parse(payload);
    is_datagram
        && reply.is_ok_and(|(reply, _)| reply.code == ReplyCode::ACCEPTED && reply.lifetime.0 > 0)
}
