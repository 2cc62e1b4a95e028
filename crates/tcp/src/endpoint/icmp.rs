//! ICMP errors (RFC 9293, section 3.9.2.2; RFC 5461; RFC 6069).

use super::{Endpoint, Error, State, Xmit};
use crate::profile::HandshakeErrors;
use outlast_base::time::Instant;
use outlast_wire::{IcmpError, SeqNumber};

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
        if self.ends_handshake(error, seq) {
            // A request is dropped as by a reset: no application has heard of it yet.
            match self.state {
                State::SynReceived if self.is_passive => self.on_refusal(),
                _ => self.fail(Error::Unreachable),
            }
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

    /// Whether `error`, about the segment at `seq`, is the end of a handshake.
    fn ends_handshake(&self, error: &IcmpError, seq: SeqNumber) -> bool {
        let HandshakeErrors::Fatal { spares_requests } = *self.profile.icmp_in_handshake else {
            return false;
        };
        let is_v4 = self.config.local.is_ipv4();
        let (kind, code) = (error.kind, error.code);
        // What is too big is sent in smaller packets, and redirects and source quenches are no
        // errors.
        let is_error = match is_v4 {
            true => matches!((kind, code), (3, 0..=3 | 5..=15) | (11 | 12, _)),
            false => matches!(kind, 1 | 3 | 4),
        };
        match self.state {
            State::SynSent => is_error,
            State::SynReceived if !self.is_passive => is_error,
            State::SynReceived if spares_requests => {
                let ends_request = match is_v4 {
                    true => matches!((kind, code), (3, 0 | 1) | (11 | 12, _)),
                    false => matches!((kind, code), (1, 1 | 4..) | (4, _)),
                };
                ends_request && seq == self.snd.iss
            }
            State::SynReceived => is_error && seq == self.snd.iss,
            _ => false,
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
