//! Builds HIP packets, parameter by parameter.

use crate::checksum::pseudo_header;
use crate::hip::message::{
    CHECKSUM_AT, HEADER_LEN, LONGEST, padded_len, set_length_and_no_checksum, write_header,
};
use crate::hip::{HIP_PROTOCOL, Hit, PacketType};
use crate::ip::Protocol;
use alloc::vec::Vec;
use core::net::IpAddr;

/// A HIP packet under construction.
///
/// Parameters are pushed in ascending order of their types; one that comes too late, or makes the
/// packet too long, spoils the packet: [`Self::finish`] then gives nothing.
#[derive(Clone, Debug)]
pub struct Builder {
    packet: Vec<u8>,
    last_kind: u16,
    is_spoilt: bool,
}

impl Builder {
    /// A packet without parameters.
    #[must_use]
    pub fn new(kind: PacketType, sender: Hit, receiver: Hit) -> Self {
        let mut packet = Vec::with_capacity(512);
        write_header(&mut packet, kind, sender, receiver);
        Self {
            packet,
            last_kind: 0,
            is_spoilt: false,
        }
    }

    /// Takes up a packet again, to append parameters to it.
    #[must_use]
    pub fn continuing(packet: &[u8], last_kind: u16) -> Self {
        Self {
            packet: packet.to_vec(),
            last_kind,
            is_spoilt: packet.len() < HEADER_LEN,
        }
    }

    /// Appends a parameter with `contents`.
    pub fn push(&mut self, kind: u16, contents: &[u8]) -> &mut Self {
        self.push_with(kind, |out| out.extend_from_slice(contents))
    }

    /// Appends a parameter whose contents `write` appends.
    pub fn push_with(&mut self, kind: u16, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.is_spoilt |= kind < self.last_kind;
        self.last_kind = kind;
        append_parameter(&mut self.packet, kind, write);
        self.is_spoilt |= self.packet.len() > LONGEST;
        self
    }

    /// The packet so far, as a MAC or a signature that comes next covers it.
    #[must_use]
    pub fn covered(&self) -> Vec<u8> {
        let mut covered = self.packet.clone();
        set_length_and_no_checksum(&mut covered);
        covered
    }

    /// The packet without a checksum; nothing if a parameter was out of order or the packet is too
    /// long.
    #[must_use]
    pub fn finish(mut self) -> Option<Vec<u8>> {
        set_length_and_no_checksum(&mut self.packet);
        (!self.is_spoilt).then_some(self.packet)
    }

    /// Sets the checksum of a finished packet for the addresses that it is sent between.
    pub fn set_checksum(packet: &mut [u8], source: IpAddr, destination: IpAddr) {
        set_length_and_no_checksum(packet);
        let length = packet.len();
        let sum = pseudo_header(source, destination, Protocol(HIP_PROTOCOL), length);
        let [high, low] = sum.bytes(packet).checksum();
        if let Some(field) = packet.get_mut(CHECKSUM_AT..CHECKSUM_AT + 2) {
            field.copy_from_slice(&[high, low]);
        }
    }
}

/// Appends one parameter to `out`, padded.
pub fn append_parameter(out: &mut Vec<u8>, kind: u16, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&kind.to_be_bytes());
    out.extend_from_slice(&[0, 0]);
    write(out);
    let length = out.len() - start - 4;
    // Longer contents than the field can say are longer than any packet, which `finish` refuses.
    let field = u16::try_from(length).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(start + 2..start + 4) {
        place.copy_from_slice(&field);
    }
    out.resize(start + padded_len(length), 0);
}
