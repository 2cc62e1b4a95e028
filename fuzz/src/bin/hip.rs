//! Two hosts that speak HIP, and a network that does to their packets what the input says.
//!
//! Each step is an operation and three bytes of arguments: hosts speak, send segments of TCP between tags or between
//! local-scope identifiers, move, close, forget the other one's tag and know only its address; a packet in
//! flight arrives, is lost, arrives twice, is altered and gets a checksum that fits again; time
//! passes; bytes of the input arrive as a packet. Keys are replaced after a few packets, with new secrets.
//! After every step both hosts must be sound, and in the end, when the network is honest again, the hosts must come
//! to speak with each other.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_base::time::{Duration, Instant};
use outlast_hip::identity::Identity;
use outlast_hip::{
    Config, Event, Family, Host, LocalScope, Peer, Protocol, Rekeying, StateName, Transmit,
    stand_in,
};
use outlast_wire::hip::{Builder, Hit, Message};
use outlast_wire::translation::{DualAddress, TranslationError, to_v4, to_v6};
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

/// Packets in flight; the oldest are lost past that.
const FLIGHT: usize = 32;

/// The private keys of the hosts, in PKCS #8: made for this, and worth nothing.
const KEYS: [&str; 2] = [include_str!("../hip/a.pem"), include_str!("../hip/b.pem")];

/// Protocols of inner packets.
const TCP: u8 = 6;
const ICMPV6: u8 = 58;

fuzz_target!(|data: &[u8]| {
    let mut script = data;
    let mut world = World::new();
    // Beyond that, sequences only get longer, not more telling.
    for _ in 0..120 {
        let Some((&[operation, a, b, c], rest)) = script.split_first_chunk() else {
            break;
        };
        script = rest;
        if operation % 16 == 15 {
            let length = usize::from(a).min(script.len());
            let (bytes, rest) = script.split_at(length);
            script = rest;
            world.inject(bytes, b);
        } else {
            world.step(operation, a, b, c);
        }
        world.check();
    }
    world.end();
});

fn hits() -> [Hit; 2] {
    static HITS: OnceLock<[Hit; 2]> = OnceLock::new();
    *HITS.get_or_init(|| KEYS.map(|pem| Identity::from_pem(pem).expect("a key").hit()))
}

/// What both hosts are made with.
fn config() -> Config {
    let scope = LocalScope {
        own: Ipv4Addr::new(198, 18, 0, 1),
        prefix_length: 29,
        mtu: 1440,
    };
    Config {
        local_scope: Some(scope),
        answers_opportunistic: true,
        // So few that a short input leads to new keys.
        rekeying: Rekeying {
            packets: 3,
            ..Rekeying::default()
        },
        ..Config::default()
    }
}

/// A host and its peer as the host's applications know them.
fn known_at(host: usize) -> [DualAddress; 2] {
    let scope = config().local_scope.expect("it is set");
    let [own, peer] = [hits()[host], hits()[1 - host]];
    let own = DualAddress {
        v4: scope.own,
        v6: own.address(),
    };
    let peer = DualAddress {
        v4: scope.assign([(peer, None)])[&peer],
        v6: peer.address(),
    };
    [own, peer]
}

struct World {
    now: Instant,
    hosts: [Host; 2],
    addresses: [IpAddr; 2],
    /// Whether each host was told where the other one is, and not who.
    asks_by_address: [bool; 2],
    flight: VecDeque<Transmit>,
    /// Payloads that each host's application has sent, and how many.
    said: [BTreeSet<u32>; 2],
    heard: [BTreeSet<u32>; 2],
    /// Segments that each host's application has sent.
    segments: [BTreeSet<Vec<u8>>; 2],
    count: u32,
}

/// A segment without what a host may change: its timestamps and its checksum.
fn outline(segment: &[u8]) -> Vec<u8> {
    let mut outline = segment.to_vec();
    outline[16..18].fill(0);
    if outline[12] >> 4 == 8 {
        outline[24..32].fill(0);
    }
    outline
}

/// The address `number` of a host.
fn address(host: usize, number: u8) -> IpAddr {
    if number % 2 == 0 {
        [192, 0, 2, number / 2 * 2 + host as u8].into()
    } else {
        let mut octets = [0; 16];
        octets[..4].copy_from_slice(&[0x20, 1, 0xd, 0xb8]);
        octets[14] = host as u8;
        octets[15] = number;
        octets.into()
    }
}

impl World {
    fn new() -> Self {
        let now = Instant::from_millis(1_000);
        let host = |at: usize| {
            let identity = Identity::from_pem(KEYS[at]).expect("a key");
            let mut host = Host::new(now, config(), identity, [at as u8; 32]);
            host.handle_addresses(now, &[address(at, 2)]);
            host
        };
        let mut world = Self {
            now,
            hosts: [host(0), host(1)],
            addresses: [address(0, 2), address(1, 2)],
            asks_by_address: [false; 2],
            flight: VecDeque::new(),
            said: Default::default(),
            heard: Default::default(),
            segments: Default::default(),
            count: 0,
        };
        world.meet();
        world
    }

    /// Tells both hosts where the other is.
    fn meet(&mut self) {
        for at in 0..2 {
            self.know(at, hits()[1 - at]);
        }
    }

    /// Tells a host where the other one is, and who: by its tag or by a stand-in.
    fn know(&mut self, host: usize, who: Hit) {
        let [_, peer] = known_at(host);
        let known = Peer {
            addresses: vec![self.addresses[1 - host]],
            lsi: Some(peer.v4),
            ..Peer::default()
        };
        self.hosts[host].set_peers([(who, known)]);
        self.asks_by_address[host] = who.suite().is_none();
    }

    /// Whether a stand-in has the usual identifier at a host, or has had it when an exchange began.
    fn has_stand_in(&self, host: usize) -> bool {
        let mut views = self.hosts[host].views();
        self.asks_by_address[host]
            || views.any(|view| view.stand_in.is_some() || view.peer.suite().is_none())
    }

    fn step(&mut self, operation: u8, a: u8, b: u8, c: u8) {
        let host = usize::from(a % 2);
        match operation % 16 {
            0..=4 => self.arrive(usize::from(b), false),
            5 => self.arrive(usize::from(b), true),
            6 => drop(self.take(usize::from(b))),
            7 | 8 => self.alter(usize::from(b), c, a),
            9 => self.speak(host),
            10 => self.send_segment(host, b, c),
            11 => self.pass(Duration::from_millis(u64::from(b) * 8)),
            12 => self.pass(Duration::from_secs(u64::from(b) * 4)),
            13 => self.place(host, b),
            14 if c % 4 == 0 => {
                self.hosts[host].close(self.now, hits()[1 - host]);
                self.drain(host);
            }
            14 if c % 4 == 1 => self.know(host, stand_in(self.addresses[1 - host])),
            14 if c % 4 == 2 => self.know(host, hits()[1 - host]),
            _ => {
                self.hosts[host].handle_link(self.now);
                self.drain(host);
            }
        }
    }

    fn place(&mut self, host: usize, number: u8) {
        self.addresses[host] = address(host, number);
        self.hosts[host].handle_addresses(self.now, &[self.addresses[host]]);
        self.drain(host);
    }

    fn speak(&mut self, host: usize) {
        self.count += 1;
        self.said[host].insert(self.count);
        let mut packet = vec![0x60, 0, 0, 0, 0, 4, 17, 64];
        packet.extend_from_slice(&hits()[host].0);
        packet.extend_from_slice(&hits()[1 - host].0);
        packet.extend_from_slice(&self.count.to_be_bytes());
        self.hosts[host].handle_data(self.now, &packet);
        self.drain(host);
    }

    /// An application sends a segment of TCP, with timestamps or without: the host may repeat it later.
    fn send_segment(&mut self, host: usize, b: u8, c: u8) {
        let has_timestamps = b & 1 == 1;
        let words = if has_timestamps { 8 } else { 5 };
        let mut segment = vec![0, b >> 6, 0, 80, 0, 0, 0, c & 0xf0, 0, 0, 0, c << 4];
        segment.extend_from_slice(&[words << 4, 0x10 | b >> 2 & 0xf, 1, 0, 0, 0, 0, 0]);
        if has_timestamps {
            segment.extend_from_slice(&[1, 1, 8, 10, c, b, 0, 1, b, c, 0, 2]);
        }
        segment.resize(segment.len() + usize::from(c % 8), b);
        self.segments[host].insert(outline(&segment));
        let mut packet = vec![0x60, 0, 0, 0, 0, segment.len() as u8, TCP, 64];
        packet.extend_from_slice(&hits()[host].0);
        packet.extend_from_slice(&hits()[1 - host].0);
        packet.extend_from_slice(&segment);
        if b & 2 == 2 {
            packet = to_v4(&packet, known_at(host)).expect("a segment has a form");
        }
        self.hosts[host].handle_data(self.now, &packet);
        self.drain(host);
    }

    fn take(&mut self, at: usize) -> Option<Transmit> {
        let at = at.checked_rem(self.flight.len())?;
        self.flight.remove(at)
    }

    fn arrive(&mut self, at: usize, again: bool) {
        if let Some(packet) = self.take(at) {
            self.deliver(&packet);
            if again {
                self.flight.push_back(packet);
            }
        }
    }

    fn alter(&mut self, at: usize, place: u8, value: u8) {
        let Some(mut packet) = self.take(at) else {
            return;
        };
        let at = usize::from(place) * 8 % packet.payload.len() + usize::from(value % 8);
        if let Some(byte) = packet.payload.get_mut(at) {
            *byte ^= value | 1;
        }
        if packet.protocol == Protocol::Hip {
            let units = packet.payload[1];
            Builder::set_checksum(&mut packet.payload, packet.source, packet.destination);
            packet.payload[1] = units;
        }
        self.deliver(&packet);
    }

    /// Bytes of the input arrive, as they are or behind a header that fits.
    fn inject(&mut self, bytes: &[u8], choice: u8) {
        let host = usize::from(choice % 2);
        let protocol = if choice & 2 == 0 {
            Protocol::Hip
        } else {
            Protocol::Esp
        };
        let mut payload = bytes.to_vec();
        let (source, destination) = (self.addresses[1 - host], self.addresses[host]);
        if choice & 4 == 0 && protocol == Protocol::Hip {
            let kinds = [1, 2, 3, 4, 16, 17, 18, 19];
            let mut packet = vec![59, 0, kinds[usize::from(choice >> 3) % 8], 0x21, 0, 0, 0, 0];
            packet.extend_from_slice(&hits()[1 - host].0);
            packet.extend_from_slice(&hits()[host].0);
            packet.extend_from_slice(bytes);
            packet.resize(packet.len().next_multiple_of(8), 0);
            Builder::set_checksum(&mut packet, source, destination);
            payload = packet;
        }
        if let Ok(message) = Message::parse(&payload) {
            let mut builder = Builder::new(message.kind(), message.sender(), message.receiver());
            for parameter in message.parameters() {
                builder.push(parameter.kind, parameter.contents);
            }
            assert_eq!(
                builder.finish().expect("it was sorted").len(),
                payload.len()
            );
        }
        self.hosts[host].handle_packet(self.now, (source, destination), protocol, &payload);
        self.drain(host);
    }

    fn deliver(&mut self, packet: &Transmit) {
        let to = (0..2).find(|&host| self.addresses[host] == packet.destination);
        if let Some(host) = to {
            let path = (packet.source, packet.destination);
            self.hosts[host].handle_packet(self.now, path, packet.protocol, &packet.payload);
            self.drain(host);
        }
    }

    fn pass(&mut self, length: Duration) {
        let end = self.now + length;
        let due = |host: &Host| host.poll_timeout().map(|(at, _)| at);
        // A puzzle is due at once, again and again.
        for _ in 0..10_000 {
            let next = (0..2)
                .filter_map(|at| Some((due(&self.hosts[at])?, at)))
                .min();
            let Some((at, host)) = next.filter(|&(at, _)| at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(at);
            self.hosts[host].handle_timeout(self.now);
            self.drain(host);
        }
        panic!("a timer that does not come to rest");
    }

    fn drain(&mut self, host: usize) {
        while let Some(event) = self.hosts[host].poll_event() {
            let peer = match event {
                Event::Established { peer }
                | Event::Failed { peer, .. }
                | Event::Readdressed { peer, .. }
                | Event::Rekeyed { peer }
                | Event::RekeyingFailed { peer }
                | Event::Closed { peer }
                | Event::Registered { server: peer } => peer,
            };
            let is_known = peer == hits()[1 - host] || peer.suite().is_none();
            assert!(is_known, "an event of somebody else");
        }
        // Who listens takes IPv4 at every other port.
        let ask = |asked: &outlast_hip::Conversation| match asked.own_port % 2 {
            0 => Family::V4,
            _ => Family::V6,
        };
        while let Some(mut packet) = self.hosts[host].poll_delivery_for(self.now, ask) {
            if packet[0] >> 4 == 4 {
                let [own, peer] = known_at(host);
                match to_v6(&packet, [peer, own]) {
                    Ok(translated) => packet = translated,
                    // A stand-in has the usual identifier.
                    Err(TranslationError::Address) if self.has_stand_in(host) => continue,
                    Err(error) => panic!("{error}: what was translated is so again"),
                }
            }
            match packet[6] {
                TCP => {
                    let known = self.segments[1 - host].contains(&outline(&packet[40..]));
                    assert!(known, "nobody has sent {packet:?}");
                    continue;
                }
                ICMPV6 => {
                    // An error about a segment of the host's own, behind the quoted header.
                    assert_eq!(packet[40], 1);
                    assert_eq!(packet[56..72], hits()[host].0);
                    continue;
                }
                _ => {}
            }
            let number = packet[40..]
                .try_into()
                .expect("what was sent has four bytes");
            let number = u32::from_be_bytes(number);
            assert!(
                self.said[1 - host].contains(&number),
                "nobody has sent {number}"
            );
            assert!(
                self.heard[host].insert(number),
                "{number} has arrived twice"
            );
        }
        while let Some(packet) = self.hosts[host].poll_transmit() {
            assert_eq!(packet.source.is_ipv4(), packet.destination.is_ipv4());
            if packet.protocol == Protocol::Hip {
                let message = Message::parse(&packet.payload).expect("a host sends HIP");
                assert!(message.checksum_ok(packet.source, packet.destination));
            }
            self.flight.push_back(packet);
            if self.flight.len() > FLIGHT {
                self.flight.pop_front();
            }
        }
    }

    fn check(&self) {
        for (at, host) in self.hosts.iter().enumerate() {
            let views: Vec<_> = host.views().collect();
            let tags = views.iter().filter(|view| view.peer.suite().is_some());
            assert!(tags.count() <= 1);
            let limits = Config::default().limits;
            for view in &views {
                let is_known = view.peer == hits()[1 - at] || view.peer.suite().is_none();
                assert!(is_known);
                assert!(view.waiting <= limits.waiting && view.addresses.len() <= limits.addresses);
            }
            assert_eq!(
                views.is_empty(),
                host.poll_timeout().is_none(),
                "a state without an end"
            );
        }
    }

    /// The network is honest again: the hosts come to speak, whatever state they are in.
    fn end(&mut self) {
        self.flight.clear();
        for host in 0..2 {
            self.place(host, 2);
        }
        self.meet();
        for _ in 0..2 {
            for host in 0..2 {
                self.hosts[host].close(self.now, hits()[1 - host]);
                self.drain(host);
            }
            self.settle(Duration::from_secs(400));
        }
        self.hosts[0].connect(self.now, hits()[1]);
        self.drain(0);
        self.settle(Duration::from_secs(5));
        let before = self.heard[1].len();
        self.speak(0);
        self.settle(Duration::from_secs(1));
        assert!(
            self.heard[1].len() > before,
            "what was sent last does not arrive"
        );
        let state = self.hosts[0].views().next().map(|view| view.state);
        assert_eq!(state, Some(StateName::Established));
    }

    /// Lets packets arrive, and time pass once there are none.
    fn settle(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            while let Some(packet) = self.flight.pop_front() {
                self.deliver(&packet);
            }
            let due = self.hosts.iter().filter_map(|host| host.poll_timeout());
            let next = due.map(|(at, _)| at).min().unwrap_or(end);
            let step = next.max(self.now).min(end) - self.now;
            self.pass(step);
            if step.is_zero() && self.flight.is_empty() && next > self.now {
                break;
            }
        }
    }
}
