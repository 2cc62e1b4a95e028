//! In which order segments went onto the link, and which of them were overtaken there.
//!
//! A gateway that re-sends a window may overfill the queue in front of the link. The sender does not
//! mend that: the copies that arrive carry their first timestamps, by which it takes its timeout for
//! spurious; what it then takes for under way it repeats only after another timeout, which it counts
//! from a round trip that includes the outage. So the gateway looks for such losses itself, by the
//! order of transmissions (after RFC 9002, section 6.1.1, and RFC 8985).

use super::segment::Segment;

/// So many transmissions later, an arrival shows that a segment was lost: the field's threshold for
/// reordering (RFC 9002, section 6.1.1).
const THRESHOLD: u64 = 3;

/// Numbers a flow's transmissions in their order, from one; zero stands for none.
#[derive(Debug, Default)]
pub(super) struct Order {
    last: u64,
    /// The latest transmission that has arrived.
    arrived: u64,
    /// The last transmission before the link came back.
    before: u64,
    /// The longest packet of what went out since then, and only then, and has arrived.
    longest_arrived: u32,
}

impl Order {
    /// The number of what goes out now.
    pub(super) const fn next_transmission(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// The link is back.
    pub(super) const fn note_return(&mut self) {
        self.before = self.last;
        self.longest_arrived = 0;
    }

    /// Whether `transmission` was before the link's last return.
    pub(super) const fn is_from_before(&self, transmission: u64) -> bool {
        transmission <= self.before
    }

    /// Transmissions since the link's last return.
    pub(super) const fn since_return(&self) -> u64 {
        self.last - self.before
    }

    /// The longest packet, in bytes with its IP header, that certainly went out since the link's last return and has arrived.
    pub(super) const fn longest_arrived(&self) -> u32 {
        self.longest_arrived
    }

    /// Notes that the last transmission of `segment` has arrived.
    pub(super) fn note_arrival(&mut self, segment: &Segment) {
        self.arrived = self.arrived.max(segment.transmission);
        if !segment.went_again && !self.is_from_before(segment.transmission) {
            self.longest_arrived = self.longest_arrived.max(segment.first.total_len());
        }
    }

    /// The far host has acknowledged `segment` with all before it: if that went out twice, the first
    /// copy may have come before the link went down.
    pub(super) fn note_acknowledgement(&mut self, segment: &Segment) {
        if !segment.went_again {
            self.note_arrival(segment);
        }
    }

    /// Whether so many later transmissions have arrived that this one was lost.
    pub(super) const fn has_overtaken(&self, transmission: u64) -> bool {
        self.arrived >= transmission + THRESHOLD
    }
}
