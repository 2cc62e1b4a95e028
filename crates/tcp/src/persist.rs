//! The persist timer and zero-window probes (RFC 9293, section 3.8.6.1; RFC 1122, section
//! 4.2.2.17).
//!
//! A stack that obeys a premature zero window (thesis, sections 2.3.3 and 5.4) stops its
//! retransmission timer and probes, with data outstanding; one that ignores it stays on its
//! retransmission timer, and never gives up while the peer answers.

use crate::endpoint::{Endpoint, Error, Out, Xmit};
use crate::profile::{GiveUp, ZeroWindow};
use crate::sender::queue::Marks;
use outlast_base::time::{Duration, Instant};
use outlast_wire::TcpFlags;

/// How far probing has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Probing {
    /// Probes without an answer.
    pub(crate) unanswered: u8,
    /// Since when the window has been closed.
    pub(crate) since: Option<Instant>,
    /// The window closed over data that was outstanding, and that is held back now.
    pub(crate) holds: bool,
    /// A probe carried the byte at `snd_nxt`, which may have been taken.
    pub(crate) byte_sent: bool,
    shift: u8,
}

impl Endpoint {
    /// Starts probing if the window keeps back all that there is.
    pub(crate) fn probe_if_blocked(&mut self, now: Instant) {
        let blocked = self.snd.queue.is_empty() && self.snd.has_unsent();
        if blocked && self.timers.xmit.is_none() {
            self.persist.shift = 0;
            self.arm(now, Xmit::Persist, self.probe_interval());
        }
    }

    fn probe_interval(&self) -> Duration {
        let limits = *self.profile.persist;
        let base = match self.profile.recovery.has_scoreboard() {
            true => self.snd.rto.current().max(self.snd.rto.min()),
            // BSD counts from the estimate.
            false => self.snd.rto.unbacked(&self.clock),
        };
        base.saturating_mul(1 << self.persist.shift.min(20))
            .clamp(limits.min, limits.max)
    }

    /// The peer's window is zero, or no longer.
    pub(crate) fn obey_zero_window(&mut self, now: Instant) {
        if *self.profile.zero_window != ZeroWindow::Obeyed {
            return;
        }
        if self.persist.holds && self.snd.queue.is_empty() {
            // What was held back had arrived; what is left was never sent.
            self.persist.holds = false;
        }
        if self.snd.snd_wnd == 0 && !self.snd.queue.is_empty() && !self.persist.holds {
            // Outstanding segments count as never sent; the congestion window stays.
            self.persist.holds = true;
            self.persist.shift = 0;
            self.persist.since = Some(now);
            self.hold_outstanding();
            self.arm(now, Xmit::Persist, self.probe_interval());
        } else if self.snd.snd_wnd > 0 && self.persist.holds {
            self.persist = Probing::default();
            self.timers.xmit = None;
            self.cut_outstanding_anew();
            self.retransmit_lost(now);
        }
    }

    fn hold_outstanding(&mut self) {
        for segment in self.snd.queue.iter_mut() {
            segment.marks = segment
                .marks
                .with(Marks::LOST)
                .without(Marks::RETRANSMITTED);
        }
        self.snd.queue.counts.lost = self.snd.queue.len();
        self.snd.queue.counts.retransmitted = 0;
        self.snd.queue.counts.sacked = 0;
        self.snd.retransmit_hint = None;
        self.snd.timed = None;
    }

    /// An acknowledgement came while nothing was outstanding.
    pub(crate) fn probe_answered(&mut self, now: Instant) {
        if !self.snd.has_unsent() {
            return;
        }
        let next = self
            .snd
            .mss
            .min(u32::try_from(self.snd.unsent_of_record()).unwrap_or(u32::MAX));
        if !(self.snd.snd_nxt + next).after(self.snd.window_end()) {
            self.snd.rto.reset_back_off();
            self.persist = Probing::default();
            if self.xmit_kind() == Some(Xmit::Persist) {
                self.timers.xmit = None;
            }
        } else if self.xmit_kind() == Some(Xmit::Persist) {
            self.arm(now, Xmit::Persist, self.probe_interval());
        }
    }

    pub(crate) fn on_persist(&mut self, now: Instant) {
        let blocked = self.snd.queue.is_empty() && self.snd.has_unsent();
        if !blocked && !self.persist.holds {
            self.persist = Probing::default();
            return;
        }
        let since = *self.persist.since.get_or_insert(now);
        if let Some(timeout) = self.user_timeout()
            && now.since(since) >= timeout
        {
            self.fail(Error::UserTimeout);
            return;
        }
        //= RFC 9293, section 3.8.6.1: as long as probes are answered, it stays open
        if self.persist.unanswered >= self.most_probes() {
            self.fail(Error::TimedOut);
            return;
        }
        self.persist.unanswered += 1;
        self.send_probe(now);
        self.persist.shift = (self.persist.shift + 1).min(20);
        if !self.snd.queue.is_empty() && !self.persist.holds {
            // The window had room after all.
            return;
        }
        let interval = self.probe_interval();
        self.arm(now, Xmit::Persist, interval);
    }

    /// Probes at once, at the wish of a mechanism; no limit counts it and no interval grows.
    pub(crate) fn probe_now(&mut self, now: Instant) {
        self.send_probe(now);
        if self.snd.queue.is_empty() || self.persist.holds {
            self.arm(now, Xmit::Persist, self.probe_interval());
        }
    }

    fn most_probes(&self) -> u8 {
        let by_profile = match *self.profile.give_up {
            GiveUp::Retransmissions(most) | GiveUp::ModelledTime(most) => most,
            // Eight minutes of doubling.
            GiveUp::Elapsed(_) => 12,
        };
        self.config.retries.unwrap_or(by_profile)
    }

    fn send_probe(&mut self, now: Instant) {
        if self.persist.holds {
            self.counters.window_probes += 1;
            self.send_held_byte();
            return;
        }
        if self.snd.snd_nxt.before(self.snd.window_end()) && self.snd.unsent() > 0 {
            // Not zero, only too small for a full segment; or the application holds it back.
            if self.send_new_probe(now) {
                self.push_last();
            }
            return;
        }
        self.counters.window_probes += 1;
        if self.profile.persist.carries_data && self.snd.unsent() > 0 {
            self.persist.byte_sent = true;
            self.transmit(Out {
                seq: self.snd.snd_nxt,
                len: 1,
                offset: self.snd.next_offset,
                flags: TcpFlags::ACK | TcpFlags::PSH,
                ack: None,
            });
        } else {
            self.send_old_ack();
        }
    }

    fn send_held_byte(&mut self) {
        let Some(head) = self.snd.queue.front().copied() else {
            return;
        };
        if head.marks.has(Marks::FIN) && head.len == 1 {
            self.send_old_ack();
            return;
        }
        self.transmit(Out {
            seq: head.seq,
            len: 1,
            offset: self.snd.offset_of(head.seq),
            flags: TcpFlags::ACK | TcpFlags::PSH,
            ack: None,
        });
    }
}
