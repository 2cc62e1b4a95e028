//! One run: honest transfers through outages, undisturbed and disturbed, with the daemon and without.

use super::attacker::{Attacker, Orders, Pace};
use super::daemon::{Daemon, Start, left_behind};
use super::random::{Random, seed};
use super::transfers::{self, Ends, Outcome, Transferred};
use crate::gateway_matrix::payload::payload;
use crate::gateway_matrix::trial::{Observed, TrialError, pause_until};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::{Cancel, LabError};
use outlast_linux::{clock, sysctl};
use outlast_scenario::result::RunResult;
use outlast_scenario::{Congestion, Direction};
use outlast_testbed::site::{Cut, Neighbours, Site, SiteConfig};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use tempfile::TempDir;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SiegeTrial {
    /// How packets get to the daemon.
    pub path: SiegePath,
    /// What is done to it.
    pub siege: Siege,
}

/// How packets get to the daemon.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum SiegePath {
    /// By eBPF programs, and through user space during outages.
    Ebpf,
    /// All through user space.
    Nfqueue,
}

/// What is done to the daemon or its connections.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Siege {
    /// It is killed once in each of so many rounds.
    Kills {
        /// How many.
        rounds: u32,
        /// The mechanism acknowledges for the far host what that has not.
        acknowledges_ahead: bool,
    },
    /// Somebody sends so many packets.
    Hostile {
        /// How many at least.
        packets: u64,
        /// So many different rounds, which are repeated.
        rounds: u32,
        /// How long their outages are, in seconds: from, and to.
        outages_s: [u64; 2],
    },
}

/// What only this experiment shows.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Besieged {
    /// Where the random numbers came from: `OUTLAST_SEED`.
    pub seed: u64,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// How packets came to the daemon, as it says itself.
    pub data_path: String,
    /// Hostile packets that the kernel took while the daemon ran.
    pub packets: u64,
    /// Of all packets, those that the daemon counted as crossing it.
    pub crossed: u64,
    /// Of these, segments that fit no connection.
    pub odd: u64,
    /// The daemon's peak memory in bytes before anybody attacked, and at the end.
    pub memory: [u64; 2],
    /// What was left after the daemon had ended.
    pub left: Vec<String>,
}

/// One outage, met three times: plain, with the daemon, and besieged.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Round {
    /// How the link goes away.
    pub cut: String,
    /// For how long, in seconds.
    pub outage_s: f64,
    /// When the daemon is killed, in seconds from the outage's begin; below zero: before it.
    pub kill_s: Option<f64>,
    /// Without the daemon, and with whatever is hostile.
    pub control: Vec<Transferred>,
    /// With the daemon, and nothing done to it.
    pub undisturbed: Vec<Transferred>,
    /// With the daemon, besieged.
    pub besieged: Vec<Transferred>,
}

/// Rate of the link each way.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Frames that may wait.
pub const QUEUE: u32 = 75;
/// Payload of a transfer; two go each way at once, for about 1.3 s of the link.
pub const BYTES: u64 = 750_000;
/// When an outage begins: before any transfer can be over.
const CUT: [Duration; 2] = [Duration::from_millis(200), Duration::from_millis(600)];
/// How long it is where the daemon is killed.
const OUTAGE: [Duration; 2] = [Duration::from_millis(500), Duration::from_millis(3_000)];
/// How much later than link-up the daemon may be killed.
const AFTER: Duration = Duration::from_millis(600);
/// How soon it is started again.
const RESTART: [Duration; 2] = [Duration::ZERO, Duration::from_millis(600)];
/// The hosts' receive buffers: room for the link several times, and so small that random numbers are
/// outside the windows of the hosts themselves.
const RECEIVE_BUFFER: &str = "4096 131072 262144";
const CUTS: [Cut; 3] = [Cut::Carrier, Cut::Neighbour, Cut::BlackHole];
/// How long what a daemon leaves may take to go by itself.
const PATIENCE: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(50);

impl SiegePath {
    /// The name of the data path in `outlast run --data-path`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ebpf => "ebpf",
            Self::Nfqueue => "nfqueue",
        }
    }
}

impl SiegeTrial {
    /// The name of the mechanism in `outlast run --mechanism`.
    #[must_use]
    pub const fn mechanism(&self) -> &'static str {
        match self.siege {
            Siege::Kills {
                acknowledges_ahead: true,
                ..
            } => "acknowledge-ahead",
            Siege::Kills { .. } | Siege::Hostile { .. } => "hold",
        }
    }

    /// About how long it takes.
    #[must_use]
    pub fn expected(&self) -> Duration {
        match self.siege {
            Siege::Kills { rounds, .. } => Duration::from_secs(15) * rounds,
            // About 20,000 packets a second of an outage, and five seconds beside each.
            Siege::Hostile { packets, .. } => Duration::from_secs(20 + packets / 10_000),
        }
    }

    fn schedules(&self, random: &mut Random) -> Vec<Schedule> {
        let (rounds, outage) = match self.siege {
            Siege::Kills { rounds, .. } => (rounds, OUTAGE),
            Siege::Hostile {
                rounds, outages_s, ..
            } => (rounds, outages_s.map(Duration::from_secs)),
        };
        let is_killing = matches!(self.siege, Siege::Kills { .. });
        let mut one = || {
            let how = random.choose(&CUTS);
            let cut = random.between(CUT);
            let outage = random.between(outage);
            let kill = random.between([Duration::ZERO, cut + outage + AFTER]);
            let restart = kill + random.between(RESTART);
            Schedule {
                how,
                cut,
                mend: cut + outage,
                kill: is_killing.then_some([kill, restart]),
            }
        };
        (0..rounds).map(|_| one()).collect()
    }
}

/// When what happens in a round, from its begin.
#[derive(Clone, Copy, Debug)]
struct Schedule {
    how: Cut,
    cut: Duration,
    mend: Duration,
    /// The daemon's end, and its next beginning.
    kill: Option<[Duration; 2]>,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Cut,
    Mend,
    Kill,
    Restart,
}

impl Schedule {
    fn undisturbed(self) -> Self {
        Self { kill: None, ..self }
    }

    fn steps(self) -> Vec<(Duration, Step)> {
        let mut steps = vec![(self.cut, Step::Cut), (self.mend, Step::Mend)];
        if let Some([kill, restart]) = self.kill {
            steps.extend([(kill, Step::Kill), (restart, Step::Restart)]);
        }
        steps.sort_by_key(|&(at, _)| at);
        steps
    }
}

/// Where it is played.
struct Scene<'t> {
    site: &'t Site,
    start: Start<'t>,
    daemon: Option<Daemon<'t>>,
    payload: Vec<u8>,
    cancel: &'t Cancel,
}

/// Carries the trial of `job` out, with the daemon of the program `outlast`.
///
/// # Errors
/// When the place cannot be made, or the daemon does not start, or ends by itself.
pub fn carry_out(
    job: &Job,
    trial: &SiegeTrial,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
    let site = Site::new(&SiteConfig {
        rate: BitRate::from_bits_per_second(u64::from(RATE_MBIT_PER_S) * 1_000_000)
            .expect("a constant above zero"),
        delay: DELAY,
        queue: QUEUE as usize,
        congestion: Congestion::Cubic.name(),
        sack: true,
        neighbours: Neighbours::AsUsual,
    })?;
    for host in [&site.fixed, &site.mobile] {
        host.run(|| sysctl::write("net.ipv4.tcp_rmem", RECEIVE_BUFFER))
            .map_err(LabError::from)?
            .map_err(LabError::from)?;
    }
    let seed = seed()?;
    announce(job, seed);
    let mut scene = Scene {
        site: &site,
        start: Start {
            outlast,
            gateway: &site.gateway,
            directory: directory.path(),
            mechanism: trial.mechanism(),
            data_path: trial.path.name(),
        },
        daemon: None,
        payload: payload(seed, BYTES),
        cancel,
    };
    let began = clock::now();
    let mut random = Random::new(seed, u64::from(job.index));
    let besieged = Besieged {
        seed,
        ..scene.besiege(trial, &mut random)?
    };
    let all = || besieged.rounds.iter().flat_map(|round| &round.besieged);
    let since = site.air.since();
    let since = since.map_err(|error| TrialError::Site(LabError::Emulator(error)))?;
    let is_damaged = |it: &Transferred| it.outcome == Outcome::Damaged;
    let result = RunResult {
        completed: all().all(|it| it.outcome == Outcome::Intact),
        intact: Some(!all().any(is_damaged)),
        elapsed_s: clock::now().since(began).as_secs_f64(),
        ..job.live_result(Congestion::Cubic.name())
    };
    let observed = Observed {
        siege: Some(besieged),
        ..Observed::default()
    };
    Ok(Ran {
        worst_delay: since.worst_delay,
        ..Ran::new(result).observing(&observed)
    })
}

/// Says the seed before anything can go wrong.
#[expect(
    clippy::print_stderr,
    reason = "who wants to see a run again that does not end needs its seed"
)]
fn announce(job: &Job, seed: u64) {
    eprintln!("{}, {}: OUTLAST_SEED={seed}", job.cell, job.index);
}

impl<'t> Scene<'t> {
    fn besiege(&mut self, trial: &SiegeTrial, random: &mut Random) -> Result<Besieged, TrialError> {
        let cancel = self.cancel;
        let schedules = trial.schedules(random);
        let mut rounds: Vec<Round> = schedules.iter().map(Round::new).collect();
        let mut attacker = match trial.siege {
            Siege::Kills { .. } => None,
            Siege::Hostile { .. } => Some(Attacker::new(self.site, random.clone())?),
        };
        for (round, schedule) in rounds.iter_mut().zip(&schedules) {
            round.control = self.play(schedule.undisturbed(), attacker.as_mut())?;
        }
        let mut daemon = self.start.spawn()?;
        daemon.wait_until_ready(self.cancel)?;
        self.daemon = Some(daemon);
        for (round, schedule) in rounds.iter_mut().zip(&schedules) {
            round.undisturbed = self.play(schedule.undisturbed(), None)?;
        }
        let quiet = self.daemon()?.peak_memory()?;
        let before = attacker.as_ref().map_or(0, Attacker::packets);
        let enough = match trial.siege {
            Siege::Kills { .. } => 0,
            Siege::Hostile { packets, .. } => before + packets,
        };
        loop {
            for (round, schedule) in rounds.iter_mut().zip(&schedules) {
                let more = self.play(*schedule, attacker.as_mut())?;
                round.besieged.extend(more);
                self.daemon()?.wait_until_ready(cancel)?;
            }
            if attacker.as_ref().map_or(0, Attacker::packets) >= enough {
                break;
            }
        }
        // It answers, so that it lives.
        let status = self.daemon()?.status()?;
        let count = |name: &str| status["counters"][name].as_u64().unwrap_or(0);
        let mut besieged = Besieged {
            seed: 0,
            rounds,
            data_path: status["data_path"].as_str().unwrap_or_default().to_owned(),
            packets: attacker.as_ref().map_or(0, Attacker::packets) - before,
            crossed: count("packets"),
            odd: count("odd_segments"),
            memory: [quiet, self.daemon()?.peak_memory()?],
            left: Vec::new(),
        };
        if let Some(daemon) = self.daemon.take() {
            daemon.stop(self.cancel)?;
        }
        besieged.left = self.left()?;
        Ok(besieged)
    }

    fn daemon(&mut self) -> Result<&mut Daemon<'t>, TrialError> {
        let none = || TrialError::Daemon("it was killed and not started again".to_owned());
        self.daemon.as_mut().ok_or_else(none)
    }

    /// What is still left behind after what goes by itself has had time to.
    fn left(&self) -> Result<Vec<String>, TrialError> {
        let given_up = clock::now() + PATIENCE;
        loop {
            let left = left_behind(&self.site.gateway, self.start.directory)?;
            if left.is_empty() || clock::now() > given_up {
                return Ok(left);
            }
            pause_until(self.cancel, clock::now() + LOOK)?;
        }
    }

    /// Plays a round; what became of its transfers.
    fn play(
        &mut self,
        schedule: Schedule,
        attacker: Option<&mut Attacker>,
    ) -> Result<Vec<Transferred>, TrialError> {
        let all = transfers::open(self.site).map_err(TrialError::io("open the connections"))?;
        let ends: Vec<Ends> = all.iter().map(|open| open.ends).collect();
        let sockets = all.iter().map(transfers::Open::sockets);
        let sockets: io::Result<Vec<_>> = sockets.collect();
        let sockets = sockets.map_err(TrialError::io("open the connections"))?;
        let payload = std::mem::take(&mut self.payload);
        let orders = Orders::default();
        let cancel = self.cancel;
        let begin = clock::now();
        let played = std::thread::scope(|scope| {
            let carrying = scope.spawn(|| transfers::carry(all, &payload, begin));
            let attacking =
                attacker.map(|attacker| scope.spawn(|| attacker.attack(&ends, &orders, cancel)));
            let acted = self.act(schedule, begin, &orders);
            if acted.is_err() {
                transfers::end(&sockets);
            }
            let carried = carrying
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            orders.give(Pace::Over);
            if let Some(attacking) = attacking {
                let attacked = attacking.join();
                attacked.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            acted.map(|()| carried)
        });
        self.payload = payload;
        played
    }

    fn act(
        &mut self,
        schedule: Schedule,
        begin: Instant,
        orders: &Orders,
    ) -> Result<(), TrialError> {
        for (at, step) in schedule.steps() {
            pause_until(self.cancel, begin + at)?;
            match step {
                Step::Cut => {
                    self.site.cut(schedule.how)?;
                    orders.give(Pace::Flood);
                }
                Step::Mend => {
                    orders.give(Pace::WithLink);
                    self.site.mend()?;
                }
                Step::Kill => {
                    if let Some(daemon) = self.daemon.take() {
                        daemon.kill()?;
                    }
                }
                Step::Restart => self.daemon = Some(self.start.spawn()?),
            }
        }
        Ok(())
    }
}

impl Round {
    fn new(schedule: &Schedule) -> Self {
        Self {
            cut: match schedule.how {
                Cut::Carrier => "carrier",
                Cut::MobileCarrier => "carrier of the mobile host",
                Cut::Neighbour => "neighbour",
                Cut::BlackHole => "black hole",
            }
            .to_owned(),
            outage_s: (schedule.mend - schedule.cut).as_secs_f64(),
            kill_s: schedule
                .kill
                .map(|[kill, _]| kill.as_secs_f64() - schedule.cut.as_secs_f64()),
            control: Vec::new(),
            undisturbed: Vec::new(),
            besieged: Vec::new(),
        }
    }

    /// How many times as long as with `reference` the intact transfers took. Those of one direction share
    /// the link and may end in either order, so that the reference is the last of them.
    pub fn slowdowns<'r>(&'r self, reference: &'r [Transferred]) -> impl Iterator<Item = f64> + 'r {
        let last = |direction: Direction| {
            let those = reference.iter().filter(move |it| it.direction == direction);
            those.map(|it| it.elapsed_s).fold(0.0, f64::max)
        };
        let intact = self
            .besieged
            .iter()
            .filter(|it| it.outcome == Outcome::Intact);
        intact.map(move |it| it.elapsed_s / last(it.direction))
    }

    /// Whether the daemon was killed while the link was away.
    #[must_use]
    pub fn is_killed_amid(&self) -> bool {
        self.kill_s
            .is_some_and(|kill| (0.0..self.outage_s).contains(&kill))
    }
}
