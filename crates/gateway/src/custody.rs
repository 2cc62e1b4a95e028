//! Custody: what a gateway answers for because nobody else has it, and how another gateway takes it over.
//!
//! A mechanism that acknowledges ahead leaves its gateway with the only copy of what it has acknowledged.
//! `zero-window-ack` exports such a connection as a [`FrozenFlow`] and imports one: for a gateway that is
//! started anew, and for the one to which the far host has gone. Of any other a [`Pledge`] is what it takes
//! to end the connection at both hosts if the gateway is gone. A connection that leaves the table before
//! its far host has acknowledged ends with [`LastWords`].
//!
//! A supervisor host of M-TCP has acknowledged nothing ahead. What it exports is a [`SupervisedFlow`], by
//! which another one knows what the near host was told, and opens the window that is closed.
//!
//! What comes from another gateway is believed as far as it is plausible; that this other gateway
//! is one that may tell such things is the driver's to make sure. An imported connection is the one
//! exception to the rule that nothing is sent for a connection that was not seen in both
//! directions: the other gateway has seen it.

mod pledge;

pub use pledge::{Pledge, reset_of_unknown};

use crate::connections::Connection;
use crate::links::Direction;
use crate::mechanisms::path::{Standing, ZeroWindowAck};
use crate::tracking::{
    FlowKey, FrozenFlow, FrozenNumbers, Half, Implausible, Phase, SupervisedFlow, TcpFlow,
    ToldWindow,
};
use outlast_wire::{Packet, SeqNumber, TcpHeader};

/// What became of a connection that another gateway has handed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Imported {
    /// Its segment is delivered from here.
    Frozen,
    /// The far host has acknowledged the segment already, or the connection has ended.
    Over,
}

/// What became of a supervised connection that another supervisor host has handed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Supervision {
    /// It is supervised here from now on.
    TakenOver,
    /// More is known of it here already.
    KnownBetter,
}

/// Why a connection cannot be taken over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ImportError {
    /// The gateway's mechanism is another one.
    WrongMechanism,
    /// No such interface.
    UnknownLink,
    /// The export contradicts itself.
    Implausible(Implausible),
    /// The export contradicts what was seen here.
    Contradiction,
    /// The flow table is full, or the memory for what is kept.
    NoRoom,
}

/// Numbers of one connection, seen at two places, are at most this far apart: the largest window
/// there is (RFC 7323, section 2.3).
const LARGEST_DISTANCE: u32 = 1 << 30;

/// The directions of the two resets of [`LastWords`].
pub(crate) const DIRECTIONS: [Direction; 2] = [Direction::FromLink, Direction::ToLink];

/// Resets and events of a connection that ends with data acknowledged of which nobody else has a copy.
pub(crate) struct LastWords {
    /// A reset for the near and for the far host; `None` if the far host has it all.
    pub(crate) resets: Option<[Packet; 2]>,
    /// The connection, if it was [frozen](Standing::Frozen): it is no longer.
    pub(crate) frozen: Option<FlowKey>,
}

impl LastWords {
    /// Takes the last words of a connection; `None` if there are none left.
    pub(crate) fn of(connection: &mut Connection) -> Option<Self> {
        let frozen = export(connection);
        connection.standing = match connection.standing {
            Standing::Frozen => Standing::Running,
            standing => standing,
        };
        match frozen {
            Some(frozen) => {
                let numbers = frozen.numbers().ok();
                Some(Self {
                    resets: numbers.map(|numbers| [numbers.reset_near(), numbers.reset_far()]),
                    frozen: FlowKey::of_tcp(frozen.segment.header(), Direction::ToLink),
                })
            }
            None => {
                let resets = connection.mechanism.as_ref()?.resets(&connection.tracked)?;
                Some(Self {
                    resets: Some(resets),
                    frozen: None,
                })
            }
        }
    }
}

/// What is known here of a connection that is handed over.
pub(crate) enum Meeting {
    /// The connection needs nobody any more.
    Over,
    /// The connection is frozen here, too.
    Here,
    /// Both views of the connection are one now.
    Merged,
}

/// A frozen connection, for another gateway to take over; `None` if it is not frozen.
pub(crate) fn export(connection: &mut Connection) -> Option<FrozenFlow> {
    let mechanism: &ZeroWindowAck = connection.mechanism.as_mut()?.zero_window_ack()?;
    mechanism.export(&connection.tracked)
}

/// A connection is tracked here already that another gateway hands over: both views of it become one, if they
/// can be of the same connection.
pub(crate) fn merge(
    connection: &mut Connection,
    frozen: &FrozenFlow,
    numbers: &FrozenNumbers,
) -> Result<Meeting, ImportError> {
    if connection.tracked.phase == Phase::Closed {
        return Ok(Meeting::Over);
    }
    let seen = connection.tracked.near;
    if seen.is_seen() {
        let distance = seen.acked.distance_from(numbers.acked).unsigned_abs();
        if distance > LARGEST_DISTANCE {
            return Err(ImportError::Contradiction);
        }
        if seen.window_scale.is_some() && seen.acked.at_or_after(numbers.until) {
            return Ok(Meeting::Over);
        }
    }
    if connection.standing == Standing::Frozen {
        return Ok(Meeting::Here);
    }
    let (near, far) = frozen.merged_into(&connection.tracked);
    connection.tracked.near = near;
    connection.tracked.far = far;
    connection.tracked.phase = Phase::Established;
    Ok(Meeting::Merged)
}

/// A connection under a supervisor host, for another one to take over; `None` unless it is established.
pub(crate) fn export_supervised(
    flow: FlowKey,
    connection: &mut Connection,
) -> Option<SupervisedFlow> {
    let Connection {
        tracked, mechanism, ..
    } = connection;
    let supervised = match mechanism.as_mut().and_then(|mechanism| mechanism.m_tcp()) {
        Some(mechanism) => mechanism.export(flow, tracked),
        None => None,
    };
    // Nothing is withheld of one without a mechanism: it only saves the other one from guesses.
    let supervised = supervised.unwrap_or(SupervisedFlow {
        flow,
        near: tracked.near,
        far: tracked.far,
        clock: None,
        echo: 0,
        told: tracked.near.acked,
        window: ToldWindow::Open,
        is_refuted: false,
    });
    let is_whole = tracked.phase == Phase::Established && supervised.check().is_ok();
    is_whole.then_some(supervised)
}

/// A supervised connection is tracked here already that another gateway hands over: both views of it
/// become one, if they can be of the same connection.
pub(crate) fn merge_supervised(
    connection: &mut Connection,
    supervised: &SupervisedFlow,
) -> Result<Supervision, ImportError> {
    let here = &connection.tracked;
    let is_far_off = |here: SeqNumber, there: SeqNumber| {
        here.distance_from(there).unsigned_abs() > LARGEST_DISTANCE
    };
    if here.phase == Phase::Closed
        || (here.near.is_seen() && is_far_off(here.near.next, supervised.near.next))
        || (here.far.is_seen() && is_far_off(here.far.next, supervised.far.next))
    {
        return Err(ImportError::Contradiction);
    }
    // Where no SYN was seen, what the far host has is a guess.
    if here.near.window_scale.is_some() && here.near.acked.after(supervised.near.acked) {
        return Ok(Supervision::KnownBetter);
    }
    connection.tracked = supervised.merged_into(here);
    Ok(Supervision::TakenOver)
}

/// Whether `tcp`, by which the far host acknowledges what was never seen here, may show that a frozen
/// connection has gone on elsewhere, or while nobody ran here. Only the far host, and who reads what it
/// sends, knows the exact number that is asked for.
pub(crate) fn may_have_gone_on(connection: &Connection, tcp: &TcpHeader) -> bool {
    let TcpFlow { near, far, .. } = &connection.tracked;
    let beyond = tcp.ack.distance_from(near.next).unsigned_abs();
    let is_frozen = connection.standing == Standing::Frozen;
    is_frozen && tcp.seq == far.next && beyond <= LARGEST_DISTANCE
}

/// Whether both hosts of `other` were seen, and it cannot be the connection that was `known` so far.
pub(crate) fn is_another(known: &TcpFlow, other: &TcpFlow) -> bool {
    let is_far_off = |known: &Half, other: &Half| {
        let distance = other.next.distance_from(known.next).unsigned_abs();
        known.is_seen() && distance > LARGEST_DISTANCE
    };
    let begins = known.phase == Phase::Closed && other.phase == Phase::Established;
    other.phase != Phase::Opening
        && (begins || is_far_off(&known.near, &other.near) || is_far_off(&known.far, &other.far))
}
