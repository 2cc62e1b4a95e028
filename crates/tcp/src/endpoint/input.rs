//! A segment has arrived (RFC 9293, section 3.10.7), with the stricter checks of RFC 5961 and
//! PAWS (RFC 7323, section 5).

use super::{Endpoint, Error, Event, State};
use crate::options::replay_slack;
use crate::receiver::Arrival;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader, Transport, pattern};

/// Least time between two answers to segments out of the window, where the profile has none.
const REJECTION_PAUSE: Duration = Duration::from_millis(500);

/// A segment, as the checks see it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) header: &'a TcpHeader,
    pub(crate) payload: u32,
}

impl Incoming<'_> {
    /// SEG.SEQ + SEG.LEN.
    pub(crate) fn end(&self) -> SeqNumber {
        self.header.seq + self.payload + self.header.control_len()
    }
}

impl Endpoint {
    /// A packet has arrived. What is not of this connection is ignored.
    #[inline(always)]
    pub fn handle_packet(&mut self, now: Instant, packet: &Packet) {
        let tcp = match &packet.header().transport {
            Transport::Tcp(tcp) => tcp,
            Transport::IcmpError(error) => return self.handle_icmp(now, error),
            Transport::Udp(_) | Transport::Other { .. } => return,
        };
        let is_ours = (tcp.destination_port, tcp.source_port) == self.ports
            && packet.header().ip.source == self.ip.destination
            && packet.header().ip.destination == self.ip.source;
        if !is_ours {
            return;
        }
        self.counters.segments_received += 1;
        let segment = Incoming {
            header: tcp,
            payload: packet.header().payload_len,
        };
        let is_expected = match segment.payload {
            0 => self.take_expected_ack(now, &segment),
            _ => self.take_expected(now, &segment, packet),
        };
        if !is_expected {
            self.handle_segment(now, &segment, packet);
        }
    }

    /// A segment of this connection.
    pub(super) fn handle_segment(&mut self, now: Instant, segment: &Incoming<'_>, packet: &Packet) {
        match self.state {
            State::Closed => self.reset_reply(segment.header, segment.payload),
            State::Listen => self.on_listen(now, segment.header),
            State::SynSent => self.on_syn_sent(now, segment.header),
            State::TimeWait => self.on_time_wait(now, segment),
            _ => self.on_synchronized(now, segment, packet),
        }
    }

    fn on_synchronized(&mut self, now: Instant, segment: &Incoming<'_>, packet: &Packet) {
        if !self.validate(now, segment) {
            self.counters.discarded += 1;
            return;
        }
        let header = segment.header;
        if !header.has(TcpFlags::ACK) {
            return;
        }
        if self.state == State::SynReceived && !self.on_syn_received(now, header) {
            return;
        }
        if !self.acknowledge(now, segment) {
            self.counters.discarded += 1;
            return;
        }
        self.after_acknowledgement(now);
        if self.state == State::Closed {
            return;
        }
        if segment.payload > 0 || header.has(TcpFlags::FIN) {
            self.take_data(now, segment, packet);
        }
        if self.state == State::Closed {
            return;
        }
        self.push(now);
        self.offer_room();
        self.acknowledge_if_due(now);
    }

    /// RFC 9293, section 3.10.7.4, first to fourth check; answers what has to be answered.
    fn validate(&mut self, now: Instant, segment: &Incoming<'_>) -> bool {
        let header = segment.header;
        let is_rst = header.has(TcpFlags::RST);
        //= RFC 7323, section 5.3, R1
        // One tick of slack, as Linux gives.
        if !is_rst && self.options.is_old(now, header, 1) && !self.is_harmless(segment) {
            if header.has(TcpFlags::SYN) {
                self.challenge(now);
            } else if segment.payload > 0 || !header.seq.before(self.rcv.rcv_nxt) {
                self.reject(now, segment);
            }
            return false;
        }
        if !self.is_in_window(segment) {
            if header.has(TcpFlags::SYN) && !is_rst {
                self.challenge(now);
            } else if !is_rst {
                self.reject(now, segment);
            }
            return false;
        }
        if is_rst {
            self.on_reset(now, header);
            return false;
        }
        if header.has(TcpFlags::SYN) {
            return self.on_unexpected_syn(now, segment);
        }
        true
    }

    /// An acknowledgement whose timestamp is old, but which changes nothing and is not much older
    /// than a timeout: the path reordered it.
    fn is_harmless(&self, segment: &Incoming<'_>) -> bool {
        let header = segment.header;
        header.has(TcpFlags::ACK)
            && segment.end() == header.seq
            && header.seq == self.rcv.rcv_nxt
            && header.ack == self.snd.snd_una
            && !self.may_update_window(header)
            && self.options.age(header) <= replay_slack(self.snd.rto.current())
    }

    //= RFC 9293, section 3.10.7.4, first check
    fn is_in_window(&self, segment: &Incoming<'_>) -> bool {
        let right = self.rcv.right_edge();
        // The left edge as the peer knows it: our acknowledgements may be under way.
        segment.end().at_or_after(self.rcv.acknowledged())
            && (segment.end().at_or_before(right) || segment.header.seq.at_or_before(right))
    }

    //= RFC 5961, section 3.2
    fn on_reset(&mut self, now: Instant, header: &TcpHeader) {
        let is_exact =
            header.seq == self.rcv.rcv_nxt || Some(header.seq) == self.rcv.highest_sacked();
        //= RFC 9293, section 3.10.7.4, second check
        if is_exact || self.profile.challenge_ack.is_none() {
            if self.state == State::SynReceived {
                self.on_refusal();
            } else {
                self.fail(Error::Reset);
            }
        } else {
            self.challenge(now);
        }
    }

    //= RFC 5961, section 4.2
    //= RFC 9293, section 3.5.1
    fn on_unexpected_syn(&mut self, now: Instant, segment: &Incoming<'_>) -> bool {
        let header = segment.header;
        let crossed = self.state == State::SynReceived
            && header.has(TcpFlags::ACK)
            && header.seq + 1 == self.rcv.rcv_nxt
            && header.ack == self.snd.snd_nxt;
        if crossed {
            return true;
        }
        if self.state == State::SynReceived && header.seq + 1 == self.rcv.rcv_nxt {
            // The peer has not got our SYN-ACK.
            self.transmit_syn();
        } else if self.profile.challenge_ack.is_some() || header.seq.before(self.rcv.rcv_nxt) {
            // A duplicate of the handshake's, to stacks older than RFC 5961.
            self.challenge(now);
        } else {
            //= RFC 9293, section 3.10.7.4, fourth check
            self.send_reset();
            self.fail(Error::Reset);
        }
        false
    }

    //= RFC 5961, section 7
    pub(crate) fn challenge(&mut self, now: Instant) {
        let pause = self.profile.challenge_ack.unwrap_or(REJECTION_PAUSE);
        if self
            .last_challenge
            .is_some_and(|last| now.since(last) < pause)
        {
            return;
        }
        self.last_challenge = Some(now);
        self.counters.challenge_acks += 1;
        self.send_ack();
    }

    /// Answers a segment that is not acceptable.
    fn reject(&mut self, now: Instant, segment: &Incoming<'_>) {
        // Acknowledgements must not be bounced back and forth.
        let limited = segment.payload == 0
            && self.profile.challenge_ack.is_some()
            && self
                .last_rejection
                .is_some_and(|last| now.since(last) < REJECTION_PAUSE);
        if limited {
            return;
        }
        if segment.payload == 0 {
            self.last_rejection = Some(now);
        }
        if self.state == State::SynReceived {
            return;
        }
        if segment.payload > 0 && segment.header.seq.before(self.rcv.rcv_nxt) {
            self.rcv.note_duplicate(segment.header.seq, segment.end());
        }
        self.send_ack();
    }

    /// Data or a FIN.
    fn take_data(&mut self, now: Instant, segment: &Incoming<'_>, packet: &Packet) {
        if self.refuses_data(segment) {
            return;
        }
        if matches!(
            self.state,
            State::CloseWait | State::Closing | State::LastAck | State::TimeWait
        ) {
            //= RFC 9293, section 3.10.7.4, seventh check
            // Only what was received before can come.
            if segment.end().at_or_before(self.rcv.rcv_nxt) {
                self.rcv.note_duplicate(segment.header.seq, segment.end());
                self.rcv.schedule_ack_now();
            }
            return;
        }
        if let Err(offset) = self.verify(segment, packet) {
            self.send_reset();
            self.fail(Error::WrongData { offset });
            return;
        }
        let was_empty = self.rcv.unread() == 0;
        let rto = self.snd.rto.current_nanos();
        let fin = segment.header.has(TcpFlags::FIN);
        let arrival = self
            .rcv
            .take(now, segment.header.seq, segment.payload, fin, rto);
        self.after_data(now, segment, was_empty);
        if arrival == Arrival::Finished {
            self.on_fin(now);
        }
    }

    /// Data has been taken; tells the application, if it had nothing to read before.
    #[inline]
    pub(super) fn after_data(&mut self, now: Instant, segment: &Incoming<'_>, was_empty: bool) {
        self.measure_receive_rtt(now, segment);
        if was_empty && self.rcv.unread() > 0 {
            self.emit(Event::Readable);
        }
    }

    #[inline]
    fn measure_receive_rtt(&mut self, now: Instant, segment: &Incoming<'_>) {
        if let Some(echo) = self.options.echo(segment.header)
            && self.rcv.takes_rtt_sample(echo, segment.payload)
            && let Some(rtt) = self.options.rtt(now, echo)
        {
            self.rcv.sample_rtt(echo, rtt);
        }
    }

    /// Whether the payload is the stretch of the peer's stream that belongs there; or else, at
    /// which offset it is not.
    #[inline]
    pub(super) fn verify(&self, segment: &Incoming<'_>, packet: &Packet) -> Result<(), u64> {
        if segment.payload == 0 {
            return Ok(());
        }
        let Some(offset) = self.rcv.offset_of(segment.header.seq) else {
            return Ok(());
        };
        match (packet.modelled(), packet.payload()) {
            (Some(payload), _) => {
                let right = payload.stream == self.config.stream_in && payload.offset == offset;
                if right { Ok(()) } else { Err(offset) }
            }
            (None, Some(bytes)) => verify_bytes(self.config.stream_in, offset, bytes),
            (None, None) => Err(offset),
        }
    }
}

fn verify_bytes(stream: u64, offset: u64, bytes: &[u8]) -> Result<(), u64> {
    let mut at = offset;
    for chunk in bytes.chunks(64) {
        let mut right = [0; 64];
        let right = &mut right[..chunk.len()];
        pattern::fill(stream, at, right);
        if let Some(wrong) = chunk.iter().zip(&*right).position(|(a, b)| a != b) {
            return Err(at + wrong as u64);
        }
        at += chunk.len() as u64;
    }
    Ok(())
}
