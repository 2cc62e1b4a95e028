//! Connections that somebody else tracks as long as nothing is to be done for them: a kernel's fast
//! path. When their link goes down the gateway takes them over, and when nothing is left to do it
//! lets go of them again.
//!
//! Taking over is done in three steps while the link is still up in the gateway's eyes. First
//! [`Gateway::adopt`] with the connection as it was before the oldest packet that is known, then
//! [`Gateway::recall`] with each such packet in order, then [`Gateway::adopt`] with the connection
//! as it is. After that the gateway stands where it would stand if the packets had crossed it.

use super::Gateway;
use super::crossing::Crossing;
use super::frozen::LARGEST_DISTANCE;
use crate::links::{Direction, InterfaceId, LinkId, LinkState};
use crate::mechanisms::path::{PathMechanismKind, Verdict};
use crate::tracking::{FlowIndex, FlowKey, Half, Observation, Phase, TcpFlow};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpHeader};

impl Gateway {
    /// Takes over a connection that somebody else has tracked so far, or corrects one that is
    /// known already. Its packets cross on `link`.
    ///
    /// Who has not seen both hosts corrects nothing of a connection that the gateway has acknowledged
    /// ahead: what was acknowledged is nowhere else, and the far host's numbers are needed to send it.
    pub fn adopt(&mut self, now: Instant, link: LinkId, key: FlowKey, tracked: TcpFlow) {
        let Some(state) = self.links.state(link) else {
            return;
        };
        if self.mechanism == PathMechanismKind::None {
            return;
        }
        let index = match self.flows.find(&key) {
            Some(index) => {
                if self
                    .flows
                    .flow(index)
                    .is_some_and(|record| is_another(&record.tracked, &tracked))
                {
                    self.end_for_another(now, index, state);
                }
                self.move_flow(index, link);
                let mut is_news = false;
                if let Some(record) = self.flows.flow_mut(index) {
                    if !record.is_pledged || tracked.phase != Phase::Opening {
                        record.tracked = tracked;
                    }
                    record.is_proven |= tracked.phase != Phase::Opening;
                    is_news = record.state != state.state;
                }
                if is_news {
                    self.change_link_of(now, index, state);
                }
                Some(index)
            }
            None => self.enter(now, link, state, key, tracked),
        };
        if let Some(index) = index {
            self.note_life(now, index);
        }
    }

    /// Shows a packet that has crossed already, of a connection that was [adopted](Self::adopt):
    /// nothing can be done about it any more, and it is not counted.
    pub fn recall(&mut self, now: Instant, link: LinkId, direction: Direction, packet: &Packet) {
        let Some(state) = self.links.state(link) else {
            return;
        };
        let key = FlowKey::of_tcp(packet.header(), direction);
        let known = key.filter(|key| self.is_tracked(key));
        if let (Some(key), Some(tcp)) = (known, packet.tcp()) {
            let crossing = Crossing {
                now,
                link,
                state,
                direction,
                packet,
            };
            // It has passed, whatever would become of it now.
            let _ = self.handle_tcp(&crossing, key, tcp);
        }
    }

    /// Shows the last acknowledgement that the far host of a connection has sent before it was
    /// [adopted](Self::adopt): it says nothing new, and its sender was not heard now, but the
    /// connection's mechanism may want it again.
    pub fn remember(&mut self, now: Instant, key: &FlowKey, acknowledgement: &Packet) {
        let Some(index) = self.flows.find(key) else {
            return;
        };
        let Some(record) = self.flows.flow(index) else {
            return;
        };
        let (state, phase) = (record.told, record.tracked.phase);
        let near = &record.tracked.near;
        let is_last = acknowledgement
            .tcp()
            .is_some_and(|tcp| !tcp.ack.after(near.next) && acknowledgement.sequence_len() == 0);
        if phase != Phase::Established || !record.is_proven || !is_last {
            return;
        }
        let says_nothing = Observation {
            new_data: false,
            repeated: false,
            newly_acked: 0,
            begins_anew: false,
        };
        self.wake_mechanism(index);
        // It has passed, whatever would become of it now.
        let _ = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.handle_packet(cx, Direction::FromLink, acknowledgement, says_nothing)
        });
    }

    /// Whether the connection is in the gateway's table.
    #[must_use]
    pub fn is_tracked(&self, key: &FlowKey) -> bool {
        self.flows.find(key).is_some()
    }

    /// Links of `interface` for which the gateway has something to do: they are down, or something
    /// waits for its turn or its time, or something of a connection is nowhere else. All others are
    /// at rest, and [`Self::forget`] loses nothing that only the gateway knows.
    #[must_use]
    pub fn links_at_work(&self, interface: InterfaceId) -> BTreeSet<LinkId> {
        let mut at_work = BTreeSet::new();
        let release = self.releases.iter().find(|s| s.interface == interface);
        let behind = self
            .crossings
            .range((LinkId::whole(interface), FlowIndex::FIRST)..);
        for &(link, index) in behind.take_while(|(link, _)| link.interface == interface) {
            if at_work.contains(&link) {
                continue;
            }
            let is_down = self
                .links
                .state(link)
                .is_some_and(|link| link.state == LinkState::Down);
            let waits = self.flows.flow(index).is_some_and(|record| {
                let mechanism = record.mechanism.as_ref();
                let waits = mechanism.is_some_and(|m| m.waiting().is_some());
                let opens = release.is_some_and(|s| s.handshakes.is_at_work(index));
                waits || opens || record.deadline.is_some() || record.is_pledged
            });
            if is_down || waits {
                at_work.insert(link);
            }
        }
        at_work.extend(release.into_iter().flat_map(|s| s.others.links()));
        at_work
    }

    /// Whether the gateway has nothing to do for `link`, or for any peer of an interface.
    #[must_use]
    pub fn is_at_rest(&self, link: LinkId) -> bool {
        let at_work = self.links_at_work(link.interface);
        match link.peer {
            None => at_work.is_empty(),
            Some(_) => !at_work.contains(&link),
        }
    }

    /// Lets go of the connections that cross on `link`, or behind any peer of an interface: from
    /// now on somebody else tracks them.
    pub fn forget(&mut self, link: LinkId) {
        self.forget_where(link.interface, |other| link.peer.is_none() || other == link);
    }

    /// Lets go of the connections of `interface` that cross on links for which `goes` holds.
    pub fn forget_where(&mut self, interface: InterfaceId, goes: impl Fn(LinkId) -> bool) {
        let mut behind = self.flows_behind(LinkId::whole(interface));
        behind.retain(|(link, _)| goes(*link));
        for (_, index) in behind {
            if let Some(removed) = self.flows.remove(index) {
                self.release(removed);
            }
        }
    }

    /// Packets have crossed unseen since then. Connections whose link was not down all the time may have
    /// gone on: one of which the next segment either way does not fit is met anew. One that the gateway has
    /// acknowledged ahead is not: nobody else has what is kept of it. Returns how many are in doubt.
    pub fn doubt_since(&mut self, since: Instant) -> usize {
        let interfaces: Vec<_> = self.releases.iter().map(|s| s.interface).collect();
        let mut doubtful = 0;
        for interface in interfaces {
            for (_, index) in self.flows_behind(LinkId::whole(interface)) {
                if let Some(record) = self.flows.flow_mut(index) {
                    let told = record.told;
                    let was_down = told.state == LinkState::Down && told.since <= since;
                    record.is_doubtful = [!was_down; 2];
                    doubtful += usize::from(!was_down);
                }
            }
        }
        doubtful
    }

    /// A segment shows that a connection has gone on unseen: nothing is known of it but this.
    pub(super) fn meet_anew(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Verdict {
        if let Some(removed) = self.flows.remove(index) {
            self.release(removed);
        }
        self.handle_tcp(crossing, key, tcp)
    }
}

/// Whether both hosts of `other` were seen, and it cannot be the connection that was `known` so far.
fn is_another(known: &TcpFlow, other: &TcpFlow) -> bool {
    let is_far_off = |known: &Half, other: &Half| {
        let distance = other.next.distance_from(known.next).unsigned_abs();
        known.is_seen() && distance > LARGEST_DISTANCE
    };
    let begins = known.phase == Phase::Closed && other.phase == Phase::Established;
    other.phase != Phase::Opening
        && (begins || is_far_off(&known.near, &other.near) || is_far_off(&known.far, &other.far))
}
