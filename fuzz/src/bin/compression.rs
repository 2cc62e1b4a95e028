//! Both ends of a link between which payload is compressed, with messages that are lost, said again, changed and made
//! up.
//!
//! Each step is an operation and three bytes of arguments, see [`World::step`]. Whatever is restored has been sent
//! by the other end, or was made up whole with its tag and check value, and is at most eight times as long as what came.
#![no_main]

use libfuzzer_sys::fuzz_target;
use outlast_base::time::{Duration, Instant};
use outlast_compression::{Arrival, Compression, Config, LARGEST_RATIO, Level, Part};
use outlast_wire::compressed::PROTOCOL;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::collections::VecDeque;
use std::net::IpAddr;

/// Messages that are remembered, to be said again.
const REMEMBERED: usize = 16;
const LONGEST: usize = 1_400;

struct World {
    now: Instant,
    /// The supervisor host's and the mobile's.
    ends: [Compression; 2],
    seqs: [u32; 2],
    /// What crossed, from which end.
    crossed: VecDeque<(usize, Packet)>,
    sent: VecDeque<Packet>,
}

fn address(end: usize) -> IpAddr {
    [10, 1 + end as u8, 0, 1].into()
}

impl World {
    fn new() -> Self {
        let end = |part, level| {
            Compression::new(Config {
                part,
                level: Level::Fixed(level),
                rate: None,
                flows: 4,
                pairs: 4,
                longest: 1_500,
                seed: 1,
            })
        };
        Self {
            now: Instant::ZERO,
            ends: [end(Part::Offers, 1), end(Part::Accepts, 9)],
            seqs: [1; 2],
            crossed: VecDeque::new(),
            sent: VecDeque::new(),
        }
    }

    fn step(&mut self, [operation, a, b, c]: [u8; 4], rest: &[u8]) {
        let from = usize::from(operation >> 7);
        match operation % 6 {
            0 => self.send(from, &vec![a; usize::from(b) * 6]),
            1 => {
                let length = rest.len().min(LONGEST);
                self.send(from, &rest[..length]);
            }
            2 => self.now += Duration::from_millis(u64::from(a) * 40),
            3 => self.say_again(a, None),
            4 => self.say_again(a, Some((b, c))),
            _ => {
                let mut body = rest[..rest.len().min(LONGEST)].to_vec();
                if a & 1 == 1 {
                    body.splice(0..0, [b'M', b'C', 2, b % 5]);
                }
                let ip = IpHeader::new(address(from), address(1 - from));
                self.deliver(1 - from, &Packet::of_protocol(ip, PROTOCOL, &body), true);
            }
        }
    }

    fn send(&mut self, from: usize, payload: &[u8]) {
        let tcp = TcpHeader {
            source_port: 80,
            destination_port: 80,
            seq: SeqNumber(self.seqs[from]),
            ack: SeqNumber(self.seqs[1 - from]),
            flags: TcpFlags::ACK,
            ..TcpHeader::default()
        };
        self.seqs[from] = self.seqs[from].wrapping_add(payload.len() as u32);
        let ip = IpHeader::new(address(from), address(1 - from));
        let packet = Packet::tcp_segment(ip, tcp, payload);
        self.sent.push_back(packet.clone());
        if self.sent.len() > 4 * REMEMBERED {
            self.sent.pop_front();
        }
        let smaller = self.ends[from].handle_to_link(self.now, &packet);
        if let Some(smaller) = &smaller {
            assert!(smaller.total_len() < packet.total_len());
        }
        self.post(from, smaller.unwrap_or(packet));
        self.drain(from);
    }

    fn post(&mut self, from: usize, packet: Packet) {
        if self.crossed.len() >= REMEMBERED {
            self.crossed.pop_front();
        }
        self.crossed.push_back((from, packet.clone()));
        self.deliver(1 - from, &packet, false);
    }

    fn drain(&mut self, end: usize) {
        while let Some(packet) = self.ends[end].poll_transmit() {
            self.post(end, packet);
        }
    }

    fn say_again(&mut self, which: u8, change: Option<(u8, u8)>) {
        let count = self.crossed.len();
        if count == 0 {
            return;
        }
        let (from, packet) = self.crossed[usize::from(which) % count].clone();
        let Some((at, bits)) = change else {
            return self.deliver(1 - from, &packet, false);
        };
        let mut bytes = packet.to_bytes().to_vec();
        let length = bytes.len();
        bytes[usize::from(at) % length] ^= bits;
        if let Ok(changed) = Packet::parse(bytes.into()) {
            self.deliver(1 - from, &changed, true);
        }
    }

    fn deliver(&mut self, to: usize, packet: &Packet, is_meddled_with: bool) {
        if let Arrival::Restored(restored) = self.ends[to].handle_from_link(self.now, packet) {
            assert!(
                restored.total_len() <= LARGEST_RATIO * packet.total_len()
                    && restored.tcp().is_some()
            );
            let payload = |packet: &Packet| packet.body().map(<[u8]>::to_vec);
            let is_known = self
                .sent
                .iter()
                .any(|sent| payload(sent) == payload(&restored));
            assert!(is_known || is_meddled_with || self.sent.len() > 2 * REMEMBERED);
        }
        self.drain(to);
    }
}

fuzz_target!(|data: &[u8]| {
    let mut world = World::new();
    let mut rest = data;
    for _ in 0..200 {
        let Some((step, behind)) = rest.split_first_chunk::<4>() else {
            return;
        };
        world.step(*step, behind);
        rest = behind;
    }
});
