//! A map of the kernel's that this process reads in place.

use rustix::fd::BorrowedFd;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The values of a map with `BPF_F_MMAPABLE`, one after the other, while programs write them.
#[derive(Debug)]
pub(crate) struct MappedArray {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the mapping belongs to this value alone, and reading it is not tied to a thread.
unsafe impl Send for MappedArray {}
// SAFETY: it is only read, word by word, while programs write it anyway.
unsafe impl Sync for MappedArray {}

impl MappedArray {
    /// Maps the first `length` bytes of `map`.
    pub(crate) fn of(map: BorrowedFd<'_>, length: usize) -> io::Result<Self> {
        // SAFETY: no address is asked for, so that no other mapping is touched.
        let base = unsafe {
            mmap(
                ptr::null_mut(),
                length,
                ProtFlags::READ,
                MapFlags::SHARED,
                map,
                0,
            )?
        };
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, length })
    }

    /// The number at `at`, which is a multiple of 8, and nothing later before it.
    pub(crate) fn load_u64(&self, at: usize) -> u64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.length);
        // SAFETY: inside of the mapping, aligned as the mapping itself is to a page; programs
        // write it as a whole.
        let number = unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) };
        // Memory that is mapped for reading allows relaxed loads alone.
        let number = number.load(Ordering::Relaxed);
        fence(Ordering::SeqCst);
        number
    }

    /// The number at `at`, which is a multiple of 4, and nothing later before it.
    pub(crate) fn load_u32(&self, at: usize) -> u32 {
        assert!(at.is_multiple_of(4) && at + 4 <= self.length);
        // SAFETY: as above.
        let number = unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(at).cast()) };
        // Memory that is mapped for reading allows relaxed loads alone.
        let number = number.load(Ordering::Relaxed);
        fence(Ordering::SeqCst);
        number
    }

    /// Copies what is at `at`; a program may be writing it.
    pub(crate) fn copy(&self, at: usize, to: &mut [u8]) {
        assert!(at <= self.length && to.len() <= self.length - at);
        // Byte by byte in the eyes of the compiler, which must not assume that nobody writes;
        // whether somebody did is for the caller to find out.
        let (words, rest) = to.as_chunks_mut::<8>();
        let mut from = at;
        for word in words {
            // SAFETY: inside of the mapping; any bytes are a valid value.
            let read = unsafe {
                self.base
                    .as_ptr()
                    .add(from)
                    .cast::<[u8; 8]>()
                    .read_volatile()
            };
            *word = read;
            from += 8;
        }
        for byte in rest {
            // SAFETY: as above.
            *byte = unsafe { self.base.as_ptr().add(from).read_volatile() };
            from += 1;
        }
        fence(Ordering::SeqCst);
    }
}

impl Drop for MappedArray {
    fn drop(&mut self) {
        // SAFETY: mapped by `of` with this length, and nobody else has a reference into it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert!(unmapped.is_ok(), "what was mapped can be unmapped");
    }
}
