//! What came to an application, and what that says of an outage.

use outlast_base::time::{Duration, Instant};
use serde::{Deserialize, Serialize};

/// Something that an application was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// When.
    pub at: Instant,
    /// When its sender sent it, where each datagram says so.
    pub sent: Option<Instant>,
    /// Its number in the stream, where datagrams have some.
    pub number: Option<u64>,
    /// Bytes of payload.
    pub bytes: u64,
}

/// The one outage of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Outage {
    /// When the link went away.
    pub down: Instant,
    /// When it was back.
    pub up: Instant,
}

/// What the arrivals of a run say of its outage.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Seen {
    /// From link-up until the application was given something that it did not have; `None` if it never was.
    pub resume_s: Option<f64>,
    /// Payload bytes that came in the first five seconds after link-up.
    pub five_seconds_bytes: u64,
    /// Datagrams that came a second time.
    pub duplicates: u64,
    /// Datagrams that came after link-up and were sent before.
    pub late: u64,
    /// Of these, the age of the oldest one when it came.
    pub oldest_s: Option<f64>,
    /// Datagrams that came after one with a higher number had come.
    pub overtaken: u64,
    /// Datagrams that a receiver with an anti-replay window of 64 discards as too old (RFC 4303, section 3.4.3).
    pub outside_window: u64,
    /// The longest that one took which was sent within [`SETTLING`] after link-up.
    pub slowest_fresh_s: Option<f64>,
    /// Datagrams that were sent after link-up and came.
    pub fresh: u64,
    /// The highest value within [`SETTLING`] after link-up of the jitter that RTP reports (RFC 3550, section 6.4.1).
    pub jitter_s: Option<f64>,
}

/// The first seconds after link-up, whose payload is counted.
pub const FIRST_SECONDS: Duration = Duration::from_secs(5);
/// After link-up, how long a stream is watched for what comes late to settle: the time in which no other run has work
/// to do.
pub const SETTLING: Duration = Duration::from_millis(500);
/// Packets of the smallest anti-replay window that RFC 4303 lets a receiver have by default.
const REPLAY_WINDOW: u64 = 64;

impl Seen {
    /// What `arrivals`, in their order, say of `outage`.
    #[must_use]
    pub fn of(arrivals: &[Arrival], outage: Outage) -> Self {
        let mut seen = Self::default();
        let mut numbers = Numbers::default();
        let mut jitter = Jitter::default();
        for arrival in arrivals {
            let fate = arrival.number.map(|number| numbers.note(number));
            let is_after = arrival.at >= outage.up;
            if let Some(sent) = arrival.sent {
                jitter.note(arrival.at.since(sent));
            }
            if !is_after {
                continue;
            }
            seen.note(arrival, fate, outage.up);
            if arrival.sent.is_some() && arrival.at <= outage.up + SETTLING {
                let peak = seen.jitter_s.unwrap_or(0.0);
                seen.jitter_s = Some(peak.max(jitter.seconds));
            }
        }
        seen
    }

    fn note(&mut self, arrival: &Arrival, fate: Option<Fate>, up: Instant) {
        let after = arrival.at.since(up);
        match fate {
            Some(Fate::Duplicate) => {
                self.duplicates += 1;
                return;
            }
            Some(Fate::Overtaken { outside_window }) => {
                self.overtaken += 1;
                self.outside_window += u64::from(outside_window);
            }
            Some(Fate::New) | None => {}
        }
        self.resume_s.get_or_insert(after.as_secs_f64());
        if after <= FIRST_SECONDS {
            self.five_seconds_bytes += arrival.bytes;
        }
        let Some(sent) = arrival.sent else {
            return;
        };
        let age = arrival.at.since(sent).as_secs_f64();
        let slowest = if sent < up {
            self.late += 1;
            &mut self.oldest_s
        } else {
            self.fresh += 1;
            if sent > up + SETTLING {
                return;
            }
            &mut self.slowest_fresh_s
        };
        *slowest = Some(slowest.map_or(age, |most: f64| most.max(age)));
    }
}

/// What a number says of the datagram that has it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    New,
    Duplicate,
    Overtaken { outside_window: bool },
}

/// The numbers that have come.
#[derive(Debug, Default)]
struct Numbers {
    seen: std::collections::BTreeSet<u64>,
}

impl Numbers {
    fn note(&mut self, number: u64) -> Fate {
        let highest = self.seen.last().copied();
        match (self.seen.insert(number), highest) {
            (false, _) => Fate::Duplicate,
            (true, Some(highest)) if highest > number => Fate::Overtaken {
                outside_window: highest - number >= REPLAY_WINDOW,
            },
            (true, _) => Fate::New,
        }
    }
}

/// RFC 3550, section 6.4.1: the mean deviation of the difference in transit of two datagrams that come
/// one after the other.
#[derive(Debug, Default)]
struct Jitter {
    last: Option<Duration>,
    seconds: f64,
}

impl Jitter {
    fn note(&mut self, transit: Duration) {
        if let Some(last) = self.last.replace(transit) {
            let difference = transit.abs_diff(last).as_secs_f64();
            self.seconds += (difference - self.seconds) / 16.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTAGE: Outage = Outage {
        down: Instant::from_millis(1_000),
        up: Instant::from_millis(5_000),
    };

    fn datagram(number: u64, sent: u64, at: u64) -> Arrival {
        Arrival {
            at: Instant::from_millis(at),
            sent: Some(Instant::from_millis(sent)),
            number: Some(number),
            bytes: 100,
        }
    }

    #[test]
    fn late_and_fresh_datagrams_are_told_apart() {
        let arrivals = [
            datagram(1, 900, 920),
            datagram(199, 4_900, 5_020),
            datagram(200, 5_000, 5_030),
            datagram(200, 5_000, 5_031),
            datagram(2, 960, 5_040),
            datagram(150, 4_000, 5_041),
            datagram(450, 9_999, 10_019),
        ];
        let seen = Seen::of(&arrivals, OUTAGE);
        assert_eq!(seen.resume_s, Some(0.020));
        assert_eq!((seen.late, seen.fresh, seen.duplicates), (3, 2, 1));
        assert_eq!((seen.overtaken, seen.outside_window), (2, 1));
        assert_eq!(seen.oldest_s, Some(4.080));
        assert_eq!(seen.slowest_fresh_s, Some(0.030));
        assert_eq!(
            seen.five_seconds_bytes, 400,
            "neither the duplicate nor the last"
        );
        assert!(seen.jitter_s.is_some_and(|jitter| jitter > 0.2));
    }

    #[test]
    fn what_came_before_the_link_was_back_is_not_a_resumption() {
        let seen = Seen::of(&[datagram(1, 900, 920)], OUTAGE);
        assert_eq!(seen, Seen::default());
    }
}
