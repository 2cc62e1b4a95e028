//! Connections with the addresses and ports of a tracked one: who has the place, and how one that loses it ends.
//!
//! `tracking/contest.rs` says which connection a segment belongs to.

use crate::flows::Flows;
use crate::links::{LinkState, Links, StateSince};
use crate::mechanism_calls::with_mechanism;
use crate::passing::PassingPacket;
use crate::tracking::{FlowIndex, PATIENCE, Phase};
use outlast_base::time::Instant;

/// Gives the place of the connection at `index` to its rival, if nothing is lost by that.
#[cold]
pub(crate) fn give_place_to_rival(
    (flows, links): (&mut Flows, &mut Links),
    passing: &PassingPacket<'_>,
    index: FlowIndex,
) {
    let &PassingPacket { now, state, .. } = passing;
    if !may_yield((flows, links), now, index) {
        return;
    }
    end_for_another((flows, links), now, index, state);
    if let Some(connection) = flows.connections.at_mut(index)
        && let Some(contest) = &mut connection.contest
    {
        contest.yield_to_rival(&mut connection.tracked);
    }
}

/// Gives the first connection its place back.
#[cold]
pub(crate) fn take_place_back(
    (flows, links): (&mut Flows, &mut Links),
    passing: &PassingPacket<'_>,
    index: FlowIndex,
) {
    end_for_another((flows, links), passing.now, index, passing.state);
    if let Some(connection) = flows.connections.at_mut(index) {
        connection.is_proven = true;
    }
}

/// Whether a connection of which nothing was seen for [`PATIENCE`] gives its place to another. One of
/// which something is kept does so only if its far host could have answered all that time.
fn may_yield((flows, links): (&Flows, &Links), now: Instant, index: FlowIndex) -> bool {
    let Some(connection) = flows.connections.at(index) else {
        return false;
    };
    let could_answer = || {
        let known = connection.known_link_state;
        let is_up = known.state == LinkState::Up && now.since(known.since) >= PATIENCE;
        is_up && !links.is_suspected(connection.link)
    };
    let is_kept = connection.held.0 > 0 || connection.is_pledged;
    connection.tracked.phase == Phase::Closed || !is_kept || could_answer()
}

/// Another connection has the ports of the one at `index`.
pub(crate) fn end_for_another(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    state: StateSince,
) {
    flows.end_pledged(links, index);
    with_mechanism((flows, links), now, index, state, |mechanism, cx| {
        mechanism.release(cx.budget);
    });
    begin_anew((flows, links), index);
    if let Some(connection) = flows.connections.at_mut(index) {
        connection.forget_offers();
    }
}

/// Another connection has this one's addresses and ports now: forgets it, and begins anew.
pub(crate) fn begin_anew((flows, links): (&mut Flows, &mut Links), index: FlowIndex) {
    flows.end_pledged(links, index);
    if let Some(mut entry) = flows.connections.entry(index) {
        flows.service.begin_anew(&mut entry, &mut flows.outbox);
        flows
            .releases
            .forget_handshake(entry.connection.link, index);
    }
}
