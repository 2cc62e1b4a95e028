//! Measures where another host may have the address of a far host: its connections' links are down for their mechanisms.
//!
//! That holds for a far host that is on the link itself. One beyond a router stays the same whoever that router is.
//!
//! - While nobody has answered for the address, all of its connections wait, and so does other traffic.
//! - If the same host answers, they go on as after any other outage.
//! - If another host answers, each connection waits until it is heard itself, and other traffic that was kept is dropped.
//!   The far host of each connection is asked whether it is there, with no data: the same host with another network card
//!   answers, and a stranger resets or is silent.
//!
//! Segments that a near host sends by itself meanwhile go on, as it would without a gateway.

use crate::flows::Flows;
use crate::link_changes;
use crate::links::{Direction, Indicator, LinkId, LinkState, Links, Neighbour, StateSince};
use crate::mechanisms::path::{TakeReason, Verdict};
use crate::passing::PassingPacket;
use crate::sending;
use crate::tracking::FlowIndex;
use alloc::vec::Vec;
use outlast_base::time::Instant;
use outlast_wire::{TcpFlags, TcpHeader};

/// Connections whose far hosts are asked after one change, at most; the others are asked when their near hosts speak.
const MOST_ASKED: usize = 256;

/// Hears who answers for the address of the peer of `link`.
pub(crate) fn handle(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    link: LinkId,
    neighbour: Neighbour,
) {
    links.set_unconfirmed(link, neighbour == Neighbour::Unconfirmed);
    let Some(peer) = link.peer else { return };
    let on_link = flows.connections.on(link).map(|(_, index)| index);
    let of_peer: Vec<_> = on_link
        .filter(|index| flows.connections.key(*index).map(|key| key.far.ip()) == Some(peer))
        .collect();
    match neighbour {
        Neighbour::Same => {
            for &index in &of_peer {
                if neighbour_of(flows, index) == Some(Neighbour::Unconfirmed) {
                    trust((flows, links), now, index);
                }
            }
        }
        Neighbour::Unconfirmed => {
            for &index in &of_peer {
                if neighbour_of(flows, index) == Some(Neighbour::Same) {
                    withhold((flows, links), now, index, neighbour);
                }
            }
        }
        Neighbour::Changed => {
            for &index in &of_peer {
                withhold((flows, links), now, index, neighbour);
            }
            flows.outbox.counters.others_evicted += flows.releases.drop_others(link, peer);
            let all: Vec<_> = of_peer.into_iter().map(|index| (link, index)).collect();
            ask((flows, links), now, &all);
        }
    }
    flows.releases.give_others_a_turn(link.interface);
    sending::send_in_turn((flows, links), now);
}

/// Holder of the far host's address, as far as it is known.
fn neighbour_of(flows: &Flows, index: FlowIndex) -> Option<Neighbour> {
    Some(flows.connections.at(index)?.neighbour)
}

/// The connection's mechanism hears of no link until it is clear who is there.
fn withhold(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    neighbour: Neighbour,
) {
    let Some(connection) = flows.connections.at_mut(index) else {
        return;
    };
    let was_up = connection.known_link_state.state == LinkState::Up;
    connection.neighbour = neighbour;
    if was_up {
        let down = StateSince {
            state: LinkState::Down,
            since: now,
            by: Indicator::Neighbour,
        };
        link_changes::change_link_of((flows, links), now, index, down);
    }
}

/// The far host is the one that it was: the connection goes by its link again.
fn trust((flows, links): (&mut Flows, &mut Links), now: Instant, index: FlowIndex) {
    let Some(connection) = flows.connections.at_mut(index) else {
        return;
    };
    connection.neighbour = Neighbour::Same;
    let (known, state) = (connection.known_link_state, links.state(connection.link));
    if let Some(state) = state.filter(|state| state.state != known.state) {
        let since = now.max(state.since);
        link_changes::change_link_of((flows, links), now, index, StateSince { since, ..state });
    }
}

/// Asks far hosts of whom it is not clear who they are whether they are there, where their links are up.
///
/// Of a peer for whose address nobody has answered one is enough: the address is asked for with the first packet.
pub(crate) fn ask(
    (flows, links): (&mut Flows, &Links),
    now: Instant,
    connections: &[(LinkId, FlowIndex)],
) {
    let (mut asked, mut last) = (0, None);
    for &(link, index) in connections {
        let is_asked = match neighbour_of(flows, index) {
            None | Some(Neighbour::Same) => false,
            Some(Neighbour::Unconfirmed) => last != Some(link),
            Some(Neighbour::Changed) => true,
        };
        if asked < MOST_ASKED && is_asked && links.is_up(link) {
            sending::probe(flows, now, link, index);
            asked += 1;
            last = Some(link);
        }
    }
}

/// A segment of a known connection passes as its connection meets the link.
///
/// One from the far host shows who that is. One towards it meets a link that is down, if it is not clear who would get what
/// was kept.
#[inline]
pub(crate) fn met<'a>(
    flows: &mut Flows,
    index: FlowIndex,
    passing: &PassingPacket<'a>,
    tcp: &TcpHeader,
) -> PassingPacket<'a> {
    let mut met = *passing;
    if let Some(connection) = flows.connections.at_mut(index)
        && connection.neighbour != Neighbour::Same
    {
        match passing.direction {
            // A reset ends the connection: nothing of it is sent any more.
            Direction::FromLink if tcp.has(TcpFlags::RST) => {
                met.state = connection.met(passing.state);
            }
            Direction::FromLink => connection.neighbour = Neighbour::Same,
            Direction::ToLink => met.state = connection.met(passing.state),
        }
    }
    met
}

/// The verdict on a segment towards a link that is down for its connection alone: it goes where it would go without a gateway.
///
/// A far host for which the gateway answers instead is asked whether it is there.
#[inline]
pub(crate) fn verdict_of(
    flows: &mut Flows,
    index: FlowIndex,
    (passing, met): (&PassingPacket<'_>, &PassingPacket<'_>),
    verdict: Verdict,
) -> Verdict {
    if passing.state.state == met.state.state {
        return verdict;
    }
    match verdict {
        Verdict::Pass | Verdict::Taken(TakeReason::LinkDown | TakeReason::BehindKept) => {
            Verdict::Pass
        }
        Verdict::Taken(_) => {
            sending::probe(flows, passing.now, passing.link, index);
            verdict
        }
    }
}
