//! From when a connection's wait is counted: a link's return may be told before it is true.

mod path;

use outlast_core::gateway::SilenceConfig;
use outlast_core::link::{Indicator, LinkEvent, LinkState};
use outlast_core::mechanisms::path::PathMechanismKind;
use outlast_core::time::Duration;
use path::{MSS, Path};

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
