//! The path between the two hosts: the link with a gateway at either or both ends.
//!
//! A pure machine like those that it is made of; the emulator drives it in real time. After each
//! call of [`Path::handle_packet`] or [`Path::handle_timeout`] the driver drains
//! [`Path::poll_transmit`] and arms a timer for [`Path::poll_timeout`].

use crate::frame::{Content, LabFrame};
use crate::observer::Observer;
use bytes::Bytes;
use outlast_core::gateway::{DropCause, Gateway, GatewayConfig};
use outlast_core::link::{
    Direction, Indicator, InterfaceId, LinkConfig as GatewayLink, LinkEvent as Notice, LinkId,
    LinkState,
};
use outlast_core::mechanisms::path::{PathMechanismKind, Verdict};
use outlast_core::time::Instant;
use outlast_link::{DropReason, Link, LinkConfig, LinkEvent, Way};
use outlast_world::Side;
use std::collections::VecDeque;

/// What each gateway calls the one link that it has.
const LINK: LinkId = LinkId::whole(InterfaceId(0));

/// The path.
#[derive(Debug)]
pub(crate) struct Path {
    link: Link<LabFrame>,
    /// By [`Side::index`].
    gateways: [Option<Gateway>; 2],
    steps: VecDeque<Step>,
    outbox: VecDeque<(Side, Bytes)>,
    pub(crate) observer: Observer,
}

/// Something that one part of the path asks of another: exactly one call of a `handle_*` method,
/// after which that part is drained. Steps are taken in the order in which they were asked for.
#[derive(Debug)]
enum Step {
    /// A host's packet comes to the gateway of its side.
    Offer(Side, LabFrame),
    /// A packet enters the link at this side.
    Enter(Side, LabFrame),
    /// A packet came out of the link at this side.
    Leave(Side, LabFrame),
    /// The link dropped a packet that had entered at this side, and whose end knows.
    Dropped(Side, LabFrame, DropCause),
    /// The link went up or down.
    Carrier(LinkState),
}

impl Path {
    /// A path at `now` with what `mechanisms` (by [`Side::index`]) name at its two ends.
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
            gateways,
            steps: VecDeque::new(),
            outbox: VecDeque::new(),
            observer,
        }
    }

    /// The host of `side` has sent a packet.
    pub(crate) fn handle_packet(&mut self, now: Instant, side: Side, bytes: Bytes) {
        let content = Content::of(bytes);
        if self.observer.is_first_byte(&content) {
            self.observer.start(now);
            self.link.start(now);
            self.drain_link(now);
        }
        let frame = self.observer.sent(now, side, content);
        self.steps.push_back(Step::Offer(side, frame));
        self.take_steps(now);
    }

    /// Time has come to `now`.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.link.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.link.handle_timeout(now);
            self.drain_link(now);
            self.take_steps(now);
        }
        for side in Side::BOTH {
            if let Some(gateway) = &mut self.gateways[side.index()]
                && gateway.poll_timeout().is_some_and(|(at, _)| at <= now)
            {
                gateway.handle_timeout(now);
                self.drain_gateway(now, side);
                self.take_steps(now);
            }
        }
    }

    /// A packet for the host of a side.
    #[must_use]
    pub(crate) fn poll_transmit(&mut self) -> Option<(Side, Bytes)> {
        self.outbox.pop_front()
    }

    /// When to call [`Self::handle_timeout`].
    #[must_use]
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let gateways = self.gateways.iter().flatten();
        let gateways = gateways.filter_map(|gateway| Some(gateway.poll_timeout()?.0));
        self.link
            .poll_timeout()
            .map(|(at, _)| at)
            .into_iter()
            .chain(gateways)
            .min()
    }

    pub(crate) fn link(&self) -> &Link<LabFrame> {
        &self.link
    }

    /// The gateway at `side`.
    pub(crate) fn gateway(&self, side: Side) -> Option<&Gateway> {
        self.gateways[side.index()].as_ref()
    }

    fn take_steps(&mut self, now: Instant) {
        while let Some(step) = self.steps.pop_front() {
            match step {
                Step::Offer(side, frame) => self.offer(now, side, frame),
                Step::Enter(side, frame) => {
                    self.link.handle_packet(now, side.outward(), frame);
                    self.drain_link(now);
                }
                Step::Leave(side, frame) => self.leave(now, side, frame),
                Step::Dropped(side, frame, cause) => {
                    if let Some(gateway) = &mut self.gateways[side.index()]
                        && let Some(packet) = frame.content.packet()
                    {
                        gateway.handle_drop(now, LINK, packet, cause);
                        self.drain_gateway(now, side);
                    }
                }
                Step::Carrier(state) => {
                    for side in Side::BOTH {
                        if let Some(gateway) = &mut self.gateways[side.index()] {
                            let indicator = Indicator::Carrier;
                            gateway.handle_link(
                                now,
                                Notice {
                                    link: LINK,
                                    state,
                                    indicator,
                                },
                            );
                            self.drain_gateway(now, side);
                        }
                    }
                }
            }
        }
    }

    fn offer(&mut self, now: Instant, side: Side, frame: LabFrame) {
        match self.ask_gateway(now, side, Direction::ToLink, &frame) {
            Verdict::Pass => self.steps.push_back(Step::Enter(side, frame)),
            Verdict::Taken(reason) => self.observer.taken(&frame, side, reason),
        }
        self.drain_gateway(now, side);
    }

    fn leave(&mut self, now: Instant, side: Side, frame: LabFrame) {
        match self.ask_gateway(now, side, Direction::FromLink, &frame) {
            Verdict::Pass => {
                self.observer.crossed(now, &frame, side);
                self.hand_over(now, side, &frame);
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
        frame: &LabFrame,
    ) -> Verdict {
        match (&mut self.gateways[side.index()], frame.content.packet()) {
            (Some(gateway), Some(packet)) => gateway.handle_packet(now, LINK, direction, packet),
            _ => Verdict::Pass,
        }
    }

    fn hand_over(&mut self, now: Instant, side: Side, frame: &LabFrame) {
        self.observer.arrived(now, frame, side);
        self.outbox.push_back((side, frame.content.bytes()));
    }

    fn drain_gateway(&mut self, now: Instant, side: Side) {
        let Some(gateway) = &mut self.gateways[side.index()] else {
            return;
        };
        let mut handed_over = Vec::new();
        while let Some(transmit) = gateway.poll_transmit() {
            let (packet, reason) = (transmit.packet, transmit.reason);
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
        // A status page would show the events; the counters say as much at the end of a run.
        while gateway.poll_event().is_some() {}
        for frame in handed_over {
            self.hand_over(now, side, &frame);
        }
    }

    fn drain_link(&mut self, now: Instant) {
        while let Some((way, frame)) = self.link.poll_transmit() {
            self.steps
                .push_back(Step::Leave(Side::reached_by(way), frame));
        }
        while let Some(event) = self.link.poll_event() {
            match event {
                LinkEvent::Up => self.carrier(now, LinkState::Up),
                LinkEvent::Down => self.carrier(now, LinkState::Down),
                LinkEvent::Dropped { way, frame, reason } => {
                    self.observer.dropped(now, way, &frame, reason);
                    if let Some(cause) = known_at_the_near_end(reason) {
                        self.steps
                            .push_back(Step::Dropped(near_end(way), frame, cause));
                    }
                }
            }
        }
    }
}

impl Path {
    fn carrier(&mut self, now: Instant, state: LinkState) {
        self.observer.carrier(now, state == LinkState::Up);
        self.steps.push_back(Step::Carrier(state));
    }
}

/// The side at which packets enter `way`.
fn near_end(way: Way) -> Side {
    Side::reached_by(way).peer()
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
mod tests;
