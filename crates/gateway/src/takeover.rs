//! Connections that go from one gateway to another.
//!
//! `custody.rs` says what they are: frozen ones of `zero-window-ack`, and supervised ones of M-TCP. A frozen one may
//! also have gone on where this gateway does not see it.

use crate::custody::{self, ImportError, Imported, Meeting, Supervision};
use crate::flows::Flows;
use crate::links::{LinkId, Links, StateSince};
use crate::mechanism_calls::{wake_mechanism, with_mechanism};
use crate::mechanisms::path::{PathMechanismKind, Standing};
use crate::sending;
use crate::tracking::{FlowIndex, FlowKey, FrozenFlow, SupervisedFlow, TcpFlow};
use outlast_base::time::Instant;
use outlast_wire::TcpHeader;

/// A frozen connection, for another gateway to take over; `None` if it is not frozen.
pub(crate) fn export_frozen(flows: &mut Flows, flow: FlowKey) -> Option<FrozenFlow> {
    let index = flows.connections.find(&flow)?;
    // Whoever corrected the connection meanwhile may know that the segment is not needed.
    custody::export(flows.connections.at_mut(index)?).filter(|frozen| frozen.numbers().is_ok())
}

/// Takes a connection over that another gateway has frozen, and sends its segment.
pub(crate) fn import_frozen(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    link: LinkId,
    frozen: &FrozenFlow,
    is_heard: bool,
) -> Result<Imported, ImportError> {
    if flows.service.kind() != PathMechanismKind::ZeroWindowAck {
        return Err(ImportError::WrongMechanism);
    }
    let state = links.state(link).ok_or(ImportError::UnknownLink)?;
    let numbers = frozen.numbers().map_err(ImportError::Implausible)?;
    let index = match flows.connections.find(&numbers.flow) {
        Some(index) => {
            let known = flows.connections.at_mut(index).ok_or(ImportError::NoRoom)?;
            match custody::merge(known, frozen, &numbers)? {
                Meeting::Over => return Ok(Imported::Over),
                Meeting::Here => return Ok(Imported::Frozen),
                Meeting::Merged => index,
            }
        }
        None => admit_from_elsewhere(
            (flows, links),
            now,
            (link, state),
            numbers.flow,
            frozen.tracked(),
        )
        .ok_or(ImportError::NoRoom)?,
    };
    place_import((flows, links), now, index, (link, state));
    let adopted = with_mechanism((flows, links), now, index, state, |mechanism, cx| {
        mechanism
            .zero_window_ack()
            .is_some_and(|mechanism| mechanism.adopt(cx, frozen, is_heard))
    });
    if adopted != Some(true) {
        return Err(ImportError::NoRoom);
    }
    sending::send_in_turn((flows, links), now);
    Ok(Imported::Frozen)
}

/// Another gateway delivers a frozen connection's segment from now on, or does so no longer.
pub(crate) fn lend_frozen(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    flow: FlowKey,
    is_lent: bool,
) {
    if let Some(index) = flows.connections.find(&flow)
        && let Some(connection) = flows.connections.at(index)
        && let Some(state) = links
            .state(connection.link)
            .map(|state| connection.met(state))
    {
        with_mechanism((flows, links), now, index, state, |mechanism, cx| {
            if let Some(mechanism) = mechanism.zero_window_ack() {
                mechanism.lend(cx, is_lent);
            }
        });
        sending::send_in_turn((flows, links), now);
    }
}

/// The far host has acknowledged the segment where this gateway does not see it: the
/// connection is the hosts' own again.
pub(crate) fn release_frozen(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    flow: FlowKey,
) {
    if let Some(index) = flows.connections.find(&flow)
        && let Some(connection) = flows.connections.at(index)
        && connection.standing == Standing::Frozen
        && let Some(state) = links
            .state(connection.link)
            .map(|state| connection.met(state))
    {
        with_mechanism((flows, links), now, index, state, |mechanism, cx| {
            mechanism.release(cx.budget);
        });
    }
}

/// The far host acknowledges what was never seen here. If the connection is frozen here, it has
/// gone on elsewhere, or while nobody ran here: it is the hosts' own again, and is met anew. The far host
/// is believed only when it was given the segment and had time to acknowledge that.
pub(crate) fn note_gone_on(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    tcp: &TcpHeader,
) {
    let Some(connection) = flows.connections.at(index) else {
        return;
    };
    if !custody::may_have_gone_on(connection, tcp) {
        return;
    }
    let Some(state) = links
        .state(connection.link)
        .map(|state| connection.met(state))
    else {
        return;
    };
    let is_believed = with_mechanism((flows, links), now, index, state, |mechanism, cx| {
        let mechanism = mechanism.zero_window_ack();
        mechanism.is_some_and(|mechanism| mechanism.doubt(cx))
    });
    if is_believed != Some(true) {
        return;
    }
    if let Some(flow) = flows.connections.key(index) {
        release_frozen((flows, links), now, flow);
    }
    flows.remove(links, index);
}

/// A supervised connection, for another supervisor host to take over; what is kept of it is dropped.
pub(crate) fn hand_off_supervised(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    flow: FlowKey,
) -> Option<SupervisedFlow> {
    if !flows.service.supervises() {
        return None;
    }
    let index = flows.connections.find(&flow)?;
    let connection = flows.connections.at_mut(index)?;
    let supervised = custody::export_supervised(flow, connection)?;
    let state = connection.met(links.state(connection.link)?);
    with_mechanism((flows, links), now, index, state, |mechanism, cx| {
        if let Some(mechanism) = mechanism.m_tcp() {
            mechanism.hand_off(cx);
        }
    });
    Some(supervised)
}

/// Goes on with a connection that another supervisor host has had.
pub(crate) fn import_supervised(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    link: LinkId,
    supervised: &SupervisedFlow,
) -> Result<Supervision, ImportError> {
    if !flows.service.supervises() {
        return Err(ImportError::WrongMechanism);
    }
    let state = links.state(link).ok_or(ImportError::UnknownLink)?;
    supervised.check().map_err(ImportError::Implausible)?;
    let index = match flows.connections.find(&supervised.flow) {
        Some(index) => {
            let known = flows.connections.at_mut(index).ok_or(ImportError::NoRoom)?;
            match custody::merge_supervised(known, supervised)? {
                Supervision::KnownBetter => return Ok(Supervision::KnownBetter),
                Supervision::TakenOver => index,
            }
        }
        None => admit_from_elsewhere(
            (flows, links),
            now,
            (link, state),
            supervised.flow,
            supervised.tracked(),
        )
        .ok_or(ImportError::NoRoom)?,
    };
    place_import((flows, links), now, index, (link, state));
    with_mechanism((flows, links), now, index, state, |mechanism, cx| {
        if let Some(mechanism) = mechanism.m_tcp() {
            mechanism.adopt(cx, supervised);
        }
    });
    sending::send_in_turn((flows, links), now);
    Ok(Supervision::TakenOver)
}

/// Enters a connection that another gateway hands over. Nobody gives way for it.
fn admit_from_elsewhere(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    (link, state): (LinkId, StateSince),
    flow: FlowKey,
    tracked: TcpFlow,
) -> Option<FlowIndex> {
    if flows.connections.len() >= flows.limits.flows {
        flows.outbox.counters.flows_refused += 1;
        return None;
    }
    flows.enter(links, now, link, state, flow, tracked)
}

/// A connection that another gateway has handed over crosses on `link` from now on.
fn place_import(
    (flows, links): (&mut Flows, &mut Links),
    now: Instant,
    index: FlowIndex,
    (link, state): (LinkId, StateSince),
) {
    flows.move_flow(links, index, link);
    if let Some(connection) = flows.connections.at_mut(index) {
        connection.known_link_state = state;
        connection.is_proven = true;
    }
    wake_mechanism((flows, links), now, index, state);
    flows.note_life(links, now, index);
}
