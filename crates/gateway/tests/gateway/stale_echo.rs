//! `hold`: what the near host has is told without timestamps first, where its echo is from before an outage.

use crate::path::{MSS, Path, Sent, with};
use outlast_base::units::ByteCount;
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use outlast_wire::Packet;
use outlast_wire::tcp::Timestamps;

/// The far host's clock before the outage, and after it.
const BEFORE: u32 = 1_000;
const AFTER: u32 = 20_000;

/// A segment with other timestamps; `None`: with none.
fn timed(packet: &Packet, timestamps: Option<(u32, u32)>) -> Packet {
    let timestamps = timestamps.map(|(value, echo)| Timestamps { value, echo });
    with(packet, |tcp| tcp.options.timestamps = timestamps)
}

/// The near host acknowledges all before `ack`, and echoes `echo`.
fn near_ack(path: &mut Path, ack: u32, echo: u32) -> Option<TakeReason> {
    let packet = timed(&path.near_ack_packet(ack), Some((AFTER, echo)));
    path.near_sends(&packet)
}

fn far_data(path: &mut Path, first: u32, value: u32) {
    let packet = timed(&path.far_data_packet(first, MSS), Some((value, 0)));
    path.far_sends(&packet);
}

/// The near host has acknowledged a segment when the link was away already, which it was for so long.
fn away(ms: u64) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    far_data(&mut path, 0, BEFORE);
    path.down();
    near_ack(&mut path, MSS, BEFORE);
    path.after_ms(ms);
    path.up();
    path
}

#[test]
fn after_a_long_outage_the_far_host_is_told_without_timestamps_first() {
    let mut path = away(1_000);
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
}

#[test]
fn after_a_short_outage_nobody_has_timed_out() {
    let mut path = away(990);
    assert_eq!(path.sent(), [Sent::Ack(MSS)]);
}

#[test]
fn without_timestamps_nothing_is_said_twice() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.far_data(0, MSS);
    path.down();
    let ack = timed(&path.near_ack_packet(MSS), None);
    path.near_sends(&ack);
    path.after_ms(2_000);
    path.up();
    assert_eq!(path.sent(), [Sent::Ack(MSS)]);
}

/// What the far host knows for certain from before the outage needs no acknowledgement.
#[test]
fn a_sender_alone_tells_nothing() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.far_data(0, MSS);
    path.near_ack(MSS);
    path.after_ms(2_000);
    path.down();
    path.data(0, MSS);
    path.after_ms(2_000);
    path.up();
    let sent = path.sent();
    assert!(matches!(sent[..], [Sent::Data(0, MSS, _)]), "{sent:?}");
}

/// A carrier that is lost may show late.
#[test]
fn what_was_told_long_before_the_loss_was_noticed_may_be_lost() {
    let mut path = Path::established(PathMechanismKind::Hold);
    far_data(&mut path, 0, BEFORE);
    near_ack(&mut path, MSS, BEFORE);
    path.after_ms(900);
    path.down();
    path.after_ms(2_000);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(MSS)]);
    // What its host answers to what the far host repeats says nothing new.
    far_data(&mut path, 0, AFTER);
    assert_eq!(near_ack(&mut path, MSS, BEFORE), None);
}

/// A bulk sender, of whose data more was acknowledged in a round trip than is remembered number by number.
#[test]
fn much_that_was_told_long_before_the_loss_was_noticed_may_be_lost() {
    let mut path = Path::established(PathMechanismKind::Hold);
    for n in 1..=40 {
        path.far_sends(&timed(&path.far_data_packet((n - 1) * MSS, MSS), None));
        let ack = timed(&path.near_ack_packet(n * MSS), None);
        assert_eq!(path.near_sends(&ack), None);
        path.after_ms(1);
    }
    path.after_ms(400);
    path.down();
    path.after_ms(6_000);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(40 * MSS)]);
}

/// It had received more than it had acknowledged, or receives what overtakes what the far host repeats.
#[test]
fn acknowledgements_with_an_old_echo_are_told_without_until_a_new_one_is_echoed() {
    let mut path = away(2_000);
    path.sent();
    far_data(&mut path, 9 * MSS, AFTER);
    let taken = Some(TakeReason::StaleEcho);
    assert_eq!(near_ack(&mut path, 2 * MSS, BEFORE), taken);
    assert_eq!(path.told(), [Sent::Untimed(2 * MSS), Sent::Ack(2 * MSS)]);
    // A duplicate says nothing new, and is counted: it passes.
    assert_eq!(near_ack(&mut path, 2 * MSS, BEFORE), None);
    assert_eq!(near_ack(&mut path, 3 * MSS, AFTER), None);
    assert_eq!(near_ack(&mut path, 4 * MSS, AFTER), None);
    assert_eq!(path.sent(), []);
}

/// A second outage, in which nobody has timed out, changes nothing of that.
#[test]
fn another_outage_that_is_short_has_the_echo_of_the_first() {
    let mut path = away(2_000);
    path.sent();
    path.after_ms(5);
    path.down();
    path.after_ms(100);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
}

/// What cannot be kept takes its own chance.
#[test]
fn an_acknowledgement_for_which_there_is_no_memory_passes() {
    let mut path = away(2_000);
    path.sent();
    far_data(&mut path, 9 * MSS, AFTER);
    path.gateway.set_limits(Limits {
        held_in_all: ByteCount(0),
        ..Limits::default()
    });
    let freshened = Some(TakeReason::Freshened);
    assert_eq!(near_ack(&mut path, 2 * MSS, BEFORE), freshened);
    assert_eq!(path.sent(), [Sent::Ack(2 * MSS)]);
}

/// Data that waited tells the far host of a request that is as old as the outage. It was too short for the request to be
/// acknowledged without timestamps first.
#[test]
fn data_that_waited_echoes_nothing_from_before_the_outage() {
    let mut path = Path::established(PathMechanismKind::Hold);
    far_data(&mut path, 0, BEFORE);
    path.down();
    let ack = path.near_ack_packet(MSS).tcp().expect("TCP").ack;
    for n in 0..2 {
        let answer = timed(&path.data_packet(n * MSS, MSS), Some((AFTER, BEFORE)));
        path.near_sends(&with(&answer, |tcp| tcp.ack = ack));
    }
    path.after_ms(500);
    path.up();
    // The far host has shown no timestamp since.
    assert_eq!(path.echoes_told(), [0, 0]);
    far_data(&mut path, MSS, AFTER);
    let late = timed(&path.near_ack_packet(2 * MSS), Some((AFTER, BEFORE)));
    path.near_sends(&late);
    assert_eq!(path.echoes_told(), [AFTER]);
}

/// The far host has typed so many bytes at a time, eight times, and each was acknowledged just before the link went.
fn typed(len: u32) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    for n in 0..8 {
        let packet = timed(&path.far_data_packet(n * len, len), Some((BEFORE, 0)));
        path.far_sends(&packet);
        near_ack(&mut path, (n + 1) * len, BEFORE);
        if n == 3 {
            path.after_ms(1_000);
        }
    }
    path.down();
    path.after_ms(15_000);
    path.up();
    path
}

/// It may have heard any of the last four acknowledgements, or none of them. Once it has heard the last one, no error helps.
#[test]
fn a_sender_of_little_is_woken_wherever_it_may_stand_before_it_is_told() {
    let mut path = typed(10);
    let mut expected = Vec::new();
    for number in [40, 50, 60, 70] {
        expected.extend([Sent::WakesFar(number); 4]);
    }
    expected.extend([Sent::Untimed(80), Sent::Ack(80)]);
    assert_eq!(path.sent(), expected);
}

/// The acknowledgement leaves it whole segments to repeat.
#[test]
fn a_sender_of_much_is_told_at_once() {
    let mut path = typed(MSS);
    assert_eq!(path.sent(), [Sent::Untimed(8 * MSS), Sent::Ack(8 * MSS)]);
}
