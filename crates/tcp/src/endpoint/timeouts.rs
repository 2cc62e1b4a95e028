//! A deadline has come.

use super::{Endpoint, State, Xmit};
use outlast_core::time::Instant;

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
        if self.timers.delayed_ack.is_some_and(|at| at <= now) {
            self.timers.delayed_ack = None;
            if self.rcv.delay_is_over(self.snd.rto.current()) {
                self.send_ack();
            }
        }
        if self.timers.compressed_ack.is_some_and(|at| at <= now) {
            self.timers.compressed_ack = None;
            self.send_ack();
        }
        if self.timers.pacing.is_some_and(|at| at <= now) {
            self.timers.pacing = None;
            self.retransmit_lost(now);
            self.push(now);
        }
        if self.timers.keepalive.is_some_and(|at| at <= now) {
            self.timers.keepalive = None;
            self.on_keepalive(now);
        }
        if self.timers.linger.is_some_and(|at| at <= now) {
            self.timers.linger = None;
            self.on_linger();
        }
    }

    /// After the application has read: whether the window must be told.
    pub(super) fn after_read(&mut self, now: Instant) {
        let shift = self.options.receive_shift;
        if self.rcv.wants_update(shift) && self.state != State::Closed {
            self.send_ack();
        }
        self.rcv.tune(now);
    }

    /// Sends, delays or leaves the acknowledgement of what has arrived.
    pub(super) fn acknowledge_if_due(&mut self, now: Instant) {
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
                let at = now + delay;
                let first = self.timers.compressed_ack.unwrap_or(at);
                self.timers.compressed_ack = Some(first.min(at));
            }
        }
    }

    fn delay_ack(&mut self, now: Instant, delay: core::time::Duration) {
        let at = self.clock.delayed_ack_at(now, delay);
        match self.timers.delayed_ack {
            // It would be sent soon anyway.
            Some(set) if set <= now + delay / 4 => self.send_ack(),
            Some(set) => self.timers.delayed_ack = Some(set.min(at)),
            None => self.timers.delayed_ack = Some(at),
        }
    }
}
