//! What a gateway counts.

/// Counts since the gateway began; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Packets that crossed the gateway.
    pub packets: u64,
    /// TCP segments that do not belong to their connection as tracked; passed untouched.
    pub odd_segments: u64,
    /// Packets taken instead of being lost on a link that is down.
    pub taken: u64,
    /// Packets taken that a later one made useless.
    pub superseded: u64,
    /// Retransmissions not forwarded, because the gateway had just re-sent the same segment.
    pub suppressed: u64,
    /// Acknowledgements re-sent at reconnection.
    pub acks_resent: u64,
    /// Segments and datagrams sent towards the link by the gateway.
    pub resent: u64,
    /// Packets handed to this side as if they had come from the link.
    pub rereceived: u64,
    /// Kicks repeated since the first one did not restart the flow.
    pub kicks_repeated: u64,
    /// Flows that moved again after a reconnection.
    pub resumes: u64,
    /// Flows frozen by an acknowledgement with window zero.
    pub freezes: u64,
    /// Flows reset because the far host never acknowledged what was acknowledged for it.
    pub resets: u64,
    /// Flows that gave way because the table was full.
    pub flows_displaced: u64,
    /// Flows that fell back to one kept packet, past a cap.
    pub fallbacks: u64,
    /// Segments that could not even be kept as the single packet.
    pub not_kept: u64,
    /// Datagrams and other packets dropped oldest-first, past a cap.
    pub others_evicted: u64,
    /// Link events that were refused: unknown interface, or too many peers.
    pub link_events_refused: u64,
}
