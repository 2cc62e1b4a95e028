//! Applications without IPv6 reach peers by local-scope identifiers.

use crate::common::{Network, address, identity};
use outlast_base::time::Duration;
use outlast_hip::{
    Admission, Config, Conversation, Family, LONGER, LocalScope, Peer, Refusal, StateName,
};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{
    IcmpNotice, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, Transport, UdpHeader,
};
use std::net::{IpAddr, Ipv4Addr};

const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const MTU: u32 = 1440;

fn config() -> Config {
    Config {
        local_scope: Some(LocalScope {
            own: OWN,
            prefix_length: 15,
            mtu: MTU,
        }),
        ..Config::default()
    }
}

/// Two hosts that speak, of which both have LSIs.
fn pair() -> Network {
    let mut network = Network::pair_of(7, [identity(1), identity(2)], [config(), config()]);
    network.assert_data_flows_after_meeting(0, 1);
    network
}

/// The LSI of a node at another one.
fn lsi(network: &Network, at: usize, of: usize) -> Ipv4Addr {
    let hit = network.hit(of);
    let mut views = network.nodes[at].host.views();
    let view = views.find(|view| view.peer == hit).expect("an association");
    view.lsi.expect("an identifier")
}

fn header(from: impl Into<IpAddr>, to: impl Into<IpAddr>) -> IpHeader {
    IpHeader::new(from.into(), to.into())
}

/// The header of a node's packets to another one, in a family.
fn between(network: &Network, from: usize, to: usize, family: Family) -> IpHeader {
    match family {
        Family::V4 => header(OWN, lsi(network, from, to)),
        Family::V6 => header(network.hit(from).address(), network.hit(to).address()),
    }
}

fn syn(ip: IpHeader, ports: [u16; 2], flags: TcpFlags) -> Packet {
    let tcp = TcpHeader {
        source_port: ports[0],
        destination_port: ports[1],
        seq: SeqNumber(1000),
        flags,
        window: 65_535,
        options: TcpOptions {
            mss: Some(1372),
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    Packet::tcp_segment(ip, tcp, b"")
}

fn datagram(ip: IpHeader, ports: [u16; 2], payload: &[u8]) -> Packet {
    let [source_port, destination_port] = ports;
    let udp = UdpHeader {
        source_port,
        destination_port,
    };
    Packet::udp_datagram(ip, udp, payload)
}

impl Network {
    /// An application's packet; it arrives at the other side.
    fn speak(&mut self, from: usize, packet: &Packet) {
        self.nodes[from]
            .host
            .handle_data(self.now, &packet.to_bytes());
        self.launch_all(from);
    }

    /// Carries what one node sends to the other one, whose deliveries stay where they are.
    fn launch_all(&mut self, from: usize) {
        while let Some(packet) = self.nodes[from].host.poll_transmit() {
            let to = 1 - from;
            let path = (packet.source, packet.destination);
            let host = &mut self.nodes[to].host;
            host.handle_packet(self.now, path, packet.protocol, &packet.payload);
        }
    }

    /// What a node's applications get, whose sockets are of this family.
    fn heard(&mut self, node: usize, sockets: Family) -> Option<Packet> {
        let now = self.now;
        let packet = self.nodes[node].host.poll_delivery_for(now, |_| sockets)?;
        let packet = Packet::parse(packet.into()).expect("a packet");
        assert!(packet.checksums_ok(), "{packet:?}");
        Some(packet)
    }
}

/// Whether a packet goes from one node to another in this family.
#[track_caller]
fn assert_goes(network: &Network, packet: &Packet, (at, from): (usize, usize), family: Family) {
    let ip = packet.header().ip;
    let reply = between(network, at, from, family);
    assert_eq!(
        (ip.source, ip.destination),
        (reply.destination, reply.source)
    );
}

#[test]
fn each_host_chooses_its_family() {
    for client in [Family::V4, Family::V6] {
        for server in [Family::V4, Family::V6] {
            let mut network = pair();
            let asked = syn(between(&network, 0, 1, client), [4000, 80], TcpFlags::SYN);
            network.speak(0, &asked);
            let heard = network.heard(1, server).expect("the segment");
            assert_goes(&network, &heard, (1, 0), server);
            assert_eq!(heard.header().transport, asked.header().transport);
            let back = between(&network, 1, 0, server);
            let answer = syn(back, [80, 4000], TcpFlags::SYN | TcpFlags::ACK);
            network.speak(1, &answer);
            // Nobody has to be asked: the client has sent in this family.
            let heard = network.heard(
                0,
                if client == Family::V4 {
                    Family::V6
                } else {
                    Family::V4
                },
            );
            let heard = heard.expect("the answer");
            assert_goes(&network, &heard, (0, 1), client);
            assert_eq!(heard.header().transport, answer.header().transport);
        }
    }
}

#[test]
fn the_first_packet_to_an_identifier_opens_the_association() {
    let mut network = Network::pair_of(7, [identity(1), identity(2)], [config(), config()]);
    let scope = config().local_scope.expect("it is set");
    let peer = scope.assign([(network.hit(1), None)])[&network.hit(1)];
    let asked = datagram(header(OWN, peer), [5000, 53], b"who is there");
    network.nodes[0]
        .host
        .handle_data(network.now, &asked.to_bytes());
    network.drain(0);
    network.run(Duration::from_secs(1));
    assert_eq!(network.state(0, 1), Some(StateName::Established));
    // To a driver that knows no LSIs it goes between tags.
    assert_eq!(network.received(1).len(), 1);
    assert_eq!(lsi(&network, 0, 1), peer);
}

#[test]
fn who_listens_is_asked_once_and_again_later() {
    let mut network = pair();
    let mut asked: Vec<Conversation> = Vec::new();
    let mut hear = |network: &mut Network, after: Duration| {
        network.now += after;
        let question = datagram(between(network, 0, 1, Family::V6), [5000, 53], b"?");
        network.speak(0, &question);
        let now = network.now;
        let host = &mut network.nodes[1].host;
        let packet = host.poll_delivery_for(now, |conversation| {
            asked.push(*conversation);
            Family::V4
        });
        assert_eq!(packet.expect("the question")[0] >> 4, 4);
        asked.len()
    };
    assert_eq!(hear(&mut network, Duration::ZERO), 1);
    assert_eq!(hear(&mut network, Duration::from_secs(9)), 1);
    assert_eq!(hear(&mut network, Duration::from_secs(9)), 2);
    let conversation = asked[0];
    assert_eq!((conversation.own_port, conversation.peer_port), (53, 5000));
    assert_eq!(conversation.protocol, 17);
    assert_eq!(conversation.own.v4, OWN);
    assert_eq!(conversation.peer.v6, network.hit(0).address());
    assert_eq!(conversation.peer.v4, lsi(&network, 1, 0));
}

/// A server that was replaced by one of the other family is found by the next connection.
#[test]
fn each_connection_asks_anew() {
    let mut network = pair();
    for server in [Family::V4, Family::V6, Family::V4] {
        let asked = syn(
            between(&network, 0, 1, Family::V4),
            [4000, 80],
            TcpFlags::SYN,
        );
        network.speak(0, &asked);
        let heard = network.heard(1, server).expect("the segment");
        assert_goes(&network, &heard, (1, 0), server);
    }
}

#[test]
fn ping_works_and_is_answered_by_the_kernel_s_ipv6() {
    let mut network = pair();
    let ip = between(&network, 0, 1, Family::V4);
    let mut message = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1];
    let sum = 0xffff - (0x0800 + 0x1234 + 1);
    message[2..4].copy_from_slice(&(sum as u16).to_be_bytes());
    network.speak(0, &Packet::of_protocol(ip, 1, &message));
    let heard = network.heard(1, Family::V4).expect("the request");
    assert_goes(&network, &heard, (1, 0), Family::V6);
    let payload = heard.to_bytes()[40..].to_vec();
    assert_eq!((payload[0], &payload[4..]), (128, &message[4..]));
    let mut reply = payload;
    reply[0] = 129;
    let sum = u16::from_be_bytes([reply[2], reply[3]]);
    // One more in the type is one less in the complement.
    let sum = sum
        .checked_sub(0x100)
        .unwrap_or_else(|| sum.wrapping_sub(0x101));
    reply[2..4].copy_from_slice(&sum.to_be_bytes());
    let back = between(&network, 1, 0, Family::V6);
    network.speak(1, &Packet::of_protocol(back, 58, &reply));
    let heard = network.heard(0, Family::V6).expect("the reply");
    assert_goes(&network, &heard, (0, 1), Family::V4);
    assert_eq!(heard.to_bytes()[20], 0);
}

#[test]
fn an_error_reaches_the_socket_that_it_is_about() {
    for client in [Family::V4, Family::V6] {
        let mut network = pair();
        let asked = datagram(between(&network, 0, 1, client), [5000, 9], b"anybody?");
        network.speak(0, &asked);
        let heard = network.heard(1, Family::V4).expect("the datagram");
        let error = Packet::icmp_error(OWN.into(), IcmpNotice::PortUnreachable, &heard);
        network.speak(1, &error.expect("an error"));
        let heard = network.heard(0, Family::V6).expect("the error");
        assert_goes(&network, &heard, (0, 1), client);
        let Transport::IcmpError(error) = &heard.header().transport else {
            panic!("{heard:?}");
        };
        let quoted = error.quoted.expect("a quotation");
        assert_eq!(quoted.source, asked.header().ip.source);
        assert_eq!(quoted.ports, Some((5000, 9)));
    }
}

#[test]
fn what_is_too_long_is_told_to_the_application() {
    let mut network = pair();
    let ip = between(&network, 0, 1, Family::V4);
    let most = (MTU - LONGER) as usize - 28;
    network.speak(0, &datagram(ip, [5000, 9], &vec![1; most]));
    assert!(network.heard(1, Family::V6).is_some());
    network.speak(0, &datagram(ip, [5000, 9], &vec![1; most + 1]));
    assert!(network.heard(1, Family::V6).is_none());
    let heard = network.heard(0, Family::V6).expect("an error");
    let Transport::IcmpError(error) = &heard.header().transport else {
        panic!("{heard:?}");
    };
    assert_eq!(error.mtu, Some(MTU - LONGER));
    let counters = network.nodes[0].host.counters();
    assert_eq!(counters.refused(Refusal::TooBig), 1);
}

#[test]
fn an_identifier_of_nobody_is_unreachable() {
    let mut network = pair();
    let nobody = Ipv4Addr::new(198, 19, 255, 254);
    network.speak(0, &datagram(header(OWN, nobody), [5000, 9], b"hello"));
    let heard = network.heard(0, Family::V6).expect("an error");
    assert!(matches!(heard.header().transport, Transport::IcmpError(_)));
    assert_eq!(heard.header().ip.destination, IpAddr::from(OWN));
    // The kernel takes nothing that names the host itself as its source.
    assert_eq!(heard.header().ip.source, IpAddr::from(nobody));
    // The control: without LSIs nothing of IPv4 is taken.
    let mut network = Network::pair(7);
    network.speak(0, &datagram(header(OWN, nobody), [5000, 9], b"hello"));
    assert!(network.heard(0, Family::V6).is_none());
    let counters = network.nodes[0].host.counters();
    assert_eq!(counters.refused(Refusal::NotForUs), 1);
}

/// Fragments follow the first one, which has the ports.
#[test]
fn a_fragmented_datagram_arrives_whole() {
    let mut network = pair();
    let ip = between(&network, 0, 1, Family::V4);
    let whole = datagram(ip, [5000, 9], &[3; 92]).to_bytes();
    let parts = [
        (20..60, [0x20, 0]),
        (60..100, [0x20, 5]),
        (100..120, [0, 10]),
    ];
    let mut joined = Vec::new();
    for (range, flags) in parts {
        let mut fragment = Packet::of_protocol(ip, 17, &whole[range])
            .to_bytes()
            .to_vec();
        fragment[4..6].copy_from_slice(&[7, 7]);
        fragment[6..8].copy_from_slice(&flags);
        network.nodes[0].host.handle_data(network.now, &fragment);
        network.launch_all(0);
        let now = network.now;
        let host = &mut network.nodes[1].host;
        let heard = host
            .poll_delivery_for(now, |_| Family::V4)
            .expect("it arrives");
        assert_eq!((heard[0] >> 4, &heard[4..8]), (4, &fragment[4..8]));
        joined.extend_from_slice(&heard[20..]);
    }
    assert_eq!(joined[8..], [3; 92]);
    let joined = Packet::of_protocol(header(lsi(&network, 1, 0), OWN), 17, &joined);
    let joined = Packet::parse(joined.to_bytes()).expect("a packet");
    assert!(joined.checksums_ok());
}

/// A connection over LSIs goes on after a move, as one over tags does.
#[test]
fn a_move_wakes_connections_over_identifiers() {
    let mut network = pair();
    let ip = between(&network, 0, 1, Family::V4);
    network.speak(0, &syn(ip, [4000, 80], TcpFlags::SYN));
    assert!(network.heard(1, Family::V4).is_some());
    // Data that is lost.
    let data = TcpHeader {
        source_port: 4000,
        destination_port: 80,
        seq: SeqNumber(1001),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    network.filter = Box::new(|_| false);
    let segment = Packet::tcp_segment(ip, data, b"lost");
    network.nodes[0]
        .host
        .handle_data(network.now, &segment.to_bytes());
    network.drain(0);
    network.run(Duration::from_secs(3));
    network.filter = Box::new(|_| true);
    network.nodes[0].delivered.clear();
    network.move_to(0, &[address("198.51.100.7")]);
    network.run(Duration::from_secs(2));
    let (_, heard) = network.nodes[0].delivered.first().expect("an error");
    let heard = Packet::parse(heard.clone().into()).expect("a packet");
    assert!(heard.checksums_ok());
    let Transport::IcmpError(error) = &heard.header().transport else {
        panic!("{heard:?}");
    };
    assert_eq!((error.kind, error.code), (3, 1), "RFC 6069, section 4.1");
    let quoted = error.quoted.expect("a quotation");
    assert_eq!(quoted.seq, Some(SeqNumber(1001)));
    assert_eq!(quoted.source, IpAddr::from(OWN));
}

#[test]
fn hosts_that_come_by_themselves_have_identifiers_while_they_are_there() {
    let anyone = Config {
        admission: Admission::Anyone,
        unused_after: Duration::from_secs(60),
        ..config()
    };
    let mut network = Network::pair_of(7, [identity(1), identity(2)], [config(), anyone]);
    network.nodes[1].host.set_peers([]);
    network.assert_data_flows_after_meeting(0, 1);
    let given = lsi(&network, 1, 0);
    let scope = config().local_scope.expect("it is set");
    assert!(scope.has_room_at(given));
    network.run(Duration::from_secs(600));
    assert_eq!(network.state(1, 0), None);
    network.speak(1, &datagram(header(OWN, given), [5000, 9], b"hello"));
    let counters = network.nodes[1].host.counters();
    assert_eq!(
        counters.refused(Refusal::NoPath),
        1,
        "nobody has it any more"
    );
}

#[test]
fn a_fixed_identifier_is_kept_to() {
    let mut network = pair();
    let fixed = Ipv4Addr::new(198, 18, 7, 7);
    let peer = Peer {
        addresses: network.nodes[1].addresses.clone(),
        lsi: Some(fixed),
        ..Peer::default()
    };
    let hit = network.hit(1);
    network.nodes[0].host.set_peers([(hit, peer)]);
    assert_eq!(lsi(&network, 0, 1), fixed);
    network.speak(0, &datagram(header(OWN, fixed), [5000, 9], b"hello"));
    assert!(network.heard(1, Family::V6).is_some());
}
