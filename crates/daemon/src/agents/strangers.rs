//! Who connects and gets no session: told once for each address, and counted. A neighbour that has
//! another key tries again every few seconds, and so may anybody.

use std::collections::BTreeSet;
use std::net::IpAddr;

/// Addresses of which it is remembered that they were told of. Those past it are told of quietly.
const MOST: usize = 64;
/// Connections without a session yet, at most.
const MOST_AT_ONCE: usize = 16;

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

/// Which of the connections without a session goes, if there are too many: the oldest of those who
/// are no neighbours, so that they cannot keep neighbours away, or else the oldest. `connections`
/// are the oldest first, each with who has made it; those that this side has made stay.
pub(super) fn one_too_many(
    connections: impl Iterator<Item = (u64, Option<IpAddr>)>,
    is_neighbour: impl Fn(IpAddr) -> bool,
) -> Option<u64> {
    let made: Vec<_> = connections
        .filter_map(|(token, from)| Some((token, from?)))
        .collect();
    if made.len() <= MOST_AT_ONCE {
        return None;
    }
    let stranger = made.iter().find(|(_, from)| !is_neighbour(*from));
    stranger.or(made.first()).map(|(token, _)| *token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_no_neighbour_takes_the_place_of_none() {
        let address = |last| IpAddr::from([192, 0, 2, last]);
        let is_neighbour = |from: IpAddr| from == address(9);
        // This side has dialled the first, and the second is a neighbour's.
        let mut all = vec![(1, None), (2, Some(address(9)))];
        all.extend((3..).zip((0..16).map(|last| Some(address(20 + last)))));
        let waiting = |all: &[_]| one_too_many(all.iter().copied(), is_neighbour);
        assert_eq!(waiting(&all[..17]), None);
        assert_eq!(waiting(&all), Some(3), "the oldest of the strangers");
        let neighbours: Vec<_> = (1..18).map(|token| (token, Some(address(9)))).collect();
        assert_eq!(waiting(&neighbours), Some(1), "or else the oldest");
        let dialled: Vec<_> = (1..100).map(|token| (token, None)).collect();
        assert_eq!(waiting(&dialled), None);
    }

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
