//! Section IV-B: a retransmission timer that follows the round trip.
//!
//! The paper has the testbed's round trips at well under 1 ms, and timeouts of 1 ms or less for a timer that follows them,
//! several in a hand-off. No profile has such a timer, and none is needed: the timeout follows from the round trips. Those of
//! figure 5's transfers are put through the formula of RFC 6298 (section 2), without its least timeout and without a
//! granularity, up to the crossing.

use super::claim;
use super::single;
use super::testbed::{AT_ONCE, Motion};
use outlast_experiments::diagram::FlowTrace;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::present::{mean, median};
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Judged, Published, Tolerance};
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Direction;

/// Timers that follow the round trip.
#[derive(Debug)]
pub struct FineTimer;

/// Reason for which round trips, and the timeout, are longer.
const QUEUED: &str = "the round trips under 1 ms are those of an idle path. In a transfer a full segment takes 7 ms at the link's 1.6 Mbit/s, and \
    a window of 16 kB 80 ms, which wait in the mobile's own queue.";

/// The estimate of a timer: smoothed round trip and deviation, in seconds.
#[derive(Clone, Copy, Debug)]
struct Estimate {
    round_trip_s: f64,
    deviation_s: f64,
}

impl Estimate {
    /// The estimate after the round trips in `trace` up to its first outage.
    ///
    /// Each acknowledgement gives a round trip: that of the newest segment that it covers.
    fn of(trace: &FlowTrace) -> Option<Self> {
        let (down_s, _) = *trace.outages.first()?;
        let mut estimate: Option<Self> = None;
        let mut waiting = trace.data.iter().peekable();
        for acknowledgement in &trace.acknowledgements {
            let Some(arrival_s) = acknowledgement.arrival_s.filter(|&at| at < down_s) else {
                continue;
            };
            let mut covered = None;
            while let Some(segment) = waiting.next_if(|segment| {
                segment.number + u64::from(segment.payload_len) <= acknowledgement.number
            }) {
                covered = Some(segment.time_s);
            }
            if let Some(sent_s) = covered {
                estimate = Some(Self::sampled(estimate, arrival_s - sent_s));
            }
        }
        estimate
    }

    //= RFC 6298, section 2.2 and 2.3
    fn sampled(before: Option<Self>, sample_s: f64) -> Self {
        match before {
            None => Self {
                round_trip_s: sample_s,
                deviation_s: sample_s / 2.0,
            },
            Some(Self {
                round_trip_s,
                deviation_s,
            }) => Self {
                deviation_s: 0.75 * deviation_s + 0.25 * (round_trip_s - sample_s).abs(),
                round_trip_s: 0.875 * round_trip_s + 0.125 * sample_s,
            },
        }
    }

    fn timeout_s(&self) -> f64 {
        self.round_trip_s + 4.0 * self.deviation_s
    }

    /// Doubled timeouts that fire within `seconds`.
    fn fire_within(&self, seconds: f64) -> f64 {
        ((seconds / self.timeout_s() + 1.0).log2().floor()).max(0.0)
    }
}

fn estimates(runs: &Runs) -> Vec<Estimate> {
    let records = single::of(runs, AT_ONCE, Direction::Upload).iter();
    let traces = records.filter_map(|record| record.trace.as_ref());
    traces.filter_map(Estimate::of).collect()
}

/// Interruption by a hand-off with 0 s rendezvous delay, in seconds.
fn interruption_s() -> f64 {
    let motion = Motion::Apart {
        rendezvous: AT_ONCE,
    };
    motion.interruption().map_or(0.0, |down| down.as_secs_f64())
}

impl Figure for FineTimer {
    fn name(&self) -> &'static str {
        "section-4-b"
    }

    fn title(&self) -> &'static str {
        "A timer that follows the round trip"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        single::jobs(extent, AT_ONCE, Direction::Upload)
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let estimates = estimates(runs);
        let of = |value: fn(&Estimate) -> f64| {
            Cell::from(
                median(estimates.iter().map(|estimate| Some(value(estimate)))).map(|m| m.value),
            )
        };
        let mut table = Table::new([
            Column::quantity("round_trip_s", "Round trip", Unit::Seconds),
            Column::quantity("deviation_s", "Deviation", Unit::Seconds),
            Column::quantity("timeout_s", "Timeout", Unit::Seconds),
        ]);
        table.push([
            of(|estimate| estimate.round_trip_s),
            of(|estimate| estimate.deviation_s),
            of(Estimate::timeout_s),
        ]);
        table.note("Medians at the crossing, of the transfers of figure 5 whose packets are kept.");
        Part::new("Section IV-B of the paper: a timer that follows the round trip")
            .table(table.titled("What a timer without a least timeout would wait"))
            .claims(claims(&estimates))
    }
}

fn claims(estimates: &[Estimate]) -> Vec<Judged> {
    let queued = |claim: Claim| Claim {
        departure: Some(QUEUED.into()),
        ..claim
    };
    vec![
        queued(claim(
            "section IV.B",
            "A timer that follows the round trip leads to timeouts of 1 ms or less (median at the crossing).",
            Unit::Seconds,
            Published::AtMost(0.001),
            Tolerance::Exact,
        ))
        .judge(median(
            estimates.iter().map(|estimate| Some(estimate.timeout_s())),
        )),
        queued(claim(
            "section IV.B",
            "Such timeouts fire several times while a hand-off completes (mean of the timeouts in a hand-off with 0 s \
             rendezvous delay).",
            Unit::Number,
            Published::AtLeast(2.0),
            Tolerance::Exact,
        ))
        .judge(mean(
            estimates
                .iter()
                .map(|estimate| estimate.fire_within(interruption_s())),
        )),
    ]
}
