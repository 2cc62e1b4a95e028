//! RACK (RFC 8985): a segment is lost if one sent later has arrived a reordering window ago.

use super::Phase;
use super::acknowledge::{Ack, MICROSECOND, micros};
use super::queue::{Marks, Run, Segment};
use super::{Rack, Sender};
use crate::endpoint::{Endpoint, Xmit};
use outlast_base::time::{Instant, saturating_nanos};

/// Recoveries that a wider reordering window is kept for.
const PERSIST: u32 = 16;

/// Whether the first of two transmissions was the later one.
//= RFC 8985, section 6.2, step 2 (RACK_sent_after)
fn sent_after(
    (at, end): (Instant, outlast_wire::SeqNumber),
    (other, other_end): (Instant, outlast_wire::SeqNumber),
) -> bool {
    at > other || (at == other && end.after(other_end))
}

impl Endpoint {
    /// A segment has arrived.
    //= RFC 8985, section 6.2, step 2
    pub(crate) fn advance_rack(&mut self, now: Instant, segment: &Segment) {
        let rtt = now.nanos_since(segment.sent_at);
        let least = || self.snd.min_rtt.value().unwrap_or(u32::MAX);
        if segment.marks.is_retransmission() && micros(rtt) < least() {
            // Its first transmission must have drawn this.
            return;
        }
        self.snd.rack.advance(rtt, segment);
    }

    /// In ns.
    //= RFC 8985, section 6.2, step 4
    fn reordering_window(&self) -> u64 {
        if !self.snd.reordering_seen {
            let many = self.snd.queue.counts.sacked >= self.snd.reordering;
            if self.snd.phase >= Phase::Recovery || many {
                return 0;
            }
        }
        let quarter = self.snd.min_rtt.value().unwrap_or(0) / 4;
        let window = u64::from(quarter) * u64::from(self.snd.rack.steps);
        window.min(self.snd.rto.srtt_us(&self.clock)) * MICROSECOND
    }

    /// Marks what is lost by now; tells whether more may be in a while, and sets the timer.
    pub(crate) fn find_losses_by_time(&mut self, now: Instant) -> bool {
        if !self.snd.rack.advanced {
            return false;
        }
        self.snd.rack.advanced = false;
        let Some(wait) = self.detect(now) else {
            return false;
        };
        let slack = saturating_nanos(*self.profile.early_timer_slack);
        let delay = wait.saturating_add(slack).min(self.snd.rto.current_nanos());
        self.arm_nanos(now, Xmit::Reorder, delay);
        true
    }

    /// Marks what is lost; returns how many ns the rest has to be waited for.
    //= RFC 8985, section 6.2, step 5
    fn detect(&mut self, now: Instant) -> Option<u64> {
        let window = self.reordering_window();
        let mut wait: Option<u64> = None;
        let mut at = self.snd.queue.oldest();
        while let Some(index) = at {
            at = self.snd.queue.sent_after(index);
            let Some(segment) = self.snd.queue.at(index).copied() else {
                break;
            };
            let marks = segment.marks;
            if marks.has(Marks::LOST) && !marks.has(Marks::RETRANSMITTED) {
                continue;
            }
            let rack = &self.snd.rack;
            if !sent_after((rack.sent_at, rack.end), (segment.sent_at, segment.end())) {
                break;
            }
            let left = self.patience(now, &segment, window);
            if left == 0 {
                self.mark_lost(index);
                self.snd.queue.unlist(index);
            } else {
                wait = Some(wait.map_or(left, |wait| wait.max(left)));
            }
        }
        wait
    }

    /// How long a segment may still be under way, as whole microseconds in ns; `window` is in ns.
    pub(crate) fn patience(&self, now: Instant, segment: &Segment, window: u64) -> u64 {
        let due = u64::from(micros(self.snd.rack.rtt)) + u64::from(micros(window));
        let waited = u64::from(micros(now.nanos_since(segment.sent_at)));
        due.saturating_sub(waited) * MICROSECOND
    }

    /// The reordering window is over.
    //= RFC 8985, section 6.2, step 5
    pub(crate) fn on_reordering_timeout(&mut self, now: Instant) {
        let before = self.snd.queue.in_flight();
        let lost = self.snd.lost;
        let _ = self.detect(now);
        if before != self.snd.queue.in_flight() {
            if self.snd.phase != Phase::Recovery {
                self.enter_recovery(&Ack::default());
                if !self.snd.algorithm.rules_alone() {
                    let lost = self.snd.lost.wrapping_sub(lost);
                    self.reduce_window(1, lost, false);
                }
            }
            self.retransmit_lost(now);
        }
        if self.xmit_kind() != Some(Xmit::Retransmit) {
            // What is left of the timeout, not a whole one.
            let left = self.timeout_left(now).max(MICROSECOND);
            if !self.snd.queue.is_empty() {
                self.arm_nanos(now, Xmit::Retransmit, left);
            }
        }
    }

    /// A needless retransmission widens the window, once a round trip.
    //= RFC 8985, section 6.2, step 4
    pub(crate) fn update_reordering_window(&mut self, state: &Ack) {
        let Some(prior) = state.rate.prior_delivered else {
            return;
        };
        self.snd.forget_needless(prior);
    }
}

impl Rack {
    /// `segment` has arrived after `rtt` ns.
    fn advance(&mut self, rtt: u64, segment: &Segment) {
        self.advanced = true;
        self.rtt = rtt;
        if sent_after((segment.sent_at, segment.end()), (self.sent_at, self.end)) {
            self.sent_at = segment.sent_at;
            self.end = segment.end();
        }
    }
}

impl Sender {
    /// What stands for each segment of `run` after the last of them: they were sent in this order.
    #[inline]
    pub(crate) fn note_delivery(&mut self, now: Instant, run: &Run) {
        self.delivered = self.delivered.wrapping_add(run.count);
        self.rack
            .advance(now.nanos_since(run.last.sent_at), &run.last);
        self.first_sent_at = run.last.sent_at;
        if let Some(limit) = self.application_limited
            && self.delivered.wrapping_sub(limit).cast_signed() > 0
        {
            self.application_limited = None;
        }
        self.delivered_at = now;
    }

    /// A segment that was sent when `prior` were delivered has arrived: the window is widened, or
    /// in time forgotten.
    #[inline]
    pub(crate) fn forget_needless(&mut self, prior: u32) {
        let rack = &mut self.rack;
        if prior.wrapping_sub(rack.last_delivered).cast_signed() < 0 {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.steps = (rack.steps + 1).min(255);
            rack.dsack_seen = false;
            rack.last_delivered = self.delivered;
            rack.persist = PERSIST;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }
}
