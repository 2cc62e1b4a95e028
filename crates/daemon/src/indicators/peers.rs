//! Peers that are down, who says so, and when the kernel is to ask for them.
//!
//! A peer that somebody has a connection with is asked for about as often as a silent link is
//! probed, and for the same reason: the longest pause is what its return may go unnoticed. Others
//! are asked for at leisure.

use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::Indicator;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// The pause between two questions for a peer that is missed.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The pause between two questions, for whomever: all peers share what may be asked.
const GAP: Duration = Duration::from_millis(20);
/// So long a peer that is missed is asked for at full pace.
const FULL_PACE: Duration = Duration::from_secs(120);
/// Past the full pace, the pause is this part of the time since then.
const SLOWING: u32 = 200;
/// The pause for a peer that nobody misses, and the longest of all.
const LEISURE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(15)];
/// After this long nobody asks for a peer any more, and what is sent to it takes its chance.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(3600);

/// The peers that are down.
#[derive(Debug)]
pub(super) struct Peers {
    /// So many at most.
    most: usize,
    absent: BTreeMap<IpAddr, Absent>,
    /// When the kernel is to ask for each of those that did not answer it.
    due: BTreeSet<(Instant, IpAddr)>,
    /// How often one was not taken note of, past the cap.
    refused: u64,
    /// No question goes before.
    free_at: Instant,
}

/// A peer that is down while any of these says so.
#[derive(Clone, Copy, Debug)]
struct Absent {
    since: Instant,
    /// It did not answer the kernel: when that is to ask again.
    ask_at: Option<Instant>,
    /// Somebody said so.
    is_notified: bool,
    /// No route leads to it or by way of it.
    is_unrouted: bool,
}

/// What to do about a peer that is down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Question {
    /// The kernel is to ask for it.
    Ask(IpAddr),
    /// It was asked for long enough.
    GiveUp(IpAddr),
}

impl Absent {
    /// Takes note of what `by` says, or takes it back.
    fn set(&mut self, by: Indicator, is_down: bool, now: Instant) {
        match by {
            Indicator::Route => self.is_unrouted = is_down,
            Indicator::Notify => self.is_notified = is_down,
            _ if is_down => {
                self.ask_at.get_or_insert(now);
            }
            _ => self.ask_at = None,
        }
        if by == Indicator::Notify && !is_down {
            // Who says so knows it before the kernel does.
            self.ask_at = None;
        }
    }

    fn is_down(&self) -> bool {
        self.ask_at.is_some() || self.is_notified || self.is_unrouted
    }

    /// Who says so, the most definite first.
    fn by(&self) -> Indicator {
        match self {
            Self {
                is_notified: true, ..
            } => Indicator::Notify,
            Self {
                is_unrouted: true, ..
            } => Indicator::Route,
            _ => Indicator::Neighbour,
        }
    }

    fn pause(&self, now: Instant, is_missed: bool) -> Duration {
        let age = now.since(self.since);
        let [shortest, longest] = LEISURE;
        match is_missed {
            true => (age.saturating_sub(FULL_PACE) / SLOWING).clamp(SHORTEST_PAUSE, longest),
            false => (age / 10).clamp(shortest, longest),
        }
    }
}

impl Peers {
    /// Nobody is down yet, and `most` may be.
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            absent: BTreeMap::new(),
            due: BTreeSet::new(),
            refused: 0,
            free_at: Instant::ZERO,
        }
    }

    /// From now on `most` may be down; those who are stay so.
    pub(super) const fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// How often one was not taken note of, past the cap.
    pub(super) const fn refused(&self) -> u64 {
        self.refused
    }

    /// Everybody who is down: since when, and who says so.
    pub(super) fn absent(&self) -> impl Iterator<Item = (IpAddr, Instant, Indicator)> {
        self.absent
            .iter()
            .map(|(peer, absent)| (*peer, absent.since, absent.by()))
    }

    pub(super) fn is_absent(&self, peer: IpAddr) -> bool {
        self.absent.contains_key(&peer)
    }

    /// Whether nobody but the kernel's questions says that `peer` is down.
    pub(super) fn is_only_silent(&self, peer: IpAddr) -> bool {
        let absent = self.absent.get(&peer);
        absent.is_some_and(|a| a.ask_at.is_some() && !a.is_notified && !a.is_unrouted)
    }

    /// The peers of which `by` says that they are down.
    pub(super) fn said_by(&self, by: Indicator) -> Vec<IpAddr> {
        let said = |absent: &Absent| match by {
            Indicator::Route => absent.is_unrouted,
            Indicator::Notify => absent.is_notified,
            _ => absent.ask_at.is_some(),
        };
        let absent = self.absent.iter().filter(|(_, absent)| said(absent));
        absent.map(|(peer, _)| *peer).collect()
    }

    /// `by` says that `peer` is down. Whether that is news.
    pub(super) fn lose(&mut self, now: Instant, peer: IpAddr, by: Indicator) -> bool {
        if self.change(peer, |absent| absent.set(by, true, now)) {
            return false;
        }
        if self.absent.len() >= self.most {
            self.refused += 1;
            return false;
        }
        let nobody = Absent {
            since: now,
            ask_at: None,
            is_notified: false,
            is_unrouted: false,
        };
        self.absent.insert(peer, nobody);
        self.change(peer, |absent| absent.set(by, true, now))
    }

    /// Changes what is known of a peer that is down; whether it is.
    fn change(&mut self, peer: IpAddr, change: impl FnOnce(&mut Absent)) -> bool {
        let Some(absent) = self.absent.get_mut(&peer) else {
            return false;
        };
        let before = absent.ask_at;
        change(absent);
        if absent.ask_at != before {
            before.map(|at| self.due.remove(&(at, peer)));
            absent.ask_at.map(|at| self.due.insert((at, peer)));
        }
        true
    }

    /// `by` says no longer that `peer` is down. Whether it is up by that.
    pub(super) fn find(&mut self, now: Instant, peer: IpAddr, by: Indicator) -> bool {
        self.change(peer, |absent| absent.set(by, false, now));
        let is_up = self.absent.get(&peer).is_some_and(|a| !a.is_down());
        if is_up {
            self.absent.remove(&peer);
        }
        is_up
    }

    /// The next question, if the time has come. `is_missed`: whether somebody has a connection
    /// with a peer.
    pub(super) fn poll_question(
        &mut self,
        now: Instant,
        is_missed: impl Fn(IpAddr) -> bool,
    ) -> Option<Question> {
        if self.poll_timeout()? > now {
            return None;
        }
        // Who has waited longest.
        let (_, peer) = *self.due.first()?;
        let absent = self.absent.get(&peer)?;
        if now.since(absent.since) >= FORGOTTEN_AFTER {
            return Some(Question::GiveUp(peer));
        }
        let next = now + absent.pause(now, is_missed(peer));
        self.change(peer, |absent| absent.ask_at = Some(next));
        self.free_at = now + GAP;
        Some(Question::Ask(peer))
    }

    /// When to call [`Self::poll_question`].
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| (*at).max(self.free_at))
    }
}
