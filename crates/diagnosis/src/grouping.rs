//! From the silences of connections to outages of paths.
//!
//! Each silence bounds when its path went and when it was back. Silences that share a host and whose
//! bounds agree are one outage.

use crate::FlowId;
use crate::diagnosis::cause_of;
use crate::outage::{Affected, Cause, Outage, Scope, Wasted};
use crate::silence::Silence;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};

/// Bounds may miss each other by this and a round trip, in nanoseconds.
const SLACK: u64 = 50_000_000;

/// The outages, in the order of their starts, and the silences of those who stood still without one.
pub(crate) fn outages(
    mut silences: Vec<Silence>,
    ended: Instant,
) -> (Vec<Outage>, Vec<(u32, FlowId)>) {
    silences.retain(|silence| !silence.is_refuted);
    silences.sort_by_key(|silence| (silence.start, silence.flow, silence.point));
    let mut groups: Vec<Group> = Vec::new();
    for silence in silences {
        // Those that begin long before are no longer to be joined, but they are few.
        let fitting = groups.iter_mut().rev().take(MOST_OPEN);
        match fitting.into_iter().find(|group| group.takes(&silence)) {
            Some(group) => group.add(silence),
            None => groups.push(Group::of(silence)),
        }
    }
    let (shown, others): (Vec<Group>, Vec<Group>) = groups
        .into_iter()
        .partition(|group| group.members.iter().any(|member| member.is_evidence));
    let mut outages: Vec<Outage> = shown.into_iter().map(|group| group.outage(ended)).collect();
    outages.sort_by_key(|outage| outage.start);
    let others = others.iter().flat_map(|group| &group.members);
    let alone = others.filter(|silence| silence.stood_still);
    let alone = alone.map(|silence| (silence.point, silence.flow)).collect();
    (outages, alone)
}

/// Groups that a silence may join.
const MOST_OPEN: usize = 64;

struct Group {
    members: Vec<Silence>,
    start_earliest: Instant,
    start_latest: Instant,
    end_earliest: Instant,
    end: Option<Instant>,
}

impl Group {
    fn of(silence: Silence) -> Self {
        Self {
            start_earliest: silence.start_earliest,
            start_latest: silence.start_latest,
            end_earliest: silence.end_earliest,
            end: silence.end,
            members: alloc::vec![silence],
        }
    }

    /// Whether `silence` tells of the same outage.
    fn takes(&self, silence: &Silence) -> bool {
        let slack = SLACK + silence.round_trip.unwrap_or(0);
        let early = silence.start_earliest <= self.start_latest.after_nanos(slack);
        let late = self.start_earliest <= silence.start_latest.after_nanos(slack);
        let end = |end: Option<Instant>| end.unwrap_or(Instant::FAR_FUTURE).after_nanos(slack);
        let shares_host = self.members.iter().take(MOST_OPEN).any(|member| {
            [member.waiting, member.silent]
                .iter()
                .any(|host| *host == silence.waiting || *host == silence.silent)
        });
        early
            && late
            && silence.end_earliest <= end(self.end)
            && self.end_earliest <= end(silence.end)
            && shares_host
    }

    fn add(&mut self, silence: Silence) {
        self.start_earliest = self.start_earliest.max(silence.start_earliest);
        self.start_latest = self.start_latest.min(silence.start_latest);
        self.end_earliest = self.end_earliest.max(silence.end_earliest);
        self.end = match (self.end, silence.end) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        self.members.push(silence);
    }

    fn outage(mut self, ended: Instant) -> Outage {
        // Who sees its own transmissions bounds the start best; of those the densest.
        let width = |silence: &Silence| silence.start_latest.nanos_since(silence.start_earliest);
        let best = self.members.iter().min_by_key(|silence| width(silence));
        let start = best.map_or(self.start_earliest, |silence| silence.start);
        let end = self.end.map(|end| end.max(start));
        let end_earliest = match end {
            Some(end) => self.end_earliest.min(end),
            None => self.end_earliest.min(ended),
        };
        let scope = self.members.iter().map(|silence| silence.scope);
        let scope = scope
            .max_by_key(breadth)
            .unwrap_or(Scope::Host(core::net::Ipv4Addr::UNSPECIFIED.into()));
        // A connection that was captured at several points is one.
        self.members.sort_by_key(|silence| {
            (
                silence.flow.unordered(),
                !silence.sees_sender,
                core::cmp::Reverse(silence.unanswered),
            )
        });
        self.members
            .dedup_by(|a, b| a.flow.unordered() == b.flow.unordered());
        let mut flows: Vec<Affected> = self
            .members
            .iter()
            .map(|silence| affected(silence, end, end_earliest))
            .collect();
        flows.sort_by_key(|flow| core::cmp::Reverse((flow.wasted.least, flow.wasted.most)));
        Outage {
            start,
            start_earliest: self.start_earliest.min(start),
            start_latest: self.start_latest.max(start),
            end,
            end_earliest,
            scope,
            flows,
        }
    }
}

fn breadth(scope: &Scope) -> u8 {
    match scope {
        Scope::Hosts(..) => 0,
        Scope::Subnet(_) => 1,
        Scope::Host(_) => 2,
        Scope::Interface(_) => 3,
    }
}

fn affected(silence: &Silence, end: Option<Instant>, end_earliest: Instant) -> Affected {
    // Of who never went on nobody knows whether it still waited.
    let wasted = match (end, silence.noticed) {
        (Some(end), Some(noticed)) => Wasted {
            least: noticed.since(end),
            most: noticed.since(end_earliest.min(end)),
        },
        _ => Wasted::default(),
    };
    let most = outlast_base::time::saturating_nanos(wasted.most);
    Affected {
        flow: silence.flow,
        point: silence.point,
        noticed: silence.noticed,
        wasted,
        is_repeated: silence.is_repeated,
        cause: match (end, silence.noticed) {
            (Some(_), Some(_)) => cause_of(silence, most),
            // It did not go on.
            _ if silence.cause == Cause::Path => Cause::BackOff,
            _ => silence.cause,
        },
        round_trip: silence.round_trip.map(Duration::from_nanos),
        unanswered: silence.unanswered,
    }
}
