//! Plain forwarding, the supervisor host and a proxy side by side on one gateway, round after round.

use crate::gateway_cost::bench::{BenchError, Load};
use crate::gateway_cost::row::{Lane, Row};
use crate::gateway_cost::turns::Traffic;
use crate::gateway_matrix::daemon::{Daemon, Duty};
use crate::gateway_matrix::trial::TrialError;
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::Cancel;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use outlast_scenario::result::RunResult;
use rustix::fd::AsFd;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{self, BufRead, BufReader};
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use tempfile::TempDir;

/// Turns that do not count, before those that do.
const WARM_UP: Duration = Duration::from_millis(300);
/// About how long it takes until daemon and proxy run.
const SETTING_UP: Duration = Duration::from_millis(600);
/// Payload of a packet, in bytes.
const PAYLOAD: f64 = 1_448.0;
const PROXY: &str = "socat";
/// The kernel cuts a process's name off behind so many bytes (`TASK_COMM_LEN`).
const LONGEST_NAME: usize = 15;
/// Clock ticks in a second, as /proc counts processor time on Linux (`USER_HZ`).
const TICKS_PER_S: f64 = 100.0;

/// What is in the middle.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// Nothing but the kernel.
    Plain,
    /// The supervisor host.
    Supervisor,
    /// A proxy that splits the connection.
    Proxy,
}

impl Way {
    /// In the order of the table.
    pub const ALL: [Self; 3] = [Self::Plain, Self::Supervisor, Self::Proxy];

    /// What a reader calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain forwarding",
            Self::Supervisor => "supervisor host",
            Self::Proxy => "proxy (socat)",
        }
    }
}

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SplitBench {
    /// What goes through.
    pub load: Load,
    /// Times that all three are set up and measured side by side.
    pub rounds: u32,
    /// How long each time, the turns of all three together.
    pub window: Duration,
}

impl SplitBench {
    /// About how long all of it takes.
    #[must_use]
    pub fn duration(&self) -> Duration {
        (SETTING_UP + WARM_UP + self.window) * self.rounds
    }
}

/// What came of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Costs {
    /// In the order in which they were measured.
    pub samples: Vec<Sample>,
    /// The kernel's release.
    pub kernel: String,
    /// Processors that there are.
    pub processors: usize,
    /// Why something was not measured, by its name.
    pub missing: Vec<(String, String)>,
}

/// One way in one round.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// What was in the middle.
    pub way: Way,
    /// Payload bits in a second that arrived.
    pub per_s: f64,
    /// What plain forwarding carried in the same round.
    pub plain_per_s: f64,
    /// Microseconds of processor time of the process in the middle, for 1,448 bytes of payload.
    pub cpu_us_per_packet: f64,
}

/// socat on the gateway. It ends when this is dropped.
struct Proxy {
    at: SocketAddr,
    _process: ContainedProcess,
    /// Closed, socat could not log any more.
    _said: BufReader<io::PipeReader>,
}

impl Proxy {
    /// From a port of the gateway to `to`; why it does not run here, if so.
    fn start(row: &Row, to: SocketAddr) -> Result<Result<Self, String>, TrialError> {
        let (said, to_us) = io::pipe().map_err(BenchError::from)?;
        let at = SocketAddr::new(Row::router().into(), to.port());
        let mut command = Command::new(PROXY);
        // The buffer is as large as an application of today would have it.
        command.args(["-d", "-d", "-b", "65536"]);
        command.arg(format!(
            "TCP-LISTEN:{},bind={},reuseaddr",
            at.port(),
            at.ip()
        ));
        command.arg(format!("TCP:{to}"));
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(to_us);
        let process = match ContainedProcess::spawn(row.gateway(), command) {
            Ok(process) => process,
            Err(error) => return Ok(Err(format!("{error}: install socat"))),
        };
        let mut said = BufReader::new(said);
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            if said.read_line(&mut line).map_err(BenchError::from)? == 0 {
                return Ok(Err("socat has ended".to_owned()));
            }
        }
        Ok(Ok(Self {
            at,
            _process: process,
            _said: said,
        }))
    }
}

/// Where it is measured.
struct Place<'t> {
    bench: &'t SplitBench,
    row: Row,
    outlast: &'t Path,
    /// For the daemon's control socket.
    directory: TempDir,
    /// The names of the processes of daemon and proxy.
    names: [String; 2],
    cancel: &'t Cancel,
}

/// Carries the bench of `job` out, with the daemon of the program `outlast`.
///
/// # Errors
/// When this machine does not allow namespaces, or the traffic does not flow.
pub fn carry_out(
    job: &Job,
    bench: &SplitBench,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let began = clock::now();
    let program = outlast.file_name().unwrap_or_default().to_string_lossy();
    let place = Place {
        bench,
        row: Row::new(bench.load)?,
        outlast,
        directory: TempDir::new().map_err(BenchError::from)?,
        names: [
            program.chars().take(LONGEST_NAME).collect(),
            PROXY.to_owned(),
        ],
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
        if let Err((way, why)) = place.measure_round(round as usize, &mut costs)? {
            costs.missing.push((way.name().to_owned(), why));
            break;
        }
    }
    let result = RunResult {
        completed: true,
        elapsed_s: clock::now().since(began).as_secs_f64(),
        ..job.live_result(place.row.congestion()?.as_str())
    };
    Ok(Ran::new(result).observing(&costs))
}

impl Place<'_> {
    /// Measures all three side by side; what does not run here and why, if so.
    fn measure_round(
        &self,
        round: usize,
        costs: &mut Costs,
    ) -> Result<Result<(), (Way, String)>, TrialError> {
        // By way.
        let mut lanes = Lane::ALL;
        lanes.rotate_left(round % Lane::COUNT);
        let _daemon = match self.start_daemon(lanes[1]) {
            Ok(daemon) => daemon,
            Err(TrialError::Daemon(why)) => return Ok(Err((Way::Supervisor, why))),
            Err(error) => return Err(error),
        };
        let listener = self.row.listen(lanes[2])?;
        let to = listener.local_addr().map_err(BenchError::from)?;
        let proxy = match Proxy::start(&self.row, to)? {
            Ok(proxy) => proxy,
            Err(why) => return Ok(Err((Way::Proxy, why))),
        };
        let mut connections = [
            self.row.connect(lanes[0])?,
            self.row.connect(lanes[1])?,
            self.row.connect_to(lanes[2], proxy.at, &listener)?,
        ];
        // By lane.
        connections.rotate_right(round % Lane::COUNT);
        let mut streams = Traffic::over(connections, self.bench.load)?;
        streams.take_turns(&lanes, WARM_UP, self.cancel)?;
        let before = self.processor_times()?;
        let carried = streams.take_turns(&lanes, self.bench.window, self.cancel)?;
        let after = self.processor_times()?;
        let used_s = [0.0, after[0] - before[0], after[1] - before[1]];
        let plain_per_s = carried[lanes[0].index()]
            .per_s()
            .map_err(BenchError::from)?;
        for ((way, lane), used_s) in Way::ALL.into_iter().zip(lanes).zip(used_s) {
            let one = carried[lane.index()];
            costs.samples.push(Sample {
                way,
                per_s: one.per_s().map_err(BenchError::from)?,
                plain_per_s,
                cpu_us_per_packet: used_s * 1e6 / (one.amount / 8.0 / PAYLOAD),
            });
        }
        Ok(Ok(()))
    }

    fn start_daemon(&self, lane: Lane) -> Result<Daemon<'_>, TrialError> {
        let control = self.directory.path().join("control");
        Daemon::start_on(
            &lane.link(),
            Duty::MTcpAdaptive,
            self.row.gateway(),
            self.outlast,
            control,
            &["--data-path", "nfqueue"],
        )
    }

    /// Of daemon and proxy, in seconds.
    fn processor_times(&self) -> Result<[f64; 2], BenchError> {
        let [daemon, proxy] = self
            .names
            .each_ref()
            .map(|name| processor_time(self.row.gateway(), name));
        Ok([daemon?, proxy?])
    }
}

/// Seconds of processor time of all processes called `name` on a host, user and system.
fn processor_time(host: &Namespace, name: &str) -> io::Result<f64> {
    let network = rustix::fs::fstat(host.as_fd())?.st_ino;
    let mut ticks = 0;
    for entry in fs::read_dir("/proc")? {
        let process = entry?.path();
        let is_there = fs::metadata(process.join("ns/net")).is_ok_and(|net| net.ino() == network);
        if !is_there {
            continue;
        }
        // It may have ended since.
        if let Ok(stat) = fs::read_to_string(process.join("stat")) {
            ticks += ticks_of(&stat, name).unwrap_or_default();
        }
    }
    Ok(ticks as f64 / TICKS_PER_S)
}

/// `utime` and `stime` of a line of /proc/PID/stat (proc_pid_stat(5)), if that is its program.
fn ticks_of(stat: &str, name: &str) -> Option<u64> {
    let (head, rest) = stat.rsplit_once(')')?;
    let (_, program) = head.split_once('(')?;
    if program != name {
        return None;
    }
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_read_whatever_a_program_is_called() {
        let stat = "12 (so) cat) S 1 12 12 0 -1 4194560 1 0 0 0 7 5 0 0 20 0 1 0 99 1 1";
        assert_eq!(ticks_of(stat, "so) cat"), Some(12));
        assert_eq!(ticks_of(stat, "socat"), None);
    }
}
