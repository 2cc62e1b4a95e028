//! What is measured of the daemon's cost, as it is in the record.

use outlast_base::time::Instant;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_linux::clock;
use outlast_scenario::result::RunResult;
use serde::{Deserialize, Serialize};
use std::io;
use std::thread;

/// What is in the middle.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Series {
    /// Nothing but the kernel.
    Plain,
    /// The daemon on the eBPF path.
    Ebpf,
    /// A program without effect where the daemon's are: what the place itself costs.
    Empty,
    /// The daemon on the NFQUEUE path.
    Nfqueue,
}

impl Series {
    /// What a reader calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Ebpf => "eBPF path",
            Self::Empty => "empty program",
            Self::Nfqueue => "NFQUEUE path",
        }
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Cost {
    /// In the order in which they were measured.
    pub samples: Vec<Sample>,
    /// The kernel's release.
    pub kernel: String,
    /// The connections' congestion control.
    pub congestion: String,
    /// Processors that there are.
    pub processors: usize,
    /// Why something was not measured, by its name.
    pub missing: Vec<(String, String)>,
    /// What the programs need for a packet.
    #[serde(default)]
    pub passes: Vec<Pass>,
    /// What the tables need.
    #[serde(default)]
    pub memory: Option<Memory>,
}

/// What a packet costs in the programs alone.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Pass {
    /// Which one.
    pub packet: String,
    /// Nanoseconds in the tracker's program, trying included: the median.
    pub tracker_ns: f64,
    /// Nanoseconds in a program without effect, trying included: the median.
    pub empty_ns: f64,
}

/// What the tables of the kernel need, in bytes, and what is in them.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Memory {
    /// Connections that there is room for.
    pub places: u32,
    /// The table of connections with a completed handshake.
    pub connections: u64,
    /// The table of connections without a completed handshake.
    pub openings: u64,
    /// The recorder.
    pub recorder: u64,
    /// Handshakes that were completed.
    pub opened: u32,
    /// Connections in the table then.
    pub tracked: u32,
    /// SYNs of other connections that came afterwards.
    pub syns: u32,
    /// Of the connections, those in the table then.
    pub tracked_after: u32,
}

impl Cost {
    /// Nothing yet, on this machine.
    pub(super) fn of_machine() -> io::Result<Self> {
        Ok(Self {
            kernel: outlast_linux::kernel_release(),
            processors: thread::available_parallelism()?.get(),
            ..Self::default()
        })
    }

    /// As what came of `job`, which began then.
    pub(super) fn into_ran(self, job: &Job, began: Instant) -> Ran {
        let result = RunResult {
            completed: true,
            elapsed_s: clock::now().since(began).as_secs_f64(),
            ..job.live_result(self.congestion.as_str())
        };
        Ran::new(result).observing(&self)
    }
}

/// One measurement.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// What was in the middle.
    pub series: Series,
    /// Payload bits in a second that arrived, or datagrams that were forwarded.
    pub per_s: f64,
    /// What plain forwarding, in turns with it or just before it, came to in the same round; `None`
    /// of plain forwarding.
    pub plain_per_s: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway_cost::setting;
    use outlast_base::time::Duration;

    #[test]
    fn what_was_not_measured_is_null_in_the_record() {
        let length = Duration::from_secs(20);
        let job = Job::new("cell", &setting("cell", length, length), 0);
        let cost = Cost {
            kernel: outlast_linux::kernel_release(),
            congestion: "cubic".to_owned(),
            ..Cost::default()
        };
        let mut result = cost.into_ran(&job, clock::now()).result;
        result.elapsed_s = 20.5;
        result.settings.tcp.kernel = Some("6.18.5".to_owned());
        let json = serde_json::to_string_pretty(&result).expect("results become JSON");
        insta::assert_snapshot!(json);
    }
}
