//! Exchanges with whoever answers at an address.

use crate::common::{Network, address, identity, is_established};
use outlast_base::time::Duration;
use outlast_hip::{
    Config, Event, Failure, Host, Limits, LocalScope, Peer, Protocol, Refusal, StateName, Transmit,
    stand_in,
};
use outlast_wire::hip::{Builder, Hit, Message, PacketType, kind};
use outlast_wire::{IpHeader, Packet, UdpHeader};
use std::net::Ipv4Addr;

const OWN: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);

/// The address that the initiator knows.
const PLACE: &str = "192.0.2.2";

fn initiator() -> Config {
    Config {
        local_scope: Some(LocalScope {
            own: OWN,
            prefix_length: 15,
            mtu: 1440,
        }),
        ..Config::default()
    }
}

/// The initiator with other limits.
fn limited(network: &mut Network, limits: Limits) {
    let config = Config {
        limits,
        ..initiator()
    };
    let now = network.now;
    network.nodes[0].host = Host::new(now, config, identity(1), [5; 32]);
    let places = network.nodes[0].addresses.clone();
    network.nodes[0].host.handle_addresses(now, &places);
    know_the_address(network, 0);
}

fn responder(answers_opportunistic: bool) -> Config {
    Config {
        answers_opportunistic,
        ..Config::default()
    }
}

/// A host that knows an address, and one that is there and knows the first one's tag. A third one is elsewhere.
fn network(answers_opportunistic: bool) -> Network {
    let mut network = Network::new(7);
    network.add(initiator(), identity(1), &[address("192.0.2.1")]);
    network.add(
        responder(answers_opportunistic),
        identity(2),
        &[address(PLACE)],
    );
    network.add(responder(true), identity(3), &[address("203.0.113.66")]);
    let first = network.hit(0);
    for at in [1, 2] {
        network.nodes[at].host.set_peers([(first, Peer::default())]);
    }
    know_the_address(&mut network, 0);
    network
}

fn know_the_address(network: &mut Network, at: usize) {
    let known = Peer {
        addresses: vec![address(PLACE)],
        lsi: Some(SERVER),
        ..Peer::default()
    };
    let peers = [(stand_in(address(PLACE)), known)];
    network.nodes[at].host.set_peers(peers);
}

/// An application's datagram to the LSI of whoever is at the address.
fn speak(network: &mut Network, payload: &[u8]) {
    let udp = UdpHeader {
        source_port: 5000,
        destination_port: 53,
    };
    let packet = Packet::udp_datagram(IpHeader::new(OWN.into(), SERVER.into()), udp, payload);
    network.nodes[0]
        .host
        .handle_data(network.now, &packet.to_bytes());
    network.drain(0);
}

/// What a node's applications got, behind their headers.
fn heard(network: &Network, node: usize) -> Vec<Vec<u8>> {
    let received = network.received(node).into_iter();
    received.map(|datagram| datagram[8..].to_vec()).collect()
}

/// HIP packets of a kind that a node has sent, with their receivers.
fn sent(network: &Network, node: usize, kind: PacketType) -> Vec<Hit> {
    let all = network
        .sent
        .iter()
        .filter(|(_, from, packet)| *from == node && packet.protocol == Protocol::Hip);
    let messages = all.map(|(_, _, packet)| Message::parse(&packet.payload).expect("HIP"));
    messages
        .filter(|message| message.kind() == kind)
        .map(|message| message.receiver())
        .collect()
}

/// The R1 of a host elsewhere for the initiator, as if it came from the address.
fn answer_of(network: &mut Network, node: usize) -> Transmit {
    let mut builder = Builder::new(PacketType::I1, network.hit(0), Hit::NULL);
    builder.push(kind::DH_GROUP_LIST, &[7, 8]);
    let mut payload = builder.finish().expect("an I1");
    let (from, to) = (address("192.0.2.1"), network.nodes[node].addresses[0]);
    Builder::set_checksum(&mut payload, from, to);
    let now = network.now;
    let host = &mut network.nodes[node].host;
    host.handle_packet(now, (from, to), Protocol::Hip, &payload);
    let mut answer = host.poll_transmit().expect("an R1");
    answer.source = address(PLACE);
    Builder::set_checksum(&mut answer.payload, answer.source, from);
    answer
}

fn bound(network: &Network) -> Option<(Hit, StateName)> {
    let mut views = network.nodes[0].host.views();
    views
        .find(|view| view.lsi == Some(SERVER))
        .map(|view| (view.peer, view.state))
}

#[test]
fn whoever_answers_at_the_address_is_reached() {
    let mut network = network(true);
    speak(&mut network, b"who is there");
    speak(&mut network, b"and what time is it");
    network.run(Duration::from_secs(2));
    assert_eq!(sent(&network, 0, PacketType::I1), [Hit::NULL]);
    assert_eq!(sent(&network, 0, PacketType::I2), [network.hit(1)]);
    assert_eq!(
        heard(&network, 1),
        [&b"who is there"[..], b"and what time is it"]
    );
    assert_eq!(
        bound(&network),
        Some((network.hit(1), StateName::Established))
    );
    let view = network.nodes[0].host.views().next();
    let asked = view.and_then(|view| view.stand_in);
    assert_eq!(asked, Some(stand_in(address(PLACE))));
    // Answers go both ways, and a move is followed.
    network.assert_data_flows(0, 1);
    network.move_to(1, &[address("198.51.100.7")]);
    network.run(Duration::from_secs(2));
    speak(&mut network, b"still there?");
    network.run(Duration::from_secs(1));
    assert_eq!(
        heard(&network, 1).last().map(Vec::as_slice),
        Some(&b"still there?"[..])
    );
}

/// RFC 7401, section 6.7: it is dropped, as the policy says.
#[test]
fn a_host_that_is_not_to_answer_is_silent() {
    let mut network = network(false);
    speak(&mut network, b"who is there");
    network.run(Duration::from_secs(60));
    assert!(network.sent.iter().all(|(_, from, _)| *from == 0));
    let refused = network.nodes[1].host.counters().refused(Refusal::NotForUs);
    assert_eq!(refused as usize, sent(&network, 0, PacketType::I1).len());
    let failed = network.count(0, |event| {
        let failure = Failure::NoAnswer;
        matches!(event, Event::Failed { failure: found, .. } if *found == failure)
    });
    assert_eq!(failed, 1);
    assert!(network.nodes[0].host.views().next().is_none());
}

/// It answers as little whom it does not let in.
#[test]
fn strangers_are_not_answered_either() {
    let mut network = network(true);
    network.nodes[1].host.set_peers([]);
    speak(&mut network, b"who is there");
    network.run(Duration::from_secs(60));
    assert!(sent(&network, 1, PacketType::R1).is_empty());
}

#[test]
fn of_two_answers_the_first_one_counts() {
    let mut network = network(true);
    speak(&mut network, b"who is there");
    let late = answer_of(&mut network, 2);
    network.run(Duration::from_millis(101));
    assert_eq!(sent(&network, 0, PacketType::I2), [network.hit(1)]);
    network.deliver(&late);
    assert_eq!(network.nodes[0].host.counters().refused(Refusal::State), 1);
    network.run(Duration::from_secs(2));
    assert_eq!(
        bound(&network),
        Some((network.hit(1), StateName::Established))
    );
    assert_eq!(sent(&network, 0, PacketType::I2), [network.hit(1)]);
}

/// Who cannot take the I2 at the address delays the exchange, and is forgotten.
#[test]
fn an_answer_of_somebody_elsewhere_binds_nobody() {
    let mut network = network(true);
    speak(&mut network, b"who is there");
    let forged = answer_of(&mut network, 2);
    network.deliver(&forged);
    network.run(Duration::from_secs(1));
    let third = network.hit(2);
    assert!(sent(&network, 0, PacketType::I2).contains(&third));
    network.run(Duration::from_secs(90));
    assert_eq!(network.count(0, is_established), 0);
    assert_eq!(bound(&network), None);
    speak(&mut network, b"who is there");
    network.run(Duration::from_secs(2));
    assert_eq!(
        bound(&network),
        Some((network.hit(1), StateName::Established))
    );
    assert!(network.nodes[2].delivered.is_empty());
}

/// An answer that is not what it says does not keep the right one out.
#[test]
fn an_altered_answer_changes_nothing() {
    let mut network = network(true);
    speak(&mut network, b"who is there");
    let answer = answer_of(&mut network, 2);
    let message = Message::parse(&answer.payload).expect("an R1");
    let found = |kind| message.find(kind).expect("it is there");
    let puzzle = found(kind::PUZZLE);
    // What the signature does not cover: whom the answer is for, opaque and number of the puzzle.
    let unsigned = [
        24..40,
        puzzle.offset + 6..puzzle.offset + 4 + puzzle.contents.len(),
    ];
    let signature = found(kind::HIP_SIGNATURE_2);
    for at in (8..signature.offset + 4 + signature.contents.len()).step_by(7) {
        let mut altered = answer.clone();
        altered.payload[at] ^= 0x10;
        let units = altered.payload[1];
        Builder::set_checksum(&mut altered.payload, altered.source, altered.destination);
        altered.payload[1] = units;
        if !unsigned.iter().any(|range| range.contains(&at)) {
            network.deliver(&altered);
            let state = network.nodes[0].host.views().next().map(|view| view.state);
            assert_eq!(state, Some(StateName::I1Sent), "byte {at}");
            let peer = network.nodes[0].host.views().next().map(|view| view.peer);
            assert_eq!(peer, Some(stand_in(address(PLACE))), "byte {at}");
        }
    }
    network.run(Duration::from_secs(2));
    assert_eq!(
        bound(&network),
        Some((network.hit(1), StateName::Established))
    );
}

/// Takes the second host's place; the first one has to begin anew.
fn replace(network: &mut Network) {
    network.nodes[1].addresses.clear();
    network.move_to(2, &[address(PLACE)]);
    let peer = network.hit(1);
    let now = network.now;
    network.nodes[0].host.close(now, peer);
    network.drain(0);
    network.run(Duration::from_secs(600));
}

#[test]
fn another_host_at_the_address_is_refused_afterwards() {
    let mut network = network(true);
    speak(&mut network, b"who is there");
    network.run(Duration::from_secs(2));
    replace(&mut network);
    // A new configuration that says the same keeps the binding.
    know_the_address(&mut network, 0);
    speak(&mut network, b"and now");
    network.run(Duration::from_secs(60));
    assert_eq!(
        sent(&network, 0, PacketType::I1).last(),
        Some(&network.hit(1))
    );
    assert!(network.nodes[2].delivered.is_empty());
    // The control: whoever has met nobody there meets the other one.
    let mut network = self::network(true);
    replace(&mut network);
    speak(&mut network, b"and now");
    network.run(Duration::from_secs(2));
    assert_eq!(heard(&network, 2), [b"and now"]);
}

/// A host that has opened an association itself is known where it has shown to be.
#[test]
fn a_host_that_is_already_here_is_recognised() {
    let mut network = network(true);
    let back = Peer {
        addresses: vec![address("192.0.2.1")],
        ..Peer::default()
    };
    let (first, second) = (network.hit(0), network.hit(1));
    network.nodes[1].host.set_peers([(first, back)]);
    let known = Peer {
        addresses: vec![address(PLACE)],
        lsi: Some(SERVER),
        ..Peer::default()
    };
    let peers = [(stand_in(address(PLACE)), known), (second, Peer::default())];
    network.nodes[0].host.set_peers(peers);
    network.assert_data_flows_after_meeting(1, 0);
    speak(&mut network, b"is it you");
    network.run(Duration::from_secs(1));
    assert_eq!(bound(&network), Some((second, StateName::Established)));
    let last = network.received(1).pop().expect("it arrives");
    assert_eq!(&last[8..], b"is it you");
    assert_eq!(network.count(0, is_established), 1);
}

/// The I2 is for an address that the host has no longer: it asks anew, from where it is.
#[test]
fn a_move_before_the_association_is_there_begins_anew() {
    let mut network = network(true);
    speak(&mut network, b"who is there");
    network.run(Duration::from_millis(101));
    assert_eq!(sent(&network, 0, PacketType::I2), [network.hit(1)]);
    network.move_to(0, &[address("198.51.100.9")]);
    let now = network.now;
    network.nodes[0].host.handle_timeout(now);
    network.drain(0);
    let due = network.nodes[0].host.poll_timeout().map(|(at, _)| at);
    assert!(due > Some(now), "the timer does not come to rest");
    assert_eq!(sent(&network, 0, PacketType::I1), [Hit::NULL; 2]);
    network.run(Duration::from_secs(2));
    assert_eq!(
        bound(&network),
        Some((network.hit(1), StateName::Established))
    );
    assert_eq!(heard(&network, 1), [b"who is there"]);
}

/// A puzzle too hard, which anybody may pose in his own name, ends nothing.
#[test]
fn an_answer_of_no_use_does_not_keep_the_right_one_out() {
    let mut network = network(true);
    let limits = Limits {
        hardest_solved: 12,
        ..Config::default().limits
    };
    limited(&mut network, limits);
    // A host that is asked often poses harder puzzles.
    let busy = Config {
        limits: Limits {
            easy_exchanges_per_second: 1,
            ..limits
        },
        ..responder(true)
    };
    let (now, first) = (network.now, network.hit(0));
    network.nodes[2].host = Host::new(now, busy, identity(3), [6; 32]);
    let there = network.nodes[2].addresses.clone();
    network.nodes[2].host.handle_addresses(now, &there);
    network.nodes[2].host.set_peers([(first, Peer::default())]);
    let hard = (0..100).find_map(|_| {
        let answer = answer_of(&mut network, 2);
        let message = Message::parse(&answer.payload).expect("an R1");
        let puzzle = message.find(kind::PUZZLE).expect("it is there");
        (puzzle.contents[0] > 12).then_some(answer)
    });
    let hard = hard.expect("a hard puzzle");
    speak(&mut network, b"who is there");
    network.deliver(&hard);
    assert_eq!(network.nodes[0].host.counters().refused(Refusal::Choice), 1);
    network.run(Duration::from_secs(2));
    assert_eq!(heard(&network, 1), [b"who is there"]);
}

/// A puzzle that was not solved in time is asked for again, by the name that was asked for.
#[test]
fn a_puzzle_that_is_out_of_date_is_asked_for_again() {
    let mut network = network(true);
    speak(&mut network, b"who is there");
    let answer = answer_of(&mut network, 1);
    let now = network.now;
    let path = (answer.source, answer.destination);
    let host = &mut network.nodes[0].host;
    host.handle_packet(now, path, answer.protocol, &answer.payload);
    // The host was suspended.
    let later = now + Duration::from_secs(3600);
    host.handle_timeout(later);
    host.handle_timeout(later);
    network.now = later;
    network.drain(0);
    assert_eq!(sent(&network, 0, PacketType::I1), [Hit::NULL; 2]);
    network.run(Duration::from_secs(2));
    assert_eq!(heard(&network, 1), [b"who is there"]);
}

/// What cannot begin an exchange does not wait for one.
#[test]
fn what_finds_no_room_is_not_sent_later() {
    let mut network = network(true);
    let limits = Limits {
        associations: 1,
        ..Config::default().limits
    };
    limited(&mut network, limits);
    let known = |place: &str| Peer {
        addresses: vec![address(place)],
        ..Peer::default()
    };
    let third = network.hit(2);
    let here = Peer {
        lsi: Some(SERVER),
        ..known(PLACE)
    };
    let peers = [
        (stand_in(address(PLACE)), here),
        (third, known("203.0.113.66")),
    ];
    network.nodes[0].host.set_peers(peers);
    network.assert_data_flows_after_meeting(0, 2);
    speak(&mut network, b"too early");
    assert_eq!(network.nodes[0].host.counters().refused(Refusal::Limit), 1);
    let now = network.now;
    network.nodes[0].host.close(now, third);
    network.drain(0);
    network.run(Duration::from_secs(600));
    speak(&mut network, b"in time");
    network.run(Duration::from_secs(2));
    assert_eq!(heard(&network, 1), [b"in time"]);
}

/// An attempt that is closed is over, and so is what waited for it.
#[test]
fn what_waits_for_a_closed_attempt_is_not_sent() {
    let mut network = network(true);
    speak(&mut network, b"too early");
    network.run(Duration::from_millis(101));
    let (now, second) = (network.now, network.hit(1));
    assert_eq!(network.state(0, 1), Some(StateName::I2Sent));
    network.nodes[0].host.close(now, second);
    network.run(Duration::from_secs(600));
    speak(&mut network, b"in time");
    network.run(Duration::from_secs(2));
    assert_eq!(heard(&network, 1), [b"in time"]);
}

/// The one that the configuration names goes before the one of whoever answers.
#[test]
fn a_fixed_identifier_stays_whoever_has_answered() {
    let mut network = network(true);
    let own = Ipv4Addr::new(198, 18, 7, 7);
    let second = network.hit(1);
    for fixed in [None, Some(own)] {
        let here = Peer {
            addresses: vec![address(PLACE)],
            lsi: Some(SERVER),
            ..Peer::default()
        };
        let by_tag = Peer {
            lsi: fixed,
            ..Peer::default()
        };
        let peers = [(stand_in(address(PLACE)), here), (second, by_tag)];
        network.nodes[0].host.set_peers(peers);
        speak(&mut network, b"who is there");
        network.run(Duration::from_secs(2));
        let view = network.nodes[0].host.views().next().expect("one");
        let expected = (second, fixed.or(Some(SERVER)));
        assert_eq!((view.peer, view.lsi), expected);
    }
    // The other one stands for nobody.
    assert_eq!(heard(&network, 1), [b"who is there"]);
    assert_eq!(network.nodes[0].host.counters().refused(Refusal::NoPath), 1);
}
