//! Memory of a device, or of a file, that this process reads and writes in place.

use rustix::fd::BorrowedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ptr::{self, NonNull};

/// A shared mapping that this value alone refers to.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and neither reading nor writing it is tied to a thread.
unsafe impl Send for Mapping {}

impl Mapping {
    /// Maps `length` bytes of `memory` from `at` on.
    pub(crate) fn of(memory: BorrowedFd<'_>, at: u64, length: usize) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: no address is asked for, so that no other mapping is touched.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED,
                memory,
                at,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length })
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// Copies the bytes at `at`.
    pub(crate) fn read(&self, at: usize, to: &mut [u8]) {
        assert!(at <= self.length && to.len() <= self.length - at);
        for (offset, byte) in to.iter_mut().enumerate() {
            // SAFETY: inside of the mapping; any byte is a valid value.
            *byte = unsafe { self.base.as_ptr().add(at + offset).read_volatile() };
        }
    }

    /// Writes bytes at `at`, in order.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.length && bytes.len() <= self.length - at);
        for (offset, byte) in bytes.iter().enumerate() {
            // SAFETY: inside of the mapping, which is writable, and which nothing else in this process refers to.
            unsafe { self.base.as_ptr().add(at + offset).write_volatile(*byte) };
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this length, and nobody else has a reference into it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "what was mapped can be unmapped");
    }
}
