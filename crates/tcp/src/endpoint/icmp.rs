//! ICMP destination unreachable (RFC 9293, section 3.9.2.2; RFC 5461; RFC 6069).

use super::{Endpoint, State, Xmit};
use outlast_core::time::Instant;
use outlast_wire::IcmpError;

impl Endpoint {
    pub(super) fn handle_icmp(&mut self, now: Instant, error: &IcmpError) {
        let Some(quoted) = &error.quoted else {
            return;
        };
        let is_ours = quoted.protocol == 6
            && quoted.ports == Some((self.config.local.port(), self.config.remote.port()))
            && quoted.source == self.config.local.ip()
            && quoted.destination == self.config.remote.ip();
        let Some(seq) = quoted.seq.filter(|_| is_ours) else {
            return;
        };
        //= RFC 5927, section 4.1
        if seq.before(self.snd.snd_una) || seq.after(self.snd.snd_nxt) {
            return;
        }
        let is_v4 = self.config.local.is_ipv4();
        // Network or host unreachable; no route.
        let is_unreachable = match (is_v4, error.kind, error.code) {
            (true, 3, code) => code <= 1,
            (false, 1, code) => code == 0,
            _ => false,
        };
        if !is_unreachable {
            return;
        }
        //= RFC 9293, section 3.9.2.2: a soft error, the connection goes on
        self.soft_error = true;
        //= RFC 6069, section 4.2, step 3
        if *self.profile.icmp_reverts_back_off && seq == self.snd.snd_una {
            self.revert_back_off(now);
        }
    }

    //= RFC 6069, section 4.2
    fn revert_back_off(&mut self, now: Instant) {
        //= RFC 6069, section 4.2, step 2
        let backed_off = self.snd.timeouts > 0 && self.snd.rto.shift() > 0;
        if !backed_off || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        let Some(sent_at) = self.snd.queue.front().map(|head| head.sent_at) else {
            return;
        };
        self.snd.rto.revert(&self.clock);
        let due = sent_at + self.snd.rto.current();
        if due > now {
            //= RFC 6069, section 4.2, step 7
            self.arm(now, Xmit::Retransmit, due - now);
        } else {
            //= RFC 6069, section 4.2, step 8
            self.timers.xmit = None;
            self.on_retransmission_timeout(now);
        }
    }
}
