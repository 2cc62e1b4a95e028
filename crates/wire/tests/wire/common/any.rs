//! Arbitrary headers and packets.

use outlast_wire::tcp::{Experimental, SackBlock, TcpOption, TcpOptions, Timestamps, UserTimeout};
use outlast_wire::{
    IcmpNotice, IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, UdpHeader,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Two addresses of one family.
pub fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(Ipv4Addr, Ipv4Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
        any::<(Ipv6Addr, Ipv6Addr)>().prop_map(|(a, b)| (a.into(), b.into())),
    ]
}

pub fn ip_header() -> impl Strategy<Value = IpHeader> {
    (addresses(), any::<(u8, u8, u16)>()).prop_map(
        |((source, destination), (hop_limit, traffic_class, identification))| IpHeader {
            source,
            destination,
            hop_limit,
            traffic_class,
            identification: if source.is_ipv4() { identification } else { 0 },
        },
    )
}

fn sack_block() -> impl Strategy<Value = SackBlock> {
    any::<(u32, u32)>().prop_map(|(left, right)| SackBlock {
        left: SeqNumber(left),
        right: SeqNumber(right),
    })
}

fn timestamps() -> impl Strategy<Value = Timestamps> {
    any::<(u32, u32)>().prop_map(|(value, echo)| Timestamps { value, echo })
}

fn user_timeout() -> impl Strategy<Value = UserTimeout> {
    (any::<bool>(), 1..0x8000_u16).prop_map(|(minutes, value)| UserTimeout { minutes, value })
}

fn experimental() -> impl Strategy<Value = Experimental> {
    (253..=254_u8, vec(any::<u8>(), 0..=38)).prop_map(|(kind, data)| Experimental {
        kind,
        data: data.into_iter().collect(),
    })
}

pub fn tcp_option() -> impl Strategy<Value = TcpOption> {
    prop_oneof![
        any::<u16>().prop_map(TcpOption::Mss),
        any::<u8>().prop_map(TcpOption::WindowScale),
        Just(TcpOption::SackPermitted),
        vec(sack_block(), 1..=4).prop_map(|blocks| TcpOption::Sack(blocks.into_iter().collect())),
        timestamps().prop_map(TcpOption::Timestamps),
        user_timeout().prop_map(TcpOption::UserTimeout),
        experimental().prop_map(TcpOption::Experimental),
    ]
}

/// Options that may be more than fit.
pub fn tcp_options() -> impl Strategy<Value = TcpOptions> {
    (
        option::of(any::<u16>()),
        option::of(any::<u8>()),
        any::<bool>(),
        vec(sack_block(), 0..=4),
        option::of(timestamps()),
        option::weighted(0.2, user_timeout()),
        option::weighted(0.2, experimental()),
    )
        .prop_map(
            |(mss, window_scale, sack_permitted, sack, timestamps, user_timeout, experimental)| {
                TcpOptions {
                    mss,
                    window_scale,
                    sack_permitted,
                    sack: sack.into_iter().collect(),
                    timestamps,
                    user_timeout,
                    experimental,
                    malformed: false,
                }
            },
        )
}

pub fn tcp_header() -> impl Strategy<Value = TcpHeader> {
    (
        any::<(u16, u16)>(),
        any::<(u32, u32)>(),
        any::<(u8, u16, u16)>(),
        tcp_options(),
    )
        .prop_map(
            |((source_port, destination_port), (seq, ack), (flags, window, urgent), options)| {
                TcpHeader {
                    source_port,
                    destination_port,
                    seq: SeqNumber(seq),
                    ack: SeqNumber(ack),
                    flags: TcpFlags(flags),
                    window,
                    urgent,
                    options,
                }
            },
        )
}

pub fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![4 => vec(any::<u8>(), 0..100), 1 => vec(any::<u8>(), 0..3000)]
}

pub fn tcp_segment() -> impl Strategy<Value = Packet> {
    (ip_header(), tcp_header(), payload())
        .prop_map(|(ip, tcp, payload)| Packet::tcp_segment(ip, tcp, &payload))
}

pub fn modelled_segment() -> impl Strategy<Value = Packet> {
    (
        ip_header(),
        tcp_header(),
        any::<(u64, u64)>(),
        0..200_000_u32,
    )
        .prop_map(|(ip, tcp, (stream, offset), payload_len)| {
            Packet::modelled_tcp(ip, tcp, ModelledPayload { stream, offset }, payload_len)
        })
}

pub fn udp_datagram() -> impl Strategy<Value = Packet> {
    (ip_header(), any::<(u16, u16)>(), payload()).prop_map(
        |(ip, (source_port, destination_port), payload)| {
            Packet::udp_datagram(
                ip,
                UdpHeader {
                    source_port,
                    destination_port,
                },
                &payload,
            )
        },
    )
}

pub fn icmp_error() -> impl Strategy<Value = Packet> {
    let notice = prop_oneof![
        Just(IcmpNotice::HostUnreachable),
        Just(IcmpNotice::NetworkUnreachable),
        Just(IcmpNotice::HopLimitExceeded),
        any::<u16>().prop_map(|mtu| IcmpNotice::TooBig { mtu: mtu.into() }),
    ];
    (prop_oneof![tcp_segment(), udp_datagram()], notice)
        .prop_filter_map("no error may be sent about it", |(about, notice)| {
            Packet::icmp_error(about.header().ip.destination, notice, &about).ok()
        })
}

/// Any packet that can be built with bytes.
pub fn packet() -> impl Strategy<Value = Packet> {
    prop_oneof![3 => tcp_segment(), 1 => udp_datagram(), 1 => icmp_error()]
}
