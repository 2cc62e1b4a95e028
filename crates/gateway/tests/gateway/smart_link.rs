//! The smart link layer against Scott and Mapp 2003, sections 4.2, 4.3 and 5.2.

use crate::path::{MSS, Path, Sent};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::limits::Limits;
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind};
use outlast_wire::{ModelledPayload, Packet};

fn level(level: Level) -> Path {
    Path::established(PathMechanismKind::SmartLink(level))
}

/// Ten segments on the link when it goes down; the sender times out twice.
fn outage(path: &mut Path) {
    for n in 0..10 {
        path.data(n * MSS, MSS);
    }
    path.after_ms(10);
    path.down();
    path.after_ms(240);
    path.data(0, MSS);
    path.after_ms(480);
    path.data(0, MSS);
    path.after_ms(700);
    assert_eq!(
        path.sent(),
        [],
        "nothing is inserted while the link is down"
    );
    path.up();
}

#[test]
fn level_0_inserts_nothing() {
    let mut path = Path::established(PathMechanismKind::None);
    outage(&mut path);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn level_3_resends_the_oldest_unacknowledged_segment_once() {
    let mut path = level(Level::Three);
    outage(&mut path);
    path.after_ms(60_000);
    assert_eq!(path.sent(), [Sent::Data(0, MSS, 0)]);
}

#[test]
fn level_4_resends_it_five_times() {
    let mut path = level(Level::Four);
    outage(&mut path);
    path.after_ms(60_000);
    assert_eq!(path.sent(), vec![Sent::Data(0, MSS, 0); 5]);
}

#[test]
fn levels_1_and_2_re_receive_the_highest_acknowledgement() {
    for (chosen, copies) in [(Level::One, 1), (Level::Two, 5)] {
        let mut path = level(chosen);
        for n in 0..4 {
            path.data(n * MSS, MSS);
        }
        path.after_ms(40);
        path.far_ack(2 * MSS);
        path.far_ack(MSS);
        path.down();
        path.data(2 * MSS, MSS);
        path.up();
        path.after_ms(60_000);
        assert_eq!(
            path.sent(),
            vec![Sent::Rereceived(2 * MSS); copies],
            "{chosen:?}"
        );
    }
}

#[test]
fn levels_1_and_2_leave_a_connection_alone_that_tried_nothing() {
    let mut path = level(Level::Two);
    path.data(0, MSS);
    path.far_ack(MSS);
    path.down();
    path.after_ms(1_000);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn levels_3_and_4_leave_a_connection_alone_with_nothing_outstanding() {
    let mut path = level(Level::Four);
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.down();
    path.near_ack(0);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn criterion_1_a_larger_acknowledgement_wins() {
    let mut path = level(Level::Three);
    path.far_data(0, MSS);
    path.data(0, MSS);
    path.down();
    let later_ack = {
        let mut header = path.data_packet(MSS, MSS).tcp().expect("a segment").clone();
        header.ack += MSS;
        let ip = path.data_packet(MSS, MSS).header().ip;
        Packet::modelled_tcp(ip, header, ModelledPayload::default(), MSS)
    };
    assert_eq!(path.near_sends(&later_ack), None);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(MSS, MSS, 0)]);
}

#[test]
fn criterion_2_an_older_unacknowledged_segment_wins() {
    let mut path = level(Level::Three);
    path.data(0, MSS);
    path.data(MSS, MSS);
    path.data(2 * MSS, MSS);
    path.after_ms(40);
    // The kept one is acknowledged; the next one to pass takes its place.
    path.far_ack(MSS);
    path.data(3 * MSS, MSS);
    path.down();
    path.data(MSS, MSS);
    path.data(2 * MSS, MSS);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(MSS, MSS, 40)]);
}

#[test]
fn criterion_3_a_longer_segment_wins() {
    let mut path = level(Level::Three);
    path.data(0, 10);
    path.down();
    path.after_ms(300);
    path.data(0, 30);
    path.data(0, 20);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, 30, 300)]);
}

#[test]
fn criterion_4_a_larger_window_wins() {
    let mut path = level(Level::Three);
    let with_window = |path: &Path, window| {
        let packet = path.data_packet(0, 10);
        let mut header = packet.tcp().expect("a segment").clone();
        header.window = window;
        Packet::modelled_tcp(packet.header().ip, header, ModelledPayload::default(), 10)
    };
    let small = with_window(&path, 100);
    assert_eq!(path.near_sends(&small), None);
    path.down();
    path.after_ms(300);
    let large = with_window(&path, 200);
    assert_eq!(path.near_sends(&large), None);
    path.after_ms(300);
    let middling = with_window(&path, 150);
    assert_eq!(path.near_sends(&middling), None);
    path.up();
    assert_eq!(path.sent(), [Sent::Data(0, 10, 300)]);
}

#[test]
fn one_direction_alone_is_never_answered() {
    let mut path = Path::new(PathMechanismKind::SmartLink(Level::Four));
    path.data(0, MSS);
    path.down();
    path.data(0, MSS);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

/// A live packet has bytes; of an idle connection only these are kept.
#[test]
fn the_highest_acknowledgement_outlasts_a_long_silence_unchanged() {
    let mut path = level(Level::Two);
    path.data(0, MSS);
    path.data(MSS, MSS);
    path.after_ms(40);
    let live = |packet: Packet| Packet::parse(packet.to_bytes()).expect("well-formed");
    let first = live(path.far_packet_acking(MSS, &[]));
    let highest = live(path.far_packet_acking(2 * MSS, &[]));
    path.far_sends(&first);
    path.far_sends(&highest);
    let awake = path.gateway.held();
    path.after_ms(3_600_000);
    let idle = path.gateway.held();
    assert_eq!(idle, ByteCount(u64::from(highest.total_len())));
    assert!(idle < awake, "{idle:?} of {awake:?}");
    // One that says less does not take its place.
    path.far_sends(&first);
    path.down();
    path.data(2 * MSS, MSS);
    path.up();
    path.after_ms(60_000);
    let sent = std::iter::from_fn(|| path.gateway.poll_transmit());
    let inserted: Vec<_> = sent.map(|sent| sent.packet).collect();
    assert_eq!(inserted, vec![highest; 5]);
    // And the next higher one does.
    let next = live(path.far_packet_acking(3 * MSS, &[]));
    path.far_sends(&next);
    path.down();
    path.data(3 * MSS, MSS);
    path.up();
    path.after_ms(1);
    let sent = path.gateway.poll_transmit().expect("it is inserted");
    assert_eq!(sent.packet, next);
}

/// What is kept by then is on its way, and nobody sleeps any more.
#[test]
fn copies_that_wait_for_their_turn_are_not_sent_once_the_packet_has_arrived() {
    let rate = BitRate::from_bits_per_second(64_000);
    let kind = PathMechanismKind::SmartLink(Level::Four);
    let mut path = Path::with_rate(kind, Limits::default(), rate);
    path.open();
    path.after_ms(1_000);
    path.down();
    path.data(0, MSS);
    path.up();
    path.after_ms(1);
    assert_eq!(path.sent().len(), 1, "at the link's pace");
    path.far_ack(MSS);
    path.data(MSS, 10);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn a_connection_that_was_reset_gets_nothing_more() {
    for end in [Path::far_rst, |path: &mut Path| {
        assert_eq!(path.rst(MSS), None);
    }] {
        let mut path = level(Level::Three);
        path.data(0, MSS);
        end(&mut path);
        path.down();
        path.up();
        path.after_ms(1_000);
        assert_eq!(path.sent(), []);
        assert_eq!(path.gateway.held(), ByteCount(0));
    }
}
