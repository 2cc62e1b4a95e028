//! Connections that go from one gateway to another.
//!
//! `custody.rs` says what they are: frozen ones of `zero-window-ack`, and supervised ones of M-TCP.

use crate::custody::{self, ImportError, Imported, Meeting, Supervision};
use crate::flows::Flows;
use crate::links::{LinkId, Links};
use crate::mechanisms::path::PathMechanismKind;
use crate::tracking::{FlowKey, FrozenFlow, SupervisedFlow};
use outlast_base::time::Instant;

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
        None => flows
            .admit_from_elsewhere(links, now, (link, state), numbers.flow, frozen.tracked())
            .ok_or(ImportError::NoRoom)?,
    };
    flows.place_import(links, now, index, (link, state));
    let adopted = flows.with_mechanism(links, now, index, state, |mechanism, cx| {
        mechanism
            .zero_window_ack()
            .is_some_and(|mechanism| mechanism.adopt(cx, frozen, is_heard))
    });
    if adopted != Some(true) {
        return Err(ImportError::NoRoom);
    }
    flows.send_in_turn(links, now);
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
        && let Some(state) = links.state(connection.link)
    {
        flows.with_mechanism(links, now, index, state, |mechanism, cx| {
            if let Some(mechanism) = mechanism.zero_window_ack() {
                mechanism.lend(cx, is_lent);
            }
        });
        flows.send_in_turn(links, now);
    }
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
    let state = links.state(connection.link)?;
    flows.with_mechanism(links, now, index, state, |mechanism, cx| {
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
        None => flows
            .admit_from_elsewhere(
                links,
                now,
                (link, state),
                supervised.flow,
                supervised.tracked(),
            )
            .ok_or(ImportError::NoRoom)?,
    };
    flows.place_import(links, now, index, (link, state));
    flows.with_mechanism(links, now, index, state, |mechanism, cx| {
        if let Some(mechanism) = mechanism.m_tcp() {
            mechanism.adopt(cx, supervised);
        }
    });
    flows.send_in_turn(links, now);
    Ok(Supervision::TakenOver)
}
