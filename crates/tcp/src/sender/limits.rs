//! What may be sent now: idle restart, window validation, Nagle, pacing.
//!
//! RFC 5681, section 4.1; RFC 2861 and RFC 7661 (validation); RFC 9293, section 3.7.4 (Nagle) and
//! 3.8.6.2.1 (sender's silly window avoidance).

use super::Phase;
use super::writes::Small;
use crate::endpoint::Endpoint;
use crate::profile::IdleRestart;
use outlast_base::time::Instant;

impl Endpoint {
    /// Before sending after a pause.
    pub(crate) fn restart_after_idle(&mut self, now: Instant) {
        if !self.snd.queue.is_empty() || self.snd.algorithm.rules_alone() {
            return;
        }
        let idle = now.since(self.snd.last_sent);
        let rto = self.snd.rto.current();
        if idle <= rto {
            return;
        }
        let initial = self.profile.initial_window.min(self.snd.window.cwnd);
        match *self.profile.idle_restart {
            IdleRestart::Keep => {}
            //= RFC 5681, section 4.1
            IdleRestart::SlowStart => self.snd.window.set(initial),
            //= RFC 2861, section 3
            IdleRestart::Decay => {
                self.snd.window.ssthresh = self.snd.current_ssthresh();
                let halvings = idle.as_nanos().saturating_sub(1) / rto.as_nanos().max(1);
                let halvings = u32::try_from(halvings).unwrap_or(31).min(31);
                let cwnd = (self.snd.window.cwnd >> halvings).max(initial);
                self.snd.window.set(cwnd);
                self.snd.used = 0;
                self.snd.validated_at = now;
            }
        }
    }

    /// After sending: remembers whether the window was what held the sender back.
    //= RFC 7661, section 4.2
    pub(crate) fn validate_window(&mut self, now: Instant, limited: bool) {
        let outstanding = self.snd.queue.len();
        let snd = &mut self.snd;
        if snd.snd_una.at_or_after(snd.usage_end)
            || limited
            || (!snd.window.is_limiting && outstanding > snd.window.most_outstanding)
        {
            snd.window.is_limiting = limited;
            snd.window.most_outstanding = outstanding;
            snd.usage_end = snd.snd_nxt;
        }
        if snd.window.is_limiting() {
            snd.used = 0;
            snd.validated_at = now;
            return;
        }
        snd.used = snd.used.max(outstanding);
        let decays = *self.profile.idle_restart == IdleRestart::Decay
            && !snd.algorithm.rules_alone()
            && now.nanos_since(snd.validated_at) >= snd.rto.current_nanos();
        if decays {
            self.shrink_unused(now);
        }
    }

    //= RFC 2861, section 3
    fn shrink_unused(&mut self, now: Instant) {
        let used = self.snd.used.max(*self.profile.initial_window);
        if self.snd.phase == Phase::Open && used < self.snd.window.cwnd {
            self.snd.window.ssthresh = self.snd.current_ssthresh();
            self.snd.window.cwnd = (self.snd.window.cwnd + used) / 2;
        }
        self.snd.used = 0;
        self.snd.validated_at = now;
    }

    /// Whether a segment of `len` bytes must wait because it is small.
    //= RFC 9293, section 3.7.4
    pub(crate) fn holds_small(&self, len: u32, small: Small) -> bool {
        let snd = &self.snd;
        if len >= snd.mss {
            return false;
        }
        // The end of a record with data behind it cannot grow.
        let end = snd.next_offset + u64::from(len);
        if end == snd.writes.record_end && end < snd.written {
            return false;
        }
        match small {
            Small::Free => false,
            Small::Corked => true,
            // Minshall: only one small segment at a time.
            Small::Nagle => {
                !snd.queue.is_empty()
                    && snd.small_end.after(snd.snd_una)
                    && !snd.small_end.after(snd.snd_nxt)
            }
        }
    }

    /// How long the next segment must wait, in ns.
    pub(crate) fn pacing_delay(&self, now: Instant) -> u64 {
        match self.snd.algorithm.rules_alone() {
            true => self.snd.next_departure.nanos_since(now),
            false => 0,
        }
    }

    /// Whether the next segment must wait, in which case it is waited for.
    pub(crate) fn is_paced(&mut self, now: Instant) -> bool {
        if self.pacing_delay(now) == 0 {
            return false;
        }
        self.timers.pacing = self.snd.next_departure;
        true
    }

    /// A segment of `bytes` has left.
    pub(crate) fn note_departure(&mut self, now: Instant, bytes: u32) {
        let Some(rate) = self.snd.algorithm.pacing_rate() else {
            return;
        };
        let len = u64::from(bytes + self.config.header_len() + self.options.header_overhead());
        let spacing = (len.saturating_mul(1_000_000_000) / rate.max(1)).min(1_000_000_000);
        let idle = now.nanos_since(self.snd.next_departure);
        // Half of it may be caught up if the last departure was late.
        let spacing = spacing - (spacing / 2).min(idle);
        self.snd.next_departure = self.snd.next_departure.max(now).after_nanos(spacing);
    }
}
