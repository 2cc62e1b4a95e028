//! An acknowledgement has arrived (RFC 9293, section 3.10.7.4, fifth check), for stacks with a
//! scoreboard; the order of steps is that of Linux (`tcp_ack`).

use crate::congestion::{Algorithm, RateSample, Standing};
use crate::endpoint::Endpoint;
use crate::endpoint::{Incoming, Xmit};
use crate::profile::{Growth, Recovery};
use crate::rto::Round;
use crate::sender::Phase;
use crate::sender::queue::Marks;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{SeqNumber, TcpHeader};

/// What one acknowledgement has told so far.
#[derive(Clone, Copy, Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the flags of RFC 5681, 2883, 5682 and 8985, each on its own"
)]
pub(crate) struct Ack {
    /// The peer's echo of our timestamp clock.
    pub(crate) echo: Option<u32>,
    /// It carried data.
    pub(crate) has_data: bool,
    pub(crate) window_updated: bool,
    /// SND.UNA moved.
    pub(crate) advanced: bool,
    /// Segments left the queue.
    pub(crate) acked: bool,
    pub(crate) retransmitted_acked: bool,
    pub(crate) newly_sacked: bool,
    /// Data below `high_seq` that was sent only once has arrived.
    pub(crate) original_arrived: bool,
    pub(crate) dsack: bool,
    /// The DSACK is of the tail loss probe.
    pub(crate) dsack_of_probe: bool,
    /// The head of the queue was SACKed before and is not acknowledged.
    pub(crate) reneging: bool,
    /// The transmission timer is to be set anew.
    pub(crate) rearm: bool,
    /// A retransmission was found lost.
    pub(crate) lost_retransmission: bool,
    pub(crate) first_sacked_at: Option<Instant>,
    pub(crate) last_sacked_at: Option<Instant>,
    pub(crate) rate: RateSample,
}

impl Ack {
    /// Whether it brings no data and no new window, and acknowledges no new data.
    //= RFC 5681, section 2
    pub(crate) fn is_duplicate(&self) -> bool {
        !(self.has_data || self.window_updated || self.acked)
    }

    pub(crate) fn is_dubious(&self, phase: Phase) -> bool {
        self.is_duplicate() || self.newly_sacked || self.dsack || phase != Phase::Open
    }
}

/// Segments that an acknowledgement took out of the queue.
#[derive(Clone, Copy, Debug)]
struct Gone {
    count: u32,
    /// None was cut.
    whole: bool,
    /// Of those that were sent once and not SACKed: the lowest number, and when the first and the
    /// last were sent.
    lowest: SeqNumber,
    sent_once: Option<(Instant, Instant)>,
}

/// What is to be sent when the window has been set.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Next {
    Nothing,
    /// Lost segments.
    Lost,
    /// New data (F-RTO), or lost segments if there is none.
    New,
}

impl Endpoint {
    /// Takes the acknowledgement of a segment; tells whether the segment may be looked at
    /// further.
    pub(crate) fn acknowledge(&mut self, now: Instant, segment: &Incoming<'_>) -> bool {
        let header = segment.header;
        self.take_probed_byte(header.ack);
        let ack = header.ack;
        if ack.before(self.snd.snd_una) {
            return self.on_old_ack(now, segment);
        }
        if ack.after(self.snd.snd_nxt) {
            //= RFC 5961, section 5.2
            self.challenge(now);
            return false;
        }
        if !header.seq.after(self.rcv.acknowledged()) {
            //= RFC 7323, section 4.3
            self.options.remember(now, header);
        }
        self.user_timeouts.hear(header);
        self.note_sign_of_life(now);
        if self.profile.recovery.has_scoreboard() {
            self.acknowledge_scoreboard(now, segment);
        } else {
            self.acknowledge_classic(now, segment);
        }
        true
    }

    /// The peer has sent an acknowledgement that can be one of ours.
    #[inline]
    pub(crate) fn note_sign_of_life(&mut self, now: Instant) {
        self.last_heard = now;
        self.keepalive_probes = 0;
        self.persist.unanswered = 0;
        self.soft_error = false;
    }

    fn on_old_ack(&mut self, now: Instant, segment: &Incoming<'_>) -> bool {
        let ack = segment.header.ack;
        let most = u64::from(self.snd.max_window).min(self.snd.acknowledged + 1);
        let most = u32::try_from(most).unwrap_or(u32::MAX);
        if ack.before(self.snd.snd_una - most) {
            //= RFC 5961, section 5.2
            self.challenge(now);
            return false;
        }
        if self.options.sack
            && self.profile.recovery.has_scoreboard()
            && !segment.header.options.sack.is_empty()
        {
            let mut state = self.begin(now, segment);
            self.take_sacks(now, segment.header, self.snd.snd_una, &mut state);
            let mut next = Next::Nothing;
            self.judge(now, self.snd.snd_una, 0, &mut state, &mut next);
            self.send_recovery(now, next);
        }
        true
    }

    /// A probe's byte, if it was accepted, was sent after all.
    fn take_probed_byte(&mut self, ack: SeqNumber) {
        if !self.persist.byte_sent || self.snd.unsent() == 0 {
            return;
        }
        if ack == self.snd.snd_nxt + 1 && self.snd.queue.is_empty() {
            self.persist.byte_sent = false;
            self.snd.snd_nxt += 1;
            self.snd.snd_una = self.snd.snd_nxt;
            self.snd.next_offset += 1;
            self.snd.acknowledged += 1;
        }
    }

    fn begin(&self, _now: Instant, segment: &Incoming<'_>) -> Ack {
        Ack {
            echo: self.options.echo(segment.header),
            has_data: segment.end() != segment.header.seq,
            rate: RateSample {
                prior_in_flight: self.snd.queue.in_flight(),
                ..RateSample::default()
            },
            ..Ack::default()
        }
    }

    fn acknowledge_scoreboard(&mut self, now: Instant, segment: &Incoming<'_>) {
        let header = segment.header;
        let prior_una = self.snd.snd_una;
        let prior_len = self.snd.queue.len();
        let prior_delivered = self.snd.delivered;
        let prior_lost = self.snd.lost;
        let prior_sack = match self.options.sack {
            true if self.snd.queue.counts.sacked > 0 => self.snd.highest_sack,
            _ => prior_una,
        };
        let mut state = self.begin(now, segment);
        if header.ack.after(prior_una) {
            state.advanced = true;
            self.snd.timeouts = 0;
        }
        let was_reneging = self.snd.is_reneging;
        self.update_window(now, header, &mut state);
        self.snd.acknowledged_to(header.ack);
        if self.options.sack && !header.options.sack.is_empty() {
            self.take_sacks(now, header, prior_una, &mut state);
        }
        if prior_len == 0 {
            self.on_ack_of_nothing(now, prior_una, &mut state);
            return;
        }
        self.clean_queue(now, prior_una, prior_sack, &mut state);
        self.update_reordering_window(&state);
        self.end_tail_loss_probe(now, header.ack, &state);
        let mut next = Next::Nothing;
        if state.is_dubious(self.snd.phase) {
            let duplicate = u32::from(!state.advanced && state.is_duplicate() && !state.dsack);
            self.judge(now, prior_una, duplicate, &mut state, &mut next);
        }
        if state.rearm {
            self.rearm(now);
        }
        state.rate.newly_delivered = self.snd.delivered.wrapping_sub(prior_delivered);
        state.rate.newly_lost = self.snd.lost.wrapping_sub(prior_lost);
        self.finish_rate_sample(now, was_reneging, &mut state);
        self.control_congestion(now, &state);
        self.send_recovery(now, next);
    }

    fn on_ack_of_nothing(&mut self, now: Instant, prior_una: SeqNumber, state: &mut Ack) {
        if state.dsack {
            let mut next = Next::Nothing;
            self.judge(now, prior_una, 0, state, &mut next);
        }
        self.probe_answered(now);
        if self.snd.tlp_high_seq.is_some() {
            let ack = self.snd.snd_una;
            self.end_tail_loss_probe(now, ack, state);
        }
    }

    /// Whether the segment may change the peer's window.
    pub(crate) fn may_update_window(&self, header: &TcpHeader) -> bool {
        let window = u32::from(header.window) << self.options.send_shift;
        header.ack.after(self.snd.snd_una)
            || header.seq.after(self.snd.snd_wl1)
            || (header.seq == self.snd.snd_wl1 && (window > self.snd.snd_wnd || window == 0))
    }

    //= RFC 9293, section 3.10.7.4, fifth check
    pub(crate) fn update_window(&mut self, now: Instant, header: &TcpHeader, state: &mut Ack) {
        if !self.may_update_window(header) {
            return;
        }
        state.window_updated = true;
        let window = u32::from(header.window) << self.options.send_shift;
        if self.snd.take_window(header.seq, window) && self.snd.has_unsent() {
            self.restart_after_idle(now);
        }
    }

    /// Takes out of the queue what is acknowledged, and samples.
    fn clean_queue(
        &mut self,
        now: Instant,
        prior_una: SeqNumber,
        prior_sack: SeqNumber,
        state: &mut Ack,
    ) {
        let prior_sacked = self.snd.queue.counts.sacked;
        let gone = self.drop_acknowledged_segments(now, state);
        if let Some(head) = self.snd.queue.front() {
            state.reneging = head.marks.has(Marks::SACKED) && self.options.sack;
        }
        let mut sample: Option<u64> = None;
        let mut latest: Option<u64> = None;
        if let Some((first, last)) = gone.sent_once.filter(|_| !state.retransmitted_acked) {
            //= RFC 6298, section 3 (Karn's algorithm)
            sample = Some(now.nanos_since(first));
            latest = Some(now.nanos_since(last));
            let lone = gone.count == 1 && gone.whole && prior_sacked == 0;
            let advance = self.snd.snd_una.distance_from(prior_una).unsigned_abs();
            let at_once =
                state.rate.prior_delivered.map(|n| n.wrapping_add(1)) == Some(self.snd.delivered);
            state.rate.may_be_delayed =
                lone && advance < self.snd.mss && at_once && !state.newly_sacked;
        }
        let sack_sample = state.first_sacked_at.map(|at| now.nanos_since(at));
        if let Some(at) = state.last_sacked_at {
            latest = Some(now.nanos_since(at));
        }
        let sampled = self.take_samples(now, sample.or(sack_sample), latest, state);
        if state.acked {
            state.rearm = true;
            if !self.options.sack {
                self.forget_duplicates(gone.count, state);
            } else if gone.lowest.before(prior_sack) {
                self.note_reordering(gone.lowest);
            }
        } else if let (true, Some(sack), Some(head)) =
            (sampled, sack_sample, self.snd.queue.front())
        {
            // The timer may start anew only if what was SACKed was sent before the head.
            state.rearm |= sack > now.nanos_since(head.sent_at);
        }
        if let Some(rtt) = state.rate.rtt_us {
            let context = self.context(now);
            self.snd
                .algorithm
                .sample(&mut self.snd.window, rtt, &context);
        }
    }

    fn drop_acknowledged_segments(&mut self, now: Instant, state: &mut Ack) -> Gone {
        let snd_una = self.snd.snd_una;
        let mut gone = Gone {
            count: 0,
            whole: true,
            lowest: self.snd.snd_nxt,
            sent_once: None,
        };
        while let Some(head) = self.snd.queue.front() {
            if head.end().after(snd_una) {
                let covered = snd_una.distance_from(head.seq);
                if covered > 0 {
                    // Part of a segment: only probes and other stacks' splits bring this.
                    self.snd.queue.trim_front(covered.unsigned_abs());
                    gone.whole = false;
                }
                break;
            }
            let Some(head) = self.snd.queue.pop_front() else {
                break;
            };
            let marks = head.marks;
            if marks.is_retransmission() {
                if marks.has(Marks::RETRANSMITTED) {
                    self.snd.queue.counts.retransmitted -= 1;
                }
                state.retransmitted_acked = true;
            } else if !marks.has(Marks::SACKED) {
                let first = gone.sent_once.map_or(head.sent_at, |(first, _)| first);
                gone.sent_once = Some((first, head.sent_at));
                gone.lowest = gone.lowest.min(head.seq);
                state.original_arrived |= !head.end().after(self.snd.high_seq);
            }
            if marks.has(Marks::SACKED) {
                self.snd.queue.counts.sacked = self.snd.queue.counts.sacked.saturating_sub(1);
            } else if self.options.sack {
                self.snd.delivered = self.snd.delivered.wrapping_add(1);
                if !self.is_spurious(&head, state) {
                    self.advance_rack(now, &head);
                }
            }
            if marks.has(Marks::LOST) {
                self.snd.queue.counts.lost -= 1;
            }
            self.sample_rate(&head, state);
            state.acked = true;
            gone.count += 1;
        }
        gone
    }

    /// Feeds the estimator with samples in ns; tells whether there was one.
    fn take_samples(
        &mut self,
        now: Instant,
        sample: Option<u64>,
        latest: Option<u64>,
        state: &mut Ack,
    ) -> bool {
        let (sample, latest) = match sample {
            Some(sample) => (sample, latest),
            None => {
                //= RFC 7323, section 4.1: only what advances the window is sampled
                let by_echo = state
                    .echo
                    .filter(|_| state.acked)
                    .and_then(|echo| self.options.rtt(now, echo));
                let Some(rtt) = by_echo else {
                    state.rate.rtt_us = latest.map(micros);
                    return false;
                };
                (rtt, Some(rtt))
            }
        };
        let latest = micros(latest.unwrap_or(sample));
        state.rate.rtt_us = Some(latest);
        //= RFC 8985, section 6.2, step 1
        let least = self.snd.min_rtt.value();
        let suspect = state.rate.may_be_delayed && least.is_some_and(|least| latest > least);
        if !suspect {
            self.snd.min_rtt.update(now, latest);
        }
        let beats = match self.snd.rto.counts_beats() {
            true => self.beats_since(now, now - Duration::from_nanos(sample)),
            false => 0,
        };
        self.take_sample(now, sample, beats);
        true
    }

    /// Gives one sample of `rtt` ns to the estimator.
    pub(crate) fn take_sample(&mut self, now: Instant, rtt: u64, beats: u32) {
        let round = Round {
            snd_una: self.snd.snd_una,
            snd_nxt: self.snd.snd_nxt,
            cwnd: self.snd.window.cwnd,
        };
        if self.snd.min_rtt.value().is_none() {
            self.snd.min_rtt.update(now, micros(rtt));
        }
        self.snd.rto.sample(&self.clock, rtt, beats, round);
    }

    /// Slow heartbeats since `then`, counted from one.
    pub(crate) fn beats_since(&self, now: Instant, then: Instant) -> u32 {
        let beats = self.clock.ticks(now).saturating_sub(self.clock.ticks(then));
        u32::try_from(beats).unwrap_or(u32::MAX).saturating_add(1)
    }

    fn control_congestion(&mut self, now: Instant, state: &Ack) {
        if self.snd.algorithm.rules_alone() {
            let standing = self.standing(now);
            if let Algorithm::Bbr(bbr) = &mut self.snd.algorithm {
                bbr.acknowledged(&mut self.snd.window, &state.rate, &standing);
                if bbr.holds_back() {
                    let held = self.snd.delivered.wrapping_add(standing.in_flight);
                    self.snd.application_limited = Some(held);
                }
            }
            return;
        }
        let delivered = state.rate.newly_delivered;
        if self.snd.is_reducing() {
            self.reduce_window(delivered, state.rate.newly_lost, state.advanced);
        } else if self.may_grow(state) {
            let context = self.context(now);
            self.snd
                .algorithm
                .grow(&mut self.snd.window, delivered, &context);
            self.snd.validated_at = now;
        }
    }

    fn may_grow(&self, state: &Ack) -> bool {
        if let Growth::PerAck { .. } = *self.profile.growth {
            // Linux 2.4: only a window that was filled.
            return state.acked && state.rate.prior_in_flight >= self.snd.window.cwnd;
        }
        if self.snd.reordering > 3 && self.profile.recovery.value == Recovery::Rack {
            state.acked || state.newly_sacked
        } else {
            state.acked
        }
    }

    pub(crate) fn standing(&self, now: Instant) -> Standing {
        Standing {
            now,
            delivered: self.snd.delivered,
            delivered_at: self.snd.delivered_at,
            in_flight: self.snd.queue.in_flight(),
            mss: self.snd.mss,
            srtt_us: self.snd.rto.srtt_us(&self.clock),
            in_recovery: self.snd.phase == Phase::Recovery,
            in_loss: self.snd.phase == Phase::Loss,
        }
    }

    /// Sends what judging the acknowledgement asked for.
    fn send_recovery(&mut self, now: Instant, next: Next) {
        match next {
            Next::Nothing => {}
            Next::Lost => self.retransmit_lost(now),
            Next::New => {
                self.push_without_delay(now);
                if !self.snd.snd_nxt.after(self.snd.high_seq) {
                    self.snd.frto = false;
                    self.retransmit_lost(now);
                }
            }
        }
    }

    /// Sets the transmission timer after progress: for a loss probe, or else for a timeout.
    pub(crate) fn rearm(&mut self, now: Instant) {
        if self.snd.queue.is_empty() || !self.schedule_loss_probe(now, true) {
            self.rearm_retransmission(now);
        }
    }

    //= RFC 6298, section 5.2
    //= RFC 6298, section 5.3
    pub(crate) fn rearm_retransmission(&mut self, now: Instant) {
        if self.snd.queue.is_empty() {
            if self.xmit_kind() != Some(Xmit::Persist) {
                self.timers.xmit = None;
            }
            return;
        }
        let delay = match self.xmit_kind() {
            Some(Xmit::Reorder | Xmit::LossProbe) => self.timeout_left(now).max(MICROSECOND),
            _ => self.timeout_after_progress(now),
        };
        let delay = delay.saturating_add(self.pacing_delay(now));
        self.arm_nanos(now, Xmit::Retransmit, delay);
    }

    /// The timeout to set after progress, in ns.
    pub(crate) fn timeout_after_progress(&self, now: Instant) -> u64 {
        if *self.profile.timer_from_head {
            self.timeout_left(now).max(MICROSECOND)
        } else {
            self.snd.rto.current_nanos()
        }
    }

    /// What is left of the timeout of the head of the queue, in ns.
    pub(crate) fn timeout_left(&self, now: Instant) -> u64 {
        let rto = self.snd.rto.current_nanos();
        match self.snd.queue.front() {
            Some(head) => head.sent_at.after_nanos(rto).nanos_since(now),
            None => rto,
        }
    }
}

impl super::Sender {
    /// A segment that begins at `seq` offers `window` bytes; tells whether that is another window.
    pub(crate) fn take_window(&mut self, seq: SeqNumber, window: u32) -> bool {
        self.snd_wl1 = seq;
        let is_news = window != self.snd_wnd;
        self.snd_wnd = window;
        self.max_window = self.max_window.max(window);
        is_news
    }

    /// SND.UNA is now `ack`.
    pub(crate) fn acknowledged_to(&mut self, ack: SeqNumber) {
        let mut bytes = ack.distance_from(self.snd_una).max(0).unsigned_abs();
        if bytes == 0 {
            return;
        }
        self.snd_una = ack;
        if self.fin_sent && ack == self.snd_nxt {
            bytes -= 1;
        }
        self.acknowledged += u64::from(bytes);
    }
}

/// In ns.
pub(crate) const MICROSECOND: u64 = 1_000;

/// Whole microseconds of `nanos`, at most an hour's worth.
pub(crate) fn micros(nanos: u64) -> u32 {
    // Less than 2^32.
    (nanos / MICROSECOND).min(u64::from(u32::MAX)) as u32
}
