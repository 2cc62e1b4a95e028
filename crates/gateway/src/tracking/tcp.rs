//! Tracking of one TCP connection that passes the gateway.
//!
//! Models a window-checking tracker: which sequence and acknowledgement numbers an honest
//! segment of this connection can carry, from what both hosts have shown so far (after the
//! bounds of "Real Stateful TCP Packet Filtering in IP Filter", G. van Rooij, 2000, that Linux
//! conntrack uses too). Needs to see both directions. A segment outside the bounds changes
//! nothing here and is of no use to any mechanism; the gateway passes it untouched. If many such
//! segments fit each other, and none fits the connection any more, its addresses and ports have got
//! another one: that is [`Contest`]'s matter.
//!
//! Left out: what depends on the payload, and the urgent pointer.
//!
//! [`Contest`]: super::Contest

use super::LinkRtt;
use super::half::{Half, LARGEST_WINDOW, advance, check_bounds, scaled_window};
use super::meeting::{Met, meet};
use crate::links::Direction;
use outlast_base::time::Instant;
use outlast_wire::{Packet, SeqNumber, TcpFlags, TcpHeader};

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// The hosts were not seen to fit each other yet.
    Opening,
    /// Both hosts were seen, with numbers that fit.
    Established,
    /// Both FINs are acknowledged, or a RST went by.
    Closed,
}

/// Why a segment does not belong to the connection as tracked.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Oddity {
    /// SEG.SEQ is beyond the window that the peer offered.
    BeyondWindow,
    /// The segment is older than anything that can be outstanding.
    TooOld,
    /// It acknowledges what was never sent.
    AcknowledgesUnsent,
    /// Its acknowledgement is too old.
    StaleAcknowledgement,
    /// A SYN in the middle of a connection (RFC 5961, section 4).
    UnexpectedSyn,
    /// A RST whose number the receiver cannot expect next (RFC 5961, section 3).
    InexactReset,
    /// Flags that no host sends.
    BadFlags,
}

impl Oddity {
    /// Whether a segment may be odd only because others before it were not seen.
    pub(crate) const fn is_of_numbers(self) -> bool {
        matches!(
            self,
            Self::BeyondWindow
                | Self::TooOld
                | Self::AcknowledgesUnsent
                | Self::StaleAcknowledgement
        )
    }
}

/// What an honest segment meant.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Observation {
    /// It carries sequence numbers that were not seen before.
    pub new_data: bool,
    /// It occupies sequence numbers, all of which were seen before.
    pub repeated: bool,
    /// How far its acknowledgement advanced the other host's, in bytes.
    pub newly_acked: u32,
    /// It is of the connection that had the addresses and ports first, and has them again: what was learned of the other
    /// one is forgotten, and tracking begins anew ([`Contest`]).
    ///
    /// [`Contest`]: super::Contest
    pub begins_anew: bool,
}

/// A TCP connection that passes the gateway.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TcpFlow {
    /// The host on this side of the link.
    pub near: Half,
    /// The host beyond it.
    pub far: Half,
    /// How far the connection has come.
    pub phase: Phase,
    /// Round-trip time across the link.
    pub rtt: LinkRtt,
}

impl TcpFlow {
    /// A connection of which nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            near: Half::default(),
            far: Half::default(),
            phase: Phase::Opening,
            rtt: LinkRtt::default(),
        }
    }

    /// Whether both hosts permit SACK; `None` if a SYN was not seen.
    #[must_use]
    pub(crate) fn sack(&self) -> Option<bool> {
        Some(self.near.permits_sack? && self.far.permits_sack?)
    }

    /// The host that sends in `direction`.
    #[must_use]
    pub const fn sender(&self, direction: Direction) -> &Half {
        match direction {
            Direction::ToLink => &self.near,
            Direction::FromLink => &self.far,
        }
    }

    /// The window that the far host has offered beyond `number`, as it stands in a segment of the
    /// far host's: scaled down, zero where it has offered none, and where nobody knows the scale. To
    /// take that as large as it may be is to offer more than the far host has. So it is where the near
    /// host scales by nothing: it may not have offered to, and then neither scales (RFC 7323, section
    /// 2.2).
    #[must_use]
    pub(crate) fn offered_beyond(&self, number: SeqNumber) -> u16 {
        let bytes = self
            .near
            .allowed
            .map_or(0, |end| end.distance_from(number).max(0).unsigned_abs());
        let scale = self.offered_scale();
        scale.map_or(0, |scale| u16::try_from(bytes >> scale).unwrap_or(u16::MAX))
    }

    /// By how much the far host's windows are scaled down; `None` where nobody knows it.
    #[must_use]
    pub(crate) fn offered_scale(&self) -> Option<u8> {
        let may_be_unscaled = self.near.window_scale == Some(0);
        let scale = self.far.window_scale;
        scale.filter(|scale| *scale == 0 || !may_be_unscaled)
    }

    /// What the near host has acknowledged last; where the far host's numbers begin, if its SYN-ACK was the last word.
    /// `None` where nobody knows it: the near host has only sent a SYN, or was not heard.
    #[must_use]
    pub(crate) fn acknowledged_by_near(&self) -> Option<SeqNumber> {
        match self.phase {
            // What both say need not fit yet.
            Phase::Opening => self.far.allowed,
            Phase::Established | Phase::Closed => Some(self.far.acked),
        }
    }

    /// The window that the near host has offered beyond `acked`, as it stands in a segment of its own.
    #[must_use]
    pub(crate) fn near_window(&self, acked: SeqNumber) -> u16 {
        let end = self.far.allowed.unwrap_or(acked);
        let bytes = end.distance_from(acked).max(0).unsigned_abs();
        let scale = self.near.window_scale.unwrap_or(0);
        u16::try_from(bytes >> scale).unwrap_or(u16::MAX)
    }

    /// Whether a segment of the far host's offers a window that ends where the largest one that it has offered does.
    #[must_use]
    pub(crate) fn offers_most(&self, tcp: &TcpHeader) -> bool {
        self.near.allowed == Some(tcp.ack + scaled_window(&self.far, tcp))
    }

    /// Whether a segment that was taken in says nothing any more: its host has acknowledged more
    /// since, and has nothing in it that its peer lacks. It was overtaken on its way, or somebody
    /// has kept it and sends it again.
    #[must_use]
    pub(crate) fn has_overtaken(
        &self,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> bool {
        let (sender, receiver) = match direction {
            Direction::ToLink => (&self.near, &self.far),
            Direction::FromLink => (&self.far, &self.near),
        };
        let end = tcp.seq + payload_len + tcp.control_len();
        !tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST)
            && tcp.has(TcpFlags::ACK)
            && tcp.ack.before(receiver.acked)
            && end.at_or_before(sender.acked)
    }

    /// Whether a segment that acknowledges more than was seen is believed: then it fits from now on.
    ///
    /// Its peer's segments have crossed unseen, if it has exactly the number that is next of its own host's. Nobody has
    /// that who only guesses.
    #[cold]
    pub(crate) fn catch_up(&mut self, direction: Direction, tcp: &TcpHeader) -> bool {
        let phase = self.phase;
        let (sender, receiver) = self.halves(direction);
        let unseen = tcp.ack.distance_from(receiver.next);
        let is_so = phase == Phase::Established
            && tcp.has(TcpFlags::ACK)
            && !tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST)
            && tcp.seq == sender.next
            && u32::try_from(unseen).is_ok_and(|unseen| unseen <= LARGEST_WINDOW);
        if is_so {
            receiver.next = tcp.ack;
        }
        is_so
    }

    /// Takes in a segment that crosses in `direction` with `payload_len` bytes of data.
    ///
    /// # Errors
    /// [`Oddity`] if no honest host would send it now; then nothing has changed.
    pub fn observe(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> Result<Observation, Oddity> {
        check_flags(tcp, payload_len)?;
        let segment_len = payload_len + tcp.control_len();
        if tcp.has(TcpFlags::SYN) {
            self.check_syn(direction, tcp)?;
        }
        if self.phase == Phase::Opening {
            return self.observe_meeting(now, direction, tcp, segment_len);
        }
        let (sender, receiver) = self.halves(direction);
        check_bounds(sender, receiver, tcp, segment_len)?;
        Ok(self.take_in(now, direction, tcp, segment_len))
    }

    /// Where the hosts were not seen to fit each other yet.
    #[cold]
    fn observe_meeting(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        segment_len: u32,
    ) -> Result<Observation, Oddity> {
        let (sender, receiver) = self.halves(direction);
        let observation = match meet(sender, receiver, tcp, segment_len)? {
            Met::NotYet(observation) => {
                if direction == Direction::ToLink {
                    // What was timed before may be somebody else's.
                    self.rtt.discard();
                }
                observation
            }
            Met::Both(observation) => {
                self.phase = Phase::Established;
                observation
            }
            Met::Refused => {
                self.phase = Phase::Closed;
                return Ok(Observation::default());
            }
        };
        self.measure(now, direction, tcp, segment_len, observation);
        Ok(observation)
    }

    /// Takes in a segment that is honest.
    pub(super) fn take_in(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        segment_len: u32,
    ) -> Observation {
        let (sender, receiver) = self.halves(direction);
        let observation = advance(sender, receiver, tcp, segment_len);
        self.close_if_finished(tcp);
        self.measure(now, direction, tcp, segment_len, observation);
        observation
    }

    pub(super) fn halves(&mut self, direction: Direction) -> (&mut Half, &mut Half) {
        match direction {
            Direction::ToLink => (&mut self.near, &mut self.far),
            Direction::FromLink => (&mut self.far, &mut self.near),
        }
    }

    /// A SYN begins a connection where none is alive; where one is, only a SYN-ACK that comes again is
    /// honest.
    #[cold]
    fn check_syn(&mut self, direction: Direction, tcp: &TcpHeader) -> Result<(), Oddity> {
        let is_answer = tcp.has(TcpFlags::ACK);
        match self.phase {
            Phase::Opening => Ok(()),
            Phase::Closed if !is_answer => {
                let rtt = self.rtt;
                *self = Self { rtt, ..Self::new() };
                Ok(())
            }
            Phase::Closed => Err(Oddity::UnexpectedSyn),
            Phase::Established => {
                // Its ACK was lost; its numbers are behind, never new.
                let sender = self.sender(direction);
                let is_known = tcp.seq.before(sender.next) && tcp.seq.at_or_before(sender.acked);
                match is_answer && is_known {
                    true => Ok(()),
                    false => Err(Oddity::UnexpectedSyn),
                }
            }
        }
    }

    fn close_if_finished(&mut self, tcp: &TcpHeader) {
        if tcp.has(TcpFlags::RST) || (self.near.finished() && self.far.finished()) {
            self.phase = Phase::Closed;
        }
    }

    /// New data of the near host's, which has just been tracked, waits before it goes onto the link.
    pub(crate) fn note_wait(&mut self, packet: &Packet) {
        if let Some(tcp) = packet.tcp() {
            self.rtt.discard_timed(tcp.seq + packet.sequence_len());
        }
    }

    /// New data of the near host's that has waited goes onto the link.
    pub(crate) fn note_first_departure(&mut self, now: Instant, packet: &Packet) {
        if let Some(tcp) = packet.tcp() {
            let end = tcp.seq + packet.sequence_len();
            self.rtt.sent(now, end, self.near.acked);
        }
    }

    fn measure(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        segment_len: u32,
        observation: Observation,
    ) {
        match direction {
            Direction::ToLink if observation.new_data => {
                self.rtt.sent(now, tcp.seq + segment_len, self.near.acked);
            }
            Direction::ToLink if observation.repeated => self.rtt.discard(),
            Direction::FromLink if observation.newly_acked > 0 => {
                self.rtt.acknowledged(now, tcp.ack);
            }
            _ => {}
        }
    }
}

impl Default for TcpFlow {
    fn default() -> Self {
        Self::new()
    }
}

pub(super) fn check_flags(tcp: &TcpHeader, payload_len: u32) -> Result<(), Oddity> {
    let (syn, fin) = (tcp.has(TcpFlags::SYN), tcp.has(TcpFlags::FIN));
    let (rst, ack) = (tcp.has(TcpFlags::RST), tcp.has(TcpFlags::ACK));
    let opens = syn && !fin && !rst;
    let continues = !syn && ack && !(fin && rst);
    let aborts = !syn && rst && !fin && payload_len == 0;
    if opens || continues || aborts {
        Ok(())
    } else {
        Err(Oddity::BadFlags)
    }
}
