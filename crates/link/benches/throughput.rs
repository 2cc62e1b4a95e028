//! What a frame costs. The baseline moves the same frames through a plain queue.

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::{Frame, Link, LinkConfig, PipeConfig, Way};
use std::collections::VecDeque;

const FRAMES: u64 = 10_000;

/// About as large as the simulator's packets.
#[derive(Clone)]
struct Packet([u64; 16]);

impl Frame for Packet {
    fn wire_len(&self) -> ByteCount {
        ByteCount(self.0[0])
    }
}

fn packet() -> Packet {
    Packet([1_500; 16])
}

fn main() {
    divan::main();
}

#[divan::bench]
fn plain_queue(bencher: Bencher<'_, '_>) {
    bencher.counter(ItemsCount::new(FRAMES)).bench_local(|| {
        let mut queue = VecDeque::new();
        for _ in 0..FRAMES {
            queue.push_back(black_box(packet()));
            if queue.len() > 60 {
                black_box(queue.pop_front());
            }
        }
    });
}

/// A frame each 1.2 ms over a link that takes just that, one timer each.
#[divan::bench]
fn saturated(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        PipeConfig {
            rate: BitRate::from_bits_per_second(10_000_000),
            delay: Duration::from_millis(25),
            ..PipeConfig::default()
        },
    );
}

#[divan::bench]
fn saturated_with_loss(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        PipeConfig {
            rate: BitRate::from_bits_per_second(10_000_000),
            delay: Duration::from_millis(25),
            loss: 0.01,
            ..PipeConfig::default()
        },
    );
}

fn run(bencher: Bencher<'_, '_>, pipe: PipeConfig) {
    bencher.counter(ItemsCount::new(FRAMES)).bench_local(|| {
        let mut link = Link::new(LinkConfig {
            to_mobile: pipe,
            ..LinkConfig::default()
        });
        let mut now = Instant::ZERO;
        link.start(now);
        for _ in 0..FRAMES {
            now += Duration::from_micros(1_200);
            while let Some((due, _)) = link.poll_timeout().filter(|&(due, _)| due <= now) {
                link.handle_timeout(due);
                drain(&mut link);
            }
            link.handle_packet(now, Way::ToMobile, black_box(packet()));
            drain(&mut link);
        }
    });
}

fn drain(link: &mut Link<Packet>) {
    while let Some(out) = link.poll_transmit() {
        black_box(out);
    }
    while let Some(event) = link.poll_event() {
        black_box(event);
    }
}
