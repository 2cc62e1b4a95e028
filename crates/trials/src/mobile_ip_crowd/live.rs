//! The crowd before a home agent of `outlast run`, through sockets; and a flood of forged requests beside it.

use super::crowd::{Crowd, KEY, SPI, care_of_address, home_address};
use super::trial::Move;
use crate::gateway_matrix::trial::TrialError;
use crate::gateway_matrix::wait;
use crate::live::within;
use crate::mobile_ip_matrix::place::ip;
use crate::role;
use outlast_base::time::{Duration, Instant};
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::poller::{Interest, Poller, Token};
use outlast_linux::protocol::ProtocolReceiver;
use outlast_linux::raw::RawSender;
use outlast_linux::sysctl;
use outlast_linux::timer::Timer;
use outlast_mobility::{InvalidSpi, NtpClock};
use outlast_wire::mobile_ip::{Lifetime, PORT, RegistrationRequest, RequestFlags, SecuredPair};
use outlast_wire::{IpHeader, Packet, UdpHeader};
use rustix::fd::AsFd;
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, UdpSocket};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tempfile::TempDir;

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const UDP: u8 = 17;
const PATIENCE: Duration = Duration::from_secs(60);
/// Nobody may register more than once a second on average.
const BETWEEN: Duration = Duration::from_secs(3);
/// Seconds from the epoch of NTP to that of Unix.
const UNIX_EPOCH_NTP: u64 = 2_208_988_800;
/// Forged requests at a time, and the pause between two times.
const FORGED_AT_ONCE: usize = 50;
const BETWEEN_FORGED: Duration = Duration::from_millis(10);

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "let a crowd register",
        source,
    }
}

pub(super) fn reserved(error: InvalidSpi) -> TrialError {
    TrialError::Program {
        what: "the security parameter index is reserved",
        said: error.to_string(),
    }
}

/// The crowd's sockets in its namespace.
struct Sockets {
    sender: RawSender,
    receiver: ProtocolReceiver,
    /// Is there so that replies are not refused.
    _port: UdpSocket,
    timer: Timer,
    poller: Poller,
}

impl Sockets {
    fn open() -> Result<Self, TrialError> {
        let receiver =
            ProtocolReceiver::open(UDP, Ipv4Addr::UNSPECIFIED.into()).map_err(io_error)?;
        let timer = Timer::new().map_err(io_error)?;
        let poller = Poller::new().map_err(io_error)?;
        for (source, token) in [(receiver.as_fd(), Token(0)), (timer.as_fd(), Token(1))] {
            poller
                .add(source, token, Interest::Readable)
                .map_err(io_error)?;
        }
        Ok(Self {
            sender: RawSender::open(0, None).map_err(io_error)?,
            receiver,
            _port: UdpSocket::bind((Ipv4Addr::UNSPECIFIED, PORT)).map_err(io_error)?,
            timer,
            poller,
        })
    }

    /// Has all of `crowd` registered, or gives up at `end`; when the last one was.
    fn register(&mut self, crowd: &mut Crowd, size: usize, end: Instant) -> io::Result<Instant> {
        let mut buffer = vec![0; 2048];
        loop {
            while let Some(packet) = crowd.poll_transmit() {
                // What finds no room is repeated, as what is lost elsewhere.
                let _ = self.sender.send(HOME_AGENT.into(), &packet.to_bytes())?;
            }
            let now = clock::now();
            if crowd.registered() == size || now >= end {
                return Ok(now);
            }
            let next = crowd.poll_timeout().map_or(end, |at| at.min(end));
            self.timer.set(Some(next.max(now)))?;
            let woken = self.poller.wait()?.any(|ready| ready.token == Token(1));
            if woken {
                self.timer.note_expiry();
            }
            while let Some(bytes) = self.receiver.receive_whole(&mut buffer)? {
                if let Ok(packet) = Packet::parse(bytes.to_vec().into()) {
                    crowd.handle_packet(clock::now(), &packet);
                }
            }
            crowd.handle_timeout(clock::now());
        }
    }
}

/// The home agent, and the network of the mobile nodes.
struct Hosts {
    agent: Namespace,
    crowd: Namespace,
}

impl Hosts {
    fn new() -> Result<Self, TrialError> {
        let hosts = Self {
            agent: Namespace::new().map_err(LabError::from)?,
            crowd: Namespace::new().map_err(LabError::from)?,
        };
        within(&hosts.agent, || {
            let mut routes = RouteSocket::open().map_err(LabError::from)?;
            let made = routes.add_veth("up0", "up0", Some(hosts.crowd.as_fd()));
            made.map_err(LabError::from)?;
            Ok(sysctl::write("net.ipv4.ip_forward", "1").map_err(LabError::from)?)
        })?;
        let lines = |own: &str| {
            [
                "link set lo up".to_owned(),
                "link set up0 up".to_owned(),
                format!("address add {own}/24 dev up0"),
            ]
        };
        ip(&hosts.agent, &lines("10.9.0.2"))?;
        ip(&hosts.agent, &["route add default via 10.9.0.1"])?;
        ip(&hosts.crowd, &lines("10.9.0.1"))?;
        // Every address of the networks to come is one of this host's.
        ip(&hosts.crowd, &["route add local 10.100.0.0/14 dev lo"])?;
        Ok(hosts)
    }
}

/// What comes of a move of `size` mobile nodes before a home agent of the program `outlast`, beside a flood
/// of forged requests if there `is_flood`.
pub(super) fn measure(
    size: usize,
    is_flood: bool,
    outlast: &Path,
    cancel: &Cancel,
) -> Result<Move, TrialError> {
    let hosts = Hosts::new()?;
    let directory = TempDir::new().map_err(io_error)?;
    let control = directory.path().join("agent.sock");
    let config = configure(directory.path(), &control, size)?;
    let (_agent, said) = role::run(outlast, "home-agent", &hosts.agent, &config)?;
    role::await_words(&said, "agent begins", cancel)?;
    let now = clock::now();
    let mut crowd = Crowd::new(now, size, HOME_AGENT, ntp_clock(now)).map_err(reserved)?;
    let mut sockets = within(&hosts.crowd, Sockets::open)?;
    let mut moved = Move::default();
    for network in 0..2 {
        let before = crowd.requests();
        let is_over = AtomicBool::new(false);
        let (took, forged) = thread::scope(|scope| {
            let flood = (is_flood && network == 1)
                .then(|| scope.spawn(|| flood(&hosts, size, &is_over, cancel)));
            let began = clock::now();
            crowd.move_to(began, network);
            let ended = sockets.register(&mut crowd, size, began + PATIENCE);
            is_over.store(true, Ordering::Relaxed);
            let forged = flood.map_or(Ok(0), |flood| {
                flood
                    .join()
                    .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            });
            (ended.map(|ended| ended.since(began)), forged)
        });
        moved = Move {
            registered: crowd.registered(),
            took_s: took.map_err(io_error)?.as_secs_f64(),
            requests: crowd.requests() - before,
            forged: forged?,
            ..Move::default()
        };
        if network == 0 {
            wait(cancel, None, BETWEEN)?;
        }
    }
    let status = status(outlast, &control)?;
    moved.bound = bound(&status, 1, size);
    moved.refused = status["counters"]["refused"].as_u64().unwrap_or_default();
    Ok(moved)
}

fn configure(
    directory: &Path,
    control: &Path,
    size: usize,
) -> Result<std::path::PathBuf, TrialError> {
    let (key, config) = (directory.join("key"), directory.join("agent.toml"));
    let digits = KEY.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    });
    let text = format!("spi = {SPI}\nalgorithm = \"hmac-md5\"\nkey = \"{digits}\"\n");
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let file = options.open(&key);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(io_error)?;
    let mut text = format!("[home_agent]\naddress = \"{HOME_AGENT}\"\ncontrol = {control:?}\n");
    for number in 0..size {
        let address = home_address(number);
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "[[home_agent.mobiles]]\nhome_address = \"{address}\"\nkey = {key:?}\n"
        );
    }
    fs::write(&config, text).map_err(io_error)?;
    Ok(config)
}

fn ntp_clock(now: Instant) -> NtpClock {
    let unix = clock::unix_offset() + Duration::from_nanos(now.as_nanos());
    let fraction = (u64::from(unix.subsec_nanos()) << 32) / 1_000_000_000;
    NtpClock::new(now, (unix.as_secs() + UNIX_EPOCH_NTP) << 32 | fraction)
}

/// Sends requests for the crowd's mobile nodes that nobody has signed rightly, until it is over; how many.
fn flood(
    hosts: &Hosts,
    size: usize,
    is_over: &AtomicBool,
    cancel: &Cancel,
) -> Result<u64, TrialError> {
    let sender = within(&hosts.crowd, || RawSender::open(0, None).map_err(io_error))?;
    let mut sent = 0_u64;
    while !is_over.load(Ordering::Relaxed) {
        for _ in 0..FORGED_AT_ONCE {
            let number = sent as usize % size;
            let packet = forged(number, clock::now());
            let _ = sender
                .send(HOME_AGENT.into(), &packet.to_bytes())
                .map_err(io_error)?;
            sent += 1;
        }
        wait(cancel, None, BETWEEN_FORGED)?;
    }
    Ok(sent)
}

fn forged(number: usize, now: Instant) -> Packet {
    // Nobody of the crowd is in this network.
    let care_of_address = care_of_address(3, number);
    let request = RegistrationRequest {
        flags: RequestFlags::DECAPSULATES,
        lifetime: Lifetime(600),
        home_address: home_address(number),
        home_agent: HOME_AGENT,
        care_of_address,
        identification: ntp_clock(now).at(now),
    };
    let message = request.emit();
    let message = message.authenticate(SecuredPair::MobileHome, SPI, 16, |_| vec![0; 16]);
    let udp = UdpHeader {
        source_port: PORT,
        destination_port: PORT,
    };
    let ip = IpHeader::new(care_of_address.into(), HOME_AGENT.into());
    Packet::udp_datagram(ip, udp, &message.finish())
}

fn status(outlast: &Path, control: &Path) -> Result<Value, TrialError> {
    let mut command = Command::new(outlast);
    command.args(["status", "--json", "--control"]).arg(control);
    let said = command.output().map_err(io_error)?;
    serde_json::from_slice(&said.stdout).map_err(|error| TrialError::Program {
        what: "outlast status does not answer",
        said: format!("{error}: {}", String::from_utf8_lossy(&said.stderr)),
    })
}

/// How many the home agent reaches in `network` and nowhere else.
fn bound(status: &Value, network: u8, size: usize) -> usize {
    let Some(mobiles) = status["mobiles"].as_array() else {
        return 0;
    };
    let is_there = |number: &usize| {
        let home = home_address(*number).to_string();
        let at = care_of_address(network, *number).to_string();
        mobiles.iter().any(|mobile| {
            mobile["home_address"] == home.as_str()
                && mobile["at"]
                    .as_array()
                    .is_some_and(|all| all.len() == 1 && all[0] == at.as_str())
        })
    };
    (0..size).filter(is_there).count()
}
