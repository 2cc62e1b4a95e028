//! Which user timeout a connection adopts (RFC 5482, section 3.1).
//!
//! A long timeout that the peer asks for pins memory on this host. [`Adopted`] therefore grants so
//! many connections of one peer more than the lower limit, and no more of all peers together; the
//! rest stay at what this host advertises, as if the peer had asked for nothing.
//!
//! Left out: which value to advertise. That is configuration.

use crate::control::ConnectionId;
use alloc::collections::{BTreeMap, BTreeSet};
use core::net::{IpAddr, Ipv4Addr};
use outlast_base::time::Duration;

/// The least lower limit that the standard allows.
//= RFC 5482, section 3.1
pub const LEAST_LOWER_LIMIT: Duration = Duration::from_secs(100);

/// The user timeout option, where it is enabled (RFC 5482, section 3.1, `ENABLED`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct UserTimeoutOption {
    /// What the peer is told (`ADV_UTO`); at least a second, and rounded up to what the option can
    /// say: whole seconds up to nine hours, then whole minutes.
    pub advertise: Duration,
    /// No less is adopted (`L_LIMIT`), whatever the peer says; nor less than the current RTO.
    pub at_least: Duration,
    /// No more is adopted (`U_LIMIT`): a connection that cannot end holds memory.
    pub at_most: Duration,
}

impl Default for UserTimeoutOption {
    /// Five minutes (RFC 9293, section 3.9.1.1), adopted between 100 s (RFC 5482, section 3.1) and
    /// a day, which is ours.
    fn default() -> Self {
        Self {
            advertise: Duration::from_secs(300),
            at_least: LEAST_LOWER_LIMIT,
            at_most: Duration::from_secs(24 * 3_600),
        }
    }
}

impl UserTimeoutOption {
    /// USER_TIMEOUT of a connection whose peer advertises `remote`.
    //= RFC 5482, section 3.1
    #[must_use]
    pub fn adopt(&self, remote: Duration, rto: Duration) -> Duration {
        let timeout = self.advertise.max(remote).max(self.at_least).max(rto);
        timeout.min(self.at_most)
    }
}

/// How many connections may be kept for long because their peers ask for it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AdoptionLimits {
    /// Of one peer.
    pub per_peer: usize,
    /// Of all peers.
    pub in_all: usize,
}

impl Default for AdoptionLimits {
    fn default() -> Self {
        Self {
            per_peer: 64,
            in_all: 4_096,
        }
    }
}

/// Whom the limit of one peer is for: an address, or of IPv6 the network of 64 bits, all of whose
/// addresses one host may have.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Peer {
    Address(Ipv4Addr),
    Network([u16; 4]),
}

impl Peer {
    fn of(id: ConnectionId) -> Self {
        match id.remote.ip().to_canonical() {
            IpAddr::V4(address) => Self::Address(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::Network([a, b, c, d])
            }
        }
    }
}

/// The connections that are kept for long because their peers ask for it.
#[derive(Debug, Default)]
pub struct Adopted {
    limits: AdoptionLimits,
    connections: BTreeSet<ConnectionId>,
    of_peer: BTreeMap<Peer, usize>,
    /// Requests that found the limit reached.
    refused: u64,
}

impl Adopted {
    /// None yet, and never more than `limits`.
    #[must_use]
    pub fn new(limits: AdoptionLimits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    /// The timeout for connection `id`, whose peer asks for `remote`. `is_changeable` is false once
    /// the application has set its own (`CHANGEABLE`); then there is nothing to adopt.
    pub fn adopt(
        &mut self,
        id: ConnectionId,
        option: &UserTimeoutOption,
        remote: Option<Duration>,
        rto: Duration,
        is_changeable: bool,
    ) -> Option<Duration> {
        // Zero is reserved: such an option counts as none.
        let remote = remote.filter(|remote| !remote.is_zero())?;
        if !is_changeable {
            self.release(id);
            return None;
        }
        let own = option.adopt(Duration::ZERO, rto);
        let wanted = option.adopt(remote, rto);
        if wanted <= own {
            self.release(id);
            return Some(wanted);
        }
        if self.grant(id) {
            Some(wanted)
        } else {
            self.refused += 1;
            Some(own)
        }
    }

    /// The connection has ended, or keeps no longer than this host wants.
    pub fn release(&mut self, id: ConnectionId) {
        if !self.connections.remove(&id) {
            return;
        }
        let peer = Peer::of(id);
        if let Some(count) = self.of_peer.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                self.of_peer.remove(&peer);
            }
        }
    }

    /// Connections kept for long.
    #[must_use]
    pub fn len(&self) -> usize {
        self.connections.len()
    }

    /// Whether no connection is kept for long.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Requests that found the limit reached.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    fn grant(&mut self, id: ConnectionId) -> bool {
        if self.connections.contains(&id) {
            return true;
        }
        let peer = Peer::of(id);
        let of_peer = self.of_peer.get(&peer).copied().unwrap_or(0);
        if of_peer >= self.limits.per_peer || self.connections.len() >= self.limits.in_all {
            return false;
        }
        self.connections.insert(id);
        self.of_peer.insert(peer, of_peer + 1);
        true
    }
}
