//! What an association tells of itself: packets, bytes, readdressings.

use crate::common::{Network, address};
use outlast_base::time::Duration;
use outlast_hip::{Readdressing, View, Volume};

/// Bytes of an IPv6 header.
const HEADER: u64 = 40;

fn view(network: &Network, node: usize) -> View {
    let mut views = network.nodes[node].host.views();
    views.next().expect("an association")
}

#[test]
fn each_packet_counts_once_at_each_side() {
    let mut network = Network::pair(1);
    for length in [0, 1, 1000] {
        network.send(0, 1, &vec![7; length]);
        network.run(Duration::from_secs(1));
    }
    network.send(1, 0, b"answer");
    network.run(Duration::from_secs(1));
    let there = Volume {
        packets: 3,
        bytes: 3 * HEADER + 1001,
    };
    let back = Volume {
        packets: 1,
        bytes: HEADER + 6,
    };
    let [near, far] = [0, 1].map(|node| view(&network, node));
    assert_eq!((near.sent, near.received), (there, back));
    assert_eq!((far.sent, far.received), (back, there));
}

#[test]
fn what_waits_or_is_not_authentic_does_not_count() {
    let mut network = Network::pair(1);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    let before = [0, 1].map(|node| view(&network, node));
    network.move_to(0, &[]);
    network.send(0, 1, b"nowhere to go");
    assert_eq!(view(&network, 0).sent, before[0].sent);
    assert_eq!(view(&network, 0).waiting, 1);
    let (_, _, mut forged) = network.sent.pop().expect("the data");
    *forged.payload.last_mut().expect("a byte") ^= 1;
    network.deliver(&forged);
    // A repetition, too.
    *forged.payload.last_mut().expect("a byte") ^= 1;
    network.deliver(&forged);
    assert_eq!(view(&network, 1).received, before[1].received);
}

#[test]
fn new_keys_do_not_begin_the_counts_anew() {
    let config = || outlast_hip::Config {
        rekeying: outlast_hip::Rekeying {
            packets: 10,
            ..outlast_hip::Rekeying::default()
        },
        ..outlast_hip::Config::default()
    };
    let identities = [crate::common::identity(1), crate::common::identity(2)];
    let mut network = Network::pair_of(1, identities, [config(), config()]);
    for _ in 0..25 {
        network.send(0, 1, b"again");
        network.run(Duration::from_secs(1));
    }
    let is_rekeyed = |event: &_| matches!(event, outlast_hip::Event::Rekeyed { .. });
    assert!(network.count(0, is_rekeyed) >= 2);
    assert_eq!(view(&network, 0).sent.packets, 25);
    assert_eq!(view(&network, 1).received.packets, 25);
}

#[test]
fn the_last_readdressing_is_remembered() {
    let mut network = Network::pair(1);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    for node in 0..2 {
        assert_eq!(view(&network, node).last_readdressing, None);
        assert_eq!(view(&network, node).readdressings, 0);
    }
    for (round, new) in ["198.51.100.7", "203.0.113.5"].into_iter().enumerate() {
        let moved = network.now;
        network.move_to(0, &[address(new)]);
        network.run(Duration::from_secs(1));
        let round_trip = network.delay * 2;
        // The fixed host hears of it after half a round trip.
        let expected = Readdressing {
            address: address(new),
            ended: moved + round_trip + network.delay,
            took: round_trip,
        };
        let far = view(&network, 1);
        assert_eq!(far.last_readdressing, Some(expected));
        assert_eq!(far.readdressings, round as u64 + 1);
        let near = view(&network, 0).last_readdressing.expect("it has moved");
        assert_eq!((near.ended, near.took), (moved + round_trip, round_trip));
    }
}

#[test]
fn a_peer_that_prefers_another_address_has_moved_only_if_data_goes_elsewhere() {
    let mut network = Network::pair(1);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    let readdressings = |network: &mut Network, addresses: &[&str]| {
        let addresses: Vec<_> = addresses.iter().copied().map(address).collect();
        network.move_to(0, &addresses);
        network.run(Duration::from_secs(1));
        view(network, 1).readdressings
    };
    // The far host has no address of IPv6 to send to the second one.
    let both = ["198.51.100.7", "2001:db8::7"];
    assert_eq!(readdressings(&mut network, &both), 1);
    assert_eq!(readdressings(&mut network, &[both[1], both[0]]), 1);
    // It was away, and comes back to where it was.
    assert_eq!(readdressings(&mut network, &[]), 1);
    assert_eq!(readdressings(&mut network, &[both[1], both[0]]), 2);
    assert_eq!(readdressings(&mut network, &["203.0.113.5"]), 3);
}
