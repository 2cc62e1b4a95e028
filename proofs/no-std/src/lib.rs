//! The proof that the pure crates need no standard library, and so no clock, no file, no socket,
//! no thread and no ambient randomness.
//!
//! This library has no standard library and defines itself what a program has only once: the panic
//! handler and the allocator. If one of the crates named below, or anything that they are built
//! with, links `std`, there are two panic handlers and rustc refuses ("found duplicate lang item
//! `panic_impl`"). That this library builds is the proof; it is never run.
//!
//! `no_std` alone proves less: a dependency with its default features on would link `std` behind
//! the back of a crate that does not.
#![no_std]

extern crate alloc;
#[cfg(feature = "counter-proof")]
extern crate std;

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

// Named so that they are linked, used or not.
use outlast_agents as _;
use outlast_base as _;
use outlast_compression as _;
use outlast_diagnosis as _;
use outlast_gateway as _;
use outlast_hip as _;
use outlast_host as _;
use outlast_link as _;
use outlast_mobility as _;
use outlast_tcp as _;
use outlast_wire as _;
use outlast_world as _;

/// An allocator that never has anything to give.
struct Exhausted;

// SAFETY: a null pointer says that there is no memory, which every caller has to expect, and what
// was never given is never given back.
unsafe impl GlobalAlloc for Exhausted {
    unsafe fn alloc(&self, _layout: Layout) -> *mut u8 {
        core::ptr::null_mut()
    }

    unsafe fn dealloc(&self, _block: *mut u8, _layout: Layout) {}
}

#[global_allocator]
static ALLOCATOR: Exhausted = Exhausted;

#[panic_handler]
fn panic(_info: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}
