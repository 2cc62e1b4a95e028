//! What was lately said of mobiles: few, and not for long.

use alloc::collections::VecDeque;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// As long as a freeze may come after the mobile has gone: a timeout of an old stack's, and a
/// delayed acknowledgement.
const KEPT_FOR: Duration = Duration::from_secs(10);
/// More at once push the oldest out.
const MOST: usize = 1_024;

#[derive(Debug)]
pub(super) struct Recent<T> {
    said: VecDeque<(Instant, IpAddr, T)>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self {
            said: VecDeque::new(),
        }
    }
}

impl<T: Copy> Recent<T> {
    pub(super) fn note(&mut self, now: Instant, mobile: IpAddr, what: T) {
        self.forget(mobile);
        if self.said.len() == MOST {
            self.said.pop_front();
        }
        self.said.push_back((now, mobile, what));
    }

    pub(super) fn forget(&mut self, mobile: IpAddr) {
        self.said.retain(|(_, other, _)| *other != mobile);
    }

    pub(super) fn forget_where(&mut self, is_meant: impl Fn(T) -> bool) {
        self.said.retain(|(_, _, what)| !is_meant(*what));
    }

    pub(super) fn said_of(&self, now: Instant, mobile: IpAddr) -> Option<T> {
        let said = self
            .said
            .iter()
            .rev()
            .find(|(_, other, _)| *other == mobile);
        said.filter(|(at, _, _)| now.since(*at) < KEPT_FOR)
            .map(|(_, _, what)| *what)
    }
}
