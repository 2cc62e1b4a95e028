//! Local-scope identifiers (LSI): addresses of IPv4 by which applications without IPv6 name hosts
//! (RFC 7401, section 2.3; RFC 5338, section 3).
//!
//! An LSI stands for a tag on one host alone: it is never sent. A packet between two LSIs becomes
//! one between the two tags before it is sealed, and what comes from the peer becomes one
//! between LSIs if it belongs to a conversation of IPv4 here. So each host may use either family,
//! whichever the other one uses.
//!
//! Needs a prefix of IPv4 that the host uses for nothing else. What is not translated is on the page of
//! [`outlast_wire::translation`]: TCP, UDP, ICMP echo and ICMP errors are.

mod flows;

pub(crate) use flows::Flows;

use alloc::collections::{BTreeMap, BTreeSet};
use core::net::Ipv4Addr;
use outlast_wire::hip::Hit;
use outlast_wire::translation::DualAddress;

/// What a translated packet grows by at most: IPv6's longer header, and a fragment header.
pub const LONGER: u32 = 28;

/// Lengths of a prefix in bits that has room for peers, and is not everything.
const PREFIX_LENGTHS: [u8; 2] = [8, 30];

/// The prefix from which a host takes LSIs, and its own one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LocalScope {
    /// The host's own LSI.
    pub own: Ipv4Addr,
    /// The length of the prefix in bits, 8 to 30; others count as the nearest of them.
    pub prefix_length: u8,
    /// The longest packet of IPv6 between tags, in bytes. Packets between LSIs may be [`LONGER`] bytes shorter.
    pub mtu: u32,
}

/// A family of addresses.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Family {
    /// LSIs.
    V4,
    /// Tags.
    V6,
}

/// A conversation that a peer has begun: who of this host's applications takes part in it?
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Conversation {
    /// TCP (6) or UDP (17).
    pub protocol: u8,
    /// This host's addresses.
    pub own: DualAddress,
    /// This host's port.
    pub own_port: u16,
    /// The peer's addresses.
    pub peer: DualAddress,
    /// The peer's port.
    pub peer_port: u16,
}

impl LocalScope {
    /// The first address of the prefix, and how many there are.
    fn range(&self) -> (u32, u32) {
        let [shortest, longest] = PREFIX_LENGTHS;
        let size = 1 << (32 - self.prefix_length.clamp(shortest, longest));
        (self.own.to_bits() & !(size - 1), size)
    }

    /// Whether a peer may have this LSI: it lies in the prefix, is neither its first nor its last
    /// address, and is not this host's.
    #[must_use]
    pub fn has_room_at(&self, address: Ipv4Addr) -> bool {
        let (first, size) = self.range();
        let at = address.to_bits().wrapping_sub(first);
        at > 0 && at < size - 1 && address.to_bits() != self.own.to_bits()
    }

    /// Whether an address lies in the prefix.
    #[must_use]
    pub fn contains(&self, address: Ipv4Addr) -> bool {
        let (first, size) = self.range();
        address.to_bits().wrapping_sub(first) < size
    }

    /// The LSIs of these peers: those that are fixed, and for each other one an address that follows from
    /// its tag and from who else is there. Peers without room have none.
    #[must_use]
    pub fn assign(
        &self,
        peers: impl IntoIterator<Item = (Hit, Option<Ipv4Addr>)>,
    ) -> BTreeMap<Hit, Ipv4Addr> {
        let mut identifiers = Identifiers::new(*self);
        identifiers.set_configured(peers);
        identifiers.by_hit
    }
}

/// Which LSI stands for whom.
#[derive(Debug)]
pub(crate) struct Identifiers {
    pub(crate) scope: LocalScope,
    by_hit: BTreeMap<Hit, Ipv4Addr>,
    by_address: BTreeMap<Ipv4Addr, Hit>,
    /// Peers whose LSI the configuration names.
    fixed: BTreeSet<Hit>,
}

impl Identifiers {
    pub(crate) const fn new(scope: LocalScope) -> Self {
        Self {
            scope,
            by_hit: BTreeMap::new(),
            by_address: BTreeMap::new(),
            fixed: BTreeSet::new(),
        }
    }

    /// Gives the configured peers their LSIs anew, and nobody else any.
    pub(crate) fn set_configured(
        &mut self,
        peers: impl IntoIterator<Item = (Hit, Option<Ipv4Addr>)>,
    ) {
        self.by_hit.clear();
        self.by_address.clear();
        self.fixed.clear();
        let peers: BTreeMap<Hit, Option<Ipv4Addr>> = peers.into_iter().collect();
        for (&peer, &fixed) in &peers {
            let free = |address: &Ipv4Addr| {
                self.scope.has_room_at(*address) && !self.by_address.contains_key(address)
            };
            if let Some(address) = fixed.filter(free) {
                self.note(peer, address);
                self.fixed.insert(peer);
            }
        }
        for peer in peers.into_keys() {
            self.know(peer);
        }
    }

    /// Gives a peer an LSI, unless it has one or none is free. The addresses after the first choice follow in order.
    pub(crate) fn know(&mut self, peer: Hit) {
        let (first, size) = self.scope.range();
        // The first and the last one are nobody's, and one is this host's.
        let is_full = self.by_address.len() as u64 >= u64::from(size).saturating_sub(3);
        if is_full || self.by_hit.contains_key(&peer) {
            return;
        }
        let [.., a, b, c, d] = peer.0;
        let start = u32::from_be_bytes([a, b, c, d]) % size;
        // Fewer addresses are taken than there are, so this ends; at the latest behind all that are taken.
        let free = (0..size).map(|step| {
            let at = (u64::from(start) + u64::from(step)) % u64::from(size);
            Ipv4Addr::from_bits(first + at as u32)
        });
        let free = free
            .filter(|address| self.scope.has_room_at(*address))
            .find(|address| !self.by_address.contains_key(address));
        if let Some(address) = free {
            self.note(peer, address);
        }
    }

    fn note(&mut self, peer: Hit, address: Ipv4Addr) {
        self.by_hit.insert(peer, address);
        self.by_address.insert(address, peer);
    }

    /// Gives a peer the LSI of another one, in place of its own: it has only one, so that conversations with the
    /// former one end. A fixed one stays, and the other one is nobody's.
    pub(crate) fn rename(&mut self, from: Hit, to: Hit) {
        let Some(address) = self.by_hit.remove(&from) else {
            return;
        };
        if self.fixed.contains(&to) {
            self.by_address.remove(&address);
        } else {
            self.forget(to);
            self.note(to, address);
        }
    }

    /// Takes a peer's LSI away.
    pub(crate) fn forget(&mut self, peer: Hit) {
        if let Some(address) = self.by_hit.remove(&peer) {
            self.by_address.remove(&address);
        }
    }

    /// The peer that an LSI stands for.
    pub(crate) fn peer_at(&self, address: Ipv4Addr) -> Option<Hit> {
        self.by_address.get(&address).copied()
    }

    /// A peer's LSI.
    pub(crate) fn address_of(&self, peer: Hit) -> Option<Ipv4Addr> {
        self.by_hit.get(&peer).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    const SCOPE: LocalScope = LocalScope {
        own: Ipv4Addr::new(198, 18, 0, 1),
        prefix_length: 29,
        mtu: 1440,
    };

    fn hit(last: u8) -> Hit {
        let mut hit = Hit([0x20, 1, 0, 0x22, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        hit.0[15] = last;
        hit
    }

    fn last(address: Ipv4Addr) -> u8 {
        address.octets()[3]
    }

    #[test]
    fn a_tag_has_the_same_identifier_whoever_else_is_there() {
        let alone = SCOPE.assign([(hit(3), None)]);
        let among = SCOPE.assign([(hit(6), None), (hit(3), None), (hit(12), None)]);
        assert_eq!(alone[&hit(3)], Ipv4Addr::new(198, 18, 0, 3));
        assert_eq!(alone[&hit(3)], among[&hit(3)]);
        // 12 is 4 in a prefix of eight.
        assert_eq!(last(among[&hit(12)]), 4);
    }

    #[test]
    fn what_is_taken_is_given_to_nobody_else() {
        // Its first choice is the prefix's first address, then this host's own.
        let one = SCOPE.assign([(hit(0), None)]);
        assert_eq!(last(one[&hit(0)]), 2);
        // A fixed one comes first, though its tag comes last.
        let fixed = Some(Ipv4Addr::new(198, 18, 0, 3));
        let all = SCOPE.assign([(hit(3), None), (hit(9), fixed)]);
        assert_eq!((last(all[&hit(9)]), last(all[&hit(3)])), (3, 4));
    }

    #[test]
    fn more_peers_than_there_are_addresses_have_none() {
        let all = SCOPE.assign((0..20).map(|at| (hit(at), None)));
        let mut given: Vec<u8> = all.values().map(|&address| last(address)).collect();
        given.sort_unstable();
        assert_eq!(given, [2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_prefix_of_any_length_has_its_ends() {
        for prefix_length in [0, 8, 15, 29, 30, 31, 32, 200] {
            let scope = LocalScope {
                prefix_length,
                ..SCOPE
            };
            assert!(scope.contains(scope.own) && !scope.has_room_at(scope.own));
            assert!(
                scope.has_room_at(Ipv4Addr::new(198, 18, 0, 2)),
                "{prefix_length}"
            );
            assert_eq!(scope.assign([(hit(7), None)]).len(), 1);
        }
        assert!(!SCOPE.contains(Ipv4Addr::new(198, 18, 0, 8)));
        assert!(!SCOPE.has_room_at(Ipv4Addr::new(198, 18, 0, 7)));
    }
}
