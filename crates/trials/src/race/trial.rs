//! One run of the race: one transfer, one outage, one contestant.

use super::cells::{Cell, Contestant};
use crate::gateway_matrix::daemon::{Daemon, Duty};
use crate::gateway_matrix::payload::payload;
use crate::gateway_matrix::trial::{TOLERABLE_DELAY, TrialError, pause_until};
use crate::gateway_matrix::vigil::Vigil;
use crate::role;
use crate::strangers::arrivals::{Arrival, FIRST_SECONDS, Outage, SETTLING, Seen};
use crate::strangers::machine::{Running, bind};
use crate::strangers::quic;
use crate::transfer::{Transfer, Transport};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_experiments::moments::Moments;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::process::ContainedProcess;
use outlast_linux::sysctl;
use outlast_scenario::result::{OutageResult, RunResult};
use outlast_scenario::{Congestion, Direction, IpVersion};
use outlast_testbed::site::{LINK, Neighbours, Place, Site, SiteConfig};
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RaceTrial {
    /// The transfer and its outage.
    pub cell: Cell,
    /// What is to help.
    pub contestant: Contestant,
}

/// What a run shows; in the record beside the result.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// What the arrivals say.
    pub seen: Seen,
    /// From link-up until the receiver had all of the transfer; `None` if it never had.
    pub done_s: Option<f64>,
    /// IP packets sent into the outage by hosts and gateways; none where the kernel knows that the link is away.
    pub sent_while_away: u64,
    /// Why the connection ended early; `None` if it did not.
    pub ended: Option<String>,
}

/// Rate of the link each way.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Frames that may wait.
pub const QUEUE: u32 = 75;
/// From the connection to the outage.
pub const WARM_UP: Duration = Duration::from_millis(2_500);
/// What is transferred: about five seconds of the link, half of them after the outage.
pub const BYTES: u64 = 6_000_000;

/// Seen of the time after link-up at least.
const AFTER: Duration = Duration::from_secs(8);
const SET_UP: Duration = Duration::from_secs(2);
const TAKE_DOWN: Duration = Duration::from_millis(500);
/// Before link-up and after it, others do no work.
const QUIET: [Duration; 2] = [Duration::from_millis(100), SETTLING];
const QUIC_PORT: u16 = 443;
const ANY_PORT: u16 = 40_000;
/// Of the kernel's settings for [`Contestant::ShortTimeout`].
const SHORT_TIMEOUT: [(&str, &str); 2] = [
    ("net.ipv4.tcp_rto_max_ms", "1000"),
    ("net.ipv4.tcp_retries2", "200"),
];

impl RaceTrial {
    /// From the connection to the end: whoever has backed off for the outage has that long again.
    #[must_use]
    pub fn length(&self) -> Duration {
        WARM_UP + self.cell.outage + AFTER + self.cell.outage
    }

    /// About how long it takes, all in all.
    #[must_use]
    pub fn expected(&self) -> Duration {
        SET_UP + self.length() + TAKE_DOWN
    }
}

/// Carries the trial of `job` out with the program `outlast`, among others that share the `moments`.
///
/// # Errors
/// When the place cannot be made, or something does not start.
pub fn carry_out(
    job: &Job,
    trial: &RaceTrial,
    outlast: &Path,
    moments: &Moments,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let cell = trial.cell;
    let work = moments.work(SET_UP, cancel)?;
    let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
    let site = Site::new(&config(&cell))?;
    let _helpers = Helpers::start(trial.contestant, &site, outlast, directory.path(), cancel)?;
    let sent = payload(job.scenario.run.seed, BYTES);
    drop(work);

    let booked = crate::moments::book(moments, (WARM_UP, cell.outage), QUIET, cancel)?;
    let began = clock::now();
    let runner = Runner::begin(trial, &site, sent, began)?;
    pause_until(cancel, began + WARM_UP)?;
    let down = site.cut(cell.cut)?;
    pause_until(cancel, down + cell.outage)?;
    let vigil = Vigil::begin()?;
    let up = site.mend()?;
    if let Contestant::Calling(call) = trial.contestant {
        call.make(&site)?;
    }
    pause_until(cancel, up + QUIET[1])?;
    let late = vigil.end()?;
    drop(booked);
    let ran = runner.end(began + trial.length(), cancel)?;

    let _work = moments.work(TAKE_DOWN, cancel)?;
    let since = site.air.since();
    let since = since.map_err(|error| TrialError::Site(LabError::Emulator(error)))?;
    let outage = Outage { down, up };
    let observed = Observed {
        seen: Seen::of(&ran.arrivals, outage),
        done_s: ran.done().map(|at| at.since(up).as_secs_f64()),
        sent_while_away: since.sent_while_away,
        ended: ran.ended.clone(),
    };
    if !ran.arrivals.iter().any(|arrival| arrival.at < down) {
        return Err(TrialError::NotBegun {
            said: ran.ended.unwrap_or_default(),
        });
    }
    let worst_delay = late.max(since.worst_delay);
    let is_late = observed
        .seen
        .resume_s
        .is_none_or(|time| time > super::LIMIT_S);
    let is_doubtful = worst_delay > TOLERABLE_DELAY && is_late && trial.contestant.is_judged();
    let too_late = is_doubtful.then(|| {
        let millis = worst_delay.as_millis();
        format!("this machine is busy: it was late by up to {millis} ms after the link was back")
    });
    Ok(Ran {
        warnings: too_late.into_iter().collect(),
        worst_delay,
        ..Ran::new(ran.result(job, began, outage, &observed)).observing(&observed)
    })
}

fn config(cell: &Cell) -> SiteConfig<'static> {
    SiteConfig {
        rate: rate(),
        delay: DELAY,
        queue: QUEUE as usize,
        congestion: cell.congestion.name(),
        sack: cell.sack,
        neighbours: Neighbours::AsUsual,
    }
}

fn rate() -> BitRate {
    BitRate::from_bits_per_second(u64::from(RATE_MBIT_PER_S) * 1_000_000)
        .expect("a constant above zero")
}

/// Everything beside the hosts' transports. It ends when this is dropped.
struct Helpers<'t> {
    _gateways: Vec<Daemon<'t>>,
    _agents: Vec<ContainedProcess>,
}

impl<'t> Helpers<'t> {
    fn start(
        contestant: Contestant,
        site: &Site,
        outlast: &'t Path,
        directory: &Path,
        cancel: &Cancel,
    ) -> Result<Self, TrialError> {
        let router = ("router", &site.gateway);
        let mobile = ("mobile", &site.mobile);
        let fixed = ("fixed", &site.fixed);
        let (mut gateways, mut agents) = (vec![], vec![]);
        match contestant {
            Contestant::Plain
            | Contestant::MultipathTcp
            | Contestant::Quic
            | Contestant::Calling(_) => {}
            Contestant::ShortTimeout => {
                for host in [&site.fixed, &site.mobile] {
                    host.run(set_short_timeout).map_err(LabError::from)??;
                }
            }
            Contestant::HoldAtGateway => gateways.push(router),
            Contestant::HoldAtMobile => gateways.push(mobile),
            Contestant::HoldAtBoth => gateways.extend([router, mobile]),
            Contestant::AgentAtMobile | Contestant::AgentThatWakes => agents.push(mobile),
            Contestant::AgentAtBoth => agents.extend([mobile, fixed]),
        }
        let gateway = |(name, place): (&str, &Namespace)| {
            let control = directory.join(name).with_extension("sock");
            Daemon::start_on(LINK, Duty::Hold, place, outlast, control, &[])
        };
        let keys = match contestant {
            Contestant::AgentThatWakes => "wakes_peers = true\n",
            _ => "",
        };
        let agent = |(name, place): (&str, &Namespace)| {
            let control = directory.join(name).with_extension("sock");
            role::agent(outlast, place, &control, keys, cancel)
        };
        Ok(Self {
            _gateways: gateways
                .into_iter()
                .map(gateway)
                .collect::<Result<_, _>>()?,
            _agents: agents.into_iter().map(agent).collect::<Result<_, _>>()?,
        })
    }
}

fn set_short_timeout() -> Result<(), LabError> {
    for (name, value) in SHORT_TIMEOUT {
        sysctl::write(name, value)?;
    }
    Ok(())
}

/// The transfer, running.
enum Runner {
    Stream(Transfer, blake3::Hash),
    Quic {
        sender: Running<quic::Peer>,
        receiver: Running<quic::Peer>,
    },
}

/// What came of the transfer.
struct Transferred {
    arrivals: Vec<Arrival>,
    ended: Option<String>,
    /// Whether what came is what was sent; of a stream that did not come to its end nobody knows.
    is_intact: Option<bool>,
    congestion: String,
}

impl Runner {
    fn begin(
        trial: &RaceTrial,
        site: &Site,
        sent: Vec<u8>,
        now: Instant,
    ) -> Result<Self, TrialError> {
        let Cell {
            congestion,
            direction,
            ..
        } = trial.cell;
        let transport = match trial.contestant {
            Contestant::Quic => return Self::begin_quic(site, congestion, direction, now),
            Contestant::MultipathTcp => Transport::MultipathTcp,
            _ => Transport::Tcp,
        };
        let hash = blake3::hash(&sent);
        let fixed = (&site.fixed, Place::Fixed.address(IpVersion::V4));
        let how = (transport, congestion);
        let transfer = Transfer::begin(fixed, &site.mobile, direction, how, sent)?;
        Ok(Self::Stream(transfer, hash))
    }

    fn begin_quic(
        site: &Site,
        congestion: Congestion,
        direction: Direction,
        now: Instant,
    ) -> Result<Self, TrialError> {
        let at = |place: Place, port| SocketAddr::new(place.address(IpVersion::V4), port);
        let (server_at, client_at) = (at(Place::Fixed, QUIC_PORT), at(Place::Mobile, ANY_PORT));
        let server_sends = direction == Direction::Download;
        let pair = match congestion {
            Congestion::Bbr => quic::Pair::with_bbr(now, server_at, server_sends),
            _ => quic::Pair::new(now, server_at, server_sends),
        };
        let pair = pair.map_err(|error| TrialError::Program {
            what: "QUIC does not start",
            said: error.to_string(),
        })?;
        let start = |place, at, peer| {
            let socket = bind(place, at).map_err(TrialError::io("open a socket"))?;
            Running::start(peer, socket).map_err(TrialError::io("start a thread"))
        };
        let server = start(&site.fixed, server_at, pair.server)?;
        let client = start(&site.mobile, client_at, pair.client)?;
        let (sender, receiver) = if server_sends {
            (server, client)
        } else {
            (client, server)
        };
        Ok(Self::Quic { sender, receiver })
    }

    /// Ends it at `deadline`, or earlier if all has come.
    fn end(self, deadline: Instant, cancel: &Cancel) -> Result<Transferred, TrialError> {
        match self {
            Self::Stream(transfer, hash) => end_stream(transfer, hash, deadline, cancel),
            Self::Quic { sender, receiver } => {
                pause_until(cancel, deadline)?;
                let stopped = |peer: Running<quic::Peer>| {
                    peer.stop()
                        .map_err(TrialError::io("carry the conversation"))
                };
                let (sender, receiver) = (stopped(sender)?, stopped(receiver)?);
                Ok(Transferred {
                    ended: receiver.ended.clone().or_else(|| sender.ended.clone()),
                    is_intact: Some(receiver.is_intact),
                    arrivals: receiver.arrivals,
                    congestion: "quinn".into(),
                })
            }
        }
    }
}

fn end_stream(
    transfer: Transfer,
    hash: blake3::Hash,
    deadline: Instant,
    cancel: &Cancel,
) -> Result<Transferred, TrialError> {
    let congestion = transfer.congestion.clone();
    let (received, _) = transfer.end(deadline, cancel)?;
    let arrival = |&(at, bytes): &(Instant, usize)| Arrival {
        at,
        sent: None,
        number: None,
        bytes: bytes as u64,
    };
    Ok(Transferred {
        arrivals: received.reads.iter().map(arrival).collect(),
        ended: None,
        is_intact: received.is_complete.then(|| received.hash == Some(hash)),
        congestion,
    })
}

impl Transferred {
    /// When the receiver had all of the transfer.
    fn done(&self) -> Option<Instant> {
        let mut bytes = 0;
        let last = self.arrivals.iter().find(|arrival| {
            bytes += arrival.bytes;
            bytes >= BYTES
        });
        last.map(|arrival| arrival.at)
    }

    fn result(&self, job: &Job, began: Instant, outage: Outage, observed: &Observed) -> RunResult {
        let is_complete = self.done().is_some();
        let last = self.done().unwrap_or_else(clock::now);
        let time = FIRST_SECONDS.saturating_sub(DELAY);
        let carried = rate().bytes_in(time).as_u64();
        // Whoever has all of it is not waited for.
        let rest = BYTES.saturating_sub(self.bytes_before(outage.down));
        let possible = carried.min(rest).max(1);
        RunResult {
            completed: is_complete,
            intact: self.is_intact,
            error: (!is_complete).then(|| match &self.ended {
                Some(why) => why.clone(),
                None => "given up at the deadline".to_owned(),
            }),
            elapsed_s: last.since(began).as_secs_f64(),
            outages: vec![OutageResult {
                start_s: outage.down.since(began).as_secs_f64(),
                length_s: Some(outage.up.since(outage.down).as_secs_f64()),
                resume_s: observed.seen.resume_s,
                half_second_s: None,
                first_five_seconds_share: Some(
                    (observed.seen.five_seconds_bytes as f64 / possible as f64).min(1.0),
                ),
            }],
            ..job.live_result(self.congestion.clone())
        }
    }

    fn bytes_before(&self, then: Instant) -> u64 {
        let before = self.arrivals.iter().filter(|arrival| arrival.at < then);
        before.map(|arrival| arrival.bytes).sum()
    }
}
