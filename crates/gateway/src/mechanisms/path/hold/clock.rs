//! A host's timestamp clock (RFC 7323, section 5.4), as its segments show it.
//!
//! A sender takes its round trip from the timestamp that an acknowledgement echoes. An echo from before an outage makes a
//! retransmission timeout of it that is as long as the outage, and stays so for some hundred acknowledgements: nobody notices
//! until the next short loss. The clock tells what the sender would have written at a later time.

use super::stamp::Stamp;
use outlast_base::time::{Duration, Instant};
use outlast_wire::TcpHeader;

/// Ticks a second that stacks are known to have: BSD 4.4, Solaris, older ones and Windows, Linux of old, Linux and
/// others, Linux with `tcp_usec_ts`.
const RATES: [u64; 6] = [2, 10, 100, 250, 1_000, 1_000_000];
/// Two readings closer than this do not tell a rate: the path may have delayed one of them.
const SHORTEST_BASE: Duration = Duration::from_millis(100);
const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A timestamp, and when the host was seen to send it.
#[derive(Clone, Copy, Debug)]
struct Reading {
    stamp: Stamp,
    at: Instant,
}

/// The clock of one host.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TimestampClock {
    first: Option<Reading>,
    newest: Option<Reading>,
}

impl TimestampClock {
    /// The host has sent this.
    pub(super) fn hear(&mut self, now: Instant, tcp: &TcpHeader) {
        let Some(stamp) = Stamp::in_header(tcp) else {
            return;
        };
        let own = Reading { stamp, at: now };
        if self.newest.is_none_or(|known| known.stamp.is_before(stamp)) {
            self.newest = Some(own);
        }
        self.first.get_or_insert(own);
    }

    /// The newest timestamp that the host has sent; `None` if it sends none.
    pub(super) fn newest(&self) -> Option<Stamp> {
        self.newest.map(|newest| newest.stamp)
    }

    /// The timestamp that the host would have sent at `time`: its newest one where nobody knows how fast its clock goes.
    pub(super) fn at(&self, time: Instant) -> Option<Stamp> {
        let newest = self.newest?;
        Some(match time >= newest.at {
            true => self.later(newest.stamp, time.since(newest.at)),
            false => newest.stamp.before(self.ticks_in(newest.at.since(time))),
        })
    }

    /// The timestamp that the host sends so long after it has sent `stamp`: the same where nobody knows how fast its clock goes.
    pub(super) fn later(&self, stamp: Stamp, span: Duration) -> Stamp {
        stamp.after(self.ticks_in(span))
    }

    /// Ticks by which the clock goes on in `span`; nothing as long as nobody knows how fast it goes.
    fn ticks_in(&self, span: Duration) -> u32 {
        let nanos = span.as_nanos() * u128::from(self.rate().unwrap_or(0));
        (nanos / u128::from(NANOS_PER_SECOND)) as u32
    }

    /// Ticks a second: of those that are known, the nearest, if what was seen is within a third of it.
    fn rate(&self) -> Option<u64> {
        let (first, newest) = self.first.zip(self.newest)?;
        let base = newest.at.since(first.at);
        if base < SHORTEST_BASE {
            return None;
        }
        let ticks = u64::from(newest.stamp.ticks_since(first.stamp));
        let shown = u128::from(ticks) * u128::from(NANOS_PER_SECOND) / base.as_nanos();
        let is_near = |rate: &u64| {
            let rate = u128::from(*rate);
            rate * 2 <= shown * 3 && shown * 3 <= rate * 4
        };
        RATES.into_iter().find(is_near)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_wire::tcp::{TcpOptions, Timestamps};

    fn header(value: u32) -> TcpHeader {
        TcpHeader {
            options: TcpOptions {
                timestamps: Some(Timestamps { value, echo: 0 }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        }
    }

    /// A clock that was read at 10 s and `later_ms` later, then asked for 30 s after that.
    fn read(later_ms: u64, ticks: u32) -> u32 {
        let first = Instant::ZERO + Duration::from_secs(10);
        let mut clock = TimestampClock::default();
        clock.hear(first, &header(u32::MAX - 5));
        let second = first + Duration::from_millis(later_ms);
        clock.hear(second, &header((u32::MAX - 5).wrapping_add(ticks)));
        let stamp = clock.at(second + Duration::from_secs(30)).expect("a clock");
        stamp.ticks_since(Stamp::in_header(&header(u32::MAX - 5)).expect("a stamp"))
    }

    #[test]
    fn a_clock_goes_on_at_its_own_rate() {
        assert_eq!(read(400, 403), 403 + 30_000);
        assert_eq!(read(400, 39), 39 + 3_000);
        assert_eq!(read(1_000, 900), 900 + 30_000);
        assert_eq!(read(400, 400_100), 400_100 + 30_000_000);
    }

    #[test]
    fn a_clock_of_unknown_rate_stands_where_it_was_seen_last() {
        assert_eq!(read(50, 50), 50);
        assert_eq!(read(400, 0), 0);
        assert_eq!(read(400, 1_600), 1_600);
        assert_eq!(TimestampClock::default().at(Instant::ZERO), None);
    }
}
