//! `hold`: a link that comes back with a smaller MTU, of which nobody tells.

use crate::path::{Path, Sent, Version};
use outlast_gateway::mechanisms::path::PathMechanismKind;

/// The payload of a segment that fills an Ethernet frame, and of the part of it that every path of IPv6 takes.
const FULL: u32 = 1_444;
const PART: u32 = 1_224;
/// Segments that the sender had on their way when the link went.
const KEPT: u32 = 6;
const END: u32 = KEPT * FULL;

/// The segments that went towards the link: first byte, and length.
fn carried(path: &mut Path) -> Vec<(u32, u32)> {
    let sent = path.sent().into_iter();
    sent.filter_map(|sent| match sent {
        Sent::Data(first, len, _) => Some((first, len)),
        _ => None,
    })
    .collect()
}

/// A connection whose link was away for so long, and is back. A round trip takes 40 ms.
fn back_after(path: Path, away_ms: u64) -> Path {
    let mut path = path.settled();
    path.down();
    for n in 0..KEPT {
        path.data(n * FULL, FULL);
    }
    path.after_ms(away_ms);
    path.up();
    path
}

/// Waits until the oldest segment has gone out twice in vain, and then a part of it.
fn in_vain(path: &mut Path) {
    path.after_ms(30);
    let mut whole: Vec<_> = (0..KEPT).map(|n| (n * FULL, FULL)).collect();
    assert_eq!(carried(path), whole);
    whole.truncate(1);
    path.after_ms(270);
    assert_eq!(carried(path), whole, "a single loss is more likely");
    path.after_ms(400);
    assert_eq!(carried(path), [(0, PART)]);
}

#[test]
fn a_path_that_takes_less_gets_parts_and_its_sender_hears_so() {
    let mut path = back_after(Path::new(PathMechanismKind::Hold), 2_000);
    in_vain(&mut path);
    path.far_ack(PART);
    path.after_ms(30);
    let rest = FULL - PART;
    let mut expected = vec![(PART, rest), (FULL, FULL)];
    for n in 2..KEPT {
        expected.extend([(n * FULL, PART), (n * FULL + PART, rest)]);
    }
    assert_eq!(carried(&mut path), expected, "one of them goes whole");
    path.far_ack(FULL);
    path.far_sack(FULL, &[(2 * FULL, 2 * FULL + PART)]);
    path.after_ms(10);
    let sent = path.sent();
    let told = sent.iter().position(|sent| *sent == Sent::TooBig(1_280));
    assert_eq!(told, Some(0), "{sent:?}");
    let parts = [Sent::Data(FULL, PART, 0), Sent::Data(FULL + PART, rest, 0)];
    assert_eq!(sent[1..], parts);
    path.far_ack(END);
    // A sender that does not listen.
    path.data(END, FULL);
    path.after_ms(10);
    assert_eq!(carried(&mut path), [(END, PART), (END + PART, rest)]);
    path.data(END + FULL, 100);
    assert_eq!(path.sent(), [], "what fits passes");
}

#[test]
fn it_is_told_again_after_a_second_and_no_sooner() {
    let mut path = back_after(Path::new(PathMechanismKind::Hold), 2_000);
    in_vain(&mut path);
    path.far_ack(PART);
    path.after_ms(30);
    path.far_sack(FULL, &[(2 * FULL, 2 * FULL + PART)]);
    path.after_ms(30);
    path.far_ack(END);
    path.sent();
    let mut told = 0;
    for n in 0..30 {
        path.data(END + n * FULL, FULL);
        path.after_ms(100);
        let sent = path.sent();
        told += sent
            .iter()
            .filter(|sent| matches!(sent, Sent::TooBig(_)))
            .count();
        path.far_ack(END + (n + 1) * FULL);
    }
    assert!((2..=3).contains(&told), "{told}");
}

/// All that went out until then was lost, for another reason.
#[test]
fn a_path_that_takes_all_gets_all() {
    let mut path = back_after(Path::new(PathMechanismKind::Hold), 2_000);
    in_vain(&mut path);
    path.far_ack(PART);
    path.after_ms(30);
    path.sent();
    path.far_ack(2 * FULL);
    path.after_ms(10);
    assert_eq!(path.sent(), []);
    path.far_ack(END);
    path.data(END, FULL);
    path.after_ms(300);
    assert_eq!(path.sent(), [], "it passes as its sender has sent it");
}

#[test]
fn what_arrives_late_is_no_sign() {
    let mut path = back_after(Path::new(PathMechanismKind::Hold), 2_000);
    in_vain(&mut path);
    for n in 1..KEPT {
        path.far_ack(n * FULL);
        path.after_ms(5);
    }
    assert_eq!(carried(&mut path), [], "all of it has arrived");
}

/// Linux does so with `tcp_mtu_probing` after some timeouts.
#[test]
fn a_sender_that_repeats_in_smaller_segments_knows_better() {
    const OWN: u32 = 1_024;
    let mut path = Path::new(PathMechanismKind::Hold).settled();
    path.down();
    for n in 0..KEPT {
        path.data(n * FULL, FULL);
    }
    path.after_ms(4_000);
    path.data(0, OWN);
    path.after_ms(1_000);
    path.up();
    path.after_ms(30);
    let rest = FULL - OWN;
    let mut expected = vec![(0, OWN), (OWN, rest), (FULL, FULL)];
    for n in 2..KEPT {
        expected.extend([(n * FULL, OWN), (n * FULL + OWN, rest)]);
    }
    assert_eq!(carried(&mut path), expected);
    path.far_sack(FULL, &[(2 * FULL, 2 * FULL + OWN)]);
    path.after_ms(10);
    let sent = path.sent();
    assert!(
        !sent.contains(&Sent::TooBig(OWN + 56)),
        "it knows: {sent:?}"
    );
    let parts = [Sent::Data(FULL, OWN, 0), Sent::Data(FULL + OWN, rest, 0)];
    assert_eq!(sent, parts);
    path.far_ack(END);
    path.after_ms(500);
    // It tries a longer one by itself (RFC 4821).
    assert_eq!(path.data(END, FULL), None);
}

#[test]
fn with_ipv4_a_path_is_tried_with_what_every_host_takes() {
    for (version, smaller) in [(Version::V4, 576 - 56), (Version::V6, 1_204)] {
        let path = Path::new(PathMechanismKind::Hold).over(version);
        let mut path = back_after(path, 2_000);
        path.after_ms(30);
        path.sent();
        path.after_ms(5_000);
        let last = carried(&mut path).pop();
        assert_eq!(last, Some((0, smaller)), "{version:?}");
    }
}

/// Such a host cannot say what has arrived of the rest: a second attempt in vain does.
#[test]
fn a_far_host_without_sack_shows_it_too() {
    let path = Path::new(PathMechanismKind::Hold).without_sack();
    let mut path = back_after(path, 2_000);
    in_vain(&mut path);
    path.far_ack(PART);
    path.after_ms(30);
    assert_eq!(carried(&mut path), [(PART, FULL - PART), (FULL, FULL)]);
    path.far_ack(FULL);
    path.after_ms(200);
    let sent = path.sent();
    assert!(sent.contains(&Sent::TooBig(1_280)), "{sent:?}");
    let last = Sent::Data((KEPT - 1) * FULL + PART, FULL - PART, 0);
    assert_eq!(sent.last(), Some(&last));
}
