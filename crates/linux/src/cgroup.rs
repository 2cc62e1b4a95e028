//! The cgroups (version 2) that programs are attached to.

use crate::causes;
use crate::lack::Lack;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{FsWord, Mode, OFlags, fstat, fstatfs, open};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What `statfs` says of version 2 (`CGROUP2_SUPER_MAGIC`).
const CGROUP2: FsWord = 0x6367_7270;

/// Cgroups that may be chosen: `MOST_CGROUPS` of `bpf/user_timeout.h`.
pub const MOST_CGROUPS: usize = 8;

const MOUNTS: &str = "/proc/self/mounts";
const MOUNT: &str = "mount it (`mount -t cgroup2 none /sys/fs/cgroup`), or boot with \
                     systemd.unified_cgroup_hierarchy=1";

/// Why there is no cgroup to attach to.
#[derive(Debug, thiserror::Error)]
pub enum CgroupError {
    /// Version 2 is mounted nowhere.
    #[error("cgroup v2 is not mounted: {MOUNT}")]
    NotMounted,
    /// The kernel does not say what is mounted.
    #[error("cannot read {MOUNTS}")]
    Mounts(#[source] io::Error),
    /// There is no such cgroup.
    #[error("cannot open the cgroup {}", path.display())]
    Open {
        /// What was named.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// It is a directory of something else.
    #[error(
        "{} is no cgroup of version 2: name a directory below the mount point of cgroup2", .0.display()
    )]
    Other(PathBuf),
    /// There is no room for so many.
    #[error("{0} cgroups are too many: name {MOST_CGROUPS} at most, or one above them")]
    TooMany(usize),
}

impl CgroupError {
    /// What is missing, and what would help.
    pub(crate) fn lack(&self) -> Lack {
        let remedy = match self {
            Self::NotMounted => MOUNT,
            Self::Mounts(_) => "mount procfs at /proc",
            Self::Open { .. } | Self::Other(_) | Self::TooMany(_) => {
                "name directories below the mount point of cgroup2"
            }
        };
        let what = match self {
            Self::NotMounted => "cgroup v2 is not mounted".into(),
            other => causes::in_one_line(other),
        };
        Lack { what, remedy }
    }
}

/// A cgroup of version 2.
#[derive(Debug)]
pub(crate) struct Cgroup {
    path: PathBuf,
    fd: OwnedFd,
    id: u64,
}

impl Cgroup {
    /// Those at `paths`; without any, the root of all.
    pub(crate) fn open_all(paths: &[PathBuf]) -> Result<Vec<Self>, CgroupError> {
        if paths.len() > MOST_CGROUPS {
            return Err(CgroupError::TooMany(paths.len()));
        }
        if paths.is_empty() {
            let mounts = fs::read_to_string(MOUNTS).map_err(CgroupError::Mounts)?;
            let root = mount_point(&mounts).ok_or(CgroupError::NotMounted)?;
            return Self::open(root).map(|root| vec![root]);
        }
        paths.iter().map(|path| Self::open(path.clone())).collect()
    }

    fn open(path: PathBuf) -> Result<Self, CgroupError> {
        let opened = || -> io::Result<(OwnedFd, u64, bool)> {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let fd = open(&path, flags, Mode::empty())?;
            // The number of its directory is that of the cgroup.
            let (id, kind) = (fstat(&fd)?.st_ino, fstatfs(&fd)?.f_type);
            Ok((fd, id, kind == CGROUP2))
        };
        match opened() {
            Ok((fd, id, true)) => Ok(Self { path, fd, id }),
            Ok(_) => Err(CgroupError::Other(path)),
            Err(source) => Err(CgroupError::Open { path, source }),
        }
    }

    /// As it was named.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Its number.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }
}

impl AsFd for Cgroup {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Where the first cgroup file system of version 2 is mounted.
fn mount_point(mounts: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let mut fields = line.split(' ');
        let place = fields.nth(1)?;
        (fields.next()? == "cgroup2").then(|| PathBuf::from(unescaped(place)))
    })
}

/// A field of the table of mounts, in which a space is written as `\040`.
fn unescaped(field: &str) -> String {
    field.replace("\\040", " ").replace("\\011", "\t")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mount_point_of_version_2_is_found_among_those_of_version_1() {
        let mounts = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      none /sys/fs/my\\040groups cgroup2 rw 0 0\n";
        assert_eq!(
            mount_point(mounts),
            Some(PathBuf::from("/sys/fs/my groups"))
        );
        assert_eq!(mount_point("proc /proc proc rw 0 0\n"), None);
    }

    #[test]
    fn what_is_no_cgroup_is_refused() {
        let opened = Cgroup::open_all(&[PathBuf::from("/proc")]);
        assert!(matches!(opened, Err(CgroupError::Other(_))), "{opened:?}");
        let opened = Cgroup::open_all(&[PathBuf::from("/nonesuch")]);
        assert!(matches!(opened, Err(CgroupError::Open { .. })));
        let opened = Cgroup::open_all(&vec![PathBuf::from("/proc"); MOST_CGROUPS + 1]);
        assert!(matches!(opened, Err(CgroupError::TooMany(9))));
    }
}
