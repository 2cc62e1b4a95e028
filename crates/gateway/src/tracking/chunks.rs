//! A list that grows without moving what it has, and never takes twice what it needs.

use alloc::vec::Vec;
use core::ops::{Index, IndexMut};

/// Entries of a chunk. The first one grows as it fills, all others are taken whole.
const CHUNK: usize = 128;

/// Entries by their place.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    chunks: Vec<Vec<T>>,
    len: u32,
}

impl<T> Chunks<T> {
    pub(super) const fn new() -> Self {
        Self {
            chunks: Vec::new(),
            len: 0,
        }
    }

    /// Puts `entry` at the end, and tells its place.
    pub(super) fn push(&mut self, entry: T) -> u32 {
        if (self.len as usize).is_multiple_of(CHUNK) {
            let is_first = self.chunks.is_empty();
            self.chunks
                .push(Vec::with_capacity(if is_first { 0 } else { CHUNK }));
        }
        if let Some(last) = self.chunks.last_mut() {
            last.push(entry);
        }
        let place = self.len;
        self.len += 1;
        place
    }

    #[inline]
    pub(super) fn entry(&self, place: u32) -> Option<&T> {
        let place = place as usize;
        self.chunks.get(place / CHUNK)?.get(place % CHUNK)
    }

    #[inline]
    pub(super) fn entry_mut(&mut self, place: u32) -> Option<&mut T> {
        let place = place as usize;
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK)
    }

    /// All entries, in the order of their places.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.chunks.iter().flatten()
    }
}

impl<T> Index<u32> for Chunks<T> {
    type Output = T;
    #[inline]
    fn index(&self, place: u32) -> &T {
        self.entry(place).expect("places come from the list itself")
    }
}

impl<T> IndexMut<u32> for Chunks<T> {
    #[inline]
    fn index_mut(&mut self, place: u32) -> &mut T {
        self.entry_mut(place)
            .expect("places come from the list itself")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_where_they_were_put() {
        let mut list = Chunks::new();
        let many = 3 * CHUNK as u32 + 7;
        for n in 0..many {
            assert_eq!(list.push(n), n);
        }
        assert!((0..many).all(|n| list[n] == n));
        assert_eq!((list.entry(many), list.entry(u32::MAX)), (None, None));
    }

    #[test]
    fn a_chunk_more_is_all_that_is_taken_ahead() {
        let mut list = Chunks::new();
        for n in 0..=4 * CHUNK {
            list.push(n);
        }
        let room: usize = list.chunks.iter().map(Vec::capacity).sum();
        assert_eq!(room, 5 * CHUNK);
    }
}
