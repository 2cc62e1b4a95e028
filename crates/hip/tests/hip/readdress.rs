//! Readdressing, credit, rendezvous (RFC 8046; RFC 8004).

use crate::common::{Network, address, identity, is_readdressed, with_server};
use outlast_base::time::{Duration, Instant};
use outlast_hip::{AddressState, Config, Event, Peer, Protocol, Refusal, StateName, Transmit};
use outlast_wire::hip::{Message, PacketType, kind};
use outlast_wire::tcp::Timestamps;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, Transport};
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

const ROUND_TRIP: Duration = Duration::from_millis(100);

fn established(seed: u64, has_credit: bool) -> Network {
    let config = || Config {
        has_credit,
        ..Config::default()
    };
    let mut network = Network::pair_of(seed, [identity(1), identity(2)], [config(), config()]);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    network
}

fn last_event(network: &Network, node: usize) -> (Instant, Event) {
    *network.nodes[node].events.last().expect("an event")
}

#[test]
fn a_move_ends_in_one_indicator_on_each_side() {
    let mut network = established(1, false);
    let mobile = network.hit(0);
    let moved = network.now;
    network.move_to(0, &[address("198.51.100.7")]);
    network.run(Duration::from_secs(1));
    for node in 0..2 {
        assert_eq!(network.count(node, is_readdressed), 1);
    }
    let (at, event) = last_event(&network, 1);
    let expected = Event::Readdressed {
        peer: mobile,
        address: address("198.51.100.7"),
        took: ROUND_TRIP,
    };
    assert_eq!((at - moved, event), (ROUND_TRIP.mul_f64(1.5), expected));
    let (at, _) = last_event(&network, 0);
    assert_eq!(at - moved, ROUND_TRIP);
    network.assert_data_flows(0, 1);
}

#[test]
fn without_readdressing_data_goes_astray() {
    let mut network = established(1, false);
    // The address changes, and the host is not told: the control.
    network.nodes[0].addresses = vec![address("198.51.100.7")];
    network.send(1, 0, b"lost");
    network.run(Duration::from_secs(60));
    assert!(network.received(0).is_empty());
}

#[test]
fn fifty_moves_between_families_lose_no_association() {
    let mut network = established(1, true);
    let fixed = [address("192.0.2.2"), address("2001:db8::2")];
    network.move_to(1, &fixed);
    network.run(Duration::from_secs(1));
    for round in 0..50_u32 {
        let moved = network.now;
        let own = if round % 2 == 0 {
            format!("2001:db8:1::{round:x}")
        } else {
            format!("198.51.100.{round}")
        };
        network.move_to(0, &[address(&own)]);
        network.run(Duration::from_secs(1));
        let (at, event) = last_event(&network, 1);
        assert!(
            at - moved <= ROUND_TRIP * 3,
            "round {round}: {:?}",
            at - moved
        );
        assert!(is_readdressed(&event));
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn outages_of_any_length_end_within_three_round_trips() {
    for seconds in [1, 10, 30, 180] {
        let mut network = established(1, true);
        network.move_to(0, &[]);
        network.run(Duration::from_secs(seconds / 2));
        network.send(0, 1, b"while away");
        network.send(1, 0, b"into the void");
        network.run(Duration::from_secs(seconds.div_ceil(2)));
        let back = network.now;
        network.move_to(0, &[address("203.0.113.5")]);
        network.run(Duration::from_secs(2));
        let (at, _) = last_event(&network, 1);
        assert!(at - back <= ROUND_TRIP * 3, "{seconds} s: {:?}", at - back);
        let (at, _) = *network.nodes[1].delivered.last().expect("an event");
        assert!(at - back <= ROUND_TRIP, "what waited goes out at once");
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn an_outage_without_a_new_address_is_indicated_too() {
    let mut network = established(1, true);
    network.run(Duration::from_secs(10));
    let now = network.now;
    network.nodes[0].host.handle_link(now);
    network.drain(0);
    network.run(Duration::from_secs(1));
    for node in 0..2 {
        assert_eq!(network.count(node, is_readdressed), 1, "node {node}");
    }
}

/// The address may be there before the route: what went out meanwhile is lost.
#[test]
fn a_route_that_comes_later_than_the_address_is_used_at_once() {
    let mut network = established(1, true);
    network.filter = Box::new(|_| false);
    network.move_to(0, &[address("198.51.100.7")]);
    network.run(Duration::from_millis(2));
    network.filter = Box::new(|_| true);
    let (now, missed) = (network.now, BTreeSet::from([address("192.0.2.2")]));
    network.nodes[0].host.handle_route(now, &missed);
    network.run(ROUND_TRIP);
    assert_eq!(network.count(0, is_readdressed), 1);
    // Nothing waits any more.
    let (now, sent) = (network.now, network.sent.len());
    network.nodes[0].host.handle_route(now, &missed);
    network.drain(0);
    network.run(Duration::from_millis(1));
    assert_eq!(network.sent.len(), sent);
}

/// What TCP has sent before there is a route is lost, and TCP repeats it much later.
#[test]
fn a_segment_that_had_no_route_goes_out_once_there_is_one() {
    let mut network = established(1, true);
    network.filter = Box::new(|_| false);
    network.move_to(1, &[address("198.51.100.7")]);
    let packet = segment(&network, 5, Timestamps { value: 1, echo: 9 });
    hand_down(&mut network, &packet);
    network.run(Duration::from_millis(2));
    network.filter = Box::new(|_| true);
    let (now, elsewhere) = (network.now, address("203.0.113.1"));
    for (missed, count) in [(elsewhere, 0), (address("192.0.2.1"), 1)] {
        let missed = BTreeSet::from([missed]);
        network.nodes[1].host.handle_route(now, &missed);
        network.drain(1);
        let is_data = |(at, node, packet): &&(Instant, usize, Transmit)| {
            (*at, *node, packet.protocol) == (now, 1, Protocol::Esp)
        };
        assert_eq!(network.sent.iter().filter(is_data).count(), count);
    }
    network.run(ROUND_TRIP / 2);
    assert_eq!(arrived(&network).len(), 1);
}

#[test]
fn lost_updates_are_sent_again() {
    for seed in 0..20 {
        let mut network = established(seed, true);
        network.faults.loss = 0.3;
        network.move_to(0, &[address("198.51.100.7")]);
        network.run(Duration::from_secs(60));
        network.faults.loss = 0.0;
        for node in 0..2 {
            let count = network.count(node, is_readdressed);
            assert!(count >= 1, "seed {seed}, node {node}: {count}");
        }
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn an_unverified_address_gets_no_more_than_the_credit() {
    for has_credit in [true, false] {
        let mut network = established(1, has_credit);
        let mobile = address("192.0.2.1");
        // The peer sends 5,000 bytes, and answers no test from its new address.
        for _ in 0..5 {
            network.send(0, 1, &[7; 1000]);
        }
        network.run(Duration::from_secs(1));
        network.filter = Box::new(move |packet| {
            packet.protocol == Protocol::Esp
                || packet.destination == mobile
                || Message::parse(&packet.payload)
                    .expect("what the test set up")
                    .find(kind::LOCATOR_SET)
                    .is_some()
        });
        let before = network.sent.len();
        network.move_to(0, &[address("198.51.100.7")]);
        network.run(Duration::from_millis(60));
        for _ in 0..50 {
            network.send(1, 0, &[9; 500]);
        }
        network.run(Duration::from_millis(100));
        let sent = network.sent[before..].iter();
        let to_new = sent.filter(|(_, node, packet)| {
            *node == 1
                && packet.protocol == Protocol::Esp
                && packet.destination == address("198.51.100.7")
        });
        let bytes: usize = to_new.map(|(_, _, packet)| packet.payload.len()).sum();
        let range = if has_credit { 3_500..=5_500 } else { 0..=0 };
        assert!(range.contains(&bytes), "credit {has_credit}: {bytes} bytes");
        // Once the address is verified, what waited goes out.
        network.filter = Box::new(|_| true);
        network.run(Duration::from_secs(10));
        assert_eq!(network.received(0).len(), 50, "credit {has_credit}");
    }
}

#[test]
fn make_before_break_goes_on_at_the_old_address_until_the_test() {
    let mut network = established(1, false);
    network.move_to(0, &[address("198.51.100.7"), address("192.0.2.1")]);
    network.run(Duration::from_millis(60));
    // The new address is not verified yet; the old one works.
    network.send(1, 0, b"between");
    network.run(Duration::from_millis(60));
    assert_eq!(network.received(0), [b"between"]);
    network.run(Duration::from_secs(1));
    network.move_to(0, &[address("198.51.100.7")]);
    network.run(Duration::from_secs(1));
    network.assert_data_flows(0, 1);
}

/// An interface often has its second address a moment after the first one. The test of the first one goes on.
#[test]
fn another_address_does_not_make_a_test_begin_anew() {
    let mut network = established(1, false);
    let new = [address("198.51.100.7"), address("2001:db8:1::7")];
    let moved = network.now;
    network.move_to(0, &new[..1]);
    // The peer has heard of the first address, and its nonce is on the way.
    network.run(Duration::from_millis(60));
    network.move_to(0, &new);
    network.run(Duration::from_secs(1));
    let mut events = network.nodes[1].events.iter();
    let readdressed = events.find(|(at, event)| *at > moved && is_readdressed(event));
    let (at, _) = readdressed.expect("it is");
    assert_eq!(*at - moved, ROUND_TRIP.mul_f64(1.5));
    network.assert_data_flows(0, 1);
}

#[test]
fn replayed_and_forged_updates_redirect_nothing() {
    let mut network = established(1, true);
    network.move_to(0, &[address("198.51.100.7")]);
    network.run(Duration::from_secs(1));
    network.move_to(0, &[address("198.51.100.8")]);
    network.run(Duration::from_secs(1));
    let updates: Vec<_> = network
        .sent
        .iter()
        .filter(|(_, node, packet)| *node == 0 && packet.protocol == Protocol::Hip)
        .map(|(_, _, packet)| packet.clone())
        .collect();
    // An attacker repeats all that it has seen, from its own address.
    for mut packet in updates {
        packet.source = address("203.0.113.66");
        let (source, destination) = (packet.source, packet.destination);
        outlast_wire::hip::Builder::set_checksum(&mut packet.payload, source, destination);
        let sent = network.sent.len();
        network.deliver(&packet);
        network.run(Duration::from_secs(3));
        let to_attacker = network.sent[sent..]
            .iter()
            .filter(|(_, _, reply)| reply.destination == address("203.0.113.66"));
        for (_, _, reply) in to_attacker {
            let kind = Message::parse(&reply.payload)
                .expect("what the test set up")
                .kind();
            assert_eq!(kind, PacketType::R1, "only an I1 is answered");
        }
    }
    let view = network.nodes[1]
        .host
        .views()
        .next()
        .expect("what the test set up");
    assert_eq!(view.addresses[0].address, address("198.51.100.8"));
    assert_eq!(view.addresses[0].state, AddressState::Active);
    network.assert_data_flows(0, 1);
}

/// An UPDATE and a CLOSE, each repeated 3,000 times a second for a second by somebody who has recorded them: the signatures
/// that are checked are counted by the answers, and by what is refused before.
#[test]
fn recorded_updates_and_closes_cost_twenty_signatures_a_second() {
    let mut network = established(1, true);
    network.move_to(0, &[address("198.51.100.7")]);
    network.run(Duration::from_secs(1));
    let recorded = |network: &Network, wanted| {
        let sent = network.sent.iter().map(|(_, node, packet)| (node, packet));
        sent.filter(|(node, packet)| **node == 0 && packet.protocol == Protocol::Hip)
            .map(|(_, packet)| packet.clone())
            .rfind(|packet| {
                let message = Message::parse(&packet.payload).expect("what a host sends");
                message.kind() == wanted
                    && message.find(kind::SEQ).is_some() == (wanted == PacketType::Update)
            })
            .expect("it was sent")
    };
    for wanted in [PacketType::Update, PacketType::Close] {
        if wanted == PacketType::Close {
            let peer = network.hit(1);
            let now = network.now;
            network.nodes[0].host.close(now, peer);
            network.run(Duration::from_secs(1));
        }
        let packet = recorded(&network, wanted);
        let (before, sent) = (
            network.nodes[1].host.counters().refused(Refusal::Limit),
            network.sent.len(),
        );
        for _ in 0..1_000 {
            for _ in 0..3 {
                network.deliver(&packet);
            }
            network.run(Duration::from_millis(1));
        }
        let answers = network.sent[sent..]
            .iter()
            .filter(|(_, node, _)| *node == 1)
            .count();
        let refused = network.nodes[1].host.counters().refused(Refusal::Limit) - before;
        assert!((1..=21).contains(&answers), "{wanted:?}: {answers}");
        assert_eq!(refused + answers as u64, 3_000, "{wanted:?}");
    }
}

/// Both sides say that both clients are registered, and for how long.
fn assert_registered(network: &Network) {
    let server = network.hit(2);
    let registrations = network.nodes[2].host.registrations(network.now);
    let at_server: Vec<_> = registrations.collect();
    assert_eq!(at_server.len(), 2);
    for node in 0..2 {
        let mut views = network.nodes[node].host.views();
        let view = views.find(|view| view.peer == server).expect("the server");
        let until = view.registered_until.expect("a registration");
        let client = network.hit(node);
        let (_, ends) = at_server
            .iter()
            .find(|(hit, _)| *hit == client)
            .expect("it");
        // The answer takes half a round trip.
        assert_eq!(until.since(*ends), ROUND_TRIP / 2);
    }
}

#[test]
fn a_host_is_found_through_its_server() {
    let mut network = with_server(1);
    assert_registered(&network);
    for node in 0..2 {
        let registered = |event: &Event| matches!(event, Event::Registered { .. });
        assert_eq!(network.count(node, registered), 1);
    }
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    assert_eq!(network.received(1), [b"first"]);
    assert_eq!(
        network.nodes[2].host.counters().forwarded,
        1,
        "only the I1 takes the detour"
    );
    let r1 = network.sent.iter().rev().find_map(|(_, node, packet)| {
        let message = Message::parse(&packet.payload).ok()?;
        (*node == 1 && message.kind() == PacketType::R1).then(|| packet.clone())
    });
    let r1 = r1.expect("what the test set up");
    assert!(
        Message::parse(&r1.payload)
            .expect("what the test set up")
            .find(kind::VIA_RVS)
            .is_some()
    );
    assert_eq!(r1.destination, address("192.0.2.1"));
}

#[test]
fn a_registration_is_renewed() {
    let mut network = with_server(1);
    network.run(Duration::from_secs(3600));
    assert_registered(&network);
    assert_never_closed(&network);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    assert_eq!(network.received(1), [b"first"]);
}

/// A client whose registration ran out would be closed, and register anew.
fn assert_never_closed(network: &Network) {
    for node in 0..2 {
        let closed = |event: &Event| matches!(event, Event::Closed { .. });
        assert_eq!(network.count(node, closed), 0, "{node}");
    }
}

/// True if a server grants a registration in this packet.
fn grants(packet: &Transmit) -> bool {
    let message = Message::parse(&packet.payload).ok();
    let message = message.filter(|_| packet.protocol == Protocol::Hip);
    message.is_some_and(|message| message.find(kind::REG_RESPONSE).is_some())
}

/// The server's test of an unreachable address is pending for ever, and the answer to a renewal goes there.
#[test]
fn a_registration_is_renewed_although_an_address_is_never_reached() {
    let mut network = with_server(1);
    let (hole, old) = (address("198.51.100.7"), address("192.0.2.1"));
    network.run(Duration::from_secs(400));
    let mut lost = 0;
    network.filter = Box::new(move |packet| {
        let is_lost = packet.destination == hole || grants(packet) && lost < 1;
        lost += u32::from(is_lost && grants(packet));
        !is_lost
    });
    network.move_to(0, &[hole, old]);
    network.run(Duration::from_secs(3_600));
    let registrations = network.nodes[2].host.registrations(network.now);
    let client = network.hit(0);
    assert!(registrations.map(|(hit, _)| hit).any(|hit| hit == client));
}

/// Any UPDATE of the server acknowledges a renewal whose answer was lost: it is not granted by that, and is asked for again.
#[test]
fn a_renewal_that_is_only_acknowledged_is_asked_for_again() {
    let mut network = with_server(1);
    network.run(Duration::from_secs(400));
    let lost = Rc::new(Cell::new(false));
    let is_lost = Rc::clone(&lost);
    network.filter = Box::new(move |packet| !grants(packet) || is_lost.replace(true));
    while !lost.get() {
        network.run(Duration::from_millis(10));
    }
    let now = network.now;
    network.nodes[2].host.handle_link(now);
    network.drain(2);
    network.run(Duration::from_secs(3_600));
    assert_registered(&network);
    assert_never_closed(&network);
}

#[test]
fn both_move_at_once_and_find_each_other_through_the_server() {
    for seed in 0..5 {
        let mut network = with_server(seed);
        network.assert_data_flows(0, 1);
        let moved = network.now;
        for round in 0..3_u8 {
            network.move_to(0, &[address(&format!("198.51.100.{}", 10 + round))]);
            network.move_to(1, &[address(&format!("198.51.100.{}", 110 + round))]);
            network.run(Duration::from_secs(3));
            network.assert_data_flows(0, 1);
        }
        assert!(network.now - moved < Duration::from_secs(60));
    }
    // The control: without a server neither finds the other.
    let mut network = established(1, true);
    network.move_to(0, &[address("198.51.100.10")]);
    network.move_to(1, &[address("198.51.100.110")]);
    network.run(Duration::from_secs(60));
    network.send(0, 1, b"lost");
    network.run(Duration::from_secs(2));
    assert_ne!(
        network.received(1).last().map(Vec::as_slice),
        Some(&b"lost"[..])
    );
}

/// The server forwards only to where a host has shown that it is: the first packets of both may be lost, and
/// nobody waits for their repetition.
#[test]
fn both_find_each_other_soon_after_the_second_move() {
    for later_ms in [0, 20, 49, 80, 130, 170, 400] {
        let mut network = with_server(later_ms);
        network.assert_data_flows(0, 1);
        let new = [address("198.51.100.10"), address("198.51.100.110")];
        network.move_to(0, &[]);
        network.move_to(1, &[]);
        network.run(Duration::from_secs(5));
        network.move_to(0, &[new[0]]);
        network.run(Duration::from_millis(later_ms));
        let moved = network.now;
        network.move_to(1, &[new[1]]);
        network.run(Duration::from_secs(5));
        for (node, other) in [(0, 1), (1, 0)] {
            let is_there = |event: &Event| {
                matches!(event, Event::Readdressed { peer, address, .. }
                if *peer == network.hit(other) && *address == new[other])
            };
            let mut events = network.nodes[node].events.iter();
            let (at, _) = events
                .find(|(_, event)| is_there(event))
                .unwrap_or_else(|| {
                    let views: Vec<_> = network.nodes[node].host.views().collect();
                    panic!("{node} does not find the other one, {later_ms} ms apart: {views:?}")
                });
            let after = at.since(moved);
            // To the server and through it to the other one, half of it for a nonce, after the server's own.
            assert!(
                after <= ROUND_TRIP * 7 / 2,
                "{node}, {later_ms} ms apart: {after:?}"
            );
        }
        network.assert_data_flows(0, 1);
        network.assert_data_flows(1, 0);
    }
}

/// A host that has IPv6 alone makes nothing of the address of IPv4 that its peer prefers.
#[test]
fn a_peer_that_prefers_the_other_family_is_found_all_the_same() {
    let mut network = with_server(1);
    let both = |last: u8| {
        let [v4, v6] = [format!("198.51.100.{last}"), format!("2001:db8:5::{last}")];
        [address(&v4), address(&v6)]
    };
    network.move_to(0, &both(1));
    network.move_to(1, &both(2));
    network.run(Duration::from_secs(10));
    network.assert_data_flows(0, 1);
    network.move_to(0, &[address("2001:db8:6::1")]);
    network.run(Duration::from_secs(3));
    network.assert_data_flows(0, 1);
    network.move_to(1, &both(3));
    network.run(Duration::from_secs(3));
    network.assert_data_flows(0, 1);
}

#[test]
fn a_server_forwards_for_its_clients_only() {
    let mut network = with_server(1);
    let stranger = network.add(Config::default(), identity(9), &[address("203.0.113.9")]);
    let unknown = identity(8).hit();
    let through = Peer {
        rendezvous: vec![address("203.0.113.1")],
        ..Peer::default()
    };
    network.nodes[stranger].host.set_peers([(unknown, through)]);
    let now = network.now;
    network.nodes[stranger].host.connect(now, unknown);
    network.drain(stranger);
    network.run(Duration::from_secs(1));
    assert_eq!(network.nodes[2].host.counters().forwarded, 0);
    assert_eq!(
        network.nodes[2].host.counters().refused(Refusal::NotForUs),
        2
    );
}

#[test]
fn a_forged_from_is_refused() {
    let mut network = with_server(1);
    network.send(0, 1, b"first");
    network.run(Duration::from_millis(60));
    let (_, _, mut i1) = network.sent.last().expect("an event").clone();
    let at = i1.payload.len() - 8 - 48 - 4;
    assert_eq!(
        Message::parse(&i1.payload)
            .expect("what the test set up")
            .kind(),
        PacketType::I1
    );
    i1.payload[at] ^= 1;
    let (source, destination) = (i1.source, i1.destination);
    outlast_wire::hip::Builder::set_checksum(&mut i1.payload, source, destination);
    let before = network.sent.len();
    network.deliver(&i1);
    assert_eq!(network.sent.len(), before);
    network.run(Duration::from_secs(1));
    assert_eq!(network.state(0, 1), Some(StateName::Established));
}

/// Two hosts with an association; the first has lost its address, and the second does not know.
fn abandoned(wakes_connections: bool) -> Network {
    let mut network = Network::pair_that_wakes(wakes_connections);
    network.connect(0, 1);
    network.run(Duration::from_secs(1));
    network.move_to(0, &[]);
    network
}

/// A segment of node 1 for node 0 with 100 bytes from `seq` on, with timestamps.
fn segment(network: &Network, seq: u32, timestamps: Timestamps) -> Vec<u8> {
    segment_between(network, [1, 0], seq, timestamps)
}

fn segment_between(
    network: &Network,
    nodes: [usize; 2],
    seq: u32,
    timestamps: Timestamps,
) -> Vec<u8> {
    let [source, destination] = nodes.map(|node| network.hit(node).address().into());
    let ip = IpHeader::new(source, destination);
    let mut header = TcpHeader {
        seq: SeqNumber(seq),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    header.options.timestamps = Some(timestamps);
    let segment = Packet::tcp_segment(ip, header, &[7; 100]);
    segment.to_bytes().to_vec()
}

/// A segment of node 0 for node 1 without data.
fn acknowledgement(network: &Network, ack: u32) -> Vec<u8> {
    let [source, destination] = [0, 1].map(|node| network.hit(node).address().into());
    let header = TcpHeader {
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    let ip = IpHeader::new(source, destination);
    let segment = Packet::tcp_segment(ip, header, &[]);
    segment.to_bytes().to_vec()
}

fn hand_down(network: &mut Network, packet: &[u8]) {
    let now = network.now;
    network.nodes[1].host.handle_data(now, packet);
    network.drain(1);
}

/// Node 0 acknowledges that much, and time goes on.
fn acknowledge(network: &mut Network, ack: u32, rest: Duration) {
    let packet = acknowledgement(network, ack);
    let now = network.now;
    network.nodes[0].host.handle_data(now, &packet);
    network.drain(0);
    network.run(rest);
}

/// Errors that node 1's TCP was told.
fn told(network: &Network) -> usize {
    let delivered = network.nodes[1].delivered.iter();
    let told = delivered.filter(|(_, packet)| {
        let packet = Packet::parse(packet.clone().into()).expect("a packet");
        packet.checksums_ok()
            && matches!(&packet.header().transport, Transport::IcmpError(error)
                if (error.kind, error.code) == (1, 0)
                    && error.quoted.is_some_and(|quoted| quoted.seq == Some(SeqNumber(5))))
    });
    told.count()
}

/// Segments that have come to node 0: when, and with which timestamps.
fn arrived(network: &Network) -> Vec<(Instant, Timestamps)> {
    let delivered = network.nodes[0].delivered.iter();
    let segments = delivered.map(|(at, packet)| {
        let packet = Packet::parse(packet.clone().into()).expect("a packet");
        assert!(packet.checksums_ok());
        let timestamps = packet.tcp().expect("a segment").options.timestamps;
        (*at, timestamps.expect("they were sent with timestamps"))
    });
    segments.collect()
}

/// A sender whose timer has backed off retransmits itself when it hears that its back-off was in vain (RFC
/// 6069). Where it does not, because its first timeout is still to come, its segment is sent again from below, with
/// the timestamp that TCP would give it: the old one's echo would make the next timeout as long as the outage.
#[test]
fn a_sender_is_told_that_its_back_off_was_in_vain_and_helped_if_it_has_none() {
    let old = Timestamps {
        value: 70_000,
        echo: 9,
    };
    for (wakes_connections, retransmits) in [(true, true), (true, false), (false, false)] {
        let mut network = abandoned(wakes_connections);
        let packet = segment(&network, 5, old);
        hand_down(&mut network, &packet);
        network.run(Duration::from_secs(5));
        let back = network.now;
        network.move_to(0, &[address("203.0.113.5")]);
        // The address is verified on the other side after one and a half round trips.
        network.run(ROUND_TRIP.mul_f64(1.5));
        let errors = if wakes_connections { 15 } else { 0 };
        assert_eq!(told(&network), errors);
        assert!(arrived(&network).is_empty(), "nothing old comes");
        if retransmits {
            let fresh = Timestamps {
                value: 75_150,
                ..old
            };
            let packet = segment(&network, 5, fresh);
            hand_down(&mut network, &packet);
        }
        // The next 10 ms, and the way.
        network.run(ROUND_TRIP / 2 + Duration::from_millis(10));
        acknowledge(&mut network, 105, Duration::from_secs(10));
        let arrived = arrived(&network);
        if !wakes_connections {
            assert!(arrived.is_empty(), "the control: nothing comes by itself");
            continue;
        }
        let [(at, timestamps)] = arrived[..] else {
            panic!("TCP's retransmission or ours, and no more: {arrived:?}");
        };
        assert!(at.since(back) <= ROUND_TRIP * 2 + Duration::from_millis(10));
        // Handed down 5.15 s before it was told, and sent again 10 ms later if TCP is silent.
        let value = if retransmits { 75_150 } else { 75_160 };
        assert_eq!(timestamps, Timestamps { value, echo: 9 });
    }
}

/// What a connection moves again with may be lost, as others go on at the same moment. It is repeated from below until the
/// peer acknowledges something, and four times at most.
#[test]
fn what_a_connection_moves_again_with_is_repeated_until_it_is_acknowledged() {
    let old = Timestamps {
        value: 70_000,
        echo: 9,
    };
    let times = |acknowledged_after: Option<u64>| {
        let mut network = abandoned(true);
        let packet = segment(&network, 5, old);
        hand_down(&mut network, &packet);
        network.run(Duration::from_secs(5));
        network.move_to(0, &[address("203.0.113.5")]);
        network.run(ROUND_TRIP.mul_f64(1.5));
        if let Some(after) = acknowledged_after {
            network.run(Duration::from_millis(after));
            acknowledge(&mut network, 105, Duration::ZERO);
        }
        network.run(Duration::from_secs(10));
        let arrived = arrived(&network);
        let since = arrived.first().expect("it moves again").0;
        let times = arrived.iter().map(|(at, _)| at.since(since).as_millis());
        times.collect::<Vec<_>>()
    };
    // From 10 ms after the error on, when TCP was silent: 190 ms, and then each pause is twice the former.
    assert_eq!(times(None), [0, 190, 590, 1_390, 2_990]);
    assert_eq!(times(Some(700)), [0, 190, 590]);
}

/// What waits for a path goes out once, however often TCP has repeated it, with fresh timestamps.
#[test]
fn repetitions_that_wait_go_out_once() {
    let mut network = abandoned(true);
    let own = network.nodes[1].addresses.clone();
    network.move_to(1, &[]);
    for round in 0..4 {
        let value = 1_000 + round * 500;
        let packet = segment(&network, 5, Timestamps { value, echo: 9 });
        hand_down(&mut network, &packet);
        network.run(Duration::from_millis(500));
    }
    network.move_to(0, &[address("192.0.2.1")]);
    network.move_to(1, &own);
    network.run(ROUND_TRIP / 2);
    let arrived = arrived(&network);
    let [(_, timestamps)] = arrived[..] else {
        panic!("one segment: {arrived:?}");
    };
    assert_eq!(
        timestamps,
        Timestamps {
            value: 3_000,
            echo: 9
        }
    );
}

/// A host that sends much and receives little has little credit: what is sent again waits for the test of the
/// address.
#[test]
fn without_credit_the_last_segment_comes_after_the_test() {
    let mut network = abandoned(true);
    let packet = segment(&network, 5, Timestamps { value: 1, echo: 9 });
    hand_down(&mut network, &packet);
    network.run(Duration::from_millis(500));
    let back = network.now;
    network.move_to(0, &[address("203.0.113.5")]);
    network.run(ROUND_TRIP * 2);
    acknowledge(&mut network, 105, Duration::from_secs(5));
    let arrived = arrived(&network);
    assert_eq!(arrived.len(), 1, "{arrived:?}");
    assert!(arrived[0].0.since(back) <= ROUND_TRIP * 2);
}

/// With credit the last segment goes out as soon as the new address is known, and once.
#[test]
fn with_credit_the_last_segment_comes_before_the_test() {
    for wakes_connections in [true, false] {
        let mut network = Network::pair_that_wakes(wakes_connections);
        network.send(0, 1, &[0; 1000]);
        network.run(Duration::from_secs(1));
        network.move_to(0, &[]);
        let packet = segment(&network, 5, Timestamps { value: 1, echo: 9 });
        hand_down(&mut network, &packet);
        network.run(Duration::from_millis(500));
        let back = network.now;
        network.move_to(0, &[address("203.0.113.5")]);
        network.run(ROUND_TRIP);
        acknowledge(&mut network, 105, Duration::from_secs(5));
        let arrived = arrived(&network);
        let after: Vec<_> = arrived.iter().map(|(at, _)| at.since(back)).collect();
        let expected = wakes_connections.then_some(ROUND_TRIP);
        assert_eq!(after, expected.as_slice());
    }
}

/// The outage has taken acknowledgements and a later segment. TCP takes its timeout for spurious when it hears that
/// the peer has what it has repeated, and sends what is missing behind a whole window.
#[test]
fn the_oldest_segment_that_the_peer_lacks_goes_out_before_tcp_hears_of_it() {
    for wakes_connections in [true, false] {
        let mut network = Network::pair_that_wakes(wakes_connections);
        network.connect(0, 1);
        network.run(Duration::from_secs(1));
        let stamps = Timestamps { value: 1, echo: 9 };
        let packet = segment(&network, 5, stamps);
        hand_down(&mut network, &packet);
        network.run(ROUND_TRIP / 2);
        network.filter = Box::new(|_| false);
        let answer = acknowledgement(&network, 105);
        let now = network.now;
        network.nodes[0].host.handle_data(now, &answer);
        network.drain(0);
        for seq in [105, 205, 5] {
            let packet = segment(&network, seq, stamps);
            hand_down(&mut network, &packet);
            network.run(Duration::from_millis(100));
        }
        network.filter = Box::new(|_| true);
        let back = network.now;
        network.move_to(1, &[address("203.0.113.5")]);
        network.run(Duration::from_millis(300));
        let heard = network.nodes[1].delivered.last().map(|(at, _)| *at);
        // It has everything, so that nothing is sent again.
        acknowledge(&mut network, 305, Duration::from_millis(1_700));
        let delivered = network.nodes[0].delivered.iter();
        let numbers: Vec<_> = delivered
            .map(|(at, packet)| {
                let packet = Packet::parse(packet.clone().into()).expect("a packet");
                (packet.tcp().expect("a segment").seq.0, at.since(back))
            })
            .collect();
        let numbers = &numbers[1..];
        if wakes_connections {
            let [(5, _), (105, after)] = *numbers else {
                panic!("the repeated segment and the missing one: {numbers:?}");
            };
            assert!(after <= ROUND_TRIP * 5 / 2, "{after:?}");
            let heard = heard.expect("an answer");
            assert_eq!(back + after, heard + ROUND_TRIP / 2);
        } else {
            assert!(numbers.is_empty(), "the control: nothing comes by itself");
        }
    }
}

/// The last segment before an outage has often waited in a full queue. An echo that is late by that wait makes the
/// peer take its timeout for spurious, so that it waits for another one.
#[test]
fn an_echo_is_not_late_by_the_wait_in_a_queue() {
    let mut network = established(1, true);
    let first = Timestamps { value: 1, echo: 9 };
    let packet = segment(&network, 5, first);
    hand_down(&mut network, &packet);
    // The second one has waited for 80 ms.
    for (seq, value) in [(300, 1_000), (400, 1_020)] {
        let packet = segment_between(&network, [0, 1], seq, Timestamps { value, echo: 1 });
        let now = network.now;
        network.nodes[0].host.handle_data(now, &packet);
        network.drain(0);
        network.run(ROUND_TRIP);
    }
    network.move_to(0, &[]);
    let packet = segment(
        &network,
        105,
        Timestamps {
            value: 200,
            echo: 1_020,
        },
    );
    hand_down(&mut network, &packet);
    network.run(Duration::from_millis(500));
    network.move_to(0, &[address("203.0.113.5")]);
    network.run(ROUND_TRIP * 2);
    let (_, timestamps) = *arrived(&network).last().expect("a segment");
    // 700 ms after the first one, and half a round trip until it is sent again, less the same for the first one; whole
    // milliseconds of a clock that may be a little slower.
    assert_eq!(timestamps.echo, 1_699);
}

/// Hands a TCP segment of the ports `ports` to a node's application side.
fn send_segment(network: &mut Network, from: usize, to: usize, ports: [u8; 4], mark: u8) {
    let mut segment = ports.to_vec();
    segment.extend_from_slice(&[mark; 16]);
    let mut packet = crate::common::inner(network.hit(from), network.hit(to), &segment);
    packet[6] = 6;
    let now = network.now;
    network.nodes[from].host.handle_data(now, &packet);
    network.drain(from);
}

#[test]
fn the_last_segment_of_each_connection_is_repeated_after_a_move() {
    for wakes_connections in [true, false] {
        let mut network = abandoned(wakes_connections);
        // The fixed host does not know; two connections retransmit into the void.
        for (ports, mark) in [([0, 80, 4, 0], 1), ([0, 22, 4, 1], 2), ([0, 80, 4, 0], 3)] {
            send_segment(&mut network, 1, 0, ports, mark);
        }
        network.send(1, 0, b"no segment");
        network.run(Duration::from_secs(30));
        let back = network.now;
        network.move_to(0, &[address("203.0.113.5")]);
        network.run(Duration::from_secs(10));
        let mut marks: Vec<u8> = network
            .received(0)
            .iter()
            .map(|segment| segment[19])
            .collect();
        marks.sort_unstable();
        if wakes_connections {
            assert_eq!(marks, [2, 3]);
            let last = network.nodes[0].delivered.last().expect("an event");
            assert!(last.0 - back <= ROUND_TRIP * 2);
        } else {
            assert!(marks.is_empty(), "the control: nothing comes by itself");
        }
    }
}

/// Packets that node 1 has sent to an address since `mark`.
fn sent_to(network: &Network, mark: usize, place: std::net::IpAddr) -> usize {
    let sent = network.sent[mark..].iter();
    sent.filter(|(_, node, packet)| *node == 1 && packet.destination == place)
        .count()
}

/// The peer lives, and says that it is where nothing arrives: the test of that address is not repeated for ever (RFC 7401,
/// section 6.11).
#[test]
fn a_test_of_a_black_hole_rests() {
    let mut network = established(1, false);
    let (hole, old) = (address("198.51.100.7"), address("192.0.2.1"));
    network.filter = Box::new(move |packet| packet.destination != hole);
    let mark = network.sent.len();
    network.move_to(0, &[hole, old]);
    for _ in 0..60 {
        network.run(Duration::from_secs(60));
        network.assert_data_flows(0, 1);
    }
    // Two minutes of each twelve.
    let count = sent_to(&network, mark, hole);
    assert!((10..=120).contains(&count), "{count} in an hour");
    // What the peer says anew has the test begin at once, and now it is there.
    network.filter = Box::new(|_| true);
    network.run(Duration::from_secs(180));
    let (now, mark) = (network.now, network.sent.len());
    network.nodes[0].host.handle_link(now);
    network.drain(0);
    network.run(Duration::from_secs(1));
    network.assert_data_flows(0, 1);
    assert!(sent_to(&network, mark, hole) > 0);
    let view = network.nodes[1].host.views().next().expect("one");
    assert_eq!(view.addresses[0].address, hole);
    assert_eq!(view.addresses[0].state, AddressState::Active);
}

/// Total silence says nothing of an address: its test goes on, and finds the peer as soon as there is a way.
#[test]
fn a_test_goes_on_in_a_total_outage() {
    let mut network = established(1, false);
    let new = address("198.51.100.7");
    // The peer's addresses are acknowledged, and the answer to the test is lost, as is everything from then on.
    network.filter = Box::new(move |packet| packet.source != new || has_locators(packet));
    network.move_to(0, &[new]);
    network.run(Duration::from_secs(1));
    network.filter = Box::new(|_| false);
    network.run(Duration::from_secs(300));
    network.filter = Box::new(|_| true);
    network.send(1, 0, b"anybody there?");
    network.run(Duration::from_secs(10));
    assert_eq!(network.received(0).len(), 1);
    network.assert_data_flows(0, 1);
}

/// A test that rests has been in vain for minutes: a peer that is heard after a silence is asked at once.
#[test]
fn a_test_that_rests_goes_on_after_a_silence() {
    let mut network = established(1, false);
    let (hole, old) = (address("198.51.100.7"), address("192.0.2.1"));
    network.filter = Box::new(move |packet| packet.destination != hole);
    network.move_to(0, &[hole, old]);
    for _ in 0..3 {
        network.run(Duration::from_secs(60));
        network.assert_data_flows(0, 1);
    }
    let mark = network.sent.len();
    network.run(Duration::from_secs(60));
    assert_eq!(sent_to(&network, mark, hole), 0, "it rests");
    network.filter = Box::new(|_| false);
    network.send(1, 0, b"lost");
    network.run(Duration::from_secs(30));
    network.filter = Box::new(|_| true);
    network.run(Duration::from_secs(15));
    let view = network.nodes[1].host.views().next().expect("one");
    assert_eq!(view.addresses[0].address, hole);
    assert_eq!(view.addresses[0].state, AddressState::Active);
}

fn has_locators(packet: &Transmit) -> bool {
    let message = Message::parse(&packet.payload).ok();
    let message = message.filter(|_| packet.protocol == Protocol::Hip);
    message.is_some_and(|message| message.find(kind::LOCATOR_SET).is_some())
}

/// Eight recorded UPDATEs cost no more than one, and what is acknowledged beside a test is signed once.
#[test]
fn eight_recorded_updates_cost_twenty_signatures_a_second() {
    let mut network = established(1, true);
    let old = address("192.0.2.1");
    let fixed = network.nodes[1].addresses[0];
    network.filter = Box::new(move |packet| [old, fixed].contains(&packet.destination));
    for last in 0..8 {
        network.move_to(0, &[address(&format!("198.51.100.{last}")), old]);
        network.run(Duration::from_secs(2));
    }
    let mut recorded = BTreeMap::new();
    for (_, node, packet) in &network.sent {
        let message = Message::parse(&packet.payload).ok();
        let message = message.filter(|_| *node == 0 && packet.protocol == Protocol::Hip);
        if let Some(seq) = message.and_then(|message| message.find(kind::SEQ)) {
            recorded.insert(seq.contents.to_vec(), packet.clone());
        }
    }
    let recorded: Vec<_> = recorded.into_values().collect();
    assert_eq!(recorded.len(), 8);
    network.run(Duration::from_secs(30));
    let refused = |network: &Network| network.nodes[1].host.counters().refused(Refusal::Limit);
    let (before, mark) = (refused(&network), network.sent.len());
    for _ in 0..1_000 {
        for packet in &recorded {
            network.deliver(packet);
        }
        network.run(Duration::from_millis(1));
    }
    let judged = 8_000 - (refused(&network) - before);
    assert!((8..=36).contains(&judged), "{judged}");
    let answers = network.sent[mark..].iter();
    let answers = answers.filter(|(_, node, packet)| *node == 1 && packet.destination == old);
    let payloads: BTreeSet<_> = answers.map(|(_, _, packet)| &packet.payload).collect();
    // The test itself is repeated, too.
    assert!((1..=10).contains(&payloads.len()), "{}", payloads.len());
}

/// A registration has its association kept, however little that is used (RFC 8003, section 3.1): not for longer.
#[test]
fn an_association_ends_with_the_registration_that_kept_it() {
    let mut network = with_server(9);
    let gone = network.nodes[0].addresses[0];
    network.filter = Box::new(move |packet| ![packet.source, packet.destination].contains(&gone));
    // It is granted for 1,024 s.
    network.run(Duration::from_secs(1_000));
    for node in 0..2 {
        let state = network.state(2, node);
        assert_eq!(state, Some(StateName::Established), "{node}");
    }
    network.run(Duration::from_secs(200));
    assert_eq!(network.state(2, 0), None);
    let now = network.now;
    let registered: Vec<_> = network.nodes[2].host.registrations(now).collect();
    assert_eq!(registered.len(), 1);
    // The control: the other client has renewed its own.
    assert_eq!(network.state(2, 1), Some(StateName::Established));
}
