//! Sets of address ranges, one for each version of IP, that rules look packets up in.

use super::{Batch, EQUAL, End, NFTABLES, REGISTER, compare, expression};
use crate::netfilter::Message;
use netlink_packet_core::NLM_F_CREATE;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Message types of `linux/netfilter/nf_tables.h`.
const NEW_SET: u16 = NFTABLES << 8 | 9;
const NEW_ELEMENTS: u16 = NFTABLES << 8 | 12;
const DELETE_ELEMENTS: u16 = NFTABLES << 8 | 14;
/// `NFT_SET_INTERVAL` and `NFT_SET_ELEM_INTERVAL_END`.
const INTERVAL: u32 = 4;
const INTERVAL_END: u32 = 1;
/// `NFT_META_NFPROTO` and `NFT_PAYLOAD_NETWORK_HEADER`.
const META_PROTOCOL: u32 = 15;
const NETWORK_HEADER: u32 = 1;
/// Elements in one message, whose length is limited to 65,535 bytes.
const ELEMENTS: usize = 512;

/// Addresses from the first to the last, of one version of IP.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct AddressRange {
    /// The first.
    pub first: IpAddr,
    /// The last; not before the first.
    pub last: IpAddr,
}

impl AddressRange {
    /// All addresses of either version.
    pub const EVERYTHING: [Self; 2] = [
        Self {
            first: IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            last: IpAddr::V4(Ipv4Addr::BROADCAST),
        },
        Self {
            first: IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            last: IpAddr::V6(Ipv6Addr::from_bits(u128::MAX)),
        },
    ];
}

/// What differs between the versions of IP.
pub(super) struct Family {
    set: &'static str,
    /// Identifies the set within a batch.
    number: u32,
    /// `NFPROTO_IPV4`, `NFPROTO_IPV6`.
    protocol: u8,
    /// Where in the header the addresses are.
    source_at: u32,
    destination_at: u32,
    length: u32,
    /// What the `nft` program calls the keys: `TYPE_IPADDR`, `TYPE_IP6ADDR`.
    key_type: u32,
}

pub(super) const FAMILIES: [Family; 2] = [
    Family {
        set: "down4",
        number: 1,
        protocol: 2,
        source_at: 12,
        destination_at: 16,
        length: 4,
        key_type: 7,
    },
    Family {
        set: "down6",
        number: 2,
        protocol: 10,
        source_at: 8,
        destination_at: 24,
        length: 16,
        key_type: 8,
    },
];

impl Family {
    /// Goes on only if the packet is of this family and its address at `end` is in the set.
    pub(super) fn is_in_set(&self, rule: Message, end: End) -> Message {
        let register = REGISTER.to_be_bytes();
        let offset = match end {
            End::Source => self.source_at,
            End::Destination => self.destination_at,
        };
        let rule = compare(rule, META_PROTOCOL, EQUAL, &[self.protocol]);
        let rule = expression(rule, "payload", |data| {
            data.with(1, &register)
                .with(2, &NETWORK_HEADER.to_be_bytes())
                .with(3, &offset.to_be_bytes())
                .with(4, &self.length.to_be_bytes())
        });
        expression(rule, "lookup", |data| {
            data.with_text(1, self.set)
                .with(2, &register)
                .with(4, &self.number.to_be_bytes())
        })
    }

    /// The bounds of `range` as the set has them: the first address, and the one behind the last
    /// if there is one. `None` if it is of another family.
    fn bounds(&self, range: &AddressRange) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
        match (range.first, range.last) {
            (IpAddr::V4(first), IpAddr::V4(last)) if self.length == 4 => Some((
                first.octets().to_vec(),
                last.to_bits()
                    .checked_add(1)
                    .map(|behind| behind.to_be_bytes().to_vec()),
            )),
            (IpAddr::V6(first), IpAddr::V6(last)) if self.length == 16 => Some((
                first.octets().to_vec(),
                last.to_bits()
                    .checked_add(1)
                    .map(|behind| behind.to_be_bytes().to_vec()),
            )),
            _ => None,
        }
    }
}

impl Batch {
    pub(super) fn add_set(&mut self, table: &str, family: &Family) {
        self.add(NEW_SET, NLM_F_CREATE, |message| {
            message
                .with_text(1, table)
                .with_text(2, family.set)
                .with(3, &INTERVAL.to_be_bytes())
                .with(4, &family.key_type.to_be_bytes())
                .with(5, &family.length.to_be_bytes())
                .with(10, &family.number.to_be_bytes())
        });
    }

    pub(super) fn flush_set(&mut self, table: &str, family: &Family) {
        self.add(DELETE_ELEMENTS, 0, |message| {
            message.with_text(1, table).with_text(2, family.set)
        });
    }

    /// Adds those of `ranges` that are of `family`; they do not overlap.
    pub(super) fn add_ranges(&mut self, table: &str, family: &Family, ranges: &[AddressRange]) {
        let mut elements = Vec::new();
        for (first, behind) in ranges.iter().filter_map(|range| family.bounds(range)) {
            elements.push((first, 0));
            elements.extend(behind.map(|behind| (behind, INTERVAL_END)));
        }
        for elements in elements.chunks(ELEMENTS) {
            self.add(NEW_ELEMENTS, NLM_F_CREATE, |message| {
                message
                    .with_text(1, table)
                    .with_text(2, family.set)
                    .with(4, &family.number.to_be_bytes())
                    .with_nested(3, |list| {
                        elements.iter().fold(list, |list, (key, flags)| {
                            list.with_nested(1, |element| {
                                element
                                    .with_nested(1, |data| data.with(1, key))
                                    .with(3, &flags.to_be_bytes())
                            })
                        })
                    })
            });
        }
    }
}
