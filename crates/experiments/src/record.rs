//! One run, after it was carried out.

use crate::carry_out::Ran;
use crate::diagram::{self, FlowTrace};
use crate::job::{Job, Watch};
use outlast_base::units::BitRate;
use outlast_scenario::result::{OutageResult, RunResult};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// One run, as it is stored.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Record {
    /// The cell of the experiment, as in [`Job::cell`].
    pub cell: String,
    /// The number of the run, as in [`Job::index`].
    pub index: u32,
    /// [`Job::fingerprint`].
    pub fingerprint: String,
    /// The version that carried it out.
    pub version: String,
    /// What came of it.
    pub result: RunResult,
    /// What happened at each of the result's outages; empty unless the packets were watched.
    pub reconnections: Vec<Reconnection>,
    /// Every packet, if they were to be kept.
    pub trace: Option<FlowTrace>,
    /// The variables of the payload's sender, if they were to be kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variables>,
    /// How often the run was carried out; more than once only if the machine was too busy.
    pub attempts: u32,
    /// What makes the numbers doubtful.
    pub warnings: Vec<String>,
    /// By how much the emulated link was late at worst.
    pub worst_delay_s: f64,
    /// What only a live trial shows, in the trial's own form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Value>,
}

/// The variables of a sender after an acknowledgement or a timeout.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Variables {
    /// When, in seconds from the workload's first byte.
    pub time_s: f64,
    /// Whether a timer of the endpoint fired, rather than an acknowledgement having come.
    pub timeout: bool,
    /// Congestion window in segments.
    pub cwnd: u32,
    /// Slow-start threshold in segments; `None` before the first loss.
    pub ssthresh: Option<u32>,
    /// Retransmission timeout in seconds, back-off included.
    pub rto_s: f64,
    /// Segments thought to be in the network.
    pub in_flight: u32,
    /// Bytes that were acknowledged since the connection began.
    #[serde(default)]
    pub acknowledged: u64,
}

/// What followed an outage.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Reconnection {
    /// From link-up until the sender itself put a segment with data on the link that arrived;
    /// `None` if it did not before the next outage. What Outlast re-sends does not count, so that
    /// this says whether the flow runs again.
    pub restart_s: Option<f64>,
    /// The share of the time from link-up to the first new bytes in which the link was sending
    /// towards the receiver, the propagation delay left out; `None` if no new bytes came.
    pub busy: Option<f64>,
    /// What the sender itself sent again.
    #[serde(default)]
    pub again: Again,
}

/// What a sender sent again because of an outage; what Outlast re-sends does not count.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Again {
    /// From the first transmission of a segment to its retransmission: the first retransmission
    /// since link-down.
    pub first_wait_s: Option<f64>,
    /// From that to the next retransmission of the same segment.
    pub second_wait_s: Option<f64>,
    /// From link-up to the first retransmission that arrived.
    pub through_s: Option<f64>,
}

/// The hand-offs of a simulation with Mobile IP, as it is [`Record::observed`].
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct HandOffs {
    /// For each completed hand-off how many seconds it took, from when the mobile host left until the home
    /// agent sent its reply.
    pub took_s: Vec<f64>,
}

/// The runs that there are, by cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Runs(BTreeMap<String, Vec<Record>>);

impl Record {
    /// What came of `job`.
    #[must_use]
    pub fn new(job: &Job, version: &str, attempts: u32, ran: Ran) -> Self {
        let watched = match (&ran.trace, ran.started) {
            (Some(trace), Some(started)) => FlowTrace::of(trace, started),
            _ => None,
        };
        let rate = job
            .scenario
            .link
            .downlink
            .rate
            .map(BitRate::bits_per_second);
        let delay = job.scenario.link.downlink.delay.as_secs_f64();
        let reconnections = watched.as_ref().map_or_else(Vec::new, |trace| {
            diagram::reconnections(trace, &ran.result.outages, rate, delay)
        });
        Self {
            cell: job.cell.clone(),
            index: job.index,
            fingerprint: job.fingerprint(),
            version: version.to_owned(),
            reconnections,
            trace: watched.filter(|_| job.watch == Watch::Packets),
            variables: ran.variables,
            attempts,
            warnings: ran.warnings,
            worst_delay_s: ran.worst_delay.as_secs_f64(),
            observed: ran.observed,
            result: ran.result,
        }
    }

    /// Whether the workload came to its end with everything as it was sent.
    #[must_use]
    pub fn succeeded(&self) -> bool {
        self.result.completed && self.result.intact != Some(false)
    }

    /// What only a live trial shows, as `T`; `None` if there is nothing, or nothing of that form.
    #[must_use]
    pub fn observed<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.observed.as_ref()?).ok()
    }

    /// How many times the ideal the run took; `None` unless it succeeded.
    #[must_use]
    pub fn times_ideal(&self) -> Option<f64> {
        let ideal = self.result.ideal_s.filter(|_| self.succeeded())?;
        Some(self.result.elapsed_s / ideal)
    }

    /// The outages after which the link was back before the end of the run, with what followed.
    pub fn outages(&self) -> impl Iterator<Item = (&OutageResult, Reconnection)> {
        let what = self
            .reconnections
            .iter()
            .copied()
            .chain(std::iter::repeat(Reconnection::default()));
        let result = &self.result;
        let is_over = |outage: &OutageResult| {
            outage
                .length_s
                .is_some_and(|length| outage.start_s + length < result.elapsed_s)
        };
        result
            .outages
            .iter()
            .zip(what)
            .filter(move |(outage, _)| is_over(outage))
    }
}

impl Runs {
    /// The runs of `records`.
    #[must_use]
    pub fn new(records: impl IntoIterator<Item = Record>) -> Self {
        let mut runs = Self::default();
        for record in records {
            runs.0.entry(record.cell.clone()).or_default().push(record);
        }
        for cell in runs.0.values_mut() {
            cell.sort_by_key(|record| record.index);
        }
        runs
    }

    /// The runs of a cell, in order.
    #[must_use]
    pub fn of(&self, cell: &str) -> &[Record] {
        self.0.get(cell).map_or(&[], Vec::as_slice)
    }

    /// Every run.
    pub fn all(&self) -> impl Iterator<Item = &Record> {
        self.0.values().flatten()
    }
}
