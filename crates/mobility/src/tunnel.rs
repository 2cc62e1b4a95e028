//! One end of a tunnel between home agent and care-of address (RFC 2003, RFC 3519).
//!
//! An ICMP error about the tunnel counts only if it quotes a packet that this end has sent. Who is not on the
//! way cannot know one: IP in IP has the outer identification differ from the inner one by a secret number,
//! which also the programs in the kernel do; of a tunnel in UDP the latest checksums are remembered. The
//! numbers are short, so that only so many false quotes are read in a time.

use crate::budget::Budget;
use crate::datagram::{agent_socket, message};
use alloc::boxed::Box;
use core::net::{Ipv4Addr, SocketAddrV4};
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    EncapsulationError, OuterHeader, QuotedContent, TunnelData, TunnelQuote, encapsulate,
    identification_base, relay_error,
};
use outlast_wire::{IcmpNotice, Packet, Transport};

/// How long a smaller MTU is believed (RFC 1191, section 6.3).
const MTU_LIFETIME: Duration = Duration::from_secs(600);
const IP_HEADER: u32 = 20;
const UDP_OVERHEAD: u32 = IP_HEADER + 8 + TunnelData::HEADER_LEN as u32;
const TTL: u8 = 64;
/// The smallest MTU that is believed. All hosts take packets of this length (RFC 791, section 3.1).
const SMALLEST_MTU: u32 = 576;
/// Datagrams that are remembered, to tell errors about them from forged ones.
const REMEMBERED: usize = 64;
/// False quotes that are read: so many at once, then one in each [`BETWEEN_FALSE_QUOTES`].
const FALSE_QUOTES: u32 = 8;
const BETWEEN_FALSE_QUOTES: Duration = Duration::from_secs(2);
const IPV4: u8 = 4;

/// What surrounds a packet in a tunnel.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Outside {
    /// IP in IP.
    Ip(Ipv4Addr),
    /// UDP to this socket, which may be a translator's.
    Udp(SocketAddrV4),
}

impl Outside {
    /// The other end's address.
    pub(crate) const fn end(self) -> Ipv4Addr {
        match self {
            Self::Ip(address) => address,
            Self::Udp(socket) => *socket.ip(),
        }
    }

    const fn overhead(self) -> u32 {
        match self {
            Self::Ip(_) => IP_HEADER,
            Self::Udp(_) => UDP_OVERHEAD,
        }
    }
}

/// A mobile node's tunnel IP in IP, as a driver's kernel may carry plain packets through it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PlainTunnel {
    /// This end.
    pub own: Ipv4Addr,
    /// The other end.
    pub other: Ipv4Addr,
    /// Whether packets enter it here.
    pub sends: bool,
    /// Whether packets leave it here.
    pub receives: bool,
    /// What routers on the way have said of their MTU, in bytes.
    pub mtu: Option<u32>,
    /// The outer identification of a packet is its inner one and this number.
    pub identification_offset: u16,
}

/// The sending end of a tunnel.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel {
    source: SocketAddrV4,
    outside: Outside,
    /// What routers on the way have said of their MTU, and until when that is believed.
    mtu: Option<(u32, Instant)>,
    /// Secret: what errors about the tunnel's packets are known by.
    identification_offset: u16,
    /// Length and checksum of the latest datagrams, of a tunnel in UDP.
    latest: Option<Box<Latest>>,
    false_quotes: Budget,
}

/// The latest datagrams, as an error quotes them.
#[derive(Clone, Debug)]
struct Latest {
    lengths_and_checksums: [[u8; 4]; REMEMBERED],
    next: usize,
}

impl Latest {
    const NONE: Self = Self {
        lengths_and_checksums: [[0; 4]; REMEMBERED],
        next: 0,
    };

    /// Remembers a datagram that was made here.
    fn note(&mut self, datagram: &Packet) {
        let bytes = datagram.bytes().and_then(|bytes| bytes.get(24..28));
        let found = bytes.and_then(|bytes| bytes.first_chunk().copied());
        if let (Some(found), Some(place)) = (found, self.lengths_and_checksums.get_mut(self.next)) {
            *place = found;
            self.next = (self.next + 1) % REMEMBERED;
        }
    }

    fn has(&self, length_and_checksum: [u8; 4]) -> bool {
        // No datagram has a length of zero.
        length_and_checksum != [0; 4] && self.lengths_and_checksums.contains(&length_and_checksum)
    }
}

/// What becomes of a packet that is to go through a tunnel.
#[derive(Clone, Debug)]
pub(crate) enum Entered {
    /// It is in the tunnel.
    Encapsulated(Packet),
    /// Its sender is told why not.
    TurnedRound(Packet),
    /// It goes nowhere.
    Dropped,
}

impl Tunnel {
    /// A tunnel from `source`, whose port counts for tunnels in UDP. Nobody else may know `secret`.
    pub(crate) fn new(now: Instant, source: SocketAddrV4, outside: Outside, secret: u64) -> Self {
        Self {
            source,
            outside,
            mtu: None,
            // The high bits.
            identification_offset: (secret >> 48) as u16,
            latest: matches!(outside, Outside::Udp(_)).then(|| Box::new(Latest::NONE)),
            false_quotes: Budget::new(now, FALSE_QUOTES, BETWEEN_FALSE_QUOTES),
        }
    }

    /// A tunnel IP in IP.
    pub(crate) fn ip(now: Instant, source: Ipv4Addr, destination: Ipv4Addr, secret: u64) -> Self {
        Self::new(now, agent_socket(source), Outside::Ip(destination), secret)
    }

    pub(crate) const fn outside(&self) -> Outside {
        self.outside
    }

    /// What a kernel may do for it; `None` of a tunnel in UDP.
    pub(crate) fn plain(&self, sends: bool, receives: bool) -> Option<PlainTunnel> {
        let Outside::Ip(other) = self.outside else {
            return None;
        };
        Some(PlainTunnel {
            own: *self.source.ip(),
            other,
            sends,
            receives,
            mtu: self.mtu.map(|(mtu, _)| mtu),
            identification_offset: self.identification_offset,
        })
    }

    /// A packet enters the tunnel. What is too long and must not be cut is answered at once
    /// (RFC 2003, section 5.1), from `router`.
    pub(crate) fn enter(&mut self, now: Instant, router: Ipv4Addr, packet: Packet) -> Entered {
        if let Some((mtu, until)) = self.mtu {
            let room = mtu - self.outside.overhead();
            if until <= now {
                self.mtu = None;
            } else if packet.total_len() > room && must_not_be_cut(&packet) {
                let notice = IcmpNotice::TooBig { mtu: room };
                return match Packet::icmp_error(router.into(), notice, &packet) {
                    Ok(error) => Entered::TurnedRound(error),
                    Err(_) => Entered::Dropped,
                };
            }
        }
        let entered = match self.outside {
            Outside::Ip(destination) => self.enter_ip(destination, packet.clone()),
            Outside::Udp(peer) => self.enter_udp(peer, packet.clone()),
        };
        match entered {
            Ok(packet) => {
                if let Some(latest) = &mut self.latest {
                    latest.note(&packet);
                }
                Entered::Encapsulated(packet)
            }
            Err(EncapsulationError::Ttl) => {
                let notice = IcmpNotice::HopLimitExceeded;
                match Packet::icmp_error(router.into(), notice, &packet) {
                    Ok(error) => Entered::TurnedRound(error),
                    Err(_) => Entered::Dropped,
                }
            }
            Err(_) => Entered::Dropped,
        }
    }

    fn enter_ip(
        &self,
        destination: Ipv4Addr,
        packet: Packet,
    ) -> Result<Packet, EncapsulationError> {
        let begin = packet.bytes().and_then(|bytes| bytes.first_chunk::<8>());
        let base = begin.map_or_else(|| packet.header().ip.identification, identification_base);
        let outer = OuterHeader {
            source: *self.source.ip(),
            destination,
            ttl: TTL,
            identification: base.wrapping_add(self.identification_offset),
        };
        encapsulate(packet, outer)
    }

    fn enter_udp(&self, peer: SocketAddrV4, packet: Packet) -> Result<Packet, EncapsulationError> {
        let mut edit = packet.edit();
        if edit.decrement_hop_limit().is_err() {
            return Err(EncapsulationError::Ttl);
        }
        let bytes = edit.finish().to_bytes();
        let data = TunnelData {
            next_header: IPV4,
            packet: &bytes,
        };
        Ok(message(self.source, peer, None, &data.emit()))
    }

    /// A router on the way complains of a packet in the tunnel of `mobile`; what the inner packet's sender
    /// is told, if enough is quoted.
    ///
    /// # Errors
    ///
    /// [`NotOurs`] if it quotes no packet that was sent here.
    pub(crate) fn handle_error(
        &mut self,
        now: Instant,
        (router, mobile): (Ipv4Addr, MobileSide),
        error: &Packet,
        quote: &TunnelQuote,
    ) -> Result<Option<Packet>, NotOurs> {
        if !self.is_of_its_kind(quote) {
            return Err(NotOurs);
        }
        if !self.has_sent(mobile, quote) {
            // As long as there are none left, true ones are not read either.
            let _ = self.false_quotes.take(now);
            return Err(NotOurs);
        }
        if self.false_quotes.is_empty(now) {
            return Err(NotOurs);
        }
        let Transport::IcmpError(about) = &error.header().transport else {
            return Err(NotOurs);
        };
        if let Some(mtu) = about.mtu {
            // It would have been carried (RFC 1191, section 4).
            if !quote.must_not_be_cut || mtu >= u32::from(quote.total_len) {
                return Err(NotOurs);
            }
            self.mtu = Some((mtu.max(SMALLEST_MTU), now + MTU_LIFETIME));
        }
        Ok(relay_error(error, router, SMALLEST_MTU))
    }

    /// Compares a quoted packet with the tunnel, as far as that is no secret.
    fn is_of_its_kind(&self, quote: &TunnelQuote) -> bool {
        let is_content = match (self.outside, quote.content) {
            (Outside::Ip(_), QuotedContent::Packet { .. }) => true,
            (Outside::Udp(peer), QuotedContent::Datagram { ports, .. }) => {
                ports == (self.source.port(), peer.port())
            }
            _ => false,
        };
        is_content && quote.source == *self.source.ip() && quote.destination == self.outside.end()
    }

    /// True for a quoted packet that has entered the tunnel here, or in the kernel.
    fn has_sent(&self, mobile: MobileSide, quote: &TunnelQuote) -> bool {
        match (self.outside, quote.content) {
            (Outside::Ip(_), QuotedContent::Packet { offset, ends }) => {
                offset == self.identification_offset && ends.is_none_or(|ends| mobile.is_in(ends))
            }
            (
                Outside::Udp(_),
                QuotedContent::Datagram {
                    length_and_checksum,
                    ..
                },
            ) => {
                let latest = self.latest.as_ref();
                latest.is_some_and(|latest| latest.has(length_and_checksum))
            }
            _ => false,
        }
    }
}

/// The error quotes no packet that entered the tunnel here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct NotOurs;

/// The side of an inner packet at which the mobile node is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum MobileSide {
    /// It has sent the packet.
    Source(Ipv4Addr),
    /// The packet is for it.
    Destination(Ipv4Addr),
}

impl MobileSide {
    fn is_in(self, (source, destination): (Ipv4Addr, Ipv4Addr)) -> bool {
        match self {
            Self::Source(mobile) => mobile == source,
            Self::Destination(mobile) => mobile == destination,
        }
    }
}

/// Whether DF is set.
fn must_not_be_cut(packet: &Packet) -> bool {
    packet
        .bytes()
        .and_then(|bytes| bytes.get(6))
        .is_some_and(|flags| flags & 0x40 != 0)
}
