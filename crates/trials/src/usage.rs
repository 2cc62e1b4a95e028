//! What a program has used that is found by the socket at which it listens for its operator.

use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A running program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Program(i32);

/// What it has used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Time of processors, in the program and in the kernel on its behalf.
    pub(crate) processor: Duration,
    /// Memory that is resident now.
    pub(crate) resident: ByteCount,
}

impl Program {
    /// The program that listens at a socket.
    pub(crate) fn behind(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        let credentials = socket_peercred(&stream)?;
        Ok(Self(credentials.pid.as_raw_nonzero().get()))
    }

    /// What it has used by now.
    pub(crate) fn usage(self) -> io::Result<Usage> {
        let directory = format!("/proc/{}", self.0);
        let mut processor = Duration::ZERO;
        for thread in fs::read_dir(format!("{directory}/task"))? {
            match fs::read_to_string(thread?.path().join("schedstat")) {
                Ok(schedstat) => processor += running(&schedstat).ok_or_else(unknown)?,
                Err(error) if has_ended(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let status = fs::read_to_string(format!("{directory}/status"))?;
        Ok(Usage {
            processor,
            resident: resident(&status).ok_or_else(unknown)?,
        })
    }
}

fn unknown() -> io::Error {
    io::Error::other("the kernel does not say what a program uses")
}

/// Whether a file is there no more, or cannot be read any more, because its thread has ended.
fn has_ended(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(code, Some(Errno::NOENT | Errno::SRCH))
}

/// How long a thread has run, by the kernel's `Documentation/scheduler/sched-stats.rst`.
fn running(schedstat: &str) -> Option<Duration> {
    let nanos = schedstat.split_whitespace().next()?;
    nanos.parse().ok().map(Duration::from_nanos)
}

/// By `proc_pid_status(5)`.
fn resident(status: &str) -> Option<ByteCount> {
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(ByteCount(kib * 1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_understood() {
        assert_eq!(running("1500 20 3\n"), Some(Duration::from_nanos(1500)));
        assert_eq!(running(""), None);
        let status = "Name:\tx\nVmRSS:\t    2048 kB\nThreads:\t1\n";
        assert_eq!(resident(status), Some(ByteCount(2 << 20)));
        assert_eq!(resident("Name:\tx\n"), None);
    }

    #[test]
    fn this_program_has_used_something() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a socket");
        let usage = Program::behind(&path).and_then(Program::usage);
        let usage = usage.expect("the kernel says");
        assert!(usage.processor > Duration::ZERO && usage.resident > ByteCount(0));
    }
}
