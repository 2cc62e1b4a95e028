//! Reading the flight recorder (`bpf/recorder.h`) while the programs go on writing it.

use crate::sys::map::MappedArray;
use outlast_base::time::Instant;
use rustix::fd::BorrowedFd;
use std::io;

/// `struct slot`: the header, then as much of a packet.
const HEADER: usize = 32;
const DATA: usize = 2016;
const SLOT: usize = HEADER + DATA;
const BUSY_AT: usize = 24;
/// The longest packet: an IPv6 header and 65,535 bytes.
const LONGEST: usize = 40 + 65_535;
/// `struct position`, whose first field is the next ticket.
const POSITION: usize = 16;

/// The recorder of a loaded tracker.
#[derive(Debug)]
pub(super) struct Recorder {
    slots: MappedArray,
    position: MappedArray,
    count: u64,
}

/// A segment that went towards the link.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'a> {
    /// When.
    pub at: Instant,
    /// The packet, from its IP header on; possibly a super-segment, and its checksum may still be
    /// to be filled in.
    pub bytes: &'a [u8],
    /// Bytes of payload in each packet that a super-segment stands for, as its sender has chosen
    /// them; zero for a packet that stands for itself.
    pub segment_size: u16,
    /// So many of `bytes`, at their end, were not recorded, and are zeros: of a super-segment more
    /// than its first packet may not have been worth it.
    pub left_out: u16,
}

/// What a slot says of its piece.
struct Piece {
    at: u64,
    total_len: usize,
    piece: u16,
    pieces: u16,
    segment_size: u16,
    left_out: u16,
}

impl Recorder {
    /// The recorder of `count` slots, a power of two.
    pub(super) fn of(
        slots: BorrowedFd<'_>,
        position: BorrowedFd<'_>,
        count: u32,
    ) -> io::Result<Self> {
        Ok(Self {
            slots: MappedArray::of(slots, SLOT * count as usize)?,
            position: MappedArray::of(position, POSITION)?,
            count: count.into(),
        })
    }

    /// Shows what is recorded, the oldest first. What is overwritten meanwhile is left out.
    pub(super) fn read(&self, mut visit: impl FnMut(Recorded<'_>)) {
        let next = self.position.load_u64(0);
        let mut packet = Vec::with_capacity(LONGEST);
        let mut slot = [0; SLOT];
        // Which piece of the packet at hand comes next.
        let mut awaited = 0;
        for ticket in next.saturating_sub(self.count)..next {
            let Some(piece) = self.read_slot(ticket, &mut slot) else {
                awaited = 0;
                continue;
            };
            if piece.piece == 0 {
                packet.clear();
            } else if piece.piece != awaited {
                awaited = 0;
                continue;
            }
            let missing = piece.total_len.saturating_sub(packet.len());
            packet.extend_from_slice(&slot[HEADER..HEADER + missing.min(DATA)]);
            awaited = piece.piece + 1;
            if awaited == piece.pieces && packet.len() == piece.total_len {
                packet.resize(packet.len() + usize::from(piece.left_out), 0);
                visit(Recorded {
                    at: Instant::from_nanos(piece.at),
                    bytes: &packet,
                    segment_size: piece.segment_size,
                    left_out: piece.left_out,
                });
                awaited = 0;
            }
        }
    }

    /// Copies the slot of `ticket`, if it still has that one, and all of it.
    fn read_slot(&self, ticket: u64, slot: &mut [u8; SLOT]) -> Option<Piece> {
        let place = usize::try_from(ticket % self.count).ok()? * SLOT;
        let is_whole = || {
            self.slots.load_u64(place) == ticket + 1
                && self.slots.load_u32(place + BUSY_AT) == 0
                && self.slots.load_u64(place) == ticket + 1
        };
        if !is_whole() {
            return None;
        }
        self.slots.copy(place, slot);
        if !is_whole() {
            return None;
        }
        let at = u64::from_ne_bytes(*slot.get(8..)?.first_chunk()?);
        let total_len = u32::from_ne_bytes(*slot.get(16..)?.first_chunk()?);
        let piece = u16::from_ne_bytes(*slot.get(20..)?.first_chunk()?);
        let pieces = u16::from_ne_bytes(*slot.get(22..)?.first_chunk()?);
        let segment_size = u16::from_ne_bytes(*slot.get(28..)?.first_chunk()?);
        let left_out = u16::from_ne_bytes(*slot.get(30..)?.first_chunk()?);
        Some(Piece {
            at,
            total_len: usize::try_from(total_len).ok().filter(|n| *n <= LONGEST)?,
            piece,
            pieces,
            segment_size,
            left_out,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::{AsFd, OwnedFd};
    use rustix::fs::{MemfdFlags, memfd_create};

    /// A map of the kernel's, as far as reading it goes.
    fn map(bytes: &[u8]) -> OwnedFd {
        let map = memfd_create("map", MemfdFlags::CLOEXEC).expect("memory");
        rustix::io::write(&map, bytes).expect("room");
        map
    }

    /// A slot with the first ticket, and these numbers of a piece.
    fn slot(piece: u16, pieces: u16, total_len: u32) -> Vec<u8> {
        let mut slot = vec![0; SLOT];
        slot[..8].copy_from_slice(&1_u64.to_ne_bytes());
        slot[16..20].copy_from_slice(&total_len.to_ne_bytes());
        slot[20..22].copy_from_slice(&piece.to_ne_bytes());
        slot[22..24].copy_from_slice(&pieces.to_ne_bytes());
        slot
    }

    fn read(slot: &[u8], next: u64) -> usize {
        let mut position = vec![0; POSITION];
        position[..8].copy_from_slice(&next.to_ne_bytes());
        let (slots, position) = (map(slot), map(&position));
        let recorder = Recorder::of(slots.as_fd(), position.as_fd(), 1).expect("mapped");
        let mut seen = 0;
        recorder.read(|_| seen += 1);
        seen
    }

    #[test]
    fn a_slot_that_no_program_writes_shows_nothing() {
        assert_eq!(read(&slot(0, 1, 40), 1), 1, "as programs write it");
        for (piece, pieces, total_len) in [
            (u16::MAX, u16::MAX, 40),
            (u16::MAX, 0, 40),
            (0, 0, 0),
            (0, 1, u32::MAX),
            (3, 2, 40),
        ] {
            let shown = read(&slot(piece, pieces, total_len), 1);
            assert_eq!(shown, 0, "{piece} of {pieces}, {total_len} bytes");
        }
        assert_eq!(read(&slot(0, 1, 40), u64::MAX), 0, "another ticket");
    }
}
