//! When each suspected link of one interface is probed next, within what all of them may cost.

use crate::links::LinkId;
use alloc::collections::{BTreeMap, BTreeSet};
use outlast_base::time::{Duration, Instant};

/// The probes that are planned towards one interface.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    by_time: BTreeSet<(Instant, LinkId)>,
    by_link: BTreeMap<LinkId, Instant>,
    /// No probe goes before.
    free_at: Instant,
}

impl Agenda {
    /// `link` is to be probed at `at`, and not when it was to be.
    pub(super) fn set(&mut self, link: LinkId, at: Instant) {
        if let Some(before) = self.by_link.insert(link, at) {
            self.by_time.remove(&(before, link));
        }
        self.by_time.insert((at, link));
    }

    /// `link` is not to be probed.
    pub(super) fn remove(&mut self, link: LinkId) {
        if let Some(at) = self.by_link.remove(&link) {
            self.by_time.remove(&(at, link));
        }
    }

    /// Whether `link` is to be probed.
    pub(super) fn has(&self, link: LinkId) -> bool {
        self.by_link.contains_key(&link)
    }

    /// When the next probe goes.
    pub(super) fn next(&self) -> Option<Instant> {
        let (at, _) = self.by_time.first()?;
        Some(self.free_at.max(*at))
    }

    /// The link to probe now, if there is one. It is planned no more; the next probe towards the
    /// interface goes after `gap`.
    pub(super) fn take(&mut self, now: Instant, gap: Duration) -> Option<LinkId> {
        if self.next()? > now {
            return None;
        }
        let (_, link) = self.by_time.pop_first()?;
        self.by_link.remove(&link);
        self.free_at = now + gap;
        Some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::links::InterfaceId;
    use core::net::Ipv4Addr;

    const GAP: Duration = Duration::from_millis(20);

    fn peer(last: u8) -> LinkId {
        LinkId {
            interface: InterfaceId(1),
            peer: Some(Ipv4Addr::new(192, 0, 2, last).into()),
        }
    }

    #[test]
    fn links_share_the_budget_and_each_has_its_turn() {
        let mut agenda = Agenda::default();
        let mut now = Instant::from_millis(1_000);
        for last in 0..10 {
            agenda.set(peer(last), now);
        }
        let mut probed = [0; 10];
        while now < Instant::from_millis(3_000) {
            now = agenda.next().expect("all are planned again");
            let link = agenda.take(now, GAP).expect("it is due");
            let last = (0..10).find(|last| peer(*last) == link).expect("known");
            probed[usize::from(last)] += 1;
            agenda.set(link, now + GAP);
        }
        assert_eq!(probed.iter().sum::<u32>(), 101);
        assert!(probed.iter().all(|n| (10..=11).contains(n)), "{probed:?}");
    }

    #[test]
    fn who_is_not_to_be_probed_is_not() {
        let mut agenda = Agenda::default();
        agenda.set(peer(1), Instant::from_millis(10));
        agenda.set(peer(1), Instant::from_millis(30));
        assert_eq!(agenda.take(Instant::from_millis(20), GAP), None);
        agenda.remove(peer(1));
        assert_eq!(agenda.next(), None);
    }
}
