//! The table of tracked flows: bounded, with the least recently used flow giving way.
//!
//! Flows stand on one of four shelves, in the order of their last packet. Each shelf has one
//! timeout, so the first flow of a shelf is the first to expire: expiry, rest and eviction cost the
//! same however many flows there are.
//!
//! An eighth of the places is never given to established flows. So there is room for those that are
//! opening, however full the table is, and a stranger who completes no handshake only ever
//! displaces his like.

use super::FlowKey;
use super::chunks::Chunks;
use super::key::CompactKey;
use alloc::vec::Vec;
use core::hash::BuildHasher;
use foldhash::quality::FixedState;
use hashbrown::HashTable;
use outlast_base::time::{Duration, Instant};

/// A flow's place in the table; another flow may have it once this one is removed.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct FlowIndex(u32);

impl FlowIndex {
    /// No flow's place comes before it.
    pub(crate) const FIRST: Self = Self(0);

    /// The place `number`.
    #[cfg(test)]
    pub(crate) const fn of(number: u32) -> Self {
        Self(number)
    }
}

/// How long a flow may be idle, and who gives way first when the table is full.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shelf {
    /// Closed: gives way first.
    Closed,
    /// The handshake is not complete.
    Opening,
    /// Alive.
    Established,
    /// Alive, and something of it is nowhere else any more: never gives way.
    Pledged,
}

impl Shelf {
    const fn is_established(self) -> bool {
        matches!(self, Self::Established | Self::Pledged)
    }
}

const SHELVES: usize = 4;
const NIL: u32 = u32::MAX;
/// Established flows leave one place in so many to others.
const RESERVE: usize = 8;
/// Flows on these shelves may be told to rest.
const RESTING: [Shelf; 2] = [Shelf::Closed, Shelf::Established];

#[derive(Debug)]
pub(crate) struct FlowTable<T> {
    index: HashTable<u32>,
    hasher: FixedState,
    slots: Chunks<Slot<T>>,
    free: Vec<u32>,
    shelves: [Chain; SHELVES],
    timeouts: [Duration; SHELVES],
    capacity: usize,
    /// The place of the flow whose packet came last: the next packet is often of the same flow.
    latest: u32,
}

#[derive(Debug)]
struct Slot<T> {
    key: CompactKey,
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
    /// The first flow that was not told to rest since its last packet.
    awake: u32,
    len: usize,
}

/// A flow that has left the table.
#[derive(Debug)]
pub(crate) struct Removed<T> {
    /// Where it was.
    pub(crate) index: FlowIndex,
    pub(crate) key: FlowKey,
    pub(crate) flow: T,
}

/// What [`FlowTable::admit`] did.
#[derive(Debug)]
pub(crate) enum Admission<T> {
    /// There was room.
    Admitted(FlowIndex),
    /// There is room now, in the place of this flow, which was there.
    Displaced(FlowIndex, Removed<T>),
    /// Nobody gives way.
    Refused,
}

impl<T> FlowTable<T> {
    /// A table of at most `capacity` flows (at least 1); `timeouts` by [`Shelf`]. The seed keeps a
    /// stranger from choosing keys that collide.
    pub(crate) fn new(capacity: usize, timeouts: [Duration; SHELVES], seed: u64) -> Self {
        Self {
            index: HashTable::new(),
            hasher: FixedState::with_seed(seed),
            slots: Chunks::new(),
            free: Vec::new(),
            shelves: [Chain::EMPTY; SHELVES],
            timeouts,
            capacity: capacity.clamp(1, NIL as usize),
            latest: NIL,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// Other bounds from now on. Flows above `capacity` stay until they end, but no further one
    /// comes without another giving way.
    pub(crate) fn set_bounds(&mut self, capacity: usize, timeouts: [Duration; SHELVES]) {
        self.capacity = capacity.clamp(1, NIL as usize);
        self.timeouts = timeouts;
    }

    /// All flows, each with its key and the time of its last packet, in the order of their places.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowKey, Instant, &T)> {
        self.slots
            .iter()
            .filter_map(|slot| Some((slot.key.expand(), slot.last_seen, slot.flow.as_ref()?)))
    }

    /// The flow at `index` as [`Self::iter`] has it.
    pub(crate) fn report_at(&self, index: FlowIndex) -> Option<(FlowKey, Instant, &T)> {
        let slot = self.slots.entry(index.0)?;
        Some((slot.key.expand(), slot.last_seen, slot.flow.as_ref()?))
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<FlowIndex> {
        let sought = CompactKey::of(key);
        let is_latest = |slot: &Slot<T>| slot.key == sought && slot.flow.is_some();
        if self.slots.entry(self.latest).is_some_and(is_latest) {
            return Some(FlowIndex(self.latest));
        }
        let hash = self.hasher.hash_one(key);
        self.index
            .find(hash, |&slot| self.slots[slot].key == sought)
            .copied()
            .map(FlowIndex)
    }

    pub(crate) fn flow(&self, index: FlowIndex) -> Option<&T> {
        self.slots.entry(index.0)?.flow.as_ref()
    }

    pub(crate) fn flow_mut(&mut self, index: FlowIndex) -> Option<&mut T> {
        self.slots.entry_mut(index.0)?.flow.as_mut()
    }

    /// When the flow's last packet crossed.
    pub(crate) fn last_seen(&self, index: FlowIndex) -> Option<Instant> {
        let slot = self.slots.entry(index.0)?;
        slot.flow.is_some().then_some(slot.last_seen)
    }

    /// A flow with its key.
    pub(crate) fn entry_mut(&mut self, index: FlowIndex) -> Option<(FlowKey, &mut T)> {
        let Slot { key, flow, .. } = self.slots.entry_mut(index.0)?;
        Some((key.expand(), flow.as_mut()?))
    }

    pub(crate) fn key(&self, index: FlowIndex) -> Option<FlowKey> {
        let slot = self.slots.entry(index.0)?;
        slot.flow.is_some().then(|| slot.key.expand())
    }

    /// Enters a flow that is not in the table yet.
    pub(crate) fn admit(&mut self, now: Instant, key: FlowKey, flow: T) -> Admission<T> {
        let is_full = self.index.len() >= self.capacity;
        let displaced = if is_full { self.displace() } else { None };
        if is_full && displaced.is_none() {
            return Admission::Refused;
        }
        let slot = Slot {
            key: CompactKey::of(&key),
            shelf: Shelf::Opening,
            last_seen: now,
            before: NIL,
            behind: NIL,
            flow: Some(flow),
        };
        let place = if let Some(place) = self.free.pop() {
            self.slots[place] = slot;
            place
        } else {
            self.slots.push(slot)
        };
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index
            .insert_unique(hasher.hash_one(key), place, |&other| {
                hasher.hash_one(slots[other].key.expand())
            });
        self.append(place, Shelf::Opening);
        match displaced {
            Some(displaced) => Admission::Displaced(FlowIndex(place), displaced),
            None => Admission::Admitted(FlowIndex(place)),
        }
    }

    /// Notes a packet of the flow: it goes to the end of `shelf`. Returns the established flow that
    /// had to give way to it.
    #[must_use]
    pub(crate) fn touch(
        &mut self,
        now: Instant,
        index: FlowIndex,
        shelf: Shelf,
    ) -> Option<Removed<T>> {
        self.flow(index)?;
        let place = index.0;
        self.latest = place;
        self.slots[place].last_seen = now;
        let was = self.slots[place].shelf;
        let chain = &mut self.shelves[shelf as usize];
        if was == shelf && chain.last == place {
            if chain.awake == NIL {
                chain.awake = place;
            }
            return None;
        }
        let displaced = (!was.is_established() && shelf.is_established())
            .then(|| self.displace_established())
            .flatten();
        self.unlink(place);
        self.append(place, shelf);
        displaced
    }

    pub(crate) fn remove(&mut self, index: FlowIndex) -> Option<Removed<T>> {
        let flow = self.slots.entry_mut(index.0)?.flow.take()?;
        let key = self.slots[index.0].key.expand();
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.index.find_entry(hash, |&slot| slot == index.0) {
            entry.remove();
        }
        self.unlink(index.0);
        self.free.push(index.0);
        Some(Removed { index, key, flow })
    }

    /// When the next flow has been idle for too long.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        (0..SHELVES).filter_map(|shelf| self.expiry_of(shelf)).min()
    }

    /// Removes one flow that has been idle for too long.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Removed<T>> {
        let shelf = (0..SHELVES).find(|&s| self.expiry_of(s).is_some_and(|at| at <= now))?;
        self.remove(FlowIndex(self.shelves[shelf].first))
    }

    /// When the next flow will have been idle for `pause`; each flow counts once after its last packet.
    pub(crate) fn next_rest(&self, pause: Duration) -> Option<Instant> {
        let of = |shelf| Some(self.slots.entry(self.awake_on(shelf))?.last_seen + pause);
        RESTING.into_iter().filter_map(of).min()
    }

    /// One flow that has been idle for `pause`: each once after its last packet.
    pub(crate) fn rest(&mut self, now: Instant, pause: Duration) -> Option<FlowIndex> {
        for shelf in RESTING {
            let place = self.awake_on(shelf);
            if let Some(slot) = self.slots.entry(place)
                && slot.last_seen + pause <= now
            {
                self.shelves[shelf as usize].awake = slot.behind;
                return Some(FlowIndex(place));
            }
        }
        None
    }

    const fn awake_on(&self, shelf: Shelf) -> u32 {
        self.shelves[shelf as usize].awake
    }

    fn expiry_of(&self, shelf: usize) -> Option<Instant> {
        let first = self.slots.entry(self.shelves[shelf].first)?;
        Some(first.last_seen + self.timeouts[shelf])
    }

    /// Makes room in a table that is full.
    fn displace(&mut self) -> Option<Removed<T>> {
        [Shelf::Closed, Shelf::Opening, Shelf::Established]
            .into_iter()
            .find_map(|shelf| self.displace_from(shelf))
    }

    /// Makes room for one more established flow in the share that these have.
    fn displace_established(&mut self) -> Option<Removed<T>> {
        let reserve = (self.capacity / RESERVE).max(1);
        let share = (self.capacity - reserve.min(self.capacity - 1)).max(1);
        let of = |shelf: Shelf| self.shelves[shelf as usize].len;
        let is_full = of(Shelf::Established) + of(Shelf::Pledged) >= share;
        is_full
            .then(|| self.displace_from(Shelf::Established))
            .flatten()
    }

    fn displace_from(&mut self, shelf: Shelf) -> Option<Removed<T>> {
        let first = FlowIndex(self.shelves[shelf as usize].first);
        self.remove(first)
    }

    fn append(&mut self, place: u32, shelf: Shelf) {
        let last = self.shelves[shelf as usize].last;
        let slot = &mut self.slots[place];
        slot.shelf = shelf;
        slot.before = last;
        slot.behind = NIL;
        let chain = &mut self.shelves[shelf as usize];
        match self.slots.entry_mut(last) {
            Some(previous) => previous.behind = place,
            None => chain.first = place,
        }
        chain.last = place;
        chain.len += 1;
        if chain.awake == NIL {
            chain.awake = place;
        }
    }

    fn unlink(&mut self, place: u32) {
        let Slot {
            before,
            behind,
            shelf,
            ..
        } = self.slots[place];
        let chain = &mut self.shelves[shelf as usize];
        match self.slots.entry_mut(before) {
            Some(slot) => slot.behind = behind,
            None => chain.first = behind,
        }
        match self.slots.entry_mut(behind) {
            Some(slot) => slot.before = before,
            None => chain.last = before,
        }
        chain.len -= 1;
        if chain.awake == place {
            chain.awake = behind;
        }
    }
}

impl Chain {
    const EMPTY: Self = Self {
        first: NIL,
        last: NIL,
        awake: NIL,
        len: 0,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::{Ipv4Addr, SocketAddr};
    use proptest::prelude::*;

    const TIMEOUTS: [Duration; SHELVES] = [
        Duration::from_secs(10),
        Duration::from_secs(60),
        Duration::from_secs(7_440),
        Duration::from_secs(7_440),
    ];
    const PAUSE: Duration = Duration::from_secs(5);

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
            Admission::Displaced(index, displaced) => (index, Some(displaced.flow)),
            Admission::Refused => panic!("{port} was refused"),
        }
    }

    fn touch(table: &mut FlowTable<u16>, now: Instant, index: FlowIndex, shelf: Shelf) {
        assert!(table.touch(now, index, shelf).is_none(), "there is room");
    }

    #[test]
    fn a_full_table_gives_up_closed_flows_first_then_half_open_ones() {
        let mut table = FlowTable::new(3, TIMEOUTS, 1);
        let now = Instant::ZERO;
        let (established, _) = admit(&mut table, now, 1);
        touch(&mut table, now, established, Shelf::Established);
        let (_opening, _) = admit(&mut table, now, 2);
        let (closed, _) = admit(&mut table, now, 3);
        touch(&mut table, now, closed, Shelf::Closed);
        assert_eq!(admit(&mut table, now, 4).1, Some(3));
        assert_eq!(admit(&mut table, now, 5).1, Some(2));
        assert_eq!(table.len(), 3);
        assert!(table.find(&key(1)).is_some());
    }

    #[test]
    fn idle_flows_expire_by_shelf() {
        let mut table = FlowTable::new(8, TIMEOUTS, 1);
        let (established, _) = admit(&mut table, Instant::ZERO, 1);
        touch(&mut table, Instant::ZERO, established, Shelf::Established);
        admit(&mut table, Instant::from_millis(500), 2);
        assert_eq!(table.next_expiry(), Some(Instant::from_millis(60_500)));
        assert!(table.expire(Instant::from_millis(60_499)).is_none());
        assert_eq!(
            table
                .expire(Instant::from_millis(60_500))
                .map(|expired| expired.flow),
            Some(2)
        );
        assert_eq!(table.next_expiry(), Some(Instant::from_millis(7_440_000)));
    }

    #[test]
    fn established_flows_leave_room_for_those_that_open() {
        let mut table = FlowTable::new(16, TIMEOUTS, 1);
        let now = Instant::ZERO;
        for port in 0..14 {
            let (index, _) = admit(&mut table, now, port);
            touch(&mut table, now, index, Shelf::Established);
        }
        // However many open, none of the established ones gives way.
        for port in 100..200 {
            admit(&mut table, now, port);
        }
        assert!((0..14).all(|port| table.find(&key(port)).is_some()));
        let last = table.find(&key(199)).expect("it came last");
        let displaced = table.touch(now, last, Shelf::Established);
        assert_eq!(
            displaced.map(|displaced| displaced.flow),
            Some(0),
            "its own like"
        );
    }

    #[test]
    fn pledged_flows_never_give_way() {
        let mut table = FlowTable::new(4, TIMEOUTS, 1);
        let now = Instant::ZERO;
        for port in 0..4 {
            let (index, _) = admit(&mut table, now, port);
            touch(&mut table, now, index, Shelf::Pledged);
        }
        assert!(matches!(table.admit(now, key(9), 9), Admission::Refused));
        let first = table.find(&key(0)).expect("it stays");
        touch(&mut table, now, first, Shelf::Established);
        assert_eq!(admit(&mut table, now, 9).1, Some(0));
    }

    #[test]
    fn a_flow_is_told_to_rest_once_after_each_packet() {
        let mut table = FlowTable::new(8, TIMEOUTS, 1);
        let at = Instant::from_millis;
        let [a, b] = [1, 2].map(|port| {
            let (index, _) = admit(&mut table, Instant::ZERO, port);
            touch(&mut table, at(port.into()), index, Shelf::Established);
            index
        });
        assert_eq!(table.next_rest(PAUSE), Some(at(5_001)));
        assert_eq!(table.rest(at(5_000), PAUSE), None);
        assert_eq!(table.rest(at(5_001), PAUSE), Some(a));
        assert_eq!(table.rest(at(5_001), PAUSE), None);
        touch(&mut table, at(5_001), b, Shelf::Established);
        assert_eq!(table.rest(at(10_000), PAUSE), None);
        assert_eq!(table.rest(at(10_001), PAUSE), Some(b));
        assert_eq!(table.next_rest(PAUSE), None);
        touch(&mut table, at(11_000), b, Shelf::Established);
        assert_eq!(table.next_rest(PAUSE), Some(at(16_000)));
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
                        let displaced = table.touch(now, index, to);
                        let gone = displaced.map(|displaced| displaced.flow);
                        prop_assert!(gone != Some(port));
                        model.retain(|(known, ..)| *known != port && Some(*known) != gone);
                        model.push((port, shelf, now));
                    }
                    Op::Remove(port) => {
                        let removed = table.find(&key(port)).and_then(|index| table.remove(index));
                        prop_assert_eq!(removed.is_some(), model.iter().any(|(p, ..)| *p == port));
                        model.retain(|(known, ..)| *known != port);
                    }
                    Op::Expire(seconds) => {
                        now += Duration::from_secs(seconds);
                        while let Some(index) = table.rest(now, PAUSE) {
                            let port = table.flow(index).copied();
                            let known = model.iter().find(|(known, ..)| Some(*known) == port);
                            prop_assert!(known.is_some_and(|(.., seen)| *seen + PAUSE <= now));
                        }
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
