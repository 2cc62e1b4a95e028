//! What a receiver gets after each return of the link.

use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_link::FIRST_SECONDS;

/// What the payload's receiver got after one return of the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Recovery {
    /// When the link came back.
    pub back: Instant,
    /// From then until the first new byte; `None` if none came.
    pub first: Option<Duration>,
    /// From then until as many new bytes as the link carries in [`HALF_SECOND`](outlast_link::HALF_SECOND); `None` if fewer
    /// came, or the link has no rate.
    pub half_second: Option<Duration>,
    /// New bytes in the [`FIRST_SECONDS`] after the return.
    pub five_seconds: u64,
}

/// The receiver's new bytes, counted from each return of the link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Returns {
    returns: Vec<Return>,
    /// As many of them are followed by a new byte.
    resumed: usize,
    /// As many of them are followed by [`Self::enough`], or need not be.
    caught_up: usize,
    /// Of as many of them the first seconds are over.
    counted: usize,
    /// What the link carries in half a second; zero if it has no rate.
    enough: u64,
    received: u64,
    last_delivery: Option<Instant>,
}

#[derive(Clone, Copy, Debug)]
struct Return {
    at: Instant,
    /// What the receiver had by then.
    before: u64,
    first: Option<Duration>,
    half_second: Option<Duration>,
    five_seconds: Option<u64>,
}

impl Returns {
    /// Nothing has come yet over a link that carries `half_second` bytes in half a second.
    pub(crate) fn new(half_second: Option<u64>) -> Self {
        Self {
            enough: half_second.unwrap_or(0),
            ..Self::default()
        }
    }

    pub(crate) fn link_up(&mut self, now: Instant) {
        self.returns.push(Return {
            at: now,
            before: self.received,
            first: None,
            half_second: None,
            five_seconds: None,
        });
        // At one instant the link comes up before frames arrive.
        if self.last_delivery == Some(now) {
            self.delivered(now, 0);
        }
    }

    /// `bytes` new bytes came to the application.
    #[inline]
    pub(crate) fn delivered(&mut self, now: Instant, bytes: u64) {
        self.last_delivery = Some(now);
        let before = self.received;
        self.received += bytes;
        // What the receiver had at a return never shrinks from one to the next: each counter
        // passes the returns in order.
        if self.resumed.min(self.caught_up).min(self.counted) < self.returns.len() {
            self.note(now, before);
        }
    }

    fn note(&mut self, now: Instant, before: u64) {
        for back in &mut self.returns[self.resumed..] {
            back.first = Some(now.since(back.at));
        }
        self.resumed = self.returns.len();
        if self.enough == 0 {
            self.caught_up = self.returns.len();
        }
        while let Some(back) = self.returns.get_mut(self.caught_up)
            && self.received - back.before >= self.enough
        {
            back.half_second = Some(now.since(back.at));
            self.caught_up += 1;
        }
        while let Some(back) = self.returns.get_mut(self.counted)
            && now.since(back.at) > FIRST_SECONDS
        {
            back.five_seconds = Some(before - back.before);
            self.counted += 1;
        }
    }

    /// What came after each return so far.
    pub(crate) fn recoveries(&self) -> Vec<Recovery> {
        let recovery = |back: &Return| Recovery {
            back: back.at,
            first: back.first,
            half_second: back.half_second,
            five_seconds: back.five_seconds.unwrap_or(self.received - back.before),
        };
        self.returns.iter().map(recovery).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    fn ms(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[test]
    fn a_return_is_answered_by_the_first_delivery_at_or_after_it() {
        let mut returns = Returns::new(None);
        returns.delivered(at(1), 1);
        returns.link_up(at(5));
        // The link is away again before anything comes: both wait for the same bytes.
        returns.link_up(at(9));
        returns.delivered(at(12), 1);
        returns.delivered(at(13), 1);
        returns.link_up(at(13));
        let first: Vec<_> = returns.recoveries().iter().map(|back| back.first).collect();
        assert_eq!(first, [ms(7), ms(3), ms(0)]);
    }

    #[test]
    fn half_a_second_and_five_seconds_count_from_each_return() {
        let mut returns = Returns::new(Some(100));
        returns.delivered(at(10), 1_000);
        returns.link_up(at(1_000));
        returns.delivered(at(1_100), 60);
        returns.link_up(at(2_000));
        returns.delivered(at(2_100), 50);
        returns.delivered(at(6_000), 50);
        returns.delivered(at(6_001), 500);
        let [one, other] = returns.recoveries()[..] else {
            panic!("two returns")
        };
        assert_eq!((one.half_second, one.five_seconds), (ms(1_100), 160));
        assert_eq!((other.half_second, other.five_seconds), (ms(4_000), 600));
    }

    #[test]
    fn bytes_after_the_first_seconds_do_not_count_but_end_the_wait_for_half_a_second() {
        let mut returns = Returns::new(Some(100));
        returns.link_up(at(0));
        returns.delivered(at(4_999), 99);
        returns.delivered(at(9_000), 1);
        let [back] = returns.recoveries()[..] else {
            panic!("one return")
        };
        assert_eq!((back.half_second, back.five_seconds), (ms(9_000), 99));
    }
}
