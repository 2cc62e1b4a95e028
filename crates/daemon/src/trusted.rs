//! Files that a daemon goes by: opened without waiting for anybody, and only if nobody else may have written them.
//!
//! Whoever may write to a directory can put a file there under a name that the daemon looks for, or a FIFO, at which a
//! process waits for ever that opens it. A name that an operator gives is his own affair: a configuration file may
//! belong to anybody. What it names, and what the daemon finds by itself, has to belong to the daemon's user or root.

use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Purpose of a file, by which it is trusted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    /// An operator has named it on the command line. Not everybody may write to it.
    Configuration,
    /// A key: it belongs to this user or root, and nobody else may even read it.
    Key,
    /// An earlier process of this user, or of root, has left it. It is no symbolic link, and nobody else may write to it.
    Left,
}

/// The fault of a file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Distrust {
    /// A FIFO, a socket, a directory; for a file that is left, also a symbolic link.
    #[error("it is no regular file")]
    NoFile,
    /// Somebody else's.
    #[error("it belongs to the user with the number {0}")]
    Owner(u32),
    /// Open for writing to others.
    #[error("others may write to it (mode {0:03o})")]
    Writable(u32),
    /// A key that is open to others.
    #[error(
        "it is open to others (mode {0:04o}): `chmod 600` closes it; make a new one if somebody may have read it"
    )]
    Readable(u32),
    /// It cannot be opened or read.
    #[error(transparent)]
    Unreadable(#[from] io::Error),
}

impl Distrust {
    /// True if there is no such file.
    pub(crate) fn is_absence(&self) -> bool {
        matches!(self, Self::Unreadable(error) if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Opens the file at `path` by `options`, if it is to be trusted for its `purpose`.
pub(crate) fn open(
    path: &Path,
    purpose: Purpose,
    options: &mut OpenOptions,
) -> Result<File, Distrust> {
    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    flags.set(OFlags::NOFOLLOW, purpose == Purpose::Left);
    // The flags of `open` are a C int.
    let file = match options.custom_flags(flags.bits() as i32).open(path) {
        Ok(file) => file,
        Err(error) if is_no_file(&error) => return Err(Distrust::NoFile),
        Err(error) => return Err(error.into()),
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(Distrust::NoFile);
    }
    let (owner, mode) = (metadata.uid(), metadata.mode() & 0o7777);
    let is_ours = owner == 0 || owner == geteuid().as_raw();
    if purpose != Purpose::Configuration && !is_ours {
        return Err(Distrust::Owner(owner));
    }
    match purpose {
        Purpose::Configuration if mode & 0o002 != 0 => Err(Distrust::Writable(mode)),
        Purpose::Left if mode & 0o022 != 0 => Err(Distrust::Writable(mode)),
        Purpose::Key if mode & 0o077 != 0 => Err(Distrust::Readable(mode)),
        Purpose::Configuration | Purpose::Left | Purpose::Key => Ok(file),
    }
}

/// Reads the text of a file of at most `longest` bytes; what a longer one has behind these is left out.
pub(crate) fn read(path: &Path, purpose: Purpose, longest: u64) -> Result<String, Distrust> {
    let file = open(path, purpose, OpenOptions::new().read(true))?;
    let mut text = String::new();
    file.take(longest).read_to_string(&mut text)?;
    Ok(text)
}

/// Puts a file with `contents` in the place of the one at `path`. One that a crash has left half written goes first, and so
/// does whatever somebody else has put there. Only this user may read the file.
pub(crate) fn replace(path: &Path, contents: &[u8]) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push("-new");
    let new = PathBuf::from(new);
    match std::fs::remove_file(&new) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&new)?;
    file.write_all(contents)?;
    std::fs::rename(&new, path)
}

/// The directory that the service manager gives this daemon for its state (`StateDirectory=`), if it does.
pub(crate) fn state_directory() -> Option<PathBuf> {
    let directories = std::env::var_os("STATE_DIRECTORY")?;
    // Of several, which a colon separates, the first.
    let first = std::env::split_paths(&directories).next()?;
    first.is_absolute().then_some(first)
}

/// Reads a configuration file.
pub(crate) fn read_configuration(path: &Path) -> Result<String, Distrust> {
    read(path, Purpose::Configuration, u64::MAX)
}

/// True for the errors of opening a symbolic link that is not followed, or a socket, or a directory for writing.
fn is_no_file(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(Errno::LOOP | Errno::NXIO | Errno::NODEV | Errno::ISDIR)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};
    use std::os::unix::net::UnixListener;
    use std::sync::mpsc;
    use std::time::Duration;

    const ALL: [Purpose; 3] = [Purpose::Configuration, Purpose::Key, Purpose::Left];

    /// Result of opening the file, which must not wait for anybody.
    fn outcome(path: &Path, purpose: Purpose) -> Result<(), String> {
        let (told, heard) = mpsc::channel();
        let path = path.to_owned();
        std::thread::spawn(move || told.send(read(&path, purpose, 100).map(drop)));
        let opened = heard.recv_timeout(Duration::from_secs(20));
        opened.expect("it does not wait").map_err(|d| d.to_string())
    }

    #[test]
    fn what_is_no_file_is_refused_without_waiting() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        mknodat(CWD, at("fifo"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a FIFO");
        std::fs::create_dir(at("directory")).expect("ours");
        let _listener = UnixListener::bind(at("socket")).expect("ours");
        for name in ["fifo", "directory", "socket"] {
            for purpose in ALL {
                let told = outcome(&at(name), purpose).expect_err(name);
                assert!(told.contains("no regular file"), "{name}: {told}");
            }
        }
        assert!(outcome(&at("absent"), Purpose::Key).is_err());
    }

    #[test]
    fn a_file_is_trusted_by_its_owner_and_its_mode() {
        let place = tempfile::tempdir().expect("a directory");
        let at = |name: &str| place.path().join(name);
        let file = |name: &str, mode| {
            std::fs::write(at(name), "text").expect("ours");
            let permissions = std::fs::Permissions::from_mode(mode);
            std::fs::set_permissions(at(name), permissions).expect("ours");
        };
        // By purpose: configuration, key, left.
        for (mode, expected) in [
            (0o600, [true, true, true]),
            (0o640, [true, false, true]),
            (0o660, [true, false, false]),
            (0o644, [true, false, true]),
            (0o666, [false, false, false]),
        ] {
            file("file", mode);
            let taken = ALL.map(|purpose| outcome(&at("file"), purpose).is_ok());
            assert_eq!(taken, expected, "{mode:o}");
        }
        file("file", 0o600);
        symlink(at("file"), at("link")).expect("ours");
        let taken = ALL.map(|purpose| outcome(&at("link"), purpose).is_ok());
        assert_eq!(taken, [true, true, false]);
        if geteuid().is_root() {
            chown(at("file"), Some(65_534), None).expect("as root");
            let taken = ALL.map(|purpose| outcome(&at("file"), purpose).is_ok());
            assert_eq!(taken, [true, false, false]);
            let told = outcome(&at("file"), Purpose::Key).expect_err("somebody else's");
            assert!(told.contains("65534"), "{told}");
        }
    }
}
