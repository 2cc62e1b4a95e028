//! One link of the route between the two hosts, with a gateway at either or both ends.
//!
//! A pure machine like those that it is made of, and in the same order of events as the lab's.
//! After each call of [`Path::handle_packet`] or [`Path::handle_timeout`] the driver drains
//! [`Path::poll_carrier`], then [`Path::poll_transmit`], then reads [`Path::poll_timeout`].

use crate::frame::SimFrame;
use crate::observer::Observer;
use crate::side::Side;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use outlast_core::counters::Counters as GatewayCounters;
use outlast_core::gateway::{DropCause, Gateway, GatewayConfig};
use outlast_core::link::{
    Direction, Indicator, InterfaceId, LinkConfig as GatewayLink, LinkEvent as Notice, LinkId,
    LinkState,
};
use outlast_core::mechanisms::path::{PathMechanismKind, Verdict};
use outlast_core::time::Instant;
use outlast_link::{Counters as LinkCounters, DropReason, Link, LinkConfig, LinkEvent, Way};
use outlast_wire::Packet;

/// What each gateway calls the one link that it has.
const LINK: LinkId = LinkId::whole(InterfaceId(0));

/// Empty boxes that are kept.
const MAX_SPARE: usize = 1_024;

/// The path.
#[derive(Debug)]
pub(crate) struct Path {
    link: Link<SimFrame>,
    /// By [`Side::index`].
    gateways: [Option<Gateway>; 2],
    has_gateways: bool,
    /// When the gateways want to be called, by [`Side::index`].
    gateways_due: [Instant; 2],
    steps: VecDeque<Step>,
    outbox: VecDeque<(Side, Box<Packet>)>,
    /// Boxes of packets that were delivered, for others.
    #[expect(clippy::vec_box, reason = "the boxes are what is kept")]
    spare: Vec<Box<Packet>>,
    carrier: VecDeque<LinkState>,
    pub(crate) observer: Observer,
}

/// Something that one part of the path asks of another: exactly one call of a `handle_*` method,
/// after which that part is drained. Steps are taken in the order in which they were asked for.
#[derive(Debug)]
enum Step {
    /// A packet enters the link at this side.
    Enter(Side, SimFrame),
    /// A packet came out of the link at this side.
    Leave(Side, SimFrame),
    /// The link dropped a packet that had entered at this side, and whose end knows.
    Dropped(Side, SimFrame, DropCause),
    /// The link went up or down.
    Carrier(LinkState),
}

impl Path {
    /// A path at `now` with `mechanisms` (by [`Side::index`]) at its two ends.
    pub(crate) fn new(
        now: Instant,
        link: LinkConfig,
        mechanisms: [PathMechanismKind; 2],
        observer: Observer,
    ) -> Self {
        let gateways = Side::BOTH.map(|side| {
            let mechanism = mechanisms[side.index()];
            (mechanism != PathMechanismKind::None).then(|| {
                let config = GatewayConfig {
                    mechanism,
                    seed: link.seed,
                    ..GatewayConfig::default()
                };
                let mut gateway = Gateway::new(config);
                let rate = link.pipe(side.outward()).rate;
                gateway.add_link(now, LINK.interface, GatewayLink { rate });
                gateway
            })
        });
        Self {
            link: Link::new(link),
            has_gateways: gateways.iter().any(Option::is_some),
            gateways_due: [&gateways[0], &gateways[1]].map(|gateway| due(gateway.as_ref())),
            gateways,
            steps: VecDeque::new(),
            outbox: VecDeque::new(),
            spare: Vec::new(),
            carrier: VecDeque::new(),
            observer,
        }
    }

    /// The outages begin to count.
    pub(crate) fn start(&mut self, now: Instant) {
        self.link.start(now);
        self.drain_link(now);
        self.take_steps(now);
    }

    /// A packet comes to the end of the link at `side`, from its host or from the next link.
    #[inline]
    pub(crate) fn handle_packet(&mut self, now: Instant, side: Side, packet: Box<Packet>) {
        let frame = self.observer.sent(now, side, packet);
        if self.gateways[side.index()].is_some() {
            self.offer(now, side, frame);
        } else {
            self.enter(now, side, frame);
        }
        self.take_steps(now);
    }

    /// Time has come to `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.link.quiet_until() <= now {
            self.link.handle_timeout(now);
            self.drain_link(now);
            self.take_steps(now);
        }
        for side in Side::BOTH {
            if self.gateways_due[side.index()] <= now
                && let Some(gateway) = &mut self.gateways[side.index()]
            {
                gateway.handle_timeout(now);
                self.drain_gateway(now, side);
                self.take_steps(now);
            }
        }
    }

    /// The link went up or down.
    #[must_use]
    pub(crate) fn poll_carrier(&mut self) -> Option<LinkState> {
        self.carrier.pop_front()
    }

    /// A packet for the host of a side.
    #[must_use]
    pub(crate) fn poll_transmit(&mut self) -> Option<(Side, Box<Packet>)> {
        self.outbox.pop_front()
    }

    /// When to call [`Self::handle_timeout`]; [`Instant::FAR_FUTURE`] if nothing is due.
    #[inline]
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Instant {
        let [one, other] = self.gateways_due;
        self.link.quiet_until().min(one).min(other)
    }

    /// Takes back the box of a packet from [`Self::poll_transmit`].
    #[inline]
    pub(crate) fn take_back(&mut self, packet: Box<Packet>) {
        // Copies that the link makes bring boxes of their own.
        if self.spare.len() < MAX_SPARE {
            self.spare.push(packet);
        }
    }

    /// A packet to be written over.
    #[inline]
    pub(crate) fn spare(&mut self) -> Box<Packet> {
        self.spare.pop().unwrap_or_default()
    }

    /// The packet that comes to a host now, if nothing else happens now: neither does a gateway
    /// have a say in it, nor is anything else due.
    #[inline]
    pub(crate) fn take_lone_arrival(&mut self, now: Instant) -> Option<(Side, Box<Packet>)> {
        if self.has_gateways {
            return None;
        }
        let (way, frame) = self.link.take_lone_arrival(now)?;
        let side = Side::reached_by(way);
        self.observer.crossed(now, &frame, side);
        self.observer.arrived(now, &frame);
        Some((side, frame.packet))
    }

    /// What the link counted, to the mobile and to the fixed side.
    pub(crate) fn link_counters(&self) -> [LinkCounters; 2] {
        Way::BOTH.map(|way| *self.link.counters(way))
    }

    /// What the gateways counted, by [`Side::index`].
    pub(crate) fn gateway_counters(&self) -> [Option<GatewayCounters>; 2] {
        let counters = |side: Side| Some(*self.gateways[side.index()].as_ref()?.counters());
        Side::BOTH.map(counters)
    }

    fn take_steps(&mut self, now: Instant) {
        while let Some(step) = self.steps.pop_front() {
            match step {
                Step::Enter(side, frame) => self.enter(now, side, frame),
                Step::Leave(side, frame) => self.leave(now, side, frame),
                Step::Dropped(side, frame, cause) => {
                    if let Some(gateway) = &mut self.gateways[side.index()] {
                        gateway.handle_drop(now, LINK, &frame.packet, cause);
                        self.drain_gateway(now, side);
                    }
                }
                Step::Carrier(state) => self.tell_gateways(now, state),
            }
        }
    }

    fn tell_gateways(&mut self, now: Instant, state: LinkState) {
        let notice = Notice {
            link: LINK,
            state,
            indicator: Indicator::Carrier,
        };
        for side in Side::BOTH {
            if let Some(gateway) = &mut self.gateways[side.index()] {
                gateway.handle_link(now, notice);
                self.drain_gateway(now, side);
            }
        }
    }

    #[inline]
    fn enter(&mut self, now: Instant, side: Side, frame: SimFrame) {
        self.link.handle_packet(now, side.outward(), frame);
        self.drain_link(now);
    }

    fn offer(&mut self, now: Instant, side: Side, frame: SimFrame) {
        match self.ask_gateway(now, side, Direction::ToLink, &frame) {
            Verdict::Pass => self.steps.push_back(Step::Enter(side, frame)),
            Verdict::Taken(reason) => self.observer.taken(&frame, side, reason),
        }
        self.drain_gateway(now, side);
    }

    fn leave(&mut self, now: Instant, side: Side, frame: SimFrame) {
        match self.ask_gateway(now, side, Direction::FromLink, &frame) {
            Verdict::Pass => {
                self.observer.crossed(now, &frame, side);
                self.hand_over(now, side, frame);
            }
            Verdict::Taken(reason) => self.observer.taken_behind(now, &frame, side, reason),
        }
        self.drain_gateway(now, side);
    }

    fn ask_gateway(
        &mut self,
        now: Instant,
        side: Side,
        direction: Direction,
        frame: &SimFrame,
    ) -> Verdict {
        match &mut self.gateways[side.index()] {
            Some(gateway) => gateway.handle_packet(now, LINK, direction, &frame.packet),
            None => Verdict::Pass,
        }
    }

    fn hand_over(&mut self, now: Instant, side: Side, frame: SimFrame) {
        self.observer.arrived(now, &frame);
        self.outbox.push_back((side, frame.packet));
    }

    fn drain_gateway(&mut self, now: Instant, side: Side) {
        let Some(gateway) = &mut self.gateways[side.index()] else {
            return;
        };
        let mut handed_over = Vec::new();
        while let Some(transmit) = gateway.poll_transmit() {
            let (packet, reason) = (Box::new(transmit.packet), transmit.reason);
            match transmit.direction {
                Direction::ToLink => {
                    let frame = self.observer.resent(now, side, packet, reason);
                    self.steps.push_back(Step::Enter(side, frame));
                }
                Direction::FromLink => {
                    handed_over.push(self.observer.rereceived(now, side, packet, reason));
                }
            }
        }
        // The counters say as much at the end of a run.
        while gateway.poll_event().is_some() {}
        self.gateways_due[side.index()] = due(Some(gateway));
        for frame in handed_over {
            self.hand_over(now, side, frame);
        }
    }

    fn drain_link(&mut self, now: Instant) {
        while let Some((way, frame)) = self.link.poll_transmit() {
            let side = Side::reached_by(way);
            if self.gateways[side.index()].is_none() && self.steps.is_empty() {
                // The only step is the next one.
                self.observer.crossed(now, &frame, side);
                self.hand_over(now, side, frame);
            } else {
                self.steps.push_back(Step::Leave(side, frame));
            }
        }
        while let Some(event) = self.link.poll_event() {
            match event {
                LinkEvent::Up => self.carrier(now, LinkState::Up),
                LinkEvent::Down => self.carrier(now, LinkState::Down),
                LinkEvent::Dropped { way, frame, reason } => {
                    self.observer.dropped(now, way, &frame, reason);
                    if let Some(cause) = known_at_the_near_end(reason) {
                        let near_end = Side::reached_by(way).peer();
                        self.steps.push_back(Step::Dropped(near_end, frame, cause));
                    }
                }
            }
        }
    }

    fn carrier(&mut self, now: Instant, state: LinkState) {
        self.observer.carrier(now, state == LinkState::Up);
        self.carrier.push_back(state);
        self.steps.push_back(Step::Carrier(state));
    }
}

/// When `gateway` wants to be called.
fn due(gateway: Option<&Gateway>) -> Instant {
    let timeout = gateway.and_then(Gateway::poll_timeout);
    timeout.map_or(Instant::FAR_FUTURE, |(at, _)| at)
}

/// What the link's own end knows of a drop; `None` for what is lost on the way.
fn known_at_the_near_end(reason: DropReason) -> Option<DropCause> {
    match reason {
        DropReason::LinkDown | DropReason::Flushed => Some(DropCause::Outage),
        DropReason::QueueFull => Some(DropCause::Congestion),
        DropReason::Loss | DropReason::InFlight => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_on_the_way_is_nobodys_to_know() {
        for reason in DropReason::ALL {
            let hidden = matches!(reason, DropReason::Loss | DropReason::InFlight);
            assert_eq!(known_at_the_near_end(reason).is_none(), hidden, "{reason}");
        }
    }
}
