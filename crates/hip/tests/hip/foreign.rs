//! Peers that others wrote from the RFCs.

use crate::common::{Network, address, is_readdressed, with_server};
use outlast_base::time::Duration;
use outlast_hip::{Event, Protocol, StateName, Transmit};
use outlast_wire::hip::{Builder, Message, PacketType, kind, u32_list};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

fn parse(packet: &Transmit) -> Option<Message<'_>> {
    let message = Message::parse(&packet.payload).ok();
    message.filter(|_| packet.protocol == Protocol::Hip)
}

/// ECHO_REQUEST_UNSIGNED follows the signature, and is answered in the I2 (RFC 7401, sections 5.2.21 and 5.3.3).
#[test]
fn an_r1_with_an_unsigned_request_to_echo_is_answered() {
    let mut network = Network::pair(1);
    network.filter = Box::new(|packet| {
        let is_r1 = parse(packet).is_some_and(|message| message.kind() == PacketType::R1);
        !is_r1
    });
    network.connect(0, 1);
    network.run(Duration::from_millis(60));
    let (_, _, mut r1) = network.sent.last().expect("an R1").clone();
    let mut builder = Builder::continuing(&r1.payload, kind::ECHO_REQUEST_UNSIGNED);
    builder.push(kind::ECHO_REQUEST_UNSIGNED, b"a middlebox asks");
    r1.payload = builder.finish().expect("an R1");
    Builder::set_checksum(&mut r1.payload, r1.source, r1.destination);
    network.deliver(&r1);
    network.run(Duration::from_secs(1));
    assert_eq!(network.state(0, 1), Some(StateName::Established));
    let i2 = network.sent.iter().find_map(|(_, _, packet)| {
        let message = parse(packet)?;
        let echo = message.find(kind::ECHO_RESPONSE_UNSIGNED)?;
        Some(echo.contents.to_vec())
    });
    assert_eq!(i2.as_deref(), Some(&b"a middlebox asks"[..]));
    network.assert_data_flows(0, 1);
}

/// Requests that fit into the R1 and not into the I2 are left out, and do not end the exchange.
#[test]
fn what_an_i2_has_no_room_to_echo_is_left_out() {
    for length in (8..1_800).step_by(40) {
        let mut network = Network::pair(1);
        network.filter =
            Box::new(|packet| parse(packet).is_some_and(|it| it.kind() != PacketType::R1));
        network.connect(0, 1);
        network.run(Duration::from_millis(60));
        let (_, _, mut r1) = network.sent.last().expect("an R1").clone();
        let mut builder = Builder::continuing(&r1.payload, kind::ECHO_REQUEST_UNSIGNED);
        builder.push(kind::ECHO_REQUEST_UNSIGNED, &vec![7; length]);
        builder.push(kind::ECHO_REQUEST_UNSIGNED, b"short");
        let Some(payload) = builder.finish() else {
            continue;
        };
        r1.payload = payload;
        Builder::set_checksum(&mut r1.payload, r1.source, r1.destination);
        network.filter = Box::new(|_| true);
        network.deliver(&r1);
        network.run(Duration::from_millis(300));
        assert_eq!(
            network.state(0, 1),
            Some(StateName::Established),
            "{length}"
        );
    }
}

/// Echoes for middleboxes take no room from VIA_RVS (RFC 8004, section 4.2.3).
#[test]
fn a_server_is_named_whatever_middleboxes_ask() {
    let mut network = with_server(4);
    let (own, server) = (network.nodes[0].addresses[0], address("203.0.113.1"));
    let mut echoed = BTreeSet::new();
    for length in (600..1_800).step_by(8) {
        let mut builder = Builder::new(PacketType::I1, network.hit(0), network.hit(1));
        builder.push(kind::DH_GROUP_LIST, &[7, 3]);
        builder.push(kind::ECHO_REQUEST_UNSIGNED, &vec![7; length]);
        let mut payload = builder.finish().expect("an I1");
        Builder::set_checksum(&mut payload, own, server);
        let mark = network.sent.len();
        network.deliver(&Transmit {
            source: own,
            destination: server,
            protocol: Protocol::Hip,
            payload,
        });
        network.run(Duration::from_millis(100));
        let sent = network.sent[mark..].iter();
        let r1 = sent.filter(|(_, node, _)| *node == 1);
        let r1 = r1.filter_map(|(_, _, packet)| parse(packet));
        let r1: Vec<_> = r1.filter(|it| it.kind() == PacketType::R1).collect();
        assert_eq!(r1.len(), 1, "{length}");
        assert!(r1[0].find(kind::VIA_RVS).is_some(), "{length}");
        echoed.insert(r1[0].find(kind::ECHO_RESPONSE_UNSIGNED).is_some());
    }
    assert_eq!(echoed.len(), 2, "some have room, others do not");
}

/// Two UPDATE packets whose acknowledgements are both lost (RFC 7401, section 6.12.1): each is acknowledged when it
/// comes again.
#[test]
fn two_updates_whose_acknowledgements_are_lost_are_both_acknowledged_again() {
    let mut network = Network::pair(2);
    network.assert_data_flows(0, 1);
    let is_cut = Rc::new(Cell::new(true));
    let cut = is_cut.clone();
    let fixed = network.nodes[1].addresses[0];
    network.filter = Box::new(move |packet| packet.source != fixed || !cut.get());
    let before = network.sent.len();
    for last in [7, 8] {
        network.move_to(0, &[address(&format!("198.51.100.{last}"))]);
        network.run(Duration::from_millis(100));
    }
    let updates: Vec<_> = network.sent[before..]
        .iter()
        .filter(|(_, node, packet)| {
            let seq = parse(packet).and_then(|message| message.find(kind::SEQ).map(|_| ()));
            *node == 0 && seq.is_some()
        })
        .map(|(_, _, packet)| packet.clone())
        .collect();
    assert_eq!(updates.len(), 2);
    for update in &updates {
        let number = parse(update).and_then(|message| {
            let seq = message.find(kind::SEQ)?;
            Some(u32_list(seq.contents)?[0])
        });
        let number = number.expect("a number");
        let sent = network.sent.len();
        network.deliver(update);
        let is_acknowledged = network.sent[sent..].iter().any(|(_, _, answer)| {
            let ack = parse(answer).and_then(|message| {
                let ack = message.find(kind::ACK)?;
                u32_list(ack.contents)
            });
            ack.is_some_and(|ack| ack.contains(&number))
        });
        assert!(is_acknowledged, "number {number}");
    }
    is_cut.set(false);
    network.run(Duration::from_secs(10));
    assert!(network.count(0, is_readdressed) > 0);
    network.assert_data_flows(0, 1);
}

/// A rendezvous server that falls silent: UPDATE packets to it are not repeated for ever (RFC 7401, section 6.11, item
/// 4), and once it is there again its clients register anew.
#[test]
fn updates_to_a_rendezvous_server_that_is_silent_end() {
    const HOUR: Duration = Duration::from_secs(3_600);
    let server = address("203.0.113.1");
    let mut network = with_server(5);
    let is_cut = Rc::new(Cell::new(true));
    let cut = is_cut.clone();
    network.filter = Box::new(move |packet| {
        !cut.get() || packet.source != server && packet.destination != server
    });
    // It has to be told of the address.
    network.move_to(0, &[address("198.51.100.7")]);
    let count = |network: &mut Network, time| {
        let before = network.sent.len();
        network.run(time);
        let sent = network.sent[before..].iter();
        let sent = sent.filter(|(_, node, packet)| *node == 0 && packet.destination == server);
        let kinds = sent.filter_map(|(_, _, packet)| Some(parse(packet)?.kind()));
        kinds.fold([0_usize; 2], |[updates, others], kind| match kind {
            PacketType::Update => [updates + 1, others],
            _ => [updates, others + 1],
        })
    };
    let [updates, _] = count(&mut network, HOUR);
    assert!(updates > 0);
    let [updates, calls] = count(&mut network, HOUR * 23);
    assert_eq!(updates, 0, "UPDATE packets after an hour of silence");
    // An I1 costs the server nothing, and is all that it can answer if it has lost its state.
    assert!(calls > 0);
    is_cut.set(false);
    let (before, registered) = (network.now, network.hit(2));
    let _ = count(&mut network, HOUR);
    let mut events = network.nodes[0].events.iter();
    assert!(events.any(|(at, event)| {
        *at > before && matches!(event, Event::Registered { server } if *server == registered)
    }));
    // The server knows where its client is, and nobody else does.
    network.send(1, 0, b"found");
    network.run(Duration::from_secs(2));
    assert_eq!(network.received(0), [b"found"]);
}
