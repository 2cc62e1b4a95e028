//! When registrations were accepted: the home agent's replies, as they come by.

use crate::gateway_matrix::trial::TrialError;
use outlast_base::time::Instant;
use outlast_lab::LabError;
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
use std::thread::{self, JoinHandle};

const PACKETS: Token = Token(0);
const END: Token = Token(1);
const LONGEST: usize = 2048;

/// Looks on.
pub(super) struct Replies {
    end: Arc<Waker>,
    thread: JoinHandle<io::Result<Vec<Instant>>>,
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "look for registrations",
        source,
    }
}

impl Replies {
    /// Begins, at an interface of a host.
    pub(super) fn watch(host: &Namespace, interface: &str) -> Result<Self, TrialError> {
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
        let thread = thread::spawn(move || watch(&packets, &ended));
        Ok(Self { end, thread })
    }

    /// When each accepting reply came.
    pub(super) fn end(self) -> Result<Vec<Instant>, TrialError> {
        self.end.wake();
        let joined = self.thread.join();
        let replies = joined.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        replies.map_err(io_error)
    }
}

fn watch(packets: &PacketLink, end: &Waker) -> io::Result<Vec<Instant>> {
    let mut poller = Poller::new()?;
    poller.add(packets, PACKETS, Interest::Readable)?;
    poller.add(end, END, Interest::Readable)?;
    let mut buffer = vec![0; LONGEST];
    let mut accepted = Vec::new();
    loop {
        let is_over = poller.wait()?.any(|Ready { token, .. }| token == END);
        let now = clock::now();
        while let Some((_, bytes)) = packets.receive(&mut buffer)? {
            if accepts(bytes) {
                accepted.push(now);
            }
        }
        if is_over {
            return Ok(accepted);
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
