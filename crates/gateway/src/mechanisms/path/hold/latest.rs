//! The latest packet of a kind, charged like all that is kept.

use crate::limits::Budget;
use alloc::boxed::Box;
use outlast_wire::Packet;

/// One packet, or none if there was none or no memory for it.
#[derive(Debug, Default)]
pub(super) struct Latest {
    packet: Option<Box<Packet>>,
    charged: u64,
}

impl Latest {
    /// Keeps `packet` instead of what was kept; says whether there was room.
    #[must_use]
    pub(super) fn replace(&mut self, packet: &Packet, budget: &mut Budget) -> bool {
        let charge = u64::from(packet.total_len()) + size_of::<Packet>() as u64;
        budget.give_back(core::mem::take(&mut self.charged));
        if !budget.take(charge) {
            self.packet = None;
            return false;
        }
        self.charged = charge;
        match &mut self.packet {
            Some(kept) => kept.as_mut().clone_from(packet),
            None => self.packet = Some(Box::new(packet.clone())),
        }
        true
    }

    pub(super) fn packet(&self) -> Option<&Packet> {
        self.packet.as_deref()
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        self.packet = None;
        budget.give_back(core::mem::take(&mut self.charged));
    }
}
