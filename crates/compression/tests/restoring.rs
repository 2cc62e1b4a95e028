//! What comes out at the other end of the link is what went in, whatever the link does.

use outlast_base::time::{Duration, Instant};
use outlast_compression::{Arrival, Compression, Config, Level, Part};
use outlast_wire::compressed::{OVERHEAD, PROTOCOL};
use outlast_wire::tcp::Timestamps;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::collection::vec;
use proptest::prelude::*;
use std::net::IpAddr;

const NEAR: [u8; 4] = [192, 0, 2, 1];
const FAR: [u8; 4] = [198, 51, 100, 7];

fn end(part: Part, level: u8) -> Compression {
    Compression::new(Config {
        part,
        level: Level::Fixed(level),
        ..Config::default()
    })
}

fn ends() -> [Compression; 2] {
    [end(Part::Offers, 6), end(Part::Accepts, 6)]
}

fn addresses(is_v6: bool) -> [IpAddr; 2] {
    match is_v6 {
        false => [NEAR.into(), FAR.into()],
        true => [
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, 1].into(),
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, 2].into(),
        ],
    }
}

fn segment([source, destination]: [IpAddr; 2], seq: u32, payload: &[u8]) -> Packet {
    let mut tcp = TcpHeader {
        source_port: 80,
        destination_port: 4_000,
        seq: SeqNumber(seq),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    tcp.options.timestamps = Some(Timestamps { value: 7, echo: 9 });
    Packet::tcp_segment(IpHeader::new(source, destination), tcp, payload)
}

fn acknowledgement([source, destination]: [IpAddr; 2], ack: u32) -> Packet {
    let tcp = TcpHeader {
        source_port: 4_000,
        destination_port: 80,
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(IpHeader::new(destination, source), tcp, &[])
}

/// Takes a confirmation of the supervisor host's to the mobile.
fn confirm(now: Instant, supervisor: &mut Compression, mobile: &mut Compression) {
    let confirmation = supervisor.poll_transmit().expect("a confirmation");
    assert_eq!(
        mobile.handle_from_link(now, &confirmation),
        Arrival::Consumed
    );
}

/// ICMP's "destination unreachable" of the far host, about `packet`.
fn unreachable(code: u8, packet: &Packet) -> Packet {
    let mut message = vec![3, code, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(&packet.to_bytes()[..48]);
    let ip = IpHeader::new(FAR.into(), NEAR.into());
    Packet::parse(Packet::of_protocol(ip, 1, &message).to_bytes()).expect("a packet")
}

/// Has the two ends agree on a pair of addresses.
fn agree(now: Instant, [supervisor, mobile]: &mut [Compression; 2], between: [IpAddr; 2]) {
    assert_eq!(
        mobile.handle_to_link(now, &acknowledgement(between, 0)),
        None
    );
    assert_eq!(
        supervisor.handle_to_link(now, &segment(between, 0, &[0])),
        None
    );
    let offer = supervisor.poll_transmit().expect("an offer");
    assert_eq!(mobile.handle_from_link(now, &offer), Arrival::Consumed);
    let acceptance = mobile.poll_transmit().expect("an answer");
    assert_eq!(
        supervisor.handle_from_link(now, &acceptance),
        Arrival::Consumed
    );
    confirm(now, supervisor, mobile);
}

/// Payloads as they occur: of one byte, of few, of any; and some that repeat themselves.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        (any::<u8>(), 0..1_460_usize).prop_map(|(byte, length)| vec![byte; length]),
        vec(b'a'..b'e', 0..1_460),
        vec(any::<u8>(), 0..1_460),
        (vec(any::<u8>(), 1..40), 1..30_usize).prop_map(|(word, times)| word.repeat(times)),
    ]
}

proptest! {
    #[test]
    fn whatever_arrives_is_what_was_sent(
        payloads in vec(payload(), 1..20),
        is_v6: bool,
        level in 1..10_u8,
        fates in vec(0..4_u8, 20),
    ) {
        let between = addresses(is_v6);
        let now = Instant::from_millis(1);
        let mut ends = [end(Part::Offers, level), end(Part::Accepts, level)];
        agree(now, &mut ends, between);
        let [supervisor, mobile] = &mut ends;
        let mut seq = 1;
        let mut on_the_way = Vec::new();
        for (payload, fate) in payloads.iter().zip(fates) {
            let original = segment(between, seq, payload);
            seq += payload.len() as u32;
            let sent = supervisor.handle_to_link(now, &original);
            if let Some(sent) = &sent {
                prop_assert!(sent.total_len() < original.total_len());
            }
            let sent = sent.unwrap_or_else(|| original.clone());
            match fate {
                // Lost, overtaken, there twice, in order.
                0 => {}
                1 => on_the_way.insert(0, (sent, original)),
                2 => on_the_way.extend([(sent.clone(), original.clone()), (sent, original)]),
                _ => on_the_way.push((sent, original)),
            }
        }
        for (sent, original) in on_the_way {
            match mobile.handle_from_link(now, &sent) {
                Arrival::Restored(restored) => prop_assert_eq!(restored.to_bytes(), original.to_bytes()),
                Arrival::Unchanged => prop_assert_eq!(sent, original),
                Arrival::Consumed => prop_assert!(false, "a segment is gone"),
            }
        }
        prop_assert_eq!(mobile.counters().damaged, 0);
    }

    #[test]
    fn a_changed_message_never_becomes_another_segment(
        payload in vec(b'a'..b'e', 200..1_400),
        at in any::<prop::sample::Index>(),
        bits in 1..=255_u8,
    ) {
        let between = addresses(false);
        let now = Instant::ZERO;
        let mut ends = ends();
        agree(now, &mut ends, between);
        let [supervisor, mobile] = &mut ends;
        let original = segment(between, 1, &payload);
        let sent = supervisor.handle_to_link(now, &original).expect("it compresses");
        let mut body = sent.payload().expect("bytes").to_vec();
        let at = at.index(body.len());
        body[at] ^= bits;
        let changed = Packet::of_protocol(sent.header().ip, PROTOCOL, &body);
        let arrival = mobile.handle_from_link(now, &changed);
        // With another tag, or an impossible data offset, it is nothing of ours.
        let is_harmless = match arrival {
            // The last byte of DEFLATE has bits that say nothing.
            Arrival::Restored(ref restored) => *restored == original,
            Arrival::Unchanged => at < 4 || at == 22,
            Arrival::Consumed => true,
        };
        prop_assert!(is_harmless, "{at} {arrival:?}");
    }

    #[test]
    fn no_bytes_behind_an_ip_header_do_harm(body in vec(any::<u8>(), 0..200), kind in 0..5_u8, is_made: bool) {
        let mut bytes = body;
        if is_made {
            bytes.splice(0..0, [b'M', b'C', 2, kind]);
        }
        let ip = IpHeader::new(NEAR.into(), FAR.into());
        let packet = Packet::of_protocol(ip, PROTOCOL, &bytes);
        for part in [Part::Offers, Part::Accepts] {
            let mut end = end(part, 1);
            match end.handle_from_link(Instant::ZERO, &packet) {
                Arrival::Restored(_) => prop_assert!(false, "made up of {bytes:?}"),
                Arrival::Unchanged | Arrival::Consumed => {}
            }
            if let Some(answer) = end.poll_transmit() {
                prop_assert!(answer.total_len() <= packet.total_len(), "it amplifies");
            }
        }
    }
}

#[test]
fn a_payload_that_tells_of_less_than_it_has_is_dropped_and_costs_no_more_than_a_packet() {
    let between = addresses(false);
    let now = Instant::ZERO;
    let mut ends = ends();
    agree(now, &mut ends, between);
    let [supervisor, mobile] = &mut ends;
    let zeros = segment(between, 1, &[0; 1_400]);
    let sent = supervisor
        .handle_to_link(now, &zeros)
        .expect("it compresses");
    assert_eq!(
        mobile.handle_from_link(now, &sent),
        Arrival::Restored(zeros)
    );
    let mut body = sent.payload().expect("bytes").to_vec();
    body[8..10].copy_from_slice(&1_000_u16.to_be_bytes());
    let lying = Packet::of_protocol(sent.header().ip, PROTOCOL, &body);
    assert_eq!(mobile.handle_from_link(now, &lying), Arrival::Consumed);
    assert_eq!(mobile.counters().damaged, 1);
}

#[test]
fn what_does_not_compress_goes_as_it_is_and_is_given_up() {
    let between = addresses(false);
    let now = Instant::ZERO;
    let mut ends = ends();
    agree(now, &mut ends, between);
    let mut state = 1_u64;
    let mut seq = 1;
    for _ in 0..200 {
        let random: Vec<u8> = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        })
        .take(1_400)
        .collect();
        assert_eq!(
            ends[0].handle_to_link(now, &segment(between, seq, &random)),
            None
        );
        seq += 1_400;
    }
    let counters = ends[0].counters();
    assert!(counters.incompressible <= 48, "{counters:?}");
    assert!(counters.given_up >= 2, "{counters:?}");
}

#[test]
fn a_host_that_knows_nothing_of_it_gets_few_offers_and_no_compressed_segment() {
    let between = addresses(false);
    let mut supervisor = end(Part::Offers, 6);
    let mut offers = 0;
    for second in 0..600 {
        let now = Instant::from_millis(second * 1_000);
        let packet = segment(between, second as u32 * 1_000, &[b'a'; 1_000]);
        assert_eq!(supervisor.handle_to_link(now, &packet), None);
        offers += u32::from(supervisor.poll_transmit().is_some());
    }
    assert!((2..=16).contains(&offers), "{offers}");
}

#[test]
fn it_ends_at_an_icmp_error_about_the_protocol() {
    let between = addresses(false);
    let now = Instant::ZERO;
    let mut ends = ends();
    agree(now, &mut ends, between);
    let [supervisor, _] = &mut ends;
    let packet = segment(between, 1, &[b'a'; 1_000]);
    let sent = supervisor
        .handle_to_link(now, &packet)
        .expect("it compresses");
    // Another error says nothing of the protocol.
    let error = unreachable(4, &sent);
    assert_eq!(supervisor.handle_from_link(now, &error), Arrival::Unchanged);
    assert!(supervisor.handle_to_link(now, &packet).is_some());
    let error = unreachable(2, &sent);
    assert_eq!(supervisor.handle_from_link(now, &error), Arrival::Consumed);
    assert_eq!(supervisor.handle_to_link(now, &packet), None);
    assert_eq!(supervisor.counters().refusals, 1);
}

#[test]
fn it_ends_when_repetitions_prove_nothing_and_not_before() {
    let between = addresses(false);
    let mut ends = ends();
    agree(Instant::ZERO, &mut ends, between);
    let [supervisor, _] = &mut ends;
    let packet = |seq| segment(between, seq, &[b'a'; 1_000]);
    let at = |ms| Instant::from_millis(ms);
    // An outage of a minute: what is sent again afterwards goes compressed, too, and is acknowledged.
    assert!(supervisor.handle_to_link(at(0), &packet(1)).is_some());
    assert!(supervisor.handle_to_link(at(60_000), &packet(1)).is_some());
    let heard = supervisor.handle_from_link(at(60_100), &acknowledgement(between, 1_001));
    assert_eq!(heard, Arrival::Unchanged);
    // The other end is gone: the sender times out, and times out again.
    let mut last = None;
    let mut wait = Duration::from_millis(300);
    let mut now = at(61_000);
    while supervisor.handle_to_link(now, &packet(1_001)).is_some() {
        last = Some(now);
        now += wait;
        wait *= 2;
    }
    let lasted = last.expect("it was compressed before").since(at(61_000));
    assert!(lasted < Duration::from_secs(4), "{lasted:?}");
    assert!(supervisor.poll_transmit().is_some(), "it asks again");
    // And it stays so, although the segment is acknowledged now.
    let _ = supervisor.handle_from_link(now, &acknowledgement(between, 2_001));
    assert_eq!(supervisor.handle_to_link(now, &packet(2_001)), None);
}

#[test]
fn an_answer_that_was_not_asked_for_is_not_believed() {
    let between = addresses(false);
    let now = Instant::ZERO;
    let mut supervisor = end(Part::Offers, 6);
    let _ = supervisor.handle_to_link(now, &segment(between, 0, &[0]));
    let offer = supervisor.poll_transmit().expect("an offer");
    let mut body = offer.payload().expect("bytes").to_vec();
    body[3] = 2;
    body[11] ^= 1;
    assert_eq!(body.len(), 16);
    let ip = IpHeader::new(FAR.into(), NEAR.into());
    let forged = Packet::of_protocol(ip, PROTOCOL, &body);
    assert_eq!(supervisor.handle_from_link(now, &forged), Arrival::Consumed);
    let packet = segment(between, 1, &[b'a'; 1_000]);
    assert_eq!(supervisor.handle_to_link(now, &packet), None);
    assert_eq!(supervisor.counters().agreements, 0);
}

#[test]
fn the_overhead_is_as_documented() {
    assert_eq!(OVERHEAD, 10);
}
