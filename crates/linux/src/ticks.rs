//! The kernel's tick counter, on which its timer wheel turns.
//!
//! Timers of more than a few ticks fire at the next boundary of the wheel's level that holds them
//! (`kernel/time/timer.c`), so that a retransmission after half a minute may be two seconds late.
//! Who compares runs must know where the wheel stood.

use crate::clock;
use outlast_base::time::{Duration, Instant};
use rustix::time::{ClockId, clock_getres};
use std::fs;
use std::io;

/// Where the kernel says how far it has counted; readable by root.
const FILE: &str = "/proc/timer_list";
/// A reading may come late, but not each of so many.
const READINGS: u32 = 5;

/// The length of a tick.
#[must_use]
pub fn length() -> Duration {
    let resolution = clock_getres(ClockId::MonotonicCoarse);
    Duration::from_nanos(u64::try_from(resolution.tv_nsec).unwrap_or(0))
}

/// The tick counter, to about a tick.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TickCounter {
    /// What must be added to the time of [`clock::now`] to get that of the counter.
    ahead: Duration,
}

impl TickCounter {
    /// Reads where it stands.
    ///
    /// # Errors
    /// When the process may not know, or the kernel does not say.
    pub fn read() -> io::Result<Self> {
        let period = u64::try_from(length().as_nanos()).unwrap_or(0);
        let mut ahead: Option<Duration> = None;
        for _ in 0..READINGS {
            let text = fs::read_to_string(FILE)?;
            let (now, ticks) = parse(&text)
                .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no count of ticks"))?;
            // The count begins five minutes before 2^32.
            let counted = Duration::from_nanos(ticks.saturating_mul(period));
            let reading = counted.saturating_sub(now);
            ahead = Some(ahead.map_or(reading, |known| known.max(reading)));
        }
        Ok(Self {
            ahead: ahead.unwrap_or_default(),
        })
    }

    /// The next moment, not before `earliest`, at which the counter's time modulo `turn` is
    /// `phase`.
    ///
    /// # Panics
    /// If `turn` is zero.
    #[must_use]
    pub fn next(&self, earliest: Instant, turn: Duration, phase: Duration) -> Instant {
        let turn = turn.as_nanos();
        let stands = (self.ahead.as_nanos() + u128::from(earliest.as_nanos())) % turn;
        let wait = (turn + phase.as_nanos() % turn - stands) % turn;
        earliest + Duration::from_nanos(u64::try_from(wait).unwrap_or(0))
    }

    /// The next moment, from now on, at which the counter's time modulo `turn` is `phase`.
    ///
    /// # Panics
    /// If `turn` is zero.
    #[must_use]
    pub fn next_from_now(&self, turn: Duration, phase: Duration) -> Instant {
        self.next(clock::now(), turn, phase)
    }
}

/// The time of the reading on the monotonic clock, and the count of ticks.
fn parse(text: &str) -> Option<(Duration, u64)> {
    let number = |prefix: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(prefix))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let now = Duration::from_nanos(number("now at ")?);
    Some((now, number("jiffies: ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_understood() {
        let text = "Timer List Version: v0.10\nnow at 12152669433992 nsecs\n\ncpu: 0\n  \
                    .last_jiffies   : 4297930280\njiffies: 4297930411\n";
        let now = Duration::from_nanos(12_152_669_433_992);
        assert_eq!(parse(text), Some((now, 4_297_930_411)));
        assert_eq!(parse("now at x nsecs\njiffies: 1\n"), None);
    }

    #[test]
    fn the_next_moment_has_the_phase_and_is_less_than_a_turn_away() {
        let counter = TickCounter {
            ahead: Duration::from_millis(4_296_001_234),
        };
        let turn = Duration::from_millis(4_096);
        for start in [0, 1, 999, 123_456] {
            for phase in [0, 1, 2_000, 4_095] {
                let earliest = Instant::from_millis(start);
                let phase = Duration::from_millis(phase);
                let at = counter.next(earliest, turn, phase);
                assert!(at.since(earliest) < turn);
                let stands = counter.ahead + Duration::from_nanos(at.as_nanos());
                assert_eq!(stands.as_nanos() % turn.as_nanos(), phase.as_nanos());
            }
        }
    }

    #[test]
    fn two_readings_agree_to_a_tick_or_two() {
        // On a busy machine a reading may be interrupted between the time and the count.
        let mut apart = Duration::MAX;
        for _ in 0..200 {
            match (TickCounter::read(), TickCounter::read()) {
                (Ok(first), Ok(second)) => {
                    apart = apart.min(first.ahead.abs_diff(second.ahead));
                    if apart <= Duration::from_millis(20) {
                        return;
                    }
                }
                (Err(error), _) | (_, Err(error)) => {
                    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
                    outlast_skip::skip(format!("{FILE} is for root"));
                    return;
                }
            }
        }
        panic!("{apart:?} at best");
    }
}
