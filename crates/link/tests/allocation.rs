//! In steady state a packet costs no allocation.

use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::{Frame, Link, LinkConfig, OutageProcess, PipeConfig, Way};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts what it hands out.
struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes unchanged to the system's allocator, which keeps the contract.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps `alloc`'s contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`; all pointers come from the system's allocator.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as for `dealloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Clone)]
struct Packet;

impl Frame for Packet {
    fn wire_len(&self) -> ByteCount {
        ByteCount(1_500)
    }
}

/// Offers the link more than it carries, both ways, for `seconds`; damage and outages included.
fn saturate(link: &mut Link<Packet>, now: &mut Instant, seconds: u64) -> u64 {
    let end = *now + Duration::from_secs(seconds);
    let mut seen = 0;
    while *now < end {
        *now += Duration::from_micros(1_000);
        while let Some((due, _)) = link.poll_timeout().filter(|(due, _)| due <= now) {
            link.handle_timeout(due);
            seen += drain(link);
        }
        for way in Way::BOTH {
            link.handle_packet(*now, way, Packet);
            seen += drain(link);
        }
    }
    seen
}

fn drain(link: &mut Link<Packet>) -> u64 {
    let mut seen = 0;
    while link.poll_transmit().is_some() || link.poll_event().is_some() {
        seen += 1;
    }
    seen
}

#[test]
fn steady_state_allocates_nothing() {
    let pipe = PipeConfig {
        rate: BitRate::from_bits_per_second(10_000_000),
        delay: Duration::from_millis(25),
        loss: 0.01,
        duplicate: 0.01,
        reorder: 0.01,
        ..PipeConfig::default()
    };
    let (up, down) = (Duration::from_millis(500), Duration::from_millis(500));
    let mut link = Link::new(LinkConfig {
        to_mobile: pipe,
        to_fixed: pipe,
        outages: OutageProcess::Uniform { up, down },
        ..LinkConfig::default()
    });
    let mut now = Instant::ZERO;
    link.start(now);
    saturate(&mut link, &mut now, 20);

    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let seen = saturate(&mut link, &mut now, 20);
    let allocations = ALLOCATIONS.load(Ordering::Relaxed) - before;
    assert!(seen > 30_000, "only {seen} frames: the link was not busy");
    assert_eq!(allocations, 0, "for {seen} frames");
}
