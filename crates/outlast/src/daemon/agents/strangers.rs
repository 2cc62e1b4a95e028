//! Who connects and gets no session: told once for each address, and counted. A neighbour that has
//! another key tries again every few seconds, and so may anybody.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Addresses of which it is remembered that they were told of. Those past it are told of quietly.
const MOST: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Strangers {
    told: BTreeSet<IpAddr>,
    count: u64,
}

impl Strangers {
    /// No session came of a connection from `from`.
    pub(super) fn tell(&mut self, from: IpAddr, why: &str) {
        self.count += 1;
        let is_news = self.told.len() < MOST && self.told.insert(from);
        match is_news {
            true => tracing::warn!(%from, "no session with who has connected: {why}"),
            false => tracing::debug!(%from, "no session with who has connected again: {why}"),
        }
    }

    /// A session came of one: should that end and none be had again, it is news.
    pub(super) fn forget(&mut self, from: IpAddr) {
        self.told.remove(&from);
    }

    /// How many there were.
    pub(super) const fn count(&self) -> u64 {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_news_once_until_it_has_had_a_session() {
        let mut strangers = Strangers::default();
        let from = |last| IpAddr::from([192, 0, 2, last]);
        for _ in 0..3 {
            strangers.tell(from(1), "why");
        }
        assert!(strangers.told.contains(&from(1)));
        assert_eq!((strangers.count(), strangers.told.len()), (3, 1));
        strangers.forget(from(1));
        assert!(strangers.told.is_empty());
        for last in 0..=255 {
            strangers.tell(from(last), "why");
        }
        assert_eq!((strangers.count(), strangers.told.len()), (259, MOST));
    }
}
