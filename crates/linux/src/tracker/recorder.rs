//! Reading the flight recorder (`bpf/recorder.h`) while the programs go on writing it.

use crate::sys::map::MappedArray;
use outlast_core::time::Instant;
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
}

/// What a slot says of its piece.
struct Piece {
    at: u64,
    total_len: usize,
    piece: u16,
    pieces: u16,
    segment_size: u16,
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
                visit(Recorded {
                    at: Instant::from_nanos(piece.at),
                    bytes: &packet,
                    segment_size: piece.segment_size,
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
        let segment_size = u32::from_ne_bytes(*slot.get(28..)?.first_chunk()?);
        Some(Piece {
            at,
            total_len: usize::try_from(total_len).ok().filter(|n| *n <= LONGEST)?,
            piece,
            pieces,
            // The kernel's own field has 16 bits.
            segment_size: u16::try_from(segment_size).ok()?,
        })
    }
}
