//! What travels over the lab's link.

use bytes::Bytes;
use outlast_core::units::ByteCount;
use outlast_link::Frame;
use outlast_wire::Packet;

/// A packet on its way, by whatever was put into the link's end.
#[derive(Clone, Debug)]
pub(crate) struct LabFrame {
    pub(crate) content: Content,
    /// Counts what was put into the link or offered to it, from either end. A copy that the link
    /// makes has the number of the original.
    pub(crate) serial: u64,
}

/// What a frame holds.
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

    pub(crate) fn packet(&self) -> Option<&Packet> {
        match self {
            Self::Packet(packet) => Some(packet),
            Self::Opaque(_) => None,
        }
    }

    /// The packet as a host receives it.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Packet(packet) => packet.to_bytes(),
            Self::Opaque(bytes) => bytes.clone(),
        }
    }
}

impl Frame for LabFrame {
    fn wire_len(&self) -> ByteCount {
        ByteCount(match &self.content {
            Content::Packet(packet) => packet.total_len().into(),
            Content::Opaque(bytes) => bytes.len() as u64,
        })
    }
}
