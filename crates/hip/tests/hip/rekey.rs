//! New keys for data, with new secrets and without (RFC 7402, sections 6.8 to 6.10).

use crate::common::{Faults, Network, address, identity, is_established};
use outlast_base::time::Duration;
use outlast_hip::{AddressState, Config, Event, Protocol, Refusal, Rekeying, Transmit};
use outlast_wire::hip::{DiffieHellman, EspInfo, Message, PacketType, kind};
use proptest::prelude::*;

fn is_rekeyed(event: &Event) -> bool {
    matches!(event, Event::Rekeyed { .. })
}

fn is_failed(event: &Event) -> bool {
    matches!(event, Event::RekeyingFailed { .. })
}

/// A pair that is associated, in which each host begins to rekey after so many packets, with a new secret or not.
fn rekeying_pair(seed: u64, packets: u64, has_new_secret: [bool; 2]) -> Network {
    let config = |has_new_secret| Config {
        rekeying: Rekeying {
            packets,
            has_new_secret,
            ..Rekeying::default()
        },
        ..Config::default()
    };
    let identities = [identity(1), identity(2)];
    let mut network = Network::pair_of(seed, identities, has_new_secret.map(config));
    network.connect(0, 1);
    network.run(Duration::from_secs(1));
    assert_eq!(network.count(0, is_established), 1);
    network
}

/// What an UPDATE offers, if it offers new keys: the index and whether there is a Diffie-Hellman value.
fn offer(packet: &Transmit) -> Option<(u16, bool)> {
    if packet.protocol != Protocol::Hip {
        return None;
    }
    let message = Message::parse(&packet.payload).expect("a host sends HIP");
    if message.kind() != PacketType::Update {
        return None;
    }
    let info = EspInfo::parse(message.find(kind::ESP_INFO)?.contents).expect("ESP_INFO");
    let value = message.find(kind::DIFFIE_HELLMAN);
    if let Some(value) = value {
        let value = DiffieHellman::parse(value.contents).expect("DIFFIE_HELLMAN");
        // P-256, the group that both prefer.
        assert_eq!((value.group, value.value.len()), (7, 64));
    }
    (info.old_spi != info.new_spi).then_some((info.keymat_index, value.is_some()))
}

/// All offers that a node has sent.
fn offers(network: &Network, node: usize) -> Vec<(u16, bool)> {
    let sent = network.sent.iter().filter(|(_, from, _)| *from == node);
    sent.filter_map(|(_, _, packet)| offer(packet)).collect()
}

fn spis(network: &Network, node: usize) -> (u32, u32) {
    let view = network.nodes[node].host.views().next();
    view.and_then(|view| view.spis).expect("an association")
}

/// Sends one packet each way, so many times.
fn talk(network: &mut Network, rounds: u32) {
    for round in 0..rounds {
        network.send(0, 1, &round.to_be_bytes());
        network.send(1, 0, &round.to_be_bytes());
        network.run(Duration::from_millis(20));
    }
}

#[test]
fn whoever_begins_offers_a_new_secret_and_the_peer_answers_with_one() {
    for (has_new_secret, index) in [(true, 0), (false, 168)] {
        let mut network = rekeying_pair(1, 10, [has_new_secret; 2]);
        // Only one host speaks, so only that one begins.
        for _ in 0..12 {
            network.send(0, 1, b"data");
            network.run(Duration::from_millis(200));
        }
        for node in 0..2 {
            assert_eq!(offers(&network, node), [(index, has_new_secret)], "{node}");
            assert_eq!(network.count(node, is_rekeyed), 1);
        }
        assert_eq!(network.received(1).len(), 12);
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn crossing_offers_with_and_without_a_new_secret_lead_to_the_same_keys() {
    let kinds = [[true, true], [true, false], [false, true], [false, false]];
    for (has_new_secret, loss) in kinds
        .into_iter()
        .flat_map(|kind| [(kind, 0.0), (kind, 0.2)])
    {
        let mut network = rekeying_pair(2, 25, has_new_secret);
        network.faults.loss = loss;
        talk(&mut network, 100);
        network.faults.loss = 0.0;
        network.run(Duration::from_secs(20));
        for node in 0..2 {
            let who = format!("node {node}, {has_new_secret:?}, loss {loss}");
            assert!(network.count(node, is_rekeyed) >= 2, "{who}");
            assert_eq!(network.count(node, is_failed), 0, "{who}");
            let counters = network.nodes[node].host.counters();
            assert_eq!(counters.refused(Refusal::Forged), 0, "{who}");
            if loss == 0.0 {
                assert_eq!(network.received(node).len(), 100, "{who}");
            }
            let own = has_new_secret[node];
            assert!(
                offers(&network, node).iter().any(|&(_, has)| has == own),
                "{who}"
            );
        }
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn keys_that_are_used_for_an_hour_are_replaced_and_idle_ones_are_not() {
    let mut network = rekeying_pair(3, u64::MAX, [true; 2]);
    for _ in 0..20 {
        network.send(0, 1, b"data");
        network.run(Duration::from_secs(170));
    }
    assert_eq!(network.count(0, is_rekeyed), 0, "before an hour");
    network.run(Duration::from_secs(600));
    assert_eq!(network.count(0, is_rekeyed), 0, "nothing was sent");
    network.send(0, 1, b"data");
    network.run(Duration::from_secs(1));
    assert_eq!(network.count(0, is_rekeyed), 1);
    let view = network.nodes[0].host.views().next();
    let view = view.expect("an association");
    assert_eq!((view.rekeyings, view.failed_rekeyings), (1, 0));
    assert!(network.now.since(view.keys_since.expect("keys")) < Duration::from_secs(2));
}

#[test]
fn without_an_answer_the_old_keys_stay_and_another_attempt_follows() {
    let mut network = rekeying_pair(4, 10, [true; 2]);
    // The other host hears no UPDATE.
    let first = network.nodes[0].addresses[0];
    network.filter = Box::new(move |packet| packet.source != first || offer(packet).is_none());
    let before = spis(&network, 0);
    for _ in 0..30 {
        network.send(0, 1, b"data");
        network.run(Duration::from_secs(10));
    }
    assert_eq!(network.count(0, is_failed), 1);
    assert_eq!(network.count(0, is_rekeyed), 0);
    assert_eq!(spis(&network, 0), before);
    assert_eq!(network.received(1).len(), 30);
    let tries = offers(&network, 0).len();
    network.run(Duration::from_secs(300));
    assert_eq!(offers(&network, 0).len(), tries, "it rests");
    network.filter = Box::new(|_| true);
    network.run(Duration::from_secs(300));
    network.send(0, 1, b"data");
    network.run(Duration::from_secs(1));
    assert_eq!(network.count(0, is_rekeyed), 1);
    network.assert_data_flows(0, 1);
}

#[test]
fn an_answer_that_is_lost_for_minutes_costs_no_data() {
    let mut network = rekeying_pair(5, 10, [true; 2]);
    let second = network.nodes[1].addresses[0];
    network.filter =
        Box::new(move |packet| packet.source != second || packet.protocol != Protocol::Hip);
    for round in 0..30_u32 {
        network.send(0, 1, &round.to_be_bytes());
        network.send(1, 0, &round.to_be_bytes());
        network.run(Duration::from_secs(10));
    }
    assert_eq!(network.count(0, is_failed), 1, "it has no answer");
    assert_eq!(network.count(1, is_failed), 1, "nobody has the answer");
    // Both rest; what goes out first afterwards counts.
    network.filter = Box::new(|_| true);
    network.run(Duration::from_secs(600));
    for node in 0..2 {
        assert_eq!(network.received(node).len(), 30, "node {node}");
        assert!(network.count(node, is_rekeyed) >= 1, "node {node}");
    }
    network.assert_data_flows(0, 1);
}

/// Whether a packet brings back a nonce.
fn is_echo(packet: &Transmit) -> bool {
    packet.protocol == Protocol::Hip
        && Message::parse(&packet.payload)
            .is_ok_and(|message| message.find(kind::ECHO_RESPONSE_SIGNED).is_some())
}

#[test]
fn an_offer_that_acknowledges_the_test_of_an_address_does_not_end_it() {
    for has_offer in [false, true] {
        let mut network = rekeying_pair(8, 10, [true; 2]);
        for _ in 0..9 {
            network.send(0, 1, b"data");
        }
        network.run(Duration::from_secs(1));
        let place = address("198.51.100.7");
        let mut echoes = 0;
        // The nonce is lost once; an offer acknowledges the UPDATE that it was in.
        network.filter = Box::new(move |packet| {
            let is_lost = packet.source == place && is_echo(packet);
            echoes += u32::from(is_lost);
            !is_lost || echoes > 1
        });
        network.move_to(0, &[place]);
        network.run(Duration::from_millis(120));
        if has_offer {
            network.send(0, 1, b"data");
            assert_eq!(offers(&network, 0).len(), 1, "before the test is repeated");
        }
        network.run(Duration::from_secs(30));
        let view = network.nodes[1].host.views().next();
        let known = view.expect("an association").addresses;
        let found = known.iter().find(|known| known.address == place);
        let state = found.expect("the place is known").state;
        assert_eq!(state, AddressState::Active, "offer: {has_offer}");
        network.assert_data_flows(0, 1);
    }
}

/// The SPI that an UPDATE offers, if it offers new keys.
fn new_spi(packet: &Transmit) -> Option<u32> {
    offer(packet)?;
    let message = Message::parse(&packet.payload).ok()?;
    let info = EspInfo::parse(message.find(kind::ESP_INFO)?.contents).ok()?;
    Some(info.new_spi)
}

/// Whether a packet only acknowledges.
fn is_acknowledgement(packet: &Transmit) -> bool {
    packet.protocol == Protocol::Hip
        && Message::parse(&packet.payload).is_ok_and(|message| {
            message.find(kind::ACK).is_some() && message.find(kind::SEQ).is_none()
        })
}

#[test]
fn an_answer_goes_out_although_an_older_one_is_not_acknowledged() {
    let mut network = rekeying_pair(9, 10, [true; 2]);
    let [first, second] = [0, 1].map(|node| network.nodes[node].addresses[0]);
    let mut answer = None;
    let mut lost = 0;
    // The acknowledgement of the first answer is lost, and so are the answer's repetitions.
    network.filter = Box::new(move |packet| {
        let spi = new_spi(packet).filter(|_| packet.source == first);
        let is_repetition = spi.is_some() && spi == answer;
        answer = answer.or(spi);
        let is_lost = lost == 0 && packet.source == second && is_acknowledgement(packet);
        lost += u32::from(is_lost);
        !is_lost && !is_repetition
    });
    for _ in 0..10 {
        network.send(1, 0, b"data");
    }
    network.run(Duration::from_millis(110));
    // What follows acknowledges a newer UPDATE.
    network.move_to(0, &[first, address("198.51.100.7")]);
    network.run(Duration::from_millis(140));
    // Data under the new keys shows that they are there.
    network.send(1, 0, b"data");
    network.run(Duration::from_millis(60));
    assert_eq!(network.count(0, is_rekeyed), 1, "by data");
    for _ in 0..10 {
        network.send(0, 1, b"data");
    }
    for _ in 0..9 {
        network.send(1, 0, b"data");
    }
    network.run(Duration::from_secs(20));
    for node in 0..2 {
        assert_eq!(network.count(node, is_rekeyed), 2, "node {node}");
    }
    network.assert_data_flows(0, 1);
}

/// As it is with peers that refuse the index of a new secret, but offer new keys themselves.
#[test]
fn an_answer_that_the_peer_never_acknowledges_rests_and_data_goes_on() {
    let mut network = rekeying_pair(10, 10, [true, false]);
    let first = network.nodes[0].addresses[0];
    network.filter = Box::new(move |packet| packet.source != first || offer(packet).is_none());
    talk(&mut network, 12);
    for _ in 0..14 {
        talk(&mut network, 1);
        network.run(Duration::from_secs(10));
    }
    assert_eq!(network.count(0, is_failed), 1);
    let tries = offers(&network, 0).len();
    for _ in 0..40 {
        talk(&mut network, 1);
        network.run(Duration::from_secs(10));
    }
    assert_eq!(offers(&network, 0).len(), tries, "it rests");
    for node in 0..2 {
        assert_eq!(network.count(node, is_rekeyed), 0, "node {node}");
        assert_eq!(network.received(node).len(), 66, "node {node}");
    }
    network.filter = Box::new(|_| true);
    network.run(Duration::from_secs(300));
    for node in 0..2 {
        assert_eq!(network.count(node, is_rekeyed), 1, "node {node}");
    }
    network.assert_data_flows(0, 1);
}

#[test]
fn an_acknowledgement_that_comes_while_the_answer_rests_counts() {
    let mut network = rekeying_pair(11, 10, [true; 2]);
    let second = network.nodes[1].addresses[0];
    network.filter = Box::new(move |packet| {
        let is_answer = packet.protocol == Protocol::Hip && offer(packet).is_none();
        packet.source != second || !is_answer
    });
    for _ in 0..10 {
        network.send(1, 0, b"data");
    }
    network.run(Duration::from_secs(140));
    assert_eq!(network.count(0, is_failed), 1, "no acknowledgement");
    assert_eq!(network.count(0, is_rekeyed), 0);
    network.send(0, 1, b"data");
    network.run(Duration::from_secs(1));
    assert_eq!(network.received(1).len(), 1, "under the old keys");
    // Whatever the peer says next acknowledges the answer.
    network.filter = Box::new(|_| true);
    network.move_to(1, &[address("198.51.100.7")]);
    network.run(Duration::from_secs(1));
    assert_eq!(network.count(0, is_rekeyed), 1);
    network.assert_data_flows(0, 1);
}

#[test]
fn replayed_offers_change_nothing_and_cost_no_secret() {
    let mut network = rekeying_pair(6, 10, [true; 2]);
    talk(&mut network, 90);
    network.run(Duration::from_secs(5));
    let rekeyed = [0, 1].map(|node| network.count(node, is_rekeyed));
    assert!(rekeyed[0] >= 3, "{rekeyed:?}");
    let before = [0, 1].map(|node| spis(&network, node));
    let recorded: Vec<_> = network.sent.clone();
    let offered = recorded.iter().filter(|(_, _, sent)| offer(sent).is_some());
    for _ in 0..3 {
        for (_, _, packet) in offered.clone() {
            network.deliver(packet);
        }
    }
    network.run(Duration::from_secs(5));
    assert_eq!([0, 1].map(|node| spis(&network, node)), before);
    assert_eq!([0, 1].map(|node| network.count(node, is_rekeyed)), rekeyed);
    let refused = |node: usize| network.nodes[node].host.counters().refused(Refusal::Replay);
    assert!(refused(0) > 0 && refused(1) > 0);
    network.assert_data_flows(0, 1);
}

#[test]
fn an_altered_offer_is_refused() {
    let mut network = rekeying_pair(7, 10, [true; 2]);
    network.filter = Box::new(|packet| offer(packet).is_none());
    for _ in 0..11 {
        network.send(0, 1, b"data");
    }
    network.run(Duration::from_millis(100));
    let sent = network.sent.iter().rev();
    let packet = sent
        .map(|(_, _, packet)| packet)
        .find(|packet| offer(packet).is_some());
    let packet = packet.expect("an offer").clone();
    let before = spis(&network, 1);
    // The signature has two bytes of padding, which nobody checks.
    for at in 40..packet.payload.len() - 2 {
        let mut altered = packet.clone();
        altered.payload[at] ^= 1 << (at % 8);
        let path = (packet.source, packet.destination);
        outlast_wire::hip::Builder::set_checksum(&mut altered.payload, path.0, path.1);
        let host = &mut network.nodes[1].host;
        host.handle_packet(network.now, path, Protocol::Hip, &altered.payload);
        assert!(host.poll_transmit().is_none(), "byte {at} was answered");
    }
    assert_eq!(spis(&network, 1), before);
    network.filter = Box::new(|_| true);
    network.deliver(&packet);
    network.run(Duration::from_secs(1));
    assert_eq!(network.count(1, is_rekeyed), 1, "as it was sent it counts");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn any_network_leads_to_the_same_keys_at_both_ends(
        seed: u64,
        loss in 0.0..0.5,
        repetition in 0.0..0.5,
        reordering in 0.0..0.8,
        alteration in 0.0..0.2,
        has_new_secret: [bool; 2],
        packets in 2_u64..12,
        steps in proptest::collection::vec((0..4_usize, 0..900_u64), 10..40),
    ) {
        let mut network = rekeying_pair(seed, packets, has_new_secret);
        network.faults = Faults { loss, repetition, reordering, alteration };
        for (number, (who, wait)) in steps.into_iter().enumerate() {
            let mark = (number as u32).to_be_bytes();
            match who {
                3 => {
                    let node = number % 2;
                    let place = format!("198.51.{node}.{}", number + 1);
                    network.move_to(node, &[address(&place)]);
                }
                2 => {
                    network.send(0, 1, &mark);
                    network.send(1, 0, &mark);
                }
                from => network.send(from, 1 - from, &mark),
            }
            network.run(Duration::from_millis(wait));
        }
        // Both hosts in places that each has heard of, or tells again until it is heard.
        network.faults = Faults::default();
        network.run(Duration::from_secs(60));
        for node in 0..2 {
            let mut received = network.received(node);
            received.sort();
            let count = received.len();
            received.dedup();
            prop_assert_eq!(received.len(), count, "node {} got something twice", node);
        }
        if [0, 1].map(|node| network.count(node, is_established)) == [1, 1] {
            let meet = |node: usize| network.nodes[node].host.views().any(|view| {
                view.addresses.iter().any(|known| network.nodes[1 - node].addresses.contains(&known.address))
            });
            // Hosts that have moved at once need a rendezvous server to meet again.
            if meet(0) || meet(1) {
                network.assert_data_flows(0, 1);
                let [(own_in, own_out), (peer_in, peer_out)] = [0, 1].map(|node| spis(&network, node));
                prop_assert!(own_out == peer_in || own_in == peer_out);
                network.assert_data_flows(0, 1);
            }
        }
    }
}
