//! Machines that were saved after they had booted, and jobs that go on from there.

use crate::job::{Job, Outcome};
use crate::machine::{self, Beginning, Hardware, Machine, Parts};
use crate::mailbox::Mailbox;
use crate::processor::Processor;
use crate::{GuestError, Image, Kernel, place};
use rustix::fs::{FlockOperation, Timespec, Timestamps, UTIME_NOW, flock, futimens, statvfs};
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::Duration;
use tempfile::TempDir;

/// States that are kept; the one that was used longest ago goes first.
const MOST_KEPT: usize = 12;
const MEMORY: &str = "memory";
const DEVICES: &str = "devices";
const INITIAL: &str = "initial-file-system";

/// Room that a state may need, in MiB: its initial file system, and the memory that the guest has used.
const ROOM_MIB: u64 = 700;

/// Bounds of the host's patience with a guest.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// Real time, from when a guest begins or goes on until it must have stopped.
    pub real_time: Duration,
    /// Asked several times a second; the guest ends once the answer is yes.
    pub is_cancelled: Option<&'a (dyn Fn() -> bool + Sync)>,
}

impl Default for Limits<'_> {
    /// Ten minutes.
    fn default() -> Self {
        Self {
            real_time: Duration::from_secs(600),
            is_cancelled: None,
        }
    }
}

impl fmt::Debug for Limits<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Limits")
            .field("real_time", &self.real_time)
            .finish_non_exhaustive()
    }
}

/// A machine that has booted an image, saved.
#[derive(Debug)]
pub struct State {
    kernel: Kernel,
    init: PathBuf,
    hardware: Hardware,
    directory: PathBuf,
    /// Held as long as somebody uses it, so that nobody removes it.
    _used: File,
}

impl State {
    /// The state of `image` on `kernel`: made and saved now if there is none yet, which takes some ten seconds.
    ///
    /// States are kept below `$OUTLAST_GUESTS`, or `$XDG_CACHE_HOME/outlast/guests`, some hundred MB each.
    ///
    /// # Errors
    /// Without the emulator, or when something cannot be read, packed or booted.
    pub fn of(kernel: &Kernel, image: &Image) -> Result<Self, GuestError> {
        Self::of_watched(kernel, image, &Limits::default(), || {})
    }

    /// As [`of`](Self::of), within `limits`; `boots` is called if the image has to boot.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn of_watched(
        kernel: &Kernel,
        image: &Image,
        limits: &Limits<'_>,
        boots: impl FnOnce(),
    ) -> Result<Self, GuestError> {
        let home = home()?;
        let unusable = |source| GuestError::Home {
            directory: home.clone(),
            source,
        };
        fs::create_dir_all(&home).map_err(unusable)?;
        let name = name(kernel, image)?;
        let directory = home.join(&name);
        let used = home.join(format!("{name}.used"));
        let used = lock_file(&used).map_err(unusable)?;
        flock(&used, FlockOperation::LockExclusive)
            .map_err(|error| GuestError::file("lock", &directory)(error.into()))?;
        if !directory.is_dir() {
            make_room(&home)?;
            check_room(&home)?;
            boots();
            let work = TempDir::new_in(&home).map_err(unusable)?;
            boot(kernel, image, work.path(), limits)?;
            let made = work.keep();
            fs::rename(&made, &directory).map_err(GuestError::file("make", &directory))?;
        }
        flock(&used, FlockOperation::LockShared)
            .map_err(|error| GuestError::file("lock", &directory)(error.into()))?;
        // The time of its last use.
        touch(&used).map_err(GuestError::file("mark", &directory))?;
        Ok(Self {
            kernel: kernel.clone(),
            init: image.init().to_owned(),
            hardware: image.hardware(),
            directory,
            _used: used,
        })
    }

    /// The kernel that it runs.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The init process's path in the guest.
    #[must_use]
    pub fn init(&self) -> &Path {
        &self.init
    }

    /// Goes on from the state with `job`. The state stays as it is, and any number of jobs may run at once: each has a
    /// processor of the host's for itself, as far as there are enough.
    ///
    /// # Errors
    /// When the guest does not come to the job's end.
    pub fn run(&self, job: &Job, limits: &Limits<'_>) -> Result<Outcome, GuestError> {
        let work = TempDir::new().map_err(GuestError::file(
            "write to",
            Path::new("the directory for temporary files"),
        ))?;
        let mailbox_path = work.path().join("mailbox");
        let mailbox = Mailbox::create(&mailbox_path)?;
        mailbox.put_job(&job.to_bytes()?)?;
        let parts = Parts {
            kernel: &self.kernel,
            hardware: self.hardware,
            initial: &self.directory.join(INITIAL),
            memory: &self.directory.join(MEMORY),
            mailbox: &mailbox_path,
            console: work.path().join("console"),
        };
        let processor = processor()?;
        let mut machine = Machine::start(&parts, Beginning::Saved)?;
        machine.restore(&self.directory.join(DEVICES))?;
        if !machine.go_on(&processor)? {
            static TOLD: Once = Once::new();
            TOLD.call_once(|| {
                tracing::warn!(
                    "without the right to real-time priority (CAP_SYS_NICE), guests on a busy machine may differ by nanoseconds"
                );
            });
        }
        machine.wait_for_stop(limits)?;
        match mailbox.outcome()? {
            Some(message) => Outcome::from_bytes(&message),
            None => Err(machine.lost("stopped without an outcome")),
        }
    }
}

/// Boots an image up to where the guest stops itself, and saves it in `work`.
fn boot(
    kernel: &Kernel,
    image: &Image,
    work: &Path,
    limits: &Limits<'_>,
) -> Result<(), GuestError> {
    let initial = work.join(INITIAL);
    image.write(kernel, &initial)?;
    let mailbox_path = work.join("mailbox");
    Mailbox::create(&mailbox_path)?;
    let memory = work.join(MEMORY);
    let parts = Parts {
        kernel,
        hardware: image.hardware(),
        initial: &initial,
        memory: &memory,
        mailbox: &mailbox_path,
        console: work.join("console"),
    };
    // Two boots of one image are the same to the byte, too, if nothing else has the processor.
    let processor = processor()?;
    let mut machine = Machine::start(&parts, Beginning::Boot)?;
    machine.go_on(&processor)?;
    machine.wait_for_stop(limits)?;
    machine.save(&work.join(DEVICES))?;
    fs::remove_file(&mailbox_path).map_err(GuestError::file("remove", &mailbox_path))
}

/// Takes a processor for a guest.
fn processor() -> Result<Processor, GuestError> {
    let home = home()?;
    Processor::take(&home).map_err(GuestError::file("lock a processor in", &home))
}

/// A name that two states share only if they are the same.
fn name(kernel: &Kernel, image: &Image) -> Result<String, GuestError> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(machine::version(kernel.architecture())?.as_bytes());
    for word in machine::constants(kernel.architecture(), image.hardware()) {
        hasher.update(word.as_bytes());
        hasher.update(&[0]);
    }
    // The modules of a kernel's package are built with it.
    let path = kernel.image();
    let mut file = File::open(path).map_err(GuestError::file("read", path))?;
    io::copy(&mut file, &mut hasher).map_err(GuestError::file("read", path))?;
    image.hash(kernel, &mut hasher)?;
    let hash = hasher.finalize().to_hex();
    Ok(format!("{}-{}", kernel.release(), &hash[..16]))
}

fn home() -> Result<PathBuf, GuestError> {
    place::of("OUTLAST_GUESTS", "guests").ok_or(GuestError::Homeless)
}

fn lock_file(path: &Path) -> io::Result<File> {
    File::options().create(true).append(true).open(path)
}

/// Refuses a disk that is too full for a state: without room for its memory, the emulator would be killed.
fn check_room(home: &Path) -> Result<(), GuestError> {
    let about = statvfs(home).map_err(|error| GuestError::Home {
        directory: home.to_owned(),
        source: error.into(),
    })?;
    let free_mib = about.f_bavail.saturating_mul(about.f_frsize) >> 20;
    if free_mib < ROOM_MIB {
        return Err(GuestError::Full {
            directory: home.to_owned(),
            free_mib,
            needed_mib: ROOM_MIB,
        });
    }
    Ok(())
}

/// Sets a file's time to now.
fn touch(file: &File) -> io::Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    Ok(futimens(file, &times)?)
}

/// Removes the states that nobody uses and that were used longest ago, but for the newest ones.
fn make_room(home: &Path) -> Result<(), GuestError> {
    let entries = fs::read_dir(home).map_err(GuestError::file("read", home))?;
    let mut states = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "used")
            && let Ok(time) = entry.metadata().and_then(|about| about.modified())
        {
            states.push((time, path));
        }
    }
    states.sort();
    let surplus = (states.len() + 1).saturating_sub(MOST_KEPT);
    for (_, used) in states.into_iter().take(surplus) {
        let mark = lock_file(&used).map_err(GuestError::file("lock", &used))?;
        if flock(&mark, FlockOperation::NonBlockingLockExclusive).is_err() {
            continue;
        }
        let directory = used.with_extension("");
        for gone in [fs::remove_dir_all(&directory), fs::remove_file(&used)] {
            match gone {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(GuestError::file("remove", &directory)(error));
                }
                _ => {}
            }
        }
    }
    Ok(())
}
