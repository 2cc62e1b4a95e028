//! One link of the route between the two hosts, with a gateway at either or both ends.
//!
//! A pure machine like those that it is made of: the lab drives it in real time, the simulator in
//! virtual time. After each call of [`Path::start`], [`Path::handle_packet`] or
//! [`Path::handle_timeout`] the driver drains [`Path::poll_carrier`], then
//! [`Path::poll_transmit`], then reads [`Path::poll_timeout`].

mod access_point;
mod compressing;
mod ledger;
mod load;
mod observer;

pub(crate) use access_point::tell_update;
pub use ledger::Seen;
pub use load::Load;
pub use observer::{Counts, Watch};

use crate::side::Side;
use crate::trace::Trace;
use access_point::{AccessPoint, Blueprint};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use compressing::Ends;
use load::{Carried, Form};
use observer::Observer;
use outlast_base::time::{Duration, Instant};
use outlast_compression::Counters as CompressionCounters;
use outlast_gateway::counters::Counters as GatewayCounters;
use outlast_gateway::gateway::{DropCause, Event, Gateway, GatewayConfig, SilenceConfig};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::{
    Direction, Indicator, InterfaceId, LinkConfig as GatewayLink, LinkEvent as Notice, LinkId,
    LinkState,
};
use outlast_gateway::mechanisms::path::{HoldRules, PathMechanismKind, Verdict};
use outlast_link::{
    ConfiguredRate, Counters as LinkCounters, DropReason, Link, LinkConfig, LinkEvent, Way,
};

/// What each gateway calls the one link that it has.
pub(crate) const LINK: LinkId = LinkId::of_interface(InterfaceId(0));

/// The gateways at the two ends of a link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Gateways {
    /// What they do, by [`Side::index`].
    pub mechanisms: [PathMechanismKind; 2],
    /// How they learn of outages.
    pub indicators: Indicators,
    /// What they are told of the link's rate.
    pub rate: ConfiguredRate,
    /// Whether supervisor hosts share that rate out among connections.
    pub shares_rate: bool,
    /// Whether payload is compressed between the two ends, where the fixed one is a supervisor host.
    pub compresses: bool,
    /// Which rules of `hold` they obey.
    pub rules: HoldRules,
    /// The caps of each.
    pub limits: Limits,
}

/// How gateways learn that a link goes away and comes back.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Indicators {
    /// The link tells them at once, and which packets it dropped at its own end.
    #[default]
    Link,
    /// Nobody tells them: they go by what is not answered, and by the first packet afterwards.
    Silence,
}

impl From<[PathMechanismKind; 2]> for Gateways {
    /// Such as the link tells of its outages and its rate.
    fn from(mechanisms: [PathMechanismKind; 2]) -> Self {
        Self {
            mechanisms,
            ..Self::default()
        }
    }
}

/// The path, watched by `W`.
#[derive(Debug)]
pub struct Path<W: Watch> {
    link: Link<Carried<W::Load>>,
    compression: Option<Box<Ends>>,
    /// By [`Side::index`].
    gateways: [Option<Gateway>; 2],
    has_gateways: bool,
    /// What the gateway at the fixed end is made of, if there is one.
    blueprint: Option<Box<Blueprint>>,
    /// What the fixed end has besides, where the mobile host goes from gateway to gateway.
    access_point: Option<Box<AccessPoint<W::Load>>>,
    indicators: Indicators,
    /// When the gateways want to be called, by [`Side::index`].
    gateways_due: [Instant; 2],
    steps: VecDeque<Step<W::Load>>,
    outbox: VecDeque<(Side, W::Load)>,
    carrier: VecDeque<LinkState>,
    /// What the gateways have told of connections that moved again, by [`Side::index`].
    resumes: [Vec<Duration>; 2],
    observer: Observer<W>,
}

/// What is left of a path.
#[derive(Debug)]
pub struct PathOutcome<W> {
    /// Packets at the two ends.
    pub counts: Counts,
    /// What the link counted, to the mobile and to the fixed side.
    pub link: [LinkCounters; 2],
    /// What the gateways counted, by [`Side::index`], where there are any.
    pub gateways: [Option<GatewayCounters>; 2],
    /// What the two ends have compressed and restored, by [`Side::index`], if they do.
    pub compression: Option<[CompressionCounters; 2]>,
    /// How long after its link was back each connection resumed, as the gateways told, by
    /// [`Side::index`].
    pub resumes: [Vec<Duration>; 2],
    /// What happened to each packet, if that was asked for.
    pub trace: Option<Trace>,
    /// The one who watched.
    pub watch: W,
}

/// Something that one part of the path asks of another: exactly one call of a `handle_*` method,
/// after which that part is drained. Steps are taken in the order in which they were asked for.
#[derive(Debug)]
enum Step<L> {
    /// A packet enters the link at this side.
    Enter(Side, Carried<L>),
    /// A packet came out of the link at this side.
    Leave(Side, Carried<L>),
    /// The link dropped a packet that had entered at this side, and whose end knows.
    Dropped(Side, Carried<L>, DropCause),
    /// The link went up or down.
    Carrier(LinkState),
}

impl<W: Watch> Path<W> {
    /// A path at `now` with `gateways` at its two ends. What happens goes into `trace`, and what
    /// is seen to `watch` if `is_captured`.
    pub fn new(
        now: Instant,
        link: LinkConfig,
        gateways: impl Into<Gateways>,
        trace: Option<Trace>,
        is_captured: bool,
        watch: W,
    ) -> Self {
        let Gateways {
            mechanisms,
            indicators,
            rate,
            shares_rate,
            compresses,
            rules,
            limits,
        } = gateways.into();
        let supervises = matches!(
            mechanisms[Side::Fixed.index()],
            PathMechanismKind::MTcp | PathMechanismKind::MTcpAdaptive
        );
        let compression = (compresses && supervises).then(|| Ends::new(&link, rate));
        let silence = (indicators == Indicators::Silence).then(SilenceConfig::default);
        let blueprints = Side::BOTH.map(|side| {
            let mechanism = mechanisms[side.index()];
            let config = GatewayConfig {
                mechanism,
                limits,
                seed: link.seed,
                silence,
                ..GatewayConfig::default()
            };
            let rate = rate.of(link.pipe(side.outward()).rate);
            let link = GatewayLink { rate };
            (mechanism != PathMechanismKind::None).then_some(Blueprint {
                config,
                link,
                shares_rate,
                rules,
            })
        });
        let gateways = blueprints
            .each_ref()
            .map(|blueprint| blueprint.as_ref().map(|blueprint| blueprint.build(now)));
        let [at_fixed_end, _] = blueprints;
        Self {
            link: Link::new(link),
            compression,
            has_gateways: gateways.iter().any(Option::is_some),
            indicators,
            gateways_due: [&gateways[0], &gateways[1]].map(|gateway| due(gateway.as_ref())),
            gateways,
            blueprint: at_fixed_end.map(Box::new),
            access_point: None,
            steps: VecDeque::new(),
            outbox: VecDeque::new(),
            carrier: VecDeque::new(),
            resumes: [Vec::new(), Vec::new()],
            observer: Observer::new(trace, is_captured, watch),
        }
    }

    /// The outages begin to count: the workload's first byte is there.
    pub fn start(&mut self, now: Instant) {
        self.link.start(now);
        self.drain_link(now);
        self.take_steps(now);
    }

    /// A packet comes to the end of the link at `side`, from its host or from the next link.
    #[inline(always)]
    pub fn handle_packet(&mut self, now: Instant, side: Side, load: W::Load) {
        let frame = self.observer.sent(now, side, load);
        if self.has_gateways
            && (self.gateways[side.index()].is_some()
                || self.access_point.is_some()
                || self.compression.is_some())
        {
            self.offer(now, side, frame);
            self.take_steps(now);
            return;
        }
        self.link.handle_packet(now, side.outward(), frame);
        if self.link.has_news() {
            self.take_news(now);
        }
    }

    /// Puts a packet on the link that the gateway at `side` has no say in: one of a program beside it.
    pub(crate) fn send_past_gateway(&mut self, now: Instant, side: Side, load: W::Load) {
        let frame = self.observer.sent(now, side, load);
        self.link.handle_packet(now, side.outward(), frame);
        if self.link.has_news() {
            self.take_news(now);
        }
    }

    #[inline(never)]
    fn take_news(&mut self, now: Instant) {
        self.drain_link(now);
        self.take_steps(now);
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
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
                if side == Side::Fixed && self.access_point.is_some() {
                    self.wake_agents(now);
                }
                self.drain_gateway(now, side);
                self.take_steps(now);
            }
        }
    }

    /// Whether [`Self::poll_carrier`] or [`Self::poll_transmit`] has something.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        !self.outbox.is_empty() || !self.carrier.is_empty()
    }

    /// The link went up or down.
    #[must_use]
    pub fn poll_carrier(&mut self) -> Option<LinkState> {
        self.carrier.pop_front()
    }

    /// A packet for the host of a side.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<(Side, W::Load)> {
        self.outbox.pop_front()
    }

    /// When to call [`Self::handle_timeout`]; [`Instant::FAR_FUTURE`] if nothing is due.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Instant {
        let [one, other] = self.gateways_due;
        self.link.quiet_until().min(one).min(other)
    }

    /// The packet that comes to a host now, if nothing else happens now: neither does a gateway
    /// have a say in it, nor is anything else due.
    #[inline]
    pub(crate) fn take_lone_arrival(&mut self, now: Instant) -> Option<(Side, W::Load)> {
        if self.has_gateways {
            return None;
        }
        let (way, frame) = self.link.take_lone_arrival(now)?;
        let side = Side::reached_by(way);
        self.observer.crossed(now, &frame, side);
        self.observer.arrived(now, &frame);
        Some((side, frame.load))
    }

    /// Whether the link is up.
    #[must_use]
    pub fn is_up(&self) -> bool {
        self.link.is_up()
    }

    /// How often it went down so far.
    #[must_use]
    pub fn outages(&self) -> u64 {
        self.observer.outages
    }

    /// Packets at the two ends so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.observer.counts
    }

    /// What happened to each packet so far, if that was asked for.
    #[must_use]
    pub fn trace(&self) -> Option<&Trace> {
        self.observer.trace.as_ref()
    }

    /// The one who watches.
    #[must_use]
    pub fn watch(&self) -> &W {
        &self.observer.watch
    }

    /// The one who watches, whom the driver itself may tell something.
    #[must_use]
    pub fn watch_mut(&mut self) -> &mut W {
        &mut self.observer.watch
    }

    /// Nothing more is to come.
    #[must_use]
    pub fn finish(mut self) -> PathOutcome<W> {
        self.observer.close();
        let gateways = self.gateways.each_ref();
        PathOutcome {
            counts: self.observer.counts,
            link: Way::BOTH.map(|way| *self.link.counters(way)),
            gateways: gateways.map(|gateway| gateway.as_ref().map(|gateway| *gateway.counters())),
            compression: self.compression.map(|ends| ends.counters()),
            resumes: self.resumes,
            trace: self.observer.trace,
            watch: self.observer.watch,
        }
    }

    #[inline(never)]
    fn take_steps(&mut self, now: Instant) {
        while let Some(step) = self.steps.pop_front() {
            match step {
                Step::Enter(side, frame) => self.enter(now, side, frame),
                Step::Leave(side, frame) => self.leave(now, side, frame),
                Step::Dropped(_, frame, _) if matches!(frame.form, Form::Between) => {}
                Step::Dropped(side, frame, cause) => {
                    if let Some(gateway) = &mut self.gateways[side.index()]
                        && let Some(packet) = frame.load.packet()
                    {
                        gateway.handle_drop(now, LINK, packet, cause);
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
                if side == Side::Fixed && state == LinkState::Up {
                    self.note_arrival(now, false);
                }
                self.drain_gateway(now, side);
            }
        }
    }

    #[inline]
    fn enter(&mut self, now: Instant, side: Side, frame: Carried<W::Load>) {
        if let Some(access_point) = &mut self.access_point
            && access_point.forwards
            && side == Side::Fixed
        {
            access_point.strays.push_back(frame.load);
            return;
        }
        let frame = self.compress(now, side, frame);
        self.link.handle_packet(now, side.outward(), frame);
        if self.link.has_news() {
            self.drain_link(now);
        }
    }

    #[inline(never)]
    fn offer(&mut self, now: Instant, side: Side, frame: Carried<W::Load>) {
        match self.ask_gateway(now, side, Direction::ToLink, &frame) {
            Verdict::Pass => self.steps.push_back(Step::Enter(side, frame)),
            Verdict::Taken(reason) => self.observer.taken(&frame, side, reason),
        }
        self.drain_gateway(now, side);
    }

    fn leave(&mut self, now: Instant, side: Side, frame: Carried<W::Load>) {
        let Some(frame) = self.restore(now, side, frame) else {
            return;
        };
        if side == Side::Fixed && self.access_point.is_some() {
            self.note_arrival(now, true);
        }
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
        frame: &Carried<W::Load>,
    ) -> Verdict {
        match (&mut self.gateways[side.index()], frame.load.packet()) {
            (Some(gateway), Some(packet)) => gateway.handle_packet(now, LINK, direction, packet),
            _ => Verdict::Pass,
        }
    }

    fn hand_over(&mut self, now: Instant, side: Side, frame: Carried<W::Load>) {
        self.observer.arrived(now, &frame);
        self.outbox.push_back((side, frame.load));
    }

    fn drain_gateway(&mut self, now: Instant, side: Side) {
        let of_agent = match side == Side::Fixed && self.access_point.is_some() {
            true => self.attend(now),
            false => Vec::new(),
        };
        let Some(gateway) = &mut self.gateways[side.index()] else {
            return;
        };
        let mut handed_over = Vec::new();
        while let Some(transmit) = gateway.poll_transmit() {
            let (packet, reason) = (W::Load::from(transmit.packet), transmit.reason);
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
        // Of all else the counters say as much at the end of a run.
        while let Some(event) = gateway.poll_event() {
            if let Event::Resumed { after, .. } = event {
                self.resumes[side.index()].push(after);
            }
        }
        self.gateways_due[side.index()] = due(Some(gateway));
        for frame in handed_over {
            self.hand_over(now, side, frame);
        }
        if side == Side::Fixed && self.access_point.is_some() {
            for packet in of_agent {
                self.send_of_agent(now, packet);
            }
            self.gateways_due[side.index()] = self.fixed_end_due();
        }
    }

    fn drain_link(&mut self, now: Instant) {
        while let Some((way, frame)) = self.link.poll_transmit() {
            let side = Side::reached_by(way);
            if self.gateways[side.index()].is_none()
                && self.steps.is_empty()
                && self.compression.is_none()
            {
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
                    if let Some(cause) = self.indicators.tell_of(reason) {
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
        if self.is_told_by_link() {
            self.steps.push_back(Step::Carrier(state));
        }
    }

    fn is_told_by_link(&self) -> bool {
        self.indicators == Indicators::Link
    }
}

/// When `gateway` wants to be called.
fn due(gateway: Option<&Gateway>) -> Instant {
    let timeout = gateway.and_then(Gateway::poll_timeout);
    timeout.map_or(Instant::FAR_FUTURE, |(at, _)| at)
}

impl Indicators {
    /// What the link's own end knows of a drop; `None` for what is lost on the way, and for an
    /// outage that nobody tells of.
    fn tell_of(self, reason: DropReason) -> Option<DropCause> {
        match reason {
            DropReason::LinkDown | DropReason::Flushed => {
                (self == Self::Link).then_some(DropCause::Outage)
            }
            DropReason::QueueFull => Some(DropCause::Congestion),
            DropReason::Loss | DropReason::InFlight => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_on_the_way_is_nobodys_to_know() {
        for reason in DropReason::ALL {
            let hidden = matches!(reason, DropReason::Loss | DropReason::InFlight);
            let told = Indicators::Link.tell_of(reason);
            assert_eq!(told.is_none(), hidden, "{reason}");
            let silent = Indicators::Silence.tell_of(reason);
            assert_eq!(silent, told.filter(|cause| *cause == DropCause::Congestion));
        }
    }
}
