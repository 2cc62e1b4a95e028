//! Instants of the standard library, which machines of others want.

use outlast_base::time::Instant;

/// One moment on both clocks: ours, and the standard library's, which quinn and sctp-proto want.
#[derive(Clone, Copy, Debug)]
pub(super) struct Epoch {
    ours: Instant,
    std: std::time::Instant,
}

impl Epoch {
    #[expect(
        clippy::disallowed_methods,
        reason = "there is no other way to make an instant of the standard library; no time is measured with it"
    )]
    pub(super) fn new(ours: Instant) -> Self {
        Self {
            ours,
            std: std::time::Instant::now(),
        }
    }

    /// The moment itself.
    pub(super) const fn begin(self) -> std::time::Instant {
        self.std
    }

    pub(super) fn at(self, now: Instant) -> std::time::Instant {
        self.std + now.since(self.ours)
    }

    pub(super) fn back(self, at: std::time::Instant) -> Instant {
        self.ours + at.saturating_duration_since(self.std)
    }
}
