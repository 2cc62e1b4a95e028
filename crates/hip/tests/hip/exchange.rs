//! Base exchanges, their ends, and new keys (RFC 7401, section 4; RFC 7402, section 6).

use crate::common::{Network, address, identity, identity_of, is_established};
use outlast_base::time::Duration;
use outlast_hip::identity::{Algorithm, Identity};
use outlast_hip::suite::EspSuite;
use outlast_hip::{Admission, Config, Event, Failure, Protocol, Refusal, Rekeying, StateName};
use outlast_wire::hip::{Builder, Message, PacketType, kind};
use std::cell::Cell;
use std::rc::Rc;

/// Answers of either host since `mark` that bear responses to what middleboxes have asked: their kinds and contents.
fn echoes(network: &Network, mark: usize) -> Vec<(PacketType, Vec<Vec<u8>>)> {
    let sent = network.sent[mark..].iter();
    let sent = sent.filter(|(_, _, packet)| packet.protocol == Protocol::Hip);
    let echoes = sent.map(|(_, _, packet)| {
        let message = Message::parse(&packet.payload).expect("a host sends HIP");
        let responses = message.parameters();
        let responses = responses.filter(|it| it.kind == kind::ECHO_RESPONSE_UNSIGNED);
        let contents = responses.map(|it| it.contents.to_vec()).collect();
        (message.kind(), contents)
    });
    echoes
        .filter(|(_, contents): &(_, Vec<_>)| !contents.is_empty())
        .collect()
}

/// Middleboxes append ECHO_REQUEST_UNSIGNED to packets on their way (RFC 7401, section 5.2.21).
#[test]
fn what_middleboxes_ask_is_answered_in_each_reply() {
    let mut network = Network::pair(31);
    let mut asked = 0_u8;
    // Each packet is handed over here; whether a middlebox has asked in it decides the answer.
    let mut hand = |network: &mut Network, wanted: PacketType, answer: PacketType| {
        let of_kind =
            |(_, _, packet): &&(_, usize, outlast_hip::Transmit)| kind_of(packet) == Some(wanted);
        let (_, _, plain) = network.sent.iter().rfind(of_kind).expect("one").clone();
        // The longest one has no room in an R1, and in a longer packet none itself; it keeps no other one out.
        for lengths in [
            &[][..],
            &[20, 30],
            &[20],
            &[1_900],
            &[20, 1_900],
            &[1_900, 20],
        ] {
            // What is repeated is answered after 50 ms.
            network.run(Duration::from_millis(60));
            let mut builder = Builder::continuing(&plain.payload, kind::HIP_SIGNATURE);
            let mut contents: Vec<Vec<u8>> = Vec::new();
            for &length in lengths {
                asked += 1;
                contents.push(vec![asked; length]);
                builder.push(kind::ECHO_REQUEST_UNSIGNED, &contents[contents.len() - 1]);
            }
            let Some(payload) = builder.finish() else {
                continue;
            };
            let mut packet = plain.clone();
            packet.payload = payload;
            Builder::set_checksum(&mut packet.payload, packet.source, packet.destination);
            let mark = network.sent.len();
            network.deliver(&packet);
            let answered = network.sent[mark..].iter();
            let mut answered = answered.filter(|(_, _, packet)| kind_of(packet) == Some(answer));
            assert!(answered.next().is_some(), "{wanted:?}, {lengths:?}");
            contents.retain(|contents| contents.len() < 1_900);
            let expected = match contents.len() {
                0 => Vec::new(),
                _ => vec![(answer, contents)],
            };
            assert_eq!(echoes(network, mark), expected, "{wanted:?}, {lengths:?}");
        }
    };
    network.filter = Box::new(|_| false);
    network.connect(0, 1);
    hand(&mut network, PacketType::I1, PacketType::R1);
    network.filter = Box::new(|packet| {
        Message::parse(&packet.payload).is_ok_and(|it| it.kind() != PacketType::I2)
    });
    network.run(second());
    hand(&mut network, PacketType::I2, PacketType::R2);
    network.run(second());
    network.filter = Box::new(|_| false);
    network.move_to(0, &[address("198.51.100.7")]);
    hand(&mut network, PacketType::Update, PacketType::Update);
    let (now, peer) = (network.now, network.hit(1));
    network.nodes[0].host.close(now, peer);
    network.drain(0);
    hand(&mut network, PacketType::Close, PacketType::CloseAck);
}

fn second() -> Duration {
    Duration::from_secs(1)
}

fn kind_of(packet: &outlast_hip::Transmit) -> Option<PacketType> {
    match packet.protocol {
        Protocol::Hip => Some(
            Message::parse(&packet.payload)
                .expect("what the test set up")
                .kind(),
        ),
        Protocol::Esp => None,
    }
}

#[test]
fn every_kind_of_identity_meets_every_other() {
    let all = [
        Algorithm::Rsa2048,
        Algorithm::EcdsaP256,
        Algorithm::EcdsaP384,
    ];
    for (initiator, responder) in all.into_iter().flat_map(|a| all.map(|b| (a, b))) {
        if (initiator, responder) == (Algorithm::Rsa2048, Algorithm::Rsa2048) {
            // There is one RSA key for tests, and a host does not meet itself.
            continue;
        }
        let identities = [identity_of(initiator, 1), identity_of(responder, 2)];
        let mut network = Network::pair_of(1, identities, Default::default());
        network.send(0, 1, b"first");
        network.run(second());
        assert_eq!(
            network.received(1),
            [b"first"],
            "{initiator:?} {responder:?}"
        );
        network.assert_data_flows(0, 1);
        assert_eq!(network.state(0, 1), Some(StateName::Established));
        assert_eq!(network.state(1, 0), Some(StateName::Established));
    }
}

#[test]
fn an_exchange_takes_two_round_trips_and_the_data_follows() {
    let mut network = Network::pair(1);
    let start = network.now;
    network.send(0, 1, b"first");
    network.run(second());
    let kinds: Vec<_> = network
        .sent
        .iter()
        .map(|(_, _, packet)| kind_of(packet))
        .collect();
    use PacketType::{I1, I2, R1, R2};
    assert_eq!(kinds, [Some(I1), Some(R1), Some(I2), Some(R2), None]);
    let (at, _) = network.nodes[1].delivered[0];
    assert_eq!(at - start, Duration::from_millis(250));
    assert_eq!(network.state(1, 0), Some(StateName::Established));
}

#[test]
fn identities_come_back_from_their_files() {
    for algorithm in [
        Algorithm::Rsa2048,
        Algorithm::EcdsaP256,
        Algorithm::EcdsaP384,
    ] {
        let identity = identity_of(algorithm, 7);
        let pem = identity.to_pem().expect("what the test set up");
        assert_eq!(
            Identity::from_pem(&pem).expect("a key").hit(),
            identity.hit()
        );
    }
    assert!(Identity::from_pem("no key").is_err());
}

#[test]
fn a_lost_packet_of_each_kind_is_sent_again() {
    for lost in [
        PacketType::I1,
        PacketType::R1,
        PacketType::I2,
        PacketType::R2,
    ] {
        let mut network = Network::pair(1);
        let losses = Rc::new(Cell::new(2));
        let left = losses.clone();
        network.filter = Box::new(move |packet| {
            let hits = kind_of(packet) == Some(lost) && left.get() > 0;
            left.set(left.get() - u32::from(hits));
            !hits
        });
        network.send(0, 1, b"first");
        network.run(Duration::from_secs(6));
        assert_eq!(losses.get(), 0, "{lost:?} was lost twice");
        assert_eq!(network.received(1), [b"first"], "{lost:?}");
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn crossing_exchanges_become_one_association() {
    // From at once to one that begins when the other is all but over.
    for offset_ms in (0..=260).step_by(20) {
        let mut network = Network::pair(1);
        network.send(0, 1, b"from 0");
        network.run(Duration::from_millis(offset_ms));
        network.send(1, 0, b"from 1");
        network.run(Duration::from_secs(10));
        assert_eq!(network.received(1), [b"from 0"], "offset {offset_ms} ms");
        assert_eq!(network.received(0), [b"from 1"], "offset {offset_ms} ms");
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn a_silent_peer_is_a_failure_with_a_reason() {
    let mut network = Network::pair(1);
    network.filter = Box::new(|_| false);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(60));
    let peer = network.hit(1);
    let failed = Event::Failed {
        peer,
        failure: Failure::NoAnswer,
    };
    assert_eq!(network.nodes[0].events.len(), 1);
    assert_eq!(network.nodes[0].events[0].1, failed);
    assert_eq!(network.state(0, 1), None, "it may be tried again");
}

/// Nobody knows any more where the peer is, and what was sent to it was for another address.
#[test]
fn a_move_after_the_peer_was_removed_ends_the_exchange() {
    let mut network = Network::pair(3);
    network.connect(0, 1);
    network.run(Duration::from_millis(101));
    assert_eq!(network.state(0, 1), Some(StateName::I2Sent));
    network.nodes[0].host.set_peers([]);
    network.move_to(0, &[address("198.51.100.9")]);
    let now = network.now;
    network.nodes[0].host.handle_timeout(now);
    network.drain(0);
    let due = network.nodes[0].host.poll_timeout().map(|(at, _)| at);
    assert!(due > Some(now), "the timer does not come to rest");
    let failed = |event: &Event| {
        let failure = Failure::NoAnswer;
        matches!(event, Event::Failed { failure: found, .. } if *found == failure)
    };
    assert_eq!(network.count(0, failed), 1);
}

#[test]
fn a_link_indicator_cuts_the_back_off_short() {
    let mut network = Network::pair(1);
    network.filter = Box::new(|_| false);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(5));
    network.filter = Box::new(|_| true);
    let now = network.now;
    network.nodes[0].host.handle_link(now);
    network.run(second());
    let (at, _) = network.nodes[1].delivered[0];
    assert_eq!(
        at - now,
        Duration::from_millis(250),
        "as fast as a first attempt"
    );
}

#[test]
fn strangers_are_not_answered() {
    let mut network = Network::pair(1);
    network.nodes[1].host.set_peers([]);
    network.send(0, 1, b"first");
    network.run(second());
    assert_eq!(network.nodes[1].host.counters().refused(Refusal::Policy), 2);
    assert!(network.sent.iter().all(|(_, node, _)| *node == 0));

    let anyone = Config {
        admission: Admission::Anyone,
        ..Config::default()
    };
    let configs = [Config::default(), anyone];
    let mut network = Network::pair_of(1, [identity(1), identity(2)], configs);
    network.nodes[1].host.set_peers([]);
    network.send(0, 1, b"first");
    network.run(second());
    network.assert_data_flows(0, 1);
}

#[test]
fn a_full_host_says_so() {
    let mut config = Config::default();
    config.limits.associations = 0;
    let configs = [Config::default(), config];
    let mut network = Network::pair_of(1, [identity(1), identity(2)], configs);
    network.connect(0, 1);
    network.run(second());
    let peer = network.hit(1);
    let busy = Event::Failed {
        peer,
        failure: Failure::Notified(44),
    };
    assert_eq!(network.nodes[0].events[0].1, busy);
}

#[test]
fn an_association_ends_on_both_sides() {
    let mut network = Network::pair(1);
    network.send(0, 1, b"first");
    network.run(second());
    let peer = network.hit(1);
    let now = network.now;
    network.nodes[0].host.close(now, peer);
    network.drain(0);
    network.run(second());
    assert_eq!(network.state(0, 1), None);
    assert_eq!(network.state(1, 0), Some(StateName::Closed));
    for node in 0..2 {
        assert_eq!(
            network.count(node, |event| matches!(event, Event::Closed { .. })),
            1
        );
    }
    // Either may open a new one at once.
    network.send(1, 0, b"again");
    network.run(second());
    assert_eq!(network.received(0), [b"again"]);
    network.assert_data_flows(0, 1);
}

#[test]
fn what_nobody_uses_is_closed() {
    let mut network = Network::pair(1);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(14 * 60));
    assert_eq!(network.state(0, 1), Some(StateName::Established));
    network.run(Duration::from_secs(10 * 60));
    assert_eq!(network.state(0, 1), None);
    assert_eq!(network.state(1, 0), None);
}

#[test]
fn a_host_that_has_begun_anew_is_taken_back() {
    let mut network = Network::pair(1);
    network.send(0, 1, b"first");
    network.run(second());
    // A second host with the same identity, in its place.
    let own = network.nodes[0].addresses.clone();
    let reborn = network.add(Config::default(), identity(1), &own);
    network.nodes.swap(0, reborn);
    network.nodes.truncate(2);
    let hit = network.hit(1);
    let peer = outlast_hip::Peer {
        addresses: network.nodes[1].addresses.clone(),
        ..Default::default()
    };
    network.nodes[0].host.set_peers([(hit, peer)]);
    network.send(0, 1, b"second");
    network.run(second());
    network.assert_data_flows(0, 1);
}

#[test]
fn keys_are_replaced_before_they_are_used_up() {
    let rekeying = Rekeying {
        packets: 50,
        ..Rekeying::default()
    };
    let config = || Config {
        rekeying,
        ..Config::default()
    };
    for loss in [0.0, 0.2] {
        let mut network = Network::pair_of(1, [identity(1), identity(2)], [config(), config()]);
        network.connect(0, 1);
        network.run(second());
        assert_eq!(network.count(0, is_established), 1);
        network.faults.loss = loss;
        for round in 0..400_u32 {
            network.send(0, 1, &round.to_be_bytes());
            network.send(1, 0, &round.to_be_bytes());
            network.run(Duration::from_millis(20));
        }
        network.run(Duration::from_secs(20));
        network.faults.loss = 0.0;
        for node in 0..2 {
            let rekeyed = network.count(node, |event| matches!(event, Event::Rekeyed { .. }));
            assert!(rekeyed >= 3, "node {node}, loss {loss}: {rekeyed}");
            let forged = network.nodes[node].host.counters().refused(Refusal::Forged);
            assert_eq!(forged, 0, "node {node}, loss {loss}");
            if loss == 0.0 {
                assert_eq!(network.received(node).len(), 400, "node {node}");
            }
        }
        network.assert_data_flows(0, 1);
    }
}

/// A pair of which each host has these suites, after data was sent.
fn pair_with_suites(suites: [&[EspSuite]; 2]) -> Network {
    let config = |suites: &[EspSuite]| Config {
        suites: suites.to_vec(),
        ..Config::default()
    };
    let mut network = Network::pair_of(1, [identity(1), identity(2)], suites.map(config));
    network.send(0, 1, b"what nobody else should read");
    network.run(second());
    network
}

#[test]
fn each_suite_carries_data_and_only_the_one_without_encryption_shows_it() {
    for suite in EspSuite::ALL {
        let mut network = pair_with_suites([&[suite]; 2]);
        network.assert_data_flows(0, 1);
        let shows = |payload: &[u8]| payload.windows(6).any(|window| window == b"nobody");
        let is_shown = network.sent.iter().any(|(_, _, sent)| shows(&sent.payload));
        assert_eq!(is_shown, suite == EspSuite::NullSha256, "{suite:?}");
    }
}

#[test]
fn a_suite_that_is_not_asked_for_is_not_used() {
    let mut network = pair_with_suites([&EspSuite::ENCRYPTING, &[EspSuite::NullSha256]]);
    network.run(second());
    let failure = Failure::NoCommonChoice("ESP suite");
    assert_eq!(
        network.count(
            0,
            |event| matches!(event, Event::Failed { failure: why, .. } if *why == failure)
        ),
        1
    );
    assert!(network.received(1).is_empty());
    // The Responder's order counts.
    let both = [EspSuite::NullSha256, EspSuite::Aes256CbcSha256];
    let mut network = pair_with_suites([&EspSuite::ENCRYPTING, &both]);
    network.assert_data_flows(0, 1);
}
