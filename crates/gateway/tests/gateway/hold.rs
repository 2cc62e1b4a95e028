//! `hold`: what is kept, in which order it is sent, and when a kick is repeated.

use crate::path::{MSS, Path, Sent};
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};

const TAKEN: Option<TakeReason> = Some(TakeReason::LinkDown);

fn hold() -> Path {
    Path::established(PathMechanismKind::Hold)
}

/// The first bytes of the segments towards the link, in units of [`MSS`]; what the near host hears is left out.
fn bytes_of(sent: &[Sent]) -> Vec<u32> {
    sent.iter()
        .filter(|sent| !matches!(sent, Sent::Rereceived(_)))
        .map(|sent| match sent {
            Sent::Data(first, ..) => *first / MSS,
            other => panic!("{other:?} is no data"),
        })
        .collect()
}

#[test]
fn what_arrives_while_the_link_is_down_is_delivered_in_order() {
    let mut path = hold();
    path.down();
    for n in [0, 1, 2, 4, 3] {
        assert_eq!(path.data(n * MSS, MSS), TAKEN);
    }
    path.after_ms(5_000);
    assert_eq!(path.sent(), []);
    path.up();
    path.after_ms(10);
    assert_eq!(bytes_of(&path.sent()), [0, 1, 2, 3, 4]);
}

#[test]
fn what_the_link_dropped_goes_at_once_and_what_may_have_arrived_waits_for_the_peers_word() {
    let mut path = hold();
    for n in 0..6 {
        path.data(n * MSS, MSS);
    }
    path.down();
    path.dropped(4 * MSS, MSS);
    path.dropped(5 * MSS, MSS);
    path.after_ms(2_000);
    path.up();
    path.after_ms(10);
    // The oldest in any case, then those that were certainly lost.
    assert_eq!(bytes_of(&path.sent()), [0, 4, 5]);
    path.after_ms(10);
    path.far_ack(2 * MSS);
    path.after_ms(10);
    assert_eq!(bytes_of(&path.sent()), [2, 3]);
}

#[test]
fn without_the_peers_word_a_round_trip_settles_it() {
    let mut path = hold();
    for n in 0..4 {
        path.data(n * MSS, MSS);
    }
    path.down();
    path.after_ms(2_000);
    path.up();
    path.after_ms(39);
    assert_eq!(bytes_of(&path.sent()), [0]);
    path.after_ms(200);
    assert_eq!(bytes_of(&path.sent())[..3], [1, 2, 3]);
}

#[test]
fn what_the_peer_has_is_not_sent_again() {
    let mut path = hold();
    for n in 0..6 {
        path.data(n * MSS, MSS);
    }
    path.far_sack(MSS, &[(3 * MSS, 5 * MSS)]);
    path.down();
    for n in 0..6 {
        path.dropped(n * MSS, MSS);
    }
    path.after_ms(2_000);
    path.up();
    path.after_ms(30);
    assert_eq!(bytes_of(&path.sent()), [1, 2, 5]);
}

#[test]
fn the_newest_acknowledgement_goes_before_all_data() {
    let mut path = hold();
    path.far_data(0, MSS);
    path.down();
    path.data(0, MSS);
    assert_eq!(path.near_ack(0), TAKEN);
    assert_eq!(path.near_ack(MSS), TAKEN);
    path.up();
    let sent = path.sent_with_reasons();
    assert_eq!(sent[0], (Sent::Ack(MSS), SendReason::NewestAck));
    assert_eq!(sent[1].0, Sent::Data(0, MSS, 0));
    assert_eq!(sent.len(), 2);
}

#[test]
fn an_acknowledgement_that_was_on_the_link_when_it_went_down_is_sent_again() {
    let mut path = hold();
    path.far_data(0, MSS);
    path.near_ack(MSS);
    path.after_ms(5);
    path.down();
    path.after_ms(1_000);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
}

#[test]
fn an_idle_connection_is_left_alone() {
    let mut path = hold();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(10_000);
    path.down();
    path.after_ms(10_000);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

/// PAWS (RFC 7323, section 5.3): a receiver that takes the retransmission's timestamp first
/// rejects the older ones that follow.
#[test]
fn timestamps_never_go_back_within_what_is_sent() {
    let mut path = hold();
    path.down();
    for n in 0..3 {
        path.data(n * MSS, MSS);
        path.after_ms(1);
    }
    path.after_ms(300);
    path.data(0, MSS);
    path.up();
    path.after_ms(10);
    let stamps: Vec<u32> = path
        .sent()
        .iter()
        .map(|sent| match sent {
            Sent::Data(.., stamp) => *stamp,
            other => panic!("{other:?} is no data"),
        })
        .collect();
    assert_eq!(stamps, [0, 1, 2]);
}

#[test]
fn a_segment_that_stands_alone_goes_in_its_freshest_copy() {
    let mut path = hold();
    path.data(0, 64);
    path.down();
    path.after_ms(300);
    path.data(0, 64);
    path.after_ms(600);
    path.data(0, 64);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, 64, 900)]);
}

#[test]
fn a_kick_that_was_lost_is_repeated_with_back_off_until_the_flow_moves() {
    let mut path = hold();
    path.data(0, MSS);
    path.down();
    path.after_ms(300);
    path.data(0, MSS);
    path.after_ms(700);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 300)]);
    let mut kicks = Vec::new();
    let up = path.now();
    while path.now().since(up) < Duration::from_secs(5) {
        path.after_ms(10);
        for (sent, reason) in path.sent_with_reasons() {
            assert_eq!(
                (sent, reason),
                (Sent::Data(0, MSS, 300), SendReason::RepeatedKick)
            );
            kicks.push(path.now().since(up).as_millis());
        }
    }
    assert!((4..=6).contains(&kicks.len()), "kicks after {kicks:?} ms");
    let pauses: Vec<_> = kicks.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert!(pauses.is_sorted(), "pauses {pauses:?} ms");
    path.far_ack(MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
    assert!(
        path.resumed_after()
            .is_some_and(|after| after >= Duration::from_secs(5))
    );
}

/// What the far host has sent was acknowledged while the link was down.
fn acknowledged_while_away() -> Path {
    let mut path = hold();
    path.far_data(0, MSS);
    path.down();
    path.near_ack(MSS);
    path
}

#[test]
fn a_repeated_acknowledgement_comes_with_three_duplicates_and_ends() {
    let mut path = acknowledged_while_away();
    path.up();
    assert_eq!(path.sent(), [Sent::Ack(MSS)]);
    path.after_ms(1_000);
    let again = path.sent();
    assert!(again.len() >= 4 && again.iter().all(|sent| *sent == Sent::Ack(MSS)));
    path.after_ms(600_000);
    assert!(path.sent().len() <= 5 * 4);
    path.after_ms(600_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn new_data_from_the_far_host_ends_the_kicks() {
    let mut path = acknowledged_while_away();
    path.after_ms(1_000);
    path.up();
    path.after_ms(45);
    path.far_data(MSS, MSS);
    path.after_ms(600_000);
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
    assert_eq!(path.resumed_after(), Some(Duration::from_millis(45)));
}

#[test]
fn fresh_data_waits_behind_what_was_kept() {
    let mut path = hold();
    path.down();
    for n in 0..40 {
        path.data(n * MSS, MSS);
    }
    path.up();
    let first = path.sent().len() as u32;
    assert!(first < 40, "the link's pace lets {first} through at once");
    assert_eq!(path.data(40 * MSS, MSS), Some(TakeReason::BehindKept));
    path.after_ms(200);
    let rest: Vec<u32> = (first..=40).collect();
    assert_eq!(bytes_of(&path.sent())[..rest.len()], rest);
    assert_eq!(path.data(41 * MSS, MSS), None);
}

#[test]
fn a_retransmission_of_what_was_just_resent_is_not_forwarded() {
    let mut path = hold();
    path.down();
    path.data(0, MSS);
    path.after_ms(1_000);
    path.up();
    path.after_ms(5);
    assert_eq!(path.data(0, MSS), Some(TakeReason::JustResent));
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
    path.after_ms(40);
    assert_eq!(path.data(0, MSS), None);
}

/// As at a gateway that a mobile host has come to: what is re-sent there may be lost in its queue, and
/// nobody but the sender repeats it.
#[test]
fn a_retransmission_passes_as_long_as_nobody_knows_the_round_trip() {
    let mut path = Path::new(PathMechanismKind::Hold);
    path.data(0, MSS);
    path.far_ack(0);
    path.down();
    assert_eq!(path.data(0, MSS), Some(TakeReason::LinkDown));
    path.after_ms(1_000);
    path.up();
    path.after_ms(5);
    assert!(path.sent().contains(&Sent::Data(0, MSS, 0)));
    assert_eq!(path.data(0, MSS), None);
}

#[test]
fn what_is_sent_keeps_to_the_links_pace() {
    let mut path = hold();
    path.down();
    for n in 0..60 {
        path.data(n * MSS, MSS);
    }
    path.up();
    path.after_ms(20);
    // 12.5 Mbit/s carry 29 packets of 1,052 bytes in 20 ms; twelve may be ahead of their time.
    let sent = path.sent().len();
    assert!((29..=42).contains(&sent), "{sent} packets in 20 ms");
}

#[test]
fn a_connection_opened_while_the_link_is_down_begins_at_link_up() {
    let mut path = Path::new(PathMechanismKind::Hold);
    path.down();
    assert_eq!(path.syn(), TAKEN);
    path.after_ms(1_000);
    path.up();
    assert!(matches!(path.sent()[..], [Sent::Control(_)]));
}

#[test]
fn an_abort_while_the_link_is_down_is_told_at_link_up() {
    let mut path = hold();
    path.data(0, MSS);
    path.down();
    assert_eq!(path.rst(MSS), TAKEN);
    assert_eq!(path.gateway.held().as_u64(), 0);
    path.up();
    assert!(matches!(path.sent()[..], [Sent::Control(_)]));
}

#[test]
fn the_control_run_keeps_nothing() {
    let mut path = Path::established(PathMechanismKind::None);
    path.data(0, MSS);
    path.down();
    assert_eq!(path.data(0, MSS), None);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn a_sender_that_timed_out_hears_the_last_acknowledgement_while_the_link_is_down() {
    let mut path = hold();
    path.data(0, MSS);
    path.data(MSS, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.down();
    path.after_ms(2_000);
    assert_eq!(
        path.sent(),
        [],
        "a duplicate before the timeout would count as a loss"
    );
    path.data(MSS, MSS);
    path.after_ms(1_000);
    assert_eq!(path.sent(), [Sent::Rereceived(MSS); 4]);
    path.after_ms(60_000);
    assert_eq!(path.sent().len(), 42 - 4, "bounded for each outage");
}

#[test]
fn a_sender_without_outstanding_data_hears_nothing() {
    let mut path = hold();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.down();
    path.data(0, MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn copies_older_than_what_the_receiver_echoes_are_not_sent() {
    let mut path = hold();
    path.data(0, MSS);
    path.data(MSS, MSS);
    path.after_ms(300);
    // A retransmission with a fresh timestamp has arrived, and its echo come back.
    path.data(0, MSS);
    path.far_ack_echoing(MSS, 300);
    path.after_ms(5);
    path.data(2 * MSS, MSS);
    path.down();
    path.dropped(MSS, MSS);
    path.dropped(2 * MSS, MSS);
    path.up();
    path.after_ms(10);
    assert_eq!(path.sent(), [Sent::Data(2 * MSS, MSS, 305)]);
}

#[test]
fn an_echo_of_what_was_never_sent_changes_nothing() {
    let mut path = hold();
    path.down();
    for n in 0..3 {
        path.data(n * MSS, MSS);
    }
    path.far_ack_echoing(0, 1_000_000);
    path.up();
    path.after_ms(10);
    assert_eq!(bytes_of(&path.sent()), [0, 1, 2]);
}

#[test]
fn a_drop_that_is_told_after_link_up_is_mended_at_once() {
    let mut path = hold();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(1_000);
    path.down();
    path.up();
    path.after_ms(200);
    assert_eq!(path.data(MSS, MSS), None);
    path.dropped(MSS, MSS);
    path.after_ms(5);
    assert_eq!(bytes_of(&path.sent()), [1]);
}

#[test]
fn a_short_repetition_within_a_segment_that_is_half_acknowledged_has_arrived() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.down();
    path.data(0, MSS);
    path.data(100, 1);
    path.far_ack(455);
    path.up();
    path.after_ms(1);
    let sent = path.sent();
    assert_eq!(sent.len(), 1, "{sent:?}");
    assert!(matches!(sent[..], [Sent::Data(0, MSS, _)]), "{sent:?}");
}

#[test]
fn without_a_hole_all_of_what_is_kept_goes_in_order() {
    let mut path = hold();
    path.data(0, MSS);
    path.down();
    for n in 1..20 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(1_000);
    // A copy with a newer timestamp than the others changes nothing, as long as the first one is valid.
    path.data(0, MSS);
    path.up();
    path.after_ms(30);
    assert_eq!(bytes_of(&path.sent()), (0..20).collect::<Vec<_>>());
}

/// Many others keep an acknowledgement waiting for longer than a kick takes. Meanwhile its host has
/// repeated what had arrived already: when the episode is over, it stands in line with nothing to send,
/// and a turn for nothing would be followed by another one for ever.
#[test]
fn an_acknowledgement_that_waits_long_goes_out_and_an_empty_line_has_no_turn() {
    let rate = BitRate::from_bits_per_second(64_000);
    let mut path = Path::with_rate(PathMechanismKind::Hold, Limits::default(), rate);
    let own = 7_000;
    for port in (6_000..6_060).chain([own]) {
        path.use_port(port);
        path.open();
    }
    path.after_ms(2_000);
    path.data(0, MSS);
    path.down();
    for port in 6_000..6_060 {
        path.use_port(port);
        path.far_data(0, 100);
        assert_eq!(path.near_ack(100), TAKEN);
    }
    path.use_port(own);
    path.far_data(0, 100);
    assert_eq!(path.near_ack(100), TAKEN);
    path.after_ms(1_000);
    path.up();
    path.after_ms(10);
    assert_eq!(path.data(0, MSS), Some(TakeReason::BehindKept));
    // It had arrived, and its acknowledgement was under way for long.
    path.far_ack(MSS);
    let mut of_own = 0;
    for _ in 0..300 {
        path.after_ms(10);
        for port in path.sent_ports() {
            of_own += usize::from(port == own);
            if port != own {
                path.use_port(port);
                path.far_data(100, 100);
            }
        }
    }
    assert_eq!(of_own, 1, "the acknowledgement, once");
    path.after_ms(600_000);
    assert_eq!(path.sent(), []);
}

/// Whether it was sent by its host or by the gateway, it is on the link when that goes.
#[test]
fn an_acknowledgement_that_the_gateway_had_just_sent_when_the_link_went_is_sent_again() {
    let mut path = acknowledged_while_away();
    path.after_ms(1_000);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
    path.after_ms(5);
    path.down();
    path.after_ms(1_000);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
}

/// A connection with data under way whose link goes away and comes back; `sends` segments of it went out before.
fn back_without(permits_sack: bool, sends: u32) -> Path {
    back_after_ms(2_000, permits_sack, sends)
}

fn back_after_ms(away: u64, permits_sack: bool, sends: u32) -> Path {
    let path = Path::new(PathMechanismKind::Hold);
    let mut path = match permits_sack {
        true => path.settled(),
        false => path.without_sack().settled(),
    };
    for n in 0..sends {
        assert_eq!(path.data(n * MSS, MSS), None);
    }
    path.down();
    path.after_ms(away);
    path.up();
    path.after_ms(10);
    assert_eq!(bytes_of(&path.sent()), [0]);
    path.after_ms(10);
    path.far_ack(2 * MSS);
    path.after_ms(10);
    path
}

#[test]
fn without_sack_the_oldest_segment_alone_is_lost_as_long_as_the_link_delivers() {
    let mut with_sack = back_without(true, 8);
    assert_eq!(bytes_of(&with_sack.sent()), [2, 3, 4, 5, 6, 7]);
    let mut path = back_without(false, 8);
    assert_eq!(bytes_of(&path.sent()), [2]);
    for n in 4..7 {
        path.far_ack(n * MSS);
        path.after_ms(15);
        assert_eq!(path.sent(), []);
    }
    // No more comes: what the link has kept has arrived.
    path.after_ms(100);
    assert_eq!(bytes_of(&path.sent()), [6, 7]);
}

/// New data would draw duplicates, by which it fills one hole with a timestamp that makes all copies too old.
#[test]
fn without_sack_the_sender_waits_until_it_is_heard_that_the_link_has_kept_nothing() {
    let mut path = back_without(false, 8);
    assert_eq!(bytes_of(&path.sent()), [2]);
    // What it repeats waits, too.
    for n in [5, 8, 9] {
        assert_eq!(path.data(n * MSS, MSS), Some(TakeReason::BehindKept));
    }
    assert_eq!(path.sent(), []);
    path.after_ms(15);
    assert_eq!(bytes_of(&path.sent()), [3, 4, 5, 6, 7, 8, 9]);
}

/// Each new segment draws a duplicate, which says nothing of what the link had kept.
#[test]
fn without_sack_what_the_sender_goes_on_to_send_does_not_look_like_what_the_link_had_kept() {
    let mut path = back_without(false, 8);
    assert_eq!(bytes_of(&path.sent()), [2]);
    path.far_ack(4 * MSS);
    for n in 8..12 {
        assert_eq!(path.data(n * MSS, MSS), Some(TakeReason::BehindKept));
    }
    assert_eq!(bytes_of(&path.sent()), [8, 9, 10, 11]);
    let mut sent = Vec::new();
    for _ in 0..4 {
        path.after_ms(20);
        path.far_ack(4 * MSS);
        sent.extend(bytes_of(&path.sent()));
    }
    assert_eq!(sent, [4, 5, 6, 7]);
}

/// More duplicates than were sent since: the link had kept something.
#[test]
fn without_sack_surplus_duplicates_show_that_the_link_delivers() {
    let mut path = back_without(false, 8);
    assert_eq!(bytes_of(&path.sent()), [2]);
    for _ in 0..16 {
        path.far_ack(2 * MSS);
        path.after_ms(5);
        assert_eq!(bytes_of(&path.sent()), []);
    }
}

#[test]
fn without_sack_the_sender_hears_once_that_the_queue_is_full() {
    for permits_sack in [true, false] {
        let mut path = back_without(permits_sack, 40);
        path.far_ack(4 * MSS);
        path.after_ms(100);
        let taken = path.data(40 * MSS, MSS);
        assert_eq!(taken == Some(TakeReason::FullQueue), !permits_sack);
        assert_ne!(path.data(41 * MSS, MSS), Some(TakeReason::FullQueue));
    }
}

/// After an outage of `away`, two segments are missing of what was sent since, and nothing draws their repetition.
fn standing_still(away: u64, permits_sack: bool) -> Path {
    standing_still_echoing(away, permits_sack, 2_000)
}

/// The far host has taken a segment with the timestamp `echo`.
fn standing_still_echoing(away: u64, permits_sack: bool, echo: u32) -> Path {
    let mut path = back_after_ms(away, permits_sack, 8);
    path.far_ack(8 * MSS);
    path.after_ms(1_000);
    path.sent();
    for n in 8..20 {
        assert_eq!(path.data(n * MSS, MSS), None);
    }
    path.after_ms(20);
    // Its sender has repeated the first of three holes, and the far host has it.
    path.data(10 * MSS, MSS);
    path.far_ack_echoing(12 * MSS, echo);
    path
}

#[test]
fn holes_are_filled_for_a_sender_without_sack_that_stands_still() {
    for (away, permits_sack) in [(4_000, true), (2_000, false)] {
        let mut left_alone = standing_still(away, permits_sack);
        left_alone.after_ms(5_000);
        assert_eq!(left_alone.sent(), [], "SACK, or a short timeout");
    }
    let mut path = standing_still(4_000, false);
    path.after_ms(100);
    assert_eq!(path.sent(), [], "its sender may still do it");
    path.after_ms(1_000);
    let sent = path.sent();
    assert_eq!(bytes_of(&sent[..1]), [12]);
    path.far_ack(15 * MSS);
    path.after_ms(1);
    assert_eq!(bytes_of(&path.sent()), [15]);
    // Its sender is awake.
    path.data(16 * MSS, MSS);
    path.far_ack(16 * MSS);
    path.after_ms(1);
    assert_eq!(path.sent(), []);
}

/// The copies get the newest timestamp that the far host has echoed.
#[test]
fn holes_are_filled_one_after_the_other_though_all_copies_are_too_old() {
    let mut path = standing_still_echoing(4_000, false, 5_050);
    path.after_ms(1_000);
    assert_eq!(bytes_of(&path.sent()[..1]), [12]);
    for n in 13..19 {
        path.far_ack_echoing(n * MSS, 5_050);
        path.after_ms(1);
        assert_eq!(bytes_of(&path.sent()), [n]);
    }
}

/// The sender fills a hole with a new timestamp, and then no more: what the gateway has is too old to go out by itself.
#[test]
fn holes_are_filled_for_a_sender_that_stands_still_amid_what_the_link_has_lost() {
    let mut path = back_after_ms(4_000, false, 8);
    assert_eq!(bytes_of(&path.sent()), [2]);
    path.far_ack(4 * MSS);
    assert_eq!(path.data(4 * MSS, MSS), None);
    path.after_ms(10);
    path.far_ack_echoing(5 * MSS, 4_030);
    path.after_ms(200);
    assert_eq!(path.sent(), [], "its sender may still do it");
    path.after_ms(300);
    assert_eq!(bytes_of(&path.sent()), [5]);
}
