//! Timestamps (RFC 7323): which copies of a segment the far host still takes.

use outlast_wire::tcp::Timestamps;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// A TSval; zero for a segment without timestamps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stamp(u32);

impl Stamp {
    pub(super) fn of(packet: &Packet) -> Self {
        let timestamps = packet.tcp().and_then(|tcp| tcp.options.timestamps);
        Self(timestamps.map_or(0, |timestamps| timestamps.value))
    }

    /// The newer one of what a host has shown before and what this segment of it says.
    pub(super) fn newest(known: Option<Self>, tcp: &TcpHeader) -> Option<Self> {
        let Some(timestamps) = tcp.options.timestamps else {
            return known;
        };
        let own = Self(timestamps.value);
        Some(known.map_or(own, |known| if known.is_before(own) { own } else { known }))
    }

    /// The timestamp that this segment of the far host echoes, where `self` is the newest that the
    /// near host has sent: nobody can echo a newer one. Meaningful only with an acknowledgement
    /// (RFC 7323, section 3.2).
    pub(super) fn echoed_by(self, tcp: &TcpHeader) -> Option<Self> {
        Self::echo_of(tcp).filter(|echo| !self.is_before(*echo))
    }

    /// The timestamp that this segment echoes, whether its receiver was seen to send such a one or not.
    pub(super) fn echo_of(tcp: &TcpHeader) -> Option<Self> {
        let timestamps = tcp.options.timestamps.filter(|_| tcp.has(TcpFlags::ACK));
        timestamps.map(|timestamps| Self(timestamps.echo))
    }

    /// `packet` with this timestamp instead of an older one, which its receiver would reject (PAWS,
    /// RFC 7323, section 5.3). Authenticated segments stay as they are.
    pub(super) fn renew(self, packet: Packet) -> Packet {
        let Some(old) = packet.tcp().and_then(|tcp| tcp.options.timestamps) else {
            return packet;
        };
        if !Self(old.value).is_before(self) {
            return packet;
        }
        let mut edit = packet.clone().edit();
        let renewed = edit.set_timestamps(Timestamps {
            value: self.0,
            echo: old.echo,
        });
        match renewed {
            Ok(_) => edit.finish(),
            Err(_) => packet,
        }
    }

    /// Modulo 2^32, as timestamps are compared (RFC 7323, section 5.2).
    pub(super) const fn is_before(self, other: Self) -> bool {
        Timestamps::is_older(self.0, other.0)
    }
}
