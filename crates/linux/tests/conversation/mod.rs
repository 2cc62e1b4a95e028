//! Conversations over one connection, segment by segment: most are honest, some are not.

use outlast_base::time::Duration;
use outlast_gateway::links::Direction;
use outlast_gateway::tracking::{FlowKey, TcpFlow};
use outlast_wire::tcp::TcpOptions;
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use proptest::prelude::*;
use std::net::IpAddr;

/// One segment of a conversation: numbers count from where its sender and its receiver are, so
/// that most are honest.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// So long after the one before it.
    pub(crate) pause: Duration,
    pub(crate) direction: Direction,
    pub(crate) flags: TcpFlags,
    pub(crate) seq: Place,
    pub(crate) ack: i64,
    pub(crate) window: u16,
    pub(crate) payload: u16,
    pub(crate) scale: Option<u8>,
    pub(crate) damage: Damage,
}

/// Where a segment begins.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// So far from what its sender sends next.
    Next(i64),
    /// So far from the end of the window that its receiver has offered.
    Allowed(i64),
    /// So far from what its receiver has acknowledged.
    Acked(i64),
}

/// What happens to the bytes on their way.
#[derive(Clone, Debug)]
pub(crate) enum Damage {
    None,
    /// A byte is another one.
    Byte(usize, u8),
    /// The end is missing.
    Cut(usize),
    /// Something follows.
    Padding(usize),
    /// IPv6: a destination options header comes first.
    Extension,
}

pub(crate) fn offset() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => Just(0),
        2 => -3000_i64..3000,
        // As far back as a segment may lag.
        1 => -68_000_i64..-64_000,
        1 => -200_000_i64..200_000,
        1 => any::<u32>().prop_map(i64::from),
    ]
}

pub(crate) fn place() -> impl Strategy<Value = Place> {
    prop_oneof![
        8 => offset().prop_map(Place::Next),
        1 => (-2_i64..4).prop_map(Place::Allowed),
        1 => (-2_i64..3).prop_map(Place::Acked),
    ]
}

pub(crate) fn flags() -> impl Strategy<Value = TcpFlags> {
    prop_oneof![
        12 => Just(TcpFlags::ACK),
        2 => Just(TcpFlags::SYN),
        2 => Just(TcpFlags::SYN | TcpFlags::ACK),
        2 => Just(TcpFlags::FIN | TcpFlags::ACK),
        1 => Just(TcpFlags::RST),
        1 => Just(TcpFlags::RST | TcpFlags::ACK),
        1 => any::<u8>().prop_map(TcpFlags),
    ]
}

pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        20 => Just(Damage::None),
        3 => (0_usize..100, any::<u8>()).prop_map(|(at, byte)| Damage::Byte(at, byte)),
        1 => (1_usize..20).prop_map(Damage::Cut),
        1 => (1_usize..20).prop_map(Damage::Padding),
        1 => Just(Damage::Extension),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let direction = prop_oneof![Just(Direction::ToLink), Just(Direction::FromLink)];
    let payload = prop_oneof![Just(0_u16), Just(1), 0_u16..1400];
    let pause = (0_u64..700_000_000).prop_map(Duration::from_nanos);
    (
        pause,
        direction,
        flags(),
        place(),
        offset(),
        any::<u16>(),
        payload,
        proptest::option::of(0_u8..20),
        damage(),
    )
        .prop_map(
            |(pause, direction, flags, seq, ack, window, payload, scale, damage)| Step {
                pause,
                direction,
                flags,
                seq,
                ack,
                window,
                payload,
                scale,
                damage,
            },
        )
}

const NEAR: [&str; 2] = ["192.0.2.1", "2001:db8::1"];
const FAR: [&str; 2] = ["198.51.100.2", "2001:db8:2::2"];

/// The bytes of a step, which depend on what the conversation has come to.
pub(crate) fn bytes(step: &Step, is_v6: bool, flow: &TcpFlow) -> Vec<u8> {
    let version = usize::from(is_v6);
    let hosts = [NEAR[version], FAR[version]].map(|host| host.parse::<IpAddr>().expect("literal"));
    let ports = [40_000, 80];
    let (from, to, sender, receiver) = match step.direction {
        Direction::ToLink => (0, 1, &flow.near, &flow.far),
        Direction::FromLink => (1, 0, &flow.far, &flow.near),
    };
    // Only the low 32 bits of an offset count.
    let shifted = |number: SeqNumber, by: i64| number + by as u32;
    let tcp = TcpHeader {
        source_port: ports[from],
        destination_port: ports[to],
        seq: match step.seq {
            Place::Next(by) => shifted(sender.next, by),
            Place::Allowed(by) => shifted(sender.allowed.unwrap_or(sender.next), by),
            Place::Acked(by) => shifted(sender.acked, by),
        },
        ack: shifted(receiver.next, step.ack),
        flags: step.flags,
        window: step.window,
        options: TcpOptions {
            window_scale: step.scale,
            mss: Some(1460).filter(|_| step.flags.contains(TcpFlags::SYN)),
            sack_permitted: step.flags.contains(TcpFlags::SYN) && step.window % 2 == 1,
            ..TcpOptions::default()
        },
        ..TcpHeader::default()
    };
    let ip = IpHeader::new(hosts[from], hosts[to]);
    let payload = vec![7; step.payload.into()];
    let mut bytes = Packet::tcp_segment(ip, tcp, &payload).to_bytes().to_vec();
    match step.damage {
        Damage::Byte(at, byte) => {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        Damage::Cut(length) => bytes.truncate(bytes.len() - length),
        Damage::Padding(length) => bytes.extend(vec![0; length]),
        Damage::Extension if is_v6 => {
            const HEADER: usize = 40;
            let length = u16::try_from(bytes.len() - HEADER + 8).expect("a short packet");
            bytes[4..6].copy_from_slice(&length.to_be_bytes());
            let next = std::mem::replace(&mut bytes[6], 60);
            bytes.splice(HEADER..HEADER, [next, 0, 1, 4, 0, 0, 0, 0]);
        }
        Damage::None | Damage::Extension => {}
    }
    bytes
}

/// The connection of a conversation.
pub(crate) fn conversation(is_v6: bool) -> FlowKey {
    let version = usize::from(is_v6);
    let host = |name: &str| name.parse::<IpAddr>().expect("literal");
    FlowKey {
        near: (host(NEAR[version]), 40_000).into(),
        far: (host(FAR[version]), 80).into(),
    }
}

/// A three-way handshake with window scaling.
pub(crate) fn greeting() -> [Step; 3] {
    [
        step_of(Direction::ToLink, TcpFlags::SYN),
        step_of(Direction::FromLink, TcpFlags::SYN | TcpFlags::ACK),
        step_of(Direction::ToLink, TcpFlags::ACK),
    ]
}

/// A segment without payload, with the numbers that are next.
pub(crate) fn step_of(direction: Direction, flags: TcpFlags) -> Step {
    Step {
        pause: Duration::from_millis(20),
        direction,
        flags,
        seq: Place::Next(0),
        ack: 0,
        window: 60_000,
        payload: 0,
        scale: Some(7),
        damage: Damage::None,
    }
}
