//! Which peers have answered since their link came back.
//!
//! What waits for a peer is sent at once when its link is back. If nothing has come from the peer within
//! its round trip, the rest of its backlog stays where it is: the peer is probed with one packet at a
//! time, with pauses that double. So a peer that never answers costs the others no more than what fits
//! into one round trip at its share of the link.

use crate::tracking::LinkRtt;
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// No peer counts as silent sooner, whatever round trip it has shown: the path may be slower now.
const SHORTEST_PATIENCE: Duration = LinkRtt::INITIAL;
/// The longest wait for a silent peer before it is probed.
const LONGEST_PATIENCE: Duration = Duration::from_secs(2);
/// The longest pause between two probes of one peer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Peers whose link came back, and that were not heard since.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    awaited: BTreeMap<IpAddr, Awaited>,
    /// When each silent peer is probed next.
    probes: BTreeSet<(Instant, IpAddr)>,
}

#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// Nothing was sent to the peer yet.
    Unasked,
    /// The answer is due by then; it takes that long.
    Asked { due: Instant, patience: Duration },
    /// It did not come. The peer is probed next at that time, unless nothing waits for it.
    Silent {
        probe_at: Option<Instant>,
        pause: Duration,
    },
}

impl Answers {
    /// The link of `peer` came back.
    pub(crate) fn expect(&mut self, peer: IpAddr) {
        self.remove(peer);
        self.awaited.insert(peer, Awaited::Unasked);
    }

    /// Something that the peer answers was sent, for a connection that waits for `patience`.
    pub(crate) fn sent(&mut self, now: Instant, peer: IpAddr, patience: Duration) {
        let Some(awaited) = self.awaited.get_mut(&peer) else {
            return;
        };
        match *awaited {
            Awaited::Unasked => {
                let patience = patience.clamp(SHORTEST_PATIENCE, LONGEST_PATIENCE);
                *awaited = Awaited::Asked {
                    due: now + patience,
                    patience,
                };
            }
            Awaited::Asked { .. } => {}
            Awaited::Silent { pause, .. } => {
                self.set_probe(peer, Some(now + pause), (2 * pause).min(LONGEST_PAUSE));
            }
        }
    }

    /// Something waits for a silent peer: it is probed, if it is not yet.
    pub(crate) fn probe(&mut self, now: Instant, peer: IpAddr) {
        if let Some(&Awaited::Silent {
            probe_at: None,
            pause,
        }) = self.awaited.get(&peer)
        {
            self.set_probe(peer, Some(now), pause);
        }
    }

    /// Nothing waits for a silent peer: it is not probed.
    pub(crate) fn rest(&mut self, peer: IpAddr) {
        if let Some(&Awaited::Silent { pause, .. }) = self.awaited.get(&peer) {
            self.set_probe(peer, None, pause);
        }
    }

    fn set_probe(&mut self, peer: IpAddr, probe_at: Option<Instant>, pause: Duration) {
        self.remove(peer);
        self.awaited
            .insert(peer, Awaited::Silent { probe_at, pause });
        self.probes.extend(probe_at.map(|at| (at, peer)));
    }

    /// Something plausible came from `peer`. Returns whether it was silent.
    pub(crate) fn heard(&mut self, peer: IpAddr) -> bool {
        !self.awaited.is_empty() && matches!(self.remove(peer), Some(Awaited::Silent { .. }))
    }

    /// Whether `peer` was heard since its link came back.
    pub(crate) fn has_answered(&self, peer: IpAddr) -> bool {
        !self.awaited.contains_key(&peer)
    }

    /// Whether `peer` has let its time pass, now or before.
    pub(crate) fn is_silent(&mut self, now: Instant, peer: IpAddr) -> bool {
        match self.awaited.get_mut(&peer) {
            None | Some(Awaited::Unasked) => false,
            Some(Awaited::Silent { .. }) => true,
            Some(Awaited::Asked { due, .. }) if now < *due => false,
            Some(awaited) => {
                let Awaited::Asked { patience, .. } = *awaited else {
                    return false;
                };
                *awaited = Awaited::Silent {
                    probe_at: None,
                    pause: patience.min(LONGEST_PAUSE),
                };
                true
            }
        }
    }

    /// The next silent peer to be probed, and when.
    pub(crate) fn next_probe(&self) -> Option<(Instant, IpAddr)> {
        self.probes.first().copied()
    }

    /// Forgets all peers for which nothing waits.
    pub(crate) fn retain(&mut self, waits: impl Fn(IpAddr) -> bool) {
        self.awaited.retain(|peer, _| waits(*peer));
        self.probes.retain(|(_, peer)| waits(*peer));
    }

    pub(crate) fn len(&self) -> usize {
        self.awaited.len()
    }

    fn remove(&mut self, peer: IpAddr) -> Option<Awaited> {
        let awaited = self.awaited.remove(&peer)?;
        if let Awaited::Silent {
            probe_at: Some(at), ..
        } = awaited
        {
            self.probes.remove(&(at, peer));
        }
        Some(awaited)
    }
}
