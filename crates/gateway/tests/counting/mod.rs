//! How much memory a thread of a test program has in use: the program has this allocator.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's, and a count.
struct Counting;

thread_local! {
    /// What this thread took less what it gave back; below zero if it gave back what others took.
    static IN_USE: Cell<isize> = const { Cell::new(0) };
}

/// Bytes in use by what this thread has allocated.
pub(crate) fn in_use() -> isize {
    IN_USE.get()
}

/// A size is at most `isize::MAX`, as the allocator's contract has it.
fn count(size: usize, sign: isize) {
    IN_USE.set(IN_USE.get() + sign * size as isize);
}

// SAFETY: every call goes unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: as for `alloc`; all pointers come from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;
