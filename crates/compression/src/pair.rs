//! What is known of the other end of the link, for one near and one far address.

use outlast_base::time::{Duration, Instant};

/// An offer that is not answered is made again after this, then twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(64);
/// How long repetitions of compressed segments may go unacknowledged.
const PATIENCE: Duration = Duration::from_secs(3);

/// Whether compressed segments from one address to another are restored.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Pair {
    /// Nothing is known.
    #[default]
    Unknown,
    /// An offer was made.
    Asked {
        nonce: u64,
        until: Instant,
        wait: Duration,
    },
    /// They are restored, or were.
    Restores {
        /// Since when compressed segments are repeated without any proof.
        doubt_since: Option<Instant>,
    },
}

impl Pair {
    /// Whether it is time for an offer.
    pub(crate) fn wants_offer(&self, now: Instant) -> bool {
        match self {
            Self::Unknown => true,
            Self::Asked { until, .. } => now >= *until,
            Self::Restores { .. } => false,
        }
    }

    /// An offer with `nonce` goes out.
    pub(crate) fn note_offer(&mut self, now: Instant, nonce: u64) {
        let wait = match *self {
            Self::Asked { wait, .. } => (wait * 2).min(LONGEST_WAIT),
            _ => FIRST_WAIT,
        };
        *self = Self::Asked {
            nonce,
            until: now + wait,
            wait,
        };
    }

    /// An acceptance with `nonce` has come; whether it answers the last offer.
    pub(crate) fn note_acceptance(&mut self, nonce: u64) -> bool {
        let is_answer = matches!(*self, Self::Asked { nonce: asked, .. } if asked == nonce);
        if is_answer {
            *self = Self::Restores { doubt_since: None };
        }
        is_answer
    }

    /// The far host has shown that it knows nothing of the protocol.
    pub(crate) fn note_refusal(&mut self, now: Instant) {
        *self = Self::Asked {
            // Nobody answers an offer that was not made.
            nonce: 0,
            until: now + LONGEST_WAIT,
            wait: LONGEST_WAIT,
        };
    }

    pub(crate) const fn restores(&self) -> bool {
        matches!(self, Self::Restores { .. })
    }

    /// A compressed segment was restored.
    pub(crate) const fn note_proof(&mut self) {
        if let Self::Restores { doubt_since } = self {
            *doubt_since = None;
        }
    }

    /// A segment that went compressed, and of which there is no proof, is repeated. Returns whether compressing
    /// ends here.
    pub(crate) fn note_repetition(&mut self, now: Instant) -> bool {
        let Self::Restores { doubt_since } = self else {
            return false;
        };
        let since = *doubt_since.get_or_insert(now);
        let has_ended = now.since(since) >= PATIENCE;
        if has_ended {
            *self = Self::Unknown;
        }
        has_ended
    }
}
