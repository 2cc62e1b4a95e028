//! Where listed peers were last, beyond the end of their associations and of this process.
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

/// Addresses of a peer that are known beyond its association.
const MOST: usize = 2;

/// Addresses from which listed peers have answered last.
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

/// Addresses from which the peer of an association has answered: the first ones, and none if it has none.
fn verified(association: &Association) -> Vec<IpAddr> {
    let session = association.any_session().into_iter();
    let known = session.flat_map(|session| &session.addresses.known);
    let verified = known.filter(|known| known.state == AddressState::Active);
    verified.map(|known| known.address).take(MOST).collect()
}

impl Host {
    /// Sets where listed peers were when an earlier process of this host ended: of each at most two addresses count, and
    /// none of a peer that is not listed ([`Host::set_peers`]).
    pub fn recall(&mut self, whereabouts: impl IntoIterator<Item = (Hit, Vec<IpAddr>)>) {
        for (peer, mut addresses) in whereabouts {
            if self.peers.contains_key(&peer) {
                addresses.truncate(MOST);
                self.whereabouts.0.insert(peer, addresses);
            }
        }
    }

    /// Where listed peers are, or were last: at most two addresses each, the preferred one first.
    pub fn whereabouts(&self) -> impl Iterator<Item = (Hit, Vec<IpAddr>)> {
        self.peers.keys().filter_map(|&peer| {
            let now = self.associations.get(&peer).map(verified);
            let now = now.filter(|now| !now.is_empty());
            let known = now.unwrap_or_else(|| self.whereabouts.of(peer).to_vec());
            (!known.is_empty()).then_some((peer, known))
        })
    }

    /// Notes where a peer is whose association ends.
    pub(super) fn note_whereabouts(&mut self, peer: Hit) {
        let known = self.associations.get(&peer).map(verified);
        if let Some(known) =
            known.filter(|known| !known.is_empty() && self.peers.contains_key(&peer))
        {
            self.whereabouts.0.insert(peer, known);
        }
    }
}
