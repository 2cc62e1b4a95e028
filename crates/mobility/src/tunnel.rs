//! One end of a tunnel between home agent and care-of address (RFC 2003, RFC 3519).

use crate::datagram::{agent_socket, message};
use core::net::{Ipv4Addr, SocketAddrV4};
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ip::{
    EncapsulationError, OuterHeader, TunnelData, encapsulate, relay_error,
};
use outlast_wire::{IcmpNotice, Packet, Transport};

/// How long a smaller MTU is believed (RFC 1191, section 6.3).
const MTU_LIFETIME: Duration = Duration::from_secs(600);
const IP_HEADER: u32 = 20;
const UDP_OVERHEAD: u32 = IP_HEADER + 8 + TunnelData::HEADER_LEN as u32;
const TTL: u8 = 64;
/// The smallest that is believed: below it the tunnel could carry next to nothing.
const SMALLEST_MTU: u32 = 68 + UDP_OVERHEAD;
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
}

/// The sending end of a tunnel.
#[derive(Clone, Debug)]
pub(crate) struct Tunnel {
    source: SocketAddrV4,
    outside: Outside,
    /// What routers on the way have said of their MTU, and until when that is believed.
    mtu: Option<(u32, Instant)>,
    identification: u16,
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
    /// A tunnel from `source`, whose port counts for tunnels in UDP.
    pub(crate) const fn new(source: SocketAddrV4, outside: Outside) -> Self {
        Self {
            source,
            outside,
            mtu: None,
            identification: 0,
        }
    }

    /// A tunnel IP in IP.
    pub(crate) const fn ip(source: Ipv4Addr, destination: Ipv4Addr) -> Self {
        Self::new(agent_socket(source), Outside::Ip(destination))
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
        self.identification = self.identification.wrapping_add(1);
        let entered = match self.outside {
            Outside::Ip(destination) => self.enter_ip(destination, packet.clone()),
            Outside::Udp(peer) => self.enter_udp(peer, packet.clone()),
        };
        match entered {
            Ok(packet) => Entered::Encapsulated(packet),
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
        let outer = OuterHeader {
            source: *self.source.ip(),
            destination,
            ttl: TTL,
            identification: self.identification,
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

    /// A router on the way complains of a packet in the tunnel; what the inner packet's sender is
    /// told, if enough is quoted.
    pub(crate) fn handle_error(
        &mut self,
        now: Instant,
        router: Ipv4Addr,
        error: &Packet,
    ) -> Option<Packet> {
        if let Transport::IcmpError(about) = &error.header().transport
            && let Some(mtu) = about.mtu
        {
            let mtu = mtu.max(SMALLEST_MTU);
            self.mtu = Some((mtu, now + MTU_LIFETIME));
        }
        relay_error(error, router)
    }
}

/// Whether DF is set.
fn must_not_be_cut(packet: &Packet) -> bool {
    packet
        .bytes()
        .and_then(|bytes| bytes.get(6))
        .is_some_and(|flags| flags & 0x40 != 0)
}
