//! Reading the table of connections (`bpf/table.h`) while the programs go on writing it.

use super::entry::{self, BEGUN_AT, ENTRY};
use super::key::{HOSTS, KEY, Secrets};
use crate::sys::map::MappedArray;
use rustix::fd::BorrowedFd;
use std::io;

/// `struct bucket`.
pub(super) const SLOTS: usize = 16;
pub(super) const BUCKET: usize = 4 * SLOTS;
/// Places for each bucket: few enough that next to no full table has a connection without a slot.
const SHARE: u32 = 2;
/// A slot that says something.
const IS_SLOT: u32 = 1 << 31;
/// An entry that is being written is read again this often.
const TRIES: usize = 8;

/// How many connections there is room for, and what follows from that.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Room {
    /// `PLACES`.
    pub(super) places: u32,
    /// Buckets of the index, a power of two.
    pub(super) buckets: u32,
}

impl Room {
    /// The most places: a slot has to name each, and some of its connection's hash.
    const MOST: u32 = 1 << 24;

    pub(super) fn for_flows(flows: u32) -> Self {
        let places = flows.clamp(1, Self::MOST);
        Self {
            places,
            buckets: places.div_ceil(SHARE).next_power_of_two(),
        }
    }

    /// `BUCKET_MASK`.
    pub(super) const fn bucket_mask(self) -> u32 {
        self.buckets - 1
    }

    /// `PLACE_MASK`: bits that all places, counted from one, fit into.
    pub(super) const fn place_mask(self) -> u32 {
        u32::MAX >> self.places.leading_zeros()
    }

    /// `tag_of`.
    const fn tag_of(self, hash: u32) -> u32 {
        (hash | IS_SLOT) & !self.place_mask()
    }

    /// The place that a slot names, if it may be that of a connection with this hash.
    fn place(self, slot: u32, hash: u32) -> Option<u32> {
        let place = slot.wrapping_sub(self.tag_of(hash));
        (1..=self.places).contains(&place).then(|| place - 1)
    }
}

/// The table of a loaded tracker.
#[derive(Debug)]
pub(super) struct Table {
    entries: MappedArray,
    index: MappedArray,
    hand: MappedArray,
    room: Room,
}

/// Where a connection is in the table.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Found {
    pub(super) place: u32,
    pub(super) bucket: u32,
    /// Which of the bucket's slots, in bytes from its beginning.
    pub(super) slot: usize,
}

impl Table {
    /// The maps `FLOWS`, `INDEX` and `HAND`.
    pub(super) fn of(
        entries: BorrowedFd<'_>,
        index: BorrowedFd<'_>,
        hand: BorrowedFd<'_>,
        room: Room,
    ) -> io::Result<Self> {
        Ok(Self {
            entries: MappedArray::of(entries, ENTRY * room.places as usize)?,
            index: MappedArray::of(index, BUCKET * room.buckets as usize)?,
            hand: MappedArray::of(hand, 8)?,
            room,
        })
    }

    /// Where the connection with this key and these hosts is, and its entry.
    pub(super) fn find(
        &self,
        secrets: &Secrets,
        key: &[u8; KEY],
        hosts: &[u8; HOSTS],
    ) -> Option<(Found, [u8; ENTRY])> {
        let hash = secrets.index_hash(key);
        let bucket = hash & self.room.bucket_mask();
        let mut bytes = [0; ENTRY];
        for slot in (0..BUCKET).step_by(4) {
            let word = self.index.load_u32(bucket as usize * BUCKET + slot);
            let Some(place) = self.room.place(word, hash) else {
                continue;
            };
            let is_it = self.read(place, &mut bytes)
                && entry::key(&bytes) == key
                && entry::hosts(&bytes) == hosts;
            if is_it {
                let found = Found {
                    place,
                    bucket,
                    slot,
                };
                return Some((found, bytes));
            }
        }
        None
    }

    /// Shows the entry of each connection.
    pub(super) fn read_all(&self, mut visit: impl FnMut(&[u8; ENTRY])) {
        let passed = u32::try_from(self.hand.load_u64(0)).unwrap_or(u32::MAX);
        let mut bytes = [0; ENTRY];
        for place in 0..self.room.places.min(passed) {
            if self.read(place, &mut bytes) {
                visit(&bytes);
            }
        }
    }

    /// Copies what is at a place; whether it is a connection's.
    fn read(&self, place: u32, bytes: &mut [u8; ENTRY]) -> bool {
        let at = place as usize * ENTRY;
        for _ in 0..TRIES {
            self.entries.copy(at, bytes);
            // Whoever writes here begins with this.
            let is_unchanged = self.entries.load_u32(at + BEGUN_AT) == entry::begun(bytes);
            if is_unchanged && entry::is_settled(bytes) {
                return entry::is_one(bytes);
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_names_each_place_of_any_table_and_is_never_zero() {
        for flows in [1, 2, 3, 4, 5, 1023, 1024, 262_144, u32::MAX] {
            let room = Room::for_flows(flows);
            assert!(room.buckets.is_power_of_two());
            for hash in [0, 1, IS_SLOT, 0x7fff_ffff, u32::MAX, 0x1234_5678] {
                for place in [0, room.places / 2, room.places - 1] {
                    let slot = room.tag_of(hash) + place + 1;
                    assert_eq!(room.place(slot, hash), Some(place), "{room:?}");
                }
                assert_eq!(room.place(0, hash), None);
                let other_tag = hash ^ (1 << 30);
                assert_eq!(room.place(room.tag_of(other_tag) + 1, hash), None);
            }
        }
    }

    #[test]
    fn buckets_have_room_for_four_times_their_share() {
        let Room { places, buckets } = Room::for_flows(262_144);
        assert_eq!(buckets * SHARE, places);
    }
}
