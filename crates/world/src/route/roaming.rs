//! The near part of the route where the mobile host goes from gateway to gateway.
//!
//! What happens at a time of the setup happens before anything else at that instant.

use super::Route;
use super::channels::Channels;
use super::mobile_ip::MobileIp;
use crate::path::{Counts, LINK, Load, Path, Watch, tell_update};
use crate::roaming::{RoamingOutcome, RoamingSetup, agent_at};
use crate::side::Side;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_agents::{Config, Limits};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, LinkConfig as GatewayLink, LinkState};
use outlast_gateway::mechanisms::path::{PathMechanismKind, Verdict};
use outlast_wire::Packet;

/// The further gateways' links, and who is where.
#[derive(Debug)]
pub(super) struct Roaming<W: Watch> {
    /// Links of the further gateways; the first gateway's is the route's.
    cells: Vec<Path<W>>,
    pub(super) home_agent: Option<HomeAgent>,
    pub(super) mobile_ip: Option<Box<MobileIp<W::Load>>>,
    /// What is to happen, and when, counted from the workload's first byte.
    agenda: VecDeque<(Duration, Happening)>,
    /// Where the mobile host is, or was last.
    at: usize,
    /// Where the router sends what is for it, and by which of the hand-offs.
    pub(super) routed: usize,
    updates: usize,
    pub(super) channels: Option<Channels>,
    pub(super) handoffs_begun: u64,
}

#[derive(Clone, Copy, Debug)]
enum Happening {
    /// The mobile host leaves.
    Departure,
    /// It is there.
    Arrival(usize),
    /// The router hears of the hand-off of this number.
    Update {
        number: usize,
        from: usize,
        to: usize,
        forwards: bool,
    },
    Crash(usize),
    Restart(usize),
}

/// A gateway at the router, whose link is the whole way to the mobile host.
#[derive(Debug)]
pub(super) struct HomeAgent {
    pub(super) gateway: Gateway,
    counts: Counts,
}

impl<W: Watch> Roaming<W> {
    /// `cells` are the links of the further gateways of `setup`, whose mobile host has the address
    /// `mobile`.
    pub(super) fn new(
        now: Instant,
        setup: &RoamingSetup,
        first: &mut Path<W>,
        mut cells: Vec<Path<W>>,
        mobile: IpAddr,
        seed: u64,
    ) -> Self {
        let count = cells.len() + 1;
        let all = core::iter::once(first).chain(&mut cells);
        for (number, cell) in all.enumerate() {
            let config = setup.agents.map(|agents| Config {
                instance: number as u64,
                neighbours: (0..count).filter(|n| *n != number).map(agent_at).collect(),
                mobiles: Vec::new(),
                lost_after: agents.lost_after,
                limits: Limits::default(),
            });
            cell.set_up_access_point(mobile, config);
            cell.set_routed(number == 0);
        }
        let channels = setup
            .agents
            .map(|agents| Channels::new(count, agents.delay));
        let has_home_agent = setup.home_agent != PathMechanismKind::None;
        let mobile_ip = setup.mobile_ip.as_ref();
        let mobile_ip = mobile_ip.map(|setup| Box::new(MobileIp::new(now, setup, count, seed)));
        Self {
            cells,
            mobile_ip,
            home_agent: has_home_agent.then(|| HomeAgent::new(now, setup.home_agent, seed)),
            agenda: agenda(setup),
            at: 0,
            routed: 0,
            updates: 0,
            channels,
            handoffs_begun: 0,
        }
    }

    /// Whether a further gateway's link has something to tell.
    pub(super) fn has_news(&self) -> bool {
        self.cells.iter().any(Path::has_news)
    }

    /// Packets that further gateways and the home agent have put on the path.
    pub(super) fn injected(&self) -> u64 {
        let cells = self.cells.iter().map(|cell| cell.counts().injected());
        let home = self.home_agent.iter().map(|home| home.counts.injected());
        cells.chain(home).sum()
    }

    /// Whether the mobile host's link is up.
    pub(super) fn is_up(&self, first: &Path<W>) -> bool {
        match self.at.checked_sub(1) {
            None => first.is_up(),
            Some(further) => self.cells.get(further).is_some_and(Path::is_up),
        }
    }

    /// When something is due, if the workload's first byte was sent at `started`.
    pub(super) fn poll_timeout(&self, started: Option<Instant>) -> Instant {
        let next = self.agenda.front().zip(started);
        let next = next.map_or(Instant::FAR_FUTURE, |((at, _), started)| started + *at);
        let home = self.home_agent.as_ref();
        let home = home.and_then(|home| home.gateway.poll_timeout());
        let home = home.map_or(Instant::FAR_FUTURE, |(at, _)| at);
        let channels = self.channels.as_ref().map(Channels::next_at);
        let cells = self.cells.iter().map(Path::poll_timeout);
        let mobile_ip = self.mobile_ip.as_deref().map(MobileIp::poll_timeout);
        let others = channels.into_iter().chain(mobile_ip);
        cells.chain(others).fold(next.min(home), Instant::min)
    }

    pub(super) fn finish(self, first: &Path<W>) -> (RoamingOutcome, Vec<Path<W>>) {
        let agents = core::iter::once(first).chain(&self.cells);
        let outcome = RoamingOutcome {
            cells: Vec::new(),
            agents: agents.map(Path::agent_counters).collect(),
            home_agent: self
                .home_agent
                .map(|home| (*home.gateway.counters(), home.counts)),
            mobile_ip: self.mobile_ip.map(|mobile_ip| mobile_ip.finish()),
        };
        (outcome, self.cells)
    }
}

/// What is to happen, in the order of time and then of the setup.
fn agenda(setup: &RoamingSetup) -> VecDeque<(Duration, Happening)> {
    let mut agenda = Vec::new();
    let mut from = 0;
    for (number, handoff) in setup.handoffs.iter().enumerate() {
        let arrival = handoff.at + handoff.gap;
        agenda.push((handoff.at, Happening::Departure));
        agenda.push((arrival, Happening::Arrival(handoff.to)));
        let update = Happening::Update {
            number: number + 1,
            from,
            to: handoff.to,
            forwards: handoff.forwards,
        };
        // With Mobile IP the registration says so.
        if setup.mobile_ip.is_none() {
            agenda.push((arrival + handoff.update, update));
        }
        from = handoff.to;
    }
    for crash in &setup.crashes {
        agenda.push((crash.at, Happening::Crash(crash.gateway)));
        if let Some(after) = crash.back_after {
            agenda.push((crash.at + after, Happening::Restart(crash.gateway)));
        }
    }
    agenda.sort_by_key(|(at, _)| *at);
    agenda.into()
}

impl HomeAgent {
    fn new(now: Instant, mechanism: PathMechanismKind, seed: u64) -> Self {
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism,
            seed,
            ..GatewayConfig::default()
        });
        gateway.add_link(now, LINK.interface, GatewayLink::default());
        Self {
            gateway,
            counts: Counts::default(),
        }
    }

    /// What it sends, and which way.
    fn drain(&mut self) -> Vec<(Direction, Packet)> {
        let sent = core::iter::from_fn(|| self.gateway.poll_transmit());
        let sent: Vec<_> = sent.map(|sent| (sent.direction, sent.packet)).collect();
        for (direction, packet) in &sent {
            match direction {
                Direction::ToLink => self.counts.resent += 1,
                Direction::FromLink => self.counts.rereceived += 1,
            }
            self.counts.injected_bytes += u64::from(packet.total_len());
        }
        while self.gateway.poll_event().is_some() {}
        sent
    }
}

impl<W: Watch> Route<W> {
    /// The first byte of the workload was sent: the links of further gateways go down.
    pub(super) fn start_roaming(&mut self, now: Instant) {
        let Some(roaming) = &mut self.roaming else {
            return;
        };
        for cell in &mut roaming.cells {
            cell.start(now);
        }
        self.connect(now);
    }

    /// Whatever is due of it happens.
    pub(super) fn wake_roaming(&mut self, now: Instant) {
        while let Some(happening) = self.next_happening(now) {
            self.happen(now, happening);
            self.forward_along(now);
        }
        self.deliver_messages(now);
        if let Some(mobile_ip) = self.mobile_ip()
            && mobile_ip.poll_timeout() <= now
        {
            mobile_ip.handle_timeout(now);
        }
        self.act_for_mobile_ip(now);
        let Some(roaming) = &mut self.roaming else {
            return;
        };
        for cell in &mut roaming.cells {
            if cell.poll_timeout() <= now {
                cell.handle_timeout(now);
            }
        }
        if let Some(home) = &mut roaming.home_agent
            && home.gateway.poll_timeout().is_some_and(|(at, _)| at <= now)
        {
            home.gateway.handle_timeout(now);
            self.send_of_home_agent(now);
        }
    }

    fn next_happening(&mut self, now: Instant) -> Option<Happening> {
        let started = self.started?;
        let agenda = &mut self.roaming.as_mut()?.agenda;
        agenda.front().filter(|(at, _)| started + *at <= now)?;
        Some(agenda.pop_front()?.1)
    }

    fn happen(&mut self, now: Instant, happening: Happening) {
        let Some(roaming) = &mut self.roaming else {
            return;
        };
        match happening {
            Happening::Departure => {
                roaming.handoffs_begun += 1;
                if let Some(mobile_ip) = self.mobile_ip() {
                    mobile_ip.leave(now);
                }
            }
            Happening::Arrival(gateway) => {
                roaming.at = gateway;
                if let Some(cell) = self.cell_mut(gateway) {
                    cell.welcome();
                }
                if let Some(mobile_ip) = self.mobile_ip() {
                    mobile_ip.arrive(now, gateway);
                }
                self.act_for_mobile_ip(now);
            }
            Happening::Update {
                number,
                from,
                to,
                forwards,
            } => self.update(now, (from, to), number, forwards),
            Happening::Crash(gateway) => {
                if let Some(cell) = self.cell_mut(gateway) {
                    cell.crash();
                }
                self.disconnect(now, gateway);
            }
            Happening::Restart(gateway) => {
                let instance = self.fresh_instance();
                if let Some(cell) = self.cell_mut(gateway) {
                    cell.restart(now, instance);
                }
                self.revive(gateway);
                self.connect(now);
            }
        }
    }

    /// The router hears where the mobile host is, unless it has heard of a later hand-off.
    fn update(&mut self, now: Instant, (from, to): (usize, usize), number: usize, forwards: bool) {
        let Some(roaming) = &mut self.roaming else {
            return;
        };
        if number < roaming.updates {
            return;
        }
        let before = core::mem::replace(&mut roaming.routed, to);
        roaming.updates = number;
        if let Some(home) = &mut roaming.home_agent {
            tell_update(now, &mut home.gateway);
        }
        for (gateway, is_routed) in [(before, false), (to, true)] {
            if let Some(cell) = self.cell_mut(gateway) {
                cell.set_routed(is_routed);
            }
        }
        if forwards && let Some(old) = self.cell_mut(from) {
            old.handle_update(now, agent_at(to));
        }
        self.send_of_home_agent(now);
    }

    /// The link of a gateway, counted from zero.
    pub(super) fn cell_mut(&mut self, gateway: usize) -> Option<&mut Path<W>> {
        match gateway.checked_sub(1) {
            None => Some(&mut self.first),
            Some(further) => self.roaming.as_mut()?.cells.get_mut(further),
        }
    }

    /// How many gateways there are.
    pub(super) fn cells(&self) -> usize {
        1 + self
            .roaming
            .as_ref()
            .map_or(0, |roaming| roaming.cells.len())
    }

    /// The mobile host has sent a packet.
    pub(super) fn handle_packet_of_mobile(&mut self, now: Instant, load: W::Load) {
        let at = self.roaming.as_ref().map_or(0, |roaming| roaming.at);
        if self.mobile_ip().is_some_and(|one| !one.hears(at)) {
            return;
        }
        if let Some(cell) = self.cell_mut(at) {
            cell.handle_packet(now, Side::Mobile, load);
        }
    }

    /// A packet for the mobile host has come to the router.
    pub(super) fn handle_packet_at_router(&mut self, now: Instant, load: W::Load) {
        if self.asks_home_agent(now, Direction::ToLink, &load) == Verdict::Pass {
            self.send_to_mobile(now, load);
        }
        self.send_of_home_agent(now);
    }

    /// A packet has come from a gateway to the router; it passes on to `self.send_on` if this says
    /// so.
    pub(super) fn passes_router(&mut self, now: Instant, load: &W::Load) -> bool {
        let verdict = self.asks_home_agent(now, Direction::FromLink, load);
        self.send_of_home_agent(now);
        verdict == Verdict::Pass
    }

    fn asks_home_agent(&mut self, now: Instant, way: Direction, load: &W::Load) -> Verdict {
        let roaming = self.roaming.as_mut();
        let home = roaming.and_then(|roaming| roaming.home_agent.as_mut());
        match (home, load.packet()) {
            (Some(home), Some(packet)) if packet.tcp().is_some() => {
                home.gateway.handle_packet(now, LINK, way, packet)
            }
            _ => Verdict::Pass,
        }
    }

    pub(super) fn send_of_home_agent(&mut self, now: Instant) {
        let roaming = self.roaming.as_mut();
        let home = roaming.and_then(|roaming| roaming.home_agent.as_mut());
        let sent = home.map(HomeAgent::drain).unwrap_or_default();
        for (direction, packet) in sent {
            match direction {
                Direction::ToLink => self.send_to_mobile(now, packet.into()),
                Direction::FromLink => self.send_beyond(now, 0, Side::Fixed, packet.into()),
            }
        }
    }

    fn send_to_mobile(&mut self, now: Instant, load: W::Load) {
        let mut routed = self.roaming.as_ref().map_or(0, |roaming| roaming.routed);
        if let Some(hip) = &mut self.hip {
            // What is for an address that the mobile host has no more goes nowhere.
            let Some(gateway) = hip.gateway_of(&load) else {
                return;
            };
            routed = gateway;
        }
        if let Some(mobile_ip) = self.mobile_ip() {
            mobile_ip.send_down(now, routed, load);
            return self.act_for_mobile_ip(now);
        }
        if let Some(cell) = self.cell_mut(routed) {
            cell.handle_packet(now, Side::Fixed, load);
        }
    }

    /// Lets what has come out of further gateways' links go on. Whether anything did.
    pub(super) fn forward_from_cells(&mut self, now: Instant) -> bool {
        let mut is_any = self.send_strays(now);
        for gateway in 1..self.cells() {
            while let Some((side, packet)) = self.cell_mut(gateway).and_then(Path::poll_transmit) {
                is_any = true;
                // All of them stand where the first link does.
                if let Some(packet) = self.leave_cell(now, gateway, side, packet) {
                    self.send_on(now, 0, side, packet);
                }
            }
        }
        is_any
    }

    /// Lets what gateways send on to elsewhere go there, past the home agent. Whether anything did.
    fn send_strays(&mut self, now: Instant) -> bool {
        let mut is_any = false;
        for gateway in 0..self.cells() {
            while let Some(packet) = self.cell_mut(gateway).and_then(Path::poll_stray) {
                is_any = true;
                self.send_to_mobile(now, packet);
            }
        }
        is_any
    }

    /// The next change of a link that the mobile host was at, or is. Others' are of no interest.
    pub(super) fn poll_carrier_of_cells(&mut self) -> Option<LinkState> {
        let is_started = self.started.is_some();
        for gateway in 0..self.cells() {
            while let Some(state) = self.cell_mut(gateway).and_then(Path::poll_carrier) {
                if is_started && state == LinkState::Up {
                    return Some(state);
                }
            }
        }
        None
    }
}
