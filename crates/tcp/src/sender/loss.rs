//! The retransmission timeout (RFC 6298, section 5) and when a connection is given up (RFC 9293,
//! section 3.8.3; RFC 1122, section 4.2.3.5).

use super::Phase;
use super::queue::Marks;
use crate::endpoint::{Endpoint, Error, State, Xmit};
use crate::profile::{GiveUp, Recovery};
use outlast_base::time::{Duration, Instant};

/// Largest retransmission timeout after which a closed application's connection counts as alive.
const ORPHAN_RETRIES: u8 = 8;

impl Endpoint {
    pub(crate) fn on_retransmission_timeout(&mut self, now: Instant) {
        if self.snd.queue.is_empty() || self.state == State::Closed {
            return;
        }
        let in_handshake = matches!(self.state, State::SynSent | State::SynReceived);
        let probes_window = self.snd.snd_wnd == 0
            && self.profile.recovery.has_scoreboard()
            && !in_handshake
            && !self.is_closed;
        if let Some(error) = self.give_up(now, in_handshake, probes_window) {
            self.fail(error);
            return;
        }
        if !probes_window {
            self.counters.timeouts += 1;
        }
        if in_handshake {
            self.snd.timeouts += 1;
            self.retransmit_syn(now);
            self.back_off_syn();
        } else {
            self.enter_loss(now);
            if !probes_window {
                self.snd.timeouts += 1;
            }
            //= RFC 6298, section 5.4
            self.retransmit_head(now);
            //= RFC 6298, section 5.5
            self.snd.rto.back_off(&self.clock);
        }
        self.rearm_after_timeout(now);
    }

    /// The retransmission of a timeout without a timeout: back-off and limits stay as they are.
    /// Before any timeout it is the first one, which backs off like any other.
    pub(crate) fn retransmit_unasked(&mut self, now: Instant) {
        let is_first = self.snd.timeouts == 0;
        if matches!(self.state, State::SynSent | State::SynReceived) {
            self.retransmit_syn(now);
        } else {
            self.enter_loss(now);
            self.snd.timeouts = self.snd.timeouts.max(1);
            self.retransmit_head(now);
            if is_first {
                self.snd.rto.back_off(&self.clock);
            }
        }
        self.rearm_after_timeout(now);
    }

    fn rearm_after_timeout(&mut self, now: Instant) {
        let rto = self.clamp_to_user_timeout(now, self.snd.rto.current());
        //= RFC 6298, section 5.6
        self.arm(now, Xmit::Retransmit, rto);
    }

    fn retransmit_syn(&mut self, now: Instant) {
        self.note_retransmission(now);
        if let Some(syn) = self.snd.queue.front_mut() {
            syn.sent_at = now;
            syn.marks = syn.marks.with(Marks::EVER_RETRANSMITTED);
        }
        self.snd.timed = None;
        self.counters.retransmitted_segments += 1;
        self.transmit_syn();
    }

    fn back_off_syn(&mut self) {
        let linear = self.state == State::SynSent
            && self.snd.timeouts <= u32::from(*self.profile.syn_linear);
        if !linear {
            self.snd.rto.back_off(&self.clock);
        }
    }

    /// The first retransmission of an episode starts the clocks of undoing and giving up.
    pub(crate) fn note_retransmission(&mut self, now: Instant) {
        self.snd.retransmitting_since.get_or_insert(now);
        let stamp = self.options.clock(now);
        self.snd.retransmit_stamp.get_or_insert(stamp);
    }

    /// Sends the head of the queue, whatever the window.
    fn retransmit_head(&mut self, now: Instant) {
        if self.send_again(now, 0) {
            self.count_retransmission(0);
        }
    }

    /// Congestion control hears of the timeout.
    //= RFC 5681, section 3.1, equation 4
    fn enter_loss(&mut self, now: Instant) {
        if !self.profile.recovery.has_scoreboard() {
            self.enter_loss_classic();
            return;
        }
        let was_sound = self.snd.phase < Phase::Recovery;
        self.mark_all_lost(now);
        let anew = self.snd.phase <= Phase::Disorder
            || !self.snd.high_seq.after(self.snd.snd_una)
            || (self.snd.phase == Phase::Loss && self.snd.timeouts == 0);
        //= RFC 5681, section 3.1, repeated timeout
        if anew {
            //= RFC 4015, section 3.2
            self.snd.prior_ssthresh = self.snd.current_ssthresh();
            self.snd.prior_cwnd = self.snd.window.cwnd;
            self.lower_threshold();
            self.init_undo();
        }
        let in_flight = self.snd.queue.in_flight();
        self.snd.window.set(in_flight + 1);
        self.snd.window.credit = 0;
        self.snd.validated_at = now;
        if self.snd.phase <= Phase::Disorder && self.snd.queue.counts.sacked >= 3 {
            // Reordering was thought to be larger than it is.
            self.snd.reordering = self.snd.reordering.min(3);
        }
        self.set_phase(Phase::Loss);
        let context = self.context(now);
        //= RFC 9438, section 4.8
        self.snd.algorithm.timed_out(&context);
        self.snd.high_seq = self.snd.snd_nxt;
        self.snd.tlp_high_seq = None;
        //= RFC 5682, section 3.1, step 1
        self.snd.frto = self.profile.undo.frto && (was_sound || self.snd.timeouts > 0);
    }

    //= RFC 6675, section 5.1
    fn mark_all_lost(&mut self, now: Instant) {
        let reneging = self
            .snd
            .queue
            .front()
            .is_some_and(|head| head.marks.has(Marks::SACKED));
        if reneging || !self.options.sack {
            self.snd.queue.counts.sacked = 0;
            self.snd.queue.marked.forget();
        }
        self.snd.is_reneging |= reneging;
        let spare_recent = *self.profile.recovery == Recovery::Rack && self.options.sack;
        for index in 0..self.snd.queue.len() as usize {
            let Some(segment) = self.snd.queue.at(index).copied() else {
                break;
            };
            if reneging {
                if let Some(stored) = self.snd.queue.at_mut(index) {
                    stored.marks = stored.marks.without(Marks::SACKED);
                }
            } else if spare_recent && index > 0 && self.patience(now, &segment, 0) > 0 {
                //= RFC 8985, section 6.3: what was sent just now may still arrive
                continue;
            }
            self.mark_lost(index);
        }
        self.snd.retransmit_hint = None;
    }

    /// Whether to give up, and with what error.
    //= RFC 9293, section 3.8.3
    fn give_up(&self, now: Instant, in_handshake: bool, probes_window: bool) -> Option<Error> {
        if probes_window {
            return self.give_up_probing(now);
        }
        if self.snd.timeouts == 0 {
            return None;
        }
        let since = self.snd.retransmitting_since?;
        let elapsed = now.since(since);
        if in_handshake {
            let (limit, linear) = match self.state {
                State::SynSent => (*self.profile.syn_retries, *self.profile.syn_linear),
                _ => (*self.profile.syn_ack_retries, 0),
            };
            let limit = self.config.retries.unwrap_or(limit);
            if self.snd.timeouts >= u32::from(limit) + u32::from(linear) {
                return Some(Error::TimedOut);
            }
        }
        if let Some(timeout) = self.user_timeout() {
            //= RFC 9293, section 3.10.8 (user timeout)
            return (elapsed >= timeout).then_some(Error::UserTimeout);
        }
        if in_handshake {
            return None;
        }
        let over = match (*self.profile.give_up, self.config.retries) {
            (GiveUp::Retransmissions(by_profile), wish) => {
                self.snd.timeouts >= u32::from(wish.unwrap_or(by_profile))
            }
            (GiveUp::ModelledTime(by_profile), wish) => {
                let retries = match wish {
                    Some(wish) => wish,
                    // Nobody waits for a closed application's data for long.
                    None if self.is_closed && self.snd.rto.current() < self.snd.rto.max() => {
                        ORPHAN_RETRIES
                    }
                    None if self.is_closed => 0,
                    None => by_profile,
                };
                elapsed >= self.modelled_time(retries)
            }
            (GiveUp::Elapsed(_), Some(wish)) => self.snd.timeouts >= u32::from(wish),
            (GiveUp::Elapsed(limit), None) => elapsed >= limit,
        };
        over.then_some(Error::TimedOut)
    }

    /// While the peer keeps its window shut but answers, it is waited for.
    fn give_up_probing(&self, now: Instant) -> Option<Error> {
        let head = self.snd.queue.front()?;
        let since = self.snd.retransmitting_since.unwrap_or(head.sent_at);
        let elapsed = now.since(since);
        let mut limit = self.snd.rto.max() * 2;
        if let Some(timeout) = self.user_timeout() {
            if elapsed > timeout {
                return Some(Error::UserTimeout);
            }
            limit = limit.min(timeout);
        }
        let silent = now.since(self.last_heard);
        (silent > limit && elapsed > limit).then_some(Error::TimedOut)
    }

    /// How long `retries` retransmissions take that begin with the least timeout.
    fn modelled_time(&self, retries: u8) -> Duration {
        let (base, most) = (self.snd.rto.min(), self.snd.rto.max());
        let ratio = most.as_nanos() / base.as_nanos().max(1);
        let doublings = ratio.max(1).ilog2();
        let retries = u32::from(retries);
        if retries <= doublings {
            base * ((2 << retries) - 1)
        } else {
            base * ((2 << doublings) - 1) + most * (retries - doublings)
        }
    }

    /// The timer does not run past the user timeout.
    fn clamp_to_user_timeout(&self, now: Instant, rto: Duration) -> Duration {
        let Some(timeout) = self.user_timeout() else {
            return rto;
        };
        let since = self.snd.retransmitting_since.unwrap_or(now);
        let left = timeout.saturating_sub(now.since(since));
        rto.min(left.max(Duration::from_nanos(self.clock.period())))
    }
}
