//! A base exchange beside an association whose peer is silent (RFC 7401, section 4.5.4).
//!
//! The association stays, and carries data, until the R2 is there: nothing that anybody else sends ends it. A sign of
//! life ends the attempt until its I2 has left; from then on the peer may have taken the new keys, and the exchange
//! goes to its end. An R1 shows that the path works and not that the peer has lost the association, so the peer is
//! asked once more, and has the time of a round trip to answer, before this host pays for the Diffie-Hellman exchange.

use crate::backoff::Backoff;
use crate::config::Retransmission;
use crate::event::Reason;
use crate::initiator::{Draft, Offer};
use alloc::boxed::Box;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};

/// Time beyond a round trip that the peer has after its R1, which was signed long before: its answer has to be signed, and
/// small or busy processors take tenths of a second for that.
const GRACE: Duration = Duration::from_millis(500);

/// The longest round trip that is waited for.
const LONGEST_ROUND_TRIP: Duration = Duration::from_secs(2);

/// Stages of a base exchange beside an association.
#[derive(Debug)]
pub(crate) enum Revival {
    /// An I1 is sent each time that is due, the first one after a while.
    Called { backoff: Backoff, sent_at: Instant },
    /// An R1 is there, whose puzzle is solved from then on.
    Offered { offer: Box<Offer>, from: Instant },
    /// An I2 was sent.
    Answered {
        draft: Box<Draft>,
        packet: Vec<u8>,
        backoff: Backoff,
    },
}

impl Revival {
    /// An attempt to reach a peer that is asked now. Its first I1 is due after half the first interval between repetitions.
    pub(crate) fn begin(now: Instant, times: &Retransmission) -> Self {
        let mut backoff = Backoff::new(now, times);
        backoff.due = now + times.initial / 2;
        Self::Called {
            backoff,
            sent_at: now,
        }
    }

    /// An attempt after one that the peer has refused.
    pub(crate) fn rest(now: Instant, times: &Retransmission) -> Self {
        let mut backoff = Backoff::new(now, times);
        backoff.due = now + times.longest;
        Self::Called {
            backoff,
            sent_at: now,
        }
    }

    /// The attempt once an R1 is there in answer to an I1 of `sent_at`.
    pub(crate) fn offered(now: Instant, sent_at: Instant, offer: Offer) -> Self {
        let round_trip = now.since(sent_at).min(LONGEST_ROUND_TRIP);
        Self::Offered {
            offer: Box::new(offer),
            from: now + round_trip + GRACE,
        }
    }

    /// True while a sign of life ends the attempt.
    pub(crate) const fn is_idle(&self) -> bool {
        matches!(self, Self::Called { .. } | Self::Offered { .. })
    }

    /// The next deadline, and its reason.
    pub(crate) fn deadline(&self) -> (Instant, Reason) {
        match self {
            Self::Called { backoff, .. } | Self::Answered { backoff, .. } => {
                (backoff.due, Reason::Retransmission)
            }
            Self::Offered { from, .. } => (*from, Reason::Puzzle),
        }
    }

    /// Makes what waits for an answer due at once.
    pub(crate) fn hurry(&mut self, now: Instant, times: &Retransmission) {
        match self {
            Self::Called { backoff, .. } | Self::Answered { backoff, .. } => {
                backoff.hurry(now, times);
            }
            Self::Offered { .. } => {}
        }
    }
}
