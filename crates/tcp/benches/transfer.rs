//! What a transfer costs, without its link: packets go straight from one endpoint to the other,
//! a round trip later. Run with `cargo bench -p outlast-tcp`.

use divan::counter::ItemsCount;
use outlast_base::time::{Duration, Instant};
use outlast_tcp::profile::{Congestion, LINUX_6};
use outlast_tcp::{Config, Endpoint};
use outlast_wire::Packet;
use std::collections::VecDeque;

fn main() {
    divan::main();
}

/// A pipe of a fixed delay and one packet a `spacing`, which is 10 Mbit/s.
struct Pipe {
    packets: VecDeque<(Instant, Packet)>,
    free_at: Instant,
    spacing: Duration,
    delay: Duration,
    dropped: u64,
}

impl Pipe {
    fn new(spacing: Duration) -> Self {
        Self {
            packets: VecDeque::with_capacity(256),
            free_at: Instant::ZERO,
            spacing,
            delay: Duration::from_millis(25),
            dropped: 0,
        }
    }

    fn push(&mut self, now: Instant, packet: Packet) {
        let start = self.free_at.max(now);
        if start.since(now) > self.spacing * 75 {
            self.dropped += 1;
            return;
        }
        self.free_at = start + self.spacing;
        self.packets.push_back((self.free_at + self.delay, packet));
    }

    fn due(&self) -> Instant {
        self.packets
            .front()
            .map_or(Instant::FAR_FUTURE, |(at, _)| *at)
    }
}

/// Sends `bytes`; returns how many packets were handled.
fn transfer(congestion: Congestion, bytes: u64) -> u64 {
    let mut client = Config::new(([192, 0, 2, 1], 40_000).into(), ([192, 0, 2, 2], 80).into());
    client.profile = &LINUX_6;
    client.congestion = Some(congestion);
    let server = client.mirrored();
    let mut now = Instant::ZERO;
    let mut client = Endpoint::connect(now, client);
    let mut server = Endpoint::listen(server);
    let mut there = Pipe::new(Duration::from_micros(1_200));
    let mut back = Pipe::new(Duration::from_micros(42));
    let mut unsent = bytes;
    let mut handled = 0;
    while server.received() < bytes {
        if unsent > 0 {
            unsent -= client.send(now, unsent);
        }
        while let Some(packet) = client.poll_transmit(now) {
            there.push(now, packet);
        }
        while let Some(packet) = server.poll_transmit(now) {
            back.push(now, packet);
        }
        let timeout = |endpoint: &Endpoint| {
            endpoint
                .poll_timeout()
                .map_or(Instant::FAR_FUTURE, |(at, _)| at)
        };
        let (client_due, server_due) = (timeout(&client), timeout(&server));
        now = there.due().min(back.due()).min(client_due).min(server_due);
        if client_due <= now {
            client.handle_timeout(now);
        }
        if server_due <= now {
            server.handle_timeout(now);
        }
        if there.due() <= now
            && let Some((_, packet)) = there.packets.pop_front()
        {
            server.handle_packet(now, &packet);
            let _ = server.recv(now, u64::MAX);
            handled += 1;
        }
        if back.due() <= now
            && let Some((_, packet)) = back.packets.pop_front()
        {
            client.handle_packet(now, &packet);
            handled += 1;
        }
    }
    handled
}

#[divan::bench(args = [Congestion::Cubic, Congestion::Reno, Congestion::Bbr], sample_count = 10)]
fn bulk_25_mb(bencher: divan::Bencher<'_, '_>, congestion: Congestion) {
    let packets = transfer(congestion, 25_000_000);
    bencher
        .counter(ItemsCount::new(packets))
        .bench(|| transfer(congestion, 25_000_000));
}
