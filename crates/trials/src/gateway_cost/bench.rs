//! The daemon, an empty program and plain forwarding side by side on one gateway, round after
//! round.

use super::cost::{Cost, Sample, Series};
use super::row::{Lane, Row};
use super::turns::Traffic;
use crate::gateway_matrix::daemon::{Daemon, Duty};
use crate::gateway_matrix::trial::TrialError;
use crate::streams::Carried;
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::namespace::NamespaceError;
use outlast_linux::netlink::NetlinkError;
use outlast_linux::socket::SocketError;
use outlast_linux::sysctl::SysctlError;
use outlast_linux::tracker::{PassThrough, TrackerError};
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// Turns that do not count, before those that do.
pub(super) const WARM_UP: Duration = Duration::from_millis(300);
/// About how long it takes until a daemon runs.
const SETTING_UP: Duration = Duration::from_millis(300);

/// What goes through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Load {
    /// TCP, in super-segments (GSO).
    SuperSegments,
    /// TCP, in packets of the link's size.
    Packets,
    /// UDP datagrams of 64 bytes.
    Datagrams,
}

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bench {
    /// What goes through.
    pub load: Load,
    /// Times that plain forwarding, the eBPF path and the empty program are set up and measured
    /// side by side.
    pub rounds: u32,
    /// How long each time, the turns of all three together.
    pub window: Duration,
}

impl Bench {
    /// The NFQUEUE path, of which nothing is claimed, is measured in one round of so many.
    pub const NFQUEUE_ROUNDS: u32 = 4;

    /// The lanes of plain forwarding, of the eBPF path and of the empty program. None of the three
    /// always has the same.
    fn lanes(round: u32) -> [Lane; Lane::COUNT] {
        let mut lanes = Lane::ALL;
        lanes.rotate_left(round as usize % Lane::COUNT);
        lanes
    }

    const fn is_with_nfqueue(round: u32) -> bool {
        round.is_multiple_of(Self::NFQUEUE_ROUNDS)
    }

    /// As much as one of three has that share a window.
    fn nfqueue_window(&self) -> Duration {
        self.window / 3
    }

    /// About how long all of it takes.
    #[must_use]
    pub fn duration(&self) -> Duration {
        let once = |window| SETTING_UP + WARM_UP + window;
        let with_nfqueue = self.rounds.div_ceil(Self::NFQUEUE_ROUNDS);
        once(self.window) * self.rounds + once(self.nfqueue_window()) * with_nfqueue
    }
}

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// No namespaces here.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
    /// The hosts cannot be joined.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// The gateway cannot be made one.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// A socket does not say what it has.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// A socket or file.
    #[error("the traffic does not flow")]
    Io(#[from] io::Error),
    /// The user asked for an end.
    #[error("cancelled")]
    Cancelled,
}

impl From<BenchError> for TrialError {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Namespace(error) => Self::Site(error.into()),
            BenchError::Netlink(error) => Self::Site(error.into()),
            BenchError::Sysctl(error) => Self::Site(error.into()),
            BenchError::Socket(error) => Self::Site(error.into()),
            BenchError::Io(source) => Self::Io {
                what: "let the traffic flow",
                source,
            },
            BenchError::Cancelled => Self::Site(LabError::Cancelled),
        }
    }
}

/// Carries the bench of `job` out, with the daemon of the program `outlast`.
///
/// # Errors
/// When this machine does not allow namespaces, or the traffic does not flow.
pub fn carry_out(
    job: &Job,
    bench: &Bench,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let began = clock::now();
    let cost = measure(bench, outlast, cancel)?;
    Ok(cost.into_ran(job, began))
}

/// Where it is measured.
struct Place<'t> {
    bench: &'t Bench,
    row: Row,
    outlast: &'t Path,
    /// For the daemon's control socket.
    directory: TempDir,
    cancel: &'t Cancel,
}

/// What the gateway has on a lane, until this is dropped.
#[expect(dead_code, reason = "each is there for what its drop ends")]
enum Middle<'t> {
    Daemon(Daemon<'t>),
    Empty(PassThrough),
}

/// Measures, with the daemon of the program `outlast`.
fn measure(bench: &Bench, outlast: &Path, cancel: &Cancel) -> Result<Cost, TrialError> {
    let mut cost = Cost::of_machine().map_err(BenchError::from)?;
    let place = Place {
        bench,
        row: Row::new(bench.load)?,
        outlast,
        directory: TempDir::new().map_err(BenchError::from)?,
        cancel,
    };
    cost.congestion = place.row.congestion()?;
    for round in 0..bench.rounds {
        place.measure_round(round, &mut cost)?;
    }
    Ok(cost)
}

impl<'t> Place<'t> {
    fn measure_round(&self, round: u32, cost: &mut Cost) -> Result<(), TrialError> {
        let [plain, ebpf, empty] = Bench::lanes(round);
        let plain_per_s = self.measure_side_by_side(plain, ebpf, empty, cost)?;
        if Bench::is_with_nfqueue(round) {
            self.measure_nfqueue(ebpf, plain_per_s, cost)?;
        }
        Ok(())
    }

    /// Measures plain forwarding, the eBPF path and the empty program, each on its lane; what
    /// plain forwarding has carried in a second.
    fn measure_side_by_side(
        &self,
        plain: Lane,
        ebpf: Lane,
        empty: Lane,
        cost: &mut Cost,
    ) -> Result<f64, TrialError> {
        let mut lanes = vec![(Series::Plain, plain)];
        let mut middles = Vec::new();
        for (series, lane) in [(Series::Ebpf, ebpf), (Series::Empty, empty)] {
            if let Some(middle) = self.set_up(series, lane, cost)? {
                middles.push(middle);
                lanes.push((series, lane));
            }
        }
        let to_measure: Vec<Lane> = lanes.iter().map(|&(_, lane)| lane).collect();
        let carried = self.carry(&to_measure, self.bench.window)?;
        let plain_per_s = carried[plain.index()].per_s().map_err(BenchError::from)?;
        for (series, lane) in lanes {
            cost.samples.push(Sample {
                series,
                per_s: carried[lane.index()].per_s().map_err(BenchError::from)?,
                plain_per_s: (series != Series::Plain).then_some(plain_per_s),
            });
        }
        Ok(plain_per_s)
    }

    /// Measures the NFQUEUE path, alone on `lane`.
    fn measure_nfqueue(
        &self,
        lane: Lane,
        plain_per_s: f64,
        cost: &mut Cost,
    ) -> Result<(), TrialError> {
        let series = Series::Nfqueue;
        let Some(_middle) = self.set_up(series, lane, cost)? else {
            return Ok(());
        };
        let carried = self.carry(&[lane], self.bench.nfqueue_window())?;
        cost.samples.push(Sample {
            series,
            per_s: carried[lane.index()].per_s().map_err(BenchError::from)?,
            plain_per_s: Some(plain_per_s),
        });
        Ok(())
    }

    /// What new connections carry over `lanes` in turns, once they are warm.
    fn carry(
        &self,
        lanes: &[Lane],
        window: Duration,
    ) -> Result<[Carried; Lane::COUNT], BenchError> {
        let mut traffic = Traffic::new(&self.row, self.bench.load)?;
        traffic.take_turns(lanes, WARM_UP, self.cancel)?;
        traffic.take_turns(lanes, window, self.cancel)
    }

    /// Puts `series` on `lane`. If it does not run here, `cost` says why, and it is not tried
    /// again.
    fn set_up(
        &self,
        series: Series,
        lane: Lane,
        cost: &mut Cost,
    ) -> Result<Option<Middle<'t>>, TrialError> {
        if cost.missing.iter().any(|(name, _)| name == series.name()) {
            return Ok(None);
        }
        let middle = match series {
            Series::Plain => return Ok(None),
            Series::Empty => self.attach_empty(lane)?,
            Series::Ebpf => self.start_daemon(lane, "ebpf")?,
            Series::Nfqueue => self.start_daemon(lane, "nfqueue")?,
        };
        middle.map(Some).or_else(|why| {
            cost.missing.push((series.name().to_owned(), why));
            Ok(None)
        })
    }

    /// Attaches the empty program; why it cannot be attached here, if so.
    fn attach_empty(&self, lane: Lane) -> Result<Result<Middle<'t>, String>, BenchError> {
        let attached = self.row.gateway().run(|| {
            let mut program = PassThrough::load()?;
            program.attach(&lane.link())?;
            Ok::<_, TrackerError>(program)
        })?;
        Ok(attached
            .map(Middle::Empty)
            .map_err(|error| error.lack().what))
    }

    /// Starts the daemon; why it does not run here, if so.
    fn start_daemon(
        &self,
        lane: Lane,
        data_path: &str,
    ) -> Result<Result<Middle<'t>, String>, TrialError> {
        let control = self.directory.path().join("control");
        let arguments = ["--data-path", data_path];
        let link = lane.link();
        match Daemon::start_on(
            &link,
            Duty::Hold,
            self.row.gateway(),
            self.outlast,
            control,
            &arguments,
        ) {
            Ok(daemon) => Ok(Ok(Middle::Daemon(daemon))),
            Err(TrialError::Daemon(why)) => Ok(Err(why)),
            Err(error) => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn each_series_is_on_each_lane_as_often() {
        let mut count = BTreeMap::new();
        for round in 0..12 {
            for role in Bench::lanes(round).into_iter().enumerate() {
                *count.entry(role).or_insert(0) += 1;
            }
        }
        assert_eq!(count.len(), 9);
        assert!(count.values().all(|&rounds| rounds == 4));
    }

    #[test]
    fn the_nfqueue_path_is_on_every_lane_in_turn() {
        let rounds = (0..36).filter(|&round| Bench::is_with_nfqueue(round));
        let mut count = BTreeMap::new();
        for [_, lane, _] in rounds.map(Bench::lanes) {
            *count.entry(lane).or_insert(0) += 1;
        }
        assert_eq!(count.into_values().collect::<Vec<_>>(), [3, 3, 3]);
    }
}
