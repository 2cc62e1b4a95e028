//! A sender that goes on after a move and has forgotten what is lost: it hears that its path takes less, and its oldest segment goes
//! again.

use crate::common::{Network, address};
use outlast_base::time::Duration;
use outlast_wire::tcp::Timestamps;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, Transport};

const ROUND_TRIP: Duration = Duration::from_millis(100);

/// Bytes of a segment, and its length between the hosts' identities.
const BYTES: u32 = 1_300;
const LENGTH: u32 = 40 + 32 + BYTES;

/// A node's TCP hands a segment down.
fn hand_down(network: &mut Network, from: usize, [seq, ack]: [u32; 2], length: u32) {
    let nodes = [from, 1 - from];
    let [source, destination] = nodes.map(|node| network.hit(node).address().into());
    let mut header = TcpHeader {
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    header.options.timestamps = Some(Timestamps { value: 1, echo: 9 });
    let payload = vec![7; length as usize];
    let packet = Packet::tcp_segment(IpHeader::new(source, destination), header, &payload);
    let now = network.now;
    network.nodes[from]
        .host
        .handle_data(now, &packet.to_bytes());
    network.drain(from);
}

/// What path MTUs node 1's TCP was told.
fn path_mtus(network: &Network) -> Vec<u32> {
    let delivered = network.nodes[1].delivered.iter();
    let errors = delivered.filter_map(|(_, packet)| {
        let packet = Packet::parse(packet.clone().into()).expect("a packet");
        match &packet.header().transport {
            Transport::IcmpError(error) if (error.kind, error.code) == (2, 0) => error.mtu,
            _ => None,
        }
    });
    errors.collect()
}

/// First sequence numbers of node 1's segments that have come to node 0.
fn arrived(network: &Network) -> Vec<u32> {
    let delivered = network.nodes[0].delivered.iter();
    let numbers = delivered.map(|(_, packet)| {
        let packet = Packet::parse(packet.clone().into()).expect("a packet");
        packet.tcp().expect("a segment").seq.0
    });
    numbers.collect()
}

/// Three segments are lost, and the path works again. What node 0 answers is up to it.
fn moved(wakes_connections: bool) -> Network {
    let mut network = Network::pair_that_wakes(wakes_connections);
    network.connect(0, 1);
    network.run(Duration::from_secs(1));
    hand_down(&mut network, 1, [0, 0], BYTES);
    network.run(ROUND_TRIP);
    hand_down(&mut network, 0, [0, BYTES], 0);
    network.run(ROUND_TRIP);
    network.filter = Box::new(|_| false);
    for number in 1..4 {
        hand_down(&mut network, 1, [number * BYTES, 0], BYTES);
    }
    network.run(Duration::from_millis(300));
    network.filter = Box::new(|_| true);
    network.move_to(1, &[address("203.0.113.5")]);
    network.run(ROUND_TRIP * 7 / 2);
    network.nodes[0].delivered.clear();
    network
}

#[test]
fn who_has_forgotten_what_is_lost_is_told_of_a_smaller_path() {
    for wakes_connections in [true, false] {
        let mut network = moved(wakes_connections);
        // The first one has come, and new data that followed it.
        for _ in 0..2 {
            hand_down(&mut network, 0, [0, 2 * BYTES], 0);
        }
        network.run(Duration::from_millis(500));
        if wakes_connections {
            assert_eq!(path_mtus(&network), [LENGTH - 2]);
            assert_eq!(arrived(&network), [2 * BYTES]);
        } else {
            assert!(path_mtus(&network).is_empty() && arrived(&network).is_empty());
        }
        // It has everything.
        hand_down(&mut network, 0, [0, 4 * BYTES], 0);
        network.run(Duration::from_secs(5));
        assert!(arrived(&network).len() <= 1, "{:?}", arrived(&network));
    }
}

/// The path may be gone again: that its packets are too long says nothing.
#[test]
fn who_hears_nothing_keeps_its_path_mtu() {
    let mut network = moved(true);
    hand_down(&mut network, 0, [0, 2 * BYTES], 0);
    network.run(Duration::from_secs(10));
    assert!(path_mtus(&network).is_empty());
    assert_eq!(arrived(&network), [2 * BYTES; 4]);
}

/// Two at a time until the smallest path of IPv6, and no less for any number of connections that stop.
#[test]
fn a_path_mtu_is_never_smaller_than_ipv6_allows() {
    let mut network = moved(true);
    for round in 2..200 {
        for _ in 0..2 {
            hand_down(&mut network, 0, [0, round * BYTES], 0);
        }
        hand_down(&mut network, 1, [(round + 2) * BYTES, 0], BYTES);
        network.move_to(
            1,
            &[address(["203.0.113.5", "203.0.113.6"][round as usize % 2])],
        );
        network.run(ROUND_TRIP);
        for _ in 0..2 {
            hand_down(&mut network, 0, [0, round * BYTES], 0);
        }
        network.run(ROUND_TRIP * 6);
    }
    let told = path_mtus(&network);
    assert!(told.is_sorted_by(|one, next| one > next), "{told:?}");
    assert!(
        told.len() > 40 && told.iter().all(|mtu| *mtu >= 1_280),
        "{told:?}"
    );
}
