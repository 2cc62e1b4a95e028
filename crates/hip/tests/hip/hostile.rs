//! What loss, repetition, reordering, alteration and floods do to both roles.

use crate::common::{Faults, Network, address, is_established};
use outlast_base::time::Duration;
use outlast_hip::{Config, Event, Protocol, Refusal, StateName, Transmit};
use outlast_wire::hip::{Builder, Hit, Message, PacketType, kind};
use proptest::prelude::*;

/// Packets of the kind `kind`, altered in each byte in turn, with a checksum that fits again.
fn alterations(packet: &Transmit) -> impl Iterator<Item = (usize, Transmit)> + '_ {
    (0..packet.payload.len()).map(|at| {
        let mut altered = packet.clone();
        altered.payload[at] ^= 0x10;
        // The builder repairs the length; an altered one stays altered.
        let units = altered.payload[1];
        Builder::set_checksum(&mut altered.payload, packet.source, packet.destination);
        altered.payload[1] = units;
        (at, altered)
    })
}

/// Runs an exchange in which each packet of `kind` is preceded by all its alterations.
fn exchange_with_altered(kind: PacketType, is_harmless: impl Fn(&Message<'_>, usize) -> bool) {
    let mut network = Network::pair(7);
    network.send(0, 1, b"first");
    network.filter = Box::new(|_| false);
    let mut tried = 0;
    // The network delivers nothing by itself: each packet is handed over here.
    let mut next = network.sent.len() - 1;
    while next < network.sent.len() {
        let (_, _, packet) = network.sent[next].clone();
        let is_it = packet.protocol == Protocol::Hip
            && Message::parse(&packet.payload)
                .expect("what the test set up")
                .kind()
                == kind;
        if is_it && tried == 0 {
            for (at, altered) in alterations(&packet) {
                if is_harmless(
                    &Message::parse(&packet.payload).expect("what the test set up"),
                    at,
                ) {
                    continue;
                }
                tried += 1;
                let before: Vec<_> = (0..2).map(|node| network.state(node, 1 - node)).collect();
                network.deliver(&altered);
                let after: Vec<_> = (0..2).map(|node| network.state(node, 1 - node)).collect();
                assert_eq!(before, after, "{kind:?}, byte {at}");
            }
        }
        network.deliver(&packet);
        network.run(Duration::ZERO);
        next += 1;
    }
    assert!(tried > 40, "{kind:?}: {tried} alterations");
    network.filter = Box::new(|_| true);
    network.run(Duration::from_secs(20));
    for node in 0..2 {
        assert_eq!(
            network.count(node, is_established),
            1,
            "{kind:?}, node {node}"
        );
    }
    network.assert_data_flows(0, 1);
}

/// Where a parameter lies in a message, its header and padding included.
fn within(message: &Message<'_>, wanted: u16, at: usize) -> bool {
    let found = message.find(wanted);
    found.is_some_and(|found| {
        let length = (4 + found.contents.len()).next_multiple_of(8);
        (found.offset..found.offset + length).contains(&at)
    })
}

#[test]
fn no_altered_i1_leaves_a_trace() {
    exchange_with_altered(PacketType::I1, |_, _| false);
}

#[test]
fn an_altered_r1_is_refused() {
    // The number of the puzzle is not signed; the next test is about it. Nor is padding behind
    // the signature.
    exchange_with_altered(PacketType::R1, |message, at| {
        let signature = message
            .find(kind::HIP_SIGNATURE_2)
            .expect("what the test set up");
        within(message, kind::PUZZLE, at)
            || (4..6).contains(&at)
            || at >= signature.offset + 4 + signature.contents.len()
    });
}

#[test]
fn an_altered_puzzle_costs_time_and_nothing_else() {
    let mut network = Network::pair(7);
    network.send(0, 1, b"first");
    let mut altered = false;
    network.filter = Box::new(move |packet| {
        let is_first = !altered && packet.payload.len() > 300;
        altered |= is_first;
        !is_first
    });
    network.run(Duration::from_millis(60));
    let (_, _, mut r1) = network.sent.last().expect("an event").clone();
    let puzzle = Message::parse(&r1.payload)
        .expect("what the test set up")
        .find(kind::PUZZLE)
        .expect("what the test set up")
        .offset;
    r1.payload[puzzle + 20] ^= 1;
    Builder::set_checksum(&mut r1.payload, r1.source, r1.destination);
    network.deliver(&r1);
    network.run(Duration::from_secs(120));
    assert!(network.nodes[1].host.counters().refused(Refusal::Puzzle) > 0);
    assert_eq!(
        network.count(0, |event| matches!(event, Event::Failed { .. })),
        1
    );
    assert_eq!(network.state(1, 0), None, "the Responder has no state");
    network.send(0, 1, b"second");
    network.run(Duration::from_secs(2));
    assert_eq!(network.received(1), [b"second"]);
}

#[test]
fn an_altered_i2_is_refused() {
    exchange_with_altered(PacketType::I2, |message, at| {
        let signature = message
            .find(kind::HIP_SIGNATURE)
            .expect("what the test set up");
        (4..6).contains(&at) || at >= signature.offset + 4 + signature.contents.len()
    });
}

#[test]
fn an_altered_r2_is_refused() {
    exchange_with_altered(PacketType::R2, |message, at| {
        let signature = message
            .find(kind::HIP_SIGNATURE)
            .expect("what the test set up");
        (4..6).contains(&at) || at >= signature.offset + 4 + signature.contents.len()
    });
}

#[test]
fn an_altered_update_is_refused() {
    let mut network = Network::pair(7);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    network.filter = Box::new(|_| false);
    network.move_to(0, &[address("198.51.100.7")]);
    let (_, _, update) = network.sent.last().expect("an event").clone();
    let view = |network: &Network| {
        network.nodes[1]
            .host
            .views()
            .next()
            .expect("what the test set up")
    };
    let before = view(&network);
    let message = Message::parse(&update.payload).expect("what the test set up");
    let signature = message
        .find(kind::HIP_SIGNATURE)
        .expect("what the test set up");
    let end = signature.offset + 4 + signature.contents.len();
    for (at, altered) in alterations(&update) {
        if (4..6).contains(&at) || at >= end {
            continue;
        }
        let sent = network.sent.len();
        network.deliver(&altered);
        assert_eq!(view(&network), before, "byte {at}");
        assert_eq!(network.sent.len(), sent, "byte {at}");
    }
    network.deliver(&update);
    assert_ne!(view(&network), before);
}

/// 3,000 I1 packets in a second in the name of one address that has sent none. Each drew an R1, up to 2,000 a second.
#[test]
fn nobody_is_flooded_with_answers_to_what_he_has_not_sent() {
    let mut network = Network::pair(7);
    let (victim, responder) = (address("203.0.113.66"), network.nodes[1].addresses[0]);
    let mut builder = Builder::new(PacketType::I1, network.hit(0), network.hit(1));
    builder.push(kind::DH_GROUP_LIST, &[7]);
    let mut packet = Transmit {
        source: victim,
        destination: responder,
        protocol: Protocol::Hip,
        payload: builder.finish().expect("what the test set up"),
    };
    Builder::set_checksum(&mut packet.payload, packet.source, packet.destination);
    for _ in 0..1_000 {
        for _ in 0..3 {
            network.deliver(&packet);
        }
        network.run(Duration::from_millis(1));
    }
    let to_victim = network
        .sent
        .iter()
        .filter(|(_, _, r1)| r1.destination == victim);
    let (count, bytes) = to_victim.fold((0, 0), |(count, bytes), (_, _, r1)| {
        (count + 1, bytes + r1.payload.len())
    });
    // The packets fall into two seconds.
    assert!((1..=256).contains(&count), "{count} of {bytes} bytes");
    // Others are answered as before.
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    network.assert_data_flows(0, 1);
}

#[test]
fn a_flood_raises_the_puzzle_and_costs_no_state() {
    let mut network = Network::pair(7);
    network.nodes[1].host.set_peers([]);
    let anyone = Config {
        admission: outlast_hip::Admission::Anyone,
        ..Default::default()
    };
    let victim = network.add(
        anyone,
        crate::common::identity(3),
        &[address("203.0.113.1")],
    );
    let receiver = network.hit(victim);
    let mut hardest = 0;
    for round in 0..5_000_u32 {
        let mut sender = Hit([0x20; 16]);
        sender.0[..4].copy_from_slice(&[0x20, 1, 0, 0x21]);
        sender.0[12..].copy_from_slice(&round.to_be_bytes());
        let mut builder = Builder::new(PacketType::I1, sender, receiver);
        builder.push(kind::DH_GROUP_LIST, &[7]);
        let mut packet = Transmit {
            source: address(&format!("198.51.100.{}", round % 256)),
            destination: address("203.0.113.1"),
            protocol: Protocol::Hip,
            payload: builder.finish().expect("what the test set up"),
        };
        Builder::set_checksum(&mut packet.payload, packet.source, packet.destination);
        network.deliver(&packet);
        network.run(Duration::from_micros(200));
        if let Some((_, _, r1)) = network.sent.pop() {
            let puzzle = Message::parse(&r1.payload)
                .expect("what the test set up")
                .find(kind::PUZZLE)
                .expect("what the test set up");
            hardest = hardest.max(puzzle.contents[0]);
        }
    }
    assert!((12..=20).contains(&hardest), "{hardest} bits");
    let host = &network.nodes[victim].host;
    assert_eq!(host.views().count(), 0);
    assert_eq!(host.poll_timeout(), None);
    assert!(
        host.counters().r1_sent <= 2 * 2_000,
        "the cap for one second"
    );
    assert!(host.counters().refused(Refusal::Limit) > 0);
    // An honest host gets in under the flood: its puzzle is harder, and solved.
    let peer = outlast_hip::Peer {
        addresses: vec![address("203.0.113.1")],
        ..Default::default()
    };
    network.nodes[0].host.set_peers([(receiver, peer)]);
    network.run(Duration::from_millis(900));
    network.connect(0, victim);
    network.run(Duration::from_secs(2));
    assert_eq!(network.state(0, victim), Some(StateName::Established));
    // Later the puzzle is easy again.
    network.run(Duration::from_secs(5));
    network.connect(0, victim);
}

/// Bits of the puzzle that a newcomer gets after `count` I2 packets in one second.
fn puzzle_after_i2(count: u32, is_altered: bool) -> u8 {
    let mut network = Network::pair(7);
    network.connect(0, 1);
    network.run(Duration::from_secs(1));
    let i2 = network.sent.iter().find(|(_, _, packet)| {
        let message = Message::parse(&packet.payload).expect("what the test set up");
        message.kind() == PacketType::I2
    });
    let (_, _, mut i2) = i2.expect("an exchange").clone();
    if is_altered {
        let message = Message::parse(&i2.payload).expect("what the test set up");
        let solution = message.find(kind::SOLUTION).expect("an I2 has one");
        let at = solution.offset + 4 + solution.contents.len() - 1;
        i2.payload[at] ^= 1;
        Builder::set_checksum(&mut i2.payload, i2.source, i2.destination);
    }
    let newcomer = network.add(
        Config::default(),
        crate::common::identity(3),
        &[address("203.0.113.1")],
    );
    let (hit, responder) = (network.hit(newcomer), network.hit(1));
    let at = outlast_hip::Peer {
        addresses: network.nodes[1].addresses.clone(),
        ..Default::default()
    };
    network.nodes[newcomer].host.set_peers([(responder, at)]);
    let both = [hit, network.hit(0)];
    let both = both.map(|hit| (hit, outlast_hip::Peer::default()));
    network.nodes[1].host.set_peers(both);
    for _ in 0..count {
        network.deliver(&i2);
        network.run(Duration::from_secs(1) / count);
    }
    network.sent.clear();
    network.connect(newcomer, 1);
    network.run(Duration::from_secs(2));
    assert_eq!(network.state(newcomer, 1), Some(StateName::Established));
    let r1 = network.sent.iter().find_map(|(_, _, packet)| {
        let message = Message::parse(&packet.payload).ok()?;
        (packet.protocol == Protocol::Hip && message.kind() == PacketType::R1)
            .then(|| message.find(kind::PUZZLE).expect("an R1 has one").contents[0])
    });
    r1.expect("an answer to the newcomer")
}

#[test]
fn a_flood_of_i2_raises_the_puzzle() {
    for is_altered in [false, true] {
        let bits = puzzle_after_i2(400, is_altered);
        assert!((12..=20).contains(&bits), "altered {is_altered}: {bits}");
        // The control: a few repetitions raise nothing.
        assert_eq!(puzzle_after_i2(5, is_altered), 0);
    }
}

/// What may not happen, whatever the network does.
fn assert_sound(network: &Network) {
    for node in 0..2 {
        for (_, event) in &network.nodes[node].events {
            let peer = match event {
                Event::Established { peer }
                | Event::Failed { peer, .. }
                | Event::Readdressed { peer, .. }
                | Event::Rekeyed { peer }
                | Event::RekeyingFailed { peer }
                | Event::Closed { peer }
                | Event::Registered { server: peer } => *peer,
            };
            assert_eq!(peer, network.hit(1 - node));
        }
        // All that arrives was sent, and nothing twice.
        let mut received = network.received(node);
        received.sort();
        let count = received.len();
        received.dedup();
        assert_eq!(received.len(), count);
        assert!(
            received
                .iter()
                .all(|payload| payload.starts_with(b"payload "))
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_network_leads_to_an_association_or_a_reason(
        seed: u64,
        loss in 0.0..0.4,
        repetition in 0.0..0.4,
        reordering in 0.0..0.6,
        alteration in 0.0..0.3,
        moves in proptest::collection::vec((0..2_usize, 0..200_u8, 1..3_000_u64), 0..6),
    ) {
        let mut network = Network::pair(seed);
        network.faults = Faults { loss, repetition, reordering, alteration };
        network.send(0, 1, b"payload 0");
        network.send(1, 0, b"payload 1");
        for (node, last, wait) in moves {
            network.run(Duration::from_millis(wait));
            network.send(0, 1, format!("payload {last} {wait} a").as_bytes());
            network.send(1, 0, format!("payload {last} {wait} b").as_bytes());
            network.move_to(node, &[address(&format!("198.51.{node}.{last}"))]);
        }
        network.run(Duration::from_secs(60));
        assert_sound(&network);
        for node in 0..2 {
            let is_up = network.count(node, is_established) > 0;
            let has_failed = network.count(node, |event| matches!(event, Event::Failed { .. })) > 0;
            prop_assert!(is_up || has_failed, "node {} has neither", node);
        }
        // Once the network is honest and nobody moves, data flows; both know one another's place.
        network.faults = Faults::default();
        for (node, other) in [(0, 1), (1, 0)] {
            let peer = outlast_hip::Peer {
                addresses: network.nodes[other].addresses.clone(),
                ..Default::default()
            };
            let hit = network.hit(other);
            network.nodes[node].host.set_peers([(hit, peer)]);
            let now = network.now;
            network.nodes[node].host.close(now, hit);
            network.drain(node);
        }
        network.run(Duration::from_secs(600));
        network.assert_data_flows_after_meeting(0, 1);
    }
}

/// Delivers all alterations of a packet that is signed to its end; none may change `look`, or be answered.
fn assert_all_refused<T: PartialEq + std::fmt::Debug>(
    network: &mut Network,
    packet: &Transmit,
    look: impl Fn(&Network) -> T,
) {
    let message = Message::parse(&packet.payload).expect("what the test set up");
    let signature = message.find(kind::HIP_SIGNATURE).expect("it is signed");
    // The checksum is repaired, and padding behind the signature is not signed.
    let end = signature.offset + 4 + signature.contents.len();
    let (before, sent) = (look(network), network.sent.len());
    let mut tried = 0;
    for (at, altered) in alterations(packet) {
        if (4..6).contains(&at) || at >= end {
            continue;
        }
        network.deliver(&altered);
        assert_eq!(look(network), before, "{:?}, byte {at}", message.kind());
        assert_eq!(network.sent.len(), sent, "{:?}, byte {at}", message.kind());
        tried += 1;
    }
    assert!(tried > 40, "{tried} alterations");
}

/// The packet that was sent last, which is of this kind.
fn last_sent(network: &Network, kind: PacketType) -> Transmit {
    let (_, _, packet) = network.sent.last().expect("something was sent").clone();
    let message = Message::parse(&packet.payload).expect("what the test set up");
    assert_eq!(message.kind(), kind);
    packet
}

#[test]
fn an_altered_close_or_its_answer_is_refused() {
    let mut network = Network::pair(7);
    network.send(0, 1, b"first");
    network.run(Duration::from_secs(1));
    network.filter = Box::new(|_| false);
    let (peer, now) = (network.hit(1), network.now);
    network.nodes[0].host.close(now, peer);
    network.drain(0);
    let close = last_sent(&network, PacketType::Close);
    let open = |network: &Network| network.state(1, 0);
    assert_all_refused(&mut network, &close, open);
    assert_eq!(open(&network), Some(StateName::Established));
    network.deliver(&close);
    assert_eq!(open(&network), Some(StateName::Closed));
    let answer = last_sent(&network, PacketType::CloseAck);
    let closing = |network: &Network| network.state(0, 1);
    assert_all_refused(&mut network, &answer, closing);
    assert_eq!(closing(&network), Some(StateName::Closing));
    network.deliver(&answer);
    assert_eq!(closing(&network), None);
}

#[test]
fn an_altered_notification_is_refused() {
    let mut config = Config::default();
    config.limits.associations = 0;
    let identities = [crate::common::identity(1), crate::common::identity(2)];
    let mut network = Network::pair_of(7, identities, [Config::default(), config]);
    network.connect(0, 1);
    network.run(Duration::from_millis(160));
    let notify = last_sent(&network, PacketType::Notify);
    let look = |network: &Network| (network.state(0, 1), network.nodes[0].events.len());
    assert_all_refused(&mut network, &notify, look);
    assert_eq!(look(&network), (Some(StateName::I2Sent), 0));
    network.deliver(&notify);
    assert_eq!(network.state(0, 1), Some(StateName::Failed));
}

/// An I1 is not signed: whoever sends one is answered. What a server adds when it forwards one decides where the
/// answer goes, and is.
#[test]
fn an_altered_forwarded_i1_sends_no_answer_to_a_third_place() {
    let mut network = crate::common::with_server(7);
    network.send(0, 1, b"first");
    network.run(Duration::from_millis(60));
    let i1 = last_sent(&network, PacketType::I1);
    let message = Message::parse(&i1.payload).expect("what the test set up");
    let (from, mac) = (message.find(kind::FROM), message.find(kind::RVS_HMAC));
    let (from, mac) = (from.expect("forwarded"), mac.expect("forwarded"));
    let mut refused = 0;
    for (at, altered) in alterations(&i1) {
        let sent = network.sent.len();
        network.deliver(&altered);
        let answers = network.sent[sent..].iter();
        let places: Vec<_> = answers.map(|(_, _, answer)| answer.destination).collect();
        refused += usize::from(places.is_empty());
        let is_hidden = (from.offset..from.offset + 2).contains(&at);
        let is_padding = at >= mac.offset + 4 + mac.contents.len();
        if (4..6).contains(&at) || is_padding {
            continue;
        }
        // Without a FROM that it knows, a host takes the I1 for the server's own.
        let allowed: &[_] = if is_hidden { &[i1.source] } else { &[] };
        assert!(
            places.iter().all(|place| allowed.contains(place)),
            "byte {at}: {places:?}"
        );
    }
    let sent = network.sent.len();
    network.deliver(&i1);
    let (_, _, r1) = network.sent[sent..].first().expect("it is answered");
    assert_eq!(r1.destination, network.nodes[0].addresses[0]);
    assert!(refused > 40, "{refused} alterations were refused");
}
