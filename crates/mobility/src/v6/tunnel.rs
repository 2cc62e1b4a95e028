//! One end of a tunnel between home agent and care-of address (RFC 2473).

use crate::tunnel::Entered;
use core::net::Ipv6Addr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::mobile_ipv6::{TUNNEL_OVERHEAD, TunnelError, encapsulate, relay_error};
use outlast_wire::{IcmpNotice, Packet, Transport};

/// How long a smaller MTU is believed (RFC 8201, section 5.3).
const MTU_LIFETIME: Duration = Duration::from_secs(600);
/// Every link carries so much: nobody is told less (RFC 8201, section 4).
const LEAST_MTU: u32 = 1280;

/// The sending end of a tunnel.
#[derive(Clone, Debug)]
pub(super) struct Tunnel {
    source: Ipv6Addr,
    destination: Ipv6Addr,
    /// What routers on the way have said of their MTU, and until when that is believed.
    mtu: Option<(u32, Instant)>,
}

impl Tunnel {
    pub(super) const fn new(source: Ipv6Addr, destination: Ipv6Addr) -> Self {
        Self {
            source,
            destination,
            mtu: None,
        }
    }

    pub(super) const fn destination(&self) -> Ipv6Addr {
        self.destination
    }

    /// A packet enters the tunnel. What is too long is answered at once, from `router`.
    pub(super) fn enter(&mut self, now: Instant, router: Ipv6Addr, packet: Packet) -> Entered {
        let answer =
            |notice, packet: &Packet| match Packet::icmp_error(router.into(), notice, packet) {
                Ok(error) => Entered::TurnedRound(error),
                Err(_) => Entered::Dropped,
            };
        if let Some((mtu, until)) = self.mtu {
            let room = mtu.saturating_sub(TUNNEL_OVERHEAD).max(LEAST_MTU);
            if until <= now {
                self.mtu = None;
            } else if packet.total_len() > room {
                return answer(IcmpNotice::TooBig { mtu: room }, &packet);
            }
        }
        match encapsulate(packet.clone(), self.source, self.destination) {
            Ok(packet) => Entered::Encapsulated(packet),
            Err(TunnelError::HopLimit) => answer(IcmpNotice::HopLimitExceeded, &packet),
            Err(_) => Entered::Dropped,
        }
    }

    /// A router on the way complains of a packet in the tunnel; what the inner packet's sender is
    /// told, if enough is quoted.
    pub(super) fn handle_error(
        &mut self,
        now: Instant,
        router: Ipv6Addr,
        error: &Packet,
    ) -> Option<Packet> {
        if let Transport::IcmpError(about) = &error.header().transport
            && let Some(mtu) = about.mtu
        {
            self.mtu = Some((mtu.max(LEAST_MTU), now + MTU_LIFETIME));
        }
        relay_error(error, router)
    }
}
