//! Memory that host and guest share: the job goes in, the outcome comes out.
//!
//! It lies behind the guest's own memory, where its kernel does not look for any (`mem=`), and the host has it as a
//! file. No thread of the host's completes anything, so the guest's time does not depend on the host. (QEMU's
//! `ivshmem` does not serve: a saved state with its memory in a file is refused when it is read.)

use crate::GuestError;
use crate::machine::MEMORY_OPTION;
use outlast_linux::window::Window;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Room for a job or an outcome, in bytes. What is not used takes no memory.
pub(crate) const ROOM: u64 = 1 << 28;
/// The address of the guest's first byte of memory: on x86, and on QEMU's `virt` machine of ARM.
const FIRST: u64 = if cfg!(target_arch = "aarch64") {
    1 << 30
} else {
    0
};
const HEAD: usize = 16;
const JOB: [u8; 8] = *b"job     ";
const OUTCOME: [u8; 8] = *b"outcome ";

fn head(kind: [u8; 8], length: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..8].copy_from_slice(&kind);
    head[8..].copy_from_slice(&(length as u64).to_le_bytes());
    head
}

/// The length of a message of `kind`, if `head` is that of one.
fn length(head: [u8; HEAD], kind: [u8; 8]) -> Option<usize> {
    let (is, length) = head.split_first_chunk::<8>()?;
    let length = u64::from_le_bytes(length.try_into().ok()?);
    (*is == kind && length <= ROOM - HEAD as u64).then(|| usize::try_from(length).ok())?
}

/// The memory that the kernel's command line tells.
fn memory_mib(command_line: &str) -> Option<u64> {
    let mut options = command_line.split_ascii_whitespace();
    let size = options.find_map(|option| option.strip_prefix(MEMORY_OPTION))?;
    size.strip_suffix('M')?.parse().ok()
}

fn too_large(length: usize) -> GuestError {
    GuestError::Job(format!("{length} bytes are more than the {ROOM} that fit"))
}

/// The host's end.
#[derive(Debug)]
pub(crate) struct Mailbox(File);

impl Mailbox {
    /// Makes an empty one.
    pub(crate) fn create(path: &Path) -> Result<Self, GuestError> {
        let make = || -> io::Result<File> {
            let file = File::options()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)?;
            file.set_len(ROOM)?;
            Ok(file)
        };
        Ok(Self(make().map_err(GuestError::file("make", path))?))
    }

    pub(crate) fn put_job(&self, message: &[u8]) -> Result<(), GuestError> {
        if (message.len() + HEAD) as u64 > ROOM {
            return Err(too_large(message.len()));
        }
        let written = self.0.write_all_at(message, HEAD as u64);
        let written = written.and_then(|()| self.0.write_all_at(&head(JOB, message.len()), 0));
        written.map_err(GuestError::file("write", Path::new("the mailbox")))
    }

    /// The outcome, if the guest has written one.
    pub(crate) fn outcome(&self) -> Result<Option<Vec<u8>>, GuestError> {
        let read = || -> io::Result<Option<Vec<u8>>> {
            let mut head = [0; HEAD];
            self.0.read_exact_at(&mut head, 0)?;
            let Some(length) = length(head, OUTCOME) else {
                return Ok(None);
            };
            let mut message = vec![0; length];
            self.0.read_exact_at(&mut message, HEAD as u64)?;
            Ok(Some(message))
        };
        read().map_err(GuestError::file("read", Path::new("the mailbox")))
    }
}

/// The guest's end.
pub(crate) struct Slot(Window);

impl Slot {
    pub(crate) fn open() -> io::Result<Self> {
        let length = usize::try_from(ROOM).map_err(io::Error::other)?;
        let command_line = fs::read_to_string("/proc/cmdline")?;
        let memory_mib = memory_mib(&command_line).ok_or(io::ErrorKind::InvalidData)?;
        Window::physical(FIRST + (memory_mib << 20), length).map(Self)
    }

    pub(crate) fn take_job(&self) -> io::Result<Vec<u8>> {
        let mut head = [0; HEAD];
        self.0.read(0, &mut head);
        let length = length(head, JOB).ok_or(io::ErrorKind::InvalidData)?;
        let mut message = vec![0; length];
        self.0.read(HEAD, &mut message);
        Ok(message)
    }

    pub(crate) fn put_outcome(&mut self, message: &[u8]) -> Result<(), GuestError> {
        if message.len() + HEAD > self.0.length() {
            return Err(too_large(message.len()));
        }
        self.0.write(HEAD, message);
        self.0.write(0, &head(OUTCOME, message.len()));
        Ok(())
    }
}
