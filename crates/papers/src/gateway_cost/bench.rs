//! Three hosts in a row, as much as goes from the first to the last, and the daemon in the middle
//! or not.

use super::cost::{Cost, Sample, Series};
use crate::carry_out::Ran;
use crate::gateway_matrix::daemon::Daemon;
use crate::gateway_matrix::trial::TrialError;
use crate::job::Job;
use outlast_core::time::Duration;
use outlast_lab::{Cancel, LabError};
use outlast_linux::namespace::{Namespace, NamespaceError};
use outlast_linux::netlink::{InterfaceSettings, NetlinkError, Prefix, Route, RouteSocket};
use outlast_linux::sysctl::{self, SysctlError};
use outlast_linux::tracker::{PassThrough, TrackerError};
use outlast_linux::{clock, offload};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::AsFd;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

/// The gateway's interface towards the link.
const LINK: &str = "link0";
/// Its other one.
const INNER: &str = "fixed0";
/// The only one of either host.
const ETH: &str = "eth0";
const FIXED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const FIXED_ROUTER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const MOBILE: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const MOBILE_ROUTER: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 1);

/// Before anything counts.
const WARM_UP: Duration = Duration::from_millis(300);
/// Bytes that are written, and read, at a time.
const CHUNK: usize = 256 << 10;
/// Payload of a small datagram.
const SMALL: usize = 64;

/// What goes through.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Load {
    /// One TCP connection, in super-segments (GSO).
    SuperSegments,
    /// One TCP connection, in packets of the link's size.
    Packets,
    /// UDP datagrams of 64 bytes.
    Datagrams,
}

/// What is done in a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Bench {
    /// What goes through.
    pub load: Load,
    /// Times that the eBPF path is measured, plain forwarding before and after it.
    pub rounds: u32,
    /// How long each time.
    pub window: Duration,
}

impl Bench {
    /// The NFQUEUE path, of which nothing is claimed, is measured in one round of so many.
    pub const NFQUEUE_ROUNDS: u32 = 4;

    /// What is measured in a round, plain forwarding after each. Neither of the two that are held
    /// against each other always comes first.
    const fn series(&self, round: u32) -> &'static [Series] {
        match round % Self::NFQUEUE_ROUNDS {
            0 => &[Series::Ebpf, Series::Empty, Series::Nfqueue],
            2 => &[Series::Ebpf, Series::Empty],
            _ => &[Series::Empty, Series::Ebpf],
        }
    }

    /// How often anything is measured.
    #[must_use]
    pub const fn measurements(&self) -> u32 {
        1 + 4 * self.rounds + 2 * self.rounds.div_ceil(Self::NFQUEUE_ROUNDS)
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

/// The three hosts. They are gone when it is dropped.
struct Row {
    fixed: Namespace,
    gateway: Namespace,
    mobile: Namespace,
}

/// Measures, with the daemon of the program `outlast`.
fn measure(bench: &Bench, outlast: &Path, cancel: &Cancel) -> Result<Cost, TrialError> {
    let row = Row::new(bench.load)?;
    let directory = TempDir::new().map_err(BenchError::from)?;
    let mut cost = Cost::of_machine().map_err(BenchError::from)?;
    cost.congestion = row.congestion()?;
    let mut before = row.plain(bench, &mut cost, cancel)?;
    for round in 0..bench.rounds {
        for &series in bench.series(round) {
            if cost.missing.iter().any(|(name, _)| name == series.name()) {
                continue;
            }
            if cancel.is_cancelled() {
                return Err(BenchError::Cancelled.into());
            }
            let per_s = match Middle::set_up(series, &row.gateway, outlast, directory.path())? {
                Ok(middle) => {
                    let per_s = row.rate(bench, cancel)?;
                    drop(middle);
                    per_s
                }
                Err(why) => {
                    cost.missing.push((series.name().to_owned(), why));
                    continue;
                }
            };
            let after = row.plain(bench, &mut cost, cancel)?;
            cost.samples.push(Sample {
                series,
                per_s,
                plain_per_s: Some(f64::midpoint(before, after)),
            });
            before = after;
        }
    }
    Ok(cost)
}

impl Row {
    fn new(load: Load) -> Result<Self, BenchError> {
        let row = Self {
            fixed: Namespace::new()?,
            gateway: Namespace::new()?,
            mobile: Namespace::new()?,
        };
        let join = || -> Result<(), BenchError> {
            let mut route = RouteSocket::open()?;
            route.add_veth(INNER, ETH, Some(row.fixed.as_fd()))?;
            route.add_veth(LINK, ETH, Some(row.mobile.as_fd()))?;
            sysctl::write("net.ipv4.ip_forward", "1")?;
            equip(INNER, FIXED_ROUTER, None, load)?;
            equip(LINK, MOBILE_ROUTER, None, load)
        };
        row.gateway.run(join)??;
        row.fixed
            .run(|| equip(ETH, FIXED, Some(FIXED_ROUTER), load))??;
        row.mobile
            .run(|| equip(ETH, MOBILE, Some(MOBILE_ROUTER), load))??;
        Ok(row)
    }

    fn congestion(&self) -> Result<String, BenchError> {
        let read = || sysctl::read("net.ipv4.tcp_congestion_control");
        Ok(self.fixed.run(read)??)
    }

    fn plain(&self, bench: &Bench, cost: &mut Cost, cancel: &Cancel) -> Result<f64, BenchError> {
        let per_s = self.rate(bench, cancel)?;
        cost.samples.push(Sample {
            series: Series::Plain,
            per_s,
            plain_per_s: None,
        });
        Ok(per_s)
    }

    fn rate(&self, bench: &Bench, cancel: &Cancel) -> Result<f64, BenchError> {
        match bench.load {
            Load::SuperSegments | Load::Packets => self.stream(bench.window),
            Load::Datagrams => self.datagrams(bench.window, cancel),
        }
    }

    /// Bits that a reader reads in a second.
    fn stream(&self, window: Duration) -> Result<f64, BenchError> {
        let listener = self.mobile.run(|| TcpListener::bind((MOBILE, 0)))??;
        let to = listener.local_addr()?;
        let mut out = self.fixed.run(|| TcpStream::connect(to))??;
        let (input, _) = listener.accept()?;
        thread::scope(|scope| {
            // Ends when the reader has closed its end.
            scope.spawn(move || while out.write_all(&[7; CHUNK]).is_ok() {});
            read_rate(input, window)
        })
    }

    /// Datagrams that the gateway forwards in a second. Nobody reads them.
    fn datagrams(&self, window: Duration, cancel: &Cancel) -> Result<f64, BenchError> {
        let sink = self.mobile.run(|| UdpSocket::bind((MOBILE, 0)))??;
        let to = sink.local_addr()?;
        let out = self.fixed.run(|| {
            let out = UdpSocket::bind((FIXED, 0))?;
            out.connect(to)?;
            Ok::<_, io::Error>(out)
        })??;
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    // A full queue is part of the measurement.
                    let _ = out.send(&[7; SMALL]);
                }
            });
            let count = || {
                let mut route = RouteSocket::open()?;
                let link = route.interface(LINK)?;
                let sent = route.statistics(link)?.sent_packets;
                Ok::<_, NetlinkError>((clock::now(), sent))
            };
            let counted = || -> Result<f64, BenchError> {
                rest(cancel, WARM_UP)?;
                let (began, before) = self.gateway.run(count)??;
                rest(cancel, window)?;
                let (ended, after) = self.gateway.run(count)??;
                Ok((after - before) as f64 / ended.since(began).as_secs_f64())
            };
            let counted = counted();
            is_over.store(true, Ordering::Relaxed);
            counted
        })
    }
}

/// Bits that come in a second.
fn read_rate(mut input: TcpStream, window: Duration) -> Result<f64, BenchError> {
    let mut buffer = vec![0; CHUNK];
    let warm = clock::now() + WARM_UP;
    let mut began = None;
    let mut bytes = 0;
    loop {
        let length = input.read(&mut buffer)?;
        if length == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        let now = clock::now();
        match began {
            None if now >= warm => began = Some(now),
            None => {}
            Some(began) => {
                bytes += length;
                if now.since(began) >= window {
                    return Ok(bytes as f64 * 8.0 / now.since(began).as_secs_f64());
                }
            }
        }
    }
}

/// Lets the traffic flow for so long.
fn rest(cancel: &Cancel, time: Duration) -> Result<(), BenchError> {
    let timeout = Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    };
    let mut descriptors = [PollFd::new(cancel, PollFlags::IN)];
    match rustix::event::poll(&mut descriptors, Some(&timeout)) {
        Ok(0) | Err(rustix::io::Errno::INTR) => Ok(()),
        Ok(_) => Err(BenchError::Cancelled),
        Err(error) => Err(io::Error::from(error).into()),
    }
}

/// Gives an interface its address, switches it on, and sends all else to `router`.
fn equip(
    name: &str,
    own: Ipv4Addr,
    router: Option<Ipv4Addr>,
    load: Load,
) -> Result<(), BenchError> {
    let mut route = RouteSocket::open()?;
    let interface = route.interface(name)?;
    let address = IpAddr::from(own);
    let prefix = Prefix {
        address,
        length: 24,
    };
    route.add_address(interface, prefix)?;
    offload::set_super_segments(name, load == Load::SuperSegments)?;
    let up = InterfaceSettings {
        up: Some(true),
        ..InterfaceSettings::default()
    };
    route.configure(interface, &up)?;
    if let Some(router) = router {
        route.add_route(&Route {
            destination: Prefix {
                address: Ipv4Addr::UNSPECIFIED.into(),
                length: 0,
            },
            interface,
            gateway: Some(router.into()),
            congestion_control: None,
        })?;
    }
    Ok(())
}

/// What is in the middle, until this is dropped.
#[expect(dead_code, reason = "each is there for what its drop ends")]
enum Middle<'t> {
    Nothing,
    Daemon(Daemon<'t>),
    Empty(PassThrough),
}

impl<'t> Middle<'t> {
    /// Puts `series` there; why it does not run here, if it does not.
    fn set_up(
        series: Series,
        gateway: &Namespace,
        outlast: &'t Path,
        directory: &Path,
    ) -> Result<Result<Self, String>, TrialError> {
        let data_path = match series {
            Series::Ebpf => "ebpf",
            Series::Nfqueue => "nfqueue",
            Series::Plain => return Ok(Ok(Self::Nothing)),
            Series::Empty => {
                let attached = gateway.run(|| {
                    let mut program = PassThrough::load()?;
                    program.attach(LINK)?;
                    Ok::<_, TrackerError>(program)
                });
                let attached = attached.map_err(BenchError::from)?;
                return Ok(attached.map(Self::Empty).map_err(|error| error.lack().what));
            }
        };
        let control = directory.join("control");
        match Daemon::start(gateway, outlast, control, &["--data-path", data_path]) {
            Ok(daemon) => Ok(Ok(Self::Daemon(daemon))),
            Err(TrialError::Daemon(why)) => Ok(Err(why)),
            Err(error) => Err(error),
        }
    }
}
