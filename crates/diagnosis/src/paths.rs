//! The paths whose signs are remembered, and room for new ones.
//!
//! A connection holds the paths that it crosses. Others, of datagrams and of connections that are
//! over, make room once they have been quiet, and never take more than half of it.

use crate::signs::Signs;
use alloc::vec::Vec;
use core::net::IpAddr;
use foldhash::quality::FixedState;
use hashbrown::HashMap;
use outlast_base::time::Instant;
use outlast_wire::pcapng::Direction;

/// Paths that nobody holds make room when they were quiet for so long, in nanoseconds.
const QUIET: u64 = 1_000_000_000;

/// A path, by who sends and who receives, at a numbered point of the capture.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Path {
    /// From the first to the second.
    Hosts(u32, IpAddr, IpAddr),
    /// From a neighbourhood.
    Subnet(u32, IpAddr),
    /// To a host.
    Host(u32, IpAddr),
    /// Into an interface or out of it, as the capture tells.
    Interface(u32, Direction),
    /// From the first to the second, but for TCP.
    Datagrams(u32, IpAddr, IpAddr),
}

/// A place of the table.
#[derive(Clone, Debug)]
struct Entry {
    /// `None` where the place is free.
    path: Option<Path>,
    signs: Signs,
    /// Number of connections that hold it.
    holders: u32,
}

/// The signs of all paths.
#[derive(Debug)]
pub(crate) struct Paths {
    most: usize,
    places: HashMap<Path, usize, FixedState>,
    entries: Vec<Entry>,
    free: Vec<usize>,
    swept: Instant,
}

impl Paths {
    /// A table for so many paths.
    pub(crate) fn new(most: usize) -> Self {
        Self {
            most,
            places: HashMap::with_hasher(FixedState::with_seed(0)),
            entries: Vec::new(),
            free: Vec::new(),
            swept: Instant::ZERO,
        }
    }

    /// The place of a path that was seen before.
    pub(crate) fn known(&self, path: &Path) -> Option<usize> {
        self.places.get(path).copied()
    }

    /// The signs at a place.
    pub(crate) fn signs(&self, place: usize) -> &Signs {
        &self.entries[place].signs
    }

    /// Notes a sign at a place.
    #[inline]
    pub(crate) fn hear(&mut self, place: usize, at: Instant) {
        if let Some(entry) = self.entries.get_mut(place) {
            entry.signs.hear(at);
        }
    }

    /// The place of a path, which is new from `at` on if it was not known; `None` without room for it.
    pub(crate) fn place(&mut self, path: Path, at: Instant, for_connection: bool) -> Option<usize> {
        if let Some(place) = self.known(&path) {
            return Some(place);
        }
        let room = match for_connection {
            true => self.most,
            false => self.most / 2,
        };
        if self.places.len() >= room {
            self.sweep(at);
            if self.places.len() >= room {
                return None;
            }
        }
        let entry = Entry {
            path: Some(path),
            // Before the first sign nothing is known: it is no gap.
            signs: Signs::new(at),
            holders: 0,
        };
        let place = match self.free.pop() {
            Some(place) => {
                self.entries[place] = entry;
                place
            }
            None => {
                self.entries.push(entry);
                self.entries.len() - 1
            }
        };
        self.places.insert(path, place);
        Some(place)
    }

    /// Holds a place for a connection.
    pub(crate) fn hold(&mut self, place: usize) {
        self.entries[place].holders += 1;
    }

    /// Lets go of a place that a connection held.
    pub(crate) fn release(&mut self, place: usize) {
        let entry = &mut self.entries[place];
        entry.holders = entry.holders.saturating_sub(1);
    }

    /// Forgets the path at a place unless somebody holds it.
    pub(crate) fn forget(&mut self, place: usize) {
        let entry = &mut self.entries[place];
        if entry.holders > 0 {
            return;
        }
        if let Some(path) = entry.path.take() {
            self.places.remove(&path);
            self.free.push(place);
        }
    }

    /// Forgets paths that nobody holds and that have been quiet.
    fn sweep(&mut self, at: Instant) {
        if at.nanos_since(self.swept) < QUIET {
            return;
        }
        self.swept = at;
        for place in 0..self.entries.len() {
            if at.nanos_since(self.entries[place].signs.last()) >= QUIET {
                self.forget(place);
            }
        }
    }
}
