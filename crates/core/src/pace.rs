//! The link's pace: how fast the gateway may put packets on the link.
//!
//! Thousands of flows come back at once; what is sent for them is spread so that it stays within
//! the link's rate. Where the rate is configured, that is the pace. Where it is not, the pace is
//! that of the acknowledgements: a first burst of ten packets (RFC 6928), then two bytes for
//! every byte that is acknowledged, never more than what one round trip has shown to pass.
//! Acknowledgements may never come - all of the burst was lost, or what waits is UDP. So two
//! more things give credit: a packet that the hosts would have put on the link themselves and
//! that was taken to wait its turn, and time, another burst whenever nothing was allowed for long.

use crate::flow::LinkRtt;
use crate::time::{Duration, Instant};
use crate::units::{BitRate, ByteCount};

/// What is kept goes out this much faster than the link sends, as numerator and denominator: so
/// the link never waits for the gateway, and the standing queue that a sender had built moves
/// back to where it was, in the link's own queue, whose drops are the sender's congestion signal.
const GAIN: (u64, u64) = (5, 4);
/// Packets that may leave ahead of their time, so that a late timer leaves no gap.
const AHEAD_PACKETS: u32 = 8;
/// Longest time by which packets may leave ahead, or catch up.
const AHEAD: Duration = Duration::from_millis(10);
/// Size of the packets that [`AHEAD_PACKETS`] counts, in bytes.
const TYPICAL_PACKET: ByteCount = ByteCount(1_500);
/// The first burst where the rate is not known (RFC 6928, section 2), in bytes.
pub(crate) const INITIAL_BURST: u64 = 10 * 1_500;
/// After this long without credit there is another burst: the round-trip time that is assumed
/// where none is known.
const REFILL: Duration = LinkRtt::INITIAL;
/// However much passes, and however full the link's queue is: what waits gets one part in so many.
const SHARE: u32 = 8;
/// As long as nothing has come from a link that is back, packets may all be waiting for a neighbour's
/// address to be resolved, and then enter the link's queue at once. So this many go out at first, or
/// what the link sends in [`UNHEARD`], if that is more: less than what queues before links hold.
const UNHEARD_PACKETS: u64 = 64;
/// See [`UNHEARD_PACKETS`].
const UNHEARD: Duration = Duration::from_millis(16);
/// Whoever has not been heard by then is not resolved either, or does not answer anyhow.
const UNHEARD_FOR: Duration = Duration::from_millis(100);
/// What passes may keep others waiting for no longer than this, however much it is: past what a
/// link's queue holds, the link drops it.
const LONGEST_QUEUE: Duration = Duration::from_secs(1);

/// The pace of one link.
#[derive(Debug)]
pub(crate) enum Pacer {
    /// The rate is known: `free_at` is when the link has sent everything that it was given. What
    /// waits may go a little ahead of that, and at `turn_at` in any case.
    Rate {
        rate: BitRate,
        ahead: Duration,
        free_at: Instant,
        turn_at: Instant,
        unheard: Option<Unheard>,
    },
    /// The rate is not known: `credit` bytes may go now. Once they are gone, the next burst may
    /// go at `refill_at`.
    AckClocked { credit: u64, refill_at: Instant },
}

/// What may still go out before something has come from the link: so many packets, or so many bytes,
/// whichever lasts longer; all of it from `until` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unheard {
    packets: u64,
    bytes: u64,
    until: Instant,
}

impl Unheard {
    const fn is_used_up(self) -> bool {
        self.packets == 0 && self.bytes == 0
    }
}

impl Pacer {
    pub(crate) fn new(rate: Option<BitRate>) -> Self {
        match rate {
            Some(rate) => {
                let faster = rate.bits_per_second().saturating_mul(GAIN.0) / GAIN.1;
                let rate = BitRate::from_bits_per_second(faster).unwrap_or(rate);
                let ahead = (rate.time_for(TYPICAL_PACKET) * AHEAD_PACKETS).min(AHEAD);
                Self::Rate {
                    rate,
                    ahead,
                    free_at: Instant::ZERO,
                    turn_at: Instant::ZERO,
                    unheard: None,
                }
            }
            None => Self::AckClocked {
                credit: INITIAL_BURST,
                refill_at: Instant::ZERO,
            },
        }
    }

    /// The rate is another from now on, or not known any more. What was given to the link counts
    /// as sent.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Option<BitRate>) {
        *self = Self::new(rate);
        self.restart(now);
    }

    /// The whole link is back: nothing is on it.
    pub(crate) fn restart(&mut self, now: Instant) {
        match self {
            Self::Rate { free_at, .. } => *free_at = now,
            Self::AckClocked { credit, .. } => *credit = INITIAL_BURST,
        }
    }

    /// One of several peers is back. The others' packets are still on the link.
    pub(crate) fn welcome_peer(&mut self, now: Instant) {
        match self {
            Self::Rate { free_at, .. } => *free_at = (*free_at).max(now),
            Self::AckClocked { credit, .. } => *credit = (*credit).max(INITIAL_BURST),
        }
    }

    /// Nothing has come from the link yet since it is back.
    pub(crate) fn await_sign(&mut self, now: Instant) {
        if let Self::Rate { rate, unheard, .. } = self {
            let bits = u128::from(rate.bits_per_second()) * UNHEARD.as_nanos() / 1_000_000_000;
            *unheard = Some(Unheard {
                packets: UNHEARD_PACKETS,
                bytes: u64::try_from(bits / 8).unwrap_or(u64::MAX),
                until: now + UNHEARD_FOR,
            });
        }
    }

    /// Something came from the link.
    pub(crate) const fn heard(&mut self) {
        if let Self::Rate { unheard, .. } = self {
            *unheard = None;
        }
    }

    /// The link's queue was full: it gets the time to send what may be ahead.
    pub(crate) fn congested(&mut self, now: Instant) {
        match self {
            Self::Rate { ahead, free_at, .. } => *free_at = (*free_at).max(now + 2 * *ahead),
            Self::AckClocked { credit: 0, .. } => {}
            Self::AckClocked { credit, refill_at } => {
                *credit = 0;
                *refill_at = now + REFILL;
            }
        }
    }

    /// Whether a packet may go now.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        match self {
            Self::Rate {
                ahead,
                free_at,
                turn_at,
                unheard,
                ..
            } => match unheard {
                Some(unheard) if unheard.is_used_up() && now < unheard.until => false,
                _ => *free_at <= now + *ahead || *turn_at <= now,
            },
            Self::AckClocked { credit, refill_at } => *credit > 0 || *refill_at <= now,
        }
    }

    /// The gateway sent a packet of `len` bytes.
    pub(crate) fn charge(&mut self, now: Instant, len: u32) {
        self.occupy(now, len);
        if let Self::Rate {
            rate,
            turn_at,
            unheard,
            ..
        } = self
        {
            *turn_at = now + rate.time_for(ByteCount(u64::from(len))) * SHARE;
            if let Some(left) = unheard {
                left.packets = left.packets.saturating_sub(1);
                left.bytes = left.bytes.saturating_sub(u64::from(len));
            }
        }
    }

    /// The packet of `len` bytes that was just charged for belongs to a connection that has built no
    /// standing queue: it takes the time that the link itself needs for it. So when thousands of
    /// connections with little to send each come back, what they send is no faster than the link.
    pub(crate) fn charge_rest(&mut self, len: u32) {
        if let Self::Rate { rate, free_at, .. } = self {
            let rest = u64::from(len) * (GAIN.0 - GAIN.1) / GAIN.1;
            *free_at += rate.time_for(ByteCount(rest));
        }
    }

    /// The packet of `len` bytes that was just charged for is nothing that was kept, and has waited for none
    /// such any more: it takes half the time that the link needs for it. No sender's window grows
    /// faster than that in slow start, so that what it has too much of comes to the link's queue.
    pub(crate) fn charge_half(&mut self, len: u32) {
        if let Self::Rate { rate, free_at, .. } = self {
            let less = u64::from(len) * (2 * GAIN.1 - GAIN.0) / (2 * GAIN.1);
            *free_at = *free_at - rate.time_for(ByteCount(less));
        }
    }

    /// The packet that was just charged for takes as long as if it were longer by `len` bytes.
    pub(crate) fn charge_more(&mut self, len: u32) {
        if let Self::Rate {
            rate,
            free_at,
            turn_at,
            ..
        } = self
        {
            let time = rate.time_for(ByteCount(u64::from(len)));
            *free_at += time;
            *turn_at += time * SHARE;
        }
    }

    /// A packet of `len` bytes passed, without having waited for its turn.
    pub(crate) fn charge_passing(&mut self, now: Instant, len: u32) {
        match self {
            Self::Rate { free_at, .. } if *free_at >= now + LONGEST_QUEUE => {}
            _ => self.occupy(now, len),
        }
    }

    fn occupy(&mut self, now: Instant, len: u32) {
        let len = ByteCount(u64::from(len));
        match self {
            // A gap is caught up with, but for what a late timer explains.
            Self::Rate {
                rate,
                ahead,
                free_at,
                ..
            } => {
                *free_at = (*free_at).max(now - *ahead) + rate.time_for(len);
            }
            Self::AckClocked { credit, refill_at } => {
                if *credit == 0 && *refill_at <= now {
                    *credit = INITIAL_BURST;
                }
                if (1..=len.0).contains(credit) {
                    *refill_at = now + REFILL;
                }
                *credit = credit.saturating_sub(len.0);
            }
        }
    }

    /// A packet of `len` bytes that would have passed waits its turn instead.
    pub(crate) fn earn(&mut self, len: u32) {
        if let Self::AckClocked { credit, .. } = self {
            *credit = (*credit + 2 * u64::from(len)).min(INITIAL_BURST.max(*credit));
        }
    }

    /// `bytes` that went over the link were acknowledged.
    pub(crate) fn acknowledged(&mut self, bytes: u32) {
        if let Self::AckClocked { credit, .. } = self {
            let cap = INITIAL_BURST.max(2 * u64::from(bytes));
            *credit = (*credit + 2 * u64::from(bytes)).min(cap);
        }
    }

    /// When the next packet may go at the latest; an acknowledgement may allow it earlier.
    pub(crate) fn next_chance(&self) -> Instant {
        match self {
            Self::Rate {
                ahead,
                free_at,
                turn_at,
                unheard,
                ..
            } => {
                let turn = (*free_at - *ahead).min(*turn_at);
                match unheard {
                    Some(unheard) if unheard.is_used_up() => turn.max(unheard.until),
                    _ => turn,
                }
            }
            Self::AckClocked {
                credit: 0,
                refill_at,
            } => *refill_at,
            Self::AckClocked { .. } => Instant::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of `len` bytes for which there is time in a second at 12 Mbit/s, where each is charged for
    /// and then for its `special` case.
    fn sent_in_a_second(len: u32, special: fn(&mut Pacer, u32)) -> u32 {
        let mut pacer = Pacer::new(BitRate::from_bits_per_second(12_000_000));
        let mut sent = 0;
        for micros in 0..1_000_000 {
            let now = Instant::ZERO + Duration::from_micros(micros);
            while pacer.allows(now) {
                pacer.charge(now, len);
                special(&mut pacer, len);
                sent += 1;
            }
        }
        sent
    }

    #[test]
    fn a_second_brings_what_the_link_sends_where_nobody_has_built_a_queue() {
        let sent = sent_in_a_second(300, Pacer::charge_rest);
        // 5,000 a second, and those that are ahead of time.
        assert!((5_000..=5_060).contains(&sent), "{sent}");
    }

    #[test]
    fn a_second_brings_a_quarter_more_than_the_link_sends() {
        let rate = BitRate::from_bits_per_second(12_000_000);
        let mut pacer = Pacer::new(rate);
        let mut now = Instant::from_millis(1_000);
        pacer.restart(now);
        let mut packets = 0;
        while now < Instant::from_millis(2_000) {
            while pacer.allows(now) {
                pacer.charge(now, 1_500);
                packets += 1;
            }
            now = pacer.next_chance();
        }
        // 12 Mbit/s are 1,000 packets a second, and eight and the one under way may be ahead.
        assert!((1_250..=1_259).contains(&packets), "{packets} packets");
    }

    #[test]
    fn a_second_brings_twice_what_the_link_sends_of_what_waits_for_nobody_else() {
        let sent = sent_in_a_second(1_500, Pacer::charge_half);
        assert!((2_000..=2_030).contains(&sent), "{sent}");
    }

    #[test]
    fn before_the_link_is_heard_little_goes_out() {
        let sent_in = |rate, len, ms, hears_at: Option<u64>| {
            let mut pacer = Pacer::new(BitRate::from_bits_per_second(rate));
            let begin = Instant::from_millis(1_000);
            pacer.restart(begin);
            pacer.await_sign(begin);
            let (mut now, mut sent) = (begin, 0);
            while now < begin + Duration::from_millis(ms) {
                while pacer.allows(now) {
                    pacer.charge(now, len);
                    pacer.charge_rest(len);
                    sent += 1;
                }
                now += Duration::from_micros(100);
                if hears_at.is_some_and(|at| now >= begin + Duration::from_millis(at)) {
                    pacer.heard();
                }
            }
            sent
        };
        // 64 packets, be they small, or 16 ms of what goes out, a quarter faster than the link.
        assert_eq!(sent_in(10_000_000, 352, 99, None), 72);
        assert_eq!(sent_in(10_000_000, 1_500, 99, None), 64);
        assert_eq!(sent_in(100_000_000, 1_500, 99, None), 167);
        // Nobody ever answers: that is no reason to keep the rest for good.
        assert!(sent_in(10_000_000, 352, 1_100, None) > 3_500);
        assert!(sent_in(10_000_000, 352, 1_043, Some(43)) > 3_500);
    }

    #[test]
    fn an_unknown_rate_follows_the_acknowledgements() {
        let mut pacer = Pacer::new(None);
        let now = Instant::ZERO;
        let mut burst = 0;
        while pacer.allows(now) {
            pacer.charge(now, 1_500);
            burst += 1;
        }
        assert_eq!(burst, 10);
        pacer.acknowledged(1_500);
        pacer.charge(now, 1_500);
        assert!(pacer.allows(now));
        pacer.charge(now, 1_500);
        assert!(!pacer.allows(now));
    }

    #[test]
    fn where_nothing_is_acknowledged_the_next_burst_comes_in_time() {
        let mut pacer = Pacer::new(None);
        let mut now = Instant::from_millis(1_000);
        let mut bursts = [0; 3];
        for burst in &mut bursts {
            while pacer.allows(now) {
                pacer.charge(now, 1_500);
                *burst += 1;
            }
            assert_eq!(pacer.next_chance(), now + REFILL);
            now = pacer.next_chance();
        }
        assert_eq!(bursts, [10, 10, 10]);
    }

    #[test]
    fn what_waits_its_turn_pays_for_itself_and_for_one_before_it() {
        let mut pacer = Pacer::new(None);
        let now = Instant::from_millis(1_000);
        while pacer.allows(now) {
            pacer.charge(now, 1_500);
        }
        pacer.earn(1_000);
        pacer.charge(now, 1_000);
        assert!(pacer.allows(now));
        pacer.charge(now, 1_000);
        assert!(!pacer.allows(now));
    }

    #[test]
    fn what_waits_gets_its_share_beside_a_flood() {
        let mut pacer = Pacer::new(BitRate::from_bits_per_second(12_000_000));
        let mut now = Instant::from_millis(1_000);
        let mut sent = 0;
        while now < Instant::from_millis(2_000) {
            pacer.charge_passing(now, 15_000);
            pacer.congested(now);
            while pacer.allows(now) {
                pacer.charge(now, 1_500);
                sent += 1;
            }
            now += Duration::from_micros(100);
        }
        // An eighth of 1,250 packets.
        assert!((150..=170).contains(&sent), "{sent} packets");
    }

    #[test]
    fn a_flood_that_is_over_is_forgotten_within_a_second() {
        let mut pacer = Pacer::new(BitRate::from_bits_per_second(1_000_000));
        let mut now = Instant::from_millis(1_000);
        for _ in 0..100_000 {
            pacer.charge_passing(now, 1_500);
        }
        now += LONGEST_QUEUE + Duration::from_millis(12);
        pacer.charge(now, 1_500);
        assert!(pacer.allows(now));
    }

    #[test]
    fn a_full_queue_ends_the_burst() {
        let mut pacer = Pacer::new(None);
        let now = Instant::from_millis(1_000);
        pacer.charge(now, 1_500);
        pacer.congested(now);
        assert!(!pacer.allows(now));
        assert!(pacer.allows(now + REFILL));
    }
}
