//! Whole sequences of what neighbours with the right key may say: in any order, twice, in each
//! other's name, against what they said before or what the hosts do. After every step the agent
//! must have kept its word.
//!
//! The first byte chooses limits. Each further step is an operation and four bytes of arguments. See
//! [`World::step`] for what happens, and `story.rs` for what is said.
#![no_main]

#[path = "../../../crates/agents/tests/agents/frozen/mod.rs"]
mod frozen;
#[path = "../agents/story.rs"]
mod story;

use libfuzzer_sys::fuzz_target;
use outlast_agents::{
    Agents, Config, Entry, Event, Kept, Left, Limits, Message, Prefix, Session, Site,
};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::limits::Limits as GatewayLimits;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::links::{Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState};
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason};
use outlast_gateway::tracking::FlowKey;
use outlast_wire::Packet;
use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use story::{CONNECTIONS, Connection, mobile};

const INTERFACE: InterfaceId = InterfaceId(1);
const NEIGHBOURS: u8 = 3;
const LOST_AFTER: Duration = Duration::from_secs(30);
/// What is remembered of each neighbour's messages, to be said again.
const REMEMBERED: usize = 16;
/// Messages that may wait for a neighbour that does not read; of what is frozen and of what was
/// settled there is more to say, but not much.
const UNSAID: usize = 256;
const MOST_UNREAD: usize = 2 * UNSAID;

fuzz_target!(|data: &[u8]| {
    let mut script = data.iter().copied();
    let mut world = World::new(script.next().unwrap_or(0));
    // Beyond that, sequences only get longer, not more telling.
    for _ in 0..400 {
        let Some(operation) = script.next() else {
            break;
        };
        let arguments = std::array::from_fn(|_| script.next().unwrap_or(0));
        world.step(operation, arguments);
        world.check();
    }
    world.end();
});

fn address(neighbour: u8) -> SocketAddr {
    SocketAddr::new(
        Ipv4Addr::new(203, 0, 113, 1 + neighbour % NEIGHBOURS).into(),
        7_348,
    )
}

fn link_to(far: IpAddr) -> LinkId {
    LinkId {
        interface: INTERFACE,
        peer: Some(far),
    }
}

#[derive(Default)]
struct Neighbour {
    is_up: bool,
    /// It takes nothing of what is said to it.
    is_deaf: bool,
    /// What it has said, and what it has heard.
    said: VecDeque<Vec<u8>>,
    heard: VecDeque<Vec<u8>>,
}

struct World {
    agents: Agents,
    gateway: Gateway,
    config: Config,
    limits: GatewayLimits,
    now: Instant,
    neighbours: [Neighbour; NEIGHBOURS as usize],
    connections: Vec<Connection>,
    /// What would be found after a crash.
    journal: Left,
}

fn remember(said: &mut VecDeque<Vec<u8>>, bytes: Vec<u8>) {
    said.push_front(bytes);
    said.truncate(REMEMBERED);
}

fn gateway(now: Instant, limits: GatewayLimits) -> Gateway {
    let mut gateway = Gateway::new(GatewayConfig {
        mechanism: PathMechanismKind::ZeroWindowAck,
        limits,
        ..GatewayConfig::default()
    });
    gateway.add_link(now, INTERFACE, LinkConfig::default());
    gateway
}

impl World {
    fn new(limits: u8) -> Self {
        let is_tight = limits % 2 == 1;
        let only = Prefix {
            address: mobile(0),
            length: 32,
        };
        let config = Config {
            instance: 1,
            neighbours: (0..NEIGHBOURS).map(address).collect(),
            mobiles: match limits & 2 {
                0 => Vec::new(),
                _ => vec![only],
            },
            lost_after: LOST_AFTER,
            limits: Limits {
                notices: if is_tight { 2 } else { 32 },
                copies: if is_tight { 1 } else { 32 },
                unsaid: UNSAID,
            },
        };
        let limits = GatewayLimits {
            flows: if limits & 4 == 0 { 64 } else { 2 },
            held_per_flow: ByteCount(20_000),
            held_in_all: ByteCount(if limits & 8 == 0 { 400_000 } else { 1_200 }),
            established_timeout: Duration::from_secs(600),
            ..GatewayLimits::default()
        };
        let now = Instant::from_millis(10);
        Self {
            agents: Agents::new(config.clone()),
            gateway: gateway(now, limits),
            config,
            limits,
            now,
            neighbours: Default::default(),
            connections: (0..CONNECTIONS).map(Connection::new).collect(),
            journal: Left::default(),
        }
    }

    fn step(&mut self, operation: u8, [a, b, c, d]: [u8; 4]) {
        let number = usize::from(a % NEIGHBOURS);
        let connection = usize::from(b % CONNECTIONS);
        let of = &mut self.connections[connection];
        match operation % 24 {
            // A session begins as it should, or not.
            0 => self.session(number, Session::Up),
            1 => {
                self.session(number, Session::Up);
                let instance = u64::from(2 + a % NEIGHBOURS);
                self.hear(number, Message::Hello { instance }.encode());
            }
            2 => self.session(number, Session::Down),
            // Anything well-formed.
            kind @ 3..=10 => {
                let message =
                    story::message(kind - 3, &self.connections[connection], [b / 4, c, d]);
                self.hear(number, message.encode());
            }
            // What it, or another one, has said before.
            11 => {
                let from = &self.neighbours[usize::from(b % NEIGHBOURS)];
                if let Some(bytes) = from.said.get(usize::from(c) % REMEMBERED).cloned() {
                    self.hear(number, bytes);
                }
            }
            // What it, or another one, was told.
            12 => {
                let from = &self.neighbours[usize::from(b % NEIGHBOURS)];
                if let Some(bytes) = from.heard.get(usize::from(c) % REMEMBERED).cloned() {
                    self.hear(number, bytes);
                }
            }
            // It takes nothing, whatever it says, and then all at once.
            13 => self.neighbours[number].is_deaf = b % 2 == 0,
            14 => {
                let message = story::message(
                    b,
                    &self.connections[usize::from(c % CONNECTIONS)],
                    [b, c, d],
                );
                for _ in 0..4 * MOST_UNREAD {
                    self.hear(number, message.encode());
                }
            }
            15 => {
                let handshake = of.handshake();
                for (packet, direction) in handshake.iter().zip([ToLink, FromLink, ToLink]) {
                    self.show(direction, packet);
                }
            }
            16 | 17 => {
                let packet = of.data(c);
                self.show(ToLink, &packet);
            }
            18 => {
                let packet = of.acknowledgement(c);
                self.show(FromLink, &packet);
            }
            19 => {
                let is_far = c % 2 == 0;
                let packet = of.reset(is_far);
                self.show(if is_far { FromLink } else { ToLink }, &packet);
            }
            20 => self.link(mobile(b), c % 2 == 0),
            21 => self.wait(Duration::from_millis(u64::from(a) << (b % 10))),
            22 => self.act(|agents, site| agents.handle_arrival(site, mobile(b))),
            _ if c == u8::MAX => self.start_anew(),
            _ => {
                let moved =
                    self.act(|agents, site| agents.handle_moved(site, mobile(b), address(a)));
                assert!(moved.is_ok(), "it is a neighbour");
            }
        }
        self.drain();
    }

    fn act<T>(&mut self, what: impl FnOnce(&mut Agents, &mut Site<'_>) -> T) -> T {
        let mut site = Site {
            now: self.now,
            gateway: &mut self.gateway,
            link_to: &link_to,
        };
        what(&mut self.agents, &mut site)
    }

    fn session(&mut self, number: usize, session: Session) {
        let neighbour = &mut self.neighbours[number];
        let is_up = session == Session::Up;
        let was_up = std::mem::replace(&mut neighbour.is_up, is_up);
        let at = address(number as u8);
        if was_up {
            self.act(|agents, site| agents.handle_session(site, at, Session::Down));
        }
        if is_up {
            self.act(|agents, site| agents.handle_session(site, at, Session::Up));
        }
    }

    fn hear(&mut self, number: usize, bytes: Vec<u8>) {
        let at = address(number as u8);
        let heard = self.act(|agents, site| agents.handle_message(site, at, &bytes));
        if heard.is_err() {
            self.session(number, Session::Down);
        }
        remember(&mut self.neighbours[number].said, bytes);
        self.drain();
    }

    fn show(&mut self, direction: Direction, packet: &Packet) {
        let ip = packet.header().ip;
        let far = match direction {
            ToLink => ip.destination,
            FromLink => ip.source,
        };
        let _ = self
            .gateway
            .handle_packet(self.now, link_to(far), direction, packet);
        self.drain();
        if direction == FromLink && self.agents.awaits(far) {
            self.act(|agents, site| agents.handle_arrival(site, far));
        }
    }

    fn link(&mut self, far: IpAddr, is_up: bool) {
        let event = LinkEvent {
            link: link_to(far),
            state: match is_up {
                true => LinkState::Up,
                false => LinkState::Down,
            },
            indicator: Indicator::Notify,
        };
        self.gateway.handle_link(self.now, event);
    }

    /// It was killed, and finds its journal.
    fn start_anew(&mut self) {
        self.drain();
        for number in 0..self.neighbours.len() {
            self.session(number, Session::Down);
        }
        // As the instances of `story::id`, which only grow where agents are true to themselves.
        self.config.instance += 5;
        self.agents = Agents::new(self.config.clone());
        self.gateway = gateway(self.now, self.limits);
        let left = self.journal.clone();
        self.journal.kept.clear();
        self.act(|agents, site| agents.restore(site, left));
    }

    /// In the order that [`Agents`] asks for.
    fn drain(&mut self) {
        while let Some(event) = self.gateway.poll_event() {
            self.act(|agents, site| agents.handle_gateway_event(site, &event));
        }
        while let Some(entry) = self.agents.poll_record() {
            self.write_down(entry);
        }
        while let Some(transmit) = self.gateway.poll_transmit() {
            self.check_packet(transmit.direction, transmit.reason, &transmit.packet);
        }
        while let Some(packet) = self.agents.poll_packet() {
            assert!(packet.checksums_ok());
        }
        for number in 0..self.neighbours.len() {
            self.send_messages(number);
        }
        while let Some(entry) = self.agents.poll_removal() {
            self.write_down(entry);
        }
        while let Some(event) = self.agents.poll_event() {
            if let Event::Silent { agent } = event {
                let of = (0..NEIGHBOURS).find(|number| address(*number) == agent);
                self.session(usize::from(of.expect("a neighbour")), Session::Down);
            }
        }
    }

    fn write_down(&mut self, entry: Entry) {
        let bytes = entry.encode();
        let entry = Entry::decode(&bytes).expect("it was written by us");
        let is_kept = |id| self.journal.kept.contains_key(id);
        match &entry {
            Entry::Kept(kept) => assert!(!is_kept(&kept.id), "two under one name: {kept:?}"),
            Entry::Removed(id) => assert!(
                is_kept(id) || self.journal.over.contains(id),
                "{id:?} was never written down"
            ),
        }
        self.journal.apply(entry);
    }

    fn send_messages(&mut self, number: usize) {
        if self.neighbours[number].is_deaf {
            return;
        }
        let at = address(number as u8);
        let mut unread = 0;
        while let Some(bytes) = self.act(|agents, site| agents.poll_transmit(site, at)) {
            assert!(self.neighbours[number].is_up, "there is nobody to hear it");
            unread += 1;
            assert!(unread <= MOST_UNREAD, "{unread} messages kept for one");
            match Message::decode(&bytes).expect("it was written by us") {
                Message::Segment { id, flow } => {
                    let numbers = flow.numbers().expect("it is frozen here");
                    let kept = self.journal.kept.get(&id).expect("it was written down");
                    assert_eq!(kept.flow.segment, flow.segment, "{:?}", numbers.flow);
                }
                Message::Frozen { id, .. } => assert!(self.journal.kept.contains_key(&id)),
                _ => {}
            }
            remember(&mut self.neighbours[number].heard, bytes);
        }
    }

    /// Nothing is acknowledged that was not kept, and nothing delivered.
    fn check_packet(&mut self, direction: Direction, reason: SendReason, packet: &Packet) {
        let tcp = packet.tcp().expect("a segment");
        let flow = FlowKey::of_tcp(packet.header(), direction).expect("a segment");
        match reason {
            SendReason::WindowClosed => {
                let kept = self.kept_of(flow).expect("acknowledged, and not kept");
                let numbers = kept.flow.numbers().expect("it was frozen");
                assert_eq!((tcp.ack, tcp.window), (numbers.until, 0));
            }
            SendReason::Reset => {}
            other => assert_eq!((other, direction), (SendReason::Kept, ToLink)),
        }
    }

    fn kept_of(&self, flow: FlowKey) -> Option<&Kept> {
        let is_of = |kept: &&Kept| {
            kept.flow
                .numbers()
                .is_ok_and(|numbers| numbers.flow == flow)
        };
        self.journal.kept.values().find(is_of)
    }

    /// Time passes; the driver is on time.
    fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        for calls in 0.. {
            assert!(calls < 100_000, "never at rest in {duration:?}");
            let gateway = self.gateway.poll_timeout().map(|(at, _)| at);
            let agents = self.agents.poll_timeout().map(|(at, _)| at);
            let Some(at) = [gateway, agents].into_iter().flatten().min() else {
                break;
            };
            if at > until {
                break;
            }
            self.now = self.now.max(at);
            if gateway.is_some_and(|at| at <= self.now) {
                self.gateway.handle_timeout(self.now);
            }
            if agents.is_some_and(|at| at <= self.now) {
                self.act(Agents::handle_timeout);
            }
            self.drain();
        }
        self.now = until;
    }

    fn check(&mut self) {
        for neighbour in self.agents.neighbours() {
            assert!(neighbour.frozen <= self.config.limits.notices);
            assert_eq!(
                neighbour.session == Session::Up,
                self.is_up(neighbour.agent)
            );
        }
        let (mut flows, mut copies) = (BTreeSet::new(), 0);
        for view in self.agents.frozen() {
            flows.insert(view.flow);
            copies += usize::from(view.taken_from.is_some());
        }
        // What was left by an earlier instance is kept, however much it is.
        let left = self.config.instance > 1;
        assert!(
            copies <= self.config.limits.copies || left,
            "{copies} copies"
        );
        let written = self.journal.kept.values().map(|kept| kept.flow.numbers());
        let written: BTreeSet<_> = written.map(|of| of.expect("frozen").flow).collect();
        assert_eq!(flows, written, "what is kept is what is written down");
        assert_eq!(self.journal.kept.len(), written.len(), "once each");
        for connection in &self.connections {
            let is_frozen = self.gateway.export_frozen(connection.key()).is_some();
            assert_eq!(is_frozen, flows.contains(&connection.key()));
        }
        let notices: usize = self.agents.neighbours().map(|one| one.frozen).sum();
        let is_lent = self.agents.frozen().any(|view| view.lent_to.is_some());
        if notices == 0 && !is_lent {
            let awaited = (0..3).any(|number| self.agents.awaits(mobile(number)));
            assert!(!awaited, "nobody has said anything of it");
        }
    }

    fn is_up(&self, agent: SocketAddr) -> bool {
        (0..NEIGHBOURS).any(|n| address(n) == agent && self.neighbours[usize::from(n)].is_up)
    }

    /// Everybody is gone for good: so is what depended on them.
    fn end(&mut self) {
        for number in 0..self.neighbours.len() {
            self.neighbours[number].is_deaf = false;
            self.session(number, Session::Down);
        }
        self.drain();
        self.wait(LOST_AFTER * 2);
        self.check();
        let noticed: usize = self.agents.neighbours().map(|one| one.frozen).sum();
        assert_eq!(noticed, 0, "nobody resets them any more");
        self.wait(self.limits.established_timeout * 3);
        self.check();
        assert_eq!(self.agents.frozen().count(), 0);
        assert_eq!(self.gateway.held(), ByteCount(0));
        assert_eq!(self.agents.poll_timeout(), None);
    }
}
