//! An agent that one neighbour speaks to, message by message.
#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../frozen/mod.rs"]
mod frozen;

use frozen::half;
use outlast_agents::{Agents, Config, DecodeError, FreezeId, Limits, Message, Session, Site};
use outlast_base::time::Instant;
use outlast_gateway::gateway::{Gateway, GatewayConfig};
use outlast_gateway::links::{Direction, InterfaceId, LinkConfig, LinkId};
use outlast_gateway::mechanisms::path::PathMechanismKind;
use outlast_gateway::tracking::FrozenFlow;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const INTERFACE: InterfaceId = InterfaceId(1);
pub(crate) const OWN_INSTANCE: u64 = 1;

pub(crate) fn neighbour() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(203, 0, 113, 1).into(), 7_348)
}

pub(crate) fn mobile(number: u8) -> IpAddr {
    Ipv4Addr::new(198, 51, 100, number).into()
}

fn link_to(far: IpAddr) -> LinkId {
    LinkId {
        interface: INTERFACE,
        peer: Some(far),
    }
}

/// A connection of a mobile's, frozen at its first 500 bytes.
pub(crate) fn frozen(number: u8) -> FrozenFlow {
    let (seq, far) = (SeqNumber(1_000), SeqNumber(7_000));
    let near = SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 5_000);
    let header = TcpHeader {
        seq,
        ack: far,
        flags: TcpFlags::ACK,
        ..TcpHeader::default()
    };
    let way = (near, SocketAddr::new(mobile(number), 80));
    FrozenFlow {
        near: half(seq + 500, seq),
        far: half(far, far),
        clock: None,
        segment: frozen::segment(way, header, &[number; 500]),
    }
}

pub(crate) struct There {
    pub(crate) agents: Agents,
    gateway: Gateway,
}

impl There {
    /// Greeted by its neighbour.
    pub(crate) fn new(limits: Limits) -> Self {
        let mut gateway = Gateway::new(GatewayConfig {
            mechanism: PathMechanismKind::ZeroWindowAck,
            ..GatewayConfig::default()
        });
        gateway.add_link(Instant::ZERO, INTERFACE, LinkConfig::default());
        let agents = Agents::new(Config {
            instance: OWN_INSTANCE,
            neighbours: vec![neighbour()],
            mobiles: Vec::new(),
            lost_after: Config::LOST_AFTER,
            limits,
        });
        let mut there = Self { agents, gateway };
        there.act(|agents, site| agents.handle_session(site, neighbour(), Session::Up));
        assert_eq!(there.hear(&Message::Hello { instance: 2 }), Ok(()));
        there
    }

    pub(crate) fn act<T>(&mut self, what: impl FnOnce(&mut Agents, &mut Site<'_>) -> T) -> T {
        let mut site = Site {
            now: Instant::from_millis(10),
            gateway: &mut self.gateway,
            link_to: &link_to,
        };
        what(&mut self.agents, &mut site)
    }

    pub(crate) fn hear(&mut self, message: &Message) -> Result<(), DecodeError> {
        let bytes = message.encode();
        self.act(|agents, site| agents.handle_message(site, neighbour(), &bytes))
    }

    /// A packet of the connection of this mobile's is seen, of which the agent hears what follows.
    pub(crate) fn show(
        &mut self,
        number: u8,
        direction: Direction,
        header: TcpHeader,
        bytes: usize,
    ) {
        let near = SocketAddr::new(Ipv4Addr::new(192, 0, 2, 1).into(), 5_000);
        let far = SocketAddr::new(mobile(number), 80);
        let way = match direction {
            Direction::ToLink => (near, far),
            Direction::FromLink => (far, near),
        };
        let packet = frozen::segment(way, header, &vec![number; bytes]);
        let (now, link) = (Instant::from_millis(10), link_to(mobile(number)));
        let _ = self.gateway.handle_packet(now, link, direction, &packet);
        while let Some(event) = self.gateway.poll_event() {
            self.act(|agents, site| agents.handle_gateway_event(site, &event));
        }
    }

    /// The mobile acknowledges what is frozen.
    pub(crate) fn acknowledge(&mut self, number: u8) {
        let header = TcpHeader {
            seq: SeqNumber(7_000),
            ack: SeqNumber(1_500),
            flags: TcpFlags::ACK,
            ..TcpHeader::default()
        };
        self.show(number, Direction::FromLink, header, 0);
    }

    /// The session breaks, and there is another one, in which the neighbour is this instance.
    pub(crate) fn meet_again(&mut self, instance: u64) {
        for session in [Session::Down, Session::Up] {
            self.act(|agents, site| agents.handle_session(site, neighbour(), session));
        }
        assert_eq!(self.hear(&Message::Hello { instance }), Ok(()));
    }

    pub(crate) fn said(&mut self) -> Vec<Message> {
        let said =
            std::iter::from_fn(|| self.act(|agents, site| agents.poll_transmit(site, neighbour())));
        said.map(|bytes| Message::decode(&bytes).expect("it is one of ours"))
            .collect()
    }
}

pub(crate) const fn id(instance: u64, number: u64) -> FreezeId {
    FreezeId { instance, number }
}

pub(crate) fn segment(id: FreezeId, number: u8) -> Message {
    Message::Segment {
        id,
        flow: Box::new(frozen(number)),
    }
}
