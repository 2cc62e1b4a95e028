//! What `auto` decides for a connection, what it says of it, and what then goes out.

use crate::path::{LINK, MSS, Path, Sent, with};
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use outlast_wire::Packet;

fn path() -> Path {
    Path::new(PathMechanismKind::Auto).without_sack().settled()
}

/// What is done for the connection, and why.
fn account(path: &Path) -> (Option<&'static str>, &'static str) {
    let report = path.gateway.flow_reports().next().expect("one connection");
    assert!(!report.account.acknowledged_ahead);
    (report.account.chosen, report.account.why)
}

fn without_timestamps(packet: &Packet) -> Packet {
    with(packet, |tcp| tcp.options.timestamps = None)
}

/// The near host sends segments without timestamps.
fn plain(path: &mut Path, range: std::ops::Range<u32>) -> Vec<Option<TakeReason>> {
    range
        .map(|n| {
            let packet = without_timestamps(&path.data_packet(n * MSS, MSS));
            path.near_sends(&packet)
        })
        .collect()
}

/// Fifty segments without timestamps have gone out; the link is down, and its queue held the last ten.
fn with_ten_dropped() -> Path {
    let mut path = path();
    plain(&mut path, 0..50);
    path.down();
    for n in 40..50 {
        let packet = without_timestamps(&path.data_packet(n * MSS, MSS));
        path.drop_packet(&packet);
    }
    path
}

fn firsts(path: &mut Path) -> Vec<u32> {
    let first = |sent: Sent| match sent {
        Sent::Data(first, ..) => first / MSS,
        other => panic!("{other:?} among data"),
    };
    path.sent().into_iter().map(first).collect()
}

#[test]
fn nothing_is_decided_as_long_as_the_link_is_up() {
    let mut path = path();
    path.data(0, MSS);
    assert_eq!(account(&path).0, None);
    assert!(account(&path).1.contains("nothing is decided"));
}

#[test]
fn a_connection_with_nothing_on_its_way_is_left_alone() {
    let mut path = path();
    path.data(0, MSS);
    path.after_ms(40);
    path.far_ack(MSS);
    path.after_ms(1_000);
    path.down();
    assert_eq!(account(&path).0, Some("none"));
    path.after_ms(10_000);
    path.up();
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn timestamps_make_it_keep_and_deliver_all() {
    let mut path = path();
    for n in 0..50 {
        path.data(n * MSS, MSS);
    }
    path.down();
    for n in 0..50 {
        path.dropped(n * MSS, MSS);
    }
    assert_eq!(account(&path).0, Some("hold"));
    assert!(
        account(&path).1.starts_with("timestamps"),
        "{:?}",
        account(&path)
    );
    path.up();
    path.after_ms(60);
    assert_eq!(firsts(&mut path), (0..50).collect::<Vec<_>>());
}

#[test]
fn what_is_sent_while_the_link_is_down_has_a_say() {
    let mut path = path();
    path.down();
    assert_eq!(account(&path).0, Some("none"));
    assert_eq!(path.data(0, MSS), Some(TakeReason::LinkDown));
    assert_eq!(account(&path).0, Some("hold"));
}

#[test]
fn selective_acknowledgements_make_it_keep_and_deliver_all() {
    let mut path = path();
    plain(&mut path, 0..50);
    path.after_ms(40);
    path.far_sack(0, &[(5 * MSS, 6 * MSS)]);
    path.down();
    // Both SYNs were seen, and said that there would be none; what is seen is believed.
    assert_eq!(account(&path).0, Some("hold"));
    assert!(account(&path).1.starts_with("SACK"), "{:?}", account(&path));
}

#[test]
fn a_small_window_arrives_at_once() {
    let mut path = path();
    plain(&mut path, 0..16);
    path.down();
    assert_eq!(account(&path).0, Some("hold"));
    assert!(account(&path).1.contains("small window"));
}

#[test]
fn a_large_window_without_either_gets_two_segments_and_a_sign_of_what_is_missing() {
    let mut path = with_ten_dropped();
    // The sender repeats the oldest one, twice.
    for _ in 0..2 {
        path.after_ms(2_000);
        assert_eq!(plain(&mut path, 0..1), [Some(TakeReason::LinkDown)]);
    }
    assert_eq!(account(&path).0, Some("hold-few"));
    path.up();
    path.after_ms(20);
    assert_eq!(
        firsts(&mut path),
        [0, 0, 40],
        "twice the oldest, and the first that was certainly lost"
    );
    // The far host had all before that, says so twice, and then that it has got it.
    path.after_ms(20);
    for ack in [40, 40, 41] {
        path.far_ack(ack * MSS);
    }
    path.after_ms(1);
    assert_eq!(
        firsts(&mut path),
        [],
        "what is missing its sender knows by the duplicate"
    );
    // It repeats the rest: nothing of it waits, and nothing comes twice.
    assert_eq!(plain(&mut path, 41..44), [None; 3]);
    path.after_ms(40);
    path.far_ack(50 * MSS);
    path.after_ms(60_000);
    assert_eq!(path.sent(), []);
}

#[test]
fn where_nothing_was_certainly_lost_the_far_host_says_what_it_lacks() {
    let mut path = path();
    plain(&mut path, 0..50);
    path.down();
    path.after_ms(2_000);
    plain(&mut path, 0..1);
    path.up();
    path.after_ms(20);
    assert_eq!(firsts(&mut path), [0, 0]);
    path.after_ms(20);
    path.far_ack(30 * MSS);
    path.far_ack(30 * MSS);
    path.after_ms(3);
    assert_eq!(
        firsts(&mut path),
        [31, 32, 30],
        "duplicates come first: the sender is not to think that its timeout was spurious"
    );
}

#[test]
fn a_sender_that_has_not_timed_out_gets_all_of_its_window() {
    let mut path = with_ten_dropped();
    path.after_ms(100);
    path.up();
    assert_eq!(account(&path).0, Some("hold"));
    path.after_ms(20);
    let expected: Vec<u32> = core::iter::once(0).chain(40..50).collect();
    assert_eq!(firsts(&mut path), expected);
}

/// The far host's answer to a probe tells the sender what is missing before the gateway can.
#[test]
fn after_mere_silence_a_duplicate_is_drawn_before_the_oldest_segment_arrives() {
    let path = Path::to_listen(PathMechanismKind::Auto, SilenceConfig::default());
    let mut path = path.without_sack().settled();
    plain(&mut path, 0..90);
    path.after_ms(2_000);
    plain(&mut path, 0..1);
    path.after_ms(1_000);
    path.sent();
    path.far_ack(30 * MSS);
    path.after_ms(10);
    assert_eq!(account(&path).0, Some("hold-few"));
    assert_eq!(firsts(&mut path), [31, 30]);
}

#[test]
fn where_two_segments_wake_nobody_the_oldest_one_follows() {
    let mut path = path();
    plain(&mut path, 0..50);
    path.down();
    let packet = without_timestamps(&path.data_packet(40 * MSS, MSS));
    path.drop_packet(&packet);
    path.after_ms(2_000);
    plain(&mut path, 0..1);
    path.up();
    path.after_ms(20);
    assert_eq!(firsts(&mut path), [0, 0, 40]);
    path.after_ms(2_000);
    let kicks = firsts(&mut path);
    assert!(
        !kicks.is_empty() && kicks.iter().all(|first| *first == 0),
        "{kicks:?}"
    );
}

#[test]
fn data_from_beyond_the_link_needs_its_acknowledgement() {
    let mut path = path();
    path.far_data(0, MSS);
    path.near_ack(MSS);
    path.down();
    assert_eq!(account(&path).0, Some("hold"));
    assert!(account(&path).1.contains("newest acknowledgement"));
    path.after_ms(1_000);
    path.up();
    assert_eq!(path.told(), [Sent::Untimed(MSS), Sent::Ack(MSS)]);
}

#[test]
fn a_sender_is_nudged_only_where_the_link_flaps() {
    let nudges = |up_ms: u64| {
        let mut path = path();
        let mut given = [0; 2];
        for given in &mut given {
            path.data(0, MSS);
            path.after_ms(40);
            let heard = path.far_packet_acking(0, &[]);
            let now = path.now();
            let _ = path
                .gateway
                .handle_packet(now, LINK, Direction::FromLink, &heard);
            path.down();
            for _ in 0..2 {
                path.after_ms(1_000);
                path.data(0, MSS);
            }
            path.after_ms(5_000);
            let sent = path.sent();
            *given = sent
                .iter()
                .filter(|s| matches!(s, Sent::Rereceived(_)))
                .count();
            path.up();
            path.after_ms(up_ms);
            path.sent();
        }
        given
    };
    let [first, second] = nudges(500);
    assert!(first == 0 && second > 10, "{first} and {second}");
    assert_eq!(nudges(11_000), [0, 0]);
}
