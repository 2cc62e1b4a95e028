//! One connection's silence: what it says of its path.

use crate::FlowId;
use crate::outage::{Cause, Scope};
use core::net::IpAddr;
use outlast_base::time::Instant;

/// Unanswered transmissions that are remembered, the last ones.
pub(crate) const LATE: usize = 4;

/// A silence that is evidence of an outage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Silence {
    pub(crate) flow: FlowId,
    /// Where it was captured.
    pub(crate) point: u32,
    /// Who waited.
    pub(crate) waiting: IpAddr,
    /// Who was not heard.
    pub(crate) silent: IpAddr,
    pub(crate) start: Instant,
    pub(crate) start_earliest: Instant,
    pub(crate) start_latest: Instant,
    /// The last transmissions that were not answered, oldest first.
    pub(crate) late: [Option<Instant>; LATE],
    pub(crate) end_earliest: Instant,
    /// The first sign, less half a round trip; `None` if there was none.
    pub(crate) end: Option<Instant>,
    pub(crate) noticed: Option<Instant>,
    pub(crate) cause: Cause,
    pub(crate) round_trip: Option<u64>,
    pub(crate) unanswered: u32,
    /// True if the sender was seen to repeat something.
    pub(crate) is_repeated: bool,
    /// True if a sender repeated itself for so long that it stood still, even if chance explains the losses.
    pub(crate) stood_still: bool,
    pub(crate) scope: Scope,
    /// Whether what the sender sent was captured before it was lost.
    pub(crate) sees_sender: bool,
    /// Whether plain loss would hardly explain it. Another connection's silence may be evidence
    /// that this one's belongs to an outage, too.
    pub(crate) is_evidence: bool,
    /// Whether datagrams that came at a steady pace stopped meanwhile, too.
    pub(crate) is_witnessed: bool,
    /// Whether it turned out that nothing was lost: the answers came late.
    pub(crate) is_refuted: bool,
}

impl Silence {
    /// Narrows the end by the first sign from anybody, if there was one: `sign`.
    pub(crate) fn set_end(&mut self, sign: Option<Instant>) {
        // What crossed shows the path as well as what was heard.
        self.end = match (sign.or(self.end), self.noticed) {
            (Some(end), Some(noticed)) => Some(end.min(noticed).max(self.start)),
            (end, _) => end,
        };
        let Some(end) = self.end else { return };
        self.end_earliest = if self.sees_sender {
            // A later transmission was lost after the return.
            let before = self.late.iter().flatten().filter(|late| **late <= end);
            let last = before.max().copied();
            last.unwrap_or(self.start).max(self.start)
        } else {
            self.end_earliest.min(end)
        };
    }
}
