//! The connections that keep the most.

use outlast_base::time::Instant;
use outlast_base::units::BitRate;
use outlast_gateway::gateway::{Activity, FlowReport, Gateway};
use outlast_gateway::links::LinkState;
use outlast_gateway::tracking::Phase;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::IpAddr;

/// More than this many are never told at once: each takes a few hundred bytes.
pub(crate) const MOST: usize = 1_000;

/// One tracked connection. The form only grows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Flow {
    /// The end on this side of the link, and its port.
    pub(crate) near: String,
    /// The end beyond it.
    pub(crate) far: String,
    /// The neighbour by way of which it goes.
    pub(crate) peer: Option<IpAddr>,
    /// `up` or `down`.
    pub(crate) link: String,
    /// `opening`, `established` or `closed`.
    pub(crate) phase: String,
    pub(crate) held_bytes: u64,
    /// Sent towards the link and not acknowledged.
    pub(crate) outstanding_bytes: u32,
    /// Across the link and back; nothing if it was not measured yet.
    pub(crate) rtt_s: Option<f64>,
    /// What of the link's rate it gets, where that is shared out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) share_bits_per_s: Option<u64>,
    /// Since its last packet.
    pub(crate) idle_s: f64,
    pub(crate) mechanism: String,
    /// `passing`, `away`, `holding`, `delivering`, or `awaiting` an answer.
    pub(crate) doing: String,
    /// Why, where there is something to say.
    pub(crate) why: String,
    pub(crate) acknowledged_ahead: bool,
}

impl Flow {
    /// The `limit` connections that keep the most, most first; of those that keep as much, those
    /// with the most recent packets. Beside the gateway's own ones there are those `passing`.
    pub(crate) fn largest(
        now: Instant,
        gateway: &Gateway,
        passing: impl Iterator<Item = FlowReport>,
        mechanism: &str,
        limit: usize,
    ) -> Vec<Self> {
        let limit = limit.min(MOST);
        // Only as many are remembered as are told, however many there are.
        let mut largest = BinaryHeap::with_capacity(limit + 1);
        for (place, report) in gateway.flow_reports().chain(passing).enumerate() {
            let rank = (report.held, report.last_packet, place);
            let is_needed = largest.len() < limit
                || largest
                    .peek()
                    .is_some_and(|Reverse(Ranked { rank: least, .. })| *least < rank);
            if is_needed {
                largest.push(Reverse(Ranked { rank, report }));
                if largest.len() > limit {
                    largest.pop();
                }
            }
        }
        // In the order of the reversed ranks: the largest comes first.
        let sorted = largest.into_sorted_vec();
        let told = sorted.iter().map(|Reverse(ranked)| &ranked.report);
        told.map(|report| Self::of(now, gateway, mechanism, report))
            .collect()
    }

    fn of(now: Instant, gateway: &Gateway, mechanism: &str, report: &FlowReport) -> Self {
        let link = gateway.link_state(report.link);
        let account = report.account;
        Self {
            near: report.key.near.to_string(),
            far: report.key.far.to_string(),
            peer: report.link.peer,
            link: match link.map(|link| link.state) {
                Some(LinkState::Down) => "down".into(),
                _ => "up".into(),
            },
            phase: match report.phase {
                Phase::Opening => "opening".into(),
                Phase::Established => "established".into(),
                Phase::Closed => "closed".into(),
            },
            held_bytes: report.held.0,
            outstanding_bytes: report.outstanding,
            rtt_s: report.rtt.map(|rtt| rtt.as_secs_f64()),
            share_bits_per_s: gateway.share_of(&report.key).map(BitRate::bits_per_second),
            idle_s: now.since(report.last_packet).as_secs_f64(),
            mechanism: account.chosen.unwrap_or(mechanism).into(),
            doing: match report.activity {
                Activity::Passing => "passing".into(),
                Activity::Away => "away".into(),
                Activity::Holding => "holding".into(),
                Activity::Delivering => "delivering".into(),
                Activity::Awaiting => "awaiting".into(),
            },
            why: account.why.into(),
            acknowledged_ahead: account.acknowledged_ahead,
        }
    }
}

/// A report by its rank alone.
struct Ranked<R> {
    rank: R,
    report: FlowReport,
}

impl<R: Ord> PartialEq for Ranked<R> {
    fn eq(&self, other: &Self) -> bool {
        self.rank == other.rank
    }
}

impl<R: Ord> Eq for Ranked<R> {}

impl<R: Ord> PartialOrd for Ranked<R> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<R: Ord> Ord for Ranked<R> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank.cmp(&other.rank)
    }
}
