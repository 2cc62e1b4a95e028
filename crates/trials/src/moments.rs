//! What a run with one outage has to itself.
//!
//! When its link is back nobody else does work. And when it loses its carrier the kernel tells of that at once only if it has
//! told of no other link within the last second, in whichever network namespace (`linkwatch_nextevent`). So no other site
//! loses its carrier within the second before, and no place is made, if the outage is so short that late news would be most
//! of it.

use outlast_base::time::Duration;
use outlast_experiments::moments::{Booking, Moments};
use outlast_lab::{Cancel, LabError};

/// Linux tells of losses of carrier, all together, so seldom.
const BETWEEN_NEWS: Duration = Duration::from_secs(1);
/// Within this time of its loss of carrier every site has told.
const TELLING: Duration = Duration::from_millis(50);
/// From this length on, an outage of which the kernel tells late is hardly a shorter one.
const LONG: Duration = Duration::from_secs(3);

/// Waits until both are free: the loss of carrier `lead` from then on, and link-up after `outage`, from the first of `quiet`
/// before it until the second one after it. Dropped, they are.
pub(crate) fn book<'m>(
    moments: &'m Moments,
    (lead, outage): (Duration, Duration),
    quiet: [Duration; 2],
    cancel: &Cancel,
) -> Result<[Booking<'m>; 2], LabError> {
    let calm = match outage < LONG {
        true => BETWEEN_NEWS.min(lead),
        false => Duration::ZERO,
    };
    let before = quiet[0].min(outage.saturating_sub(TELLING));
    let cut = (lead - calm, calm + TELLING);
    let mend = (lead + outage - before, before + quiet[1]);
    moments.moments([cut, mend], cancel)
}
