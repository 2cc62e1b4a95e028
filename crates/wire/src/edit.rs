//! Edits of a packet in place, with incremental checksums (RFC 1624).
//!
//! A checksum that was wrong before an edit is as wrong after it: an edit hides no damage. One
//! that still waits for a network card (Linux: `CHECKSUM_PARTIAL`) is filled in with
//! [`Edit::fill_checksums`].

mod options;

use crate::build::transport_checksum;
use crate::checksum::{self, Sum, updated};
use crate::packet::{Body, Captured};
use crate::tcp::Timestamps;
use crate::{Header, IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader, Transport};
use bytes::BytesMut;
use core::net::IpAddr;
use core::ops::Range;

/// Why an edit cannot be made. The packet is then as it was before it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EditError {
    /// The packet is no whole TCP segment.
    #[error("the packet is no whole TCP segment")]
    NotTcp,
    /// The packet has no ports that Outlast reads.
    #[error("the packet has no ports")]
    NoPorts,
    /// It is not known which checksum covers the addresses: a fragment, or another protocol.
    #[error("it is not known which checksum covers the addresses")]
    Opaque,
    /// The new address is of another family.
    #[error("the new address is of another family")]
    Family,
    /// An authentication header (RFC 4302) protects the packet.
    #[error("an authentication header protects the packet")]
    Authenticated,
    /// The hop limit has run out.
    #[error("the hop limit has run out")]
    HopLimit,
    /// The segment has no such option.
    #[error("the segment has no option of kind {0}")]
    NoOption(u8),
    /// The option has a value that cannot be sent.
    #[error("the option has a value that cannot be sent")]
    OptionValue,
    /// The options could not be read to their end, so that none can be added.
    #[error("the options cannot be read to their end")]
    MalformedOptions,
    /// The options do not fit in 40 bytes.
    #[error("the options do not fit in 40 bytes")]
    NoRoom,
    /// The packet would be longer than its length field can say.
    #[error("the packet would be too long")]
    TooLong,
}

/// A packet that is being edited, see [`Packet::edit`].
#[derive(Debug)]
pub struct Edit {
    header: Header,
    target: Target,
}

#[derive(Debug)]
enum Target {
    Captured {
        bytes: BytesMut,
        transport_at: usize,
        authenticated: bool,
    },
    Modelled(ModelledPayload),
}

type Edited<'a> = Result<&'a mut Edit, EditError>;

impl Packet {
    /// Starts to edit the packet. Its bytes are copied if somebody else holds them too, and
    /// edited in place if not.
    ///
    /// ```
    /// use outlast_wire::{IpHeader, Packet, TcpHeader};
    ///
    /// let ip = IpHeader {
    ///     source: [192, 0, 2, 1].into(),
    ///     destination: [198, 51, 100, 2].into(),
    ///     hop_limit: 64,
    ///     traffic_class: 0,
    ///     identification: 0,
    /// };
    /// let mut edit = Packet::tcp_segment(ip, TcpHeader::default(), b"payload").edit();
    /// edit.set_window(0)?.set_destination_port(80)?;
    /// let packet = edit.finish();
    /// assert!(packet.checksums_ok());
    /// # Ok::<(), outlast_wire::edit::EditError>(())
    /// ```
    #[must_use]
    pub fn edit(self) -> Edit {
        let target = match self.body {
            Body::Modelled(payload) => Target::Modelled(payload),
            Body::Captured(Captured {
                bytes,
                transport_at,
                authenticated,
            }) => Target::Captured {
                bytes: bytes
                    .try_into_mut()
                    .unwrap_or_else(|shared| BytesMut::from(&shared[..])),
                transport_at: transport_at as usize,
                authenticated,
            },
        };
        Edit {
            header: self.header,
            target,
        }
    }
}

impl Edit {
    /// The edited packet.
    #[must_use]
    pub fn finish(self) -> Packet {
        let body = match self.target {
            Target::Modelled(payload) => Body::Modelled(payload),
            Target::Captured {
                bytes,
                transport_at,
                authenticated,
            } => Body::Captured(Captured {
                bytes: bytes.freeze(),
                // As it was in the packet, where it is 32 bits.
                transport_at: transport_at as u32,
                authenticated,
            }),
        };
        Packet {
            header: self.header,
            body,
        }
    }

    /// What the headers say so far.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Replaces SEG.SEQ.
    ///
    /// # Errors
    ///
    /// [`EditError::NotTcp`], [`EditError::Authenticated`].
    pub fn set_seq(&mut self, seq: SeqNumber) -> Edited<'_> {
        self.tcp()?.seq = seq;
        self.write_transport(4, &seq.0.to_be_bytes());
        Ok(self)
    }

    /// Replaces SEG.ACK; the ACK flag stays as it is.
    ///
    /// # Errors
    ///
    /// [`EditError::NotTcp`], [`EditError::Authenticated`].
    pub fn set_ack(&mut self, ack: SeqNumber) -> Edited<'_> {
        self.tcp()?.ack = ack;
        self.write_transport(8, &ack.0.to_be_bytes());
        Ok(self)
    }

    /// Replaces the control bits.
    ///
    /// # Errors
    ///
    /// [`EditError::NotTcp`], [`EditError::Authenticated`].
    pub fn set_flags(&mut self, flags: TcpFlags) -> Edited<'_> {
        self.tcp()?.flags = flags;
        self.write_transport(13, &[flags.0]);
        Ok(self)
    }

    /// Replaces the window field, which is not scaled here.
    ///
    /// # Errors
    ///
    /// [`EditError::NotTcp`], [`EditError::Authenticated`].
    pub fn set_window(&mut self, window: u16) -> Edited<'_> {
        self.tcp()?.window = window;
        self.write_transport(14, &window.to_be_bytes());
        Ok(self)
    }

    /// Replaces the source port of TCP or UDP.
    ///
    /// # Errors
    ///
    /// [`EditError::NoPorts`], [`EditError::Authenticated`].
    pub fn set_source_port(&mut self, port: u16) -> Edited<'_> {
        self.refuse_authenticated()?;
        match &mut self.header.transport {
            Transport::Tcp(tcp) => tcp.source_port = port,
            Transport::Udp(udp) => udp.source_port = port,
            _ => return Err(EditError::NoPorts),
        }
        self.write_transport(0, &port.to_be_bytes());
        Ok(self)
    }

    /// Replaces the destination port of TCP or UDP.
    ///
    /// # Errors
    ///
    /// [`EditError::NoPorts`], [`EditError::Authenticated`].
    pub fn set_destination_port(&mut self, port: u16) -> Edited<'_> {
        self.refuse_authenticated()?;
        match &mut self.header.transport {
            Transport::Tcp(tcp) => tcp.destination_port = port,
            Transport::Udp(udp) => udp.destination_port = port,
            _ => return Err(EditError::NoPorts),
        }
        self.write_transport(2, &port.to_be_bytes());
        Ok(self)
    }

    /// Replaces the source address. What an ICMP error quotes stays as it is.
    ///
    /// # Errors
    ///
    /// [`EditError::Family`], [`EditError::Opaque`], [`EditError::Authenticated`].
    pub fn set_source(&mut self, address: IpAddr) -> Edited<'_> {
        let old = self.header.ip.source;
        self.write_address(old, address, (12, 8))?;
        self.header.ip.source = address;
        Ok(self)
    }

    /// Replaces the destination address. What an ICMP error quotes stays as it is.
    ///
    /// # Errors
    ///
    /// [`EditError::Family`], [`EditError::Opaque`], [`EditError::Authenticated`].
    pub fn set_destination(&mut self, address: IpAddr) -> Edited<'_> {
        let old = self.header.ip.destination;
        self.write_address(old, address, (16, 24))?;
        self.header.ip.destination = address;
        Ok(self)
    }

    /// Takes one from TTL or hop limit, as a router does.
    ///
    /// # Errors
    ///
    /// [`EditError::HopLimit`] if nothing would be left; the packet is then to be dropped.
    pub fn decrement_hop_limit(&mut self) -> Edited<'_> {
        let hop_limit = match self.header.ip.hop_limit {
            0 | 1 => return Err(EditError::HopLimit),
            hop_limit => hop_limit - 1,
        };
        self.header.ip.hop_limit = hop_limit;
        match self.header.ip.source {
            IpAddr::V4(_) => self.write_ipv4(8, &[hop_limit]),
            IpAddr::V6(_) => {
                if let Target::Captured { bytes, .. } = &mut self.target {
                    bytes[7] = hop_limit;
                }
            }
        }
        Ok(self)
    }

    /// Replaces both timestamps of a segment that has them.
    ///
    /// # Errors
    ///
    /// [`EditError::NotTcp`], [`EditError::NoOption`], [`EditError::Authenticated`].
    pub fn set_timestamps(&mut self, timestamps: Timestamps) -> Edited<'_> {
        if self.tcp()?.options.timestamps.is_none() {
            return Err(EditError::NoOption(crate::tcp::kind::TIMESTAMPS));
        }
        self.set_option(&crate::tcp::TcpOption::Timestamps(timestamps))
    }

    /// Computes the checksums anew: that of the IPv4 header, and that of the transport if Outlast
    /// knows what it covers. A UDP checksum of zero stays, it says that there is none.
    pub fn fill_checksums(&mut self) -> &mut Self {
        let ip = self.header.ip;
        let protocol = self.header.transport.protocol(ip.source);
        let covered_len = self.header.transport_covered_len();
        let Target::Captured {
            bytes,
            transport_at,
            ..
        } = &mut self.target
        else {
            return self;
        };
        if let (IpAddr::V4(_), Some(header)) = (ip.source, bytes.get_mut(..*transport_at)) {
            header[10..12].fill(0);
            let checksum = Sum::default().bytes(header).checksum();
            header[10..12].copy_from_slice(&checksum);
        }
        let Some(at) = self.header.transport.checksum_at(ip.source) else {
            return self;
        };
        let transport = bytes.get_mut(*transport_at..).unwrap_or_default();
        let length = covered_len.unwrap_or(transport.len());
        let Some(covered) = transport.get_mut(..length) else {
            return self;
        };
        let Some(field) = covered.get_mut(at..at + 2) else {
            return self;
        };
        if matches!(self.header.transport, Transport::Udp(_)) && field == [0, 0] {
            return self;
        }
        field.fill(0);
        let checksum = transport_checksum(&ip, protocol, covered);
        covered[at..at + 2].copy_from_slice(&checksum);
        self
    }

    /// The TCP header, to be altered together with its bytes.
    fn tcp(&mut self) -> Result<&mut TcpHeader, EditError> {
        self.refuse_authenticated()?;
        match &mut self.header.transport {
            Transport::Tcp(tcp) => Ok(tcp),
            _ => Err(EditError::NotTcp),
        }
    }

    fn refuse_authenticated(&self) -> Result<(), EditError> {
        match self.target {
            Target::Captured {
                authenticated: true,
                ..
            } => Err(EditError::Authenticated),
            _ => Ok(()),
        }
    }

    fn write_address(
        &mut self,
        old: IpAddr,
        new: IpAddr,
        (at_v4, at_v6): (usize, usize),
    ) -> Result<(), EditError> {
        self.refuse_authenticated()?;
        let IpHeader { source, .. } = self.header.ip;
        if old.is_ipv4() != new.is_ipv4() {
            return Err(EditError::Family);
        }
        if self.header.transport.checksum_at(source).is_none() {
            return Err(EditError::Opaque);
        }
        let sum = |address| checksum::address(Sum::default(), address);
        if self.header.transport.protocol(source) != crate::ip::Protocol::ICMP {
            self.update_transport(sum(old), sum(new));
        }
        match new {
            IpAddr::V4(new) => self.write_ipv4(at_v4, &new.octets()),
            IpAddr::V6(new) => {
                if let Target::Captured { bytes, .. } = &mut self.target {
                    bytes[at_v6..at_v6 + 16].copy_from_slice(&new.octets());
                }
            }
        }
        Ok(())
    }

    /// Writes into the IPv4 header and updates its checksum.
    fn write_ipv4(&mut self, at: usize, new: &[u8]) {
        let Target::Captured { bytes, .. } = &mut self.target else {
            return;
        };
        let (old, new) = write(bytes, at, new);
        let checksum = updated([bytes[10], bytes[11]], old, new);
        bytes[10..12].copy_from_slice(&checksum);
    }

    /// Writes at an offset in the transport header and updates its checksum.
    fn write_transport(&mut self, at: usize, new: &[u8]) {
        let Target::Captured {
            bytes,
            transport_at,
            ..
        } = &mut self.target
        else {
            return;
        };
        let (old, new) = write(bytes, *transport_at + at, new);
        self.update_transport(old, new);
    }

    /// Updates the transport's checksum after part of what it covers changed.
    fn update_transport(&mut self, old: Sum, new: Sum) {
        let at = self.header.transport.checksum_at(self.header.ip.source);
        let (
            Some(at),
            Target::Captured {
                bytes,
                transport_at,
                ..
            },
        ) = (at, &mut self.target)
        else {
            return;
        };
        let at = *transport_at + at;
        let Some(field) = bytes.get_mut(at..at + 2) else {
            return;
        };
        let is_udp = matches!(self.header.transport, Transport::Udp(_));
        match [field[0], field[1]] {
            // There is none.
            [0, 0] if is_udp => {}
            old_field => {
                let checksum = match updated(old_field, old, new) {
                    [0, 0] if is_udp => [0xff, 0xff],
                    checksum => checksum,
                };
                field.copy_from_slice(&checksum);
            }
        }
    }
}

/// Writes `new` at `at`, and tells the sums of the words in which it lies before and after.
fn write(bytes: &mut [u8], at: usize, new: &[u8]) -> (Sum, Sum) {
    // IP headers are whole words, so that words of the transport lie at even offsets too.
    let words: Range<usize> = at & !1..(at + new.len()).next_multiple_of(2).min(bytes.len());
    let old = Sum::default().bytes(&bytes[words.clone()]);
    bytes[at..at + new.len()].copy_from_slice(new);
    (old, Sum::default().bytes(&bytes[words]))
}
