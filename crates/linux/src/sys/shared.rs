//! Memory that processes share, word by word.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;

/// Words that this process shares with those that it forks.
#[derive(Debug)]
pub(crate) struct SharedWords {
    base: NonNull<u8>,
    words: usize,
}

// SAFETY: the mapping belongs to this value alone, and its words are atomic.
unsafe impl Send for SharedWords {}
// SAFETY: as above.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// `words` zeros, shared with the processes that are forked from now on.
    pub(crate) fn anonymous(words: usize) -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: no address is asked for, so that no other mapping is touched.
        let base = unsafe { mmap_anonymous(ptr::null_mut(), 4 * words, protection, flags)? };
        Self::at(base, words)
    }

    fn at(base: *mut std::ffi::c_void, words: usize) -> io::Result<Self> {
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { base, words })
    }

    /// The word at `place`.
    pub(crate) fn word(&self, place: usize) -> &AtomicU32 {
        assert!(place < self.words);
        // SAFETY: inside of the mapping, which lives as long as `self`, and aligned as the mapping is to a
        // page; everybody who shares it writes it as a whole.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().cast::<u32>().add(place)) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and nobody else has a reference into it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), 4 * self.words) };
        debug_assert!(unmapped.is_ok(), "what was mapped can be unmapped");
    }
}
