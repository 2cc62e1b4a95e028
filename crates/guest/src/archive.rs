//! Initial file systems: archives in cpio's "newc" format (Linux, Documentation/driver-api/early-userspace/buffer-format.rst).

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// An archive that is being written. Directories come by themselves.
pub(crate) struct Archive<W> {
    out: W,
    /// Bytes written so far.
    length: usize,
    inode: u32,
    made: BTreeSet<PathBuf>,
}

impl<W: Write> Archive<W> {
    pub(crate) fn new(out: W) -> Self {
        Self {
            out,
            length: 0,
            inode: 0,
            made: BTreeSet::new(),
        }
    }

    /// Adds a file with these permissions. The first of several files at one place counts.
    pub(crate) fn file(&mut self, path: &Path, permissions: u32, data: &[u8]) -> io::Result<()> {
        self.entry(path, FILE | permissions, data)
    }

    pub(crate) fn directory(&mut self, path: &Path) -> io::Result<()> {
        self.entry(path, DIRECTORY | 0o755, &[])
    }

    pub(crate) fn link(&mut self, path: &Path, target: &str) -> io::Result<()> {
        self.entry(path, LINK | 0o777, target.as_bytes())
    }

    fn entry(&mut self, path: &Path, mode: u32, data: &[u8]) -> io::Result<()> {
        let path = relative(path);
        if path.as_os_str().is_empty() || self.made.contains(&path) {
            return Ok(());
        }
        if let Some(parent) = path.parent() {
            self.directory(parent)?;
        }
        let name = path
            .to_str()
            .ok_or(io::ErrorKind::InvalidFilename)?
            .to_owned();
        self.made.insert(path);
        self.inode += 1;
        self.write(&name, self.inode, mode, data)
    }

    fn write(&mut self, name: &str, inode: u32, mode: u32, data: &[u8]) -> io::Result<()> {
        let size = u32::try_from(data.len()).map_err(|_| io::ErrorKind::FileTooLarge)?;
        let name_size = name.len() + 1;
        let links = 1;
        // Owner, group, time, and numbers of devices are all zero.
        let header = format!(
            "070701{inode:08x}{mode:08x}{0:08x}{0:08x}{links:08x}{0:08x}{size:08x}{0:08x}{0:08x}{0:08x}{0:08x}{name_size:08x}{0:08x}",
            0
        );
        self.append(header.as_bytes())?;
        self.append(name.as_bytes())?;
        self.append(&[0])?;
        self.pad()?;
        self.append(data)?;
        self.pad()
    }

    /// Ends the archive.
    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.write("TRAILER!!!", 0, 0, &[])?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.length += bytes.len();
        self.out.write_all(bytes)
    }

    fn pad(&mut self) -> io::Result<()> {
        let missing = self.length.next_multiple_of(4) - self.length;
        self.append(&[0; 3][..missing])
    }
}

/// The path below the root, without `.` and `..`.
fn relative(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => plain.push(name),
            Component::ParentDir => {
                plain.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_come_before_their_files_and_every_entry_is_aligned() {
        let mut archive = Archive::new(Vec::new());
        archive
            .file(Path::new("/a/../b/c"), 0o755, b"12345")
            .unwrap();
        archive.file(Path::new("b/c"), 0o755, b"later").unwrap();
        archive.link(Path::new("/b/d"), "c").unwrap();
        let bytes = archive.finish().unwrap();
        assert_eq!(bytes.len() % 4, 0);
        let at = |wanted: &str| {
            bytes
                .windows(wanted.len())
                .position(|part| part == wanted.as_bytes())
        };
        assert!(at("b\0") < at("b/c\0") && at("b/c\0") < at("b/d\0"));
        assert!(at("12345").is_some() && at("later").is_none() && at("TRAILER!!!").is_some());
    }
}
