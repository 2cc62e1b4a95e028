//! A peer that stops answering TCP amid an outage of the whole link, with much data under way to it: the
//! downloads of other peers end as soon as they do without it.
//!
//! Where this machine lacks what that needs, a test says so and ends.

use crate::path::wiring::add_rules;
use crate::path::{Daemon, skip, wait};
use crate::support::{Place, allow_descriptors};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{Prefix, RouteSocket};
use outlast_linux::{clock, sysctl};
use outlast_scenario::IpVersion;
use outlast_testbed::site::{Cut, LINK, Neighbours, Place as Host, Site, SiteConfig};
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// The silent peer: a further address of the mobile host, as a router sees a further station.
const PEER: &str = "198.51.100.3";
const CONNECTIONS: usize = 400;
/// Thirty segments of each connection are under way.
const UNDER_WAY: usize = 30 * 1_448;
/// Room for these in a socket, so that nobody waits to write.
const ROOM: usize = 200_000;
/// Of two runs side by side, both ends, and other tests.
const DESCRIPTORS: u64 = 6 * CONNECTIONS as u64;

/// The gateway keeps more of it than this at the end of the outage: a second of the link's time.
const KEPT: u64 = 2_500_000;

/// Of each honest download.
const BYTES: usize = 6_000_000;
/// So much of it has come before the outage.
const BEFORE: usize = 1_000_000;
const OUTAGE: Duration = Duration::from_secs(5);
/// With the silent peer, this many times as long as without it, and a second.
const SLOWER: f64 = 1.3;
const LATER: Duration = Duration::from_secs(1);
/// Nothing takes so long.
const PATIENCE: Duration = Duration::from_secs(180);

fn site() -> Option<Site> {
    let config = SiteConfig {
        rate: BitRate::from_bits_per_second(20_000_000).expect("not zero"),
        delay: Duration::from_millis(20),
        queue: 100,
        congestion: "cubic",
        sack: true,
        neighbours: Neighbours::AsUsual,
    };
    Site::new(&config).inspect_err(|error| skip(error)).ok()
}

/// Connections from the fixed host to an address of the mobile host's; the fixed host's ends first.
fn connections(site: &Site, to: IpAddr, many: usize) -> [Vec<TcpStream>; 2] {
    let listen = || {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        socket.bind(&SocketAddr::new(to, 0).into())?;
        socket.listen(i32::try_from(CONNECTIONS).expect("not that many"))?;
        io::Result::Ok(TcpListener::from(socket))
    };
    let listener = site.mobile.run(listen).expect("enter").expect("a listener");
    let server = listener.local_addr().expect("bound").into();
    // All at once: one by one they would take a round trip each.
    let connect = || {
        let begin = |_| {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
            socket.set_send_buffer_size(ROOM).expect("room");
            socket.set_nonblocking(true).expect("a socket");
            let begun = socket.connect(&server).expect_err("it takes a round trip");
            assert_eq!(
                begun.raw_os_error(),
                Some(rustix::io::Errno::INPROGRESS.raw_os_error())
            );
            socket
        };
        (0..many).map(begin).collect::<Vec<_>>()
    };
    let near = site.fixed.run(connect).expect("enter");
    let far = (0..many).map(|_| listener.accept().expect("it comes").0);
    let far = far.collect();
    let near = near.into_iter().map(|socket| {
        socket.set_nonblocking(false).expect("a socket");
        TcpStream::from(socket)
    });
    [near.collect(), far]
}

/// Bytes that show where they belong.
fn content() -> Vec<u8> {
    (0..BYTES).map(|n| (n / 251 + n) as u8).collect()
}

/// A download that goes as fast as it can.
struct Download {
    sender: JoinHandle<io::Result<()>>,
    receiver: JoinHandle<io::Result<Instant>>,
    has_begun: mpsc::Receiver<()>,
}

impl Download {
    fn new(mut out: TcpStream, mut input: TcpStream) -> Self {
        for end in [&out, &input] {
            end.set_read_timeout(Some(PATIENCE)).expect("not zero");
            end.set_write_timeout(Some(PATIENCE)).expect("not zero");
        }
        let sender = std::thread::spawn(move || out.write_all(&content()));
        let (begins, has_begun) = mpsc::channel();
        let receiver = std::thread::spawn(move || {
            let mut all = vec![0; BYTES];
            input.read_exact(&mut all[..BEFORE])?;
            begins.send(()).expect("the test waits for it");
            input.read_exact(&mut all[BEFORE..])?;
            let ended = clock::now();
            assert!(all == content(), "what arrived is not what was sent");
            Ok(ended)
        });
        Self {
            sender,
            receiver,
            has_begun,
        }
    }

    /// When all of it had come.
    fn end(self) -> Instant {
        let sent = self.sender.join().expect("no panic");
        sent.expect("everything was written");
        let ended = self.receiver.join().expect("no panic");
        ended.expect("everything arrives")
    }
}

/// From now on the peer answers ARP and no TCP; `None`, with the reason, where there is no nft.
fn silence(mobile: &Namespace) -> Option<()> {
    let rules = format!(
        "add table ip silent\n\
         add chain ip silent in {{ type filter hook input priority 0; }}\n\
         add rule ip silent in ip daddr {PEER} meta l4proto tcp drop\n\
         add chain ip silent out {{ type filter hook output priority 0; }}\n\
         add rule ip silent out ip saddr {PEER} meta l4proto tcp drop\n"
    );
    add_rules(mobile, &rules)
}

/// The peer's connections, each with thirty segments acknowledged: its sender may have as many under way.
fn peer(site: &Site) -> [Vec<TcpStream>; 2] {
    let address: IpAddr = PEER.parse().expect("literal");
    let prepare = || {
        let mut routes = RouteSocket::open().expect("netlink");
        let interface = routes.interface(LINK).expect("made");
        let prefix = Prefix {
            address,
            length: 24,
        };
        routes.add_address(interface, prefix).expect("address");
    };
    site.mobile.run(prepare).expect("enter");
    let keep = || sysctl::write("net.ipv4.tcp_slow_start_after_idle", "0");
    site.fixed.run(keep).expect("enter").expect("sysctl");
    let [mut near, mut far] = connections(site, address, CONNECTIONS);
    for out in &mut near {
        out.write_all(&[7; UNDER_WAY]).expect("there is room");
    }
    for input in &mut far {
        input.set_read_timeout(Some(PATIENCE)).expect("not zero");
        input.read_exact(&mut [0; UNDER_WAY]).expect("it arrives");
    }
    [near, far]
}

/// From the link's return until two honest downloads have ended, with a silent peer or without; `None`,
/// with the reason, where this machine lacks something.
fn ended_after(mechanism: &str, has_peer: bool) -> Option<Duration> {
    let (place, site) = (Place::new(), site()?);
    let daemon = Daemon::start(&place, &site.gateway, mechanism)?;
    let mut peer = has_peer.then(|| peer(&site));
    let [near, far] = connections(&site, Host::Mobile.address(IpVersion::V4), 2);
    let ends = near.into_iter().zip(far);
    let downloads: Vec<_> = ends.map(|(out, input)| Download::new(out, input)).collect();
    for download in &downloads {
        download.has_begun.recv().expect("it goes on");
    }
    site.cut(Cut::Carrier).expect("the link lives");
    if let Some([near, _]) = &mut peer {
        silence(&site.mobile)?;
        for out in near {
            out.write_all(&[7; UNDER_WAY]).expect("there is room");
        }
    }
    wait(OUTAGE);
    if has_peer {
        // Otherwise nothing of the peer's would be in anybody's way.
        let status = daemon.status();
        assert!(status["held_bytes"].as_u64() > Some(KEPT), "{status:#}");
    }
    let up = site.mend().expect("the link lives");
    let ended = downloads.into_iter().map(Download::end).max();
    Some(ended.expect("two").since(up))
}

fn judge(mechanism: &str) {
    if !allow_descriptors(DESCRIPTORS) {
        return;
    }
    // Side by side: whatever else the machine does, it does to both.
    let [with, without] = std::thread::scope(|scope| {
        let both = [true, false];
        let both = both.map(|has_peer| scope.spawn(move || ended_after(mechanism, has_peer)));
        both.map(|ended| ended.join().expect("no panic"))
    });
    let (Some(with), Some(without)) = (with, without) else {
        return;
    };
    assert!(
        with <= without.mul_f64(SLOWER) + LATER,
        "{mechanism}: {with:?} with the silent peer, {without:?} without it"
    );
}

#[test]
fn a_silent_peer_delays_nobody_with_hold() {
    judge("hold");
}

#[test]
fn a_silent_peer_delays_nobody_with_auto() {
    judge("auto");
}
