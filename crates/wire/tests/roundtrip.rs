//! What was built is what is parsed, for every format.

mod common;

use common::{any, judge, parse};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{ModelledPayload, Packet, Transport, UdpHeader};
use proptest::prelude::*;

proptest! {
    #![proptest_config(common::config("roundtrip"))]

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
