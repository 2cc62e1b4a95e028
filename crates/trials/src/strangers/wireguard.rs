//! TCP in a tunnel of WireGuard's: one transfer between two hosts behind the tunnel's ends.
//!
//! The transfer is the [TCP model's](outlast_tcp), with the stack of Linux 6. Of WireGuard there is what a gateway and a
//! receiver see of its transport data messages (its paper, section 5.4.6): type, receiver's index, counter, padding and
//! length, and the window of counters against replays. Left out are encryption, which changes no length, and the
//! handshake, which an outage of less than 15 s does not bring about (section 6.5).

use super::arrivals::Arrival;
use super::losses::Losses;
use super::machine::Machine;
use outlast_base::time::Instant;
use outlast_tcp::{Config, Endpoint, Event};
use outlast_wire::Packet;
use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

/// Where WireGuard listens.
pub const PORT: u16 = 51_820;
/// What fits into a packet of 1,500 bytes (`wg-quick(8)`).
const MTU: u16 = 1_420;
/// Type and reserved bytes of a transport data message.
const DATA: [u8; 4] = [4, 0, 0, 0];
/// Type, index and counter.
const HEADER: usize = 16;
/// The authentication tag.
const TAG: usize = 16;
/// Packets are padded to a multiple of this (section 5.4.6), as far as the tunnel's MTU goes.
const PADDING: usize = 16;
/// Counters that a receiver remembers (Linux: `COUNTER_WINDOW_SIZE`).
const WINDOW: u64 = 8_128;
/// The hosts behind the tunnel's ends.
const INNER: [([u8; 4], u16); 2] = [([10, 77, 0, 1], 80), ([10, 77, 0, 2], 40_000)];

/// One end of the tunnel, with the host behind it.
#[derive(Debug)]
pub struct Peer {
    tcp: Endpoint,
    /// The other end.
    peer: SocketAddr,
    sends: bool,
    is_connected: bool,
    /// The counter of the next message.
    next: u64,
    seen: BTreeSet<u64>,
    outbox: VecDeque<Vec<u8>>,
    /// What the application has read.
    pub arrivals: Vec<Arrival>,
    /// Messages that came twice, or so late that nobody can tell: dropped.
    pub replayed: u64,
    /// Why the transfer ended, if it did.
    pub ended: Option<String>,
}

impl Peer {
    /// The end whose host is asked, and sends; `client` is where the other end is.
    #[must_use]
    pub fn server(now: Instant, client: SocketAddr) -> Self {
        let tcp = Endpoint::listen(config());
        Self::new(now, client, tcp, true)
    }

    /// The end whose host asks, and reads; `server` is where the other end is.
    #[must_use]
    pub fn client(now: Instant, server: SocketAddr) -> Self {
        let tcp = Endpoint::connect(now, config().mirrored());
        Self::new(now, server, tcp, false)
    }

    fn new(now: Instant, peer: SocketAddr, tcp: Endpoint, sends: bool) -> Self {
        let mut peer = Self {
            tcp,
            peer,
            sends,
            is_connected: false,
            next: 0,
            seen: BTreeSet::new(),
            outbox: VecDeque::new(),
            arrivals: Vec::new(),
            replayed: 0,
            ended: None,
        };
        peer.settle(now);
        peer
    }

    /// What the sender has sent again so far.
    #[must_use]
    pub fn losses(&self) -> Losses {
        Losses {
            packets: self.tcp.counters().retransmitted_segments,
            window: None,
        }
    }

    /// A message with this packet.
    fn seal(&mut self, packet: &[u8]) -> Vec<u8> {
        let most = packet.len().max(usize::from(MTU));
        let padded = packet.len().next_multiple_of(PADDING).min(most);
        let mut message = Vec::with_capacity(HEADER + padded + TAG);
        message.extend_from_slice(&DATA);
        message.extend_from_slice(&u32::from(self.sends).to_le_bytes());
        message.extend_from_slice(&self.next.to_le_bytes());
        message.extend_from_slice(packet);
        message.resize(HEADER + padded + TAG, 0);
        self.next += 1;
        message
    }

    /// The packet of a message, if it is one and has not come before.
    fn open(&mut self, message: &[u8]) -> Option<Packet> {
        let (head, rest) = message.split_first_chunk::<HEADER>()?;
        let (packet, _tag) = rest.split_last_chunk::<TAG>()?;
        let counter = head.last_chunk()?;
        let counter = u64::from_le_bytes(*counter);
        if !head.starts_with(&DATA) {
            return None;
        }
        let newest = self.seen.last().copied().unwrap_or(0);
        if counter + WINDOW < newest || !self.seen.insert(counter) {
            self.replayed += 1;
            return None;
        }
        while self
            .seen
            .first()
            .is_some_and(|first| first + WINDOW < newest)
        {
            self.seen.pop_first();
        }
        // Behind the packet is padding.
        let length = u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]);
        let packet = packet.get(..usize::from(length))?;
        Packet::parse(packet.to_vec().into()).ok()
    }

    /// Has the host speak, until it has nothing to say.
    fn settle(&mut self, now: Instant) {
        while let Some(event) = self.tcp.poll_event() {
            match event {
                Event::Connected => self.is_connected = true,
                Event::Failed(error) => self.ended = Some(error.to_string()),
                _ => {}
            }
        }
        if self.is_connected && self.sends {
            self.tcp.send(now, u64::MAX >> 1);
        }
        let read = self.tcp.recv(now, u64::MAX);
        if read > 0 {
            self.arrivals.push(Arrival {
                at: now,
                sent: None,
                number: None,
                bytes: read,
            });
        }
        while let Some(packet) = self.tcp.poll_transmit(now) {
            let message = self.seal(&packet.to_bytes());
            self.outbox.push_back(message);
        }
    }
}

fn config() -> Config {
    Config {
        mtu: MTU,
        ..Config::new(INNER[0].into(), INNER[1].into())
    }
}

impl Machine for Peer {
    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, datagram: &[u8]) {
        if let Some(packet) = self.open(datagram) {
            self.tcp.handle_packet(now, &packet);
            self.settle(now);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.tcp.handle_timeout(now);
        self.settle(now);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        if self.outbox.is_empty() {
            self.settle(now);
        }
        Some((self.peer, self.outbox.pop_front()?))
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.tcp.poll_timeout().map(|(at, _)| at)
    }
}
