//! Every table and buffer has a hard cap, a defined action when full, and a counter.

use crate::path::{MSS, Path, Sent};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use outlast_wire::{Packet, UdpHeader};

fn limited(limits: Limits) -> Path {
    Path::with_limits(PathMechanismKind::Hold, limits)
}

/// Forty segments were sent while the link was down, and 20 kB may be kept.
fn past_its_own_cap() -> Path {
    let mut path = limited(Limits {
        held_per_flow: ByteCount(20_000),
        ..Limits::default()
    });
    path.open();
    path.after_ms(1_000);
    path.down();
    for n in 0..40 {
        path.data(n * MSS, MSS);
    }
    assert_eq!(path.gateway.counters().fallbacks, 1);
    path
}

#[test]
fn past_its_own_cap_a_flow_falls_back_to_the_best_single_packet() {
    let mut path = past_its_own_cap();
    assert!(path.gateway.held() <= ByteCount(20_000));
    path.after_ms(300);
    path.data(0, MSS);
    path.up();
    path.after_ms(5);
    assert_eq!(
        path.sent().len(),
        1,
        "one packet, as in the smart link layer"
    );
    // Once that has been recovered from, everything is kept again.
    path.far_ack(40 * MSS);
    path.data(40 * MSS, MSS);
    path.down();
    assert_eq!(path.data(41 * MSS, MSS), Some(TakeReason::LinkDown));
}

#[test]
fn the_one_packet_that_is_kept_is_not_sent_once_it_is_acknowledged() {
    let mut path = limited(Limits {
        held_per_flow: ByteCount(5_000),
        ..Limits::default()
    });
    path.open();
    path.after_ms(1_000);
    path.down();
    for n in 0..10 {
        path.data(n * MSS, MSS);
    }
    path.data(0, MSS);
    assert_eq!(path.gateway.counters().fallbacks, 1);
    // Not all of what made the flow fall back is acknowledged, but that packet is.
    path.far_ack(9 * MSS);
    path.up();
    path.after_ms(60_000);
    let sent = path.sent();
    let first = |sent: &Sent| matches!(sent, Sent::Data(first, ..) if *first < 9 * MSS);
    assert!(!sent.iter().any(first), "{sent:?}");
}

#[test]
fn the_cap_of_all_flows_holds_under_a_flood_of_them() {
    let cap = ByteCount(200_000);
    let mut path = limited(Limits {
        held_in_all: cap,
        flows: 100,
        ..Limits::default()
    });
    for port in 0..500 {
        path.use_port(10_000 + port);
        path.open();
        for n in 0..5 {
            path.data(n * MSS, MSS);
        }
        assert!(path.gateway.held() <= cap);
        assert!(path.gateway.flows() <= 100);
    }
    path.down();
    for port in 0..500 {
        path.use_port(10_000 + port);
        for n in 0..5 {
            path.data(n * MSS, MSS);
        }
        assert!(path.gateway.held() <= cap);
    }
    let counters = path.gateway.counters();
    assert!(counters.flows_displaced >= 400, "{counters:?}");
    assert!(counters.fallbacks > 0, "{counters:?}");
    path.up();
    // When all flows are gone, so is all that was kept for them.
    path.after_ms(10_000_000);
    assert_eq!(
        (path.gateway.flows(), path.gateway.held()),
        (0, ByteCount(0))
    );
}

#[test]
fn a_flood_of_syns_leaves_established_connections_alone() {
    let mut path = limited(Limits {
        flows: 50,
        ..Limits::default()
    });
    path.open();
    for port in 0..1_000 {
        path.use_port(20_000 + port);
        path.syn();
    }
    path.use_port(5_000);
    path.data(0, MSS);
    path.down();
    path.dropped(0, MSS);
    path.up();
    path.after_ms(1);
    assert!(path.sent().contains(&Sent::Data(0, MSS, 40_040 - 40_000)));
}

#[test]
fn datagrams_give_way_oldest_first() {
    let mut path = limited(Limits {
        other_packets: 3,
        ..Limits::default()
    });
    path.down();
    for len in 1..=5 {
        assert_eq!(path.datagram(len), Some(TakeReason::LinkDown));
    }
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent(), [3, 4, 5].map(Sent::Datagram));
    assert_eq!(path.gateway.counters().others_evicted, 2);
}

#[test]
fn datagrams_are_capped_in_bytes_too() {
    let mut path = limited(Limits {
        other_bytes: ByteCount(3_000),
        ..Limits::default()
    });
    path.down();
    for _ in 0..5 {
        path.datagram(1_200);
    }
    assert!(path.gateway.held_other() <= ByteCount(3_000));
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent(), [Sent::Datagram(1_200); 2]);
}

#[test]
fn a_fresh_datagram_waits_for_no_old_one() {
    let mut path = limited(Limits::default());
    path.down();
    for _ in 0..30 {
        path.datagram(1_200);
    }
    path.up();
    assert!(path.sent().len() < 30, "some still wait");
    assert_eq!(path.datagram(7), None);
}

#[test]
fn what_is_too_old_to_be_of_use_is_dropped() {
    let limits = Limits::default();
    let mut path = limited(limits);
    path.down();
    // As a sender that backs off; the next one would be as late as the limit allows.
    for len in 0..3 {
        path.datagram(len);
        path.after(limits.other_age * 2 / 5);
    }
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent(), [1, 2].map(Sent::Datagram));
    assert_eq!(path.gateway.counters().others_evicted, 1);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
}

/// What was sent into the outage, by the number in the last byte, of `port` with this first byte.
fn numbered(ports: [u16; 2], first_byte: u8, number: u8) -> Packet {
    let udp = UdpHeader {
        source_port: ports[0],
        destination_port: ports[1],
    };
    let mut payload = vec![7; 200];
    (payload[0], payload[199]) = (first_byte, number);
    Packet::udp_datagram(crate::path::ip(2, 1), udp, &payload)
}

/// The numbers of what the gateway sends.
fn numbers(path: &mut Path) -> Vec<u8> {
    let mut numbers = Vec::new();
    while let Some(sent) = path.gateway.poll_transmit() {
        let payload = sent.packet.payload().expect("it has bytes");
        numbers.push(*payload.last().expect("not empty"));
    }
    numbers
}

const QUIC: ([u16; 2], u8) = ([50_000, 443], 0x40);
const DNS: ([u16; 2], u8) = ([50_000, 53], 0x12);
const ESP: ([u16; 2], u8) = ([4_500, 4_500], 0x0a);
const RTP: ([u16; 2], u8) = ([5_004, 5_004], 0x80);
const UNKNOWN: ([u16; 2], u8) = ([50_000, 9_999], 0x40);

/// A sender that backs off sends few packets in an outage. Those of a transport that discards what comes late wait,
/// so that nothing between them is taken for lost; those of others are dropped.
#[test]
fn what_a_sender_that_backs_off_has_sent_waits_where_it_does_no_harm() {
    let after = |(ports, first_byte), gaps_ms: &[u64]| {
        let mut path = limited(Limits::default());
        path.down();
        for (number, gap) in (0..).zip(gaps_ms) {
            path.near_sends(&numbered(ports, first_byte, number));
            path.after_ms(*gap);
        }
        path.up();
        path.after_ms(100);
        numbers(&mut path)
    };
    // As of a sender with a round trip of 20 ms: pairs of probes, and a timer that doubles.
    let backing_off = [0, 20, 0, 40, 0, 80, 0, 160, 0, 320, 0, 640, 0, 1_280];
    assert_eq!(after(ESP, &backing_off), Vec::from_iter(0..14));
    // The newest burst of QUIC first: a burst ends with a pause of 250 ms.
    let bursts = [12..14, 10..12, 0..10];
    assert_eq!(
        after(QUIC, &backing_off),
        Vec::from_iter(bursts.into_iter().flatten())
    );
    assert_eq!(after(DNS, &[5_000, 3_000]), [0, 1]);
    assert_eq!(after(UNKNOWN, &backing_off), []);
    // Only so many.
    assert_eq!(after(QUIC, &[1_000; 40]), Vec::from_iter((24..40).rev()));
    // A window that a sender repeats at once at each timeout, 50 packets, waits whole.
    let burst: Vec<u64> = std::iter::repeat_n(0, 49).chain([3_000]).collect();
    let twice: Vec<u64> = [&burst[..], &burst[..]].concat();
    let came = after(QUIC, &twice);
    assert!(came.starts_with(&Vec::from_iter(50..100)), "{came:?}");
    assert_eq!(came.len(), 50 + 15);
}

/// QUIC clears its fixed bit at random (RFC 9287), so that half of a sender's probes have it. What else uses its port and
/// says what it is waits no longer for that.
#[test]
fn quic_waits_with_its_fixed_bit_cleared_too() {
    let after = |first_bytes: &[[u8; 2]], behind: [u8; 7]| {
        let mut path = limited(Limits::default());
        path.down();
        let [source_port, destination_port] = QUIC.0;
        let udp = UdpHeader {
            source_port,
            destination_port,
        };
        for (number, first) in (0..).zip(first_bytes.as_flattened()) {
            let mut payload = vec![7; 200];
            payload[0] = *first;
            payload[1..8].copy_from_slice(&behind);
            payload[199] = number;
            path.near_sends(&Packet::udp_datagram(crate::path::ip(2, 1), udp, &payload));
            // Two at once, then a pause.
            path.after_ms(u64::from(number % 2) * 1_000);
        }
        path.up();
        path.after_ms(100);
        numbers(&mut path)
    };
    let ciphertext = [9, 140, 7, 201, 18, 88, 5];
    let probes = [[0x41, 0x1f], [0x02, 0x14], [0x00, 0x5b]];
    assert_eq!(after(&probes, ciphertext), [4, 5, 2, 3, 0, 1]);

    let dtls = [0xfe, 0xfd, 0, 1, 0, 0, 0];
    assert_eq!(after(&[[0x17, 0x17]; 3], dtls), []);
    let stun = [1, 0, 20, 0x21, 0x12, 0xa4, 0x42];
    assert_eq!(after(&[[0, 0]; 3], stun), []);
    // In order, as everywhere.
    assert_eq!(after(&[[4, 4]; 3], [0; 7]), Vec::from_iter(0..6));
    let rtp = [96, 0, 1, 0, 0, 0, 7];
    assert_eq!(after(&[[0x80, 0x80]; 3], rtp), []);
}

/// An acknowledgement of QUIC says what those before it said, and is a round trip as long as the outage to who hears it.
#[test]
fn of_quics_acknowledgements_the_newest_of_each_burst_wait() {
    let came = |(ports, first_byte): ([u16; 2], u8), length: usize| {
        let mut path = limited(Limits::default());
        path.down();
        let [source_port, destination_port] = ports;
        let udp = UdpHeader {
            source_port,
            destination_port,
        };
        for number in 0..20 {
            let mut payload = vec![7; length];
            (payload[0], payload[length - 1]) = (first_byte, number);
            path.near_sends(&Packet::udp_datagram(crate::path::ip(2, 1), udp, &payload));
            // Two bursts.
            path.after_ms(if number == 9 { 1_000 } else { 0 });
        }
        path.after_ms(5_000);
        path.up();
        path.after_ms(100);
        numbers(&mut path)
    };
    assert_eq!(came(QUIC, 40), [17, 18, 19, 7, 8, 9]);
    // What may bear data, what belongs to a handshake, and what is not QUIC is none.
    let bursts = [10..20, 0..10];
    assert_eq!(came(QUIC, 65), Vec::from_iter(bursts.into_iter().flatten()));
    for (other, length) in [((QUIC.0, 0xc0), 40), (ESP, 40)] {
        assert_eq!(came(other, length), Vec::from_iter(0..20));
    }
}

/// Where the data's sender is awake, it hears of a fresh acknowledgement before the old ones; elsewhere they wake it.
#[test]
fn old_acknowledgements_of_quic_go_out_only_if_no_fresh_one_comes_first() {
    let [source_port, destination_port] = QUIC.0;
    let udp = UdpHeader {
        source_port,
        destination_port,
    };
    let acknowledgement = |number| {
        let mut payload = vec![7; 40];
        (payload[0], payload[39]) = (QUIC.1, number);
        Packet::udp_datagram(crate::path::ip(2, 1), udp, &payload)
    };
    let back = || {
        let mut path = limited(Limits::default());
        path.down();
        path.near_sends(&acknowledgement(0));
        // One of ten seconds ago, a younger one, and one that may bear data.
        path.after_ms(4_000);
        path.near_sends(&acknowledgement(1));
        path.near_sends(&numbered(QUIC.0, QUIC.1, 2));
        path.after_ms(6_100);
        path.up();
        path.after_ms(20);
        assert_eq!(numbers(&mut path), [1, 2]);
        path
    };
    let mut path = back();
    path.after_ms(79);
    assert_eq!(numbers(&mut path), []);
    path.after_ms(1);
    assert_eq!(numbers(&mut path), [0]);
    assert_eq!(path.gateway.held_other(), ByteCount(0));

    let mut path = back();
    path.near_sends(&numbered(DNS.0, DNS.1, 3));
    path.near_sends(&acknowledgement(4));
    path.after_ms(200);
    assert_eq!(numbers(&mut path), []);
    assert_eq!(path.gateway.held_other(), ByteCount(0));
    // It goes at once when its link was away once more meanwhile.
    let mut path = back();
    path.down();
    path.after_ms(1_000);
    path.up();
    path.after_ms(1);
    assert_eq!(numbers(&mut path), [0]);
}

/// A sender that goes on at its pace does not wait for an answer; what is old would only disturb who plays it.
#[test]
fn of_a_stream_only_the_newest_packet_waits() {
    for (ports, first_byte) in [QUIC, ESP, RTP, UNKNOWN] {
        let mut path = limited(Limits::default());
        path.down();
        for number in 0..100 {
            path.near_sends(&numbered(ports, first_byte, number));
            path.after_ms(20);
        }
        path.up();
        path.after_ms(10);
        assert_eq!(numbers(&mut path), [99], "{ports:?}");
        assert_eq!(path.gateway.held_other(), ByteCount(0));
    }
    // RTP says itself that it is a stream.
    let mut path = limited(Limits::default());
    path.down();
    for number in 0..5 {
        path.near_sends(&numbered(RTP.0, RTP.1, number));
        path.after_ms(20);
    }
    path.up();
    path.after_ms(10);
    assert_eq!(numbers(&mut path), [4]);
}

/// One flow that is a stream takes nothing from another one, nor does a stream that has paused stay one.
#[test]
fn a_stream_is_told_by_its_own_packets() {
    let mut path = limited(Limits::default());
    path.down();
    path.near_sends(&numbered(QUIC.0, QUIC.1, 200));
    for number in 0..50 {
        path.near_sends(&numbered(UNKNOWN.0, UNKNOWN.1, number));
        path.after_ms(20);
    }
    path.after_ms(1_000);
    for number in 100..103 {
        path.near_sends(&numbered(UNKNOWN.0, UNKNOWN.1, number));
    }
    path.up();
    path.after_ms(10);
    assert_eq!(numbers(&mut path), [200, 100, 101, 102]);
}

#[test]
fn when_many_flows_return_none_waits_for_more_than_its_share() {
    const FLOWS: u16 = 1_000;
    let mut path = limited(Limits::default());
    for port in 0..FLOWS {
        path.use_port(10_000 + port);
        path.open();
    }
    path.after_ms(1_000);
    path.down();
    for port in 0..FLOWS {
        path.use_port(10_000 + port);
        for n in 0..5 {
            path.data(n * MSS, MSS);
        }
    }
    path.up();
    path.after_ms(40);
    // The link is heard.
    path.far_ack(0);
    // A round of 1,000 packets of 1,052 bytes takes 842 ms at 10 Mbit/s; after a bit more every
    // flow has sent its first one, and nobody more than its second.
    path.after_ms(820);
    let mut turns = vec![0; usize::from(FLOWS)];
    for port in path.sent_ports() {
        turns[usize::from(port - 10_000)] += 1;
    }
    assert!(
        turns.iter().all(|turns| (1..=2).contains(turns)),
        "turns per flow: {turns:?}"
    );
}

/// One far host has as much to be kept as there is room for, and more: another one finds room for some.
#[test]
fn one_peer_does_not_have_all_the_memory() {
    const ROOM: u64 = 1_000_000;
    let mut path = limited(Limits {
        held_in_all: ByteCount(ROOM),
        ..Limits::default()
    });
    for (far, ports) in [(1, 0..40), (3, 0..4)] {
        path.use_far_host(far);
        for port in ports {
            path.use_port(10_000 + port);
            path.open();
        }
    }
    path.after_ms(1_000);
    path.down();
    let mut kept = [0, 0];
    for (far, ports, count) in [(1, 0..40, 60), (3, 0..4, 25)] {
        path.use_far_host(far);
        let before = path.gateway.held().0;
        for port in ports {
            path.use_port(10_000 + port);
            for n in 0..count {
                path.data(n * MSS, MSS);
            }
        }
        kept[usize::from(far > 1)] = path.gateway.held().0 - before;
    }
    assert!(
        (ROOM * 7 / 10..=ROOM * 4 / 5).contains(&kept[0]),
        "{kept:?}"
    );
    assert!(kept[1] > 100_000, "{kept:?}");
}

/// A sender in bulk always has something on its way: that is no reason to stay with one packet for good.
#[test]
fn who_always_has_something_outstanding_is_back_at_all_of_it_once_the_old_is_recovered() {
    let mut path = past_its_own_cap();
    path.up();
    for n in 40..60 {
        path.after_ms(20);
        path.data(n * MSS, MSS);
        path.far_ack((n - 1) * MSS);
    }
    path.sent();
    path.after_ms(10);
    path.down();
    for n in 60..64 {
        assert_eq!(path.data(n * MSS, MSS), Some(TakeReason::LinkDown));
    }
}

#[test]
fn a_repetition_of_what_is_kept_needs_no_room() {
    let with_three = |limits| {
        let mut path = limited(limits);
        path.open();
        path.after_ms(1_000);
        path.down();
        for n in 0..3 {
            path.data(n * MSS, MSS);
        }
        path
    };
    // Three segments fit, and a fresher copy of none.
    let cap = with_three(Limits::default()).gateway.held();
    let mut path = with_three(Limits {
        held_per_flow: cap,
        ..Limits::default()
    });
    path.after_ms(300);
    assert_eq!(path.data(0, MSS), Some(TakeReason::LinkDown));
    path.after_ms(600);
    assert_eq!(path.data(0, MSS), Some(TakeReason::LinkDown));
    assert_eq!(path.gateway.counters().fallbacks, 0);
    assert!(path.gateway.held() <= cap);
    path.up();
    path.after_ms(5);
    let first = |sent: &Sent| match sent {
        Sent::Data(first, ..) => *first / MSS,
        other => panic!("{other:?} is no data"),
    };
    assert_eq!(path.sent().iter().map(first).collect::<Vec<_>>(), [0, 1, 2]);
}

/// By the time of its turn, what was kept has arrived, and what is kept then is on its way already.
#[test]
fn the_one_packet_that_is_kept_then_has_no_turn_of_the_one_before() {
    let mut path = Path::with_rate(
        PathMechanismKind::Hold,
        Limits {
            held_per_flow: ByteCount(5_000),
            ..Limits::default()
        },
        BitRate::from_bits_per_second(64_000),
    );
    let own = 5_000;
    for port in (6_000..6_008).chain([own]) {
        path.use_port(port);
        path.open();
    }
    path.after_ms(1_000);
    path.down();
    for n in 0..10 {
        path.data(n * MSS, MSS);
    }
    for port in 6_000..6_008 {
        path.use_port(port);
        path.far_data(0, 100);
        path.near_ack(100);
    }
    path.up();
    // The others go first, and keep it waiting.
    path.use_port(own);
    path.far_ack(MSS);
    assert_eq!(path.data(MSS, 10), None);
    path.after_ms(100);
    let of_own = path.sent_ports().into_iter().filter(|port| *port == own);
    assert_eq!(of_own.count(), 0);
}
