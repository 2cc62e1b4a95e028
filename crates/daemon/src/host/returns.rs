//! The last returns of links, and what was found to do after each.

use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{Indicator, LinkId};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Returns that are remembered; the oldest goes first.
const MOST: usize = 16;

/// A link that came back.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Return {
    /// As the agent calls it.
    pub(super) link: LinkId,
    /// The interface's name.
    pub(super) interface: String,
    /// The neighbour, if it is not the whole interface.
    pub(super) peer: Option<IpAddr>,
    /// Who said so.
    pub(super) by: Indicator,
    /// How long it was away; `None` if nobody had said so.
    pub(super) away: Option<Duration>,
    pub(super) at: Instant,
    /// What the pass over the connections found, once there was one.
    pub(super) found: Option<Found>,
}

/// What a pass over the connections found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Found {
    /// Connections over the link.
    pub(super) connections: u32,
    /// Those of them that had stalled.
    pub(super) stalled: u32,
}

/// The last returns, the newest last.
#[derive(Debug, Default)]
pub(super) struct Returns(VecDeque<Return>);

impl Returns {
    /// A link is back.
    pub(super) fn add(&mut self, one: Return) {
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(one);
    }

    /// A pass was made because of `link`: all returns of that link wait for it.
    pub(super) fn note(&mut self, link: LinkId, found: Found) {
        let waiting = self.0.iter_mut().filter(|one| one.link == link);
        for one in waiting.filter(|one| one.found.is_none()) {
            one.found = Some(found);
        }
    }

    /// The newest first.
    pub(super) fn newest(&self) -> impl Iterator<Item = &Return> {
        self.0.iter().rev()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_gateway::links::InterfaceId;

    fn back(interface: u32) -> Return {
        Return {
            link: LinkId::of_interface(InterfaceId(interface)),
            interface: format!("link{interface}"),
            peer: None,
            by: Indicator::Carrier,
            away: None,
            at: Instant::ZERO,
            found: None,
        }
    }

    #[test]
    fn a_pass_is_that_of_the_returns_that_waited_for_it() {
        let mut returns = Returns::default();
        for interface in [1, 2, 1] {
            returns.add(back(interface));
        }
        let found = |connections| Found {
            connections,
            stalled: 1,
        };
        returns.note(back(1).link, found(5));
        returns.add(back(1));
        returns.note(back(1).link, found(7));
        let found: Vec<_> = returns.newest().map(|one| one.found).collect();
        let of = |n: usize| found[n].map(|found| found.connections);
        assert_eq!(
            [of(0), of(1), of(2), of(3)],
            [Some(7), Some(5), None, Some(5)]
        );
    }

    #[test]
    fn the_oldest_goes_first() {
        let mut returns = Returns::default();
        for interface in 0..20 {
            returns.add(back(interface));
        }
        let names: Vec<_> = returns.newest().map(|one| one.interface.clone()).collect();
        assert_eq!(
            (names.len(), &*names[0], &*names[15]),
            (MOST, "link19", "link4")
        );
    }
}
