//! Where the mobile nodes of a home agent are.

use crate::tunnel::Tunnel;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::Ipv4Addr;
use outlast_base::time::Instant;

/// A mobile node at a care-of address.
#[derive(Clone, Debug)]
pub(super) struct Binding {
    pub(super) care_of_address: Ipv4Addr,
    pub(super) tunnel: Tunnel,
    /// What the mobile node sends comes back through the tunnel.
    pub(super) is_reverse: bool,
    /// `None` if it has no end.
    pub(super) expires_at: Option<Instant>,
}

/// All bindings, by home address.
#[derive(Clone, Debug)]
pub(super) struct Bindings {
    most: usize,
    /// Never an empty list.
    of: BTreeMap<Ipv4Addr, Vec<Binding>>,
    /// When, which mobile node's, where.
    expiries: BTreeSet<(Instant, Ipv4Addr, Ipv4Addr)>,
    /// Which mobile nodes' tunnels end at an address.
    ends: BTreeSet<(Ipv4Addr, Ipv4Addr)>,
}

/// The mobile node has as many bindings as it may.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct TooMany;

impl Bindings {
    pub(super) const fn new(most: usize) -> Self {
        Self {
            most,
            of: BTreeMap::new(),
            expiries: BTreeSet::new(),
            ends: BTreeSet::new(),
        }
    }

    /// How many bindings one mobile node may have.
    pub(super) const fn most(&self) -> usize {
        self.most
    }

    pub(super) fn has(&self, home_address: Ipv4Addr) -> bool {
        self.of.contains_key(&home_address)
    }

    pub(super) fn of(&self, home_address: Ipv4Addr) -> impl Iterator<Item = &Binding> {
        self.of.get(&home_address).into_iter().flatten()
    }

    pub(super) fn of_mut(&mut self, home_address: Ipv4Addr) -> impl Iterator<Item = &mut Binding> {
        self.of.get_mut(&home_address).into_iter().flatten()
    }

    pub(super) fn mobiles_away(&self) -> usize {
        self.of.len()
    }

    /// True if a tunnel ends at `end`.
    pub(super) fn has_end(&self, end: Ipv4Addr) -> bool {
        let of_end = (end, Ipv4Addr::UNSPECIFIED)..=(end, Ipv4Addr::BROADCAST);
        self.ends.range(of_end).next().is_some()
    }

    /// The tunnels that end at `end`, and whose they are.
    pub(super) fn tunnels_to(
        &mut self,
        end: Ipv4Addr,
    ) -> impl Iterator<Item = (Ipv4Addr, &mut Tunnel)> {
        let of_end = (end, Ipv4Addr::UNSPECIFIED)..=(end, Ipv4Addr::BROADCAST);
        let homes: Vec<_> = self.ends.range(of_end).map(|(_, home)| *home).collect();
        let span = homes.first().zip(homes.last());
        let span = span.map(|(first, last)| *first..=*last);
        let of = span
            .map(|span| self.of.range_mut(span))
            .into_iter()
            .flatten();
        let of = of.filter(move |(home, _)| homes.binary_search(home).is_ok());
        let tunnels = of.flat_map(|(home, bindings)| {
            let tunnels = bindings.iter_mut().map(|binding| &mut binding.tunnel);
            tunnels.map(|tunnel| (*home, tunnel))
        });
        tunnels.filter(move |(_, tunnel)| tunnel.outside().end() == end)
    }

    /// Adds a binding, or renews it. The mobile node's others stay if `keeps_others`.
    pub(super) fn add(
        &mut self,
        home_address: Ipv4Addr,
        binding: Binding,
        keeps_others: bool,
    ) -> Result<(), TooMany> {
        let mut list = self.of.get(&home_address).cloned().unwrap_or_default();
        match keeps_others {
            true => list.retain(|one| one.care_of_address != binding.care_of_address),
            false => list.clear(),
        }
        if list.len() >= self.most {
            return Err(TooMany);
        }
        list.push(binding);
        self.replace(home_address, list);
        Ok(())
    }

    /// Removes one binding, or all.
    pub(super) fn remove(&mut self, home_address: Ipv4Addr, care_of_address: Option<Ipv4Addr>) {
        let mut list = self.of.get(&home_address).cloned().unwrap_or_default();
        match care_of_address {
            Some(address) => list.retain(|one| one.care_of_address != address),
            None => list.clear(),
        }
        self.replace(home_address, list);
    }

    /// Removes the next binding whose time is over: whose, and where.
    pub(super) fn expire(&mut self, now: Instant) -> Option<(Ipv4Addr, Ipv4Addr)> {
        let (at, home_address, care_of_address) = *self.expiries.first()?;
        if at > now {
            return None;
        }
        self.remove(home_address, Some(care_of_address));
        Some((home_address, care_of_address))
    }

    pub(super) fn first_expiry(&self) -> Option<Instant> {
        self.expiries.first().map(|(at, _, _)| *at)
    }

    fn replace(&mut self, home_address: Ipv4Addr, list: Vec<Binding>) {
        for old in self.of.remove(&home_address).into_iter().flatten() {
            if let Some(at) = old.expires_at {
                self.expiries
                    .remove(&(at, home_address, old.care_of_address));
            }
            self.ends
                .remove(&(old.tunnel.outside().end(), home_address));
        }
        for new in &list {
            if let Some(at) = new.expires_at {
                self.expiries
                    .insert((at, home_address, new.care_of_address));
            }
            self.ends.insert((new.tunnel.outside().end(), home_address));
        }
        if !list.is_empty() {
            self.of.insert(home_address, list);
        }
    }
}
