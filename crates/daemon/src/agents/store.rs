//! The journal on disk: what is frozen, so that a daemon that was killed knows it again.
//!
//! A file begins with a line that names its form; then come records, each a length of four bytes
//! (big-endian), the first eight bytes of a BLAKE3 hash of the entry, and the entry. A record that
//! is cut short or damaged ends the file: what follows was never relied upon, since each write is
//! on the disk before anything is said of it.

use crate::failure::Failure;
use crate::trusted::{self, Distrust, Purpose};
use outlast_agents::{Entry, FreezeId, Left};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const HEADER: &[u8] = b"outlast frozen connections 1\n";
const HASH: usize = 8;
/// A file that grows beyond this, and to twice what it was, is written anew.
const LONGEST: u64 = 16 << 20;

/// A journal that is written by this process alone.
#[derive(Debug)]
pub(super) struct Store {
    file: File,
    path: PathBuf,
    /// What is kept by it.
    live: BTreeSet<FreezeId>,
    /// What is over, of which neighbours are still to hear.
    over: BTreeSet<FreezeId>,
    length: u64,
    /// Its length when it was written anew.
    base: u64,
    /// A write has failed, and may have left a part of a record behind `length`, or elsewhere the
    /// place where the next one goes.
    is_torn: bool,
    /// What is kept, and is not on the disk.
    unwritten: BTreeSet<FreezeId>,
}

impl Store {
    /// Opens the journal at `path`, and says what an earlier process has left there.
    pub(super) fn open(path: &Path) -> Result<(Self, Left), Failure> {
        let refused = |error: io::Error| {
            Failure::Usage(format!(
                "cannot keep a journal at {}: {error}; name another place as `journal` in \
                 `[agents]`",
                path.display()
            ))
        };
        if let Some(directory) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            let mut builder = DirBuilder::new();
            builder.recursive(true).mode(0o700);
            builder.create(directory).map_err(refused)?;
        }
        let mut file = open(path).map_err(|reason| refused(io::Error::other(reason)))?;
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(Failure::Usage(format!(
                "another daemon keeps its journal at {}: give each one of its own",
                path.display()
            )));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(refused)?;
        let (entries, rest) = read(&bytes).ok_or_else(|| {
            Failure::Usage(format!(
                "{} is no journal of frozen connections, or of a later version: name another \
                 place as `journal` in `[agents]`",
                path.display()
            ))
        })?;
        if rest > 0 {
            tracing::warn!(
                bytes = rest,
                "the journal at {} ends with what was never finished",
                path.display()
            );
        }
        let mut store = Self {
            file,
            path: path.into(),
            live: BTreeSet::new(),
            over: BTreeSet::new(),
            length: 0,
            base: 0,
            is_torn: false,
            unwritten: BTreeSet::new(),
        };
        let left = entries.into_iter().collect();
        store.begin_anew(&left).map_err(refused)?;
        Ok((store, left))
    }

    /// Appends entries; with `is_durable`, they are on the disk when this returns.
    pub(super) fn append(&mut self, entries: &[Entry], is_durable: bool) -> io::Result<()> {
        if entries.is_empty() {
            return Ok(());
        }
        let mut bytes = Vec::new();
        for entry in entries {
            write_record(&mut bytes, entry);
            self.note(entry);
        }
        let is_empty = self.live.is_empty() && self.over.is_empty();
        let outcome = match is_empty && !is_durable {
            // Nothing is kept, and nobody is to hear of what was.
            true => self.cut_to(HEADER.len() as u64),
            false => self.write(&bytes, is_durable),
        };
        for entry in entries {
            match entry {
                Entry::Kept(kept) if outcome.is_err() => self.unwritten.insert(kept.id),
                Entry::Kept(kept) => self.unwritten.remove(&kept.id),
                Entry::Removed(id) => self.unwritten.remove(id),
            };
        }
        outcome?;
        if self.length > LONGEST.max(2 * self.base) {
            self.rewrite()?;
        }
        Ok(())
    }

    /// Notes an entry as [`Left::apply`] does, without the segments.
    fn note(&mut self, entry: &Entry) {
        match entry {
            Entry::Kept(kept) => {
                self.over.remove(&kept.id);
                self.live.insert(kept.id);
            }
            Entry::Removed(id) => {
                self.live.remove(id);
                if !self.over.remove(id) {
                    self.over.insert(*id);
                }
            }
        }
    }

    /// Whether everything that is kept is on the disk, and the last write was, too.
    pub(super) fn is_sound(&self) -> bool {
        !self.is_torn && self.unwritten.is_empty()
    }

    fn write(&mut self, bytes: &[u8], is_durable: bool) -> io::Result<()> {
        if self.is_torn {
            // Nobody would read what follows a part of a record.
            self.cut_to(self.length)?;
        }
        self.is_torn = true;
        self.file.write_all(bytes)?;
        if is_durable {
            self.file.sync_data()?;
        }
        self.length += bytes.len() as u64;
        self.is_torn = false;
        Ok(())
    }

    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.is_torn = true;
        self.file.set_len(length)?;
        self.file.seek(SeekFrom::Start(length))?;
        self.length = length;
        self.is_torn = false;
        Ok(())
    }

    fn rewrite(&mut self) -> io::Result<()> {
        // Wherever this ends, what comes next goes behind the last record.
        self.is_torn = true;
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(0))?;
        self.file.read_to_end(&mut bytes)?;
        let (entries, _) = read(&bytes).ok_or(io::ErrorKind::InvalidData)?;
        self.begin_anew(&entries.into_iter().collect())
    }

    /// Puts a file in place that says what is `left` alone.
    fn begin_anew(&mut self, left: &Left) -> io::Result<()> {
        let mut bytes = HEADER.to_vec();
        for entry in left.entries() {
            write_record(&mut bytes, &entry);
        }
        let mut beside = self.path.clone().into_os_string();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        // One that died here has left it behind.
        let _ = fs::remove_file(&beside);
        let mut file = open(&beside).map_err(io::Error::other)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        file.write_all(&bytes)?;
        file.sync_all()?;
        fs::rename(&beside, &self.path)?;
        if let Some(directory) = self.path.parent() {
            let directory = if directory.as_os_str().is_empty() {
                Path::new(".")
            } else {
                directory
            };
            File::open(directory)?.sync_all()?;
        }
        self.file = file;
        self.live = left.kept.keys().copied().collect();
        self.over.clone_from(&left.over);
        self.length = bytes.len() as u64;
        self.base = self.length;
        self.is_torn = false;
        Ok(())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // To close it is not enough while a child, or a reader of `/proc/PID/fd`, has the open file
        // for a moment. One that is open and locked can always be given up.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn open(path: &Path) -> Result<File, Distrust> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    trusted::open(path, Purpose::Left, options.mode(0o600))
}

fn hash(entry: &[u8]) -> [u8; HASH] {
    let hash = blake3::hash(entry);
    let mut first = [0; HASH];
    first.copy_from_slice(&hash.as_bytes()[..HASH]);
    first
}

fn write_record(out: &mut Vec<u8>, entry: &Entry) {
    let entry = entry.encode();
    let length = u32::try_from(entry.len()).expect("a segment and little else");
    out.extend(length.to_be_bytes());
    out.extend(hash(&entry));
    out.extend(entry);
}

/// The entries of a journal, and how many bytes follow them; `None` if it is none.
fn read(bytes: &[u8]) -> Option<(Vec<Entry>, usize)> {
    if !bytes.is_empty() && !bytes.starts_with(HEADER) {
        return None;
    }
    let mut rest = bytes.get(HEADER.len()..).unwrap_or_default();
    let mut entries = Vec::new();
    while let Some((entry, after)) = read_record(rest) {
        entries.push(entry);
        rest = after;
    }
    Some((entries, rest.len()))
}

fn read_record(bytes: &[u8]) -> Option<(Entry, &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (expected, rest) = rest.split_first_chunk::<HASH>()?;
    let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
    let (entry, rest) = rest.split_at_checked(length)?;
    let is_whole = hash(entry) == *expected;
    Some((Entry::decode(entry).ok().filter(|_| is_whole)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn removed(number: u64) -> Entry {
        Entry::Removed(FreezeId {
            instance: 1,
            number,
        })
    }

    #[test]
    fn what_was_cut_short_or_damaged_ends_a_journal() {
        let mut bytes = HEADER.to_vec();
        for number in 0..3 {
            write_record(&mut bytes, &removed(number));
        }
        let all = vec![removed(0), removed(1), removed(2)];
        assert_eq!(read(&bytes), Some((all.clone(), 0)));
        let record = (bytes.len() - HEADER.len()) / 3;
        for cut in 1..record {
            let (entries, rest) = read(&bytes[..bytes.len() - cut]).expect("a journal");
            assert_eq!((&entries[..], rest), (&all[..2], record - cut));
        }
        for at in HEADER.len()..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            let (entries, _) = read(&damaged).expect("a journal");
            assert_eq!(entries[..], all[..(at - HEADER.len()) / record]);
        }
        assert_eq!(read(b"something else\n"), None);
        assert_eq!(read(b""), Some((vec![], 0)));
    }

    #[test]
    fn arbitrary_bytes_are_no_entries_of_a_journal() {
        for seed in 0..500_u64 {
            let length = usize::try_from(seed % 97).expect("few");
            let mut tail = vec![0; length];
            let mut random = blake3::Hasher::new();
            random
                .update(&seed.to_be_bytes())
                .finalize_xof()
                .fill(&mut tail);
            if seed % 2 == 0 && length > 4 + HASH {
                // As long as it says, with a hash that is right.
                let (entry, first) = (tail.split_off(4 + HASH), &mut tail);
                let length = u32::try_from(entry.len()).expect("few");
                first[..4].copy_from_slice(&length.to_be_bytes());
                first[4..].copy_from_slice(&hash(&entry));
                tail.extend(entry);
            }
            let mut bytes = HEADER.to_vec();
            write_record(&mut bytes, &removed(1));
            bytes.extend(&tail);
            assert_eq!(
                read(&bytes),
                Some((vec![removed(1)], length)),
                "seed {seed}"
            );
        }
    }

    #[test]
    fn a_journal_has_one_writer_and_is_found_again() {
        let place = tempfile::TempDir::new().expect("a directory");
        let path = place.path().join("state/link0.frozen");
        let (mut store, left) = Store::open(&path).expect("a new one");
        assert_eq!(left, Left::default());
        assert!(Store::open(&path).is_err(), "somebody has it");
        store.append(&[removed(1)], true).expect("written");
        let length = fs::metadata(&path).expect("there").len();
        assert!(length > HEADER.len() as u64);
        drop(store);
        let (mut store, left) = Store::open(&path).expect("ours");
        let over = [FreezeId {
            instance: 1,
            number: 1,
        }];
        assert!(left.over.iter().eq(&over), "neighbours are to hear of it");
        store.append(&[removed(1)], false).expect("written");
        let length = fs::metadata(&path).expect("there").len();
        assert_eq!(length, HEADER.len() as u64, "nothing is left");
        drop(store);
        assert!(Store::open(&path).is_ok());
        fs::write(&path, "my thesis").expect("ours");
        assert!(Store::open(&path).is_err(), "it is not written over");
    }
    #[test]
    fn what_is_written_after_a_write_that_failed_is_found_again() {
        let place = tempfile::TempDir::new().expect("a directory");
        let path = place.path().join("link0.frozen");
        let (mut store, _) = Store::open(&path).expect("a new one");
        store.append(&[removed(1)], true).expect("written");
        // A full disk: a part of the record is there.
        let sound = core::mem::replace(&mut store.file, File::open(&path).expect("there"));
        assert!(store.append(&[removed(2)], true).is_err(), "not writable");
        assert!(!store.is_sound());
        store.file = sound;
        store.file.write_all(&[0; 7]).expect("written");
        store.append(&[removed(3)], true).expect("room again");
        assert!(store.is_sound());
        let bytes = fs::read(&path).expect("there");
        assert_eq!(read(&bytes), Some((vec![removed(1), removed(3)], 0)));
    }
}
