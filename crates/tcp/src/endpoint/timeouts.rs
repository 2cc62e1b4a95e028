//! A deadline has come.

use super::{Endpoint, NEVER, State, Xmit};
use outlast_base::time::Instant;

impl Endpoint {
    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant) {
        if let Some(alarm) = self.timers.xmit
            && self.fires_at(alarm) <= now
        {
            self.timers.xmit = None;
            match alarm.kind {
                Xmit::Retransmit => self.on_retransmission_timeout(now),
                Xmit::LossProbe => self.on_loss_probe(now),
                Xmit::Reorder => self.on_reordering_timeout(now),
                Xmit::Persist => self.on_persist(now),
            }
        }
        if let Some(wait) = self.timers.delayed_ack
            && self.delayed_ack_at(wait) <= now
        {
            self.timers.delayed_ack = None;
            if self.rcv.delay_is_over(self.snd.rto.current_nanos()) {
                self.send_ack();
            }
        }
        if self.timers.compressed_ack <= now {
            self.timers.compressed_ack = NEVER;
            self.send_ack();
        }
        if self.timers.pacing <= now {
            self.timers.pacing = NEVER;
            self.retransmit_lost(now);
            self.push(now);
        }
        if self.timers.keepalive <= now {
            self.timers.keepalive = NEVER;
            self.on_keepalive(now);
        }
        if self.timers.linger <= now {
            self.timers.linger = NEVER;
            self.on_linger();
        }
    }

    /// After the application has read: whether the window must be told.
    #[inline]
    pub(super) fn after_read(&mut self, now: Instant) {
        let shift = self.options.receive_shift;
        if self.rcv.wants_update(shift) && self.state != State::Closed {
            self.send_ack();
        }
        self.rcv.tune(now);
    }

    /// Sends, delays or leaves the acknowledgement of what has arrived.
    #[inline]
    pub(super) fn acknowledge_if_due(&mut self, now: Instant) {
        if self.rcv.owes_acknowledgement() {
            self.acknowledge_data(now);
        }
    }

    #[inline]
    fn acknowledge_data(&mut self, now: Instant) {
        use crate::receiver::Due;
        let srtt_us = self.snd.rto.srtt_us(&self.clock);
        match self
            .rcv
            .acknowledgement_due(self.options.receive_shift, srtt_us)
        {
            Due::No => {}
            Due::Now => self.send_ack(),
            Due::Within(delay) => self.delay_ack(now, delay),
            Due::Compressed(delay) => {
                let at = now.after_nanos(delay);
                self.timers.compressed_ack = self.timers.compressed_ack.min(at);
            }
        }
    }
}
