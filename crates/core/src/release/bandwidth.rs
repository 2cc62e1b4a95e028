//! The link's rate where nobody has configured it: from what the link is seen to deliver.
//!
//! Before the outage, every connection has timed round trips and what each of them delivered
//! ([`LinkRtt::delivery`](crate::flow::LinkRtt::delivery)); the newest of these together are the rate to begin with. After it, samples are taken as BBR
//! takes them (draft-ietf-ccwg-bbr, section 4.1; draft-cheng-iccrg-delivery-rate-estimation): one packet
//! is marked, and when it is acknowledged, what was delivered meanwhile is compared with what had been
//! sent in the period before. If nearly all of it was, the rate grows by a quarter, or doubles, as in
//! slow start, if nothing was known to begin with; if not, the link is full, and the rate becomes a
//! quarter more than the link has delivered.
//!
//! Every peer has one vote, and the upper median counts: a peer that loses what it is sent, by accident
//! or on purpose, slows nobody else down. A period in which nothing waited shows nothing of the link's
//! limit, so it lowers no rate.

use super::pace::{GAIN, INITIAL_BURST};
use crate::flow::{Delivery, FlowIndex, LinkRtt};
use crate::time::{Duration, Instant};
use crate::units::BitRate;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_wire::SeqNumber;

/// Round trips that ended within this before the newest one are counted as simultaneous.
const SIMULTANEOUS: Duration = Duration::from_secs(1);
/// A peer votes with at least as many bytes in a period.
const SHORTEST_VOTE: u64 = 4 * 1_500;
/// Above so many thousandths delivered, the link is not full.
const NEARLY_ALL: u64 = 900;
/// The slowest pace, in bits per second: a packet of 1,500 bytes in 200 ms.
const SLOWEST: u64 = 60_000;
/// Periods after link-up that may only raise the rate: the pipe fills, and what had arrived before the
/// outage is acknowledged.
const FILLING: u32 = 2;

/// The estimate for one link.
#[derive(Debug, Default)]
pub(super) struct Bandwidth {
    /// Whether something is measured.
    is_measuring: bool,
    /// The rate at the beginning was a guess, and the link has not been full since.
    is_starting: bool,
    periods: u32,
    now: Period,
    before: Option<Period>,
    peers: BTreeMap<IpAddr, Account>,
    marker: Option<Marker>,
    /// Delivered in the last two periods, in bits per second.
    delivered: [u64; 2],
}

/// From one marked packet to the next.
#[derive(Clone, Copy, Debug, Default)]
struct Period {
    began: Instant,
    lasted: Duration,
    sent: u64,
    /// At some time nothing waited.
    ran_dry: bool,
}

/// What one peer was sent, in bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    before: u64,
    now: u64,
    delivered: u64,
    has_answered: bool,
}

/// A packet whose acknowledgement ends a period.
#[derive(Clone, Copy, Debug)]
struct Marker {
    index: FlowIndex,
    end: SeqNumber,
    /// Lost, if not acknowledged by then.
    until: Instant,
}

/// A packet with data that goes towards the link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Departure {
    pub(crate) peer: IpAddr,
    pub(crate) index: FlowIndex,
    /// The sequence number behind it.
    pub(crate) end: SeqNumber,
    /// Its length, in bytes.
    pub(crate) len: u32,
    /// How long its acknowledgement may take.
    pub(crate) patience: Duration,
}

/// The rate at which `deliveries` show the link to have worked lately; `None` if there are none.
pub(crate) fn seen_before(deliveries: impl Iterator<Item = Delivery> + Clone) -> Option<BitRate> {
    let newest = deliveries.clone().map(|one| one.at).max()?;
    let rates = |one: Delivery| one.bytes_per_second.get().saturating_mul(8);
    let last = deliveries
        .clone()
        .filter(|one| newest.since(one.at) <= SIMULTANEOUS);
    let together = last.map(rates).fold(0, u64::saturating_add);
    let largest = deliveries.map(rates).max();
    BitRate::from_bits_per_second(together.max(largest.unwrap_or(0)))
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
    /// The link is back: what it delivers is measured from now on. The rate to begin with may be a
    /// guess.
    pub(super) fn restart(&mut self, now: Instant, is_guess: bool) {
        *self = Self {
            is_measuring: true,
            is_starting: is_guess,
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

    /// A packet goes towards the link.
    pub(super) fn sent(&mut self, now: Instant, departure: Departure) {
        if !self.is_measuring {
            return;
        }
        let len = u64::from(departure.len);
        self.now.sent += len;
        self.peers.entry(departure.peer).or_default().now += len;
        if let Some(marker) = self.marker
            && now > marker.until
        {
            // What was marked is lost: this period says nothing.
            self.begin_period(now);
            self.before = None;
            self.marker = None;
        }
        if self.marker.is_none() {
            self.marker = Some(Marker {
                index: departure.index,
                end: departure.end,
                until: now + departure.patience,
            });
        }
    }

    /// A connection's far host has shown that `bytes` of what was sent since link-up have arrived, and
    /// has acknowledged everything before `acked`. Returns another pace if that shows one, for one that
    /// is `pace` now.
    pub(super) fn delivered(
        &mut self,
        now: Instant,
        (peer, index): (IpAddr, FlowIndex),
        bytes: u32,
        acked: SeqNumber,
        pace: BitRate,
    ) -> Option<BitRate> {
        if !self.is_measuring {
            return None;
        }
        let account = self.peers.entry(peer).or_default();
        account.delivered += u64::from(bytes);
        account.has_answered = true;
        let is_marked =
            |marker: &mut Marker| marker.index == index && acked.at_or_after(marker.end);
        self.marker.take_if(is_marked)?;
        self.now.lasted = now.since(self.now.began);
        let next = self.judge(pace.bits_per_second());
        self.before = Some(self.now);
        self.periods += 1;
        self.begin_period(now);
        BitRate::from_bits_per_second(next?.max(SLOWEST))
    }

    fn begin_period(&mut self, now: Instant) {
        self.now = Period {
            began: now,
            ..Period::default()
        };
        self.peers.retain(|_, account| {
            *account = Account {
                before: account.now,
                has_answered: account.has_answered,
                ..Account::default()
            };
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
        let sent = bits_per_second(before.sent, before.lasted);
        let share = self.share_delivered(&before)?;
        let delivered = u64::try_from(u128::from(sent) * u128::from(share) / 1_000).ok()?;
        self.delivered = [self.delivered[1], delivered];
        let larger = |rate: u64| rate.saturating_mul(GAIN.0) / GAIN.1;
        if share >= NEARLY_ALL {
            let grown = match self.is_starting {
                true => delivered.saturating_mul(2),
                false => larger(delivered),
            };
            return Some(pace.max(grown));
        }
        if before.ran_dry || self.periods < FILLING {
            return None;
        }
        self.is_starting = false;
        Some(larger(self.delivered[0].max(self.delivered[1])))
    }

    /// Thousandths of what was sent `before` that have been delivered in the period which is over, as
    /// rates; the upper median of the peers that answer.
    fn share_delivered(&self, before: &Period) -> Option<u64> {
        let share = |account: Account| {
            let delivered = bits_per_second(account.delivered, self.now.lasted);
            let sent = bits_per_second(account.before, before.lasted);
            (sent > 0).then(|| (u128::from(delivered) * 1_000 / u128::from(sent)).min(1_000))
        };
        let answering = self.peers.values().filter(|account| account.has_answered);
        let voters = answering
            .clone()
            .filter(|account| account.before >= SHORTEST_VOTE);
        let mut votes: Vec<u128> = voters.filter_map(|account| share(*account)).collect();
        if votes.is_empty() {
            let all = answering.fold(Account::default(), |sum, one| Account {
                before: sum.before + one.before,
                delivered: sum.delivered + one.delivered,
                ..sum
            });
            votes.extend((all.before >= SHORTEST_VOTE).then(|| share(all)).flatten());
        }
        votes.sort_unstable();
        let median = votes.get(votes.len() / 2)?;
        u64::try_from(*median).ok()
    }
}
