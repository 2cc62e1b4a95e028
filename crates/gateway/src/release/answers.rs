//! Which far hosts have answered since their link came back.
//!
//! What waits for a far host is sent at once when its link is back. If nothing has come from the far host within
//! its round trip, the rest of its backlog stays where it is: the far host is probed with one packet at a
//! time, with pauses that double. So a far host that never answers costs the others no more than what fits
//! into one round trip at its share of the link.

use crate::tracking::LinkRtt;
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};

/// No far host counts as silent sooner, whatever round trip it has shown: the path may be slower now.
const SHORTEST_PATIENCE: Duration = LinkRtt::INITIAL;
/// The longest wait for a silent far host before it is probed.
const LONGEST_PATIENCE: Duration = Duration::from_secs(2);
/// The longest pause between two probes of one far host.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Far hosts whose link came back, and that were not heard since.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    awaited: BTreeMap<IpAddr, Awaited>,
    /// When each silent far host is probed next.
    probes: BTreeSet<(Instant, IpAddr)>,
}

#[derive(Clone, Copy, Debug)]
enum Awaited {
    /// Nothing was sent to the far host yet.
    Unasked,
    /// The answer is due by then; it takes that long.
    Asked { due: Instant, patience: Duration },
    /// It did not come. The far host is probed next at that time, unless nothing waits for it.
    Silent {
        probe_at: Option<Instant>,
        pause: Duration,
    },
}

impl Answers {
    /// The link of `far_host` came back.
    pub(crate) fn expect(&mut self, far_host: IpAddr) {
        self.remove(far_host);
        self.awaited.insert(far_host, Awaited::Unasked);
    }

    /// Something that the far host answers was sent, for a connection that waits for `patience`.
    pub(crate) fn sent(&mut self, now: Instant, far_host: IpAddr, patience: Duration) {
        let Some(awaited) = self.awaited.get_mut(&far_host) else {
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
                self.set_probe(far_host, Some(now + pause), (2 * pause).min(LONGEST_PAUSE));
            }
        }
    }

    /// Something waits for a silent far host: it is probed, if it is not yet.
    pub(crate) fn probe(&mut self, now: Instant, far_host: IpAddr) {
        if let Some(&Awaited::Silent {
            probe_at: None,
            pause,
        }) = self.awaited.get(&far_host)
        {
            self.set_probe(far_host, Some(now), pause);
        }
    }

    /// Nothing waits for a silent far host: it is not probed.
    pub(crate) fn rest(&mut self, far_host: IpAddr) {
        if let Some(&Awaited::Silent { pause, .. }) = self.awaited.get(&far_host) {
            self.set_probe(far_host, None, pause);
        }
    }

    fn set_probe(&mut self, far_host: IpAddr, probe_at: Option<Instant>, pause: Duration) {
        self.remove(far_host);
        self.awaited
            .insert(far_host, Awaited::Silent { probe_at, pause });
        self.probes.extend(probe_at.map(|at| (at, far_host)));
    }

    /// Something plausible came from `far_host`. Returns whether it was silent.
    pub(crate) fn heard(&mut self, far_host: IpAddr) -> bool {
        !self.awaited.is_empty() && matches!(self.remove(far_host), Some(Awaited::Silent { .. }))
    }

    /// Whether `far_host` was heard since its link came back.
    pub(crate) fn has_answered(&self, far_host: IpAddr) -> bool {
        !self.awaited.contains_key(&far_host)
    }

    /// Whether `far_host` has let its time pass, now or before.
    pub(crate) fn is_silent(&mut self, now: Instant, far_host: IpAddr) -> bool {
        match self.awaited.get_mut(&far_host) {
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

    /// The next silent far host to be probed, and when.
    pub(crate) fn next_probe(&self) -> Option<(Instant, IpAddr)> {
        self.probes.first().copied()
    }

    /// Forgets all far hosts for which nothing waits.
    pub(crate) fn retain(&mut self, waits: impl Fn(IpAddr) -> bool) {
        self.awaited.retain(|far_host, _| waits(*far_host));
        self.probes.retain(|(_, far_host)| waits(*far_host));
    }

    pub(crate) fn len(&self) -> usize {
        self.awaited.len()
    }

    fn remove(&mut self, far_host: IpAddr) -> Option<Awaited> {
        let awaited = self.awaited.remove(&far_host)?;
        if let Awaited::Silent {
            probe_at: Some(at), ..
        } = awaited
        {
            self.probes.remove(&(at, far_host));
        }
        Some(awaited)
    }
}
