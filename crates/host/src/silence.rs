//! Peers that have fallen silent: a packet from one of them is an indicator (Schütz and others 2005, section 3.3.1).
//!
//! | state of a peer | begins | ends |
//! |---|---|---|
//! | suspected | a connection with it has had two timeouts in a row | with the next pass over the connections |
//! | attended | it was suspected or silent, and the agent restarts a connection with it, for whatever reason | a packet comes from it; or, as a pass every [`QUIET`] finds, the agent has done with it: it is suspected again |
//! | silent | no connection with it has heard anything for [`QUIET`], and one waits after timeouts | a packet comes from it; or no connection waits any more, as a pass every [`AGAIN`] finds, or one that [probes](crate::probing) it |
//!
//! Packets are noticed of silent peers alone. What the agent sends again for a connection times out like anything else, and
//! its acknowledgement is no news; but where all of it was in vain, nobody else would tell of the return before a timer that may be
//! minutes away.
//!
//! A pass may find a peer's packet before it is told of: that is the same return.
//!
//! A peer that is heard on one connection while another one times out is not silent: that one lost data to congestion.
//!
//! Left out: packets of a peer that arrive by another interface than the connection's own.

use crate::control::{Connection, ConnectionId};
use crate::probing::Probes;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{InterfaceId, LinkId};

/// A peer that was heard less long ago is not silent.
pub(crate) const QUIET: Duration = Duration::from_millis(500);

/// After this time it is seen whether a connection still waits for a silent peer.
pub(crate) const AGAIN: Duration = Duration::from_secs(10);

/// Whether packets of a peer are to be noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Watch {
    /// From now on: it is silent.
    Begin(IpAddr),
    /// No longer, until one of its connections times out again.
    End(IpAddr),
}

/// Result of a look at the peers.
#[derive(Debug)]
pub(crate) struct Judged {
    /// The number of peers that are newly silent.
    pub(crate) begun: u64,
    /// Silent peers that a connection has heard, of which nobody has told yet.
    pub(crate) back: Vec<LinkId>,
}

/// The silent peers.
#[derive(Debug)]
pub(crate) struct Silence {
    suspects: BTreeSet<IpAddr>,
    attended: BTreeSet<IpAddr>,
    /// When each was heard last.
    silent: BTreeMap<IpAddr, Instant>,
    /// The next try of each; `None` if silent peers are not tried.
    probes: Option<Probes>,
    /// When the silent ones are judged again.
    again: Instant,
    /// And the attended ones.
    attended_again: Instant,
    watches: VecDeque<Watch>,
    most: usize,
}

impl Silence {
    pub(crate) const fn new(most: usize) -> Self {
        Self {
            suspects: BTreeSet::new(),
            attended: BTreeSet::new(),
            silent: BTreeMap::new(),
            probes: None,
            again: Instant::ZERO,
            attended_again: Instant::ZERO,
            watches: VecDeque::new(),
            most,
        }
    }

    pub(crate) const fn set_most(&mut self, most: usize) {
        self.most = most;
    }

    /// Silent peers are tried from now on, or not any more.
    pub(crate) fn set_probing(&mut self, is_wanted: bool) {
        if is_wanted != self.probes.is_some() {
            self.probes = is_wanted.then(Probes::new);
        }
    }

    /// The connections that try silent peers now, see [`Probes::choose`].
    pub(crate) fn choose_probes(
        &mut self,
        now: Instant,
        found: &[Connection],
        may_probe: impl Fn(&Connection) -> bool,
    ) -> Vec<ConnectionId> {
        let probes = self.probes.as_mut();
        probes.map_or_else(Vec::new, |probes| {
            probes.choose(now, &self.silent, found, may_probe)
        })
    }

    /// A connection with `peer` has timed out twice in a row. Returns whether there is room to look at it.
    pub(crate) fn suspect(&mut self, peer: IpAddr) -> bool {
        if self.silent.contains_key(&peer) {
            return true;
        }
        let known = self.suspects.len() + self.attended.len() + self.silent.len();
        let has_room = self.attended.remove(&peer) || known < self.most;
        if has_room {
            self.suspects.insert(peer);
        } else {
            self.watches.push_back(Watch::End(peer));
        }
        has_room
    }

    /// The connections with `peer` are about to be restarted: its next packet says nothing new.
    pub(crate) fn attend(&mut self, now: Instant, peer: IpAddr) {
        let was_suspected = self.suspects.remove(&peer);
        let was_silent = self.silent.remove(&peer).is_some();
        if was_suspected || was_silent {
            if self.attended.is_empty() {
                self.attended_again = now + QUIET;
            }
            self.attended.insert(peer);
            self.watches.push_back(Watch::End(peer));
        }
    }

    /// A packet has come from `peer`: since when it was silent, if it was.
    pub(crate) fn hear(&mut self, peer: IpAddr) -> Option<Instant> {
        self.suspects.remove(&peer);
        self.attended.remove(&peer);
        let since = self.silent.remove(&peer);
        // It is told of again after the next timeout.
        self.watches.push_back(Watch::End(peer));
        since
    }

    /// When [`Self::judge`] is to be called, in a pass that is no earlier than `next_pass`.
    pub(crate) fn due(&self, next_pass: Instant) -> Option<Instant> {
        let suspected = (!self.suspects.is_empty()).then_some(next_pass);
        let attended = (!self.attended.is_empty()).then_some(self.attended_again.max(next_pass));
        let silent = (!self.silent.is_empty()).then_some(self.again.max(next_pass));
        let probes = self.probes.as_ref();
        let probes = probes.and_then(|probes| probes.due(&self.silent));
        let probes = probes.map(|at| at.max(next_pass));
        let all = [suspected, attended, silent, probes];
        all.into_iter().flatten().min()
    }

    /// Judges all of them by the connections as they are at `now`. `is_restarted`: the agent sees to a connection already.
    #[must_use]
    pub(crate) fn judge(
        &mut self,
        now: Instant,
        found: &[Connection],
        is_restarted: impl Fn(ConnectionId) -> bool,
    ) -> Judged {
        self.attended_again = now + QUIET;
        // Those with whom the agent has done are attended no longer.
        let attended = core::mem::take(&mut self.attended);
        self.suspects.extend(&attended);
        let mut begun = 0;
        let mut heard = BTreeMap::<IpAddr, (Instant, Option<InterfaceId>)>::new();
        let mut waited_for = BTreeSet::new();
        for connection in found {
            let peer = connection.id.remote.ip();
            if !self.suspects.contains(&peer) && !self.silent.contains_key(&peer) {
                continue;
            }
            if is_restarted(connection.id) {
                self.suspects.remove(&peer);
                self.silent.remove(&peer);
                self.attended.insert(peer);
                if !attended.contains(&peer) {
                    self.watches.push_back(Watch::End(peer));
                }
                continue;
            }
            let via = connection.via.map(|via| via.interface);
            let last = heard.entry(peer).or_insert((connection.heard_at, via));
            if connection.heard_at > last.0 {
                *last = (connection.heard_at, via);
            }
            if connection.is_outstanding() && connection.timeouts > 0 {
                waited_for.insert(peer);
            }
        }
        for peer in core::mem::take(&mut self.suspects) {
            match heard.get(&peer) {
                Some(&(last, _)) if waited_for.contains(&peer) && now.since(last) >= QUIET => {
                    self.silent.insert(peer, last);
                    self.watches.push_back(Watch::Begin(peer));
                    begun += 1;
                }
                _ => self.watches.push_back(Watch::End(peer)),
            }
        }
        let back = self.heard_again(&heard);
        let are_back: BTreeSet<IpAddr> = back.iter().filter_map(|link| link.peer).collect();
        let watches = &mut self.watches;
        self.silent.retain(|peer, _| {
            let is_waited_for = waited_for.contains(peer) || are_back.contains(peer);
            if !is_waited_for {
                watches.push_back(Watch::End(*peer));
            }
            is_waited_for
        });
        self.again = now + AGAIN;
        Judged { begun, back }
    }

    /// The silent peers that were heard after their silence had begun, when each was `heard` last and by which interface.
    fn heard_again(&self, heard: &BTreeMap<IpAddr, (Instant, Option<InterfaceId>)>) -> Vec<LinkId> {
        let link = |(&peer, &since): (&IpAddr, &Instant)| {
            let &(last, interface) = heard.get(&peer)?;
            // Times of one packet that two passes tell differ by what a pass takes.
            let interface = interface.filter(|_| last > since + QUIET / 2)?;
            let peer = Some(peer);
            Some(LinkId { interface, peer })
        };
        self.silent.iter().filter_map(link).collect()
    }

    /// Whose packets are to be noticed, or no longer.
    pub(crate) fn poll_watch(&mut self) -> Option<Watch> {
        self.watches.pop_front()
    }
}
