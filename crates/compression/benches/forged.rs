//! Costs of forged packets to an end of a compressed link. The baseline is the restoring that each would cost if the tag were
//! not asked for.

use divan::Bencher;
use outlast_base::time::{Duration, Instant};
use outlast_compression::{Compression, Config, Part};
use outlast_wire::compressed::{CompressedSegment, CompressionMessage, PROTOCOL, Tag};
use outlast_wire::{IpHeader, Packet, TcpFlags, TcpHeader};
use std::net::Ipv4Addr;

const NOW: Instant = Instant::from_millis(1_000);
const NEAR: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const FAR: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 7);

fn main() {
    divan::main();
}

fn segment() -> Packet {
    let tcp = TcpHeader {
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(IpHeader::new(NEAR.into(), FAR.into()), tcp, &[b'a'; 1_448])
}

/// A segment of the mobile's, without data.
fn back() -> Packet {
    let ip = IpHeader::new(FAR.into(), NEAR.into());
    Packet::tcp_segment(ip, TcpHeader::default(), &[])
}

/// Both ends, and a compressed segment of the one for the other.
fn agreed() -> ([Compression; 2], Packet) {
    let end = |part| {
        Compression::new(Config {
            part,
            ..Config::default()
        })
    };
    let (mut supervisor, mut mobile) = (end(Part::Offers), end(Part::Accepts));
    let _ = mobile.handle_to_link(NOW, &back());
    let _ = supervisor.handle_to_link(NOW, &segment());
    let offer = supervisor.poll_transmit().expect("an offer");
    let _ = mobile.handle_from_link(NOW, &offer);
    let acceptance = mobile.poll_transmit().expect("an answer");
    let _ = supervisor.handle_from_link(NOW, &acceptance);
    let confirmation = supervisor.poll_transmit().expect("a confirmation");
    let _ = mobile.handle_from_link(NOW, &confirmation);
    let smaller = supervisor.handle_to_link(NOW, &segment());
    ([supervisor, mobile], smaller.expect("it compresses"))
}

/// The segment from `source`, with another tag.
fn forged(packet: &Packet, source: Ipv4Addr) -> Packet {
    let payload = packet.payload().expect("bytes");
    let Ok(CompressionMessage::Segment(segment)) = CompressionMessage::parse(payload) else {
        panic!("no segment");
    };
    let tag = Tag::of(1);
    let message = CompressionMessage::Segment(CompressedSegment { tag, ..segment });
    let mut body = Vec::new();
    message.write(&mut body);
    Packet::of_protocol(IpHeader::new(source.into(), FAR.into()), PROTOCOL, &body)
}

#[divan::bench]
fn restoring(bencher: Bencher<'_, '_>) {
    let ([_, mut mobile], packet) = agreed();
    bencher.bench_local(|| mobile.handle_from_link(NOW, &packet));
}

#[divan::bench]
fn wrong_tag_in_an_agreed_name(bencher: Bencher<'_, '_>) {
    let ([_, mut mobile], packet) = agreed();
    let forged = forged(&packet, NEAR);
    bencher.bench_local(|| mobile.handle_from_link(NOW, &forged));
}

#[divan::bench]
fn wrong_tag_in_another_name(bencher: Bencher<'_, '_>) {
    let ([_, mut mobile], packet) = agreed();
    let forged = forged(&packet, Ipv4Addr::new(192, 0, 2, 66));
    bencher.bench_local(|| mobile.handle_from_link(NOW, &forged));
}

/// Judges an offer in `source`'s name.
fn offered(bencher: Bencher<'_, '_>, source: Ipv4Addr) {
    let ([_, mut mobile], _) = agreed();
    let mut body = Vec::new();
    CompressionMessage::Offer { nonce: 1 }.write(&mut body);
    let offer = Packet::of_protocol(IpHeader::new(source.into(), FAR.into()), PROTOCOL, &body);
    let (mut now, mut spoken) = (NOW, NOW);
    bencher.bench_local(|| {
        // Each is late enough for an answer.
        now += Duration::from_millis(500);
        if now >= spoken + Duration::from_secs(300) {
            spoken = now;
            let _ = mobile.handle_to_link(now, &back());
        }
        let arrival = mobile.handle_from_link(now, &offer);
        (arrival, mobile.poll_transmit())
    });
}

#[divan::bench]
fn forged_offer_of_a_stranger(bencher: Bencher<'_, '_>) {
    offered(bencher, Ipv4Addr::new(192, 0, 2, 66));
}

#[divan::bench]
fn forged_offer_in_a_known_name(bencher: Bencher<'_, '_>) {
    offered(bencher, NEAR);
}
