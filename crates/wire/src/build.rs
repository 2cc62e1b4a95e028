//! Packets from headers and payload.

use crate::checksum::{Sum, pseudo_header};
use crate::ip::{self, Protocol};
use crate::packet::{Body, Captured};
use crate::tcp::Timestamps;
use crate::{
    Header, IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, Transport,
    UdpHeader, pattern, tcp, udp,
};
use alloc::vec::Vec;
use bytes::Bytes;

/// Room for the payload when the headers are as long as they can be and the length is 32 bits.
const MAX_PAYLOAD_LEN: u32 = u32::MAX - 128;

impl Packet {
    /// A TCP segment with bytes. The header of the result says what was written: see
    /// [`TcpOptions::emit`](crate::tcp::TcpOptions::emit) for options that cannot be, and if the
    /// addresses are of two families, that of IPv4 is mapped into IPv6.
    ///
    /// IPv4 headers carry no options and forbid fragmentation. More than 65535 bytes make a
    /// super-segment: total length 0 with IPv4, a jumbogram (RFC 2675) with IPv6.
    #[must_use]
    pub fn tcp_segment(ip: IpHeader, tcp: TcpHeader, payload: &[u8]) -> Self {
        let header = tcp_header(ip, tcp, payload.len());
        let captured = emit(&header, |out| out.extend_from_slice(payload));
        Self {
            header,
            body: Body::Captured(captured),
        }
    }

    /// A TCP segment whose payload is a stretch of a generated stream. Its headers and lengths
    /// are those of a segment with bytes, see [`Packet::tcp_segment`].
    ///
    /// `payload_len` is in bytes; at most 2^32-129 are used.
    #[inline]
    #[must_use]
    pub fn modelled_tcp(
        ip: IpHeader,
        tcp: TcpHeader,
        payload: ModelledPayload,
        payload_len: u32,
    ) -> Self {
        let header = tcp_header(ip, tcp, payload_len as usize);
        Self {
            header,
            body: Body::Modelled(payload),
        }
    }

    /// Becomes the packet that [`Packet::modelled_tcp`] makes of the same, in its own place. `write`
    /// gets a header without options, in which it sets all the rest.
    ///
    /// A packet is some two hundred bytes: who sends millions of them moves none about.
    #[inline]
    pub fn become_modelled_tcp(
        &mut self,
        ip: &IpHeader,
        payload: ModelledPayload,
        payload_len: u32,
        write: impl FnOnce(&mut TcpHeader),
    ) {
        self.body = Body::Modelled(payload);
        let tcp = self.header.transport.become_tcp();
        tcp.options.clear_all();
        write(tcp);
        let transport_len = tcp::HEADER_LEN + tcp.options.fit();
        self.header.ip = *ip;
        ip::normalise(&mut self.header.ip);
        self.header.set_lengths(transport_len, payload_len);
    }

    /// Becomes the TCP segment `plain`, which has no options but timestamps.
    ///
    /// It takes fewer steps than [`Self::become_modelled_tcp`]. `identification` replaces the one in
    /// `ip`.
    #[inline]
    pub fn become_plain_tcp(
        &mut self,
        ip: &IpHeader,
        identification: u16,
        payload: ModelledPayload,
        payload_len: u32,
        plain: PlainTcp,
    ) {
        self.body = Body::Modelled(payload);
        let tcp = self.header.transport.become_tcp();
        (tcp.source_port, tcp.destination_port) = plain.ports;
        tcp.seq = plain.seq;
        tcp.ack = plain.ack;
        tcp.flags = plain.flags;
        tcp.window = plain.window;
        tcp.urgent = 0;
        let transport_len = tcp::HEADER_LEN + tcp.options.become_timestamps(plain.timestamps);
        self.header.ip = *ip;
        self.header.ip.identification = identification;
        ip::normalise(&mut self.header.ip);
        self.header.set_lengths(transport_len, payload_len);
    }

    /// A UDP datagram with bytes; of more than 65527, a jumbogram (RFC 2675).
    #[must_use]
    pub fn udp_datagram(ip: IpHeader, udp: UdpHeader, payload: &[u8]) -> Self {
        let header = header(ip, Transport::Udp(udp), udp::HEADER_LEN, payload.len());
        let captured = emit(&header, |out| out.extend_from_slice(payload));
        Self {
            header,
            body: Body::Captured(captured),
        }
    }

    /// A packet of a protocol that is carried and not looked into, such as ESP.
    #[must_use]
    pub fn of_protocol(ip: IpHeader, protocol: u8, payload: &[u8]) -> Self {
        let transport = Transport::Other {
            protocol,
            fragment: false,
        };
        let header = header(ip, transport, 0, payload.len());
        let write = |out: &mut Vec<u8>| out.extend_from_slice(payload);
        let captured = emit_ip(&header.ip, Protocol(protocol), payload.len(), None, write);
        Self {
            header,
            body: Body::Captured(captured),
        }
    }

    /// The packet's bytes, from the first of the IP header on. Those of a modelled packet are made
    /// on each call, its payload by [`pattern::fill`].
    #[must_use]
    pub fn to_bytes(&self) -> Bytes {
        match &self.body {
            Body::Captured(captured) => captured.bytes.clone(),
            Body::Modelled(payload) => {
                emit(&self.header, |out| {
                    let start = out.len();
                    out.resize(start + self.header.payload_len as usize, 0);
                    pattern::fill(payload.stream, payload.offset, &mut out[start..]);
                })
                .bytes
            }
        }
    }
}

/// What the header of a TCP segment says that is like nearly all of a running connection: no options
/// but timestamps, nothing urgent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlainTcp {
    /// Source and destination port.
    pub ports: (u16, u16),
    /// SEG.SEQ.
    pub seq: SeqNumber,
    /// SEG.ACK; meaningful only with [`TcpFlags::ACK`].
    pub ack: SeqNumber,
    /// Control bits, without [`TcpFlags::URG`].
    pub flags: TcpFlags,
    /// SEG.WND as on the wire, not scaled.
    pub window: u16,
    /// Timestamps, if there are any.
    pub timestamps: Option<Timestamps>,
}

#[inline]
pub(crate) fn tcp_header(ip: IpHeader, mut tcp: TcpHeader, payload_len: usize) -> Header {
    let transport_len = tcp::HEADER_LEN + tcp.options.fit();
    header(ip, Transport::Tcp(tcp), transport_len, payload_len)
}

#[inline]
fn header(ip: IpHeader, transport: Transport, transport_len: usize, payload_len: usize) -> Header {
    let mut ip = ip;
    ip::normalise(&mut ip);
    let mut header = Header {
        ip,
        transport,
        total_len: 0,
        payload_len: 0,
    };
    let payload_len = u32::try_from(payload_len).unwrap_or(u32::MAX);
    header.set_lengths(transport_len, payload_len);
    header
}

impl Transport {
    /// Becomes that of a TCP segment, if it is not yet.
    #[inline]
    fn become_tcp(&mut self) -> &mut TcpHeader {
        if !matches!(self, Self::Tcp(_)) {
            *self = Self::Tcp(TcpHeader::default());
        }
        match self {
            Self::Tcp(tcp) => tcp,
            _ => unreachable!("it has just been made one"),
        }
    }
}

impl Header {
    #[inline]
    fn set_lengths(&mut self, transport_len: usize, payload_len: u32) {
        self.payload_len = payload_len.min(MAX_PAYLOAD_LEN);
        let body_len = transport_len + self.payload_len as usize;
        // All headers together are at most 108 bytes, which the limit of the payload leaves.
        self.total_len = (ip::headers_len(&self.ip, body_len) + body_len) as u32;
    }
}

/// Makes the bytes of a TCP segment or UDP datagram.
fn emit(header: &Header, payload: impl FnOnce(&mut Vec<u8>)) -> Captured {
    let protocol = header.transport.protocol(header.ip.source);
    let body_len = match &header.transport {
        Transport::Tcp(tcp) => tcp.header_len(),
        _ => udp::HEADER_LEN,
    } + header.payload_len as usize;
    let checksum_at = header.transport.checksum_at(header.ip.source);
    emit_ip(&header.ip, protocol, body_len, checksum_at, |out| {
        match &header.transport {
            Transport::Tcp(tcp) => tcp.write(out),
            Transport::Udp(udp) => udp.write(out, header.payload_len as usize),
            // Whole messages: what is called payload here includes their header.
            Transport::IcmpError(_) | Transport::Other { .. } => {}
        }
        payload(out);
    })
}

/// Makes the bytes of a packet: IP headers, and behind them what `body` writes, `body_len` bytes
/// with a zero checksum field at `checksum_at`.
pub(crate) fn emit_ip(
    ip: &IpHeader,
    protocol: Protocol,
    body_len: usize,
    checksum_at: Option<usize>,
    body: impl FnOnce(&mut Vec<u8>),
) -> Captured {
    let transport_at = ip::headers_len(ip, body_len);
    let mut out = Vec::with_capacity(transport_at + body_len);
    ip::write(ip, protocol, body_len, &mut out);
    body(&mut out);
    debug_assert_eq!(
        out.len(),
        transport_at + body_len,
        "the headers tell the right length"
    );
    if let Some(at) = checksum_at {
        let checksum = transport_checksum(ip, protocol, &out[transport_at..]);
        out[transport_at + at..][..2].copy_from_slice(&checksum);
    }
    Captured {
        bytes: Bytes::from(out),
        transport_at: transport_at as u32,
        authenticated: false,
    }
}

/// The checksum of `data`, a transport header and payload in which the field itself is zero.
pub(crate) fn transport_checksum(ip: &IpHeader, protocol: Protocol, data: &[u8]) -> [u8; 2] {
    let pseudo = match protocol {
        Protocol::ICMP => Sum::default(),
        _ => pseudo_header(ip.source, ip.destination, protocol, data.len()),
    };
    match pseudo.bytes(data).checksum() {
        // Zero would say that there is none (RFC 768).
        [0, 0] if protocol == Protocol::UDP => [0xff, 0xff],
        checksum => checksum,
    }
}
