//! One direction of a link.
//!
//! A frame's times are known when it is taken: it begins to be sent when its predecessor is out,
//! and arrives `delay` after its own last bit is out. So one queue, in order of arrival, holds
//! what waits, what is being sent and what is on its way, and a frame costs one timer.

use crate::config::{Frame, InFlight, PipeConfig, Way, WhileDown};
use crate::link::DropReason;
use crate::transmitter::Transmitter;
use alloc::collections::VecDeque;
use alloc::format;
use outlast_base::random::Stream;
use outlast_base::time::{Duration, Instant, saturating_nanos};
use outlast_base::units::{BitRate, ByteCount};

/// How many later frames overtake one that is held back, if so many come in time.
pub const REORDER_DEPTH: u8 = 3;

/// A frame that is held back comes out after [`REORDER_DEPTH`] others have overtaken it, or this
/// long after it was due, if that is sooner. On pipes where [`REORDER_DEPTH`]` + 1` frames of its
/// size take longer than this to send, that time is used instead. Frames that are held back keep
/// their order among themselves, so one may come out a little sooner with a later one.
pub const REORDER_HOLD: Duration = Duration::from_millis(10);

/// The most frames that one direction holds, waiting and on their way; more are dropped as if the
/// queue were full. It matters only on pipes of vast rate and delay, which hold little else back.
pub const MAX_FRAMES: usize = 1 << 20;

/// What one direction of a link has seen so far, in frames.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Handed to the link.
    pub accepted: u64,
    /// Come out at the far end, copies included.
    pub delivered: u64,
    /// Bytes of what was delivered.
    pub delivered_bytes: ByteCount,
    /// Copies that the link made.
    pub duplicated: u64,
    /// Held back on purpose.
    pub reordered: u64,
    /// Dropped, by [`DropReason::index`].
    dropped: [u64; DropReason::ALL.len()],
}

impl Counters {
    /// Dropped for `reason`.
    #[must_use]
    pub const fn dropped(&self, reason: DropReason) -> u64 {
        self.dropped[reason.index()]
    }

    /// Dropped for any reason.
    #[must_use]
    pub fn dropped_in_all(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

/// Where a pipe puts what leaves it.
pub(crate) trait Outlet<F> {
    fn deliver(&mut self, frame: F);
    fn drop_frame(&mut self, frame: F, reason: DropReason);
}

#[derive(Debug)]
pub(crate) struct Pipe<F> {
    config: PipeConfig,
    transmitter: Transmitter,
    /// In order of arrival, which is the order of each of their times.
    frames: VecDeque<Entry<F>>,
    /// How many of the last `frames` had not begun to be sent when this was last looked at.
    waiting: usize,
    held: VecDeque<Held<F>>,
    /// Nothing comes out before this.
    quiet_until: Instant,
    /// The configured delay, in ns.
    delay: u64,
    /// Every frame that is sent arrives, once and in order.
    is_faithful: bool,
    chance: Chances,
    counters: Counters,
}

#[derive(Debug)]
struct Entry<F> {
    /// When its first bit leaves; like the other two, [`Instant::FAR_FUTURE`] while it waits for the
    /// link to come up.
    begins: Instant,
    /// When its last bit is out.
    sent: Instant,
    /// When it is at the far end.
    due: Instant,
    frame: F,
}

#[derive(Debug)]
struct Held<F> {
    release_at: Instant,
    overtaken: u8,
    frame: F,
}

#[derive(Debug)]
struct Chances {
    loss: Stream,
    duplicate: Stream,
    reorder: Stream,
}

impl<F: Frame> Pipe<F> {
    pub(crate) fn new(config: PipeConfig, seed: u64, way: Way) -> Self {
        let name = match way {
            Way::ToMobile => "to_mobile",
            Way::ToFixed => "to_fixed",
        };
        let stream = |component| Stream::new(seed, &format!("link.{name}.{component}"));
        Self {
            transmitter: Transmitter::new(config.rate),
            frames: VecDeque::new(),
            waiting: 0,
            held: VecDeque::new(),
            quiet_until: Instant::FAR_FUTURE,
            delay: saturating_nanos(config.delay),
            is_faithful: config.is_faithful(),
            chance: Chances {
                loss: stream("loss"),
                duplicate: stream("duplicate"),
                reorder: stream("reorder"),
            },
            counters: Counters::default(),
            config,
        }
    }

    pub(crate) fn transmitter(&mut self) -> &mut Transmitter {
        &mut self.transmitter
    }

    pub(crate) const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Frames that wait for the transmitter at `now`, without the one being sent.
    pub(crate) fn queued(&self, now: Instant) -> usize {
        self.frames.len() - self.frames.partition_point(|entry| entry.begins <= now)
    }

    /// Counts the frames that wait for the transmitter at `now`.
    ///
    /// It goes on from the last count, so that its cost does not grow with the queue.
    #[inline]
    fn count_waiting(&mut self, now: Instant) -> usize {
        while self.waiting > 0 && self.frames[self.frames.len() - self.waiting].begins <= now {
            self.waiting -= 1;
        }
        self.waiting
    }

    /// Takes `frame` into the queue, or drops it if that is full. What was due is delivered.
    #[inline]
    pub(crate) fn accept(&mut self, now: Instant, frame: F, outlet: &mut impl Outlet<F>) {
        self.counters.accepted += 1;
        let most = self.config.queue.max(1);
        // Not fewer than are really waiting: they are counted when it matters.
        let queue_full = self.waiting >= most && self.count_waiting(now) >= most;
        let room = self.frames.len() + self.held.len() < MAX_FRAMES;
        if !room || queue_full && self.transmitter.is_busy(now) {
            self.discard(frame, DropReason::QueueFull, outlet);
            return;
        }
        let (begins, sent) = self.transmitter.send(now, frame.wire_len());
        let due = sent.after_nanos(self.delay);
        self.quiet_until = self.quiet_until.min(due);
        self.frames.push_back(Entry {
            begins,
            sent,
            due,
            frame,
        });
        self.waiting += 1;
    }

    /// Drops `frame`, which came while the link was down.
    #[inline(never)]
    pub(crate) fn refuse(&mut self, frame: F, outlet: &mut impl Outlet<F>) {
        self.counters.accepted += 1;
        self.discard(frame, DropReason::LinkDown, outlet);
    }

    /// Takes `frame`, which came while the link was down, into the queue until the link is up.
    #[inline(never)]
    pub(crate) fn park(&mut self, frame: F, outlet: &mut impl Outlet<F>) {
        self.counters.accepted += 1;
        let room = self.frames.len() + self.held.len() < MAX_FRAMES;
        if !room || self.waiting >= self.config.queue.max(1) {
            self.discard(frame, DropReason::QueueFull, outlet);
            return;
        }
        self.frames.push_back(Entry {
            begins: Instant::FAR_FUTURE,
            sent: Instant::FAR_FUTURE,
            due: Instant::FAR_FUTURE,
            frame,
        });
        self.waiting += 1;
    }

    /// The link is up at `now`: what was queued meanwhile is sent.
    pub(crate) fn come_up(&mut self, now: Instant) {
        self.plan_from(now, self.frames.len() - self.waiting);
    }

    /// The transmitter sends at `rate` from `now` on; the frame being sent keeps its time.
    pub(crate) fn change_rate(&mut self, now: Instant, rate: BitRate, is_up: bool) {
        let waiting = if is_up {
            self.count_waiting(now)
        } else {
            self.waiting
        };
        let first = self.frames.len() - waiting;
        let before = first.checked_sub(1).map(|last| self.frames[last].sent);
        let free_at = before.map_or(now, |sent| sent.max(now));
        self.transmitter.change_rate(rate, free_at);
        if is_up {
            self.plan_from(now, first);
        }
    }

    /// Gives all frames from `first` on the times at which they are sent if that begins at `now`.
    fn plan_from(&mut self, now: Instant, first: usize) {
        for entry in self.frames.range_mut(first..) {
            (entry.begins, entry.sent) = self.transmitter.send(now, entry.frame.wire_len());
            entry.due = entry.sent.after_nanos(self.delay);
        }
        self.note_next_due();
    }

    /// When the next frame comes out, and whether it is one that was held back.
    pub(crate) fn next_due(&self) -> Option<(Instant, bool)> {
        let on_time = self.frames.front().map(|entry| (entry.due, false));
        let on_time = on_time.filter(|&(due, _)| due < Instant::FAR_FUTURE);
        if self.held.is_empty() {
            return on_time;
        }
        let held = self.held.iter().map(|held| (held.release_at, true)).min();
        on_time.into_iter().chain(held).min()
    }

    /// Nothing comes out before this.
    #[inline]
    pub(crate) const fn quiet_until(&self) -> Instant {
        self.quiet_until
    }

    /// Lets out all that is due by `now`.
    #[inline]
    pub(crate) fn deliver_until(&mut self, now: Instant, outlet: &mut impl Outlet<F>) {
        if now < self.quiet_until {
            return;
        }
        if self.is_faithful {
            self.deliver_in_order(now, outlet);
        } else {
            self.deliver_by_chance(now, outlet);
        }
        self.note_next_due();
    }

    fn deliver_in_order(&mut self, now: Instant, outlet: &mut impl Outlet<F>) {
        while self.frames.front().is_some_and(|entry| entry.due <= now) {
            if let Some(entry) = self.frames.pop_front() {
                self.deliver(entry.frame, outlet);
            }
        }
        self.waiting = self.waiting.min(self.frames.len());
    }

    /// The first frame, which is due by `now`, if it is the only one that is and comes out for
    /// certain. Otherwise nothing has changed.
    #[inline]
    pub(crate) fn take_lone_arrival(&mut self, now: Instant) -> Option<F> {
        debug_assert!(self.quiet_until <= now, "the first frame is due");
        if !self.is_faithful {
            return None;
        }
        let next = self
            .frames
            .get(1)
            .map_or(Instant::FAR_FUTURE, |entry| entry.due);
        if next <= now {
            return None;
        }
        let entry = self.frames.pop_front()?;
        self.waiting = self.waiting.min(self.frames.len());
        self.quiet_until = next;
        self.count_delivered(&entry.frame);
        Some(entry.frame)
    }

    fn deliver_by_chance(&mut self, now: Instant, outlet: &mut impl Outlet<F>) {
        while let Some((due, held)) = self.next_due().filter(|&(due, _)| due <= now) {
            if held {
                self.release_held(due, outlet);
            } else if let Some(entry) = self.frames.pop_front() {
                self.waiting = self.waiting.min(self.frames.len());
                self.arrive(due, entry, outlet);
            }
        }
    }

    /// The link goes down at `now`. What was due is delivered.
    pub(crate) fn go_down(
        &mut self,
        now: Instant,
        in_flight: InFlight,
        while_down: WhileDown,
        outlet: &mut impl Outlet<F>,
    ) {
        let mut sent = self.frames.partition_point(|entry| entry.sent <= now);
        if in_flight == InFlight::Lost {
            while let Some(held) = self.held.pop_front() {
                self.discard(held.frame, DropReason::InFlight, outlet);
            }
            for entry in self.frames.drain(..sent) {
                self.counters.dropped[DropReason::InFlight.index()] += 1;
                outlet.drop_frame(entry.frame, DropReason::InFlight);
            }
            sent = 0;
        }
        match while_down {
            WhileDown::Dropped => {
                for entry in self.frames.drain(sent..) {
                    self.counters.dropped[DropReason::Flushed.index()] += 1;
                    outlet.drop_frame(entry.frame, DropReason::Flushed);
                }
            }
            WhileDown::Queued => {
                for entry in self.frames.range_mut(sent..) {
                    entry.begins = Instant::FAR_FUTURE;
                    entry.sent = Instant::FAR_FUTURE;
                    entry.due = Instant::FAR_FUTURE;
                }
            }
        }
        self.waiting = self.frames.len() - sent;
        self.transmitter.flush(now);
        self.note_next_due();
    }

    fn note_next_due(&mut self) {
        self.quiet_until = self.next_due().map_or(Instant::FAR_FUTURE, |(due, _)| due);
    }

    /// A frame reaches the far end at `now`, unless chance has it otherwise.
    fn arrive(&mut self, now: Instant, entry: Entry<F>, outlet: &mut impl Outlet<F>) {
        if self.chance.loss.chance(self.config.loss) {
            self.discard(entry.frame, DropReason::Loss, outlet);
            return;
        }
        let copied = self.chance.duplicate.chance(self.config.duplicate);
        let copy = copied.then(|| entry.frame.clone());
        let held = if self.chance.reorder.chance(self.config.reorder) {
            Some(self.hold(now, entry))
        } else {
            self.deliver(entry.frame, outlet);
            None
        };
        if let Some(copy) = copy {
            self.counters.duplicated += 1;
            self.deliver(copy, outlet);
        }
        if copied || held.is_none() {
            self.overtake_held(outlet);
        }
        self.held.extend(held);
    }

    fn hold(&mut self, now: Instant, entry: Entry<F>) -> Held<F> {
        self.counters.reordered += 1;
        let followers = entry.sent.since(entry.begins) * (u32::from(REORDER_DEPTH) + 1);
        let release_at = now + REORDER_HOLD.max(followers);
        Held {
            release_at,
            overtaken: 0,
            frame: entry.frame,
        }
    }

    /// Counts one frame past those that are held, and lets out those that have had enough.
    fn overtake_held(&mut self, outlet: &mut impl Outlet<F>) {
        for held in &mut self.held {
            held.overtaken += 1;
        }
        // Whoever was held first has been overtaken most.
        while self
            .held
            .front()
            .is_some_and(|held| held.overtaken >= REORDER_DEPTH)
        {
            if let Some(held) = self.held.pop_front() {
                self.deliver(held.frame, outlet);
            }
        }
    }

    /// Lets out the first frame that has been held long enough, after those held before it.
    fn release_held(&mut self, due: Instant, outlet: &mut impl Outlet<F>) {
        let released = self.held.iter().position(|held| held.release_at <= due);
        for _ in 0..released.map_or(0, |index| index + 1) {
            if let Some(held) = self.held.pop_front() {
                self.deliver(held.frame, outlet);
            }
        }
    }

    #[inline]
    fn count_delivered(&mut self, frame: &F) {
        self.counters.delivered += 1;
        self.counters.delivered_bytes.0 += frame.wire_len().as_u64();
    }

    fn deliver(&mut self, frame: F, outlet: &mut impl Outlet<F>) {
        self.count_delivered(&frame);
        outlet.deliver(frame);
    }

    #[inline(never)]
    fn discard(&mut self, frame: F, reason: DropReason, outlet: &mut impl Outlet<F>) {
        self.counters.dropped[reason.index()] += 1;
        outlet.drop_frame(frame, reason);
    }
}
