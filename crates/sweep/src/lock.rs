//! A file that one process at a time writes to.

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};

/// A file that is locked as long as this lives.
///
/// To close it would not be enough: a lock goes with the last reference to the open file, and for
/// a moment a child that is about to execute its program has one, or whoever reads `/proc/PID/fd`.
#[derive(Debug)]
pub(crate) struct Locked(File);

impl Locked {
    /// Locks `file`; `None` if someone else has.
    pub(crate) fn take(file: File) -> io::Result<Option<Self>> {
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(Self(file))),
            Err(Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The file is open and locked, and such a lock can always be given up.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Locked {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A copy of the descriptor, as a child has it between `fork` and `exec`, holds no lock.
    #[test]
    fn a_lock_ends_with_its_owner_whoever_else_has_the_file_open() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let open = || File::create(directory.path().join("file")).expect("a file of ours");
        let lock = || Locked::take(open()).expect("files can be locked here");
        let first = lock().expect("nobody else has it");
        let copy = first.try_clone().expect("a copy of the descriptor");
        assert!(lock().is_none(), "it is locked");
        drop(first);
        assert!(lock().is_some(), "its owner is gone");
        drop(copy);
    }
}
