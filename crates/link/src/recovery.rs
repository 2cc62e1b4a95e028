//! How what follows the return of a link is measured, in every world.

use outlast_base::time::Duration;

/// The time whose worth of data counts as the first that came again.
pub const HALF_SECOND: Duration = Duration::from_millis(500);

/// How long after a return what has come is counted.
pub const FIRST_SECONDS: Duration = Duration::from_secs(5);
