//! One kept segment, and what became of it.

use super::stamp::Stamp;
use outlast_base::time::Instant;
use outlast_wire::{Packet, SeqNumber, TcpFlags};

/// What became of a kept segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Fate {
    /// Not to be sent by the gateway as things stand: it went onto the link while that was up and may have arrived, it is
    /// set aside, or it is left to its sender.
    Transmitted,
    /// To be sent in its turn: the link dropped it or never had it, the far host shows that it lacks it, or it is worth
    /// sending even if it has arrived.
    Lost,
    /// The gateway has re-sent a copy with this timestamp.
    Resent(Instant, Stamp),
}

/// Which copy of a retransmitted segment goes out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CopyChoice {
    /// The first copy, as long as the far host would accept its timestamp; of the last segment the freshest.
    InOrder,
    /// The latest retransmission.
    Freshest,
}

/// One kept segment: `end` is the number behind its last.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) seq: SeqNumber,
    pub(super) end: SeqNumber,
    pub(super) fate: Fate,
    /// Its last transmission, as [`Order`](super::order::Order) numbers them.
    pub(super) transmission: u64,
    /// It went out more than once: which of its copies an acknowledgement answers is not known.
    pub(super) went_again: bool,
    pub(super) sacked: bool,
    pub(super) first: Packet,
    /// The latest retransmission, if there was one.
    pub(super) freshest: Option<Packet>,
}

impl Segment {
    /// Memory charged for a copy of `packet`.
    pub(super) const fn charge(packet: &Packet) -> u64 {
        packet.total_len() as u64 + size_of::<Self>() as u64
    }

    pub(super) fn total_charge(&self) -> u64 {
        Self::charge(&self.first) + self.freshest.as_ref().map_or(0, Self::charge)
    }

    pub(super) fn freshest(&self) -> &Packet {
        self.freshest.as_ref().unwrap_or(&self.first)
    }

    /// The copy that goes out, and its timestamp.
    ///
    /// The first one leaves the timestamps behind it valid: a receiver that has taken a
    /// retransmission's fresh timestamp rejects older ones (PAWS, RFC 7323, section 5.3).
    pub(super) fn choose(
        &self,
        copy: CopyChoice,
        is_last: bool,
        taken_from: Option<Stamp>,
    ) -> (&Packet, Stamp) {
        let first = Stamp::of(&self.first);
        let is_valid = taken_from.is_none_or(|oldest| !first.is_before(oldest));
        if copy == CopyChoice::InOrder && !is_last && is_valid {
            return (&self.first, first);
        }
        (self.freshest(), Stamp::of(self.freshest()))
    }

    pub(super) fn has_fin(&self) -> bool {
        self.first.tcp().is_some_and(|tcp| tcp.has(TcpFlags::FIN))
    }

    /// Notes that it goes out as `transmission`.
    pub(super) const fn go(&mut self, transmission: u64) {
        self.went_again |= self.transmission != 0;
        self.transmission = transmission;
    }

    pub(super) const fn is_lost(&self) -> bool {
        matches!(self.fate, Fate::Lost) && !self.sacked
    }
}

/// The sequence numbers that a segment occupies; `None` if it occupies none.
pub(super) fn range(packet: &Packet) -> Option<(SeqNumber, SeqNumber)> {
    let tcp = packet.tcp()?;
    let len = packet.sequence_len();
    (len > 0).then(|| (tcp.seq, tcp.seq + len))
}
