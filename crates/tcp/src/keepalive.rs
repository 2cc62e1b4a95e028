//! Keepalive (RFC 9293, section 3.8.4; RFC 1122, section 4.2.3.6).

use crate::endpoint::{Endpoint, Error, Out, State};
use crate::profile::Keepalive;
use outlast_base::time::{Duration, Instant};
use outlast_wire::TcpFlags;

impl Endpoint {
    pub(crate) fn start_keepalive(&mut self, now: Instant) {
        if self.config.keepalive {
            let idle = self.keepalive_idle();
            self.timers.keepalive = self.clock.fires_at(now, idle);
        }
    }

    /// Idle time before the first probe.
    //= RFC 5482, section 4.2: longer than the user timeout
    fn keepalive_idle(&self) -> Duration {
        let idle = self.profile.keepalive.idle;
        match self.user_timeout() {
            Some(timeout) if self.user_timeouts.is_enabled() => {
                idle.max(timeout + Duration::from_secs(1))
            }
            _ => idle,
        }
    }

    //= RFC 9293, section 3.8.4
    pub(crate) fn on_keepalive(&mut self, now: Instant) {
        if !self.config.keepalive || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        let limits = Keepalive {
            idle: self.keepalive_idle(),
            ..*self.profile.keepalive
        };
        // With data outstanding, the retransmission timer watches.
        if !self.snd.queue.is_empty() || self.snd.has_unsent() {
            self.timers.keepalive = self.clock.fires_at(now, limits.idle);
            return;
        }
        let silent = now.since(self.last_heard);
        if silent < limits.idle {
            self.keepalive_probes = 0;
            self.timers.keepalive = self.clock.fires_at(now, limits.idle - silent);
            return;
        }
        let is_over = match self.user_timeout() {
            Some(timeout) => silent >= timeout && self.keepalive_probes > 0,
            None => self.keepalive_probes >= limits.count,
        };
        if is_over {
            self.send_reset();
            self.fail(Error::KeepaliveTimeout);
            return;
        }
        self.keepalive_probes += 1;
        self.counters.keepalive_probes += 1;
        self.send_old_ack();
        self.timers.keepalive = self.clock.fires_at(now, limits.interval);
    }

    /// An acknowledgement with a sequence number that the peer has seen, which it must answer.
    pub(crate) fn send_old_ack(&mut self) {
        self.transmit(Out {
            seq: self.snd.snd_una - 1,
            len: 0,
            offset: 0,
            flags: TcpFlags::ACK,
            ack: None,
        });
    }
}
