//! Whole sequences of what a gateway may meet: connections and their odd segments, any bytes that
//! parse, links that go and come, drops, time. After every step it must have kept its word.
//!
//! The first three bytes choose mechanism, limits, and rate with silence and damping. Each further
//! step is an operation and three bytes of arguments; some read more. See [`World::step`] for what
//! hosts and links do, `driver.rs` for what a driver and other gateways do, and `stranger.rs` for
//! who is neither.
#![no_main]

#[path = "../gateway/connection.rs"]
mod connection;
#[path = "../gateway/driver.rs"]
mod driver;
#[path = "../gateway/stranger.rs"]
mod stranger;
#[path = "../gateway/vow.rs"]
mod vow;

use bytes::Bytes;
use connection::{Connection, Host};
use driver::Known;
use libfuzzer_sys::fuzz_target;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::gateway::{
    DampingConfig, DropCause, FLAP, Gateway, GatewayConfig, SilenceConfig,
};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::links::{Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState};
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind, TakeReason, Verdict};
use outlast_gateway::tracking::{FlowKey, FrozenFlow};
use outlast_wire::{IpHeader, Packet, TcpFlags, UdpHeader};
use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use vow::{Bounds, Shown};

const INTERFACES: u32 = 2;
/// Whole interfaces, and three peers behind each.
const LINKS: u8 = 4 * INTERFACES as u8;
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
    /// Packets that have gone out since that is looked at.
    brought: Vec<Packet>,
    transmitted: u64,
    bounds: Bounds,
    /// What flows of now may have been given: the mechanism, and those before it.
    mechanisms: Vec<PathMechanismKind>,
    /// Whether links that are silent may be probed, or might have been.
    may_probe: bool,
    /// Whether the gateway has followed every connection from its first packet.
    sees_all: bool,
    /// What the kernel's tracker would know of each connection.
    known: Known,
    /// Frozen connections that another gateway has.
    exported: Vec<FrozenFlow>,
    /// Connections that the gateway has told to be frozen.
    frozen: BTreeSet<FlowKey>,
}

impl World {
    fn new([mechanism, limits, rate]: [u8; 3]) -> Self {
        let shares_rate = mechanism >= 128;
        let mechanism = mechanism_of(mechanism);
        let limits = limits_of(limits);
        let silence = silence_of(rate >> 6);
        let damping = damping_of(rate >> 4);
        let rate = rate_of(rate);
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism,
            limits,
            seed: 1,
            silence,
            damping,
        });
        for interface in 0..INTERFACES {
            let interface = InterfaceId(interface);
            gateway.add_link(Instant::ZERO, interface, LinkConfig { rate });
            gateway.share_rate(Instant::ZERO, interface, shares_rate);
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
            brought: Vec::new(),
            transmitted: 0,
            bounds: Bounds::of(&limits),
            mechanisms: vec![mechanism],
            may_probe: silence.is_some_and(|silence| silence.probes_per_second > 0),
            sees_all: mechanism != PathMechanismKind::None,
            known: Known::default(),
            exported: Vec::new(),
            frozen: BTreeSet::new(),
        }
    }

    fn step(&mut self, [operation, a, b, c]: [u8; 4], script: &mut Script<'_>) {
        let number = usize::from(a % CONNECTIONS);
        let connection = &mut self.connections[number];
        match operation % 28 {
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
                self.show_stranger(link, direction, &packet);
            }
            11 => {
                let len = usize::from(b).min(script.0.len());
                let (bytes, rest) = script.0.split_at(len);
                script.0 = rest;
                if let Ok(packet) = Packet::parse(Bytes::copy_from_slice(bytes)) {
                    self.show_stranger(link(a), direction(c), &packet);
                }
            }
            12 => {
                let window = u16::from(b) << (c >> 4);
                match direction(c) {
                    ToLink => connection.near.window = window,
                    FromLink => connection.far.window = window,
                }
            }
            13 => connection.link = link(b),
            24 => self.indicate(a, b, c),
            25..=27 => self.meddle(operation % 28, [a, b, c]),
            other => self.drive(other, [a, b, c]),
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

    /// Any indicator says anything of any link, one that does not exist among them.
    fn indicate(&mut self, a: u8, b: u8, c: u8) {
        let indicator = match b % 6 {
            0 => Indicator::Carrier,
            1 => Indicator::Address,
            2 => Indicator::Route,
            3 => Indicator::Neighbour,
            4 => Indicator::MobilityUpdate,
            _ => Indicator::FirstPacket,
        };
        let mut link = link(a);
        if c == u8::MAX {
            link.interface = InterfaceId(INTERFACES);
        }
        let state = match c & 1 {
            0 => LinkState::Down,
            _ => LinkState::Up,
        };
        let event = LinkEvent {
            link,
            state,
            indicator,
        };
        match c & 2 {
            0 => self.gateway.handle_link(self.now, event),
            _ => self.gateway.handle_return(self.now, link, indicator),
        }
    }

    fn show(&mut self, link: LinkId, direction: Direction, packet: &Packet) {
        let _ = self.verdict_on(link, direction, packet);
    }

    fn verdict_on(&mut self, link: LinkId, direction: Direction, packet: &Packet) -> Verdict {
        self.shown.note(link, direction, packet);
        if stranger::is_intact(packet) {
            self.known.note(self.now, direction, packet);
        }
        let before = self.gateway.held_other();
        let verdict = self
            .gateway
            .handle_packet(self.now, link, direction, packet);
        match (verdict, direction) {
            (Verdict::Pass, ToLink) => self.put_on_link(link, packet.clone()),
            (Verdict::Pass, FromLink) => {}
            (Verdict::Taken(TakeReason::AnswersProbe), FromLink) => {
                let asks = |one: &PathMechanismKind| {
                    use PathMechanismKind::{AcknowledgeAhead, Auto, Hold};
                    matches!(one, Hold | Auto | AcknowledgeAhead) || supervises(*one)
                };
                let may_ask = self.mechanisms.iter().any(asks);
                assert!(self.may_probe || may_ask, "nobody probes or asks");
                assert_eq!(packet.sequence_len(), 0, "{packet:?} answers a probe");
            }
            // It goes on with another acknowledgement, or is none of the near host's business.
            (Verdict::Taken(TakeReason::Supervised), FromLink) => {
                assert!(self.mechanisms.iter().any(|one| supervises(*one)));
                assert!(packet.tcp().is_some_and(|tcp| !is_lone(tcp.flags)));
            }
            // It goes on without an echo from before an outage.
            (Verdict::Taken(TakeReason::Freshened), FromLink) => {
                let stamps = packet.tcp().and_then(|tcp| tcp.options.timestamps);
                assert!(stamps.is_some(), "{packet:?} has no echo");
            }
            // It waits for others, and the near host gets the newest.
            (Verdict::Taken(TakeReason::Gathered), FromLink) => {
                assert_eq!(packet.sequence_len(), 0, "{packet:?} is gathered");
                assert!(packet.tcp().is_some_and(|tcp| tcp.flags == TcpFlags::ACK));
            }
            (Verdict::Taken(_), FromLink) => panic!("what has crossed the link is passed on"),
            (Verdict::Taken(reason), ToLink) => {
                // A connection may be older than the gateway: data of its near host waits for the link.
                let is_one_sided = reason == TakeReason::LinkDown && packet.sequence_len() > 0;
                assert!(
                    self.shown.may_be_sent(packet) || is_one_sided,
                    "taken of half a connection"
                );
                let takes = self.mechanisms.iter().any(|mechanism| takes(*mechanism));
                assert!(takes, "{packet:?} taken");
                // The published M-TCP sends nothing to a mobile that does not answer, but persist packets.
                let may_freeze = self.mechanisms.contains(&PathMechanismKind::MTcp);
                let is_owed = !is_answered(reason) && !may_freeze;
                if let (Some(owed), true) = (&mut self.owed, is_owed) {
                    owed.push(packet.clone());
                }
            }
        }
        if self.gateway.held_other() > before {
            let is_bare =
                packet.tcp().is_some_and(|tcp| !is_lone(tcp.flags)) && packet.sequence_len() == 0;
            assert!(!is_bare, "kept like a datagram: {packet:?}");
        }
        self.check();
        verdict
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
        // What is idle for so long may be forgotten.
        self.sees_all &= self.now.since(Instant::ZERO) < self.limits.closed_timeout;
    }

    /// A connection that gives way for another takes along what waited, and its sender repeats that.
    fn forgive_displaced(&mut self) {
        let is_tracked = |packet: &Packet| {
            let key = FlowKey::of_tcp(packet.header(), ToLink);
            key.is_none_or(|key| self.gateway.is_tracked(&key))
        };
        if let Some(owed) = &mut self.owed {
            owed.retain(is_tracked);
        }
    }

    /// All links come back: nothing stays behind, and nobody is cut off. Then all fall silent.
    fn end(&mut self) {
        for number in 0..LINKS {
            self.step([6, number, 1, 0], &mut Script(&[]));
        }
        self.check_reports();
        // Longer than any indicator is damped, and than a one-sided connection is remembered.
        self.wait(Duration::from_secs(300));
        for number in 0..LINKS {
            let state = self.gateway.link_state(link(number)).map(|link| link.state);
            assert_eq!(state, Some(LinkState::Up), "the last word");
        }
        assert_eq!(self.gateway.damped_links(self.now).count(), 0);
        assert_eq!(self.gateway.held_other(), ByteCount(0), "links are up");
        self.owed = Some(Vec::new());
        let displaced = self.gateway.counters().flows_displaced;
        for number in 0..CONNECTIONS {
            self.step([9, number, 0, 9], &mut Script(&[]));
            self.step([1, number, 3, 0], &mut Script(&[]));
            self.check();
        }
        if self.gateway.counters().flows_displaced > displaced {
            self.forgive_displaced();
        }
        self.wait(Duration::from_secs(120));
        assert_eq!(
            self.owed,
            Some(Vec::new()),
            "taken with the link up, and not sent"
        );
        // What is given up meanwhile counts as a sign of life, once.
        self.wait(self.limits.established_timeout * 2);
        assert_eq!(self.gateway.flows(), 0);
        assert_eq!(self.gateway.held(), ByteCount(0));
        assert_eq!(self.gateway.poll_timeout(), None);
        assert_eq!(self.gateway.silent_links().count(), 0);
        for interface in 0..INTERFACES {
            let at_work = self.gateway.links_at_work(InterfaceId(interface));
            assert!(at_work.is_empty(), "{at_work:?}");
        }
        assert!(self.frozen.is_empty(), "{:?} never thawed", self.frozen);
    }
}

/// A SYN or a RST: kept as it is, without a connection.
fn is_lone(flags: TcpFlags) -> bool {
    flags.intersects(TcpFlags::SYN | TcpFlags::RST)
}

/// Whether what was taken need not go out: another copy does, its receiver has it, or its sender is to repeat it.
const fn is_answered(reason: TakeReason) -> bool {
    use TakeReason::{FullQueue, JustResent, Supervised};
    matches!(reason, JustResent | Supervised | FullQueue)
}

/// Whether acknowledgements are passed on with other numbers.
pub(crate) const fn supervises(mechanism: PathMechanismKind) -> bool {
    matches!(
        mechanism,
        PathMechanismKind::MTcp | PathMechanismKind::MTcpAdaptive
    )
}

/// Whether packets are taken instead of being lost.
const fn takes(mechanism: PathMechanismKind) -> bool {
    matches!(
        mechanism,
        PathMechanismKind::Hold
            | PathMechanismKind::AcknowledgeAhead
            | PathMechanismKind::MTcp
            | PathMechanismKind::MTcpAdaptive
            | PathMechanismKind::Auto
    )
}

fn silence_of(byte: u8) -> Option<SilenceConfig> {
    match byte % 4 {
        0 => None,
        // Nobody is probed: the link's return shows when a host sends.
        1 => Some(SilenceConfig {
            probes_per_second: 0,
            ..SilenceConfig::default()
        }),
        2 => Some(SilenceConfig::default()),
        _ => Some(SilenceConfig {
            shortest: Duration::from_millis(1),
            probes_per_second: 5,
            full_pace_for: Duration::from_secs(1),
            given_up_after: Duration::from_secs(60),
        }),
    }
}

fn damping_of(byte: u8) -> Option<DampingConfig> {
    match byte % 4 {
        0 => None,
        1 => Some(DampingConfig::default()),
        // At the first flap, and forgotten at once.
        2 => Some(DampingConfig {
            half_life: Duration::from_millis(50),
            cut_off: FLAP,
            reuse: FLAP / 2,
            hold_down: Duration::from_millis(300),
        }),
        _ => Some(DampingConfig {
            half_life: Duration::from_secs(30),
            cut_off: 2 * FLAP,
            reuse: FLAP,
            hold_down: Duration::from_secs(60),
        }),
    }
}

const fn mechanism_of(byte: u8) -> PathMechanismKind {
    match byte % 12 {
        0 => PathMechanismKind::None,
        1 => PathMechanismKind::SmartLink(Level::One),
        2 => PathMechanismKind::SmartLink(Level::Two),
        3 => PathMechanismKind::SmartLink(Level::Three),
        4 => PathMechanismKind::SmartLink(Level::Four),
        5 => PathMechanismKind::RetransmissionCache,
        6 => PathMechanismKind::ZeroWindowAck,
        8 => PathMechanismKind::AcknowledgeAhead,
        9 => PathMechanismKind::Auto,
        10 => PathMechanismKind::MTcp,
        11 => PathMechanismKind::MTcpAdaptive,
        _ => PathMechanismKind::Hold,
    }
}

fn limits_of(byte: u8) -> Limits {
    let tight = byte % 2 == 1;
    Limits {
        flows: if byte & 2 == 0 { 64 } else { 3 },
        held_per_flow: ByteCount(if tight { 8_000 } else { 200_000 }),
        held_in_all: ByteCount(if tight { 20_000 } else { 400_000 }),
        other_packets: if tight { 3 } else { 50 },
        other_bytes: ByteCount(if tight { 4_000 } else { 60_000 }),
        peers: if tight { 1 } else { 3 },
        established_timeout: Duration::from_secs(600),
        ..Limits::default()
    }
}

fn rate_of(byte: u8) -> Option<BitRate> {
    match byte % 3 {
        0 => None,
        1 => BitRate::from_bits_per_second(10_000_000),
        _ => BitRate::from_bits_per_second(64_000),
    }
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
        IpHeader::new(
            Ipv4Addr::new(10, 0, 0, 2).into(),
            Ipv4Addr::new(10, 0, 0, 1).into(),
        ),
        udp,
        &vec![0; usize::from(len)],
    )
}
