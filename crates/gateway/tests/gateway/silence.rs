//! Silence: outages that nobody reports, how their end is found, and what a false alarm costs.

use crate::path::{LINK, MSS, Path, Sent, with};
use outlast_base::time::Duration;
use outlast_gateway::gateway::{Event, SilenceConfig, TimeoutReason};
use outlast_gateway::links::{Direction, Indicator, LinkEvent, LinkId, LinkState};
use outlast_gateway::mechanisms::path::{
    Level, PathMechanismKind, SendReason, TakeReason, Verdict,
};
use outlast_gateway::tracking::FlowKey;
use outlast_wire::tcp::Timestamps;
use outlast_wire::{Packet, TcpFlags};
use std::net::Ipv4Addr;

fn listening() -> Path {
    Path::listening(PathMechanismKind::Hold, SilenceConfig::default())
}

/// Five segments go into a link that is away; the sender's timeout is over, and it has repeated the
/// first one.
fn gone_silent(path: &mut Path) {
    for n in 0..5 {
        assert_eq!(path.data(n * MSS, MSS), None);
    }
    path.after_ms(250);
    assert_eq!(path.data(0, MSS), None);
    assert_eq!(path.gateway.silent_links().count(), 1);
}

/// What the gateway has sent besides probes and gathered answers, and how many probes.
fn sent(path: &mut Path) -> (Vec<Sent>, usize) {
    let all = path.sent_with_reasons();
    let probes = all
        .iter()
        .filter(|(_, reason)| *reason == SendReason::Probe);
    let probes = probes.count();
    let others = all
        .into_iter()
        .filter(|(_, reason)| !matches!(reason, SendReason::Probe | SendReason::Gathered));
    (others.map(|(sent, _)| sent).collect(), probes)
}

fn first_bytes(sent: &[Sent]) -> Vec<u32> {
    let first = |sent: &Sent| match sent {
        Sent::Data(first, ..) => first / MSS,
        other => panic!("{other:?} is no data"),
    };
    sent.iter().map(first).collect()
}

/// The far host's segment comes from the link.
fn comes(path: &mut Path, packet: &Packet) -> Verdict {
    let (now, link) = (path.now(), path.link);
    let from = Direction::FromLink;
    path.gateway.handle_packet(now, link, from, packet)
}

fn link_events(path: &mut Path) -> Vec<(LinkState, Indicator)> {
    std::iter::from_fn(|| path.gateway.poll_event())
        .filter_map(|event| match event {
            Event::Link(event) => Some((event.state, event.indicator)),
            _ => None,
        })
        .collect()
}

#[test]
fn repeated_data_raises_a_suspicion_once_an_answer_is_overdue() {
    let mut path = listening();
    path.data(0, MSS);
    // A tail loss probe, too early to say anything.
    path.after_ms(100);
    path.data(0, MSS);
    assert_eq!(path.gateway.silent_links().count(), 0);
    path.after_ms(120);
    let before = path.now();
    path.data(0, MSS);
    let silent: Vec<_> = path.gateway.silent_links().collect();
    assert_eq!(silent.len(), 1);
    assert_eq!(silent[0].link, LINK);
    assert_eq!(before.since(silent[0].since), Duration::from_millis(220));
    let (_, why) = path.gateway.poll_timeout().expect("it is asked");
    assert_eq!(why, TimeoutReason::Probe);
}

#[test]
fn a_link_that_answers_somebody_is_not_suspected() {
    let mut path = listening();
    path.data(0, MSS);
    path.after_ms(210);
    path.far_ack(0);
    path.after_ms(10);
    path.data(0, MSS);
    assert_eq!(path.gateway.silent_links().count(), 0);
}

#[test]
fn an_idle_link_owes_nothing() {
    let mut path = listening();
    path.after_ms(60_000);
    // After a minute without anything, data and a tail loss probe.
    path.data(0, MSS);
    path.after_ms(80);
    path.data(0, MSS);
    assert_eq!(path.gateway.silent_links().count(), 0);
    path.far_ack(MSS);
    path.after_ms(60_000);
    assert_eq!(sent(&mut path), (vec![], 0));
}

#[test]
fn a_probe_is_a_keep_alive_of_the_near_host() {
    let mut path = listening();
    path.far_data(0, 300);
    path.near_ack(300);
    gone_silent(&mut path);
    path.after_ms(50);
    let probe = std::iter::from_fn(|| path.gateway.poll_transmit())
        .find(|transmit| transmit.reason == SendReason::Probe)
        .expect("the first one");
    assert_eq!(probe.direction, Direction::ToLink);
    let tcp = probe.packet.tcp().expect("TCP").clone();
    assert_eq!(tcp.flags, TcpFlags::ACK);
    assert_eq!(tcp.seq + 1, path.near_number(0));
    assert_eq!(tcp.ack, path.far_number(300));
    assert_eq!(probe.packet.sequence_len(), 0);
    assert_eq!(probe.packet.total_len(), 52);
    assert_eq!(tcp.window, u16::MAX);
    let newest = Timestamps {
        value: 250,
        echo: 0,
    };
    assert_eq!(tcp.options.timestamps, Some(newest));
    assert!(probe.packet.checksums_ok());
}

#[test]
fn a_probe_offers_the_window_that_its_host_has_offered_last() {
    // Once the handshake was seen, once it was not, so that nobody knows the window's units.
    for is_begun_unseen in [false, true] {
        let mut path = listening();
        if is_begun_unseen {
            path.use_port(50_001);
        }
        path.far_data(0, 300);
        path.near_ack(300);
        path.far_ack(0);
        let narrow = |packet: Packet| {
            let ip = packet.header().ip;
            let mut tcp = packet.tcp().expect("TCP").clone();
            tcp.window = 5;
            Packet::tcp_segment(ip, tcp, &[0; MSS as usize])
        };
        for n in [0, 1, 0] {
            path.after_ms(250);
            let packet = narrow(path.data_packet(n * MSS, MSS));
            assert_eq!(path.near_sends(&packet), None);
        }
        path.after_ms(50);
        let probe = std::iter::from_fn(|| path.gateway.poll_transmit())
            .find(|transmit| transmit.reason == SendReason::Probe)
            .expect("the first one");
        assert_eq!(probe.packet.tcp().expect("TCP").window, 5);
    }
}

#[test]
fn nothing_is_withheld_on_a_suspicion() {
    let mut path = listening();
    gone_silent(&mut path);
    assert_eq!(path.data(5 * MSS, MSS), None);
    assert_eq!(path.near_ack(0), None);
    assert_eq!(path.datagram(9), None);
    path.after_ms(1_000);
    let (others, probes) = sent(&mut path);
    assert_eq!(others, []);
    // Round trips of 40 ms: every 30 ms.
    assert!((32..=34).contains(&probes), "{probes} probes");
}

#[test]
fn the_first_packet_brings_all_that_was_lost() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(10_000);
    path.near_ack(0);
    path.after_ms(100);
    sent(&mut path);
    link_events(&mut path);
    let answer = path.far_packet_acking(0, &[]);
    let taken = Verdict::Taken(TakeReason::AnswersProbe);
    assert_eq!(comes(&mut path, &answer), taken);
    path.after_ms(10);
    let (others, probes) = sent(&mut path);
    assert_eq!(probes, 0);
    assert_eq!(others[0], Sent::Ack(0));
    assert_eq!(first_bytes(&others[1..]), [0, 1, 2, 3, 4]);
    let silence = (LinkState::Down, Indicator::Silence);
    let first = (LinkState::Up, Indicator::FirstPacket);
    assert_eq!(link_events(&mut path), [silence, first]);
    assert_eq!(path.gateway.silent_links().count(), 0);
    path.far_ack(5 * MSS);
    path.after_ms(20_000);
    assert_eq!(sent(&mut path), (vec![], 0));
}

/// The last acknowledgement of another connection may be lost, however long the silence lasts, and its far host waits for it.
#[test]
fn the_first_packet_brings_the_last_acknowledgement_of_another_connection() {
    let mut path = listening();
    path.use_port(6_000);
    path.open();
    path.far_data(0, 300);
    path.near_ack(300);
    path.use_port(5_000);
    gone_silent(&mut path);
    path.after_ms(30_000);
    sent(&mut path);
    let answer = path.far_packet_acking(0, &[]);
    let _ = comes(&mut path, &answer);
    path.after_ms(10);
    let (others, _) = sent(&mut path);
    assert!(others.contains(&Sent::Ack(300)), "{others:?}");
}

#[test]
fn what_the_far_host_says_it_has_is_not_sent_again() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(2_000);
    sent(&mut path);
    let answer = path.far_packet_acking(MSS, &[(2 * MSS, 4 * MSS)]);
    let gathered = Verdict::Taken(TakeReason::Gathered);
    assert_eq!(comes(&mut path, &answer), gathered, "it is news");
    path.after_ms(10);
    assert_eq!(first_bytes(&sent(&mut path).0), [1]);
    let again = path.far_packet_acking(MSS, &[(2 * MSS, 4 * MSS)]);
    assert_eq!(comes(&mut path, &again), gathered);
    path.after_ms(10);
    assert_eq!(first_bytes(&sent(&mut path).0), [4]);
}

/// Five segments went into a link of which somebody says that it is down, and whose first packet
/// shows that it is back; what is sent then, and when the far host has acknowledged two of them.
fn back_by_its_first_packet(is_said_down: bool) -> [Vec<u32>; 2] {
    let mut path = listening();
    gone_silent(&mut path);
    if is_said_down {
        let link = path.link;
        let tell = |path: &mut Path, state, indicator| {
            let event = LinkEvent {
                link,
                state,
                indicator,
            };
            path.gateway.handle_link(path.now(), event);
        };
        tell(&mut path, LinkState::Down, Indicator::Neighbour);
        path.after_ms(2_000);
        sent(&mut path);
        tell(&mut path, LinkState::Up, Indicator::FirstPacket);
    } else {
        path.after_ms(2_000);
        sent(&mut path);
        path.far_ack(MSS);
    }
    path.after_ms(10);
    let first = first_bytes(&sent(&mut path).0);
    path.far_ack(2 * MSS);
    path.after_ms(10);
    [first, first_bytes(&sent(&mut path).0)]
}

#[test]
fn the_first_acknowledgement_settles_what_a_link_had_that_was_certainly_down() {
    assert_eq!(back_by_its_first_packet(true), [vec![0], vec![2, 3, 4]]);
    // If it was only silent, the others may be on their way still.
    assert_eq!(back_by_its_first_packet(false), [vec![1], vec![]]);
}

/// RFC 2883: what comes a second time came after all that was on the link before it.
#[test]
fn a_duplicate_of_what_was_sent_first_settles_what_a_silent_link_had() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(2_000);
    sent(&mut path);
    path.far_data(0, 100);
    path.after_ms(40);
    assert_eq!(first_bytes(&sent(&mut path).0), [0]);
    path.far_sack(2 * MSS, &[(0, MSS)]);
    path.after_ms(10);
    assert_eq!(first_bytes(&sent(&mut path).0), [2, 3, 4]);
}

#[test]
fn a_link_that_was_only_slow_costs_one_segment_and_the_newest_acknowledgement() {
    let mut path = listening();
    gone_silent(&mut path);
    path.near_ack(0);
    path.after_ms(1_750);
    sent(&mut path);
    // What had been queued somewhere is answered one by one.
    let mut all = Vec::new();
    for n in 1..=5 {
        path.far_ack(n * MSS);
        path.after_ms(5);
        all.extend(sent(&mut path).0);
    }
    // The probes come last; each was answered.
    for _ in 0..20 {
        let answer = path.far_packet_acking(5 * MSS, &[]);
        let taken = Verdict::Taken(TakeReason::AnswersProbe);
        assert_eq!(comes(&mut path, &answer), taken);
    }
    path.after_ms(5_000);
    all.extend(sent(&mut path).0);
    assert_eq!(all, [Sent::Ack(0), Sent::Data(MSS, MSS, 0)]);
}

#[test]
fn duplicates_that_the_near_host_has_to_count_pass_again_soon() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(1_000);
    path.far_ack(5 * MSS);
    path.after_ms(500);
    for n in 5..9 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(40);
    let duplicate = path.far_packet_acking(5 * MSS, &[]);
    assert_eq!(comes(&mut path, &duplicate), Verdict::Pass);
}

/// A sender without SACK that sends something new to find out whether its timeout was spurious (RFC
/// 5682, section 2.1) would wait for its next timeout.
#[test]
fn a_duplicate_for_what_the_near_host_has_just_sent_is_no_answer_to_a_probe() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(2_000);
    path.far_ack(MSS);
    path.after_ms(1);
    let duplicate = path.far_packet_acking(MSS, &[]);
    let taken = Verdict::Taken(TakeReason::AnswersProbe);
    assert_eq!(comes(&mut path, &duplicate), taken);
    path.data(5 * MSS, MSS);
    path.after_ms(40);
    assert_eq!(comes(&mut path, &duplicate), Verdict::Pass);
}

/// The gateway at the far host's end asks, too, in the far host's name: a keep-alive, of which the near host heeds nothing.
#[test]
fn what_only_a_keep_alive_has_acknowledged_is_news_to_the_near_host() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(2_000);
    assert!(sent(&mut path).1 > 2, "no probes");
    let answer = path.far_packet_acking(5 * MSS, &[]);
    let keep_alive = with(&answer, |tcp| tcp.seq = tcp.seq - 1);
    assert_eq!(comes(&mut path, &keep_alive), Verdict::Pass);
    let untimed = with(&answer, |tcp| tcp.options.timestamps = None);
    assert_eq!(comes(&mut path, &untimed), Verdict::Pass, "it is told now");
    let taken = Verdict::Taken(TakeReason::AnswersProbe);
    assert_eq!(comes(&mut path, &answer), taken, "that is known");
}

#[test]
fn a_window_that_changes_is_passed_on() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(1_000);
    let mut closed = path.far_packet_acking(0, &[]).edit();
    closed.set_window(0).expect("TCP");
    assert_eq!(comes(&mut path, &closed.finish()), Verdict::Pass);
}

/// Linux closes the window when its memory is used up, and opens it again to where it was. Its news of that was lost, and it
/// answers the near host's probe no sooner than half a second after the gateway's.
#[test]
fn a_window_that_opens_again_to_where_it_was_is_passed_on() {
    let mut path = listening();
    gone_silent(&mut path);
    let open = path.far_packet_acking(5 * MSS, &[]);
    assert_eq!(comes(&mut path, &open), Verdict::Pass);
    let mut closed = open.clone().edit();
    closed.set_window(0).expect("TCP");
    assert_eq!(comes(&mut path, &closed.finish()), Verdict::Pass);
    // The link goes silent again.
    path.data(5 * MSS, 1);
    path.after_ms(1_000);
    path.data(5 * MSS, 1);
    path.after_ms(1_000);
    assert!(sent(&mut path).1 > 1, "no probes");
    assert_eq!(comes(&mut path, &open), Verdict::Pass, "the window is open");
    let taken = Verdict::Taken(TakeReason::AnswersProbe);
    assert_eq!(comes(&mut path, &open), taken, "that is known");
}

#[test]
fn an_hour_of_silence_costs_a_bounded_number_of_small_packets() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(4 * 3_600_000);
    let (others, probes) = sent(&mut path);
    assert_eq!(others, []);
    assert!((3_000..6_500).contains(&probes), "{probes} probes");
    assert_eq!(path.gateway.silent_links().count(), 0, "given up");
    // Its sender tries again: to who has forgotten it, it is one-sided. Nobody takes the link for silent
    // because of it, but its own far host is asked for a while.
    path.data(0, MSS);
    path.after_ms(1_000);
    path.data(0, MSS);
    path.after_ms(3_600_000);
    let (others, probes) = sent(&mut path);
    assert_eq!(others, []);
    assert!((500..1_000).contains(&probes), "{probes} probes");
    assert_eq!(path.gateway.silent_links().count(), 0);
}

#[test]
fn without_probes_a_link_is_back_when_somebody_sends() {
    let silence = SilenceConfig {
        probes_per_second: 0,
        ..SilenceConfig::default()
    };
    let mut path = Path::listening(PathMechanismKind::Hold, silence);
    gone_silent(&mut path);
    path.after_ms(5_000);
    assert_eq!(sent(&mut path), (vec![], 0));
    path.far_data(0, 10);
    path.after_ms(10);
    assert_eq!(first_bytes(&sent(&mut path).0), [0]);
    // It had nothing to say of what was sent to it: that is doubted for its round trip.
    path.after_ms(500);
    assert_eq!(first_bytes(&sent(&mut path).0)[..4], [1, 2, 3, 4]);
}

#[test]
fn strangers_can_have_a_probe_sent_and_nothing_else() {
    let mut path = listening();
    gone_silent(&mut path);
    path.after_ms(3_000);
    sent(&mut path);
    // A segment of nobody's window, without the far host's number, and a datagram.
    let (now, link) = (path.now(), path.link);
    let beyond = path.far_packet_acking(50 * MSS, &[]);
    let beyond = with(&beyond, |tcp| tcp.seq += 1);
    assert_eq!(comes(&mut path, &beyond), Verdict::Pass);
    let datagram = path.datagram_packet(4);
    let from = Direction::FromLink;
    for _ in 0..100 {
        let verdict = path.gateway.handle_packet(now, link, from, &datagram);
        assert_eq!(verdict, Verdict::Pass);
    }
    path.after_ms(19);
    let (others, probes) = sent(&mut path);
    assert_eq!(others, []);
    assert!(probes <= 1, "{probes} probes");
    assert_eq!(path.gateway.silent_links().count(), 1);
}

#[test]
fn a_dead_far_host_costs_its_neighbours_one_false_alarm() {
    let mut path = listening();
    // Another connection, that is idle, with the timestamps of its last segment.
    path.use_port(6_000);
    path.open();
    path.after_ms(1_000);
    path.use_port(5_000);
    path.data(0, MSS);
    let mut timeout = 250;
    let (mut others, mut probes) = (Vec::new(), 0);
    while timeout < 60_000 {
        path.after_ms(timeout);
        path.data(0, MSS);
        timeout *= 2;
        path.after_ms(90);
        // The idle one answers if it is asked.
        let asked: Vec<_> = std::iter::from_fn(|| path.gateway.poll_transmit()).collect();
        for transmit in asked {
            if transmit.reason != SendReason::Probe {
                others.push(transmit.packet);
                continue;
            }
            probes += 1;
            if transmit.packet.tcp().expect("TCP").source_port == 6_000 {
                path.use_port(6_000);
                let answer = path.far_packet_acking(0, &[]);
                let _ = comes(&mut path, &answer);
                path.use_port(5_000);
            }
        }
    }
    assert!((2..=4).contains(&probes), "{probes} probes");
    assert_eq!(path.gateway.counters().silences, 1);
    let segments: u32 = others.iter().map(|p| p.header().payload_len).sum();
    // The kick, and its repetitions: their pause doubles, as the sender's own does.
    assert!((MSS..=12 * MSS).contains(&segments), "{segments} bytes");
}

#[test]
fn links_of_one_interface_share_what_may_be_sent() {
    let mut path = listening();
    for last in 0..100 {
        path.link = LinkId {
            peer: Some(Ipv4Addr::new(192, 0, 2, last).into()),
            ..LINK
        };
        path.use_port(7_000 + u16::from(last));
        path.open();
        path.data(0, MSS);
    }
    path.after_ms(300);
    for last in 0..100 {
        path.link = LinkId {
            peer: Some(Ipv4Addr::new(192, 0, 2, last).into()),
            ..LINK
        };
        path.use_port(7_000 + u16::from(last));
        path.data(0, MSS);
    }
    assert_eq!(path.gateway.silent_links().count(), 100);
    path.after_ms(10_000);
    let ports = path.sent_ports();
    assert!((495..=505).contains(&ports.len()), "{} probes", ports.len());
    for last in 0..100 {
        let own = ports.iter().filter(|port| **port == 7_000 + last).count();
        assert!((4..=6).contains(&own), "{own} for peer {last}");
    }
}

#[test]
fn who_knows_better_ends_the_suspicion() {
    let mut path = listening();
    gone_silent(&mut path);
    path.down();
    assert_eq!(path.gateway.silent_links().count(), 0);
    sent(&mut path);
    path.after_ms(2_000);
    assert_eq!(sent(&mut path), (vec![], 0));
    path.up();
    path.after_ms(10);
    assert_eq!(first_bytes(&sent(&mut path).0), [0]);
}

#[test]
fn who_sees_the_packets_instead_may_tell_of_silence() {
    let mut path = listening();
    for n in 0..3 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(300);
    let (now, since) = (path.now(), path.now() - Duration::from_millis(280));
    let segment = path.data_packet(0, MSS);
    let flow = FlowKey::of_tcp(segment.header(), Direction::ToLink).expect("TCP");
    assert!(path.gateway.handle_silence(now, &flow, since));
    let silent: Vec<_> = path.gateway.silent_links().collect();
    assert_eq!((silent.len(), silent[0].since), (1, since));
    let mut nobody = flow;
    nobody.near.set_port(1);
    assert!(!path.gateway.handle_silence(now, &nobody, since));
    path.after_ms(100);
    assert!(sent(&mut path).1 >= 3);
    let answer = path.far_packet_acking(0, &[]);
    let _ = comes(&mut path, &answer);
    path.after_ms(10);
    assert_eq!(first_bytes(&sent(&mut path).0), [0, 1, 2]);
}

#[test]
fn the_gateways_own_repetitions_show_silence_too() {
    let mut path = listening();
    path.down();
    path.data(0, MSS);
    path.after_ms(1_000);
    path.up();
    // The link went away again, and the sender waits for its next timeout.
    path.after_ms(2_000);
    assert_eq!(path.gateway.silent_links().count(), 1);
}

#[test]
fn the_smart_link_layer_kicks_after_silence() {
    for (level, copies) in [(Level::Three, 1), (Level::Four, 5)] {
        let kind = PathMechanismKind::SmartLink(level);
        let mut path = Path::listening(kind, SilenceConfig::default());
        gone_silent(&mut path);
        path.after_ms(3_000);
        sent(&mut path);
        let answer = path.far_packet_acking(0, &[]);
        let _ = comes(&mut path, &answer);
        path.after_ms(10);
        assert_eq!(sent(&mut path).0.len(), copies);
    }
    let kind = PathMechanismKind::SmartLink(Level::One);
    let mut path = Path::listening(kind, SilenceConfig::default());
    path.far_ack(0);
    gone_silent(&mut path);
    path.after_ms(300);
    path.data(0, MSS);
    sent(&mut path);
    let answer = path.far_packet_acking(0, &[]);
    let _ = comes(&mut path, &answer);
    path.after_ms(10);
    assert_eq!(sent(&mut path).0, [Sent::Rereceived(0)]);
}

#[test]
fn a_frozen_connection_waits_for_a_silent_mobile_however_long_it_takes() {
    let kind = PathMechanismKind::ZeroWindowAck;
    let mut path = Path::listening(kind, SilenceConfig::default());
    path.data(0, MSS);
    path.after_ms(340);
    assert_eq!(path.gateway.counters().freezes, 1);
    // The kept segment is not answered either.
    path.after_ms(1_000);
    assert_eq!(path.gateway.silent_links().count(), 1);
    sent(&mut path);
    for _ in 0..6 {
        path.after_ms(100_000);
        // Linux's probe of a closed window.
        let mut probe = path.near_ack_packet(0).edit();
        let _ = probe.set_seq(path.near_number(MSS) - 1);
        assert_eq!(path.near_sends(&probe.finish()), None);
        assert_eq!(sent(&mut path).0, [Sent::Rereceived(MSS)]);
    }
    assert_eq!(path.gateway.counters().resets, 0);
    let answer = path.far_packet_acking(0, &[]);
    let _ = comes(&mut path, &answer);
    assert_eq!(sent(&mut path).0, [Sent::Data(0, MSS, 0)]);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(60_000);
    assert_eq!(sent(&mut path), (vec![], 0));
    assert_eq!(path.gateway.counters().resumes, 1);
}

#[test]
fn a_mobile_that_never_answers_is_given_up_in_the_end() {
    let kind = PathMechanismKind::ZeroWindowAck;
    let mut path = Path::listening(kind, SilenceConfig::default());
    path.data(0, MSS);
    path.after_ms(2_000);
    for _ in 0..80 {
        path.after_ms(60_000);
        let mut probe = path.near_ack_packet(0).edit();
        let _ = probe.set_seq(path.near_number(MSS) - 1);
        path.near_sends(&probe.finish());
    }
    assert_eq!(path.gateway.counters().resets, 1);
}

/// Its host's timer has backed off to seconds. Nobody but another connection shows that the link is back.
#[test]
fn a_connection_that_opens_meanwhile_is_answered_when_the_link_is_back() {
    let mut path = listening();
    path.use_port(6_000);
    assert_eq!(path.syn(), None);
    path.use_port(5_000);
    gone_silent(&mut path);
    path.use_port(6_000);
    for _ in 0..3 {
        assert_eq!(
            path.syn(),
            None,
            "it passes, in case that the link is not away"
        );
        path.after_ms(2_000);
    }
    path.use_port(5_000);
    sent(&mut path);
    path.far_ack(0);
    path.after_ms(40);
    let (sent, _) = sent(&mut path);
    assert!(sent.contains(&Sent::Control(TcpFlags::SYN)), "{sent:?}");
}
