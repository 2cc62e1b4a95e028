//! When a timer really fires.
//!
//! No stack fires its timers at the moment that was asked for, and what it adds is part of what
//! an outage costs: a retransmission timeout of half a minute is up to two seconds late on
//! Linux, and the BSD ones come in steps of half a second.
//!
//! Sources: *TCP/IP Illustrated*, volume 2, chapter 25 (BSD heartbeat); thesis,
//! section 3.2, figure 3.2; `kernel/time/timer.c` of Linux 6.18 (timer wheel of 64 buckets a
//! level, each level eight times coarser than the one below, always rounded up).

use outlast_base::time::{Duration, Instant, saturating_nanos};

/// How a stack's clock drives its timers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TimerModel {
    /// At the very moment.
    Exact,
    /// Two heartbeats count timers down: one for retransmission and everything slow, one for
    /// delayed acknowledgements. A timer of `n` beats fires at the `n`-th beat from now, hence
    /// up to a beat early.
    Heartbeat {
        /// Period of the slow heartbeat.
        slow: Duration,
        /// Period of the fast heartbeat.
        fast: Duration,
    },
    /// A clock tick at which every timer that is due fires: up to a tick early.
    Tick {
        /// Period of the clock.
        period: Duration,
    },
    /// The hierarchical wheel of Linux since 4.8: never early, and late by up to an eighth.
    Wheel {
        /// A jiffy.
        jiffy: Duration,
    },
}

/// The clock of one host.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    model: TimerModel,
    /// Time on this host's tick counter when the driver's clock was zero, in ns.
    phase: u64,
    /// Of the clock that retransmission timers run on, in ns; 1 for an exact clock.
    period: Divisor,
    ticks_per_second: u64,
}

/// What is divided by again and again: several times a packet a time becomes ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Divisor {
    value: u64,
    /// 2^64 / value, rounded down.
    reciprocal: u64,
}

impl Divisor {
    /// `value` is not zero.
    pub(crate) fn new(value: u64) -> Self {
        let reciprocal = u64::MAX / value;
        Self { value, reciprocal }
    }

    #[inline]
    pub(crate) fn get(self) -> u64 {
        self.value
    }

    /// `dividend / value` and what is left.
    #[inline]
    pub(crate) fn divide(self, dividend: u64) -> (u64, u64) {
        let product = u128::from(dividend) * u128::from(self.reciprocal);
        // The upper half; at most two too small, as the reciprocal is at most one too small.
        let mut quotient = (product >> 64) as u64;
        let mut left = dividend - quotient * self.value;
        while left >= self.value {
            quotient += 1;
            left -= self.value;
        }
        (quotient, left)
    }
}

/// Buckets of a wheel level.
const LEVEL_SIZE: u64 = 64;
/// Each level is two to this power coarser than the one below.
const LEVEL_SHIFT: u32 = 3;
/// Levels of the wheel when the clock ticks 250 times a second or faster.
const LEVELS: u32 = 9;

impl Clock {
    pub(crate) fn new(model: TimerModel, phase: Duration) -> Self {
        let period = match model {
            TimerModel::Exact => 1,
            TimerModel::Heartbeat { slow: period, .. }
            | TimerModel::Tick { period }
            | TimerModel::Wheel { jiffy: period } => saturating_nanos(period).max(1),
        };
        Self {
            model,
            phase: saturating_nanos(phase),
            period: Divisor::new(period),
            ticks_per_second: 1_000_000_000 / period,
        }
    }

    /// Whole ticks in a second of the clock that retransmission timers run on.
    #[inline]
    pub(crate) fn ticks_per_second(&self) -> u64 {
        self.ticks_per_second
    }

    /// Period of the clock that retransmission timers run on, in ns; 1 for an exact clock.
    #[inline]
    pub(crate) fn period(&self) -> u64 {
        self.period.get()
    }

    /// Ticks since the host's start.
    #[inline]
    pub(crate) fn ticks(&self, now: Instant) -> u64 {
        self.period
            .divide(now.as_nanos().saturating_add(self.phase))
            .0
    }

    /// `delay` ns in ticks, rounded up.
    #[inline]
    pub(crate) fn nanos_to_ticks(&self, delay: u64) -> u64 {
        let (ticks, left) = self.period.divide(delay);
        ticks + u64::from(left > 0)
    }

    /// `delay` ns, rounded up to whole ticks.
    #[inline]
    pub(crate) fn round_up_nanos(&self, delay: u64) -> u64 {
        self.nanos_to_ticks(delay).saturating_mul(self.period())
    }

    /// When a slow timer that is set for `delay` from now fires.
    //= RFC 6298, section 4
    pub(crate) fn fires_at(&self, now: Instant, delay: Duration) -> Instant {
        self.fires_after(now, saturating_nanos(delay))
    }

    /// When a slow timer that is set for `delay` nanoseconds from now fires.
    pub(crate) fn fires_after(&self, now: Instant, delay: u64) -> Instant {
        match self.model {
            TimerModel::Exact => now.after_nanos(delay),
            TimerModel::Heartbeat { .. } | TimerModel::Tick { .. } => {
                let delay = self.nanos_to_ticks(delay).max(1);
                self.at_tick(now, self.ticks(now).saturating_add(delay))
            }
            TimerModel::Wheel { .. } => {
                let delta = self.nanos_to_ticks(delay);
                let expires = self.ticks(now).saturating_add(delta);
                self.at_tick(now, wheel_bucket(expires, delta))
            }
        }
    }

    /// A slow timer that was set at `since` for `delay` ns does not fire before this: at most a tick
    /// early, or two and an eighth of the delay if it is a wheel's.
    #[inline]
    pub(crate) fn not_before(&self, since: Instant, delay: u64) -> Instant {
        since.after_nanos(delay.saturating_sub(self.period()))
    }

    /// The earliest time for a delayed acknowledgement that waits `delay` ns from `since`.
    #[inline]
    pub(crate) fn delayed_ack_not_before(&self, since: Instant, delay: u64) -> Instant {
        match self.model {
            TimerModel::Heartbeat { .. } => self.delayed_ack_at(since, delay),
            _ => self.not_before(since, delay),
        }
    }

    /// When a delayed acknowledgement of at most `delay` ns from now is sent.
    pub(crate) fn delayed_ack_at(&self, now: Instant, delay: u64) -> Instant {
        match self.model {
            TimerModel::Heartbeat { fast, .. } => {
                let fast = saturating_nanos(fast).max(1);
                let clock = now.as_nanos().saturating_add(self.phase);
                let next = (clock / fast + 1).saturating_mul(fast);
                Instant::from_nanos(next.saturating_sub(self.phase))
            }
            _ => self.fires_after(now, delay),
        }
    }

    fn at_tick(&self, now: Instant, tick: u64) -> Instant {
        let at = tick
            .saturating_mul(self.period())
            .saturating_sub(self.phase);
        Instant::from_nanos(at.max(now.as_nanos()))
    }
}

/// The tick at which a wheel bucket for `expires`, which is `delta` ticks away, is run.
fn wheel_bucket(expires: u64, delta: u64) -> u64 {
    let mut level = 0;
    // Level n takes over from 63 * 8^(n-1) ticks on.
    while level + 1 < LEVELS && delta >= (LEVEL_SIZE - 1) << (level * LEVEL_SHIFT) {
        level += 1;
    }
    let shift = level * LEVEL_SHIFT;
    ((expires >> shift) + 1) << shift
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn wheel() -> Clock {
        let jiffy = Duration::from_millis(4);
        Clock::new(TimerModel::Wheel { jiffy }, Duration::ZERO)
    }

    #[test]
    fn division_is_exact() {
        for period in [1, 2, 3, 7, 10_000_000, 4_000_000, 500_000_000, u64::MAX] {
            let divisor = Divisor::new(period);
            for nanos in [
                0,
                1,
                period - 1,
                period,
                12_345_678_901,
                u64::MAX - 1,
                u64::MAX,
            ] {
                assert_eq!(divisor.divide(nanos), (nanos / period, nanos % period));
            }
        }
    }

    #[test]
    fn wheel_rounds_up_by_level() {
        let fires = |ms| {
            let delay = Duration::from_millis(ms);
            wheel().fires_at(Instant::ZERO, delay).as_nanos() / MS
        };
        // Level 0: one jiffy more.
        assert_eq!(fires(204), 208);
        // Level 1: multiples of 8 jiffies, 32 ms.
        assert_eq!(fires(252), 256);
        assert_eq!(fires(480), 512);
        // Level 2: multiples of 256 ms; level 3: of 2.048 s.
        assert_eq!(fires(3_840), 4_096);
        assert_eq!(fires(30_720), 32_768);
    }

    #[test]
    fn wheel_is_never_early_and_at_most_an_eighth_late() {
        for start in [0, 1, 777_777, 123_456_789_123] {
            for delay_ms in [4, 200, 252, 1_000, 2_016, 9_999, 16_128, 120_000] {
                let now = Instant::from_nanos(start);
                let delay = Duration::from_millis(delay_ms);
                let took = wheel().fires_at(now, delay) - now;
                assert!(took + Duration::from_millis(4) > delay, "{took:?}");
                assert!(
                    took <= delay + delay / 7 + Duration::from_millis(8),
                    "{took:?}"
                );
            }
        }
    }

    #[test]
    fn heartbeat_fires_at_the_nth_beat() {
        let clock = Clock::new(
            TimerModel::Heartbeat {
                slow: Duration::from_millis(500),
                fast: Duration::from_millis(200),
            },
            Duration::ZERO,
        );
        // Thesis, figure 3.2: 1100 ms asked for at 150 ms fire at 1500 ms.
        let at = clock.fires_at(Instant::from_millis(150), Duration::from_millis(1_100));
        assert_eq!(at, Instant::from_millis(1_500));
        let at = clock.delayed_ack_at(Instant::from_millis(150), 200 * MS);
        assert_eq!(at, Instant::from_millis(200));
    }

    #[test]
    fn no_timer_fires_before_the_time_that_is_known_at_once() {
        let ms = Duration::from_millis;
        let models = [
            TimerModel::Exact,
            TimerModel::Tick { period: ms(10) },
            TimerModel::Wheel { jiffy: ms(4) },
            TimerModel::Heartbeat {
                slow: ms(500),
                fast: ms(200),
            },
        ];
        for (model, phase) in models
            .into_iter()
            .flat_map(|model| [(model, 0), (model, 3)])
        {
            let clock = Clock::new(model, ms(phase));
            for since in [0, 1, 3_999_999, 4_000_001, 777_777_777] {
                for delay in [0, 1, 4_000_000, 39_999_999, 200_000_001, 90_000_000_000] {
                    let since = Instant::from_nanos(since);
                    let slow = clock.fires_after(since, delay);
                    assert!(clock.not_before(since, delay) <= slow, "{model:?}");
                    let ack = clock.delayed_ack_at(since, delay);
                    assert!(
                        clock.delayed_ack_not_before(since, delay) <= ack,
                        "{model:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn phase_shifts_the_beats() {
        let model = TimerModel::Tick {
            period: Duration::from_millis(10),
        };
        let clock = Clock::new(model, Duration::from_millis(3));
        let at = clock.fires_at(Instant::ZERO, Duration::from_millis(200));
        assert_eq!(at, Instant::from_millis(197));
    }
}
