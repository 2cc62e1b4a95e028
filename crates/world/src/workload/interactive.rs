//! Remote desktop, after Scott and Mapp, section 6.2: the fixed host's display changes every so
//! often. It sends an update when the display differs from what the mobile has and an update
//! request is outstanding; the mobile asks for the next update when it has received one.

use super::Sizes;
use crate::side::Side;
use outlast_base::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub(crate) struct Interactive {
    interval: Duration,
    duration: Duration,
    sizes: Sizes,
    /// When the mobile first asked.
    began: Option<Instant>,
    /// Bytes that the mobile has of the update that is due.
    seen: u64,
    updates: u32,
    /// Bytes that the fixed host has of the request that is due.
    heard: u64,
    /// Whether a request waits for a change of the display.
    is_asked: bool,
    /// Changes of the display that the mobile was sent.
    shown: u64,
    is_over: bool,
}

impl Interactive {
    pub(super) fn new(interval: Duration, duration: Duration, sizes: Sizes) -> Self {
        Self {
            interval: interval.max(Duration::from_nanos(1)),
            duration,
            sizes,
            began: None,
            seen: 0,
            updates: 0,
            heard: 0,
            is_asked: false,
            shown: 0,
            is_over: false,
        }
    }

    pub(super) fn connected(&mut self, now: Instant, side: Side) -> u64 {
        match side {
            Side::Fixed => 0,
            Side::Mobile => {
                self.began = Some(now);
                self.sizes.request
            }
        }
    }

    pub(super) fn received(&mut self, now: Instant, side: Side, bytes: u64) -> u64 {
        match side {
            Side::Fixed => {
                self.heard += bytes;
                if !self.is_asked && self.heard >= self.sizes.request {
                    self.heard -= self.sizes.request;
                    self.is_asked = true;
                }
                self.answer(now)
            }
            Side::Mobile => {
                self.seen += bytes;
                let mut write = 0;
                while self.seen >= self.sizes.response && !self.is_over {
                    self.seen -= self.sizes.response;
                    self.updates += 1;
                    write += self.sizes.request;
                }
                write
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> [u64; 2] {
        if self.end().is_some_and(|end| end <= now) {
            self.is_over = true;
            return [0, 0];
        }
        [self.answer(now), 0]
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        if self.is_over {
            return None;
        }
        let change = self.next_change().filter(|_| self.is_asked);
        self.end().into_iter().chain(change).min()
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.is_over
    }

    pub(super) const fn updates(&self) -> u32 {
        self.updates
    }

    fn end(&self) -> Option<Instant> {
        Some(self.began? + self.duration)
    }

    /// When the display next differs from what the mobile was sent; it may be past.
    fn next_change(&self) -> Option<Instant> {
        let nanos = u128::from(self.shown + 1) * self.interval.as_nanos();
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        Some(self.began? + Duration::from_nanos(nanos))
    }

    /// What the fixed host writes at `now`.
    fn answer(&mut self, now: Instant) -> u64 {
        let Some(began) = self.began else { return 0 };
        if !self.is_asked || self.next_change().is_none_or(|change| change > now) {
            return 0;
        }
        let changes = now.since(began).as_nanos() / self.interval.as_nanos();
        self.shown = u64::try_from(changes).unwrap_or(u64::MAX);
        self.is_asked = false;
        self.sizes.response
    }
}
