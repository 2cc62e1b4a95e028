//! Timestamps (RFC 7323): which copies of a segment the far host still takes.

use outlast_wire::tcp::Timestamps;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// A TSval; zero for a segment without timestamps.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Stamp(u32);

impl Stamp {
    /// As an echo: none.
    pub(super) const NONE: Self = Self(0);

    pub(super) fn of(packet: &Packet) -> Self {
        let timestamps = packet.tcp().and_then(|tcp| tcp.options.timestamps);
        Self(timestamps.map_or(0, |timestamps| timestamps.value))
    }

    /// The timestamp of this segment; `None` if it has none.
    pub(super) fn in_header(tcp: &TcpHeader) -> Option<Self> {
        tcp.options
            .timestamps
            .map(|timestamps| Self(timestamps.value))
    }

    /// The timestamp so many ticks after this one.
    pub(super) const fn after(self, ticks: u32) -> Self {
        Self(self.0.wrapping_add(ticks))
    }

    /// The timestamp so many ticks before this one.
    pub(super) const fn before(self, ticks: u32) -> Self {
        Self(self.0.wrapping_sub(ticks))
    }

    /// Ticks from `earlier` to this one.
    pub(super) const fn ticks_since(self, earlier: Self) -> u32 {
        self.0.wrapping_sub(earlier.0)
    }

    /// The timestamp that this segment of the far host echoes, where `self` is the newest that the
    /// near host has sent: nobody can echo a newer one. Meaningful only with an acknowledgement
    /// (RFC 7323, section 3.2).
    pub(super) fn echoed_by(self, tcp: &TcpHeader) -> Option<Self> {
        Self::echo_of(tcp).filter(|echo| !self.is_before(*echo))
    }

    /// The timestamp that this segment echoes, whether its receiver was seen to send such a one or not. Zero is none: most
    /// stacks take no round trip from it, and gateways send it where nothing fresh is known.
    pub(super) fn echo_of(tcp: &TcpHeader) -> Option<Self> {
        let timestamps = tcp.options.timestamps.filter(|_| tcp.has(TcpFlags::ACK));
        let echo = timestamps.map(|timestamps| timestamps.echo)?;
        (echo != 0).then_some(Self(echo))
    }

    /// The echo among these timestamps.
    pub(super) const fn echo_in_stamps(stamps: Timestamps) -> Self {
        Self(stamps.echo)
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

    /// `packet` with an echo of this timestamp. Authenticated segments stay as they are.
    pub(super) fn echo_in(self, packet: &Packet) -> Packet {
        let Some(old) = packet.tcp().and_then(|tcp| tcp.options.timestamps) else {
            return packet.clone();
        };
        let mut edit = packet.clone().edit();
        let echoed = edit.set_timestamps(Timestamps {
            value: old.value,
            echo: self.0,
        });
        match echoed {
            Ok(_) => edit.finish(),
            Err(_) => packet.clone(),
        }
    }

    /// Modulo 2^32, as timestamps are compared (RFC 7323, section 5.2).
    pub(super) const fn is_before(self, other: Self) -> bool {
        Timestamps::is_older(self.0, other.0)
    }
}
