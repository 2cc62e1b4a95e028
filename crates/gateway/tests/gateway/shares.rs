//! A supervisor host that shares its link's rate out among mobiles and their connections.

use crate::path::{LINK, MSS, Path};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::Direction;
use outlast_gateway::mechanisms::path::PathMechanismKind::{self, MTcp, MTcpAdaptive};
use outlast_gateway::mechanisms::path::{SendReason, TakeReason};
use std::collections::VecDeque;

/// 10 Mbit/s, with headers of 52 bytes.
const LINK_BYTES_PER_MS: u32 = 1_250 * MSS / (MSS + 52);
/// From the link to the mobile and back.
const ROUND_TRIP_MS: u64 = 20;
/// The window of a SYN, which is not scaled.
const FIRST_WINDOW: u32 = 65_535;
const SCALE: u8 = 7;

/// One bulk transfer that sends all that it may.
struct Bulk {
    mobile: u8,
    port: u16,
    next: u32,
    /// What it may send.
    edge: u32,
    told: u32,
    received: u32,
    acks: VecDeque<(u64, u32)>,
    /// The most that it had sent and the link had not.
    most_waiting: u32,
}

impl Bulk {
    fn new(mobile: u8, port: u16) -> Self {
        Self {
            mobile,
            port,
            next: 0,
            edge: FIRST_WINDOW,
            told: 0,
            received: 0,
            acks: VecDeque::new(),
            most_waiting: 0,
        }
    }
}

/// Some transfers over one link.
struct Link {
    path: Path,
    all: Vec<Bulk>,
    ms: u64,
}

impl Link {
    fn new(kind: PathMechanismKind, shares_rate: bool, ends: &[(u8, u16)]) -> Self {
        let rate = BitRate::from_bits_per_second(10_000_000);
        let mut path = Path::with_rate(kind, Limits::default(), rate);
        path.gateway
            .share_rate(path.now(), LINK.interface, shares_rate);
        let all: Vec<_> = ends
            .iter()
            .map(|&(far, port)| Bulk::new(far, port))
            .collect();
        for bulk in &all {
            path.use_far_host(bulk.mobile);
            path.use_port(bulk.port);
            path.open();
        }
        Self { path, all, ms: 0 }
    }

    /// Those that are `active` send for so long; how much each mobile has got meanwhile, by connection.
    fn run(&mut self, active: &[usize], ms: u64) -> Vec<u32> {
        let before: Vec<_> = self.all.iter().map(|bulk| bulk.received).collect();
        for _ in 0..ms {
            for &index in active {
                self.send(index);
            }
            self.path.after_ms(1);
            self.ms += 1;
            self.drain();
            self.acknowledge();
            self.drain();
        }
        let after = self.all.iter().zip(before);
        after.map(|(bulk, before)| bulk.received - before).collect()
    }

    fn send(&mut self, index: usize) {
        let bulk = &mut self.all[index];
        self.path.use_far_host(bulk.mobile);
        self.path.use_port(bulk.port);
        while bulk.next + MSS <= bulk.edge && bulk.next - bulk.told < 400_000 {
            match self.path.data(bulk.next, MSS) {
                None => bulk.received += MSS,
                Some(reason) => assert_eq!(reason, TakeReason::AwaitsShare),
            }
            bulk.next += MSS;
        }
        bulk.most_waiting = bulk.most_waiting.max(bulk.next - bulk.received);
        if bulk.acks.back().is_none_or(|(_, ack)| *ack < bulk.received) {
            bulk.acks
                .push_back((self.ms + ROUND_TRIP_MS, bulk.received));
        }
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.path.gateway.poll_transmit() {
            let tcp = transmit.packet.tcp().expect("a segment");
            let port = match transmit.direction {
                Direction::ToLink => tcp.source_port,
                Direction::FromLink => tcp.destination_port,
            };
            let found = self.all.iter_mut().find(|bulk| bulk.port == port);
            let bulk = found.expect("one of these");
            match transmit.direction {
                Direction::ToLink => {
                    assert_eq!(transmit.reason, SendReason::Share);
                    assert_eq!(self.path.first_byte(&transmit.packet), bulk.received);
                    bulk.received += MSS;
                    bulk.acks
                        .push_back((self.ms + ROUND_TRIP_MS, bulk.received));
                }
                Direction::FromLink => {
                    bulk.told = tcp
                        .ack
                        .distance_from(self.path.near_number(0))
                        .unsigned_abs();
                    let edge = bulk.told + (u32::from(tcp.window) << SCALE);
                    // Numbers are withheld one by one, and windows are told in steps.
                    assert!(edge + 1 + (1 << SCALE) >= bulk.edge, "a window shrinks");
                    bulk.edge = bulk.edge.max(edge);
                }
            }
        }
    }

    fn acknowledge(&mut self) {
        for bulk in &mut self.all {
            while let Some(&(at, ack)) = bulk.acks.front()
                && at <= self.ms
            {
                bulk.acks.pop_front();
                self.path.use_far_host(bulk.mobile);
                self.path.use_port(bulk.port);
                if bulk.told == 0 && ack > MSS {
                    // The first one leaves data in flight: from then on each has a byte withheld, and comes from the gateway.
                    self.path.far_ack(ack - MSS);
                }
                self.path.far_ack(ack);
            }
        }
    }
}

fn share_of(part: u32, ms: u32) -> std::ops::RangeInclusive<u32> {
    let fair = LINK_BYTES_PER_MS * ms / part;
    fair - fair / 20..=fair + fair / 20
}

#[test]
fn mobiles_share_alike_and_so_do_the_connections_of_each() {
    for kind in [MTcp, MTcpAdaptive] {
        let mut link = Link::new(kind, true, &[(1, 5_001), (1, 5_002), (3, 5_003)]);
        link.run(&[0, 1, 2], 1_000);
        let got = link.run(&[0, 1, 2], 4_000);
        for (index, part) in [4, 4, 2].into_iter().enumerate() {
            assert!(share_of(part, 4_000).contains(&got[index]), "{got:?}");
        }
    }
}

#[test]
fn without_sharing_everything_goes_onto_the_link_at_once() {
    let mut link = Link::new(MTcpAdaptive, false, &[(1, 5_001), (3, 5_003)]);
    let got = link.run(&[0, 1], 500);
    let sum: u32 = got.iter().sum();
    assert!(sum > 3 * LINK_BYTES_PER_MS * 500, "{got:?}");
}

#[test]
fn shares_change_as_connections_come_and_go() {
    let mut link = Link::new(MTcpAdaptive, true, &[(1, 5_001), (3, 5_003)]);
    link.run(&[0], 500);
    let got = link.run(&[0], 2_000);
    assert!(share_of(1, 2_000).contains(&got[0]), "{got:?}");
    link.run(&[0, 1], 1_000);
    let got = link.run(&[0, 1], 2_000);
    assert!(share_of(2, 2_000).contains(&got[0]), "{got:?}");
    assert!(share_of(2, 2_000).contains(&got[1]), "{got:?}");
    link.run(&[1], 1_000);
    let got = link.run(&[1], 2_000);
    assert!(share_of(1, 2_000).contains(&got[1]), "{got:?}");
}

#[test]
fn a_sender_is_offered_what_its_share_sends_in_a_while() {
    let mut link = Link::new(MTcpAdaptive, true, &[(1, 5_001), (3, 5_003)]);
    link.run(&[0, 1], 5_000);
    for bulk in &mut link.all {
        bulk.most_waiting = 0;
    }
    link.run(&[0, 1], 2_000);
    // 250 ms of 5 Mbit/s each.
    for bulk in &link.all {
        let waiting = bulk.most_waiting;
        assert!((100_000..170_000).contains(&waiting), "{waiting}");
    }
    assert!(link.path.gateway.held() < ByteCount(1_000_000));
}

#[test]
fn round_trips_are_measured_from_when_data_goes_onto_the_link() {
    let mut link = Link::new(MTcpAdaptive, true, &[(1, 5_001)]);
    link.run(&[0], 3_000);
    let report = link.path.gateway.flow_reports().next().expect("one flow");
    let rtt = report.rtt.expect("measured").as_millis();
    assert!((19..=25).contains(&rtt), "{rtt} ms");
}
