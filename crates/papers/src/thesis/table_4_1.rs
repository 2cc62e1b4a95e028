//! Table 4.1: how long a hand-off of Mobile IP takes with eager and with lazy cell switching.

use super::beside::{Beside, arithmetic};
use super::claim;
use outlast_base::time::Duration;
use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::Runs;
use outlast_report::judgement::{Claim, Published, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column};
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

/// Table 4.1.
#[derive(Debug)]
pub struct Table41;

impl Figure for Table41 {
    fn name(&self) -> &'static str {
        "table-4-1"
    }

    fn title(&self) -> &'static str {
        "How long a hand-off takes with eager and with lazy cell switching"
    }

    fn jobs(&self, _extent: Extent) -> Vec<Job> {
        Vec::new()
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let mut rows = Vec::new();
        for switching in [Switching::Eager, Switching::Lazy] {
            let all = times(switching).filter(|_| runs.all().next().is_some());
            let [best, worst, average] = claims(switching);
            let cases = [
                (best, all.map(|all| all.least)),
                (worst, all.map(|all| all.greatest)),
                (average, all.map(|all| all.mean)),
            ];
            rows.extend(cases.map(|(claim, ours)| Beside {
                labels: vec![Cell::from(claim.statement.as_ref())],
                claim,
                ours: ours.and_then(|ours| Sample::of([ours])),
            }));
        }
        let labels = vec![Column::text("what", "What")];
        let [link, transit, processing] =
            [LINK_SWITCH, TRANSIT, PROCESSING].map(|time| time.as_millis());
        let part = Part::new("Table 4.1: how long a hand-off takes").paragraph(format!(
                "Stated: the formulas of the table, with L = {link} ms and T = {transit} ms as in the \
                 experiments, and C = {processing} ms, which is not published: it is what table 4.3 leaves. Ours: two agents that advertise themselves \
                 once a second, a lifetime of three seconds, and every phase of the two against the \
                 movement.",
            ));
        arithmetic(part, "Table 4.1: how long a hand-off takes", labels, rows)
    }
}

/// The times of hand-offs over all phases of the old and of the new agent's advertisements.
#[must_use]
pub fn times(switching: Switching) -> Option<Sample> {
    let steps = ADVERTISEMENT_PERIOD.div_duration_f64(STEP).round() as u32;
    let phases = (0..=steps).flat_map(|old| (0..=steps).map(move |new| (STEP * old, STEP * new)));
    Sample::of(phases.map(|(old, new)| time(switching, old, new).as_secs_f64()))
}

/// From the mobile's movement to the home agent's reply. `since_old` is how long before the movement
/// the old agent advertised itself last, `until_new` how long after the switch of the link layer
/// the new one does so first.
fn time(switching: Switching, since_old: Duration, until_new: Duration) -> Duration {
    let advertised = LINK_SWITCH + until_new;
    let registers = match switching {
        Switching::Eager => advertised,
        // The new agent has been heard by then: its advertisements come three times in a lifetime.
        Switching::Lazy => (LIFETIME - since_old).max(advertised),
    };
    registers + TRANSIT + PROCESSING
}
