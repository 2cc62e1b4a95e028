//! What a connection costs in memory.

mod support;

use outlast_core::time::Duration;
use outlast_core::units::ByteCount;
use outlast_world::{FlowSetup, Setup, Stack, Workload, World};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use support::{flow, link};

/// Knows how much is in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as for `alloc`; all pointers come from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What a world of so many connections, each of which has sent and received, has in use.
fn in_use(connections: u32) -> usize {
    let workload = Workload::RequestResponse {
        requests: 100,
        request: ByteCount(100),
        response: ByteCount(1_000),
        think: Duration::from_secs(60),
    };
    let flows = (0..connections).map(|number| FlowSetup {
        begin: Duration::from_millis(10) * number,
        ..flow(workload, Stack::default())
    });
    let mut link = link();
    (link.to_mobile.queue, link.to_fixed.queue) = (10_000, 10_000);
    let setup = Setup {
        flows: flows.collect(),
        ..Setup::new(link)
    };
    let before = IN_USE.load(Ordering::Relaxed);
    let mut world = World::new(setup);
    while world.now().as_nanos() < 50_000_000_000 {
        world.step();
    }
    let used = IN_USE.load(Ordering::Relaxed).saturating_sub(before);
    assert_eq!(world.finish().flows.len(), connections as usize);
    used
}

#[test]
fn a_connection_whose_buffers_are_empty_takes_less_than_ten_kilobytes() {
    let (few, many) = (in_use(100), in_use(1_100));
    let each = (many - few) / 1_000;
    assert!((500..10_000).contains(&each), "{each} bytes");
}
