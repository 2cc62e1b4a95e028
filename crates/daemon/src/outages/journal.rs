//! The records of outages on the disk, so that a daemon that is started again goes on with them.
//!
//! One JSON document a line, the newest last, as in `outlast status --json`: at most [`REMEMBERED`]. The file is
//! written anew after each outage, and put in the place of the old one as a whole. It is there where the service manager
//! gives the daemon a directory for its state (`StateDirectory=`), and nobody needs it: a file that cannot be read or
//! written is told of once.

use super::REMEMBERED;
use crate::status::Saved;
use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// The file of records.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// Trouble was told.
    has_failed: bool,
}

impl Journal {
    /// The journal of an interface's daemon; `None` without a directory for state (`STATE_DIRECTORY`).
    pub(super) fn of(interface: &str) -> Option<Self> {
        let directories = std::env::var_os("STATE_DIRECTORY")?;
        // Of several, which a colon separates, the first.
        let first = std::env::split_paths(&directories).next()?;
        first.is_absolute().then(|| Self::at(&first, interface))
    }

    fn at(directory: &Path, interface: &str) -> Self {
        Self {
            path: directory.join(format!("{interface}.outages")),
            has_failed: false,
        }
    }

    /// The records that an earlier daemon has left, the newest last. Lines that nobody understands are left out.
    pub(super) fn read(&mut self) -> VecDeque<Saved> {
        let mut text = String::new();
        let file = fs::File::open(&self.path);
        match file.and_then(|file| file.take(LARGEST).read_to_string(&mut text)) {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => self.tell(&error),
        }
        let lines = text.lines().rev();
        let known = lines.filter_map(|line| serde_json::from_str::<Saved>(line).ok());
        let mut newest: VecDeque<Saved> = known.take(REMEMBERED).collect();
        newest.make_contiguous().reverse();
        newest
    }

    /// Puts `records` in the place of those that are there, the newest last.
    pub(super) fn write<'a>(&mut self, records: impl Iterator<Item = &'a Saved>) {
        let mut text = String::new();
        for record in records {
            if let Ok(line) = serde_json::to_string(record) {
                text.push_str(&line);
                text.push('\n');
            }
        }
        let new = self.path.with_extension("outages-new");
        let written = fs::write(&new, text).and_then(|()| fs::rename(&new, &self.path));
        if let Err(error) = written {
            self.tell(&error);
        }
    }

    fn tell(&mut self, error: &io::Error) {
        if !self.has_failed {
            let path = self.path.display();
            tracing::warn!("the records of outages in {path} are not kept: {error}");
        }
        self.has_failed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::tests::sample;

    #[test]
    fn what_was_written_is_read_again_and_bounded() {
        let place = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::at(place.path(), "wwan0");
        assert_eq!(journal.read(), []);
        let record = sample().outages.remove(0);
        let many: Vec<Saved> = (0..REMEMBERED as u64 + 10)
            .map(|resumed| Saved {
                resumed,
                ..record.clone()
            })
            .collect();
        journal.write(many.iter());
        let read = Journal::at(place.path(), "wwan0").read();
        assert_eq!(read, &many[10..]);
        assert_eq!(fs::read_dir(place.path()).expect("ours").count(), 1);
    }

    #[test]
    fn a_damaged_journal_is_no_reason_to_fail() {
        let place = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::at(place.path(), "wwan0");
        let record = sample().outages.remove(0);
        let line = serde_json::to_string(&record).expect("JSON");
        fs::write(&journal.path, format!("{{\n{line}\n[]\n{line}")).expect("ours");
        assert_eq!(journal.read(), [record.clone(), record]);
        fs::write(&journal.path, [0xff; 100]).expect("ours");
        assert_eq!(journal.read(), []);
        let mut nowhere = Journal::at(&place.path().join("none"), "wwan0");
        nowhere.write(sample().outages.iter());
        assert!(nowhere.has_failed);
    }
}
