//! Which links are back: the gateway's indicators, one set for each interface of the host.

use crate::config::Watched;
use crate::indicators::{Indicators, Sign};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::link::{Indicator, LinkEvent, LinkId, LinkState};
use outlast_linux::monitor::Change;
use outlast_linux::netlink::InterfaceIndex;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Interfaces that are watched at once; further ones are not.
const MOST_INTERFACES: usize = 256;
/// Neighbours of one interface that may be away at once; further ones are not noticed.
const MOST_NEIGHBOURS: usize = 1_024;
/// Links that are back and of which nobody has been told; the oldest goes first.
const MOST_BACK: usize = 1_024;

const LOOPBACK: &str = "lo";

/// A link over which packets pass again.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Back {
    /// The interface's number.
    pub(super) index: InterfaceIndex,
    /// Its name.
    pub(super) name: String,
    /// Who says so.
    pub(super) by: Indicator,
    /// How long the whole interface was away; `None` if a neighbour was, or nobody had said so.
    pub(super) away: Option<Duration>,
}

/// The watched interfaces.
#[derive(Debug)]
pub(super) struct Interfaces {
    /// These; none: all but the loopback.
    chosen: Vec<String>,
    all: BTreeMap<String, Interface>,
    back: VecDeque<Back>,
}

#[derive(Debug)]
struct Interface {
    indicators: Indicators,
    away_since: Option<Instant>,
}

impl Interfaces {
    pub(super) const fn new(chosen: Vec<String>) -> Self {
        Self {
            chosen,
            all: BTreeMap::new(),
            back: VecDeque::new(),
        }
    }

    /// Those that are there.
    pub(super) fn names(&self) -> Vec<String> {
        let there = self
            .all
            .iter()
            .filter(|(_, interface)| interface.is_there());
        there.map(|(name, _)| name.clone()).collect()
    }

    /// Everything is told anew.
    pub(super) fn handle_snapshot(&mut self, now: Instant, all: &[Change]) {
        for change in all {
            if let Change::Interface { name, .. } = change {
                self.watch(name);
            }
        }
        for (name, interface) in &mut self.all {
            interface.indicators.handle_snapshot(now, all.to_vec());
            interface.take_signs(now, name, &mut self.back);
        }
    }

    /// Something has changed; whether everything must be told anew, as an interface has got its name.
    pub(super) fn handle_change(&mut self, now: Instant, change: &Change) -> bool {
        let mut is_new = match change {
            Change::Interface { name, .. } => self.watch(name),
            _ => false,
        };
        for (name, interface) in &mut self.all {
            let before = interface.indicators.index();
            interface.indicators.handle_change(now, change.clone());
            let after = interface.indicators.index();
            is_new |= after.is_some() && after != before;
            interface.take_signs(now, name, &mut self.back);
        }
        is_new
    }

    /// Judges the routes as they are now.
    pub(super) fn settle_routes(&mut self, now: Instant) {
        for (name, interface) in &mut self.all {
            interface.indicators.settle_routes(now);
            interface.take_signs(now, name, &mut self.back);
        }
    }

    /// Neighbours to ask for.
    pub(super) fn questions(&mut self, now: Instant) -> Vec<(InterfaceIndex, IpAddr)> {
        let mut questions = Vec::new();
        for (name, interface) in &mut self.all {
            let due = interface
                .indicators
                .poll_timeout()
                .is_some_and(|at| at <= now);
            let Some(index) = interface.indicators.index().filter(|_| due) else {
                continue;
            };
            // Who has connections with others is the kernel's to know; a router is missed by all.
            let ways = interface.indicators.ways();
            let is_router = |link: LinkId| ways.iter().any(|way| way.gateway == link.peer);
            while let Some(neighbour) = interface.indicators.poll_question(now, is_router) {
                questions.push((index, neighbour));
            }
            interface.take_signs(now, name, &mut self.back);
        }
        questions
    }

    /// When to call [`Self::questions`].
    #[must_use]
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let all = self.all.values();
        all.filter_map(|interface| interface.indicators.poll_timeout())
            .min()
    }

    /// The next link that is back.
    #[must_use]
    pub(super) fn poll_back(&mut self) -> Option<Back> {
        self.back.pop_front()
    }

    /// Watches the interface if it is to be; whether it is a new one.
    fn watch(&mut self, name: &str) -> bool {
        let is_chosen = match self.chosen.is_empty() {
            true => name != LOOPBACK,
            false => self.chosen.iter().any(|chosen| chosen == name),
        };
        if !is_chosen || self.all.contains_key(name) {
            return false;
        }
        if self.all.len() >= MOST_INTERFACES {
            // Those that are gone may come back under any name.
            self.all.retain(|_, interface| interface.is_there());
        }
        if self.all.len() >= MOST_INTERFACES {
            tracing::warn!(
                interface = name,
                "not watched: there are too many interfaces"
            );
            return false;
        }
        let watched = Watched {
            silence: false,
            ..Watched::default()
        };
        let interface = Interface {
            indicators: Indicators::new(name, watched, MOST_NEIGHBOURS),
            away_since: None,
        };
        self.all.insert(name.to_owned(), interface);
        true
    }
}

impl Interface {
    const fn is_there(&self) -> bool {
        self.indicators.index().is_some()
    }

    fn take_signs(&mut self, now: Instant, name: &str, back: &mut VecDeque<Back>) {
        while let Some(sign) = self.indicators.poll_sign() {
            let (by, away) = match sign {
                Sign::Changed(LinkEvent {
                    link,
                    state: LinkState::Down,
                    indicator,
                }) => {
                    if link.peer.is_none() {
                        tracing::info!(interface = name, by = ?indicator, "the link is away");
                        self.away_since = Some(now);
                    }
                    continue;
                }
                Sign::Changed(LinkEvent {
                    link, indicator, ..
                }) => {
                    let since = self.away_since.take_if(|_| link.peer.is_none());
                    (indicator, since.map(|since| now.since(since)))
                }
                Sign::Returned(_, by) => (by, None),
            };
            // Of a link that is away altogether no neighbour is back.
            let Some(index) = self
                .indicators
                .index()
                .filter(|_| self.away_since.is_none())
            else {
                continue;
            };
            if back.len() >= MOST_BACK {
                back.pop_front();
            }
            back.push_back(Back {
                index,
                name: name.to_owned(),
                by,
                away,
            });
        }
    }
}
