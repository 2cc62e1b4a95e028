//! Packets from what is to be sent (RFC 9293, section 3.1).

use super::{Endpoint, NEVER, Out, State, Told};
use outlast_base::time::Instant;
use outlast_wire::tcp::{Experimental, TcpOptions};
use outlast_wire::{IpHeader, ModelledPayload, Packet, PlainTcp, SeqNumber, TcpFlags, TcpHeader};

impl Endpoint {
    /// Makes the segment in the place of `packet`.
    #[inline]
    pub(super) fn build(&mut self, now: Instant, out: Out, packet: &mut Packet) {
        self.counters.segments_sent += 1;
        self.identification = self.identification.wrapping_add(1);
        if self.is_plain(&out) {
            let header = self.plain_header(now, &out);
            let payload = self.payload(&out);
            packet.become_plain_tcp(&self.ip, self.identification, payload, out.len, header);
        } else {
            self.build_any(now, out, packet);
        }
    }

    #[inline(never)]
    fn build_any(&mut self, now: Instant, out: Out, packet: &mut Packet) {
        let ip = IpHeader {
            identification: self.identification,
            ..self.ip
        };
        let payload = self.payload(&out);
        packet.become_modelled_tcp(&ip, payload, out.len, |header| {
            self.write_header(now, &out, header);
        });
    }

    #[inline]
    fn payload(&self, out: &Out) -> ModelledPayload {
        ModelledPayload {
            stream: self.config.stream_out,
            offset: out.offset,
        }
    }

    /// Whether the segment acknowledges, ends nothing, and has no options but timestamps.
    #[inline]
    fn is_plain(&self, out: &Out) -> bool {
        let flags = out.flags.0 & !TcpFlags::PSH.0;
        flags == TcpFlags::ACK.0
            && out.ack.is_none()
            && !self.user_timeouts.is_due()
            && !self.marks_ack
            && !self.rcv.has_sacks()
    }

    #[inline]
    fn plain_header(&mut self, now: Instant, out: &Out) -> PlainTcp {
        let ack = self.rcv.rcv_nxt;
        let window = (self.rcv.window() >> self.options.receive_shift).min(0xffff) as u16;
        self.count_told(out, ack, window);
        PlainTcp {
            ports: self.ports,
            seq: out.seq,
            ack,
            flags: out.flags,
            window,
            timestamps: match self.options.timestamps {
                true => Some(self.options.stamps(now, true)),
                false => None,
            },
        }
    }

    fn write_header(&mut self, now: Instant, out: &Out, header: &mut TcpHeader) {
        let is_syn = out.flags.contains(TcpFlags::SYN);
        let has_ack = out.flags.contains(TcpFlags::ACK);
        // The window of a SYN is never scaled.
        //= RFC 7323, section 2.2
        let shift = if is_syn {
            0
        } else {
            self.options.receive_shift
        };
        (header.source_port, header.destination_port) = self.ports;
        header.seq = out.seq;
        header.ack = match out.ack {
            Some(ack) => ack,
            None if has_ack => self.rcv.rcv_nxt,
            None => SeqNumber(0),
        };
        header.flags = out.flags;
        header.window = match out.flags.contains(TcpFlags::RST) {
            true => 0,
            false => (self.rcv.window() >> shift).min(0xffff) as u16,
        };
        header.urgent = 0;
        if is_syn {
            header.options = self.options.syn_options(&self.config, now, has_ack);
            header.options.user_timeout = self.user_timeouts.option();
        } else {
            self.write_options(now, out, &mut header.options);
        }
        self.count_told(out, header.ack, header.window);
    }

    /// Counts what an acknowledgement repeats, or closes.
    #[inline]
    fn count_told(&mut self, out: &Out, ack: SeqNumber, window: u16) {
        if !out.flags.contains(TcpFlags::ACK) {
            return;
        }
        let telling = Some(Told::new(ack, window));
        let repeats = self.told == telling;
        self.told = telling;
        let special = TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST;
        if out.flags.intersects(special) {
            return;
        }
        if window == 0 {
            self.counters.zero_windows += 1;
        } else if repeats && out.len == 0 && out.seq == self.snd.snd_nxt {
            self.counters.duplicate_acks += 1;
        }
    }

    fn write_options(&mut self, now: Instant, out: &Out, options: &mut TcpOptions) {
        if out.is_reset_reply() {
            // It stands for no connection, and so for nothing that was negotiated.
            return;
        }
        if self.options.timestamps {
            options.timestamps = Some(self.options.stamps(now, true));
        }
        if self.user_timeouts.is_due() {
            options.user_timeout = self.due_user_timeout(out);
        }
        if self.marks_ack && out.len == 0 && out.seq.before(self.snd.snd_nxt) {
            self.marks_ack = false;
            options.experimental = Some(Experimental::immediate_retransmission());
        }
        if self.options.sack && !out.flags.contains(TcpFlags::RST) && self.rcv.has_sacks() {
            let others = if options.user_timeout.is_some() { 4 } else { 0 };
            let others = others + if options.experimental.is_some() { 8 } else { 0 };
            let fixed = self.config.header_len() + self.options.header_overhead() + others;
            let fixed = fixed + out.len;
            let room = u32::from(self.config.mtu).saturating_sub(fixed + 4) / 8;
            //= RFC 2018, section 3
            let most = (36 - self.options.header_overhead() - others) / 8;
            options.sack = self.rcv.take_sacks(room.min(most) as usize);
        }
    }

    /// An acknowledgement without data.
    pub(crate) fn send_ack(&mut self) {
        self.send_ack_from(self.snd.snd_nxt);
    }

    /// An acknowledgement without data that bears the sequence number `seq`: that of a keep-alive lies before
    /// what the peer expects.
    pub(super) fn send_ack_from(&mut self, seq: SeqNumber) {
        if matches!(self.state, State::Closed | State::Listen) {
            return;
        }
        let out = Out {
            seq,
            len: 0,
            offset: 0,
            flags: TcpFlags::ACK,
            ack: None,
        };
        self.transmit(out);
    }

    /// Puts a segment out; if it acknowledges, no other acknowledgement is due.
    pub(crate) fn transmit(&mut self, out: Out) {
        if out.flags.contains(TcpFlags::ACK) {
            self.told_by(1);
        }
        self.outbox.push(out);
    }

    /// So many segments that acknowledge are put out: no other acknowledgement is due.
    #[inline]
    pub(crate) fn told_by(&mut self, segments: u32) {
        let shift = self.options.receive_shift;
        self.rcv.acknowledgements_sent(shift, segments);
        self.timers.delayed_ack = None;
        self.timers.compressed_ack = NEVER;
    }

    /// A reset in the place of the next segment.
    pub(crate) fn send_reset(&mut self) {
        let out = Out {
            seq: self.snd.snd_nxt,
            len: 0,
            offset: 0,
            flags: TcpFlags::RST | TcpFlags::ACK,
            ack: None,
        };
        self.outbox.push(out);
    }
}
