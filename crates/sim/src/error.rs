//! Why a scenario cannot be simulated.

use outlast_scenario::{Congestion, Mechanism, Profile};

/// Why a scenario cannot be simulated.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SimError {
    /// There is no such mechanism, or not there.
    #[error("the simulator has no mechanism \"{mechanism}\" at `{key}` (it has: {available})")]
    NoSuchMechanism {
        /// What was asked for.
        mechanism: Mechanism,
        /// Where, such as `outlast.gateway` or `hops.fixed_end`.
        key: &'static str,
        /// What it has there.
        available: &'static str,
    },
    /// Programs need a real kernel.
    #[error("commands run in the lab only: use `outlast lab`, or another `workload.kind`")]
    Command,
    /// The profile, of `[stack]` or of one of `[[flows]]`, has another congestion control.
    #[error("profile \"{profile}\" has no congestion control \"{congestion}\"")]
    NoSuchCongestionControl {
        /// The profile.
        profile: Profile,
        /// What was asked for.
        congestion: Congestion,
    },
}
