//! Tail loss probe (RFC 8985, section 7).

use super::Phase;
use super::acknowledge::{Ack, MICROSECOND};
use crate::endpoint::{Endpoint, Xmit};
use outlast_base::time::{Instant, saturating_nanos};
use outlast_wire::SeqNumber;

impl Endpoint {
    /// Whether what is outstanding may be probed.
    pub(crate) fn may_probe_tail(&self) -> bool {
        *self.profile.tail_loss_probe
            && self.options.sack
            && !self.snd.queue.is_empty()
            && matches!(self.snd.phase, Phase::Open | Phase::Reduced)
    }

    /// Sets the timer for a probe, if one may be sent; `advancing` after progress.
    //= RFC 8985, section 7.2
    pub(crate) fn schedule_loss_probe(&mut self, now: Instant, advancing: bool) -> bool {
        if !self.may_probe_tail() {
            return false;
        }
        let srtt = self.snd.rto.srtt_us(&self.clock);
        let mut delay = if self.snd.rto.has_sample() {
            let extra = match self.snd.queue.len() {
                // The peer may delay its acknowledgement.
                1 => self.snd.rto.min_nanos(),
                _ => saturating_nanos(*self.profile.early_timer_slack),
            };
            let delay = (2_000 * srtt).saturating_add(extra);
            self.clock.round_up_nanos(delay)
        } else {
            saturating_nanos(*self.profile.initial_rto)
        };
        let left = match advancing {
            true => self.snd.rto.current_nanos(),
            false => self.timeout_left(now),
        };
        if (1..delay).contains(&left) {
            delay = delay.min(self.clock.round_up_nanos(left));
        }
        let delay = delay.saturating_add(self.pacing_delay(now));
        self.arm_nanos(now, Xmit::LossProbe, delay);
        true
    }

    //= RFC 8985, section 7.3
    pub(crate) fn on_loss_probe(&mut self, now: Instant) {
        if self.snd.tlp_high_seq.is_none() && self.send_loss_probe(now) {
            self.counters.loss_probes += 1;
            self.snd.tlp_high_seq = Some(self.snd.snd_nxt);
            // A whole timeout from here.
            self.arm(now, Xmit::Retransmit, self.snd.rto.current());
            return;
        }
        if !self.snd.queue.is_empty() {
            let left = self.timeout_left(now).max(MICROSECOND);
            self.arm_nanos(now, Xmit::Retransmit, left);
        }
    }

    /// New data if there is any that the peer's window allows, or else the last segment again.
    fn send_loss_probe(&mut self, now: Instant) -> bool {
        self.snd.tlp_retransmitted = false;
        if self.snd.has_unsent() && self.fits_window(self.next_len()) {
            return self.send_new_probe(now);
        }
        let Some(last) = (self.snd.queue.len() as usize).checked_sub(1) else {
            return false;
        };
        self.snd.tlp_retransmitted = self.send_again(now, last);
        self.snd.tlp_retransmitted
    }

    /// Whether the probe repaired a loss.
    //= RFC 8985, section 7.4.2
    pub(crate) fn end_tail_loss_probe(&mut self, now: Instant, ack: SeqNumber, state: &Ack) {
        let Some(high) = self.snd.tlp_high_seq else {
            return;
        };
        if ack.before(high) {
            return;
        }
        if !self.snd.tlp_retransmitted || state.dsack_of_probe {
            self.snd.tlp_high_seq = None;
        } else if ack.after(high) {
            // It did: congestion control must hear of it.
            self.begin_reduction();
            self.set_phase(Phase::Reduced);
            self.end_reduction();
            self.keep_open();
            self.snd.validated_at = now;
        } else if !state.advanced && state.is_duplicate() && !state.newly_sacked {
            // Both copies arrived.
            self.snd.tlp_high_seq = None;
        }
    }
}
