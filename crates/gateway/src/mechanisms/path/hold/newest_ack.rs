//! The newest pure acknowledgement that went towards the link, and whether it does any good there.

use super::latest::Latest;
use crate::tracking::LinkRtt;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, SeqNumber};

/// No stack's retransmission timeout is shorter, beyond the round trip (Linux, `TCP_RTO_MIN`).
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);

/// The newest pure acknowledgement that went towards the link.
#[derive(Debug, Default)]
pub(super) struct NewestAck {
    pub(super) packet: Latest,
    /// When it went onto the link last, from its host or from here, or was taken.
    pub(super) passed_at: Instant,
    /// The far host may lack it: the link may have dropped it, or was never given it.
    pub(super) owed: bool,
    pub(super) copies_left: u8,
    /// It goes out behind what tells the same without timestamps, as it came while the link was up.
    pub(super) follows: bool,
    /// What the last one acknowledged that went onto the link while that was up.
    told: Option<SeqNumber>,
    /// It was not sent when the link came back, because it [misleads](Self::misleads).
    was_withheld: bool,
}

impl NewestAck {
    /// `packet`, which is the newest, goes onto the link.
    pub(super) fn note_passed(&mut self, now: Instant, packet: &Packet) {
        self.passed_at = now;
        self.owed = false;
        self.told = packet.tcp().map(|tcp| tcp.ack);
        self.was_withheld = false;
    }

    pub(super) const fn withhold(&mut self) {
        self.owed = false;
        self.was_withheld = true;
    }

    /// The link went away again. Where it was up for too short a time for the far host's timer, this
    /// has backed off over several outages, and to be timed anew is the lesser harm.
    pub(super) fn go_away(&mut self) {
        self.owed |= self.was_withheld;
    }

    /// Whether it would only mislead the far host: that has heard of the hole before which it stands,
    /// and has timed out since.
    ///
    /// What else it says, of data behind the hole, would make the timeout look spurious (RFC 5682,
    /// section 3.1, step 3b). The far host would then count its repetition of the hole, which the link
    /// has dropped, as on its way, and time it anew with the length of the outage.
    pub(super) fn misleads(&self, now: Instant, rtt: &LinkRtt) -> bool {
        let Some(tcp) = self.packet.packet().and_then(Packet::tcp) else {
            return false;
        };
        let mut blocks = tcp.options.sack.iter();
        let is_before_a_hole = blocks.any(|block| block.left.after(tcp.ack));
        let has_timed_out = now.since(self.passed_at) >= SHORTEST_TIMEOUT + rtt.smoothed();
        !self.was_withheld && is_before_a_hole && self.told == Some(tcp.ack) && has_timed_out
    }
}
