//! A fixed host, a mobile one and the agents that the mobile host goes to, in virtual time.
//!
//! ```text
//! fixed host --- router --- agent 0 ~~~ mobile host
//!                    \----- agent 1 ~~~ (or here)
//! ```
//!
//! Hosts are real endpoints of `outlast-tcp`, agents have real gateways. The router sends what is
//! for the mobile host to one of the agents, which need not be the one that it is at. An agent that
//! is not running forwards all the same: a process has crashed, not a router.
#![allow(dead_code, reason = "each test file uses its part")]

mod channel;
mod station;

use channel::Channels;
use outlast_agents::{Agents, Config, Event as Told, Limits, Site};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::Transmit;
use outlast_gateway::links::{Direction, Indicator, LinkEvent, LinkState};
use outlast_gateway::mechanisms::path::{PathMechanismKind, Verdict};
use outlast_tcp::profile::{AIX_4_3, Profile};
use outlast_tcp::{Endpoint, Error, Event};
use outlast_wire::Packet;
#[allow(unused_imports, reason = "each test file uses its part")]
pub(crate) use station::{Crash, Station, link_to};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// One way between the fixed host and an agent, and between an agent and the mobile host.
const WIRED: Duration = Duration::from_millis(10);
const AIR: Duration = Duration::from_millis(10);

pub(crate) const LOST_AFTER: Duration = Duration::from_secs(30);
const FIXED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);

/// The mobile host's address.
pub(crate) fn mobile() -> IpAddr {
    MOBILE.into()
}

/// Where an agent listens.
pub(crate) fn address(agent: usize) -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(203, 0, 113, agent as u8).into(), 7_348)
}

/// Where a packet arrives later.
#[derive(Clone, Debug)]
enum Later {
    Fixed(Packet),
    Mobile(Packet, usize),
    Router(Packet),
    Agent(Packet, usize),
}

/// What one packet of the fixed host's was, for those who count probes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Counts {
    /// Segments of the fixed host's that carry at most one byte.
    pub(crate) probes: u64,
    /// Segments of the fixed host's, in all.
    pub(crate) segments: u64,
}

pub(crate) struct Network {
    pub(crate) now: Instant,
    pub(crate) fixed: Endpoint,
    pub(crate) mobile: Endpoint,
    pub(crate) errors: [Option<Error>; 2],
    pub(crate) stations: Vec<Station>,
    pub(crate) counts: Counts,
    /// The most bytes that were acknowledged to the fixed host, and that the mobile host had not received.
    pub(crate) most_ahead: u64,
    /// When the mobile host's application got bytes.
    pub(crate) deliveries: Vec<Instant>,
    /// What the agents have told, each with the time.
    pub(crate) told: Vec<(Instant, usize, Told)>,
    /// Whether agents hear from an indicator that the mobile host is gone or there.
    pub(crate) is_told_of_mobiles: bool,
    channels: Channels,
    /// Where the mobile host is.
    at: Option<usize>,
    route: usize,
    unwritten: u64,
    later: BinaryHeap<Reverse<(Instant, u64)>>,
    what: std::collections::BTreeMap<u64, Later>,
    order: u64,
}

/// How the network is made.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) agents: usize,
    /// Whether the agents speak to each other.
    pub(crate) speaks: bool,
    pub(crate) profile: &'static Profile,
    pub(crate) mechanism: PathMechanismKind,
    pub(crate) limits: Limits,
    pub(crate) mobiles: Vec<outlast_agents::Prefix>,
}

impl Default for Made {
    fn default() -> Self {
        Self {
            agents: 2,
            speaks: true,
            profile: &AIX_4_3,
            mechanism: PathMechanismKind::ZeroWindowAck,
            limits: Limits::default(),
            mobiles: Vec::new(),
        }
    }
}

impl Network {
    /// The mobile host is at agent 0, all agents have sessions, and a connection is established.
    pub(crate) fn new(made: &Made) -> Self {
        let (fixed, mobile) = ((FIXED, 40_000), (MOBILE, 80));
        let mut config = outlast_tcp::Config::new(
            SocketAddr::new(fixed.0.into(), fixed.1),
            SocketAddr::new(mobile.0.into(), mobile.1),
        );
        config.profile = made.profile;
        let stations = (0..made.agents).map(|index| {
            let others = (0..made.agents).filter(|other| *other != index);
            let config = Config {
                instance: 0,
                neighbours: others.map(address).collect(),
                mobiles: made.mobiles.clone(),
                lost_after: LOST_AFTER,
                limits: made.limits,
            };
            Station::new(config, made.speaks, made.mechanism)
        });
        let mut network = Self {
            now: Instant::ZERO,
            fixed: Endpoint::connect(Instant::ZERO, config.clone()),
            mobile: Endpoint::listen(config.mirrored()),
            errors: [None, None],
            stations: stations.collect(),
            counts: Counts::default(),
            most_ahead: 0,
            deliveries: Vec::new(),
            told: Vec::new(),
            is_told_of_mobiles: true,
            channels: Channels::default(),
            at: Some(0),
            route: 0,
            unwritten: 0,
            later: BinaryHeap::new(),
            what: std::collections::BTreeMap::new(),
            order: 0,
        };
        for agent in 0..made.agents {
            network.start(agent);
        }
        network.run(Duration::from_secs(1));
        assert!(network.fixed.state().is_synchronized());
        network
    }

    /// The fixed host's application writes, now and whenever there is room.
    pub(crate) fn write(&mut self, bytes: u64) {
        self.unwritten += bytes;
        self.settle();
    }

    /// The mobile host's application writes a byte.
    pub(crate) fn answer(&mut self) {
        self.mobile.send(self.now, 1);
        self.settle();
    }

    /// Both hosts' applications have said everything.
    pub(crate) fn end(&mut self) {
        self.fixed.close(self.now);
        self.mobile.close(self.now);
        self.settle();
    }

    /// The mobile host is out of reach.
    pub(crate) fn leave(&mut self) {
        if let Some(agent) = self.at.take() {
            self.tell(agent, LinkState::Down);
        }
    }

    /// The mobile host comes to an agent, where it says so if agents are told of mobiles.
    pub(crate) fn come(&mut self, agent: usize) {
        self.leave();
        self.at = Some(agent);
        self.tell(agent, LinkState::Up);
    }

    /// From now on the router sends what is for the mobile host to this agent.
    pub(crate) fn route(&mut self, agent: usize) {
        self.route = agent;
    }

    /// The mobile host has come to an agent, and everybody knows.
    pub(crate) fn hand_over(&mut self, agent: usize) {
        self.come(agent);
        self.route(agent);
    }

    fn tell(&mut self, agent: usize, state: LinkState) {
        let now = self.now;
        if let Some(there) = &mut self.stations[agent].agent
            && self.is_told_of_mobiles
        {
            let event = LinkEvent {
                link: link_to(mobile()),
                state,
                indicator: Indicator::Neighbour,
            };
            there.gateway.handle_link(now, event);
            if state == LinkState::Up {
                there.act(now, |agents, site| agents.handle_arrival(site, mobile()));
            }
        }
        self.settle();
    }

    /// Does something with a running agent.
    pub(crate) fn act<T>(
        &mut self,
        agent: usize,
        what: impl FnOnce(&mut Agents, &mut Site<'_>) -> T,
    ) -> T {
        let there = self.stations[agent].agent.as_mut().expect("it runs");
        let done = there.act(self.now, what);
        self.settle();
        done
    }

    /// A packet of the mobile host's that has nothing to do with the connection.
    pub(crate) fn be_heard(&mut self) {
        if let Some(agent) = self.at {
            self.hear_mobile(agent);
            self.settle();
        }
    }

    /// Goes on for so long.
    pub(crate) fn run(&mut self, time: Duration) {
        let until = self.now + time;
        while self.step(until) {}
    }

    /// Goes on until `is_done`; whether it was within `limit`.
    pub(crate) fn run_until(&mut self, limit: Duration, is_done: impl Fn(&Self) -> bool) -> bool {
        let until = self.now + limit;
        while !is_done(self) {
            if !self.step(until) {
                return is_done(self);
            }
        }
        true
    }

    /// Whether the agent keeps a frozen connection.
    pub(crate) fn is_frozen(&self, agent: usize) -> bool {
        let there = self.stations[agent].agent.as_ref();
        there.is_some_and(|there| !there.gateway.frozen_behind(link_to(mobile())).is_empty())
    }

    /// Whether the connection was reset at both ends.
    pub(crate) fn is_reset(&self) -> bool {
        self.errors == [Some(Error::Reset); 2]
    }

    /// Whether everything that was written has been acknowledged, and is there.
    pub(crate) fn is_complete(&self) -> bool {
        let is_all = self.unwritten == 0 && self.fixed.written() == self.mobile.received();
        is_all && self.fixed.acknowledged() == self.fixed.written()
    }

    /// The fixed host's connection was frozen at this agent: it has lost a window.
    pub(crate) fn freeze(&mut self, agent: usize) {
        self.hand_over(agent);
        self.leave();
        self.write(20_000);
        let is_frozen = self.run_until(Duration::from_secs(10), |n| n.is_frozen(agent));
        assert!(is_frozen, "nothing was frozen");
        self.run(Duration::from_millis(100));
    }

    /// Frozen at agent 0 of two; the mobile host is out of reach.
    pub(crate) fn frozen() -> Self {
        let mut network = Self::new(&Made::default());
        network.freeze(0);
        network
    }

    /// Everything arrives, within a minute.
    #[track_caller]
    pub(crate) fn assert_complete(&mut self) {
        assert!(
            self.run_until(Duration::from_secs(60), Self::is_complete),
            "{} of {} bytes, {:?}",
            self.mobile.received(),
            self.fixed.written(),
            self.errors
        );
        assert_eq!(self.errors, [None, None]);
    }

    /// Everything arrives, within a minute, and no agent has anything left to do.
    #[track_caller]
    pub(crate) fn assert_goes_on(&mut self) {
        self.assert_complete();
        self.run(Duration::from_secs(2));
        self.assert_nothing_is_left();
    }

    /// No agent has anything left to do.
    #[track_caller]
    pub(crate) fn assert_nothing_is_left(&self) {
        for (index, station) in self.stations.iter().enumerate() {
            assert!(!self.is_frozen(index), "agent {index}");
            if let Some(agent) = &station.agent {
                assert_eq!(agent.agents.frozen().count(), 0, "agent {index}");
                let told = agent.agents.neighbours().map(|neighbour| neighbour.frozen);
                assert_eq!(told.sum::<usize>(), 0, "agent {index}");
            }
        }
    }

    #[track_caller]
    pub(crate) fn assert_both_are_reset(&mut self, within: Duration) {
        let is_reset = self.run_until(within, Self::is_reset);
        assert!(is_reset, "{:?} after {within:?}", self.errors);
    }

    /// Goes on for so long, without an error at either end.
    #[track_caller]
    pub(crate) fn assert_far_end_is_unaware(&mut self, time: Duration) {
        self.run(time);
        assert_eq!(self.errors, [None, None]);
    }

    fn next_at(&self) -> Option<Instant> {
        let hosts = [&self.fixed, &self.mobile].map(|host| host.poll_timeout().map(|(at, _)| at));
        let stations = self.stations.iter().map(Station::next_at);
        let next = self.later.peek().map(|Reverse((at, _))| *at);
        let others = [next, self.channels.next_at()];
        let all = hosts.into_iter().chain(stations).chain(others);
        all.flatten().min()
    }

    fn step(&mut self, until: Instant) -> bool {
        let Some(at) = self.next_at().filter(|at| *at <= until) else {
            self.now = self.now.max(until);
            return false;
        };
        self.now = self.now.max(at);
        let now = self.now;
        for host in [&mut self.fixed, &mut self.mobile] {
            if host.poll_timeout().is_some_and(|(at, _)| at <= now) {
                host.handle_timeout(now);
            }
        }
        for station in &mut self.stations {
            station.handle_timeout(now);
        }
        self.deliver_messages();
        while self.later.peek().is_some_and(|Reverse((at, _))| *at <= now) {
            let Some(Reverse((_, order))) = self.later.pop() else {
                break;
            };
            if let Some(what) = self.what.remove(&order) {
                self.happen(what);
            }
        }
        self.settle();
        true
    }

    fn happen(&mut self, what: Later) {
        let now = self.now;
        match what {
            Later::Fixed(packet) => self.fixed.handle_packet(now, &packet),
            Later::Mobile(packet, agent) if self.at == Some(agent) => {
                self.mobile.handle_packet(now, &packet);
            }
            Later::Mobile(..) => {}
            Later::Router(packet) => self.cross(self.route, Direction::ToLink, packet),
            Later::Agent(packet, agent) => {
                self.hear_mobile(agent);
                self.cross(agent, Direction::FromLink, packet);
            }
        }
        self.settle();
    }

    /// A packet of the mobile host's has come to an agent.
    fn hear_mobile(&mut self, agent: usize) {
        let now = self.now;
        if let Some(there) = &mut self.stations[agent].agent
            && there.agents.awaits(mobile())
        {
            there.act(now, |agents, site| agents.handle_arrival(site, mobile()));
        }
    }

    fn cross(&mut self, agent: usize, direction: Direction, packet: Packet) {
        let now = self.now;
        let verdict = match &mut self.stations[agent].agent {
            Some(there) => {
                let link = link_to(mobile());
                there.gateway.handle_packet(now, link, direction, &packet)
            }
            None => Verdict::Pass,
        };
        if verdict == Verdict::Pass {
            self.forward(agent, direction, packet);
        }
    }

    fn forward(&mut self, agent: usize, direction: Direction, packet: Packet) {
        match direction {
            Direction::ToLink => self.after(AIR, Later::Mobile(packet, agent)),
            Direction::FromLink => self.after(WIRED, Later::Fixed(packet)),
        }
    }

    fn after(&mut self, time: Duration, what: Later) {
        self.order += 1;
        self.later.push(Reverse((self.now + time, self.order)));
        self.what.insert(self.order, what);
    }

    /// Lets everything happen that follows at once.
    fn settle(&mut self) {
        loop {
            let hosts = self.settle_hosts();
            let agents = (0..self.stations.len())
                .map(|agent| self.settle_agent(agent))
                .fold(false, |any, one| any | one);
            if !hosts && !agents {
                return;
            }
        }
    }

    fn settle_hosts(&mut self) -> bool {
        let (now, mut any) = (self.now, false);
        if self.unwritten > 0 && self.errors[0].is_none() {
            let taken = self.fixed.send(now, self.unwritten);
            self.unwritten -= taken;
            any |= taken > 0;
        }
        if self.mobile.recv(now, u64::MAX) > 0 {
            self.deliveries.push(now);
            any = true;
        }
        let received = self.mobile.received();
        self.most_ahead = self
            .most_ahead
            .max(self.fixed.acknowledged().saturating_sub(received));
        while let Some(packet) = self.fixed.poll_transmit(now) {
            self.counts.segments += 1;
            self.counts.probes += u64::from(packet.header().payload_len <= 1);
            self.after(WIRED, Later::Router(packet));
            any = true;
        }
        while let Some(packet) = self.mobile.poll_transmit(now) {
            if let Some(agent) = self.at {
                self.after(AIR, Later::Agent(packet, agent));
            }
            any = true;
        }
        for (host, error) in [&mut self.fixed, &mut self.mobile]
            .into_iter()
            .zip(&mut self.errors)
        {
            while let Some(event) = host.poll_event() {
                if let Event::Failed(why) = event {
                    *error = Some(why);
                }
            }
        }
        any
    }

    fn settle_agent(&mut self, agent: usize) -> bool {
        let now = self.now;
        let Some(out) = self.stations[agent].drain(now) else {
            if self.stations[agent].agent.is_none() {
                // It may have died on the way.
                self.bury(agent);
            }
            return false;
        };
        let is_news = !out.is_empty();
        for Transmit {
            direction, packet, ..
        } in out.transmits
        {
            self.forward(agent, direction, packet);
        }
        for packet in out.packets {
            let is_for_mobile = packet.header().ip.destination == mobile();
            if !is_for_mobile {
                self.forward(agent, Direction::FromLink, packet);
            } else if self.route == agent {
                // The agent is past its own gateway.
                self.forward(agent, Direction::ToLink, packet);
            } else {
                self.after(WIRED, Later::Router(packet));
            }
        }
        for event in out.events {
            if let Told::Silent { agent: other } = event {
                self.part(agent, other);
            }
            self.told.push((now, agent, event));
        }
        self.send_messages(agent);
        is_news
    }
}
