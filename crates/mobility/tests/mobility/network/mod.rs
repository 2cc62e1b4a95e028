//! Agents and mobile nodes in virtual time, with links that lose, repeat and delay.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses another part"
)]

use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::{
    Advertising, Algorithm, Arp, Arrival, CoLocation, Detection, ForeignAgent, ForeignAgentConfig,
    ForeignLimits, HomeAgent, HomeAgentConfig, HomeEvent, HomeLimits, LinkAddress, LinkId,
    MobileNode, MobileNodeConfig, NodeEvent, NtpClock, ReverseTunnels, SecurityAssociation,
    Transmit, UdpTunnelOffer, Verdict, Via,
};
use outlast_wire::mobile_ip::Lifetime;
use outlast_wire::{IpHeader, Packet, Transport, UdpHeader};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

pub const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 1);
pub const CORRESPONDENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
pub const TRANSLATOR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 9);
/// What the wall clock says at time zero: 2026.
pub const NTP: u64 = 0xee00_0000_0000_0000;
pub const AIR: Duration = Duration::from_millis(1);
pub const HOME: usize = 0;
const TRANSLATED_PORT: u16 = 40_000;
const TO_AGENTS: LinkId = LinkId(1_000);

pub fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

pub fn home_address(mobile: usize) -> Ipv4Addr {
    let number = u32::try_from(mobile).expect("few mobiles") + 0x0a01_0100;
    Ipv4Addr::from_bits(number)
}

pub fn foreign_address(cell: usize) -> Ipv4Addr {
    Ipv4Addr::new(10, 1 + u8::try_from(cell).expect("few cells"), 0, 1)
}

fn node_of(mobile: usize) -> LinkAddress {
    let [.., a, b, c] = (mobile as u64).to_be_bytes();
    LinkAddress([4, 0, 0, a, b, c])
}

fn agent_node(cell: usize) -> LinkAddress {
    LinkAddress([2, 0, 0, 0, 0, cell as u8])
}

pub fn association(mobile: usize) -> SecurityAssociation {
    let key = (mobile as u128).to_be_bytes();
    SecurityAssociation::new(256, Algorithm::HmacMd5, &key).expect("a free index")
}

/// Who gets a packet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Node {
    Home,
    Foreign(usize),
    Mobile(usize),
}

/// What goes wrong with packets on the backbone and in the air.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: f64,
    pub repetition: f64,
    pub jitter: Duration,
}

pub struct Mobile {
    pub node: MobileNode,
    pub config: MobileNodeConfig,
    /// The cells that it is in; [`HOME`] is the home link.
    pub cells: BTreeSet<usize>,
    /// Its own address, and whether a translator stands before it.
    pub own: Option<(Ipv4Addr, bool)>,
    pub probes: u64,
    pub events: Vec<(Instant, NodeEvent)>,
}

pub struct Setup {
    pub cells: usize,
    pub mobiles: usize,
    pub backbone: Duration,
    pub detection: Detection,
    pub lifetime: u16,
    pub reverse_tunnel: bool,
    pub seed: u64,
    pub limits: HomeLimits,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            cells: 2,
            mobiles: 1,
            backbone: ms(30),
            detection: Detection::Lazy,
            lifetime: 300,
            reverse_tunnel: true,
            seed: 1,
            limits: HomeLimits::default(),
        }
    }
}

pub struct Network {
    pub now: Instant,
    setup: Setup,
    pub home: HomeAgent,
    home_config: HomeAgentConfig,
    foreign: Vec<Option<ForeignAgent>>,
    pub mobiles: Vec<Mobile>,
    pub faults: Faults,
    stream: Stream,
    on_the_way: BTreeMap<(Instant, u64), (Node, Arrival, Packet)>,
    sent: u64,
    dues: BTreeMap<Node, Instant>,
    agenda: BTreeSet<(Instant, Node)>,
    pub home_events: Vec<(Instant, HomeEvent)>,
    pub arps: Vec<(Instant, Node, Arp)>,
    pub from_mobiles: u64,
    /// Every packet that goes to the home agent from the backbone is written down.
    pub recorded: Vec<Packet>,
    /// Every packet that was sent.
    pub posted: Vec<(Instant, Packet)>,
    pub advertisements_pass: bool,
    pub is_home_cut_off: bool,
}

impl Network {
    pub fn new(setup: Setup) -> Self {
        let mobiles = (0..setup.mobiles).map(|n| (home_address(n), vec![association(n)]));
        let home_config = HomeAgentConfig {
            address: HOME_AGENT,
            link: LinkId(0),
            mobiles: mobiles.collect(),
            foreign_agents: BTreeMap::new(),
            longest_lifetime: Lifetime(1_800),
            replay_tolerance: Duration::from_secs(7),
            reverse_tunnels: ReverseTunnels::Offered,
            udp_tunnels: Some(UdpTunnelOffer::default()),
            advertising: Some(Advertising {
                address: HOME_AGENT,
                prefix_length: Some(16),
                ..Advertising::default()
            }),
            limits: setup.limits,
            clock: NtpClock::new(Instant::ZERO, NTP),
            seed: setup.seed,
        };
        let mut network = Self {
            now: Instant::ZERO,
            home: HomeAgent::new(Instant::ZERO, home_config.clone()),
            home_config,
            foreign: (0..=setup.cells).map(|_| None).collect(),
            mobiles: Vec::new(),
            faults: Faults::default(),
            stream: Stream::new(setup.seed, "faults"),
            on_the_way: BTreeMap::new(),
            sent: 0,
            dues: BTreeMap::new(),
            agenda: BTreeSet::new(),
            home_events: Vec::new(),
            arps: Vec::new(),
            from_mobiles: 0,
            recorded: Vec::new(),
            posted: Vec::new(),
            advertisements_pass: true,
            is_home_cut_off: false,
            setup,
        };
        for number in 0..network.setup.mobiles {
            network.add_mobile(number);
        }
        for cell in 1..=network.setup.cells {
            network.start_foreign(cell);
        }
        network.drain(Node::Home);
        network
    }

    fn add_mobile(&mut self, number: usize) {
        let config = MobileNodeConfig {
            home_address: home_address(number),
            home_agent: HOME_AGENT,
            home: association(number),
            foreign: None,
            detection: self.setup.detection,
            lifetime: Lifetime(self.setup.lifetime),
            reverse_tunnel: self.setup.reverse_tunnel,
            simultaneous_bindings: false,
            udp_tunnel: true,
            clock: NtpClock::new(Instant::ZERO, NTP),
            seed: self.setup.seed + number as u64,
        };
        self.mobiles.push(Mobile {
            node: MobileNode::new(self.now, config.clone()),
            config,
            cells: BTreeSet::new(),
            own: None,
            probes: 0,
            events: Vec::new(),
        });
        self.drain(Node::Mobile(number));
    }

    pub fn with_mobile(mut self, change: impl Fn(&mut MobileNodeConfig)) -> Self {
        for mobile in &mut self.mobiles {
            change(&mut mobile.config);
            mobile.node = MobileNode::new(self.now, mobile.config.clone());
        }
        self
    }

    pub fn with_home(mut self, change: impl Fn(&mut HomeAgentConfig)) -> Self {
        change(&mut self.home_config);
        self.home = HomeAgent::new(self.now, self.home_config.clone());
        self.drain(Node::Home);
        self
    }

    pub fn foreign_config(&self, cell: usize) -> ForeignAgentConfig {
        ForeignAgentConfig {
            care_of_address: foreign_address(cell),
            link: LinkId(0),
            advertising: Advertising {
                address: foreign_address(cell),
                prefix_length: Some(24),
                ..Advertising::default()
            },
            longest_lifetime: Lifetime(1_800),
            demands_registration: false,
            reverse_tunnels: ReverseTunnels::Offered,
            mobiles: BTreeMap::new(),
            home_agents: BTreeMap::new(),
            request_timeout: Duration::from_secs(7),
            limits: ForeignLimits {
                visitors: 20_000,
                pending: 20_000,
                ..ForeignLimits::default()
            },
            seed: self.setup.seed * 100 + cell as u64 + self.now.as_nanos(),
        }
    }

    /// Starts a foreign agent, or starts it anew.
    pub fn start_foreign(&mut self, cell: usize) {
        let config = self.foreign_config(cell);
        self.foreign[cell] = Some(ForeignAgent::new(self.now, config));
        self.drain(Node::Foreign(cell));
    }

    pub fn kill_foreign(&mut self, cell: usize) {
        self.foreign[cell] = None;
        self.drain(Node::Foreign(cell));
    }

    pub fn restart_home(&mut self) {
        let mut config = self.home_config.clone();
        config.seed += self.now.as_nanos();
        self.home = HomeAgent::new(self.now, config);
        self.drain(Node::Home);
    }

    /// The mobile node starts anew: it has forgotten where it is.
    pub fn restart_mobile(&mut self, number: usize) {
        let mobile = &mut self.mobiles[number];
        mobile.node = MobileNode::new(self.now, mobile.config.clone());
        self.drain(Node::Mobile(number));
    }

    pub fn foreign(&self, cell: usize) -> &ForeignAgent {
        self.foreign[cell].as_ref().expect("it runs")
    }

    /// The mobile node is in these cells from now on.
    pub fn place(&mut self, mobile: usize, cells: &[usize]) {
        let before = core::mem::take(&mut self.mobiles[mobile].cells);
        let after: BTreeSet<_> = cells.iter().copied().collect();
        self.mobiles[mobile].cells.clone_from(&after);
        for gone in before.difference(&after) {
            let node = &mut self.mobiles[mobile].node;
            node.handle_link(self.now, LinkId(*gone as u32), false);
        }
        for new in after.difference(&before) {
            let node = &mut self.mobiles[mobile].node;
            node.handle_link(self.now, LinkId(*new as u32), true);
        }
        self.drain(Node::Mobile(mobile));
    }

    /// The mobile node has an address of its own, perhaps behind a translator.
    pub fn co_locate(&mut self, mobile: usize, own: Option<(Ipv4Addr, bool)>) {
        self.mobiles[mobile].own = own;
        let at = own.map(|(address, _)| CoLocation {
            address,
            link: LinkId(50),
        });
        let node = &mut self.mobiles[mobile].node;
        node.handle_care_of_address(self.now, at);
        self.drain(Node::Mobile(mobile));
    }

    /// The mobile node ends.
    pub fn deregister(&mut self, mobile: usize) {
        self.mobiles[mobile].node.deregister(self.now);
        self.drain(Node::Mobile(mobile));
    }

    /// Lets `time` pass.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        for steps in 0_u64.. {
            assert!(steps < 50_000_000, "never at rest in {time:?}");
            let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
            let due = self.agenda.first().map(|(at, _)| *at);
            let Some(at) = arrival
                .into_iter()
                .chain(due)
                .min()
                .filter(|at| *at <= until)
            else {
                break;
            };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let (_, (to, arrival, packet)) = self.on_the_way.pop_first().expect("there is one");
                self.arrive(to, arrival, packet);
            } else if let Some((_, node)) = self.agenda.first().copied() {
                self.wake(node);
            }
        }
        self.now = until;
    }

    fn wake(&mut self, node: Node) {
        let now = self.now;
        match node {
            Node::Home => self.home.handle_timeout(now),
            Node::Foreign(cell) => {
                if let Some(agent) = &mut self.foreign[cell] {
                    agent.handle_timeout(now);
                }
            }
            Node::Mobile(number) => self.mobiles[number].node.handle_timeout(now),
        }
        self.drain(node);
    }

    fn arrive(&mut self, to: Node, arrival: Arrival, packet: Packet) {
        let now = self.now;
        match to {
            Node::Home if self.is_home_cut_off => {}
            Node::Home => {
                if arrival.link != LinkId(0) {
                    self.recorded.push(packet.clone());
                }
                let destination = packet.header().ip.destination;
                if self.home.handle_packet(now, arrival, packet.clone()) == Verdict::Pass {
                    self.deliver_at_home(destination, packet);
                }
            }
            Node::Foreign(cell) => {
                if let Some(agent) = &mut self.foreign[cell]
                    && agent.handle_packet(now, arrival, packet.clone()) == Verdict::Pass
                    && arrival.link == LinkId(0)
                {
                    self.route(packet);
                }
            }
            Node::Mobile(number) => self.arrive_at_mobile(number, arrival, packet),
        }
        self.drain(to);
    }

    fn arrive_at_mobile(&mut self, number: usize, arrival: Arrival, packet: Packet) {
        let mobile = &mut self.mobiles[number];
        let is_there = match mobile.own {
            Some(_) if arrival.link == LinkId(50) => true,
            _ => mobile.cells.contains(&(arrival.link.0 as usize)),
        };
        if is_there && mobile.node.handle_packet(self.now, arrival, &packet) == Verdict::Pass {
            mobile.take(&packet);
        }
    }

    fn deliver_at_home(&mut self, destination: IpAddr, packet: Packet) {
        let of = (0..self.mobiles.len()).find(|n| IpAddr::V4(home_address(*n)) == destination);
        match of {
            Some(number) => self.post_to_mobile(number, HOME, packet),
            None => self.route(packet),
        }
    }

    /// Gives to the machine's driver what it asks for.
    fn drain(&mut self, node: Node) {
        loop {
            let transmit = match node {
                Node::Home => self.home.poll_transmit(),
                Node::Foreign(cell) => self.foreign[cell]
                    .as_mut()
                    .and_then(ForeignAgent::poll_transmit),
                Node::Mobile(number) => self.mobiles[number].node.poll_transmit(),
            };
            match transmit {
                None => break,
                Some(Transmit::Arp(arp)) => self.arps.push((self.now, node, arp)),
                Some(Transmit::Packet { packet, via }) => self.send(node, packet, via),
            }
        }
        let due = match node {
            Node::Home => self.home.poll_timeout().map(|(at, _)| at),
            Node::Foreign(cell) => {
                let agent = self.foreign[cell].as_mut();
                agent.and_then(|agent| {
                    while agent.poll_event().is_some() {}
                    agent.poll_timeout().map(|(at, _)| at)
                })
            }
            Node::Mobile(number) => {
                let mobile = &mut self.mobiles[number];
                while let Some(event) = mobile.node.poll_event() {
                    mobile.events.push((self.now, event));
                }
                mobile.node.poll_timeout().map(|(at, _)| at)
            }
        };
        while let Some(event) = self.home.poll_event() {
            self.home_events.push((self.now, event));
        }
        if let Some(old) = self.dues.remove(&node) {
            self.agenda.remove(&(old, node));
        }
        if let Some(at) = due {
            self.dues.insert(node, at);
            self.agenda.insert((at, node));
        }
    }

    fn send(&mut self, from: Node, packet: Packet, via: Via) {
        match (from, via) {
            (_, Via::Route) => match from {
                Node::Mobile(number) => self.send_from_mobile(number, packet),
                _ => self.route(packet),
            },
            (Node::Mobile(number), Via::Local) => self.mobiles[number].take(&packet),
            (_, Via::Local) => {}
            (Node::Mobile(number), Via::Link(link) | Via::Neighbour(link, _)) => {
                self.post_to_agent(number, link.0 as usize, packet);
            }
            (Node::Home, Via::Link(_)) => self.broadcast(HOME, &packet),
            (Node::Foreign(cell), Via::Link(_)) => self.broadcast(cell, &packet),
            (Node::Home, Via::Neighbour(link, node)) => {
                assert_eq!(link, LinkId(0));
                self.post_to_node(HOME, node, packet);
            }
            (Node::Foreign(cell), Via::Neighbour(_, node)) => self.post_to_node(cell, node, packet),
        }
    }

    fn send_from_mobile(&mut self, number: usize, mut packet: Packet) {
        if let Some((own, is_translated)) = self.mobiles[number].own {
            if is_translated && packet.header().ip.source == IpAddr::V4(own) {
                let mut edit = packet.edit();
                let port = TRANSLATED_PORT + number as u16;
                edit.set_source(TRANSLATOR.into()).expect("known");
                if edit.set_source_port(port).is_err() {
                    // A translator without ports to tell hosts by.
                    return;
                }
                packet = edit.finish();
            }
            self.route(packet);
        } else {
            let cells: Vec<_> = self.mobiles[number].cells.iter().copied().collect();
            for cell in cells {
                self.post_to_agent(number, cell, packet.clone());
            }
        }
    }

    fn post_to_agent(&mut self, number: usize, cell: usize, packet: Packet) {
        if !self.mobiles[number].cells.contains(&cell) {
            return;
        }
        let arrival = Arrival {
            link: LinkId(0),
            from: node_of(number),
        };
        let to = if cell == HOME {
            Node::Home
        } else {
            Node::Foreign(cell)
        };
        self.post(to, arrival, packet, AIR);
    }

    fn post_to_node(&mut self, cell: usize, node: LinkAddress, packet: Packet) {
        let [_, _, _, a, b, c] = node.0;
        let number = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
        self.post_to_mobile(number, cell, packet);
    }

    fn post_to_mobile(&mut self, number: usize, cell: usize, packet: Packet) {
        let arrival = Arrival {
            link: LinkId(cell as u32),
            from: agent_node(cell),
        };
        self.post(Node::Mobile(number), arrival, packet, AIR);
    }

    fn broadcast(&mut self, cell: usize, packet: &Packet) {
        if !self.advertisements_pass {
            return;
        }
        let there = (0..self.mobiles.len()).filter(|n| self.mobiles[*n].cells.contains(&cell));
        for number in there.collect::<Vec<_>>() {
            self.post_to_mobile(number, cell, packet.clone());
        }
    }

    /// A packet crosses the backbone.
    fn route(&mut self, packet: Packet) {
        let IpAddr::V4(to) = packet.header().ip.destination else {
            return;
        };
        let arrival = Arrival {
            link: TO_AGENTS,
            from: agent_node(0),
        };
        let delay = self.setup.backbone;
        if let Some(cell) = (1..=self.setup.cells).find(|cell| foreign_address(*cell) == to) {
            return self.post(Node::Foreign(cell), arrival, packet, delay);
        }
        if to == CORRESPONDENT {
            self.from_mobiles += 1;
            return;
        }
        if to == TRANSLATOR {
            return self.translate_back(packet);
        }
        let is_own = |mobile: &Mobile| mobile.own.is_some_and(|(own, _)| own == to);
        match self.mobiles.iter().position(is_own) {
            Some(number) => self.post_to_own(number, packet),
            None => self.post(Node::Home, arrival, packet, delay),
        }
    }

    fn post_to_own(&mut self, number: usize, packet: Packet) {
        let arrival = Arrival {
            link: LinkId(50),
            from: agent_node(50),
        };
        self.post(Node::Mobile(number), arrival, packet, self.setup.backbone);
    }

    fn translate_back(&mut self, packet: Packet) {
        let Transport::Udp(udp) = packet.header().transport else {
            return;
        };
        let number = usize::from(udp.destination_port - TRANSLATED_PORT);
        if let Some((own, true)) = self.mobiles[number].own {
            let mut edit = packet.edit();
            edit.set_destination(own.into()).expect("known");
            edit.set_destination_port(434).expect("known");
            self.post_to_own(number, edit.finish());
        }
    }

    fn post(&mut self, to: Node, arrival: Arrival, packet: Packet, delay: Duration) {
        if self.setup.mobiles == 1 {
            self.posted.push((self.now, packet.clone()));
        }
        let copies = 1 + u32::from(self.stream.chance(self.faults.repetition));
        for _ in 0..copies {
            if self.stream.chance(self.faults.loss) {
                continue;
            }
            let jitter = self.faults.jitter.mul_f64(self.stream.unit());
            self.sent += 1;
            let at = (self.now + delay + jitter, self.sent);
            self.on_the_way.insert(at, (to, arrival, packet.clone()));
        }
    }

    /// A packet of the mobile node's own goes to the correspondent.
    pub fn send_outgoing(&mut self, mobile: usize) {
        let packet = probe(home_address(mobile), CORRESPONDENT);
        let node = &mut self.mobiles[mobile].node;
        if node.handle_outgoing(self.now, packet.clone()) == Verdict::Pass {
            self.send_from_mobile(mobile, packet);
        }
        self.drain(Node::Mobile(mobile));
    }

    /// Whether a packet from a correspondent reaches the mobile node now.
    pub fn reaches(&mut self, mobile: usize) -> bool {
        let before = self.mobiles[mobile].probes;
        self.route(probe(CORRESPONDENT, home_address(mobile)));
        self.run(self.setup.backbone * 2 + AIR * 4 + self.faults.jitter * 3);
        self.mobiles[mobile].probes > before
    }

    /// Gives a packet to the home agent, as if it came from the backbone.
    pub fn replay(&mut self, packet: Packet) {
        let arrival = Arrival {
            link: TO_AGENTS,
            from: agent_node(0),
        };
        let _ = self.home.handle_packet(self.now, arrival, packet);
        self.drain(Node::Home);
    }

    /// How long from `since` until the home agent first sent a reply that binds.
    pub fn bound_after(&self, since: Instant) -> Option<Duration> {
        let bound = self.home_events.iter().find(|(at, event)| {
            *at >= since
                && matches!(
                    event,
                    HomeEvent::Bound {
                        has_moved: true,
                        ..
                    } | HomeEvent::Home { .. }
                )
        });
        bound.map(|(at, _)| at.since(since))
    }
}

impl Mobile {
    fn take(&mut self, packet: &Packet) {
        let is_own = packet.header().ip.destination == IpAddr::V4(self.config.home_address);
        let is_probe =
            matches!(packet.header().transport, Transport::Udp(udp) if udp.destination_port == 9);
        self.probes += u64::from(is_own && is_probe);
    }
}

fn probe(source: Ipv4Addr, destination: Ipv4Addr) -> Packet {
    let udp = UdpHeader {
        source_port: 9,
        destination_port: 9,
    };
    Packet::udp_datagram(
        IpHeader::new(source.into(), destination.into()),
        udp,
        b"probe",
    )
}
