//! Packets from what is to be sent (RFC 9293, section 3.1).

use super::{Endpoint, Out, State};
use outlast_core::time::Instant;
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};

impl Endpoint {
    /// Makes the segment in the place of `packet`.
    #[inline]
    pub(super) fn build(&mut self, now: Instant, out: &Out, packet: &mut Packet) {
        self.counters.segments_sent += 1;
        self.ip.identification = self.ip.identification.wrapping_add(1);
        let payload = ModelledPayload {
            stream: self.config.stream_out,
            offset: out.offset,
        };
        let ip = self.ip;
        packet.become_modelled_tcp(&ip, payload, out.len, |header| {
            self.write_header(now, out, header);
        });
    }

    #[inline]
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
        header.source_port = self.config.local.port();
        header.destination_port = self.config.remote.port();
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
    }

    #[inline]
    fn write_options(&mut self, now: Instant, out: &Out, options: &mut TcpOptions) {
        if self.options.timestamps {
            options.timestamps = Some(self.options.stamps(now, true));
        }
        options.user_timeout = self.due_user_timeout(out);
        if self.options.sack && !out.flags.contains(TcpFlags::RST) && self.rcv.has_sacks() {
            let others = if options.user_timeout.is_some() { 4 } else { 0 };
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
        if matches!(self.state, State::Closed | State::Listen) {
            return;
        }
        let out = Out {
            seq: self.snd.snd_nxt,
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
            let shift = self.options.receive_shift;
            self.rcv.acknowledgement_sent(shift);
            self.timers.delayed_ack = None;
            self.timers.compressed_ack = None;
        }
        self.outbox.push_back(out);
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
        self.outbox.push_back(out);
    }
}
