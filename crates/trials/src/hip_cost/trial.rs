//! One run: a crowd at one server, the throughput of tunnels side by side, or the time of first connections.

use super::crowd::{Crowd, Times};
use super::pair::{Pair, RIGHT};
use super::server::{OWN_LSI, RIGHT_LSI, Speakers, key, start};
use super::wireguard::WireGuard;
use crate::gateway_matrix::trial::TrialError;
use crate::usage::Program;
use outlast_base::time::Duration;
use outlast_experiments::carry_out::Ran;
use outlast_experiments::job::Job;
use outlast_hip::identity::Algorithm;
use outlast_lab::{Cancel, LabError};
use outlast_linux::{clock, socket};
use outlast_scenario::Congestion::Cubic;
use outlast_scenario::result::RunResult;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::thread;
use tempfile::TempDir;

/// The kinds of identities that are compared.
pub const IDENTITIES: [(Algorithm, &str); 3] = [
    (Algorithm::EcdsaP256, "HIP, ECDSA P-256"),
    (Algorithm::EcdsaP384, "HIP, ECDSA P-384"),
    (Algorithm::Rsa2048, "HIP, RSA 2048"),
];

/// What goes between the hosts without a tunnel, through HIP between tags and between local-scope addresses, and
/// through WireGuard.
pub const PLAIN: &str = "no tunnel";
/// HIP with its preferred suite.
pub const HIP: &str = "HIP";
/// HIP for applications without IPv6.
pub const LOCAL_SCOPE: &str = "HIP, local-scope addresses";
/// WireGuard.
pub const WIREGUARD: &str = "WireGuard (boringtun)";

/// Bytes that are written, and read, at a time.
const CHUNK: usize = 256 << 10;
/// What does not count before each measurement.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long a connection may carry nothing before it is held for broken.
const STALLED: Duration = Duration::from_secs(10);

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CostTrial {
    /// So many hosts at one server.
    Crowd {
        /// How many.
        hosts: usize,
    },
    /// TCP through each tunnel and without one, side by side.
    Tunnels {
        /// How often.
        rounds: usize,
        /// For how long each time.
        window: Duration,
    },
    /// First connections with each identity, and through WireGuard.
    Exchanges {
        /// How often.
        rounds: usize,
    },
}

impl CostTrial {
    /// About how long it takes.
    #[must_use]
    pub fn expected(&self) -> Duration {
        match self {
            Self::Crowd { hosts } => Duration::from_millis(10 * *hosts as u64 + 5_000),
            Self::Tunnels { rounds, window } => (*window + WARM_UP) * 4 * *rounds as u32,
            Self::Exchanges { rounds } => Duration::from_secs(3) * *rounds as u32,
        }
    }
}

/// Times of all hosts, in seconds.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Spread {
    /// For how many it was seen.
    pub count: usize,
    /// The median.
    pub median_s: f64,
    /// The last one.
    pub last_s: f64,
}

impl Spread {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        Self {
            count: times.len(),
            median_s: times.get(times.len() / 2).copied().unwrap_or_default(),
            last_s: times.last().copied().unwrap_or_default(),
        }
    }
}

/// One thing that all hosts of the crowd do.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Step {
    /// What they do.
    pub what: String,
    /// How long it took in all.
    pub elapsed_s: f64,
    /// From the beginning until the exchange or the readdressing was complete at each host.
    pub complete: Spread,
    /// From the beginning until a datagram through the association was answered.
    pub answered: Spread,
    /// Time of a processor that the server's daemon took.
    pub server_s: f64,
    /// The daemon's resident memory afterwards, in bytes.
    pub resident: u64,
}

/// One measurement of throughput.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Sample {
    /// Through what.
    pub way: String,
    /// Payload bits in a second.
    pub bits_per_s: f64,
    /// Time of processors that both tunnel programs took for a gigabyte of payload: at the sender, and at the
    /// receiver.
    pub cpu_s_per_gb: Option<[f64; 2]>,
}

/// A first connection, and the one after it.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct First {
    /// Through what.
    pub way: String,
    /// Until the first TCP connection was there.
    pub first_s: f64,
    /// Until the second one was.
    pub second_s: f64,
}

/// What only this trial shows.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Observed {
    /// The hosts of the crowd.
    pub hosts: usize,
    /// The daemon's resident memory before the first exchange, in bytes.
    pub resident_before: u64,
    /// What the crowd did, in this order.
    pub steps: Vec<Step>,
    /// Throughput, round by round.
    pub samples: Vec<Sample>,
    /// First connections, round by round.
    pub firsts: Vec<First>,
    /// What was not measured, and why.
    pub missing: Vec<(String, String)>,
}

/// Carries the trial of `job` out with the program `outlast`.
///
/// # Errors
/// As [`observe`].
pub fn carry_out(
    job: &Job,
    trial: &CostTrial,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Ran, TrialError> {
    let began = clock::now();
    let observed = observe(trial, outlast, cancel)?;
    let result = RunResult {
        completed: true,
        elapsed_s: clock::now().since(began).as_secs_f64(),
        ..job.live_result(Cubic.name())
    };
    Ok(Ran::new(result).observing(&observed))
}

/// Does what a trial does, with the program `outlast`.
///
/// # Errors
/// When the hosts cannot be made, a program does not start, or nothing comes through.
pub fn observe(trial: &CostTrial, outlast: &Path, cancel: &Cancel) -> Result<Observed, TrialError> {
    let place = Place {
        directory: TempDir::new().map_err(TrialError::io("make a directory"))?,
        outlast,
        cancel,
    };
    match *trial {
        CostTrial::Crowd { hosts } => place.crowd(hosts),
        CostTrial::Tunnels { rounds, window } => place.tunnels(rounds, window),
        CostTrial::Exchanges { rounds } => place.exchanges(rounds),
    }
}

struct Place<'t> {
    directory: TempDir,
    outlast: &'t Path,
    cancel: &'t Cancel,
}

impl Place<'_> {
    fn crowd(&self, hosts: usize) -> Result<Observed, TrialError> {
        let pair = Pair::new()?;
        let here = (self.directory.path(), "server");
        let tag = key(self.outlast, here, Algorithm::EcdsaP256)?;
        let anyone = "admits = \"anyone\"\n";
        let server = start(self.outlast, here, &pair.right, anyone, self.cancel)?;
        let program = server.program;
        let usage = || {
            program
                .usage()
                .map_err(TrialError::io("look at the daemon"))
        };
        let mut crowd = Crowd::new(&pair, (hosts, Algorithm::EcdsaP256), tag)?;
        let mut observed = Observed {
            hosts,
            resident_before: usage()?.resident.0,
            ..Observed::default()
        };
        let cancel = self.cancel;
        type Act<'p> = fn(&mut Crowd<'p>, &Cancel) -> Result<Times, TrialError>;
        let steps: [(&str, Act<'_>); 3] = [
            (JOIN, Crowd::join),
            (MOVE, Crowd::move_all),
            (SERVER, Crowd::move_server),
        ];
        for (what, act) in steps {
            let (before, began) = (usage()?, clock::now());
            let times = act(&mut crowd, cancel)?;
            let (after, ended) = (usage()?, clock::now());
            observed.steps.push(Step {
                what: what.to_owned(),
                elapsed_s: ended.since(began).as_secs_f64(),
                complete: Spread::of(times.complete_s),
                answered: Spread::of(times.answered_s),
                server_s: (after.processor - before.processor).as_secs_f64(),
                resident: after.resident.0,
            });
        }
        Ok(observed)
    }

    fn tunnels(&self, rounds: usize, window: Duration) -> Result<Observed, TrialError> {
        let pair = Pair::new()?;
        let mut observed = Observed::default();
        let (directory, algorithm) = (self.directory.path(), Algorithm::EcdsaP256);
        let hip = Speakers::start(&pair, self.outlast, directory, algorithm, self.cancel)?;
        let wireguard = WireGuard::start(&pair, self.cancel)?;
        let speakers = Some([hip.left.program, hip.right.program]);
        let mut ways: Vec<(&str, Ends, Option<[Program; 2]>)> = vec![
            (PLAIN, Ends::at(RIGHT), None),
            (HIP, Ends::at(hip.tag), speakers),
            (LOCAL_SCOPE, LOCAL_SCOPE_ENDS, speakers),
        ];
        match &wireguard {
            Ok(ends) => ways.push((WIREGUARD, Ends::at(WireGuard::TO), Some(ends.programs()))),
            Err(why) => observed.missing.push((WIREGUARD.to_owned(), why.clone())),
        }
        for _ in 0..rounds {
            for &(way, to, programs) in &ways {
                let usage = || {
                    let all = programs.map(|both| both.map(Program::usage));
                    let Some([left, right]) = all else {
                        return Ok(None);
                    };
                    Ok(Some([left?.processor, right?.processor]))
                };
                let look = || usage().map_err(TrialError::io("look at a tunnel"));
                let before = look()?;
                let carried = carry(&pair, to, window, self.cancel)?;
                let after = look()?;
                let gigabytes = carried.bytes_in_all as f64 / 1e9;
                let cpu_s_per_gb = before.zip(after).map(|([a, b], [c, d])| {
                    [c - a, d - b].map(|used: Duration| used.as_secs_f64() / gigabytes)
                });
                observed.samples.push(Sample {
                    way: way.to_owned(),
                    bits_per_s: carried.bits_per_s,
                    cpu_s_per_gb,
                });
            }
            // For the next round all ways come in another order.
            ways.rotate_left(1);
        }
        Ok(observed)
    }

    fn exchanges(&self, rounds: usize) -> Result<Observed, TrialError> {
        let mut observed = Observed::default();
        for _ in 0..rounds {
            for (algorithm, way) in IDENTITIES {
                let pair = Pair::new()?;
                let directory = TempDir::new().map_err(TrialError::io("make a directory"))?;
                let at = directory.path();
                let hip = Speakers::start(&pair, self.outlast, at, algorithm, self.cancel)?;
                observed.firsts.push(first(&pair, way, hip.tag.into())?);
            }
            let pair = Pair::new()?;
            match WireGuard::start(&pair, self.cancel)? {
                Ok(_ends) => {
                    let to = WireGuard::TO.into();
                    observed.firsts.push(first(&pair, WIREGUARD, to)?);
                }
                Err(why) => observed.missing = vec![(WIREGUARD.to_owned(), why)],
            }
        }
        Ok(observed)
    }
}

/// What the crowd does.
pub const JOIN: &str = "base exchanges";
/// All hosts of the crowd move.
pub const MOVE: &str = "all hosts move";
/// The server moves.
pub const SERVER: &str = "the server moves";

/// Opens two connections, one after the other.
fn first(pair: &Pair, way: &str, to: IpAddr) -> Result<First, TrialError> {
    let (listener, at) = listen(pair, Ends::at(to))?;
    let mut seconds = [0.0; 2];
    for seconds in &mut seconds {
        let connect = || {
            let began = clock::now();
            let stream = TcpStream::connect_timeout(&at, STALLED);
            stream.map(|_| clock::now().since(began))
        };
        let took = pair.left.run(connect).map_err(LabError::from)?;
        *seconds = took
            .map_err(TrialError::io("connect through a tunnel"))?
            .as_secs_f64();
        let accepted = listener.accept();
        accepted.map_err(TrialError::io("accept through a tunnel"))?;
    }
    let [first_s, second_s] = seconds;
    Ok(First {
        way: way.to_owned(),
        first_s,
        second_s,
    })
}

/// What the right host calls itself, and what the left one calls it.
#[derive(Clone, Copy)]
struct Ends {
    right: IpAddr,
    from_left: IpAddr,
}

/// A local-scope address means something on its host only.
const LOCAL_SCOPE_ENDS: Ends = Ends {
    right: IpAddr::V4(OWN_LSI),
    from_left: IpAddr::V4(RIGHT_LSI),
};

impl Ends {
    /// Both use the same address.
    fn at(address: impl Into<IpAddr>) -> Self {
        let right = address.into();
        Self {
            right,
            from_left: right,
        }
    }
}

/// A listener of the right host, and where the left one reaches it.
fn listen(pair: &Pair, ends: Ends) -> Result<(TcpListener, SocketAddr), TrialError> {
    let listen = || {
        let listener = TcpListener::bind((ends.right, 0))?;
        let port = listener.local_addr()?.port();
        Ok((listener, SocketAddr::from((ends.from_left, port))))
    };
    let listening = pair.right.run(listen).map_err(LabError::from)?;
    listening.map_err(TrialError::io("listen behind a tunnel"))
}

/// What a connection has carried.
struct Carried {
    bits_per_s: f64,
    /// With what went before and after the measurement.
    bytes_in_all: u64,
}

/// Sends as much as goes from the left host to the right one.
fn carry(pair: &Pair, to: Ends, window: Duration, cancel: &Cancel) -> Result<Carried, TrialError> {
    let (listener, at) = listen(pair, to)?;
    let connect = || TcpStream::connect_timeout(&at, STALLED);
    let connected = pair.left.run(connect).map_err(LabError::from)?;
    let output = connected.map_err(TrialError::io("connect through a tunnel"))?;
    socket::set_congestion_control(&output, Cubic.name()).map_err(LabError::from)?;
    let (input, _) = listener
        .accept()
        .map_err(TrialError::io("accept through a tunnel"))?;
    let carried = thread::scope(|scope| {
        scope.spawn(|| {
            let chunk = vec![0; CHUNK];
            let mut output = &output;
            // It ends when the reader has seen enough.
            while output.write_all(&chunk).is_ok() {}
        });
        let carried = count(&input, window, cancel);
        // What is written fails from now on. It has failed already if the connection is lost.
        let _ = output.shutdown(std::net::Shutdown::Both);
        let _ = input.shutdown(std::net::Shutdown::Both);
        carried
    });
    carried.map_err(TrialError::io("read through a tunnel"))
}

fn count(mut input: &TcpStream, window: Duration, cancel: &Cancel) -> io::Result<Carried> {
    input.set_read_timeout(Some(STALLED))?;
    let mut chunk = vec![0; CHUNK];
    let begin = clock::now() + WARM_UP;
    let (mut bytes_in_all, mut bytes, mut since) = (0_u64, 0_u64, None);
    loop {
        let length = match input.read(&mut chunk) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read? as u64,
        };
        if length == 0 || cancel.is_cancelled() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes_in_all += length;
        let now = clock::now();
        match since {
            None if now >= begin => since = Some(now),
            None => {}
            Some(since) => {
                bytes += length;
                let time = now.since(since);
                if time >= window {
                    return Ok(Carried {
                        bits_per_s: bytes as f64 * 8.0 / time.as_secs_f64(),
                        bytes_in_all,
                    });
                }
            }
        }
    }
}
