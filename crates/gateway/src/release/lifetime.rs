//! How long a packet that is no part of a tracked connection is worth keeping.

use core::net::IpAddr;
use outlast_wire::{Packet, Transport};

const ICMP: u8 = 1;
const UDP: u8 = 17;
const ESP: u8 = 50;
const DCCP: u8 = 33;
const SCTP: u8 = 132;
/// Where servers answer QUIC (RFC 9114, section 3.1).
const QUIC_PORT: u16 = 443;
/// The bit that QUIC sets in the first byte of each packet (RFC 9000, sections 17.2 and 17.3.1), but clears at random
/// past the handshake where both hosts permit it (RFC 9287).
const QUIC_FIXED_BIT: u8 = 0x40;
/// No packet of QUIC past its handshake is shorter (RFC 9000, section 10.3).
const QUIC_SHORTEST: usize = 21;
/// The bit that QUIC sets in the first byte of a packet of the handshake (RFC 9000, section 17.2).
const QUIC_LONG_BIT: u8 = 0x80;
/// A packet of QUIC is no longer than this if all that it bears is an acknowledgement: the longest identifier (20 bytes),
/// number and check (20), and an ACK frame with a few ranges (RFC 9000, section 19.3).
const QUIC_ACKNOWLEDGING: usize = 64;
/// Where servers answer questions of DNS (RFC 1035, section 4.2.1).
const DNS_PORT: u16 = 53;
/// Where ESP goes in UDP (RFC 3948, section 2.1): its first four bytes are not zero.
const ESP_IN_UDP_PORT: u16 = 4_500;
/// Where SCTP goes in UDP (RFC 6951, section 4.1), and its common header with the shortest chunk.
const SCTP_IN_UDP_PORT: u16 = 9_899;
const SCTP_SHORTEST: usize = 16;
/// Index, sequence number, and the shortest cipher text and check.
const ESP_SHORTEST: usize = 16;
/// What the first byte of RTP and RTCP is (RFC 7983, section 7), and the shortest header of RTP.
const RTP_FIRST: core::ops::RangeInclusive<u8> = 128..=191;
const RTP_SHORTEST: usize = 12;
/// Type and reserved bytes of a `WireGuard` transport data message, and its shortest length.
const WIREGUARD_DATA: [u8; 4] = [4, 0, 0, 0];
const WIREGUARD_SHORTEST: usize = 32;
/// Types of messages of `WireGuard`, each with three reserved bytes behind it.
const WIREGUARD_TYPES: core::ops::RangeInclusive<u8> = 1..=4;
/// Types of records of DTLS, and the first byte of their version (RFC 6347, section 4.1).
const DTLS_TYPES: core::ops::RangeInclusive<u8> = 20..=26;
const DTLS_MAJOR: u8 = 0xfe;
/// What is in each message of STUN behind its type and length (RFC 8489, section 5).
const STUN_COOKIE: [u8; 4] = [0x21, 0x12, 0xa4, 0x42];

/// How long a packet is worth keeping.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lifetime {
    /// As long as the limits say.
    Brief,
    /// As long as the limits say, and only until a newer packet of its flow comes: speech and pictures.
    UntilNext,
    /// Until its link is back, as one of the newest packets of its flow: it does no harm when it comes late
    /// or twice, and its answer wakes a sender that has backed off.
    Patient,
    /// As [`Self::Patient`]; so short that it bears little more than an acknowledgement, and that says all that the ones
    /// before it said.
    Acknowledging,
    /// Until its link is back: a segment of TCP.
    Long,
}

/// What tells one flow of packets from another: addresses, protocol, ports.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct OtherFlow {
    addresses: [IpAddr; 2],
    protocol: u8,
    ports: [u16; 2],
}

impl OtherFlow {
    /// The flow of a packet; `None` for a segment of TCP, which stands alone.
    pub(super) fn of(packet: &Packet) -> Option<Self> {
        let header = packet.header();
        let (protocol, ports) = match &header.transport {
            Transport::Tcp(_) => return None,
            Transport::Udp(udp) => (UDP, [udp.source_port, udp.destination_port]),
            Transport::IcmpError(_) => (ICMP, [0, 0]),
            &Transport::Other { protocol, .. } => (protocol, [0, 0]),
        };
        Some(Self {
            addresses: [header.ip.source, header.ip.destination],
            protocol,
            ports,
        })
    }
}

impl Lifetime {
    pub(super) fn of(packet: &Packet) -> Self {
        match &packet.header().transport {
            Transport::Tcp(_) => Self::Long,
            Transport::Udp(udp) => {
                let ports = [udp.source_port, udp.destination_port];
                packet
                    .payload()
                    .map_or(Self::Brief, |payload| Self::of_datagram(ports, payload))
            }
            Transport::Other {
                protocol: ESP | DCCP | SCTP,
                fragment: false,
            } => Self::Patient,
            Transport::IcmpError(_) | Transport::Other { .. } => Self::Brief,
        }
    }

    fn of_datagram(ports: [u16; 2], payload: &[u8]) -> Self {
        if is_quic(ports, payload) && is_acknowledging(payload) {
            return Self::Acknowledging;
        }
        let is_sequenced = is_quic(ports, payload)
            || is_wireguard(payload)
            || is_esp(ports, payload)
            || is_sctp(ports, payload);
        // A question of DNS: who has given it up discards the answer.
        if is_sequenced || ports[1] == DNS_PORT {
            Self::Patient
        } else if is_rtp(payload) {
            Self::UntilNext
        } else {
            Self::Brief
        }
    }
}

fn is_quic(ports: [u16; 2], payload: &[u8]) -> bool {
    let has_fixed_bit = payload
        .first()
        .is_some_and(|byte| byte & QUIC_FIXED_BIT != 0);
    ports.contains(&QUIC_PORT) && (has_fixed_bit || may_have_cleared_bit(payload))
}

/// Whether it can be a packet of QUIC past its handshake whose fixed bit is cleared.
fn may_have_cleared_bit(payload: &[u8]) -> bool {
    payload.len() >= QUIC_SHORTEST && !is_long(payload) && !has_other_name(payload)
}

/// Whether it says itself what it is: something else than QUIC that uses its port.
fn has_other_name(payload: &[u8]) -> bool {
    match *payload {
        [kind, 0, 0, 0, ..] if WIREGUARD_TYPES.contains(&kind) => true,
        [kind, DTLS_MAJOR, ..] if DTLS_TYPES.contains(&kind) => true,
        [_, _, _, _, a, b, c, d, ..] => [a, b, c, d] == STUN_COOKIE,
        _ => false,
    }
}

/// Whether it belongs to a connection of QUIC whose handshake is over. A handshake's packets need the ones before them.
pub(super) fn is_quic_past_handshake(packet: &Packet) -> bool {
    let Transport::Udp(udp) = &packet.header().transport else {
        return false;
    };
    let ports = [udp.source_port, udp.destination_port];
    let payload = packet.payload();
    payload.is_some_and(|payload| is_quic(ports, payload) && !is_long(payload))
}

/// Whether a packet of QUIC belongs to the handshake.
fn is_long(packet: &[u8]) -> bool {
    packet.first().is_some_and(|byte| byte & QUIC_LONG_BIT != 0)
}

/// Whether a packet of QUIC can bear little more than an acknowledgement.
fn is_acknowledging(packet: &[u8]) -> bool {
    !is_long(packet) && packet.len() <= QUIC_ACKNOWLEDGING
}

fn is_wireguard(payload: &[u8]) -> bool {
    payload.starts_with(&WIREGUARD_DATA) && payload.len() >= WIREGUARD_SHORTEST
}

fn is_esp(ports: [u16; 2], payload: &[u8]) -> bool {
    let is_there = payload.first_chunk::<4>().is_some_and(|spi| *spi != [0; 4]);
    ports.contains(&ESP_IN_UDP_PORT) && is_there && payload.len() >= ESP_SHORTEST
}

fn is_sctp(ports: [u16; 2], payload: &[u8]) -> bool {
    ports.contains(&SCTP_IN_UDP_PORT) && payload.len() >= SCTP_SHORTEST
}

fn is_rtp(payload: &[u8]) -> bool {
    let is_of_range = payload.first().is_some_and(|byte| RTP_FIRST.contains(byte));
    is_of_range && payload.len() >= RTP_SHORTEST
}
