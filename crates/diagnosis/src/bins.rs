//! The last transmissions of one host, in bins of a fraction of a round trip.

use alloc::collections::VecDeque;
use outlast_base::time::Instant;
use outlast_wire::SeqNumber;

/// Bins that are kept.
const MOST_BINS: usize = 24;
/// Bins of a round trip.
const PER_ROUND_TRIP: u64 = 8;
/// A bin is at least as wide, in nanoseconds.
const NARROWEST: u64 = 1_000_000;

/// What a host sends, as far as waiting for an answer is concerned.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// No payload.
    Acknowledgement,
    /// Payload, SYN or FIN for the first time.
    New,
    /// The oldest data that is not acknowledged, once more: what a retransmission timeout sends.
    Oldest,
    /// The newest data once more, which is not the oldest, too: what a tail-loss probe sends.
    Newest,
    /// Other data once more.
    Again,
}

impl Kind {
    /// Whether the peer has to answer.
    pub(crate) const fn wants_answer(self) -> bool {
        !matches!(self, Self::Acknowledgement)
    }

    /// Whether something is sent once more.
    pub(crate) const fn is_repeated(self) -> bool {
        matches!(self, Self::Oldest | Self::Newest | Self::Again)
    }
}

/// Transmissions of one kind, close to each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bin {
    pub(crate) kind: Kind,
    pub(crate) count: u32,
    pub(crate) first: Instant,
    pub(crate) last: Instant,
    /// The timestamp of the first.
    pub(crate) timestamp: Option<u32>,
    /// What the first acknowledged.
    pub(crate) ack: SeqNumber,
    /// Behind the last one's payload.
    pub(crate) end: SeqNumber,
    /// Whether the last carried less than the host's largest: the application had written no more.
    pub(crate) is_short: bool,
}

/// The last bins.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bins(VecDeque<Bin>);

impl Bins {
    /// Adds a transmission.
    pub(crate) fn push(&mut self, sent: Bin, round_trip: u64) {
        let width = (round_trip / PER_ROUND_TRIP).max(NARROWEST);
        match self.0.back_mut() {
            // Each repetition stands alone: whether it was answered tells when the path was back.
            Some(last)
                if last.kind == sent.kind
                    && !sent.kind.is_repeated()
                    && sent.first.nanos_since(last.first) < width =>
            {
                last.count = last.count.saturating_add(sent.count);
                last.last = sent.last;
                last.end = last.end.max(sent.end);
                last.is_short = sent.is_short;
            }
            _ => {
                if self.0.len() >= MOST_BINS {
                    self.0.pop_front();
                }
                self.0.push_back(sent);
            }
        }
    }

    /// True if older ones may have been dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.0.len() >= MOST_BINS
    }

    /// The bins, oldest first.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = &Bin> {
        self.0.iter()
    }
}
