//! One run: a crowd of connections, the daemon as it is installed, and one outage.

use super::crowd::{self, Crowd, Heard, Overslept, Talk};
use crate::gateway_matrix::cells::DataPath;
use crate::gateway_matrix::daemon::Daemon;
use crate::gateway_matrix::trial::{Observed, TrialError, pause_until};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_scenario::Congestion;
use outlast_scenario::IpVersion;
use outlast_scenario::result::{OutageResult, RunResult};
use outlast_testbed::site::{Cut, Neighbours, Since, Site, SiteConfig, WINDOW};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tempfile::TempDir;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HerdTrial {
    /// For how long the link is away.
    pub outage: Duration,
    /// How packets get to the daemon on the gateway; `None`: there is none.
    pub daemon: Option<DataPath>,
}

/// What only this experiment shows.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Herd {
    /// Connections.
    pub connections: usize,
    /// Connections that went on after the outage.
    pub resumed: usize,
    /// Connections over which everything came as it was sent.
    pub complete: usize,
    /// Connections over which something came that was not sent.
    pub damaged: usize,
    /// From link-up until something new was read: of the connection in the middle, of the one after
    /// 99 of 100, and of the last; `None` where that one never went on.
    pub median_s: Option<f64>,
    /// See [`Self::median_s`].
    pub centile_99_s: Option<f64>,
    /// See [`Self::median_s`].
    pub last_s: Option<f64>,
    /// What was owed at link-up: bytes of IP packets that carry what was said and not read by then.
    pub owed_bytes: u64,
    /// Bytes of IP packets for what was said from link-up until the last connection went on.
    pub added_bytes: u64,
    /// Bytes of IP packets that were offered to the link towards the mobile host in each tenth of a
    /// second from link-up until the last connection went on, and a little longer.
    pub offered: Vec<u64>,
    /// Of them, frames that found the link's queue full.
    pub dropped: u64,
    /// Jain's index of what the connections had read between link-up and the time when the last went
    /// on; one if all had read the same.
    pub fairness: Option<f64>,
}

/// Connections.
pub const CONNECTIONS: usize = 5_000;
/// Rate of the link each way.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Frames that may wait: a tenth of a second of frames of full size, as is usual.
pub const QUEUE: u32 = 100;
/// Bytes of a message.
pub const MESSAGE: usize = 300;
/// With which each connection has one.
pub const PERIOD: Duration = Duration::from_secs(5);
/// Headers of IPv4 and TCP with timestamps (RFC 7323).
const HEADERS: usize = 20 + 20 + 12;
/// How long they talk before the outage, and after it.
const BEFORE: Duration = PERIOD;
const AFTER: Duration = Duration::from_secs(10);
/// How much longer than that they have to end.
const GRACE: Duration = Duration::from_secs(60);
/// By how much a process may be kept waiting for the processor before the numbers are doubtful: what
/// the gateway sends ahead of its time is gone by then.
const TOLERABLE_DELAY: Duration = Duration::from_millis(20);
/// Over which what is offered is shown.
pub const SHOWN_WINDOW: Duration = Duration::from_millis(100);

impl HerdTrial {
    /// What is said.
    fn talk(&self) -> Talk {
        Talk {
            connections: CONNECTIONS,
            message: MESSAGE,
            period: PERIOD,
            length: self.length(),
        }
    }

    /// How long they talk.
    #[must_use]
    pub fn length(&self) -> Duration {
        BEFORE + self.outage + AFTER
    }

    /// When it is given up, counted from the first message.
    #[must_use]
    pub fn deadline(&self) -> Duration {
        self.length() + self.outage + GRACE
    }
}

/// What was seen.
struct Acted {
    begin: Instant,
    cut: Instant,
    up: Instant,
    since: Since,
    heard: Vec<Heard>,
    overslept: Vec<Overslept>,
    noticed: Option<crate::gateway_matrix::Noticed>,
    injected: u64,
}

impl Acted {
    /// Whether a process was kept waiting for the processor until the last connection had gone on: then
    /// the run is repeated, as far as that helps.
    fn is_too_busy(&self, herd: &Herd) -> Option<String> {
        let last = Duration::try_from_secs_f64(herd.last_s?).ok()?;
        let burst = self.up..=self.up + last.min(AFTER);
        let during = self.overslept.iter().filter(|(at, _)| burst.contains(at));
        let worst = during.map(|&(_, late)| late).max()?;
        let worst = worst.max(self.since.worst_delay);
        (worst > TOLERABLE_DELAY).then(|| {
            let millis = worst.as_millis();
            format!("this machine is busy: a process was kept waiting for up to {millis} ms")
        })
    }
}

/// Carries the trial of `job` out, with the daemon of the program `outlast`.
///
/// # Errors
/// When the place cannot be made, or has no room for so many connections.
pub fn carry_out(
    job: &Job,
    trial: &HerdTrial,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    crowd::make_room(CONNECTIONS).map_err(|may| TrialError::Descriptors {
        wanted: 2 * CONNECTIONS as u64,
        may,
    })?;
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
    let daemon = trial
        .daemon
        .map(|path| start(path, &site, outlast, directory.path()))
        .transpose()?;
    let acted = act(trial, &site, daemon.as_ref(), cancel)?;
    Ok(conclude(job, trial, &acted))
}

/// The daemon on the gateway, told the link's rate.
fn start<'t>(
    path: DataPath,
    site: &Site,
    outlast: &'t Path,
    directory: &Path,
) -> Result<Daemon<'t>, TrialError> {
    let config = directory.join("gateway.toml");
    let text = format!("rate = \"{RATE_MBIT_PER_S} Mbit/s\"\n");
    std::fs::write(&config, text).map_err(TrialError::io("write the configuration"))?;
    let config = config.to_string_lossy().into_owned();
    let arguments = ["--config", &config, "--data-path", path.name()];
    Daemon::start(
        &site.gateway,
        outlast,
        directory.join("control"),
        &arguments,
    )
}

fn act(
    trial: &HerdTrial,
    site: &Site,
    daemon: Option<&Daemon<'_>>,
    cancel: &Cancel,
) -> Result<Acted, TrialError> {
    let talk = trial.talk();
    let crowd = Crowd::open(site, &talk).map_err(TrialError::io("open the connections"))?;
    let begin = clock::now();
    let end = begin + trial.deadline();
    std::thread::scope(|scope| {
        let talking = scope.spawn(|| crowd.talk(&talk, begin, end, cancel));
        pause_until(cancel, begin + BEFORE)?;
        let cut = site.cut(Cut::Carrier)?;
        pause_until(cancel, cut + trial.outage)?;
        let noticed = daemon.map(Daemon::status).transpose()?;
        let up = site.mend()?;
        let heard = talking
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        let (heard, overslept) = heard.map_err(TrialError::io("talk on the connections"))?;
        if cancel.is_cancelled() {
            return Err(LabError::Cancelled.into());
        }
        let since = site.air.since();
        let since = since.map_err(|error| TrialError::Site(LabError::Emulator(error)))?;
        let injected = daemon.map(Daemon::status).transpose()?;
        Ok(Acted {
            begin,
            cut,
            up,
            since,
            heard,
            overslept,
            noticed,
            injected: injected.map_or(0, |word| word.injected),
        })
    })
}

fn conclude(job: &Job, trial: &HerdTrial, acted: &Acted) -> Ran {
    let herd = Herd::of(trial, acted);
    let is_whole = herd.complete == herd.connections;
    let doubts = trial.daemon.and_then(|_| acted.is_too_busy(&herd));
    let last_read = acted.heard.iter().filter_map(|h| h.reads.last());
    let last_read = last_read.map(|&(at, _)| at).max().unwrap_or(acted.up);
    let result = RunResult {
        completed: is_whole,
        intact: Some(is_whole && herd.damaged == 0),
        elapsed_s: last_read.since(acted.begin).as_secs_f64(),
        outages: vec![OutageResult {
            start_s: acted.cut.since(acted.begin).as_secs_f64(),
            length_s: Some(acted.up.since(acted.cut).as_secs_f64()),
            resume_s: herd.last_s,
            half_second_s: None,
            first_five_seconds_share: None,
        }],
        injected_packets: acted.injected,
        ..job.live_result(Congestion::Cubic.name())
    };
    let sign = acted.since.heard_by_gateway;
    let sign = sign.first_sign(Cut::Carrier, IpVersion::V4);
    let observed = Observed {
        first_sign_s: sign.map(|sign| sign.since(acted.up).as_secs_f64()),
        noticed: acted.noticed.clone(),
        neighbour_timing: Vec::new(),
        datagram_age_s: None,
        marked_acks: None,
        herd: Some(herd),
        siege: None,
    };
    Ran {
        warnings: doubts.into_iter().collect(),
        worst_delay: acted.since.worst_delay,
        ..Ran::new(result).observing(&observed)
    }
}

impl Herd {
    fn of(trial: &HerdTrial, acted: &Acted) -> Self {
        let Acted {
            begin,
            up,
            heard,
            since,
            ..
        } = acted;
        let firsts = heard.iter().map(|h| h.first_since(*up));
        let mut times: Vec<Option<Instant>> = firsts.collect();
        // Those that never went on come last.
        times.sort_by_key(|time| time.unwrap_or(Instant::FAR_FUTURE));
        let after = |share: f64| {
            let place = (times.len() as f64 * share).ceil() as usize;
            let time = times
                .get(place.clamp(1, times.len()) - 1)
                .copied()
                .flatten();
            time.map(|at| at.since(*up).as_secs_f64())
        };
        let resumed = times.iter().filter(|time| time.is_some()).count();
        let last = times.last().copied().flatten();
        let talk = trial.talk();
        let said_by = |then: Instant| talk.due(then.since(*begin));
        let read = |then| heard.iter().map(|h| h.bytes_by(then) as u64).sum::<u64>();
        let on_link = (MESSAGE + HEADERS) as u64;
        let owed = (said_by(*up) * MESSAGE as u64).saturating_sub(read(*up));
        let added = last.map_or(0, |last| said_by(last) - said_by(*up));
        let burst = last.map(|last| last.since(*up));
        let gained = |h: &Heard, last| (h.bytes_by(last) - h.bytes_by(*up)) as f64;
        Self {
            connections: heard.len(),
            resumed,
            complete: heard.iter().filter(|h| h.is_complete).count(),
            damaged: heard.iter().filter(|h| h.is_damaged).count(),
            median_s: after(0.5),
            centile_99_s: after(0.99),
            last_s: after(1.0),
            owed_bytes: owed * on_link / MESSAGE as u64,
            added_bytes: added * on_link,
            offered: windows(until(&since.offered, burst)),
            dropped: until(&since.dropped, burst).iter().sum(),
            fairness: last.map(|last| jain(heard.iter().map(|h| gained(h, last)))),
        }
    }

    /// When the last connection is to have gone on at the latest, from the first sign of life on: once
    /// the link has carried what was owed and what was added, and a round trip and 50 ms later.
    #[must_use]
    pub fn fair_share_s(&self) -> f64 {
        let bits = (self.owed_bytes + self.added_bytes) as f64 * 8.0;
        bits / (f64::from(RATE_MBIT_PER_S) * 1e6) + 2.0 * DELAY.as_secs_f64() + 0.050
    }

    /// The most that was offered in one of the windows, as a share of what the link carries in it.
    #[must_use]
    pub fn busiest(&self) -> f64 {
        let carried = f64::from(RATE_MBIT_PER_S) * 1e6 / 8.0 * SHOWN_WINDOW.as_secs_f64();
        let most = self.offered.iter().copied().max().unwrap_or(0);
        most as f64 / carried
    }
}

/// What the link has counted until the end of the burst; all of it if that did not end.
fn until(counted: &[u64], burst: Option<Duration>) -> &[u64] {
    let count = burst.map_or(usize::MAX, |burst| {
        let whole = burst.as_nanos().div_ceil(SHOWN_WINDOW.as_nanos());
        let each = SHOWN_WINDOW.as_nanos() / WINDOW.as_nanos();
        usize::try_from(whole * each).unwrap_or(usize::MAX)
    });
    &counted[..counted.len().min(count)]
}

/// What the link counts in short windows, in longer ones.
fn windows(offered: &[u64]) -> Vec<u64> {
    let each = SHOWN_WINDOW.as_nanos() / WINDOW.as_nanos();
    let each = usize::try_from(each).expect("a few");
    offered.chunks(each).map(|some| some.iter().sum()).collect()
}

/// Jain's index of fairness: the square of the sum over the number times the sum of squares.
fn jain(shares: impl Iterator<Item = f64>) -> f64 {
    let (mut number, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for share in shares {
        number += 1.0;
        sum += share;
        squares += share * share;
    }
    if squares == 0.0 {
        0.0
    } else {
        sum * sum / (number * squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_index_is_one_if_all_have_the_same_and_one_over_the_number_if_one_has_all() {
        assert!((jain([2.0; 4].into_iter()) - 1.0).abs() < 1e-12);
        assert!((jain([8.0, 0.0, 0.0, 0.0].into_iter()) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_fair_share_is_the_links_time_for_all_of_it() {
        let herd = Herd {
            owed_bytes: 1_000_000,
            added_bytes: 250_000,
            offered: vec![125_000, 250_000, 0],
            ..Herd::default()
        };
        assert!((herd.fair_share_s() - 1.09).abs() < 1e-9);
        assert!((herd.busiest() - 2.0).abs() < 1e-9);
        assert_eq!(windows(&[1; 25]), [10, 10, 5]);
    }
}
