//! Whole sequences of what a gateway may meet: connections and their odd segments, any bytes that
//! parse, links that go and come, drops, time. After every step it must have kept its word.
//!
//! The first three bytes choose mechanism, limits and rate. Each further step is an operation and
//! three bytes of arguments; some read more. See [`World::step`].
#![no_main]

#[path = "../gateway/connection.rs"]
mod connection;

use bytes::Bytes;
use connection::{Connection, Host, ip};
use libfuzzer_sys::fuzz_target;
use outlast_core::flow::FlowKey;
use outlast_core::gateway::{DropCause, Gateway, GatewayConfig};
use outlast_core::limits::Limits;
use outlast_core::link::Direction::{self, FromLink, ToLink};
use outlast_core::link::{Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState};
use outlast_core::mechanisms::path::{Level, PathMechanismKind, TakeReason, Verdict};
use outlast_core::time::{Duration, Instant};
use outlast_core::units::{BitRate, ByteCount};
use outlast_wire::{Packet, TcpFlags, UdpHeader};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

const INTERFACES: u32 = 2;
const CONNECTIONS: u8 = 4;
const ACK: TcpFlags = TcpFlags::ACK;

fuzz_target!(|data: &[u8]| {
    let mut script = Script(data);
    let mut world = World::new(script.take());
    // Beyond that, sequences only get longer, not more telling.
    for _ in 0..400 {
        if script.0.is_empty() {
            break;
        }
        let operation = script.take();
        world.step(operation, &mut script);
        world.check();
    }
    world.end();
});

/// The rest of the input; zeros behind its end.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let mut taken = [0; N];
        let len = N.min(self.0.len());
        taken[..len].copy_from_slice(&self.0[..len]);
        self.0 = &self.0[len..];
        taken
    }
}

struct World {
    gateway: Gateway,
    limits: Limits,
    mechanism: PathMechanismKind,
    now: Instant,
    connections: Vec<Connection>,
    shown: Shown,
    /// What went towards a link, for the link to drop.
    on_link: VecDeque<(LinkId, Packet)>,
    /// What the gateway took and may still owe; only watched at the end.
    owed: Option<Vec<Packet>>,
    transmitted: u64,
}

/// What the gateway was shown.
#[derive(Default)]
struct Shown {
    to_link: Vec<Packet>,
    from_link: Vec<Packet>,
    flows_to_link: BTreeSet<FlowKey>,
    flows_from_link: BTreeSet<FlowKey>,
}

impl World {
    fn new([mechanism, limits, rate]: [u8; 3]) -> Self {
        let mechanism = match mechanism % 8 {
            0 => PathMechanismKind::None,
            1 => PathMechanismKind::SmartLink(Level::One),
            2 => PathMechanismKind::SmartLink(Level::Two),
            3 => PathMechanismKind::SmartLink(Level::Three),
            4 => PathMechanismKind::SmartLink(Level::Four),
            5 => PathMechanismKind::RetransmissionCache,
            _ => PathMechanismKind::Hold,
        };
        let tight = limits % 2 == 1;
        let limits = Limits {
            flows: if limits & 2 == 0 { 64 } else { 3 },
            held_per_flow: ByteCount(if tight { 8_000 } else { 200_000 }),
            held_in_all: ByteCount(if tight { 20_000 } else { 400_000 }),
            other_packets: if tight { 3 } else { 50 },
            other_bytes: ByteCount(if tight { 4_000 } else { 60_000 }),
            peers: if tight { 1 } else { 3 },
            established_timeout: Duration::from_secs(600),
            ..Limits::default()
        };
        let rate = match rate % 3 {
            0 => None,
            1 => BitRate::from_bits_per_second(10_000_000),
            _ => BitRate::from_bits_per_second(64_000),
        };
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism,
            limits,
            seed: 1,
        });
        for interface in 0..INTERFACES {
            gateway.add_link(Instant::ZERO, InterfaceId(interface), LinkConfig { rate });
        }
        Self {
            gateway,
            limits,
            mechanism,
            now: Instant::from_millis(10),
            connections: (0..CONNECTIONS).map(Connection::new).collect(),
            shown: Shown::default(),
            on_link: VecDeque::new(),
            owed: None,
            transmitted: 0,
        }
    }

    fn step(&mut self, [operation, a, b, c]: [u8; 4], script: &mut Script<'_>) {
        let number = usize::from(a % CONNECTIONS);
        let connection = &mut self.connections[number];
        match operation % 14 {
            // A connection opens, on its old ports if need be.
            0 => self.open(number, b, c),
            // The near host sends data or, from where it has sent before, sends it again.
            1 => {
                let link = connection.way(b);
                let packet = connection.data(ToLink, self.now, b, c);
                self.show(link, ToLink, &packet);
            }
            2 => {
                let link = connection.way(b);
                let packet = connection.data(FromLink, self.now, b, c);
                self.show(link, FromLink, &packet);
            }
            // A pure acknowledgement, of a part of what was sent, with SACK.
            3 => {
                let (link, packet) = (
                    connection.link,
                    connection.acknowledgement(ToLink, self.now, b, c),
                );
                self.show(link, ToLink, &packet);
            }
            4 => {
                let (link, packet) = (
                    connection.link,
                    connection.acknowledgement(FromLink, self.now, b, c),
                );
                self.show(link, FromLink, &packet);
            }
            5 => {
                let direction = direction(b);
                let offset = u32::from(c) << (b >> 3);
                let packet = connection.control(direction, self.now, TcpFlags::RST | ACK, offset);
                let link = connection.link;
                self.show(link, direction, &packet);
            }
            6 => {
                let link = link(a);
                let state = if b % 2 == 0 {
                    LinkState::Down
                } else {
                    LinkState::Up
                };
                let indicator = Indicator::Notify;
                self.gateway.handle_link(
                    self.now,
                    LinkEvent {
                        link,
                        state,
                        indicator,
                    },
                );
            }
            7 => {
                let cause = match b % 4 {
                    0 => DropCause::Congestion,
                    _ => DropCause::Outage,
                };
                if let Some((link, packet)) = self.on_link.get(usize::from(a)).cloned() {
                    self.gateway.handle_drop(self.now, link, &packet, cause);
                }
            }
            8 => self.wait(Duration::from_millis(u64::from(a) << (b % 15))),
            9 => {
                let packet = datagram(b, u16::from(c) * 6);
                self.show(link(a), direction(b), &packet);
            }
            // Numbers and flags that no honest host would use now.
            10 => {
                let [seq, scale, ack, len] = script.take();
                let (link, direction) = (connection.way(c), direction(c));
                let signed =
                    |byte: u8| (i32::from(byte.cast_signed()) << (scale % 25)).cast_unsigned();
                let packet =
                    connection.spoofed(direction, TcpFlags(b), signed(seq), signed(ack), len);
                self.show(link, direction, &packet);
            }
            11 => {
                let len = usize::from(b).min(script.0.len());
                let (bytes, rest) = script.0.split_at(len);
                script.0 = rest;
                if let Ok(packet) = Packet::parse(Bytes::copy_from_slice(bytes)) {
                    self.show(link(a), direction(c), &packet);
                }
            }
            12 => {
                let window = u16::from(b) << (c >> 4);
                match direction(c) {
                    ToLink => connection.near.window = window,
                    FromLink => connection.far.window = window,
                }
            }
            _ => connection.link = link(b),
        }
    }

    fn open(&mut self, number: usize, isn: u8, steps: u8) {
        let connection = &mut self.connections[number];
        let isn = u32::from(isn).wrapping_sub(128) << 10;
        connection.near = Host::new(isn);
        connection.far = Host::new(!isn);
        let link = connection.link;
        let handshake = [
            (ToLink, TcpFlags::SYN),
            (FromLink, TcpFlags::SYN | ACK),
            (ToLink, ACK),
        ];
        for (n, (direction, flags)) in handshake.into_iter().enumerate() {
            if steps & (1 << n) != 0 {
                continue;
            }
            let connection = &mut self.connections[number];
            let packet = if flags == ACK {
                connection.acknowledgement(direction, self.now, u8::MAX, 0)
            } else {
                connection.syn(direction, self.now, flags)
            };
            self.show(link, direction, &packet);
            self.wait(Duration::from_millis(u64::from(steps >> 3)));
        }
    }

    fn show(&mut self, link: LinkId, direction: Direction, packet: &Packet) {
        self.shown.note(direction, packet);
        let before = self.gateway.held_other();
        let verdict = self
            .gateway
            .handle_packet(self.now, link, direction, packet);
        match (verdict, direction) {
            (Verdict::Pass, ToLink) => self.put_on_link(link, packet.clone()),
            (Verdict::Pass, FromLink) => {}
            (Verdict::Taken(_), FromLink) => panic!("what has crossed the link is passed on"),
            (Verdict::Taken(reason), ToLink) => {
                assert!(self.shown.may_be_sent(packet), "taken of half a connection");
                assert_eq!(self.mechanism, PathMechanismKind::Hold, "{packet:?} taken");
                if let (Some(owed), true) = (&mut self.owed, reason != TakeReason::JustResent) {
                    owed.push(packet.clone());
                }
            }
        }
        if self.gateway.held_other() > before {
            let is_tcp_data = packet.tcp().is_some_and(|tcp| !is_lone(tcp.flags));
            assert!(!is_tcp_data, "kept like a datagram: {packet:?}");
        }
    }

    fn put_on_link(&mut self, link: LinkId, packet: Packet) {
        self.on_link.push_front((link, packet));
        self.on_link.truncate(64);
    }

    /// Time passes; the driver is on time.
    fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        let (mut calls, transmitted) = (0, self.transmitted);
        while let Some((at, _)) = self.gateway.poll_timeout()
            && at <= until
        {
            self.now = self.now.max(at);
            self.gateway.handle_timeout(self.now);
            self.check();
            calls += 1;
            let next = self.gateway.poll_timeout();
            assert!(
                next.is_none_or(|(at, _)| at > self.now),
                "{next:?} is no later than {}",
                self.now
            );
            let sent = self.transmitted - transmitted;
            // A kick for each flow every 50 ms, its time of doubt, a nudge.
            let flows = self.gateway.flows() as u64 + 1;
            let most = sent + 32 * (duration.as_secs() + 1) * (flows + self.limits.flows as u64);
            assert!(
                calls <= most,
                "{calls} timeouts in {duration:?}, {sent} sent"
            );
        }
        self.now = until;
    }

    /// What must hold at all times.
    fn check(&mut self) {
        while let Some(transmit) = self.gateway.poll_transmit() {
            self.transmitted += 1;
            let packet = &transmit.packet;
            let shown = match transmit.direction {
                ToLink => &self.shown.to_link,
                FromLink => &self.shown.from_link,
            };
            assert!(
                shown.iter().rev().any(|one| one == packet),
                "never shown: {packet:?}"
            );
            assert!(
                self.shown.may_be_sent(packet),
                "half a connection: {packet:?}"
            );
            if transmit.direction == ToLink {
                let state = self.gateway.link_state(transmit.link).map(|s| s.state);
                assert_eq!(state, Some(LinkState::Up), "{transmit:?}");
            }
            if let Some(owed) = &mut self.owed {
                owed.retain(|owed| owed != packet);
            }
            if transmit.direction == ToLink {
                self.put_on_link(transmit.link, transmit.packet);
            }
        }
        while self.gateway.poll_event().is_some() {}
        let gateway = &self.gateway;
        assert!(gateway.held() <= self.limits.held_in_all);
        let others = self.limits.other_bytes.as_u64() * u64::from(INTERFACES);
        assert!(gateway.held_other() <= ByteCount(others));
        assert!(gateway.flows() <= self.limits.flows);
    }

    /// All links come back: nothing stays behind, and nobody is cut off. Then all fall silent.
    fn end(&mut self) {
        for number in 0..=u8::MAX {
            self.step([6, number, 1, 0], &mut Script(&[]));
        }
        self.wait(Duration::from_secs(120));
        assert_eq!(self.gateway.held_other(), ByteCount(0), "links are up");
        self.owed = Some(Vec::new());
        for number in 0..CONNECTIONS {
            self.step([9, number, 0, 9], &mut Script(&[]));
            self.step([1, number, 3, 0], &mut Script(&[]));
            self.check();
        }
        self.wait(Duration::from_secs(120));
        assert_eq!(
            self.owed,
            Some(Vec::new()),
            "taken with the link up, and not sent"
        );
        self.wait(self.limits.established_timeout);
        assert_eq!(self.gateway.flows(), 0);
        assert_eq!(self.gateway.held(), ByteCount(0));
        assert_eq!(self.gateway.poll_timeout(), None);
    }
}

impl Shown {
    fn note(&mut self, direction: Direction, packet: &Packet) {
        let (packets, flows) = match direction {
            ToLink => (&mut self.to_link, &mut self.flows_to_link),
            FromLink => (&mut self.from_link, &mut self.flows_from_link),
        };
        packets.push(packet.clone());
        flows.extend(FlowKey::of_tcp(packet.header(), direction));
    }

    /// Segments may be sent where both hosts were seen; a packet that stands for itself always.
    fn may_be_sent(&self, packet: &Packet) -> bool {
        packet.tcp().is_none_or(|tcp| is_lone(tcp.flags))
            || [ToLink, FromLink].into_iter().any(|direction| {
                FlowKey::of_tcp(packet.header(), direction).is_some_and(|key| {
                    self.flows_to_link.contains(&key) && self.flows_from_link.contains(&key)
                })
            })
    }
}

/// A SYN or a RST: kept as it is, without a connection.
fn is_lone(flags: TcpFlags) -> bool {
    flags.intersects(TcpFlags::SYN | TcpFlags::RST)
}

/// One of the links: whole interfaces and peers behind them.
fn link(byte: u8) -> LinkId {
    let interface = InterfaceId(u32::from(byte) % INTERFACES);
    let peer = match (byte / 2) % 4 {
        0 => None,
        peer => Some(Ipv4Addr::new(10, 1, 0, peer).into()),
    };
    LinkId { interface, peer }
}

fn direction(byte: u8) -> Direction {
    if byte % 4 == 3 { FromLink } else { ToLink }
}

fn datagram(port: u8, len: u16) -> Packet {
    let udp = UdpHeader {
        source_port: u16::from(port),
        destination_port: 443,
    };
    Packet::udp_datagram(
        ip([10, 0, 0, 2], [10, 0, 0, 1]),
        udp,
        &vec![0; usize::from(len)],
    )
}
