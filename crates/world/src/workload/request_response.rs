//! The mobile asks, the fixed host answers, one exchange after the other on one connection.

use super::Sizes;
use crate::side::Side;
use outlast_base::time::{Duration, Instant};

#[derive(Clone, Debug)]
pub(crate) struct RequestResponse {
    /// Exchanges that are not complete.
    missing: u32,
    think: Duration,
    sizes: Sizes,
    /// Bytes that the mobile has of the response that is due.
    answered: u64,
    /// Bytes that the fixed host has of the request that is due.
    heard: u64,
    /// When the mobile asks again.
    ask_at: Option<Instant>,
}

impl RequestResponse {
    pub(super) fn new(requests: u32, think: Duration, sizes: Sizes) -> Self {
        Self {
            missing: requests,
            think,
            sizes,
            answered: 0,
            heard: 0,
            ask_at: None,
        }
    }

    pub(super) fn connected(&mut self, side: Side) -> u64 {
        match side {
            Side::Fixed => 0,
            Side::Mobile => self.sizes.request,
        }
    }

    pub(super) fn received(&mut self, now: Instant, side: Side, bytes: u64) -> u64 {
        match side {
            Side::Fixed => {
                self.heard += bytes;
                let requests = self.heard / self.sizes.request;
                self.heard %= self.sizes.request;
                requests * self.sizes.response
            }
            Side::Mobile => {
                self.answered += bytes;
                if self.answered < self.sizes.response {
                    return 0;
                }
                self.answered = 0;
                self.missing = self.missing.saturating_sub(1);
                match (self.missing, self.think) {
                    (0, _) => 0,
                    (_, Duration::ZERO) => self.sizes.request,
                    (_, think) => {
                        self.ask_at = Some(now + think);
                        0
                    }
                }
            }
        }
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) -> [u64; 2] {
        match self.ask_at.take_if(|at| *at <= now) {
            Some(_) => [0, self.sizes.request],
            None => [0, 0],
        }
    }

    pub(super) const fn poll_timeout(&self) -> Option<Instant> {
        self.ask_at
    }

    pub(super) const fn is_complete(&self) -> bool {
        self.missing == 0
    }
}
