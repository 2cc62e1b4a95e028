//! The link itself: two pipes and one schedule of outages.

use crate::config::{Frame, LinkConfig, Way, WhileDown};
use crate::outage::{Outage, OutageProcess, Schedule};
use crate::pipe::{Counters, Outlet, Pipe};
use alloc::collections::VecDeque;
use core::fmt;
use outlast_base::time::Instant;

/// A link that goes away and comes back.
///
/// After each call of [`handle_packet`](Self::handle_packet),
/// [`handle_timeout`](Self::handle_timeout) or [`start`](Self::start) the driver drains
/// [`poll_transmit`](Self::poll_transmit), then [`poll_event`](Self::poll_event), then arms a timer
/// for [`poll_timeout`](Self::poll_timeout). Time never goes back. A timer that fires late costs no
/// capacity: everything happens at its own time, and only the hand-over is late.
///
/// What happens at one instant happens in this order: the rates change, the link comes up, frames arrive at the far
/// end, the last bit of a frame leaves, the link goes down, a frame is handed in.
#[derive(Debug)]
pub struct Link<F> {
    config: LinkConfig,
    pipes: [Pipe<F>; 2],
    outages: Option<Outages>,
    /// When the link next goes down, comes up or changes its rates; [`Instant::FAR_FUTURE`] if it
    /// does not.
    next_transition: Instant,
    /// How many changes of the rates have taken place.
    rate_changes: usize,
    /// Nothing happens by itself before this.
    quiet_until: Instant,
    down: bool,
    transmit: VecDeque<(Way, F)>,
    events: VecDeque<LinkEvent<F>>,
}

/// The outage process, once started.
#[derive(Debug)]
struct Outages {
    origin: Instant,
    schedule: Schedule,
    /// The outage that the link is in, or else the one that comes next.
    current: Option<Outage>,
}

/// What a link tells.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum LinkEvent<F> {
    /// The link has come up.
    Up,
    /// The link has gone down. What that dropped follows.
    Down,
    /// A frame is gone.
    Dropped {
        /// Where it was going.
        way: Way,
        /// The frame.
        frame: F,
        /// Why.
        reason: DropReason,
    },
}

/// Why a link dropped a frame.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum DropReason {
    /// The queue was full.
    QueueFull,
    /// Random loss. It is told when the frame would have arrived.
    Loss,
    /// It came while the link was down.
    LinkDown,
    /// It was in the queue or being sent when the link went down.
    Flushed,
    /// It was on its way when the link went down, see [`InFlight::Lost`](crate::InFlight::Lost).
    InFlight,
}

impl DropReason {
    /// Every reason.
    pub const ALL: [Self; 5] = [
        Self::QueueFull,
        Self::Loss,
        Self::LinkDown,
        Self::Flushed,
        Self::InFlight,
    ];

    /// The place of this reason in [`Self::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::QueueFull => "queue full",
            Self::Loss => "random loss",
            Self::LinkDown => "link down",
            Self::Flushed => "flushed when the link went down",
            Self::InFlight => "on its way when the link went down",
        })
    }
}

/// Why a link wants to be called.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// It comes up.
    Up,
    /// It goes down.
    Down,
    /// Its rates change.
    Rate,
    /// A frame comes to the end of its way.
    Arrival(Way),
    /// A frame that was held back comes out.
    Release(Way),
}

impl<F: Frame> Link<F> {
    /// A link that is up, and stays so until [`start`](Self::start).
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        let pipes = Way::BOTH.map(|way| Pipe::new(*config.pipe(way), config.seed, way));
        Self {
            config,
            pipes,
            outages: None,
            next_transition: Instant::FAR_FUTURE,
            rate_changes: 0,
            quiet_until: Instant::FAR_FUTURE,
            down: false,
            transmit: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The outage process begins to count, which is when the workload's first byte is sent. A
    /// second call does nothing.
    pub fn start(&mut self, now: Instant) {
        if self.outages.is_some() {
            return;
        }
        self.advance(now);
        if let OutageProcess::Deliveries { trace, .. } = &self.config.outages {
            for pipe in &mut self.pipes {
                pipe.transmitter().follow(trace.clone(), now);
            }
        }
        let mut schedule = self.config.schedule();
        let current = schedule.next();
        self.outages = Some(Outages {
            origin: now,
            schedule,
            current,
        });
        self.find_next_transition();
        self.note_next();
        self.advance(now);
    }

    /// The near end sends `frame`.
    #[inline]
    pub fn handle_packet(&mut self, now: Instant, way: Way, frame: F) {
        self.advance(now);
        let (down, while_down) = (self.down, self.config.while_down);
        let (pipe, mut exit) = self.pipe_and_exit(way);
        if down {
            match while_down {
                WhileDown::Dropped => pipe.refuse(frame, &mut exit),
                WhileDown::Queued => pipe.park(frame, &mut exit),
            }
            return;
        }
        pipe.accept(now, frame, &mut exit);
        let due = pipe.quiet_until();
        if due > now {
            self.quiet_until = self.quiet_until.min(due);
        } else {
            // Without delay and at an unlimited rate it is already there.
            pipe.deliver_until(now, &mut exit);
            self.note_next();
        }
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.advance(now);
    }

    /// Nothing happens by itself before this: the time of [`poll_timeout`](Self::poll_timeout), and
    /// [`Instant::FAR_FUTURE`] if nothing is due.
    #[inline]
    #[must_use]
    pub const fn quiet_until(&self) -> Instant {
        self.quiet_until
    }

    /// Whether [`poll_transmit`](Self::poll_transmit) or [`poll_event`](Self::poll_event) has
    /// something.
    #[inline]
    #[must_use]
    pub fn has_news(&self) -> bool {
        !self.transmit.is_empty() || !self.events.is_empty()
    }

    /// The frame that comes out of the far end at `now`, if nothing else happens by then: the same
    /// as [`handle_timeout`](Self::handle_timeout) and then [`poll_transmit`](Self::poll_transmit),
    /// in fewer steps. Otherwise nothing has changed.
    #[inline]
    pub fn take_lone_arrival(&mut self, now: Instant) -> Option<(Way, F)> {
        if self.has_news() || self.next_transition <= now {
            return None;
        }
        let [to_mobile, to_fixed] = &mut self.pipes;
        let arrival = match (
            to_mobile.quiet_until() <= now,
            to_fixed.quiet_until() <= now,
        ) {
            (true, false) => (Way::ToMobile, to_mobile.take_lone_arrival(now)?),
            (false, true) => (Way::ToFixed, to_fixed.take_lone_arrival(now)?),
            _ => return None,
        };
        self.note_next();
        Some(arrival)
    }

    /// A frame that has come out of the far end.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<(Way, F)> {
        self.transmit.pop_front()
    }

    /// What else has happened.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<LinkEvent<F>> {
        self.events.pop_front()
    }

    /// When to call [`handle_timeout`](Self::handle_timeout) next, and why.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, Reason)> {
        let at = self.quiet_until;
        if at == Instant::FAR_FUTURE {
            return None;
        }
        Some((at, self.reason_at(at)))
    }

    /// Why the link wants to be called at `at`, which is when it next does.
    fn reason_at(&self, at: Instant) -> Reason {
        if self.next_transition == at {
            return match self.down {
                _ if self.next_rate_change() == at => Reason::Rate,
                true => Reason::Up,
                false => Reason::Down,
            };
        }
        let [to_mobile, _] = &self.pipes;
        let way = match to_mobile.quiet_until() == at {
            true => Way::ToMobile,
            false => Way::ToFixed,
        };
        match self.pipes[way.index()].next_due() {
            Some((_, true)) => Reason::Release(way),
            _ => Reason::Arrival(way),
        }
    }

    /// Whether the link is up, as of the latest call.
    #[must_use]
    pub const fn is_up(&self) -> bool {
        !self.down
    }

    /// What it was made from.
    #[must_use]
    pub const fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// How many frames wait to go `way`, without the one being sent.
    #[must_use]
    pub fn queued(&self, now: Instant, way: Way) -> usize {
        self.pipes[way.index()].queued(now)
    }

    /// What has gone `way` so far.
    #[must_use]
    pub const fn counters(&self, way: Way) -> &Counters {
        self.pipes[way.index()].counters()
    }

    /// Lets everything happen that is due by `now`, in order.
    #[inline]
    fn advance(&mut self, now: Instant) {
        if now >= self.quiet_until {
            self.catch_up(now);
        }
    }

    #[inline(never)]
    fn catch_up(&mut self, now: Instant) {
        while self.next_transition <= now {
            let at = self.next_transition;
            self.deliver_until(at);
            if self.next_rate_change() == at {
                self.change_rates(at);
            } else {
                self.change_state(at);
            }
        }
        self.deliver_until(now);
        self.note_next();
    }

    fn note_next(&mut self) {
        let [one, other] = &self.pipes;
        let due = one.quiet_until().min(other.quiet_until());
        self.quiet_until = self.next_transition.min(due);
    }

    fn find_next_transition(&mut self) {
        let next = self.outages.as_ref().and_then(|outages| {
            let outage = outages.current?;
            let at = if self.down { outage.end? } else { outage.start };
            Some(outages.origin + at)
        });
        self.next_transition = next
            .unwrap_or(Instant::FAR_FUTURE)
            .min(self.next_rate_change());
    }

    /// When the rates next change; [`Instant::FAR_FUTURE`] if they do not.
    fn next_rate_change(&self) -> Instant {
        let change = self.config.rate_changes.get(self.rate_changes);
        let origin = self.outages.as_ref().map(|outages| outages.origin);
        match (origin, change) {
            (Some(origin), Some(change)) => origin + change.at,
            _ => Instant::FAR_FUTURE,
        }
    }

    fn change_rates(&mut self, now: Instant) {
        let change = self.config.rate_changes[self.rate_changes];
        self.rate_changes += 1;
        let is_up = !self.down;
        for way in Way::BOTH {
            if let Some(rate) = change.rate(way) {
                self.pipes[way.index()].change_rate(now, rate, is_up);
            }
        }
        self.find_next_transition();
    }

    fn deliver_until(&mut self, now: Instant) {
        for way in Way::BOTH {
            let (pipe, mut exit) = self.pipe_and_exit(way);
            pipe.deliver_until(now, &mut exit);
        }
    }

    fn change_state(&mut self, now: Instant) {
        self.down = !self.down;
        if self.down {
            self.events.push_back(LinkEvent::Down);
            let LinkConfig {
                in_flight,
                while_down,
                ..
            } = self.config;
            for way in Way::BOTH {
                let (pipe, mut exit) = self.pipe_and_exit(way);
                pipe.go_down(now, in_flight, while_down, &mut exit);
            }
        } else {
            self.events.push_back(LinkEvent::Up);
            for pipe in &mut self.pipes {
                pipe.come_up(now);
            }
            if let Some(outages) = &mut self.outages {
                outages.current = outages.schedule.next();
            }
        }
        self.find_next_transition();
    }

    fn pipe_and_exit(&mut self, way: Way) -> (&mut Pipe<F>, Exit<'_, F>) {
        let exit = Exit {
            way,
            transmit: &mut self.transmit,
            events: &mut self.events,
        };
        (&mut self.pipes[way.index()], exit)
    }
}

/// The far end of one pipe.
struct Exit<'a, F> {
    way: Way,
    transmit: &'a mut VecDeque<(Way, F)>,
    events: &'a mut VecDeque<LinkEvent<F>>,
}

impl<F> Outlet<F> for Exit<'_, F> {
    fn deliver(&mut self, frame: F) {
        self.transmit.push_back((self.way, frame));
    }

    fn drop_frame(&mut self, frame: F, reason: DropReason) {
        self.events.push_back(LinkEvent::Dropped {
            way: self.way,
            frame,
            reason,
        });
    }
}
