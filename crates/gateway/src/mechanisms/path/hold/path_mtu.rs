//! A path that takes only smaller packets than before the outage, and does not say so.
//!
//! A link comes back by another way with a smaller MTU, and a firewall drops the ICMP errors that tell of it. Then what was kept is
//! too long, and no copy of it ever arrives. A sender that looks for such black holes (RFC 4821, section 7.7) repeats the oldest data
//! in smaller segments after some timeouts; others never find out.
//!
//! 1. *Sign.* The sender repeats in a smaller segment what is kept in a longer one, or the oldest segment goes out in vain: then of that
//!    one its first [part](SIZES) goes out. An acknowledgement that ends amid the segment shows that the part has arrived, and the
//!    whole, which went before it, has not.
//! 2. *Trial.* The rest goes out in parts but for one segment, which goes whole: a single loss is not taken for a smaller MTU.
//! 3. *Finding.* If what went behind the whole one arrives, and it does not, nothing longer than the parts goes out any more, also
//!    of what the sender goes on to send, and the sender gets the ICMP error that the path withholds. If the whole one arrives, all is as before.

use super::segment::range;
use alloc::boxed::Box;
use outlast_base::time::{Duration, Instant};
use outlast_wire::segment::Segments;
use outlast_wire::tcp::SackBlock;
use outlast_wire::{Packet, SeqNumber};

/// Packets that paths take, in bytes with the IP header: what every path takes with IPv6 (RFC 8200, section 5), and what every host takes
/// with IPv4 (RFC 791, section 3.1).
const SIZES: [u32; 2] = [1_280, 576];
/// After so many attempts in vain the first size is tried, and after so many the second.
const ATTEMPTS: [u8; 2] = [2, 4];
/// Between two errors to a sender that goes on to send what is too long.
const PAUSE: Duration = Duration::from_secs(1);
/// A sender that was not seen to send what is too long for so long has learnt it: as long as the longest timeout of most stacks
/// (RFC 6298, section 2.5).
const WATCHED_FOR: Duration = Duration::from_secs(60);

/// Knowledge of the sizes that one connection's path takes: unless there was a sign, whatever its sender sends.
#[derive(Debug, Default)]
pub(super) struct PathMtu {
    smaller: Option<Box<Smaller>>,
    /// Times in succession that the oldest segment went out in vain.
    attempts: u8,
    /// The rest of a segment that goes out in parts.
    parts: Option<Box<Segments>>,
}

/// The path may take no longer packets than `mtu` bytes.
#[derive(Debug)]
struct Smaller {
    mtu: u32,
    by: Sign,
    state: State,
    /// The sender is watched until then; `None` where it has shown the sign itself.
    watched_until: Option<Instant>,
}

#[derive(Debug)]
enum State {
    /// The first part of a segment goes out, and did so already.
    Sign(Option<FirstPart>),
    /// Parts arrive, or the sender's smaller segments are to.
    Trial {
        /// The time until which longer segments went whole.
        since: Instant,
        /// The first number of the segment that went in parts first.
        first: Option<SeqNumber>,
        /// The segment that went whole behind that: its first number, and the one behind it.
        whole: Option<(SeqNumber, SeqNumber)>,
    },
    /// No longer packet arrives. A sender that has not shown the sign itself was told then.
    Found(Option<Instant>),
}

/// A part that went out alone.
#[derive(Clone, Copy, Debug)]
struct FirstPart {
    /// The numbers that were lacking of its segment: the first, and the one behind the last.
    segment: (SeqNumber, SeqNumber),
    at: Instant,
}

/// Evidence that the path may take smaller packets only.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Sign {
    /// A part arrives without its segment.
    Part,
    /// The sender repeats in smaller segments.
    Sender,
}

/// News about the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum News {
    /// A part has arrived: all that went whole until then was lost, unless the far host has it.
    PartArrived(Instant),
    /// A part has arrived, but the path takes longer packets: only the segment that begins there was lost.
    Lost(SeqNumber),
    /// The segment that begins there was too long, as was all that went whole until then.
    TooLong(SeqNumber, Instant),
}

impl Smaller {
    const fn new(mtu: u32, by: Sign, state: State) -> Self {
        Self {
            mtu,
            by,
            state,
            watched_until: None,
        }
    }
}

impl State {
    const fn trial(since: Instant, first: Option<SeqNumber>) -> Self {
        Self::Trial {
            since,
            first,
            whole: None,
        }
    }
}

impl PathMtu {
    /// The sender repeats in `packet` the beginning of a segment that is kept as a packet of `kept_len` bytes.
    pub(super) fn note_smaller(&mut self, packet: &Packet, kept_len: u32) {
        let [_, least] = sizes(packet);
        let mtu = packet.total_len().max(least);
        if self.smaller.is_none() && mtu < kept_len {
            let trial = State::trial(Instant::ZERO, None);
            self.smaller = Some(Box::new(Smaller::new(mtu, Sign::Sender, trial)));
        }
    }

    /// The `oldest` segment has gone out, and nothing of it has arrived in time.
    pub(super) fn note_vain_attempt(&mut self, oldest: &Packet) -> Option<News> {
        let [first, least] = sizes(oldest);
        if oldest.total_len() <= first {
            return None;
        }
        self.attempts = self.attempts.saturating_add(1);
        let begins_at = range(oldest).map(|(seq, _)| seq);
        if let Some(smaller) = &mut self.smaller
            && let State::Trial {
                since,
                whole: Some((from, _)),
                ..
            } = smaller.state
            && begins_at == Some(from)
        {
            smaller.state = State::Found(None);
            return Some(News::TooLong(from, since));
        }
        let [is_first_due, is_least_due] = ATTEMPTS.map(|vain| self.attempts >= vain);
        let next = match &self.smaller {
            Some(smaller) => (is_least_due && smaller.mtu > least).then_some(least),
            None => is_first_due.then_some(first),
        };
        if let Some(mtu) = next {
            let smaller = Smaller::new(mtu, Sign::Part, State::Sign(None));
            self.smaller = Some(Box::new(smaller));
        }
        None
    }

    /// Notes that data has arrived.
    pub(super) const fn note_progress(&mut self) {
        self.attempts = 0;
    }

    /// The link has gone away. It may come back by another path.
    pub(super) fn suspend(&mut self) {
        self.parts = None;
        if let Some(smaller) = &mut self.smaller {
            smaller.state = match smaller.state {
                State::Sign(_) => State::Sign(None),
                State::Trial { .. } | State::Found(_) => State::trial(Instant::ZERO, None),
            };
        }
    }

    /// True if `packet` of the sender's, which may `repeat` what it has sent, would not arrive as it is. If not, it passes, and may be
    /// the one that is tried whole.
    pub(super) fn is_too_long(&mut self, now: Instant, packet: &Packet, repeats: bool) -> bool {
        let Some(smaller) = &mut self.smaller else {
            return false;
        };
        let Some((seq, end)) = range(packet).filter(|_| packet.total_len() > smaller.mtu) else {
            return false;
        };
        match &mut smaller.state {
            State::Trial {
                first: Some(_),
                whole: whole @ None,
                ..
            } => {
                *whole = Some((seq, end));
                false
            }
            State::Trial {
                whole: Some((from, _)),
                ..
            } if *from == seq && repeats => {
                smaller.state = State::Found(None);
                true
            }
            State::Found(told) if smaller.by == Sign::Part => {
                smaller.watched_until = Some(now + WATCHED_FOR);
                told.take_if(|at| now.since(*at) >= PAUSE);
                true
            }
            State::Sign(_) | State::Trial { .. } | State::Found(_) => false,
        }
    }

    /// The part of `packet` that goes out now, or all of it. It is kept, and may have gone out before; all before `acked` has arrived.
    pub(super) fn cut(
        &mut self,
        now: Instant,
        packet: Packet,
        (went_before, acked): (bool, SeqNumber),
    ) -> Packet {
        let Some(smaller) = &mut self.smaller else {
            return packet;
        };
        let Some(segment) = range(&packet).filter(|_| packet.total_len() > smaller.mtu) else {
            return packet;
        };
        let Ok(mut parts) = packet.segment_to_mtu(smaller.mtu) else {
            return packet;
        };
        match &mut smaller.state {
            State::Sign(_) if !went_before => return packet,
            State::Sign(sent) => {
                let (seq, end) = segment;
                let segment = (seq.max(acked), end);
                *sent = Some(FirstPart { segment, at: now });
                return parts.find(is_lacking(acked)).unwrap_or(packet);
            }
            State::Trial { first, whole, .. } => {
                let first = *first.get_or_insert(segment.0);
                if segment.0 != first && whole.is_none() {
                    *whole = Some(segment);
                    return packet;
                }
            }
            State::Found(_) => {}
        }
        self.parts = Some(Box::new(parts));
        self.next_part(acked).unwrap_or(packet)
    }

    /// True while a segment goes out in parts.
    pub(super) const fn has_parts(&self) -> bool {
        self.parts.is_some()
    }

    /// The next part of which not all is `acked`.
    pub(super) fn next_part(&mut self, acked: SeqNumber) -> Option<Packet> {
        let parts = self.parts.as_mut()?;
        let part = parts.find(is_lacking(acked));
        if parts.size_hint().0 == 0 {
            self.parts = None;
        }
        part
    }

    /// Everything before `acked` has arrived, and what is in `blocks`. The far host `repeats` its last acknowledgement, or
    /// not. Of what went out since the link's return, a packet of `arrived` bytes is the longest that arrived.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        acked: SeqNumber,
        blocks: &[SackBlock],
        (repeats, arrived): (bool, u32),
    ) -> Option<News> {
        let smaller = self.smaller.as_mut()?;
        match smaller.state {
            State::Sign(sent) => {
                let FirstPart { segment, at } = sent?;
                let (from, end) = segment;
                if acked.at_or_before(from) {
                    return None;
                }
                let is_part = acked.before(end);
                if !is_part || arrived > smaller.mtu {
                    self.smaller = None;
                    return is_part.then_some(News::Lost(from));
                }
                smaller.state = State::trial(at, Some(from));
                smaller.watched_until = Some(now + WATCHED_FOR);
                Some(News::PartArrived(at))
            }
            State::Trial {
                since,
                whole: Some((from, end)),
                ..
            } => {
                let is_all = |block: &SackBlock| {
                    block.left.at_or_before(from) && block.right.at_or_after(end)
                };
                if acked.at_or_after(end) || blocks.iter().any(is_all) {
                    self.smaller = None;
                    return None;
                }
                let is_behind = |block: &SackBlock| block.left.at_or_after(end);
                let is_missing = blocks.iter().any(is_behind) || repeats && acked == from;
                is_missing.then(|| {
                    smaller.state = State::Found(None);
                    News::TooLong(from, since)
                })
            }
            State::Trial { whole: None, .. } | State::Found(_) => None,
        }
    }

    /// The time at which the sender is watched no longer.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.smaller.as_ref()?.watched_until
    }

    /// The sender is watched no longer, if its time is over: it has learnt what the path takes.
    pub(super) fn handle_timeout(&mut self, now: Instant) {
        self.smaller
            .take_if(|smaller| smaller.watched_until.is_some_and(|until| until <= now));
    }

    /// The size of which the sender is to be told, in bytes with the IP header.
    pub(super) fn untold(&self) -> Option<u32> {
        let smaller = self.smaller.as_ref()?;
        let is_unaware = smaller.by == Sign::Part && matches!(smaller.state, State::Found(None));
        is_unaware.then_some(smaller.mtu)
    }

    /// The sender is told.
    pub(super) fn note_told(&mut self, now: Instant) {
        if let Some(smaller) = &mut self.smaller {
            smaller.state = State::Found(Some(now));
        }
    }
}

/// True for a part of which not all has arrived, where all before `acked` has.
fn is_lacking(acked: SeqNumber) -> impl Fn(&Packet) -> bool {
    move |part| range(part).is_some_and(|(_, end)| end.after(acked))
}

/// The sizes to try of what `packet` is of.
fn sizes(packet: &Packet) -> [u32; 2] {
    let [first, least] = SIZES;
    match packet.header().ip.source.is_ipv4() {
        true => [first, least],
        false => [first; 2],
    }
}
