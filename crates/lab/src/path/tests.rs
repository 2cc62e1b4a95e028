//! The path in virtual time, with segments made by hand.

use super::*;
use outlast_base::time::Duration;
use outlast_base::units::BitRate;
use outlast_gateway::mechanisms::path::{PathMechanismKind, TakeReason};
use outlast_link::{DropReason, OutageProcess, PipeConfig, Way};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, UdpHeader};
use outlast_world::Pattern;
use outlast_world::trace::{Fate, Origin, Trace};

mod roaming;

/// One way, on both pipes.
const DELAY: Duration = Duration::from_millis(10);
/// From the workload's first byte.
const DOWN: Duration = Duration::from_millis(100);
const OUTAGE: Duration = Duration::from_millis(500);

/// A path whose clock the test turns.
struct Walk {
    path: HostPath,
    now: Instant,
    /// What each host got, and when.
    received: Vec<(Instant, Side, Packet)>,
}

impl Walk {
    fn new(mechanism: PathMechanismKind, change: impl FnOnce(&mut LinkConfig)) -> Self {
        let pipe = PipeConfig {
            delay: DELAY,
            ..PipeConfig::default()
        };
        let outages = OutageProcess::Single {
            start: DOWN,
            length: OUTAGE,
        };
        let mut link = LinkConfig {
            to_mobile: pipe,
            to_fixed: pipe,
            outages,
            ..LinkConfig::default()
        };
        change(&mut link);
        let first = EmulatedLink {
            config: link,
            gateways: [mechanism; 2].into(),
            observer: Observer { capture: None },
        };
        Self::between(Between {
            links: vec![first],
            roaming: None,
            trace: Some(Trace::new(1_000)),
            cross_traffic: Vec::new(),
            ip: IpVersion::V4,
            seed: 1,
            status: Arc::default(),
            hip: None,
            agents: [None, None],
        })
    }

    fn between(between: Between) -> Self {
        let now = Instant::from_millis(1_000);
        let path = HostPath::new(now, between);
        Self {
            path,
            now,
            received: Vec::new(),
        }
    }

    /// Time goes on by `duration`, with every timer at its time.
    fn wait(&mut self, duration: Duration) {
        let until = self.now + duration;
        while let Some(due) = self.path.poll_timeout().filter(|&due| due <= until) {
            self.now = self.now.max(due);
            self.path.handle_timeout(self.now);
            self.collect();
        }
        self.now = until;
    }

    fn send(&mut self, packet: &Packet) {
        let side = match packet.header().ip.source {
            address if address == Side::Fixed.ipv4() => Side::Fixed,
            _ => Side::Mobile,
        };
        self.path.handle_packet(self.now, side, packet.to_bytes());
        self.collect();
    }

    fn collect(&mut self) {
        while let Some((side, bytes)) = self.path.poll_transmit() {
            let packet = Packet::parse(bytes).expect("came in as a packet");
            self.received.push((self.now, side, packet));
        }
    }

    /// The mobile opens a connection; nothing of it is the workload's first byte.
    fn open(&mut self) {
        for packet in [
            segment(Side::Mobile, TcpFlags::SYN, 99, 0, 0),
            segment(Side::Fixed, TcpFlags::SYN | TcpFlags::ACK, 499, 100, 0),
            segment(Side::Mobile, TcpFlags::ACK, 100, 500, 0),
        ] {
            self.send(&packet);
            self.wait(10 * DELAY);
        }
        assert_eq!(self.received.len(), 3);
        assert_eq!(self.path.started(), None);
        self.received.clear();
    }

    fn fates(&self) -> Vec<(Origin, Fate)> {
        let trace = self.path.route.first().trace().expect("asked for");
        trace
            .packets()
            .iter()
            .map(|packet| (packet.origin, packet.fate))
            .collect()
    }
}

/// A segment from the host of `side`.
fn segment(side: Side, flags: TcpFlags, seq: u32, ack: u32, payload: usize) -> Packet {
    let ip = IpHeader::new(side.ipv4().into(), side.peer().ipv4().into());
    let (source_port, destination_port) = match side {
        Side::Fixed => (80, 4_000),
        Side::Mobile => (4_000, 80),
    };
    let tcp = TcpHeader {
        source_port,
        destination_port,
        seq: SeqNumber(seq),
        ack: SeqNumber(ack),
        flags,
        window: 60_000,
        ..TcpHeader::default()
    };
    Packet::tcp_segment(ip, tcp, &vec![7; payload])
}

/// Data from the fixed host.
fn data(seq: u32) -> Packet {
    segment(Side::Fixed, TcpFlags::ACK, seq, 100, 1_000)
}

#[test]
fn packets_come_out_at_the_other_side_after_the_delay() {
    let mut walk = Walk::new(PathMechanismKind::None, |_| {});
    walk.open();
    let sent_at = walk.now;
    walk.send(&data(500));
    assert!(walk.received.is_empty());
    walk.wait(DELAY);
    assert_eq!(walk.received, [(sent_at + DELAY, Side::Mobile, data(500))]);
    assert_eq!(
        walk.fates().last(),
        Some(&(Origin::Host, Fate::Arrived(sent_at + DELAY)))
    );
}

#[test]
fn the_outages_count_from_the_first_byte_of_payload() {
    let mut walk = Walk::new(PathMechanismKind::None, |_| {});
    walk.open();
    walk.wait(10 * DOWN);
    let started = walk.now;
    walk.send(&data(500));
    walk.wait(Duration::from_secs(2));
    assert_eq!(walk.path.started(), Some(started));
    let trace = walk.path.route.first().trace().expect("asked for");
    let changes: Vec<_> = trace
        .carrier()
        .iter()
        .map(|change| (change.at, change.up))
        .collect();
    assert_eq!(
        changes,
        [(started + DOWN, false), (started + DOWN + OUTAGE, true)]
    );
}

#[test]
fn without_a_gateway_what_meets_the_outage_is_lost() {
    let mut walk = Walk::new(PathMechanismKind::None, |_| {});
    walk.open();
    walk.send(&data(500));
    walk.wait(DOWN + DELAY);
    walk.received.clear();
    walk.send(&data(1_500));
    let lost_at = walk.now;
    walk.wait(2 * OUTAGE);
    assert!(walk.received.is_empty());
    let fate = Fate::Dropped(lost_at, DropReason::LinkDown);
    assert_eq!(walk.fates().last(), Some(&(Origin::Host, fate)));
}

#[test]
fn a_gateway_keeps_what_meets_the_outage_and_sends_it_when_the_link_is_back() {
    let mut walk = Walk::new(PathMechanismKind::Hold, |_| {});
    walk.open();
    let started = walk.now;
    walk.send(&data(500));
    walk.wait(DELAY);
    walk.send(&segment(Side::Mobile, TcpFlags::ACK, 100, 1_500, 0));
    walk.wait(DOWN + DELAY);
    walk.received.clear();
    walk.send(&data(1_500));
    assert_eq!(
        walk.fates().last(),
        Some(&(Origin::Host, Fate::Taken(TakeReason::LinkDown)))
    );
    walk.wait(2 * OUTAGE);
    let back = started + DOWN + OUTAGE;
    assert_eq!(
        walk.received.first(),
        Some(&(back + DELAY, Side::Mobile, data(1_500)))
    );
    let resent = walk
        .fates()
        .into_iter()
        .find(|(origin, _)| origin.is_injected());
    assert!(matches!(resent, Some((Origin::Resent(_), Fate::Arrived(at))) if at == back + DELAY));
    assert!(walk.path.counts().resent >= 1);
}

#[test]
fn the_gateway_of_the_transmitting_side_hears_of_what_was_flushed() {
    let mut walk = Walk::new(PathMechanismKind::Hold, |link| {
        // 1040 bytes take a second: they are being sent when the link goes down.
        link.to_mobile.rate = BitRate::from_bits_per_second(8_320);
    });
    walk.open();
    walk.send(&data(500));
    walk.wait(DOWN + OUTAGE + Duration::from_secs(2));
    let fates = walk.fates();
    let flushed = |fate: &Fate| matches!(fate, Fate::Dropped(_, DropReason::Flushed));
    assert!(
        fates
            .iter()
            .any(|(origin, fate)| *origin == Origin::Host && flushed(fate))
    );
    assert!(
        walk.received
            .iter()
            .any(|(_, side, packet)| { *side == Side::Mobile && *packet == data(500) })
    );
}

#[test]
fn what_is_lost_on_the_way_is_nobodys_to_know() {
    let mut walk = Walk::new(PathMechanismKind::Hold, |link| link.to_mobile.loss = 1.0);
    walk.send(&data(500));
    walk.wait(DOWN / 2);
    assert!(walk.received.is_empty());
    assert_eq!(walk.path.counts().resent, 0);
}

#[test]
fn what_is_no_ip_packet_crosses_and_is_counted() {
    let mut walk = Walk::new(PathMechanismKind::Hold, |_| {});
    let odd = Bytes::from_static(&[0x45, 0, 0]);
    walk.path.handle_packet(walk.now, Side::Fixed, odd.clone());
    let due = walk.path.poll_timeout().expect("it is on its way");
    walk.path.handle_timeout(due);
    assert_eq!(walk.path.poll_transmit(), Some((Side::Mobile, odd)));
    assert_eq!(walk.path.counts().opaque, 1);
    assert_eq!(walk.path.started(), None);
}

/// A chain of three links of [`DELAY`] that are always up, with cross traffic on the second.
fn chain(pattern: Pattern) -> Between {
    let pipe = PipeConfig {
        delay: DELAY,
        ..PipeConfig::default()
    };
    let link = || EmulatedLink {
        config: LinkConfig {
            to_mobile: pipe,
            to_fixed: pipe,
            ..LinkConfig::default()
        },
        gateways: Gateways::default(),
        observer: Observer { capture: None },
    };
    let stranger = TrafficSetup {
        link: 1,
        way: Way::ToMobile,
        pattern,
        packet: 500,
        begin: Duration::ZERO,
        end: Some(Duration::from_secs(1)),
    };
    Between {
        links: vec![link(), link(), link()],
        roaming: None,
        trace: None,
        cross_traffic: vec![stranger],
        ip: IpVersion::V4,
        seed: 1,
        status: Arc::default(),
        hip: None,
        agents: [None, None],
    }
}

/// A hundred datagrams of 500 bytes a second.
fn constant() -> Pattern {
    let rate = BitRate::from_bits_per_second(400_000).expect("not zero");
    Pattern::Constant { rate }
}

#[test]
fn hosts_packets_cross_all_links_and_strangers_one() {
    let mut walk = Walk::between(chain(constant()));
    let sent_at = walk.now;
    let syn = segment(Side::Mobile, TcpFlags::SYN, 99, 0, 0);
    let datagram = {
        let ip = segment(Side::Mobile, TcpFlags::SYN, 0, 0, 0).header().ip;
        let udp = UdpHeader {
            source_port: 20_000,
            destination_port: 9,
        };
        Packet::udp_datagram(ip, udp, &[7; 100])
    };
    walk.send(&syn);
    walk.send(&datagram);
    walk.wait(Duration::from_secs(2));
    // Even a host's own datagram to the discard port is not taken for a stranger's.
    let arrived = |packet: Packet| (sent_at + 3 * DELAY, Side::Fixed, packet);
    assert_eq!(walk.received, [arrived(syn), arrived(datagram)]);
    let crossed = walk.path.finish();
    let [traffic] = crossed.cross_traffic[..] else {
        panic!("one source, not {:?}", crossed.cross_traffic)
    };
    assert_eq!((traffic.sent, traffic.received), (100, 100));
    let sent = |link: &PathOutcome<Observer>| link.counts.sent;
    assert_eq!(sent(&crossed.first), 2);
    assert_eq!(
        crossed.further.iter().map(sent).collect::<Vec<_>>(),
        [102, 2]
    );
}

#[test]
fn cross_traffic_begins_with_the_first_connection() {
    let mut walk = Walk::between(chain(constant()));
    walk.send(&segment(Side::Fixed, TcpFlags::RST, 99, 0, 0));
    walk.wait(Duration::from_secs(2));
    assert_eq!(walk.path.opened(), None);
    let crossed = walk.path.finish();
    assert_eq!(crossed.cross_traffic, [TrafficOutcome::default()]);
}

#[test]
fn datagrams_come_at_their_moment_however_late_the_clock_is_looked_at() {
    let arrivals = |late: Duration| {
        let mut between = chain(constant());
        between.cross_traffic[0].link = 0;
        between.trace = Some(Trace::new(1_000));
        let mut walk = Walk::between(between);
        let opened = walk.now;
        walk.send(&segment(Side::Mobile, TcpFlags::SYN, 99, 0, 0));
        while let Some(due) = walk.path.poll_timeout() {
            walk.now = walk.now.max(due + late);
            walk.path.handle_timeout(walk.now);
            walk.collect();
        }
        let trace = walk.path.route.first().trace().expect("asked for");
        let datagrams = trace.packets().iter().filter(|p| p.segment.is_none());
        datagrams
            .map(|packet| packet.at.since(opened))
            .collect::<Vec<_>>()
    };
    let punctual = arrivals(Duration::ZERO);
    assert_eq!(punctual.len(), 100);
    assert_eq!(punctual, arrivals(Duration::from_millis(35)));
}
