//! A peer that is killed and started again, and one that never comes back (RFC 7401, sections 4.5.4 and 6.11; RFC 7402,
//! section 5.4.1).

use crate::common::{Network, address, identity, inner, is_established, with_server};
use outlast_base::time::Duration;
use outlast_hip::{Config, Event, Peer, Protocol, StateName, Transmit};
use outlast_wire::hip::{Builder, Message, PacketType};
use std::net::IpAddr;

/// Time in which traffic goes both ways again.
const LIMIT: Duration = Duration::from_secs(2);

fn kind_of(packet: &Transmit) -> Option<PacketType> {
    let message = Message::parse(&packet.payload).ok();
    let message = message.filter(|_| packet.protocol == Protocol::Hip);
    message.map(|message| message.kind())
}

fn count(network: &Network, node: usize, kind: PacketType) -> usize {
    let sent = network.sent.iter().filter(|(_, from, _)| *from == node);
    sent.filter(|(_, _, packet)| kind_of(packet) == Some(kind))
        .count()
}

/// Two hosts in conversation. Only those named list the other one's address; node 0 has begun.
fn conversation(seed: u64) -> Network {
    let mut network = Network::pair(seed);
    network.assert_data_flows(0, 1);
    network
}

/// A host that begins anew in the place of a node, without a word to anybody.
fn restart(network: &mut Network, node: usize, own: &[IpAddr], knows_address: bool) {
    let fresh = network.add(Config::default(), identity(node as u8 + 1), own);
    network.nodes.swap(node, fresh);
    network.nodes.truncate(2);
    let other = 1 - node;
    let known = Peer {
        addresses: match knows_address {
            true => network.nodes[other].addresses.clone(),
            false => Vec::new(),
        },
        ..Peer::default()
    };
    let hit = network.hit(other);
    network.nodes[node].host.set_peers([(hit, known)]);
}

/// Has these nodes send ten packets a second, and gives the time until each node has heard the other one.
fn time_to_recover(network: &mut Network, senders: &[usize]) -> Duration {
    let began = network.now;
    let before = [0, 1].map(|node| network.nodes[node].delivered.len());
    let mut round = 0_u32;
    while network.now - began < LIMIT * 2 {
        for &node in senders {
            network.send(node, 1 - node, &round.to_be_bytes());
        }
        network.run(Duration::from_millis(100));
        let has_heard =
            |network: &Network, node: usize| network.nodes[node].delivered.len() > before[node];
        // Each answers as soon as it hears something.
        for node in 0..2 {
            if !senders.contains(&node) && has_heard(network, node) {
                network.send(node, 1 - node, b"answer");
            }
        }
        if has_heard(network, 0) && has_heard(network, 1) {
            let took = network.now - began;
            network.run(Duration::from_millis(200));
            return took;
        }
        round += 1;
    }
    network.now - began
}

#[test]
fn a_peer_that_was_killed_is_found_again_whoever_sends_first() {
    // With tags in either order: that decides which of two exchanges that cross goes on.
    for node in 0..2 {
        let survivor = 1 - node;
        for (senders, knows_address) in [
            (&[survivor][..], true),
            (&[survivor][..], false),
            (&[node][..], true),
            (&[node, survivor][..], true),
            (&[node, survivor][..], false),
        ] {
            for pause in [0, 30, 3_000] {
                let mut network = conversation(1);
                network.run(Duration::from_millis(pause));
                let own = network.nodes[node].addresses.clone();
                restart(&mut network, node, &own, knows_address);
                let took = time_to_recover(&mut network, senders);
                let case = format!("{node}, {senders:?}, {knows_address}, {pause}: {took:?}");
                assert!(took <= LIMIT, "{case}");
                network.assert_data_flows(0, 1);
                network.run(Duration::from_secs(60));
                let now_each = [0, 1].map(|node| network.state(node, 1 - node));
                assert_eq!(now_each, [Some(StateName::Established); 2], "{case}");
            }
        }
    }
}

/// A Responder in R2-SENT has not heard from its peer since the I2 (section 4.4.2).
#[test]
fn a_peer_that_was_killed_right_after_its_exchange_is_found_again() {
    for node in 0..2 {
        let survivor = 1 - node;
        let mut network = Network::pair(12);
        network.connect(node, survivor);
        network.run(Duration::from_millis(210));
        let states = [node, survivor].map(|it| network.state(it, 1 - it));
        let expected = [StateName::Established, StateName::R2Sent].map(Some);
        assert_eq!(states, expected, "{node}");
        let own = network.nodes[node].addresses.clone();
        restart(&mut network, node, &own, false);
        let took = time_to_recover(&mut network, &[survivor]);
        assert!(took <= LIMIT, "{node}: {took:?}");
        network.assert_data_flows(0, 1);
    }
}

/// An R2 that is lost has the Initiator repeat its I2: no second exchange takes the place of that.
#[test]
fn a_lost_r2_costs_no_second_exchange() {
    for node in 0..2 {
        let responder = 1 - node;
        let mut network = Network::pair(13);
        let mut lost = 0;
        network.filter = Box::new(move |packet| {
            let is_lost = kind_of(packet) == Some(PacketType::R2) && lost < 2;
            lost += u32::from(is_lost);
            !is_lost
        });
        network.connect(node, responder);
        for round in 0..50_u32 {
            network.send(responder, node, &round.to_be_bytes());
            network.run(Duration::from_millis(100));
        }
        let established = [0, 1].map(|it| network.count(it, is_established));
        assert_eq!(established, [1, 1], "{node}");
        network.run(Duration::from_secs(5));
        network.assert_data_flows(0, 1);
    }
}

/// A host that has forgotten its peer and lists no address of it can ask nobody: it is found by the peer's next packet, also
/// while its own exchange waits or has failed.
#[test]
fn a_restarted_host_without_addresses_is_found_once_the_idle_survivor_speaks() {
    for node in 0..2 {
        let survivor = 1 - node;
        for idle_for in [1, 10, 60] {
            let mut network = conversation(10);
            network.run(Duration::from_secs(3));
            let own = network.nodes[node].addresses.clone();
            restart(&mut network, node, &own, false);
            let sent = network.sent.len();
            for round in 0..idle_for * 10 {
                network.send(node, survivor, &(round as u32).to_be_bytes());
                network.run(Duration::from_millis(100));
            }
            // The control: it has no way to anybody, and nobody asks an idle peer.
            let case = format!("{node}, {idle_for} s");
            assert_eq!(network.sent.len(), sent, "{case}");
            assert!(network.received(survivor).len() <= 1, "{case}");
            let took = time_to_recover(&mut network, &[survivor]);
            assert!(took <= LIMIT, "{case}: {took:?}");
            network.assert_data_flows(0, 1);
        }
    }
}

/// Addresses of the former process let the restarted host begin, whether the survivor is idle or not.
#[test]
fn a_restarted_host_that_recalls_its_peer_begins_by_itself() {
    for node in 0..2 {
        let survivor = 1 - node;
        for senders in [&[node][..], &[node, survivor][..]] {
            for pause in [0, 30, 3_000, 600_000] {
                let mut network = conversation(14);
                network.run(Duration::from_millis(pause));
                let recalled: Vec<_> = network.nodes[node].host.whereabouts().collect();
                let at = network.nodes[survivor].addresses[0];
                let case = format!("{node}, {senders:?}, {pause}");
                assert_eq!(recalled, [(network.hit(survivor), vec![at])], "{case}");
                let own = network.nodes[node].addresses.clone();
                restart(&mut network, node, &own, false);
                network.nodes[node].host.recall(recalled);
                let took = time_to_recover(&mut network, senders);
                assert!(took <= LIMIT, "{case}: {took:?}");
                network.assert_data_flows(0, 1);
            }
        }
    }
}

/// The address of a listed peer outlives the association: data after its end begins another one.
#[test]
fn a_peer_without_a_listed_address_is_called_again_after_its_association_was_closed() {
    for closes in 0..2 {
        let mut network = Network::pair(15);
        let mobile = network.hit(0);
        network.nodes[1].host.set_peers([(mobile, Peer::default())]);
        network.assert_data_flows(0, 1);
        let (now, other) = (network.now, network.hit(1 - closes));
        network.nodes[closes].host.close(now, other);
        network.drain(closes);
        network.run(Duration::from_secs(600));
        assert_eq!(network.state(1, 0), None, "{closes}");
        let took = time_to_recover(&mut network, &[1]);
        assert!(took <= LIMIT, "{closes}: {took:?}");
    }
}

/// A hint only: whoever is there now gets I1 packets alone, to which nobody but the peer has an answer.
#[test]
fn a_host_where_a_recalled_peer_was_gets_no_data() {
    let mut network = conversation(16);
    network.run(Duration::from_secs(1));
    let (mobile, unlisted) = (network.hit(0), identity(9).hit());
    let former = network.nodes[0].addresses.clone();
    network.filter = Box::new(|_| false);
    network.move_to(0, &[address("198.51.100.7")]);
    network.filter = Box::new(|_| true);
    let own = network.nodes[1].addresses.clone();
    let recalled = [(mobile, former.clone()), (unlisted, former.clone())];
    restart(&mut network, 1, &own, false);
    network.nodes[1].host.recall(recalled.clone());
    let known: Vec<_> = network.nodes[1].host.whereabouts().collect();
    assert_eq!(known, recalled[..1], "the other one is not listed");
    let before = network.sent.len();
    for round in 0..30_u32 {
        network.send(1, 0, &round.to_be_bytes());
        network.run(Duration::from_millis(100));
    }
    let sent = &network.sent[before..];
    let to_former = |packet: &&Transmit| former.contains(&packet.destination);
    let kinds: Vec<_> = sent
        .iter()
        .filter(|(_, from, _)| *from == 1)
        .map(|(_, _, packet)| packet)
        .filter(to_former)
        .map(kind_of)
        .collect();
    assert!(
        !kinds.is_empty() && kinds.iter().all(|kind| *kind == Some(PacketType::I1)),
        "{kinds:?}"
    );
}

/// Three I1 packets at once are the most (section 6.6.1), and the last address is among them.
#[test]
fn the_last_address_is_called_among_the_first_three() {
    let mut network = conversation(17);
    network.run(Duration::from_secs(1));
    let (mobile, own) = (network.hit(0), network.nodes[1].addresses.clone());
    let recalled: Vec<_> = network.nodes[1].host.whereabouts().collect();
    let last = recalled[0].1[0];
    restart(&mut network, 1, &own, false);
    let listed = [1, 2, 3, 4].map(|host| address(&format!("198.51.100.{host}")));
    let known = Peer {
        addresses: listed.to_vec(),
        ..Peer::default()
    };
    network.nodes[1].host.set_peers([(mobile, known)]);
    network.nodes[1].host.recall(recalled);
    let before = network.sent.len();
    network.send(1, 0, b"first");
    let called: Vec<_> = network.sent[before..]
        .iter()
        .map(|(_, _, packet)| packet.destination)
        .collect();
    assert_eq!(called, [last, listed[0], listed[1]]);
}

/// A peer that has named a new address and not answered from it yet is somewhere, too.
#[test]
fn a_peer_amid_a_move_is_somewhere() {
    let mut network = conversation(18);
    network.run(Duration::from_secs(1));
    let (mobile, new) = (network.hit(0), address("198.51.100.7"));
    // Nothing comes back to the mobile host: its new address stays unverified.
    network.filter = Box::new(move |packet| packet.destination != new);
    network.move_to(0, &[new]);
    network.run(Duration::from_millis(300));
    let known: Vec<_> = network.nodes[1].host.whereabouts().collect();
    assert_eq!(known, [(mobile, vec![new])]);
}

/// The example of `docs/hip.md`: the fixed host knows the tag of the mobile one alone, and learns its address.
#[test]
fn a_fixed_host_without_addresses_is_found_after_a_restart_and_finds_its_peer() {
    for dies in 0..2 {
        let mut network = Network::pair(2);
        let mobile = network.hit(0);
        network.nodes[1].host.set_peers([(mobile, Peer::default())]);
        network.assert_data_flows(0, 1);
        network.run(Duration::from_secs(5));
        let own = network.nodes[dies].addresses.clone();
        restart(&mut network, dies, &own, dies == 0);
        let took = time_to_recover(&mut network, &[1 - dies]);
        assert!(took <= LIMIT, "{dies}: {took:?}");
        network.assert_data_flows(0, 1);
    }
}

#[test]
fn a_restart_whose_close_was_lost_is_one_without_a_close() {
    for node in 0..2 {
        let mut network = conversation(3);
        network.run(Duration::from_secs(1));
        network.filter = Box::new(|_| false);
        let (now, hit) = (network.now, network.hit(1 - node));
        network.nodes[node].host.close(now, hit);
        network.drain(node);
        network.filter = Box::new(|_| true);
        let own = network.nodes[node].addresses.clone();
        restart(&mut network, node, &own, false);
        let took = time_to_recover(&mut network, &[1 - node]);
        assert!(took <= LIMIT, "{node}: {took:?}");
        network.assert_data_flows(0, 1);
    }
}

/// Its own I1 comes from where no I1 of the survivor goes to.
#[test]
fn a_peer_that_comes_back_elsewhere_is_found_again() {
    for node in 0..2 {
        let mut network = conversation(4);
        network.run(Duration::from_secs(1));
        restart(&mut network, node, &[address("198.51.100.7")], true);
        let took = time_to_recover(&mut network, &[0, 1]);
        assert!(took <= LIMIT, "{node}: {took:?}");
        network.assert_data_flows(0, 1);
    }
}

fn spis(network: &Network, node: usize) -> Option<(u32, u32)> {
    network.nodes[node].host.views().next()?.spis
}

/// Silence alone is no proof: a peer that has its state says so, and the association stays.
#[test]
fn a_peer_that_listens_and_says_nothing_keeps_its_association() {
    let mut network = conversation(5);
    let before = spis(&network, 0);
    for round in 0..600_u32 {
        network.send(0, 1, &round.to_be_bytes());
        network.run(Duration::from_millis(100));
    }
    assert_eq!(network.received(1).len(), 601);
    assert_eq!(spis(&network, 0), before);
    assert_eq!(count(&network, 0, PacketType::I1), 1);
    let asked = count(&network, 0, PacketType::Update);
    assert!((50..=100).contains(&asked), "{asked} questions in 60 s");
}

/// A conversation of questions and answers shows that the peer lives: nobody is asked.
#[test]
fn a_conversation_costs_no_question() {
    let mut network = conversation(6);
    for _ in 0..20 {
        network.assert_data_flows(0, 1);
        network.send(0, 1, b"question");
        network.run(Duration::from_millis(60));
        network.send(1, 0, b"answer");
        network.run(Duration::from_millis(60));
        network.send(0, 1, b"thanks");
        network.run(Duration::from_secs(1));
        network.nodes[0].delivered.clear();
        network.nodes[1].delivered.clear();
    }
    assert_eq!(count(&network, 0, PacketType::Update), 0);
    assert_eq!(count(&network, 1, PacketType::Update), 0);
}

/// Both have their state when the path works again.
#[test]
fn an_outage_costs_no_exchange() {
    for seconds in [1, 2, 5, 30, 300] {
        let mut network = conversation(7);
        network.run(Duration::from_secs(1));
        let before = [spis(&network, 0), spis(&network, 1)];
        network.filter = Box::new(|_| false);
        for round in 0..seconds * 2 {
            network.send(0, 1, &(round as u32).to_be_bytes());
            network.run(Duration::from_millis(500));
        }
        network.filter = Box::new(|_| true);
        network.run(Duration::from_secs(20));
        assert_eq!([spis(&network, 0), spis(&network, 1)], before, "{seconds}");
        assert_eq!(network.count(0, is_established), 1, "{seconds}");
        network.assert_data_flows(0, 1);
    }
}

/// Packets in the peer's name that anybody can make or has recorded: those of its exchange, ESP of an unknown SPI,
/// and what comes from elsewhere.
#[test]
fn nobody_ends_an_association_in_the_name_of_a_peer_that_has_restarted() {
    for is_silent in [false, true] {
        for victim in 0..2 {
            let mut network = conversation(8);
            network.run(Duration::from_secs(3));
            let recorded: Vec<_> = network.sent.clone();
            let recorded = recorded.iter().filter(|(_, node, _)| *node != victim);
            let mut packets: Vec<Transmit> = recorded.map(|(_, _, it)| it.clone()).collect();
            let mut builder =
                Builder::new(PacketType::I1, network.hit(1 - victim), network.hit(victim));
            builder.push(outlast_wire::hip::kind::DH_GROUP_LIST, &[7, 3]);
            for source in ["192.0.2.99", "198.51.100.1"] {
                let mut forged = Transmit {
                    source: address(source),
                    destination: network.nodes[victim].addresses[0],
                    protocol: Protocol::Hip,
                    payload: builder.covered(),
                };
                Builder::set_checksum(&mut forged.payload, forged.source, forged.destination);
                packets.push(forged);
            }
            packets.push(Transmit {
                protocol: Protocol::Esp,
                payload: vec![7; 64],
                ..packets[0].clone()
            });
            if is_silent {
                network.filter = Box::new(|_| false);
            }
            let before = spis(&network, victim);
            for round in 0..50_u32 {
                network.send(victim, 1 - victim, &round.to_be_bytes());
                for packet in &packets {
                    network.deliver(packet);
                }
                network.run(Duration::from_millis(100));
                assert_eq!(
                    network.state(victim, 1 - victim),
                    Some(StateName::Established)
                );
                assert_eq!(spis(&network, victim), before, "round {round}");
            }
            network.filter = Box::new(|_| true);
            network.run(Duration::from_secs(20));
            network.assert_data_flows(0, 1);
        }
    }
}

#[test]
fn a_peer_that_never_answers_again_is_given_up() {
    let mut network = conversation(9);
    network.run(Duration::from_secs(1));
    network.filter = Box::new(|_| false);
    network.move_to(0, &[address("198.51.100.7")]);
    for _ in 0..20 * 60 {
        let payload = inner(network.hit(0), network.hit(1), b"into the void");
        let (now, node) = (network.now, &mut network.nodes[0]);
        if node.host.views().next().is_some() {
            node.host.handle_data(now, &payload);
            network.drain(0);
        }
        network.run(Duration::from_secs(1));
    }
    let closed = |event: &Event| matches!(event, Event::Closed { .. });
    assert_eq!(network.count(0, closed), 1, "after 15 minutes");
    let mut updates = network
        .sent
        .iter()
        .filter(|(_, node, packet)| *node == 0 && kind_of(packet) == Some(PacketType::Update));
    let last = updates.next_back().expect("UPDATEs were sent").0;
    let silent_for = network.now - last;
    assert!(silent_for >= Duration::from_secs(4 * 60), "{silent_for:?}");
}

/// A rendezvous server closes what was not renewed, and repeats its CLOSE for two minutes. An outage that ends then leaves
/// its client CLOSED, and only the client can begin anew.
#[test]
fn a_client_registers_again_at_a_server_that_was_away_for_a_minute() {
    let mut network = with_server(3);
    let (now, server) = (network.now, network.nodes[2].addresses[0]);
    // It says that it ends, and hears nothing more.
    network.filter = Box::new(move |packet| packet.destination != server);
    for node in 0..2 {
        let client = network.hit(node);
        network.nodes[2].host.close(now, client);
        network.drain(2);
    }
    network.run(Duration::from_secs(60));
    let registered = |network: &Network| network.nodes[2].host.registrations(network.now).count();
    assert_eq!(registered(&network), 0, "the control");
    network.filter = Box::new(|_| true);
    network.run(Duration::from_secs(30));
    assert_eq!(registered(&network), 2);
}

#[test]
fn a_client_that_its_server_has_closed_registers_again() {
    for end in [1_030, 1_060, 1_090, 1_120, 1_140] {
        let mut network = with_server(3);
        network.run(Duration::from_secs(500));
        let gone = network.nodes[0].addresses[0];
        network.filter =
            Box::new(move |packet| ![packet.source, packet.destination].contains(&gone));
        network.run(Duration::from_secs(end - 500));
        assert_eq!(network.state(2, 0), Some(StateName::Closing), "{end}");
        // The server is heard first.
        network.filter = Box::new(move |packet| {
            packet.source != gone || kind_of(packet) == Some(PacketType::CloseAck)
        });
        while network.count(0, |event| matches!(event, Event::Closed { .. })) == 0 {
            network.run(Duration::from_millis(10));
        }
        network.filter = Box::new(|_| true);
        network.run(Duration::from_secs(20));
        for node in 0..2 {
            let registrations = network.nodes[2].host.registrations(network.now);
            let hit = network.hit(node);
            assert_eq!(
                registrations.filter(|(client, _)| *client == hit).count(),
                1,
                "{node}, {end}"
            );
            assert_eq!(
                network.state(node, 2),
                Some(StateName::Established),
                "{end}"
            );
        }
    }
}
