//! Calls of mechanisms, and what follows from each call in other parts.
//!
//! `service.rs` makes the call itself. Here a connection's mechanism is shown a packet, a drop or whatever a caller
//! has for it; then the connection gets the turn and the place in the table that the mechanism wants.

use crate::connections::Entry;
use crate::flows::Flows;
use crate::links::{Direction, Links, StateSince};
use crate::mechanisms::path::{Context, PathMechanism, TakeReason, Verdict};
use crate::passing::PassingPacket;
use crate::release::Releases;
use crate::service::{Surroundings, Wishes};
use crate::tracking::{FlowIndex, FlowKey, Observation};
use outlast_base::time::Instant;
use outlast_wire::Packet;

/// Calls a connection's mechanism, then gives it the turn and the place that it wants.
pub(crate) fn with_mechanism<R>(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    link: StateSince,
    call: impl FnOnce(&mut dyn PathMechanism, &mut Context<'_>) -> R,
) -> Option<R> {
    flows.service.take_stock(&flows.connections);
    let mut entry = flows.connections.entry(index)?;
    let (limits, outbox) = (&flows.limits, &mut flows.outbox);
    let surroundings = surroundings((now, link), &entry, links, &flows.releases);
    let (result, wishes) = flows
        .service
        .serve(&mut entry, surroundings, limits, outbox, call)?;
    give_turn(&entry, wishes, &mut flows.releases);
    if wishes.changes_shelf {
        flows.note_life(links, now, index);
    }
    Some(result)
}

/// Asks a connection's mechanism what becomes of a packet, if the connection `is_served`, and notes for the
/// link's pace that the packet crosses.
///
/// Returns `None` if there was no mechanism to ask.
pub(crate) fn serve_crossing(
    (flows, links): (&mut Flows, &mut Links),
    passing: &PassingPacket<'_>,
    index: FlowIndex,
    (is_served, observation): (bool, Observation),
) -> Option<Verdict> {
    let &PassingPacket {
        now,
        state,
        direction,
        packet,
        ..
    } = passing;
    let (limits, outbox, releases) = (&flows.limits, &mut flows.outbox, &mut flows.releases);
    let newly_acked = observation.newly_acked;
    if !is_served {
        let mut entry = flows.connections.entry(index)?;
        passing.note_crossing(&mut entry, false, (newly_acked, 0), releases);
        return None;
    }
    flows.service.take_stock(&flows.connections);
    let mut entry = flows.connections.entry(index)?;
    if direction == Direction::ToLink
        && observation.new_data
        && let Some(release) = releases.at_mut(passing.link.interface)
    {
        release.note_data(now, entry.far_host(), index);
    }
    let surroundings = surroundings((now, state), &entry, links, releases);
    flows.service.wake(&mut entry, surroundings, limits, outbox);
    let call = |mechanism: &mut dyn PathMechanism, cx: &mut Context<'_>| {
        let verdict = mechanism.handle_packet(cx, direction, packet, observation);
        (verdict, *cx.arrived)
    };
    let served = flows
        .service
        .serve(&mut entry, surroundings, limits, outbox, call);
    let Some(((verdict, arrived), wishes)) = served else {
        passing.note_crossing(&mut entry, true, (newly_acked, 0), releases);
        return None;
    };
    give_turn(&entry, wishes, releases);
    let passes = matches!(
        verdict,
        Verdict::Pass | Verdict::Taken(TakeReason::Freshened)
    );
    passing.note_crossing(&mut entry, passes, (newly_acked, arrived), releases);
    // The segment's wait in the gateway is no part of the link's round trip.
    match verdict {
        Verdict::Taken(TakeReason::BehindKept) => entry.connection.tracked.rtt.discard(),
        Verdict::Taken(TakeReason::AwaitsShare) => entry.connection.tracked.note_wait(packet),
        _ => {}
    }
    if wishes.changes_shelf {
        flows.note_life(links, now, index);
    }
    Some(verdict)
}

/// Tells a connection's mechanism that the link has dropped a segment.
pub(crate) fn handle_segment_drop(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    packet: &Packet,
) {
    let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
        .and_then(|key| flows.connections.find(&key));
    let Some((index, connection)) = index.and_then(|i| Some((i, flows.connections.at(i)?))) else {
        return;
    };
    // The flow may have moved to another link since.
    let state = links
        .state(connection.link)
        .map(|state| connection.met(state));
    if let Some(state) = state.filter(|_| connection.was_established()) {
        wake_mechanism((flows, links), now, index, state);
        with_mechanism((flows, links), now, index, state, |mechanism, cx| {
            mechanism.handle_drop(cx, packet);
        });
    }
}

/// Gives the connection a mechanism, unless it has one.
pub(crate) fn wake_mechanism(
    (flows, links): (&mut Flows, &Links),
    now: Instant,
    index: FlowIndex,
    link: StateSince,
) {
    if let Some(mut entry) = flows.connections.entry(index) {
        let (limits, outbox) = (&flows.limits, &mut flows.outbox);
        let surroundings = surroundings((now, link), &entry, links, &flows.releases);
        flows.service.wake(&mut entry, surroundings, limits, outbox);
    }
}

/// Frees memory of a connection that is idle.
///
/// Not behind a link that is suspected to be away: what the connection has said last may be lost, and has to be said again.
pub(crate) fn rest((flows, links): (&mut Flows, &Links), now: Instant, index: FlowIndex) {
    let entry = flows.connections.entry(index);
    if let Some(mut entry) = entry.filter(|entry| !links.is_suspected(entry.connection.link)) {
        flows.service.rest(now, &mut entry);
    }
}

/// What a connection's mechanism sees of its link, which is in the state `link`.
fn surroundings(
    (now, link): (Instant, StateSince),
    entry: &Entry<'_>,
    links: &Links,
    releases: &Releases,
) -> Surroundings {
    let (connection, interface) = (&*entry.connection, entry.interface());
    let known = connection.known_link_state;
    let link = match link.state == known.state {
        true => known,
        false => link,
    };
    Surroundings {
        now,
        link,
        is_suspected: links.is_suspected(connection.link),
        is_paced: releases.is_paced(now, interface, link.since),
        allotment: releases.allotment(interface, entry.far_host(), entry.index),
    }
}

/// Gives a connection the turn that its mechanism wants.
fn give_turn(entry: &Entry<'_>, wishes: Wishes, releases: &mut Releases) {
    if let Some(waiting) = wishes.turn
        && let Some(release) = releases.at_mut(entry.interface())
    {
        release.give_flow_a_turn(entry.index, entry.far_host(), waiting);
    }
}
