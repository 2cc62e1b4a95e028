//! From bytes to a [`Packet`].
//!
//! Everything here is read by hand rather than through a header library: edits and segmentation
//! need the offsets, super-segments have lengths that strict parsers refuse, and a packet must
//! cost a few tens of nanoseconds and no allocation (`benches/parse.rs` has the comparison).

use crate::error::ParseError;
use crate::icmp;
use crate::ip::{Extent, Network, Protocol};
use crate::packet::{Body, Captured};
use crate::{Header, IcmpError, Packet, TcpHeader, Transport, UdpHeader, udp};
use bytes::Bytes;

impl Packet {
    /// Reads an IPv4 or IPv6 packet that starts at the first byte. What follows its last byte, as
    /// the padding of an Ethernet frame does, is cut off; nothing is copied.
    ///
    /// The IPv4 header checksum is verified; that of the transport is not, because packets on
    /// their way through a host often have it filled in later, by the network card: see
    /// [`Packet::checksums_ok`].
    ///
    /// # Errors
    ///
    /// Whatever cannot be a whole packet, see [`ParseError`]. Fragments, and protocols that
    /// Outlast does not know, are no error but [`Transport::Other`].
    #[inline]
    pub fn parse(mut bytes: Bytes) -> Result<Self, ParseError> {
        let network = Network::parse(&bytes, Extent::Whole)?;
        let total_len = u32::try_from(network.end).map_err(|_| ParseError::TooLong(network.end))?;
        let (transport, payload_len) = transport(
            &network,
            bytes
                .get(network.transport_at..network.end)
                .unwrap_or_default(),
        )?;
        if bytes.len() > network.end {
            bytes.truncate(network.end);
        }
        let header = Header {
            ip: network.header,
            transport,
            total_len,
            // Both lie within the packet, whose length fits.
            payload_len: payload_len as u32,
        };
        let captured = Captured {
            bytes,
            transport_at: network.transport_at as u32,
            authenticated: network.authenticated,
        };
        Ok(Self {
            header,
            body: Body::Captured(captured),
        })
    }
}

/// Reads what the IP headers carry, and the length of its payload.
#[inline]
fn transport(network: &Network, data: &[u8]) -> Result<(Transport, usize), ParseError> {
    let other = Transport::Other {
        protocol: network.protocol.0,
        fragment: network.fragment,
    };
    if network.fragment {
        return Ok((other, data.len()));
    }
    match network.protocol {
        Protocol::TCP => {
            let (header, header_len) = TcpHeader::parse(data)?;
            Ok((Transport::Tcp(header), data.len() - header_len))
        }
        Protocol::UDP => {
            let (header, payload_len) = UdpHeader::parse(data)?;
            Ok((Transport::Udp(header), payload_len))
        }
        protocol => {
            let error = match icmp::Version::of(protocol, network.header.source) {
                Some(version) => IcmpError::parse(version, data)?,
                None => None,
            };
            Ok(match error {
                Some(error) => (Transport::IcmpError(error), data.len() - icmp::HEADER_LEN),
                None => (other, data.len()),
            })
        }
    }
}

/// Length of the transport header of a parsed packet in bytes: what precedes the payload.
pub(crate) fn payload_at(header: &Header, transport_at: usize) -> usize {
    match &header.transport {
        // Nothing follows the payload, while behind that of UDP there may be more.
        Transport::Tcp(_) | Transport::IcmpError(_) | Transport::Other { .. } => {
            header.total_len.saturating_sub(header.payload_len) as usize
        }
        Transport::Udp(_) => transport_at + udp::HEADER_LEN,
    }
}
