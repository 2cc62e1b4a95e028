//! Cuts a super-segment (Linux: GSO, GRO, BIG TCP) into packets that fit on a link.
//!
//! Each segment has the headers of the whole with what must differ: lengths, IPv4
//! identifications that count up, sequence numbers, CWR only in the first (RFC 3168,
//! section 6.1.2), PSH and FIN only in the last, the urgent pointer while it points ahead, and
//! checksums, which are computed anew.

use crate::build::{tcp_header, transport_checksum};
use crate::checksum::Sum;
use crate::ip;
use crate::packet::{Body, Captured};
use crate::parse::payload_at;
use crate::{Header, Packet, TcpFlags, TcpHeader, Transport, tcp, udp};
use alloc::vec::Vec;
use bytes::Bytes;
use core::iter::FusedIterator;
use core::net::IpAddr;

/// Why a packet cannot be cut.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SegmentError {
    /// Only whole TCP segments, and UDP datagrams of a known size, can be cut.
    #[error("only TCP segments and UDP datagrams of known size can be cut")]
    Protocol,
    /// SYN and RST belong to one segment.
    #[error("a segment with SYN or RST cannot be cut")]
    Control,
    /// An authentication header (RFC 4302) protects the packet.
    #[error("an authentication header protects the packet")]
    Authenticated,
    /// No payload fits behind the headers.
    #[error("headers of {headers} bytes leave no room for payload")]
    NoRoom {
        /// Length of all headers in bytes.
        headers: u32,
    },
}

/// The longest packet that needs no jumbo payload option, its IP header included.
const MAX_LEN_V4: u32 = 65_535;
const MAX_LEN_V6: u32 = 40 + 65_535;

impl Packet {
    /// Cuts a TCP segment into packets of at most `mtu` bytes, IP header included. A packet of
    /// any protocol that fits is given back as it is, its checksum as it was.
    ///
    /// # Errors
    ///
    /// See [`SegmentError`]. UDP datagrams that do not fit are an error here: only who sent them
    /// knows their size, see [`Packet::segment_by`].
    ///
    /// ```
    /// use outlast_wire::{IpHeader, ModelledPayload, Packet, TcpHeader};
    ///
    /// let ip = IpHeader {
    ///     source: [192, 0, 2, 1].into(),
    ///     destination: [198, 51, 100, 2].into(),
    ///     hop_limit: 64,
    ///     traffic_class: 0,
    ///     identification: 0,
    /// };
    /// let payload = ModelledPayload::default();
    /// let whole = Packet::modelled_tcp(ip, TcpHeader::default(), payload, 4000);
    /// let lengths: Vec<u32> = whole.segment_to_mtu(1500)?.map(|s| s.total_len()).collect();
    /// assert_eq!(lengths, [1500, 1500, 1120]);
    /// # Ok::<(), outlast_wire::segment::SegmentError>(())
    /// ```
    pub fn segment_to_mtu(&self, mtu: u32) -> Result<Segments, SegmentError> {
        if self.header.total_len <= mtu {
            return Ok(Segments::whole(self));
        }
        if !matches!(self.header.transport, Transport::Tcp(_)) {
            return Err(SegmentError::Protocol);
        }
        let headers = self.segment_headers();
        let size = mtu.saturating_sub(headers.len);
        self.cut(headers, size)
    }

    /// Cuts a TCP segment or UDP datagram into packets of at most `size` bytes of payload, as
    /// `gso_size` of Linux says. A packet with no more payload is given back as it is.
    ///
    /// # Errors
    ///
    /// See [`SegmentError`].
    pub fn segment_by(&self, size: u16) -> Result<Segments, SegmentError> {
        if self.header.payload_len <= size.into() && self.header.total_len <= self.max_len() {
            return Ok(Segments::whole(self));
        }
        match &self.header.transport {
            Transport::Tcp(_) | Transport::Udp(_) => self.cut(self.segment_headers(), size.into()),
            Transport::IcmpError(_) | Transport::Other { .. } => Err(SegmentError::Protocol),
        }
    }

    /// As much as the length field of the IP header can say, that header included.
    const fn max_len(&self) -> u32 {
        match self.header.ip.source {
            IpAddr::V4(_) => MAX_LEN_V4,
            IpAddr::V6(_) => MAX_LEN_V6,
        }
    }

    /// Cuts into pieces of at most `size` bytes of payload, fewer if IP's lengths demand it.
    fn cut(&self, headers: Headers, size: u32) -> Result<Segments, SegmentError> {
        let size = size.min(self.max_len().saturating_sub(headers.len));
        if size == 0 {
            return Err(SegmentError::NoRoom {
                headers: headers.len,
            });
        }
        if let Transport::Tcp(tcp) = &self.header.transport
            && tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST)
        {
            return Err(SegmentError::Control);
        }
        if let Body::Captured(Captured {
            authenticated: true,
            ..
        }) = &self.body
        {
            return Err(SegmentError::Authenticated);
        }
        Ok(Segments {
            packet: self.clone(),
            headers: headers.bytes,
            size,
            next: Some(0),
        })
    }

    /// The headers of a segment: those of the whole without a jumbo payload option.
    fn segment_headers(&self) -> Headers {
        match (&self.body, &self.header.transport) {
            (Body::Captured(captured), _) => {
                let end = payload_at(&self.header, captured.transport_at as usize);
                let mut bytes = captured.bytes.get(..end).unwrap_or_default().to_vec();
                if self.header.ip.source.is_ipv6() {
                    ip::strip_jumbo(&mut bytes);
                }
                // Shorter than the packet, whose length fits.
                Headers {
                    len: bytes.len() as u32,
                    bytes,
                }
            }
            (Body::Modelled(_), Transport::Tcp(tcp)) => {
                // Without payload there is no jumbo payload option.
                let len = tcp_header(self.header.ip, tcp.clone(), 0).total_len;
                Headers {
                    len,
                    bytes: Vec::new(),
                }
            }
            // Modelled packets are TCP.
            _ => Headers {
                len: self.header.total_len,
                bytes: Vec::new(),
            },
        }
    }
}

/// The headers that every segment starts with.
struct Headers {
    len: u32,
    /// Empty for a packet without bytes.
    bytes: Vec<u8>,
}

/// The `size` of a packet that is given back as it is. One that is cut may yet come out in one
/// piece: without its jumbo payload option it is shorter.
const UNCUT: u32 = u32::MAX;

/// The packets that a super-segment is cut into, in order; see [`Packet::segment_to_mtu`].
#[derive(Clone, Debug)]
pub struct Segments {
    packet: Packet,
    /// Headers of each, for a packet with bytes.
    headers: Vec<u8>,
    /// Payload of each, but for the last, in bytes.
    size: u32,
    /// Where the next one's payload starts in that of the whole.
    next: Option<u32>,
}

impl Segments {
    fn whole(packet: &Packet) -> Self {
        Self {
            packet: packet.clone(),
            headers: Vec::new(),
            size: UNCUT,
            next: Some(0),
        }
    }
}

impl Iterator for Segments {
    type Item = Packet;

    fn next(&mut self) -> Option<Packet> {
        let offset = self.next?;
        let payload_len = self.packet.header.payload_len;
        let left = payload_len.saturating_sub(offset);
        let length = left.min(self.size);
        let last = length == left;
        self.next = if last { None } else { Some(offset + length) };
        if self.size == UNCUT {
            return Some(self.packet.clone());
        }
        let header = self.header(offset, length, last);
        Some(match &self.packet.body {
            Body::Modelled(payload) => {
                let mut payload = *payload;
                payload.offset = payload.offset.wrapping_add(offset.into());
                Packet {
                    header,
                    body: Body::Modelled(payload),
                }
            }
            Body::Captured(captured) => {
                let start = payload_at(&self.packet.header, captured.transport_at as usize);
                let start = start + offset as usize;
                let payload = captured.bytes.get(start..start + length as usize);
                let body = self.emit(&header, payload.unwrap_or_default());
                Packet {
                    header,
                    body: Body::Captured(body),
                }
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let Some(offset) = self.next else {
            return (0, Some(0));
        };
        let left = self.packet.header.payload_len.saturating_sub(offset);
        // An empty packet is one too.
        let count = left.div_ceil(self.size).max(1) as usize;
        (count, Some(count))
    }
}

impl ExactSizeIterator for Segments {}
impl FusedIterator for Segments {}

impl Segments {
    /// What the headers of the segment at `offset` say.
    fn header(&self, offset: u32, length: u32, last: bool) -> Header {
        let whole = &self.packet.header;
        let mut ip = whole.ip;
        if ip.source.is_ipv4() {
            // At most 2^32 segments: the low half counts.
            ip.identification = ip.identification.wrapping_add((offset / self.size) as u16);
        }
        match &whole.transport {
            Transport::Tcp(tcp) => {
                let tcp = segment_tcp(tcp, offset, last);
                match &self.packet.body {
                    Body::Modelled(_) => tcp_header(ip, tcp, length as usize),
                    Body::Captured(_) => self.captured_header(ip, Transport::Tcp(tcp), length),
                }
            }
            other => self.captured_header(ip, other.clone(), length),
        }
    }

    fn captured_header(&self, ip: crate::IpHeader, transport: Transport, length: u32) -> Header {
        // Headers are shorter than the packet, whose length fits.
        let total_len = self.headers.len() as u32 + length;
        Header {
            ip,
            transport,
            total_len,
            payload_len: length,
        }
    }

    /// The bytes of a segment.
    fn emit(&self, header: &Header, payload: &[u8]) -> Captured {
        let mut out = Vec::with_capacity(header.total_len as usize);
        out.extend_from_slice(&self.headers);
        out.extend_from_slice(payload);
        let transport_at = self.headers.len() - self.transport_header_len();
        write_ip_lengths(&mut out, header, transport_at);
        let transport = &mut out[transport_at..];
        match &header.transport {
            Transport::Tcp(tcp) => {
                transport[4..8].copy_from_slice(&tcp.seq.0.to_be_bytes());
                transport[13] = tcp.flags.0;
                transport[18..20].copy_from_slice(&tcp.urgent.to_be_bytes());
                fill(transport, header, tcp::CHECKSUM_AT);
            }
            _ => {
                let length = (udp::HEADER_LEN + payload.len()) as u16;
                transport[4..6].copy_from_slice(&length.to_be_bytes());
                // Zero says that there is none.
                if transport[6..8] != [0, 0] {
                    fill(transport, header, udp::CHECKSUM_AT);
                }
            }
        }
        Captured {
            bytes: Bytes::from(out),
            transport_at: transport_at as u32,
            authenticated: false,
        }
    }

    fn transport_header_len(&self) -> usize {
        let Body::Captured(captured) = &self.packet.body else {
            return 0;
        };
        let transport_at = captured.transport_at as usize;
        payload_at(&self.packet.header, transport_at) - transport_at
    }
}

/// The TCP header of the segment whose payload starts at `offset` of the whole's.
fn segment_tcp(whole: &TcpHeader, offset: u32, last: bool) -> TcpHeader {
    let mut tcp = whole.clone();
    tcp.seq += offset;
    let mut dropped = TcpFlags::default();
    if offset > 0 {
        dropped = dropped | TcpFlags::CWR;
    }
    if !last {
        dropped = dropped | TcpFlags::PSH | TcpFlags::FIN;
    }
    if offset > 0 && tcp.has(TcpFlags::URG) {
        // The pointer counts from the segment's own sequence number.
        tcp.urgent = u32::from(tcp.urgent).saturating_sub(offset) as u16;
        if tcp.urgent == 0 {
            dropped = dropped | TcpFlags::URG;
        }
    }
    tcp.flags = TcpFlags(tcp.flags.0 & !dropped.0);
    tcp
}

/// Writes what differs in the IP header.
fn write_ip_lengths(out: &mut [u8], header: &Header, transport_at: usize) {
    // Segments are cut so that both lengths fit.
    match header.ip.source {
        IpAddr::V4(_) => {
            out[2..4].copy_from_slice(&(header.total_len as u16).to_be_bytes());
            out[4..6].copy_from_slice(&header.ip.identification.to_be_bytes());
            out[10..12].fill(0);
            let checksum = Sum::default().bytes(&out[..transport_at]).checksum();
            out[10..12].copy_from_slice(&checksum);
        }
        IpAddr::V6(_) => {
            out[4..6].copy_from_slice(&((header.total_len - 40) as u16).to_be_bytes());
        }
    }
}

fn fill(transport: &mut [u8], header: &Header, at: usize) {
    transport[at..at + 2].fill(0);
    let protocol = header.transport.protocol(header.ip.source);
    let checksum = transport_checksum(&header.ip, protocol, transport);
    transport[at..at + 2].copy_from_slice(&checksum);
}
