//! What is known of a queued segment: the marks of Linux, and how it leaves.

/// Marks of a segment.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Marks(u16);

impl Marks {
    pub(crate) const SACKED: Self = Self(1);
    pub(crate) const LOST: Self = Self(2);
    /// A retransmission of it is in flight.
    pub(crate) const RETRANSMITTED: Self = Self(4);
    pub(crate) const EVER_RETRANSMITTED: Self = Self(8);
    pub(crate) const SYN: Self = Self(16);
    pub(crate) const FIN: Self = Self(32);
    /// There was nothing more to send when it was sent.
    pub(crate) const APPLICATION_LIMITED: Self = Self(64);
    /// It stands in the list of transmissions.
    pub(crate) const LISTED: Self = Self(128);
    /// It carries PSH of its own.
    pub(crate) const PUSHED: Self = Self(256);
    /// It is in one buffer with the segment before it.
    pub(crate) const JOINED: Self = Self(512);

    pub(crate) const fn has(self, mark: Self) -> bool {
        self.0 & mark.0 != 0
    }

    pub(crate) const fn with(self, mark: Self) -> Self {
        Self(self.0 | mark.0)
    }

    pub(crate) const fn without(self, mark: Self) -> Self {
        Self(self.0 & !mark.0)
    }

    /// These marks, in the list of transmissions only if `other` is.
    pub(crate) const fn listed_as(self, other: Self) -> Self {
        Self(self.0 & !Self::LISTED.0 | other.0 & Self::LISTED.0)
    }

    /// Sent once, in its turn, and no more is known; it is neither SYN nor FIN.
    pub(crate) const fn is_plain(self) -> bool {
        let others = Self::LISTED.0 | Self::APPLICATION_LIMITED.0 | Self::PUSHED.0 | Self::JOINED.0;
        self.0 & !others == 0
    }

    /// Retransmitted at some time.
    pub(crate) const fn is_retransmission(self) -> bool {
        self.0 & (Self::RETRANSMITTED.0 | Self::EVER_RETRANSMITTED.0) != 0
    }
}
