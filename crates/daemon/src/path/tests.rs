//! A gateway that takes over what the kernel has tracked does what a gateway does that has seen
//! every packet: the control.

use super::as_carried;
use super::takeover::Takeover;
use bytes::Bytes;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::BitRate;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{
    Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState,
};
use outlast_gateway::mechanisms::path::{Level, PathMechanismKind, SendReason};
use outlast_gateway::tracking::FlowKey;
use outlast_linux::tracker::{Tracker, TrackerConfig};
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, SocketAddr};

const LINK: LinkId = LinkId::of_interface(InterfaceId(0));
const MTU: u32 = 1500;
const MSS: u32 = 1448;
const NEAR_ISN: u32 = u32::MAX - 3000;
const FAR_ISN: u32 = 500;

/// What a gateway has sent.
type Sent = (Direction, SendReason, Vec<u8>);

/// One conversation, as the kernel tracks it and as a gateway sees it.
struct Both {
    tracker: Tracker,
    control: Gateway,
    mechanism: PathMechanismKind,
    now: Instant,
    /// The newest timestamp of the near and of the far host.
    stamps: [u32; 2],
}

impl Both {
    /// `None`, with the reason, where this machine does not run the programs.
    fn new(mechanism: PathMechanismKind) -> Option<Self> {
        let config = TrackerConfig {
            flows: 1024,
            slots: 256,
            ..TrackerConfig::default()
        };
        let tracker = Tracker::load_for_trial(&config)
            .inspect_err(|error| outlast_skip::skip(error.lack().what))
            .ok()?;
        let now = Instant::from_millis(1_000);
        Some(Self {
            tracker,
            control: gateway(now, mechanism),
            mechanism,
            now,
            stamps: [0; 2],
        })
    }

    /// A packet crosses, some time after the one before it.
    fn cross(&mut self, direction: Direction, packet: &Packet) {
        self.now += Duration::from_millis(3);
        let bytes = packet.to_bytes();
        let frame = [&[2; 12][..], &[8, 0], &bytes].concat();
        self.tracker
            .try_out(self.now, direction, &frame, 0)
            .expect("it runs");
        let packet = Packet::parse(Bytes::from(bytes.to_vec())).expect("sound");
        for packet in as_carried(packet, MTU, false) {
            let _ = self
                .control
                .handle_packet(self.now, LINK, direction, &packet);
            assert!(self.control.poll_transmit().is_none());
        }
    }

    fn near(&mut self, header: TcpHeader, payload: u32) {
        self.stamps[0] = self.stamp();
        self.cross(Direction::ToLink, &packet(true, header, payload));
    }

    fn far(&mut self, header: TcpHeader, payload: u32) {
        self.stamps[1] = self.stamp();
        self.cross(Direction::FromLink, &packet(false, header, payload));
    }

    fn open(&mut self) {
        let syn = TcpHeader {
            flags: TcpFlags::SYN,
            seq: SeqNumber(NEAR_ISN),
            ack: SeqNumber(0),
            ..self.header(true, 0, 0)
        };
        self.near(syn, 0);
        self.now += Duration::from_millis(37);
        let answer = TcpHeader {
            flags: TcpFlags::SYN | TcpFlags::ACK,
            seq: SeqNumber(FAR_ISN),
            ack: SeqNumber(NEAR_ISN) + 1,
            ..self.header(false, 0, 0)
        };
        self.far(answer, 0);
        self.near(self.header(true, 0, 0), 0);
    }

    /// What either host's clock shows.
    fn stamp(&self) -> u32 {
        u32::try_from(self.now.as_nanos() / 1_000_000).expect("short")
    }

    /// Numbers count from the first byte of either host.
    fn header(&self, is_near: bool, sent: u32, heard: u32) -> TcpHeader {
        let (own, other) = match is_near {
            true => (NEAR_ISN, FAR_ISN),
            false => (FAR_ISN, NEAR_ISN),
        };
        let ports = [40_000, 443];
        TcpHeader {
            source_port: ports[usize::from(!is_near)],
            destination_port: ports[usize::from(is_near)],
            seq: SeqNumber(own) + 1 + sent,
            ack: SeqNumber(other) + 1 + heard,
            flags: TcpFlags::ACK,
            window: 60_000,
            options: TcpOptions {
                timestamps: Some(Timestamps {
                    value: self.stamp(),
                    echo: self.stamps[usize::from(is_near)],
                }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        }
    }

    /// The link goes and comes; what the control sends, and what the other gateway does.
    fn outage(mut self) -> (Vec<Sent>, Vec<Sent>) {
        self.now += Duration::from_millis(5);
        let mut other = gateway(self.now, self.mechanism);
        Takeover::read(&self.tracker, self.now, MTU, |_| true).hand_to(
            self.now,
            &mut other,
            |_| LINK,
        );
        let key = FlowKey {
            near: SocketAddr::new(address(true), 40_000),
            far: SocketAddr::new(address(false), 443),
        };
        assert!(other.is_tracked(&key));
        let sent = [self.control, other].map(|gateway| sent(gateway, self.now));
        sent.into()
    }
}

fn gateway(now: Instant, mechanism: PathMechanismKind) -> Gateway {
    let mut gateway = Gateway::new(GatewayConfig {
        mechanism,
        seed: 1,
        ..GatewayConfig::default()
    });
    let rate = BitRate::from_bits_per_second(10_000_000);
    gateway.add_link(now, LINK.interface, LinkConfig { rate });
    gateway
}

/// What a gateway sends in the ten seconds after an outage of three.
fn sent(mut gateway: Gateway, mut now: Instant) -> Vec<Sent> {
    let mut sent = Vec::new();
    let change = |gateway: &mut Gateway, now, state| {
        let event = LinkEvent {
            link: LINK,
            state,
            indicator: Indicator::Carrier,
        };
        gateway.handle_link(now, event);
    };
    change(&mut gateway, now, LinkState::Down);
    let up = now + Duration::from_secs(3);
    let mut is_up = false;
    loop {
        while let Some(transmit) = gateway.poll_transmit() {
            assert!(is_up, "{transmit:?}");
            let bytes = transmit.packet.to_bytes().to_vec();
            sent.push((transmit.direction, transmit.reason, bytes));
        }
        let next = gateway.poll_timeout().map(|(at, _)| at);
        match next {
            Some(at) if at <= up || is_up => {
                now = now.max(at);
                if now > up + Duration::from_secs(10) {
                    return sent;
                }
                gateway.handle_timeout(now);
            }
            _ if is_up => return sent,
            _ => {
                is_up = true;
                now = up;
                change(&mut gateway, now, LinkState::Up);
            }
        }
    }
}

fn address(is_near: bool) -> IpAddr {
    let text = if is_near { "192.0.2.1" } else { "198.51.100.2" };
    text.parse().expect("literal")
}

fn packet(from_near: bool, header: TcpHeader, payload: u32) -> Packet {
    let ip = IpHeader {
        source: address(from_near),
        destination: address(!from_near),
        hop_limit: 64,
        traffic_class: 0,
        identification: 1,
    };
    let payload: Vec<u8> = (0..payload)
        .map(|n| (header.seq.0.wrapping_add(n) % 251) as u8)
        .collect();
    Packet::tcp_segment(ip, header, &payload)
}

const ALL: [PathMechanismKind; 5] = [
    PathMechanismKind::Hold,
    PathMechanismKind::RetransmissionCache,
    PathMechanismKind::SmartLink(Level::One),
    PathMechanismKind::SmartLink(Level::Three),
    PathMechanismKind::SmartLink(Level::Four),
];

/// Mechanisms for which acknowledgements of the far host that are not shown change nothing.
///
/// The smart link layer is none of them. If the one packet that it keeps was acknowledged, it would
/// have nothing left; as it does not see the acknowledgement, it has the oldest of the others.
const EXACT: &[PathMechanismKind] = ALL.split_at(2).0;

/// Both gateways send the same after an outage that befalls what `talk` leaves behind; `least` is
/// how many packets that are with hold.
#[track_caller]
fn assert_same(mechanisms: &[PathMechanismKind], least: usize, talk: impl Fn(&mut Both)) {
    for &mechanism in mechanisms {
        let Some(mut both) = Both::new(mechanism) else {
            return;
        };
        both.open();
        talk(&mut both);
        let (control, other) = both.outage();
        let shown = |sent: &[Sent]| {
            let line = |(direction, reason, bytes): &Sent| {
                format!(
                    "{direction:?} {reason:?} {} {:?}",
                    bytes.len(),
                    bytes.iter().skip(20).take(32).collect::<Vec<_>>()
                )
            };
            sent.iter().map(line).collect::<Vec<_>>()
        };
        assert_eq!(shown(&other), shown(&control), "{mechanism}");
        assert!(other == control, "{mechanism}: payloads differ");
        if mechanism == PathMechanismKind::Hold {
            assert!(control.len() >= least, "{:?}", shown(&control));
        }
    }
}

#[test]
fn segments_under_way_are_sent_again_as_if_they_had_been_seen() {
    assert_same(EXACT, 3, |both| {
        for n in 0..6 {
            both.near(both.header(true, n * MSS, 0), MSS);
        }
        both.now += Duration::from_millis(40);
        both.far(both.header(false, 0, 3 * MSS), 0);
    });
}

#[test]
fn a_super_segment_is_sent_again_in_pieces() {
    assert_same(EXACT, 4, |both| {
        both.near(both.header(true, 0, 0), 2 * MSS);
        both.near(both.header(true, 2 * MSS, 0), 2 * MSS);
        both.near(both.header(true, 4 * MSS, 0), 300);
        both.now += Duration::from_millis(40);
        // The far host has a part of it.
        both.far(both.header(false, 0, MSS + 100), 0);
    });
}

#[test]
fn the_newest_acknowledgement_is_sent_again() {
    assert_same(&ALL, 1, |both| {
        for n in 0..4 {
            both.far(both.header(false, n * MSS, 0), MSS);
            both.near(both.header(true, 0, (n + 1) * MSS), 0);
        }
    });
}

#[test]
fn retransmissions_stand_for_the_segments_that_they_repeat() {
    assert_same(&ALL, 2, |both| {
        for n in 0..2 {
            both.near(both.header(true, n * MSS, 0), MSS);
        }
        both.now += Duration::from_millis(90);
        both.near(both.header(true, 0, 0), MSS);
        both.near(both.header(true, 2 * MSS, 0), 10);
    });
}

/// Its far host may send something amid the outage: it is asked, three times, as nobody answers here.
#[test]
fn a_connection_that_owes_nothing_is_asked_as_if_it_had_been_seen() {
    assert_same(EXACT, 3, |both| {
        both.near(both.header(true, 0, 0), MSS);
        both.now += Duration::from_millis(40);
        both.far(both.header(false, 0, MSS), 100);
        both.near(both.header(true, MSS, 100), 0);
        both.now += Duration::from_secs(20);
    });
}

/// What the near host has said last was data, of which the kernel keeps nothing once it has arrived. The question
/// bears the timestamp that the far host has echoed: an older one it might not answer.
#[test]
fn a_connection_whose_near_host_has_answered_late_is_asked_with_its_newest_timestamp() {
    assert_same(EXACT, 3, |both| {
        both.far(both.header(false, 0, 0), 100);
        both.now += Duration::from_millis(40);
        both.near(both.header(true, 0, 100), 0);
        both.now += Duration::from_millis(300);
        both.near(both.header(true, 0, 100), MSS);
        both.now += Duration::from_millis(40);
        both.far(both.header(false, 100, MSS), 0);
        both.now += Duration::from_secs(20);
    });
}
