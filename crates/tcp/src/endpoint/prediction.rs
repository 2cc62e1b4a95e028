//! The segment that was expected, without the questions that it answers by being that.
//!
//! Nearly all that a receiver gets is the next data in order, and nothing else: no news of what it
//! has sent itself, no new window, no options but timestamps. Nearly all that a sender gets is the
//! acknowledgement of the segments that it sent first, each once and none in doubt. What the
//! general way through [`super::input`] does with such a segment is done here in fewer steps, and
//! nothing else is: the tests below compare the two, packet by packet. Stacks do the same (header
//! prediction: *TCP/IP Illustrated*, volume 2, section 28.4; `tcp_rcv_established` of Linux).

use super::{Endpoint, Incoming, State};
use crate::congestion::Context;
use crate::profile::Growth;
use crate::sender::Phase;
use crate::sender::acknowledge::micros;
use crate::sender::queue::Run;
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpFlags};

impl Endpoint {
    /// Takes the segment if it is the next data in order and nothing else; tells whether it is.
    pub(super) fn take_expected(
        &mut self,
        now: Instant,
        segment: &Incoming<'_>,
        packet: &Packet,
    ) -> bool {
        if !self.is_expected(segment) || self.verify(segment, packet).is_err() {
            return false;
        }
        let header = segment.header;
        if header.seq == self.rcv.acknowledged() {
            //= RFC 7323, section 4.3
            self.options.remember(now, header);
        }
        self.note_sign_of_life(now);
        self.snd.snd_wl1 = self.snd.snd_wl1.max(header.seq);
        self.offer_room();
        let was_empty = self.rcv.unread() == 0;
        let rto = self.snd.rto.current_nanos();
        self.rcv.take_expected(now, segment.payload, rto);
        self.after_data(now, segment, was_empty);
        self.note_application_limit();
        self.acknowledge_if_due(now);
        true
    }

    #[inline]
    fn is_expected(&self, segment: &Incoming<'_>) -> bool {
        let header = segment.header;
        let flags = header.flags.0 & !TcpFlags::PSH.0;
        let snd = &self.snd;
        flags == TcpFlags::ACK.0
            && self.state == State::Established
            && header.seq == self.rcv.rcv_nxt
            && header.ack == snd.snd_una
            && u32::from(header.window) << self.options.send_shift == snd.snd_wnd
            && self.rcv.expects(segment.payload)
            && snd.queue.is_empty()
            && !snd.has_unsent()
            && snd.tlp_high_seq.is_none()
            && !self.is_frozen()
            && !self.persist.holds
            && header.options.has_only_timestamps()
            && self.options.age(header) <= 0
            && self.profile.recovery.has_scoreboard()
    }
}

impl Endpoint {
    /// Takes the segment if it acknowledges whole segments in their turn and says nothing else;
    /// tells whether it does.
    ///
    /// The steps are those of [`Endpoint::acknowledge`] and what follows it, in their order. What is
    /// left out would find that nothing is to be done: no segment is marked, so that none can be
    /// found lost, late or needlessly sent again, and the phase can only stay open.
    pub(super) fn take_expected_ack(&mut self, now: Instant, segment: &Incoming<'_>) -> bool {
        if !self.is_plain_ack(segment) {
            return false;
        }
        let header = segment.header;
        let Some(run) = self.snd.queue.plain_run(header.ack) else {
            return false;
        };
        if header.seq == self.rcv.acknowledged() {
            //= RFC 7323, section 4.3
            self.options.remember(now, header);
        }
        self.note_sign_of_life(now);
        let prior_in_flight = self.snd.queue.len();
        self.snd.timeouts = 0;
        self.snd.take_window(
            header.seq,
            u32::from(header.window) << self.options.send_shift,
        );
        let prior_una = self.snd.snd_una;
        self.snd.acknowledged_to(header.ack);
        let acked = self.snd.snd_una.distance_from(prior_una).unsigned_abs();
        self.snd.queue.drop_run(run.count);
        self.snd.note_delivery(now, &run);
        let context = self.context(now);
        self.sample_run(&context, &run, acked);
        self.snd.forget_needless(run.last.delivered);
        self.grow_by_run(&context, &run, prior_in_flight);
        self.go_on_after_run(now);
        self.offer_room();
        self.acknowledge_if_due(now);
        true
    }

    /// Whether the segment can say nothing but that new data has arrived, and finds no question
    /// open.
    #[inline]
    fn is_plain_ack(&self, segment: &Incoming<'_>) -> bool {
        let header = segment.header;
        let flags = header.flags.0 & !TcpFlags::PSH.0;
        let snd = &self.snd;
        segment.payload == 0
            && flags == TcpFlags::ACK.0
            && self.state == State::Established
            && header.ack.after(snd.snd_una)
            && header.seq == self.rcv.rcv_nxt
            && snd.phase == Phase::Open
            && snd.tlp_high_seq.is_none()
            && self.options.sack
            && !self.is_frozen()
            && !self.persist.byte_sent
            && !self.persist.holds
            && header.options.has_only_timestamps()
            && self.options.age(header) <= 0
            && self.profile.recovery.has_scoreboard()
            && !snd.algorithm.rules_alone()
            && !snd.rto.counts_beats()
    }

    /// The round trip of the segments that have left.
    #[inline]
    fn sample_run(&mut self, context: &Context, run: &Run, acked: u32) {
        let now = context.now;
        let latest = micros(now.nanos_since(run.last.sent_at));
        let snd = &mut self.snd;
        // The peer may have waited for a second segment.
        let may_be_delayed = run.count == 1
            && acked < snd.mss
            && run.last.delivered.wrapping_add(1) == snd.delivered;
        let suspect = may_be_delayed && snd.min_rtt.value().is_some_and(|least| latest > least);
        if !suspect {
            snd.min_rtt.update(now, latest);
        }
        self.take_sample(now, now.nanos_since(run.first_sent_at), 0);
        self.snd
            .algorithm
            .sample(&mut self.snd.window, latest, context);
    }

    /// The window grows for the segments that have left.
    #[inline]
    fn grow_by_run(&mut self, context: &Context, run: &Run, prior_in_flight: u32) {
        let may_grow = match *self.profile.growth {
            Growth::PerAck { .. } => prior_in_flight >= self.snd.window.cwnd,
            Growth::PerSegment => true,
        };
        if may_grow {
            self.snd
                .algorithm
                .grow(&mut self.snd.window, run.count, context);
            self.snd.validated_at = context.now;
        }
    }

    /// Sends what may be sent, and sets the transmission timer.
    fn go_on_after_run(&mut self, now: Instant) {
        if !self.may_probe_tail() {
            self.rearm(now);
            self.push(now);
        } else if self.push(now) == 0 {
            // Otherwise what was sent has set it.
            self.rearm(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::profile::{Congestion, LINUX_2_4, LINUX_6, NETBSD_1997};
    use alloc::collections::BTreeMap;
    use alloc::format;
    use alloc::vec::Vec;
    use outlast_base::time::Duration;
    use proptest::prelude::*;

    /// A connection whose packets arrive late, and in another order, or not at all.
    struct Pair {
        now: Instant,
        ends: [Endpoint; 2],
        on_their_way: BTreeMap<(Instant, u64), (usize, Packet)>,
        sent: u64,
        /// Data, and acknowledgements, that were taken as expected.
        expected: u64,
        plain: u64,
    }

    impl Pair {
        fn new(client: Config) -> Self {
            let server = client.mirrored();
            Self {
                now: Instant::ZERO,
                ends: [
                    Endpoint::connect(Instant::ZERO, client),
                    Endpoint::listen(server),
                ],
                on_their_way: BTreeMap::new(),
                sent: 0,
                expected: 0,
                plain: 0,
            }
        }

        /// Lets one packet arrive, or else one timer fire; `fates` say what becomes of packets.
        fn step(&mut self, fates: &[u8]) -> bool {
            self.send(fates);
            let arrival = self.on_their_way.keys().next().copied();
            let timeouts = [0, 1].map(|end: usize| self.ends[end].poll_timeout());
            let timeout = timeouts.into_iter().flatten().map(|(at, _)| at).min();
            match (arrival, timeout) {
                (Some((at, number)), timeout) if timeout.is_none_or(|timer| at <= timer) => {
                    self.now = at;
                    if let Some((end, packet)) = self.on_their_way.remove(&(at, number)) {
                        self.deliver(end, &packet);
                    }
                }
                (_, Some(at)) => {
                    self.now = self.now.max(at);
                    for end in &mut self.ends {
                        end.handle_timeout(self.now);
                    }
                }
                (_, None) => return false,
            }
            for end in &mut self.ends {
                while end.poll_event().is_some() {}
                let _ = end.recv(self.now, u64::MAX);
            }
            true
        }

        fn send(&mut self, fates: &[u8]) {
            for end in 0..2 {
                while let Some(packet) = self.ends[end].poll_transmit(self.now) {
                    self.sent += 1;
                    let late = match fates[self.sent as usize % fates.len()] {
                        0..3 => continue,
                        3..6 => 30,
                        _ => 10,
                    };
                    let at = self.now + Duration::from_millis(late);
                    self.on_their_way.insert((at, self.sent), (1 - end, packet));
                }
            }
        }

        fn deliver(&mut self, end: usize, packet: &Packet) {
            let mut other = self.ends[end].clone();
            self.ends[end].handle_packet(self.now, packet);
            let tcp = packet.tcp().expect("a segment");
            let segment = Incoming {
                header: tcp,
                payload: packet.header().payload_len,
            };
            self.expected += u64::from(other.is_expected(&segment));
            self.plain += u64::from(
                other.is_plain_ack(&segment) && other.snd.queue.plain_run(tcp.ack).is_some(),
            );
            other.counters.segments_received += 1;
            other.handle_segment(self.now, &segment, packet);
            assert_eq!(format!("{:?}", self.ends[end]), format!("{other:?}"));
        }
    }

    #[test]
    fn most_segments_are_expected() {
        let mut config = config(0, true);
        config.send_buffer = Some(u64::MAX);
        let mut pair = Pair::new(config);
        let mut steps = 0;
        pair.ends[0].send(Instant::ZERO, 500_000);
        while pair.ends[1].received() < 500_000 && steps < 10_000 {
            pair.step(&[100]);
            steps += 1;
        }
        let segments = 500_000 / 1_448;
        assert!(pair.expected > segments * 9 / 10, "{}", pair.expected);
        assert!(pair.plain > segments * 4 / 10, "{}", pair.plain);
    }

    fn config(profile: usize, timestamps: bool) -> Config {
        let mut config = Config::new(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into());
        (config.profile, config.congestion) = [
            (&LINUX_6, None),
            (&LINUX_6, Some(Congestion::Bbr)),
            (&LINUX_2_4, None),
            (&NETBSD_1997, None),
        ][profile];
        config.timestamps = Some(timestamps);
        config.send_buffer = Some(1 << 20);
        config
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn what_is_expected_is_taken_as_anything_else(
            profile in 0..4_usize,
            timestamps: bool,
            fates in proptest::collection::vec(any::<u8>(), 1..80),
            writes in proptest::collection::vec((0..2_usize, 1..40_000_u64), 1..12),
        ) {
            let mut pair = Pair::new(config(profile, timestamps));
            let mut writes: Vec<_> = writes.into_iter().rev().collect();
            for step in 0..1_500 {
                if step % 50 == 5 && let Some((end, bytes)) = writes.pop() {
                    let now = pair.now;
                    pair.ends[end].send(now, bytes);
                }
                if step == 1_200 {
                    let now = pair.now;
                    pair.ends[0].close(now);
                }
                if !pair.step(&fates) {
                    // Nobody has anything to do: an hour goes by.
                    pair.now += Duration::from_secs(3_600);
                }
            }
        }
    }
}
