//! How long a packet that is no part of a tracked connection is worth keeping.

use core::net::IpAddr;
use outlast_wire::{Packet, Transport};

const ESP: u8 = 50;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
/// Where servers answer QUIC (RFC 9114, section 3.1).
const QUIC_PORT: u16 = 443;
/// The bit that QUIC sets in the first byte of each packet (RFC 9000, sections 17.2 and 17.3.1).
const QUIC_FIXED_BIT: u8 = 0x40;
/// Type and reserved bytes of a `WireGuard` transport data message, and its shortest length.
const WIREGUARD_DATA: [u8; 4] = [4, 0, 0, 0];
const WIREGUARD_SHORTEST: usize = 32;

/// How long a packet is worth keeping.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lifetime {
    /// As long as the limits say.
    Brief,
    /// Until its link is back, as the newest packet of its flow: its transport numbers its packets, and
    /// discards what is repeated or too old.
    Newest(OtherFlow),
    /// Until its link is back: a segment of TCP.
    Long,
}

/// What tells one flow of such packets from another: addresses, protocol, ports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OtherFlow {
    addresses: [IpAddr; 2],
    protocol: u8,
    ports: [u16; 2],
}

impl Lifetime {
    pub(super) fn of(packet: &Packet) -> Self {
        let ip = packet.header().ip;
        let flow = |protocol, ports| {
            Self::Newest(OtherFlow {
                addresses: [ip.source, ip.destination],
                protocol,
                ports,
            })
        };
        match &packet.header().transport {
            Transport::Tcp(_) => Self::Long,
            Transport::Udp(udp) => {
                let ports = [udp.source_port, udp.destination_port];
                match packet.payload() {
                    Some(payload) if is_quic(ports, payload) || is_wireguard(payload) => {
                        flow(17, ports)
                    }
                    _ => Self::Brief,
                }
            }
            &Transport::Other {
                protocol: protocol @ (ESP | DCCP | SCTP),
                fragment: false,
            } => flow(protocol, [0, 0]),
            Transport::IcmpError(_) | Transport::Other { .. } => Self::Brief,
        }
    }
}

fn is_quic(ports: [u16; 2], payload: &[u8]) -> bool {
    let has_fixed_bit = payload
        .first()
        .is_some_and(|byte| byte & QUIC_FIXED_BIT != 0);
    ports.contains(&QUIC_PORT) && has_fixed_bit
}

fn is_wireguard(payload: &[u8]) -> bool {
    payload.starts_with(&WIREGUARD_DATA) && payload.len() >= WIREGUARD_SHORTEST
}
