//! The records of outages on the disk, so that a daemon that is started again goes on with them.
//!
//! One JSON document a line, the newest last, as in `outlast status --json`: at most [`REMEMBERED`]. The file is
//! written anew after each outage, and put in the place of the old one as a whole. It is there where the service manager
//! gives the daemon a directory for its state (`StateDirectory=`), and nobody needs it: a file that cannot be read or
//! written is told of once each.

use super::REMEMBERED;
use crate::status::Saved;
use crate::trusted::{self, Purpose};
use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// The file of records.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    /// It was told that it cannot be written.
    has_failed: bool,
}

impl Journal {
    /// The journal of an interface's daemon; `None` without a directory for state (`STATE_DIRECTORY`).
    pub(super) fn of(interface: &str) -> Option<Self> {
        let directory = trusted::state_directory()?;
        Some(Self::at(&directory, interface))
    }

    fn at(directory: &Path, interface: &str) -> Self {
        Self {
            path: directory.join(format!("{interface}.outages")),
            has_failed: false,
        }
    }

    /// The records that an earlier daemon has left, the newest last. Lines that nobody understands are left out.
    pub(super) fn read(&self) -> VecDeque<Saved> {
        let mut bytes = Vec::new();
        let file = trusted::open(&self.path, Purpose::Left, OpenOptions::new().read(true));
        let read = file.and_then(|file| Ok(file.take(LARGEST).read_to_end(&mut bytes)?));
        if let Err(distrust) = read
            && !distrust.is_absence()
        {
            let path = self.path.display();
            tracing::warn!("the records of outages in {path} are not read: {distrust}");
        }
        let text = String::from_utf8_lossy(&bytes);
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
        let Err(error) = trusted::replace(&self.path, text.as_bytes()) else {
            return;
        };
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
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::fs;
    use std::os::unix::fs::symlink;

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
    fn nothing_is_read_from_or_written_to_what_somebody_else_has_put_there() {
        let place = tempfile::tempdir().expect("a directory");
        let mut journal = Journal::at(place.path(), "wwan0");
        let other = place.path().join("other");
        fs::write(&other, "precious").expect("ours");
        let new = journal.path.with_extension("outages-new");
        for name in [&journal.path, &new] {
            symlink(&other, name).expect("ours");
        }
        assert_eq!(journal.read(), []);
        let records = sample().outages;
        journal.write(records.iter());
        assert_eq!(fs::read_to_string(&other).expect("ours"), "precious");
        assert_eq!(journal.read(), records);
        fs::remove_file(&journal.path).expect("ours");
        mknodat(
            CWD,
            &journal.path,
            FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .expect("a FIFO");
        assert_eq!(journal.read(), [], "it does not wait");
    }

    #[test]
    fn a_damaged_journal_is_no_reason_to_fail() {
        let place = tempfile::tempdir().expect("a directory");
        let journal = Journal::at(place.path(), "wwan0");
        let record = sample().outages.remove(0);
        let line = serde_json::to_string(&record).expect("JSON");
        fs::write(&journal.path, format!("{{\n{line}\n[]\n{line}")).expect("ours");
        assert_eq!(journal.read(), [record.clone(), record]);
        let mut bytes = vec![0xff; 100];
        bytes.extend(format!("\n{line}").bytes());
        fs::write(&journal.path, bytes).expect("ours");
        assert_eq!(journal.read().len(), 1);
        let mut nowhere = Journal::at(&place.path().join("none"), "wwan0");
        nowhere.write(sample().outages.iter());
        assert!(nowhere.has_failed);
    }
}
