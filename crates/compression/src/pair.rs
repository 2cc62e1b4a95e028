//! What is known of the other end of the link, for one near and one far address.

use outlast_base::time::{Duration, Instant};
use outlast_wire::compressed::{Tag, is_offer_quoted};

/// An offer that is not answered is made again after this, then twice as long, and so on.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(64);
/// How long repetitions of compressed segments may go unacknowledged.
const PATIENCE: Duration = Duration::from_secs(3);

/// The agreement on one near and one far address.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pair {
    standing: Standing,
    /// The tag of compressed segments between the two. Those that come are restored also while none are sent.
    tag: Option<Tag>,
    /// Time at which the tag is confirmed once more, and the wait after that; `None` once the far host has shown it.
    confirm: Option<(Instant, Duration)>,
}

/// State of the agreement to restore compressed segments from the near to the far address.
#[derive(Clone, Copy, Debug, Default)]
enum Standing {
    /// Nothing is known.
    #[default]
    Unknown,
    /// An offer was made, or will be: `nonce` is that of the last.
    Asked {
        nonce: Option<u64>,
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
    /// True if it is time for an offer.
    pub(crate) fn wants_offer(&self, now: Instant) -> bool {
        match self.standing {
            Standing::Unknown => true,
            Standing::Asked { until, .. } => now >= until,
            Standing::Restores { .. } => false,
        }
    }

    /// An offer with `nonce` goes out.
    pub(crate) fn note_offer(&mut self, now: Instant, nonce: u64) {
        let wait = match self.standing {
            Standing::Asked { wait, .. } => (wait * 2).min(LONGEST_WAIT),
            _ => FIRST_WAIT,
        };
        self.standing = Standing::Asked {
            nonce: Some(nonce),
            until: now + wait,
            wait,
        };
    }

    /// Takes the answer to the last offer; true if it is that.
    pub(crate) fn note_acceptance(&mut self, now: Instant, nonce: u64, tag: Tag) -> bool {
        let is_answer =
            matches!(self.standing, Standing::Asked { nonce: asked, .. } if asked == Some(nonce));
        if is_answer {
            self.agree(tag);
            self.confirm = Some((now, FIRST_WAIT));
        }
        is_answer
    }

    /// The far host has heard the tag, or has told it: both restore what shows it.
    pub(crate) const fn agree(&mut self, tag: Tag) {
        self.tag = Some(tag);
        self.standing = Standing::Restores { doubt_since: None };
    }

    /// The tag to confirm now, if it is time for that.
    pub(crate) fn poll_confirmation(&mut self, now: Instant) -> Option<Tag> {
        let (_, wait) = self.confirm.filter(|(at, _)| now >= *at)?;
        self.confirm = Some((now + wait, (wait * 2).min(LONGEST_WAIT)));
        self.tag
    }

    /// The far host has shown the tag.
    pub(crate) const fn note_shown(&mut self) {
        self.confirm = None;
    }

    /// The tag of what is restored.
    pub(crate) const fn tag(&self) -> Option<Tag> {
        self.tag
    }

    /// True if an ICMP error that quotes `beginning` is about an offer or a segment of this pair.
    pub(crate) fn is_quoted(&self, beginning: [u8; 8]) -> bool {
        let of_offer = |nonce| is_offer_quoted(nonce, beginning);
        let is_offer =
            matches!(self.standing, Standing::Asked { nonce: Some(nonce), .. } if of_offer(nonce));
        is_offer || self.tag.is_some_and(|tag| tag.is_quoted(beginning))
    }

    /// The far host has shown that it knows nothing of the protocol. If it did before, it has begun anew: it is asked
    /// again soon.
    pub(crate) fn note_refusal(&mut self, now: Instant) {
        let wait = match self.standing {
            Standing::Restores { .. } => FIRST_WAIT,
            Standing::Unknown | Standing::Asked { .. } => LONGEST_WAIT,
        };
        self.standing = Standing::Asked {
            // Nobody answers an offer that was not made.
            nonce: None,
            until: now + wait,
            wait,
        };
    }

    /// The tag to show, if compressed segments are restored.
    pub(crate) const fn restores(&self) -> Option<Tag> {
        match self.standing {
            Standing::Restores { .. } => self.tag,
            Standing::Unknown | Standing::Asked { .. } => None,
        }
    }

    /// A compressed segment was restored.
    pub(crate) const fn note_proof(&mut self) {
        if let Standing::Restores { doubt_since } = &mut self.standing {
            *doubt_since = None;
        }
    }

    /// A segment that went compressed, and of which there is no proof, is repeated. Returns whether compressing
    /// ends here.
    pub(crate) fn note_repetition(&mut self, now: Instant) -> bool {
        let Standing::Restores { doubt_since } = &mut self.standing else {
            return false;
        };
        let since = *doubt_since.get_or_insert(now);
        let has_ended = now.since(since) >= PATIENCE;
        if has_ended {
            self.standing = Standing::Unknown;
        }
        has_ended
    }
}
