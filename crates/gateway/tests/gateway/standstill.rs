//! From when a connection's wait is counted: a link's return may be told before it is true.

use crate::path::{MSS, Path};
use outlast_base::time::Duration;
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::links::{Indicator, LinkEvent, LinkState};
use outlast_gateway::mechanisms::path::PathMechanismKind;

/// `by` says that a link is back, what was kept goes out, nobody answers, and the link is suspected;
/// then the far host acknowledges `acked` bytes. When that counts as moved, and how long after the
/// return it is.
fn back_after_silence(mechanism: PathMechanismKind, by: Indicator, acked: u32) -> [Duration; 2] {
    let mut path = Path::listening(mechanism, SilenceConfig::default());
    path.down();
    path.data(0, MSS);
    path.data(MSS, MSS);
    path.after_ms(5_000);
    let back = path.now();
    let told = LinkEvent {
        link: path.link,
        state: LinkState::Up,
        indicator: by,
    };
    path.gateway.handle_link(back, told);
    path.after_ms(1_500);
    assert_eq!(path.gateway.silent_links().count(), 1);
    path.far_ack(acked);
    let after = path.resumed_after().expect("it moves");
    [after, path.now().since(back)]
}

#[test]
fn a_silence_that_follows_a_carrier_s_return_counts_as_waiting() {
    for (mechanism, acked) in [
        (PathMechanismKind::Hold, MSS),
        // Nothing is left to be done, and yet it was waited for.
        (PathMechanismKind::Hold, 2 * MSS),
        (PathMechanismKind::ZeroWindowAck, MSS),
    ] {
        let [after, waited] = back_after_silence(mechanism, Indicator::Carrier, acked);
        assert_eq!(after, waited, "{mechanism:?}, {acked} bytes");
    }
}

#[test]
fn a_silence_that_follows_the_first_packet_is_another_outage() {
    let [after, _] = back_after_silence(PathMechanismKind::Hold, Indicator::FirstPacket, MSS);
    assert_eq!(after, Duration::ZERO);
}

/// Only an acknowledgement was kept, and nobody owed an answer to it.
#[test]
fn who_has_nothing_that_waits_has_not_waited() {
    let mut path = Path::listening(PathMechanismKind::Hold, SilenceConfig::default());
    path.far_data(0, MSS);
    path.down();
    path.near_ack(MSS);
    path.after_ms(1_000);
    path.up();
    path.after_ms(600_000);
    path.far_data(MSS, MSS);
    assert_eq!(path.resumed_after(), None);
}

/// A near host that has acknowledged two segments is away for `away_ms`; its last acknowledgement was
/// lost with the link.
fn receiver(away_ms: u64) -> Path {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.far_data(0, MSS);
    path.far_data(MSS, MSS);
    path.near_ack(2 * MSS);
    path.down();
    path.after_ms(away_ms);
    path.up();
    path
}

/// Seen from the receiver's side: its application reads what comes next in order, and nothing else.
#[test]
fn a_receiver_has_resumed_when_the_next_that_it_lacks_crosses() {
    for away_ms in [500, 20_000] {
        let mut path = receiver(away_ms);
        path.after_ms(60);
        // A stale repetition of what has arrived, as a router's queue may keep it.
        path.far_data(MSS, MSS);
        assert_eq!(path.resumed_after(), None);
        path.after_ms(1_000);
        // Behind a hole.
        path.far_data(3 * MSS, MSS);
        assert_eq!(path.resumed_after(), None);
        path.after_ms(1_000);
        path.far_data(2 * MSS, MSS);
        let after = Duration::from_millis(2_060);
        assert_eq!(path.resumed_after(), Some(after), "{away_ms} ms");
    }
}

/// The near host's own data is acknowledged, and what it waits for has not come.
#[test]
fn who_waits_for_the_far_hosts_data_has_not_resumed_when_his_own_arrives() {
    let mut path = Path::established(PathMechanismKind::Hold);
    path.data(0, MSS);
    path.down();
    path.after_ms(20_000);
    path.up();
    path.after_ms(40);
    // It says, too, that it has sent 64 bytes.
    path.far_ack_after(64, MSS);
    assert_eq!(path.resumed_after(), None);
    path.after_ms(40);
    path.far_data(0, 64);
    assert_eq!(path.resumed_after(), Some(Duration::from_millis(80)));
}
