//! Connections that somebody else tracks, such as a kernel's fast path: how they are taken over, and for which of
//! them the gateway has something to do.
//!
//! `gateway.rs` says in which steps a driver hands them over.

use crate::custody;
use crate::flows::Flows;
use crate::link_changes;
use crate::links::{Direction, InterfaceId, LinkId, LinkState, Links, Neighbour, StateSince};
use crate::mechanism_calls::{wake_mechanism, with_mechanism};
use crate::mechanisms::path::PathMechanismKind;
use crate::rivals;
use crate::tracking::{FlowIndex, FlowKey, Observation, Phase, TcpFlow};
use alloc::collections::BTreeSet;
use outlast_base::time::Instant;
use outlast_wire::Packet;

/// Takes over a connection that somebody else has tracked, or corrects one that is known.
pub(crate) fn adopt(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    link: LinkId,
    key: FlowKey,
    tracked: TcpFlow,
) {
    let Some(state) = links.state(link) else {
        return;
    };
    if flows.service.kind() == PathMechanismKind::None {
        return;
    }
    let index = match flows.connections.find(&key) {
        Some(index) => {
            correct((flows, links), now, link, state, index, tracked);
            Some(index)
        }
        None => flows.enter(links, now, link, state, key, tracked),
    };
    if let Some(index) = index {
        flows.note_life(links, now, index);
    }
}

/// Somebody who has tracked a connection meanwhile knows how it is, and that it crosses on `link`.
fn correct(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    link: LinkId,
    state: StateSince,
    index: FlowIndex,
    tracked: TcpFlow,
) {
    let known = flows.connections.at(index);
    if known.is_some_and(|known| custody::is_another(&known.tracked, &tracked)) {
        rivals::end_for_another((flows, links), now, index, state);
    }
    flows.move_flow(links, index, link);
    let Some(connection) = flows.connections.at_mut(index) else {
        return;
    };
    if !connection.is_pledged || tracked.phase != Phase::Opening {
        connection.tracked = tracked;
    }
    connection.is_proven |= tracked.phase != Phase::Opening;
    let state = connection.met(state);
    if connection.known_link_state.state != state.state {
        link_changes::change_link_of((flows, links), now, index, state);
    }
}

/// Shows a connection's mechanism the last acknowledgement that its far host has sent before it was known.
pub(crate) fn remember(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    key: &FlowKey,
    acknowledgement: &Packet,
) {
    let Some(index) = flows.connections.find(key) else {
        return;
    };
    let Some(connection) = flows.connections.at(index) else {
        return;
    };
    let (state, phase) = (connection.known_link_state, connection.tracked.phase);
    let near = &connection.tracked.near;
    let is_last = acknowledgement
        .tcp()
        .is_some_and(|tcp| !tcp.ack.after(near.next) && acknowledgement.sequence_len() == 0);
    if phase != Phase::Established || !connection.is_proven || !is_last {
        return;
    }
    let says_nothing = Observation {
        new_data: false,
        repeated: false,
        newly_acked: 0,
        begins_anew: false,
    };
    wake_mechanism((flows, links), now, index, state);
    // It has passed, whatever would become of it now.
    let _ = with_mechanism((flows, links), now, index, state, |mechanism, cx| {
        mechanism.handle_packet(cx, Direction::FromLink, acknowledgement, says_nothing)
    });
}

/// Links of `interface` that are down, or for which something waits or is nowhere else.
pub(crate) fn links_at_work(
    (flows, links): (&Flows, &Links),
    interface: InterfaceId,
) -> BTreeSet<LinkId> {
    let mut at_work = BTreeSet::new();
    let release = flows.releases.at(interface);
    for (link, index) in flows
        .connections
        .iter_behind(LinkId::of_interface(interface))
    {
        if at_work.contains(&link) {
            continue;
        }
        let state = links.state(link);
        let is_down = state.is_some_and(|link| link.state == LinkState::Down);
        let waits = flows.connections.at(index).is_some_and(|connection| {
            let is_withheld = connection.neighbour != Neighbour::Same;
            let mechanism = connection.mechanism.as_ref();
            let waits = mechanism.is_some_and(|m| m.waiting().is_some());
            let opens = release.is_some_and(|s| s.handshakes.is_at_work(index));
            is_withheld && connection.held.0 > 0
                || waits
                || opens
                || connection.deadline.is_some()
                || connection.is_pledged
        });
        if is_down || waits {
            at_work.insert(link);
        }
    }
    at_work.extend(release.into_iter().flat_map(|s| s.others.links()));
    at_work
}
