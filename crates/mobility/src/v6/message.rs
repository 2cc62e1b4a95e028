//! Packets as the machines of Mobile IPv6 read and send them.

use core::net::{IpAddr, Ipv6Addr};
use outlast_wire::mobile_ipv6::{
    MOBILITY_HEADER, Message, MessageBuilder, MessageError, add_home_address, add_routing_header,
    home_address_of, mobility_packet, take_home_address, take_routing_header,
};
use outlast_wire::{Packet, Transport};

const IPV6_IN_IP: u8 = 41;
const IPV6_HEADER_LEN: usize = 40;
const NEXT_HEADER_AT: usize = 6;

/// Source and destination of an IPv6 packet, as its fixed header has them.
pub(super) fn addresses(packet: &Packet) -> Option<(Ipv6Addr, Ipv6Addr)> {
    match (packet.header().ip.source, packet.header().ip.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => Some((source, destination)),
        _ => None,
    }
}

/// Whether `packet` carries an IPv6 packet.
pub(super) const fn is_tunnelled(packet: &Packet) -> bool {
    matches!(
        packet.header().transport,
        Transport::Other {
            protocol: IPV6_IN_IP,
            fragment: false
        }
    )
}

/// A packet whose headers of Mobile IPv6 have been taken away.
#[derive(Clone, Debug)]
pub(super) struct Unwrapped {
    /// The packet as it would be without them.
    pub(super) packet: Packet,
    /// Where it came from; the home address, if it bore one, is the packet's source.
    pub(super) source: Ipv6Addr,
    /// It bore a home address.
    pub(super) is_from_home_address: bool,
    /// It bore a routing header of type 2.
    pub(super) is_routed: bool,
}

/// Takes a home address option or a routing header of type 2 out of `packet`.
pub(super) fn unwrap(packet: &Packet) -> Option<Unwrapped> {
    let (source, _) = addresses(packet)?;
    let plain = |packet: Packet| Unwrapped {
        packet,
        source,
        is_from_home_address: false,
        is_routed: false,
    };
    if home_address_of(packet).is_some() {
        return Some(Unwrapped {
            is_from_home_address: true,
            ..plain(take_home_address(packet)?)
        });
    }
    match take_routing_header(packet) {
        Some(taken) => Some(Unwrapped {
            is_routed: true,
            ..plain(taken)
        }),
        None => Some(plain(packet.clone())),
    }
}

/// The Mobility Header that `packet` carries.
pub(super) fn mobility_header(packet: &Packet) -> Option<&[u8]> {
    match packet.header().transport {
        Transport::Other {
            protocol: MOBILITY_HEADER,
            fragment: false,
        } => packet.payload(),
        _ => None,
    }
}

/// The message that an ICMP error quotes, and its receiver. IPv6 quotes as much as every link carries (RFC 4443, section 3),
/// so that it is whole.
pub(super) fn quoted_message(error: &Packet) -> Option<(Ipv6Addr, Message)> {
    let Transport::IcmpError(about) = &error.header().transport else {
        return None;
    };
    let quoted = about.quoted?;
    let (IpAddr::V6(source), IpAddr::V6(destination)) = (quoted.source, quoted.destination) else {
        return None;
    };
    let (header, message) = error.payload()?.split_at_checked(IPV6_HEADER_LEN)?;
    if header[NEXT_HEADER_AT] != MOBILITY_HEADER {
        return None;
    }
    let (message, _) = Message::parse(source, destination, message).ok()?;
    Some((destination, message))
}

/// The packet of a message from `source` to `destination`.
pub(super) fn plain(source: Ipv6Addr, destination: Ipv6Addr, message: MessageBuilder) -> Packet {
    let message = message.finish(source, destination);
    mobility_packet(source, destination, &message)
}

/// The packet of a message from a home address, sent from `care_of_address`.
pub(super) fn from_home_address(
    (home_address, care_of_address): (Ipv6Addr, Ipv6Addr),
    destination: Ipv6Addr,
    message: MessageBuilder,
) -> Packet {
    let packet = plain(home_address, destination, message);
    match home_address == care_of_address {
        true => packet,
        // A message is short, and no header has to stay first.
        false => add_home_address(&packet, care_of_address).unwrap_or(packet),
    }
}

/// The packet of a message to a home address, sent to `care_of_address`.
pub(super) fn to_home_address(
    source: Ipv6Addr,
    (home_address, care_of_address): (Ipv6Addr, Ipv6Addr),
    message: MessageBuilder,
) -> Packet {
    let packet = plain(source, home_address, message);
    match home_address == care_of_address {
        true => packet,
        false => add_routing_header(&packet, care_of_address).unwrap_or(packet),
    }
}

/// Whether `address` is one host's, and can be reached from other links.
pub(super) const fn is_reachable(address: Ipv6Addr) -> bool {
    !(address.is_unspecified()
        || address.is_multicast()
        || address.is_loopback()
        || address.is_unicast_link_local())
}

/// Whether a message is of a type that nobody knows here, rather than damaged.
pub(super) const fn is_unknown(error: MessageError) -> bool {
    matches!(error, MessageError::Kind(_))
}

/// Whether sequence number `new` comes after `old`, modulo 2^16 (RFC 6275, section 9.5.1).
pub(super) const fn is_after(new: u16, old: u16) -> bool {
    let ahead = new.wrapping_sub(old);
    ahead != 0 && ahead < 1 << 15
}
