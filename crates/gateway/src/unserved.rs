//! Packets that no mechanism serves: other traffic, handshakes, and data of connections whose far host was not heard.
//!
//! While their link is down they wait for it, and handshakes also until they are answered.

use crate::flows::Flows;
use crate::links::{Direction, LinkId, LinkState, Links};
use crate::mechanisms::path::{HoldRule, TakeReason, Verdict};
use crate::passing::PassingPacket;
use crate::sending;
use crate::tracking::{FlowIndex, FlowKey};
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpFlags};

/// A packet that no mechanism knows how to recover waits while the link is down.
pub(crate) fn handle_other(flows: &mut Flows, passing: &PassingPacket<'_>) -> Verdict {
    let &PassingPacket {
        now,
        link,
        state,
        direction,
        packet,
    } = passing;
    if direction == Direction::FromLink || !flows.service.kind().holds_other_traffic() {
        return Verdict::Pass;
    }
    if state.state == LinkState::Up {
        // Nothing that is fresh waits behind what is old.
        flows.releases.pass_other(link, packet, &mut flows.outbox);
        return Verdict::Pass;
    }
    flows.keep_other(now, link, state.state, packet);
    Verdict::Taken(TakeReason::LinkDown)
}

/// A SYN or SYN-ACK of a connection that no mechanism serves yet.
pub(crate) fn handle_opening(
    flows: &mut Flows,
    passing: &PassingPacket<'_>,
    index: FlowIndex,
) -> Verdict {
    if passing.direction == Direction::FromLink || !flows.service.kind().holds_other_traffic() {
        return Verdict::Pass;
    }
    if !awaits_answer(flows, index) {
        return handle_other(flows, passing);
    }
    flows
        .releases
        .pass_opening(passing, index, &flows.limits, &mut flows.outbox)
}

/// A segment with data of a connection whose far host was not heard. If its beginning was not seen
/// either, it waits for the link, or is remembered in case that the link is silent; and nothing but
/// that is done for the connection.
pub(crate) fn handle_one_sided(
    (flows, links): (&mut Flows, &mut Links),
    passing: &PassingPacket<'_>,
    index: FlowIndex,
) -> Verdict {
    let &PassingPacket {
        link,
        direction,
        packet,
        ..
    } = passing;
    let is_data = direction == Direction::ToLink && packet.sequence_len() > 0;
    let Some(connection) = flows.connections.at_mut(index) else {
        return Verdict::Pass;
    };
    if !is_data || !flows.service.kind().holds_other_traffic() || !connection.is_one_sided() {
        return Verdict::Pass;
    }
    if let Some(tcp) = packet.tcp() {
        links.watch(link);
        connection.silence.near_host.hear(tcp);
    }
    let listens = links.listens();
    flows
        .releases
        .pass_one_sided(passing, index, listens, &flows.limits, &mut flows.outbox)
}

/// The link dropped a SYN or SYN-ACK with all that it had been given. Returns whether its
/// connection is known, and waits for the answer.
pub(crate) fn handle_opening_drop(
    flows: &mut Flows,
    now: Instant,
    link: LinkId,
    packet: &Packet,
) -> bool {
    let is_syn = packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN));
    let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
        .filter(|_| is_syn)
        .and_then(|key| flows.connections.find(&key))
        .filter(|index| awaits_answer(flows, *index));
    let Some((index, connection)) = index.and_then(|i| Some((i, flows.connections.at(i)?))) else {
        return false;
    };
    if connection.link.interface != link.interface {
        return false;
    }
    flows.releases.keep_dropped_opening(
        now,
        (index, connection),
        packet,
        &flows.limits,
        &mut flows.outbox,
    );
    true
}

/// Handshakes whose answer was not seen in time have their turn again; so has the question for the far
/// host of a one-sided connection.
pub(crate) fn repeat_handshakes((flows, links): (&mut Flows, &mut Links), now: Instant) {
    let (connections, links) = (&flows.connections, &links);
    flows.releases.repeat_handshakes(now, |index, asked_at| {
        let connection = connections.at(index);
        connection.is_some_and(|one| links.is_quiet(one.link, asked_at))
    });
    let gap = links.probe_gap();
    while let Some(index) = flows.releases.next_to_probe(now, gap) {
        if let Some(link) = flows.connections.at(index).map(|one| one.link) {
            sending::probe(flows, now, link, index);
        }
    }
}

/// Whether the far host has not acknowledged what the near host has begun with.
fn awaits_answer(flows: &Flows, index: FlowIndex) -> bool {
    let connection = flows.connections.at(index);
    flows.service.obeys(HoldRule::Handshakes)
        && connection.is_some_and(|connection| connection.tracked.near.has_outstanding())
}
