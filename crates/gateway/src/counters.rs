//! What a gateway counts.

/// Counts since the gateway began; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Packets that crossed the gateway.
    pub packets: u64,
    /// TCP segments that do not belong to their connection as tracked, or whose checksum is wrong;
    /// passed untouched.
    pub odd_segments: u64,
    /// Packets taken instead of being lost on a link that is down.
    pub taken: u64,
    /// Packets taken that a later one made useless.
    pub superseded: u64,
    /// Retransmissions not forwarded, because the gateway had just re-sent the same segment.
    pub suppressed: u64,
    /// Segments dropped so that a sender without SACK hears by one loss that the link's queue is full.
    pub losses_signalled: u64,
    /// Times that a sender was told of a path MTU that is smaller since the link is back.
    pub path_mtus_lowered: u64,
    /// Acknowledgements re-sent at reconnection, those without timestamps that go before them included.
    pub acks_resent: u64,
    /// Segments and datagrams sent towards the link by the gateway.
    pub resent: u64,
    /// Packets handed to this side as if they had come from the link.
    pub rereceived: u64,
    /// Kicks repeated since the first one did not restart the flow.
    pub kicks_repeated: u64,
    /// Far hosts asked whether they have sent what is lost.
    pub questions: u64,
    /// ICMP errors sent to senders that wait for a timeout.
    pub wakes: u64,
    /// Flows that resumed after a reconnection: new bytes were acknowledged, or crossed in order.
    pub resumes: u64,
    /// Flows frozen by an acknowledgement with window zero.
    pub freezes: u64,
    /// Flows reset because the far host never acknowledged what was acknowledged for it.
    pub resets: u64,
    /// Times that a link left data unanswered for too long, and was suspected to be down.
    pub silences: u64,
    /// Probes sent towards links that were suspected.
    pub probes: u64,
    /// Link-ups that were believed late, because the link's indicators flap.
    pub link_ups_delayed: u64,
    /// Changes of a link that were not believed, because its indicators flap.
    pub link_downs_ignored: u64,
    /// Changes of a link that were not damped, because too many others flap.
    pub links_undamped: u64,
    /// Flows that gave way because the table was full.
    pub flows_displaced: u64,
    /// Flows that were not tracked, because the table was full of such as must not give way.
    pub flows_refused: u64,
    /// Flows that fell back to one kept packet, past a cap.
    pub fallbacks: u64,
    /// Segments that could not be kept at all: there was no memory for a single packet, or only such
    /// is kept of their flow as was acknowledged for the far host.
    pub not_kept: u64,
    /// Datagrams and other packets dropped: the oldest past a cap, those too old to be of use, and those that newer
    /// ones of their flow have replaced.
    pub others_evicted: u64,
    /// Link events that were refused: unknown interface, or too many peers.
    pub link_events_refused: u64,
}
