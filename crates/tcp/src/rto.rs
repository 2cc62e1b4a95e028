//! Round-trip estimation and the retransmission timeout.
//!
//! RFC 6298 (and RFC 2988 before it), RFC 7323 section 4 for samples from timestamps; the
//! estimators of BSD (*TCP/IP Illustrated*, volume 2, section 25.7), Linux
//! (`tcp_rtt_estimator`) and Solaris, as each stack has its own arithmetic.
//!
//! Karn's rule (RFC 6298, section 3) is with the callers: they hand in no sample that could be
//! of a retransmission. What remains of it here is that the back-off lasts until the next
//! sample.

use crate::profile::{BackOff, Profile, RttModel};
use crate::timer::Clock;
use outlast_base::time::{Duration, saturating_nanos};
use outlast_wire::SeqNumber;

/// Fraction bits of BSD's smoothed round trip and of its deviation.
const SRTT_SHIFT: u32 = 3;
const RTTVAR_SHIFT: u32 = 2;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The estimate and the timeout that follows from it.
///
/// Each acknowledgement asks for it several times over: times are in nanoseconds here.
#[derive(Clone, Debug)]
pub(crate) struct Rto {
    model: RttModel,
    back_off: BackOff,
    min: u64,
    max: u64,
    /// Linux: what samples are measured in, and the least deviation, in microseconds.
    unit_us: u64,
    floor_us: u32,
    /// Eight times the smoothed round trip, in the model's unit; zero before the first sample.
    srtt: u32,
    /// Four times the mean deviation.
    mdev: u32,
    mdev_max: u32,
    rttvar: u32,
    /// Linux: where the round trip ends that `mdev_max` is of.
    round_end: SeqNumber,
    initial: u64,
    current: u64,
    shift: u8,
}

impl Rto {
    /// Estimator of `profile`, with `bounds` in place of its least and largest timeout.
    pub(crate) fn new(profile: &Profile, bounds: Option<(Duration, Duration)>) -> Self {
        let (min, max) = bounds.unwrap_or((*profile.min_rto, *profile.max_rto));
        let (min, max) = (saturating_nanos(min), saturating_nanos(max));
        let initial = saturating_nanos(*profile.initial_rto);
        let unit_us = match *profile.rtt {
            RttModel::Linux { unit } => saturating_nanos(unit) / 1_000,
            _ => 1,
        };
        Self {
            model: *profile.rtt,
            back_off: *profile.back_off,
            min,
            max: max.max(min),
            unit_us: unit_us.max(1),
            floor_us: u32::try_from(min / 1_000).unwrap_or(u32::MAX / 4),
            srtt: 0,
            mdev: 0,
            mdev_max: 0,
            rttvar: 0,
            round_end: SeqNumber(0),
            initial,
            current: initial,
            shift: 0,
        }
    }

    /// The timeout now, backed off if it is.
    pub(crate) fn current(&self) -> Duration {
        Duration::from_nanos(self.current)
    }

    /// The timeout now in nanoseconds, backed off if it is.
    pub(crate) fn current_nanos(&self) -> u64 {
        self.current
    }

    /// How often it was backed off since the last sample.
    pub(crate) fn shift(&self) -> u8 {
        self.shift
    }

    pub(crate) fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }

    /// The largest timeout in ns.
    pub(crate) fn max_nanos(&self) -> u64 {
        self.max
    }

    pub(crate) fn min(&self) -> Duration {
        Duration::from_nanos(self.min)
    }

    /// The least timeout in ns.
    pub(crate) fn min_nanos(&self) -> u64 {
        self.min
    }

    /// The smoothed round trip in microseconds, zero before the first sample.
    pub(crate) fn srtt_us(&self, clock: &Clock) -> u64 {
        let srtt = u64::from(self.srtt >> SRTT_SHIFT);
        match self.model {
            RttModel::Beats { fraction, .. } => (srtt >> fraction) * (clock.period() / 1_000),
            RttModel::Linux22 => srtt * (clock.period() / 1_000),
            RttModel::Linux { .. } | RttModel::Solaris { .. } => srtt,
        }
    }

    pub(crate) fn has_sample(&self) -> bool {
        self.srtt != 0
    }

    /// Whether samples are beats of the clock.
    pub(crate) fn counts_beats(&self) -> bool {
        matches!(self.model, RttModel::Beats { .. } | RttModel::Linux22)
    }

    /// Takes a sample of `rtt` ns. `beats` are the slow heartbeats that passed meanwhile, if they
    /// [count](Self::counts_beats).
    #[inline]
    pub(crate) fn sample(&mut self, clock: &Clock, rtt: u64, beats: u32, round: Round) {
        self.shift = 0;
        match self.model {
            RttModel::Beats {
                deviations,
                fraction,
                headroom,
            } => self.sample_beats(clock, beats, deviations, fraction, headroom),
            RttModel::Linux { .. } => self.sample_linux(clock, rtt, round),
            RttModel::Linux22 => self.sample_linux_2_2(clock, beats, round.cwnd),
            RttModel::Solaris { floor } => self.sample_solaris(clock, rtt, floor),
        }
    }

    /// BSD (`tcp_xmit_timer`): `beats` counts from one, the estimate has `fraction` bits more than
    /// the gains need.
    fn sample_beats(
        &mut self,
        clock: &Clock,
        beats: u32,
        deviations: u8,
        fraction: u8,
        headroom: Option<u8>,
    ) {
        let beats = beats.clamp(1, 1_000);
        //= RFC 6298, section 2.2
        if self.srtt == 0 {
            self.srtt = beats << (SRTT_SHIFT + u32::from(fraction));
            self.rttvar = beats << (RTTVAR_SHIFT - 1 + u32::from(fraction));
        } else {
            // A beat that has begun does not count as a whole one.
            let sample = ((beats - 1) << fraction).cast_signed();
            let error = sample - (self.srtt >> SRTT_SHIFT).cast_signed();
            self.srtt = self.srtt.saturating_add_signed(error).max(1);
            let error = error.abs() - (self.rttvar >> RTTVAR_SHIFT).cast_signed();
            self.rttvar = self.rttvar.saturating_add_signed(error).max(1);
        }
        let estimate = self.beats_estimate(clock, deviations, fraction);
        let held = headroom.map_or(0, |headroom| {
            clock.period() * u64::from(beats + u32::from(headroom))
        });
        self.current = estimate.max(held).clamp(self.min, self.max);
    }

    fn beats_estimate(&self, clock: &Clock, deviations: u8, fraction: u8) -> u64 {
        let beats = match deviations {
            2 => ((self.srtt >> 2) + self.rttvar) >> 1,
            _ => (self.srtt >> SRTT_SHIFT) + self.rttvar,
        } >> fraction;
        (clock.period() * u64::from(beats)).max(self.min)
    }

    #[inline]
    fn sample_linux(&mut self, clock: &Clock, rtt: u64, round: Round) {
        let rtt_us = rtt / 1_000;
        // Samples in jiffies are whole ones, and at least one.
        let sample = match self.unit_us {
            1 => rtt_us.max(1),
            unit_us => (rtt_us / unit_us).max(1) * unit_us,
        };
        // Less than 2^32.
        let sample = sample.min(u64::from(u32::MAX / 16)) as u32;
        let floor = self.floor_us;
        if self.srtt == 0 {
            self.srtt = sample << 3;
            self.mdev = sample << 1;
            self.rttvar = self.mdev.max(floor);
            self.mdev_max = self.rttvar;
            self.round_end = round.snd_nxt;
        } else {
            self.smooth(sample.cast_signed());
            if self.mdev > self.mdev_max {
                self.mdev_max = self.mdev;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if round.snd_una.after(self.round_end) {
                if self.mdev_max < self.rttvar {
                    self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                }
                self.round_end = round.snd_nxt;
                self.mdev_max = floor;
            }
        }
        self.current = self.linux_estimate(clock);
    }

    /// Jacobson's filter with the finer gain for falling round trips that Linux has.
    fn smooth(&mut self, sample: i32) {
        let mut error = sample - (self.srtt >> 3).cast_signed();
        // Samples are less than 2^28: what is a multiple of them does not overflow.
        self.srtt = self.srtt.wrapping_add_signed(error).max(1);
        let falling = error < 0;
        error = error.abs() - (self.mdev >> 2).cast_signed();
        if falling && error > 0 {
            error >>= 3;
        }
        self.mdev = self.mdev.wrapping_add_signed(error);
    }

    fn linux_estimate(&self, clock: &Clock) -> u64 {
        let us = u64::from(self.srtt >> 3) + u64::from(self.rttvar);
        clock.round_up_nanos(us * 1_000).min(self.max)
    }

    /// Linux 2.2 (`tcp_rtt_estimator`, `tcp_set_rto`), all of it in whole ticks: a deviation of
    /// three quarters of a tick, which counts as three ticks, does not decay.
    fn sample_linux_2_2(&mut self, clock: &Clock, beats: u32, cwnd: u32) {
        let sample = beats.saturating_sub(1).clamp(1, 1 << 20);
        if self.srtt == 0 {
            self.srtt = sample << 3;
            self.mdev = sample << 2;
        } else {
            let error = sample.cast_signed() - (self.srtt >> 3).cast_signed();
            self.srtt = self.srtt.saturating_add_signed(error).max(1);
            let error = error.abs() - (self.mdev >> 2).cast_signed();
            self.mdev = self.mdev.saturating_add_signed(error);
        }
        let plain = u64::from(self.srtt >> 3) + u64::from(self.mdev);
        let small_window = plain >> cwnd.saturating_sub(1).min(31);
        let ticks = plain + (plain >> 2) + small_window;
        self.current = ticks
            .saturating_mul(clock.period())
            .clamp(self.min, self.max);
    }

    fn sample_solaris(&mut self, clock: &Clock, rtt: u64, floor: Duration) {
        let us = rtt / 1_000;
        let sample = u32::try_from(us)
            .unwrap_or(u32::MAX)
            .clamp(1, u32::MAX / 16);
        if self.srtt == 0 {
            self.srtt = sample << 3;
            self.mdev = sample << 1;
        } else {
            //= RFC 6298, section 2.3
            let error = sample.cast_signed() - (self.srtt >> 3).cast_signed();
            self.srtt = self.srtt.saturating_add_signed(error).max(1);
            let error = error.abs() - (self.mdev >> 2).cast_signed();
            self.mdev = self.mdev.saturating_add_signed(error);
        }
        let srtt = u64::from(self.srtt >> 3);
        let deviation = (u64::from(self.mdev) * 1_000).max(saturating_nanos(floor));
        let rto = (srtt + srtt / 32) * 1_000 + deviation;
        //= RFC 6298, section 2.4
        //= RFC 6298, section 2.5
        self.current = clock.round_up_nanos(rto).clamp(self.min, self.max);
    }

    /// The timeout without back-off.
    pub(crate) fn unbacked(&self, clock: &Clock) -> Duration {
        Duration::from_nanos(self.unbacked_nanos(clock))
    }

    fn unbacked_nanos(&self, clock: &Clock) -> u64 {
        if !self.has_sample() {
            return self.current;
        }
        match self.model {
            RttModel::Beats {
                deviations,
                fraction,
                ..
            } => self.beats_estimate(clock, deviations, fraction),
            RttModel::Linux { .. } => self.linux_estimate(clock),
            RttModel::Linux22 | RttModel::Solaris { .. } => {
                (self.current >> self.shift.min(63)).max(self.min)
            }
        }
    }

    /// Backs off after a timeout.
    //= RFC 6298, section 5.5
    pub(crate) fn back_off(&mut self, clock: &Clock) {
        self.shift = self.shift.saturating_add(1);
        self.current = match self.back_off {
            BackOff::Doubling => self.current.saturating_mul(2).min(self.max),
            BackOff::Table { halves } => {
                let at = usize::from(self.shift - 1).min(halves.len().saturating_sub(1));
                let factor = u32::from(halves.get(at).copied().unwrap_or(2));
                let base = match self.model {
                    RttModel::Beats {
                        deviations,
                        fraction,
                        ..
                    } if self.has_sample() => self.beats_estimate(clock, deviations, fraction),
                    // Without a sample the first timeout is half of what the table counts from:
                    // a SYN goes out again after 6, 24 and 48 s.
                    _ => self.initial * 2,
                };
                let beats = clock.nanos_to_ticks(base) * u64::from(factor) / 2;
                beats
                    .saturating_mul(clock.period())
                    .max(self.min)
                    .min(self.max)
            }
        };
    }

    /// Takes one back-off back.
    //= RFC 6069, section 4.2, step 5
    pub(crate) fn revert(&mut self, clock: &Clock) {
        self.shift = self.shift.saturating_sub(1);
        let unbacked = if self.has_sample() {
            self.unbacked_nanos(clock)
        } else {
            NANOS_PER_SEC
        };
        let backed = unbacked.saturating_mul(1 << self.shift.min(31));
        self.current = backed.min(self.max);
    }

    /// Forgets the back-off, as when the window opens.
    pub(crate) fn reset_back_off(&mut self) {
        self.shift = 0;
    }

    /// Starts anew at `rto`, as after a SYN was lost.
    pub(crate) fn set(&mut self, rto: Duration) {
        self.current = saturating_nanos(rto).clamp(self.min, self.max);
    }
}

/// Where the sender stands when a sample is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) snd_una: SeqNumber,
    pub(crate) snd_nxt: SeqNumber,
    /// In segments.
    pub(crate) cwnd: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{FREEBSD_2_2, LINUX_2_2, LINUX_6};

    const MS: u64 = 1_000_000;

    const ROUND: Round = Round {
        snd_una: SeqNumber(1),
        snd_nxt: SeqNumber(1),
        cwnd: 10,
    };

    fn clock(profile: &Profile) -> Clock {
        Clock::new(*profile.timer, Duration::ZERO)
    }

    #[test]
    fn linux_never_counts_less_than_the_minimum_as_deviation() {
        let mut rto = Rto::new(&LINUX_6, None);
        let clock = clock(&LINUX_6);
        for _ in 0..100 {
            rto.sample(&clock, 40 * MS, 0, ROUND);
        }
        assert_eq!(rto.current(), Duration::from_millis(240));
    }

    #[test]
    fn doubles_up_to_the_maximum_until_the_next_sample() {
        //= RFC 6298, section 5.5
        let mut rto = Rto::new(&LINUX_6, None);
        let clock = clock(&LINUX_6);
        rto.sample(&clock, 40 * MS, 0, ROUND);
        let first = rto.current();
        rto.back_off(&clock);
        assert_eq!(rto.current(), first * 2);
        for _ in 0..20 {
            rto.back_off(&clock);
        }
        assert_eq!(rto.current(), Duration::from_secs(120));
        rto.sample(&clock, 40 * MS, 0, ROUND);
        assert!(rto.current() < Duration::from_millis(400));
    }

    #[test]
    fn linux_2_2_counts_in_whole_ticks() {
        let mut rto = Rto::new(&LINUX_2_2, None);
        let clock = clock(&LINUX_2_2);
        let rtt = NANOS_PER_SEC;
        // Five round trips, a quarter more, and half of them for a window of two.
        let ms = Duration::from_millis;
        rto.sample(&clock, rtt, 101, Round { cwnd: 2, ..ROUND });
        assert_eq!(rto.current(), ms(5_000 + 1_250 + 2_500));
        for _ in 0..100 {
            rto.sample(&clock, rtt, 101, Round { cwnd: 40, ..ROUND });
        }
        // Three ticks of deviation stay, where a finer count would have none.
        assert_eq!(rto.current(), ms(1_030 + 250));
        assert!(rto.counts_beats());
    }

    #[test]
    fn an_unreachable_reverts_one_back_off() {
        //= RFC 6069, section 4.2, step 5
        let mut rto = Rto::new(&LINUX_6, None);
        let clock = clock(&LINUX_6);
        rto.sample(&clock, 40 * MS, 0, ROUND);
        let first = rto.current();
        rto.back_off(&clock);
        rto.back_off(&clock);
        rto.revert(&clock);
        assert_eq!(rto.current(), first * 2);
        assert_eq!(rto.shift(), 1);
    }

    #[test]
    fn beats_stay_two_above_the_sample_but_back_off_from_the_estimate() {
        // Thesis, table 3.4: a first timeout of 1.0 to 1.5 s, a second of 2 s.
        let mut rto = Rto::new(&FREEBSD_2_2, None);
        let clock = clock(&FREEBSD_2_2);
        for _ in 0..200 {
            rto.sample(&clock, 60 * MS, 1, ROUND);
        }
        assert_eq!(rto.current(), Duration::from_millis(1_500));
        rto.back_off(&clock);
        assert_eq!(rto.current(), Duration::from_secs(2));
    }
}
