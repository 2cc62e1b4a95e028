//! Timestamps that a host renews: never ahead of the clock that they are of, and never behind what went out before.

use crate::common::{Network, address, identity, is_readdressed};
use outlast_base::time::{Duration, Instant};
use outlast_hip::Config;
use outlast_wire::tcp::Timestamps;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};

/// What the clocks of the TCPs of the two nodes show at the beginning; both pass zero soon.
const BASES: [u32; 2] = [u32::MAX - 1_500, u32::MAX - 3_000];

/// How much slower the first node's clock is.
const SLOWER: f64 = 200e-6;

/// How long a segment waits until the host has read it.
const LATE: Duration = Duration::from_millis(300);

/// What the clock of a node's TCP shows, in milliseconds.
fn clock(node: usize, at: Instant) -> u32 {
    let rate = if node == 0 { 1.0 - SLOWER } else { 1.0 };
    let elapsed = at.since(Instant::ZERO).mul_f64(rate);
    BASES[node].wrapping_add(elapsed.as_millis() as u32)
}

/// A node's TCP hands a segment down now that it has made a while ago, having heard its peer half a round trip before.
fn hand_down(
    network: &mut Network,
    from: usize,
    [seq, ack]: [u32; 2],
    length: usize,
    ago: Duration,
) {
    let [source, destination] = [from, 1 - from].map(|node| network.hit(node).address().into());
    let made_at = network.now - ago;
    let mut header = TcpHeader {
        source_port: 80,
        destination_port: 80,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    header.options.timestamps = Some(Timestamps {
        value: clock(from, made_at),
        echo: clock(1 - from, made_at - Duration::from_millis(50)),
    });
    let packet = Packet::tcp_segment(IpHeader::new(source, destination), header, &vec![7; length]);
    let now = network.now;
    network.nodes[from]
        .host
        .handle_data(now, &packet.to_bytes());
    network.drain(from);
}

/// Node 1's segments that have come to node 0: when, the first sequence number, and the timestamps.
fn arrived(network: &Network) -> Vec<(Instant, u32, Timestamps)> {
    let delivered = network.nodes[0].delivered.iter();
    let segments = delivered.filter_map(|(at, packet)| {
        let packet = Packet::parse(packet.clone().into()).ok()?;
        let tcp = packet.tcp()?;
        Some((*at, tcp.seq.0, tcp.options.timestamps?))
    });
    segments.collect()
}

/// How far one timestamp is ahead of another.
fn lead(one: u32, other: u32) -> i32 {
    SeqNumber(one).distance_from(SeqNumber(other))
}

/// The host is starved: it reads what its TCP hands down a while later, sometimes. A segment goes out again after an
/// outage, and next one that TCP had made before that.
#[test]
fn a_renewed_timestamp_is_neither_ahead_of_its_clock_nor_overtakes_later_ones() {
    // The first node's host tells the time by the clock of the other, so it may renew nothing.
    let bystander = Config {
        wakes_connections: false,
        ..Config::default()
    };
    let identities = [identity(1), identity(2)];
    let mut network = Network::pair_of(1, identities, [bystander, Config::default()]);
    network.connect(1, 0);
    network.run(Duration::from_secs(1));
    hand_down(&mut network, 1, [0, 0], 1_000, Duration::ZERO);
    network.run(Duration::from_millis(100));
    hand_down(&mut network, 0, [0, 1_000], 0, Duration::ZERO);
    // Meanwhile the clocks get apart by more than a round trip.
    network.run(Duration::from_secs(700));
    network.filter = Box::new(|_| false);
    hand_down(&mut network, 1, [1_000, 0], 1_000, LATE);
    // This one is in time, and shows how late the other was.
    hand_down(&mut network, 1, [2_000, 0], 1_000, Duration::ZERO);
    network.run(Duration::from_millis(300));
    network.filter = Box::new(|_| true);
    network.nodes[0].delivered.clear();
    network.move_to(1, &[address("203.0.113.5")]);
    network.run(Duration::from_millis(150));
    assert_eq!(network.count(1, is_readdressed), 1);
    let renewed = arrived(&network);
    assert_eq!(renewed.len(), 1, "the last segment, again");
    let made = clock(1, network.now - LATE);
    assert!(
        lead(renewed[0].2.value, made) > 0,
        "the peer would drop what comes next"
    );
    // It lacks 1,000.
    hand_down(&mut network, 0, [0, 1_000], 0, Duration::ZERO);
    hand_down(&mut network, 1, [3_000, 0], 1_000, LATE);
    network.run(Duration::from_millis(50));
    hand_down(&mut network, 1, [4_000, 0], 1_000, Duration::ZERO);
    network.run(Duration::from_millis(150));
    // It has everything, so that nothing is sent again.
    hand_down(&mut network, 0, [0, 5_000], 0, Duration::ZERO);
    network.run(Duration::from_millis(850));
    let all = arrived(&network);
    let mut numbers: Vec<u32> = all.iter().map(|it| it.1).collect();
    numbers.dedup();
    assert_eq!(numbers, [2_000, 3_000, 1_000, 4_000]);
    let mut newest = all[0].2.value;
    for (at, seq, timestamps) in all {
        assert!(lead(timestamps.value, newest) >= 0, "{seq} is dropped");
        newest = timestamps.value;
        for (node, shown) in [(1, timestamps.value), (0, timestamps.echo)] {
            let ahead = lead(shown, clock(node, at));
            assert!(ahead <= 0, "{seq} is {ahead} ms ahead of node {node}");
            assert!(ahead > -1_000, "{seq} is {ahead} ms behind node {node}");
        }
    }
}
