//! The memory for what is kept of connections: how much there is, and whose it is.

use super::{Budget, Shares};
use core::net::IpAddr;
use outlast_base::units::ByteCount;

/// The memory that all connections share.
#[derive(Debug)]
pub(crate) struct Memory {
    pub(crate) budget: Budget,
    shares: Shares,
}

impl Memory {
    /// Memory of which all of `cap` is free.
    pub(crate) fn new(cap: ByteCount) -> Self {
        Self {
            budget: Budget::new(cap),
            shares: Shares::default(),
        }
    }

    /// Other limits from now on: what was taken above a lower one stays until it is given back.
    pub(crate) const fn set_cap(&mut self, cap: ByteCount) {
        self.budget.set_cap(cap);
    }

    /// Counts what is kept of each peer, if memory has just become scarce. `all` gives the peer of each connection
    /// and the bytes that are kept of it.
    pub(crate) fn count_if_scarce<I: Iterator<Item = (IpAddr, u64)>>(
        &mut self,
        all: impl FnOnce() -> I,
    ) {
        if self.shares.become_scarce(&self.budget) {
            self.shares.count(all());
        }
    }

    /// A connection of `peer` is about to be served: sets what it may take.
    pub(crate) fn allot(&mut self, peer: IpAddr) {
        let room = self.shares.room(peer, &self.budget);
        self.budget.allot(room);
    }

    /// A connection of `peer`, of which `held` was kept, was served; before that, `used` was taken by all.
    pub(crate) fn note_served(&mut self, peer: IpAddr, held: &mut ByteCount, used: ByteCount) {
        // Nobody else takes from the budget meanwhile: what is kept of others stays as it was.
        let after = (held.0 + self.budget.used().0).saturating_sub(used.0);
        self.shares.change(peer, held.0, after);
        *held = ByteCount(after);
    }

    /// Nothing of a connection of `peer` is kept any more; `held` was.
    pub(crate) fn note_gone(&mut self, peer: IpAddr, held: &mut ByteCount) {
        self.shares.change(peer, held.0, 0);
        *held = ByteCount(0);
    }
}
