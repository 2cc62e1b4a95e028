//! Tracking of one TCP connection that passes the gateway.
//!
//! Models a window-checking tracker: which sequence and acknowledgement numbers an honest
//! segment of this connection can carry, from what both hosts have shown so far (after the
//! bounds of "Real Stateful TCP Packet Filtering in IP Filter", G. van Rooij, 2000, that Linux
//! conntrack uses too). Needs to see both directions. A segment outside the bounds changes
//! nothing here and is of no use to any mechanism; the gateway passes it untouched.
//!
//! Left out: what depends on the payload, and the urgent pointer.

use super::LinkRtt;
use crate::link::Direction;
use crate::time::Instant;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

/// The largest shift of RFC 7323, section 2.3; assumed where the SYN was not seen.
const MAX_WINDOW_SCALE: u8 = 14;
/// A segment may lag this far behind the newest one whatever the window is (as in conntrack:
/// the largest unscaled window and a bit).
const MIN_TOLERANCE: u32 = 66_000;

/// One host's side of a connection. Whoever tracks outside of this crate (the kernel) keeps the
/// same numbers.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Half {
    /// The number after the last byte the host has sent, as far as seen.
    pub next: SeqNumber,
    /// The highest acknowledgement that its peer has sent for its data.
    pub acked: SeqNumber,
    /// The end of the largest window its peer has offered, once it has.
    pub allowed: Option<SeqNumber>,
    /// The largest window that the host itself has offered, in bytes.
    pub largest_window: u32,
    /// The shift of the windows that it offers, at most 14; `None` if its SYN was not seen.
    pub window_scale: Option<u8>,
    /// Where these numbers come from.
    pub acquaintance: Acquaintance,
    /// The number after its FIN, once it has sent one; a host that sends anything behind it has sent
    /// none.
    pub fin: Option<SeqNumber>,
}

/// Where the numbers of a [`Half`] come from.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Acquaintance {
    /// Nowhere yet.
    #[default]
    None,
    /// From what its peer acknowledged.
    ByPeer,
    /// From a segment of its own.
    Seen,
}

impl Half {
    /// Whether the host has sent something that its peer has not acknowledged.
    #[must_use]
    pub const fn has_outstanding(&self) -> bool {
        self.next.after(self.acked)
    }

    /// Whether a segment from this host was seen, with numbers that fit its peer's.
    #[must_use]
    pub fn is_seen(&self) -> bool {
        self.acquaintance == Acquaintance::Seen
    }

    fn finished(&self) -> bool {
        self.fin
            .is_some_and(|fin| fin == self.next && self.acked.at_or_after(fin))
    }
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// Not both hosts were seen yet.
    Opening,
    /// Both hosts were seen, with numbers that fit.
    Established,
    /// Both FINs are acknowledged, or a RST went by.
    Closed,
}

/// A SYN amid a connection. Whoever guesses addresses can send one; what it begins, if anything, its
/// receiver says (RFC 9293, section 3.10.7.4; RFC 5961, section 4; RFC 6191).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Reopening {
    from: Direction,
    isn: SeqNumber,
    next: SeqNumber,
    window_scale: u8,
}

impl Reopening {
    /// The number after it.
    #[must_use]
    pub const fn next(&self) -> SeqNumber {
        self.next
    }

    fn of(direction: Direction, tcp: &TcpHeader, segment_len: u32) -> Self {
        Self {
            from: direction,
            isn: tcp.seq,
            next: tcp.seq + segment_len,
            window_scale: offered_scale(tcp),
        }
    }

    /// Whether its receiver answers, with a SYN because it begins, or with a RST because it knows of
    /// no connection. Neither says so of one that is alive.
    fn is_answered_by(&self, direction: Direction, tcp: &TcpHeader) -> bool {
        direction != self.from
            && tcp.has(TcpFlags::ACK)
            && tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST)
            && tcp.ack.after(self.isn)
            && tcp.ack.at_or_before(self.next)
    }
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
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Observation {
    /// It carries sequence numbers that were not seen before.
    pub new_data: bool,
    /// It occupies sequence numbers, all of which were seen before.
    pub repeated: bool,
    /// How far its acknowledgement advanced the other host's, in bytes.
    pub newly_acked: u32,
    /// It answers a [`Reopening`]: what was alive so far is none of its connection's.
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
    /// The last SYN amid the connection that did not begin it.
    pub reopening: Option<Reopening>,
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
            reopening: None,
        }
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
        let may_be_unscaled = self.near.window_scale == Some(0);
        let scale = self.far.window_scale;
        let scale = scale.filter(|scale| *scale == 0 || !may_be_unscaled);
        scale.map_or(0, |scale| u16::try_from(bytes >> scale).unwrap_or(u16::MAX))
    }

    /// The window that the near host has offered, as it stands in a segment of its own.
    #[must_use]
    pub(crate) fn near_window(&self) -> u16 {
        let bytes = self.far.allowed.map_or(0, |end| {
            end.distance_from(self.far.acked).max(0).unsigned_abs()
        });
        let scale = self.near.window_scale.unwrap_or(MAX_WINDOW_SCALE);
        u16::try_from(bytes >> scale).unwrap_or(u16::MAX)
    }

    /// Whether a segment of the far host's offers just as much as the far host has offered before.
    #[must_use]
    pub(crate) fn offers_what_it_did(&self, tcp: &TcpHeader) -> bool {
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

    /// Takes in a segment that crosses in `direction` with `payload_len` bytes of data.
    ///
    /// # Errors
    /// [`Oddity`] if no honest host would send it now; then nothing has changed, but for
    /// [`Self::reopening`].
    pub fn observe(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        payload_len: u32,
    ) -> Result<Observation, Oddity> {
        check_flags(tcp, payload_len)?;
        let segment_len = payload_len + tcp.control_len();
        let stands_alone = tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST);
        if !stands_alone && self.near.is_seen() && self.far.is_seen() {
            // Both hosts are known: there is nothing to take back if the segment is odd.
            let (sender, receiver) = self.halves(direction);
            check_bounds(sender, receiver, tcp, segment_len)?;
            return Ok(self.take_in(now, direction, tcp, segment_len));
        }
        self.observe_beginning(now, direction, tcp, segment_len)
            .or_else(|oddity| {
                self.observe_amid(now, direction, tcp, segment_len)
                    .ok_or(oddity)
            })
    }

    /// Where a host is not known yet, or gives its numbers.
    fn observe_beginning(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        segment_len: u32,
    ) -> Result<Observation, Oddity> {
        let mut next = *self;
        if tcp.has(TcpFlags::SYN) {
            next.restart_if_new(direction, tcp)?;
        }
        let (sender, receiver) = next.halves(direction);
        introduce(sender, receiver, tcp, segment_len);
        check_bounds(sender, receiver, tcp, segment_len)?;
        let observation = next.take_in(now, direction, tcp, segment_len);
        *self = next;
        Ok(observation)
    }

    /// A SYN or a RST that is odd amid a connection that is alive: it may open the same ports
    /// again, or is the answer to one that may.
    fn observe_amid(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        segment_len: u32,
    ) -> Option<Observation> {
        if self.phase != Phase::Established {
            return None;
        }
        if tcp.has(TcpFlags::SYN) && !tcp.has(TcpFlags::ACK) {
            self.reopening = Some(Reopening::of(direction, tcp, segment_len));
            return None;
        }
        let reopening = self.reopening?;
        if !reopening.is_answered_by(direction, tcp) {
            return None;
        }
        let mut rtt = self.rtt;
        rtt.discard();
        let mut anew = Self { rtt, ..Self::new() };
        let (client, _) = anew.halves(reopening.from);
        client.next = reopening.next;
        client.acked = reopening.isn;
        client.window_scale = Some(reopening.window_scale);
        client.acquaintance = Acquaintance::Seen;
        let observation = anew.observe_beginning(now, direction, tcp, segment_len);
        let observation = observation.ok()?;
        *self = anew;
        Some(Observation {
            begins_anew: true,
            ..observation
        })
    }

    /// Takes in a segment that is honest.
    fn take_in(
        &mut self,
        now: Instant,
        direction: Direction,
        tcp: &TcpHeader,
        segment_len: u32,
    ) -> Observation {
        let (sender, receiver) = self.halves(direction);
        let observation = advance(sender, receiver, tcp, segment_len);
        self.settle_phase(tcp);
        self.measure(now, direction, tcp, segment_len, observation);
        observation
    }

    fn halves(&mut self, direction: Direction) -> (&mut Half, &mut Half) {
        match direction {
            Direction::ToLink => (&mut self.near, &mut self.far),
            Direction::FromLink => (&mut self.far, &mut self.near),
        }
    }

    /// A SYN begins a connection where none is alive; where one is, only its own
    /// retransmission or answer is honest.
    fn restart_if_new(&mut self, direction: Direction, tcp: &TcpHeader) -> Result<(), Oddity> {
        let is_answer = tcp.has(TcpFlags::ACK);
        match self.phase {
            Phase::Closed if !is_answer => {
                *self = Self {
                    rtt: self.rtt,
                    ..Self::new()
                }
            }
            Phase::Closed => return Err(Oddity::UnexpectedSyn),
            Phase::Established => {
                // A SYN-ACK whose ACK was lost comes again; its numbers are behind, never new.
                let sender = self.sender(direction);
                let known = tcp.seq.before(sender.next) && tcp.seq.at_or_before(sender.acked);
                if !(is_answer && known) {
                    return Err(Oddity::UnexpectedSyn);
                }
            }
            // The client gave up and tries again: the old SYN's numbers mean nothing any more.
            Phase::Opening if !is_answer => {
                let sender = self.sender(direction);
                if sender.is_seen() && tcp.seq != sender.acked {
                    *self = Self::new();
                }
            }
            Phase::Opening => {}
        }
        Ok(())
    }

    fn settle_phase(&mut self, tcp: &TcpHeader) {
        let both_seen = self.near.is_seen() && self.far.is_seen();
        if tcp.has(TcpFlags::RST) || (self.near.finished() && self.far.finished()) {
            self.phase = Phase::Closed;
        } else if both_seen && self.phase == Phase::Opening {
            self.phase = Phase::Established;
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
            Direction::ToLink if observation.new_data => self.rtt.sent(now, tcp.seq + segment_len),
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

fn check_flags(tcp: &TcpHeader, payload_len: u32) -> Result<(), Oddity> {
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

/// First sight of a host: its numbers are taken from its own segment, and its peer's from its
/// acknowledgement, if there is one.
fn introduce(sender: &mut Half, receiver: &mut Half, tcp: &TcpHeader, segment_len: u32) {
    // A SYN-ACK that comes again says nothing new.
    if tcp.has(TcpFlags::SYN) && !(sender.is_seen() && receiver.is_seen()) {
        sender.window_scale = Some(offered_scale(tcp));
    }
    if sender.acquaintance == Acquaintance::None {
        sender.next = tcp.seq + segment_len;
        sender.acked = tcp.seq;
    }
    if !receiver.is_seen() && tcp.has(TcpFlags::ACK) {
        // What the host has sent, its peer can only tell by acknowledging it.
        let first = receiver.acquaintance == Acquaintance::None;
        if first || tcp.ack.after(receiver.next) {
            receiver.acquaintance = Acquaintance::ByPeer;
            receiver.next = tcp.ack;
            receiver.acked = tcp.ack;
        }
    }
}

fn check_bounds(
    sender: &Half,
    receiver: &Half,
    tcp: &TcpHeader,
    segment_len: u32,
) -> Result<(), Oddity> {
    let end = tcp.seq + segment_len;
    // A zero-window probe carries one byte beyond a closed window (RFC 9293, section 3.8.6.1).
    if sender
        .allowed
        .is_some_and(|allowed| tcp.seq.after(allowed + 1))
    {
        return Err(Oddity::BeyondWindow);
    }
    let reach_back = receiver.largest_window.max(MIN_TOLERANCE);
    if end.before(sender.next - reach_back) {
        return Err(Oddity::TooOld);
    }
    if tcp.has(TcpFlags::RST) && !is_expected_reset(sender, receiver, tcp) {
        return Err(Oddity::InexactReset);
    }
    if tcp.has(TcpFlags::ACK) {
        if tcp.ack.after(receiver.next) {
            return Err(Oddity::AcknowledgesUnsent);
        }
        let window = sender.largest_window.max(scaled_window(sender, tcp));
        let reach_back = window.max(MIN_TOLERANCE);
        if tcp.ack.before(receiver.next - reach_back) {
            return Err(Oddity::StaleAcknowledgement);
        }
    }
    Ok(())
}

/// Whether the receiver may obey a RST: one that has just the number that it expects next. Any other
/// within its window it answers with a challenge, to which the sender's next one is exact (RFC 5961,
/// section 3.2). It expects what it has acknowledged; or what is behind all that was sent, if all
/// has arrived. In between no host sends a RST: it answers an acknowledgement, or follows the last
/// byte; or it has the number of the FIN before it, as macOS writes and Linux accepts
/// (net/ipv4/tcp_input.c, tcp_reset_check). The first thing that is heard of a host has to
/// acknowledge what it answers (RFC 9293, section 3.10.7.3).
fn is_expected_reset(sender: &Half, receiver: &Half, tcp: &TcpHeader) -> bool {
    match sender.acquaintance {
        Acquaintance::None if receiver.is_seen() => {
            tcp.has(TcpFlags::ACK) && tcp.ack.after(receiver.acked)
        }
        Acquaintance::None => true,
        Acquaintance::ByPeer | Acquaintance::Seen => {
            let at_fin = sender.fin == Some(sender.next) && tcp.seq + 1 == sender.next;
            tcp.seq == sender.acked || tcp.seq == sender.next || at_fin
        }
    }
}

fn advance(
    sender: &mut Half,
    receiver: &mut Half,
    tcp: &TcpHeader,
    segment_len: u32,
) -> Observation {
    let end = tcp.seq + segment_len;
    let first_sight = !sender.is_seen();
    let new_data = segment_len > 0 && (end.after(sender.next) || first_sight);
    let repeated = segment_len > 0 && !new_data;
    sender.acquaintance = Acquaintance::Seen;
    sender.next = sender.next.max(end);
    if tcp.has(TcpFlags::FIN) && end == sender.next {
        sender.fin = Some(end);
    }
    let mut newly_acked = 0;
    if tcp.has(TcpFlags::ACK) {
        let window = scaled_window(sender, tcp);
        sender.largest_window = sender.largest_window.max(window);
        newly_acked = tcp.ack.distance_from(receiver.acked).max(0).unsigned_abs();
        receiver.acked = receiver.acked.max(tcp.ack);
        let offered = tcp.ack + window;
        receiver.allowed = Some(receiver.allowed.map_or(offered, |end| end.max(offered)));
    }
    Observation {
        new_data,
        repeated,
        newly_acked,
        begins_anew: false,
    }
}

/// The shift of the windows that a SYN announces.
fn offered_scale(syn: &TcpHeader) -> u8 {
    syn.options
        .window_scale
        .map_or(0, |scale| scale.min(MAX_WINDOW_SCALE))
}

/// SEG.WND in bytes. The window of a SYN is never scaled (RFC 7323, section 2.2); that of a
/// connection picked up in the middle is taken as large as it may be.
fn scaled_window(sender: &Half, tcp: &TcpHeader) -> u32 {
    let scale = match sender.window_scale {
        _ if tcp.has(TcpFlags::SYN) => 0,
        Some(scale) => scale,
        None => MAX_WINDOW_SCALE,
    };
    u32::from(tcp.window) << scale
}
