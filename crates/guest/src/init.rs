//! The first program in a guest: it makes the machine ready, stops it so that its state can be saved, and carries a
//! job out when it goes on.

use crate::job::{Ended, Job, JobFile, Outcome};
use crate::mailbox::Slot;
use crate::{GuestError, modules};
use outlast_linux::clock;
use outlast_linux::netlink::{InterfaceSettings, RouteSocket};
use outlast_linux::window::{PciId, Window};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};
use rustix::system::sethostname;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;

/// The init process's path in a guest, by which a program knows that it is one.
pub(crate) const PATH: &str = "/init";
/// The path by which the kernel asks for modules.
pub(crate) const MODPROBE: &str = "/sbin/modprobe";
/// Loaded before the state is saved: what nearly every job uses.
const AT_ONCE: [&str; 4] = ["tun", "veth", "tcp_bbr", "sch_fq"];
/// QEMU's `pvpanic-pci`: a guest that says that it has panicked is stopped at that very instruction.
const STOP: PciId = PciId {
    vendor: 0x1b36,
    device: 0x0011,
};
const PANICKED: u8 = 1;
const OUTPUT: &str = "/run/outlast-job-output";
const ERRORS: &str = "/run/outlast-job-errors";
/// Files that come back from a job, at most.
const MOST_FILES: usize = 10_000;

/// Runs as the guest's init process, or loads a module for its kernel, if this process was started for that.
///
/// To be called first by every program that an [`Image`](crate::Image) may have as its init process.
pub fn run() {
    let mut arguments = std::env::args_os();
    let called = arguments.next();
    let is = |path: &str| called.as_deref() == Some(OsStr::new(path));
    if is(PATH) && std::process::id() == 1 {
        let error = serve();
        say(&format!("init: {error}"));
        // The kernel panics when init ends, and the machine stops.
        std::process::exit(1);
    }
    if is(MODPROBE) {
        let wanted = arguments.next_back().unwrap_or_default();
        let loaded = modules::load(&wanted.to_string_lossy());
        std::process::exit(i32::from(loaded.is_err()));
    }
}

/// Writes a line to the console.
fn say(line: &str) {
    // Nobody else could be told.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Makes the machine ready, and carries jobs out for ever.
fn serve() -> GuestError {
    let made = prepare();
    if let Err(error) = made {
        return GuestError::Job(format!("cannot make the guest ready: {error}"));
    }
    let open = || Ok::<_, io::Error>((Slot::open()?, Window::open(STOP, 0)?));
    let (mut slot, mut stop) = match open() {
        Ok(both) => both,
        Err(error) => return GuestError::Job(format!("cannot open the mailbox: {error}")),
    };
    say("ready");
    loop {
        stop.write(0, &[PANICKED]);
        let done = slot
            .take_job()
            .map_err(|error| GuestError::Job(error.to_string()));
        let done = done.and_then(|message| Job::from_bytes(&message));
        let done = done.and_then(|job| {
            let outcome = carry_out(&job).map_err(|error| GuestError::Job(error.to_string()))?;
            slot.put_outcome(&outcome.to_bytes()?)
        });
        if let Err(error) = done {
            return error;
        }
    }
}

fn prepare() -> io::Result<()> {
    for (kind, place, options) in [
        ("proc", "/proc", c""),
        ("sysfs", "/sys", c""),
        ("devtmpfs", "/dev", c""),
        ("devpts", "/dev/pts", c""),
        ("tmpfs", "/dev/shm", c""),
        ("cgroup2", "/sys/fs/cgroup", c""),
        ("bpf", "/sys/fs/bpf", c""),
        ("tracefs", "/sys/kernel/tracing", c""),
    ] {
        fs::create_dir_all(place)?;
        let mounted = mount(kind, place, kind, MountFlags::empty(), options);
        match mounted {
            // The kernel may have mounted its devices itself, and a kernel may lack one of these.
            Ok(()) | Err(rustix::io::Errno::BUSY | rustix::io::Errno::NODEV) => {}
            Err(error) => return Err(io::Error::other(format!("mount {place}: {error}"))),
        }
    }
    // Nothing is mounted there: programs of the image may lie below.
    for (place, mode) in [("/tmp", 0o1777), ("/run", 0o755)] {
        fs::create_dir_all(place)?;
        fs::set_permissions(place, Permissions::from_mode(mode))?;
    }
    // Groups of programs may be limited. A kernel may lack one of these.
    for controller in ["+cpu", "+memory", "+pids"] {
        let _ = fs::write("/sys/fs/cgroup/cgroup.subtree_control", controller);
    }
    sethostname(b"guest")?;
    let loaded = fs::read_to_string(modules::place(modules::LOADED))?;
    for name in AT_ONCE.into_iter().chain(loaded.lines()) {
        match modules::load(name) {
            // Built in.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            loaded => {
                loaded.map_err(|error| io::Error::other(format!("module {name}: {error}")))?;
            }
        }
    }
    let loopback_up = || {
        let mut route = RouteSocket::open()?;
        let loopback = route.interface("lo")?;
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        route.configure(loopback, &up)
    };
    loopback_up().map_err(|error| io::Error::other(format!("lo: {error}")))
}

fn carry_out(job: &Job) -> io::Result<Outcome> {
    for file in &job.files {
        write(file)?;
    }
    fs::create_dir_all(&job.directory)?;
    if job.start_after_ns > 0 {
        let (_never, nobody) = mpsc::channel::<()>();
        let _ = nobody.recv_timeout(std::time::Duration::from_nanos(job.start_after_ns));
    }
    let begun = clock::now();
    let ended = match start(job) {
        Ok(program) => await_end(program, job.deadline_ns)?,
        Err(error) => Ended::NotStarted(error.to_string()),
    };
    let elapsed = clock::now().since(begun);
    let mut files = Vec::new();
    for path in &job.collect {
        collect(&job.directory.join(path), &mut files)?;
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    let read = |path| match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read,
    };
    Ok(Outcome {
        ended,
        elapsed_ns: u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX),
        output: read(OUTPUT)?,
        errors: read(ERRORS)?,
        files,
    })
}

fn write(file: &JobFile) -> io::Result<()> {
    if let Some(parent) = file.path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(&file.path, &file.data)?;
    fs::set_permissions(&file.path, Permissions::from_mode(file.mode))
}

fn start(job: &Job) -> io::Result<Pid> {
    let (program, arguments) = job
        .command
        .split_first()
        .ok_or(io::ErrorKind::InvalidInput)?;
    let child = Command::new(program)
        .args(arguments)
        .current_dir(&job.directory)
        .env_clear()
        .envs([
            (
                "PATH",
                "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            ),
            ("HOME", "/root"),
            ("LANG", "C.UTF-8"),
        ])
        .envs(job.environment.iter().map(|(name, value)| (name, value)))
        .stdin(File::open("/dev/null")?)
        .stdout(File::create(OUTPUT)?)
        .stderr(File::create(ERRORS)?)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

/// Waits for the program, and for all that lose their parents meanwhile, as is an init process's duty.
fn await_end(program: Pid, deadline_ns: u64) -> io::Result<Ended> {
    let (tell, ended) = mpsc::channel();
    let reaper = thread::Builder::new().name("reaper".into());
    reaper.spawn(move || {
        while let Ok(Some((process, status))) = wait(WaitOptions::empty()) {
            if process == program {
                // Whoever waits may have given up.
                let _ = tell.send(status);
                return;
            }
        }
    })?;
    if deadline_ns == 0 {
        return ended.recv().map(how).map_err(io::Error::other);
    }
    match ended.recv_timeout(std::time::Duration::from_nanos(deadline_ns)) {
        Ok(status) => Ok(how(status)),
        Err(RecvTimeoutError::Timeout) => {
            kill_process(program, Signal::KILL)?;
            ended.recv().map_err(io::Error::other)?;
            Ok(Ended::Overdue)
        }
        Err(error) => Err(io::Error::other(error)),
    }
}

fn how(status: WaitStatus) -> Ended {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Ended::Exited(code),
        (None, signal) => Ended::Killed(signal.unwrap_or(0)),
    }
}

/// Reads a file, or all files of a directory, if it is there.
fn collect(path: &Path, files: &mut Vec<JobFile>) -> io::Result<()> {
    let about = match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        about => about?,
    };
    if about.is_dir() {
        let mut entries: Vec<PathBuf> = fs::read_dir(path)?
            .map(|entry| Ok(entry?.path()))
            .collect::<io::Result<_>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| collect(entry, files));
    }
    if files.len() == MOST_FILES {
        let what = format!("a job leaves more than {MOST_FILES} files");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, what));
    }
    if about.is_file() {
        files.push(JobFile {
            path: path.to_owned(),
            mode: about.permissions().mode() & 0o777,
            data: fs::read(path)?,
        });
    }
    Ok(())
}
