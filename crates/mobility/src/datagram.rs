//! Registration messages as UDP datagrams, and what an IPv4 packet is to an agent.

use core::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use outlast_wire::mobile_ip::PORT;
use outlast_wire::{IpHeader, Packet, Transport, UdpHeader};

pub(crate) const ICMP: u8 = 1;
pub(crate) const IPV4_IN_IP: u8 = 4;
const DEFAULT_TTL: u8 = 64;
/// A request with a reverse tunnel proves with it that it crossed no router (RFC 3024, section 3.2).
pub(crate) const FROM_THIS_LINK: u8 = 255;

/// A UDP datagram that an agent or a mobile node was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram<'a> {
    pub(crate) source: SocketAddrV4,
    pub(crate) destination: SocketAddrV4,
    pub(crate) ttl: u8,
    pub(crate) payload: &'a [u8],
}

/// The datagram that `packet` is, if it is whole and undamaged. A checksum of zero says that there
/// is none (RFC 5944, section 3.1).
pub(crate) fn datagram(packet: &Packet) -> Option<Datagram<'_>> {
    let header = packet.header();
    let Transport::Udp(udp) = header.transport else {
        return None;
    };
    let (source, destination) = addresses(packet)?;
    if !packet.checksums_ok() {
        return None;
    }
    Some(Datagram {
        source: SocketAddrV4::new(source, udp.source_port),
        destination: SocketAddrV4::new(destination, udp.destination_port),
        ttl: header.ip.hop_limit,
        payload: packet.payload()?,
    })
}

/// Source and destination of an IPv4 packet.
pub(crate) fn addresses(packet: &Packet) -> Option<(Ipv4Addr, Ipv4Addr)> {
    match (packet.header().ip.source, packet.header().ip.destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => Some((source, destination)),
        _ => None,
    }
}

/// The ICMP message that `packet` carries, if it is none of the errors.
pub(crate) fn icmp_message(packet: &Packet) -> Option<&[u8]> {
    match packet.header().transport {
        Transport::Other {
            protocol: ICMP,
            fragment: false,
        } => packet.payload(),
        _ => None,
    }
}

/// Whether `packet` carries an IPv4 packet.
pub(crate) fn is_tunnelled(packet: &Packet) -> bool {
    matches!(
        packet.header().transport,
        Transport::Other {
            protocol: IPV4_IN_IP,
            fragment: false
        }
    )
}

/// The packet of a registration message.
pub(crate) fn message(
    source: SocketAddrV4,
    destination: SocketAddrV4,
    ttl: Option<u8>,
    payload: &[u8],
) -> Packet {
    let ip = IpHeader {
        hop_limit: ttl.unwrap_or(DEFAULT_TTL),
        ..IpHeader::new((*source.ip()).into(), (*destination.ip()).into())
    };
    let udp = UdpHeader {
        source_port: source.port(),
        destination_port: destination.port(),
    };
    Packet::udp_datagram(ip, udp, payload)
}

/// An agent's own socket.
pub(crate) const fn agent_socket(address: Ipv4Addr) -> SocketAddrV4 {
    SocketAddrV4::new(address, PORT)
}

/// Whether `address` is one host's.
pub(crate) const fn is_unicast(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}
