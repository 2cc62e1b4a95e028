//! What stands at the fixed end of a link that the mobile host comes to and leaves: a gateway whose
//! process may die and be started anew, and the agent beside it, if gateways speak to each other.

use super::{LINK, Path, Step, Watch, due};
use crate::side::Side;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use outlast_agents::{Agents, Config, Counters, DecodeError, Event, Left, Session, Site};
use outlast_base::time::Instant;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Indicator, LinkConfig as GatewayLink, LinkEvent, LinkState};
use outlast_gateway::mechanisms::path::HoldRules;
use outlast_gateway::mechanisms::path::SendReason;
use outlast_wire::Packet;

/// What a gateway is made of.
#[derive(Clone, Debug)]
pub(super) struct Blueprint {
    pub(super) config: GatewayConfig,
    pub(super) link: GatewayLink,
    pub(super) shares_rate: bool,
    pub(super) rules: HoldRules,
}

impl Blueprint {
    pub(super) fn build(&self, now: Instant) -> Gateway {
        let mut gateway = Gateway::new(self.config.clone());
        gateway.add_link(now, LINK.interface, self.link);
        gateway.share_rate(now, LINK.interface, self.shares_rate);
        gateway.set_rules(self.rules);
        gateway
    }
}

/// What a fixed end has besides its gateway.
#[derive(Debug)]
pub(super) struct AccessPoint<L> {
    mobile: IpAddr,
    /// What an agent is made with; `None` if gateways do not speak to each other.
    config: Option<Config>,
    /// `None` while the process is dead, too.
    agents: Option<Agents>,
    /// What is on the disk.
    journal: Left,
    /// Packets that go to where the mobile host is now.
    pub(super) strays: VecDeque<L>,
    /// The mobile host is known to be elsewhere: what is for it follows it there.
    pub(super) forwards: bool,
    /// Packets for the mobile host come here.
    is_routed: bool,
    silent: Vec<SocketAddr>,
}

impl<W: Watch> Path<W> {
    /// The fixed end is one of those that the mobile host at `mobile` comes to and leaves. With
    /// `config` there is an agent beside its gateway, which has no channel to anybody yet.
    pub(crate) fn set_up_access_point(&mut self, mobile: IpAddr, config: Option<Config>) {
        let agents = config.clone().map(Agents::new);
        self.has_gateways = true;
        self.access_point = Some(Box::new(AccessPoint {
            mobile,
            config,
            agents,
            journal: Left::default(),
            strays: VecDeque::new(),
            forwards: false,
            is_routed: false,
            silent: Vec::new(),
        }));
    }

    /// The process at the fixed end dies. Packets cross as if it had never been there.
    pub(crate) fn crash(&mut self) {
        self.gateways[Side::Fixed.index()] = None;
        self.gateways_due[Side::Fixed.index()] = Instant::FAR_FUTURE;
        if let Some(access_point) = &mut self.access_point {
            access_point.agents = None;
            access_point.forwards = false;
            access_point.silent.clear();
        }
    }

    /// It is started anew, and takes up what it finds in its journal. `instance` is nobody else's.
    pub(crate) fn restart(&mut self, now: Instant, instance: u64) {
        let Some(blueprint) = &self.blueprint else {
            return;
        };
        let mut gateway = blueprint.build(now);
        if !self.link.is_up() && self.is_told_by_link() {
            gateway.handle_link(now, carrier(LinkState::Down));
        }
        self.gateways[Side::Fixed.index()] = Some(gateway);
        if let Some(access_point) = &mut self.access_point
            && let Some(config) = &mut access_point.config
        {
            config.instance = instance;
            access_point.agents = Some(Agents::new(config.clone()));
            let left = access_point.journal.clone();
            self.with_agents(now, |agents, site| agents.restore(site, left));
        }
        self.drain_gateway(now, Side::Fixed);
        self.take_steps(now);
    }

    /// Packets for the mobile host come here from now on, or do so no longer.
    pub(crate) fn set_routed(&mut self, is_routed: bool) {
        if let Some(access_point) = &mut self.access_point {
            access_point.is_routed = is_routed;
        }
    }

    /// The mobile host is here: nothing is sent on to elsewhere.
    pub(crate) fn welcome(&mut self) {
        if let Some(access_point) = &mut self.access_point {
            access_point.forwards = false;
        }
    }

    /// A mobility update says that the mobile host is with another gateway, whose agent listens at
    /// `to`: what is here for it, and still comes, goes there.
    pub(crate) fn handle_update(&mut self, now: Instant, to: SocketAddr) {
        let Some(access_point) = &mut self.access_point else {
            return;
        };
        access_point.forwards = self.gateways[Side::Fixed.index()].is_some();
        let mobile = access_point.mobile;
        self.with_agents(now, |agents, site| {
            // That it is a neighbour follows from how stations are made.
            let _ = agents.handle_moved(site, mobile, to);
        });
        if let Some(gateway) = &mut self.gateways[Side::Fixed.index()] {
            tell_update(now, gateway);
        }
        self.drain_gateway(now, Side::Fixed);
        self.take_steps(now);
    }

    /// There is a channel to the agent that listens at `neighbour`, or there is none any more.
    pub(crate) fn handle_session(&mut self, now: Instant, neighbour: SocketAddr, is: Session) {
        self.with_agents(now, |agents, site| {
            agents.handle_session(site, neighbour, is);
        });
        self.drain_gateway(now, Side::Fixed);
        self.take_steps(now);
    }

    /// The agent that listens at `neighbour` says something.
    pub(crate) fn handle_message(
        &mut self,
        now: Instant,
        neighbour: SocketAddr,
        message: &[u8],
    ) -> Result<(), DecodeError> {
        let heard = self.with_agents(now, |agents, site| {
            agents.handle_message(site, neighbour, message)
        });
        self.drain_gateway(now, Side::Fixed);
        self.take_steps(now);
        heard.unwrap_or(Ok(()))
    }

    /// The next message to the agent that listens at `neighbour`.
    pub(crate) fn poll_message(&mut self, now: Instant, neighbour: SocketAddr) -> Option<Vec<u8>> {
        self.with_agents(now, |agents, site| agents.poll_transmit(site, neighbour))?
    }

    /// An agent that was not heard for too long: the channel to it is to be closed.
    pub(crate) fn poll_silent(&mut self) -> Option<SocketAddr> {
        self.access_point.as_mut()?.silent.pop()
    }

    /// The next packet that goes to where the mobile host is now.
    pub(crate) fn poll_stray(&mut self) -> Option<W::Load> {
        self.access_point.as_mut()?.strays.pop_front()
    }

    /// What the agent has counted since it was started.
    pub(crate) fn agent_counters(&self) -> Option<Counters> {
        let agents = self.access_point.as_ref()?.agents.as_ref()?;
        Some(*agents.counters())
    }

    pub(super) fn with_agents<T>(
        &mut self,
        now: Instant,
        what: impl FnOnce(&mut Agents, &mut Site<'_>) -> T,
    ) -> Option<T> {
        let gateway = self.gateways[Side::Fixed.index()].as_mut()?;
        let agents = self.access_point.as_mut()?.agents.as_mut()?;
        let mut site = Site {
            now,
            gateway,
            link_to: &|_| LINK,
        };
        Some(what(agents, &mut site))
    }

    /// When the fixed end wants to be called.
    pub(super) fn fixed_end_due(&self) -> Instant {
        let gateway = due(self.gateways[Side::Fixed.index()].as_ref());
        let agents = self.access_point.as_ref().and_then(|s| s.agents.as_ref());
        let agents = agents.and_then(Agents::poll_timeout);
        gateway.min(agents.map_or(Instant::FAR_FUTURE, |(at, _)| at))
    }

    /// The agent's time may have come.
    pub(super) fn wake_agents(&mut self, now: Instant) {
        self.with_agents(now, |agents, site| {
            if agents.poll_timeout().is_some_and(|(at, _)| at <= now) {
                agents.handle_timeout(site);
            }
        });
    }

    /// A packet of the mobile host's has come out of the link, or the link has come up.
    pub(super) fn note_arrival(&mut self, now: Instant, is_packet: bool) {
        let Some(mobile) = self
            .access_point
            .as_ref()
            .map(|access_point| access_point.mobile)
        else {
            return;
        };
        self.with_agents(now, |agents, site| {
            if !is_packet || agents.awaits(mobile) {
                agents.handle_arrival(site, mobile);
            }
        });
    }

    /// Lets the agent hear of its gateway, and write down what has to be before anything is sent.
    /// Its packets.
    pub(super) fn attend(&mut self, now: Instant) -> Vec<Packet> {
        self.with_agents(now, |agents, site| {
            while let Some(event) = site.gateway.poll_event() {
                agents.handle_gateway_event(site, &event);
            }
        });
        let Some(access_point) = &mut self.access_point else {
            return Vec::new();
        };
        let Some(agents) = &mut access_point.agents else {
            return Vec::new();
        };
        let entries = core::iter::from_fn(|| agents.poll_record());
        let records: Vec<_> = entries.collect();
        let removals = core::iter::from_fn(|| agents.poll_removal());
        for entry in records.into_iter().chain(removals.collect::<Vec<_>>()) {
            access_point.journal.apply(entry);
        }
        while let Some(event) = agents.poll_event() {
            if let Event::Silent { agent } = event {
                access_point.silent.push(agent);
            }
        }
        core::iter::from_fn(|| agents.poll_packet()).collect()
    }

    /// A packet of the agent's goes past the gateway to wherever its destination is.
    pub(super) fn send_of_agent(&mut self, now: Instant, packet: Packet) {
        let Some(access_point) = &mut self.access_point else {
            return;
        };
        let is_for_mobile = packet.header().ip.destination == access_point.mobile;
        let load = W::Load::from(packet);
        if !is_for_mobile {
            let frame = self
                .observer
                .rereceived(now, Side::Fixed, load, SendReason::Reset);
            self.hand_over(now, Side::Fixed, frame);
        } else if access_point.is_routed {
            let frame = self
                .observer
                .resent(now, Side::Fixed, load, SendReason::Reset);
            self.steps.push_back(Step::Enter(Side::Fixed, frame));
        } else {
            access_point.strays.push_back(load);
        }
    }
}

/// A mobility update says where the mobile host is: it was away, and can be reached.
pub(crate) fn tell_update(now: Instant, gateway: &mut Gateway) {
    for state in [LinkState::Down, LinkState::Up] {
        let event = LinkEvent {
            link: LINK,
            state,
            indicator: Indicator::MobilityUpdate,
        };
        gateway.handle_link(now, event);
    }
}

const fn carrier(state: LinkState) -> LinkEvent {
    LinkEvent {
        link: LINK,
        state,
        indicator: Indicator::Carrier,
    }
}
