//! Messages of compression: what is written is read, and the IP header stays the segment's.

use outlast_wire::Packet;
use outlast_wire::compressed::{
    CompressedSegment, CompressionError, CompressionMessage, OVERHEAD, PROTOCOL, Tag,
    is_offer_quoted,
};
use proptest::collection::vec;
use proptest::prelude::*;

const TCP: u8 = 6;

fn written(message: CompressionMessage<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.write(&mut out);
    out
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        nonce: u64,
        tag: u32,
        check: u32,
        payload_len: u16,
        words in 5..=15_u8,
        fill: u8,
        compressed in vec(any::<u8>(), 0..100),
    ) {
        let mut header = vec![fill; usize::from(words) * 4];
        header[12] = words << 4;
        let tag = Tag::of(tag);
        let segment = CompressedSegment { tag, check, payload_len, header: &header, compressed: &compressed };
        for message in [
            CompressionMessage::Offer { nonce },
            CompressionMessage::Acceptance { nonce, tag },
            CompressionMessage::Confirmation { tag },
            CompressionMessage::Segment(segment),
        ] {
            let bytes = written(message);
            prop_assert_eq!(CompressionMessage::parse(&bytes), Ok(message));
        }
        let length = written(CompressionMessage::Segment(segment)).len();
        prop_assert_eq!(length, OVERHEAD + header.len() + compressed.len());
    }

    #[test]
    fn no_bytes_make_the_parser_panic(bytes in vec(any::<u8>(), 0..100), kind in 0..6_u8) {
        let mut made = vec![b'M', b'C', 2, kind];
        made.extend(&bytes);
        for bytes in [bytes, made] {
            if let Ok(message) = CompressionMessage::parse(&bytes) {
                let written = written(message);
                // What an offer has in the place of the answer's tag says nothing.
                let told = match message {
                    CompressionMessage::Offer { .. } => &written[..12],
                    _ => &written,
                };
                prop_assert!(bytes.starts_with(told) && bytes.len() >= written.len());
            }
        }
    }

    #[test]
    fn another_body_and_back_is_the_same_packet(
        ip in crate::common::any::ip_header(),
        payload in vec(any::<u8>(), 0..1_400),
        body in vec(any::<u8>(), 0..1_400),
    ) {
        let original = Packet::tcp_segment(ip, outlast_wire::TcpHeader::default(), &payload);
        let other = original.carrying(PROTOCOL, &body).expect("a plain header");
        prop_assert_eq!(other.header().ip, original.header().ip);
        prop_assert_eq!(other.payload(), Some(&body[..]));
        let segment = original.body().expect("it has bytes");
        prop_assert_eq!(other.carrying(TCP, segment), Some(original.clone()));
    }
}

#[test]
fn other_experiments_and_later_versions_are_told_apart() {
    let offer = written(CompressionMessage::Offer { nonce: 1 });
    for at in 0..3 {
        let mut other = offer.clone();
        other[at] ^= 0x80;
        let read = CompressionMessage::parse(&other);
        assert_eq!(read, Err(CompressionError::Start));
    }
    assert_eq!(
        CompressionMessage::parse(&[b'M', b'C', 2, 9]),
        Err(CompressionError::Kind(9))
    );
    assert_eq!(
        CompressionMessage::parse(&offer[..9]),
        Err(CompressionError::Truncated)
    );
}

#[test]
fn no_tag_is_the_beginning_of_another_message_and_each_is_told_by_what_an_error_quotes() {
    let start = u32::from_be_bytes([b'M', b'C', 2, 1]);
    assert_ne!(Tag::of(start), Tag::of(start + 1));
    let quoted = |message| *written(message).first_chunk().expect("eight bytes");
    let nonce = 0x0102_0304_0506_0708;
    let offer = quoted(CompressionMessage::Offer { nonce });
    assert!(is_offer_quoted(nonce, offer));
    assert!(!is_offer_quoted(nonce + (1 << 32), offer));
    for bits in [0, start, u32::MAX] {
        let segment = CompressedSegment {
            tag: Tag::of(bits),
            check: 0,
            payload_len: 0,
            header: &[0x50; 20],
            compressed: &[],
        };
        let message = CompressionMessage::Segment(segment);
        assert_eq!(CompressionMessage::parse(&written(message)), Ok(message));
        assert!(Tag::of(bits).is_quoted(quoted(message)));
        assert!(!Tag::of(bits ^ 0x100_0000).is_quoted(quoted(message)));
        assert!(!Tag::of(bits).is_quoted(offer));
    }
}

#[test]
fn more_than_a_packet_can_have_is_carried_by_none() {
    let ip = outlast_wire::IpHeader::new([192, 0, 2, 1].into(), [192, 0, 2, 2].into());
    let packet = Packet::tcp_segment(ip, outlast_wire::TcpHeader::default(), &[0; 100]);
    assert!(packet.carrying(PROTOCOL, &vec![0; 65_515]).is_some());
    assert!(packet.carrying(PROTOCOL, &vec![0; 65_516]).is_none());
}
