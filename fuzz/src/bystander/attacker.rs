//! Somebody who knows addresses and ports, and no number.

use super::transfer::LINK;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::links::LinkId;
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, UdpHeader};
use std::net::Ipv4Addr;

/// Farther from what is right than anything that fits.
const FAR_OFF: u32 = 1 << 25;

/// He speaks in both hosts' names, and goes on where he has ended: several conversations that fit
/// each other, and none of which fits the hosts'.
pub(crate) struct Attacker {
    /// The next numbers of the near and of the far host, in each.
    conversations: [[SeqNumber; 2]; 4],
}

impl Attacker {
    /// He does not know `numbers`: they only keep him from guessing right.
    pub(crate) fn new(numbers: [SeqNumber; 2]) -> Self {
        let of = |n: u32| numbers.map(|number| number + FAR_OFF + (n << 29));
        Self {
            conversations: [0, 1, 2, 3].map(of),
        }
    }

    /// The next packet, from where, and whither.
    pub(crate) fn packet(&mut self, [kind, a, b, c]: [u8; 4]) -> (LinkId, Direction, Packet) {
        let direction = if a & 1 == 0 { ToLink } else { FromLink };
        let link = match a >> 5 {
            7 if direction == FromLink => LinkId {
                peer: Some(Ipv4Addr::new(192, 0, 2, 9).into()),
                ..LINK
            },
            _ => LINK,
        };
        if kind == u8::MAX {
            return (link, direction, datagram(direction, b));
        }
        let numbers = &mut self.conversations[usize::from((a >> 1) % 4)];
        let (own, other) = match direction {
            ToLink => (0, 1),
            FromLink => (1, 0),
        };
        let flags = [
            TcpFlags::ACK,
            TcpFlags::ACK | TcpFlags::PSH,
            TcpFlags::SYN,
            TcpFlags::SYN | TcpFlags::ACK,
            TcpFlags::RST,
            TcpFlags::RST | TcpFlags::ACK,
            TcpFlags::FIN | TcpFlags::ACK,
            TcpFlags(b),
        ][usize::from(kind % 8)];
        // Mostly what goes on, sometimes what is off by a little.
        let off = |byte: u8| match byte {
            0..=200 => 0u32,
            byte => (i32::from(byte) - 228).unsigned_abs() << (byte % 8),
        };
        let len = match flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
            true => 0,
            false => u32::from(b % 4) * 100 + u32::from(b / 128),
        };
        let header = TcpHeader {
            seq: numbers[own] + off(c),
            ack: match flags.contains(TcpFlags::ACK) {
                true => numbers[other] - off(b),
                false => SeqNumber(0),
            },
            flags,
            window: if kind & 8 == 0 {
                u16::MAX
            } else {
                u16::from(c)
            },
            options: TcpOptions {
                window_scale: flags.contains(TcpFlags::SYN).then_some(kind >> 4),
                timestamps: (kind & 16 != 0).then_some(Timestamps {
                    value: u32::MAX / 2,
                    echo: u32::from(c) << 24,
                }),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        numbers[own] += len + header.control_len();
        let (ports, addresses) = match direction {
            ToLink => ((40_000, 80), (1, 2)),
            FromLink => ((80, 40_000), (2, 1)),
        };
        let header = TcpHeader {
            source_port: ports.0,
            destination_port: ports.1,
            ..header
        };
        let ip = IpHeader::new(host(addresses.0), host(addresses.1));
        let packet = Packet::modelled_tcp(ip, header, ModelledPayload::default(), len);
        (link, direction, packet)
    }
}

fn host(last: u8) -> std::net::IpAddr {
    Ipv4Addr::new(192, 0, 2, last).into()
}

fn datagram(direction: Direction, len: u8) -> Packet {
    let (source, destination) = match direction {
        ToLink => (1, 2),
        FromLink => (2, 1),
    };
    let udp = UdpHeader {
        source_port: 9,
        destination_port: 9,
    };
    let ip = IpHeader::new(host(source), host(destination));
    Packet::udp_datagram(ip, udp, &vec![0; usize::from(len)])
}
