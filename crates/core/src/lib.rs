//! The protocol core: what passes a disconnecting link, what is kept, and what is sent when the
//! link is back. It does no I/O, reads no clock and starts no thread.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod time;
pub mod units;
