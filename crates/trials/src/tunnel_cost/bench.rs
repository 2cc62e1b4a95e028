//! What goes through each way, in turns, and how long it takes.

use super::place::{Tunnels, Way};
use crate::gateway_matrix::trial::TrialError;
use crate::streams::{Carried, Streams};
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_scenario::result::RunResult;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::net::UdpSocket;
use std::path::Path;
use std::thread;

/// Bytes of a turn over TCP in super-segments.
pub(super) const SUPER_SEGMENTS_IN_TURN: usize = 8 << 20;
/// Bytes of a turn over TCP in packets of the link's size.
pub(super) const PACKETS_IN_TURN: usize = 2 << 20;
/// Round trips of a turn.
pub(super) const ROUND_TRIPS_IN_TURN: usize = 50;
/// Payload of a datagram that goes there and back, in bytes.
pub(super) const SMALL: usize = 64;

/// What is measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Load {
    /// TCP, in super-segments (GSO).
    SuperSegments,
    /// TCP, in packets of the link's size.
    Packets,
    /// Datagrams of 64 bytes, there and back, one after another.
    RoundTrips,
}

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TunnelBench {
    /// What is measured.
    pub load: Load,
    /// Times that the connections are made anew.
    pub rounds: u32,
    /// How often each way has its turn in a round.
    pub turns: u32,
}

/// What came of it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// Payload bits in a second of each round, or the median round trip of each round in seconds.
    pub rounds: Vec<BTreeMap<Way, f64>>,
    /// The tunnel of the kernel's.
    pub kernel_tunnel: Option<String>,
    /// Why there is none.
    pub lacking: Option<String>,
    /// Why there is no tunnel in UDP.
    #[serde(default)]
    pub untranslated: Option<String>,
    /// The kernel's release.
    pub kernel: String,
    /// Processors that there are.
    pub processors: usize,
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "let traffic through tunnels",
        source,
    }
}

/// Carries the bench of `job` out with the roles of the program `outlast`.
///
/// # Errors
/// When the place cannot be made, a role does not start, or nothing comes through.
pub fn carry_out(
    job: &Job,
    bench: &TunnelBench,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let began = clock::now();
    let tunnels = Tunnels::start(bench.load, outlast, cancel)?;
    let (kernel_tunnel, lacking) = match &tunnels.kernel {
        Ok(name) => (Some((*name).to_owned()), None),
        Err(why) => (None, Some(why.clone())),
    };
    let mut observed = Observed {
        rounds: Vec::new(),
        kernel_tunnel,
        lacking,
        untranslated: tunnels.untranslated.clone(),
        kernel: outlast_linux::kernel_release(),
        processors: thread::available_parallelism().map_err(io_error)?.get(),
    };
    for round in 0..bench.rounds {
        let mut ways = tunnels.ways();
        let by = round as usize % ways.len();
        ways.rotate_left(by);
        let measured = match bench.load {
            Load::RoundTrips => round_trips(&tunnels, &ways, bench, cancel)?,
            Load::SuperSegments => {
                throughput(&tunnels, &ways, SUPER_SEGMENTS_IN_TURN, bench, cancel)?
            }
            Load::Packets => throughput(&tunnels, &ways, PACKETS_IN_TURN, bench, cancel)?,
        };
        observed.rounds.push(measured);
    }
    let result = RunResult {
        completed: true,
        elapsed_s: clock::now().since(began).as_secs_f64(),
        ..job.live_result("cubic")
    };
    Ok(Ran::new(result).observing(&observed))
}

fn heed(cancel: &Cancel) -> Result<(), TrialError> {
    match cancel.is_cancelled() {
        true => Err(LabError::Cancelled.into()),
        false => Ok(()),
    }
}

/// Payload bits in a second, after a turn that does not count.
fn throughput(
    tunnels: &Tunnels<'_>,
    ways: &[Way],
    length: usize,
    bench: &TunnelBench,
    cancel: &Cancel,
) -> Result<BTreeMap<Way, f64>, TrialError> {
    let connections = ways.iter().map(|way| tunnels.connect(*way));
    let connections: Vec<_> = connections.collect::<Result<_, _>>()?;
    let mut streams = Streams::over(connections, length).map_err(io_error)?;
    let mut carried = vec![Carried::default(); ways.len()];
    for turn in 0..=bench.turns {
        for (index, carried) in carried.iter_mut().enumerate() {
            heed(cancel)?;
            let way = ways[index];
            let one = streams.turn(index).map_err(|source| TrialError::Program {
                what: "a way carries nothing",
                said: format!("{}: {source}", way.title()),
            })?;
            if turn > 0 {
                carried.add(one);
            }
        }
    }
    let per_s = |(way, carried): (&Way, Carried)| Ok((*way, carried.per_s().map_err(io_error)?));
    ways.iter().zip(carried).map(per_s).collect()
}

/// Medians of round trips in seconds.
fn round_trips(
    tunnels: &Tunnels<'_>,
    ways: &[Way],
    bench: &TunnelBench,
    cancel: &Cancel,
) -> Result<BTreeMap<Way, f64>, TrialError> {
    let mut sockets = Vec::new();
    for way in ways {
        let [fixed, mobile] = tunnels.datagrams(*way)?;
        let echo = thread::Builder::new().spawn(move || echo(&mobile));
        echo.map_err(io_error)?;
        sockets.push(fixed);
    }
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); ways.len()];
    for turn in 0..=bench.turns {
        for (socket, times) in sockets.iter().zip(&mut times) {
            heed(cancel)?;
            for _ in 0..ROUND_TRIPS_IN_TURN {
                let time = round_trip(socket).map_err(io_error)?;
                if turn > 0 {
                    times.push(time);
                }
            }
        }
    }
    for socket in &sockets {
        // An empty datagram ends the echo.
        socket.send(&[]).map_err(io_error)?;
    }
    let median = |(way, mut times): (&Way, Vec<Duration>)| {
        times.sort();
        let middle = times.get(times.len() / 2).copied().unwrap_or_default();
        (*way, middle.as_secs_f64())
    };
    Ok(ways.iter().zip(times).map(median).collect())
}

fn round_trip(socket: &UdpSocket) -> io::Result<Duration> {
    let mut answer = [0; SMALL];
    let began = clock::now();
    socket.send(&[7; SMALL])?;
    socket.recv(&mut answer)?;
    Ok(clock::now().since(began))
}

/// Answers each datagram until an empty one comes, or none for long.
fn echo(socket: &UdpSocket) {
    let mut buffer = [0; SMALL];
    while let Ok(length @ 1..) = socket.recv(&mut buffer) {
        if socket.send(&buffer[..length]).is_err() {
            return;
        }
    }
}
