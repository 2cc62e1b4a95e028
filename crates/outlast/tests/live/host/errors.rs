//! Forged ICMP errors by the ten thousand from somebody else, while the carrier goes and comes ten times a
//! second: no connection is aborted or damaged, and the agent keeps to its rate.

use super::operating::{status, status_when};
use super::requests::{MOBILE, Network, REMOTE};
use super::{Agent, PATIENCE, ip, pause};
use crate::killing::Random;
use crate::path::skip;
use crate::path::wiring::{inside, switch};
use crate::support::Place;
use outlast_base::time::{Duration, Instant};
use outlast_host::control::{Connection, EndpointControl};
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::RouteSocket;
use outlast_linux::raw::RawSender;
use outlast_linux::socket::TcpInfo;
use outlast_linux::stack::TcpStack;
use outlast_wire::{IcmpNotice, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use rustix::fd::AsFd;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::thread;

const MOBILE_V6: &str = "fd00::1";
const REMOTE_V6: &str = "fd00::7";

/// Half of them over IPv6. Of each version, every other one has little under way, and the rest several
/// full segments, which "too big" is about.
const CONNECTIONS: usize = 80;
const LITTLE: usize = 500;
const MUCH: usize = 12_000;
const PER_SECOND: u64 = 20;
const BURST: u64 = 5;

/// How long the errors come, and the carrier goes and comes.
const FLOOD: Duration = Duration::from_secs(5);
/// Of each, there and not there.
const FLAP: Duration = Duration::from_millis(50);
/// Errors between two pauses of a millisecond.
const AT_A_TIME: usize = 20;

/// A network of which the mobile host has an agent or none, and a stranger at the switch, whom the outage
/// does not touch.
struct Scene {
    network: Network,
    stranger: Namespace,
    senders: Vec<TcpStream>,
    receivers: Vec<TcpStream>,
}

/// What became of a flood.
#[derive(Clone, Copy, Debug)]
struct Flood {
    /// Errors that were sent.
    errors: u64,
    /// Segments that the mobile host has retransmitted meanwhile: of connections whose numbers were
    /// known, and of those whose were guessed.
    retransmitted: [u64; 2],
}

/// What a connection carries.
fn content(number: usize) -> Vec<u8> {
    let length = if number.is_multiple_of(2) {
        LITTLE
    } else {
        MUCH
    };
    (0..length).map(|n| (n / 251 + n + number) as u8).collect()
}

/// Whether the stranger knows the connection's sequence numbers.
const fn is_known(number: usize) -> bool {
    number % 4 < 2
}

impl Scene {
    fn new() -> Option<Self> {
        let network = Network::new(true)?;
        let stranger = Namespace::new().inspect_err(|error| skip(error)).ok()?;
        let cable = || {
            let mut routes = RouteSocket::open().expect("netlink");
            let other = Some(stranger.as_fd());
            routes.add_veth("other0", "link0", other).expect("a cable");
        };
        network.switch.run(cable).expect("enter");
        ip(&network.switch, "link set other0 master bridge0 up");
        ip(&stranger, "address add 10.1.0.66/24 dev link0");
        ip(&stranger, "address add fd00::66/64 dev link0 nodad");
        ip(&stranger, "link set link0 up");
        let ends = [
            (&network.mobile, MOBILE_V6, "02:00:00:00:00:01"),
            (&network.remote, REMOTE_V6, "02:00:00:00:00:07"),
        ];
        for ((host, own, hardware), (_, peer, far)) in [(ends[0], ends[1]), (ends[1], ends[0])] {
            ip(host, &format!("address add {own}/64 dev link0 nodad"));
            let known = format!("lladdr {far} dev link0 nud permanent");
            ip(host, &format!("neigh add {peer} {known}"));
            // The mobile host's carrier makes whoever asks for it forget it.
            if own == MOBILE_V6 {
                for own in [MOBILE, MOBILE_V6] {
                    let known = format!("lladdr {hardware} dev link0 nud permanent");
                    ip(&stranger, &format!("neigh add {own} {known}"));
                }
            }
        }
        let [senders, receivers] = connections(&network);
        Some(Self {
            network,
            stranger,
            senders,
            receivers,
        })
    }

    fn retransmitted(&self) -> [u64; 2] {
        let mut all = [0; 2];
        for (number, sender) in self.senders.iter().enumerate() {
            let info = TcpInfo::of(sender).expect("a TCP socket");
            all[usize::from(!is_known(number))] += u64::from(info.retransmitted_segments());
        }
        all
    }

    /// Everything is under way, nothing arrives, and there were timeouts.
    fn lose(&mut self) {
        ip(&self.network.switch, "link set far0 down");
        for (number, sender) in self.senders.iter_mut().enumerate() {
            sender.write_all(&content(number)).expect("it is open");
        }
        pause(Duration::from_millis(1_500));
    }

    /// Forges errors while the mobile host's carrier goes and comes.
    fn flood(&self, random: &mut Random) -> Flood {
        let list = || {
            let mut stack = TcpStack::open(0).expect("the agent runs, too");
            let mut all = Vec::new();
            stack.connections(&mut all).expect("it can be listed");
            all
        };
        let mut connections = self.network.mobile.run(list).expect("enter");
        connections.retain(Connection::is_outstanding);
        assert_eq!(connections.len(), CONNECTIONS);
        let numbered = self.senders.iter().enumerate();
        let known = numbered.filter(|(number, _)| is_known(*number));
        let known: Vec<_> = known
            .map(|(_, sender)| sender.local_addr().expect("bound"))
            .collect();
        let attacker = Attacker { connections, known };
        let before = self.retransmitted();
        let end = clock::now() + FLOOD;
        let errors = thread::scope(|scope| {
            scope.spawn(|| self.flap(end));
            let forge = || attacker.forge(random, end);
            self.stranger.run(forge).expect("enter")
        });
        let after = self.retransmitted();
        Flood {
            errors,
            retransmitted: [0, 1].map(|of| after[of] - before[of]),
        }
    }

    fn flap(&self, end: Instant) {
        while clock::now() < end {
            for up in [false, true] {
                inside(&self.network.switch, |route| switch(route, "near0", up));
                pause(FLAP);
            }
        }
    }

    /// The far end is back: everything arrives as it was sent, and the connections work both ways.
    fn assert_whole(&mut self) {
        ip(&self.network.switch, "link set far0 up");
        let ends = self.senders.iter_mut().zip(&mut self.receivers);
        for (number, (sender, receiver)) in ends.enumerate() {
            let content = content(number);
            let mut all = vec![0; content.len()];
            receiver.read_exact(&mut all).expect("it arrives");
            assert!(all == content, "what arrived is not what was sent");
            receiver.write_all(b"hello").expect("it is open");
            sender.read_exact(&mut [0; 5]).expect("it arrives");
        }
    }
}

/// Connections of the mobile host's; its own ends first.
fn connections(network: &Network) -> [Vec<TcpStream>; 2] {
    let mut ends = [Vec::new(), Vec::new()];
    for address in [REMOTE, REMOTE_V6] {
        let listen = || TcpListener::bind((address, 0)).expect("a port");
        let listener = network.remote.run(listen).expect("enter");
        let to = listener.local_addr().expect("bound");
        let connect = |_| TcpStream::connect(to).expect("it listens");
        let connect_all = || (0..CONNECTIONS / 2).map(connect).collect::<Vec<_>>();
        ends[0].extend(network.mobile.run(connect_all).expect("enter"));
        let accept = |_| listener.accept().expect("it comes").0;
        ends[1].extend((0..CONNECTIONS / 2).map(accept));
    }
    for end in ends.iter().flatten() {
        end.set_read_timeout(Some(PATIENCE)).expect("a socket");
    }
    ends
}

/// What a router says of a segment.
fn notice(random: &mut Random) -> IcmpNotice {
    match random.number() % 8 {
        0 | 1 => IcmpNotice::NetworkUnreachable,
        2 => IcmpNotice::HostUnreachable,
        3 => IcmpNotice::PortUnreachable,
        4 => IcmpNotice::Prohibited,
        5 => IcmpNotice::HopLimitExceeded,
        _ => IcmpNotice::TooBig {
            mtu: 68 + (random.number() % 1_500) as u32,
        },
    }
}

/// Who sends errors about connections, of some of which the numbers are known.
struct Attacker {
    connections: Vec<Connection>,
    /// The mobile host's ends of these.
    known: Vec<SocketAddr>,
}

impl Attacker {
    /// Sends errors until then: where the numbers are known, two of three quote that of the oldest byte under way,
    /// the rest that of any other; elsewhere all are guessed. How many.
    fn forge(&self, random: &mut Random, end: Instant) -> u64 {
        let sender = RawSender::open(0, None).expect("the agent runs, too");
        let mut errors = 0;
        while clock::now() < end {
            for some in self.connections.chunks(AT_A_TIME) {
                for one in some {
                    let under_way = one.snd_nxt.distance_from(one.snd_una).unsigned_abs();
                    let is_known = self.known.contains(&one.id.local);
                    let seq = match (is_known, random.number() % 3) {
                        (false, _) => SeqNumber(random.number() as u32),
                        (true, 0) => one.snd_una + (random.number() as u32) % under_way,
                        (true, _) => one.snd_una,
                    };
                    let packet = error(one, seq, notice(random), random);
                    let accepted = sender.send(one.id.local.ip(), &packet.to_bytes());
                    errors += u64::from(accepted.is_ok());
                }
                pause(Duration::from_millis(1));
            }
        }
        errors
    }
}

fn error(about: &Connection, seq: SeqNumber, notice: IcmpNotice, random: &mut Random) -> Packet {
    let (from, to) = (about.id.local, about.id.remote);
    let ip = IpHeader {
        source: from.ip(),
        destination: to.ip(),
        hop_limit: 64,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: from.port(),
        destination_port: to.port(),
        seq,
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    let segment = Packet::tcp_segment(ip, header, &[]);
    // In any router's name, or the peer's.
    let router = match (to.ip(), random.number() % 2) {
        (IpAddr::V4(_), 0) => IpAddr::from(Ipv4Addr::new(10, 1, 0, 99)),
        (IpAddr::V6(_), 0) => "fd00::99".parse().expect("literal"),
        (peer, _) => peer,
    };
    Packet::icmp_error(router, notice, &segment).expect("it may be sent")
}

#[test]
fn forged_errors_abort_nothing_and_make_the_agent_send_no_more_than_its_rate() {
    let (Some(mut helped), Some(mut alone)) = (Scene::new(), Scene::new()) else {
        return;
    };
    let place = Place::new();
    let table = format!("[host]\nper_second = {PER_SECOND}\nburst = {BURST}\n");
    place.file("host.toml", &table);
    let agent = Agent::start(&place, &helped.network.mobile, &["--config", "host.toml"]);
    let mut random = [(); 2].map(|()| Random::new("forged errors"));
    let counts = || {
        let status = status(&place);
        let of = |name: &str| status["counters"][name].as_u64().expect("a count");
        ["returns", "retransmissions"].map(of)
    };
    let (began, before) = (clock::now(), counts());
    let [with, without] = thread::scope(|scope| {
        let scenes = [&mut helped, &mut alone].into_iter().zip(&mut random);
        let floods = scenes.map(|(scene, random)| {
            scope.spawn(move || {
                scene.lose();
                scene.flood(random)
            })
        });
        let floods: Vec<_> = floods.collect();
        let floods = floods.into_iter();
        let floods = floods.map(|flood| flood.join().expect("no panic"));
        floods.collect::<Vec<_>>().try_into().expect("two")
    });
    let after = counts();
    let allowed = BURST + PER_SECOND * clock::now().since(began).as_millis() as u64 / 1_000 + 1;
    let [returns, brought_forward] = [0, 1].map(|of| after[of] - before[of]);
    assert!(
        with.errors.min(without.errors) > 5_000,
        "{with:?} {without:?}"
    );
    assert!(returns > 5, "{returns}");
    assert!(
        (1..=allowed).contains(&brought_forward),
        "{brought_forward} of {allowed}"
    );
    // The kernel by itself heeds the errors whose numbers are known, more or less soon (RFC 6069).
    let [known, guessed] = without.retransmitted;
    let most = [known * 6 / 5 + allowed, guessed + allowed];
    let is_within = with
        .retransmitted
        .iter()
        .zip(most)
        .all(|(with, most)| *with <= most);
    assert!(is_within, "{with:?} {without:?} {allowed}");
    // Otherwise the numbers make no difference.
    assert!(known > guessed * 2, "{without:?}");
    helped.assert_whole();
    alone.assert_whole();
    status_when(&place, |status| status["pending"] == 0);
    drop(agent);
}
