//! When what has arrived is acknowledged.
//!
//! RFC 9293, section 3.8.6.3, and RFC 5681, section 4.2 (every second segment, at most half a
//! second, at once when out of order); the quick mode, the adaptive delay, the wait for an answer and
//! the compression of acknowledgements of Linux.

use super::Receiver;
use super::window::ReceiveWindow;
use crate::profile::DelayedAck;
use arrayvec::ArrayVec;
use outlast_base::time::{Instant, saturating_nanos};
use outlast_wire::SeqNumber;
use outlast_wire::tcp::SackBlock;

/// Segments that are acknowledged quickly at most.
const MAX_QUICK: u32 = 16;
/// Acknowledgements of out-of-order arrivals that are not compressed.
const UNCOMPRESSED: u8 = 3;
/// Arrivals that share one acknowledgement at most.
const COMPRESSED: u8 = 44;
/// Longest time that they wait for each other, in ns.
const COMPRESSION: u64 = 1_000_000;
/// In ns.
const MICROSECOND: u64 = 1_000;

/// What is to be done about an acknowledgement.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Due {
    No,
    Now,
    /// It may be delayed this long, in ns.
    Within(u64),
    /// Others may join it for this long, in ns.
    Compressed(u64),
}

/// State of the policy.
#[derive(Clone, Debug)]
pub(crate) struct AckPolicy {
    rule: DelayedAck,
    /// What the rule says in ns: the least and the longest delay.
    least: u64,
    longest: u64,
    scheduled: bool,
    now: bool,
    /// A small segment came; two of them.
    pushed: bool,
    pushed_twice: bool,
    quick: u32,
    /// The rule waits for answers, and one is awaited: the application has answered within the delay
    /// (pingpong mode).
    waits_for_answers: bool,
    awaits_answer: bool,
    /// Delay now in ns, zero before the first data.
    delay: u64,
    last_arrival: Instant,
    /// What a full segment of the peer's carries, as far as seen.
    full: u32,
    /// Right edge of the acknowledgements that were sent (RCV.WUP).
    acknowledged: SeqNumber,
    /// RCV.NXT that `uncompressed` and `compressed` are about.
    hole_at: SeqNumber,
    uncompressed: u8,
    compressed: u8,
}

impl AckPolicy {
    pub(super) fn new(rule: DelayedAck) -> Self {
        let (least, longest, waits_for_answers) = match rule {
            DelayedAck::Linux {
                min,
                max,
                waits_for_answers,
                ..
            } => (min, max, waits_for_answers),
            DelayedAck::SecondSegment { delay } => (delay, delay, false),
        };
        Self {
            rule,
            least: saturating_nanos(least),
            longest: saturating_nanos(longest),
            scheduled: false,
            now: false,
            pushed: false,
            pushed_twice: false,
            quick: 0,
            waits_for_answers,
            awaits_answer: false,
            delay: 0,
            last_arrival: Instant::ZERO,
            full: 536,
            acknowledged: SeqNumber(0),
            hole_at: SeqNumber(0),
            uncompressed: 0,
            compressed: 0,
        }
    }

    pub(super) fn start(&mut self, first: SeqNumber) {
        self.acknowledged = first;
        self.hole_at = first;
    }

    pub(super) fn establish(&mut self, full: u32) {
        self.full = full.clamp(88, 536);
    }

    pub(super) fn schedule(&mut self) {
        self.scheduled = true;
    }

    pub(super) fn tell_now(&mut self) {
        self.scheduled = true;
        self.now = true;
    }

    /// A segment came that is old or beyond the window.
    pub(super) fn out_of_window(&mut self) {
        self.scheduled = true;
        match self.rule {
            DelayedAck::Linux { .. } => {
                self.quick = self.quick.max(MAX_QUICK);
                self.awaits_answer = false;
                self.delay = self.least;
            }
            DelayedAck::SecondSegment { .. } => self.now = true,
        }
    }

    /// The peer has sent all that it had: its FIN is acknowledged with an answer, if one comes within
    /// the delay (`tcp_fin`).
    pub(super) fn fin_arrived(&mut self) {
        self.scheduled = true;
        self.awaits_answer = self.waits_for_answers;
        self.now |= !self.waits_for_answers;
    }

    /// Data leaves, which may be the answer to what came (`tcp_event_data_sent`).
    #[inline]
    fn data_sent(&mut self, now: Instant) {
        if self.delay > 0 && self.waits_for_answers {
            self.awaits_answer |= now.nanos_since(self.last_arrival) < self.delay;
        }
    }

    /// The window opens with what has come: the sender is to hear of it at once
    /// (`tcp_grow_window`).
    pub(super) fn window_opens(&mut self) {
        self.quick |= 1;
    }

    /// `bytes` new bytes came in order; `rto` is in ns.
    #[inline]
    pub(super) fn data_arrived(
        &mut self,
        now: Instant,
        bytes: u32,
        rto: u64,
        window: &ReceiveWindow,
    ) {
        self.scheduled = true;
        if bytes >= self.full {
            self.full = bytes.min(65_535);
        } else {
            self.pushed_twice |= self.pushed;
            self.pushed = true;
        }
        let DelayedAck::Linux { .. } = self.rule else {
            return;
        };
        let gap = now.nanos_since(self.last_arrival);
        if self.delay == 0 {
            self.be_quick(window);
            self.delay = self.least;
        } else if gap <= self.least / 2 {
            self.delay = self.delay / 2 + self.least / 2;
        } else if gap < self.delay {
            self.delay = (self.delay / 2 + gap).min(rto);
        } else if gap > rto {
            // The sender stood still; it may have restarted with a small window.
            self.be_quick(window);
        }
        self.last_arrival = now;
    }

    fn be_quick(&mut self, window: &ReceiveWindow) {
        let limit = window.quick_limit().clamp(2, MAX_QUICK);
        self.quick = self.quick.max(limit);
    }

    #[inline]
    fn sent(&mut self, segments: u32) {
        self.scheduled = false;
        self.now = false;
        self.pushed = false;
        self.pushed_twice = false;
        self.compressed = 0;
        if self.quick > 0 {
            self.quick = self.quick.saturating_sub(segments);
            if self.quick == 0
                && let DelayedAck::Linux { .. } = self.rule
            {
                self.delay = self.least;
            }
        }
    }

    /// In ns.
    fn delay_for(&self, srtt_us: u64) -> u64 {
        match self.rule {
            DelayedAck::SecondSegment { .. } => self.longest,
            // A FIN came before any data: at the next tick.
            DelayedAck::Linux { .. } if self.delay == 0 => 0,
            DelayedAck::Linux { .. } => {
                let mut most = self.longest;
                if srtt_us > 0 {
                    most = most.min((srtt_us * MICROSECOND).max(self.least));
                }
                self.delay.max(self.least).min(most)
            }
        }
    }
}

impl Receiver {
    /// Whether what has come is to be acknowledged at all.
    #[inline]
    pub(crate) fn owes_acknowledgement(&self) -> bool {
        self.acks.scheduled
    }

    /// What is to be done after a segment was taken.
    //= RFC 9293, section 3.8.6.3
    #[inline]
    pub(crate) fn acknowledgement_due(&mut self, shift: u8, srtt_us: u64) -> Due {
        if !self.acks.scheduled {
            return Due::No;
        }
        let new = self.rcv_nxt.distance_from(self.acks.acknowledged);
        let two = new > i32::try_from(self.acks.full).unwrap_or(i32::MAX);
        let many = match self.acks.rule {
            DelayedAck::Linux { .. } => two && self.consider_window(shift) >= self.window(),
            DelayedAck::SecondSegment { .. } => {
                let twice = self.acks.full.saturating_mul(2);
                new >= i32::try_from(twice).unwrap_or(i32::MAX)
            }
        };
        let is_quick = self.acks.quick > 0 && !self.acks.awaits_answer;
        if many || is_quick || self.acks.now {
            return Due::Now;
        }
        if self.reassembly.is_empty() {
            return Due::Within(self.acks.delay_for(srtt_us));
        }
        self.out_of_order_due(srtt_us)
    }

    //= RFC 5681, section 4.2: out-of-order data is acknowledged at once
    #[inline(never)]
    fn out_of_order_due(&mut self, srtt_us: u64) -> Due {
        let compresses = matches!(self.acks.rule, DelayedAck::Linux { compress: true, .. });
        if !compresses || !self.sack || self.acks.compressed >= COMPRESSED {
            return Due::Now;
        }
        if self.acks.hole_at != self.rcv_nxt {
            self.acks.hole_at = self.rcv_nxt;
            self.acks.uncompressed = 0;
        }
        if self.acks.uncompressed < UNCOMPRESSED {
            self.acks.uncompressed += 1;
            return Due::Now;
        }
        self.acks.compressed += 1;
        let rtt = match self.window.rtt() {
            Some(rtt) if srtt_us > 0 => rtt.min(srtt_us * MICROSECOND),
            Some(rtt) => rtt,
            None => srtt_us * MICROSECOND,
        };
        // A twentieth of the round trip.
        Due::Compressed((rtt / 20).min(COMPRESSION))
    }

    /// The peer's FIN has come in order, and the application may still answer.
    pub(crate) fn fin_arrived(&mut self) {
        self.acks.fin_arrived();
    }

    /// A segment with data leaves.
    #[inline]
    pub(crate) fn data_sent(&mut self, now: Instant) {
        self.acks.data_sent(now);
    }

    pub(crate) fn schedule_ack_now(&mut self) {
        self.acks.tell_now();
    }

    /// So many segments that acknowledge leave.
    #[inline]
    pub(crate) fn acknowledgements_sent(&mut self, shift: u8, segments: u32) {
        self.acks.sent(segments);
        self.acks.acknowledged = self.rcv_nxt;
        self.offer_window(shift);
    }

    /// The delay is over; tells whether an acknowledgement is still due. `rto` is in ns.
    pub(crate) fn delay_is_over(&mut self, rto: u64) -> bool {
        let acks = &mut self.acks;
        if acks.scheduled && acks.awaits_answer {
            // There is no answer: do without the next ones.
            acks.awaits_answer = false;
            acks.delay = acks.least;
        } else if acks.scheduled {
            // It was waited for in vain: wait longer the next time.
            acks.delay = (acks.delay * 2).min(rto);
        }
        acks.scheduled
    }

    /// RCV.NXT as the peer knows it.
    pub(crate) fn acknowledged(&self) -> SeqNumber {
        self.acks.acknowledged
    }

    #[inline]
    pub(super) fn read_should_acknowledge(&self) -> bool {
        if !self.acks.scheduled {
            return false;
        }
        let new = self.rcv_nxt.distance_from(self.acks.acknowledged);
        let two = new > i32::try_from(self.acks.full).unwrap_or(i32::MAX);
        let pushed = self.acks.pushed && !self.acks.awaits_answer;
        two || ((pushed || self.acks.pushed_twice) && self.unread() == 0)
    }

    pub(crate) fn has_sacks(&self) -> bool {
        self.reassembly.has_blocks()
    }

    pub(crate) fn take_sacks(&mut self, most: usize) -> ArrayVec<SackBlock, 4> {
        self.reassembly.take_blocks(most)
    }

    /// Right edge of the highest out-of-order data.
    pub(crate) fn highest_sacked(&self) -> Option<SeqNumber> {
        self.reassembly.highest().filter(|_| self.sack)
    }
}
