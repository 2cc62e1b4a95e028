//! Floods of forged packets that no MAC protects (RFC 7401, sections 6.7, 6.8 and 6.13; RFC 8004, section 4.2): what they
//! cost is counted in signatures that are checked and in packets that are sent, and an honest peer gets through.

use crate::common::{Network, address, identity, with_server};
use outlast_base::time::Duration;
use outlast_hip::group::Group;
use outlast_hip::{Config, Peer, Protocol, Refusal, StateName, Transmit};
use outlast_wire::hip::{Builder, Message, Notification, PacketType, Signature, kind};
use std::net::{IpAddr, Ipv4Addr};

/// Forged packets in a second.
const FLOOD: u32 = 3_000;

/// Signatures that strangers may cost at once, and in a second.
const AT_ONCE: u64 = 128;
const CHECKS: u64 = 100;

/// Signatures that one address may cost in a second.
const FOR_ONE_ADDRESS: u64 = 96;

const ATTACKER: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 66));

/// Source addresses of forged packets.
#[derive(Clone, Copy, Debug)]
enum Spoofing {
    /// The attacker's own.
    None,
    /// Another one for each packet, but not the peer's.
    Strangers,
    /// The peer's, which this host sends to.
    Peer,
}

impl Spoofing {
    fn source(self, round: u32, peer: IpAddr) -> IpAddr {
        match self {
            Self::None => ATTACKER,
            Self::Strangers => IpAddr::V4(Ipv4Addr::from(0xc612_0000 + round)),
            Self::Peer => peer,
        }
    }
}

fn finished(mut payload: Vec<u8>, source: IpAddr, destination: IpAddr) -> Transmit {
    Builder::set_checksum(&mut payload, source, destination);
    Transmit {
        source,
        destination,
        protocol: Protocol::Hip,
        payload,
    }
}

/// An R1 that node 1 has for whoever calls as node 0 and offers these groups.
fn r1_in(network: &mut Network, groups: &[u8]) -> Transmit {
    let mut builder = Builder::new(PacketType::I1, network.hit(0), network.hit(1));
    builder.push(kind::DH_GROUP_LIST, groups);
    let i1 = builder.finish().expect("an I1");
    let packet = finished(i1, ATTACKER, network.nodes[1].addresses[0]);
    network.deliver(&packet);
    let answers = network.sent.iter().filter(|(_, node, _)| *node == 1);
    let mut answers = answers.map(|(_, _, sent)| sent.clone());
    answers.next_back().expect("an R1")
}

/// An R1 as node 0 would have it.
fn r1(network: &mut Network) -> Transmit {
    r1_in(network, &[7, 3])
}

/// The R1 for node 0, with another signature.
fn forged_r1(network: &Network, r1: &Transmit, round: u32, from: Spoofing) -> Transmit {
    let mut payload = r1.payload.clone();
    let message = Message::parse(&r1.payload).expect("an R1");
    let signature = message.find(kind::HIP_SIGNATURE_2).expect("it is signed");
    let end = signature.offset + 4 + signature.contents.len();
    payload[end - 4..end].copy_from_slice(&round.to_be_bytes());
    let [own, peer] = [0, 1].map(|node| network.nodes[node].addresses[0]);
    finished(payload, from.source(round, peer), own)
}

/// A NOTIFY for node 0 that node 1 has not signed.
fn forged_notify(network: &Network, round: u32, from: Spoofing) -> Transmit {
    let mut builder = Builder::new(PacketType::Notify, network.hit(1), network.hit(0));
    let notice = Notification {
        notice: 44,
        data: &[],
    };
    builder.push_with(kind::NOTIFICATION, |out| notice.write(out));
    let mut bytes = [7; 64];
    bytes[..4].copy_from_slice(&round.to_be_bytes());
    let signature = Signature {
        algorithm: 7,
        signature: &bytes,
    };
    builder.push_with(kind::HIP_SIGNATURE, |out| signature.write(out));
    let [own, peer] = [0, 1].map(|node| network.nodes[node].addresses[0]);
    let packet = builder.finish().expect("a NOTIFY");
    finished(packet, from.source(round, peer), own)
}

/// Signatures of forged packets that node 0 has checked.
fn checks(network: &Network) -> u64 {
    network.nodes[0].host.counters().refused(Refusal::Signature)
}

fn flood(network: &mut Network, length: Duration, mut next: impl FnMut(&Network, u32) -> Transmit) {
    let end = network.now + length;
    let mut round = 0;
    while network.now < end {
        let forged = next(network, round);
        network.deliver(&forged);
        network.run(Duration::from_secs(1) / FLOOD);
        round += 1;
    }
}

fn has_associated(network: &Network) -> bool {
    let states = [network.state(0, 1), network.state(1, 0)];
    let is_up = |state| matches!(state, Some(StateName::Established | StateName::R2Sent));
    states.into_iter().all(is_up)
}

/// Section 6.8 has the address of an R1 ignored, so that each forged one would have its signature checked.
#[test]
fn forged_r1_packets_cost_no_more_than_their_share() {
    for spoofing in [Spoofing::None, Spoofing::Strangers, Spoofing::Peer] {
        let mut network = Network::pair(21);
        let r1 = r1(&mut network);
        // The peer is out of reach: the exchange waits for its R1 all the time.
        network.filter = Box::new(|_| false);
        network.connect(0, 1);
        flood(&mut network, Duration::from_secs(3), |network, round| {
            forged_r1(network, &r1, round, spoofing)
        });
        assert_eq!(network.state(0, 1), Some(StateName::I1Sent));
        let most = match spoofing {
            // The flood falls into four seconds.
            Spoofing::None | Spoofing::Peer => 4 * FOR_ONE_ADDRESS,
            Spoofing::Strangers => AT_ONCE + 3 * CHECKS,
        };
        let cost = checks(&network);
        assert!((1..=most).contains(&cost), "{spoofing:?}: {cost}");
    }
}

/// An attacker has an R1 signed that is of no use to whoever it is for: the first group that both have is another one
/// (section 5.2.6). That is found before the signature is checked.
#[test]
fn a_signed_r1_of_no_use_costs_no_signature() {
    let mut network = Network::pair(28);
    let useless = r1_in(&mut network, &[Group::Modp3072.number()]);
    let right = r1(&mut network);
    network.filter = Box::new(|_| false);
    network.connect(0, 1);
    let refused = |network: &Network, refusal| network.nodes[0].host.counters().refused(refusal);
    for (r1, expected) in [(&useless, Refusal::Choice), (&right, Refusal::Signature)] {
        let before = [expected, Refusal::Signature].map(|it| refused(&network, it));
        for round in 0..50 {
            let forged = forged_r1(&network, r1, round, Spoofing::Peer);
            network.deliver(&forged);
        }
        assert_eq!(refused(&network, expected) - before[0], 50);
        let is_control = expected == Refusal::Signature;
        let checked = refused(&network, Refusal::Signature) - before[1];
        assert_eq!(checked, if is_control { 50 } else { 0 });
    }
    // What is signed and of no use costs nothing either.
    for _ in 0..1_000 {
        let own = network.nodes[0].addresses[0];
        let signed = finished(useless.payload.clone(), ATTACKER, own);
        network.deliver(&signed);
    }
    assert_eq!(refused(&network, Refusal::Choice), 1_050);
}

/// An attacker who cannot write the peer's address as his source takes nothing from the peer.
#[test]
fn an_honest_r1_is_heard_among_forged_ones() {
    for spoofing in [Spoofing::None, Spoofing::Strangers] {
        let mut network = Network::pair(22);
        network.delay = Duration::from_millis(100);
        let r1 = r1(&mut network);
        let mut next = |network: &Network, round: u32| forged_r1(network, &r1, round, spoofing);
        flood(&mut network, Duration::from_secs(1), &mut next);
        assert_eq!(checks(&network), 0, "nobody is called");
        network.connect(0, 1);
        flood(&mut network, Duration::from_secs(1), &mut next);
        assert!(has_associated(&network), "{spoofing:?}");
        let refused = network.nodes[0].host.counters().refused(Refusal::Limit);
        assert!(refused > 0, "{spoofing:?}: the control");
        network.assert_data_flows(0, 1);
    }
}

/// A peer that was started again is found by an exchange beside the association, which waits for an R1, too.
#[test]
fn forged_r1_packets_do_not_delay_a_revival() {
    for spoofing in [Spoofing::None, Spoofing::Strangers] {
        let mut network = Network::pair(23);
        network.delay = Duration::from_millis(20);
        network.assert_data_flows_after_meeting(0, 1);
        network.run(Duration::from_secs(3));
        let own = network.nodes[1].addresses.clone();
        let fresh = network.add(Config::default(), identity(2), &own);
        network.nodes.swap(1, fresh);
        network.nodes.truncate(2);
        let hit = network.hit(0);
        network.nodes[1].host.set_peers([(hit, Peer::default())]);
        let r1 = r1(&mut network);
        network.send(0, 1, b"anybody there?");
        flood(&mut network, Duration::from_secs(2), |network, round| {
            forged_r1(network, &r1, round, spoofing)
        });
        assert!(network.state(1, 0).is_some(), "{spoofing:?}");
        let cost = checks(&network);
        let most = AT_ONCE + 2 * CHECKS;
        assert!((1..=most).contains(&cost), "{spoofing:?}: {cost}");
        network.assert_data_flows(0, 1);
    }
}

/// A NOTIFY bears a signature and no MAC (section 5.3.6).
#[test]
fn forged_notifications_cost_no_more_than_their_share() {
    for spoofing in [Spoofing::None, Spoofing::Strangers, Spoofing::Peer] {
        let mut network = Network::pair(24);
        network.delay = Duration::from_millis(20);
        // The first I2 is lost.
        let mut is_lost = false;
        network.filter = Box::new(move |packet| {
            let message = Message::parse(&packet.payload).expect("a host sends HIP");
            let is_first = message.kind() == PacketType::I2 && !is_lost;
            is_lost |= is_first;
            !is_first
        });
        network.connect(0, 1);
        network.run(Duration::from_millis(100));
        assert_eq!(network.state(0, 1), Some(StateName::I2Sent));
        flood(&mut network, Duration::from_secs(1), |network, round| {
            forged_notify(network, round, spoofing)
        });
        let cost = checks(&network);
        let most = AT_ONCE + CHECKS;
        assert!((1..=most).contains(&cost), "{spoofing:?}: {cost}");
        assert!(has_associated(&network), "{spoofing:?}");
        network.filter = Box::new(|_| true);
        network.assert_data_flows(0, 1);
    }
}

/// Of two exchanges that cross one goes on, and the host that drops the other one's I1 answers with its own, to where that
/// came from: anybody can write that.
#[test]
fn nobody_is_flooded_with_calls_of_an_exchange_that_seems_to_cross() {
    let mut crossed = 0;
    for node in 0..2 {
        let mut network = Network::pair(25);
        network.filter = Box::new(|_| false);
        network.connect(node, 1 - node);
        let mut builder = Builder::new(PacketType::I1, network.hit(1 - node), network.hit(node));
        builder.push(kind::DH_GROUP_LIST, &[7, 3]);
        let i1 = builder.finish().expect("an I1");
        let forged = finished(i1, ATTACKER, network.nodes[node].addresses[0]);
        flood(&mut network, Duration::from_secs(1), |_, _| forged.clone());
        let to_attacker = network
            .sent
            .iter()
            .filter(|(_, _, sent)| sent.destination == ATTACKER);
        let count = to_attacker.count();
        // The packets fall into two seconds.
        assert!((1..=256).contains(&count), "{node}: {count}");
        let calls = network.sent.iter().filter(|(_, _, sent)| {
            let message = Message::parse(&sent.payload).expect("a host sends HIP");
            sent.destination == ATTACKER && message.kind() == PacketType::I1
        });
        crossed += calls.count();
    }
    assert!(crossed > 0, "one of the two has the lower tag");
}

/// Calls of one address beyond its share take no answers from others.
#[test]
fn a_flood_of_calls_from_one_address_keeps_nobody_out() {
    let mut network = Network::pair(29);
    let mut builder = Builder::new(PacketType::I1, network.hit(0), network.hit(1));
    builder.push(kind::DH_GROUP_LIST, &[7, 3]);
    let i1 = builder.finish().expect("an I1");
    let forged = finished(i1, ATTACKER, network.nodes[1].addresses[0]);
    let pass = |network: &mut Network, rounds: u32| {
        for _ in 0..rounds {
            network.deliver(&forged);
            network.run(Duration::from_micros(50));
        }
    };
    // The first tenth of a second is over.
    pass(&mut network, 6_000);
    network.connect(0, 1);
    pass(&mut network, 20_000);
    assert!(has_associated(&network));
    network.assert_data_flows(0, 1);
}

/// A rendezvous server forwards for whoever calls (RFC 8004, section 4.2.2).
#[test]
fn a_rendezvous_server_forwards_no_flood_and_an_honest_call_gets_through() {
    let mut network = with_server(26);
    let before = network.nodes[2].host.counters().forwarded;
    let mut builder = Builder::new(PacketType::I1, identity(9).hit(), network.hit(1));
    builder.push(kind::DH_GROUP_LIST, &[7, 3]);
    let i1 = builder.finish().expect("an I1");
    let forged = finished(i1, ATTACKER, network.nodes[2].addresses[0]);
    flood(&mut network, Duration::from_secs(1), |_, _| forged.clone());
    let forwarded = network.nodes[2].host.counters().forwarded - before;
    assert!((1..=256).contains(&forwarded), "{forwarded}");
    network.connect(0, 1);
    flood(&mut network, Duration::from_secs(1), |_, _| forged.clone());
    assert!(has_associated(&network));
    network.assert_data_flows(0, 1);
}

/// Section 6.12.2: what acknowledges nothing new is dropped, before its signature costs anything.
#[test]
fn recorded_acknowledgements_cost_no_signature() {
    let mut network = Network::pair(27);
    network.assert_data_flows_after_meeting(0, 1);
    // Node 1 moves, and each host acknowledges what the other one says.
    let places = ["198.51.100.7", "198.51.100.9"].map(address);
    network.move_to(1, &places[..1]);
    network.run(Duration::from_secs(1));
    let alone = |packet: &Transmit| {
        let message = Message::parse(&packet.payload).expect("a packet of HIP");
        message.kind() == PacketType::Update && message.find(kind::SEQ).is_none()
    };
    let sent = network.sent.iter().map(|(_, node, packet)| (*node, packet));
    let mut sent = sent.filter(|(_, packet)| packet.protocol == Protocol::Hip);
    let (sender, recorded) = sent.rfind(|(_, packet)| alone(packet)).expect("one");
    let (victim, mut recorded) = (1 - sender, recorded.clone());
    // Something waits for an answer meanwhile.
    network.filter = Box::new(|_| false);
    network.move_to(victim, &places[1..]);
    recorded.destination = places[1];
    recorded = finished(recorded.payload, recorded.source, recorded.destination);
    let refused =
        |network: &Network, refusal| network.nodes[victim].host.counters().refused(refusal);
    let before = refused(&network, Refusal::Replay);
    // The MAC does not cover the signature: one with a wrong signature would be found only by checking that.
    let unsigned = altered(&recorded, kind::HIP_SIGNATURE);
    for _ in 0..1_000 {
        network.deliver(&recorded);
        network.deliver(&unsigned);
    }
    assert_eq!(refused(&network, Refusal::Replay) - before, 2_000);
    assert_eq!(refused(&network, Refusal::Signature), 0);
    // The control: with another byte its MAC is wrong.
    network.deliver(&altered(&recorded, kind::HIP_MAC));
    assert_eq!(refused(&network, Refusal::Replay) - before, 2_000);
    assert_eq!(refused(&network, Refusal::Mac), 1);
}

/// The packet with another last byte in this parameter.
fn altered(packet: &Transmit, kind: u16) -> Transmit {
    let message = Message::parse(&packet.payload).expect("a packet of HIP");
    let parameter = message.find(kind).expect("it is there");
    let mut payload = packet.payload.clone();
    payload[parameter.offset + 3 + parameter.contents.len()] ^= 1;
    finished(payload, packet.source, packet.destination)
}
