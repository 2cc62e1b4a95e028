//! What the gateway sends: turn by turn as far as each link's pace allows, and probes of silent links.
//!
//! `release/` says whose turn it is.

use crate::connections::Entry;
use crate::flows::Flows;
use crate::links::{Direction, LinkId, Links, StateSince};
use crate::mechanism_calls::with_mechanism;
use crate::mechanisms::path::{Outgoing, SendReason, Waiting};
use crate::release::{INITIAL_BURST, Turn};
use crate::tracking::FlowIndex;
use outlast_base::time::Instant;

/// How often a mechanism may find, in one turn, that what it has waited for is void: more often than any does.
const POLLS_IN_A_TURN: usize = 8;

/// Sends what waits, connection by connection, as far as the pace of each link allows.
pub(crate) fn send_in_turn((flows, links): (&mut Flows, &mut Links), now: Instant) {
    for place in 0..flows.releases.len() {
        while let Some(taken) = flows.releases.next_turn(place, now) {
            let len = match taken.turn {
                Turn::Handshakes => flows.releases.send_handshakes(
                    place,
                    now,
                    &mut flows.connections,
                    &mut flows.outbox,
                ),
                Turn::Others => {
                    let (links, age) = (&*links, flows.limits.other_age);
                    let is_up = |link| links.delivers(link);
                    flows
                        .releases
                        .send_other(place, now, age, is_up, &mut flows.outbox)
                }
                Turn::Flow(index, waiting) => {
                    send_for_flow((flows, links), now, index, waiting, place)
                }
            };
            flows.releases.charge(place, now, taken, len);
        }
    }
}

/// Sends one packet of a connection; returns its length in bytes, zero if there is none to send.
///
/// The connection may be gone by now, or have moved to another interface and have its turn there.
fn send_for_flow(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    waiting: Waiting,
    place: usize,
) -> u32 {
    let Some(connection) = flows.connections.at(index) else {
        return 0;
    };
    let link = connection.link;
    if Some(link.interface) != flows.releases.interface(place) {
        return 0;
    }
    let Some(state) = links.state(link).map(|state| connection.met(state)) else {
        return 0;
    };
    let Some(outgoing) = poll_mechanism((flows, links), now, index, state) else {
        return 0;
    };
    let has_standing_queue = note_sent((flows, links), now, (link, index), &outgoing);
    let len = outgoing.packet.total_len();
    flows
        .releases
        .transmit((now, link), outgoing, &mut flows.outbox);
    if let Some(release) = flows.releases.at_mut(link.interface) {
        release.charge_connection(now, waiting, len, has_standing_queue);
    }
    len
}

/// The next packet of a connection. Its mechanism may find that what it has waited for is void, and wait for
/// something else; but one that goes on waiting with nothing to send loses its turn, lest all others wait
/// for it for ever.
fn poll_mechanism(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    state: StateSince,
) -> Option<Outgoing> {
    for _ in 0..POLLS_IN_A_TURN {
        let outgoing = with_mechanism((flows, links), now, index, state, |mechanism, cx| {
            mechanism.poll_transmit(cx)
        });
        if let Some(outgoing) = outgoing.flatten() {
            return Some(outgoing);
        }
        let interface = flows.connections.at(index)?.link.interface;
        if !flows.releases.at_mut(interface)?.has_turn(index) {
            return None;
        }
    }
    debug_assert!(false, "a mechanism waits with nothing to send");
    let interface = flows.connections.at(index)?.link.interface;
    let far_host = flows.connections.key(index)?.far.ip();
    flows
        .releases
        .at_mut(interface)?
        .take_turn_back(index, far_host);
    None
}

/// A connection's mechanism sends something. Returns whether the connection has filled the link's queue.
fn note_sent(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    (link, index): (LinkId, FlowIndex),
    outgoing: &Outgoing,
) -> bool {
    let Some(entry) = flows.connections.entry(index) else {
        return false;
    };
    let far_host = entry.far_host();
    let connection = entry.connection;
    let packet = &outgoing.packet;
    if outgoing.direction == Direction::ToLink {
        let (place, parts) = (
            (link, index),
            (&connection.tracked, &mut connection.silence),
        );
        let silent = match outgoing.reason {
            SendReason::Overdue => links.note_overdue(now, place, parts),
            _ if packet.sequence_len() > 0 => links.note_repetition(now, place, parts),
            _ => None,
        };
        flows.outbox.tell_silent(silent);
        flows
            .releases
            .note_departure(now, (far_host, index), connection, packet);
        if let Some(release) = flows.releases.at_mut(link.interface) {
            release.ask(now, far_host, connection.tracked.rtt.patience());
        }
    }
    match outgoing.reason {
        SendReason::Question | SendReason::Overdue => connection.silence.note_probe(now),
        SendReason::Share => connection.tracked.note_first_departure(now, packet),
        _ => {}
    }
    // Who has filled the link's queue has more under way than a connection begins with (RFC 6928).
    let near = &connection.tracked.near;
    u64::from(near.next.distance_from(near.acked).unsigned_abs()) > INITIAL_BURST
}

/// Asks a connection's far host, by the near host's own numbers, whether it is there.
pub(crate) fn probe(flows: &mut Flows, now: Instant, link: LinkId, index: FlowIndex) {
    let Some(Entry {
        key, connection, ..
    }) = flows.connections.entry(index)
    else {
        return;
    };
    let near_host = connection.silence.near_host;
    let Some(packet) = near_host.keep_alive(&key, &connection.tracked) else {
        return;
    };
    connection.silence.note_probe(now);
    flows.outbox.counters.probes += 1;
    let (reason, outbox) = (SendReason::Probe, &mut flows.outbox);
    flows
        .releases
        .transmit_to_link((now, link), packet, reason, outbox);
}
