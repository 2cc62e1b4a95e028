//! Full segments in a row, without the questions that the first of them answers for all.
//!
//! Nearly all that a bulk sender sends are full segments of new data, some for each
//! acknowledgement, while others are outstanding. As long as the peer's window has room for all that
//! the congestion window lets go, nothing is to be asked about one of them; what [`Endpoint::push`]
//! does for each is done here in fewer steps. The test below compares the two.

use super::queue::{Marks, NewSegment};
use crate::endpoint::{Endpoint, Out};
use outlast_base::time::Instant;
use outlast_wire::TcpFlags;

impl Endpoint {
    /// Sends up to `limit` full segments of new data, all but the last, as long as the congestion
    /// window has room; returns how many. None where a segment is more than that: the first of a
    /// flight, one that is paced, one that the transmission timer is set for, or one that the
    /// peer's window may cut. They are of one buffer, and `joined` to the segment before if that is
    /// of it, too.
    pub(super) fn push_full(&mut self, now: Instant, limit: u32, joined: bool) -> u32 {
        let in_flight = self.snd.queue.in_flight();
        if in_flight == 0 || self.snd.algorithm.rules_alone() || !self.may_probe_tail() {
            return 0;
        }
        let snd = &mut self.snd;
        let mss = snd.mss;
        let room = snd.window_end().distance_from(snd.snd_nxt);
        let room = u64::try_from(room).unwrap_or(0);
        let most = snd.window.cwnd.saturating_sub(in_flight).min(limit);
        if room < u64::from(most) * u64::from(mss) {
            return 0;
        }
        let mut unsent = snd.unsent_of_record();
        let mut marks = match snd.application_limited {
            Some(_) => Marks::APPLICATION_LIMITED,
            None => Marks::default(),
        };
        if joined {
            marks = marks.with(Marks::JOINED);
        }
        let mut sent = 0;
        while sent < most && unsent > u64::from(mss) {
            let seq = snd.snd_nxt;
            snd.queue.push(NewSegment {
                seq,
                len: mss,
                sent_at: now,
                delivered: snd.delivered,
                delivered_at: snd.delivered_at,
                first_sent_at: snd.first_sent_at,
                marks,
            });
            marks = marks.with(Marks::JOINED);
            self.outbox.push(Out {
                seq,
                len: mss,
                offset: snd.next_offset,
                flags: TcpFlags::ACK,
                ack: None,
            });
            snd.timed.get_or_insert((seq, now));
            snd.snd_nxt = seq + mss;
            snd.next_offset += u64::from(mss);
            unsent -= u64::from(mss);
            sent += 1;
        }
        if sent > 0 {
            snd.last_sent = now;
            self.told_by(sent);
            self.rcv.data_sent(now);
        }
        sent
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use crate::endpoint::Endpoint;
    use crate::profile::{Congestion, LINUX_2_4, LINUX_6};
    use crate::sender::writes::Small;
    use alloc::format;
    use alloc::vec::Vec;
    use outlast_base::time::{Duration, Instant};
    use outlast_wire::Packet;

    /// Packets that `end` sends.
    fn packets(end: &mut Endpoint, now: Instant) -> Vec<Packet> {
        core::iter::from_fn(|| end.poll_transmit(now)).collect()
    }

    #[test]
    fn segments_in_a_row_are_those_sent_one_by_one() {
        let profiles = [
            (&LINUX_6, None, None),
            (&LINUX_6, Some(Congestion::Bbr), None),
            (&LINUX_6, None, Some(9_000)),
            (&LINUX_2_4, None, None),
        ];
        for (profile, congestion, receive_buffer) in profiles {
            let mut config =
                Config::new(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into());
            (config.profile, config.congestion) = (profile, congestion);
            config.send_buffer = Some(u64::MAX);
            config.receive_buffer = receive_buffer;
            let mut now = Instant::from_millis(1);
            let mut server = Endpoint::listen(config.mirrored());
            let mut client = Endpoint::connect(now, config);
            let mut in_a_row = 0;
            for round in 0..120_u64 {
                now += Duration::from_millis(4);
                // What an application writes is pushed at once otherwise.
                client.snd.written += 4_500;
                let mut other = client.clone();
                let _ = other.push_buffers(now, Small::Free, true, false);
                in_a_row += client.push_buffers(now, Small::Free, true, true).full;
                assert_eq!(format!("{client:?}"), format!("{other:?}"), "round {round}");
                if round % 3 != 0 {
                    continue;
                }
                // Now and then the first packet is lost.
                let lost = usize::from(round > 20 && round % 4 == 0);
                for packet in packets(&mut client, now).iter().skip(lost) {
                    server.handle_packet(now, packet);
                }
                let _ = server.recv(now, u64::MAX);
                for packet in packets(&mut server, now) {
                    client.handle_packet(now, &packet);
                }
            }
            let is_roomy = congestion.is_none() && receive_buffer.is_none();
            let expected = is_roomy && profile.tail_loss_probe.value;
            assert_eq!(in_a_row > 10, expected, "{in_a_row}");
        }
    }
}
