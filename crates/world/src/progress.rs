//! How a run is getting on.

use outlast_base::time::Duration;

/// How a run is getting on, in either time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Progress {
    /// Since the workload's first byte; zero before.
    pub elapsed: Duration,
    /// Whether the link is up.
    pub link_up: bool,
    /// How often it went down.
    pub outages: u64,
    /// Payload bytes that the receiving applications of all connections have; for commands, those
    /// that came out of the link, the busier way.
    pub received: u64,
    /// Payload bytes that they are to have; `None` if nobody knows.
    pub goal: Option<u64>,
    /// Updates that the mobile saw on the first connection; zero unless interactive.
    pub updates: u64,
    /// Packets that Outlast put on the path.
    pub injected: u64,
}
