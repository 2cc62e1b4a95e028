//! Visitors of a foreign agent, and requests that were relayed to home agents.

use super::ForeignLimits;
use crate::transmit::LinkAddress;
use crate::tunnel::{Outside, PlainTunnel, Tunnel};
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::{Ipv4Addr, SocketAddrV4};
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::RegistrationRequest;

/// A request that waits for its home agent.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) request: RegistrationRequest,
    pub(super) node: LinkAddress,
    /// Where the reply goes.
    pub(super) socket: SocketAddrV4,
    pub(super) since: Instant,
    /// UDP length and checksum of the datagram in which it was relayed.
    pub(super) length_and_checksum: [u8; 4],
}

impl Waiting {
    /// True if `copy` is this request again, from the same node and not too early.
    fn is_repeated_by(&self, copy: &Self) -> bool {
        let is_same = (copy.node, copy.request) == (self.node, self.request);
        is_same && copy.since.since(self.since) >= BETWEEN_COPIES
    }
}

/// Home address and the low half of the identification: what a reply repeats.
type Key = (Ipv4Addr, u32);

/// Time from a request until its next copy is relayed.
///
/// Mobile nodes repeat a request after a second at the earliest (RFC 5944, section 3.6.3). Half of it allows
/// for a link that delays the first copy more than the second.
const BETWEEN_COPIES: Duration = Duration::from_millis(500);

/// A request that was relayed.
#[derive(Clone, Debug)]
enum Relayed {
    Waiting {
        until: Instant,
        request: Waiting,
    },
    /// Answered, and kept for [`BETWEEN_COPIES`]: copies are not relayed, and the node has no room for more.
    Answered(LinkAddress),
}

/// The agent's judgement of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Admission {
    Relay,
    /// A copy that comes too early, or of somebody else's request.
    Ignore,
    NoRoom,
}

/// Requests that were relayed.
#[derive(Clone, Debug)]
pub(super) struct Pending {
    limits: ForeignLimits,
    relayed: BTreeMap<Key, Relayed>,
    dues: BTreeSet<(Instant, Key)>,
    /// Answered requests, and when they are forgotten.
    answered: BTreeSet<(Instant, Key)>,
    per_node: BTreeMap<LinkAddress, usize>,
}

pub(super) const fn key(request: &RegistrationRequest) -> Key {
    // The low half.
    (request.home_address, request.identification as u32)
}

impl Pending {
    pub(super) const fn new(limits: ForeignLimits) -> Self {
        Self {
            limits,
            relayed: BTreeMap::new(),
            dues: BTreeSet::new(),
            answered: BTreeSet::new(),
            per_node: BTreeMap::new(),
        }
    }

    /// Requests that wait.
    pub(super) fn len(&self) -> usize {
        self.dues.len()
    }

    /// Judges a request that would wait until `until`. One that is to be relayed waits from now on.
    pub(super) fn add(&mut self, until: Instant, waiting: Waiting, is_visitors: bool) -> Admission {
        let now = waiting.since;
        self.forget_answered(now);
        let key = key(&waiting.request);
        let most = match is_visitors {
            true => self.limits.pending,
            false => self.limits.pending - self.limits.pending / 4,
        };
        match self.relayed.get(&key) {
            None => {
                let of_node = self.per_node.get(&waiting.node).copied().unwrap_or(0);
                if self.relayed.len() >= most || of_node >= self.limits.pending_per_node {
                    return Admission::NoRoom;
                }
                *self.per_node.entry(waiting.node).or_default() += 1;
            }
            Some(Relayed::Waiting { until, request }) if request.is_repeated_by(&waiting) => {
                self.dues.remove(&(*until, key));
            }
            Some(_) => return Admission::Ignore,
        }
        self.dues.insert((until, key));
        let request = waiting;
        self.relayed
            .insert(key, Relayed::Waiting { until, request });
        Admission::Relay
    }

    /// Takes the request that waits for an answer of `home_agent`.
    pub(super) fn take(&mut self, now: Instant, key: Key, home_agent: Ipv4Addr) -> Option<Waiting> {
        let relayed = self.relayed.get_mut(&key)?;
        let Relayed::Waiting { until, request } = relayed else {
            return None;
        };
        if request.request.home_agent != home_agent {
            return None;
        }
        self.dues.remove(&(*until, key));
        // An answer may be lost behind this agent: what its node repeats later than that is relayed.
        let forgotten_at = request.since + BETWEEN_COPIES;
        let answered = Relayed::Answered(request.node);
        let relayed = match forgotten_at > now {
            true => {
                self.answered.insert((forgotten_at, key));
                core::mem::replace(relayed, answered)
            }
            false => self.remove(key)?,
        };
        match relayed {
            Relayed::Waiting { request, .. } => Some(request),
            Relayed::Answered(_) => None,
        }
    }

    fn forget_answered(&mut self, now: Instant) {
        while let Some((at, key)) = self.answered.first().copied()
            && at <= now
        {
            self.answered.pop_first();
            self.remove(key);
        }
    }

    fn remove(&mut self, key: Key) -> Option<Relayed> {
        let relayed = self.relayed.remove(&key)?;
        let (Relayed::Waiting {
            request: Waiting { node, .. },
            ..
        }
        | Relayed::Answered(node)) = &relayed;
        if let Some(count) = self.per_node.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                self.per_node.remove(node);
            }
        }
        Some(relayed)
    }

    /// The next request that has waited too long.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Waiting> {
        let (at, key) = *self.dues.first()?;
        if at > now {
            return None;
        }
        self.dues.pop_first();
        match self.remove(key)? {
            Relayed::Waiting { request, .. } => Some(request),
            Relayed::Answered(_) => None,
        }
    }

    pub(super) fn first_due(&self) -> Option<Instant> {
        self.dues.first().map(|(at, _)| *at)
    }

    /// The request that was relayed to `home_agent` in a datagram of this length and checksum.
    pub(super) fn find(&self, home_agent: Ipv4Addr, length_and_checksum: [u8; 4]) -> Option<Key> {
        let found = self.relayed.iter().find(|(_, relayed)| {
            matches!(relayed, Relayed::Waiting { request, .. }
                if request.request.home_agent == home_agent
                    && request.length_and_checksum == length_and_checksum)
        });
        found.map(|(key, _)| *key)
    }
}

/// A registered visitor.
#[derive(Clone, Debug)]
pub(super) struct Visitor {
    pub(super) node: LinkAddress,
    pub(super) home_agent: Ipv4Addr,
    /// Its reverse tunnel, if it has one.
    pub(super) tunnel: Option<Tunnel>,
    /// `None` if the registration has no end.
    pub(super) expires_at: Option<Instant>,
}

/// Registered visitors, by home address.
#[derive(Clone, Debug)]
pub(super) struct Visitors {
    most: usize,
    of: BTreeMap<Ipv4Addr, Visitor>,
    expiries: BTreeSet<(Instant, Ipv4Addr)>,
}

impl Visitors {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            of: BTreeMap::new(),
            expiries: BTreeSet::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.of.len() >= self.most
    }

    pub(super) fn has(&self, home_address: Ipv4Addr) -> bool {
        self.of.contains_key(&home_address)
    }

    pub(super) fn node(&self, home_address: Ipv4Addr) -> Option<LinkAddress> {
        self.of.get(&home_address).map(|visitor| visitor.node)
    }

    /// A visitor's home agent.
    pub(super) fn home_agent(&self, home_address: Ipv4Addr) -> Option<Ipv4Addr> {
        self.of.get(&home_address).map(|visitor| visitor.home_agent)
    }

    /// Both directions of a visitor's tunnel from `own`.
    pub(super) fn plain_tunnel(
        &self,
        own: Ipv4Addr,
        home_address: Ipv4Addr,
    ) -> Option<PlainTunnel> {
        let visitor = self.of.get(&home_address)?;
        match &visitor.tunnel {
            Some(tunnel) => tunnel.plain(true, true),
            None => Some(PlainTunnel {
                own,
                other: visitor.home_agent,
                sends: false,
                receives: true,
                mtu: None,
                identification_offset: 0,
            }),
        }
    }

    /// Whether a visitor was heard at a link-layer address.
    pub(super) fn is_at(&self, home_address: Ipv4Addr, node: LinkAddress) -> bool {
        self.node(home_address) == Some(node)
    }

    pub(super) fn tunnel(&mut self, home_address: Ipv4Addr) -> Option<&mut Tunnel> {
        self.of.get_mut(&home_address)?.tunnel.as_mut()
    }

    /// The reverse tunnels that end at `end`, and whose they are.
    pub(super) fn tunnels_to(
        &mut self,
        end: Ipv4Addr,
    ) -> impl Iterator<Item = (Ipv4Addr, &mut Tunnel)> {
        let visitors = self.of.iter_mut();
        let tunnels =
            visitors.filter_map(|(home, visitor)| Some((*home, visitor.tunnel.as_mut()?)));
        tunnels.filter(move |(_, tunnel)| tunnel.outside() == Outside::Ip(end))
    }

    /// Adds a visitor, or renews its registration. Returns false if there is no room for it.
    pub(super) fn add(&mut self, home_address: Ipv4Addr, visitor: Visitor) -> bool {
        if self.is_full() && !self.has(home_address) {
            return false;
        }
        self.remove(home_address);
        if let Some(at) = visitor.expires_at {
            self.expiries.insert((at, home_address));
        }
        self.of.insert(home_address, visitor);
        true
    }

    pub(super) fn remove(&mut self, home_address: Ipv4Addr) -> bool {
        let Some(visitor) = self.of.remove(&home_address) else {
            return false;
        };
        if let Some(at) = visitor.expires_at {
            self.expiries.remove(&(at, home_address));
        }
        true
    }

    /// Removes the next visitor whose registration has come to its end.
    pub(super) fn expire(&mut self, now: Instant) -> Option<Ipv4Addr> {
        let (at, home_address) = *self.expiries.first()?;
        (at <= now && self.remove(home_address)).then_some(home_address)
    }

    pub(super) fn first_expiry(&self) -> Option<Instant> {
        self.expiries.first().map(|(at, _)| *at)
    }
}
