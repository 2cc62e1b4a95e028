//! What of a link's rate is allotted to each mobile, and to each of its connections.
//!
//! Brown and Singh leave the wireless half without congestion control, because a bandwidth management module
//! at the supervisor host gives each connection a rate and keeps to it ("M-TCP", 1997, sections 3.1 and 4). Here
//! mobiles that are sent data share the link's rate alike, and so do the connections of a mobile. The shares
//! change as connections come and go. What one leaves unused, the others get: [the round](super::round) decides
//! at each packet. The share says how much of a connection may wait for the link.

use crate::tracking::FlowIndex;
use alloc::collections::BTreeMap;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};

/// A connection without new data for so long has no share.
const IDLE: Duration = Duration::from_secs(1);
/// Those that are idle are looked for so often, at most.
const LOOK: Duration = Duration::from_millis(100);
/// What a connection's share sends in this time may wait for the link: more than a round trip of the wired half.
const BACKLOG: Duration = Duration::from_millis(250);
/// As much may wait however small the share is: with less, no three duplicate acknowledgements show a loss.
const LEAST_BACKLOG: ByteCount = ByteCount(4 * 1_460);

/// The shares of one link.
#[derive(Debug, Default)]
pub(crate) struct Allotments {
    /// By mobile, the connections that are sent data, and when the last of it came.
    mobiles: BTreeMap<IpAddr, BTreeMap<FlowIndex, Instant>>,
    looked_at: Instant,
}

/// The share of one connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Allotment {
    pub(crate) rate: BitRate,
}

impl Allotment {
    /// How much may wait for the link.
    pub(crate) fn backlog(self) -> ByteCount {
        self.rate.bytes_in(BACKLOG).max(LEAST_BACKLOG)
    }
}

impl Allotments {
    /// New data has come for the connection at `index` with the mobile `far_host`.
    pub(crate) fn note_data(&mut self, now: Instant, far_host: IpAddr, index: FlowIndex) {
        self.mobiles.entry(far_host).or_default().insert(index, now);
        if now.since(self.looked_at) >= LOOK {
            self.looked_at = now;
            self.mobiles.retain(|_, connections| {
                connections.retain(|_, last| now.since(*last) < IDLE);
                !connections.is_empty()
            });
        }
    }

    /// The connection is gone.
    pub(crate) fn forget(&mut self, far_host: IpAddr, index: FlowIndex) {
        if let Some(connections) = self.mobiles.get_mut(&far_host) {
            connections.remove(&index);
            if connections.is_empty() {
                self.mobiles.remove(&far_host);
            }
        }
    }

    /// The share of the connection at `index` with `far_host` in the link's `rate`.
    pub(crate) fn of(&self, rate: BitRate, far_host: IpAddr, index: FlowIndex) -> Allotment {
        let own = self.mobiles.get(&far_host);
        let mobiles = self.mobiles.len() + usize::from(own.is_none());
        let connections = own.map_or(1, |all| all.len() + usize::from(!all.contains_key(&index)));
        let parts = (mobiles as u64).saturating_mul(connections as u64);
        let share = rate.bits_per_second() / parts.max(1);
        Allotment {
            rate: BitRate::from_bits_per_second(share.max(1)).unwrap_or(rate),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tracking::FlowIndex;
    use core::net::Ipv4Addr;

    const RATE: u64 = 12_000_000;

    fn far_host(number: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(192, 0, 2, number))
    }

    fn share(all: &Allotments, mobile: u8, index: u32) -> u64 {
        let rate = BitRate::from_bits_per_second(RATE).expect("a rate");
        all.of(rate, far_host(mobile), FlowIndex::of(index))
            .rate
            .bits_per_second()
    }

    #[test]
    fn mobiles_share_alike_and_so_do_their_connections() {
        let mut all = Allotments::default();
        let now = Instant::from_millis(5_000);
        assert_eq!(share(&all, 1, 0), RATE);
        for (mobile, index) in [(1, 0), (1, 1), (1, 2), (2, 3)] {
            all.note_data(now, far_host(mobile), FlowIndex::of(index));
        }
        assert_eq!(share(&all, 1, 0), RATE / 6);
        assert_eq!(share(&all, 2, 3), RATE / 2);
        assert_eq!(share(&all, 3, 4), RATE / 3, "one that begins");
        all.forget(far_host(2), FlowIndex::of(3));
        assert_eq!(share(&all, 1, 0), RATE / 3);
    }

    #[test]
    fn who_is_sent_nothing_for_a_second_has_no_share() {
        let mut all = Allotments::default();
        all.note_data(Instant::from_millis(5_000), far_host(1), FlowIndex::of(0));
        all.note_data(Instant::from_millis(5_900), far_host(2), FlowIndex::of(1));
        assert_eq!(share(&all, 2, 1), RATE / 2);
        all.note_data(Instant::from_millis(6_100), far_host(2), FlowIndex::of(1));
        assert_eq!(share(&all, 2, 1), RATE);
    }

    #[test]
    fn a_share_of_almost_nothing_lets_a_few_segments_wait() {
        let least = Allotment {
            rate: BitRate::from_bits_per_second(1).expect("a rate"),
        };
        assert_eq!(least.backlog(), LEAST_BACKLOG);
        let much = Allotment {
            rate: BitRate::from_bits_per_second(RATE).expect("a rate"),
        };
        assert_eq!(much.backlog(), ByteCount(RATE / 8 / 4));
    }
}
