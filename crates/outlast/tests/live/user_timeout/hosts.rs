//! Two hosts in namespaces of their own, and a link between them that shows, loses and changes packets.

use crate::path::copier::{Carrier, Copier};
use crate::path::wiring::{inside, switch};
use crate::path::{skip, until, wait};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::Prefix;
use outlast_linux::tun::Tun;
use outlast_wire::pcapng::{Encoder, EnhancedPacket, Section};
use outlast_wire::tcp::{UserTimeout, kind};
use outlast_wire::{Packet, TcpHeader};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const LINK: &str = "link0";

/// What the kernel says to who lacks the privileges.
const NOT_PERMITTED: &str = "Operation not permitted";

/// The hosts by their places in [`Hosts::ends`].
pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;

/// A client and a server.
pub(super) struct Hosts {
    pub(super) ends: [Namespace; 2],
    shared: Arc<Shared>,
    _copier: Copier,
}

struct Shared {
    ends: [Tun; 2],
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_cut: bool,
    /// What has gone in, with the end that it came from.
    seen: Vec<(usize, Vec<u8>)>,
    /// What the server's options say instead.
    forged: Option<[u8; 2]>,
}

/// A segment, as far as the tests look at it.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) from: usize,
    pub(super) header: TcpHeader,
}

impl Seen {
    /// What its option says, in seconds.
    pub(super) fn told(&self) -> Option<u64> {
        let option = self.header.options.user_timeout;
        option.map(|told| told.as_duration().as_secs())
    }
}

pub(super) fn address(end: usize, is_v6: bool) -> IpAddr {
    let text = match (end, is_v6) {
        (CLIENT, false) => "10.1.0.7",
        (_, false) => "10.1.0.1",
        (CLIENT, true) => "fd00::7",
        (_, true) => "fd00::1",
    };
    text.parse().expect("literal")
}

impl Hosts {
    /// Both hosts and the link, which is there; `None`, with the reason, where this machine does not
    /// allow it.
    pub(super) fn new() -> Option<Self> {
        let namespace = || Namespace::new().inspect_err(|error| skip(error)).ok();
        let ends = [namespace()?, namespace()?];
        let make = |namespace: &Namespace| {
            let made = namespace.run(|| Tun::create(LINK)).expect("enter");
            made.inspect_err(|error| skip(error)).ok()
        };
        let tuns = [make(&ends[0])?, make(&ends[1])?];
        for (end, namespace) in ends.iter().enumerate() {
            inside(namespace, |route| {
                switch(route, "lo", true);
                let interface = route.interface(LINK).expect("made");
                for (is_v6, length) in [(false, 24), (true, 64)] {
                    let address = address(end, is_v6);
                    let prefix = Prefix { address, length };
                    route.add_address(interface, prefix).expect("address");
                }
                switch(route, LINK, true);
            });
        }
        let shared = Arc::new(Shared {
            ends: tuns,
            state: Mutex::default(),
        });
        let _copier = Copier::start(shared.clone());
        Some(Self {
            ends,
            shared,
            _copier,
        })
    }

    /// Whether nothing comes through.
    pub(super) fn cut(&self, is_cut: bool) {
        self.shared.state().is_cut = is_cut;
    }

    /// What the server's options say from now on, whatever it has written.
    pub(super) fn forge(&self, value: u16) {
        self.shared.state().forged = Some(value.to_be_bytes());
    }

    /// The segments so far that have gone in at either end.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let state = self.shared.state();
        let parsed = state.seen.iter().filter_map(|(from, bytes)| {
            let packet = Packet::parse(bytes.clone().into()).ok()?;
            Some(Seen {
                from: *from,
                header: packet.tcp()?.clone(),
            })
        });
        parsed.collect()
    }

    /// Forgets the segments so far.
    pub(super) fn forget(&self) {
        self.shared.state().seen.clear();
    }

    /// The packets so far, as a capture.
    pub(super) fn capture(&self) -> Vec<u8> {
        let mut encoder = Encoder::new(&Section::of_application("outlast"));
        let interface = encoder.interface(LINK);
        for (number, (_, bytes)) in (0..).zip(&self.shared.state().seen) {
            let time = Duration::from_millis(number);
            encoder.packet(&EnhancedPacket::new(interface, time, bytes));
        }
        encoder.take()
    }

    /// A server's socket that listens.
    pub(super) fn listen(&self, is_v6: bool) -> TcpListener {
        let at = SocketAddr::new(address(SERVER, is_v6), 0);
        let bind = || TcpListener::bind(at).expect("a port");
        self.ends[SERVER].run(bind).expect("enter")
    }

    /// A connection; the client's socket first.
    pub(super) fn connect(&self, listener: &TcpListener) -> [TcpStream; 2] {
        let to = listener.local_addr().expect("bound");
        let connect = || TcpStream::connect(to).expect("the server listens");
        let client = self.ends[CLIENT].run(connect).expect("enter");
        let (server, _) = listener.accept().expect("the client comes");
        [client, server]
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Carrier for Shared {
    fn ends(&self) -> &[Tun; 2] {
        &self.ends
    }

    fn carry(&self, from: usize, packet: &[u8]) -> io::Result<()> {
        let mut bytes = packet.to_vec();
        let is_cut = {
            let mut state = self.state();
            if let Some(value) = state.forged.filter(|_| from == SERVER) {
                forge(&mut bytes, value);
            }
            state.seen.push((from, bytes.clone()));
            state.is_cut
        };
        if !is_cut {
            // Where there is no room it is lost, as on any link.
            let _ = self.ends[1 - from].write(&bytes)?;
        }
        Ok(())
    }
}

/// Writes another value into the user timeout option of a packet, if there is one, and mends the
/// checksum.
fn forge(bytes: &mut [u8], value: [u8; 2]) {
    let tcp = match bytes[0] >> 4 {
        4 if bytes[9] == 6 => usize::from(bytes[0] & 15) * 4,
        6 if bytes[6] == 6 => 40,
        _ => return,
    };
    let end = tcp + usize::from(bytes[tcp + 12] >> 4) * 4;
    let mut at = tcp + 20;
    while at < end && bytes[at] != 0 {
        match bytes[at] {
            1 => at += 1,
            kind::USER_TIMEOUT => {
                // Linux puts it where words begin.
                let old = [bytes[at + 2], bytes[at + 3]];
                bytes[at + 2..at + 4].copy_from_slice(&value);
                let sum = u16::from_be_bytes([bytes[tcp + 16], bytes[tcp + 17]]);
                // RFC 1624, section 3.
                let mut total = u32::from(!sum)
                    + u32::from(!u16::from_be_bytes(old))
                    + u32::from(u16::from_be_bytes(value));
                total = (total & 0xffff) + (total >> 16);
                total = (total & 0xffff) + (total >> 16);
                let sum = !(total as u16);
                bytes[tcp + 16..tcp + 18].copy_from_slice(&sum.to_be_bytes());
                return;
            }
            _ => at += usize::from(bytes[at + 1]).max(2),
        }
    }
}

/// What an option says of minutes.
pub(super) fn minutes(count: u16) -> u16 {
    let minutes = true;
    UserTimeout {
        minutes,
        value: count,
    }
    .to_bits()
}

/// `outlast run --role host` in a namespace.
pub(super) struct Agent {
    pub(super) child: Child,
    log: std::path::PathBuf,
    pub(super) config: std::path::PathBuf,
}

impl Agent {
    /// Starts one with this in `[host.user_timeout]`; `None`, with the reason, where this machine lacks
    /// what that needs.
    pub(super) fn start(place: &Place, host: &Namespace, name: &str, table: &str) -> Option<Self> {
        let text = format!("[host.user_timeout]\n{table}");
        let config = place.file(&format!("{name}.toml"), &text);
        let log = place.path().join(format!("{name}.log"));
        let control = format!("{name}.sock");
        let file = std::fs::File::create(&log).expect("a file in a directory of ours");
        let start = || {
            let mut command = place.command(["run", "--role", "host", "--config"]);
            command.arg(&config).args(["--control", &control]);
            command.stderr(file).stdout(Stdio::null());
            command.spawn().expect("outlast was built")
        };
        let child = host.run(start).expect("enter");
        let mut agent = Self { child, log, config };
        let mut code = None;
        until("the agent begins", || {
            let ended = agent.child.try_wait().expect("it is our child");
            code = ended.map(|status| status.code());
            code.is_some() || agent.said().contains("the host agent begins")
        });
        match code {
            None => Some(agent),
            Some(Some(3)) => {
                let said = agent.said();
                // That the kernel finds a program wanting is no lack of this machine's.
                let is_refused = said.contains("cannot load");
                assert!(!is_refused || said.contains(NOT_PERMITTED), "{said}");
                skip(said);
                None
            }
            Some(code) => panic!("{code:?}: {}", agent.said()),
        }
    }

    pub(super) fn said(&self) -> String {
        std::fs::read_to_string(&self.log).expect("its log")
    }

    /// Asks it to end, and waits for that.
    pub(super) fn end(mut self) -> String {
        self.signal("TERM");
        let status = self.child.wait().expect("it ends");
        assert!(status.success(), "{}", self.said());
        self.said()
    }

    /// Sends it a signal; it runs.
    pub(super) fn signal(&self, name: &str) {
        let number = match name {
            "TERM" => rustix::process::Signal::TERM,
            "HUP" => rustix::process::Signal::HUP,
            _ => unreachable!("no test sends {name}"),
        };
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, number).expect("it is our child");
    }

    /// Has it read its file, with another table in it.
    pub(super) fn reload(&self, table: &str) {
        std::fs::write(&self.config, format!("[host.user_timeout]\n{table}")).expect("ours");
        let before = self.said().matches("configuration read").count();
        self.signal("HUP");
        until("the configuration is read again", || {
            self.said().matches("configuration read").count() > before
        });
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The child is ours; where it was waited for, there is nothing left to end.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for a time, as an outage lasts.
pub(super) fn pause(time: Duration) {
    wait(time);
}

/// How long something takes.
pub(super) fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let began = clock::now();
    let done = work();
    (done, clock::now().since(began))
}
