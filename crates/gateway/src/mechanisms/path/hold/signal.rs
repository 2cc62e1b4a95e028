//! One loss, by which a sender without SACK hears that the link's queue is full, or soon will be.
//!
//! Such a sender has all of its window back after an outage, and CUBIC, which counts the outage among the time that it has
//! grown, grows by half a segment for each that is acknowledged. What overfills the queue is dropped, a hundred segments of a
//! window, of which it finds one in each round trip. After one loss it has measured the link again.

use outlast_base::time::Duration;

/// After a shorter outage a window is not much larger than before it.
const SHORTEST_OUTAGE: Duration = Duration::from_secs(3);

/// Whether the sender has heard it, after the last return of the link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Signal {
    /// It need not, unless the link delivers what it has kept.
    #[default]
    None,
    /// It is to hear it once all that was kept is acknowledged.
    Later,
    /// Its next new segment is dropped.
    Due,
    /// It has.
    Given,
}

impl Signal {
    /// The link is back, after so long.
    pub(super) fn after(away: Duration) -> Self {
        match away >= SHORTEST_OUTAGE {
            true => Self::Later,
            false => Self::None,
        }
    }

    /// The link delivers what it had kept: its queue is full.
    pub(super) fn note_full_queue(&mut self) {
        if matches!(self, Self::None | Self::Later) {
            *self = Self::Due;
        }
    }

    /// All that was kept at the return is acknowledged.
    pub(super) fn note_delivered(&mut self) {
        if *self == Self::Later {
            *self = Self::Due;
        }
    }

    /// Takes the signal that is due. Returns whether one was.
    pub(super) fn take(&mut self) -> bool {
        let is_due = *self == Self::Due;
        if is_due {
            *self = Self::Given;
        }
        is_due
    }
}
