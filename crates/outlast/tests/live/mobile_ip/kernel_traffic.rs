//! What is sent through tunnels in the kernel in other ways than most programs do: batches of datagrams, and
//! forged tunnels.

use super::kernel_tunnels::{count, has_kernel_tunnels};
use super::{CORRESPONDENT, Daemon, HOME_ADDRESS, Hosts, configure, start};
use crate::hip::{PATIENCE, pace};
use crate::support::Place;
use outlast_linux::clock;
use outlast_linux::namespace::Namespace;
use outlast_wire::{IpHeader, Packet, UdpHeader};
use quinn_udp::{Transmit, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

const HOME_AGENT: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 2);
/// The mobile host's address in its first network.
const CARE_OF_ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 7);
const IPV4_IN_IP: i32 = 4;

/// Bytes of a datagram, and datagrams of a batch.
const SIZE: usize = 1_200;
const BATCH: u32 = 10;
/// Datagrams that follow a batch each by itself.
const SINGLE: u32 = 3;
const ROUNDS: u32 = 40;

/// Home agent and mobile node, registered.
fn registered(place: &Place, hosts: &Hosts) -> (Daemon, Daemon) {
    configure(place, "key", "key", "hmac-sha-256");
    let (agent, mobile) = start(place, hosts);
    mobile.await_lines(" registered", 1);
    (agent, mobile)
}

/// So many datagrams with numbers from `first` on.
fn numbered(first: u32, count: u32) -> Vec<u8> {
    let one = |number: u32| {
        let mut datagram = number.to_be_bytes().to_vec();
        datagram.resize(SIZE, 7);
        datagram
    };
    (first..first + count).flat_map(one).collect()
}

/// Sends batches with single datagrams behind each; the numbers that arrive, in their order.
fn arrivals(from: &Namespace, own: IpAddr, to: &Namespace, other: IpAddr) -> Vec<u32> {
    let bind = |address: IpAddr| move || UdpSocket::bind((address, 0));
    let receiver = to.run(bind(other)).expect("enter").expect("a port");
    let wait = Some(Duration::from_secs(2));
    receiver.set_read_timeout(wait).expect("a socket");
    let sender = from.run(bind(own)).expect("enter").expect("a port");
    let to = receiver.local_addr().expect("bound");
    let batches = UdpSocketState::new((&sender).into()).expect("a socket");
    let send = |first, count| {
        let contents = &numbered(first, count);
        let transmit = Transmit {
            destination: to,
            ecn: None,
            contents,
            segment_size: Some(SIZE),
            src_ip: None,
        };
        let sent = batches.try_send((&sender).into(), &transmit);
        sent.expect("there is room");
    };
    let mut arrived = Vec::new();
    let mut next = 0;
    let mut buffer = [0; SIZE + 1];
    for _ in 0..ROUNDS {
        send(next, BATCH);
        next += BATCH;
        for _ in 0..SINGLE {
            send(next, 1);
            next += 1;
        }
        for _ in 0..BATCH + SINGLE {
            let Ok(length) = receiver.recv(&mut buffer) else {
                return arrived;
            };
            assert_eq!(length, SIZE, "a datagram of its own");
            arrived.push(u32::from_be_bytes([
                buffer[0], buffer[1], buffer[2], buffer[3],
            ]));
        }
    }
    arrived
}

#[test]
fn batches_of_datagrams_stay_in_order_with_single_ones() {
    if !has_kernel_tunnels() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (agent, mobile) = registered(&place, &hosts);
    let expected: Vec<u32> = (0..ROUNDS * (BATCH + SINGLE)).collect();
    let (home, correspondent) = (&hosts.mobile, &hosts.correspondent);
    let up = arrivals(home, HOME_ADDRESS.into(), correspondent, CORRESPONDENT);
    assert_eq!(up, expected, "up: {}{}", agent.said(), mobile.said());
    let down = arrivals(correspondent, CORRESPONDENT, home, HOME_ADDRESS.into());
    assert_eq!(down, expected, "down: {}{}", agent.said(), mobile.said());
    for (role, name) in [
        ("mobile-node", "entered_in_kernel"),
        ("home-agent", "left_in_kernel"),
        ("home-agent", "entered_in_kernel"),
        ("mobile-node", "left_in_kernel"),
    ] {
        let counted = count(&place, role, name);
        assert!(counted >= expected.len() as u64, "{role}: {name} {counted}");
    }
}

/// Sends a datagram of `source` in a tunnel to the home agent, from a host and an address of its own.
fn forge(host: &Namespace, own: IpAddr, source: Ipv4Addr) {
    let ip = IpHeader::new(source.into(), CORRESPONDENT);
    let udp = UdpHeader {
        source_port: 9,
        destination_port: 9,
    };
    let inner = Packet::udp_datagram(ip, udp, b"forged");
    let send = || {
        let protocol = Some(Protocol::from(IPV4_IN_IP));
        let socket = Socket::new(Domain::IPV4, Type::RAW, protocol)?;
        socket.bind(&SocketAddr::new(own, 0).into())?;
        let to = SocketAddr::new(HOME_AGENT.into(), 0);
        socket.send_to(&inner.to_bytes(), &to.into())
    };
    host.run(send).expect("enter").expect("sent");
}

#[test]
fn a_mobile_nodes_tunnel_carries_nothing_in_anothers_name() {
    if !has_kernel_tunnels() {
        return;
    }
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let (_agent, _mobile) = registered(&place, &hosts);
    let await_count = |name: &str, least: u64| {
        let begun = clock::now();
        while count(&place, "home-agent", name) < least {
            assert!(clock::now() - begun < PATIENCE, "{name} is not {least}");
            pace();
        }
    };
    // Control: the same in the mobile node's own name leaves the tunnel in the kernel.
    let care_of_address = CARE_OF_ADDRESS.into();
    let before = count(&place, "home-agent", "left_in_kernel");
    forge(&hosts.mobile, care_of_address, HOME_ADDRESS);
    await_count("left_in_kernel", before + 1);
    let strangers = count(&place, "home-agent", "dropped_strangers");
    let left = count(&place, "home-agent", "left_in_kernel");
    for (host, own, source) in [
        (&hosts.correspondent, CORRESPONDENT, HOME_ADDRESS),
        (&hosts.mobile, care_of_address, Ipv4Addr::new(10, 50, 0, 6)),
    ] {
        forge(host, own, source);
    }
    await_count("dropped_strangers", strangers + 2);
    let after = count(&place, "home-agent", "left_in_kernel");
    assert_eq!(after, left, "neither has left the tunnel");
}
