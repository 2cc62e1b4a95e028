//! A home agent, mobile nodes and correspondents of Mobile IPv6, and the network between them, in virtual
//! time.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test file uses another part"
)]

use core::net::{IpAddr, Ipv6Addr};
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant};
use outlast_mobility::v6::{
    Attachment, Correspondent, CorrespondentConfig, CorrespondentLimits, HomeAgent,
    HomeAgentConfig, HomeEvent, HomeLimits, MobileNode, MobileNodeConfig, NodeEvent,
};
use outlast_mobility::{Algorithm, NtpClock, SecurityAssociation, Transmit, Verdict, Via};
use outlast_wire::mobile_ipv6::UpdateLifetime;
use outlast_wire::{IcmpNotice, IpHeader, Packet, Transport, UdpHeader};
use std::collections::{BTreeMap, BTreeSet};

pub const HOME_AGENT: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, 1);
/// The wall clock at the beginning.
pub const CLOCK: u64 = 0xe800_0000_0000_0000;

pub fn home_address(mobile: usize) -> Ipv6Addr {
    Ipv6Addr::new(
        0x2001,
        0xdb8,
        1,
        0,
        1,
        0,
        (mobile >> 16) as u16,
        mobile as u16,
    )
}

pub fn care_of_address(mobile: usize, cell: u16) -> Ipv6Addr {
    let [high, low] = [(mobile >> 16) as u16, mobile as u16];
    Ipv6Addr::new(0x2001, 0xdb8, 2, cell, 0, 0, high, low)
}

pub fn correspondent_address(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 3, 0, 0, 0, 0, number as u16 + 1)
}

pub fn association(key: u128) -> SecurityAssociation {
    let key = key.to_be_bytes();
    SecurityAssociation::new(256, Algorithm::HmacSha1, &key).expect("256 is allowed")
}

pub const fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Node {
    Home,
    Mobile(usize),
    Correspondent(usize),
}

/// What happens to packets.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub loss: f64,
    pub repetition: f64,
    pub jitter: Duration,
}

#[derive(Clone, Copy, Debug)]
pub struct Setup {
    pub mobiles: usize,
    pub correspondents: usize,
    /// The last correspondent knows nothing of Mobile IPv6.
    pub is_last_plain: bool,
    pub lifetime: UpdateLifetime,
    pub route_optimization: bool,
    /// One way between any two hosts.
    pub delay: Duration,
    pub seed: u64,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            mobiles: 1,
            correspondents: 1,
            is_last_plain: false,
            lifetime: UpdateLifetime(75),
            route_optimization: false,
            delay: ms(20),
            seed: 1,
        }
    }
}

pub struct Mobile {
    pub node: MobileNode,
    pub config: MobileNodeConfig,
    pub at: Attachment,
    pub events: Vec<(Instant, NodeEvent)>,
    /// Probes from correspondents that came to applications.
    pub probes: u64,
}

pub struct Far {
    /// `None` if it knows nothing of Mobile IPv6.
    pub machine: Option<Correspondent>,
    /// Probes from mobile nodes' home addresses.
    pub probes: u64,
}

pub struct Network {
    pub now: Instant,
    pub faults: Faults,
    pub is_home_cut_off: bool,
    pub home: HomeAgent,
    pub home_config: HomeAgentConfig,
    pub home_events: Vec<(Instant, HomeEvent)>,
    pub mobiles: Vec<Mobile>,
    pub far: Vec<Far>,
    /// All packets that were sent, if there are few nodes.
    pub posted: Vec<(Instant, Packet)>,
    setup: Setup,
    stream: Stream,
    sent: u64,
    on_the_way: BTreeMap<(Instant, u64), (Node, Packet)>,
    agenda: BTreeSet<(Instant, Node)>,
    dues: BTreeMap<Node, Instant>,
}

impl Network {
    pub fn new(setup: Setup) -> Self {
        let now = Instant::ZERO;
        let clock = NtpClock::new(now, CLOCK);
        let mobiles: Vec<Mobile> = (0..setup.mobiles)
            .map(|n| mobile(n, &setup, clock))
            .collect();
        let home_config = HomeAgentConfig {
            address: HOME_AGENT,
            mobiles: (0..setup.mobiles)
                .map(|n| (home_address(n), vec![association(n as u128)]))
                .collect(),
            longest_lifetime: UpdateLifetime(450),
            replay_tolerance: Duration::from_secs(7),
            limits: HomeLimits::default(),
            clock,
            seed: 1,
        };
        let mut network = Self {
            now,
            faults: Faults::default(),
            is_home_cut_off: false,
            home: HomeAgent::new(now, home_config.clone()),
            home_config,
            home_events: Vec::new(),
            mobiles,
            far: Vec::new(),
            posted: Vec::new(),
            stream: Stream::new(setup.seed, "network"),
            sent: 0,
            on_the_way: BTreeMap::new(),
            agenda: BTreeSet::new(),
            dues: BTreeMap::new(),
            setup,
        };
        for number in 0..setup.correspondents {
            let is_plain = setup.is_last_plain && number + 1 == setup.correspondents;
            network.far.push(Far {
                machine: None,
                probes: 0,
            });
            if !is_plain {
                network.start_correspondent(number);
            }
        }
        network
    }

    /// Changes the mobile nodes' configuration before they begin.
    #[must_use]
    pub fn with_mobiles(mut self, change: impl Fn(&mut MobileNodeConfig)) -> Self {
        for mobile in &mut self.mobiles {
            change(&mut mobile.config);
            mobile.node = MobileNode::new(self.now, mobile.config.clone());
        }
        self
    }

    pub fn start_correspondent(&mut self, number: usize) {
        let config = CorrespondentConfig {
            secret: [self.stream.next_u64() as u8; 20],
            limits: CorrespondentLimits::default(),
        };
        self.far[number].machine = Some(Correspondent::new(self.now, config));
        self.drain(Node::Correspondent(number));
    }

    pub fn restart_home(&mut self) {
        let mut config = self.home_config.clone();
        config.clock = NtpClock::new(Instant::ZERO, CLOCK);
        self.home = HomeAgent::new(self.now, config);
        self.drain(Node::Home);
    }

    /// The mobile node starts anew where it is: it has forgotten all.
    pub fn restart_mobile(&mut self, number: usize) {
        let mobile = &mut self.mobiles[number];
        mobile.node = MobileNode::new(self.now, mobile.config.clone());
        mobile.node.handle_attachment(self.now, mobile.at);
        self.drain(Node::Mobile(number));
    }

    /// The mobile node is in this cell from now on, at home in cell 0.
    pub fn place(&mut self, number: usize, cell: Option<u16>) {
        let at = match cell {
            None => Attachment::Nowhere,
            Some(0) => Attachment::Home,
            Some(cell) => Attachment::Foreign(care_of_address(number, cell)),
        };
        let mobile = &mut self.mobiles[number];
        mobile.at = at;
        mobile.node.handle_attachment(self.now, at);
        self.drain(Node::Mobile(number));
    }

    pub fn deregister(&mut self, number: usize) {
        self.mobiles[number].node.deregister(self.now);
        self.drain(Node::Mobile(number));
    }

    /// Lets `time` pass.
    pub fn run(&mut self, time: Duration) {
        let until = self.now + time;
        for steps in 0_u64.. {
            assert!(steps < 50_000_000, "never at rest in {time:?}");
            let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
            let due = self.agenda.first().map(|(at, _)| *at);
            let next = arrival.into_iter().chain(due).min();
            let Some(at) = next.filter(|at| *at <= until) else {
                break;
            };
            self.now = self.now.max(at);
            if arrival == Some(at) {
                let (_, (to, packet)) = self.on_the_way.pop_first().expect("there is one");
                self.arrive(to, packet);
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
            Node::Mobile(number) => self.mobiles[number].node.handle_timeout(now),
            Node::Correspondent(number) => {
                if let Some(machine) = &mut self.far[number].machine {
                    machine.handle_timeout(now);
                }
            }
        }
        self.drain(node);
    }

    fn arrive(&mut self, to: Node, packet: Packet) {
        let now = self.now;
        match to {
            Node::Home if self.is_home_cut_off => {}
            Node::Home => {
                let destination = packet.header().ip.destination;
                if self.home.handle_packet(now, packet.clone()) == Verdict::Pass {
                    self.deliver_at_home(destination, packet);
                }
            }
            Node::Mobile(number) => {
                let mobile = &mut self.mobiles[number];
                if mobile.node.handle_packet(now, &packet) == Verdict::Pass {
                    mobile.take(&packet);
                }
            }
            Node::Correspondent(number) => self.arrive_far(number, &packet),
        }
        self.drain(to);
    }

    fn arrive_far(&mut self, number: usize, packet: &Packet) {
        let now = self.now;
        match &mut self.far[number].machine {
            Some(machine) => {
                if machine.handle_packet(now, packet) == Verdict::Pass {
                    self.far[number].take(packet);
                }
            }
            None if matches!(
                packet.header().transport,
                Transport::Other { protocol: 135, .. }
            ) =>
            {
                // As a kernel does: no such protocol (RFC 4443, section 3.4).
                let error = parameter_problem(correspondent_address(number), packet);
                self.route(error);
            }
            None => self.far[number].take(packet),
        }
    }

    fn deliver_at_home(&mut self, destination: IpAddr, packet: Packet) {
        let at_home = (0..self.mobiles.len()).find(|n| {
            IpAddr::V6(home_address(*n)) == destination && self.mobiles[*n].at == Attachment::Home
        });
        match at_home {
            Some(number) => self.post(Node::Mobile(number), packet, ms(1)),
            None if self.owner(destination) != Some(Node::Home) => self.route(packet),
            None => {}
        }
    }

    /// Gives to the machine's driver what it asks for.
    fn drain(&mut self, node: Node) {
        let now = self.now;
        loop {
            let transmit = match node {
                Node::Home => self.home.poll_transmit(),
                Node::Mobile(number) => self.mobiles[number].node.poll_transmit(),
                Node::Correspondent(number) => self.far[number]
                    .machine
                    .as_mut()
                    .and_then(Correspondent::poll_transmit),
            };
            match transmit {
                None => break,
                Some(Transmit::Arp(arp)) => panic!("{arp:?} in IPv6"),
                Some(Transmit::Packet { packet, via }) => self.send(node, packet, via),
            }
        }
        let due = match node {
            Node::Home => {
                while let Some(event) = self.home.poll_event() {
                    self.home_events.push((now, event));
                }
                self.home.poll_timeout().map(|(at, _)| at)
            }
            Node::Mobile(number) => {
                let mobile = &mut self.mobiles[number];
                while let Some(event) = mobile.node.poll_event() {
                    mobile.events.push((now, event));
                }
                mobile.node.poll_timeout().map(|(at, _)| at)
            }
            Node::Correspondent(number) => {
                let machine = self.far[number].machine.as_mut();
                machine.and_then(|machine| {
                    while machine.poll_event().is_some() {}
                    machine.poll_timeout().map(|(at, _)| at)
                })
            }
        };
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
            (Node::Mobile(number), Via::Local) => self.mobiles[number].take(&packet),
            (Node::Correspondent(number), Via::Local) => self.far[number].take(&packet),
            (Node::Home, Via::Local) => {}
            // A host that has no address sends nothing.
            (Node::Mobile(number), _) if self.mobiles[number].at == Attachment::Nowhere => {}
            _ => self.route(packet),
        }
    }

    fn owner(&self, destination: IpAddr) -> Option<Node> {
        let IpAddr::V6(to) = destination else {
            return None;
        };
        let [_, _, network, _, _, _, high, low] = to.segments();
        let number = usize::from(high) << 16 | usize::from(low);
        match network {
            1 => Some(Node::Home),
            2 => {
                let mobile = self.mobiles.get(number)?;
                (mobile.at == Attachment::Foreign(to)).then_some(Node::Mobile(number))
            }
            3 => (number >= 1 && number <= self.far.len()).then(|| Node::Correspondent(number - 1)),
            _ => None,
        }
    }

    /// A packet crosses the network, if its destination is there.
    pub fn route(&mut self, packet: Packet) {
        if let Some(to) = self.owner(packet.header().ip.destination) {
            self.post(to, packet, self.setup.delay);
        }
    }

    fn post(&mut self, to: Node, packet: Packet, delay: Duration) {
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
            self.on_the_way.insert(at, (to, packet.clone()));
        }
    }

    /// A packet of the mobile node's own goes to a correspondent; whether it arrives from the home
    /// address.
    pub fn is_heard(&mut self, number: usize, far: usize) -> bool {
        let before = self.far[far].probes;
        let packet = probe(home_address(number), correspondent_address(far));
        let node = &mut self.mobiles[number].node;
        if node.handle_outgoing(self.now, packet.clone()) == Verdict::Pass {
            self.route(packet);
        }
        self.drain(Node::Mobile(number));
        self.run(self.patience());
        self.far[far].probes > before
    }

    /// Whether a packet from a correspondent reaches the mobile node now.
    pub fn reaches_from(&mut self, far: usize, number: usize) -> bool {
        let before = self.mobiles[number].probes;
        let packet = probe(correspondent_address(far), home_address(number));
        let machine = self.far[far].machine.as_mut();
        let is_taken = machine.is_some_and(|one| one.handle_outgoing(&packet) == Verdict::Taken);
        match is_taken {
            true => self.drain(Node::Correspondent(far)),
            false => self.route(packet),
        }
        self.run(self.patience());
        self.mobiles[number].probes > before
    }

    pub fn reaches(&mut self, number: usize) -> bool {
        self.reaches_from(0, number)
    }

    fn patience(&self) -> Duration {
        self.setup.delay * 3 + ms(2) + self.faults.jitter * 3
    }

    /// Gives a packet to the home agent, as if it came from the network.
    pub fn replay(&mut self, packet: Packet) {
        let _ = self.home.handle_packet(self.now, packet);
        self.drain(Node::Home);
    }

    /// Gives a packet to a correspondent, as if it came from the network.
    pub fn replay_far(&mut self, far: usize, packet: &Packet) {
        self.arrive_far(far, packet);
        self.drain(Node::Correspondent(far));
    }

    pub fn correspondent(&self, far: usize) -> &Correspondent {
        self.far[far].machine.as_ref().expect("it runs")
    }
}

fn mobile(number: usize, setup: &Setup, clock: NtpClock) -> Mobile {
    let mut secret = [7; 20];
    secret[12..].copy_from_slice(&(number as u64 + setup.seed).to_be_bytes());
    let config = MobileNodeConfig {
        home_address: home_address(number),
        home_agent: HOME_AGENT,
        home: association(number as u128),
        lifetime: setup.lifetime,
        route_optimization: setup.route_optimization,
        clock,
        secret,
    };
    Mobile {
        node: MobileNode::new(Instant::ZERO, config.clone()),
        config,
        at: Attachment::Nowhere,
        events: Vec::new(),
        probes: 0,
    }
}

fn is_probe(packet: &Packet) -> bool {
    matches!(packet.header().transport, Transport::Udp(udp) if udp.destination_port == 9)
        && packet.checksums_ok()
}

impl Mobile {
    fn take(&mut self, packet: &Packet) {
        let is_own = packet.header().ip.destination == IpAddr::V6(self.config.home_address);
        self.probes += u64::from(is_own && is_probe(packet));
    }
}

impl Far {
    fn take(&mut self, packet: &Packet) {
        let IpAddr::V6(source) = packet.header().ip.source else {
            return;
        };
        let is_from_home = source.segments()[2] == 1;
        self.probes += u64::from(is_from_home && is_probe(packet));
    }
}

pub fn probe(source: Ipv6Addr, destination: Ipv6Addr) -> Packet {
    let udp = UdpHeader {
        source_port: 9,
        destination_port: 9,
    };
    let ip = IpHeader::new(source.into(), destination.into());
    Packet::udp_datagram(ip, udp, b"probe")
}

/// An error of type 4, code 1: the next header is not known.
pub fn parameter_problem(router: Ipv6Addr, about: &Packet) -> Packet {
    let error = Packet::icmp_error(router.into(), IcmpNotice::PortUnreachable, about);
    let mut bytes = error.expect("it may be sent").to_bytes().to_vec();
    bytes[40..42].copy_from_slice(&[4, 1]);
    let packet = Packet::parse(bytes.into()).expect("a packet");
    let mut edit = packet.edit();
    edit.fill_checksums();
    edit.finish()
}
