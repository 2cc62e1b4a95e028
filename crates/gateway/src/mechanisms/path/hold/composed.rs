//! What mechanisms that are made of `hold` ask of it.

use super::Hold;
use super::kept::{Kept, Scope};
use super::segment::Segment;
use outlast_wire::{Packet, SeqNumber};

impl Hold {
    pub(in crate::mechanisms::path) const fn set_scope(&mut self, scope: Scope) {
        self.scope = scope;
    }

    /// Sets if the near host gets nudges while the link is down.
    pub(in crate::mechanisms::path) const fn set_nudging(&mut self, nudges: bool) {
        self.is_quiet = !nudges;
    }

    /// Whether data is kept that the far host would accept.
    pub(in crate::mechanisms::path) fn has_kept(&self) -> bool {
        !self.kept.has_nothing_acceptable()
    }

    /// Whether the link may have dropped the newest acknowledgement.
    pub(in crate::mechanisms::path) fn owes_acknowledgement(&self) -> bool {
        self.newest_ack.owed && self.newest_ack.packet.packet().is_some()
    }

    /// The last of the kept segments that follow `from` without a gap, a FIN not among them.
    pub(in crate::mechanisms::path) fn last_in_sequence(&self, from: SeqNumber) -> Option<&Packet> {
        match &self.kept {
            Kept::Window(window) => window.last_in_sequence(from).map(Segment::freshest),
            Kept::One { .. } => None,
        }
    }

    /// The kept segment that ends at `end`.
    pub(in crate::mechanisms::path) fn ending_at(&self, end: SeqNumber) -> Option<&Packet> {
        match &self.kept {
            Kept::Window(window) => window.ending_at(end).map(Segment::freshest),
            Kept::One { .. } => None,
        }
    }

    /// Whether something is kept of what comes right before `until`.
    pub(in crate::mechanisms::path) fn reaches(&self, until: SeqNumber) -> bool {
        matches!(&self.kept, Kept::Window(window) if window.reaches(until))
    }
}
