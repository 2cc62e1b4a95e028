//! What each peer may keep of the memory that all share.
//!
//! A dynamic threshold (Choudhury and Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
//! Switches", 1998): a peer may take more as long as it has less than [`FACTOR`] times what is free. One
//! peer alone gets four fifths of the memory, two get four ninths each, and somebody new always finds
//! room. While less than half of the memory is used, nobody is asked and nothing is counted.

use super::Budget;
use core::net::IpAddr;
use hashbrown::HashMap;

/// A peer may keep so many times what is free.
const FACTOR: u64 = 4;

/// What each peer keeps, while memory is scarce.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    /// `None` while it is not.
    held: Option<HashMap<IpAddr, u64, foldhash::quality::FixedState>>,
}

impl Shares {
    /// Whether memory has just become scarce: then somebody has to [count](Self::count) what each
    /// connection keeps.
    pub(crate) fn become_scarce(&mut self, budget: &Budget) -> bool {
        let (used, cap) = (budget.used, budget.cap);
        if self.held.is_none() {
            return used > cap / 2;
        }
        // Not at the same mark, so that nothing is counted again and again.
        if used < cap / 4 {
            self.held = None;
        }
        false
    }

    /// Counts what the connections of each peer keep, in bytes.
    pub(crate) fn count(&mut self, connections: impl Iterator<Item = (IpAddr, u64)>) {
        let held = self.held.get_or_insert_default();
        for (peer, bytes) in connections {
            *held.entry(peer).or_default() += bytes;
        }
    }

    /// What `peer` may still take, in bytes.
    pub(crate) fn room(&self, peer: IpAddr, budget: &Budget) -> u64 {
        let free = budget.cap.saturating_sub(budget.used);
        let Some(held) = &self.held else {
            return free;
        };
        let own = held.get(&peer).copied().unwrap_or(0);
        free.min(free.saturating_mul(FACTOR).saturating_sub(own))
    }

    /// A connection of `peer` has kept `before` bytes, and keeps `after`.
    pub(crate) fn change(&mut self, peer: IpAddr, before: u64, after: u64) {
        let Some(held) = self.held.as_mut().filter(|_| before != after) else {
            return;
        };
        let own = held.entry(peer).or_default();
        *own = own.saturating_sub(before) + after;
        if *own == 0 {
            held.remove(&peer);
        }
    }
}
