//! What the agent has done so far.

/// Counts since the agent began; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Returns of links.
    pub restored: u64,
    /// Returns that damping has told late.
    pub link_ups_delayed: u64,
    /// Losses and returns that damping did not believe.
    pub link_changes_ignored: u64,
    /// Passes over the connections.
    pub passes: u64,
    /// Returns that had to wait because of a pass shortly before, or were taken for one with it.
    pub passes_delayed: u64,
    /// Connections whose retransmission was brought forward.
    pub retransmissions: u64,
    /// Connections restarted again for want of progress.
    pub retries: u64,
    /// Peers that were woken.
    pub peers_woken: u64,
    /// Peers that have fallen silent.
    pub peers_silent: u64,
    /// Times that a connection has tried whether a silent peer is back.
    pub probes: u64,
    /// Requests of peers for an immediate retransmission that were granted.
    pub requests: u64,
    /// Further requests of the same connection within [`Limits::interval`](crate::Limits::interval), and those that found no room.
    pub requests_refused: u64,
    /// Connections frozen because their link was lost.
    pub frozen: u64,
    /// Connections that went on after that.
    pub thawed: u64,
    /// Acknowledgements that were marked as a reconnection.
    pub marked_acks: u64,
    /// Connections put back into slow start on a new path.
    pub slow_starts: u64,
    /// Connections left to their timers because the queue was full.
    pub connections_left_out: u64,
    /// Events of links that found no room.
    pub links_refused: u64,
    /// Actions that the stack refused or cannot do.
    pub errors: u64,
}
