//! What the tracker's counters count: `docs/gateway.md` says it in words.

use outlast_base::time::Instant;
use outlast_gateway::links::Direction;
use outlast_linux::tracker::{Tracker, TrackerConfig, TrackerCounters};
use outlast_skip::skip;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, UdpHeader};
use std::net::IpAddr;

const V4: u16 = 0x0800;
const V6: u16 = 0x86dd;
const ARP: u16 = 0x0806;

fn frame(kind: u16, bytes: &[u8]) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend(kind.to_be_bytes());
    frame.extend(bytes);
    frame
}

fn ip(source: &str, destination: &str) -> IpHeader {
    let address = |text: &str| -> IpAddr { text.parse().expect("literal") };
    IpHeader {
        source: address(source),
        destination: address(destination),
        hop_limit: 64,
        traffic_class: 0,
        identification: 9,
    }
}

fn segment(flags: TcpFlags) -> Vec<u8> {
    let header = TcpHeader {
        source_port: 5_000,
        destination_port: 80,
        seq: SeqNumber(1),
        ack: SeqNumber(0),
        flags,
        window: 1_000,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(ip("192.0.2.2", "198.51.100.2"), header, &[])
        .to_bytes()
        .to_vec()
}

fn datagram(source: &str, destination: &str) -> Vec<u8> {
    let ports = UdpHeader {
        source_port: 5,
        destination_port: 6,
    };
    Packet::udp_datagram(ip(source, destination), ports, b"word")
        .to_bytes()
        .to_vec()
}

/// A packet of IPv6 with this first header and what follows the fixed one.
fn v6(first_header: u8, rest: &[u8]) -> Vec<u8> {
    let mut bytes = datagram("2001:db8::2", "2001:db8::3");
    bytes.truncate(40);
    bytes[4..6].copy_from_slice(&u16::try_from(rest.len()).expect("short").to_be_bytes());
    bytes[6] = first_header;
    bytes.extend(rest);
    bytes
}

#[test]
fn what_is_not_tracked_is_counted_where_it_had_to_be_looked_at_closely() {
    let config = TrackerConfig {
        flows: 1024,
        slots: 64,
        ..TrackerConfig::default()
    };
    let tracker = match Tracker::load_for_trial(&config) {
        Ok(tracker) => tracker,
        Err(error) => return skip(error),
    };
    let (udp, icmpv6, hop_by_hop, fragment, esp) = (17, 58, 0, 44, 50);
    let damaged = |at: usize, to: u8| {
        let mut bytes = segment(TcpFlags::ACK);
        bytes[at] = to;
        bytes
    };
    // A report of multicast listeners (RFC 2710) behind its router alert, and a fragment of UDP.
    let report = [
        &[icmpv6, 0, 5, 2, 0, 0, 1, 0][..],
        &[131, 0, 0, 0, 0, 0, 0, 0],
    ]
    .concat();
    let piece = [udp, 0, 0, 1, 0, 0, 0, 7];
    for (what, kind, bytes, expected) in [
        ("ARP", ARP, vec![0; 28], 0),
        ("UDP", V4, datagram("192.0.2.2", "198.51.100.2"), 0),
        (
            "UDP over IPv6",
            V6,
            datagram("2001:db8::2", "2001:db8::3"),
            0,
        ),
        ("ICMPv6", V6, v6(icmpv6, &[128, 0, 0, 0, 0, 0, 0, 0]), 0),
        ("a SYN", V4, segment(TcpFlags::SYN), 0),
        ("a fragment of TCP", V4, damaged(7, 1), 1),
        ("a damaged header", V4, damaged(8, 1), 1),
        ("a TCP header that is too short", V4, damaged(32, 0x40), 1),
        ("MLD", V6, v6(hop_by_hop, &report), 1),
        ("a fragment of UDP over IPv6", V6, v6(fragment, &piece), 1),
        ("ESP over IPv6", V6, v6(esp, &[0; 16]), 1),
    ] {
        let before = tracker.counters().expect("readable").not_tracked;
        let seen = frame(kind, &bytes);
        tracker
            .try_out(Instant::from_millis(1), Direction::ToLink, &seen, 0)
            .expect("it runs");
        let TrackerCounters { not_tracked, .. } = tracker.counters().expect("readable");
        assert_eq!(not_tracked - before, expected, "{what}");
    }
    let reset = frame(V4, &segment(TcpFlags::RST));
    let known = tracker.counters().expect("readable").not_tracked;
    let tries = [(Direction::ToLink, 0), (Direction::FromLink, 1)];
    for (direction, expected) in tries {
        tracker
            .try_out(Instant::from_millis(2), direction, &reset, 0)
            .expect("it runs");
        let now = tracker.counters().expect("readable").not_tracked;
        assert_eq!(
            now - known,
            expected,
            "{direction:?}: a RST of that SYN's, and of none"
        );
    }
}
