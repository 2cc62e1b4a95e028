//! Retransmissions that were not needed, and what is taken back for them.
//!
//! Eifel detection and response (RFC 3522, RFC 4015) by timestamps, RFC 3708 by DSACK, RFC 5682 by
//! F-RTO, with the conditions of Linux (`tcp_try_undo_recovery`, `_loss`, `_partial`, `_dsack`).

use super::Phase;
use super::acknowledge::Ack;
use super::queue::{Marks, Segment};
use crate::endpoint::{Endpoint, State};
use outlast_wire::SeqNumber;

/// Recoveries that a wider reordering window is kept for.
//= RFC 8985, section 6.2, step 4
const PERSIST: u32 = 16;

impl Endpoint {
    /// Undoing may begin at SND.UNA from now on.
    pub(crate) fn init_undo(&mut self) {
        self.snd.undo_marker = Some(self.snd.snd_una);
        let mut outstanding = self.snd.queue.counts.retransmitted;
        if self.snd.tlp_high_seq.is_some() && self.snd.tlp_retransmitted {
            outstanding += 1;
        }
        // None sent yet is not the same as all shown to be needless.
        self.snd.undo_retransmissions = (outstanding > 0).then_some(outstanding);
    }

    fn all_shown_needless(&self) -> bool {
        self.profile.undo.dsack && self.snd.undo_retransmissions == Some(0)
    }

    /// The echo is of before `stamp`.
    fn echoes_before(echo: Option<u32>, stamp: u32) -> bool {
        echo.is_some_and(|echo| echo.wrapping_sub(stamp).cast_signed() < 0)
    }

    /// A retransmitted segment was acknowledged by what its first transmission drew.
    pub(crate) fn is_spurious(&self, segment: &Segment, state: &Ack) -> bool {
        segment.marks.is_retransmission()
            && Self::echoes_before(state.echo, self.options.clock(segment.sent_at))
    }

    /// What was retransmitted was only late.
    //= RFC 3522, section 3.2 (step 5)
    fn was_delayed(&self, state: &Ack) -> bool {
        if !self.profile.undo.timestamps {
            return false;
        }
        if let Some(stamp) = self.snd.retransmit_stamp {
            return Self::echoes_before(state.echo, stamp);
        }
        // Nothing has been retransmitted yet, with two exceptions.
        let forgotten = !self.options.sack && self.snd.snd_una.at_or_after(self.snd.high_seq);
        !forgotten && self.state != State::SynSent
    }

    fn may_undo(&self, state: &Ack) -> bool {
        self.snd.undo_marker.is_some() && (self.all_shown_needless() || self.was_delayed(state))
    }

    //= RFC 4015, section 3.4
    //= RFC 9438, section 4.9
    fn undo_reduction(&mut self, forget_losses: bool) {
        self.counters.undone += 1;
        if forget_losses {
            for segment in self.snd.queue.iter_mut() {
                segment.marks = segment.marks.without(Marks::LOST);
            }
            self.snd.queue.counts.lost = 0;
            self.snd.retransmit_hint = None;
        }
        if self.snd.prior_ssthresh > 0 {
            let cwnd = self
                .snd
                .algorithm
                .window_after_undo(&self.snd.window, self.snd.prior_cwnd);
            self.snd.window.set(cwnd);
            let ssthresh = &mut self.snd.window.ssthresh;
            *ssthresh = (*ssthresh).max(self.snd.prior_ssthresh);
        }
        self.snd.undo_marker = None;
        // Losses are judged afresh.
        self.snd.rack.advanced = true;
    }

    /// Without SACK a phase is held until something above `high_seq` is acknowledged.
    //= RFC 6582, section 6
    fn is_held(&mut self) -> bool {
        if self.snd.snd_una != self.snd.high_seq || self.options.sack {
            return false;
        }
        if !self.any_retransmitted() {
            self.clear_retransmit_stamp();
        }
        true
    }

    /// At the end of recovery; tells whether the phase is held.
    pub(crate) fn undo_recovery(&mut self, state: &Ack) -> bool {
        if self.may_undo(state) {
            self.undo_reduction(false);
        } else if self.snd.rack.persist > 0 {
            self.snd.rack.persist -= 1;
        }
        if self.is_held() {
            return true;
        }
        self.set_phase(Phase::Open);
        self.snd.is_reneging = false;
        false
    }

    /// All retransmissions came twice.
    //= RFC 3708, section 3
    pub(crate) fn undo_by_dsack(&mut self) -> bool {
        if self.snd.undo_marker.is_none() || !self.all_shown_needless() {
            return false;
        }
        self.snd.rack.persist = (self.snd.rack.persist + 1).min(PERSIST);
        self.undo_reduction(false);
        true
    }

    /// In recovery from a timeout.
    pub(crate) fn undo_loss(&mut self, by_frto: bool, state: &Ack) -> bool {
        if !by_frto && !self.may_undo(state) {
            return false;
        }
        self.undo_reduction(true);
        self.snd.timeouts = 0;
        if self.is_held() {
            return true;
        }
        if by_frto || self.options.sack {
            self.set_phase(Phase::Open);
            self.snd.is_reneging = false;
        }
        true
    }

    /// In fast recovery, by a partial acknowledgement; tells whether nothing more may be marked
    /// or retransmitted.
    pub(crate) fn undo_partially(&mut self, prior_una: SeqNumber, state: &Ack) -> bool {
        if self.snd.undo_marker.is_none() || !self.was_delayed(state) {
            return false;
        }
        self.note_reordering(prior_una);
        if self.snd.queue.counts.retransmitted > 0 {
            return true;
        }
        if !self.any_retransmitted() {
            self.clear_retransmit_stamp();
        }
        self.undo_reduction(true);
        self.keep_open();
        false
    }
}
