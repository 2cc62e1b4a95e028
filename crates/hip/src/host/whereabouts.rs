//! The last addresses of listed peers, beyond the end of their associations and of this process.
//!
//! A host that lists no address of a peer that moves can begin nothing once it has forgotten the association: not after its
//! own restart, nor after the association was closed. It is a hint, and only I1 packets go by it: who answers has to have
//! the peer's key (RFC 7401, section 5.3.2).

use super::{Association, Host, Peer};
use crate::addresses::AddressState;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_wire::hip::Hit;

/// The last addresses of listed peers: of each one at most one of either family.
#[derive(Debug, Default)]
pub(super) struct Whereabouts(BTreeMap<Hit, Vec<IpAddr>>);

impl Whereabouts {
    /// Addresses at which the peer was last, the preferred one first.
    pub(super) fn of(&self, peer: Hit) -> &[IpAddr] {
        self.0.get(&peer).map_or(&[], Vec::as_slice)
    }

    /// Forgets all but these peers.
    pub(super) fn keep(&mut self, peers: &BTreeMap<Hit, Peer>) {
        self.0.retain(|peer, _| peers.contains_key(peer));
    }
}

/// Of addresses the first one, and the first one of the other family.
fn one_of_each_family(addresses: impl Iterator<Item = IpAddr>) -> Vec<IpAddr> {
    let mut chosen: Vec<IpAddr> = Vec::new();
    for address in addresses {
        if chosen
            .iter()
            .all(|other| other.is_ipv4() != address.is_ipv4())
        {
            chosen.push(address);
        }
    }
    chosen
}

/// Addresses of the peer of an association, the verified ones first. Those that it has left count only where no other is
/// known: it may not have answered from a new one yet.
fn last_addresses(association: &Association) -> Vec<IpAddr> {
    let known = |state: AddressState| {
        let session = association.any_session().into_iter();
        let known = session.flat_map(|session| &session.addresses.known);
        let known = known.filter(move |known| known.state == state);
        known.map(|known| known.address)
    };
    let [verified, others, left] = [
        AddressState::Active,
        AddressState::Unverified,
        AddressState::Deprecated,
    ]
    .map(known);
    one_of_each_family(verified.chain(others).chain(left))
}

impl Host {
    /// Recalls where listed peers were when an earlier process of this host ended. Of each peer one address of either family
    /// counts, and none of a peer that is not listed ([`Host::set_peers`]).
    pub fn recall(&mut self, whereabouts: impl IntoIterator<Item = (Hit, Vec<IpAddr>)>) {
        for (peer, addresses) in whereabouts {
            if self.peers.contains_key(&peer) {
                let addresses = one_of_each_family(addresses.into_iter());
                self.whereabouts.0.insert(peer, addresses);
            }
        }
    }

    /// Addresses of listed peers at which they are, or were last: one of either family at most, the preferred one first.
    pub fn whereabouts(&self) -> impl Iterator<Item = (Hit, Vec<IpAddr>)> {
        self.peers.keys().filter_map(|&peer| {
            let now = self.associations.get(&peer).map(last_addresses);
            let now = now.filter(|now| !now.is_empty());
            let known = now.unwrap_or_else(|| self.whereabouts.of(peer).to_vec());
            (!known.is_empty()).then_some((peer, known))
        })
    }

    /// Notes where a peer is whose association ends.
    pub(super) fn note_whereabouts(&mut self, peer: Hit) {
        let known = self.associations.get(&peer).map(last_addresses);
        if let Some(known) =
            known.filter(|known| !known.is_empty() && self.peers.contains_key(&peer))
        {
            self.whereabouts.0.insert(peer, known);
        }
    }
}
