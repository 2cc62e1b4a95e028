//! What a gateway tells of each connection, for status pages.

use super::{Gateway, Record};
use crate::links::{LinkId, LinkState};
use crate::mechanisms::path::{Account, PathMechanism};
use crate::tracking::{FlowIndex, FlowKey, Phase};
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

impl Gateway {
    /// Every tracked connection, in an order that only depends on what the gateway was shown. A
    /// look at each takes a while when there are many.
    pub fn flow_reports(&self) -> impl Iterator<Item = FlowReport> {
        self.flows
            .iter()
            .map(|(key, last_packet, record)| record.report(key, last_packet))
    }

    /// Whether a connection is tracked behind `link`, or behind any peer of an interface.
    #[must_use]
    pub fn has_flows(&self, link: LinkId) -> bool {
        let first = self.crossings.range((link, FlowIndex::FIRST)..).next();
        first.is_some_and(|(other, _)| match link.peer {
            None => other.interface == link.interface,
            Some(_) => *other == link,
        })
    }
}

impl Record {
    fn report(&self, key: FlowKey, last_packet: Instant) -> FlowReport {
        let near = &self.tracked.near;
        let outstanding = near.next.distance_from(near.acked).max(0).unsigned_abs();
        let mechanism = self.mechanism.as_deref();
        FlowReport {
            key,
            link: self.link,
            phase: self.tracked.phase,
            held: self.held,
            outstanding,
            rtt: self.tracked.rtt.measured(),
            last_packet,
            activity: self.activity(),
            account: mechanism.map_or_else(Account::default, PathMechanism::account),
        }
    }

    fn activity(&self) -> Activity {
        let waits = |mechanism: &dyn PathMechanism| {
            (mechanism.waiting().is_some(), mechanism.poll_timeout())
        };
        match (self.state, self.mechanism.as_deref().map(waits)) {
            (LinkState::Down, _) if self.held.0 > 0 => Activity::Holding,
            (LinkState::Down, _) => Activity::Away,
            (LinkState::Up, Some((true, _))) => Activity::Delivering,
            (LinkState::Up, Some((false, Some(_)))) => Activity::Awaiting,
            (LinkState::Up, _) => Activity::Passing,
        }
    }
}
