//! The table of tracked flows: bounded, with the least recently used flow giving way.
//!
//! Flows stand on one of three shelves, in the order of their last packet. Each shelf has one
//! timeout, so the first flow of a shelf is the first to expire: expiry and eviction cost the
//! same however many flows there are.

use super::FlowKey;
use crate::time::{Duration, Instant};
use alloc::vec::Vec;
use core::hash::BuildHasher;
use foldhash::quality::FixedState;
use hashbrown::HashTable;

/// A flow's place in the table; another flow may have it once this one is removed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct FlowIndex(u32);

impl FlowIndex {
    /// No flow's place comes before it.
    pub(crate) const FIRST: Self = Self(0);
}

/// How long a flow may be idle, and who gives way first when the table is full.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shelf {
    /// Closed: gives way first.
    Closed,
    /// Not seen in both directions.
    Opening,
    /// Alive.
    Established,
}

const SHELVES: usize = 3;
const NIL: u32 = u32::MAX;

#[derive(Debug)]
pub(crate) struct FlowTable<T> {
    index: HashTable<u32>,
    hasher: FixedState,
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
    shelves: [Chain; SHELVES],
    timeouts: [Duration; SHELVES],
    capacity: usize,
    /// The place of the flow whose packet came last: the next packet is often of the same flow.
    latest: u32,
}

#[derive(Debug)]
struct Slot<T> {
    key: FlowKey,
    shelf: Shelf,
    last_seen: Instant,
    before: u32,
    behind: u32,
    flow: Option<T>,
}

#[derive(Clone, Copy, Debug)]
struct Chain {
    first: u32,
    last: u32,
}

/// What [`FlowTable::admit`] did.
#[derive(Debug)]
pub(crate) enum Admission<T> {
    /// There was room.
    Admitted(FlowIndex),
    /// There is room now, in the place of this flow.
    Displaced(FlowIndex, T),
}

impl<T> FlowTable<T> {
    /// A table of at most `capacity` flows (at least 1); `timeouts` for closed, opening and
    /// established flows. The seed keeps a stranger from choosing keys that collide.
    pub(crate) fn new(capacity: usize, timeouts: [Duration; SHELVES], seed: u64) -> Self {
        Self {
            index: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            slots: Vec::new(),
            free: Vec::new(),
            shelves: [Chain {
                first: NIL,
                last: NIL,
            }; SHELVES],
            timeouts,
            capacity: capacity.clamp(1, NIL as usize),
            latest: NIL,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<FlowIndex> {
        let is_latest = |slot: &Slot<T>| slot.key == *key && slot.flow.is_some();
        if self.slots.get(self.latest as usize).is_some_and(is_latest) {
            return Some(FlowIndex(self.latest));
        }
        let hash = self.hasher.hash_one(key);
        self.index
            .find(hash, |&slot| self.slots[slot as usize].key == *key)
            .copied()
            .map(FlowIndex)
    }

    pub(crate) fn flow(&self, index: FlowIndex) -> Option<&T> {
        self.slots.get(index.0 as usize)?.flow.as_ref()
    }

    pub(crate) fn flow_mut(&mut self, index: FlowIndex) -> Option<&mut T> {
        self.slots.get_mut(index.0 as usize)?.flow.as_mut()
    }

    pub(crate) fn key(&self, index: FlowIndex) -> Option<FlowKey> {
        let slot = self.slots.get(index.0 as usize)?;
        slot.flow.is_some().then_some(slot.key)
    }

    /// Enters a flow that is not in the table yet.
    pub(crate) fn admit(&mut self, now: Instant, key: FlowKey, flow: T) -> Admission<T> {
        let displaced = if self.index.len() >= self.capacity {
            self.displace()
        } else {
            None
        };
        let slot = Slot {
            key,
            shelf: Shelf::Opening,
            last_seen: now,
            before: NIL,
            behind: NIL,
            flow: Some(flow),
        };
        let place = if let Some(place) = self.free.pop() {
            self.slots[place as usize] = slot;
            place
        } else {
            self.slots.push(slot);
            u32::try_from(self.slots.len() - 1).expect("capacity is below 2^32")
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index
            .insert_unique(hasher.hash_one(key), place, |&other| {
                hasher.hash_one(slots[other as usize].key)
            });
        self.append(place, Shelf::Opening);
        match displaced {
            Some((_, flow)) => Admission::Displaced(FlowIndex(place), flow),
            None => Admission::Admitted(FlowIndex(place)),
        }
    }

    /// Notes a packet of the flow: it goes to the end of `shelf`.
    pub(crate) fn touch(&mut self, now: Instant, index: FlowIndex, shelf: Shelf) {
        if self.flow(index).is_none() {
            return;
        }
        let place = index.0;
        self.latest = place;
        self.slots[place as usize].last_seen = now;
        let chain = self.shelves[shelf as usize];
        if chain.last == place && self.slots[place as usize].shelf == shelf {
            return;
        }
        self.unlink(place);
        self.append(place, shelf);
    }

    pub(crate) fn remove(&mut self, index: FlowIndex) -> Option<(FlowKey, T)> {
        let flow = self.slots.get_mut(index.0 as usize)?.flow.take()?;
        let key = self.slots[index.0 as usize].key;
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.index.find_entry(hash, |&slot| slot == index.0) {
            entry.remove();
        }
        self.unlink(index.0);
        self.free.push(index.0);
        Some((key, flow))
    }

    /// When the next flow has been idle for too long.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        (0..SHELVES).filter_map(|shelf| self.expiry_of(shelf)).min()
    }

    /// Removes one flow that has been idle for too long.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<(FlowIndex, T)> {
        let shelf = (0..SHELVES).find(|&s| self.expiry_of(s).is_some_and(|at| at <= now))?;
        let index = FlowIndex(self.shelves[shelf].first);
        self.remove(index).map(|(_, flow)| (index, flow))
    }

    fn expiry_of(&self, shelf: usize) -> Option<Instant> {
        let first = self.slots.get(self.shelves[shelf].first as usize)?;
        Some(first.last_seen + self.timeouts[shelf])
    }

    fn displace(&mut self) -> Option<(FlowKey, T)> {
        let first = self
            .shelves
            .iter()
            .map(|chain| chain.first)
            .find(|&place| place != NIL)?;
        self.remove(FlowIndex(first))
    }

    fn append(&mut self, place: u32, shelf: Shelf) {
        let last = self.shelves[shelf as usize].last;
        let slot = &mut self.slots[place as usize];
        slot.shelf = shelf;
        slot.before = last;
        slot.behind = NIL;
        match self.slots.get_mut(last as usize) {
            Some(previous) => previous.behind = place,
            None => self.shelves[shelf as usize].first = place,
        }
        self.shelves[shelf as usize].last = place;
    }

    fn unlink(&mut self, place: u32) {
        let Slot {
            before,
            behind,
            shelf,
            ..
        } = self.slots[place as usize];
        match self.slots.get_mut(before as usize) {
            Some(slot) => slot.behind = behind,
            None => self.shelves[shelf as usize].first = behind,
        }
        match self.slots.get_mut(behind as usize) {
            Some(slot) => slot.before = before,
            None => self.shelves[shelf as usize].last = before,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, SocketAddr};
    use proptest::prelude::*;

    const TIMEOUTS: [Duration; 3] = [
        Duration::from_secs(10),
        Duration::from_secs(60),
        Duration::from_secs(7_440),
    ];

    fn key(port: u16) -> FlowKey {
        let address = |last| Ipv4Addr::new(192, 0, 2, last).into();
        FlowKey {
            near: SocketAddr::new(address(1), port),
            far: SocketAddr::new(address(2), 80),
        }
    }

    fn admit(table: &mut FlowTable<u16>, now: Instant, port: u16) -> (FlowIndex, Option<u16>) {
        match table.admit(now, key(port), port) {
            Admission::Admitted(index) => (index, None),
            Admission::Displaced(index, flow) => (index, Some(flow)),
        }
    }

    #[test]
    fn a_full_table_gives_up_closed_flows_first_then_half_open_ones() {
        let mut table = FlowTable::new(3, TIMEOUTS, 1);
        let now = Instant::ZERO;
        let (established, _) = admit(&mut table, now, 1);
        table.touch(now, established, Shelf::Established);
        let (_opening, _) = admit(&mut table, now, 2);
        let (closed, _) = admit(&mut table, now, 3);
        table.touch(now, closed, Shelf::Closed);
        assert_eq!(admit(&mut table, now, 4).1, Some(3));
        assert_eq!(admit(&mut table, now, 5).1, Some(2));
        assert_eq!(table.len(), 3);
        assert!(table.find(&key(1)).is_some());
    }

    #[test]
    fn idle_flows_expire_by_shelf() {
        let mut table = FlowTable::new(8, TIMEOUTS, 1);
        let (established, _) = admit(&mut table, Instant::ZERO, 1);
        table.touch(Instant::ZERO, established, Shelf::Established);
        admit(&mut table, Instant::from_millis(500), 2);
        assert_eq!(table.next_expiry(), Some(Instant::from_millis(60_500)));
        assert_eq!(table.expire(Instant::from_millis(60_499)), None);
        assert_eq!(
            table.expire(Instant::from_millis(60_500)).map(|(_, f)| f),
            Some(2)
        );
        assert_eq!(table.next_expiry(), Some(Instant::from_millis(7_440_000)));
    }

    #[derive(Clone, Debug)]
    enum Op {
        Packet(u16, u8),
        Remove(u16),
        Expire(u64),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            6 => (0u16..24, 0u8..3).prop_map(|(port, shelf)| Op::Packet(port, shelf)),
            1 => (0u16..24).prop_map(Op::Remove),
            1 => (0u64..30).prop_map(Op::Expire),
        ]
    }

    proptest! {
        /// Against a plain vector: same flows, and never more than fit.
        #[test]
        fn behaves_like_a_list(ops in proptest::collection::vec(op(), 0..200)) {
            let mut table = FlowTable::new(8, TIMEOUTS, 7);
            let mut model: Vec<(u16, u8, Instant)> = Vec::new();
            let mut now = Instant::ZERO;
            for op in ops {
                match op {
                    Op::Packet(port, shelf) => {
                        let index = table.find(&key(port)).unwrap_or_else(|| {
                            let (index, displaced) = admit(&mut table, now, port);
                            if let Some(gone) = displaced {
                                model.retain(|(port, ..)| *port != gone);
                            }
                            index
                        });
                        let to = [Shelf::Closed, Shelf::Opening, Shelf::Established][shelf as usize];
                        table.touch(now, index, to);
                        model.retain(|(known, ..)| *known != port);
                        model.push((port, shelf, now));
                    }
                    Op::Remove(port) => {
                        let removed = table.find(&key(port)).and_then(|index| table.remove(index));
                        prop_assert_eq!(removed.is_some(), model.iter().any(|(p, ..)| *p == port));
                        model.retain(|(known, ..)| *known != port);
                    }
                    Op::Expire(seconds) => {
                        now += Duration::from_secs(seconds);
                        while table.expire(now).is_some() {}
                        model.retain(|(_, shelf, seen)| *seen + TIMEOUTS[*shelf as usize] > now);
                    }
                }
                prop_assert!(table.len() <= 8);
                prop_assert_eq!(table.len(), model.len());
                for (port, ..) in &model {
                    let index = table.find(&key(*port));
                    prop_assert_eq!(index.and_then(|i| table.flow(i)), Some(port));
                }
            }
        }
    }
}
