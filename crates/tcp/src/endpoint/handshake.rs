//! Opening (RFC 9293, sections 3.5 and 3.10.7.1 to 3.10.7.3).

use super::{Endpoint, Error, Event, Out, State, Xmit};
use crate::congestion::Algorithm;
use crate::profile::HandshakeRto;
use crate::sender::queue::{Marks, NewSegment};
use outlast_base::time::{Duration, Instant};
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

impl Endpoint {
    /// Queues and sends the SYN, or in SYN-RECEIVED the SYN-ACK.
    pub(super) fn send_syn(&mut self, now: Instant) {
        self.snd.queue.push(NewSegment {
            seq: self.snd.iss,
            len: 1,
            sent_at: now,
            delivered: 0,
            delivered_at: now,
            first_sent_at: now,
            marks: Marks::SYN,
        });
        self.snd.snd_nxt = self.snd.iss + 1;
        self.snd.timed = Some((self.snd.iss, now));
        self.transmit_syn();
        self.arm(now, Xmit::Retransmit, self.snd.rto.current());
    }

    pub(crate) fn transmit_syn(&mut self) {
        let ack = match self.state {
            State::SynReceived => TcpFlags::ACK,
            _ => TcpFlags::default(),
        };
        self.transmit(Out {
            seq: self.snd.iss,
            len: 0,
            offset: 0,
            flags: TcpFlags::SYN | ack,
            ack: None,
        });
    }

    //= RFC 9293, section 3.10.7.2
    pub(super) fn on_listen(&mut self, now: Instant, header: &TcpHeader) {
        if header.has(TcpFlags::RST) {
            return;
        }
        if header.has(TcpFlags::ACK) {
            self.reset_reply(header, 0);
            return;
        }
        if !header.has(TcpFlags::SYN) {
            return;
        }
        self.take_syn(now, header);
        self.state = State::SynReceived;
        self.send_syn(now);
    }

    fn take_syn(&mut self, now: Instant, header: &TcpHeader) {
        self.options.settle(now, header);
        self.user_timeouts.hear(header);
        self.rcv.start(now, header.seq + 1, self.options.sack);
        self.snd.snd_wnd = u32::from(header.window);
        self.snd.max_window = self.snd.snd_wnd;
        self.snd.snd_wl1 = header.seq;
        self.snd.mss = self.effective_mss();
    }

    /// Payload of a full segment.
    //= RFC 9293, section 3.7.1 (Eff.snd.MSS)
    fn effective_mss(&self) -> u32 {
        let ours = self.config.announced_mss();
        let mss = u32::from(self.options.peer_mss.min(ours));
        (mss - self.options.header_overhead()).max(48)
    }

    pub(super) fn on_syn_sent(&mut self, now: Instant, header: &TcpHeader) {
        //= RFC 9293, section 3.5, figure 8
        //= RFC 9293, section 3.10.7.3, first check
        let acceptable = header.ack == self.snd.snd_nxt;
        if header.has(TcpFlags::ACK) && !acceptable {
            if !header.has(TcpFlags::RST) {
                self.reset_reply(header, 0);
                self.repeat_syn_soon(now);
            }
            return;
        }
        if header.has(TcpFlags::RST) {
            //= RFC 9293, section 3.10.7.3, second check
            if header.has(TcpFlags::ACK) {
                self.fail(Error::Refused);
            }
            return;
        }
        if !header.has(TcpFlags::SYN) {
            return;
        }
        self.take_syn(now, header);
        if header.has(TcpFlags::ACK) {
            self.state = State::Established;
            self.establish(now, header);
            self.send_ack();
            self.push(now);
        } else {
            //= RFC 9293, section 3.5, figure 7
            self.state = State::SynReceived;
            self.transmit_syn();
        }
    }

    /// The peer may have a connection left from earlier, which the reset has ended: the first SYN
    /// that it did not answer is sent again soon.
    fn repeat_syn_soon(&mut self, now: Instant) {
        if self.snd.timeouts == 0
            && let Some(delay) = *self.profile.syn_after_reset
        {
            self.arm(now, Xmit::Retransmit, delay);
        }
    }

    /// An acknowledgement in SYN-RECEIVED; tells whether it was the one that was due.
    pub(super) fn on_syn_received(&mut self, now: Instant, header: &TcpHeader) -> bool {
        //= RFC 9293, section 3.10.7.4, fifth check
        if header.ack != self.snd.iss + 1 && !header.ack.after(self.snd.snd_una) {
            self.reset_reply(header, 0);
            return false;
        }
        if header.ack.after(self.snd.snd_nxt) {
            self.reset_reply(header, 0);
            return false;
        }
        self.state = State::Established;
        self.snd.snd_wl1 = header.seq;
        self.snd.snd_wnd = u32::from(header.window) << self.options.send_shift;
        self.snd.max_window = self.snd.max_window.max(self.snd.snd_wnd);
        self.establish(now, header);
        true
    }

    /// A reset before the handshake is done.
    //= RFC 9293, section 3.10.7.4, second check
    pub(super) fn on_refusal(&mut self) {
        if !self.is_passive || self.is_shut {
            self.fail(Error::Refused);
            return;
        }
        // The SYN was an old duplicate: the peer knows of no connection, and neither does this
        // end. What it has been written stays.
        let listening = Self::listen(self.config.clone());
        let (counters, written) = (self.counters, self.snd.written);
        *self = listening;
        self.counters = counters;
        self.snd.written = written;
    }

    /// The SYN is acknowledged.
    //= RFC 9293, section 3.5, figure 6
    fn establish(&mut self, now: Instant, header: &TcpHeader) {
        let Some(syn) = self.snd.queue.pop_front() else {
            return;
        };
        if self.snd.fin_wanted {
            self.state = State::FinWait1;
        }
        self.snd.snd_una = self.snd.iss + 1;
        self.snd.queue.counts = Default::default();
        self.snd.timed = None;
        let again = self.snd.timeouts;
        self.snd.timeouts = 0;
        self.snd.retransmit_stamp = None;
        self.snd.retransmitting_since = None;
        self.timers.xmit = None;
        self.last_heard = now;
        let rtt = if syn.marks.is_retransmission() {
            // Karn, unless the echo tells which one it was.
            let echo = self.options.echo(header);
            echo.and_then(|echo| self.options.rtt(now, echo))
        } else {
            Some(now.nanos_since(syn.sent_at))
        };
        match rtt {
            Some(rtt) => {
                let beats = self.beats_since(now, syn.sent_at);
                self.take_sample(now, rtt, beats);
            }
            None => self.snd.rto.set(self.rto_without_sample()),
        }
        if again > 1 {
            //= RFC 6928, section 2: a lost SYN means an initial window of one segment
            self.snd.window.set(1);
        }
        for mark in [
            &mut self.snd.high_seq,
            &mut self.snd.highest_sack,
            &mut self.snd.usage_end,
            &mut self.snd.small_end,
        ] {
            *mark = self.snd.iss + 1;
        }
        self.snd.validated_at = now;
        self.snd.last_sent = now;
        self.snd.delivered_at = now;
        self.user_timeouts.repeat();
        self.start_algorithm(now);
        let advertised = u32::from(self.config.announced_mss()) - self.options.header_overhead();
        self.rcv.establish(now, advertised);
        self.start_keepalive(now);
        self.emit(Event::Connected);
    }

    //= RFC 6298, section 5.7
    fn rto_without_sample(&self) -> Duration {
        match *self.profile.handshake_rto {
            HandshakeRto::Exactly(rto) => rto,
            HandshakeRto::AtLeast(least) => least.max(self.snd.rto.current()),
        }
    }

    fn start_algorithm(&mut self, now: Instant) {
        let standing = self.standing(now);
        if let Algorithm::Bbr(bbr) = &mut self.snd.algorithm {
            bbr.start(&self.snd.window, &standing);
        }
    }

    /// A reset for a segment that belongs to no connection.
    //= RFC 9293, section 3.10.7.1
    pub(super) fn reset_reply(&mut self, header: &TcpHeader, len: u32) {
        if header.has(TcpFlags::RST) {
            return;
        }
        let out = if header.has(TcpFlags::ACK) {
            Out {
                seq: header.ack,
                len: 0,
                offset: 0,
                flags: TcpFlags::RST,
                ack: None,
            }
        } else {
            Out {
                seq: SeqNumber(0),
                len: 0,
                offset: 0,
                flags: TcpFlags::RST | TcpFlags::ACK,
                ack: Some(header.seq + len + header.control_len()),
            }
        };
        self.outbox.push(out);
    }
}
