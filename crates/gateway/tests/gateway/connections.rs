//! How connections begin, end and follow one another while links go and come.

use crate::path::{LITTLE, MSS, Path, Sent, with};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};
use outlast_gateway::tracking::{FlowKey, TcpFlow};
use outlast_wire::{Packet, TcpFlags, TcpHeader};

const TAKEN: Option<TakeReason> = Some(TakeReason::LinkDown);

fn hold() -> Path {
    Path::established(PathMechanismKind::Hold)
}

fn with_fin(packet: &Packet) -> Packet {
    with(packet, |tcp| tcp.flags = tcp.flags | TcpFlags::FIN)
}

#[test]
fn a_new_connection_on_the_same_ports_begins_with_nothing() {
    let mut path = hold();
    path.down();
    for n in 0..5 {
        path.data(n * MSS, MSS);
    }
    assert_eq!(path.rst(5 * MSS), TAKEN);
    path.up();
    assert!(matches!(path.sent()[..], [Sent::Control(_)]));
    path.after_ms(50);
    path.open();
    path.after_ms(60_000);
    assert_eq!(path.sent(), [], "nothing of the first one is left");
    // And the second is as good as any.
    path.down();
    assert_eq!(path.data(0, MSS), TAKEN);
    path.up();
    assert_eq!(path.sent().len(), 1);
    path.far_ack(MSS);
    assert!(path.gateway.held() <= LITTLE);
}

#[test]
fn a_connection_attempt_that_failed_does_not_spoil_the_next() {
    let mut path = Path::new(PathMechanismKind::Hold);
    let syn = path.data_packet(0, 0);
    for isn in [5_000, 3_000_000_000] {
        let attempt = with(&syn, |tcp| {
            tcp.flags = TcpFlags::SYN;
            tcp.seq.0 = isn;
        });
        assert_eq!(path.near_sends(&attempt), None);
        path.after_ms(30_000);
    }
    path.open();
    path.down();
    assert_eq!(path.data(0, MSS), TAKEN);
}

#[test]
fn flows_displaced_during_an_outage_take_nothing_with_them() {
    const FLOWS: u16 = 20;
    let limits = Limits {
        // Established ones leave a place to others.
        flows: 11,
        ..Limits::default()
    };
    let mut path = Path::with_limits(PathMechanismKind::Hold, limits);
    path.down();
    for port in 0..FLOWS {
        // Opened before the outage, as far as the hosts are concerned.
        path.use_port(6_000 + port);
        path.up();
        path.open();
        path.down();
        assert_eq!(path.data(0, MSS), TAKEN);
    }
    assert_eq!(path.gateway.counters().flows_displaced, 10);
    path.sent();
    path.up();
    path.after_ms(20);
    let mut ports = path.sent_ports();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports, Vec::from_iter(6_010..6_020));
    // One that gave way is known again once both its hosts are heard.
    path.use_port(6_000);
    assert_eq!(path.data(0, MSS), None);
    path.far_ack(MSS);
    path.down();
    assert_eq!(path.data(MSS, MSS), TAKEN);
    path.up();
    path.after_ms(10_000_000);
    let gateway = &path.gateway;
    assert_eq!((gateway.flows(), gateway.held()), (0, ByteCount(0)));
}

#[test]
fn a_rst_from_the_far_side_frees_what_is_held() {
    let mut path = hold();
    path.data(0, MSS);
    path.down();
    for n in 1..5 {
        assert_eq!(path.data(n * MSS, MSS), TAKEN);
    }
    // Sent before the link went down, it comes late: behind a tunnel, or another way.
    let rst = with(&path.far_packet_acking(MSS, &[]), |tcp| {
        tcp.flags = TcpFlags::RST | TcpFlags::ACK;
    });
    path.far_sends(&rst);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.up();
    path.after_ms(600_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn a_forged_rst_frees_nothing() {
    let mut path = hold();
    path.far_data(0, MSS);
    path.down();
    assert_eq!(path.data(0, MSS), TAKEN);
    for seq in [20_000u32, 60_000, 100_000u32.wrapping_neg()] {
        let rst = with(&path.far_data_packet(seq, 0), |tcp| {
            tcp.flags = TcpFlags::RST;
        });
        path.far_sends(&rst);
    }
    assert!(path.gateway.held() > ByteCount(0));
    path.up();
    assert!(path.sent().contains(&Sent::Data(0, MSS, 0)));
}

/// No receiver obeys an inexact RST, even within the window (RFC 5961, section 3.2).
#[test]
fn an_inexact_rst_frees_nothing_and_is_no_more_lost_than_other_packets() {
    let mut path = hold();
    path.data(0, 3 * MSS);
    path.far_ack(MSS);
    path.down();
    assert_eq!(path.data(3 * MSS, MSS), TAKEN);
    let held = path.gateway.held();
    for at in [0, MSS + 1, 2 * MSS, 3 * MSS] {
        assert_eq!(path.rst(at), TAKEN);
    }
    assert_eq!(path.gateway.held(), held);
    path.up();
    path.after_ms(1_000);
    let sent = path.sent();
    assert!(sent.contains(&Sent::Data(3 * MSS, MSS, 0)), "{sent:?}");
    let reset = Sent::Control(TcpFlags::RST | TcpFlags::ACK);
    assert!(sent.contains(&reset), "{sent:?}");
}

#[test]
fn old_fins_end_no_connection() {
    let mut path = hold();
    path.data(0, 3 * MSS);
    path.far_ack(3 * MSS);
    path.far_data(0, MSS);
    path.near_ack(MSS);
    let old = with_fin(&path.data_packet(0, MSS));
    path.near_sends(&old);
    let old = with(&with_fin(&path.far_data_packet(0, MSS / 2)), |tcp| {
        tcp.ack += 3 * MSS;
    });
    path.far_sends(&old);
    path.down();
    assert_eq!(path.data(3 * MSS, MSS), TAKEN);
    path.up();
    assert!(path.sent().contains(&Sent::Data(3 * MSS, MSS, 0)));
}

/// A SYN far from the numbers of the connection, in the same direction.
fn far_off_syn(path: &Path) -> Packet {
    with(&path.data_packet(0, 0), |tcp| {
        tcp.flags = TcpFlags::SYN;
        tcp.seq += 2_000_000_000;
        tcp.ack.0 = 0;
    })
}

#[test]
fn a_syn_amid_a_connection_waits_for_the_link_and_harms_nothing() {
    let mut path = hold();
    path.down();
    assert_eq!(path.data(0, MSS), TAKEN);
    let held = path.gateway.held();
    let syn = far_off_syn(&path);
    assert_eq!(path.near_sends(&syn), TAKEN);
    assert_eq!(path.gateway.held(), held);
    path.up();
    path.after_ms(1_000);
    let sent = path.sent();
    assert!(sent.contains(&Sent::Data(0, MSS, 0)), "{sent:?}");
    assert!(sent.contains(&Sent::Control(TcpFlags::SYN)), "{sent:?}");
    // It was forged: the far host says what it expects, and the connection goes on.
    path.far_ack(MSS);
    assert_eq!(path.data(MSS, MSS), None);
    path.far_ack(2 * MSS);
    path.down();
    assert_eq!(path.data(2 * MSS, MSS), TAKEN);
}

/// Only where the far host could have answered for what is kept of the connection, and nobody has.
#[test]
fn another_connection_on_the_same_ports_begins_with_nothing_once_the_first_was_silent_for_long() {
    let mut path = hold();
    path.data(0, MSS);
    path.down();
    assert_eq!(path.data(MSS, MSS), TAKEN);
    let syn = far_off_syn(&path);
    assert_eq!(path.near_sends(&syn), TAKEN);
    let isn = syn.tcp().expect("a segment").seq;
    let answer = with(&path.far_data_packet(0, 0), |tcp| {
        tcp.flags = TcpFlags::SYN | TcpFlags::ACK;
        tcp.seq += 1_000_000_000;
        tcp.ack = isn + 1;
    });
    let far_isn = answer.tcp().expect("a segment").seq;
    let segment = |first: u32, len| {
        with(&path.data_packet(0, len), |tcp| {
            tcp.seq = isn + 1 + first;
            tcp.ack = far_isn + 1;
        })
    };
    let (of_handshake, data) = (segment(0, 0), [0, 1, 2, 3].map(|n| segment(n * MSS, MSS)));
    // Were it made up, it would look the same: during the outage it gets nothing.
    for pause in [1, 20_000, 20_000, 20_000] {
        path.far_sends(&answer);
        path.near_sends(&of_handshake);
        path.after_ms(pause);
        assert!(path.gateway.held() >= ByteCount(2 * 1_000));
    }
    path.up();
    path.after_ms(10);
    let first = Sent::Data(0, MSS, 0);
    assert!(path.sent().contains(&first), "what was kept goes out");
    for packet in &data[..3] {
        path.after_ms(15_000);
        path.far_sends(&answer);
        path.near_sends(packet);
    }
    assert!(path.gateway.held() <= LITTLE);
    path.sent();
    path.after_ms(60_000);
    assert_eq!(path.sent(), [], "nothing of the first one is left");
    let heard = with(&path.far_data_packet(0, 0), |tcp| {
        tcp.seq = far_isn + 1;
        tcp.ack = isn + 1 + 3 * MSS;
    });
    path.far_sends(&heard);
    path.down();
    assert_eq!(path.near_sends(&data[3]), TAKEN);
    path.up();
    assert_eq!(path.sent().len(), 1);
}

#[test]
fn data_with_fin_is_held_and_delivered() {
    let mut path = hold();
    path.down();
    let last = with_fin(&path.data_packet(0, MSS));
    assert_eq!(path.near_sends(&last), TAKEN);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
    // All data, but not the FIN: it is not over.
    path.far_ack(MSS);
    assert!(path.gateway.held() > ByteCount(0));
    path.far_ack(MSS + 1);
    assert!(path.gateway.held() <= LITTLE);
}

#[test]
fn a_connection_half_closed_by_the_near_host_still_hears_of_data() {
    let mut path = hold();
    let fin = with_fin(&path.data_packet(0, 0));
    assert_eq!(path.near_sends(&fin), None);
    path.after_ms(40);
    path.far_ack(1);
    path.far_data(0, MSS);
    path.down();
    let ack = with(&path.near_ack_packet(MSS), |tcp| tcp.seq += 1);
    assert_eq!(path.near_sends(&ack), TAKEN);
    path.after_ms(1_000);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
}

#[test]
fn a_connection_half_closed_by_the_far_host_still_delivers() {
    let mut path = hold();
    let fin = with_fin(&path.far_data_packet(0, 0));
    path.far_sends(&fin);
    assert_eq!(path.near_ack(1), None);
    path.after_ms(500);
    path.down();
    assert_eq!(path.data(0, MSS), TAKEN);
    let last = with_fin(&path.data_packet(MSS, MSS));
    assert_eq!(path.near_sends(&last), TAKEN);
    path.up();
    path.after_ms(10);
    assert_eq!(
        path.sent(),
        [Sent::Data(0, MSS, 500), Sent::Data(MSS, MSS, 500)]
    );
}

#[test]
fn the_last_acknowledgement_of_all_is_not_lost_with_the_link() {
    let mut path = hold();
    let fin = with_fin(&path.data_packet(0, 0));
    assert_eq!(path.near_sends(&fin), None);
    let far_fin = with(&with_fin(&path.far_data_packet(0, 0)), |tcp| tcp.ack += 1);
    path.far_sends(&far_fin);
    let last = with(&path.near_ack_packet(1), |tcp| tcp.seq += 1);
    assert_eq!(path.near_sends(&last), None);
    path.after_ms(200);
    path.down();
    path.drop_packet(&last);
    path.up();
    assert_eq!(path.sent(), [Sent::Ack(1)]);
}

#[test]
fn what_the_link_drops_of_half_a_connection_is_not_kept() {
    let mut path = Path::new(PathMechanismKind::Hold);
    assert_eq!(path.data(0, MSS), None);
    path.down();
    for n in 0..5 {
        path.dropped(n * MSS, MSS);
    }
    let gateway = &path.gateway;
    let kept = (gateway.held(), gateway.held_other());
    assert_eq!(kept, (ByteCount(0), ByteCount(0)));
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn a_syn_that_the_link_drops_goes_out_once_it_is_back() {
    let mut path = Path::new(PathMechanismKind::Hold);
    assert_eq!(path.syn(), None);
    path.down();
    let syn = with(&path.data_packet(0, 0), |tcp| {
        tcp.flags = TcpFlags::SYN;
        tcp.seq.0 -= 1;
    });
    path.drop_packet(&syn);
    path.up();
    assert!(matches!(path.sent()[..], [Sent::Control(_)]));
}

/// The far host's window is closed: it answers, and takes nothing.
#[test]
fn kicks_of_a_peer_with_a_closed_window_back_off() {
    let mut path = hold();
    path.data(0, MSS);
    path.after_ms(40);
    let closed = with(&path.far_packet_acking(MSS, &[]), |tcp| tcp.window = 0);
    path.far_sends(&closed);
    path.down();
    // A zero-window probe (RFC 9293, section 3.8.6.1).
    assert_eq!(path.data(MSS, 1), TAKEN);
    path.up();
    assert_eq!(path.sent_with_reasons()[0].1, SendReason::Kept);
    let mut kicks = Vec::new();
    let up = path.now();
    while path.now().since(up) < Duration::from_secs(120) {
        path.after_ms(20);
        for _ in path.sent() {
            kicks.push(path.now().since(up));
            path.far_sends(&closed);
        }
    }
    let pauses: Vec<_> = kicks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.is_sorted(), "pauses {pauses:?}");
    assert!((8..20).contains(&kicks.len()), "kicks after {kicks:?}");
    // The window opens, and the byte is taken.
    path.far_ack(MSS + 1);
    path.after_ms(600_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn a_segment_that_no_host_sends_takes_nobodys_place() {
    let mut path = Path::with_limits(
        PathMechanismKind::Hold,
        Limits {
            flows: 1,
            ..Limits::default()
        },
    );
    path.syn();
    assert_eq!(path.gateway.flows(), 1);
    path.use_port(9_999);
    let nonsense = [TcpFlags(0), TcpFlags::FIN, TcpFlags::SYN | TcpFlags::FIN];
    for (n, flags) in (1..).zip(nonsense) {
        let odd = with(&path.data_packet(0, 0), |tcp| tcp.flags = flags);
        assert_eq!(path.near_sends(&odd), None);
        let counters = path.gateway.counters();
        assert_eq!((counters.odd_segments, counters.flows_displaced), (n, 0));
    }
}

#[test]
fn a_receiver_says_in_its_syn_how_long_packets_may_be() {
    let mut path = Path::new(PathMechanismKind::Hold);
    let data = path.data_packet(0, 4 * MSS);
    let answer = path.far_data_packet(0, 4 * MSS);
    assert_eq!(path.gateway.longest_packet(&data, Direction::ToLink), None);
    path.open();
    let offers = |path: &mut Path, mss: Option<u16>| {
        let syn = path.far_data_packet(0, 0);
        let syn = with(&syn, |tcp| {
            tcp.flags = TcpFlags::SYN | TcpFlags::ACK;
            tcp.seq = tcp.seq - 1;
            tcp.options.mss = mss;
        });
        path.far_sends(&syn);
    };
    for (mss, longest) in [(Some(1000), 1040), (Some(1), 128), (None, 576)] {
        offers(&mut path, mss);
        let told = path.gateway.longest_packet(&data, Direction::ToLink);
        assert_eq!(told, Some(longest), "{mss:?}");
    }
    // The near host has offered nothing, which means the same.
    let told = path.gateway.longest_packet(&answer, Direction::FromLink);
    assert_eq!(told, Some(576));
}

#[test]
fn where_nobody_has_seen_a_syn_the_longest_packet_tells_how_long_others_may_be() {
    let mut path = Path::new(PathMechanismKind::Hold);
    let meet = |path: &mut Path| {
        assert_eq!(path.data(0, 100), None);
        path.far_ack(100);
    };
    meet(&mut path);
    let sent = path.data_packet(100, 4 * MSS);
    let longest = |path: &Path| path.gateway.longest_packet(&sent, Direction::ToLink);
    let full = |path: &Path, len| path.data_packet(100, len);
    // The last of what an application has written, and what is no data, tell nothing.
    let last = with(&full(&path, 1_200), |tcp| {
        tcp.flags = tcp.flags | TcpFlags::PSH;
    });
    for packet in [&last, &with_fin(&full(&path, 1_200)), &full(&path, 0)] {
        path.gateway.note_length(packet);
        assert_eq!(longest(&path), None);
    }
    for (len, told) in [(600, 600), (900, 900), (700, 900)] {
        let packet = full(&path, len);
        let headers = packet.total_len() - len;
        path.gateway.note_length(&packet);
        assert_eq!(longest(&path), Some(told + headers));
    }
    path.gateway.note_length(&last);
    assert_eq!(longest(&path), Some(last.total_len()), "it went as it was");
    let answer = path.far_data_packet(0, 4 * MSS);
    let told = path.gateway.longest_packet(&answer, Direction::FromLink);
    assert_eq!(told, None, "the other way nobody has sent");
}

/// Who tracks the connection elsewhere has seen its end, and another begin on its ports.
#[test]
fn what_was_kept_is_of_no_use_to_another_connection_that_is_handed_over() {
    let mut path = hold();
    path.down();
    for n in 0..5 {
        path.data(n * MSS, MSS);
    }
    let segment = path.data_packet(0, MSS);
    let key = FlowKey::of_tcp(segment.header(), Direction::ToLink).expect("TCP");
    let mut other = TcpFlow::new();
    let ours = segment.tcp().expect("a segment").clone();
    // Its numbers are nowhere near.
    let near = TcpHeader {
        seq: ours.seq + 2_000_000_000,
        ..ours
    };
    let answer = path.far_packet_acking(0, &[]);
    let far = TcpHeader {
        ack: near.seq,
        ..answer.tcp().expect("a segment").clone()
    };
    for (direction, tcp) in [(Direction::ToLink, &near), (Direction::FromLink, &far)] {
        let seen = other.observe(path.now(), direction, tcp, 0);
        assert!(seen.is_ok(), "{seen:?}");
    }
    path.gateway.adopt(path.now(), path.link, key, other);
    assert_eq!(path.gateway.held(), ByteCount(0));
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

/// Nobody waits for the acknowledgement of the last FIN but its sender, who repeats it.
#[test]
fn a_connection_that_is_over_is_kicked_once() {
    let mut path = hold();
    path.near_sends(&with_fin(&path.data_packet(0, 0)));
    path.after_ms(40);
    let fin = with(&path.far_data_packet(0, 0), |tcp| {
        tcp.flags = TcpFlags::FIN | TcpFlags::ACK;
        tcp.ack += 1;
    });
    path.far_sends(&fin);
    path.down();
    let last = with(&path.near_ack_packet(1), |tcp| tcp.seq += 1);
    assert_eq!(path.near_sends(&last), TAKEN);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), [Sent::Ack(1)]);
}

/// A sender in slow start has twice as much on its way as was ever acknowledged within one round trip.
#[test]
fn what_is_not_acknowledged_may_come_again_however_much_that_is() {
    let mut path = Path::new(PathMechanismKind::Hold);
    // Nobody has seen the connection begin.
    path.near_ack(0);
    path.far_ack(0);
    path.data(0, MSS);
    path.far_ack(MSS);
    path.after_ms(1_000);
    for n in 1..300 {
        assert_eq!(path.data(n * MSS, MSS), None);
    }
    path.down();
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::LinkDown));
}

/// Somebody off the path knows addresses and ports: his slivers tell nothing.
#[test]
fn a_segment_that_does_not_fit_its_connection_does_not_tell_how_long_others_may_be() {
    let mut path = Path::new(PathMechanismKind::Hold);
    assert_eq!(path.data(0, 100), None);
    path.far_ack(100);
    let sent = path.data_packet(100, 4 * MSS);
    // The last one guesses a number within the window.
    for first in [200_000, 2_000_000_000, 5_000] {
        let forged = path.data_packet(first, 1);
        path.near_sends(&forged);
        path.gateway.note_length(&forged);
        assert_eq!(path.gateway.longest_packet(&sent, Direction::ToLink), None);
    }
    let honest = path.data_packet(5_001, MSS);
    path.near_sends(&honest);
    path.gateway.note_length(&honest);
    let told = path.gateway.longest_packet(&sent, Direction::ToLink);
    assert_eq!(told, Some(honest.total_len()));
}
