//! ICMP and ICMPv6 errors that Outlast sends.

use super::{CHECKSUM_AT, HEADER_LEN, Version};
use crate::build::emit_ip;
use crate::checksum::Sum;
use crate::ip::{Extent, Network};
use crate::packet::Body;
use crate::{Header, IcmpError, IpHeader, Packet, Transport};
use alloc::vec::Vec;
use core::net::IpAddr;

/// What an ICMP or ICMPv6 error says, whichever of them carries it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IcmpNotice {
    /// No route to the destination: type 3 code 0, or 1 code 0 (RFC 792, RFC 4443 section 3.1).
    NetworkUnreachable,
    /// The destination does not answer on its link: type 3 code 1, or 1 code 3.
    HostUnreachable,
    /// Nobody listens: type 3 code 3, or 1 code 4.
    PortUnreachable,
    /// Forbidden by a filter: type 3 code 13 (RFC 1812, section 5.2.7.1), or 1 code 1.
    Prohibited,
    /// The packet is larger than the next link's MTU: type 3 code 4 (RFC 1191), or 2 code 0.
    TooBig {
        /// That MTU in bytes; ICMP says at most 65535.
        mtu: u32,
    },
    /// TTL or hop limit ran out: type 11 code 0, or 3 code 0.
    HopLimitExceeded,
}

/// An extension object (RFC 4884, section 8) to go with an error.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct IcmpExtension<'a> {
    /// Class-Num.
    pub class: u8,
    /// C-Type.
    pub kind: u8,
    /// What follows the object's header; a multiple of four bytes.
    pub data: &'a [u8],
}

/// Why no ICMP error may be sent, see [`Packet::icmp_error`].
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum IcmpRefusal {
    /// The router's address is of another family than the packet.
    #[error("the router's address is of another family than the packet")]
    Family,
    /// The packet is an ICMP error itself.
    #[error("no ICMP error is sent about an ICMP error")]
    AboutError,
    /// The packet is a fragment, but not the first.
    #[error("no ICMP error is sent about a fragment that is not the first")]
    AboutFragment,
    /// The packet was sent to many hosts.
    #[error("no ICMP error is sent about a packet to many hosts")]
    ToMany,
    /// The packet's source is not one host.
    #[error("no ICMP error is sent to an address that is not one host's")]
    FromNobody,
    /// This error carries no extensions (RFC 4884, section 4), or they are of a wrong length.
    #[error("the extensions do not fit in the error")]
    Extensions,
}

/// As much as every IPv4 host takes (RFC 1812, section 4.3.2.3).
const MAX_LEN_V4: usize = 576;
/// As much as every IPv6 link takes (RFC 4443, section 3.1).
const MAX_LEN_V6: usize = 1280;
/// In front of extensions at least this much is quoted, or zeros (RFC 4884, section 3).
const MIN_QUOTE_BEFORE_EXTENSIONS: usize = 128;
const EXTENSION_HEADER: [u8; 4] = [0x20, 0, 0, 0];
const HOP_LIMIT: u8 = 64;

impl Packet {
    /// The ICMP or ICMPv6 error that `router` sends to `about`'s source.
    ///
    /// It quotes as much of `about` as the longest error allows: 576 bytes in all for IPv4
    /// (RFC 1812, section 4.3.2.3), 1280 for IPv6 (RFC 4443, section 2.4).
    ///
    /// # Errors
    ///
    /// Where RFC 1122, section 3.2.2, and RFC 4443, section 2.4, forbid an error.
    ///
    /// ```
    /// use outlast_wire::{IcmpNotice, IpHeader, Packet, TcpHeader};
    ///
    /// let ip = IpHeader {
    ///     source: [192, 0, 2, 1].into(),
    ///     destination: [198, 51, 100, 2].into(),
    ///     hop_limit: 64,
    ///     traffic_class: 0,
    ///     identification: 0,
    /// };
    /// let segment = Packet::tcp_segment(ip, TcpHeader::default(), b"");
    /// let router = [192, 0, 2, 254].into();
    /// let error = Packet::icmp_error(router, IcmpNotice::HostUnreachable, &segment)?;
    /// assert_eq!(error.header().ip.destination, ip.source);
    /// # Ok::<(), outlast_wire::IcmpRefusal>(())
    /// ```
    pub fn icmp_error(
        router: IpAddr,
        notice: IcmpNotice,
        about: &Self,
    ) -> Result<Self, IcmpRefusal> {
        Self::icmp_error_with_extensions(router, notice, about, &[])
    }

    /// An error as of [`Packet::icmp_error`] with extension objects (RFC 4884). The quotation
    /// makes room for them, down to the 128 bytes that it must have.
    ///
    /// # Errors
    ///
    /// As [`Packet::icmp_error`], and if `extensions` do not fit or `notice` takes none.
    pub fn icmp_error_with_extensions(
        router: IpAddr,
        notice: IcmpNotice,
        about: &Self,
        extensions: &[IcmpExtension<'_>],
    ) -> Result<Self, IcmpRefusal> {
        let to = about.header.ip.source;
        if router.is_ipv4() != to.is_ipv4() {
            return Err(IcmpRefusal::Family);
        }
        about.may_draw_error(notice)?;
        let version = if to.is_ipv4() {
            Version::V4
        } else {
            Version::V6
        };
        let message = message(version, notice, about, &extension_structure(extensions)?)?;
        let error = IcmpError::parse(version, &message).ok().flatten();
        let error = error.expect("the message is an error that was just written");
        Ok(from_message(router, to, version, error, &message))
    }

    fn may_draw_error(&self, notice: IcmpNotice) -> Result<(), IcmpRefusal> {
        let IpHeader {
            source,
            destination,
            ..
        } = self.header.ip;
        let to_many = match destination {
            IpAddr::V4(address) => address.is_multicast() || address.is_broadcast(),
            // Path MTU discovery works for multicast too (RFC 4443, section 2.4, e.3).
            IpAddr::V6(address) => {
                address.is_multicast() && !matches!(notice, IcmpNotice::TooBig { .. })
            }
        };
        let from_nobody = match source {
            IpAddr::V4(address) => address.is_broadcast(),
            IpAddr::V6(_) => false,
        } || source.is_multicast()
            || source.is_unspecified();
        match &self.header.transport {
            Transport::IcmpError(_) => Err(IcmpRefusal::AboutError),
            Transport::Other { fragment: true, .. } if !self.is_first_fragment() => {
                Err(IcmpRefusal::AboutFragment)
            }
            _ if to_many => Err(IcmpRefusal::ToMany),
            _ if from_nobody => Err(IcmpRefusal::FromNobody),
            _ => Ok(()),
        }
    }

    fn is_first_fragment(&self) -> bool {
        let Body::Captured(captured) = &self.body else {
            return true;
        };
        Network::parse(&captured.bytes, Extent::Whole).is_ok_and(|network| network.first)
    }
}

impl IcmpNotice {
    /// Type, code and the second word.
    fn fields(self, version: Version) -> (u8, u8, u32) {
        match version {
            Version::V4 => match self {
                Self::NetworkUnreachable => (3, 0, 0),
                Self::HostUnreachable => (3, 1, 0),
                Self::PortUnreachable => (3, 3, 0),
                Self::TooBig { mtu } => (3, 4, mtu.min(0xffff)),
                Self::Prohibited => (3, 13, 0),
                Self::HopLimitExceeded => (11, 0, 0),
            },
            Version::V6 => match self {
                Self::NetworkUnreachable => (1, 0, 0),
                Self::Prohibited => (1, 1, 0),
                Self::HostUnreachable => (1, 3, 0),
                Self::PortUnreachable => (1, 4, 0),
                Self::TooBig { mtu } => (2, 0, mtu),
                Self::HopLimitExceeded => (3, 0, 0),
            },
        }
    }
}

/// The extension structure (RFC 4884, section 7); empty without objects.
fn extension_structure(extensions: &[IcmpExtension<'_>]) -> Result<Vec<u8>, IcmpRefusal> {
    let mut out = Vec::new();
    if extensions.is_empty() {
        return Ok(out);
    }
    out.extend_from_slice(&EXTENSION_HEADER);
    for extension in extensions {
        let length = u16::try_from(4 + extension.data.len()).ok();
        let length = length
            .filter(|length| length % 4 == 0)
            .ok_or(IcmpRefusal::Extensions)?;
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(&[extension.class, extension.kind]);
        out.extend_from_slice(extension.data);
    }
    let checksum = Sum::default().bytes(&out).checksum();
    out[2..4].copy_from_slice(&checksum);
    Ok(out)
}

/// The whole message, its checksum zero.
fn message(
    version: Version,
    notice: IcmpNotice,
    about: &Packet,
    extensions: &[u8],
) -> Result<Vec<u8>, IcmpRefusal> {
    let (max_len, unit) = match version {
        Version::V4 => (MAX_LEN_V4 - 20 - HEADER_LEN, 4),
        Version::V6 => (MAX_LEN_V6 - 40 - HEADER_LEN, 8),
    };
    let room = max_len
        .checked_sub(extensions.len())
        .ok_or(IcmpRefusal::Extensions)?;
    let about = about.to_bytes();
    let quote = about.get(..room).unwrap_or(&about);
    let (kind, code, word) = notice.fields(version);
    let mut message = Vec::with_capacity(HEADER_LEN + max_len);
    message.extend_from_slice(&[kind, code, 0, 0]);
    message.extend_from_slice(&word.to_be_bytes());
    message.extend_from_slice(quote);
    if extensions.is_empty() {
        return Ok(message);
    }
    // The quotation's length tells where the extensions start: whole units, zeros behind.
    let quote_len = quote
        .len()
        .next_multiple_of(unit)
        .max(MIN_QUOTE_BEFORE_EXTENSIONS)
        .min(room / unit * unit);
    let takes_extensions = !(version == Version::V6 && kind == 2);
    if quote_len < MIN_QUOTE_BEFORE_EXTENSIONS || !takes_extensions {
        return Err(IcmpRefusal::Extensions);
    }
    message.resize(HEADER_LEN + quote_len, 0);
    let length_at = if version == Version::V4 { 5 } else { 4 };
    // At most 1232 bytes in units of eight, or 548 in units of four.
    message[length_at] = (quote_len / unit) as u8;
    message.extend_from_slice(extensions);
    Ok(message)
}

fn from_message(
    router: IpAddr,
    to: IpAddr,
    version: Version,
    error: IcmpError,
    message: &[u8],
) -> Packet {
    let ip = IpHeader {
        source: router,
        destination: to,
        hop_limit: HOP_LIMIT,
        traffic_class: 0,
        identification: 0,
    };
    let captured = emit_ip(
        &ip,
        version.protocol(),
        message.len(),
        Some(CHECKSUM_AT),
        |out| {
            out.extend_from_slice(message);
        },
    );
    let header = Header {
        ip,
        transport: Transport::IcmpError(error),
        // An error is never longer than 1280 bytes.
        total_len: captured.bytes.len() as u32,
        payload_len: (message.len() - HEADER_LEN) as u32,
    };
    Packet {
        header,
        body: Body::Captured(captured),
    }
}
