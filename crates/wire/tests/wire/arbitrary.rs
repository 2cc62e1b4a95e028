//! Bytes that are nearly packets, and bytes that are not: nothing panics, and what is made of
//! them is in order. The fuzz targets run the same checks for longer.

use crate::common::{any, exercise};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

/// Bytes with a right IPv4 header checksum, without which nothing behind it is looked at.
fn with_header_checksum(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.first().map_or(0, |byte| usize::from(byte & 15) * 4);
    if bytes.first().is_some_and(|byte| byte >> 4 == 4) && length >= 20 && bytes.len() >= length {
        bytes[10..12].fill(0);
        let sum = etherparse::checksum::Sum16BitWords::new().add_slice(&bytes[..length]);
        bytes[10..12].copy_from_slice(&sum.ones_complement().to_be().to_be_bytes());
    }
    bytes
}

/// Some bytes replaced, some put in, and then cut.
#[derive(Clone, Debug)]
struct Damage {
    replaced: Vec<(Index, u8)>,
    inserted: (Index, Vec<u8>),
    length: Option<Index>,
}

fn damage() -> impl Strategy<Value = Damage> {
    let replaced = vec((any::<Index>(), any::<u8>()), 0..6);
    // Mostly an extension header's size.
    let inserted = (
        any::<Index>(),
        prop_oneof![Just(vec![]), vec(any::<u8>(), 8)],
    );
    let length = proptest::option::weighted(0.2, any::<Index>());
    (replaced, inserted, length).prop_map(|(replaced, inserted, length)| Damage {
        replaced,
        inserted,
        length,
    })
}

impl Damage {
    fn apply(self, mut bytes: Vec<u8>) -> Vec<u8> {
        // Where the headers are, damage tells more.
        let headers = bytes.len().min(100);
        for (at, byte) in self.replaced {
            bytes[at.index(headers)] = byte;
        }
        let at = self.inserted.0.index(headers);
        bytes.splice(at..at, self.inserted.1);
        if let Some(length) = self.length {
            bytes.truncate(length.index(bytes.len()));
        }
        bytes
    }
}

proptest! {
    #![proptest_config(crate::common::config("arbitrary"))]

    #[test]
    fn nearly_packets(packet in any::packet(), damage in damage(), script: [u8; 8]) {
        let bytes = damage.apply(packet.to_bytes().to_vec());
        exercise::packet(script, &with_header_checksum(bytes));
    }

    #[test]
    fn packets(packet in any::packet(), script: [u8; 8]) {
        exercise::packet(script, &packet.to_bytes());
    }

    #[test]
    fn bytes(
        version in prop_oneof![Just(0x45), Just(0x60), any::<u8>()],
        mut bytes in vec(any::<u8>(), 1..200),
        script: [u8; 8],
    ) {
        bytes[0] = version;
        exercise::packet(script, &with_header_checksum(bytes));
    }

    #[test]
    fn ipv6_header_chains(
        first in header_kind(),
        chain in vec((header_kind(), 0..3_u8, any::<[u8; 6]>()), 0..6),
        script: [u8; 8],
    ) {
        let mut bytes = vec![0x60; 40];
        bytes[6] = first;
        for (next, units, data) in chain {
            bytes.extend_from_slice(&[next, units]);
            bytes.extend_from_slice(&data);
            bytes.resize(bytes.len() + usize::from(units) * 8, 1);
        }
        bytes.extend_from_slice(&[0x50; 40]);
        let length = bytes.len() as u16 - 40;
        for length in [length, 0] {
            bytes[4..6].copy_from_slice(&length.to_be_bytes());
            exercise::packet(script, &bytes);
        }
    }

    #[test]
    fn options(area in vec(prop_oneof![0..9_u8, any::<u8>()], 0..60)) {
        exercise::options(&area);
    }
}

fn header_kind() -> impl Strategy<Value = u8> {
    prop_oneof![
        Just(0),
        Just(6),
        Just(17),
        Just(43),
        Just(44),
        Just(51),
        Just(58),
        Just(60)
    ]
}
