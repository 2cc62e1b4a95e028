//! One run: a transfer of a mobile node that changes its network once.

use super::LIMIT_S;
use super::place::{HOME_ADDRESS, Roaming, TO_AGENT};
use super::replies::Replies;
use super::roles::{Help, Roles};
use crate::gateway_matrix::payload::payload;
use crate::gateway_matrix::trial::{TrialError, pause_until};
use crate::gateway_matrix::wait;
use crate::transfer::{Received, Transfer, Transport};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_scenario::result::{OutageResult, RunResult};
use outlast_scenario::{Congestion, Direction, IpVersion};
use outlast_testbed::site::{Cut, LINK, Neighbours, Place, SiteConfig};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tempfile::TempDir;

/// Rate of the link each way.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Frames that may wait.
pub const QUEUE: u32 = 75;
/// Payload of the transfer: about seven seconds of the link.
pub const BYTES: u64 = 8_000_000;
/// Bytes that are read before the hand-off.
const BYTES_BEFORE: u64 = 2_400_000;

const PATIENCE: Duration = Duration::from_secs(30);
const LOOK: Duration = Duration::from_millis(10);
/// How long is waited for the first byte after the registration before the run is given up.
const AFTER: Duration = Duration::from_secs(60);
/// By how much the link's emulator may be late before a missed limit says nothing.
const TOLERABLE_DELAY: Duration = Duration::from_millis(10);

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HandOffTrial {
    /// Of the sender's socket.
    pub congestion: Congestion,
    /// Which way the data go.
    pub direction: Direction,
    /// For how long the mobile host has no link.
    pub outage: Duration,
    /// What helps.
    pub help: Help,
}

/// What only this trial shows.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// From link-up until the home agent's accepting reply was on the sender's side of the link: for a
    /// download when it left the home agent, for an upload when it came to the mobile host.
    pub reply_s: Option<f64>,
    /// From that reply until the receiving application read something new.
    pub resume_s: Option<f64>,
    /// The congestion control that the sender's kernel names.
    pub congestion: String,
}

impl HandOffTrial {
    /// About how long it takes, all in all.
    #[must_use]
    pub fn expected(&self) -> Duration {
        self.outage * 2 + Duration::from_secs(12)
    }

    fn config(&self) -> SiteConfig<'static> {
        SiteConfig {
            rate: BitRate::from_bits_per_second(u64::from(RATE_MBIT_PER_S) * 1_000_000)
                .expect("a constant above zero"),
            delay: DELAY,
            queue: QUEUE as usize,
            congestion: self.congestion.name(),
            sack: true,
            neighbours: Neighbours::AsUsual,
        }
    }
}

/// Carries the trial of `job` out with the program `outlast`.
///
/// # Errors
/// When the place cannot be made, or a role or the transfer does not start.
pub fn carry_out(
    job: &Job,
    trial: &HandOffTrial,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
    let place = Roaming::new(&trial.config())?;
    let roles = Roles::start(&place, trial.help, outlast, directory.path(), cancel)?;
    let sent = payload(job.scenario.run.seed, BYTES);
    let hash = blake3::hash(&sent);
    let began = clock::now();
    let transfer = Transfer::begin(
        (&place.site.fixed, Place::Fixed.address(IpVersion::V4)),
        &place.site.mobile,
        trial.direction,
        (Transport::Tcp, trial.congestion),
        sent,
    )?;
    if transfer.own != HOME_ADDRESS {
        return Err(TrialError::Program {
            what: "the connection does not use the home address",
            said: transfer.own.to_string(),
        });
    }
    while transfer.read() < BYTES_BEFORE {
        wait(cancel, None, LOOK)?;
        if clock::now() > began + PATIENCE {
            return Err(TrialError::Program {
                what: "nothing comes through the tunnel",
                said: format!("{} bytes", transfer.read()),
            });
        }
    }
    let cut = place.site.cut(Cut::Carrier)?;
    place.change_network()?;
    pause_until(cancel, cut + trial.outage)?;
    let replies = match trial.direction {
        Direction::Download => Replies::watch(&place.site.gateway, TO_AGENT)?,
        Direction::Upload => Replies::watch(&place.site.mobile, LINK)?,
    };
    let up = place.site.mend()?;
    let congestion = transfer.congestion.clone();
    let (received, timeouts) = transfer.end(up + AFTER, cancel)?;
    let replied = replies.end()?.into_iter().find(|reply| *reply >= up);
    drop(roles);
    let late = place.site.air.since();
    let late = late.map_err(|error| TrialError::Site(LabError::Emulator(error)))?;
    let seen = Seen {
        began,
        cut,
        up,
        replied,
        is_intact: received.hash == Some(hash),
        received,
    };
    Ok(seen.conclude(job, trial, timeouts, late.worst_delay, congestion))
}

/// What was seen.
struct Seen {
    began: Instant,
    cut: Instant,
    up: Instant,
    replied: Option<Instant>,
    received: Received,
    is_intact: bool,
}

impl Seen {
    /// When the receiving application read something for the first time after link-up.
    fn resumed(&self) -> Option<Instant> {
        let mut reads = self.received.reads.iter();
        reads.find(|(at, _)| *at >= self.up).map(|(at, _)| *at)
    }

    fn conclude(
        self,
        job: &Job,
        trial: &HandOffTrial,
        timeouts: Option<u16>,
        worst_delay: Duration,
        congestion: String,
    ) -> Ran {
        let resumed = self.resumed();
        let seconds = |from: Instant, to: Instant| to.since(from).as_secs_f64();
        let observed = Observed {
            reply_s: self.replied.map(|at| seconds(self.up, at)),
            resume_s: self
                .replied
                .zip(resumed)
                .map(|(replied, resumed)| seconds(replied, resumed.max(replied))),
            congestion: congestion.clone(),
        };
        let is_complete = self.received.is_complete;
        let end = self.received.reads.last().map_or(self.up, |(at, _)| *at);
        let bytes: usize = self.received.reads.iter().map(|(_, length)| length).sum();
        let result = RunResult {
            completed: is_complete,
            intact: is_complete.then_some(self.is_intact),
            error: (!is_complete).then(|| "given up at the deadline".to_owned()),
            elapsed_s: seconds(self.began, end),
            outages: vec![OutageResult {
                start_s: seconds(self.began, self.cut),
                length_s: Some(seconds(self.cut, self.up)),
                resume_s: resumed.map(|at| seconds(self.up, at)),
                half_second_s: None,
                first_five_seconds_share: None,
            }],
            timeouts: timeouts.map(u64::from),
            bytes_received: Some(bytes as u64),
            ..job.live_result(congestion)
        };
        let misses = observed.resume_s.is_none_or(|time| time > LIMIT_S);
        let is_doubtful = trial.help != Help::None && misses && worst_delay > TOLERABLE_DELAY;
        let warning = is_doubtful.then(|| {
            let millis = worst_delay.as_millis();
            format!("this machine is busy: the link was late by up to {millis} ms")
        });
        Ran {
            warnings: warning.into_iter().collect(),
            worst_delay,
            ..Ran::new(result).observing(&observed)
        }
    }
}
