//! Stacks without a scoreboard: Tahoe, Reno and NewReno as BSD has them.
//!
//! Tahoe (Jacobson, SIGCOMM 1988), Reno (RFC 2001, section 4), NewReno (RFC 6582, section 3.2).
//! After a timeout such a stack goes back to SND.UNA and sends everything again as its window
//! grows (*TCP/IP Illustrated*, volume 2, section 25.11): here, everything outstanding counts as
//! lost.

use super::acknowledge::MICROSECOND;
use super::queue::Marks;
use crate::endpoint::{Endpoint, Incoming, Xmit};
use crate::profile::Recovery;
use outlast_base::time::Instant;
use outlast_wire::TcpHeader;

/// Duplicates that mean a loss.
//= RFC 5681, section 3.2
const THRESHOLD: u32 = 3;

impl Endpoint {
    pub(crate) fn acknowledge_classic(&mut self, now: Instant, segment: &Incoming<'_>) {
        let header = segment.header;
        let prior_una = self.snd.snd_una;
        let window_before = self.snd.snd_wnd;
        let is_new = header.ack.after(prior_una);
        //= RFC 5681, section 2
        let may_be_duplicate = !is_new
            && segment.end() == header.seq
            && u32::from(header.window) << self.options.send_shift == window_before
            && !self.snd.queue.is_empty();
        self.update_window_classic(now, header);
        if is_new {
            self.snd.timeouts = 0;
            self.take_new_ack(now, header);
        } else if may_be_duplicate {
            self.take_duplicate(now);
        } else if self.snd.queue.is_empty() {
            self.probe_answered(now);
        } else {
            self.snd.duplicates = 0;
        }
        self.obey_zero_window(now);
    }

    /// The window of an older segment, or of one that says nothing new, does not count.
    //= RFC 9293, section 3.10.7.4, fifth check
    fn update_window_classic(&mut self, now: Instant, header: &TcpHeader) {
        let window = u32::from(header.window) << self.options.send_shift;
        let newer = self.snd.snd_wl1.before(header.seq)
            || (self.snd.snd_wl1 == header.seq
                && (header.ack.after(self.snd.snd_una)
                    || (header.ack == self.snd.snd_una && window > self.snd.snd_wnd)));
        if newer {
            self.snd.snd_wl1 = header.seq;
            self.snd.snd_wnd = window;
            self.snd.max_window = self.snd.max_window.max(window);
            if self.snd.has_unsent() {
                self.restart_after_idle(now);
            }
        }
    }

    fn take_duplicate(&mut self, now: Instant) {
        if self.persist.holds {
            return;
        }
        self.snd.duplicates += 1;
        match self.snd.duplicates {
            THRESHOLD => {
                let repeated = *self.profile.recovery == Recovery::NewReno
                    && !self.snd.snd_una.after(self.snd.high_seq)
                    && self.snd.high_seq != self.snd.iss + 1;
                if repeated {
                    //= RFC 6582, section 3.2, step 2: drawn by what was retransmitted
                    self.snd.duplicates = 0;
                } else {
                    self.fast_retransmit_classic(now);
                }
            }
            n if n > THRESHOLD && self.snd.recover.is_some() => {
                //= RFC 5681, section 3.2, step 4
                self.snd.window.cwnd += 1;
                self.push(now);
            }
            _ => {}
        }
    }

    /// Sends the head of the queue and lowers the window.
    pub(crate) fn fast_retransmit_classic(&mut self, now: Instant) {
        self.counters.fast_recoveries += 1;
        //= RFC 5681, section 3.2, step 2
        self.lower_threshold_classic();
        self.snd.high_seq = self.snd.snd_nxt;
        self.snd.duplicates = self.snd.duplicates.max(THRESHOLD);
        self.send_head_classic(now);
        if *self.profile.recovery == Recovery::Tahoe {
            self.snd.window.set(1);
        } else {
            //= RFC 5681, section 3.2, step 3
            self.snd.window.set(self.snd.window.ssthresh + THRESHOLD);
            self.snd.recover = Some(self.snd.snd_nxt);
        }
        self.snd.window.credit = 0;
        self.arm(now, Xmit::Retransmit, self.snd.rto.current());
    }

    fn send_head_classic(&mut self, now: Instant) {
        if let Some(head) = self.snd.queue.front()
            && !head.marks.has(Marks::LOST)
        {
            self.mark_lost(0);
        }
        if self.send_again(now, 0) {
            self.count_retransmission(0);
        }
    }

    /// Half of what may be outstanding, at least two segments.
    fn lower_threshold_classic(&mut self) {
        let offered = self.snd.snd_wnd / self.snd.mss.max(1);
        let flight = self.snd.window.cwnd.min(offered.max(1));
        self.snd.window.ssthresh = (flight / 2).max(2);
    }

    fn take_new_ack(&mut self, now: Instant, header: &TcpHeader) {
        self.snd.acknowledged_to(header.ack);
        let (acked, sent_at) = self.drop_acknowledged();
        self.sample_classic(now, header, sent_at);
        let in_recovery = self.snd.recover;
        let partial = in_recovery.is_some_and(|recover| header.ack.before(recover));
        if partial && *self.profile.recovery == Recovery::NewReno {
            self.take_partial_ack(now, acked);
        } else if in_recovery.is_some() {
            //= RFC 5681, section 3.2, step 6
            let window = &mut self.snd.window;
            window.set(window.cwnd.min(window.ssthresh));
            self.snd.recover = None;
        } else {
            let context = self.context(now);
            self.snd
                .algorithm
                .grow(&mut self.snd.window, acked.max(1), &context);
            let most = 65_535_u32 << self.options.send_shift;
            let most = most / self.snd.mss.max(1);
            self.snd.window.cwnd = self.snd.window.cwnd.min(most.max(1));
        }
        self.snd.duplicates = 0;
        if self.snd.queue.is_empty() {
            self.timers.xmit = None;
            self.clear_retransmit_stamp();
        } else if !self.persist.holds {
            //= RFC 6298, section 5.3
            let delay = self.timeout_after_progress(now);
            self.arm_nanos(now, Xmit::Retransmit, delay);
        }
        if !self.any_retransmitted() {
            self.clear_retransmit_stamp();
        }
        self.retransmit_lost(now);
    }

    //= RFC 6582, section 3.2, step 3 (partial acknowledgements)
    fn take_partial_ack(&mut self, now: Instant, acked: u32) {
        self.send_head_classic(now);
        let window = &mut self.snd.window;
        window.set(window.cwnd.saturating_sub(acked).max(1) + 1);
    }

    /// Takes acknowledged segments out of the queue; how many, and when the first was sent.
    fn drop_acknowledged(&mut self) -> (u32, Option<Instant>) {
        let mut acked = 0;
        let mut first = None;
        while let Some(head) = self.snd.queue.front().copied() {
            if head.end().after(self.snd.snd_una) {
                let covered = self.snd.snd_una.distance_from(head.seq);
                if covered > 0 {
                    self.snd.queue.trim_front(covered.unsigned_abs());
                }
                break;
            }
            if head.marks.has(Marks::LOST) {
                self.snd.queue.counts.lost -= 1;
            }
            if head.marks.has(Marks::RETRANSMITTED) {
                self.snd.queue.counts.retransmitted -= 1;
            }
            first = first.or(Some(head.sent_at));
            self.snd.queue.pop_front();
            self.snd.delivered = self.snd.delivered.wrapping_add(1);
            acked += 1;
        }
        (acked, first)
    }

    /// One segment a window is timed, or with timestamps each acknowledgement.
    fn sample_classic(&mut self, now: Instant, header: &TcpHeader, sent_at: Option<Instant>) {
        if let Some(echo) = self.options.echo(header) {
            if let Some(rtt) = self.options.rtt(now, echo)
                && sent_at.is_some()
            {
                let beats = self.options.clock(now).wrapping_sub(echo).saturating_add(1);
                self.take_sample(now, rtt, beats);
            }
            return;
        }
        if let Some((seq, at)) = self.snd.timed
            && header.ack.after(seq)
        {
            self.snd.timed = None;
            let beats = self.beats_since(now, at);
            self.take_sample(now, now.nanos_since(at).max(MICROSECOND), beats);
        }
    }

    /// After a timeout: back to SND.UNA with a window of one.
    //= RFC 5681, section 3.1
    //= RFC 6582, section 3.2, step 4
    pub(crate) fn enter_loss_classic(&mut self) {
        // At each timeout, also of the same segment (Cáceres and Iftode 1995, section III.D).
        self.lower_threshold_classic();
        self.snd.window.set(1);
        self.snd.window.credit = 0;
        self.snd.duplicates = 0;
        self.snd.recover = None;
        self.snd.high_seq = self.snd.snd_nxt;
        for index in 0..self.snd.queue.len() as usize {
            self.mark_lost(index);
        }
        self.cut_outstanding_anew();
    }

    /// What is outstanding is lost, and is sent again in full segments from SND.UNA on, however it was sent before.
    ///
    /// `tcp_output` of 4.4BSD-Lite takes `min(so_snd.sb_cc, win) - off` bytes from the socket's buffer, at most
    /// `t_maxseg`: it keeps no record of what it has sent.
    pub(crate) fn cut_outstanding_anew(&mut self) {
        self.snd.retransmit_hint = None;
        if !self.profile.recovery.has_scoreboard() {
            self.snd.queue.cut_anew(self.snd.mss);
        }
    }
}
