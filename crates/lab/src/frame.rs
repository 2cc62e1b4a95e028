//! What travels over the lab's link.

use bytes::Bytes;
use outlast_wire::Packet;
use outlast_world::path::Load;

/// Whatever was put into the link's end.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    /// A packet that gateways and observers can look into.
    Packet(Packet),
    /// Something that is no whole IP packet: it crosses the link and is not looked into.
    Opaque(Bytes),
}

impl Content {
    /// Looks into what a host has sent.
    pub(crate) fn of(bytes: Bytes) -> Self {
        match Packet::parse(bytes.clone()) {
            Ok(packet) => Self::Packet(packet),
            Err(_) => Self::Opaque(bytes),
        }
    }
}

impl From<Packet> for Content {
    fn from(packet: Packet) -> Self {
        Self::Packet(packet)
    }
}

impl Load for Content {
    fn packet(&self) -> Option<&Packet> {
        match self {
            Self::Packet(packet) => Some(packet),
            Self::Opaque(_) => None,
        }
    }

    fn wire_len(&self) -> u32 {
        match self {
            Self::Packet(packet) => packet.total_len(),
            // The interface's MTU is far below.
            Self::Opaque(bytes) => u32::try_from(bytes.len()).unwrap_or(u32::MAX),
        }
    }

    fn to_bytes(&self) -> Bytes {
        match self {
            Self::Packet(packet) => packet.to_bytes(),
            Self::Opaque(bytes) => bytes.clone(),
        }
    }
}
