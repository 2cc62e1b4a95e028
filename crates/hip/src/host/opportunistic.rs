//! Opportunistic mode (RFC 7401, section 4.1.8): an exchange with whoever answers at an address.
//!
//! Until the tag is known, the tables list the peer by a *stand-in*: its address, which is never a valid tag. The first
//! R1 from there renames the attempt to the tag that the R1 is signed for. Only the R2 shows that this host is there:
//! then the address is bound to the tag for as long as the host runs, and later exchanges name the tag, so that nobody
//! else can answer them. If no R2 comes, the tag is forgotten, and the next attempt takes any answer again.
//!
//! The RFC forbids to count on a second exchange meeting the same host. This is no contradiction: without an
//! association nobody but the bound host is met, and nothing says that it is still at the address.
//!
//! What applications send meanwhile waits as it is, because checksums need the tag.

use super::{Association, Host, Path, PeerAddress, State, StateName};
use crate::addresses::AddressState;
use crate::event::{Failure, Refusal};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::Instant;
use outlast_wire::hip::{Hit, Message, PacketType};

/// The key of a peer whose tag is not known, made from its address.
#[must_use]
pub const fn stand_in(address: IpAddr) -> Hit {
    match address {
        IpAddr::V4(address) => Hit(address.to_ipv6_mapped().octets()),
        IpAddr::V6(address) => Hit(address.octets()),
    }
}

/// Whether a key stands for an address.
pub(super) const fn is_stand_in(peer: Hit) -> bool {
    peer.suite().is_none()
}

/// Exchanges with hosts whose tags were not known.
#[derive(Debug, Default)]
pub(super) struct Opportunistic {
    /// Tags of R1 packets, while their R2 is awaited, and the stand-ins that they answer.
    pending: BTreeMap<Hit, Hit>,
    /// Tags that were shown, by their stand-ins.
    bound: BTreeMap<Hit, Hit>,
    /// Packets of applications for stand-ins.
    queued: BTreeMap<Hit, VecDeque<Vec<u8>>>,
}

impl Opportunistic {
    /// The stand-in that a tag has answered for.
    pub(super) fn stand_in_of(&self, peer: Hit) -> Option<Hit> {
        let mut bound = self.bound.iter();
        let is_it = bound.find(|(_, tag)| **tag == peer);
        let pending = self.pending.get(&peer).copied();
        pending.or_else(|| is_it.map(|(stand_in, _)| *stand_in))
    }
}

impl Host {
    /// Whether a packet without a receiver's tag is answered here: an I1, if the configuration lets it be.
    pub(super) fn answers_without_tag(&self, message: &Message<'_>) -> bool {
        let is_opportunistic = message.kind() == PacketType::I1 && message.receiver() == Hit::NULL;
        is_opportunistic && self.config.answers_opportunistic
    }

    /// Keeps an application's packet for a stand-in, and begins an exchange with it.
    pub(super) fn queue_for_stand_in(&mut self, now: Instant, peer: Hit, packet: &[u8]) {
        let attempt = self.associations.get(&peer).map(Association::name);
        if attempt == Some(StateName::Failed) {
            return self.outbox.refuse(Refusal::NoPath);
        }
        let queued = self.opportunistic.queued.entry(peer).or_default();
        queued.push_back(packet.to_vec());
        if queued.len() > self.config.limits.waiting {
            queued.pop_front();
            self.outbox.refuse(Refusal::Overflow);
        }
        let associations = &self.associations;
        let mut pending = self.opportunistic.pending.iter();
        if !pending.any(|(tag, &of)| of == peer && associations.contains_key(tag)) {
            self.connect(now, peer);
            if !self.associations.contains_key(&peer) {
                // Nothing would ever send it.
                self.opportunistic.queued.remove(&peer);
            }
        }
    }

    /// The first answer to an opportunistic I1 gives the attempt a tag. Any other packet changes nothing.
    pub(super) fn adopt_tag(&mut self, now: Instant, peer: Hit, path: &Path) {
        let stand_in = stand_in(path.remote);
        if is_stand_in(peer) || !self.awaits_answer(stand_in) {
            return;
        }
        if let Some(known) = self.associations.get_mut(&peer) {
            // One that is there already has shown where it is.
            let mut addresses = known
                .session()
                .into_iter()
                .flat_map(|session| &session.addresses.known);
            let is_there = |known: &PeerAddress| {
                known.address == path.remote && known.state == AddressState::Active
            };
            if addresses.any(is_there) {
                self.forget(stand_in);
                self.opportunistic.pending.insert(peer, stand_in);
                self.bind_tag(now, peer);
            }
        } else if self.rename_attempt(stand_in, peer) {
            self.opportunistic.pending.insert(peer, stand_in);
        }
    }

    /// Whether an I1 was sent that nobody has answered yet.
    fn awaits_answer(&self, peer: Hit) -> bool {
        let attempt = self.associations.get(&peer);
        attempt.is_some_and(|attempt| matches!(attempt.state, State::I1Sent { offer: None, .. }))
    }

    fn rename_attempt(&mut self, from: Hit, to: Hit) -> bool {
        let Some(attempt) = self.associations.remove(&from) else {
            return false;
        };
        self.forget(to);
        if let Some((at, reason)) = attempt.armed {
            self.agenda.remove(&(at, reason, from));
        }
        let armed = None;
        let attempt = Association { armed, ..attempt };
        self.associations.insert(to, attempt);
        true
    }

    /// The R1 was of no use: the stand-in waits for another one.
    pub(super) fn revert_tag(&mut self, now: Instant, peer: Hit) {
        if !self.awaits_answer(peer) {
            return;
        }
        if let Some(stand_in) = self.opportunistic.pending.remove(&peer) {
            self.rename_attempt(peer, stand_in);
            self.settle(now, stand_in);
        }
    }

    /// Whether the tag is that of an R1 whose R2 is awaited.
    pub(super) fn is_pending(&self, peer: Hit) -> bool {
        self.opportunistic.pending.contains_key(&peer)
    }

    /// True if the tag is that of an R1 that has come from `address`, whose R2 is awaited.
    pub(super) fn is_pending_at(&self, peer: Hit, address: IpAddr) -> bool {
        self.opportunistic.pending.get(&peer) == Some(&stand_in(address))
    }

    /// Begins an exchange anew whose I2 is of no use any more. Where its tag was not known before, whoever answers is
    /// asked again. It fails if the peer is no longer known.
    pub(super) fn begin_anew(&mut self, now: Instant, peer: Hit) {
        let stand_in = self.opportunistic.pending.get(&peer).copied();
        let asked = stand_in.unwrap_or(peer);
        if !self.peers.contains_key(&asked) {
            return self.fail(now, peer, Failure::NoAnswer);
        }
        if stand_in.is_some() {
            self.opportunistic.pending.remove(&peer);
            self.rename_attempt(peer, asked);
        }
        self.begin(now, asked, None);
    }

    /// The peer has opened an association itself meanwhile, from here.
    pub(super) fn note_peer_opened(&mut self, now: Instant, peer: Hit, path: &Path) {
        if self.opportunistic.pending.get(&peer) == Some(&stand_in(path.remote)) {
            self.bind_tag(now, peer);
        } else {
            self.drop_attempt(peer);
        }
    }

    /// The peer has shown its tag: it is bound to the address, and has what waits.
    pub(super) fn bind_tag(&mut self, now: Instant, peer: Hit) {
        let Some(stand_in) = self.opportunistic.pending.remove(&peer) else {
            return;
        };
        self.opportunistic.bound.insert(stand_in, peer);
        self.apply_bound();
        for packet in self
            .opportunistic
            .queued
            .remove(&stand_in)
            .unwrap_or_default()
        {
            self.handle_local_data(now, &packet);
        }
    }

    /// An exchange is over without an association: a tag that was not shown is forgotten.
    pub(super) fn drop_attempt(&mut self, peer: Hit) {
        let stand_in = self.opportunistic.pending.remove(&peer).unwrap_or(peer);
        self.opportunistic.queued.remove(&stand_in);
    }

    /// Gives tags that were shown the place of their stand-ins.
    pub(super) fn apply_bound(&mut self) {
        let peers = &self.peers;
        self.opportunistic
            .bound
            .retain(|stand_in, _| peers.contains_key(stand_in));
        self.opportunistic
            .queued
            .retain(|stand_in, _| peers.contains_key(stand_in));
        for (stand_in, &peer) in &self.opportunistic.bound {
            if let Some(known) = self.peers.get(stand_in).cloned() {
                self.peers.entry(peer).or_insert(known);
            }
            if let Some(local) = &mut self.local {
                local.identifiers.rename(*stand_in, peer);
            }
        }
    }
}
