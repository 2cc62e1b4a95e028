//! Two connections side by side, in turns: one between hosts with agents, one between hosts without.

use crate::gateway_cost::bench::{BenchError, Load};
use crate::gateway_cost::row::{Lane, Row};
use crate::gateway_cost::turns::{PACKETS_IN_TURN, SUPER_SEGMENTS_IN_TURN};
use crate::gateway_matrix::trial::TrialError;
use crate::role;
use crate::streams::{Carried, Streams};
use crate::usage::Program;
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use outlast_scenario::result::RunResult;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::thread;
use tempfile::TempDir;

/// About what starting and ending the agents takes, and the hosts.
const SETTING_UP: Duration = Duration::from_millis(600);
const WARM_UP: Duration = Duration::from_millis(150);
/// Payload of a packet with timestamps.
const PAYLOAD: f64 = 1_448.0;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct AgentBench {
    /// What goes through.
    pub load: Load,
    /// Times that it is measured with agents, and without.
    pub rounds: u32,
    /// How long each of them is, each time.
    pub window: Duration,
}

impl AgentBench {
    /// About how long all of it takes.
    #[must_use]
    pub fn duration(&self) -> Duration {
        (SETTING_UP + (WARM_UP + self.window) * 2) * self.rounds
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Costs {
    /// One for each round.
    pub samples: Vec<Sample>,
    /// The kernel's release.
    pub kernel: String,
    /// Processors that there are.
    pub processors: usize,
}

/// One round.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// With agents at both hosts of one row.
    pub agents: Pair,
    /// Without any, for the control.
    pub control: Pair,
    /// Seconds of processor time of both agents while the connections sent.
    pub agents_s: f64,
}

/// What two connections carried whose turns alternated.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Pair {
    /// Between the hosts with agents; in the control, between those that had them.
    pub with: Cost,
    /// Between the others.
    pub without: Cost,
}

/// What one connection carried, and what that took.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Cost {
    /// Payload bits in a second.
    pub per_s: f64,
    /// Microseconds of this process's processor time, kernel included, for 1,448 bytes of payload.
    pub cpu_us_per_packet: f64,
}

/// What one connection's turns came to.
#[derive(Clone, Copy, Debug, Default)]
struct Turns {
    carried: Carried,
    processor: Duration,
}

struct Place<'t> {
    bench: &'t AgentBench,
    rows: [Row; 2],
    outlast: &'t Path,
    directory: TempDir,
    cancel: &'t Cancel,
}

/// Carries the bench of `job` out, with the agent of the program `outlast`.
///
/// # Errors
/// When this machine does not allow namespaces, an agent does not start, or the traffic does not flow.
pub fn carry_out(
    job: &Job,
    bench: &AgentBench,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let began = clock::now();
    let place = Place {
        bench,
        rows: [Row::new(bench.load)?, Row::new(bench.load)?],
        outlast,
        directory: TempDir::new().map_err(BenchError::from)?,
        cancel,
    };
    let mut costs = Costs {
        kernel: outlast_linux::kernel_release(),
        processors: thread::available_parallelism()
            .map_err(BenchError::from)?
            .get(),
        ..Costs::default()
    };
    for round in 0..bench.rounds {
        costs.samples.push(place.measure_round(round)?);
    }
    let result = RunResult {
        completed: true,
        elapsed_s: clock::now().since(began).as_secs_f64(),
        ..job.live_result(place.rows[0].congestion()?.as_str())
    };
    Ok(Ran::new(result).observing(&costs))
}

/// Bytes of a turn.
pub(super) const fn bytes_in_turn(load: Load) -> usize {
    match load {
        Load::SuperSegments => SUPER_SEGMENTS_IN_TURN,
        Load::Packets | Load::Datagrams => PACKETS_IN_TURN,
    }
}

impl Place<'_> {
    /// The agents are in turn in the one row and in the other one, so that a difference between the rows is none between
    /// with and without.
    fn measure_round(&self, round: u32) -> Result<Sample, TrialError> {
        let (with, without) = match (&self.rows, round % 2) {
            ([one, other], 0) => (one, other),
            ([one, other], _) => (other, one),
        };
        let first = match round % 4 {
            0 | 1 => Some(self.measure(with, without)?),
            _ => None,
        };
        let agents = [
            self.start_agent("fixed", with.fixed())?,
            self.start_agent("mobile", with.mobile())?,
        ];
        let used_s = || -> Result<f64, BenchError> {
            let [one, other] = agents.each_ref().map(|(_, agent)| agent.usage());
            Ok((one?.processor + other?.processor).as_secs_f64())
        };
        let before = used_s()?;
        let pair = self.measure(with, without)?;
        let agents_s = used_s()? - before;
        drop(agents);
        let control = match first {
            Some(first) => first,
            None => self.measure(with, without)?,
        };
        Ok(Sample {
            agents: pair,
            control,
            agents_s,
        })
    }

    /// New connections, which have their turns for the length of a window.
    fn measure(&self, with: &Row, without: &Row) -> Result<Pair, TrialError> {
        let lane = Lane::ALL[0];
        let connections = [with.connect(lane)?, without.connect(lane)?];
        let mut streams =
            Streams::over(connections, bytes_in_turn(self.bench.load)).map_err(BenchError::from)?;
        self.take_turns(&mut streams, WARM_UP)?;
        let [with, without] = self.take_turns(&mut streams, self.bench.window)?;
        Ok(Pair {
            with: with.cost()?,
            without: without.cost()?,
        })
    }

    /// Each connection follows the other one as often as itself.
    fn take_turns(&self, streams: &mut Streams, time: Duration) -> Result<[Turns; 2], TrialError> {
        let mut turns = [Turns::default(); 2];
        let end = clock::now() + time;
        while clock::now() < end {
            if self.cancel.is_cancelled() {
                return Err(BenchError::Cancelled.into());
            }
            for index in [0, 1, 1, 0] {
                let before = clock::process_cpu_time();
                turns[index]
                    .carried
                    .add(streams.turn(index).map_err(BenchError::from)?);
                turns[index].processor += clock::process_cpu_time() - before;
            }
        }
        Ok(turns)
    }

    fn start_agent(
        &self,
        name: &str,
        host: &Namespace,
    ) -> Result<(ContainedProcess, Program), TrialError> {
        let socket = self.directory.path().join(name).with_extension("sock");
        let agent = role::agent(self.outlast, host, &socket, "", self.cancel)?;
        let program = Program::behind(&socket).map_err(BenchError::from)?;
        Ok((agent, program))
    }
}

impl Turns {
    fn cost(self) -> Result<Cost, BenchError> {
        Ok(Cost {
            per_s: self.carried.per_s()?,
            cpu_us_per_packet: self.processor.as_secs_f64() * 1e6
                / (self.carried.amount / 8.0 / PAYLOAD),
        })
    }
}
