//! Everything that can be done to a packet of arbitrary bytes, and what must hold after it. The
//! property tests call it with packets that are nearly right, the fuzz targets with any bytes.

use bytes::Bytes;
use outlast_wire::edit::{Edit, EditError};
use outlast_wire::tcp::{Experimental, SackBlock, TcpOption, TcpOptions, Timestamps, UserTimeout};
use outlast_wire::{IcmpNotice, Packet, SeqNumber, TcpFlags, Transport};
use std::net::IpAddr;

/// Parses `bytes`, and if they are a packet, edits and cuts it as `script` says.
pub fn packet(script: [u8; 8], bytes: &[u8]) {
    let Ok(packet) = Packet::parse(Bytes::copy_from_slice(bytes)) else {
        return;
    };
    let header = packet.header();
    assert!(
        packet.total_len() as usize <= bytes.len(),
        "no bytes are invented"
    );
    assert_eq!(packet.to_bytes().len(), packet.total_len() as usize);
    let payload = packet.payload().expect("a parsed packet has bytes");
    assert_eq!(payload.len(), header.payload_len as usize);
    assert!(packet.sequence_len() <= header.payload_len + 2);
    same_when_parsed_again(&packet);
    edit(&script, &packet);
    complete(&packet);
    segment(
        u32::from(u16::from_be_bytes([script[0], script[1]])),
        &packet,
    );
    quote(&packet);
}

/// Reads TCP options from `area`, and what they are written as.
pub fn options(area: &[u8]) {
    let read = TcpOptions::parse(area);
    let written = read.emit();
    assert_eq!(written.len() % 4, 0, "a header is whole words");
    let fitted = read.clone().fitted();
    assert_eq!(TcpOptions::parse(&written), fitted);
    assert_eq!(fitted.clone().fitted(), fitted);
    if area.len() <= 12 {
        assert_eq!(
            fitted,
            TcpOptions {
                malformed: false,
                ..read
            },
            "so few always fit"
        );
    }
}

#[track_caller]
fn same_when_parsed_again(packet: &Packet) {
    assert_eq!(Packet::parse(packet.to_bytes()).as_ref(), Ok(packet));
}

fn edit(script: &[u8; 8], packet: &Packet) {
    let intact = packet.checksums_ok();
    let payload = packet.payload();
    let mut edit = packet.clone().edit();
    for step in 0..4 {
        // A refusal is an answer too; the packet must be in order after it.
        let _: Result<(), EditError> = change(&mut edit, script[step], &script[step..]);
    }
    let edited = edit.finish();
    same_when_parsed_again(&edited);
    assert_eq!(
        edited.checksums_ok(),
        intact,
        "edits neither damage nor mend"
    );
    // What is looked into no further counts its own checksum to the payload.
    if !matches!(edited.header().transport, Transport::Other { .. }) {
        assert_eq!(edited.payload(), payload);
    }
}

fn change(edit: &mut Edit, which: u8, data: &[u8]) -> Result<(), EditError> {
    let byte = |at: usize| data.get(at).copied().unwrap_or(0x5a);
    let word = u16::from_be_bytes([byte(0), byte(1)]);
    let long = u32::from_be_bytes([byte(0), byte(1), byte(2), byte(3)]);
    let address = |old: IpAddr| match old {
        IpAddr::V4(_) => IpAddr::from(long.to_be_bytes()),
        IpAddr::V6(_) => IpAddr::from([byte(0); 16]),
    };
    match which % 16 {
        0 => edit.set_seq(SeqNumber(long)),
        1 => edit.set_ack(SeqNumber(long)),
        2 => edit.set_flags(TcpFlags(byte(0))),
        3 => edit.set_window(word),
        4 => edit.set_source_port(word),
        5 => edit.set_destination_port(word),
        6 => edit.set_source(address(edit.header().ip.source)),
        7 => edit.set_destination(address(edit.header().ip.destination)),
        8 => edit.decrement_hop_limit(),
        9 => edit.set_timestamps(Timestamps {
            value: long,
            echo: !long,
        }),
        10 => edit.clear_option(byte(1)),
        11 => edit.set_option(&TcpOption::Mss(word)),
        12 => edit.set_option(&TcpOption::WindowScale(byte(0))),
        13 => {
            let block = SackBlock {
                left: SeqNumber(long),
                right: SeqNumber(!long),
            };
            let blocks = std::iter::repeat_n(block, usize::from(byte(1) % 5));
            edit.set_option(&TcpOption::Sack(blocks.collect()))
        }
        14 => {
            let timeout = UserTimeout {
                minutes: byte(0) & 1 == 1,
                value: word,
            };
            edit.set_option(&TcpOption::UserTimeout(timeout))
        }
        _ => {
            let kind = 252 + byte(1) % 4;
            let data = std::iter::repeat_n(byte(2), usize::from(byte(3) % 39)).collect();
            edit.set_option(&TcpOption::Experimental(Experimental { kind, data }))
        }
    }
    .map(|_| ())
}

/// With its checksums filled in a packet is right, and says the same.
fn complete(packet: &Packet) {
    let mut edit = packet.clone().edit();
    edit.fill_checksums();
    let complete = edit.finish();
    assert!(complete.checksums_ok());
    assert_eq!(complete.header(), packet.header());
    same_when_parsed_again(&complete);
    let completed = packet.clone().with_completed_checksum();
    assert!(completed == *packet || completed.checksums_ok());
}

fn segment(size: u32, packet: &Packet) {
    let to_mtu = packet.segment_to_mtu(size);
    // Small pieces of large packets are as many as there are bytes: enough of them is enough.
    let pieces = |segments: outlast_wire::segment::Segments| segments.take(100);
    for segment in to_mtu.clone().map(pieces).into_iter().flatten() {
        assert!(segment.total_len() <= size);
    }
    let by_size = packet.segment_by(size as u16);
    for segment in by_size.clone().map(pieces).into_iter().flatten() {
        assert!(segment.header().payload_len <= u32::from(size as u16));
    }
    for segments in [to_mtu, by_size].into_iter().flatten() {
        let whole = segments.len() == 1;
        let mut offset = 0;
        for segment in pieces(segments) {
            same_when_parsed_again(&segment);
            let length = segment.header().payload_len as usize;
            let payload = packet
                .payload()
                .and_then(|payload| payload.get(offset..offset + length));
            assert_eq!(segment.payload(), payload);
            offset += length;
            // One piece is the packet itself, or what is left of it without a jumbo payload option.
            if whole && segment.total_len() == packet.total_len() {
                assert_eq!(segment, *packet);
            } else {
                assert!(segment.checksums_ok());
            }
        }
    }
}

fn quote(about: &Packet) {
    let router = about.header().ip.destination;
    for notice in [
        IcmpNotice::HostUnreachable,
        IcmpNotice::TooBig { mtu: 1400 },
    ] {
        if let Ok(error) = Packet::icmp_error(router, notice, about) {
            same_when_parsed_again(&error);
            assert!(error.checksums_ok());
            let Transport::IcmpError(read) = &error.header().transport else {
                panic!("{:?}", error.header())
            };
            let quoted = read.quoted.expect("a whole header is always quoted");
            assert_eq!(quoted.source, about.header().ip.source);
            if let Some(tcp) = about.tcp() {
                let ports = Some((tcp.source_port, tcp.destination_port));
                // Unless extension headers take all the room.
                assert!(quoted.ports == ports || quoted.ports.is_none());
                assert!(quoted.seq == Some(tcp.seq) || quoted.seq.is_none());
            }
        }
    }
}
