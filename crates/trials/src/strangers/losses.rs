//! What a sender knows of its losses.

/// What the sender of a transfer has taken for lost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Losses {
    /// Packets that it took for lost, or sent again.
    pub packets: u64,
    /// The congestion window in bytes, where it tells.
    pub window: Option<u64>,
}
