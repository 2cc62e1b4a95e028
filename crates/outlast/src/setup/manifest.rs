//! The record of all that a set-up has made, written ahead of each step.
//!
//! It lies in a directory that belongs to the superuser alone, unlike the daemon's own state: who may change it
//! decides what `outlast setup --remove` removes.

use crate::setup::plan::below;
use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Directory of the record and of the files that were replaced.
pub(crate) const DIRECTORY: &str = "/var/lib/outlast-setup";
const NAME: &str = "manifest.json";
const LOCK: &str = "lock";
/// The form of the record.
const VERSION: u32 = 1;

/// Everything that a set-up has made.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub(crate) struct Manifest {
    version: u32,
    /// False from a run's first step to its end.
    pub(crate) is_complete: bool,
    pub(crate) entries: Vec<Entry>,
}

/// One thing that was made; it is undone in the reverse order.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(crate) enum Entry {
    Directory {
        path: PathBuf,
    },
    File {
        path: PathBuf,
        /// BLAKE3 of the contents, in hexadecimal.
        digest: String,
        /// The name of the copy of the file that was there before.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[serde(default)]
        replaced: Option<String>,
    },
    /// The user that the units name.
    Account,
    Unit {
        name: String,
        was_enabled: bool,
        was_active: bool,
    },
}

impl Manifest {
    pub(crate) fn new() -> Self {
        Self {
            version: VERSION,
            is_complete: false,
            entries: Vec::new(),
        }
    }

    /// Reads the record below `root`; `None` if nothing was set up.
    pub(crate) fn load(root: &Path) -> anyhow::Result<Option<Self>> {
        let path = directory(root).join(NAME);
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.with_context(|| format!("cannot read {}", path.display()))?,
        };
        let manifest: Self = serde_json::from_str(&text)
            .with_context(|| format!("{} is no record of `outlast setup`", path.display()))?;
        anyhow::ensure!(
            manifest.version == VERSION,
            "{} is of another version of `outlast setup` ({}): remove with that one",
            path.display(),
            manifest.version
        );
        Ok(Some(manifest))
    }

    /// Writes the record below `root`.
    pub(crate) fn save(&self, root: &Path) -> anyhow::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write_atomically(&directory(root).join(NAME), &text, 0o600)
    }

    /// True if every one of `units` was started.
    pub(crate) fn starts(&self, units: &[String]) -> bool {
        let is_there = |unit: &String| {
            let mut entries = self.entries.iter();
            entries.any(|entry| matches!(entry, Entry::Unit { name, .. } if name == unit))
        };
        units.iter().all(is_there)
    }

    /// Paths of the files in the record.
    pub(crate) fn files(&self) -> Vec<&Path> {
        let paths = self.entries.iter().filter_map(|entry| match entry {
            Entry::File { path, .. } => Some(path.as_path()),
            _ => None,
        });
        paths.collect()
    }
}

/// Removes the record below `root`, and its directory unless something is left there.
pub(crate) fn forget(root: &Path) -> anyhow::Result<()> {
    let directory = directory(root);
    for name in [NAME, LOCK] {
        remove_if_there(&directory.join(name))?;
    }
    remove_if_empty(&directory).map(drop)
}

/// The directory of the record and of replaced files, below `root`.
pub(crate) fn directory(root: &Path) -> PathBuf {
    below(root, Path::new(DIRECTORY))
}

/// Keeps other set-ups away until it is dropped; makes the directory of the record.
pub(crate) fn lock(root: &Path) -> anyhow::Result<File> {
    let directory = directory(root);
    let mut builder = fs::DirBuilder::new();
    let made = builder.recursive(true).mode(0o700).create(&directory);
    made.with_context(|| format!("cannot make {}", directory.display()))?;
    let path = directory.join(LOCK);
    let failed = || format!("cannot lock {}", path.display());
    let file = File::create(&path).with_context(failed)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(file),
        Err(rustix::io::Errno::WOULDBLOCK) => {
            anyhow::bail!("another `outlast setup` is at work; wait until it has ended")
        }
        Err(error) => Err(error).with_context(failed),
    }
}

/// The digest of a file's contents; `None` if there is no such file.
pub(crate) fn digest_of(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(digest(&bytes))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Writes a file so that a reader, or a crash, meets the former one or the whole new one.
pub(crate) fn write_atomically(path: &Path, bytes: &[u8], mode: u32) -> anyhow::Result<()> {
    let failed = || format!("cannot write {}", path.display());
    let directory = path.parent().unwrap_or(Path::new("/"));
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new()
            .prefix(".outlast-setup-")
            .tempfile_in(directory)?;
        file.write_all(bytes)?;
        file.as_file()
            .set_permissions(fs::Permissions::from_mode(mode))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        File::open(directory)?.sync_all()
    };
    write().with_context(failed)
}

pub(crate) fn remove_if_there(path: &Path) -> anyhow::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        removed => removed.with_context(|| format!("cannot remove {}", path.display())),
    }
}

/// Removes an empty directory; false if it is not empty.
pub(crate) fn remove_if_empty(path: &Path) -> anyhow::Result<bool> {
    match fs::remove_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot remove {}", path.display())),
    }
}
