//! A flood of I2 packets whose puzzle is solved, at a daemon (RFC 7401, sections 4.1.1 and 6.9). Its bounds are shown in
//! virtual time by the tests of `outlast-hip`; here the processor's time is counted as well.

use super::operating::status;
use super::{Daemon, FIXED, Hosts, PATIENCE, connect, pace, table};
use crate::support::{Place, report};
use outlast_linux::clock;
use outlast_wire::hip::{
    Builder, DiffieHellman, EspInfo, Hit, Message, PacketType, Puzzle, Solution, kind,
};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::Read;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener};
use std::time::Duration;

/// The variable that asks for this test, and says how many I2 packets a second flood the victim: 500 are enough for a
/// build that is not optimized. The test computes for seconds, so it wants a machine that does nothing else, and no emulated
/// one: beside other tests the honest host's packets are lost with the rest. An optimized build is judged by the share of a core
/// that its daemon takes, too.
const VARIABLE: &str = "OUTLAST_TEST_HIP_FLOOD";
/// Agreements that anybody has at once for solutions of an easy puzzle, and those in each second from then on.
const AT_ONCE: u64 = 32;
const PER_SECOND: u64 = 25;
/// Share of a core that the flood may take, and the time in which an honest host is to have its connection: of an optimized build.
const MOST: f64 = 0.2;
const SOON: Duration = Duration::from_secs(1);
/// The group of 3,072 bits, whose agreement takes longest.
const SLOWEST: u8 = 4;
/// Place of the attacker: the router, in a network of the victim's.
const ATTACKER: &str = "10.9.0.1";
const HIP: i32 = 139;

/// Sends forged packets from a raw socket, with solutions of the one puzzle that it was posed.
struct Attacker {
    socket: Socket,
    path: (IpAddr, IpAddr),
    hits: (Hit, Hit),
    /// Number, opaque and counter of the puzzle.
    posed: (Vec<u8>, [u8; 2], Vec<u8>),
    per_second: u64,
    sent: u64,
}

impl Attacker {
    /// Asks for a puzzle in the name of a host that the victim admits.
    fn new(hosts: &Hosts, hits: (Hit, Hit), per_second: u64) -> Self {
        let path = (
            ATTACKER.parse().expect("literal"),
            FIXED[0].parse().expect("literal"),
        );
        let open = || Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(HIP)));
        let socket = hosts.router.run(open).expect("enter");
        let socket = socket.expect("a raw socket");
        let own = SocketAddr::new(path.0, 0);
        socket.bind(&own.into()).expect("its own address");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        let mut attacker = Self {
            socket,
            per_second,
            path,
            hits,
            posed: Default::default(),
            sent: 0,
        };
        let mut builder = Builder::new(PacketType::I1, hits.0, hits.1);
        builder.push(kind::DH_GROUP_LIST, &[SLOWEST]);
        attacker.send(builder);
        let mut answer = [0; 4_096];
        let length = attacker.socket.read(&mut answer).expect("an R1");
        // Behind the header of IPv4.
        let message = Message::parse(&answer[20..length]).expect("a packet of HIP");
        let found = |kind| message.find(kind).expect("an R1 has one").contents;
        let puzzle = Puzzle::parse(found(kind::PUZZLE)).expect("a puzzle");
        assert_eq!(puzzle.difficulty, 0, "nobody has attacked yet");
        let counter = found(kind::R1_COUNTER).to_vec();
        attacker.posed = (puzzle.i.to_vec(), puzzle.opaque, counter);
        attacker
    }

    fn send(&self, builder: Builder) {
        let mut packet = builder.finish().expect("it is short");
        Builder::set_checksum(&mut packet, self.path.0, self.path.1);
        let to = SocketAddr::new(self.path.1, 0);
        self.socket.send_to(&packet, &to.into()).expect("sent");
    }

    /// Sends an I2 that is right up to its MAC, with a new solution.
    fn send_i2(&mut self) {
        self.sent += 1;
        let (i, opaque, counter) = &self.posed;
        let mut j = vec![0; i.len()];
        j[..8].copy_from_slice(&self.sent.to_be_bytes());
        let mut builder = Builder::new(PacketType::I2, self.hits.0, self.hits.1);
        let info = EspInfo {
            keymat_index: 128,
            old_spi: 0,
            new_spi: 0x1234_5678,
        };
        builder.push_with(kind::ESP_INFO, |out| info.write(out));
        builder.push(kind::R1_COUNTER, counter);
        let solution = Solution {
            difficulty: 0,
            opaque: *opaque,
            i,
            j: &j,
        };
        builder.push_with(kind::SOLUTION, |out| solution.write(out));
        let value = DiffieHellman {
            group: SLOWEST,
            value: &[0x12; 384],
        };
        builder.push_with(kind::DIFFIE_HELLMAN, |out| value.write(out));
        builder.push(kind::HIP_CIPHER, &[0, 2]);
        builder.push(kind::ENCRYPTED, &[0; 4 + 16 + 128]);
        builder.push(
            kind::TRANSPORT_FORMAT_LIST,
            &kind::ESP_TRANSFORM.to_be_bytes(),
        );
        builder.push(kind::ESP_TRANSFORM, &[0, 0, 0, 13]);
        builder.push(kind::HIP_MAC, &j);
        builder.push(kind::HIP_SIGNATURE, &[1; 98]);
        self.send(builder);
    }

    /// Floods the victim for so long.
    fn flood(&mut self, length: Duration) {
        let (begun, before) = (clock::now(), self.sent);
        loop {
            let elapsed = clock::now() - begun;
            if elapsed >= length {
                return;
            }
            let due = self.per_second * elapsed.as_micros() as u64 / 1_000_000;
            while self.sent - before < due {
                self.send_i2();
            }
            pace();
        }
    }
}

/// Processor time of a daemon so far: `utime` and `stime` of `/proc/PID/stat`, in hundredths of a second.
fn processor_time(daemon: &Daemon) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", daemon.0.id()));
    let stat = stat.expect("it runs");
    // The name may hold spaces; the state is the third field.
    let behind_name = stat.rsplit_once(") ").expect("a name").1;
    let fields = behind_name.split(' ').skip(11).take(2);
    let ticks: u64 = fields
        .map(|field| field.parse::<u64>().expect("a number"))
        .sum();
    Duration::from_millis(10 * ticks)
}

fn agreements(place: &Place) -> u64 {
    let status = status(place, "fixed");
    let counted = status["counters"]["agreements"].as_u64();
    counted.expect("a count")
}

/// I2 packets that the victim has refused.
fn refused(place: &Place) -> u64 {
    let status = status(place, "fixed");
    let counts = status["refused"].as_object().expect("counts");
    counts.values().filter_map(serde_json::Value::as_u64).sum()
}

#[test]
fn an_honest_host_associates_while_solutions_are_forged() {
    let Ok(per_second) = std::env::var(VARIABLE) else {
        return report(&format!("not asked for: {VARIABLE} is not set"));
    };
    let per_second = per_second.parse().expect("packets in a second");
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let key = |name: &str| {
        let said = place.run(["hip", "key", name]);
        assert_eq!(said.code, Some(0), "{}", said.err);
        said.out.trim().to_owned()
    };
    let (mobile, fixed, third) = (key("mobile.key"), key("fixed.key"), key("third.key"));
    let peer = format!("[[hip.peers]]\ntag = \"{fixed}\"\naddresses = {FIXED:?}\n");
    place.file("mobile.toml", &format!("{}{peer}", table(&place, "mobile")));
    let peers = [&mobile, &third].map(|tag| format!("[[hip.peers]]\ntag = \"{tag}\"\n"));
    let peers = peers.concat();
    place.file("fixed.toml", &format!("{}{peers}", table(&place, "fixed")));
    let victim = Daemon::start(&place, &hosts.fixed, "fixed.toml");
    let _mobile = Daemon::start(&place, &hosts.mobile, "mobile.toml");
    let listen = || TcpListener::bind("[::]:0").expect("a port");
    let listener = hosts.fixed.run(listen).expect("enter");
    let port = listener.local_addr().expect("bound").port();

    let hit = |tag: &str| Hit(tag.parse::<Ipv6Addr>().expect("a tag").octets());
    let mut attacker = Attacker::new(&hosts, (hit(&third), hit(&fixed)), per_second);

    // The control: so much each of them costs that is not refused before.
    let before = processor_time(&victim);
    for _ in 0..AT_ONCE {
        attacker.send_i2();
    }
    let begun = clock::now();
    while agreements(&place) < AT_ONCE {
        assert!(clock::now() - begun < PATIENCE, "{}", agreements(&place));
        pace();
    }
    let each = (processor_time(&victim) - before).as_secs_f64() / AT_ONCE as f64;
    let unlimited = each * attacker.per_second as f64;
    assert!(
        unlimited > 1.0,
        "no processor has so much time: {unlimited}"
    );

    let (counted, turned_away) = (agreements(&place), refused(&place));
    let (before, begun, sent) = (processor_time(&victim), clock::now(), attacker.sent);
    attacker.flood(Duration::from_secs(1));
    let tag = IpAddr::V6(fixed.parse().expect("a tag"));
    let mobile = &hosts.mobile;
    let took = std::thread::scope(|scope| {
        let honest = scope.spawn(|| {
            let begun = clock::now();
            connect(mobile, tag, port);
            clock::now() - begun
        });
        attacker.flood(Duration::from_secs(4));
        while !honest.is_finished() {
            attacker.flood(Duration::from_millis(100));
        }
        honest.join().expect("it connects")
    });
    let elapsed = (clock::now() - begun).as_secs_f64();
    let share = (processor_time(&victim) - before).as_secs_f64() / elapsed;
    let sent = attacker.sent - sent;
    let (counted, turned_away) = (agreements(&place) - counted, refused(&place) - turned_away);
    report(&format!(
        "{sent} I2 in {elapsed:.1} s: {turned_away} refused, {counted} agreements, {:.1} % of a core; \
         without limits {:.0} %; an honest host had its connection after {took:?}",
        share * 100.0,
        unlimited * 100.0,
    ));
    // Of those that have arrived: a busy machine loses many.
    assert!(turned_away > counted * 3, "{turned_away}, {counted}");
    let most = PER_SECOND * (elapsed.ceil() as u64 + 1) + 1;
    assert!(counted <= most, "{counted} agreements in {elapsed} s");
    assert!(share * 5.0 < unlimited, "{share} of {unlimited}");
    if !cfg!(debug_assertions) {
        assert!(share < MOST, "{share} of a core");
        assert!(took < SOON, "the honest host waited {took:?}");
    }
}
