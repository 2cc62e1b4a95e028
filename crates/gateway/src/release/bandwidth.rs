//! The link's rate where nobody has configured it: from what the link is seen to deliver.
//!
//! Before the outage, every connection has timed round trips and what each of them delivered
//! ([`LinkRtt::delivery`](crate::tracking::LinkRtt::delivery)); the newest of these together are the rate to begin with. After it, samples are taken as BBR
//! takes them (draft-ietf-ccwg-bbr, section 4.1; draft-cheng-iccrg-delivery-rate-estimation): one packet
//! is marked, and when it is acknowledged, what was delivered meanwhile is compared with what had been
//! sent in the period before. If nearly all of it was, the rate grows by a quarter, or doubles, as in
//! slow start, if nothing was known to begin with; if not, the link is full, and the rate becomes a
//! quarter more than the link has delivered.
//!
//! A period lasts from the answer to one marked packet to the answer to another, and goes on until enough
//! was sent to judge by: at a pace of less than four packets in a round trip it takes several. Else a pace
//! that has once become so slow would be judged no more, and would remain.
//!
//! Every far host has one vote, and the upper median counts: a far host that loses what it is sent, by accident
//! or on purpose, slows nobody else down. A period in which nothing waited shows nothing of the link's
//! limit, so it lowers no rate.

use super::pace::{GAIN, INITIAL_BURST};
use crate::tracking::{Delivery, FlowIndex, LinkRtt};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_wire::SeqNumber;

/// Round trips that ended within this before the newest one are counted as simultaneous.
const SIMULTANEOUS: Duration = Duration::from_secs(1);
/// A far host votes with at least as many bytes in a period.
const SHORTEST_VOTE: u64 = 4 * 1_500;
/// Above so many thousandths delivered, the link is not full.
const NEARLY_ALL: u64 = 900;
/// The slowest pace, in bits per second: a packet of 1,500 bytes in 200 ms.
const SLOWEST: u64 = 60_000;
/// The pace does not fall below one part in so many of what was seen before: who only answers, and loses
/// all that he is sent, shows nothing of the link.
const MOST_SLOWER: u64 = 16;
/// Periods after link-up in which only loss lowers the rate: the pipe fills, and what had arrived before
/// the outage is acknowledged.
const FILLING: u32 = 2;

/// The estimate for one link.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    /// Whether something is measured.
    is_measuring: bool,
    /// The rate at which the link worked before; a guess, if it is small.
    seen: u64,
    /// That was a guess, and the link has not been full since.
    is_starting: bool,
    /// Some far host has had something delivered in the last period.
    delivers: bool,
    periods: u32,
    now: Period,
    before: Option<Period>,
    far_hosts: BTreeMap<IpAddr, Account>,
    marker: Option<Marker>,
    /// Delivered in the last two periods, in bits per second.
    delivered: [u64; 2],
}

/// From the answer to one marked packet to the answer to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    began: Instant,
    lasted: Duration,
    /// When its own packet was marked, and how much later that of the next period.
    marked_at: Option<Instant>,
    sending_lasted: Duration,
    /// Bytes sent from one marked packet to the next.
    sent: u64,
    /// Bytes of data among them.
    data: u64,
    /// At some time nothing waited.
    ran_dry: bool,
}

/// What one far host was sent, in bytes of data.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    before: u64,
    now: u64,
    delivered: u64,
    has_answered: bool,
    /// Something of it was delivered in the last period.
    delivers: bool,
}

/// How much of what was sent has been delivered, in thousandths: of the rate, and of the bytes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Share {
    as_rate: u64,
    as_bytes: u64,
}

/// A packet whose acknowledgement ends a period.
#[derive(Clone, Copy, Debug)]
struct Marker {
    index: FlowIndex,
    end: SeqNumber,
    /// What comes sooner answers something else.
    earliest: Instant,
    /// Lost, if not acknowledged by then.
    until: Instant,
}

/// A packet with data that goes towards the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) far_host: IpAddr,
    pub(crate) index: FlowIndex,
    /// The sequence number behind it.
    pub(crate) end: SeqNumber,
    /// Sequence numbers that it occupies.
    pub(crate) data: u32,
    /// Its length with its headers, in bytes.
    pub(crate) len: u32,
    /// How long its acknowledgement takes as a rule, and at most.
    pub(crate) round_trip: Duration,
    pub(crate) patience: Duration,
}

/// How a link was seen to work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// What it has delivered lately, in bits per second.
    pub(crate) rate: u64,
    /// Bytes that were under way meanwhile.
    pub(crate) in_flight: u64,
}

/// How the link worked lately, by the newest timed round trip of each of its connections, and how long
/// round trips of that connection take.
pub(crate) fn seen_before(round_trips: impl Iterator<Item = (Delivery, Duration)> + Clone) -> Seen {
    let Some(newest) = round_trips.clone().map(|(one, _)| one.at).max() else {
        return Seen::default();
    };
    let mut together = Seen::default();
    let mut largest = Seen::default();
    for (delivery, took) in round_trips {
        let bytes_per_second = delivery.bytes_per_second.get();
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bytes = u128::from(bytes_per_second) * u128::from(nanos) / 1_000_000_000;
        let one = Seen {
            rate: bytes_per_second.saturating_mul(8),
            in_flight: u64::try_from(bytes).unwrap_or(u64::MAX),
        };
        if one.rate > largest.rate {
            largest = one;
        }
        if newest.since(delivery.at) <= SIMULTANEOUS {
            together.rate = together.rate.saturating_add(one.rate);
            together.in_flight = together.in_flight.saturating_add(one.in_flight);
        }
    }
    if largest.rate > together.rate {
        largest
    } else {
        together
    }
}

fn bits_per_second(bytes: u64, over: Duration) -> u64 {
    let nanos = over.as_nanos().max(1_000);
    let bits = u128::from(bytes) * 8 * 1_000_000_000 / nanos;
    u64::try_from(bits).unwrap_or(u64::MAX)
}

/// The rate of a link of which nothing is known, in bits per second: an initial window in each round
/// trip.
pub(super) const UNKNOWN: u64 = INITIAL_BURST * 8 * 1_000 / LinkRtt::INITIAL.as_millis() as u64;

impl Bandwidth {
    /// The link is back: what it delivers is measured from now on.
    pub(super) fn restart(&mut self, now: Instant, seen: Seen) {
        *self = Self {
            is_measuring: true,
            seen: seen.rate.max(UNKNOWN),
            is_starting: seen.rate < UNKNOWN,
            now: Period {
                began: now,
                ..Period::default()
            },
            ..Self::default()
        };
    }

    pub(super) const fn is_measuring(&self) -> bool {
        self.is_measuring
    }

    /// Nothing has waited for long: the next measurement begins with the next outage.
    pub(super) fn stop(&mut self) {
        if self.is_measuring {
            *self = Self::default();
        }
    }

    /// Nothing waits although something might go.
    pub(super) const fn ran_dry(&mut self) {
        self.now.ran_dry = true;
    }

    /// Whether it is too early to know whether the link is full.
    pub(super) const fn is_filling(&self) -> bool {
        self.periods < FILLING
    }

    /// A packet goes towards the link. Returns another pace if what has come back shows one, for one
    /// that is `pace` now.
    pub(super) fn sent(
        &mut self,
        now: Instant,
        departure: Departure,
        pace: BitRate,
    ) -> Option<BitRate> {
        if !self.is_measuring {
            return None;
        }
        let next = match self.marker {
            Some(marker) if now > marker.until => self.end_period(now, pace),
            _ => None,
        };
        let account = self.far_hosts.entry(departure.far_host).or_default();
        account.now += u64::from(departure.data);
        self.now.sent += u64::from(departure.len);
        self.now.data += u64::from(departure.data);
        // The answer of somebody who loses what he is sent may not come.
        if self.marker.is_none() && (account.delivers || !self.delivers) {
            if self.now.marked_at.is_none() {
                self.now.marked_at = Some(now);
                if let Some(before) = &mut self.before
                    && let Some(marked_at) = before.marked_at
                {
                    before.sending_lasted = now.since(marked_at);
                }
            }
            self.marker = Some(Marker {
                index: departure.index,
                end: departure.end,
                earliest: now + departure.round_trip / 4,
                until: now + departure.patience,
            });
        }
        next
    }

    /// A connection's far host has shown that `bytes` of what was sent since link-up have arrived, some
    /// of them before the number `reached`. Returns another pace if that shows one, for one that is
    /// `pace` now.
    pub(super) fn delivered(
        &mut self,
        now: Instant,
        (far_host, index): (IpAddr, FlowIndex),
        bytes: u32,
        reached: SeqNumber,
        pace: BitRate,
    ) -> Option<BitRate> {
        if !self.is_measuring {
            return None;
        }
        let account = self.far_hosts.entry(far_host).or_default();
        account.delivered += u64::from(bytes);
        account.has_answered = true;
        let marker = self.marker?;
        let is_reached = marker.index == index && reached.at_or_after(marker.end);
        let is_over = is_reached && now >= marker.earliest;
        (is_over || now > marker.until)
            .then(|| self.end_period(now, pace))
            .flatten()
    }

    /// What was marked has arrived, or should have.
    fn end_period(&mut self, now: Instant, pace: BitRate) -> Option<BitRate> {
        self.marker = None;
        if self.before.is_some() && self.now.data < SHORTEST_VOTE {
            return None;
        }
        self.now.lasted = now.since(self.now.began);
        let next = self.judge(pace.bits_per_second());
        self.before = Some(self.now);
        self.periods += 1;
        self.begin_period(now);
        let least = (self.seen / MOST_SLOWER).max(SLOWEST);
        BitRate::from_bits_per_second(next?.max(least))
    }

    fn begin_period(&mut self, now: Instant) {
        self.now = Period {
            began: now,
            ..Period::default()
        };
        self.delivers = false;
        self.far_hosts.retain(|_, account| {
            *account = Account {
                before: account.now,
                has_answered: account.has_answered,
                delivers: account.delivered >= SHORTEST_VOTE,
                ..Account::default()
            };
            self.delivers |= account.delivers;
            account.before > 0
        });
    }

    /// The pace that the period which is over asks for, in bits per second.
    fn judge(&mut self, pace: u64) -> Option<u64> {
        let Some(before) = self.before else {
            // The first answer shows how long a round trip is, and so what a burst in each amounts to.
            let sent = bits_per_second(self.now.sent, self.now.lasted);
            return self.is_starting.then(|| pace.max(sent.saturating_mul(2)));
        };
        let sent = bits_per_second(before.sent, before.sending_lasted);
        let share = self.share_delivered(&before)?;
        let delivered = u64::try_from(u128::from(sent) * u128::from(share.as_rate) / 1_000).ok()?;
        self.delivered = [self.delivered[1], delivered];
        let larger = |rate: u64| rate.saturating_mul(GAIN.0) / GAIN.1;
        if share.as_rate >= NEARLY_ALL {
            let grown = match self.is_starting {
                true => bits_per_second(self.now.sent, self.now.lasted).saturating_mul(2),
                false => larger(delivered),
            };
            return Some(pace.max(grown));
        }
        // An outage is no congestion; nor is a pipe that fills, unless something is lost.
        if before.ran_dry || share.as_rate == 0 || self.is_filling() && share.as_bytes >= NEARLY_ALL
        {
            return None;
        }
        self.is_starting = false;
        Some(larger(self.delivered[0].max(self.delivered[1])))
    }

    /// How much of what was sent `before` has been delivered in the period which is over: the upper
    /// median of the far hosts that answer.
    fn share_delivered(&self, before: &Period) -> Option<Share> {
        let share = |account: Account| {
            let delivered = bits_per_second(account.delivered, self.now.lasted);
            let sent = bits_per_second(account.before, before.sending_lasted);
            let thousandths =
                |part: u64, whole: u64| (part.saturating_mul(1_000) / whole.max(1)).min(1_000);
            Share {
                as_rate: thousandths(delivered, sent),
                as_bytes: thousandths(account.delivered, account.before),
            }
        };
        let answering = self
            .far_hosts
            .values()
            .filter(|account| account.has_answered);
        let voters = answering
            .clone()
            .filter(|account| account.before >= SHORTEST_VOTE);
        let mut votes: Vec<Share> = voters.map(|account| share(*account)).collect();
        if votes.is_empty() {
            let all = answering.fold(Account::default(), |sum, one| Account {
                before: sum.before + one.before,
                delivered: sum.delivered + one.delivered,
                ..sum
            });
            votes.extend((all.before >= SHORTEST_VOTE).then(|| share(all)));
        }
        votes.sort_unstable();
        votes.get(votes.len() / 2).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::VecDeque;
    use core::net::Ipv4Addr;

    const FAR_HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 2));
    const ROUND_TRIP: Duration = Duration::from_millis(60);

    const LINK: u64 = 10_000_000;

    /// How long a pace that has become `slow`, in bits per second, takes to the [`LINK`]'s rate again, where
    /// all that goes out is delivered after a round trip; `None` if it takes longer than 15 s.
    fn time_to_grow_from(slow: u64) -> Option<Duration> {
        let longest = Duration::from_secs(15);
        let begin = Instant::from_millis(1_000);
        let mut bandwidth = Bandwidth::default();
        let seen = Seen {
            rate: LINK,
            in_flight: 75_000,
        };
        bandwidth.restart(begin, seen);
        let mut pace = BitRate::from_bits_per_second(slow).expect("above zero");
        let mut under_way = VecDeque::new();
        let (mut now, mut end) = (begin, SeqNumber(0));
        while now < begin + longest && pace.bits_per_second() < LINK {
            while let Some(&(at, reached)) = under_way.front()
                && at <= now
            {
                under_way.pop_front();
                let whose = (FAR_HOST, FlowIndex::FIRST);
                let next = bandwidth.delivered(at, whose, 1_448, reached, pace);
                pace = next.unwrap_or(pace);
            }
            end += 1_448;
            let departure = Departure {
                far_host: FAR_HOST,
                index: FlowIndex::FIRST,
                end,
                data: 1_448,
                len: 1_500,
                round_trip: ROUND_TRIP,
                patience: 4 * ROUND_TRIP,
            };
            pace = bandwidth.sent(now, departure, pace).unwrap_or(pace);
            under_way.push_back((now + ROUND_TRIP, end));
            now += pace.full_time_for(outlast_base::units::ByteCount(1_500));
        }
        (pace.bits_per_second() >= LINK).then(|| now.since(begin))
    }

    #[test]
    fn a_pace_of_less_than_four_packets_in_a_round_trip_grows_again() {
        let grows_within = |slow, seconds| {
            time_to_grow_from(slow).is_some_and(|time| time < Duration::from_secs(seconds))
        };
        assert!(grows_within(60_000, 5));
        assert!(grows_within(625_000, 2));
    }
}
