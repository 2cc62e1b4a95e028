//! What `hold` may not let go of.
//!
//! A sender keeps what it has sent until that is acknowledged, and sends it again with a newer timestamp. So
//! `hold` gives up a copy that the far host would reject, sets others aside, and keeps one packet past a cap.
//! A mechanism that is made of `hold` may know better: it hands its own [`Retention`] in with each call.

use super::segment::Segment;
use outlast_wire::SeqNumber;

/// Which kept segments no sender will send again.
///
/// They stay until the far host has acknowledged them, and their timestamps are renewed. None are by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Retention {
    until: Option<SeqNumber>,
}

impl Retention {
    /// Those that begin before `until`; `None`: no segment.
    pub(in crate::mechanisms::path) const fn before(until: Option<SeqNumber>) -> Self {
        Self { until }
    }

    /// Whether every sender keeps what it has sent.
    pub(super) const fn is_empty(self) -> bool {
        self.until.is_none()
    }

    /// Whether `segment` may not be let go of.
    pub(super) fn covers(self, segment: &Segment) -> bool {
        self.until.is_some_and(|until| segment.seq.before(until))
    }
}
