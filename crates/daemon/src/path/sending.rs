//! Sending through the host's own firewall.
//!
//! A packet towards the link passes the output hook exempt from connection tracking: its addresses are those on the link, and
//! must not be translated again. A firewall that accepts only packets of tracked connections drops it. The packet is
//! then sent once more as it was before translation, and tracked: the firewall takes it for one of its
//! connection, and it is translated as its original was. Once that has worked, packets go that way first.
//!
//! Two kinds of packets go untracked alone: those of no tracked connection, and ICMP errors on a connection whose addresses are
//! translated.

use outlast_linux::netfilter::NetfilterError;
use outlast_linux::netfilter::rules::TRACKED;
use outlast_linux::netfilter::tracking::{ConnectionTracking, Tuple};
use outlast_linux::raw::{RawSender, Sent};
use outlast_wire::{Packet, Transport};
use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// A way for packets to leave this host.
pub(super) trait Sender {
    /// Sends `packet` to its destination, without waiting.
    fn send_packet(&self, packet: &Packet) -> io::Result<Sent>;
}

impl Sender for RawSender {
    fn send_packet(&self, packet: &Packet) -> io::Result<Sent> {
        self.send(packet.header().ip.destination, &packet.to_bytes())
    }
}

/// The way towards the link.
#[derive(Debug)]
pub(super) struct LinkSender {
    untracked: RawSender,
    tracked: RawSender,
    tracking: RefCell<Option<ConnectionTracking>>,
    /// A firewall has dropped what was not tracked, and let pass what was.
    prefers_tracked: Cell<bool>,
}

impl LinkSender {
    /// Opens the way out of `interface`; its packets bear `mark`.
    pub(super) fn open(mark: u32, interface: &str) -> io::Result<Self> {
        let untracked = RawSender::open(mark, Some(interface))?;
        let tracked = RawSender::open(mark, Some(interface))?;
        tracked.set_priority(TRACKED)?;
        Ok(Self {
            untracked,
            tracked,
            tracking: RefCell::new(None),
            prefers_tracked: Cell::new(false),
        })
    }

    /// Sends `packet` as one of its tracked connection; `None` if it is of none.
    fn send_tracked(&self, packet: &Packet) -> io::Result<Option<Sent>> {
        let Some(sent) = tuple_of(packet) else {
            return Ok(None);
        };
        let before = match self.before_translation(sent) {
            Ok(Some(before)) => before,
            Ok(None) => return Ok(None),
            Err(error) => {
                tracing::debug!(%error, "a connection cannot be looked up");
                return Ok(None);
            }
        };
        if before == sent {
            return self.tracked.send_packet(packet).map(Some);
        }
        match with_addresses(packet, before) {
            Some(packet) => self.tracked.send_packet(&packet).map(Some),
            None => Ok(None),
        }
    }

    fn before_translation(&self, sent: Tuple) -> Result<Option<Tuple>, NetfilterError> {
        let mut tracking = self.tracking.borrow_mut();
        if tracking.is_none() {
            *tracking = ConnectionTracking::open()?;
        }
        match &*tracking {
            Some(tracking) => tracking.before_translation(sent),
            None => Ok(None),
        }
    }
}

impl Sender for LinkSender {
    fn send_packet(&self, packet: &Packet) -> io::Result<Sent> {
        if self.prefers_tracked.get()
            && let Some(sent) = self.send_tracked(packet)?
            && sent != Sent::Forbidden
        {
            return Ok(sent);
        }
        let sent = self.untracked.send_packet(packet)?;
        if sent != Sent::Forbidden || self.prefers_tracked.get() {
            return Ok(sent);
        }
        match self.send_tracked(packet)? {
            Some(Sent::Forbidden) | None => Ok(Sent::Forbidden),
            Some(sent) => {
                self.prefers_tracked.set(true);
                Ok(sent)
            }
        }
    }
}

/// The packets of the connection that `packet` is of, in its direction; of an ICMP error, that which it quotes.
fn tuple_of(packet: &Packet) -> Option<Tuple> {
    let ip = packet.header().ip;
    let (protocol, source_port, destination_port) = match &packet.header().transport {
        Transport::Tcp(tcp) => (TCP, tcp.source_port, tcp.destination_port),
        Transport::Udp(udp) => (UDP, udp.source_port, udp.destination_port),
        Transport::IcmpError(error) => {
            let quoted = error.quoted?;
            let (source_port, destination_port) = quoted.ports?;
            let quoted = Tuple {
                source: SocketAddr::new(quoted.source, source_port),
                destination: SocketAddr::new(quoted.destination, destination_port),
                protocol: quoted.protocol,
            };
            return Some(quoted.reversed());
        }
        Transport::Other { .. } => return None,
    };
    Some(Tuple {
        source: SocketAddr::new(ip.source, source_port),
        destination: SocketAddr::new(ip.destination, destination_port),
        protocol,
    })
}

/// `packet` with other addresses and ports; `None` for what quotes them, or is authenticated.
fn with_addresses(packet: &Packet, tuple: Tuple) -> Option<Packet> {
    let (source, destination) = (tuple.source, tuple.destination);
    let mut edit = packet.clone().edit();
    edit.set_source_port(source.port()).ok()?;
    edit.set_destination_port(destination.port()).ok()?;
    edit.set_source(source.ip()).ok()?;
    edit.set_destination(destination.ip()).ok()?;
    Some(edit.finish())
}
