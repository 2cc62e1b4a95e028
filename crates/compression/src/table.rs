//! A table with a hard cap, of which what was not used for long gives way.

use alloc::collections::BTreeMap;
use outlast_base::time::{Duration, Instant};

/// Entries that were not used for this long give way when the table is full.
const IDLE: Duration = Duration::from_secs(600);
/// Between two looks for such entries.
const PAUSE: Duration = Duration::from_secs(10);

/// A table of at most `cap` entries.
#[derive(Debug)]
pub(crate) struct Table<K, V> {
    entries: BTreeMap<K, (Instant, V)>,
    cap: usize,
    next_look: Instant,
}

impl<K: Copy + Ord, V: Default> Table<K, V> {
    pub(crate) const fn new(cap: usize) -> Self {
        Self {
            entries: BTreeMap::new(),
            cap,
            next_look: Instant::ZERO,
        }
    }

    /// The entry of `key`, if there is one.
    pub(crate) fn find(&mut self, now: Instant, key: &K) -> Option<&mut V> {
        let (used, value) = self.entries.get_mut(key)?;
        *used = now;
        Some(value)
    }

    /// The entry of `key`, made if there is none; `None` if there is no room.
    pub(crate) fn entry(&mut self, now: Instant, key: K) -> Option<&mut V> {
        if self.entries.len() >= self.cap && !self.entries.contains_key(&key) {
            if now < self.next_look {
                return None;
            }
            self.next_look = now + PAUSE;
            self.entries.retain(|_, (used, _)| *used + IDLE > now);
            if self.entries.len() >= self.cap {
                return None;
            }
        }
        let (used, value) = self
            .entries
            .entry(key)
            .or_insert_with(|| (now, V::default()));
        *used = now;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_takes_no_more_until_an_entry_was_idle_for_long() {
        let mut table: Table<u32, u32> = Table::new(2);
        let begin = Instant::ZERO;
        for key in [1, 2] {
            *table.entry(begin, key).expect("there is room") = key;
        }
        assert_eq!(table.entry(begin, 3), None);
        let later = begin + IDLE;
        assert_eq!(table.find(later, &2), Some(&mut 2));
        assert_eq!(table.entry(later, 3), Some(&mut 0));
        assert_eq!(table.find(later, &1), None);
        assert_eq!(table.find(later, &2), Some(&mut 2));
    }
}
