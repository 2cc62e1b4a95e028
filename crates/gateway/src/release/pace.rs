//! The link's pace: how fast the gateway may put packets on the link.
//!
//! Thousands of flows come back at once; what is sent for them is spread so that it stays within the
//! link's rate. Where the rate is configured, that is the pace. Where it is not, the gateway goes by
//! what the link has been seen to deliver, before the outage and since ([`Bandwidth`]); of a link of
//! which nothing is known, by a first burst of ten packets (RFC 6928) and what becomes of it.

use super::bandwidth::{Bandwidth, Departure, Seen, UNKNOWN};
use crate::tracking::FlowIndex;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_wire::SeqNumber;

/// What is kept goes out this much faster than the link sends, as numerator and denominator: so
/// the link never waits for the gateway, and the standing queue that a sender had built moves
/// back to where it was, in the link's own queue, whose drops are the sender's congestion signal.
pub(super) const GAIN: (u64, u64) = (5, 4);
/// Packets that may leave ahead of their time, so that a late timer leaves no gap.
const AHEAD_PACKETS: u32 = 8;
/// Longest time by which packets may leave ahead, or catch up.
const AHEAD: Duration = Duration::from_millis(10);
/// Size of the packets that [`AHEAD_PACKETS`] counts, in bytes.
const TYPICAL_PACKET: ByteCount = ByteCount(1_500);
/// The first burst where the rate is not known (RFC 6928, section 2), in bytes.
pub(crate) const INITIAL_BURST: u64 = 10 * 1_500;
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
pub(crate) struct Pacer {
    /// What waits goes out as fast as this: [`GAIN`] times the link's rate, as far as that is known.
    pace: BitRate,
    /// By how much packets may leave ahead of their time.
    ahead: Duration,
    /// When the link has sent everything that it was given.
    free_at: Instant,
    /// What waits may go then in any case.
    turn_at: Instant,
    unheard: Option<Unheard>,
    first_flight: Option<FirstFlight>,
    /// Bytes that may go whatever the pace is: the first burst on a link whose rate is not known.
    credit: u64,
    /// How the rate is found out; `None` where it is configured.
    bandwidth: Option<Bandwidth>,
}

/// What may still go out before something has come from the link: so many packets, or so many bytes,
/// whichever lasts longer; all of it from `until` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unheard {
    packets: u64,
    bytes: u64,
    until: Instant,
}

/// A link may be slower than it was. Until that can be known, no more goes out than what was under way
/// before, a first burst, and two bytes for each that has arrived; all of it from `until` on.
#[derive(Clone, Copy, Debug)]
struct FirstFlight {
    left: u64,
    until: Instant,
}

/// The longest time for which the first flight is bounded.
const LONGEST_FIRST_FLIGHT: Duration = Duration::from_secs(1);

impl Unheard {
    const fn is_used_up(self) -> bool {
        self.packets == 0 && self.bytes == 0
    }
}

impl Pacer {
    pub(crate) fn new(rate: Option<BitRate>) -> Self {
        let mut pacer = Self {
            pace: BitRate::MAX,
            ahead: Duration::ZERO,
            free_at: Instant::ZERO,
            turn_at: Instant::ZERO,
            unheard: None,
            first_flight: None,
            credit: 0,
            bandwidth: rate.is_none().then(Bandwidth::default),
        };
        let rate = rate.map_or(UNKNOWN, BitRate::bits_per_second);
        pacer.set_pace(rate.saturating_mul(GAIN.0) / GAIN.1);
        pacer.restart_credit();
        pacer
    }

    /// The rate is another from now on, or not known any more. What was given to the link counts
    /// as sent.
    pub(crate) fn set_rate(&mut self, now: Instant, rate: Option<BitRate>) {
        *self = Self::new(rate);
        self.free_at = now;
    }

    /// A link whose rate is configured carries packets at `rate` by now. What is on it stays there.
    pub(crate) fn adjust_rate(&mut self, rate: BitRate) {
        if self.bandwidth.is_none() {
            self.set_pace(rate.bits_per_second().saturating_mul(GAIN.0) / GAIN.1);
        }
    }

    /// The link's rate, if it is configured.
    pub(crate) fn configured_rate(&self) -> Option<BitRate> {
        let rate = self.pace.bits_per_second() / GAIN.0 * GAIN.1;
        self.bandwidth
            .is_none()
            .then(|| BitRate::from_bits_per_second(rate))
            .flatten()
    }

    /// The whole link is back: nothing is on it. It has been `seen` to work before.
    pub(crate) fn restart(&mut self, now: Instant, seen: Seen, longest: Duration) {
        self.free_at = now;
        self.begin(now, seen, longest, 0);
    }

    /// One of several peers is back. The others' packets are still on the link. Its connections
    /// have been `seen` to work before.
    pub(crate) fn welcome_peer(&mut self, now: Instant, seen: Seen, longest: Duration) {
        self.free_at = self.free_at.max(now);
        self.begin(now, seen, longest, self.pace.bits_per_second());
    }

    fn begin(&mut self, now: Instant, seen: Seen, longest: Duration, least: u64) {
        let Some(bandwidth) = &mut self.bandwidth else {
            return;
        };
        bandwidth.restart(now, seen);
        let pace = seen.rate.max(UNKNOWN).saturating_mul(GAIN.0) / GAIN.1;
        self.set_pace(pace.max(least));
        self.restart_credit();
        self.first_flight = Some(FirstFlight {
            left: seen.in_flight + INITIAL_BURST,
            until: now + longest.clamp(UNHEARD_FOR, LONGEST_FIRST_FLIGHT),
        });
    }

    const fn restart_credit(&mut self) {
        self.credit = if self.bandwidth.is_some() {
            INITIAL_BURST
        } else {
            0
        };
    }

    fn set_pace(&mut self, bits_per_second: u64) {
        self.pace = BitRate::from_bits_per_second(bits_per_second).unwrap_or(self.pace);
        self.ahead = (self.pace.full_time_for(TYPICAL_PACKET) * AHEAD_PACKETS).min(AHEAD);
    }

    /// Nothing has come from the link yet since it is back.
    pub(crate) fn await_sign(&mut self, now: Instant) {
        self.unheard = Some(Unheard {
            packets: UNHEARD_PACKETS,
            bytes: self.pace.bytes_in(UNHEARD).0,
            until: now + UNHEARD_FOR,
        });
    }

    /// Something came from the link.
    pub(crate) const fn heard(&mut self) {
        self.unheard = None;
    }

    /// Whether what the link delivers is measured.
    pub(crate) fn is_measuring(&self) -> bool {
        self.bandwidth.as_ref().is_some_and(Bandwidth::is_measuring)
    }

    /// A packet with data goes towards the link.
    pub(crate) fn depart(&mut self, now: Instant, departure: Departure) {
        if let Some(flight) = &mut self.first_flight {
            flight.left = flight.left.saturating_sub(u64::from(departure.len));
        }
        if let Some(bandwidth) = &mut self.bandwidth
            && let Some(pace) = bandwidth.sent(now, departure, self.pace)
        {
            self.set_pace(pace.bits_per_second());
        }
    }

    /// `bytes` of what has gone out since the link is back have arrived, the last of them before
    /// `reached`.
    pub(crate) fn delivered(
        &mut self,
        now: Instant,
        whose: (IpAddr, FlowIndex),
        bytes: u32,
        reached: SeqNumber,
    ) {
        let Some(bandwidth) = &mut self.bandwidth else {
            return;
        };
        let pace = bandwidth.delivered(now, whose, bytes, reached, self.pace);
        match &mut self.first_flight {
            Some(flight) if bandwidth.is_filling() => flight.left += 2 * u64::from(bytes),
            flight => *flight = None,
        }
        if let Some(pace) = pace {
            self.set_pace(pace.bits_per_second());
        }
    }

    /// Nothing waits although something might go.
    pub(crate) const fn ran_dry(&mut self) {
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.ran_dry();
        }
    }

    /// Nothing has waited for long.
    pub(crate) fn stop_measuring(&mut self) {
        if let Some(bandwidth) = &mut self.bandwidth {
            bandwidth.stop();
        }
    }

    /// The link's queue was full: it gets the time to send what may be ahead.
    pub(crate) fn congested(&mut self, now: Instant) {
        self.free_at = self.free_at.max(now + 2 * self.ahead);
        self.credit = 0;
    }

    /// Whether a packet may go now.
    pub(crate) fn allows(&self, now: Instant) -> bool {
        let has_turn = self.credit > 0 || self.free_at <= now + self.ahead || self.turn_at <= now;
        has_turn && self.barred_until().is_none_or(|until| until <= now)
    }

    /// Until when nothing more may go unless an answer comes.
    fn barred_until(&self) -> Option<Instant> {
        let unheard = self.unheard.filter(|unheard| unheard.is_used_up());
        let flight = self.first_flight.filter(|flight| flight.left == 0);
        let until = [unheard.map(|one| one.until), flight.map(|one| one.until)];
        until.into_iter().flatten().max()
    }

    /// The gateway sent a packet of `len` bytes.
    pub(crate) fn charge(&mut self, now: Instant, len: u32) {
        self.occupy(now, len);
        self.turn_at = now + self.time_for(len) * SHARE;
        if let Some(left) = &mut self.unheard {
            left.packets = left.packets.saturating_sub(1);
            left.bytes = left.bytes.saturating_sub(u64::from(len));
        }
    }

    /// The packet of `len` bytes that was just charged for belongs to a connection that has built no
    /// standing queue: it takes the time that the link itself needs for it. So when thousands of
    /// connections with little to send each come back, what they send is no faster than the link.
    pub(crate) fn charge_rest(&mut self, len: u32) {
        let rest = u64::from(len) * (GAIN.0 - GAIN.1) / GAIN.1;
        self.free_at += self.pace.full_time_for(ByteCount(rest));
    }

    /// The packet of `len` bytes that was just charged for is nothing that was kept, and has waited for none
    /// such any more: it takes half the time that the link needs for it. No sender's window grows
    /// faster than that in slow start, so that what it has too much of comes to the link's queue.
    pub(crate) fn charge_half(&mut self, len: u32) {
        let less = u64::from(len) * (2 * GAIN.1 - GAIN.0) / (2 * GAIN.1);
        self.free_at = self.free_at - self.pace.full_time_for(ByteCount(less));
    }

    /// The packet that was just charged for takes as long as if it were longer by `len` bytes.
    pub(crate) fn charge_more(&mut self, len: u32) {
        let time = self.time_for(len);
        self.free_at += time;
        self.turn_at += time * SHARE;
    }

    /// A packet of `len` bytes passed, without having waited for its turn.
    fn charge_passing(&mut self, now: Instant, len: u32) {
        if self.free_at < now + LONGEST_QUEUE {
            self.occupy(now, len);
        }
    }

    /// Charges for a packet of `len` bytes that passed and that [counts](Self::depart) as sent. Where the rate is
    /// configured, every packet that passes is charged for, and not here.
    pub(crate) fn charge_counted(&mut self, now: Instant, len: u32) {
        if self.bandwidth.is_some() {
            self.charge_passing(now, len);
        }
    }

    /// Charges for any packet of `len` bytes that passed. Where the rate is found
    /// out, it is that of what counts: what all other packets take is not in it.
    pub(crate) fn charge_uncounted(&mut self, now: Instant, len: u32) {
        if self.bandwidth.is_none() {
            self.charge_passing(now, len);
        }
    }

    /// How long the gateway takes for `len` bytes. Nothing is rounded up: where a link has room for
    /// everything, a packet that somebody makes up delays no other.
    pub(crate) fn time_for(&self, len: u32) -> Duration {
        self.pace.full_time_for(ByteCount(u64::from(len)))
    }

    fn occupy(&mut self, now: Instant, len: u32) {
        if self.credit > 0 {
            self.credit = self.credit.saturating_sub(u64::from(len));
            return;
        }
        // A gap is caught up with, but for what a late timer explains.
        self.free_at = self.free_at.max(now - self.ahead) + self.time_for(len);
    }

    /// When the next packet may go at the latest.
    pub(crate) fn next_chance(&self) -> Instant {
        let turn = match self.credit {
            0 => (self.free_at - self.ahead).min(self.turn_at),
            _ => Instant::ZERO,
        };
        self.barred_until().map_or(turn, |until| turn.max(until))
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
        pacer.restart(now, Seen::default(), Duration::ZERO);
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
            pacer.restart(begin, Seen::default(), Duration::ZERO);
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
    fn where_the_rate_is_found_out_a_flood_that_does_not_count_takes_nothing_of_it() {
        let seen = Seen {
            rate: 12_000_000,
            in_flight: 75_000,
        };
        let sent_beside = |rate: Option<BitRate>, flood: fn(&mut Pacer, Instant, u32)| {
            let mut pacer = Pacer::new(rate);
            let begin = Instant::from_millis(1_000);
            pacer.restart(begin, seen, Duration::ZERO);
            let (mut now, mut sent) = (begin, 0);
            while now < begin + Duration::from_secs(1) {
                flood(&mut pacer, now, 15_000);
                while pacer.allows(now) {
                    pacer.charge(now, 1_500);
                    sent += 1;
                }
                now += Duration::from_micros(100);
            }
            sent
        };
        let alone = sent_beside(None, |_, _, _| {});
        assert!(alone >= 1_000, "{alone} packets");
        assert_eq!(sent_beside(None, Pacer::charge_uncounted), alone);
        let beside_counted = sent_beside(None, Pacer::charge_counted);
        assert!(beside_counted < alone / 2, "{beside_counted} packets");
        // A configured rate is the link's, and everything is part of it, once.
        let rate = BitRate::from_bits_per_second(12_000_000);
        assert!(sent_beside(rate, Pacer::charge_uncounted) < 500);
        let alone = sent_beside(rate, |_, _, _| {});
        assert_eq!(sent_beside(rate, Pacer::charge_counted), alone);
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
        let now = Instant::ZERO + Duration::from_secs(1);
        pacer.restart(now, Seen::default(), Duration::ZERO);
        pacer.charge(now, 1_500);
        pacer.congested(now);
        assert!(!pacer.allows(now));
        assert!(pacer.allows(now + Duration::from_millis(20)));
    }
}
