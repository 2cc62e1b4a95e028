//! Whole sequences of what may happen to a home agent, two foreign agents and a mobile node, with
//! messages that are lost, said again, changed and made up.
//!
//! The first byte chooses the way of detection. Each further step is an operation and three bytes of
//! arguments, see [`World::step`]. In the end nothing is in the way any more, and the mobile node has
//! to be reachable within the time that the timers allow.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::{
    Advertising, Algorithm, Arrival, Detection, ForeignAgent, ForeignAgentConfig, ForeignLimits,
    HomeAgent, HomeAgentConfig, HomeEvent, HomeLimits, LinkAddress, LinkId, MobileNode,
    MobileNodeConfig, NtpClock, ReverseTunnels, SecurityAssociation, Transmit, Verdict, Via,
};
use outlast_wire::mobile_ip::{Lifetime, RegistrationRequest};
use outlast_wire::{IpHeader, Packet, Transport, UdpHeader};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
const STRANGER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 7);
const NODE: LinkAddress = LinkAddress([4; 6]);
const NTP: u64 = 0xee00_0000_0000_0000;
const LIFETIME: u16 = 20;
/// Messages that are remembered, to be said again.
const REMEMBERED: usize = 16;
const FORWARD: Duration = Duration::from_millis(10);
/// The first is a home agent, the others are foreign ones.
const CELLS: usize = 3;
const LIMITS: ForeignLimits = ForeignLimits {
    visitors: 4,
    pending: 8,
    pending_per_node: 4,
    refusals_per_second: 100,
    refusals_per_node: 4,
};

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Node {
    Home,
    Foreign(usize),
    Mobile,
}

struct World {
    now: Instant,
    detection: Detection,
    home: HomeAgent,
    foreign: [ForeignAgent; CELLS - 1],
    mobile: MobileNode,
    at: Option<usize>,
    losses: u8,
    on_the_way: VecDeque<(Instant, Node, Arrival, Packet)>,
    heard: VecDeque<(Node, Arrival, Packet)>,
    /// Identifications of requests that the mobile node itself has sent.
    asked: BTreeSet<u64>,
    probes: u64,
    restarts: u64,
}

fn association() -> SecurityAssociation {
    SecurityAssociation::new(256, Algorithm::HmacMd5, b"a key of theirs.").expect("a free index")
}

fn care_of(cell: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1 + cell as u8, 0, 1)
}

fn advertising(cell: usize) -> Advertising {
    Advertising {
        address: care_of(cell),
        prefix_length: Some(24),
        ..Advertising::default()
    }
}

fn home(now: Instant, seed: u64) -> HomeAgent {
    HomeAgent::new(
        now,
        HomeAgentConfig {
            address: HOME_AGENT,
            link: LinkId(0),
            mobiles: BTreeMap::from([(MOBILE, vec![association()])]),
            foreign_agents: BTreeMap::new(),
            longest_lifetime: Lifetime(60),
            replay_tolerance: Duration::from_secs(7),
            reverse_tunnels: ReverseTunnels::Offered,
            udp_tunnels: None,
            advertising: Some(advertising(0)),
            limits: HomeLimits::default(),
            clock: NtpClock::new(Instant::ZERO, NTP),
            seed,
        },
    )
}

fn foreign(now: Instant, cell: usize, seed: u64) -> ForeignAgent {
    ForeignAgent::new(
        now,
        ForeignAgentConfig {
            care_of_address: care_of(cell),
            link: LinkId(0),
            advertising: advertising(cell),
            longest_lifetime: Lifetime(60),
            demands_registration: false,
            reverse_tunnels: ReverseTunnels::Offered,
            mobiles: BTreeMap::new(),
            home_agents: BTreeMap::new(),
            request_timeout: Duration::from_secs(7),
            limits: LIMITS,
            seed,
        },
    )
}

fn mobile(now: Instant, detection: Detection) -> MobileNode {
    MobileNode::new(
        now,
        MobileNodeConfig {
            home_address: MOBILE,
            home_agent: HOME_AGENT,
            home: association(),
            foreign: None,
            detection,
            lifetime: Lifetime(LIFETIME),
            reverse_tunnel: true,
            simultaneous_bindings: false,
            udp_tunnel: false,
            clock: NtpClock::new(Instant::ZERO, NTP),
            seed: 7,
        },
    )
}

impl World {
    fn new(choice: u8) -> Self {
        let detection = match choice % 4 {
            0 => Detection::Eager,
            1 => Detection::Lazy,
            2 => Detection::Prefix,
            _ => Detection::Link,
        };
        let now = Instant::ZERO;
        Self {
            now,
            detection,
            home: home(now, 1),
            foreign: [foreign(now, 1, 2), foreign(now, 2, 3)],
            mobile: mobile(now, detection),
            at: None,
            losses: 0,
            on_the_way: VecDeque::new(),
            heard: VecDeque::new(),
            asked: BTreeSet::new(),
            probes: 0,
            restarts: 0,
        }
    }

    fn step(&mut self, [operation, a, b, c]: [u8; 4]) {
        match operation % 8 {
            0 => self.place(Some(usize::from(a) % (CELLS + 1)).filter(|cell| *cell < CELLS)),
            1 => self.wait(Duration::from_millis(u64::from(u16::from_be_bytes([a, b])))),
            2 => {
                self.restarts += 1;
                let cell = 1 + usize::from(a) % (CELLS - 1);
                self.foreign[cell - 1] = foreign(self.now, cell, 10 + self.restarts);
            }
            3 => {
                self.restarts += 1;
                self.home = home(self.now, 10 + self.restarts);
            }
            4 => self.say_again(a, None),
            5 => self.say_again(a, Some((b, c))),
            6 => self.losses = a,
            _ => self.make_up(a, b, c),
        }
        self.check();
    }

    fn place(&mut self, cell: Option<usize>) {
        if let Some(left) = core::mem::replace(&mut self.at, cell) {
            self.mobile
                .handle_link(self.now, LinkId(left as u32), false);
        }
        if let Some(come) = cell {
            self.mobile.handle_link(self.now, LinkId(come as u32), true);
        }
        self.drain();
    }

    /// A message comes once more to where it came, perhaps changed.
    fn say_again(&mut self, which: u8, change: Option<(u8, u8)>) {
        let count = self.heard.len();
        if count == 0 {
            return;
        }
        let (to, arrival, packet) = self.heard[usize::from(which) % count].clone();
        let packet = match change {
            None => packet,
            Some((at, bits)) => {
                let Transport::Udp(udp) = packet.header().transport else {
                    return;
                };
                let mut payload = packet.payload().unwrap_or_default().to_vec();
                let length = payload.len().max(1);
                if let Some(byte) = payload.get_mut(usize::from(at) % length) {
                    *byte ^= bits;
                }
                Packet::udp_datagram(packet.header().ip, udp, &payload)
            }
        };
        self.deliver(to, arrival, packet);
    }

    /// A stranger's request.
    fn make_up(&mut self, a: u8, b: u8, c: u8) {
        let request = RegistrationRequest {
            flags: outlast_wire::mobile_ip::RequestFlags(b & 0xfa),
            lifetime: Lifetime(u16::from(c)),
            home_address: if a & 1 == 1 { MOBILE } else { STRANGER },
            home_agent: HOME_AGENT,
            care_of_address: if a & 2 == 2 { care_of(1) } else { STRANGER },
            identification: NTP + (self.now.as_nanos() << 2) + u64::from(a),
        };
        let payload = request
            .emit()
            .authenticate(
                outlast_wire::mobile_ip::SecuredPair::MobileHome,
                256,
                16,
                |_| [c; 16],
            )
            .finish();
        let (to, destination) = match a & 4 {
            4 => (Node::Home, HOME_AGENT),
            _ => (Node::Foreign(1), care_of(1)),
        };
        let ip = IpHeader {
            hop_limit: 255,
            ..IpHeader::new(STRANGER.into(), destination.into())
        };
        let udp = UdpHeader {
            source_port: u16::from(b),
            destination_port: 434,
        };
        let arrival = Arrival {
            link: LinkId(0),
            from: LinkAddress([c; 6]),
        };
        self.deliver(to, arrival, Packet::udp_datagram(ip, udp, &payload));
    }

    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        for calls in 0.. {
            assert!(calls < 100_000, "never at rest in {time:?}");
            let dues = self.dues();
            let due = dues.iter().map(|(at, _)| *at).min();
            let packet = self.on_the_way.front().map(|(at, ..)| *at);
            let Some(at) = packet
                .into_iter()
                .chain(due)
                .min()
                .filter(|at| *at <= until)
            else {
                break;
            };
            self.now = self.now.max(at);
            if packet == Some(at) {
                let (_, to, arrival, packet) = self.on_the_way.pop_front().expect("there is one");
                self.deliver(to, arrival, packet);
                continue;
            }
            for (at, node) in dues {
                if at <= self.now {
                    match node {
                        Node::Home => self.home.handle_timeout(self.now),
                        Node::Foreign(cell) => self.foreign[cell - 1].handle_timeout(self.now),
                        Node::Mobile => self.mobile.handle_timeout(self.now),
                    }
                }
            }
            self.drain();
        }
        self.now = until;
    }

    fn dues(&self) -> Vec<(Instant, Node)> {
        let foreign = self.foreign.iter().zip(1..);
        let foreign = foreign.map(|(agent, cell)| {
            let due = agent.poll_timeout();
            due.map(|(at, _)| (at, Node::Foreign(cell)))
        });
        let home = self.home.poll_timeout().map(|(at, _)| (at, Node::Home));
        let mobile = self.mobile.poll_timeout().map(|(at, _)| (at, Node::Mobile));
        foreign.chain([home, mobile]).flatten().collect()
    }

    fn deliver(&mut self, to: Node, arrival: Arrival, packet: Packet) {
        let now = self.now;
        let verdict = match to {
            Node::Home => self.home.handle_packet(now, arrival, packet.clone()),
            Node::Foreign(cell) => {
                self.foreign[cell - 1].handle_packet(now, arrival, packet.clone())
            }
            Node::Mobile if self.at == Some(arrival.link.0 as usize) => {
                self.mobile.handle_packet(now, arrival, &packet)
            }
            Node::Mobile => Verdict::Taken,
        };
        let is_probe =
            matches!(packet.header().transport, Transport::Udp(udp) if udp.destination_port == 9);
        if to == Node::Mobile && verdict == Verdict::Pass && is_probe {
            self.probes += 1;
        }
        if to == Node::Home && verdict == Verdict::Pass && is_probe {
            self.send_over_air(0, packet);
        }
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.mobile.poll_transmit() {
            if let Transmit::Packet { packet, via } = transmit {
                self.note_request(&packet);
                let cell = match via {
                    Via::Link(link) | Via::Neighbour(link, _) => Some(link.0 as usize),
                    Via::Route | Via::Local => self.at,
                };
                if let Some(cell) = cell.filter(|cell| self.at == Some(*cell)) {
                    let to = if cell == 0 {
                        Node::Home
                    } else {
                        Node::Foreign(cell)
                    };
                    let arrival = Arrival {
                        link: LinkId(0),
                        from: NODE,
                    };
                    self.post(to, arrival, packet);
                }
            }
        }
        while let Some(transmit) = self.home.poll_transmit() {
            if let Transmit::Packet { packet, via } = transmit {
                match via {
                    Via::Link(_) | Via::Neighbour(..) => self.send_over_air(0, packet),
                    _ => self.route(packet),
                }
            }
        }
        for cell in 1..CELLS {
            while let Some(transmit) = self.foreign[cell - 1].poll_transmit() {
                if let Transmit::Packet { packet, via } = transmit {
                    match via {
                        Via::Link(_) | Via::Neighbour(..) => self.send_over_air(cell, packet),
                        _ => self.route(packet),
                    }
                }
            }
            while self.foreign[cell - 1].poll_event().is_some() {}
        }
        while self.mobile.poll_event().is_some() {}
        while let Some(event) = self.home.poll_event() {
            if let HomeEvent::Bound { home_address, .. } = event {
                assert_eq!(home_address, MOBILE, "a stranger is bound");
            }
        }
    }

    fn note_request(&mut self, packet: &Packet) {
        let payload = packet.payload().unwrap_or_default();
        if let Ok((request, _)) = RegistrationRequest::parse(payload) {
            self.asked.insert(request.identification);
        }
    }

    fn send_over_air(&mut self, cell: usize, packet: Packet) {
        let arrival = Arrival {
            link: LinkId(cell as u32),
            from: LinkAddress([2; 6]),
        };
        self.post(Node::Mobile, arrival, packet);
    }

    fn route(&mut self, packet: Packet) {
        let IpAddr::V4(to) = packet.header().ip.destination else {
            return;
        };
        let arrival = Arrival {
            link: LinkId(9),
            from: LinkAddress([2; 6]),
        };
        let cell = (1..CELLS).find(|cell| care_of(*cell) == to);
        match cell {
            Some(cell) => self.post(Node::Foreign(cell), arrival, packet),
            None if to == HOME_AGENT || to == MOBILE => self.post(Node::Home, arrival, packet),
            None => {}
        }
    }

    fn post(&mut self, to: Node, arrival: Arrival, packet: Packet) {
        if self.heard.len() >= REMEMBERED {
            self.heard.pop_front();
        }
        self.heard.push_back((to, arrival, packet.clone()));
        // The lowest bit goes first; the pattern comes round.
        let is_lost = self.losses & 1 == 1;
        self.losses = self.losses.rotate_right(1);
        if !is_lost {
            self.on_the_way
                .push_back((self.now + FORWARD, to, arrival, packet));
        }
    }

    fn check(&self) {
        assert!(self.home.away() <= 1);
        for address in self.home.care_of_addresses(MOBILE) {
            assert!(
                (1..CELLS).any(|cell| care_of(cell) == address),
                "bound at {address}"
            );
        }
        for agent in &self.foreign {
            assert!(agent.visitors() <= LIMITS.visitors && agent.pending() <= LIMITS.pending);
        }
        // One a second on average; one more for each start of the world's three.
        let seconds = self.now.as_nanos() / 1_000_000_000;
        assert!(self.mobile.counters().requests <= seconds + 3);
        assert!(self.home.counters().accepted <= self.asked.len() as u64);
    }

    fn end(&mut self) {
        self.losses = 0;
        self.on_the_way.clear();
        for cell in 1..CELLS {
            self.foreign[cell - 1] = foreign(self.now, cell, 100);
        }
        self.place(None);
        self.place(Some(1));
        let lifetime = u64::from(LIFETIME);
        self.wait(Duration::from_secs(lifetime + 5 + 7 + 1));
        self.check();
        let ip = IpHeader::new(STRANGER.into(), MOBILE.into());
        let udp = UdpHeader {
            source_port: 9,
            destination_port: 9,
        };
        let before = self.probes;
        self.route(Packet::udp_datagram(ip, udp, b"probe"));
        self.wait(Duration::from_secs(1));
        assert!(
            self.probes > before,
            "{:?}, {:?}",
            self.detection,
            self.mobile
        );
    }
}

fuzz_target!(|data: &[u8]| {
    let Some((choice, steps)) = data.split_first() else {
        return;
    };
    let mut world = World::new(*choice);
    for step in steps.as_chunks::<4>().0.iter().take(200) {
        world.step(*step);
    }
    world.end();
});
