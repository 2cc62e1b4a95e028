//! What is done to every packet on the path must not allocate.

#[path = "wire/common/mod.rs"]
mod common;

use bytes::Bytes;
use common::both_families;
use outlast_wire::tcp::{SackBlock, TcpOptions, Timestamps};
use outlast_wire::{Packet, SeqNumber, TcpHeader};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller keeps to the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps to the contract, and `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// How often this thread allocates in `work`.
fn allocations<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = ALLOCATIONS.with(Cell::get);
    let result = work();
    (ALLOCATIONS.with(Cell::get) - before, result)
}

#[test]
fn parsing_and_cloning_a_segment() {
    let block = SackBlock {
        left: SeqNumber(1),
        right: SeqNumber(2),
    };
    let options = TcpOptions {
        timestamps: Some(Timestamps { value: 1, echo: 2 }),
        sack: [block; 3].into_iter().collect(),
        ..TcpOptions::default()
    };
    for ip in both_families() {
        let tcp = TcpHeader {
            options: options.clone(),
            ..TcpHeader::default()
        };
        let built = Packet::tcp_segment(ip, tcp, &[7; 1400]).to_bytes();
        // As it comes from a receive buffer, which others hold too.
        let received = Bytes::from(built.to_vec());
        let kept = received.clone();
        let (count, packet) = allocations(|| Packet::parse(received));
        assert_eq!(count, 0, "parsing");
        let packet = packet.expect("it was just built");
        let (count, copy) = allocations(|| packet.clone());
        assert_eq!(count, 0, "cloning");
        let (count, _) = allocations(|| (copy.checksums_ok(), copy.payload().map(<[u8]>::len)));
        assert_eq!(count, 0, "looking at it");
        drop(kept);
    }
}

#[test]
fn the_count_counts() {
    assert_eq!(allocations(|| Box::new(1_u8)).0, 1);
}
