//! What a change of a link brings about: its connections' mechanisms are told, and what waits has its turn.
//!
//! `links/` says which link has changed, and by whose word.

use crate::event::Event;
use crate::flows::Flows;
use crate::links::{Indicator, LinkId, LinkState, Links, Neighbour, Sign, StateSince};
use crate::mechanism_calls::{self, wake_mechanism, with_mechanism};
use crate::neighbours;
use crate::sending;
use crate::tracking::FlowIndex;
use alloc::vec::Vec;
use outlast_base::time::Instant;

/// Idle connections whose far hosts are asked after one return. Questions take a tenth of a second of 1 Mbit/s then; those of
/// thousands would be in the way of what is known to wait.
pub const MOST_ASKED_AT_REST: usize = 256;

/// Carries out a sign: the link went down or came up.
pub(crate) fn change_link((flows, links): (&mut Flows, &mut Links), now: Instant, sign: Sign) {
    flows.outbox.tell(Event::Link(sign.event()));
    let behind = flows.connections.behind(sign.link);
    let mut woken = Vec::new();
    if sign.state == LinkState::Up {
        welcome(flows, now, sign.link, sign.why, &behind);
        woken = wake_newest_at_rest((flows, links), now, &behind);
    }
    for &(link, index) in &behind {
        let (Some(connection), Some(state)) = (flows.connections.at(index), links.state(link))
        else {
            continue;
        };
        let state = connection.met(state);
        if connection.known_link_state.state != state.state {
            let (since, by) = (sign.since, sign.why);
            let state = StateSince { since, by, ..state };
            change_link_of((flows, links), now, index, state);
        }
    }
    rest_again((flows, links), now, &woken);
    neighbours::ask((flows, links), now, &behind);
    sending::send_in_turn((flows, links), now);
}

/// A link was down and is up, without anybody having said so meanwhile: the mechanisms of the
/// connections `behind` it are told both changes.
pub(crate) fn return_of(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    behind: &[(LinkId, FlowIndex)],
    signs: [Sign; 2],
) {
    for sign in signs {
        flows.outbox.tell(Event::Link(sign.event()));
    }
    let [_, up] = signs;
    welcome(flows, now, up.link, up.why, behind);
    let woken = wake_newest_at_rest((flows, links), now, behind);
    for &(own, index) in behind {
        // A peer that is down by itself stays so, and so does one of whom nobody knows who it is.
        let connection = flows.connections.at(index);
        if links.is_up(own) && connection.is_some_and(|one| one.neighbour == Neighbour::Same) {
            for sign in signs {
                change_link_of((flows, links), now, index, sign.state());
            }
        }
    }
    rest_again((flows, links), now, &woken);
}

/// Tells a connection's mechanism that the connection's link is in another state.
pub(crate) fn change_link_of(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    state: StateSince,
) {
    if let Some(entry) = flows.connections.entry(index) {
        let (far_host, interface) = (entry.far_host(), entry.interface());
        let connection = entry.connection;
        connection.known_link_state = state;
        connection.departed = 0;
        // What was on its way is answered late, or by what the gateway sends.
        connection.tracked.rtt.discard();
        flows
            .releases
            .change_link(now, interface, (far_host, index), state.state);
    }
    with_mechanism((flows, links), now, index, state, |mechanism, cx| {
        mechanism.handle_link(cx);
    });
}

/// Gives mechanisms to connections that were idle before their link went down, so that those hear of its return: their far
/// hosts may have sent something that was lost beyond the link, and wait for a timeout. Returns which.
fn wake_newest_at_rest(
    (flows, links): (&mut Flows, &Links),
    now: Instant,
    behind: &[(LinkId, FlowIndex)],
) -> Vec<FlowIndex> {
    if !flows.service.asks_the_idle() {
        return Vec::new();
    }
    let newest = flows.connections.newest_at_rest(behind, MOST_ASKED_AT_REST);
    for &index in &newest {
        let connection = flows.connections.at(index);
        if let Some(link) = connection.map(|connection| connection.known_link_state) {
            wake_mechanism((flows, links), now, index, link);
        }
    }
    newest
}

/// Takes the mechanisms back from which the return asks nothing.
fn rest_again((flows, links): (&mut Flows, &Links), now: Instant, woken: &[FlowIndex]) {
    for &index in woken {
        mechanism_calls::rest((flows, links), now, index);
    }
}

/// Prepares the pace of `link`, which is up again, for the connections `behind` it.
fn welcome(
    flows: &mut Flows,
    now: Instant,
    link: LinkId,
    by: Indicator,
    behind: &[(LinkId, FlowIndex)],
) {
    let connections = &flows.connections;
    let round_trips = behind
        .iter()
        .filter_map(|(_, index)| Some(&connections.at(*index)?.tracked.rtt));
    flows.releases.welcome(now, link, by, round_trips);
    flows.service.welcome();
}
