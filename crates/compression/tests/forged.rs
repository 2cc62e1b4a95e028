//! Attacks on compression by somebody with whom nothing was agreed, or who has agreed and means harm.

use miniz_oxide::deflate::compress_to_vec;
use outlast_base::time::{Duration, Instant};
use outlast_compression::{Arrival, Compression, Config, LARGEST_RATIO, Part};
use outlast_wire::compressed::{CompressedSegment, CompressionMessage, PROTOCOL, Tag};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, Ipv4Addr};

const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);
const NOW: Instant = Instant::from_millis(1_000);

/// ICMP's "protocol unreachable".
const PROTOCOL_UNREACHABLE: u8 = 2;

fn end(part: Part, seed: u64) -> Compression {
    Compression::new(Config {
        part,
        seed,
        ..Config::default()
    })
}

fn ends() -> [Compression; 2] {
    [end(Part::Offers, 1), end(Part::Accepts, 2)]
}

fn segment(source: impl Into<IpAddr>, destination: impl Into<IpAddr>, payload: &[u8]) -> Packet {
    let tcp = TcpHeader {
        source_port: 80,
        destination_port: 4_000,
        seq: SeqNumber(1),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(
        IpHeader::new(source.into(), destination.into()),
        tcp,
        payload,
    )
}

/// A message of protocol 253 as anybody can send it.
fn message(source: impl Into<IpAddr>, message: CompressionMessage<'_>) -> Packet {
    let mut body = Vec::new();
    message.write(&mut body);
    let ip = IpHeader::new(source.into(), FAR.into());
    Packet::of_protocol(ip, PROTOCOL, &body)
}

/// A compressed segment with `flags` and `length` zeros, as anybody can make it.
fn made(source: impl Into<IpAddr>, tag: Tag, flags: TcpFlags, length: usize) -> Packet {
    let source = source.into();
    let mut original = segment(source, FAR, &vec![0; length]).to_bytes().to_vec();
    original[20 + 13] = flags.0;
    let (header, payload) = original[20..].split_at(20);
    let compressed = compress_to_vec(payload, 9);
    let segment = CompressedSegment {
        tag,
        check: crc32fast::hash(&original[20..]),
        payload_len: u16::try_from(length).expect("it fits a packet"),
        header,
        compressed: &compressed,
    };
    message(source, CompressionMessage::Segment(segment))
}

/// Tag in an answer to the supervisor host; whoever hears the link knows it, too.
fn tag_of(acceptance: &Packet) -> Tag {
    match CompressionMessage::parse(acceptance.payload().expect("bytes")) {
        Ok(CompressionMessage::Acceptance { tag, .. }) => tag,
        other => panic!("no acceptance: {other:?}"),
    }
}

/// The mobile sends a segment without data: it speaks with `host`.
fn speak(now: Instant, mobile: &mut Compression, host: impl Into<IpAddr>) {
    assert_eq!(mobile.handle_to_link(now, &segment(FAR, host, &[])), None);
}

/// Has two ends agree; returns the tag.
fn agree(now: Instant, [supervisor, mobile]: &mut [Compression; 2]) -> Tag {
    speak(now, mobile, NEAR);
    assert_eq!(
        supervisor.handle_to_link(now, &segment(NEAR, FAR, &[0])),
        None
    );
    let offer = supervisor.poll_transmit().expect("an offer");
    let _ = mobile.handle_from_link(now, &offer);
    let acceptance = mobile.poll_transmit().expect("an answer");
    let _ = supervisor.handle_from_link(now, &acceptance);
    let confirmation = supervisor.poll_transmit().expect("a confirmation");
    let _ = mobile.handle_from_link(now, &confirmation);
    tag_of(&acceptance)
}

/// ICMP's "destination unreachable" from the far host, about `packet`.
fn unreachable(packet: &Packet) -> Packet {
    let mut message = vec![3, PROTOCOL_UNREACHABLE, 0, 0, 0, 0, 0, 0];
    message.extend_from_slice(&packet.to_bytes()[..28]);
    let ip = IpHeader::new(FAR.into(), NEAR.into());
    Packet::parse(Packet::of_protocol(ip, 1, &message).to_bytes()).expect("a packet")
}

/// 1,000 packets of 260 bytes became 70.7 MB before ends agreed on a tag.
#[test]
fn nothing_is_restored_of_whom_nothing_was_agreed_with() {
    for part in [Part::Offers, Part::Accepts] {
        let mut end = end(part, 7);
        let mut sent = 0;
        for guess in 0..1_000 {
            let forged = made(NEAR, Tag::of(guess), TcpFlags::ACK, 65_000);
            sent += u64::from(forged.total_len());
            // It goes on as if nobody knew of compression.
            assert_eq!(end.handle_from_link(NOW, &forged), Arrival::Unchanged);
        }
        // The control: packets like these hold so much.
        assert!(65_000 * 1_000 / sent > 200, "{sent}");
        assert_eq!(end.poll_transmit(), None);
        assert_eq!(end.counters().restored, 0);
    }
}

#[test]
fn another_pairs_agreement_and_a_strangers_guesses_open_nothing() {
    let mut ends = ends();
    let tag = agree(NOW, &mut ends);
    for end in &mut ends {
        let beside = made(Ipv4Addr::new(192, 0, 2, 2), tag, TcpFlags::ACK, 1_000);
        assert_eq!(end.handle_from_link(NOW, &beside), Arrival::Unchanged);
    }
    let [_, mobile] = &mut ends;
    let guessed = made(NEAR, Tag::of(0), TcpFlags::ACK, 1_000);
    assert_eq!(mobile.handle_from_link(NOW, &guessed), Arrival::Unchanged);
}

#[test]
fn who_has_agreed_gets_no_more_than_eight_times_what_he_sends_and_no_more_than_the_link_carries() {
    let mut ends = ends();
    let tag = agree(NOW, &mut ends);
    let [_, mobile] = &mut ends;
    let mut restored = 0;
    for length in (100..=65_000).step_by(100) {
        let packet = made(NEAR, tag, TcpFlags::ACK, length);
        match mobile.handle_from_link(NOW, &packet) {
            Arrival::Restored(original) => {
                restored += 1;
                assert!(original.total_len() <= 1_500, "{}", original.total_len());
                assert!(original.total_len() <= LARGEST_RATIO * packet.total_len());
            }
            other => assert_eq!(other, Arrival::Consumed),
        }
    }
    assert!((1..10).contains(&restored), "{restored}");
    mobile.set_longest(9_000);
    let filled = |length| {
        let mut big = Compression::new(Config {
            longest: 9_000,
            ..Config::default()
        });
        let mut other = end(Part::Accepts, 2);
        speak(NOW, &mut other, NEAR);
        let _ = big.handle_to_link(NOW, &segment(NEAR, FAR, &[0]));
        let _ = other.handle_from_link(NOW, &big.poll_transmit().expect("an offer"));
        let _ = big.handle_from_link(NOW, &other.poll_transmit().expect("an answer"));
        let original = segment(NEAR, FAR, &vec![0; length]);
        let smaller = big.handle_to_link(NOW, &original).expect("it compresses");
        (original, smaller)
    };
    // What an honest end sends is filled up, and restored.
    for length in [64, 1_000, 1_460, 8_900] {
        let (original, smaller) = filled(length);
        assert!(original.total_len() <= LARGEST_RATIO * smaller.total_len());
        let arrival = mobile.handle_from_link(NOW, &smaller);
        assert_eq!(arrival, Arrival::Restored(original));
    }
}

#[test]
fn what_opens_or_aborts_a_connection_does_not_come_compressed() {
    let mut ends = ends();
    let tag = agree(NOW, &mut ends);
    let [supervisor, mobile] = &mut ends;
    for flags in [TcpFlags::SYN, TcpFlags::RST, TcpFlags(0xff)] {
        let packet = made(NEAR, tag, flags, 400);
        assert_eq!(mobile.handle_from_link(NOW, &packet), Arrival::Consumed);
        let mut opening = segment(NEAR, FAR, &[0; 400]).to_bytes().to_vec();
        opening[20 + 13] = flags.0;
        let opening = Packet::parse(opening.into()).expect("a packet");
        assert_eq!(supervisor.handle_to_link(NOW, &opening), None);
    }
    assert_eq!(mobile.counters().damaged, 3);
    // The control.
    let packet = made(NEAR, tag, TcpFlags::ACK, 400);
    let arrival = mobile.handle_from_link(NOW, &packet);
    assert!(matches!(arrival, Arrival::Restored(_)), "{arrival:?}");
}

#[test]
fn forged_offers_get_no_more_than_they_cost_and_leave_nothing_behind() {
    let [mut supervisor, mut mobile] = ends();
    for number in 0..20_000_u32 {
        let source = Ipv4Addr::from(0x0a00_0000 | number);
        let offer = message(source, CompressionMessage::Offer { nonce: 5 });
        let now = NOW + Duration::from_secs(u64::from(number));
        let _ = mobile.handle_from_link(now, &offer);
        assert_eq!(mobile.poll_transmit(), None);
        // The mobile speaks with that host, but nobody has shown that he hears an answer.
        let upload = segment(FAR, source, &[b'a'; 1_000]);
        assert_eq!(mobile.handle_to_link(now, &upload), None);
        let _held = mobile.poll_transmit();
        let later = now + Duration::from_millis(500);
        let _ = mobile.handle_from_link(later, &offer);
        let answer = mobile.poll_transmit().expect("an answer");
        assert!(answer.total_len() <= offer.total_len());
        assert_eq!(mobile.handle_to_link(later, &upload), None);
    }
    assert_eq!(mobile.counters().agreements, 0);
    assert_eq!(mobile.counters().no_room, 0);
    // In an honest supervisor host's name, too: it is not asked to take what it has not agreed to, nor is its
    // agreement changed.
    let offer = message(NEAR, CompressionMessage::Offer { nonce: 5 });
    speak(NOW, &mut mobile, NEAR);
    let _ = mobile.handle_from_link(NOW, &offer);
    let forged = mobile.poll_transmit().expect("an answer");
    assert_eq!(supervisor.handle_from_link(NOW, &forged), Arrival::Consumed);
    let mut ends = [supervisor, mobile];
    let later = NOW + Duration::from_secs(1);
    agree(later, &mut ends);
    let [supervisor, mobile] = &mut ends;
    let offered = later + Duration::from_millis(500);
    let _ = mobile.handle_from_link(offered, &offer);
    assert!(mobile.poll_transmit().is_some(), "an answer");
    let original = segment(NEAR, FAR, &[b'a'; 1_000]);
    let smaller = supervisor.handle_to_link(NOW, &original);
    let arrival = mobile.handle_from_link(NOW, &smaller.expect("it compresses"));
    assert_eq!(arrival, Arrival::Restored(original));
    let upload = segment(FAR, NEAR, &[b'a'; 1_000]);
    let smaller = mobile.handle_to_link(NOW, &upload).expect("it compresses");
    assert_eq!(
        supervisor.handle_from_link(NOW, &smaller),
        Arrival::Restored(upload)
    );
}

/// Answers of `mobile` to 10,000 offers in ten seconds.
fn answers(mobile: &mut Compression, source: impl Fn(u32) -> Ipv4Addr) -> usize {
    let mut answers = 0;
    for number in 0..10_000 {
        let now = NOW + Duration::from_millis(1) * number;
        let nonce = number.into();
        let offer = message(source(number), CompressionMessage::Offer { nonce });
        assert_eq!(mobile.handle_from_link(now, &offer), Arrival::Consumed);
        answers += std::iter::from_fn(|| mobile.poll_transmit()).count();
    }
    answers
}

/// 10,000 offers had 10,000 answers, in whosever name they came.
#[test]
fn a_mobile_answers_few_offers_and_only_of_hosts_that_it_speaks_with() {
    let stranger = |number| Ipv4Addr::from(0x0a00_0000 | number);
    let [_, mut mobile] = ends();
    assert_eq!(answers(&mut mobile, |_| NEAR), 0);
    let [_, mut mobile] = ends();
    speak(NOW, &mut mobile, NEAR);
    assert_eq!(answers(&mut mobile, stranger), 0);
    // The flood of strangers has taken no place: the control.
    assert_eq!(answers(&mut mobile, |_| NEAR), 20);
    // Ten minutes after the last segment the host is a stranger's name again.
    let later = NOW + Duration::from_secs(600);
    let offer = message(NEAR, CompressionMessage::Offer { nonce: 5 });
    let _ = mobile.handle_from_link(later, &offer);
    assert_eq!(mobile.poll_transmit(), None);
}

/// An honest end repeats its offer after a second and more.
#[test]
fn an_offer_every_second_is_answered_also_if_it_overtakes_the_first_segment() {
    let [_, mut mobile] = ends();
    let offer = message(NEAR, CompressionMessage::Offer { nonce: 5 });
    for (wait, is_answered) in [(0, true), (999, true), (1_000, false)] {
        let mut mobile = end(Part::Accepts, 2);
        let _ = mobile.handle_from_link(NOW, &offer);
        assert_eq!(mobile.poll_transmit(), None);
        speak(NOW + Duration::from_millis(wait), &mut mobile, NEAR);
        assert_eq!(mobile.poll_transmit().is_some(), is_answered, "{wait} ms");
    }
    speak(NOW, &mut mobile, NEAR);
    for second in 0..10 {
        let now = NOW + Duration::from_secs(second);
        let _ = mobile.handle_from_link(now, &offer);
        assert!(mobile.poll_transmit().is_some(), "after {second} s");
    }
}

#[test]
fn only_an_error_about_what_was_sent_ends_it() {
    let mut ends = ends();
    agree(NOW, &mut ends);
    let [supervisor, _] = &mut ends;
    let original = segment(NEAR, FAR, &[b'a'; 1_000]);
    let forged = unreachable(&made(NEAR, Tag::of(77), TcpFlags::ACK, 1_000));
    assert_eq!(
        supervisor.handle_from_link(NOW, &forged),
        Arrival::Unchanged
    );
    let smaller = supervisor.handle_to_link(NOW, &original);
    let true_one = unreachable(&smaller.expect("it compresses"));
    assert_eq!(
        supervisor.handle_from_link(NOW, &true_one),
        Arrival::Consumed
    );
    assert_eq!(supervisor.handle_to_link(NOW, &original), None);
}

#[test]
fn a_mobile_that_has_begun_anew_is_asked_again_a_second_after_its_error() {
    let mut ends = ends();
    agree(NOW, &mut ends);
    let [supervisor, mobile] = &mut ends;
    *mobile = end(Part::Accepts, 3);
    let original = segment(NEAR, FAR, &[b'a'; 1_000]);
    let smaller = supervisor.handle_to_link(NOW, &original);
    let smaller = smaller.expect("it compresses");
    // Its kernel answers what nobody there knows.
    assert_eq!(mobile.handle_from_link(NOW, &smaller), Arrival::Unchanged);
    let _ = supervisor.handle_from_link(NOW, &unreachable(&smaller));
    let later = NOW + Duration::from_secs(1);
    agree(later, &mut ends);
    let [supervisor, mobile] = &mut ends;
    let smaller = supervisor.handle_to_link(later, &original);
    let arrival = mobile.handle_from_link(later, &smaller.expect("it compresses"));
    assert_eq!(arrival, Arrival::Restored(original));
}

#[test]
fn a_confirmation_that_is_lost_is_said_again_when_there_is_something_to_restore() {
    let [mut supervisor, mut mobile] = ends();
    speak(NOW, &mut mobile, NEAR);
    let _ = supervisor.handle_to_link(NOW, &segment(NEAR, FAR, &[0]));
    let _ = mobile.handle_from_link(NOW, &supervisor.poll_transmit().expect("an offer"));
    let _ = supervisor.handle_from_link(NOW, &mobile.poll_transmit().expect("an answer"));
    let _lost = supervisor.poll_transmit().expect("a confirmation");
    let upload = segment(FAR, NEAR, &[b'a'; 1_000]);
    let mut confirmations = 0;
    for second in 1..=60 {
        let now = NOW + Duration::from_secs(second);
        assert_eq!(mobile.handle_to_link(now, &upload), None);
        let _ = supervisor.handle_from_link(now, &upload);
        if let Some(confirmation) = supervisor.poll_transmit() {
            confirmations += 1;
            if confirmations == 4 {
                let _ = mobile.handle_from_link(now, &confirmation);
                break;
            }
        }
    }
    assert_eq!(confirmations, 4);
    let now = NOW + Duration::from_secs(70);
    let smaller = mobile.handle_to_link(now, &upload).expect("it compresses");
    let arrival = supervisor.handle_from_link(now, &smaller);
    assert_eq!(arrival, Arrival::Restored(upload.clone()));
    // Nothing has to be confirmed any more.
    let _ = supervisor.handle_from_link(NOW + Duration::from_secs(600), &upload);
    assert_eq!(supervisor.poll_transmit(), None);
}
