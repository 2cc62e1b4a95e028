//! One end of a tunnel between home agent and care-of address (RFC 2473).

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{TUNNEL_OVERHEAD, TunnelError, encapsulate, relay_error};
use outlast_wire::{IcmpNotice, Packet, Transport};

/// How long a smaller MTU is believed (RFC 8201, section 5.3).
const MTU_LIFETIME: Duration = Duration::from_secs(600);
/// Every link carries so much: nobody is told less (RFC 8201, section 4).
const LEAST_MTU: u32 = 1280;
const HEADER_LEN: usize = 40;
const IPV6_IN_IP: u8 = 41;

/// The sending end of a tunnel.
#[derive(Clone, Debug)]
pub(super) struct Tunnel {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    /// What routers on the way have said of their MTU, and until when that is believed.
    mtu: Option<(u32, Instant)>,
    /// That of the last packet that went in fragments.
    identification: u32,
}

/// What becomes of a packet that is to go through a tunnel.
#[derive(Clone, Debug)]
pub(super) enum Entered {
    /// It is in the tunnel.
    Encapsulated(Packet),
    /// It is in the tunnel, in fragments.
    Fragmented(Vec<Packet>),
    /// Its sender is told why not.
    TurnedRound(Packet),
    /// It goes nowhere.
    Dropped,
}

impl Tunnel {
    pub(super) const fn new(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self {
            source,
            destination,
            mtu: None,
            identification: 0,
        }
    }

    pub(super) const fn destination(&self) -> Ipv6Addr {
        self.destination
    }

    /// A packet enters the tunnel. What is too long is answered at once, from `router`; a packet that every link
    /// carries is not, but goes in fragments where the tunnel has less room (RFC 2473, section 7.1).
    pub(super) fn enter(&mut self, now: Instant, router: Ipv6Addr, packet: Packet) -> Entered {
        let answer =
            |notice, packet: &Packet| match Packet::icmp_error(router.into(), notice, packet) {
                Ok(error) => Entered::TurnedRound(error),
                Err(_) => Entered::Dropped,
            };
        let mtu = self.mtu_at(now);
        if let Some(mtu) = mtu {
            let room = mtu.saturating_sub(TUNNEL_OVERHEAD).max(LEAST_MTU);
            if packet.total_len() > room {
                return answer(IcmpNotice::TooBig { mtu: room }, &packet);
            }
        }
        match encapsulate(packet.clone(), self.source, self.destination) {
            Ok(packet) => match mtu.filter(|mtu| packet.total_len() > *mtu) {
                Some(mtu) => self.fragment(now, &packet, mtu),
                None => Entered::Encapsulated(packet),
            },
            Err(TunnelError::HopLimit) => answer(IcmpNotice::HopLimitExceeded, &packet),
            Err(_) => Entered::Dropped,
        }
    }

    /// The MTU of the way, if it is known to be small.
    fn mtu_at(&mut self, now: Instant) -> Option<u32> {
        self.mtu = self.mtu.filter(|(_, until)| *until > now);
        self.mtu.map(|(mtu, _)| mtu)
    }

    fn fragment(&mut self, now: Instant, packet: &Packet, mtu: u32) -> Entered {
        if self.identification == 0 {
            // A restart does not begin with those that were used a moment ago.
            self.identification = now.as_nanos() as u32;
        }
        self.identification = self.identification.wrapping_add(1);
        match packet.fragment_at_source(mtu, self.identification) {
            Ok(fragments) => Entered::Fragmented(fragments),
            Err(_) => Entered::Dropped,
        }
    }

    /// A router on the way complains of a packet in the tunnel; what the inner packet's sender is told, if
    /// enough is quoted. The caller has found the tunnel by [`ends_of_quoted`].
    ///
    /// # Errors
    ///
    /// [`NotOurs`] if it quotes no packet that can have been sent here.
    pub(super) fn handle_error(
        &mut self,
        now: Instant,
        router: Ipv6Addr,
        error: &Packet,
    ) -> Result<Option<Packet>, NotOurs> {
        let Transport::IcmpError(about) = &error.header().transport else {
            return Err(NotOurs);
        };
        let quoted = about.quoted.ok_or(NotOurs)?;
        let is_between_ends = quoted.source == IpAddr::V6(self.source)
            && quoted.destination == IpAddr::V6(self.destination);
        if !is_between_ends {
            return Err(NotOurs);
        }
        if let Some(mtu) = about.mtu {
            let length = quoted_len(error).ok_or(NotOurs)?;
            // It would have been carried (RFC 8201, section 4).
            if mtu >= length {
                return Err(NotOurs);
            }
            self.mtu = Some((mtu.max(LEAST_MTU), now + MTU_LIFETIME));
        }
        Ok(relay_error(error, router))
    }
}

/// The error quotes no packet that can have entered the tunnel here.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct NotOurs;

/// Length of the packet that an error quotes, in bytes.
fn quoted_len(error: &Packet) -> Option<u32> {
    let &[_, _, _, _, high, low] = error.payload()?.first_chunk()?;
    Some(u32::from(u16::from_be_bytes([high, low])) + HEADER_LEN as u32)
}

/// Source and destination of the inner packet that an error about a packet in a tunnel quotes. IPv6 quotes as
/// much as every link carries (RFC 4443, section 3), so that they are there.
pub(super) fn ends_of_quoted(error: &Packet) -> Option<(Ipv6Addr, Ipv6Addr)> {
    let Transport::IcmpError(about) = &error.header().transport else {
        return None;
    };
    let quoted = about.quoted?;
    let inner: &[u8; HEADER_LEN] = error.payload()?.get(HEADER_LEN..)?.first_chunk()?;
    if quoted.protocol != IPV6_IN_IP || !quoted.source.is_ipv6() || inner[0] >> 4 != 6 {
        return None;
    }
    let address = |at: usize| {
        let bytes: [u8; 16] = *inner.get(at..)?.first_chunk()?;
        Some(Ipv6Addr::from(bytes))
    };
    Some((address(8)?, address(24)?))
}
