//! Table 4.1: how long a hand-off of Mobile IP takes with eager and with lazy cell switching.

use super::claim;
use outlast_core::time::Duration;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::unit::Unit;

/// How a mobile decides that it has moved (section 2.2.2).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Switching {
    /// At the first advertisement of a new agent.
    Eager,
    /// When the lifetime of its agent's last advertisement is over.
    Lazy,
}

/// Delay of a switch of the link layer: L (section 4.3).
pub const LINK_SWITCH: Duration = Duration::from_millis(10);
/// One-way transit from mobile to home agent: T, half the 60 ms of section 4.3.
pub const TRANSIT: Duration = Duration::from_millis(30);
/// Processing of the registration: C, what is left of the 50 ms of the best case in table 4.3.
pub const PROCESSING: Duration = Duration::from_millis(10);
/// Agents advertise themselves once a second (section 4.2).
pub const ADVERTISEMENT_PERIOD: Duration = Duration::from_secs(1);
/// For so long an advertisement holds (section 4.2).
pub const LIFETIME: Duration = Duration::from_secs(3);

/// The phases of the advertisements are stepped through; a best, worst or mean case is met to
/// within a step or two.
pub const STEP: Duration = Duration::from_millis(5);

/// Best, worst and average case, as the table has them for L, T and C.
#[must_use]
pub fn claims(switching: Switching) -> [Claim; 3] {
    let (name, waits, switch) = match switching {
        Switching::Eager => ("ECS", [0, 1_000, 500], LINK_SWITCH),
        Switching::Lazy => ("LCS", [2_000, 3_000, 2_500], Duration::ZERO),
    };
    let [best, worst, average] = waits
        .map(|wait| (Duration::from_millis(wait) + switch + TRANSIT + PROCESSING).as_secs_f64());
    [("best", best), ("worst", worst), ("average", average)].map(|(case, published)| {
        claim(
            "table 4.1",
            format!("{name}, {case} case: time of a hand-off."),
            Unit::Seconds,
            Published::About(published),
            Tolerance::Absolute(2.0 * STEP.as_secs_f64()),
        )
    })
}
