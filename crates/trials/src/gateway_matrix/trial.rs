//! One run: real programs, the daemon as it is installed, and one outage.

use super::cells::{Cell, Stack};
use super::container;
use super::daemon::{self, Duty, Noticed};
use super::has_kept_limit;
use super::payload::{is_same, payload};
use super::programs::{Missing, Program, Stage};
use super::uptake::Uptake;
use super::vigil::Vigil;
use super::witness::{Watched, Witness};
use crate::gateway_herd::trial::Herd;
use crate::gateway_siege::trial::Besieged;
use crate::role;
use outlast_base::time::{Duration, Instant, saturating_nanos};
use outlast_base::units::BitRate;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_experiments::moments::{Booking, Moments};
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::{ContainedProcess, ProcessError};
use outlast_linux::socket;
use outlast_scenario::Direction;
use outlast_scenario::result::{OutageResult, RunResult};
use outlast_testbed::site::{self, Cut, Neighbours, Since, Site, SiteConfig};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ProgramTrial {
    /// What is cut off, how, and for how long.
    pub cell: Cell,
    /// The daemon, if there is one.
    pub duty: Option<Duty>,
    /// Where the daemon is.
    pub arrangement: Arrangement,
}

/// Where the daemon is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arrangement {
    /// At the gateway for what the mobile host loads, on the mobile host itself for what it brings.
    AtSender,
    /// At the gateway, whichever way the transfer goes. Neighbours know each other for good.
    AtGateway {
        /// The mobile host has its half of M-TCP: an agent beside its TCP.
        has_mobiles_half: bool,
    },
}

/// What only a run with real programs shows; in the record beside the result.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// From link-up until the first frame came out of the link at the end where the daemon is, or
    /// would be.
    pub first_sign_s: Option<f64>,
    /// What the daemon knew when the link came back; `None` without one.
    pub noticed: Option<Noticed>,
    /// When the kernel doubts its neighbours, in milliseconds or seconds as it has them.
    pub neighbour_timing: Vec<(String, String)>,
    /// By how much the latest datagram that was sent after link-up was late, where there are some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagram_age_s: Option<f64>,
    /// Acknowledgements that the mobile's half of M-TCP has marked, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub marked_acks: Option<u64>,
    /// Of thousands of connections, in the experiment that has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub herd: Option<Herd>,
    /// Of a daemon under siege, in the experiment that has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub siege: Option<Besieged>,
}

/// Rate of the link each way.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Frames that may wait.
pub const QUEUE: u32 = 75;
/// Payload of a transfer: about five seconds of the link.
pub const BYTES: u64 = 6_000_000;
/// How long the session goes on after the outage.
const AFTER: Duration = Duration::from_secs(5);
/// How long a server may take to listen, and a client to get going.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at what has come, in the first second after link-up, and later.
const GLANCE: Duration = Duration::from_millis(1);
const LOOK: Duration = Duration::from_millis(10);

/// By how much the machine may be late between link-up and the resumption before a missed limit
/// says nothing of the daemon: the limit leaves no more than this twice to all who have a part.
pub(crate) const TOLERABLE_DELAY: Duration = Duration::from_millis(10);

/// Age of a datagram, in seconds, that says nothing of the daemon where the link's emulator was late:
/// the link's delay and the 50 ms by which the daemon's may be later than the control's.
const LATE_DATAGRAM_S: f64 = 0.07;

/// About what making the place and starting server and daemon takes.
const SET_UP: Duration = Duration::from_secs(2);
/// About what ending everything takes.
const TAKE_DOWN: Duration = Duration::from_millis(500);
/// From the client's start to the outage at the earliest, and how much later it may begin.
const LEAD: Duration = Duration::from_millis(1_300);
const UNCERTAIN: Duration = Duration::from_millis(1_500);
/// Before link-up, when the daemon is asked what it knows, and after it: others do no work then.
const QUIET: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(600)];

/// Why a run could not be carried out.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// A program is not there.
    #[error("{0}")]
    Missing(Missing),
    /// The place cannot be made.
    #[error(transparent)]
    Site(#[from] LabError),
    /// A program does not start.
    #[error(transparent)]
    Process(#[from] ProcessError),
    /// The daemon does not run here.
    #[error("`outlast run` does not start: {0}")]
    Daemon(String),
    /// A program does not do what it is there for.
    #[error("{what}; it says: {said}")]
    Program {
        /// What it does not do.
        what: &'static str,
        /// Its last words.
        said: String,
    },
    /// Nothing came through before the outage.
    #[error("nothing came through before the outage; it says: {said}")]
    NotBegun {
        /// The program's last words.
        said: String,
    },
    /// The process may not have that many connections.
    #[error("{wanted} file descriptors are needed, and this process may have {may} (ulimit -n)")]
    Descriptors {
        /// How many are needed.
        wanted: u64,
        /// How many it may have.
        may: u64,
    },
    /// A file or descriptor.
    #[error("cannot {what}")]
    Io {
        /// What for.
        what: &'static str,
        /// What the system says.
        #[source]
        source: io::Error,
    },
}

impl TrialError {
    /// What becomes of an error of the system's while this program tries to do `what`: "make a directory".
    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }
}

impl From<TrialError> for outlast_experiments::trial::TrialError {
    fn from(error: TrialError) -> Self {
        match error {
            TrialError::Site(error) => Self::Place(error),
            TrialError::Missing(_) | TrialError::Descriptors { .. } => {
                Self::Missing(error.to_string())
            }
            TrialError::NotBegun { .. } => Self::NotBegun(error.to_string()),
            error => Self::Failed(Box::new(error)),
        }
    }
}

impl ProgramTrial {
    /// How often it is carried out at most, if it misses the limit and the machine was late.
    pub const ATTEMPTS: u32 = 6;

    /// About how long it takes, all in all.
    #[must_use]
    pub fn expected(&self) -> Duration {
        let alone = SET_UP + LEAD + self.cell.outage + Duration::from_secs(5);
        match (self.duty, self.cell.cut) {
            (Some(_), _) => alone,
            // The sender's timeout at the end of a black hole is as long as a third of it.
            (None, Cut::BlackHole) => alone + self.cell.outage / 3,
            (None, Cut::Carrier | Cut::MobileCarrier | Cut::Neighbour) => {
                alone + self.cell.outage / 10
            }
        }
    }

    /// When it is given up, counted from the client's start.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.cell.outage * 3 + Duration::from_secs(60)
    }

    /// About how many things a session says.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        let session = self.cell.outage + self.after() + Duration::from_secs(2);
        saturating_nanos(session) / 1_000_000 / super::programs::TICK_MS
    }

    /// How long a session goes on after the outage.
    fn after(&self) -> Duration {
        // Datagrams that were held back come late for long.
        match self.cell.program {
            Program::Datagrams => 2 * AFTER,
            _ => AFTER,
        }
    }

    /// The end of the link at which the daemon is: that of what is sent in this direction.
    pub(crate) const fn keeper(&self) -> Direction {
        match self.arrangement {
            Arrangement::AtSender => self.cell.program.direction(),
            Arrangement::AtGateway { .. } => Direction::Download,
        }
    }

    /// Whether the mobile host has its half of M-TCP.
    pub(crate) fn has_mobiles_half(&self) -> bool {
        let with_half = Arrangement::AtGateway {
            has_mobiles_half: true,
        };
        self.arrangement == with_half
    }

    fn config(&self) -> SiteConfig<'static> {
        let neighbours = match (self.arrangement, self.cell.cut) {
            (Arrangement::AtGateway { .. }, _) => Neighbours::Known,
            (_, Cut::Neighbour) => Neighbours::Soon,
            (_, Cut::Carrier | Cut::MobileCarrier | Cut::BlackHole) => Neighbours::AsUsual,
        };
        let Stack {
            congestion, sack, ..
        } = self.cell.stack;
        SiteConfig {
            rate: BitRate::from_bits_per_second(u64::from(RATE_MBIT_PER_S) * 1_000_000)
                .expect("a constant above zero"),
            delay: DELAY,
            queue: QUEUE as usize,
            congestion: congestion.name(),
            sack,
            neighbours,
        }
    }
}

/// Carries the trial of `job` out, with the daemon of the program `outlast`, among others that share
/// the `moments`.
///
/// # Errors
/// When the place cannot be made, a program is not there, or one does not start.
pub fn carry_out(
    job: &Job,
    trial: &ProgramTrial,
    outlast: &Path,
    moments: &Moments,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let (mut scene, moment) = Scene::set(job, trial, outlast, moments, cancel)?;
    let begun = scene.wait_for_traffic()?;
    if begun == Begun::Stuck {
        drop(moment);
        let _work = moments.work(TAKE_DOWN, cancel)?;
        return scene.conclude_stuck(job);
    }
    let acted = scene.act(moment)?;
    let _work = moments.work(TAKE_DOWN, cancel)?;
    scene.conclude(job, &acted)
}

/// Everything that runs, and ends when this is dropped.
struct Scene<'t> {
    trial: &'t ProgramTrial,
    cancel: &'t Cancel,
    witness: Witness<'t>,
    _server: ContainedProcess,
    client: ContainedProcess,
    began: Instant,
    stage: Stage,
    _container: Option<Namespace>,
    /// The mobile host's half of M-TCP.
    half: Option<Half<'t>>,
    site: Site,
    _directory: TempDir,
}

/// The mobile host's half of M-TCP, as it runs.
struct Half<'t> {
    outlast: &'t Path,
    control: PathBuf,
    _agent: ContainedProcess,
}

impl Half<'_> {
    fn marked_acks(&self) -> Result<u64, TrialError> {
        daemon::marked_acks(self.outlast, &self.control)
    }
}

/// Whether there is something that an outage can interrupt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Begun {
    Flowing,
    /// Under a daemon too little has come for long: that is the daemon's doing.
    Stuck,
}

/// What was seen.
struct Acted {
    cut: Instant,
    up: Instant,
    noticed: Option<Noticed>,
    resumed: Option<Instant>,
    uptake: Uptake,
    before: Watched,
    after: Option<Watched>,
    sign: Option<Instant>,
    /// Of the emulator, and of the looks at what was read, until the resumption.
    worst_delay: Duration,
    ended: Option<Instant>,
}

impl<'t> Scene<'t> {
    /// Everybody in place, and the client on its way; and the time at which the link is to come back.
    fn set<'m>(
        job: &Job,
        trial: &'t ProgramTrial,
        outlast: &'t Path,
        moments: &'m Moments,
        cancel: &'t Cancel,
    ) -> Result<(Self, Booking<'m>), TrialError> {
        let work = moments.work(SET_UP, cancel)?;
        let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
        let payload = payload(job.scenario.run.seed, BYTES);
        let stage = Stage::new(trial.cell, directory.path(), &payload)
            .map_err(TrialError::io("prepare the programs"))?
            .map_err(TrialError::Missing)?;
        let site = Site::new(&trial.config())?;
        let server = ContainedProcess::spawn(&site.fixed, stage.server())?;
        wait_for_server(&site, &stage, cancel)?;
        let keeper = match trial.keeper() {
            Direction::Download => &site.gateway,
            Direction::Upload => &site.mobile,
        };
        let control = directory.path().join("control");
        let container = match trial.cell.program.is_contained() {
            true => Some(container::on_mobile(&site, trial.config().congestion)?),
            false => None,
        };
        let place = container.as_ref().unwrap_or(&site.mobile);
        let half = match trial.has_mobiles_half() {
            true => {
                let control = directory.path().join("half");
                let keys = "mechanism = \"m-tcp\"\n";
                let agent = role::agent(outlast, &site.mobile, &control, keys, cancel)?;
                Some(Half {
                    outlast,
                    control,
                    _agent: agent,
                })
            }
            false => None,
        };
        let witness = Witness::new(trial, &site, place, keeper, outlast, control)?;
        drop(work);
        let lead = LEAD + trial.cell.outage - QUIET[0];
        let moment = moments.moment(lead, QUIET[0] + UNCERTAIN + QUIET[1], cancel)?;
        let began = clock::now();
        let client = ContainedProcess::spawn(place, stage.client(BYTES))?;
        let scene = Self {
            trial,
            cancel,
            witness,
            _server: server,
            client,
            began,
            stage,
            _container: container,
            half,
            site,
            _directory: directory,
        };
        Ok((scene, moment))
    }

    /// The outage, and what follows until the client has ended or is given up.
    fn act(&mut self, mut moment: Booking<'_>) -> Result<Acted, TrialError> {
        let cut = self.site.cut(self.trial.cell.cut)?;
        let back = cut + self.trial.cell.outage;
        if self.trial.cell.starts_late {
            pause_until(self.cancel, cut + Duration::from_secs(1))?;
            self.witness.start_daemon()?;
        }
        moment.move_to(back - QUIET[0], QUIET[0] + QUIET[1]);
        pause_until(self.cancel, back)?;
        let noticed = self.witness.noticed()?;
        let before = self.watched()?.unwrap_or_default();
        let vigil = Vigil::begin()?;
        let up = self.site.mend()?;
        let (resumed, late) = self.wait_for_more(up, &before, vigil)?;
        drop(moment);
        let worst_delay = self.since()?.worst_delay.max(late);
        // The sender's own counts, and the first sign of life, which may come a little later.
        let after = self.watched()?;
        let uptake = self.watch_uptake(up, &before)?;
        let ended = self.wait_for_end(up + self.trial.after())?;
        let since = self.since()?;
        let Cell {
            stack, cut: how, ..
        } = self.trial.cell;
        let heard = match self.trial.keeper() {
            Direction::Download => since.heard_by_gateway,
            Direction::Upload => since.heard_by_mobile,
        };
        let sign = heard.first_sign(how, stack.ip);
        Ok(Acted {
            cut,
            up,
            noticed,
            resumed,
            uptake,
            before,
            after,
            sign,
            worst_delay,
            ended,
        })
    }

    /// What has come, in the connection over which most has.
    fn watched(&self) -> Result<Option<Watched>, TrialError> {
        match self.trial.cell.program {
            Program::Datagrams => self.datagrams().map(Some),
            _ => self.witness.watched(),
        }
    }

    /// What is watched now of the connection that was watched `before`.
    fn connection(&self, before: &Watched) -> Result<Option<Watched>, TrialError> {
        if self.trial.cell.program == Program::Datagrams {
            return self.datagrams().map(Some);
        }
        self.witness.connection(before)
    }

    fn datagrams(&self) -> Result<Watched, TrialError> {
        match self.stage.datagrams() {
            Ok(all) => Ok(Watched::of_datagrams(all.len())),
            // The receiver has only begun.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Watched::default()),
            Err(error) => Err(TrialError::io("read what came")(error)),
        }
    }

    /// By how much the latest of the datagrams that were sent after link-up was late; `None` if it is
    /// another program.
    fn datagram_age(&self, up: Instant) -> Result<Option<f64>, TrialError> {
        if self.trial.cell.program != Program::Datagrams {
            return Ok(None);
        }
        let all = self
            .stage
            .datagrams()
            .map_err(TrialError::io("read what came"))?;
        let fresh = all.iter().filter(|(sent, _)| *sent >= up);
        let ages = fresh.map(|(sent, came)| came.since(*sent).as_secs_f64());
        Ok(ages.reduce(f64::max))
    }

    fn since(&self) -> Result<Since, TrialError> {
        let since = self.site.air.since();
        since.map_err(|error| TrialError::Site(LabError::Emulator(error)))
    }

    /// Waits until enough has come.
    ///
    /// # Errors
    /// When the client ends before, or nothing stands between the hosts and too little comes.
    fn wait_for_traffic(&self) -> Result<Begun, TrialError> {
        let wanted = self.trial.cell.program.bytes_before();
        let given_up = self.began + PATIENCE;
        loop {
            if let Some(watched) = self.watched()?
                && watched.read >= wanted
            {
                return Ok(Begun::Flowing);
            }
            let is_over = self.client_has_ended(LOOK)?;
            let is_late = clock::now() > given_up;
            if is_late && !is_over && self.trial.duty.is_some() {
                return Ok(Begun::Stuck);
            }
            if is_over || is_late {
                return Err(TrialError::Program {
                    what: "nothing comes through",
                    said: self.stage.said(),
                });
            }
        }
    }

    /// When the receiving application has read something new, `None` if it never did; and by how
    /// much the machine, as `vigil` has it, or a look was late at worst in the first second.
    fn wait_for_more(
        &self,
        up: Instant,
        before: &Watched,
        vigil: Vigil,
    ) -> Result<(Option<Instant>, Duration), TrialError> {
        let soon = up + Duration::from_secs(1);
        let mut vigil = Some(vigil);
        let mut late = Duration::ZERO;
        let mut looked = up;
        let resumed = loop {
            let watched = self.connection(before)?;
            let now = clock::now();
            if now < soon {
                late = late.max(now.since(looked).saturating_sub(GLANCE));
            } else if let Some(vigil) = vigil.take() {
                late = late.max(vigil.end()?);
            }
            looked = now;
            if watched.is_some_and(|watched| watched.read > before.received) {
                break Some(now);
            }
            let step = if now < soon { GLANCE } else { LOOK };
            if self.client_has_ended(step)? || now > self.given_up() {
                break None;
            }
        };
        if let Some(vigil) = vigil {
            late = late.max(vigil.end()?);
        }
        Ok((resumed, late))
    }

    /// What is read of a transfer until five seconds after link-up, or the client's end.
    fn watch_uptake(&self, up: Instant, before: &Watched) -> Result<Uptake, TrialError> {
        let mut uptake = Uptake::new(up, before.received);
        if !self.trial.cell.program.is_transfer() {
            return Ok(uptake);
        }
        loop {
            let watched = self.connection(before)?;
            let now = clock::now();
            if let Some(watched) = watched {
                uptake.note(now, watched.read.max(before.received));
            }
            let is_late = now > self.given_up();
            if is_late || uptake.is_over(now) || self.client_has_ended(LOOK)? {
                return Ok(uptake);
            }
        }
    }

    /// When the client has ended, `None` if it had not at the deadline. A session is told to end at `over`.
    fn wait_for_end(&self, over: Instant) -> Result<Option<Instant>, TrialError> {
        let mut goes_on = !self.trial.cell.program.is_transfer();
        loop {
            if self.client_has_ended(Duration::from_millis(500))? {
                return Ok(Some(clock::now()));
            }
            if goes_on && clock::now() >= over {
                let ended = self.stage.end_session();
                ended.map_err(TrialError::io("have the session end"))?;
                goes_on = false;
            }
            if clock::now() > self.given_up() {
                return Ok(None);
            }
        }
    }

    fn given_up(&self) -> Instant {
        self.began + self.trial.deadline()
    }

    /// Waits for the client's end, but no longer than `patience`; whether it has ended.
    fn client_has_ended(&self, patience: Duration) -> Result<bool, TrialError> {
        super::witness::wait(self.cancel, Some(&self.client), patience)
    }

    /// The result of a transfer that never came to its outage.
    fn conclude_stuck(self, job: &Job) -> Result<Ran, TrialError> {
        let watched = self.watched()?;
        let (received, congestion) = watched.as_ref().map_or((0, ""), |watched| {
            (watched.received, watched.sender.congestion.as_str())
        });
        let wanted = self.trial.cell.program.bytes_before();
        let patience = PATIENCE.as_secs();
        let result = RunResult {
            completed: false,
            error: Some(format!(
                "no outage: {received} bytes came in {patience} s, and {wanted} are to come before it"
            )),
            elapsed_s: clock::now().since(self.began).as_secs_f64(),
            bytes_received: Some(received),
            ..job.live_result(congestion)
        };
        Ok(Ran::new(result))
    }

    fn conclude(self, job: &Job, acted: &Acted) -> Result<Ran, TrialError> {
        let injected = self.witness.noticed()?.map_or(0, |word| word.injected);
        let timing = || site::neighbour_timing(self.trial.cell.stack.ip);
        let timing = self.witness.keeper().run(timing).map_err(LabError::from)?;
        let datagram_age_s = self.datagram_age(acted.up)?;
        let link_delay = match datagram_age_s {
            // Each datagram until now counts.
            Some(_) => self.since()?.worst_delay,
            None => Duration::ZERO,
        };
        let (began, said) = (self.began, self.stage.said());
        let error = match acted.ended {
            None => Some("given up at the deadline".to_owned()),
            Some(_) => {
                let status = self.client.wait();
                let status = status.map_err(TrialError::io("wait for the client"))?;
                let refused = self
                    .stage
                    .refusal()
                    .map_err(TrialError::io("read the report"))?;
                let failed = !status.success();
                failed.then(|| format!("{status}: {said}")).or(refused)
            }
        };
        let leaves_files = self.trial.cell.program.leaves_files();
        let intact = (error.is_none() && leaves_files)
            .then(|| is_same(&self.stage.sent(), &self.stage.got()))
            .transpose()
            .map_err(TrialError::io("compare what came with what was sent"))?;
        let result = RunResult {
            completed: error.is_none(),
            intact,
            error,
            injected_packets: injected,
            ..acted.result(job, began)
        };
        let observed = Observed {
            first_sign_s: acted.sign.map(|sign| acted.since_up(sign)),
            noticed: acted.noticed.clone(),
            neighbour_timing: timing.map_err(LabError::from)?,
            marked_acks: self.half.as_ref().map(Half::marked_acks).transpose()?,
            herd: None,
            siege: None,
            datagram_age_s,
        };
        // A control keeps no limit, and what was kept in spite of that was kept. Datagrams are late in
        // a control, too, if the link's emulator is.
        let late_datagram = datagram_age_s.is_some_and(|age| age > LATE_DATAGRAM_S);
        let worst_delay = acted.worst_delay.max(link_delay);
        let is_late = worst_delay > TOLERABLE_DELAY;
        // Elsewhere than at the sender the first sign is none of what the daemon goes by.
        let has_limit =
            self.trial.duty.is_some() && self.trial.arrangement == Arrangement::AtSender;
        let misses_limit = has_limit && !has_kept_limit(&result, &observed);
        // At the gateway there is no limit to miss: runs are compared with one another, and each has to be in time.
        let is_compared = self.trial.arrangement != Arrangement::AtSender;
        let doubtful = is_late && (misses_limit || late_datagram || is_compared);
        let too_late = doubtful.then(|| {
            let millis = worst_delay.as_millis();
            format!(
                "this machine is busy: it was late by up to {millis} ms after the link was back"
            )
        });
        Ok(Ran {
            warnings: too_late.into_iter().collect(),
            worst_delay,
            ..Ran::new(result).observing(&observed)
        })
    }
}

impl Acted {
    fn since_up(&self, at: Instant) -> f64 {
        at.since(self.up).as_secs_f64()
    }

    /// What the link and the kernels have seen, the client having begun then; not how it ended.
    fn result(&self, job: &Job, began: Instant) -> RunResult {
        let end = self.ended.unwrap_or_else(clock::now);
        let sender = self.after.as_ref().map(|watched| &watched.sender);
        let is_bulk = job.scenario.workload.transfer().0.is_some();
        RunResult {
            elapsed_s: end.since(began).as_secs_f64(),
            outages: vec![OutageResult {
                start_s: self.cut.since(began).as_secs_f64(),
                length_s: Some(self.up.since(self.cut).as_secs_f64()),
                resume_s: self.resumed.map(|at| self.since_up(at)),
                half_second_s: is_bulk.then(|| self.uptake.half_second_s()).flatten(),
                first_five_seconds_share: is_bulk
                    .then(|| self.uptake.share(job.scenario.framing()))
                    .flatten(),
            }],
            timeouts: sender.and_then(|sender| sender.timeouts).map(u64::from),
            retransmitted_bytes: sender.and_then(|sender| sender.bytes_retransmitted),
            bytes_received: self.after.as_ref().map(|watched| watched.received),
            ..job.live_result(self.before.sender.congestion.as_str())
        }
    }
}

pub(crate) fn wait_for_server(
    site: &Site,
    stage: &Stage,
    cancel: &Cancel,
) -> Result<(), TrialError> {
    let given_up = clock::now() + PATIENCE;
    loop {
        let port = stage.port();
        let listening = site.fixed.run(|| socket::is_listening(port));
        let listening = listening.map_err(LabError::from)?;
        if listening.map_err(TrialError::io("look for the server"))? {
            return Ok(());
        }
        if clock::now() > given_up {
            return Err(TrialError::Program {
                what: "the server does not listen",
                said: stage.said(),
            });
        }
        super::witness::wait(cancel, None, LOOK)?;
    }
}

/// Waits until then, or an error if the user asks for an end.
pub(crate) fn pause_until(cancel: &Cancel, then: Instant) -> Result<(), TrialError> {
    loop {
        let now = clock::now();
        if now >= then {
            return Ok(());
        }
        super::witness::wait(cancel, None, then.since(now))?;
    }
}

/// The program that is running: `outlast` itself.
///
/// # Errors
/// When the system does not tell.
pub fn this_program() -> Result<PathBuf, TrialError> {
    std::env::current_exe().map_err(TrialError::io("find this program's file"))
}
