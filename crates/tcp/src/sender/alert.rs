//! What a dubious acknowledgement means: the state machine of recovery for stacks with a
//! scoreboard (`tcp_fastretrans_alert` of Linux).
//!
//! RFC 5681, section 3.2; RFC 6675, section 5; RFC 6582 where the peer has no SACK; RFC 5682
//! (F-RTO). Losses are found by RACK (RFC 8985) or by counting (RFC 6675), as the profile says.

use super::Phase;
use super::acknowledge::{Ack, Next};
use super::queue::Marks;
use crate::endpoint::{Endpoint, Xmit};
use crate::profile::Recovery;
use core::time::Duration;
use outlast_base::time::Instant;
use outlast_wire::SeqNumber;

/// Least patience with a peer that seems to have dropped what it SACKed.
const RENEGING_PATIENCE: Duration = Duration::from_millis(10);

impl Endpoint {
    /// Judges an acknowledgement that came after `prior_una`, and counts as `duplicates`.
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        prior_una: SeqNumber,
        duplicates: u32,
        state: &mut Ack,
        next: &mut Next,
    ) {
        if self.snd.queue.is_empty() {
            self.snd.queue.counts.sacked = 0;
        }
        //= RFC 2018, section 8
        if state.reneging && state.advanced {
            let srtt = Duration::from_micros(self.snd.rto.srtt_us(&self.clock));
            self.arm(now, Xmit::Retransmit, (srtt / 2).max(RENEGING_PATIENCE));
            state.rearm = false;
            return;
        }
        if self.leave_phase(state) {
            return;
        }
        match self.snd.phase {
            Phase::Recovery => {
                if !self.judge_in_recovery(now, prior_una, duplicates, state) {
                    return;
                }
            }
            Phase::Loss => {
                self.judge_in_loss(duplicates, state, next);
                self.find_losses(now, state);
                if self.snd.phase != Phase::Open && !state.lost_retransmission {
                    return;
                }
                // The window was given back, or retransmissions are lost too.
                if !self.judge_otherwise(now, duplicates, state) {
                    return;
                }
            }
            Phase::Open | Phase::Disorder | Phase::Reduced => {
                if !self.judge_otherwise(now, duplicates, state) {
                    return;
                }
            }
        }
        *next = Next::Lost;
    }

    /// Leaves a phase whose end is acknowledged; tells whether nothing more is to be done.
    fn leave_phase(&mut self, state: &Ack) -> bool {
        if self.snd.phase == Phase::Open {
            self.clear_retransmit_stamp();
            return false;
        }
        if self.snd.snd_una.before(self.snd.high_seq) {
            return false;
        }
        match self.snd.phase {
            Phase::Reduced if self.snd.snd_una != self.snd.high_seq => {
                self.end_reduction();
                self.set_phase(Phase::Open);
            }
            Phase::Recovery => {
                if !self.options.sack {
                    self.snd.queue.counts.sacked = 0;
                }
                if self.undo_recovery(state) {
                    return true;
                }
                self.end_reduction();
            }
            _ => {}
        }
        false
    }

    /// In fast recovery; tells whether lost segments may be sent.
    fn judge_in_recovery(
        &mut self,
        now: Instant,
        prior_una: SeqNumber,
        duplicates: u32,
        state: &mut Ack,
    ) -> bool {
        if state.advanced {
            if self.undo_partially(prior_una, state) {
                return false;
            }
        } else if !self.options.sack {
            self.count_duplicates(duplicates);
        }
        if self.undo_by_dsack() {
            self.try_to_open();
        }
        self.find_losses(now, state);
        if self.snd.phase != Phase::Recovery {
            if self.snd.queue.counts.lost == 0 {
                return false;
            }
            self.enter_recovery(state);
        }
        true
    }

    /// In recovery from a timeout.
    fn judge_in_loss(&mut self, duplicates: u32, state: &Ack, next: &mut Next) {
        let recovered = self.snd.snd_una.at_or_after(self.snd.high_seq);
        if state.advanced && self.undo_loss(false, state) {
            return;
        }
        if self.snd.frto {
            if state.original_arrived && self.undo_loss(true, state) {
                //= RFC 5682, section 3.1, step 3b
                return;
            }
            if self.snd.snd_nxt.after(self.snd.high_seq) {
                if state.newly_sacked || duplicates > 0 {
                    //= RFC 5682, section 3.1, step 3a
                    self.snd.frto = false;
                }
            } else if state.advanced && !recovered {
                self.snd.high_seq = self.snd.snd_nxt;
                //= RFC 5682, section 3.1, step 2b
                if self.snd.has_unsent() && self.snd.window_end().after(self.snd.snd_nxt) {
                    *next = Next::New;
                    return;
                }
                //= RFC 5682, section 3.1, step 2a
                self.snd.frto = false;
            }
        }
        if recovered {
            self.undo_recovery(state);
            return;
        }
        if !self.options.sack {
            if self.snd.snd_nxt.after(self.snd.high_seq) && duplicates > 0 {
                self.count_duplicates(duplicates);
            } else if state.advanced {
                self.snd.queue.counts.sacked = 0;
            }
        }
        *next = Next::Lost;
    }

    /// Outside of recovery; tells whether it began.
    fn judge_otherwise(&mut self, now: Instant, duplicates: u32, state: &mut Ack) -> bool {
        //= RFC 6675, section 2
        if !self.options.sack {
            if state.advanced {
                self.snd.queue.counts.sacked = 0;
            }
            self.count_duplicates(duplicates);
        }
        if self.snd.phase <= Phase::Disorder {
            self.undo_by_dsack();
        }
        self.find_losses(now, state);
        if self.snd.queue.counts.lost == 0 {
            self.try_to_open();
            return false;
        }
        self.enter_recovery(state);
        true
    }

    /// Marks what is lost, by the profile's rule.
    fn find_losses(&mut self, now: Instant, state: &mut Ack) {
        if self.snd.queue.is_empty() {
            return;
        }
        if !self.options.sack {
            self.find_losses_without_sack(state.advanced);
        } else if *self.profile.recovery == Recovery::Rack {
            let before = self.snd.queue.counts.retransmitted;
            if self.find_losses_by_time(now) {
                state.rearm = false;
            }
            state.lost_retransmission |= self.snd.queue.counts.retransmitted < before;
        } else {
            self.find_losses_by_count();
        }
    }

    /// Three duplicates, or in recovery a partial acknowledgement, mean that the head is lost.
    //= RFC 6582, section 3.2, step 2
    //= RFC 6582, section 3.2, step 3
    fn find_losses_without_sack(&mut self, advanced: bool) {
        let enough = self.snd.queue.counts.sacked >= self.snd.reordering;
        let begins = self.snd.phase < Phase::Recovery && enough;
        let partial = self.snd.phase == Phase::Recovery && advanced;
        if (begins || partial)
            && let Some(head) = self.snd.queue.front()
            && !head.marks.has(Marks::LOST)
        {
            self.mark_lost(0);
        }
    }

    /// What has three SACKed segments above it is lost.
    //= RFC 6675, section 4 (IsLost)
    fn find_losses_by_count(&mut self) {
        let mut above = 0;
        for index in (0..self.snd.queue.len() as usize).rev() {
            let Some(segment) = self.snd.queue.at(index) else {
                return;
            };
            if segment.marks.has(Marks::SACKED) {
                above += 1;
            } else if above >= self.snd.reordering && !segment.marks.has(Marks::LOST) {
                self.mark_lost(index);
            }
        }
    }

    /// Marks a segment lost, or its retransmission.
    pub(crate) fn mark_lost(&mut self, index: usize) {
        let Some(segment) = self.snd.queue.at(index).copied() else {
            return;
        };
        let mut marks = segment.marks;
        if marks.has(Marks::SACKED) {
            return;
        }
        self.move_hint_back(index);
        if marks.has(Marks::LOST) {
            if !marks.has(Marks::RETRANSMITTED) {
                return;
            }
            marks = marks.without(Marks::RETRANSMITTED);
            self.snd.queue.counts.retransmitted -= 1;
        } else {
            marks = marks.with(Marks::LOST);
            self.snd.queue.counts.lost += 1;
        }
        self.snd.lost = self.snd.lost.wrapping_add(1);
        if let Some(stored) = self.snd.queue.at_mut(index) {
            stored.marks = marks;
        }
    }

    /// The next retransmission is not behind `index`.
    fn move_hint_back(&mut self, index: usize) {
        let counts = self.snd.queue.counts;
        let hint = self
            .snd
            .retransmit_hint
            .and_then(|id| self.snd.queue.index(id));
        let earlier = match hint {
            Some(hint) => index < hint,
            None => counts.retransmitted >= counts.lost,
        };
        if earlier {
            self.snd.retransmit_hint = Some(self.snd.queue.id(index));
        }
    }

    /// Without SACK each duplicate stands for one segment that has arrived.
    //= RFC 3042, section 2
    fn count_duplicates(&mut self, duplicates: u32) {
        if duplicates == 0 {
            return;
        }
        let before = self.snd.queue.counts.sacked;
        self.snd.queue.counts.sacked += duplicates;
        self.limit_duplicates(0);
        let more = self.snd.queue.counts.sacked.saturating_sub(before);
        self.snd.delivered = self.snd.delivered.wrapping_add(more);
    }

    /// More duplicates than segments could have drawn mean reordering.
    fn limit_duplicates(&mut self, acked: u32) {
        let len = self.snd.queue.len();
        let holes = self.snd.queue.counts.lost.max(1).min(len);
        if self.snd.queue.counts.sacked + holes > len {
            self.snd.queue.counts.sacked = len - holes;
            self.snd.reordering = (len + acked).clamp(3, 300);
            self.snd.reordering_seen = true;
        }
    }

    /// Without SACK, `acked` segments that left the queue use up the duplicates that they drew.
    pub(crate) fn forget_duplicates(&mut self, acked: u32, state: &mut Ack) {
        if acked > 0 {
            let sacked = self.snd.queue.counts.sacked;
            let more = acked.saturating_sub(sacked).max(1);
            self.snd.delivered = self.snd.delivered.wrapping_add(more);
            self.snd.queue.counts.sacked = sacked.saturating_sub(acked - 1);
        }
        self.limit_duplicates(acked);
        if state.retransmitted_acked {
            // It cannot be told which ones arrived.
            state.original_arrived = false;
        }
    }

    /// Opens, if nothing is in doubt any more.
    fn try_to_open(&mut self) {
        if !self.any_retransmitted() {
            self.clear_retransmit_stamp();
        }
        if self.snd.phase != Phase::Reduced {
            self.keep_open();
        }
    }

    pub(crate) fn keep_open(&mut self) {
        let counts = self.snd.queue.counts;
        let doubt = counts.sacked + counts.lost > 0 || self.any_retransmitted();
        let phase = if doubt { Phase::Disorder } else { Phase::Open };
        if self.snd.phase != phase {
            self.set_phase(phase);
            self.snd.high_seq = self.snd.snd_nxt;
        }
    }

    //= RFC 5681, section 3.2, step 2
    pub(crate) fn enter_recovery(&mut self, _state: &Ack) {
        if !self.any_retransmitted() {
            self.clear_retransmit_stamp();
        }
        self.counters.fast_recoveries += 1;
        self.snd.prior_ssthresh = 0;
        self.init_undo();
        if !self.snd.is_reducing() {
            //= RFC 4015, section 3.2
            self.snd.prior_ssthresh = self.snd.current_ssthresh();
            self.begin_reduction();
        }
        self.set_phase(Phase::Recovery);
    }

    pub(crate) fn set_phase(&mut self, phase: Phase) {
        self.snd.phase = phase;
    }

    pub(crate) fn any_retransmitted(&self) -> bool {
        self.snd.queue.counts.retransmitted > 0
            || self
                .snd
                .queue
                .front()
                .is_some_and(|head| head.marks.has(Marks::EVER_RETRANSMITTED))
    }

    pub(crate) fn clear_retransmit_stamp(&mut self) {
        self.snd.retransmit_stamp = None;
        self.snd.retransmitting_since = None;
    }
}
