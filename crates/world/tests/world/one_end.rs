//! Pairs of transfers over the same outages: a gateway at the end away from the data's sender has
//! acknowledgements alone to give, and does no harm with them.

use crate::support::{DELAY, interrupted, resumed};
use outlast_base::time::Duration;
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_link::Way;
use outlast_tcp::profile::Congestion;
use outlast_world::{Outcome, Side, World};

const BYTES: u64 = 6_000_000;
const ROUND_TRIP: Duration = DELAY.saturating_mul(2);

fn upload(mechanism: PathMechanismKind, start_ms: u64, length_ms: u64, loss: f64) -> Outcome {
    let (start, length) = (
        Duration::from_millis(start_ms),
        Duration::from_millis(length_ms),
    );
    let mut setup = interrupted(BYTES, Way::ToFixed, Congestion::Cubic, start, length);
    for pipe in [&mut setup.link.to_mobile, &mut setup.link.to_fixed] {
        pipe.loss = loss;
    }
    setup.mechanisms[Side::Fixed.index()] = mechanism;
    World::new(setup).run()
}

#[test]
fn no_upload_resumes_later_for_a_gateway_at_the_far_end() {
    let (mut sooner, mut runs) = (0, 0);
    for loss in [0.0, 0.01] {
        for start_ms in (600..4_400).step_by(200) {
            for length_ms in [700, 2_300, 7_000] {
                let run = |mechanism| upload(mechanism, start_ms, length_ms, loss);
                let control = run(PathMechanismKind::None);
                let held = run(PathMechanismKind::Hold);
                let (stall, kick) = (resumed(&control.flows[0]), resumed(&held.flows[0]));
                let case = (loss, start_ms, length_ms);
                // A sender that has all of its window on its way again sends a probe by then.
                let probe = Duration::from_millis(length_ms) / 4;
                assert!(
                    kick <= stall + ROUND_TRIP + probe,
                    "{case:?}: {kick:?}, {stall:?}"
                );
                sooner += usize::from(kick + ROUND_TRIP < stall);
                runs += 1;
            }
        }
    }
    assert!(2 * sooner > runs, "{sooner} of {runs} resumed sooner");
}
