//! RACK (RFC 8985): a segment is lost if one sent later has arrived a reordering window ago.

use super::Phase;
use super::acknowledge::{Ack, micros};
use super::queue::{Marks, Segment};
use crate::endpoint::{Endpoint, Xmit};
use outlast_core::time::{Duration, Instant};

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
        let rtt = now.since(segment.sent_at);
        let least = || self.snd.min_rtt.value().unwrap_or(u32::MAX);
        if segment.marks.is_retransmission() && micros(rtt) < least() {
            // Its first transmission must have drawn this.
            return;
        }
        let rack = &mut self.snd.rack;
        rack.advanced = true;
        rack.rtt = rtt;
        if sent_after((segment.sent_at, segment.end()), (rack.sent_at, rack.end)) {
            rack.sent_at = segment.sent_at;
            rack.end = segment.end();
        }
    }

    //= RFC 8985, section 6.2, step 4
    fn reordering_window(&self) -> Duration {
        if !self.snd.reordering_seen {
            let many = self.snd.queue.counts.sacked >= self.snd.reordering;
            if self.snd.phase >= Phase::Recovery || many {
                return Duration::ZERO;
            }
        }
        let quarter = self.snd.min_rtt.value().unwrap_or(0) / 4;
        let window = u64::from(quarter) * u64::from(self.snd.rack.steps);
        Duration::from_micros(window.min(self.snd.rto.srtt_us(&self.clock)))
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
        // Two ticks for the timer's coarseness.
        let slack = Duration::from_nanos(2 * self.clock.period());
        let delay = (wait + slack).min(self.snd.rto.current());
        self.arm(now, Xmit::Reorder, delay);
        true
    }

    /// Marks what is lost; returns how long the rest has to be waited for.
    //= RFC 8985, section 6.2, step 5
    fn detect(&mut self, now: Instant) -> Option<Duration> {
        let window = self.reordering_window();
        let mut wait: Option<Duration> = None;
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
            if left.is_zero() {
                self.mark_lost(index);
                self.snd.queue.unlist(index);
            } else {
                wait = Some(wait.map_or(left, |wait| wait.max(left)));
            }
        }
        wait
    }

    /// How long a segment may still be under way, in whole microseconds.
    pub(crate) fn patience(&self, now: Instant, segment: &Segment, window: Duration) -> Duration {
        let due = u64::from(micros(self.snd.rack.rtt)) + u64::from(micros(window));
        let waited = u64::from(micros(now.since(segment.sent_at)));
        Duration::from_micros(due.saturating_sub(waited))
    }

    /// The reordering window is over.
    //= RFC 8985, section 6.3
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
            let left = self.timeout_left(now).max(Duration::from_micros(1));
            if !self.snd.queue.is_empty() {
                self.arm(now, Xmit::Retransmit, left);
            }
        }
    }

    /// A needless retransmission widens the window, once a round trip.
    //= RFC 8985, section 6.2, step 4
    pub(crate) fn update_reordering_window(&mut self, state: &Ack) {
        let Some(prior) = state.rate.prior_delivered else {
            return;
        };
        let rack = &mut self.snd.rack;
        if prior.wrapping_sub(rack.last_delivered).cast_signed() < 0 {
            rack.dsack_seen = false;
        }
        if rack.dsack_seen {
            rack.steps = (rack.steps + 1).min(255);
            rack.dsack_seen = false;
            rack.last_delivered = self.snd.delivered;
            rack.persist = PERSIST;
        } else if rack.persist == 0 {
            rack.steps = 1;
        }
    }
}
