//! Neighbours that have the key, speak the language and make no sense. Found by `fuzz/src/bin/agents.rs`
//! or made safe before it could find them.

mod frozen;

use frozen::half;
use outlast_agents::{
    Agents, Config, DecodeError, FreezeId, Limits, Message, Outcome, Session, Site,
};
use outlast_core::flow::FrozenFlow;
use outlast_core::gateway::{Gateway, GatewayConfig};
use outlast_core::link::{InterfaceId, LinkConfig, LinkId};
use outlast_core::mechanisms::path::PathMechanismKind;
use outlast_core::time::Instant;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const INTERFACE: InterfaceId = InterfaceId(1);
const OWN_INSTANCE: u64 = 1;

fn neighbour() -> SocketAddr {
    SocketAddr::new(Ipv4Addr::new(203, 0, 113, 1).into(), 7_348)
}

fn mobile(number: u8) -> IpAddr {
    Ipv4Addr::new(198, 51, 100, number).into()
}

fn link_to(far: IpAddr) -> LinkId {
    LinkId {
        interface: INTERFACE,
        peer: Some(far),
    }
}

/// A connection of a mobile's, frozen at its first 500 bytes.
fn frozen(number: u8) -> FrozenFlow {
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

struct There {
    agents: Agents,
    gateway: Gateway,
}

impl There {
    /// Greeted by its neighbour.
    fn new(limits: Limits) -> Self {
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

    fn act<T>(&mut self, what: impl FnOnce(&mut Agents, &mut Site<'_>) -> T) -> T {
        let mut site = Site {
            now: Instant::from_millis(10),
            gateway: &mut self.gateway,
            link_to: &link_to,
        };
        what(&mut self.agents, &mut site)
    }

    fn hear(&mut self, message: &Message) -> Result<(), DecodeError> {
        let bytes = message.encode();
        self.act(|agents, site| agents.handle_message(site, neighbour(), &bytes))
    }

    fn said(&mut self) -> Vec<Message> {
        let said =
            std::iter::from_fn(|| self.act(|agents, site| agents.poll_transmit(site, neighbour())));
        said.map(|bytes| Message::decode(&bytes).expect("it is one of ours"))
            .collect()
    }
}

const fn id(instance: u64, number: u64) -> FreezeId {
    FreezeId { instance, number }
}

fn segment(id: FreezeId, number: u8) -> Message {
    Message::Segment {
        id,
        flow: Box::new(frozen(number)),
    }
}

#[test]
fn who_names_another_connection_alike_is_believed_of_that_one_only() {
    let mut there = There::new(Limits::default());
    for number in [1, 2, 3] {
        let numbers = frozen(number).numbers().expect("plausible");
        let told = Message::Frozen {
            id: id(2, 1),
            numbers,
        };
        assert_eq!(there.hear(&told), Ok(()));
    }
    let awaited = [1, 2, 3].map(|number| there.agents.awaits(mobile(number)));
    assert_eq!(awaited, [false, false, true]);
    assert_eq!(there.hear(&Message::Released { id: id(2, 1) }), Ok(()));
    assert!(!there.agents.awaits(mobile(3)));
}

#[test]
fn a_name_is_that_of_one_connection_only() {
    let mut there = There::new(Limits::default());
    assert_eq!(there.hear(&segment(id(2, 1), 1)), Ok(()));
    assert_eq!(there.hear(&segment(id(2, 1), 2)), Ok(()));
    let kept: Vec<_> = there
        .agents
        .frozen()
        .map(|view| view.flow.far.ip())
        .collect();
    assert_eq!(kept, [mobile(1)]);
    assert_eq!(there.agents.counters().refused, 1);
    let refusal = Message::Settled {
        id: id(2, 1),
        outcome: Outcome::Refused,
    };
    assert!(there.said().contains(&refusal));
}

#[test]
fn nobody_names_what_will_be_frozen_here() {
    let mut there = There::new(Limits::default());
    assert_eq!(there.hear(&segment(id(OWN_INSTANCE, 1), 1)), Ok(()));
    assert_eq!(there.agents.frozen().count(), 0);
    assert_eq!(there.agents.counters().refused, 1);
}

#[test]
fn who_asks_and_does_not_read_is_left() {
    let mut there = There::new(Limits {
        unsaid: 10,
        ..Limits::default()
    });
    let _ = there.said();
    let ask = Message::Want { id: id(9, 9) };
    let answers = (0..100).map(|_| there.hear(&ask)).take_while(Result::is_ok);
    assert_eq!(answers.count(), 11);
    assert_eq!(there.hear(&ask), Err(DecodeError::Unread));
    assert!(there.agents.counters().unread > 0);
    // Who reads may ask as often as it likes.
    for _ in 0..100 {
        let answer = Message::Released { id: id(9, 9) };
        assert!(there.said().iter().all(|said| *said == answer));
        assert_eq!(there.hear(&ask), Ok(()));
    }
}
