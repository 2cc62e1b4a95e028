//! Mobile IP in the near part of the route: the agents, the mobile node, and the links between them.
//!
//! The home agent stands at the router, and at each gateway what [`Place`] says. Messages are packets
//! like any other: they cross the mobile host's link and the link between home agent and gateway,
//! take their time and their share of the rate, and are lost as others are. A packet in the tunnel is as
//! much longer as its outer header; that header is counted and not written, so that gateways see the
//! inner packet, as they do behind a tunnel's end. On the mobile host's own link, which a tunnel crosses only
//! where the address is its own, the header is not counted.
//!
//! Until the first registration is complete, the first gateway serves the mobile host without one.

use super::Route;
use crate::mobile_ip::{MobileIpOutcome, MobileIpSetup};
use crate::path::{Load, Watch, tell_update};
use crate::side::Side;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use alloc::{format, vec};
use core::net::{IpAddr, Ipv4Addr};
use outlast_base::random::derived_seed;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_link::{Frame, Link, LinkConfig, PipeConfig, Way};
use outlast_mobility::{
    Advertising, Algorithm, Arrival, Attachment, CoLocation, ForeignAgent, ForeignAgentConfig,
    ForeignLimits, HomeAgent, HomeAgentConfig, HomeEvent, HomeLimits, LinkAddress, LinkId,
    MobileNode, MobileNodeConfig, NtpClock, ReverseTunnels, SecurityAssociation, Transmit, Verdict,
    Via,
};
use outlast_wire::mobile_ip::{Lifetime, PORT};
use outlast_wire::{Packet, Transport};

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 1);
/// The hosts' own addresses are the workload's; this one is for registrations alone.
const HOME_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 255, 0, 5);
const TUNNEL_OVERHEAD: u32 = 20;
/// The queue between home agent and foreign agents, in packets.
const QUEUE: usize = 1_000;
const LIFETIME: Lifetime = Lifetime(300);
/// The home network, as the home agent numbers it.
const HOME: LinkId = LinkId(0);
/// The link between a foreign agent and the home agent, as both number it.
const BACKBONE: LinkId = LinkId(1);
const VISITORS: LinkId = LinkId(0);
const MOBILE: LinkAddress = LinkAddress([4; 6]);
const AGENT: LinkAddress = LinkAddress([2; 6]);
const ICMP: u8 = 1;

/// A packet between home agent and foreign agent.
#[derive(Clone, Debug)]
struct Tunnelled<L> {
    load: L,
    overhead: u32,
}

impl<L: Load> Frame for Tunnelled<L> {
    fn wire_len(&self) -> ByteCount {
        ByteCount(u64::from(self.load.wire_len()) + u64::from(self.overhead))
    }
}

/// What Mobile IP has at a gateway.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there are at most 32 of them")]
enum Place {
    /// The home network: the home agent is heard there.
    Home,
    /// A foreign agent.
    Agent(ForeignAgent),
    /// No agent: the mobile host gets an address of its own.
    OwnAddress,
}

/// What the route has to do.
#[derive(Debug)]
pub(super) enum Action<L> {
    /// Put a message on a gateway's link, from the end at that side.
    Say(usize, Side, L),
    /// A packet of the mobile host's has come to the router.
    Up(L),
    /// A packet for the mobile host has come to a gateway.
    Down(usize, L),
    /// The home agent has registered the mobile host at a gateway.
    Bound(usize),
}

/// The agents, the mobile node and the links between them.
#[derive(Debug)]
pub(super) struct MobileIp<L> {
    home: HomeAgent,
    /// By gateway.
    places: Vec<Place>,
    backbone: Vec<Link<Tunnelled<L>>>,
    node: MobileNode,
    /// Where the mobile host is; `None` on its way.
    at: Option<usize>,
    left_at: Option<Instant>,
    address_after: Duration,
    /// When the mobile host gets an address of its own where it is.
    address_at: Option<Instant>,
    /// The gateway of the newest registration.
    bound: Option<usize>,
    /// A foreign agent has had the reply to the first registration. Until then the first gateway delivers
    /// what is in the tunnel.
    has_visited: bool,
    is_reverse: bool,
    handoffs: Vec<Duration>,
    strayed: u64,
    actions: VecDeque<Action<L>>,
}

fn care_of_address(gateway: usize) -> Ipv4Addr {
    // At most 32 gateways.
    Ipv4Addr::new(10, gateway as u8, 0, 1)
}

/// The mobile host's own address at a gateway.
fn own_address(gateway: usize) -> CoLocation {
    let [_, number, ..] = care_of_address(gateway).octets();
    CoLocation {
        address: Ipv4Addr::new(10, number, 0, 2),
        link: link_of(gateway),
    }
}

fn gateway_of(care_of_address: Ipv4Addr) -> usize {
    usize::from(care_of_address.octets()[1])
}

/// Whether a packet is one of Mobile IP's own.
fn is_message(packet: &Packet) -> bool {
    match packet.header().transport {
        Transport::Udp(udp) => udp.source_port == PORT && udp.destination_port == PORT,
        Transport::Other {
            protocol: ICMP,
            fragment: false,
        } => packet
            .payload()
            .is_some_and(|message| matches!(message.first(), Some(9 | 10))),
        _ => false,
    }
}

fn advertising(setup: &MobileIpSetup, address: Ipv4Addr) -> Advertising {
    let lifetime = setup.advertisements.as_secs_f64() * 3.0;
    Advertising {
        address,
        interval: setup.advertisements,
        // The cast saturates.
        lifetime_s: (lifetime + 0.999) as u16,
        prefix_length: Some(24),
    }
}

fn place(now: Instant, setup: &MobileIpSetup, gateway: usize, seed: u64) -> Place {
    if setup.home == Some(gateway) {
        Place::Home
    } else if setup.has_foreign_agents {
        Place::Agent(foreign_agent(now, setup, gateway, seed))
    } else {
        Place::OwnAddress
    }
}

fn foreign_agent(now: Instant, setup: &MobileIpSetup, gateway: usize, seed: u64) -> ForeignAgent {
    let address = care_of_address(gateway);
    let config = ForeignAgentConfig {
        care_of_address: address,
        link: VISITORS,
        advertising: advertising(setup, address),
        longest_lifetime: LIFETIME,
        demands_registration: false,
        reverse_tunnels: ReverseTunnels::Offered,
        mobiles: BTreeMap::new(),
        home_agents: BTreeMap::new(),
        request_timeout: Duration::from_secs(7),
        limits: ForeignLimits::default(),
        seed: derived_seed(seed, &format!("foreign agent.{gateway}")),
    };
    ForeignAgent::new(now, config)
}

/// The link between the home agent and a gateway.
fn backbone<L: Load>(setup: &MobileIpSetup, gateway: usize, seed: u64) -> Link<Tunnelled<L>> {
    // The home agent is on the home network itself.
    let (delay, loss) = match setup.home == Some(gateway) {
        true => (Duration::ZERO, 0.0),
        false => (setup.delay, setup.loss),
    };
    let pipe = PipeConfig {
        rate: Some(setup.rate),
        delay,
        queue: QUEUE,
        loss,
        ..PipeConfig::default()
    };
    Link::new(LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        seed: derived_seed(seed, &format!("backbone.{gateway}")),
        ..LinkConfig::default()
    })
}

impl<L: Load> MobileIp<L> {
    /// Agents at so many gateways; the mobile host is at the first.
    pub(super) fn new(now: Instant, setup: &MobileIpSetup, gateways: usize, seed: u64) -> Self {
        let key = derived_seed(seed, "key").to_be_bytes();
        let association = SecurityAssociation::new(256, Algorithm::HmacMd5, &key);
        let association = association.expect("256 is the first free index");
        let clock = NtpClock::new(now, 0);
        let home = HomeAgentConfig {
            address: HOME_AGENT,
            link: HOME,
            mobiles: BTreeMap::from([(HOME_ADDRESS, vec![association.clone()])]),
            foreign_agents: BTreeMap::new(),
            longest_lifetime: LIFETIME,
            replay_tolerance: Duration::from_secs(7),
            reverse_tunnels: ReverseTunnels::Offered,
            udp_tunnels: None,
            advertising: setup.home.map(|_| advertising(setup, HOME_AGENT)),
            limits: HomeLimits::default(),
            clock,
            seed,
        };
        let node = MobileNodeConfig {
            home_address: HOME_ADDRESS,
            home_agent: HOME_AGENT,
            home: association,
            foreign: None,
            detection: setup.detection,
            lifetime: LIFETIME,
            reverse_tunnel: setup.reverse_tunnel,
            simultaneous_bindings: false,
            udp_tunnel: false,
            clock,
            seed,
        };
        let places = (0..gateways).map(|gateway| place(now, setup, gateway, seed));
        let mut mobile_ip = Self {
            home: HomeAgent::new(now, home),
            places: places.collect(),
            backbone: (0..gateways)
                .map(|gateway| backbone(setup, gateway, seed))
                .collect(),
            node: MobileNode::new(now, node),
            at: None,
            left_at: None,
            address_after: setup.address_after,
            address_at: None,
            bound: None,
            has_visited: false,
            is_reverse: setup.reverse_tunnel,
            handoffs: Vec::new(),
            strayed: 0,
            actions: VecDeque::new(),
        };
        mobile_ip.arrive(now, 0);
        mobile_ip
    }

    pub(super) fn poll_timeout(&self) -> Instant {
        let foreign = self.agents().filter_map(ForeignAgent::poll_timeout);
        let foreign = foreign.map(|(at, _)| at).chain(self.address_at);
        let home = self.home.poll_timeout().map(|(at, _)| at);
        let node = self.node.poll_timeout().map(|(at, _)| at);
        let links = self.backbone.iter().filter_map(Link::poll_timeout);
        let links = links.map(|(at, _)| at);
        let all = foreign.chain(home).chain(node).chain(links);
        all.fold(Instant::FAR_FUTURE, Instant::min)
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        for link in &mut self.backbone {
            if link.poll_timeout().is_some_and(|(at, _)| at <= now) {
                link.handle_timeout(now);
            }
        }
        if self.home.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.home.handle_timeout(now);
        }
        for place in &mut self.places {
            if let Place::Agent(agent) = place
                && agent.poll_timeout().is_some_and(|(at, _)| at <= now)
            {
                agent.handle_timeout(now);
            }
        }
        if self.address_at.is_some_and(|at| at <= now) {
            self.address_at = None;
            let address = self.at.map(own_address);
            self.node.handle_care_of_address(now, address);
        }
        if self.node.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.node.handle_timeout(now);
        }
        self.drain(now);
    }

    pub(super) fn poll_action(&mut self) -> Option<Action<L>> {
        self.actions.pop_front()
    }

    /// The mobile host leaves where it is.
    pub(super) fn leave(&mut self, now: Instant) {
        self.left_at = Some(now);
        if let Some(gateway) = self.at.take() {
            self.node.handle_link(now, link_of(gateway), false);
        }
        // The address goes with the link.
        self.address_at = None;
        self.node.handle_care_of_address(now, None);
        self.drain(now);
    }

    /// The mobile host has come to a gateway.
    pub(super) fn arrive(&mut self, now: Instant, gateway: usize) {
        self.at = Some(gateway);
        self.node.handle_link(now, link_of(gateway), true);
        if let Some(Place::OwnAddress) = self.places.get(gateway) {
            self.address_at = Some(now + self.address_after);
        }
        self.drain(now);
    }

    /// A packet for the mobile host goes from the router to a gateway.
    pub(super) fn send_down(&mut self, now: Instant, gateway: usize, load: L) {
        let is_home = matches!(self.places.get(gateway), Some(Place::Home));
        let overhead = if is_home { 0 } else { TUNNEL_OVERHEAD };
        self.cross(now, gateway, Way::ToMobile, load, overhead);
        self.drain(now);
    }

    /// A packet of the mobile host's has come to a gateway.
    pub(super) fn send_up(&mut self, now: Instant, gateway: usize, load: L) {
        let is_away = match self.places.get(gateway) {
            Some(Place::Agent(_)) => self.is_visitor(gateway),
            Some(Place::OwnAddress) => true,
            Some(Place::Home) | None => false,
        };
        let is_tunnelled = self.is_reverse && is_away;
        let overhead = if is_tunnelled { TUNNEL_OVERHEAD } else { 0 };
        self.cross(now, gateway, Way::ToFixed, load, overhead);
        self.drain(now);
    }

    /// Whether a packet of the mobile host's is heard at a gateway: it is sent to whom the mobile node
    /// believes to be there.
    pub(super) fn hears(&mut self, gateway: usize) -> bool {
        let is_heard = match self.node.attachment() {
            Attachment::Foreign {
                care_of_address, ..
            } => gateway_of(care_of_address) == gateway,
            Attachment::Home { link } => link == link_of(gateway),
            // There is no tunnel before the registration; before the first one nobody asks for it.
            Attachment::CoLocated(at) => {
                let has_way = self.node.is_registered() || !self.is_reverse;
                at.link == link_of(gateway) && (has_way || self.bound.is_none())
            }
            Attachment::Nowhere => self.bound.is_none(),
        };
        self.strayed += u64::from(!is_heard);
        is_heard
    }

    /// A message has crossed a gateway's link, and comes out at `side`. Returns false if the packet is
    /// no message.
    pub(super) fn take(&mut self, now: Instant, gateway: usize, side: Side, load: &L) -> bool {
        let Some(packet) = load.packet().filter(|packet| is_message(packet)) else {
            return false;
        };
        match side {
            Side::Mobile if self.at == Some(gateway) => {
                let arrival = Arrival {
                    link: link_of(gateway),
                    from: AGENT,
                };
                // What it makes nothing of is nobody's.
                let (Verdict::Taken | Verdict::Pass) =
                    self.node.handle_packet(now, arrival, packet);
            }
            Side::Mobile => {}
            Side::Fixed => match self.places.get(gateway) {
                Some(Place::Agent(_)) => {
                    let arrival = Arrival {
                        link: VISITORS,
                        from: MOBILE,
                    };
                    self.give_foreign(now, gateway, arrival, packet.clone());
                }
                _ => self.cross(now, gateway, Way::ToFixed, packet.clone().into(), 0),
            },
        }
        self.drain(now);
        true
    }

    pub(super) fn finish(self) -> MobileIpOutcome {
        MobileIpOutcome {
            handoffs: self.handoffs,
            home_agent: *self.home.counters(),
            mobile_node: *self.node.counters(),
            strayed: self.strayed,
        }
    }

    fn agents(&self) -> impl Iterator<Item = &ForeignAgent> {
        self.places.iter().filter_map(|place| match place {
            Place::Agent(agent) => Some(agent),
            Place::Home | Place::OwnAddress => None,
        })
    }

    fn is_visitor(&self, gateway: usize) -> bool {
        matches!(self.places.get(gateway), Some(Place::Agent(agent)) if agent.visitor(HOME_ADDRESS).is_some())
    }

    fn home_gateway(&self) -> Option<usize> {
        let is_home = |place: &Place| matches!(place, Place::Home);
        self.places.iter().position(is_home)
    }

    fn give_foreign(&mut self, now: Instant, gateway: usize, arrival: Arrival, packet: Packet) {
        if let Some(Place::Agent(agent)) = self.places.get_mut(gateway) {
            let (Verdict::Taken | Verdict::Pass) = agent.handle_packet(now, arrival, packet);
            self.has_visited |= agent.visitor(HOME_ADDRESS).is_some();
        }
    }

    fn cross(&mut self, now: Instant, gateway: usize, way: Way, load: L, overhead: u32) {
        if let Some(link) = self.backbone.get_mut(gateway) {
            link.handle_packet(now, way, Tunnelled { load, overhead });
        }
    }

    /// Lets everything happen that takes no time.
    fn drain(&mut self, now: Instant) {
        loop {
            let mut is_quiet = true;
            for gateway in 0..self.backbone.len() {
                while let Some((way, frame)) = self.backbone[gateway].poll_transmit() {
                    is_quiet = false;
                    self.leave_backbone(now, gateway, way, frame.load);
                }
                // What the link drops is lost, and nobody hears of it.
                while self.backbone[gateway].poll_event().is_some() {}
            }
            while let Some(transmit) = self.home.poll_transmit() {
                is_quiet = false;
                self.send_of_home(now, transmit);
            }
            for gateway in 0..self.places.len() {
                while let Some(transmit) = self.poll_foreign(gateway) {
                    is_quiet = false;
                    self.send_of_foreign(now, gateway, transmit);
                }
            }
            while let Some(transmit) = self.node.poll_transmit() {
                is_quiet = false;
                self.send_of_node(transmit);
            }
            while self.node.poll_event().is_some() {}
            while let Some(event) = self.home.poll_event() {
                self.note(now, event);
            }
            if is_quiet {
                return;
            }
        }
    }

    /// What a foreign agent wants to send; what happens there is nobody's concern.
    fn poll_foreign(&mut self, gateway: usize) -> Option<Transmit> {
        let Some(Place::Agent(agent)) = self.places.get_mut(gateway) else {
            return None;
        };
        while agent.poll_event().is_some() {}
        agent.poll_transmit()
    }

    fn leave_backbone(&mut self, now: Instant, gateway: usize, way: Way, load: L) {
        let message = load.packet().filter(|packet| is_message(packet)).cloned();
        match (way, message) {
            (Way::ToFixed, Some(packet)) => {
                let arrival = match self.places.get(gateway) {
                    Some(Place::Home) => Arrival {
                        link: HOME,
                        from: MOBILE,
                    },
                    _ => Arrival {
                        link: BACKBONE,
                        from: AGENT,
                    },
                };
                let (Verdict::Taken | Verdict::Pass) =
                    self.home.handle_packet(now, arrival, packet);
            }
            (Way::ToMobile, Some(packet)) => self.deliver_message(now, gateway, packet),
            (Way::ToFixed, None) => self.actions.push_back(Action::Up(load)),
            (Way::ToMobile, None) if self.delivers(gateway) => {
                self.actions.push_back(Action::Down(gateway, load));
            }
            (Way::ToMobile, None) => self.strayed += 1,
        }
    }

    /// A message of the home agent's has come to a gateway.
    fn deliver_message(&mut self, now: Instant, gateway: usize, packet: Packet) {
        match self.places.get(gateway) {
            Some(Place::Agent(_)) => {
                let arrival = Arrival {
                    link: BACKBONE,
                    from: AGENT,
                };
                self.give_foreign(now, gateway, arrival, packet);
            }
            _ => self.say(gateway, packet),
        }
    }

    /// Whether a gateway puts a packet for the mobile host on its link.
    fn delivers(&self, gateway: usize) -> bool {
        match self.places.get(gateway) {
            Some(Place::Agent(_)) => self.is_visitor(gateway) || !self.has_visited,
            Some(Place::Home | Place::OwnAddress) => true,
            None => false,
        }
    }

    /// Puts a message on a gateway's link, towards the mobile host.
    fn say(&mut self, gateway: usize, packet: Packet) {
        let say = Action::Say(gateway, Side::Fixed, packet.into());
        self.actions.push_back(say);
    }

    fn send_of_home(&mut self, now: Instant, transmit: Transmit) {
        // The home network's ends have no ARP.
        let Transmit::Packet { packet, via } = transmit else {
            return;
        };
        let gateway = match (via, packet.header().ip.destination) {
            (Via::Link(_) | Via::Neighbour(HOME, _), _) => self.home_gateway(),
            (_, IpAddr::V4(to)) => Some(gateway_of(to)),
            (_, IpAddr::V6(_)) => None,
        };
        if let Some(gateway) = gateway {
            self.cross(now, gateway, Way::ToMobile, packet.into(), 0);
        }
    }

    fn send_of_foreign(&mut self, now: Instant, gateway: usize, transmit: Transmit) {
        match transmit {
            Transmit::Packet {
                packet,
                via: Via::Route,
            } => self.cross(now, gateway, Way::ToFixed, packet.into(), 0),
            Transmit::Packet { packet, .. } => self.say(gateway, packet),
            // Links between two ends have no ARP.
            Transmit::Arp(_) => {}
        }
    }

    fn send_of_node(&mut self, transmit: Transmit) {
        if let Transmit::Packet { packet, .. } = transmit
            && let Some(gateway) = self.at
        {
            let say = Action::Say(gateway, Side::Mobile, packet.into());
            self.actions.push_back(say);
        }
    }

    fn note(&mut self, now: Instant, event: HomeEvent) {
        let (gateway, has_moved) = match event {
            HomeEvent::Bound {
                care_of_address,
                has_moved,
                ..
            } => (Some(gateway_of(care_of_address)), has_moved),
            HomeEvent::Home { .. } => (self.home_gateway(), false),
            _ => return,
        };
        // Whoever was on the way and is back where it was registered can be reached again, too. A renewal says nothing new.
        let is_back = self.left_at.is_some() && self.at == gateway;
        let Some(gateway) = gateway.filter(|_| has_moved || is_back || self.bound != gateway)
        else {
            return;
        };
        self.bound = Some(gateway);
        let left_at = self.left_at.take();
        self.handoffs
            .extend(left_at.map(|left_at| now.since(left_at)));
        self.actions.push_back(Action::Bound(gateway));
    }
}

/// The link of a gateway, as the mobile node numbers it. At most 32 gateways.
const fn link_of(gateway: usize) -> LinkId {
    LinkId(gateway as u32)
}

impl<W: Watch> Route<W> {
    pub(super) fn mobile_ip(&mut self) -> Option<&mut MobileIp<W::Load>> {
        self.roaming.as_mut()?.mobile_ip.as_deref_mut()
    }

    /// Does what the agents and the mobile node ask for.
    pub(super) fn act_for_mobile_ip(&mut self, now: Instant) {
        while let Some(action) = self.mobile_ip().and_then(MobileIp::poll_action) {
            match action {
                Action::Say(gateway, side, message) => {
                    if let Some(cell) = self.cell_mut(gateway) {
                        cell.send_past_gateway(now, side, message);
                    }
                }
                Action::Up(load) => self.send_on(now, 0, Side::Fixed, load),
                Action::Down(gateway, load) => {
                    if let Some(cell) = self.cell_mut(gateway) {
                        cell.handle_packet(now, Side::Fixed, load);
                    }
                }
                Action::Bound(gateway) => self.bind(now, gateway),
            }
        }
    }

    /// A packet comes out of a gateway's link. Returns it if it goes on by itself.
    pub(super) fn leave_cell(
        &mut self,
        now: Instant,
        gateway: usize,
        side: Side,
        load: W::Load,
    ) -> Option<W::Load> {
        let Some(mobile_ip) = self.mobile_ip() else {
            return Some(load);
        };
        let is_taken = mobile_ip.take(now, gateway, side, &load);
        let left = match (is_taken, side) {
            (true, _) => None,
            (false, Side::Mobile) => Some(load),
            (false, Side::Fixed) => {
                mobile_ip.send_up(now, gateway, load);
                None
            }
        };
        self.act_for_mobile_ip(now);
        left
    }

    /// A completed registration: the router sends packets there, and the gateway at the router hears
    /// that its link is up.
    fn bind(&mut self, now: Instant, gateway: usize) {
        let Some(roaming) = &mut self.roaming else {
            return;
        };
        let before = core::mem::replace(&mut roaming.routed, gateway);
        if let Some(home) = &mut roaming.home_agent {
            tell_update(now, &mut home.gateway);
        }
        for (number, is_routed) in [(before, false), (gateway, true)] {
            if let Some(cell) = self.cell_mut(number) {
                cell.set_routed(is_routed);
            }
        }
        self.send_of_home_agent(now);
    }
}
