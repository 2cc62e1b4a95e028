//! Running labs know of each other through files, so that a shell can be opened in a host of one.
//!
//! Each lab keeps a file in the user's runtime directory that says how to reach its namespaces:
//! through the descriptors of its process. The file goes with the lab; one that a killed process
//! has left behind is recognised and removed.

use crate::host::Host;
use outlast_linux::clock;
use outlast_linux::namespace::{Namespace, NamespaceError};
use outlast_linux::process;
use outlast_world::Side;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Uid, geteuid};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

/// A lab that runs now, in this process or another one of the same user.
#[derive(Clone, Debug)]
pub struct RunningLab {
    entry: Entry,
}

/// Why a running lab cannot be found or entered.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// The directory belongs to somebody else, or others may write to it.
    #[error(
        "{} is not safe: it must be a directory of yours that nobody else may enter",
        path.display()
    )]
    Unsafe {
        /// The directory.
        path: PathBuf,
    },
    /// A file cannot be read or written.
    #[error("cannot use {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The lab has ended meanwhile.
    #[error("the lab \"{scenario}\" has ended")]
    Ended {
        /// The scenario that it ran.
        scenario: String,
    },
    /// Its namespace cannot be reached.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

/// What a file says.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Entry {
    scenario: String,
    pid: u32,
    /// When the process began, in clock ticks since the machine's start: tells it from a later
    /// one with the same number.
    process_start: u64,
    /// When the lab began, in nanoseconds since the machine's start.
    began_ns: u64,
    /// Descriptors of the process, of the fixed and of the mobile host's namespace.
    namespaces: [i32; 2],
}

/// The labs that run now, the oldest first.
///
/// # Errors
/// When the runtime directory is unsafe or cannot be read. If there is none, no lab runs.
pub fn running() -> Result<Vec<RunningLab>, RegistryError> {
    running_in(&directory())
}

impl RunningLab {
    /// The scenario that it runs.
    #[must_use]
    pub fn scenario(&self) -> &str {
        &self.entry.scenario
    }

    /// The process that runs it.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.entry.pid
    }

    /// For how long it has been running.
    #[must_use]
    pub fn age(&self) -> Duration {
        clock::now().since(outlast_base::time::Instant::from_nanos(self.entry.began_ns))
    }

    /// A command that will run `program` inside the host of `side`, with the powers to look at
    /// and to change its network. It may outlive the lab; the host then has no link any more.
    ///
    /// # Errors
    /// When the lab has ended, or the caller may not reach it.
    pub fn command(
        &self,
        side: Side,
        program: impl AsRef<OsStr>,
    ) -> Result<Command, RegistryError> {
        let process = PathBuf::from("/proc").join(self.entry.pid.to_string());
        let descriptor = self.entry.namespaces[side.index()];
        let user = foreign_user_namespace(&process)?;
        let network = Namespace::open(&process.join("fd").join(descriptor.to_string()))?;
        // What was opened belongs to the lab only if its process was there all the while.
        if !self.entry.is_alive() {
            return Err(RegistryError::Ended {
                scenario: self.entry.scenario.clone(),
            });
        }
        let mut command = Command::new(program);
        process::place(&mut command, user, network.into());
        Ok(command)
    }
}

impl Entry {
    fn is_alive(&self) -> bool {
        process_start(self.pid).is_ok_and(|start| start == self.process_start)
    }
}

/// The presence of a lab in the registry, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Registration {
    file: Option<PathBuf>,
}

impl Registration {
    /// Registers a lab. One that cannot be registered runs all the same.
    pub(crate) fn new(scenario: &str, fixed: &Host, mobile: &Host) -> Self {
        let namespaces = [fixed, mobile].map(|host| host.namespace().as_fd().as_raw_fd());
        match register_in(&directory(), scenario, namespaces) {
            Ok(file) => Self { file: Some(file) },
            Err(error) => {
                tracing::warn!("no shell can be opened in this lab: {error}");
                Self { file: None }
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(file) = &self.file {
            // What stays behind is recognised as the file of a process that has ended.
            let _ = fs::remove_file(file);
        }
    }
}

/// The labs whose files are in `directory`, as [`running`] has them.
///
/// # Errors
/// As [`running`].
pub fn running_in(directory: &Path) -> Result<Vec<RunningLab>, RegistryError> {
    match check(directory) {
        Err(RegistryError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            return Ok(Vec::new());
        }
        outcome => outcome?,
    }
    let failed = |source| RegistryError::File {
        path: directory.into(),
        source,
    };
    let mut labs = Vec::new();
    for file in fs::read_dir(directory).map_err(failed)? {
        let path = file.map_err(failed)?.path();
        if path.extension() != Some(OsStr::new("json")) {
            continue;
        }
        // Gone meanwhile, or half written by a version that did not rename: not a lab to enter.
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        match serde_json::from_str::<Entry>(&text) {
            Ok(entry) if entry.is_alive() => labs.push(RunningLab { entry }),
            Ok(_) | Err(_) => {
                // Somebody else may have removed it first.
                let _ = fs::remove_file(&path);
            }
        }
    }
    labs.sort_by_key(|lab| lab.entry.began_ns);
    Ok(labs)
}

fn register_in(
    directory: &Path,
    scenario: &str,
    namespaces: [i32; 2],
) -> Result<PathBuf, RegistryError> {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(source) if source.kind() != io::ErrorKind::AlreadyExists => {
            return Err(RegistryError::File {
                path: directory.into(),
                source,
            });
        }
        _ => check(directory)?,
    }
    let pid = std::process::id();
    let file = directory.join(format!("{pid}-{}.json", NUMBER.fetch_add(1, Relaxed)));
    let failed = |source| RegistryError::File {
        path: file.clone(),
        source,
    };
    let entry = Entry {
        scenario: scenario.into(),
        pid,
        process_start: process_start(pid).map_err(failed)?,
        began_ns: clock::now().as_nanos(),
        namespaces,
    };
    let text = serde_json::to_string(&entry).map_err(|error| failed(error.into()))?;
    // Renamed into place, so that nobody reads half of it.
    let unfinished = file.with_extension("new");
    fs::write(&unfinished, text).map_err(failed)?;
    fs::rename(&unfinished, &file).map_err(failed)?;
    Ok(file)
}

/// Directory of this user's files.
fn directory() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR");
    directory_of(geteuid(), runtime.as_deref().map(Path::new))
}

/// Directory of a user's files: in the user's runtime directory, or in the next best place.
///
/// It is never `/run/outlast`: others have to reach that directory of the daemons, and the user of a unit may own it.
fn directory_of(user: Uid, runtime: Option<&Path>) -> PathBuf {
    match runtime {
        Some(runtime) if runtime == Path::new("/run") => PathBuf::from("/run/outlast-labs"),
        Some(runtime) if runtime.is_absolute() => runtime.join("outlast"),
        _ if user.is_root() => PathBuf::from("/run/outlast-labs"),
        _ => PathBuf::from(format!("/tmp/outlast-{}", user.as_raw())),
    }
}

/// Whether `directory` is the user's alone: in a place like `/tmp` somebody else may have made it.
fn check(directory: &Path) -> Result<(), RegistryError> {
    let metadata = fs::symlink_metadata(directory).map_err(|source| RegistryError::File {
        path: directory.into(),
        source,
    })?;
    let safe =
        metadata.is_dir() && metadata.uid() == geteuid().as_raw() && metadata.mode() & 0o077 == 0;
    if safe {
        Ok(())
    } else {
        Err(RegistryError::Unsafe {
            path: directory.into(),
        })
    }
}

/// When process `pid` began: field 22 of its `stat`, counted behind the name, which may contain
/// anything.
fn process_start(pid: u32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let fields = stat.rsplit_once(')').map(|(_, fields)| fields);
    let start = fields.and_then(|fields| fields.split_whitespace().nth(19)?.parse().ok());
    start.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The user namespace of `process`, if it is another than the caller's.
fn foreign_user_namespace(process: &Path) -> Result<Option<OwnedFd>, RegistryError> {
    let path = process.join("ns/user");
    let failed = |source| RegistryError::File {
        path: path.clone(),
        source,
    };
    let theirs = fs::metadata(&path).map_err(failed)?.ino();
    let own = fs::metadata("/proc/self/ns/user").map_err(failed)?.ino();
    if theirs == own {
        return Ok(None);
    }
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(&path, flags, Mode::empty());
    fd.map(Some).map_err(|errno| failed(errno.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_lab_is_found_while_it_runs_and_not_after() {
        let place = tempfile::tempdir().expect("directory");
        let directory = place.path().join("outlast");
        assert!(running_in(&directory).expect("none yet").is_empty());
        let file = register_in(&directory, "tunnel", [3, 4]).expect("registered");
        let registration = Registration { file: Some(file) };
        let labs = running_in(&directory).expect("readable");
        assert_eq!(labs.len(), 1);
        assert_eq!(
            (labs[0].scenario(), labs[0].pid()),
            ("tunnel", std::process::id())
        );
        drop(registration);
        assert!(running_in(&directory).expect("readable").is_empty());
    }

    #[test]
    fn what_a_killed_process_left_behind_is_removed() {
        let place = tempfile::tempdir().expect("directory");
        let directory = place.path().join("outlast");
        let file = register_in(&directory, "tunnel", [3, 4]).expect("registered");
        let text = fs::read_to_string(&file).expect("readable");
        let mut entry: Entry = serde_json::from_str(&text).expect("written above");
        entry.process_start += 1; // an earlier process with our number
        fs::write(&file, serde_json::to_string(&entry).expect("serialisable")).expect("written");
        assert!(running_in(&directory).expect("readable").is_empty());
        assert!(!file.exists());
    }

    /// Daemons have `/run/outlast`, which others may enter: a lab that made it first would shut these out, and one
    /// that came later would not trust it.
    #[test]
    fn no_lab_uses_the_directory_of_the_daemons() {
        let users = [Uid::ROOT, Uid::from_raw(1_000)];
        let runtimes = [
            None,
            Some("/run"),
            Some("/run/"),
            Some("/run/user/0"),
            Some("run"),
        ];
        for (user, runtime) in users.iter().flat_map(|user| runtimes.map(|it| (*user, it))) {
            let directory = directory_of(user, runtime.map(Path::new));
            let daemons = Path::new("/run/outlast");
            assert!(!directory.starts_with(daemons), "{user:?}, {runtime:?}");
        }
        let labs = directory_of(Uid::ROOT, None);
        assert_eq!(labs, Path::new("/run/outlast-labs"));
    }

    #[test]
    fn a_directory_that_others_may_enter_is_not_trusted() {
        let place = tempfile::tempdir().expect("directory");
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755)).expect("chmod");
        let refused = running_in(place.path()).expect_err("unsafe");
        assert!(matches!(refused, RegistryError::Unsafe { .. }));
        let refused = register_in(place.path(), "tunnel", [3, 4]).expect_err("unsafe");
        assert!(matches!(refused, RegistryError::Unsafe { .. }));
    }
}
