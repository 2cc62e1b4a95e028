//! Sending: new data, and lost segments again (RFC 9293, section 3.8.4; RFC 6675, section 5,
//! NextSeg).

use super::acknowledge::{Ack, MICROSECOND};
use super::queue::{Marks, NewSegment, Segment};
use super::writes::Small;
use crate::endpoint::{Endpoint, Out, State, Xmit};
use crate::profile;
use outlast_base::time::Instant;
use outlast_wire::{SeqNumber, TcpFlags};

/// New data on its way out.
#[derive(Debug, Default)]
pub(super) struct Push {
    /// A part of a buffer may wait for the next acknowledgement; else one buffer is all.
    patient: bool,
    /// Full segments of a buffer may be sent in a row.
    in_a_row: bool,
    /// Segments sent.
    sent: u32,
    /// Segments of a buffer that were sent in a row.
    pub(super) full: u32,
    /// Bytes left of the buffer that leaves.
    buffer: u32,
    /// Segments of it that were sent.
    of_buffer: u32,
    /// What may be sent waits until it is more.
    waits: bool,
}

impl Endpoint {
    /// Sends what may be sent; returns how many segments.
    pub(crate) fn push(&mut self, now: Instant) -> u32 {
        self.push_new(now, self.snd.writes.small(), true)
    }

    /// Sends what may be sent right after a write, which others may follow soon.
    pub(crate) fn push_written(&mut self, now: Instant, more: bool) {
        let small = match more {
            true => Small::Corked,
            false => self.snd.writes.small(),
        };
        self.push_new(now, small, true);
    }

    /// Sends what may be sent, small segments included.
    pub(crate) fn push_without_delay(&mut self, now: Instant) {
        self.push_new(now, Small::Free, true);
    }

    /// Sends one buffer, without waiting until more of it may be sent.
    pub(crate) fn push_buffer(&mut self, now: Instant) {
        self.push_new(now, self.snd.writes.small(), false);
    }

    fn push_new(&mut self, now: Instant, small: Small, patient: bool) -> u32 {
        if !self.state.may_send() || self.is_frozen() || self.persist.holds {
            return 0;
        }
        if !self.snd.has_unsent() {
            self.note_application_limit();
            return 0;
        }
        let push = self.push_buffers(now, small, patient, true);
        self.after_push(now, &push);
        push.sent
    }

    /// Sends what may be sent, buffer by buffer; each segment for itself unless `in_a_row`.
    pub(super) fn push_buffers(
        &mut self,
        now: Instant,
        small: Small,
        patient: bool,
        in_a_row: bool,
    ) -> Push {
        let mut push = Push {
            patient,
            in_a_row,
            ..Push::default()
        };
        while self.snd.has_unsent() && self.push_segment(now, small, &mut push) {}
        if push.buffer > 0 && push.sent > 0 {
            self.end_buffer(push.of_buffer);
        }
        push
    }

    /// Sends the next new segment, if it may be sent, or several in a row.
    fn push_segment(&mut self, now: Instant, small: Small, push: &mut Push) -> bool {
        if self.is_paced(now) || self.snd.queue.in_flight() >= self.snd.window.cwnd {
            return false;
        }
        if push.buffer == 0 {
            if push.sent > 0 && !push.patient {
                return false;
            }
            let Some(bytes) = self.next_buffer(now, push.patient) else {
                push.waits = true;
                return false;
            };
            push.buffer = bytes;
            push.of_buffer = 0;
        }
        if push.in_a_row && push.buffer > self.snd.mss {
            let full = self.push_full(now, push.buffer / self.snd.mss, push.of_buffer > 0);
            push.sent += full;
            push.full += full;
            push.of_buffer += full;
            push.buffer -= full * self.snd.mss;
            if full > 0 {
                if push.buffer == 0 {
                    self.end_buffer(push.of_buffer);
                }
                return true;
            }
        }
        let len = push.buffer.min(self.snd.mss);
        let fin_follows = self.snd.fin_wanted && u64::from(len) == self.snd.unsent();
        if !self.fits_window(len) || (!fin_follows && self.holds_small(len, small)) {
            return false;
        }
        let was_empty = self.snd.queue.is_empty();
        if !self.send_next(now, len, push.of_buffer > 0) {
            return false;
        }
        // A probe of the tail, if there is one, takes the timer at the end.
        if !self.may_probe_tail() {
            self.watch_new_segment(now, was_empty);
        }
        push.buffer -= len;
        push.sent += 1;
        push.of_buffer += 1;
        if push.buffer == 0 {
            self.end_buffer(push.of_buffer);
        }
        true
    }

    /// What was sent until now is a buffer, or several, the last one of `segments`.
    fn end_buffer(&mut self, segments: u32) {
        self.push_buffer_end(segments);
        let (end, acknowledged) = (self.snd.next_offset, self.snd.acknowledged);
        if !self.snd.buffers.is_idle() {
            self.snd.buffers.cut(end, acknowledged);
        }
    }

    /// The last of several segments that leave as one buffer carries PSH, where the stack does that.
    fn push_buffer_end(&mut self, segments: u32) {
        if segments > 1
            && matches!(
                *self.profile.push,
                profile::Push::OfSegment { on_buffers: true }
            )
            && let Some(last) = self.outbox.last_mut()
        {
            last.flags = last.flags | TcpFlags::PSH;
        }
    }

    fn after_push(&mut self, now: Instant, push: &Push) {
        let &Push { sent, waits, .. } = push;
        let limited = waits || self.snd.queue.in_flight() >= self.snd.window.cwnd;
        if sent > 0 || limited {
            self.validate_window(now, limited);
        }
        if sent > 0 {
            if self.snd.is_reducing() {
                self.snd.prr_out += sent;
            }
            let _ = self.schedule_loss_probe(now, false);
            self.note_application_limit();
        } else if !waits {
            self.probe_if_blocked(now);
        }
    }

    /// Nothing waits, while the window has room: the delivery rate is the application's.
    #[inline]
    pub(crate) fn note_application_limit(&mut self) {
        let in_flight = self.snd.queue.in_flight();
        let counts = self.snd.queue.counts;
        if self.snd.unsent() < u64::from(self.snd.mss)
            && in_flight < self.snd.window.cwnd
            && counts.lost <= counts.retransmitted
        {
            let until = self.snd.delivered.wrapping_add(in_flight);
            self.snd.application_limited = Some(until);
        }
    }

    /// Payload of the next new segment.
    pub(crate) fn next_len(&self) -> u32 {
        let unsent = self.snd.unsent_of_record().min(u64::from(self.snd.mss)) as u32;
        let room = self.snd.window_end().distance_from(self.snd.snd_nxt);
        let room = u32::try_from(room).unwrap_or(0);
        if unsent <= room {
            return unsent;
        }
        // Sender's silly window avoidance: a part only of at least half the largest window.
        //= RFC 9293, section 3.8.6.2.1
        if room >= (self.snd.max_window / 2).max(1) && room > 0 {
            room
        } else {
            unsent
        }
    }

    /// Whether the next new segment, of `len` bytes, lies within the peer's window.
    pub(crate) fn fits_window(&self, len: u32) -> bool {
        let end = self.snd.snd_nxt + len;
        if self.snd.unsent() == 0 {
            // A FIN alone may stand at the edge.
            return true;
        }
        end.at_or_before(self.snd.window_end())
    }

    /// Sends the next new segment as a probe, cut to fit the window.
    pub(crate) fn send_new_probe(&mut self, now: Instant) -> bool {
        let room = self.snd.window_end().distance_from(self.snd.snd_nxt);
        let len = self.next_len().min(u32::try_from(room).unwrap_or(0));
        self.send_new_segment(now, len)
    }

    /// The segment that was sent last carries PSH, from now on if it is one of the segment.
    pub(crate) fn push_last(&mut self) {
        if *self.profile.push == profile::Push::EndOfWritten {
            return;
        }
        let last = (self.snd.queue.len() as usize).checked_sub(1);
        if let Some(segment) = last.and_then(|last| self.snd.queue.at_mut(last)) {
            segment.marks = segment.marks.with(Marks::PUSHED);
        }
        if let Some(out) = self.outbox.last_mut() {
            out.flags = out.flags | TcpFlags::PSH;
        }
    }

    /// Sends the next new segment, of `len` bytes, and sets the timer if that is needed.
    fn send_new_segment(&mut self, now: Instant, len: u32) -> bool {
        let was_empty = self.snd.queue.is_empty();
        let is_sent = self.send_next(now, len, false);
        if is_sent {
            self.watch_new_segment(now, was_empty);
        }
        is_sent
    }

    fn watch_new_segment(&mut self, now: Instant, was_empty: bool) {
        let kind = self.xmit_kind();
        //= RFC 6298, section 5.1
        if was_empty || kind == Some(Xmit::LossProbe) || kind == Some(Xmit::Persist) {
            self.rearm_retransmission(now);
        }
    }

    /// Sends it; `joined` to the segment before, in one buffer.
    fn send_next(&mut self, now: Instant, len: u32, joined: bool) -> bool {
        let last = u64::from(len) == self.snd.unsent();
        let fin = last && self.snd.fin_wanted && !self.snd.fin_sent;
        if len == 0 && !fin {
            return false;
        }
        let was_empty = self.snd.queue.is_empty();
        if self.snd.queue.in_flight() == 0 {
            let context = self.context(now);
            self.snd.algorithm.restarted(self.snd.last_sent, &context);
        }
        if was_empty {
            // A new stretch of delivery begins.
            self.snd.first_sent_at = now;
            self.snd.delivered_at = now;
        }
        let seq = self.snd.snd_nxt;
        let end = self.snd.next_offset + u64::from(len);
        //= RFC 9293, section 3.9.1.2, PUSH
        let push = len > 0 && self.snd.writes.is_pushed(end);
        let mut marks = match self.snd.application_limited {
            Some(_) => Marks::APPLICATION_LIMITED,
            None => Marks::default(),
        };
        if joined {
            marks = marks.with(Marks::JOINED);
        }
        if push {
            marks = marks.with(Marks::PUSHED);
        }
        if fin {
            marks = marks.with(Marks::FIN);
        }
        self.snd.queue.push(NewSegment {
            seq,
            len: len + u32::from(fin),
            sent_at: now,
            delivered: self.snd.delivered,
            delivered_at: self.snd.delivered_at,
            first_sent_at: self.snd.first_sent_at,
            marks,
        });
        if self.snd.timed.is_none() {
            self.snd.timed = Some((seq, now));
        }
        self.send_segment(now, seq, len, self.snd.next_offset, fin, push);
        self.snd.snd_nxt = seq + len + u32::from(fin);
        self.snd.next_offset = end;
        self.snd.writes.sent_to(end);
        self.snd.fin_sent |= fin;
        self.snd.last_sent = now;
        if len > 0 && len < self.snd.mss {
            self.snd.small_end = self.snd.snd_nxt;
        }
        true
    }

    fn send_segment(
        &mut self,
        now: Instant,
        seq: SeqNumber,
        len: u32,
        offset: u64,
        fin: bool,
        push: bool,
    ) {
        let mut flags = TcpFlags::ACK;
        if fin {
            flags = flags | TcpFlags::FIN;
        }
        if push {
            flags = flags | TcpFlags::PSH;
        }
        self.note_departure(now, len);
        self.transmit(Out {
            seq,
            len,
            offset,
            flags,
            ack: None,
        });
        if len > 0 {
            self.rcv.data_sent(now);
        }
    }

    /// Sends the segment at `index` again, cut to the peer's window; tells whether it went out.
    /// It is not counted as in flight: that is [`Self::count_retransmission`].
    pub(crate) fn send_again(&mut self, now: Instant, index: usize) -> bool {
        let Some(segment) = self.snd.queue.at(index).copied() else {
            return false;
        };
        let room = self.snd.window_end().distance_from(segment.seq);
        if room <= 0 && segment.seq != self.snd.snd_una {
            return false;
        }
        if room > 0 && room.unsigned_abs() < segment.len && segment.len > 1 {
            self.snd.queue.split(index, room.unsigned_abs());
        }
        let Some(segment) = self.snd.queue.at(index).copied() else {
            return false;
        };
        let fin = segment.marks.has(Marks::FIN);
        let len = segment.len - u32::from(fin);
        let offset = self.snd.offset_of(segment.seq);
        self.counters.retransmitted_segments += 1;
        self.counters.retransmitted_bytes += u64::from(len);
        self.snd.retransmissions += 1;
        let (delivered, delivered_at) = (self.snd.delivered, self.snd.delivered_at);
        let first_sent_at = self.snd.first_sent_at;
        let limited = self.snd.application_limited.is_some();
        if let Some(stored) = self.snd.queue.at_mut(index) {
            stored.sent_at = now;
            stored.delivered = delivered;
            stored.delivered_at = delivered_at;
            stored.first_sent_at = first_sent_at;
            stored.marks = stored
                .marks
                .with(Marks::EVER_RETRANSMITTED)
                .without(Marks::APPLICATION_LIMITED);
            if limited {
                stored.marks = stored.marks.with(Marks::APPLICATION_LIMITED);
            }
        }
        self.snd.queue.list_last(index);
        self.snd.buffers.split(offset + u64::from(len));
        // Karn: what is being timed cannot be told from its copy.
        self.snd.timed = None;
        let push = len > 0
            && match *self.profile.push {
                profile::Push::EndOfWritten => offset + u64::from(len) == self.snd.written,
                profile::Push::OfSegment { .. } => segment.marks.has(Marks::PUSHED),
            };
        // It leaves alone, out of its buffer.
        self.snd.queue.part(index);
        self.snd.queue.part(index + 1);
        self.send_segment(now, segment.seq, len, offset, fin, push);
        true
    }

    /// A retransmission is in flight.
    pub(crate) fn count_retransmission(&mut self, index: usize) {
        let Some(segment) = self.snd.queue.at_mut(index) else {
            return;
        };
        let sent_at = segment.sent_at;
        if !segment.marks.has(Marks::RETRANSMITTED) {
            segment.marks = segment.marks.with(Marks::RETRANSMITTED);
            self.snd.queue.counts.retransmitted += 1;
        }
        self.note_retransmission(sent_at);
        let undo = self.snd.undo_retransmissions.unwrap_or(0);
        self.snd.undo_retransmissions = Some(undo + 1);
    }

    /// Sends lost segments again, as far as the window goes.
    //= RFC 6675, section 4 (NextSeg, rule 1)
    pub(crate) fn retransmit_lost(&mut self, now: Instant) {
        if self.snd.queue.is_empty() || self.is_frozen() || self.persist.holds {
            return;
        }
        let hint = self
            .snd
            .retransmit_hint
            .and_then(|id| self.snd.queue.index(id));
        let mut index = hint.unwrap_or(0);
        let mut head_sent = false;
        let mut hole = false;
        // Segments of one buffer that leave together again, and whether the next one is of it.
        let mut together = 0;
        let mut is_joined = false;
        while index < self.snd.queue.len() as usize {
            if self.is_paced(now) {
                break;
            }
            if !hole {
                self.snd.retransmit_hint = Some(self.snd.queue.id(index));
            }
            let counts = self.snd.queue.counts;
            let full = self.snd.queue.in_flight() >= self.snd.window.cwnd;
            if full || counts.retransmitted >= counts.lost {
                break;
            }
            let Some(marks) = self.snd.queue.at(index).map(|segment| segment.marks) else {
                break;
            };
            if !is_joined {
                self.push_buffer_end(together);
                together = 0;
            }
            //= RFC 2018, section 5
            if !marks.has(Marks::LOST) {
                hole |= !marks.has(Marks::RETRANSMITTED) && !marks.has(Marks::SACKED);
                is_joined = false;
            } else if !marks.has(Marks::RETRANSMITTED) {
                let next = self.snd.queue.at(index + 1).map(|next| next.marks);
                if !self.send_again(now, index) {
                    break;
                }
                if is_joined {
                    self.snd.queue.join(index);
                }
                together += 1;
                is_joined = next.is_some_and(|next| next.has(Marks::JOINED));
                self.count_retransmission(index);
                if self.snd.is_reducing() {
                    self.snd.prr_out += 1;
                }
                head_sent |= index == 0;
            }
            index += 1;
        }
        self.push_buffer_end(together);
        if head_sent && self.xmit_kind() != Some(Xmit::Reorder) {
            let rto = self.snd.rto.current_nanos();
            let delay = rto.saturating_add(self.pacing_delay(now));
            self.arm_nanos(now, Xmit::Retransmit, delay);
        }
    }

    /// Judges the delivery rate by a segment that has arrived: the one that was sent last counts.
    pub(crate) fn sample_rate(&mut self, segment: &Segment, state: &mut Ack) {
        if segment.delivered_at == Instant::ZERO && segment.marks.has(Marks::SACKED) {
            // It was judged by when it was SACKed.
            return;
        }
        let later = segment.sent_at > self.snd.first_sent_at
            || (segment.sent_at == self.snd.first_sent_at
                && segment.end().after(state.rate.last_end));
        if state.rate.prior_delivered.is_some() && !later {
            return;
        }
        state.rate.prior_delivered = Some(segment.delivered);
        state.rate.prior_delivered_at = segment.delivered_at;
        state.rate.is_application_limited = segment.marks.has(Marks::APPLICATION_LIMITED);
        state.rate.last_end = segment.end();
        self.snd.first_sent_at = segment.sent_at;
        let sending = segment.sent_at.nanos_since(segment.first_sent_at);
        state.rate.interval_us = sending / MICROSECOND;
    }

    /// Completes the delivery rate sample.
    pub(crate) fn finish_rate_sample(&mut self, now: Instant, reneging: bool, state: &mut Ack) {
        if let Some(limit) = self.snd.application_limited
            && self.snd.delivered.wrapping_sub(limit).cast_signed() > 0
        {
            self.snd.application_limited = None;
        }
        if state.rate.newly_delivered > 0 {
            self.snd.delivered_at = now;
        }
        let Some(prior) = state.rate.prior_delivered.filter(|_| !reneging) else {
            state.rate.prior_delivered = None;
            state.rate.interval_us = 0;
            return;
        };
        state.rate.delivered = self.snd.delivered.wrapping_sub(prior);
        let receiving = now.nanos_since(state.rate.prior_delivered_at);
        state.rate.interval_us = state.rate.interval_us.max(receiving / MICROSECOND);
        let least = self.snd.min_rtt.value().unwrap_or(0);
        if state.rate.interval_us < u64::from(least) {
            state.rate.interval_us = 0;
        }
    }

    /// Fast retransmission without duplicates, at the wish of a mechanism.
    pub(crate) fn force_fast_retransmit(&mut self, now: Instant) {
        if self.state == State::Closed {
            return;
        }
        if !self.profile.recovery.has_scoreboard() {
            self.fast_retransmit_classic(now);
            return;
        }
        self.mark_lost(0);
        self.snd.queue.unlist(0);
        self.enter_recovery(&Ack::default());
        if !self.snd.algorithm.rules_alone() {
            self.reduce_window(1, 1, false);
        }
        self.retransmit_lost(now);
        if self.xmit_kind().is_none() {
            self.arm(now, Xmit::Retransmit, self.snd.rto.current());
        }
    }
}
