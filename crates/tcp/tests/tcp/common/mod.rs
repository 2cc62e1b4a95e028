//! Two endpoints, a link between them, and virtual time.

#![allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    reason = "each test binary uses a part of the fixture"
)]

use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::{Frame, Link, LinkConfig, LinkEvent, OutageProcess, PipeConfig, Way};
use outlast_tcp::profile::Profile;
use outlast_tcp::{Config, Endpoint, Error, Event};
use outlast_wire::{Packet, SeqNumber};
use std::net::IpAddr;

#[macro_use]
pub mod script;

/// A packet on the link.
#[derive(Clone, Debug)]
pub struct OnLink(pub Packet);

impl Frame for OnLink {
    fn wire_len(&self) -> ByteCount {
        ByteCount(u64::from(self.0.total_len()))
    }
}

pub fn config(profile: &'static Profile) -> Config {
    let mut config = Config::new(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into());
    config.profile = profile;
    config
}

/// A link of 40 ms round trip and 4 Mbit/s, with room for 150 packets.
pub fn link() -> LinkConfig {
    let pipe = PipeConfig {
        rate: BitRate::from_bits_per_second(4_000_000),
        delay: Duration::from_millis(20),
        queue: 150,
        ..PipeConfig::default()
    };
    LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        ..LinkConfig::default()
    }
}

/// One outage.
pub fn outage(start_ms: u64, length_ms: u64) -> OutageProcess {
    OutageProcess::Single {
        start: Duration::from_millis(start_ms),
        length: Duration::from_millis(length_ms),
    }
}

/// What was sent: when, by whom, and the packet.
#[derive(Clone, Debug)]
pub struct Sent {
    pub at: Instant,
    pub by_client: bool,
    pub packet: Packet,
}

/// What becomes of a packet that leaves the link: nothing, itself, or others.
pub type Meddler = Box<dyn FnMut(Instant, Way, Packet) -> Vec<Packet>>;

/// A client, a server and what is between them.
pub struct Pair {
    pub now: Instant,
    pub client: Endpoint,
    pub server: Endpoint,
    pub link: Link<OnLink>,
    pub sent: Option<Vec<Sent>>,
    pub client_events: Vec<Event>,
    pub server_events: Vec<Event>,
    failed: Option<Error>,
    /// When the server's application got bytes, and how many in all.
    pub deliveries: Vec<(Instant, u64)>,
    pub reads: bool,
    /// What the client's application has to write as soon as there is room.
    pub unwritten: u64,
    /// Segments of the client's that ended where the server's window did.
    pub filled: u64,
    pub steps: u64,
    /// Packets that the link dropped.
    pub drops: u64,
    /// Someone at the far end of the link.
    pub meddler: Option<Meddler>,
}

impl Pair {
    pub fn new(client: Config, server: Config, link: LinkConfig) -> Self {
        let mut pair = Self {
            now: Instant::ZERO,
            client: Endpoint::connect(Instant::ZERO, client),
            server: Endpoint::listen(server),
            link: Link::new(link),
            sent: None,
            client_events: Vec::new(),
            server_events: Vec::new(),
            failed: None,
            deliveries: Vec::new(),
            reads: true,
            unwritten: 0,
            filled: 0,
            steps: 0,
            drops: 0,
            meddler: None,
        };
        pair.link.start(Instant::ZERO);
        pair.drain();
        pair
    }

    pub fn of(profile: &'static Profile, link: LinkConfig) -> Self {
        let client = config(profile);
        let server = client.mirrored();
        Self::new(client, server, link)
    }

    /// Keeps what is sent.
    pub fn recording(mut self) -> Self {
        self.sent = Some(Vec::new());
        self
    }

    fn note_filled(&mut self, packet: &Packet) {
        let (trace, header) = (self.client.trace(), packet.header());
        let Some(tcp) = packet.tcp() else {
            return;
        };
        let end = tcp.seq + header.payload_len;
        let is_full = header.payload_len > 0 && end == trace.snd_una + trace.snd_wnd;
        self.filled += u64::from(is_full);
    }

    fn record(&mut self, by_client: bool, packet: &Packet) {
        if let Some(sent) = &mut self.sent {
            sent.push(Sent {
                at: self.now,
                by_client,
                packet: packet.clone(),
            });
        }
    }

    /// Lets everything happen that is due now.
    pub fn drain(&mut self) {
        loop {
            let mut quiet = true;
            while let Some(packet) = self.client.poll_transmit(self.now) {
                self.note_filled(&packet);
                self.record(true, &packet);
                self.link
                    .handle_packet(self.now, Way::ToMobile, OnLink(packet));
                quiet = false;
            }
            while let Some(packet) = self.server.poll_transmit(self.now) {
                self.record(false, &packet);
                self.link
                    .handle_packet(self.now, Way::ToFixed, OnLink(packet));
                quiet = false;
            }
            while let Some((way, OnLink(packet))) = self.link.poll_transmit() {
                let packets = match &mut self.meddler {
                    Some(meddler) => meddler(self.now, way, packet),
                    None => vec![packet],
                };
                for packet in &packets {
                    self.deliver(way, packet);
                }
                quiet = false;
            }
            while let Some(event) = self.link.poll_event() {
                self.drops += u64::from(matches!(event, LinkEvent::Dropped { .. }));
            }
            while let Some(event) = self.client.poll_event() {
                if event == Event::Writable && self.unwritten > 0 {
                    self.unwritten -= self.client.send(self.now, self.unwritten);
                    quiet = false;
                }
                self.note_failure(&event);
                self.client_events.push(event);
            }
            while let Some(event) = self.server.poll_event() {
                self.note_failure(&event);
                self.server_events.push(event);
            }
            if quiet {
                break;
            }
        }
    }

    /// The client's application writes, now and whenever there is room.
    pub fn write(&mut self, bytes: u64) {
        self.unwritten = bytes - self.client.send(self.now, bytes);
    }

    fn deliver(&mut self, way: Way, packet: &Packet) {
        match way {
            Way::ToMobile => {
                self.server.handle_packet(self.now, packet);
                self.read();
            }
            Way::ToFixed => {
                self.client.handle_packet(self.now, packet);
                let _ = self.client.recv(self.now, u64::MAX);
            }
        }
    }

    /// The server's application reads, if it does.
    pub fn read(&mut self) {
        if self.reads {
            let bytes = self.server.recv(self.now, u64::MAX);
            if bytes > 0 {
                self.deliveries.push((self.now, self.server.received()));
            }
        }
    }

    pub fn next_at(&self) -> Option<Instant> {
        [
            self.client.poll_timeout().map(|(at, _)| at),
            self.server.poll_timeout().map(|(at, _)| at),
            self.link.poll_timeout().map(|(at, _)| at),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Goes to the next thing that happens; `false` if there is none before `until`.
    pub fn step(&mut self, until: Instant) -> bool {
        let Some(at) = self.next_at().filter(|&at| at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        assert!(at >= self.now, "time does not go back");
        self.now = at;
        self.steps += 1;
        self.link.handle_timeout(at);
        if self.client.poll_timeout().is_some_and(|(due, _)| due <= at) {
            self.client.handle_timeout(at);
        }
        if self.server.poll_timeout().is_some_and(|(due, _)| due <= at) {
            self.server.handle_timeout(at);
        }
        self.drain();
        true
    }

    pub fn run_until(&mut self, until: Instant) {
        while self.step(until) {}
    }

    /// Runs until the server has got `bytes` or the client has failed or `limit` is over.
    pub fn run_to(&mut self, bytes: u64, limit: Duration) -> bool {
        let until = self.now + limit;
        while self.server.received() < bytes && self.error().is_none() {
            if !self.step(until) {
                break;
            }
        }
        self.server.received() >= bytes
    }

    fn note_failure(&mut self, event: &Event) {
        if let Event::Failed(error) = event {
            self.failed.get_or_insert(*error);
        }
    }

    /// The first one of either end.
    pub const fn error(&self) -> Option<Error> {
        self.failed
    }

    /// Times from `start` on at which the client sent the segment that was oldest then, again.
    pub fn retransmissions(&self) -> Vec<(Instant, u32)> {
        let mut highest = None;
        let mut again = Vec::new();
        for sent in self.sent.iter().flatten().filter(|sent| sent.by_client) {
            let Some(tcp) = sent.packet.tcp() else {
                continue;
            };
            let len = sent.packet.header().payload_len;
            if len == 0 {
                continue;
            }
            match highest {
                Some(high) if !(tcp.seq + len).after(high) => again.push((sent.at, tcp.seq.0)),
                _ => highest = Some(tcp.seq + len),
            }
        }
        again
    }
}

pub fn ms(at: Instant) -> u64 {
    at.as_nanos() / 1_000_000
}

/// An ICMP destination unreachable from a router about the segment at `seq` of the endpoint of
/// `config`, over IPv4; written by hand, as errors have no modelled form.
pub fn unreachable(config: &Config, seq: SeqNumber, code: u8) -> Packet {
    icmp_error(config, seq, 3, code)
}

/// An ICMP error of any type, likewise.
pub fn icmp_error(config: &Config, seq: SeqNumber, kind: u8, code: u8) -> Packet {
    let octets = |address| match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => panic!("IPv4 only"),
    };
    let local = octets(config.local.ip());
    let mut bytes = vec![0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0, 192, 0, 2, 9];
    bytes.extend(local);
    bytes.extend([kind, code, 0, 0, 0, 0, 0, 0]);
    // The quoted IP header, ports and number.
    bytes.extend([0x45, 0, 4, 16, 0, 0, 0x40, 0, 64, 6, 0, 0]);
    bytes.extend(local);
    bytes.extend(octets(config.remote.ip()));
    bytes.extend(config.local.port().to_be_bytes());
    bytes.extend(config.remote.port().to_be_bytes());
    bytes.extend(seq.0.to_be_bytes());
    let words = bytes[..20].chunks(2);
    let sum: u32 = words
        .map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])))
        .sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    Packet::parse(bytes.into()).expect("a packet")
}
