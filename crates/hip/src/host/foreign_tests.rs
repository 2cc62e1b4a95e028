//! UPDATE packets as peers send them that others wrote (RFC 7401, section 6.12.1; RFC 8046, section 5.3).

use super::rekeying_tests::{Pair, address};
use crate::event::{Protocol, Refusal, Transmit};
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_wire::hip::{
    Builder, EspInfo, Locator, LocatorSet, Message, PacketType, Traffic, kind, u32_list,
};

/// An authentic UPDATE of the second host with this number, SPIs and address.
fn update(pair: &mut Pair, id: u32, [old_spi, new_spi]: [u32; 2], at: (u32, IpAddr)) -> Transmit {
    let [peer, own] = [0, 1].map(|host| pair.hosts[host].hit());
    let (association, mut context) = pair.hosts[1].lend(pair.now, peer).expect("one");
    let session = association.session().expect("a session");
    let mut builder = Builder::new(PacketType::Update, own, peer);
    let info = EspInfo {
        keymat_index: 0,
        old_spi,
        new_spi,
    };
    builder.push_with(kind::ESP_INFO, |out| info.write(out));
    let (spi, address_named) = at;
    let set = LocatorSet(alloc::vec![Locator {
        traffic: Traffic::Both,
        is_preferred: true,
        lifetime: u32::MAX,
        spi: Some(spi),
        address: address_named,
    }]);
    builder.push_with(kind::LOCATOR_SET, |out| set.write(out));
    builder.push(kind::SEQ, &id.to_be_bytes());
    let keying = &session.keying;
    let packet = context.authenticate(builder, keying.rhash, &keying.keys.own);
    let mut payload = packet.expect("it is short");
    let (source, destination) = (address(1), address(0));
    Builder::set_checksum(&mut payload, source, destination);
    Transmit {
        source,
        destination,
        protocol: Protocol::Hip,
        payload,
    }
}

/// The SPI that the second host receives under.
fn inbound_spi(pair: &Pair) -> u32 {
    let view = pair.hosts[1].views().next();
    view.and_then(|view| view.spis).expect("an association").0
}

/// Addresses that the first host has of the second one.
fn addresses(pair: &Pair) -> Vec<IpAddr> {
    let view = pair.hosts[0].views().next().expect("an association");
    view.addresses.iter().map(|known| known.address).collect()
}

/// Numbers that the first host has acknowledged since the last call.
fn acknowledged(pair: &mut Pair) -> Vec<u32> {
    let mut all = Vec::new();
    while let Some(packet) = pair.hosts[0].poll_transmit() {
        let message = Message::parse(&packet.payload).expect("a host sends HIP");
        if let Some(ack) = message.find(kind::ACK) {
            all.extend(u32_list(ack.contents).expect("numbers"));
        }
    }
    all
}

const ELSEWHERE: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(198, 51, 100, 7));

/// RFC 8046, section 5.3: none of the four cases applies, so processing stops.
#[test]
fn an_update_with_an_spi_that_nobody_has_is_not_acted_on() {
    let mut pair = Pair::new();
    let spi = inbound_spi(&pair);
    let before = addresses(&pair);
    let wrong = spi ^ 1;
    let cases = [
        ([wrong, wrong], spi),
        ([wrong, 0], spi),
        ([0, 0], spi),
        ([0, wrong], spi),
        ([spi, spi], wrong),
    ];
    for (id, (spis, of_locator)) in (10..).zip(cases) {
        let forged = update(&mut pair, id, spis, (of_locator, ELSEWHERE));
        pair.deliver(0, &forged);
        assert_eq!(addresses(&pair), before, "{spis:?}");
        assert_eq!(acknowledged(&mut pair), [], "{spis:?}");
    }
    let refused = pair.hosts[0].counters().refused(Refusal::Choice);
    assert_eq!(refused, cases.len() as u64);
    let right = update(&mut pair, 20, [spi, spi], (spi, ELSEWHERE));
    pair.deliver(0, &right);
    assert_eq!(addresses(&pair)[0], ELSEWHERE);
    assert_eq!(acknowledged(&mut pair), [20]);
}

/// RFC 7401, section 6.12.1: one whose acknowledgement was lost comes again, also after a newer one.
#[test]
fn each_of_several_updates_is_acknowledged_again() {
    let mut pair = Pair::new();
    let spi = inbound_spi(&pair);
    let places = [7, 8, 9].map(|last| IpAddr::from([198, 51, 100, last]));
    let updates: Vec<_> = (10..)
        .zip(places)
        .map(|(id, place)| update(&mut pair, id, [spi, spi], (spi, place)))
        .collect();
    // The second one is late.
    for &at in &[0, 2, 1] {
        pair.deliver(0, &updates[at]);
        assert!(acknowledged(&mut pair).contains(&(10 + at as u32)), "{at}");
    }
    let named = addresses(&pair);
    assert_eq!(named[0], places[2], "what the newest one names counts");
    pair.now += crate::update::ANSWERED_AGAIN_AFTER;
    for (id, again) in (10..).zip(&updates) {
        pair.deliver(0, again);
        assert!(acknowledged(&mut pair).contains(&id), "{id}");
        assert_eq!(addresses(&pair), named, "{id}");
    }
}

#[test]
fn what_is_too_old_to_be_known_is_refused() {
    let mut pair = Pair::new();
    let spi = inbound_spi(&pair);
    let mut all: Vec<_> = (0..20_u8)
        .map(|id| {
            let place = IpAddr::from([198, 51, 100, id]);
            update(&mut pair, 100 + u32::from(id), [spi, spi], (spi, place))
        })
        .collect();
    // One is held back, and comes when it is far behind.
    let held_back = all.remove(0);
    for packet in &all {
        pair.deliver(0, packet);
    }
    acknowledged(&mut pair);
    let named = addresses(&pair);
    for old in [&held_back, &all[0], &all[10]] {
        pair.deliver(0, old);
        assert_eq!(acknowledged(&mut pair), []);
        assert_eq!(addresses(&pair), named);
    }
    assert_eq!(pair.hosts[0].counters().refused(Refusal::Replay), 3);
}

/// Section 6.12.1: what has recently been processed is acknowledged again, however many acknowledgements were lost.
#[test]
fn the_oldest_of_eight_updates_is_acknowledged_again() {
    let mut pair = Pair::new();
    let spi = inbound_spi(&pair);
    let updates: Vec<_> = (0..8_u8)
        .map(|id| {
            let place = IpAddr::from([198, 51, 100, id]);
            update(&mut pair, 10 + u32::from(id), [spi, spi], (spi, place))
        })
        .collect();
    for packet in &updates {
        pair.deliver(0, packet);
    }
    acknowledged(&mut pair);
    let named = addresses(&pair);
    for (id, again) in (10..).zip(&updates) {
        pair.now += crate::update::ANSWERED_AGAIN_AFTER;
        pair.deliver(0, again);
        assert!(acknowledged(&mut pair).contains(&id), "{id}");
        assert_eq!(addresses(&pair), named, "{id}");
    }
}

/// A number is one of 2^32 (section 5.2.16), and the one after the last one is zero.
#[test]
fn numbers_go_on_after_the_last_one() {
    let mut pair = Pair::new();
    let spi = inbound_spi(&pair);
    let ids = [u32::MAX - 2, u32::MAX, 0, u32::MAX - 1, 1];
    for (at, id) in (0_u8..).zip(ids) {
        let place = IpAddr::from([198, 51, 100, at]);
        let packet = update(&mut pair, id, [spi, spi], (spi, place));
        pair.deliver(0, &packet);
        assert!(acknowledged(&mut pair).contains(&id), "{id}");
        let is_newest = id != u32::MAX - 1;
        assert_eq!(addresses(&pair)[0] == place, is_newest, "{id}");
    }
    // The control: a number that is far behind in the circle.
    let old = update(&mut pair, u32::MAX - 20, [spi, spi], (spi, ELSEWHERE));
    pair.deliver(0, &old);
    assert_eq!(acknowledged(&mut pair), []);
    assert_eq!(pair.hosts[0].counters().refused(Refusal::Replay), 1);
}

/// RFC 8046, section 5.3: an SPI that is replaced by zero is given up. There is no other one, so that data would have
/// nowhere to go: the UPDATE is refused, and not acknowledged as if it had been acted on.
#[test]
fn the_only_spi_is_not_given_up() {
    let mut pair = Pair::new();
    let spi = inbound_spi(&pair);
    let before = addresses(&pair);
    let forged = update(&mut pair, 10, [spi, 0], (spi, ELSEWHERE));
    pair.deliver(0, &forged);
    assert_eq!(pair.hosts[0].counters().refused(Refusal::Choice), 1);
    assert_eq!(acknowledged(&mut pair), []);
    assert_eq!(addresses(&pair), before);
    // The control: with the SPI in both places nothing changes but the address.
    let right = update(&mut pair, 11, [spi, spi], (spi, ELSEWHERE));
    pair.deliver(0, &right);
    assert_eq!(acknowledged(&mut pair), [11]);
    assert_eq!(addresses(&pair)[0], ELSEWHERE);
}

/// An UPDATE that is refused has no place among those that were seen. Whoever has recorded it repeats it 1,000 times.
#[test]
fn a_recorded_update_that_was_refused_costs_one_signature_in_50_ms() {
    let mut pair = Pair::new();
    let spi = inbound_spi(&pair);
    let wrong = update(&mut pair, 10, [spi ^ 1, spi ^ 1], (spi, ELSEWHERE));
    let refused = |pair: &Pair, refusal| pair.hosts[0].counters().refused(refusal);
    pair.deliver(0, &wrong);
    // The MAC does not cover the signature: one with a wrong signature shows that it was checked.
    let message = Message::parse(&wrong.payload).expect("an UPDATE");
    let signature = message.find(kind::HIP_SIGNATURE).expect("it is signed");
    let last = signature.offset + 3 + signature.contents.len();
    let mut unsigned = wrong.clone();
    unsigned.payload[last] ^= 1;
    Builder::set_checksum(&mut unsigned.payload, wrong.source, wrong.destination);
    let kinds = [Refusal::Choice, Refusal::Limit, Refusal::Signature];
    for (packet, expected) in [(&wrong, [1, 1_000, 0]), (&unsigned, [1, 2_000, 0])] {
        for _ in 0..1_000 {
            pair.deliver(0, packet);
        }
        assert_eq!(kinds.map(|refusal| refused(&pair, refusal)), expected);
    }
    // After 50 ms it is judged again, and so is one with a wrong signature in its place.
    for (packet, expected) in [(&wrong, [2, 2_999, 0]), (&unsigned, [2, 3_998, 1])] {
        pair.now += crate::update::ANSWERED_AGAIN_AFTER;
        for _ in 0..1_000 {
            pair.deliver(0, packet);
        }
        assert_eq!(kinds.map(|refusal| refused(&pair, refusal)), expected);
    }
}
