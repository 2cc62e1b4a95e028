//! `m-tcp`: what the fixed host is told, when its window shrinks, and what the mobile gets again.

use crate::path::{LITTLE, MSS, Path, Sent};
use outlast_base::units::ByteCount;
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::{PathMechanismKind, SendReason, TakeReason};
use outlast_wire::TcpFlags;
use proptest::prelude::*;

fn path() -> Path {
    Path::established(PathMechanismKind::MTcp)
}

/// What the gateway sends, as the tests here want to read it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Said {
    /// To the fixed host: everything before this byte has arrived, and the window field.
    Ack(u32, u16),
    /// To the mobile: first byte and length.
    Data(u32, u32),
    /// To the mobile: a bare acknowledgement.
    AckToMobile,
    /// To the mobile: what does it have?
    Asks,
}

use Said::{Ack, AckToMobile, Asks, Data};

const OPEN: u16 = u16::MAX;

fn said(path: &mut Path) -> Vec<Said> {
    let all: Vec<_> = std::iter::from_fn(|| path.gateway.poll_transmit()).collect();
    all.into_iter()
        .map(|transmit| {
            let tcp = transmit.packet.tcp().expect("a segment");
            let len = transmit.packet.header().payload_len;
            match transmit.direction {
                Direction::FromLink => {
                    Ack((tcp.ack.0).wrapping_sub(path.near_number(0).0), tcp.window)
                }
                Direction::ToLink
                    if matches!(transmit.reason, SendReason::Question | SendReason::Overdue) =>
                {
                    Asks
                }
                Direction::ToLink if len == 0 => AckToMobile,
                Direction::ToLink => Data(path.first_byte(&transmit.packet), len),
            }
        })
        .collect()
}

/// Three segments are sent, and the mobile acknowledges the first after 40 ms.
fn one_of_three_acknowledged() -> Path {
    after_one_of_three(path())
}

/// A sender that may not obey has sent three segments, of which the first is acknowledged after 40 ms.
fn adaptive() -> Path {
    after_one_of_three(Path::established(PathMechanismKind::MTcpAdaptive))
}

fn after_one_of_three(mut path: Path) -> Path {
    for n in 0..3 {
        assert_eq!(path.data(n * MSS, MSS), None);
    }
    path.after_ms(40);
    path.far_ack(MSS);
    assert_eq!(said(&mut path), [Ack(MSS - 1, OPEN)]);
    path
}

#[test]
fn the_last_byte_of_each_acknowledgement_is_withheld() {
    let mut path = one_of_three_acknowledged();
    path.far_ack(2 * MSS);
    path.far_ack(3 * MSS);
    assert_eq!(
        said(&mut path),
        [Ack(2 * MSS - 1, OPEN), Ack(3 * MSS - 1, OPEN)]
    );
}

#[test]
fn the_acknowledgement_of_a_syn_is_passed_on_whole() {
    for mechanism in [PathMechanismKind::MTcp, PathMechanismKind::MTcpAdaptive] {
        let mut path = Path::new(mechanism);
        path.far_syn();
        path.syn_ack();
        path.far_ack(0);
        assert_eq!(said(&mut path), []);
        // The mobile's request acknowledges no more than that.
        path.far_data(0, 100);
        assert_eq!(said(&mut path), []);
    }
}

#[test]
fn a_sender_without_more_data_gets_the_last_byte_before_it_times_out_and_its_window_stays() {
    let mut path = path();
    path.data(0, MSS);
    path.data(MSS, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.far_ack(2 * MSS);
    let withheld = [Ack(MSS - 1, OPEN), Ack(2 * MSS - 1, OPEN)];
    assert_eq!(said(&mut path), withheld);
    path.after_ms(1_000);
    assert_eq!(said(&mut path), [Ack(2 * MSS, OPEN)]);
    path.after_ms(60_000);
    assert_eq!(said(&mut path), [], "nothing is left to say");
}

#[test]
fn the_withheld_byte_closes_the_window_in_an_outage() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(1_000);
    assert_eq!(said(&mut path), [Ack(MSS, 0)]);
    path.after_ms(60_000);
    assert_eq!(said(&mut path), [], "the sender waits in persist mode");
}

#[test]
fn without_a_withheld_byte_the_window_does_not_shrink() {
    let mut path = path();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(1_000);
    path.data(MSS, MSS);
    said(&mut path);
    path.down();
    path.after_ms(60_000);
    assert_eq!(said(&mut path), []);
}

#[test]
fn probes_are_answered_for_as_long_as_the_window_is_shrunk() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(1_000);
    said(&mut path);
    for _ in 0..5 {
        path.after_ms(5_000);
        path.data(MSS, 1);
        assert_eq!(said(&mut path), [Ack(MSS, 0)]);
    }
}

#[test]
fn the_mobiles_return_opens_the_window_and_sends_everything_again() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(1_000);
    said(&mut path);
    path.up();
    path.after_ms(10);
    let all = said(&mut path);
    assert!(matches!(all[0], Ack(MSS, window) if window > 0), "{all:?}");
    assert_eq!(all[1..], [Asks], "in place of a marked acknowledgement");
    path.after_ms(40);
    path.far_ack(MSS);
    assert_eq!(said(&mut path), [Data(MSS, MSS), Data(2 * MSS, MSS)]);
}

#[test]
fn what_has_arrived_before_the_outage_is_not_sent_again() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(1_000);
    path.up();
    path.after_ms(50);
    said(&mut path);
    path.far_ack(2 * MSS);
    let all = said(&mut path);
    assert_eq!(all[1..], [Data(2 * MSS, MSS)], "{all:?}");
}

/// The sender's window opens while the mobile is asked, and what an outage cuts is at most one segment: all that its
/// sender repeats by then may be there.
#[test]
fn what_the_sender_repeats_before_the_mobile_has_answered_waits_for_the_answer() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(5_000);
    path.up();
    path.after_ms(10);
    said(&mut path);
    for n in [1, 2] {
        assert_eq!(path.data(n * MSS, MSS), Some(TakeReason::JustResent));
    }
    assert_eq!(to_mobile(&mut path), []);
    path.after_ms(30);
    path.far_ack(2 * MSS);
    assert_eq!(to_mobile(&mut path), [Data(2 * MSS, MSS)]);
}

#[test]
fn a_mobile_that_does_not_say_what_it_has_is_sent_everything() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(1_000);
    path.up();
    path.after_ms(50);
    said(&mut path);
    path.after_ms(1_000);
    // And persist packets, as it acknowledges nothing.
    let mut all = said(&mut path);
    all.dedup();
    assert_eq!(all[..2], [Data(MSS, MSS), Data(2 * MSS, MSS)], "{all:?}");
}

#[test]
fn a_sender_that_has_timed_out_for_the_withheld_byte_is_told_it() {
    let mut path = one_of_three_acknowledged();
    path.data(0, MSS);
    let told = said(&mut path);
    assert!(
        matches!(told[..], [Ack(MSS, window)] if window > 0),
        "{told:?}"
    );
}

#[test]
fn a_hole_that_only_the_sender_can_fill_does_not_freeze_it() {
    let mut path = one_of_three_acknowledged();
    path.far_ack(3 * MSS);
    // Of the next three the wired half has lost the first.
    path.data(4 * MSS, MSS);
    path.data(5 * MSS, MSS);
    let mut told = said(&mut path);
    path.after_ms(2_000);
    told.extend(said(&mut path));
    assert!(!told.contains(&Ack(3 * MSS, 0)), "{told:?}");
    assert!(
        told.iter()
            .any(|said| matches!(said, Ack(ack, _) if *ack == 3 * MSS))
    );
}

#[test]
fn a_sender_that_has_set_back_its_highest_number_is_told_no_more_than_it_has_sent_again() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(1_000);
    path.up();
    path.after_ms(10);
    said(&mut path);
    // The mobile has all three, the sender has sent nothing again: its view of `snd_max` is MSS.
    path.far_ack(3 * MSS);
    let told = said(&mut path);
    assert!(matches!(told[..], [Ack(MSS, _)]), "{told:?}");
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::Supervised));
    let told = said(&mut path);
    assert!(
        matches!(told[..], [Ack(ack, _)] if ack == 2 * MSS - 1),
        "{told:?}"
    );
    // With the last of them both views are one again.
    path.data(2 * MSS, MSS);
    let told = said(&mut path);
    assert!(
        matches!(told[..], [Ack(ack, _)] if ack == 3 * MSS - 1),
        "{told:?}"
    );
    path.after_ms(1_000);
    let told = said(&mut path);
    assert!(
        matches!(told[..], [Ack(ack, _)] if ack == 3 * MSS),
        "{told:?}"
    );
}

#[test]
fn a_mobile_that_was_only_slow_gets_nothing_again() {
    let mut path = one_of_three_acknowledged();
    path.after_ms(1_000);
    assert_eq!(
        said(&mut path),
        [Ack(MSS, 0), Asks],
        "no answer: the window is shrunk, and the mobile is asked"
    );
    path.far_ack(3 * MSS);
    let told = said(&mut path);
    assert!(
        matches!(told[..], [Ack(MSS, window)] if window > 0),
        "{told:?}"
    );
    path.after_ms(4_000);
    assert!(
        said(&mut path).iter().all(|said| matches!(said, Ack(..))),
        "nothing goes to the mobile"
    );
}

/// Nobody but the mobile knows of the outage: its marked acknowledgement alone ends the freeze.
#[test]
fn a_marked_acknowledgement_brings_everything_again_at_once() {
    let mut path = one_of_three_acknowledged();
    path.after_ms(1_000);
    assert_eq!(
        said(&mut path),
        [Ack(MSS, 0), Asks],
        "frozen by the timeout"
    );
    path.far_marked_ack(MSS);
    let all = said(&mut path);
    assert!(
        matches!(all[0], Ack(MSS, window) if window > 0),
        "the window opens: {all:?}"
    );
    assert_eq!(all[1..], [Data(MSS, MSS), Data(2 * MSS, MSS)]);
    // The control: an acknowledgement without the mark brings what it shows to be lost, after the persist packet.
    let mut path = one_of_three_acknowledged();
    path.after_ms(1_000);
    said(&mut path);
    path.after_ms(3_900);
    assert_eq!(said(&mut path), [], "nobody tells of the return");
}

/// The outage is over before the supervisor's timer has expired.
#[test]
fn a_marked_acknowledgement_needs_no_freeze_before_it() {
    for begin in [one_of_three_acknowledged, adaptive] {
        let mut path = begin();
        path.after_ms(50);
        path.far_marked_ack(MSS);
        let all: Vec<_> = said(&mut path);
        let data: Vec<_> = all.iter().filter(|said| matches!(said, Data(..))).collect();
        assert_eq!(data, [&Data(MSS, MSS), &Data(2 * MSS, MSS)]);
    }
}

/// Marks over and over bring nothing again that had not the time of a round trip to be acknowledged.
#[test]
fn a_flood_of_marks_brings_each_segment_once_in_a_round_trip() {
    for begin in [one_of_three_acknowledged, adaptive] {
        let mut path = begin();
        path.after_ms(200);
        let mut sent = 0;
        for _ in 0..200 {
            path.far_marked_ack(MSS);
            let all = said(&mut path);
            sent += all.iter().filter(|said| matches!(said, Data(..))).count();
            path.after_ms(1);
        }
        // A round trip of 40 ms, two segments.
        assert!((4..=12).contains(&sent), "{sent} in 200 ms");
    }
}

/// The mobile's kernel writes the option into what has no data, and a FIN may be that.
#[test]
fn a_mark_beside_data_or_a_fin_takes_nothing_from_the_fixed_host() {
    for begin in [one_of_three_acknowledged, adaptive] {
        for (len, flags) in [(100, TcpFlags::default()), (0, TcpFlags::FIN)] {
            let mut path = begin();
            path.after_ms(50);
            path.far_marked_data(MSS, len, flags);
            let all: Vec<_> = std::iter::from_fn(|| path.gateway.poll_transmit()).collect();
            // It goes on with another acknowledgement.
            let for_fixed = all
                .iter()
                .filter(|one| one.direction == Direction::FromLink)
                .map(|one| one.packet.sequence_len());
            let expected = len + u32::from(flags == TcpFlags::FIN);
            assert_eq!(for_fixed.sum::<u32>(), expected, "{len} bytes, {flags:?}");
            let for_mobile = all.iter().filter(|one| one.direction == Direction::ToLink);
            assert_eq!(for_mobile.count(), 2, "the mark counts, too");
        }
    }
}

/// Both ends of the link hear of its return: the mark that follows repeats nothing of what went out at it.
#[test]
fn a_mark_just_after_the_supervisors_own_return_brings_nothing_again() {
    for begin in [one_of_three_acknowledged, adaptive] {
        let mut path = begin();
        path.down();
        path.data(3 * MSS, MSS);
        path.after_ms(1_000);
        said(&mut path);
        path.up();
        let is_data = |said: &Said| matches!(said, Data(..));
        let at_return = said(&mut path);
        path.after_ms(1);
        path.far_marked_ack(MSS);
        let mut all: Vec<_> = at_return.into_iter().chain(said(&mut path)).collect();
        all.retain(is_data);
        let once = [1, 2, 3].map(|n| Data(n * MSS, MSS));
        all.sort_by_key(|said| match said {
            Data(first, _) => *first,
            _ => 0,
        });
        assert_eq!(all, once);
    }
}

/// Whoever does not know the numbers has nothing sent again by a mark.
#[test]
fn a_mark_out_of_bounds_does_nothing() {
    for begin in [one_of_three_acknowledged, adaptive] {
        for (seq, ack) in [(1 << 30, MSS), (0, MSS + (1 << 30)), (0, 4 * MSS)] {
            let mut path = begin();
            path.after_ms(50);
            path.far_marked_ack_at(seq, ack);
            let all = said(&mut path);
            let data = all.iter().filter(|said| matches!(said, Data(..)));
            assert_eq!(data.count(), 0, "{seq}, {ack}: {all:?}");
            // The control: the same within bounds.
            path.far_marked_ack_at(0, MSS);
            let all = said(&mut path);
            let data = all.iter().filter(|said| matches!(said, Data(..)));
            assert_eq!(data.count(), 2, "{seq}, {ack}: {all:?}");
        }
    }
}

/// The outage has taken acknowledgements: the fixed host hears of them in a segment that it heeds.
#[test]
fn what_a_marked_acknowledgement_acknowledges_is_told_by_another_one() {
    for begin in [one_of_three_acknowledged, adaptive] {
        let mut path = begin();
        path.after_ms(1);
        path.far_marked_ack(2 * MSS);
        let all = said(&mut path);
        assert_eq!(all, [Ack(2 * MSS - 1, OPEN), Data(2 * MSS, MSS)]);
    }
}

/// Who has nothing outstanding may be told of any return.
#[test]
fn a_marked_acknowledgement_of_everything_brings_nothing() {
    for begin in [one_of_three_acknowledged, adaptive] {
        let mut path = begin();
        path.far_ack(3 * MSS);
        said(&mut path);
        path.after_ms(1_000);
        said(&mut path);
        path.far_marked_ack(3 * MSS);
        let all = said(&mut path);
        assert!(all.iter().all(|said| matches!(said, Ack(..))), "{all:?}");
    }
}

#[test]
fn a_mobile_that_lost_something_without_an_outage_is_found_by_a_persist_packet() {
    let mut path = one_of_three_acknowledged();
    path.after_ms(1_000);
    said(&mut path);
    path.after_ms(4_999);
    assert_eq!(said(&mut path), [Data(MSS, MSS)], "after five seconds");
    path.after_ms(40);
    path.far_ack(2 * MSS);
    let all = said(&mut path);
    assert!(all.contains(&Data(2 * MSS, MSS)), "{all:?}");
}

#[test]
fn persist_packets_come_at_pauses_that_double_up_to_a_minute() {
    let mut path = one_of_three_acknowledged();
    path.after_ms(1_000);
    said(&mut path);
    let mut counts = Vec::new();
    for _ in 0..30 {
        path.after_ms(10_000);
        counts.push(said(&mut path).len());
    }
    let total: usize = counts.iter().sum();
    // After 5, 15, 35, 75, 135, 195 and 255 s.
    assert_eq!(total, 7, "{counts:?}");
}

/// A neighbour that the kernel is still looking for, or an interface that is barely up, loses the first packets.
#[test]
fn what_is_lost_at_the_mobiles_return_goes_out_after_a_timeout_and_not_after_five_seconds() {
    let back = || {
        let mut path = one_of_three_acknowledged();
        path.down();
        path.data(3 * MSS, MSS);
        path.after_ms(1_000);
        path.up();
        path.after_ms(10);
        path.far_ack(MSS);
        assert_eq!(to_mobile(&mut path), [3, 1, 2].map(|n| Data(n * MSS, MSS)));
        path
    };
    let mut path = back();
    // Its answer may only be slow: the half freezes after a timeout, and asks after another one.
    path.after_ms(400);
    assert_eq!(to_mobile(&mut path), []);
    path.after_ms(300);
    assert_eq!(to_mobile(&mut path), [Data(MSS, MSS)], "a persist packet");
    // Lost, too: the pauses double from a timeout on.
    path.after_ms(600);
    assert_eq!(to_mobile(&mut path), [Data(MSS, MSS)]);
    path.after_ms(40);
    path.far_ack(2 * MSS);
    assert_eq!(to_mobile(&mut path), [2, 3].map(|n| Data(n * MSS, MSS)));
    // The control: with all of that acknowledged a timeout is an outage again.
    let mut path = back();
    path.after_ms(40);
    path.far_ack(4 * MSS);
    path.data(4 * MSS, MSS);
    path.after_ms(4_000);
    assert_eq!(to_mobile(&mut path), []);
}

#[test]
fn what_the_sender_repeats_does_not_cross_the_wireless_link_twice() {
    let mut path = one_of_three_acknowledged();
    path.down();
    path.after_ms(1_000);
    path.up();
    path.after_ms(10);
    said(&mut path);
    path.far_ack(MSS);
    assert_eq!(said(&mut path), [Data(MSS, MSS), Data(2 * MSS, MSS)]);
    // The window is open: this sender goes back to the first unacknowledged byte.
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::JustResent));
    assert_eq!(path.data(2 * MSS, MSS), Some(TakeReason::JustResent));
    assert!(!said(&mut path).iter().any(|said| matches!(said, Data(..))));
}

#[test]
fn a_local_loss_is_repaired_without_the_sender() {
    let mut path = path();
    for n in 0..6 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(40);
    path.far_ack(MSS);
    said(&mut path);
    for _ in 0..3 {
        path.far_ack(MSS);
    }
    assert_eq!(
        said(&mut path),
        [Data(MSS, MSS)],
        "and no duplicate goes on"
    );
}

#[test]
fn a_loss_in_the_wired_half_is_told_to_the_sender_at_once() {
    let mut path = path();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    said(&mut path);
    for n in [2, 3, 4] {
        path.data(n * MSS, MSS);
        path.after_ms(1);
    }
    let told = said(&mut path);
    assert_eq!(told.len(), 3, "{told:?}");
    // The sender repeats from there on: all that was lost, and not the withheld byte.
    assert!(
        told.iter()
            .all(|said| matches!(said, Ack(ack, _) if *ack == MSS))
    );
}

#[test]
fn the_mobiles_acknowledgements_of_a_loss_in_the_wired_half_are_passed_on_whole() {
    for mechanism in [PathMechanismKind::MTcp, PathMechanismKind::MTcpAdaptive] {
        let mut path = Path::established(mechanism);
        path.data(0, MSS);
        for n in [2, 3] {
            path.data(n * MSS, MSS);
        }
        said(&mut path);
        path.after_ms(40);
        for _ in 0..3 {
            path.far_ack(MSS);
        }
        assert_eq!(said(&mut path), [], "they pass as they are");
        // The hole is filled, and a byte is withheld again.
        path.data(MSS, MSS);
        path.after_ms(40);
        path.far_ack(4 * MSS);
        assert_eq!(said(&mut path), [Ack(4 * MSS - 1, OPEN)]);
    }
}

#[test]
fn the_newest_acknowledgement_of_what_the_mobile_sends_waits_for_its_return() {
    let mut path = path();
    path.far_data(0, MSS);
    path.down();
    assert_eq!(path.near_ack(MSS), Some(TakeReason::LinkDown));
    path.up();
    path.after_ms(10);
    assert!(said(&mut path).contains(&AckToMobile));
}

#[test]
fn a_window_that_the_mobile_closes_itself_is_its_own() {
    let mut path = path();
    path.data(0, MSS);
    path.after_ms(40);
    let closed = path.far_packet_acking(MSS, &[]);
    let mut edit = closed.edit();
    edit.set_window(0).expect("a segment");
    path.far_sends(&edit.finish());
    assert_eq!(said(&mut path), [], "it passes as it is, with every byte");
}

#[test]
fn a_sender_that_repeats_data_over_its_closed_window_is_told_everything() {
    let mut path = adaptive();
    path.down();
    path.after_ms(600);
    assert_eq!(said(&mut path), [Ack(MSS, 0)]);
    path.after_ms(1_000);
    assert_eq!(path.data(MSS, MSS), Some(TakeReason::JustResent));
    let told = said(&mut path);
    assert!(
        matches!(told[..], [Ack(MSS, window)] if window > 0),
        "{told:?}"
    );
    path.up();
    path.after_ms(10);
    assert_eq!(said(&mut path), [Asks, Data(MSS, MSS)]);
    path.far_ack(MSS);
    assert_eq!(said(&mut path), [Data(2 * MSS, MSS)]);
    path.far_ack(3 * MSS);
    assert_eq!(said(&mut path), [], "it passes as it is, with every byte");
}

#[test]
fn a_sender_that_sends_nothing_once_its_window_is_open_again_is_told_everything() {
    let mut path = adaptive();
    path.down();
    path.after_ms(600);
    path.up();
    path.after_ms(10);
    said(&mut path);
    path.far_ack(3 * MSS);
    assert_eq!(said(&mut path).len(), 1);
    path.after_ms(2_000);
    let told = said(&mut path);
    assert!(
        matches!(told[..], [Ack(ack, _)] if ack == 3 * MSS),
        "{told:?}"
    );
}

#[test]
fn a_sender_that_repeats_the_withheld_byte_while_it_recovers_is_told_it() {
    for mut path in [one_of_three_acknowledged(), adaptive()] {
        path.down();
        path.after_ms(600);
        path.up();
        path.after_ms(10);
        path.far_ack(3 * MSS);
        said(&mut path);
        path.data(MSS, MSS);
        assert!(matches!(said(&mut path)[..], [Ack(1_999, _)]));
        // It has timed out, and what it has in flight begins with that byte.
        path.data(2 * MSS - 1, 1);
        let told = said(&mut path);
        assert!(matches!(told[..], [Ack(2_000, _)]), "{told:?}");
    }
}

#[test]
fn a_sender_that_repeats_one_segment_in_a_timeout_is_told_everything() {
    let mut path = adaptive();
    path.down();
    path.after_ms(600);
    path.up();
    path.after_ms(10);
    path.far_ack(3 * MSS);
    said(&mut path);
    path.data(MSS, MSS);
    path.after_ms(2_000);
    let told = said(&mut path);
    assert!(
        matches!(told[..], [.., Ack(ack, _)] if ack == 3 * MSS),
        "{told:?}"
    );
}

fn to_mobile(path: &mut Path) -> Vec<Said> {
    let is_data = |said: &Said| matches!(said, Data(..));
    said(path).into_iter().filter(is_data).collect()
}

/// What was kept in an outage has gone to the mobile at its return; its sender has timed out so many times.
fn sent_at_the_return(timeouts: u32) -> Path {
    let mut path = adaptive();
    path.down();
    for _ in 0..timeouts {
        path.after_ms(300);
        assert!(path.data(MSS, MSS).is_some(), "the link is down");
    }
    path.up();
    path.after_ms(10);
    path.far_ack(MSS);
    assert_eq!(to_mobile(&mut path), [Data(MSS, MSS), Data(2 * MSS, MSS)]);
    path
}

#[test]
fn a_hole_that_its_sender_has_forgotten_is_filled_by_a_sender_that_recovers_itself() {
    let mut path = adaptive();
    for n in 3..8 {
        assert_eq!(path.data(n * MSS, MSS), None);
    }
    path.after_ms(40);
    for _ in 0..4 {
        path.far_ack(MSS);
    }
    assert_eq!(to_mobile(&mut path), [], "its sender's to repeat");
    path.after_ms(2_000);
    assert_eq!(to_mobile(&mut path), []);
    path.far_ack(MSS);
    assert_eq!(to_mobile(&mut path), [Data(MSS, MSS)]);
    path.far_ack(MSS);
    assert_eq!(to_mobile(&mut path), [], "once in a timeout");
}

#[test]
fn what_its_sender_takes_for_under_way_goes_out_once_more_if_it_is_lost_at_the_return() {
    let mut path = sent_at_the_return(3);
    path.after_ms(500);
    assert_eq!(to_mobile(&mut path), [Data(MSS, MSS)]);
    path.after_ms(60_000);
    assert_eq!(to_mobile(&mut path), [], "its sender repeats the rest");
    let mut path = sent_at_the_return(3);
    path.far_ack(3 * MSS);
    path.after_ms(60_000);
    assert_eq!(to_mobile(&mut path), [], "it has arrived");
    let mut path = sent_at_the_return(0);
    path.after_ms(60_000);
    assert_eq!(to_mobile(&mut path), [], "its sender has not repeated it");
}

#[test]
fn a_repetition_that_is_not_passed_on_goes_out_later_if_it_is_needed() {
    let mut path = sent_at_the_return(0);
    assert!(path.data(MSS, MSS).is_some(), "it was sent a moment ago");
    assert_eq!(to_mobile(&mut path), []);
    path.after_ms(500);
    assert_eq!(to_mobile(&mut path), [Data(MSS, MSS)]);
    path.after_ms(60_000);
    assert_eq!(to_mobile(&mut path), []);
}

#[test]
fn what_is_lost_without_an_outage_is_left_to_a_sender_of_today() {
    let mut path = adaptive();
    for _ in 0..3 {
        path.far_ack(MSS);
    }
    let told = said(&mut path);
    assert!(
        told.iter().all(|said| *said == Ack(MSS, OPEN)),
        "nothing is withheld before a hole: {told:?}"
    );
    assert_eq!(path.data(MSS, MSS), None, "and the repetition crosses");
}

/// The mobile may have taken what the sender has repeated itself, and drops what is older (RFC 7323, section 5).
#[test]
fn what_is_sent_again_is_no_older_than_its_senders_own_repetition() {
    for is_away in [false, true] {
        let mut path = adaptive();
        if is_away {
            path.down();
        }
        path.after_ms(500);
        let passes = path.data(MSS, MSS).is_none();
        assert_eq!(passes, !is_away, "the sender repeats it after 540 ms");
        path.down();
        path.after_ms(1_000);
        path.up();
        path.after_ms(10);
        path.far_ack(MSS);
        let stamp_of = |sent: &Sent| match sent {
            Sent::Data(first, _, stamp) => Some((*first, *stamp)),
            _ => None,
        };
        let sent: Vec<_> = path.sent().iter().filter_map(stamp_of).collect();
        assert_eq!(sent, [(MSS, 540), (2 * MSS, 540)]);
    }
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Data(u32, u32),
    Probe(u32),
    NearAck,
    FarAck(u32),
    FarSack(u32, u32),
    FarData(u32),
    /// Marked as a reconnection: bytes acknowledged, bytes sent (none: in the shape of a keep-alive), whether with a FIN.
    FarMark(u32, u32, bool),
    Down,
    Up,
    Dropped(u32),
    WaitMs(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        12 => (0u32..30, 1u32..=MSS).prop_map(|(n, len)| Op::Data(n, len)),
        2 => (0u32..30).prop_map(Op::Probe),
        1 => Just(Op::NearAck),
        8 => (0u32..30 * MSS).prop_map(Op::FarAck),
        2 => (0u32..30, 1u32..30).prop_map(|(ack, block)| Op::FarSack(ack, block)),
        2 => (0u32..8).prop_map(Op::FarData),
        4 => (0u32..30 * MSS, prop_oneof![2 => Just(0), 1 => 1u32..=MSS], any::<bool>())
            .prop_map(|(ack, len, fin)| Op::FarMark(ack, len, fin)),
        3 => Just(Op::Down),
        3 => Just(Op::Up),
        3 => (0u32..30).prop_map(Op::Dropped),
        6 => (1u64..3_000).prop_map(Op::WaitMs),
    ]
}

/// What happens, as an observer at both ends of the path sees it.
struct Observer {
    path: Path,
    is_down: bool,
    /// What the fixed host has sent without a gap from byte 0 on, and the highest.
    highest: u32,
    /// What the mobile has acknowledged.
    acked: u32,
    /// What was taken of the fixed host's and is to reach the mobile.
    owed: Vec<(u32, u32)>,
}

impl Observer {
    fn apply(&mut self, op: Op) {
        match op {
            Op::Data(n, len) => self.data(n * MSS, len),
            Op::Probe(n) => self.data(n * MSS, 1),
            Op::NearAck => {
                self.path.near_ack(0);
            }
            Op::FarAck(ack) => {
                let ack = ack.min(self.highest);
                self.acked = self.acked.max(ack);
                self.path.far_ack(ack);
            }
            Op::FarSack(n, blocks) => {
                let ack = (n * MSS).min(self.highest);
                self.acked = self.acked.max(ack);
                let right = (ack + blocks * MSS).min(self.highest);
                self.path.far_sack(ack, &[((ack + MSS).min(right), right)]);
            }
            Op::FarData(n) => self.path.far_data(n * MSS, MSS),
            Op::FarMark(ack, len, has_fin) => {
                let ack = ack.min(self.highest);
                self.acked = self.acked.max(ack);
                match (len, has_fin) {
                    (0, false) => self.path.far_marked_ack(ack),
                    (_, false) => self.path.far_marked_data(ack, len, TcpFlags::default()),
                    (_, true) => self.path.far_marked_data(ack, len, TcpFlags::FIN),
                }
            }
            Op::Down => {
                self.path.down();
                self.is_down = true;
            }
            Op::Up => {
                self.path.up();
                self.is_down = false;
            }
            Op::Dropped(n) => self.path.dropped(n * MSS, MSS),
            Op::WaitMs(ms) => self.path.after_ms(ms),
        }
        let acked = self.acked;
        self.owed.retain(|(first, len)| first + len > acked);
    }

    fn data(&mut self, first: u32, len: u32) {
        self.highest = self.highest.max(first + len);
        let taken = self.path.data(first, len);
        if let Some(TakeReason::LinkDown | TakeReason::BehindKept) = taken {
            self.owed.push((first, len));
        }
    }

    /// No byte is acknowledged to the fixed host before the mobile has acknowledged it, and nothing
    /// is sent to a mobile that is away.
    fn check(&mut self) -> Result<(), TestCaseError> {
        for said in said(&mut self.path) {
            match said {
                Ack(ack, _) => prop_assert!(
                    ack <= self.acked,
                    "told {ack}, the mobile has acknowledged {}",
                    self.acked
                ),
                Data(first, len) => {
                    prop_assert!(!self.is_down, "sent while the link is down");
                    prop_assert!(first + len > self.acked, "the mobile has it");
                    self.owed.retain(|owed| *owed != (first, len));
                }
                AckToMobile | Asks => prop_assert!(!self.is_down, "sent while the link is down"),
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_byte_is_acknowledged_before_the_mobile_has_acknowledged_it(
        ops in proptest::collection::vec(op(), 1..150),
        mechanism in prop_oneof![
            Just(PathMechanismKind::MTcp),
            Just(PathMechanismKind::MTcpAdaptive),
        ],
        held_per_flow in prop_oneof![Just(None), (500u64..20_000).prop_map(Some)],
    ) {
        let limits = Limits {
            held_per_flow: held_per_flow.map_or(Limits::default().held_per_flow, ByteCount),
            ..Limits::default()
        };
        let mut path = Path::with_limits(mechanism, limits);
        path.open();
        path.after_ms(1_000);
        let mut observer = Observer {
            path,
            is_down: false,
            highest: 0,
            acked: 0,
            owed: Vec::new(),
        };
        for op in ops {
            observer.apply(op);
            observer.check()?;
        }
        // A mobile that is only silent is sent one segment a minute: it comes back.
        observer.apply(Op::Down);
        observer.apply(Op::Up);
        for _ in 0..100 {
            observer.apply(Op::WaitMs(100));
            observer.check()?;
        }
        prop_assert_eq!(&observer.owed, &[], "taken and never sent");
        // All acknowledged: nothing is kept, and within a timeout the fixed host is told all of it.
        observer.apply(Op::FarAck(observer.highest));
        observer.check()?;
        prop_assert!(observer.path.gateway.held() <= LITTLE);
    }
}
