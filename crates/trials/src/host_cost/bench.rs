//! One connection with agents at both ends and without, in turn.

use crate::gateway_cost::bench::{BenchError, Load};
use crate::gateway_cost::row::{Lane, Row};
use crate::gateway_cost::turns::Traffic;
use crate::gateway_matrix::trial::TrialError;
use crate::role;
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
    /// Times that both are measured.
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
    /// With agents at both hosts.
    pub with: Carried,
    /// Without.
    pub without: Carried,
    /// Seconds of processor time of both agents while the connection sent.
    pub agents_s: f64,
}

/// What one connection carried.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Carried {
    /// Payload bits in a second.
    pub per_s: f64,
    /// Microseconds of this process's processor time, kernel included, for 1,448 bytes of payload.
    pub cpu_us_per_packet: f64,
}

struct Place<'t> {
    bench: &'t AgentBench,
    row: Row,
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
        row: Row::new(bench.load)?,
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
        ..job.live_result(place.row.congestion()?.as_str())
    };
    Ok(Ran::new(result).observing(&costs))
}

impl Place<'_> {
    fn measure_round(&self, round: u32) -> Result<Sample, TrialError> {
        let first = match round % 2 {
            0 => Some(self.measure()?),
            _ => None,
        };
        let agents = [
            self.start_agent("fixed", self.row.fixed())?,
            self.start_agent("mobile", self.row.mobile())?,
        ];
        let used = || -> Result<f64, BenchError> {
            let [one, other] = agents.each_ref().map(|(_, agent)| used_s(*agent));
            Ok(one? + other?)
        };
        let before = used()?;
        let with = self.measure()?;
        let agents_s = used()? - before;
        drop(agents);
        let without = match first {
            Some(first) => first,
            None => self.measure()?,
        };
        Ok(Sample {
            with,
            without,
            agents_s,
        })
    }

    /// A new connection for the length of a window.
    fn measure(&self) -> Result<Carried, TrialError> {
        let lane = Lane::ALL[0];
        let mut streams = Traffic::new(&self.row, self.bench.load)?;
        streams.take_turns(&[lane], WARM_UP, self.cancel)?;
        let own = Program::own();
        let before = used_s(own)?;
        let carried = streams.take_turns(&[lane], self.bench.window, self.cancel)?;
        let used_s = used_s(own)? - before;
        let carried = carried[lane.index()];
        Ok(Carried {
            per_s: carried.per_s().map_err(BenchError::from)?,
            cpu_us_per_packet: used_s * 1e6 / (carried.amount / 8.0 / PAYLOAD),
        })
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

/// Seconds of processor time.
fn used_s(program: Program) -> Result<f64, BenchError> {
    Ok(program.usage()?.processor.as_secs_f64())
}
