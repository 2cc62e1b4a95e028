//! What was built is what is parsed, for every format.

use crate::common::{any, judge, parse};
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{ModelledPayload, Packet, TcpFlags, TcpHeader, Transport, UdpHeader};
use proptest::prelude::*;

proptest! {
    #![proptest_config(crate::common::config("roundtrip"))]

    #[test]
    fn tcp(ip in any::ip_header(), tcp in any::tcp_header(), payload in any::payload()) {
        let packet = Packet::tcp_segment(ip, tcp.clone(), &payload);
        let bytes = packet.to_bytes();
        judge(&bytes);
        let parsed = parse(&bytes);
        prop_assert_eq!(&parsed, &packet);
        prop_assert_eq!(parsed.header().ip, ip);
        prop_assert_eq!(parsed.payload(), Some(&payload[..]));
        let mut written = tcp;
        written.options = written.options.fitted();
        prop_assert_eq!(parsed.tcp(), Some(&written));
        same_for_etherparse(&bytes, &written);
    }

    #[test]
    fn modelled(
        ip in any::ip_header(),
        tcp in any::tcp_header(),
        stream: u64,
        offset: u64,
        payload_len in prop_oneof![0..3000_u32, 60_000..70_000_u32],
    ) {
        let at = ModelledPayload { stream, offset };
        let packet = Packet::modelled_tcp(ip, tcp, at, payload_len);
        let bytes = packet.to_bytes();
        prop_assert_eq!(bytes.len(), packet.total_len() as usize);
        let parsed = parse(&bytes);
        prop_assert_eq!(parsed.header(), packet.header());
        prop_assert!(parsed.checksums_ok());
    }

    #[test]
    fn udp(ip in any::ip_header(), ports: (u16, u16), payload in any::payload()) {
        let udp = UdpHeader { source_port: ports.0, destination_port: ports.1 };
        let packet = Packet::udp_datagram(ip, udp, &payload);
        let bytes = packet.to_bytes();
        judge(&bytes);
        let parsed = parse(&bytes);
        prop_assert_eq!(&parsed, &packet);
        prop_assert_eq!(&parsed.header().transport, &Transport::Udp(udp));
        prop_assert_eq!(parsed.payload(), Some(&payload[..]));
    }

    #[test]
    fn icmp(packet in any::icmp_error()) {
        let bytes = packet.to_bytes();
        judge(&bytes);
        prop_assert_eq!(&parse(&bytes), &packet);
    }

    #[test]
    fn options(options in any::tcp_options()) {
        let bytes = options.emit();
        prop_assert_eq!(bytes.len() % 4, 0);
        prop_assert_eq!(options.emitted_len(), bytes.len());
        let fitted = options.fitted();
        prop_assert_eq!(TcpOptions::parse(&bytes), fitted.clone());
        prop_assert_eq!(fitted.clone().fitted(), fitted);
    }
}

/// Asserts that an independent reader finds the same in a segment.
#[track_caller]
fn same_for_etherparse(bytes: &[u8], tcp: &TcpHeader) {
    use etherparse::{SlicedPacket, TcpOptionElement, TransportSlice};
    let sliced = SlicedPacket::from_ip(bytes).expect("etherparse reads it");
    let Some(TransportSlice::Tcp(found)) = sliced.transport else {
        panic!("TCP")
    };
    assert_eq!(found.source_port(), tcp.source_port);
    assert_eq!(found.destination_port(), tcp.destination_port);
    assert_eq!(found.sequence_number(), tcp.seq.0);
    assert_eq!(found.acknowledgment_number(), tcp.ack.0);
    assert_eq!(found.window_size(), tcp.window);
    assert_eq!(found.urgent_pointer(), tcp.urgent);
    for (bit, set) in [
        (TcpFlags::FIN, found.fin()),
        (TcpFlags::SYN, found.syn()),
        (TcpFlags::RST, found.rst()),
        (TcpFlags::PSH, found.psh()),
        (TcpFlags::ACK, found.ack()),
        (TcpFlags::URG, found.urg()),
        (TcpFlags::ECE, found.ece()),
        (TcpFlags::CWR, found.cwr()),
    ] {
        assert_eq!(tcp.has(bit), set, "{bit:?}");
    }
    // Kinds that it does not know end its list.
    for option in found.options_iterator().map_while(Result::ok) {
        let options = &tcp.options;
        match option {
            TcpOptionElement::Noop => {}
            TcpOptionElement::MaximumSegmentSize(mss) => assert_eq!(options.mss, Some(mss)),
            TcpOptionElement::WindowScale(shift) => assert_eq!(options.window_scale, Some(shift)),
            TcpOptionElement::SelectiveAcknowledgementPermitted => assert!(options.sack_permitted),
            TcpOptionElement::SelectiveAcknowledgement(first, rest) => {
                let found: Vec<_> = [Some(first)].into_iter().chain(rest).flatten().collect();
                let expected: Vec<_> = options
                    .sack
                    .iter()
                    .map(|block| (block.left.0, block.right.0))
                    .collect();
                assert_eq!(found, expected);
            }
            TcpOptionElement::Timestamp(value, echo) => {
                assert_eq!(options.timestamps, Some(Timestamps { value, echo }));
            }
        }
    }
}
