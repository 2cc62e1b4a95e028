//! Tunnels IP in IP in the kernel: what is plain stays there, and all else is as in user space, which is the
//! control of each test.

use super::{CORRESPONDENT, Daemon, HOME_ADDRESS, Hosts, PLACES, configure};
use crate::hip::{PATIENCE, Sender, connect, ip, pace, read, skip};
use crate::support::{Place, again, status_at};
use bytes::Bytes;
use outlast_linux::capability::probe_all;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_linux::protocol::ProtocolReceiver;
use outlast_linux::raw::{RawSender, Sent};
use outlast_wire::{IpHeader, Packet, Transport, UdpHeader};
use serde_json::Value;
use socket2::{Domain, Protocol, Socket, Type};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::Ordering;

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
const IPV4_IN_IP: i32 = 4;
/// What is carried at once.
const LENGTH: usize = 16 << 20;

/// Whether this machine has what keeps tunnels in the kernel; says so if not.
pub(super) fn has_kernel_tunnels() -> bool {
    let probes = probe_all();
    let tunnels = probes.iter().find(|probe| probe.name == "eBPF tunnels");
    let has = tunnels.expect("it is probed").result.is_available();
    if !has {
        skip("this machine has no tunnels in eBPF");
    }
    has
}

/// Has a role take a data path.
pub(super) fn choose(place: &Place, role: &str, data_path: &str) {
    choose_in(place, &format!("{role}.toml"), role, data_path);
}

/// Has the role that is configured in a file take a data path.
pub(super) fn choose_in(place: &Place, file: &str, role: &str, data_path: &str) {
    let text = std::fs::read_to_string(place.path().join(file)).expect("ours");
    let table = format!("[{}]", role.replace('-', "_"));
    let chosen = format!("{table}\ndata_path = \"{data_path}\"");
    place.file(file, &text.replacen(&table, &chosen, 1));
}

/// Home agent and mobile node, registered.
fn start(place: &Place, hosts: &Hosts, data_path: &str) -> (Daemon, Daemon) {
    start_mixed(place, hosts, [data_path; 2])
}

/// Home agent and mobile node, registered, whose data paths may differ.
pub(super) fn start_mixed(
    place: &Place,
    hosts: &Hosts,
    [home_agent, mobile_node]: [&str; 2],
) -> (Daemon, Daemon) {
    configure(place, "key", "key", "hmac-sha-256");
    choose(place, "home-agent", home_agent);
    choose(place, "mobile-node", mobile_node);
    let (agent, mobile) = super::start(place, hosts);
    mobile.await_lines(" registered", 1);
    (agent, mobile)
}

fn status(place: &Place, role: &str) -> Value {
    status_at(&place.path().join(role).with_extension("sock"))
}

pub(super) fn count(place: &Place, role: &str, name: &str) -> u64 {
    let status = status(place, role);
    status["counters"][name].as_u64().expect("a count")
}

/// Carries [`LENGTH`] bytes from one host to the other; whether they are what was sent.
fn is_carried(from: &Namespace, to: &Namespace, address: IpAddr) -> bool {
    carries(LENGTH, from, to, address)
}

/// Carries so many bytes from one host to the other; whether they are what was sent.
pub(super) fn carries(length: usize, from: &Namespace, to: &Namespace, address: IpAddr) -> bool {
    let listener = from
        .run(|| TcpListener::bind((address, 0)))
        .expect("enter")
        .expect("a port");
    let port = listener.local_addr().expect("bound").port();
    let sent: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
    let expected = sent.clone();
    let sender = std::thread::spawn(move || {
        let (mut out, _) = listener.accept().expect("somebody comes");
        out.write_all(&sent).expect("it is read");
    });
    let mut stream = connect(to, address, port);
    stream
        .set_read_timeout(Some(std::time::Duration::from_secs(30)))
        .expect("a socket");
    let mut received = Vec::new();
    stream.read_to_end(&mut received).expect("to its end");
    sender.join().expect("the sender ends");
    received == expected
}

/// What becomes of a probe.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Heard {
    Arrived,
    /// Who has sent which error.
    Error {
        from: IpAddr,
        kind: u8,
        code: u8,
        mtu: Option<u32>,
    },
}

impl Heard {
    /// TTL exceeded in transit.
    const EXPIRED: Self = Self::Error {
        from: IpAddr::V4(HOME_AGENT),
        kind: 11,
        code: 0,
        mtu: None,
    };

    /// Fragmentation needed and DF set.
    const fn too_big(mtu: u32) -> Self {
        Self::Error {
            from: IpAddr::V4(HOME_AGENT),
            kind: 3,
            code: 4,
            mtu: Some(mtu),
        }
    }
}

/// A datagram that is sent until something is heard of it. An answer to an earlier one may come late, where the
/// machine stands still for a moment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Probe {
    /// Its number, which is its source port: every error quotes that.
    number: u16,
    /// Its length in bytes, with its headers.
    length: usize,
}

/// Sends single datagrams from the correspondent to the mobile host's home address.
struct Prober {
    raw: RawSender,
    errors: ProtocolReceiver,
    socket: UdpSocket,
    /// The number of the next one.
    next: Cell<u16>,
}

impl Prober {
    fn new(hosts: &Hosts) -> Self {
        let open = || {
            let raw = RawSender::open(0, None)?;
            Ok((raw, ProtocolReceiver::open(1, CORRESPONDENT)?))
        };
        let opened: std::io::Result<_> = hosts.correspondent.run(open).expect("enter");
        let (raw, errors) = opened.expect("this is root");
        let bind = || UdpSocket::bind((HOME_ADDRESS, 0));
        let socket = hosts.mobile.run(bind).expect("enter").expect("a port");
        socket.set_nonblocking(true).expect("a socket");
        Self {
            raw,
            errors,
            socket,
            next: Cell::new(5_000),
        }
    }

    /// A datagram that no other one is taken for.
    fn one_of(&self, length: usize) -> Probe {
        let number = self.next.get();
        self.next.set(number + 1);
        Probe { number, length }
    }

    /// Sends packets of so many bytes that must not be cut, until something is heard of one.
    fn probe(&self, length: usize, ttl: u8) -> Heard {
        let probe = self.one_of(length);
        let ip = IpHeader {
            hop_limit: ttl,
            ..IpHeader::new(CORRESPONDENT, HOME_ADDRESS.into())
        };
        let udp = UdpHeader {
            source_port: probe.number,
            destination_port: self.socket.local_addr().expect("bound").port(),
        };
        let mut bytes = Packet::udp_datagram(ip, udp, &vec![7; length - 28])
            .to_bytes()
            .to_vec();
        // DF; the kernel makes the checksum.
        bytes[6] |= 0x40;
        self.repeat(probe, || {
            let sent = self.raw.send(HOME_ADDRESS.into(), &bytes).expect("sent");
            assert_eq!(sent, Sent::Accepted, "{length} bytes");
        })
    }

    /// Sends a datagram that leaves in fragments, until something is heard of it.
    fn probe_in_fragments(&self, hosts: &Hosts) -> Heard {
        let probe = self.one_of(4028);
        let to = self.socket.local_addr().expect("bound");
        let bind = || UdpSocket::bind((CORRESPONDENT, probe.number));
        let from = hosts.correspondent.run(bind).expect("enter");
        let from = from.expect("a port that nobody has");
        self.repeat(probe, || {
            let sent = from.send_to(&[7; 4000], to).expect("sent");
            assert_eq!(sent, 4000);
        })
    }

    fn repeat(&self, probe: Probe, send: impl Fn()) -> Heard {
        let begun = clock::now();
        loop {
            send();
            for _ in 0..200 {
                if let Some(heard) = self.heard(probe) {
                    return heard;
                }
                pace();
            }
            assert!(clock::now() - begun < PATIENCE, "{probe:?} is lost");
        }
    }

    /// What has become of a datagram. What is about others is passed over.
    fn heard(&self, probe: Probe) -> Option<Heard> {
        let mut buffer = [0; 8192];
        loop {
            match again(|| self.socket.recv_from(&mut buffer)) {
                Ok((length, from)) => {
                    let number = from.port();
                    let length = length + 28;
                    if probe == (Probe { number, length }) {
                        return Some(Heard::Arrived);
                    }
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => break,
                Err(error) => panic!("{error}"),
            }
        }
        while let Some(error) = self.errors.receive_whole(&mut buffer).expect("a socket") {
            let error = Packet::parse(Bytes::copy_from_slice(error)).expect("a packet");
            if let Transport::IcmpError(about) = &error.header().transport
                && quoted(&error) == Some(probe)
            {
                return Some(Heard::Error {
                    from: error.header().ip.source,
                    kind: about.kind,
                    code: about.code,
                    mtu: about.mtu,
                });
            }
        }
        None
    }
}

/// What an error is about.
fn quoted(error: &Packet) -> Option<Probe> {
    let Transport::IcmpError(about) = &error.header().transport else {
        return None;
    };
    let (number, _) = about.quoted?.ports?;
    let length = *error.payload()?.get(2..)?.first_chunk()?;
    Some(Probe {
        number,
        length: u16::from_be_bytes(length).into(),
    })
}

/// Errors come from whom they should, and just where they should.
fn check_errors(hosts: &Hosts) {
    let prober = Prober::new(hosts);
    // The router, the home agent's kernel and the tunnel take one each.
    assert_eq!(prober.probe(100, 3), Heard::EXPIRED);
    assert_eq!(prober.probe(100, 4), Heard::Arrived);
    assert_eq!(prober.probe(1440, 64), Heard::Arrived);
    assert_eq!(prober.probe(1441, 64), Heard::too_big(1440));
    assert_eq!(prober.probe_in_fragments(hosts), Heard::Arrived);
    // Beyond the device, a router on the tunnel's way says so, and the home agent turns that round; from then on it
    // says so itself.
    ip(&hosts.router, &["link set mobile0 mtu 1300"]);
    for _ in 0..2 {
        assert_eq!(prober.probe(1281, 64), Heard::too_big(1280));
    }
    assert_eq!(prober.probe(1280, 64), Heard::Arrived);
}

/// Whether what stays in the kernel is counted there, and with all the others.
fn check_counters(place: &Place, is_in_kernel: bool) {
    // At least: packets may be as long as the device's.
    let least = (LENGTH / 1440) as u64;
    for role in ["home-agent", "mobile-node"] {
        let data_path = status(place, role)["data_path"].clone();
        let data_path = data_path.as_str().expect("a text").to_owned();
        assert_eq!(data_path.starts_with("eBPF"), is_in_kernel, "{data_path}");
        for name in ["entered_in_kernel", "left_in_kernel"] {
            let counted = count(place, role, name);
            match is_in_kernel {
                true => assert!(counted > least / 4, "{role}: {name} {counted}"),
                false => assert_eq!(counted, 0, "{role}: {name}"),
            }
        }
    }
    let kernel = count(place, "home-agent", "entered_in_kernel");
    let tunnelled = count(place, "home-agent", "tunnelled");
    assert!(tunnelled >= least, "{tunnelled} of {least} packets");
    assert!(tunnelled >= kernel, "{tunnelled} with {kernel}");
    let left = count(place, "home-agent", "reverse_tunnelled");
    assert!(left > 0, "what comes back is counted");
    assert_eq!(count(place, "home-agent", "dropped_unfit"), 0);
}

#[test]
fn transfers_and_errors_are_the_same_in_the_kernel_and_in_user_space() {
    if !has_kernel_tunnels() {
        return;
    }
    for data_path in ["ebpf", "user-space"] {
        let Some(hosts) = Hosts::new() else { return };
        let place = Place::new();
        let (agent, mobile) = start(&place, &hosts, data_path);
        let said = || format!("{data_path}: {}{}", agent.said(), mobile.said());
        let (home, correspondent) = (&hosts.mobile, &hosts.correspondent);
        let down = is_carried(correspondent, home, CORRESPONDENT);
        assert!(down, "{}", said());
        let up = is_carried(home, correspondent, HOME_ADDRESS.into());
        assert!(up, "{}", said());
        check_counters(&place, data_path == "ebpf");
        check_errors(&hosts);
    }
}

#[test]
fn after_a_hand_off_the_kernel_sends_to_the_new_address_and_in_udp_to_none() {
    if !has_kernel_tunnels() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_agent, mobile) = start(&place, &hosts, "ebpf");
    let sender = Sender::start(&hosts.correspondent);
    let mut stream = connect(&hosts.mobile, CORRESPONDENT, sender.port);
    let mut at = 0;
    assert!(read(&mut stream, &mut at, 200_000), "before any move");
    for (moves, number) in [(2, 1), (3, 0)] {
        hosts.place(PLACES[number]);
        mobile.await_lines(" registered", moves);
        let before = count(&place, "home-agent", "entered_in_kernel");
        let goes_on = read(&mut stream, &mut at, 400_000);
        assert!(goes_on, "in network {number}: {}", mobile.said());
        let after = count(&place, "home-agent", "entered_in_kernel");
        assert!(after > before, "the kernel has the new address");
    }
    if hosts.translate() {
        hosts.place(PLACES[super::TRANSLATED]);
        mobile.await_lines("in_udp=true", 1);
        let before = count(&place, "home-agent", "entered_in_kernel");
        let goes_on = read(&mut stream, &mut at, 400_000);
        assert!(goes_on, "in UDP: {}", mobile.said());
        let after = count(&place, "home-agent", "entered_in_kernel");
        assert_eq!(
            after, before,
            "the kernel has an address that is none any more"
        );
    } else {
        skip("there is no nft, or no address translation");
    }
    sender.is_over.store(true, Ordering::Relaxed);
}

/// Sends `inner` in a tunnel to the home agent from the correspondent, who has none.
fn forge(hosts: &Hosts, inner: &Packet) {
    let send = || {
        let protocol = Some(Protocol::from(IPV4_IN_IP));
        let socket = Socket::new(Domain::IPV4, Type::RAW, protocol)?;
        let to = SocketAddr::new(HOME_AGENT.into(), 0);
        socket.send_to(&inner.to_bytes(), &to.into())
    };
    hosts.correspondent.run(send).expect("enter").expect("sent");
}

#[test]
fn a_strangers_tunnel_does_not_end_in_the_kernel() {
    if !has_kernel_tunnels() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_agent, _mobile) = start(&place, &hosts, "ebpf");
    // Control: the mobile host's own tunnel ends there.
    let up = is_carried(&hosts.mobile, &hosts.correspondent, HOME_ADDRESS.into());
    assert!(up, "the mobile host's bytes");
    let left = count(&place, "home-agent", "left_in_kernel");
    assert!(left > 0, "they came through the kernel");
    let ip = IpHeader::new(HOME_ADDRESS.into(), CORRESPONDENT);
    let udp = UdpHeader {
        source_port: 9,
        destination_port: 9,
    };
    let inner = Packet::udp_datagram(ip, udp, b"forged");
    for _ in 0..3 {
        forge(&hosts, &inner);
    }
    let begun = clock::now();
    while count(&place, "home-agent", "dropped_strangers") < 3 {
        assert!(clock::now() - begun < PATIENCE, "they are not dropped");
        pace();
    }
    let dropped = count(&place, "home-agent", "dropped_strangers");
    assert_eq!(dropped, 3, "user space sees each of them");
}
