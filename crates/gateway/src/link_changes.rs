//! What a change of a link brings about: its connections' mechanisms are told, and what waits has its turn.
//!
//! `links/` says which link has changed, and by whose word.

use crate::event::Event;
use crate::flows::Flows;
use crate::links::{Indicator, LinkId, LinkState, Links, Sign, StateSince};
use crate::mechanism_calls::with_mechanism;
use crate::sending;
use crate::tracking::FlowIndex;
use outlast_base::time::Instant;

/// Carries out a sign: the link went down or came up.
pub(crate) fn change_link((flows, links): (&mut Flows, &mut Links), now: Instant, sign: Sign) {
    flows.outbox.tell(Event::Link(sign.event()));
    let behind = flows.connections.behind(sign.link);
    if sign.state == LinkState::Up {
        welcome(flows, now, sign.link, sign.why, &behind);
    }
    for (link, index) in behind {
        let (Some(connection), Some(state)) = (flows.connections.at(index), links.state(link))
        else {
            continue;
        };
        if connection.known_link_state.state != state.state {
            let (since, by) = (sign.since, sign.why);
            let state = StateSince { since, by, ..state };
            change_link_of((flows, links), now, index, state);
        }
    }
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
    for &(own, index) in behind {
        // A peer that is down by itself stays so.
        if links.is_up(own) {
            for sign in signs {
                change_link_of((flows, links), now, index, sign.state());
            }
        }
    }
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
}
