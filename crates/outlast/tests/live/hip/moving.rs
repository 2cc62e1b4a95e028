//! One transfer through many changes of address: of either host, across families, and of both at once with
//! the help of a rendezvous server, with outages between.

use super::{Daemon, Hosts, PATIENCE, Sender, connect, ip, pattern, skip, table};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::clock;
use outlast_linux::diag::TcpDiag;
use outlast_linux::namespace::Namespace;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, TcpStream};
use std::sync::atomic::Ordering;

/// Changes of address; more are made where this variable says so.
const MOVES: usize = 8;
const VARIABLE: &str = "OUTLAST_TEST_HIP_MOVES";

/// The rendezvous server is on the router, under an address that no move concerns.
const RENDEZVOUS: [&str; 2] = ["10.7.0.1", "fd07::1"];

/// An address, and the router's there.
type Address = (&'static str, &'static str);

/// Where the mobile host goes, and where the fixed host does, which has addresses of both families.
const MOBILE: [Address; 5] = super::PLACES;
const FIXED: [[Address; 2]; 2] = [
    [("10.8.0.2/24", "10.8.0.1"), ("fd08::2/64", "fd08::1")],
    [("10.9.0.3/24", "10.9.0.1"), ("fd09::3/64", "fd09::1")],
];

/// Between two looks at the sender.
const LOOK: Duration = Duration::from_millis(20);

/// How long no host has any address before each move, in turn.
const OUTAGES_S: [u64; 6] = [1, 3, 2, 7, 1, 4];

/// From the new address to data on a path without delay, at most in half of the moves and in all of them. Three
/// round trips and 50 ms are due; the rest is for a machine that has much else to do.
const USUALLY: Duration = Duration::from_millis(700);
const ALWAYS: Duration = Duration::from_secs(6);

/// Timeouts of the sender in the control's outage: the next one comes after sixteen times the first one, which is
/// 0.2 s at least.
const TIMEOUTS: u16 = 4;

/// A host's key; its tag.
fn key(place: &Place, name: &str) -> String {
    let said = place.run(["hip", "key", &format!("{name}.key")]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    said.out.trim().to_owned()
}

/// Both hosts and the rendezvous server; the fixed host's tag. The hosts' tables say `keys`, too.
fn start(place: &Place, hosts: &Hosts, keys: &str) -> ([Daemon; 3], IpAddr) {
    ip(
        &hosts.router,
        &[
            "link set lo up",
            "address add 10.7.0.1/32 dev lo",
            "address add fd07::1/128 dev lo",
            "address add 10.8.0.1/24 dev right",
            "address add fd08::1/64 dev right nodad",
        ],
    );
    let [mobile, fixed, server] = ["mobile", "fixed", "server"].map(|name| key(place, name));
    let registers = format!(
        "[[hip.peers]]\ntag = \"{server}\"\naddresses = {RENDEZVOUS:?}\nregisters = true\n"
    );
    let first = super::FIXED;
    let hosts_of = [
        ("mobile", &fixed, format!("addresses = {first:?}\n")),
        ("fixed", &mobile, String::new()),
    ];
    for (name, peer, addresses) in hosts_of {
        let peer =
            format!("[[hip.peers]]\ntag = \"{peer}\"\nrendezvous = {RENDEZVOUS:?}\n{addresses}");
        let text = format!("{}{keys}{peer}{registers}", table(place, name));
        place.file(&format!("{name}.toml"), &text);
    }
    let clients = [&mobile, &fixed].map(|tag| format!("[[hip.peers]]\ntag = \"{tag}\"\n"));
    let text = format!("{}{}", table(place, "server"), clients.concat());
    place.file("server.toml", &text);
    let server = Daemon::start_as(place, &hosts.router, "rendezvous", "server.toml");
    let mobile = Daemon::start(place, &hosts.mobile, "mobile.toml");
    let fixed_host = Daemon::start(place, &hosts.fixed, "fixed.toml");
    (
        [server, mobile, fixed_host],
        fixed.parse().expect("a tag is an address"),
    )
}

/// Takes all addresses from a host.
fn cut(host: &Namespace) {
    ip(host, &["address flush dev link0 scope global"]);
}

/// Gives a host without an address others.
fn settle(host: &Namespace, addresses: &[Address]) {
    for (address, router) in addresses {
        let family = if address.contains(':') {
            "nodad"
        } else {
            "scope global"
        };
        ip(
            host,
            &[
                &format!("address add {address} dev link0 {family}"),
                &format!("route replace default via {router}"),
            ],
        );
    }
}

/// Reads and checks what comes within a time; whether anything did.
fn read_within(stream: &mut TcpStream, at: &mut usize, time: Duration) -> bool {
    let mut buffer = [0; 16_384];
    stream
        .set_read_timeout(Some(time.max(Duration::from_millis(1))))
        .expect("a socket");
    match stream.read(&mut buffer) {
        Ok(0) => panic!("the other side has ended the connection after {at} bytes"),
        Ok(count) => {
            let expected = (*at..).map(pattern);
            let came = buffer[..count].iter().copied();
            assert!(came.eq(expected.take(count)), "altered at {at}");
            *at += count;
            true
        }
        Err(error) if error.kind() == ErrorKind::Interrupted => read_within(stream, at, time),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => false,
        Err(error) => panic!("after {at} bytes: {error}"),
    }
}

/// Who moves.
#[derive(Clone, Copy, Debug)]
enum Move {
    Mobile,
    Fixed,
    Both,
}

#[expect(clippy::print_stderr, reason = "a test that fails shows it")]
fn show(line: &str) {
    eprintln!("{line}");
}

/// Two hosts, a rendezvous server, and a transfer from the fixed host to the mobile one.
struct Moving {
    hosts: Hosts,
    place: Place,
    _daemons: [Daemon; 3],
    sender: Sender,
    stream: TcpStream,
    at: usize,
}

impl Moving {
    fn new(keys: &str) -> Option<Self> {
        let hosts = Hosts::new()?;
        let place = Place::new();
        let (daemons, tag) = start(&place, &hosts, keys);
        let sender = Sender::start(&hosts.fixed);
        let mut stream = connect(&hosts.mobile, tag, sender.port);
        let mut at = 0;
        assert!(
            read_within(&mut stream, &mut at, PATIENCE),
            "before any move"
        );
        Some(Self {
            hosts,
            place,
            _daemons: daemons,
            sender,
            stream,
            at,
        })
    }

    /// Timeouts of the sender's TCP so far; `None` before Linux 6.7.
    fn timeouts(&self) -> Option<u16> {
        let list = || TcpDiag::open().and_then(|mut diag| diag.connections());
        let all = self.hosts.fixed.run(list).expect("enter").expect("a list");
        let sender = all.iter().find(|it| it.local.port() == self.sender.port);
        sender.expect("it is connected").timeouts
    }

    /// Loses what crosses until the sender's timer has backed off.
    fn back_off(&mut self) {
        let before = self.timeouts().expect("Linux counts them");
        // What the mobile host acknowledges is lost, too: it would wait for a path otherwise, and wake the sender.
        let way = |router: &Namespace, verb: &str| {
            let lines = super::FIXED.map(|address| format!("route {verb} blackhole {address}"));
            ip(router, &lines.each_ref().map(String::as_str));
        };
        way(&self.hosts.router, "add");
        while self.timeouts() < Some(before + TIMEOUTS) {
            read_within(&mut self.stream, &mut self.at, LOOK);
        }
        way(&self.hosts.router, "del");
    }

    /// Takes the addresses of whoever moves, and gives others once the outage is over; how long after that data
    /// comes.
    fn go(&mut self, kind: Move, number: usize, is_over: impl Fn(&Self) -> bool) -> Duration {
        let hosts = &self.hosts;
        let mobile = &MOBILE[number % MOBILE.len()..][..1];
        let fixed = &FIXED[number / 2 % FIXED.len()][..];
        let moving = match kind {
            Move::Mobile => vec![(&hosts.mobile, mobile)],
            Move::Fixed => vec![(&hosts.fixed, fixed)],
            Move::Both => vec![(&hosts.mobile, mobile), (&hosts.fixed, fixed)],
        };
        for (host, _) in &moving {
            cut(host);
        }
        let cut_at = clock::now();
        while !is_over(self) {
            read_within(&mut self.stream, &mut self.at, LOOK);
        }
        let outage = clock::now() - cut_at;
        for &(host, new) in &moving {
            settle(host, new);
        }
        let works = clock::now();
        let goes_on = read_within(&mut self.stream, &mut self.at, PATIENCE);
        let after = clock::now() - works;
        let what = format!("move {number}, {kind:?} after {outage:?}: data after {after:?}");
        show(&what);
        if !goes_on || after > ALWAYS {
            for log in ["mobile.toml.log", "fixed.toml.log", "server.toml.log"] {
                let said = std::fs::read_to_string(self.place.path().join(log));
                show(&format!("{log}: {said:?}"));
            }
        }
        assert!(goes_on, "{what}");
        after
    }

    fn end(self) {
        self.sender.is_over.store(true, Ordering::Relaxed);
        drop(self.stream);
        self.sender.thread.join().expect("the sender ends");
    }
}

#[test]
fn a_transfer_goes_on_through_moves_of_either_host_and_of_both_at_once() {
    let moves = std::env::var(VARIABLE).ok();
    let moves = moves.map_or(MOVES, |moves| moves.parse().expect("a number of moves"));
    let Some(mut moving) = Moving::new("") else {
        return;
    };
    let kinds = [Move::Mobile, Move::Mobile, Move::Both, Move::Fixed];
    let mut resumed = Vec::new();
    for number in 0..moves {
        let kind = kinds[number % kinds.len()];
        let outage = Duration::from_secs(OUTAGES_S[number % OUTAGES_S.len()]);
        let over = clock::now() + outage;
        resumed.push(moving.go(kind, number, |_| clock::now() >= over));
    }
    resumed.sort_unstable();
    assert!(
        resumed[moves / 2] <= USUALLY && resumed[moves - 1] <= ALWAYS,
        "data comes late: {resumed:?}"
    );
    moving.end();
}

/// The control: readdressing is complete as soon, and TCP waits for its timeout.
#[test]
fn without_the_trigger_data_waits_for_a_timeout() {
    // The kernel's own timer may be about to fire when the new address works; not three times in a row.
    let mut waits = Vec::new();
    while waits.iter().all(|after| *after <= USUALLY) {
        assert!(
            waits.len() < 3,
            "data comes soon without a trigger: {waits:?}"
        );
        let Some(mut moving) = Moving::new("trigger = false\n") else {
            return;
        };
        if moving.timeouts().is_none() {
            return skip("a count of timeouts (Linux 6.7)");
        }
        moving.back_off();
        waits.push(moving.go(Move::Mobile, 0, |_| true));
        moving.end();
    }
}
