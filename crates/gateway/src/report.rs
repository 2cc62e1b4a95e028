//! What a gateway tells of each connection, for status pages.

use crate::connections::Connection;
use crate::links::{LinkId, LinkState};
use crate::mechanisms::path::{Account, PathMechanism};
use crate::tracking::{FlowKey, Phase};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;

/// One tracked connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FlowReport {
    /// Its addresses and ports.
    pub key: FlowKey,
    /// Where its packets cross.
    pub link: LinkId,
    /// How far it has come.
    pub phase: Phase,
    /// Memory for what is kept of it.
    pub held: ByteCount,
    /// What the near host has sent and the far host has not acknowledged, in sequence numbers.
    pub outstanding: u32,
    /// Smoothed round-trip time across the link, once it was measured.
    pub rtt: Option<Duration>,
    /// When its last packet crossed.
    pub last_packet: Instant,
    /// What is being done for it.
    pub activity: Activity,
    /// What its mechanism says of itself.
    pub account: Account,
}

/// What is being done for a connection at the moment.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Activity {
    /// Its packets pass.
    Passing,
    /// Its link is down, and nothing of it is kept.
    Away,
    /// Its link is down, and what it loses is kept.
    Holding,
    /// Its link is up, and what was kept has its turn soon.
    Delivering,
    /// Its link is up and what was kept is delivered; it ought to move.
    Awaiting,
}

impl FlowReport {
    pub(crate) fn of(key: FlowKey, last_packet: Instant, connection: &Connection) -> Self {
        let near = &connection.tracked.near;
        let outstanding = near.next.distance_from(near.acked).max(0).unsigned_abs();
        let mechanism = connection.mechanism.as_deref();
        Self {
            key,
            link: connection.link,
            phase: connection.tracked.phase,
            held: connection.held,
            outstanding,
            rtt: connection.tracked.rtt.measured(),
            last_packet,
            activity: Activity::of(connection),
            account: mechanism.map_or_else(Account::default, PathMechanism::account),
        }
    }
}

impl Activity {
    fn of(connection: &Connection) -> Self {
        let waits = |mechanism: &dyn PathMechanism| {
            (mechanism.waiting().is_some(), mechanism.poll_timeout())
        };
        let state = connection.known_link_state.state;
        match (state, connection.mechanism.as_deref().map(waits)) {
            (LinkState::Down, _) if connection.held.0 > 0 => Self::Holding,
            (LinkState::Down, _) => Self::Away,
            (LinkState::Up, Some((true, _))) => Self::Delivering,
            (LinkState::Up, Some((false, Some(_)))) => Self::Awaiting,
            (LinkState::Up, _) => Self::Passing,
        }
    }
}
