//! When a gateway says that a connection has resumed, beside when the receiving application reads on.

use crate::support::{DELAY, interrupted, resumed};
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::Way;
use outlast_tcp::profile::Congestion;
use outlast_world::{Side, World};

const ROUND_TRIP: Duration = DELAY.saturating_mul(2);

/// Downloads over one outage each, with a gateway at `side`: what it told, and what the application saw.
fn told_and_read(side: Side) -> Vec<(Duration, Duration)> {
    let mut all = Vec::new();
    for congestion in [Congestion::Cubic, Congestion::Reno, Congestion::Bbr] {
        for loss in [0.0, 0.01] {
            for start_ms in (600..1_800).step_by(300) {
                for length_ms in [1_500, 12_000] {
                    let (start, length) = (start_ms, length_ms);
                    let [start, length] = [start, length].map(Duration::from_millis);
                    let way = Way::ToMobile;
                    let mut setup = interrupted(3_000_000, way, congestion, start, length);
                    for pipe in [&mut setup.link.to_mobile, &mut setup.link.to_fixed] {
                        pipe.loss = loss;
                    }
                    setup.mechanisms[side.index()] = PathMechanismKind::Hold;
                    let outcome = World::new(setup).run();
                    let read = resumed(&outcome.flows[0]);
                    if let [told] = outcome.resumes[side.index()][..] {
                        all.push((told, read));
                    }
                }
            }
        }
    }
    all
}

/// The gateway is on the receiver's side: what crosses there in order is read at once.
#[test]
fn at_the_receivers_end_it_is_told_when_the_application_reads_on() {
    let all = told_and_read(Side::Mobile);
    assert!(all.len() > 40, "{}", all.len());
    for (told, read) in all {
        assert_eq!(told, read);
    }
}

/// The gateway is on the sender's side, and hears of it half a round trip later. It may hear first of
/// bytes that had arrived before the outage, and whose acknowledgement was lost with the link.
#[test]
fn at_the_senders_end_it_is_told_once_new_bytes_are_acknowledged() {
    let all = told_and_read(Side::Fixed);
    assert!(all.len() > 40, "{}", all.len());
    for (told, read) in all {
        let (early, late) = (read.saturating_sub(told), told.saturating_sub(read));
        assert!(
            early <= ROUND_TRIP && late <= ROUND_TRIP,
            "{told:?}, {read:?}"
        );
    }
}
