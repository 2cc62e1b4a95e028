//! A stranger's two ends over a modelled link in virtual time, with the gateway's own code at either end.
//!
//! Nobody tells a gateway here what the link dropped, as on a real interface.

use super::arrivals::Outage;
use super::machine::Machine;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::limits::Limits;
use outlast_gateway::links::{
    Direction, Indicator, InterfaceId, LinkConfig as GatewayLink, LinkEvent as Notice, LinkId,
    LinkState,
};
use outlast_gateway::mechanisms::path::{PathMechanismKind, Verdict};
use outlast_link::{Frame, Link, LinkConfig, LinkEvent, OutageProcess, PipeConfig, Way};
use outlast_wire::{IpHeader, Packet, Transport, UdpHeader};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The link, its outage, and where gateways stand.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// Rate each way.
    pub rate: BitRate,
    /// One-way delay.
    pub delay: Duration,
    /// Packets that may wait, each way.
    pub queue: usize,
    /// When the link goes away.
    pub down: Instant,
    /// For how long.
    pub outage: Duration,
    /// Whether a gateway with `hold` is at the fixed host's end, and at the mobile host's.
    pub gateways: [bool; 2],
    /// What gateways may keep.
    pub limits: Limits,
}

/// One end and its address.
#[derive(Debug)]
pub struct End<'m, M: ?Sized> {
    /// Its address and port.
    pub at: SocketAddr,
    /// What it does.
    pub machine: &'m mut M,
}

const LINK: LinkId = LinkId::of_interface(InterfaceId(0));
/// Bytes of the headers of IPv4 and UDP.
const HEADERS: u64 = 28;

#[derive(Clone, Debug)]
struct Load(Packet);

impl Frame for Load {
    fn wire_len(&self) -> ByteCount {
        ByteCount(u64::from(self.0.total_len()).max(HEADERS))
    }
}

struct World<'m> {
    now: Instant,
    link: Link<Load>,
    /// At the fixed host's end, and at the mobile host's.
    gateways: [Option<Gateway>; 2],
    ends: [End<'m, dyn Machine + 'm>; 2],
    outage: Outage,
}

/// Which way a packet goes that the end of this number sends.
const WAYS: [Way; 2] = [Way::ToMobile, Way::ToFixed];

impl Place {
    /// Has the fixed host and the mobile host talk until then; when the link was away.
    pub fn run<'m>(
        &self,
        fixed: End<'m, dyn Machine + 'm>,
        mobile: End<'m, dyn Machine + 'm>,
        until: Instant,
    ) -> Outage {
        let pipe = PipeConfig {
            rate: Some(self.rate),
            delay: self.delay,
            queue: self.queue,
            ..PipeConfig::default()
        };
        let config = LinkConfig {
            to_mobile: pipe,
            to_fixed: pipe,
            outages: OutageProcess::Single {
                start: self.down.since(Instant::ZERO),
                length: self.outage,
            },
            ..LinkConfig::default()
        };
        let gateways = self.gateways.map(|is_there| {
            let config = GatewayConfig {
                mechanism: PathMechanismKind::Hold,
                limits: self.limits,
                ..GatewayConfig::default()
            };
            is_there.then(|| {
                let mut gateway = Gateway::new(config);
                gateway.add_link(Instant::ZERO, LINK.interface, GatewayLink::default());
                gateway
            })
        });
        let never = Outage {
            down: Instant::FAR_FUTURE,
            up: Instant::FAR_FUTURE,
        };
        let mut world = World {
            now: Instant::ZERO,
            link: Link::new(config),
            gateways,
            ends: [fixed, mobile],
            outage: never,
        };
        world.link.start(Instant::ZERO);
        world.run(until);
        world.outage
    }
}

impl World<'_> {
    fn run(&mut self, until: Instant) {
        while self.now < until {
            for end in 0..2 {
                self.hear_end(end);
            }
            let next = self.next_due();
            self.now = next.max(self.now).min(until);
            self.wake();
        }
    }

    fn next_due(&mut self) -> Instant {
        let ends = self.ends.iter_mut().map(|end| end.machine.poll_timeout());
        let gateways = self.gateways.iter().flatten();
        let gateways = gateways.map(|gateway| gateway.poll_timeout().map(|(at, _)| at));
        let all = ends.chain(gateways).flatten();
        all.fold(self.link.quiet_until(), Instant::min)
    }

    fn wake(&mut self) {
        let now = self.now;
        if self.link.quiet_until() <= now {
            self.link.handle_timeout(now);
            self.hear_link();
        }
        for end in 0..2 {
            if let Some(gateway) = &mut self.gateways[end] {
                gateway.handle_timeout(now);
                self.hear_gateway(end);
            }
            if self.ends[end]
                .machine
                .poll_timeout()
                .is_some_and(|at| at <= now)
            {
                self.ends[end].machine.handle_timeout(now);
            }
        }
    }

    fn hear_end(&mut self, end: usize) {
        while let Some((to, datagram)) = self.ends[end].machine.poll_transmit(self.now) {
            let from = self.ends[end].at;
            let ip = IpHeader {
                source: from.ip(),
                destination: to.ip(),
                hop_limit: 64,
                traffic_class: 0,
                identification: 0,
            };
            let udp = UdpHeader {
                source_port: from.port(),
                destination_port: to.port(),
            };
            let packet = Packet::udp_datagram(ip, udp, &datagram);
            let verdict = match &mut self.gateways[end] {
                Some(gateway) => gateway.handle_packet(self.now, LINK, Direction::ToLink, &packet),
                None => Verdict::Pass,
            };
            if verdict == Verdict::Pass {
                self.enter(end, packet);
            }
            self.hear_gateway(end);
        }
    }

    fn enter(&mut self, end: usize, packet: Packet) {
        self.link.handle_packet(self.now, WAYS[end], Load(packet));
        self.hear_link();
    }

    fn hear_link(&mut self) {
        let mut states = VecDeque::new();
        while let Some(event) = self.link.poll_event() {
            match event {
                LinkEvent::Down => states.push_back(LinkState::Down),
                LinkEvent::Up => states.push_back(LinkState::Up),
                LinkEvent::Dropped { .. } => {}
            }
        }
        while let Some((way, Load(packet))) = self.link.poll_transmit() {
            let end = usize::from(way == Way::ToMobile);
            if let Some(gateway) = &mut self.gateways[end] {
                let verdict = gateway.handle_packet(self.now, LINK, Direction::FromLink, &packet);
                self.hear_gateway(end);
                if verdict != Verdict::Pass {
                    continue;
                }
            }
            self.deliver(end, &packet);
        }
        for state in states {
            match state {
                LinkState::Down => self.outage.down = self.now,
                LinkState::Up => self.outage.up = self.now,
            }
            let notice = Notice {
                link: LINK,
                state,
                indicator: Indicator::Carrier,
            };
            for end in 0..2 {
                if let Some(gateway) = &mut self.gateways[end] {
                    gateway.handle_link(self.now, notice);
                    self.hear_gateway(end);
                }
            }
        }
    }

    fn deliver(&mut self, end: usize, packet: &Packet) {
        let header = packet.header();
        if let (Transport::Udp(udp), Some(payload)) = (&header.transport, packet.payload()) {
            let from = SocketAddr::new(header.ip.source, udp.source_port);
            self.ends[end]
                .machine
                .handle_datagram(self.now, from, payload);
        }
    }

    fn hear_gateway(&mut self, end: usize) {
        let Some(gateway) = &mut self.gateways[end] else {
            return;
        };
        let mut sent = VecDeque::new();
        while let Some(transmit) = gateway.poll_transmit() {
            sent.push_back((transmit.direction, transmit.packet));
        }
        while gateway.poll_event().is_some() {}
        for (direction, packet) in sent {
            match direction {
                Direction::ToLink => self.enter(end, packet),
                Direction::FromLink => self.deliver(end, &packet),
            }
        }
    }
}
