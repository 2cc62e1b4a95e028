//! Connections that move again at once take turns until each has gone on.

use crate::common::{Network, address, identity, is_readdressed};
use outlast_base::time::{Duration, Instant};
use outlast_hip::Config;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Bytes of each segment.
const LENGTH: u32 = 1_000;

/// A segment of a connection between node 1, which sends data, and node 0.
fn segment(network: &Network, from: usize, port: u16, [seq, ack]: [u32; 2], length: u32) -> Packet {
    let [source, destination] = [from, 1 - from].map(|node| network.hit(node).address().into());
    let [source_port, destination_port] = if from == 1 { [port, 80] } else { [80, port] };
    let header = TcpHeader {
        source_port,
        destination_port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    let payload = vec![7; length as usize];
    Packet::tcp_segment(IpHeader::new(source, destination), header, &payload)
}

/// Node 1's TCP hands a segment of a connection down.
fn hand_down(network: &mut Network, port: u16, number: u32) {
    let packet = segment(network, 1, port, [number * LENGTH, 0], LENGTH);
    let now = network.now;
    network.nodes[1].host.handle_data(now, &packet.to_bytes());
    network.drain(1);
}

/// Node 0's TCP says that it has all before this segment.
fn acknowledge(network: &mut Network, port: u16, number: u32) {
    let packet = segment(network, 0, port, [0, number * LENGTH], 0);
    let now = network.now;
    network.nodes[0].host.handle_data(now, &packet.to_bytes());
    network.drain(0);
}

/// Segments with data that have come to node 0: when, of which connection, and which one.
fn arrived(network: &Network) -> Vec<(Instant, u16, u32)> {
    let delivered = network.nodes[0].delivered.iter();
    let segments = delivered.map(|(at, packet)| {
        let packet = Packet::parse(packet.clone().into()).expect("a packet");
        let tcp = packet.tcp().expect("a segment");
        (*at, tcp.source_port, tcp.seq.0 / LENGTH)
    });
    segments.collect()
}

/// Each connection has had its first segment acknowledged. Node 1 has moved after an outage in which it has sent
/// the last segments of each again, and they went out again half a round trip ago.
fn moved(takes_turns: bool, connections: &[(u16, u32)]) -> Network {
    let config = || Config {
        takes_turns,
        ..Config::default()
    };
    let mut network = Network::pair_of(1, [identity(1), identity(2)], [config(), config()]);
    network.connect(1, 0);
    network.run(Duration::from_secs(1));
    for &(port, _) in connections {
        hand_down(&mut network, port, 0);
        network.run(ROUND_TRIP);
        acknowledge(&mut network, port, 1);
        network.run(ROUND_TRIP);
    }
    network.filter = Box::new(|_| false);
    for &(port, last) in connections {
        for number in 1..=last {
            hand_down(&mut network, port, number);
        }
    }
    network.run(Duration::from_millis(300));
    network.filter = Box::new(|_| true);
    network.nodes[0].delivered.clear();
    network.move_to(1, &[address("203.0.113.5")]);
    network.run(ROUND_TRIP.mul_f64(1.5));
    assert_eq!(network.count(1, is_readdressed), 1);
    network
}

/// A download goes on a moment before a session. What the session says does not wait for the download's window.
#[test]
fn what_a_connection_says_goes_before_the_window_of_another() {
    let (download, session) = (1, 2);
    let [with, without] = [true, false].map(|takes_turns| {
        let mut network = moved(takes_turns, &[(download, 1), (session, 1)]);
        assert_eq!(arrived(&network).len(), 2, "the last segment of each");
        acknowledge(&mut network, download, 2);
        network.run(ROUND_TRIP / 2);
        for number in 2..42 {
            hand_down(&mut network, download, number);
        }
        hand_down(&mut network, session, 2);
        network.run(ROUND_TRIP / 2);
        let before = arrived(&network).len();
        acknowledge(&mut network, session, 3);
        network.run(Duration::from_secs(1));
        let arrived = arrived(&network);
        let place = arrived.iter().position(|it| (it.1, it.2) == (session, 2));
        let of_download = arrived.iter().filter(|&&(_, port, _)| port == download);
        let of_download: Vec<_> = of_download.map(|&(_, _, number)| number).collect();
        assert_eq!(of_download, (1..42).collect::<Vec<_>>(), "all, in order");
        (place.expect("it comes"), before)
    });
    // After what went out at the move, and a flight of six segments.
    assert_eq!(with, (8, 9));
    assert_eq!(without, (42, 43), "the control: behind the whole window");
}

/// A connection that moves alone never waits, and neither do datagrams.
#[test]
fn a_connection_that_moves_alone_waits_for_nobody() {
    let mut network = moved(true, &[(1, 1)]);
    acknowledge(&mut network, 1, 2);
    network.run(ROUND_TRIP / 2);
    for number in 2..42 {
        hand_down(&mut network, 1, number);
    }
    network.run(ROUND_TRIP / 2);
    assert_eq!(arrived(&network).len(), 41);
}

/// Where a peer never answers, what waits for it goes on all the same.
#[test]
fn what_waits_goes_out_when_the_flight_is_over() {
    let [with, without] = [true, false].map(|takes_turns| {
        let mut network = moved(takes_turns, &[(1, 1), (2, 1)]);
        acknowledge(&mut network, 1, 2);
        network.run(ROUND_TRIP / 2);
        for number in 2..42 {
            hand_down(&mut network, 1, number);
        }
        let began = network.now;
        network.run(Duration::from_secs(1));
        let last = arrived(&network);
        let last = last.iter().rev().find(|it| it.1 == 1).expect("a segment");
        assert_eq!(last.2, 41);
        last.0.since(began)
    });
    assert_eq!(without, ROUND_TRIP / 2);
    // Three round trips since the end of readdressing, one of which has passed.
    assert_eq!(with, ROUND_TRIP * 5 / 2);
}
