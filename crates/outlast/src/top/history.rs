//! Snapshots of the last minutes: rates, and when each link was up.

use super::snapshot::Snapshot;
use std::collections::VecDeque;

/// Minutes that are shown, in seconds.
pub(crate) const SPAN_S: f64 = 300.0;
/// Rates are those of so many seconds.
const RATE_S: f64 = 5.0;
/// Links that were down in one look, of which that is remembered: more than any terminal has lines for.
const LINKS: usize = 256;
/// Looks that are remembered; the oldest goes first.
const REMEMBERED: usize = 600;

/// Looks at a daemon.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    latest: Snapshot,
    /// The newest last.
    moments: VecDeque<Moment>,
}

/// One look at the daemon.
#[derive(Clone, Debug)]
struct Moment {
    at_s: f64,
    /// Links that were down.
    down: Vec<String>,
    /// All counts, in the order of their names.
    counts: Vec<(String, f64)>,
}

/// A link in one column of its strip.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Spot {
    /// The daemon did not run, or nobody looked.
    Unknown,
    Up,
    Down,
}

impl History {
    /// Adds a look at the daemon; `at_s` goes on.
    pub(crate) fn push(&mut self, at_s: f64, snapshot: Snapshot) {
        if self.moments.len() == REMEMBERED {
            self.moments.pop_front();
        }
        let down = snapshot.links.iter().filter(|link| !link.is_up);
        self.moments.push_back(Moment {
            at_s,
            down: down.take(LINKS).map(|link| link.name.clone()).collect(),
            counts: snapshot.counts.clone().into_iter().collect(),
        });
        self.latest = snapshot;
    }

    pub(crate) const fn latest(&self) -> &Snapshot {
        &self.latest
    }

    /// Counts in a second of the last ones; nothing before there were two looks.
    pub(crate) fn rates(&self) -> Vec<(&str, f64)> {
        let Some(last) = self.moments.back() else {
            return Vec::new();
        };
        let mut earlier = self.moments.iter().rev().skip(1);
        let Some(first) = earlier
            .clone()
            .take_while(|moment| last.at_s - moment.at_s <= RATE_S)
            .last()
            .or_else(|| earlier.next())
        else {
            return Vec::new();
        };
        let seconds = (last.at_s - first.at_s).max(0.001);
        let before = |name: &str| {
            let place = first
                .counts
                .binary_search_by(|(known, _)| known.as_str().cmp(name));
            place.ok().map(|place| first.counts[place].1)
        };
        let rate = |(name, count): &'_ (String, f64)| {
            // A daemon that was restarted begins to count anew.
            let more = count - before(name)?;
            Some((more / seconds).max(0.0))
        };
        let named = last.counts.iter();
        named
            .filter_map(|counted| Some((counted.0.as_str(), rate(counted)?)))
            .collect()
    }

    /// The last [`SPAN_S`] of a link in so many columns, now at the end.
    pub(crate) fn strip(&self, link: &str, columns: usize) -> Vec<Spot> {
        let each_s = SPAN_S / columns.max(1) as f64;
        let ago = |column: usize| (columns - column) as f64 * each_s;
        (0..columns)
            .map(|column| self.spot(link, ago(column), ago(column) - each_s))
            .collect()
    }

    /// The link between two times, which are so long ago.
    fn spot(&self, link: &str, from_s: f64, to_s: f64) -> Spot {
        let Some(now_s) = self.moments.back().map(|moment| moment.at_s) else {
            return Spot::Unknown;
        };
        let is_within = |ago_s: f64| to_s <= ago_s && ago_s < from_s;
        let looks = self
            .moments
            .iter()
            .filter(|one| is_within(now_s - one.at_s));
        let was_seen_down = looks
            .clone()
            .any(|one| one.down.iter().any(|down| down == link));
        let mut links = self.latest.links.iter();
        let is_down_since = links
            .find(|one| one.name == link && !one.is_up)
            .and_then(|one| one.for_s);
        let is_down = is_down_since.is_some_and(|for_s| for_s > to_s);
        let mut outages = self.latest.outages.iter().filter(|one| one.link == link);
        let was_down = outages.any(|one| {
            let over_ago_s = match one.is_over {
                true => one.began_ago_s - one.length_s.unwrap_or_default(),
                false => 0.0,
            };
            one.began_ago_s > to_s && over_ago_s < from_s
        });
        let has_begun = self.latest.running_s > to_s;
        match (is_down || was_down || was_seen_down, has_begun) {
            (true, _) => Spot::Down,
            (false, true) => Spot::Up,
            (false, false) => Spot::Unknown,
        }
    }
}
