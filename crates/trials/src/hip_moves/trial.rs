//! One run: three programs at once, through all moves.

use super::place::Roaming;
use super::roles::Roles;
use super::{Help, Who};
use crate::gateway_matrix::payload::{is_same, payload};
use crate::gateway_matrix::programs::{Program, Stage};
use crate::gateway_matrix::trial::{TrialError, wait_for_server};
use crate::gateway_matrix::wait;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::diag::TcpDiag;
use outlast_linux::process::ContainedProcess;
use outlast_scenario::Congestion::Cubic;
use outlast_scenario::result::{OutageResult, RunResult};
use outlast_testbed::site::{Neighbours, SiteConfig};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// Rate of the link each way.
pub const RATE_MBIT_PER_S: u32 = 4;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(10);
/// Frames that may wait.
pub const QUEUE: u32 = 75;
/// What curl loads between two moves.
pub const BYTES_BETWEEN: u64 = 300_000;

/// What runs at once, all of it from the fixed host to the mobile one.
pub const PROGRAMS: [Program; 3] = [Program::Ssh, Program::Curl, Program::IperfDown];

/// The port of the first program's server.
const PORT: u16 = 8_022;
/// How long programs have to get going, and to end.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a connection that does not go on is waited for after a move with HIP: longer than TCP's longest
/// timeout.
const AFTER_MOVE: Duration = Duration::from_secs(150);
/// How long the trial waits for data after a move without HIP, where none is expected.
const WITHOUT_HIP: Duration = Duration::from_secs(10);
/// Between two looks at what has come.
const GLANCE: Duration = Duration::from_millis(2);
const LOOK: Duration = Duration::from_millis(50);

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MovesTrial {
    /// What helps.
    pub help: Help,
    /// Changes of address.
    pub moves: usize,
}

/// One move, as the programs' connections took it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Moved {
    /// Who moved.
    pub who: String,
    /// For how long whoever moved had no address.
    pub outage_s: f64,
    /// From the new address until the kernel of the mobile host had something new of each of [`PROGRAMS`]; `None`
    /// if nothing came.
    pub resume_s: [Option<f64>; PROGRAMS.len()],
    /// By then, the payload of all connections that had come since the new address, as a share of what the link
    /// carries in that time.
    #[serde(default)]
    pub used: [Option<f64>; PROGRAMS.len()],
    /// By how much the link's emulator was late at worst meanwhile.
    pub late_s: f64,
}

/// What only this trial shows.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// All moves, in their order.
    pub moves: Vec<Moved>,
    /// What each program said was wrong in the end; `None` if all was well, with its hash where it has one.
    pub errors: [Option<String>; PROGRAMS.len()],
}

impl MovesTrial {
    /// For how long whoever makes the move `number` has no address: mostly some seconds, now and then up to 180.
    #[must_use]
    pub fn outage(&self, number: usize) -> Duration {
        let seconds = match number {
            _ if number % 25 == 24 => 180,
            _ if number % 10 == 9 => 45,
            _ => 1 + number as u64 * 7 % 12,
        };
        let is_short = self.moves < 20;
        Duration::from_secs(if is_short { 1 + seconds % 5 } else { seconds })
    }

    /// About how long it takes, all in all.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let outages = (0..self.moves).map(|number| self.outage(number));
        let between = Duration::from_secs(3) * self.moves as u32;
        outages.fold(Duration::from_secs(15), |sum, outage| sum + outage) + between
    }

    fn config(&self) -> SiteConfig<'static> {
        SiteConfig {
            rate: BitRate::from_bits_per_second(u64::from(RATE_MBIT_PER_S) * 1_000_000)
                .expect("a constant above zero"),
            delay: DELAY,
            queue: QUEUE as usize,
            congestion: Cubic.name(),
            sack: true,
            neighbours: Neighbours::AsUsual,
        }
    }

    /// Bytes of the file that curl loads: twice what it has to have read at the last move, because it goes on during
    /// moves.
    #[must_use]
    pub const fn payload(&self) -> u64 {
        BYTES_BETWEEN * (self.moves as u64 + 2) * 2
    }

    fn patience(&self) -> Duration {
        match self.help {
            Help::None => WITHOUT_HIP,
            Help::NoTrigger | Help::Hip => AFTER_MOVE,
        }
    }
}

/// A program that runs, with its server.
struct Running {
    program: Program,
    stage: Stage,
    client: ContainedProcess,
    _server: ContainedProcess,
}

impl Running {
    fn start(
        (number, program): (usize, Program),
        place: &Roaming,
        address: std::net::IpAddr,
        (directory, payload): (&Path, &[u8]),
        cancel: &Cancel,
    ) -> Result<Self, TrialError> {
        let prepare = TrialError::io("prepare the programs");
        let directory = directory.join(number.to_string());
        fs::create_dir(&directory).map_err(&prepare)?;
        let at = (address, PORT + number as u16);
        let stage = Stage::at(at, program, &directory, payload).map_err(&prepare)?;
        let stage = stage.map_err(TrialError::Missing)?;
        let server = ContainedProcess::spawn(&place.site.fixed, stage.server())?;
        wait_for_server(&place.site, &stage, cancel)?;
        // So much that it does not end before the last move.
        let bytes = 2 * payload.len() as u64;
        let client = ContainedProcess::spawn(&place.site.mobile, stage.client(bytes))?;
        Ok(Self {
            program,
            stage,
            client,
            _server: server,
        })
    }

    /// What was wrong in the end.
    fn end(self, given_up: Instant, cancel: &Cancel) -> Result<Option<String>, TrialError> {
        self.stage
            .end_session()
            .map_err(TrialError::io("have the session end"))?;
        while !wait(cancel, Some(&self.client), LOOK)? {
            if clock::now() > given_up {
                return Ok(Some("it does not end".to_owned()));
            }
        }
        let said = self.stage.said();
        let status = self.client.wait();
        let status = status.map_err(TrialError::io("wait for a program"))?;
        if !status.success() {
            return Ok(Some(format!("{status}: {said}")));
        }
        let read = TrialError::io("read what has come");
        if let Some(refusal) = self.stage.refusal().map_err(&read)? {
            return Ok(Some(refusal));
        }
        if self.program.is_transfer() && self.program.leaves_files() {
            let same = is_same(&self.stage.sent(), &self.stage.got()).map_err(read)?;
            return Ok((!same).then(|| "other bytes came than were sent".to_owned()));
        }
        Ok(None)
    }
}

/// How many bytes have come to the mobile host over the busiest connection with each program's server.
struct Meter(TcpDiag);

impl Meter {
    fn read(&mut self) -> Result<[u64; PROGRAMS.len()], TrialError> {
        let all = self.0.connections().map_err(TrialError::io("look on"))?;
        let mut bytes = [0; PROGRAMS.len()];
        for connection in all {
            let number = connection.remote.port().checked_sub(PORT);
            if let Some(most) = number.and_then(|number| bytes.get_mut(usize::from(number))) {
                *most = connection.bytes_received.max(*most);
            }
        }
        Ok(bytes)
    }
}

/// Carries the trial of `job` out with the program `outlast`.
///
/// # Errors
/// When the place cannot be made, or a role or a program does not start.
pub fn carry_out(
    job: &Job,
    trial: &MovesTrial,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
    let mut place = Roaming::new(&trial.config())?;
    let roles = match trial.help {
        Help::None => None,
        help => Some(Roles::start(
            &place,
            help,
            outlast,
            directory.path(),
            cancel,
        )?),
    };
    let [fixed, _] = place.fixed_addresses();
    let address = roles.as_ref().map_or(fixed, |roles| roles.tag);
    let length = trial.payload();
    let sent = payload(job.scenario.run.seed, length);
    let began = clock::now();
    let start =
        |numbered| Running::start(numbered, &place, address, (directory.path(), &sent), cancel);
    let running = PROGRAMS.into_iter().enumerate().map(start);
    let running = running.collect::<Result<Vec<_>, _>>()?;
    let diag = place.site.mobile.run(TcpDiag::open);
    let diag = diag
        .map_err(LabError::from)?
        .map_err(TrialError::io("look on"))?;
    let mut meter = Meter(diag);
    let mut observed = Observed::default();
    for number in 0..trial.moves {
        let until = BYTES_BETWEEN * (number as u64 + 1);
        if !await_bytes(&mut meter, until, cancel)? {
            break;
        }
        let moved = make(trial, number, &mut place, &mut meter, cancel)?;
        let is_lost = moved.resume_s.iter().all(Option::is_none);
        observed.moves.push(moved);
        if is_lost {
            break;
        }
    }
    let patience = match trial.help {
        Help::None => WITHOUT_HIP,
        _ => PATIENCE + trial.expected(),
    };
    let given_up = clock::now() + patience;
    for (error, running) in observed.errors.iter_mut().zip(running) {
        *error = running.end(given_up, cancel)?;
    }
    drop(roles);
    Ok(conclude(job, trial, began, observed))
}

/// Waits until curl has read so much, and every program something; whether that came about.
fn await_bytes(meter: &mut Meter, wanted: u64, cancel: &Cancel) -> Result<bool, TrialError> {
    let given_up = clock::now() + AFTER_MOVE;
    while clock::now() < given_up {
        let [ssh, curl, iperf] = meter.read()?;
        if ssh > 0 && curl >= wanted && iperf > 0 {
            return Ok(true);
        }
        wait(cancel, None, LOOK)?;
    }
    Ok(false)
}

/// One move, until every connection has something new.
fn make(
    trial: &MovesTrial,
    number: usize,
    place: &mut Roaming,
    meter: &mut Meter,
    cancel: &Cancel,
) -> Result<Moved, TrialError> {
    let who = Who::ALL[number % Who::ALL.len()];
    let cut = place.cut(who)?;
    crate::gateway_matrix::trial::pause_until(cancel, cut + trial.outage(number))?;
    let air_error = |error| TrialError::Site(LabError::Emulator(error));
    place.site.air.reset_delay().map_err(air_error)?;
    let before = meter.read()?;
    let works = place.settle(who)?;
    let mut resume_s = [None; PROGRAMS.len()];
    let mut used = [None; PROGRAMS.len()];
    while resume_s.contains(&None) && clock::now() < works + trial.patience() {
        let (now, bytes) = (clock::now(), meter.read()?);
        let elapsed_s = now.since(works).as_secs_f64();
        let sum = |bytes: &[u64]| bytes.iter().sum::<u64>();
        let all = sum(&bytes).saturating_sub(sum(&before));
        let each = resume_s.iter_mut().zip(&mut used).zip(before).zip(bytes);
        for (((resume, used), before), bytes) in each {
            if resume.is_none() && bytes > before {
                *resume = Some(elapsed_s);
                *used = Some(all as f64 * 8.0 / (f64::from(RATE_MBIT_PER_S) * 1e6 * elapsed_s));
            }
        }
        wait(cancel, None, GLANCE)?;
    }
    let late = place.site.air.since().map_err(air_error)?.worst_delay;
    Ok(Moved {
        who: who.title().to_owned(),
        outage_s: works.since(cut).as_secs_f64(),
        resume_s,
        used,
        late_s: late.as_secs_f64(),
    })
}

fn conclude(job: &Job, trial: &MovesTrial, began: Instant, observed: Observed) -> Ran {
    let is_whole = observed.moves.len() == trial.moves;
    let errors: Vec<&str> = observed
        .errors
        .iter()
        .flatten()
        .map(String::as_str)
        .collect();
    let completed = is_whole && errors.is_empty();
    let outages = observed.moves.iter().map(|moved| OutageResult {
        start_s: 0.0,
        length_s: Some(moved.outage_s),
        resume_s: moved.resume_s.iter().flatten().copied().reduce(f64::max),
        half_second_s: None,
        first_five_seconds_share: None,
    });
    let result = RunResult {
        completed,
        intact: Some(completed),
        error: (!completed).then(|| errors.join("; ")),
        elapsed_s: clock::now().since(began).as_secs_f64(),
        outages: outages.collect(),
        ..job.live_result(Cubic.name())
    };
    Ran::new(result).observing(&observed)
}
