//! One run: two ends of a conversation on threads, gateways as they are installed, and one outage.

use super::aioquic;
use super::arrivals::{Arrival, Outage, Seen};
use super::cells::{Cell, Stranger};
use super::dns;
use super::losses::Losses;
use super::machine::{Machine, Running, bind};
use super::stream::{self, Dress};
use super::{quic, sctp, wireguard};
use crate::gateway_matrix::daemon::{Daemon, Duty};
use crate::gateway_matrix::trial::{TOLERABLE_DELAY, TrialError, pause_until};
use crate::gateway_matrix::vigil::Vigil;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_experiments::moments::Moments;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_scenario::result::{OutageResult, RunResult};
use outlast_scenario::{Direction, IpVersion};
use outlast_testbed::site::{Cut, LINK, Neighbours, Place, Since, Site, SiteConfig};
use serde::{Deserialize, Serialize};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use tempfile::TempDir;

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct StrangerTrial {
    /// What is cut off, for how long, and what stands beside it.
    pub cell: Cell,
}

/// What a run shows; in the record beside the result.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// What the arrivals say.
    pub seen: Seen,
    /// From link-up until the first frame came out of the link at the end where the data, or the question, comes
    /// from: before that nobody can know that packets get through.
    pub first_sign_s: Option<f64>,
    /// Why the conversation ended early; `None` if it did not.
    pub ended: Option<String>,
    /// Packets that the gateways have taken instead of letting them be lost.
    pub taken: u64,
    /// Packets that the gateways have sent.
    pub injected: u64,
    /// Packets that a sender which counts took for lost.
    pub lost: Option<u64>,
    /// The sender's congestion window at the end, in bytes, where it has one.
    pub window: Option<u64>,
}

/// Rate of the link each way.
pub const RATE_MBIT_PER_S: u32 = 10;
/// One-way delay.
pub const DELAY: Duration = Duration::from_millis(20);
/// Frames that may wait.
pub const QUEUE: u32 = 75;
/// From the first packet to the outage.
pub const WARM_UP: Duration = Duration::from_millis(2_500);
/// What is seen of the time after link-up: the first five seconds, or a sender that has backed off for the
/// outage.
const AFTER: Duration = Duration::from_millis(5_500);

/// About what making the place and starting the daemons takes.
const SET_UP: Duration = Duration::from_secs(2);
/// About what ending everything takes.
const TAKE_DOWN: Duration = Duration::from_millis(500);
/// Before link-up and after it, others do no work.
const QUIET: [Duration; 2] = [Duration::from_millis(100), super::arrivals::SETTLING];

const QUIC_PORT: u16 = 443;
const DNS_PORT: u16 = 53;
const ESP_PORT: u16 = 4_500;
const RTP_PORT: u16 = 5_004;
/// Of whoever is asked by nobody.
const ANY_PORT: u16 = 40_000;

impl Observed {
    /// From the first possible moment until the application was given something new.
    #[must_use]
    pub fn resumed_after_s(&self) -> Option<f64> {
        let resume = self.seen.resume_s?;
        let sign = self.first_sign_s.filter(|sign| *sign <= resume);
        Some(resume - sign.unwrap_or(0.0))
    }
}

impl StrangerTrial {
    /// From the first packet to the end.
    #[must_use]
    pub fn length(&self) -> Duration {
        WARM_UP + self.cell.outage + AFTER.max(self.cell.outage)
    }

    /// About how long it takes, all in all.
    #[must_use]
    pub fn expected(&self) -> Duration {
        SET_UP + self.length() + TAKE_DOWN
    }
}

/// Carries the trial of `job` out, with the daemons of the program `outlast`, among others that share
/// the `moments`.
///
/// # Errors
/// When the place cannot be made, or something does not start.
pub fn carry_out(
    job: &Job,
    trial: &StrangerTrial,
    outlast: &Path,
    moments: &Moments,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let cell = trial.cell;
    let work = moments.work(SET_UP, cancel)?;
    let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
    let site = Site::new(&config(&cell))?;
    let daemons = start_daemons(&cell, &site, outlast, directory.path())?;
    let programs = prepare_programs(cell.stranger, &site, directory.path())?;
    drop(work);

    let booked = crate::moments::book(moments, (WARM_UP, cell.outage), QUIET, cancel)?;
    let began = clock::now();
    let talk = Conversation::begin(cell.stranger, programs, &site, began)?;
    pause_until(cancel, began + WARM_UP)?;
    let down = site.cut(Cut::Carrier)?;
    pause_until(cancel, down + cell.outage)?;
    let vigil = Vigil::begin()?;
    let up = site.mend()?;
    pause_until(cancel, up + QUIET[1])?;
    let late = vigil.end()?;
    let worst_delay = late.max(air(&site)?.worst_delay);
    drop(booked);
    pause_until(cancel, began + trial.length())?;
    let talked = talk
        .end()
        .map_err(TrialError::io("carry the conversation"))?;

    let _work = moments.work(TAKE_DOWN, cancel)?;
    let outage = Outage { down, up };
    let mut observed = Observed {
        first_sign_s: first_sign_s(&air(&site)?, &cell, up),
        seen: Seen::of(&talked.arrivals, outage),
        ended: talked.ended.clone(),
        lost: talked.losses.map(|losses| losses.packets),
        window: talked.losses.and_then(|losses| losses.window),
        ..Observed::default()
    };
    for daemon in &daemons {
        let noticed = daemon.status()?;
        observed.taken += noticed.taken;
        observed.injected += noticed.injected;
    }
    if !talked.arrivals.iter().any(|arrival| arrival.at < down) {
        return Err(TrialError::NotBegun {
            said: talked.ended.unwrap_or_default(),
        });
    }
    let result = result(job, began, outage, &talked, &observed);
    let misses = !super::has_kept_limit(&cell, &observed);
    let doubtful = worst_delay > TOLERABLE_DELAY && misses;
    let too_late = doubtful.then(|| {
        let millis = worst_delay.as_millis();
        format!("this machine is busy: it was late by up to {millis} ms after the link was back")
    });
    Ok(Ran {
        warnings: too_late.into_iter().collect(),
        worst_delay,
        ..Ran::new(result).observing(&observed)
    })
}

/// The programs of a conversation that this process does not hold itself.
fn prepare_programs(
    stranger: Stranger,
    site: &Site,
    directory: &Path,
) -> Result<Option<aioquic::Programs>, TrialError> {
    if stranger != Stranger::Aioquic {
        return Ok(None);
    }
    let hosts = [&site.fixed, &site.mobile];
    let server = at(Place::Fixed, QUIC_PORT);
    aioquic::Programs::prepare(hosts, server, directory).map(Some)
}

fn config(cell: &Cell) -> SiteConfig<'static> {
    SiteConfig {
        rate: rate(),
        delay: DELAY,
        queue: QUEUE as usize,
        congestion: "cubic",
        sack: true,
        neighbours: match cell.is_introduced {
            true => Neighbours::Known,
            false => Neighbours::AsUsual,
        },
    }
}

/// The link's rate.
pub(super) fn rate() -> BitRate {
    BitRate::from_bits_per_second(u64::from(RATE_MBIT_PER_S) * 1_000_000)
        .expect("a constant above zero")
}

fn start_daemons<'t>(
    cell: &Cell,
    site: &Site,
    outlast: &'t Path,
    directory: &Path,
) -> Result<Vec<Daemon<'t>>, TrialError> {
    let direction = cell.stranger.direction();
    let ends = [
        (false, &site.gateway, "gateway"),
        (true, &site.mobile, "mobile"),
    ];
    let those = ends
        .into_iter()
        .filter(|(at_mobile, ..)| cell.placement.has(*at_mobile, direction));
    let start = |(_, place, name): (bool, &Namespace, &str)| {
        let arguments = ["--data-path", cell.path.name()];
        let control = directory.join(name);
        Daemon::start_on(LINK, Duty::Hold, place, outlast, control, &arguments)
    };
    those.map(start).collect()
}

fn air(site: &Site) -> Result<Since, TrialError> {
    let since = site.air.since();
    since.map_err(|error| TrialError::Site(LabError::Emulator(error)))
}

/// See [`Observed::first_sign_s`].
fn first_sign_s(since: &Since, cell: &Cell, up: Instant) -> Option<f64> {
    let heard = match cell.stranger.direction() {
        Direction::Download => since.heard_by_gateway,
        Direction::Upload => since.heard_by_mobile,
    };
    let sign = heard.first_sign(Cut::Carrier, IpVersion::V4)?;
    Some(sign.since(up).as_secs_f64())
}

fn result(
    job: &Job,
    began: Instant,
    outage: Outage,
    talked: &Talked,
    observed: &Observed,
) -> RunResult {
    let share = job.scenario.workload.transfer().0.map(|_| {
        let time = super::arrivals::FIRST_SECONDS.saturating_sub(DELAY);
        let carried = rate().bytes_in(time).as_u64();
        observed.seen.five_seconds_bytes as f64 / carried as f64
    });
    RunResult {
        completed: talked.ended.is_none(),
        intact: Some(talked.is_intact),
        error: talked.ended.clone(),
        elapsed_s: clock::now().since(began).as_secs_f64(),
        injected_packets: observed.injected,
        outages: vec![OutageResult {
            start_s: outage.down.since(began).as_secs_f64(),
            length_s: Some(outage.up.since(outage.down).as_secs_f64()),
            resume_s: observed.seen.resume_s,
            half_second_s: None,
            first_five_seconds_share: share,
        }],
        ..job.live_result("none")
    }
}

/// Both ends, running.
enum Conversation {
    Quic {
        sender: Running<quic::Peer>,
        receiver: Running<quic::Peer>,
    },
    Programs(aioquic::Programs),
    WireGuard {
        sender: Running<wireguard::Peer>,
        receiver: Running<wireguard::Peer>,
    },
    Sctp {
        sender: Running<sctp::Peer>,
        receiver: Running<sctp::Peer>,
    },
    Stream {
        sender: Running<stream::Sender>,
        receiver: Running<stream::Receiver>,
    },
    Dns {
        resolver: Running<dns::Resolver>,
        server: Running<dns::Server>,
    },
}

/// What came of a conversation.
struct Talked {
    arrivals: Vec<Arrival>,
    ended: Option<String>,
    is_intact: bool,
    losses: Option<Losses>,
}

impl Conversation {
    fn begin(
        stranger: Stranger,
        programs: Option<aioquic::Programs>,
        site: &Site,
        now: Instant,
    ) -> Result<Self, TrialError> {
        if let Some(mut programs) = programs {
            programs.begin()?;
            return Ok(Self::Programs(programs));
        }
        let fixed = |port| at(Place::Fixed, port);
        let mobile = |port| at(Place::Mobile, port);
        Ok(match stranger {
            Stranger::Quic | Stranger::Aioquic => {
                let pair = quic::Pair::new(now, fixed(QUIC_PORT), true);
                let pair = pair.map_err(|error| refusal("QUIC does not start", &*error))?;
                Self::Quic {
                    sender: start(&site.fixed, fixed(QUIC_PORT), pair.server)?,
                    receiver: start(&site.mobile, mobile(ANY_PORT), pair.client)?,
                }
            }
            Stranger::WireGuard => {
                let (server, client) = (fixed(wireguard::PORT), mobile(wireguard::PORT));
                Self::WireGuard {
                    sender: start(&site.fixed, server, wireguard::Peer::server(now, client))?,
                    receiver: start(&site.mobile, client, wireguard::Peer::client(now, server))?,
                }
            }
            Stranger::Sctp => {
                let server = fixed(sctp::PORT);
                let client = sctp::Peer::client(now, server);
                let client = client.map_err(|error| refusal("SCTP does not start", &error))?;
                Self::Sctp {
                    sender: start(&site.fixed, server, sctp::Peer::server(now))?,
                    receiver: start(&site.mobile, mobile(sctp::PORT), client)?,
                }
            }
            Stranger::Esp | Stranger::Rtp => {
                let (dress, port, every, length) = match stranger {
                    Stranger::Esp => (Dress::Esp, ESP_PORT, Duration::from_millis(10), 1_000),
                    _ => (Dress::Rtp, RTP_PORT, Duration::from_millis(20), 172),
                };
                let sender = stream::Sender::new(dress, mobile(port), every, length, now);
                Self::Stream {
                    receiver: start(&site.mobile, mobile(port), stream::Receiver::default())?,
                    sender: start(&site.fixed, fixed(port), sender)?,
                }
            }
            Stranger::Dns => {
                let resolver = dns::Resolver::new(fixed(DNS_PORT), now);
                Self::Dns {
                    server: start(&site.fixed, fixed(DNS_PORT), dns::Server::default())?,
                    resolver: start(&site.mobile, mobile(ANY_PORT), resolver)?,
                }
            }
        })
    }

    fn end(self) -> io::Result<Talked> {
        let plain = |arrivals| Talked {
            arrivals,
            ended: None,
            is_intact: true,
            losses: None,
        };
        Ok(match self {
            Self::Quic { sender, receiver } => {
                let (sender, receiver) = (sender.stop()?, receiver.stop()?);
                Talked {
                    ended: receiver.ended.clone().or_else(|| sender.ended.clone()),
                    is_intact: receiver.is_intact,
                    losses: Some(sender.losses()),
                    arrivals: receiver.arrivals,
                }
            }
            Self::Programs(programs) => {
                let read = programs.end()?;
                Talked {
                    arrivals: read.arrivals,
                    // Other bytes than were sent end it.
                    is_intact: read.ended.is_none(),
                    ended: read.ended,
                    losses: None,
                }
            }
            Self::WireGuard { sender, receiver } => {
                let (sender, receiver) = (sender.stop()?, receiver.stop()?);
                Talked {
                    ended: receiver.ended.clone().or_else(|| sender.ended.clone()),
                    // A connection whose data were not what was sent would have failed.
                    is_intact: true,
                    losses: Some(sender.losses()),
                    arrivals: receiver.arrivals,
                }
            }
            Self::Sctp { sender, receiver } => {
                let (sender, receiver) = (sender.stop()?, receiver.stop()?);
                Talked {
                    ended: receiver.ended.clone().or(sender.ended),
                    is_intact: receiver.is_intact,
                    losses: None,
                    arrivals: receiver.arrivals,
                }
            }
            Self::Stream { sender, receiver } => {
                sender.stop()?;
                plain(receiver.stop()?.arrivals)
            }
            Self::Dns { resolver, server } => {
                server.stop()?;
                plain(resolver.stop()?.arrivals)
            }
        })
    }
}

fn at(place: Place, port: u16) -> SocketAddr {
    SocketAddr::new(place.address(IpVersion::V4), port)
}

fn start<M: Machine + Send + 'static>(
    place: &Namespace,
    at: SocketAddr,
    machine: M,
) -> Result<Running<M>, TrialError> {
    let socket = bind(place, at).map_err(TrialError::io("open a socket"))?;
    Running::start(machine, socket).map_err(TrialError::io("start a thread"))
}

fn refusal(what: &'static str, error: &dyn std::error::Error) -> TrialError {
    TrialError::Program {
        what,
        said: error.to_string(),
    }
}
