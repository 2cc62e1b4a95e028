//! Hold for everything that is not TCP: UDP (and so QUIC and most tunnels), ICMP, ESP; and for a RST or
//! SYN amid a connection.
//!
//! Nobody can say of a packet what has arrived of its flow. What can be seen is whether the sender waits for
//! an answer: one that does backs off while the link is away, one that does not goes on at its pace. So:
//!
//! - A flow that goes on at its pace for longer than [`Limits::other_age`] is a stream. Of a stream only the newest packet
//!   is kept: what is older would come late, and disturb who plays it.
//! - Of a flow that pauses, the newest burst, up to [`BURST`] packets, and [`PATIENT`] others wait for as long as the
//!   link is away, if its transport discards what is repeated or no longer wanted: QUIC (RFC 9000, section 12.3),
//!   WireGuard, ESP (RFC 4303, section 3.4.3), SCTP (RFC 9260, section 6.2), DCCP, a question of DNS. They can do no
//!   harm, and their answers wake a sender that has backed off. A sender that repeats all of its window at once takes
//!   what does not come for lost once more: a part of it would be worse than nothing.
//! - Of QUIC's packets that can bear little more than an acknowledgement the newest [`ACKNOWLEDGING`] of a burst
//!   wait: such a packet says all that the ones before it said. And each is a round trip as long as the outage to
//!   the data's sender, which paces by that. So those that are older than [`ACKNOWLEDGING_AGE`] are
//!   [set aside](OtherTraffic::set_aside_until) when the link is back: where the sender is awake, as a gateway
//!   beside it has sent what it kept, a fresh acknowledgement comes first, and they are dropped.
//! - QUIC's packets past its handshake go out the newest burst first, each burst in order. A sender measures a round trip
//!   if the largest number that is acknowledged is a new one (RFC 9002, section 5.1). In order, each packet would be
//!   one, as long as the outage or a part of it, and the sender paces what is lost by that.
//! - All else is sent once, in order, if it is no older than [`Limits::other_age`] when the link is back; of RTP
//!   the newest packet alone.
//!
//! What arrives meanwhile passes at once: fresh packets never wait behind old ones. Segments of TCP that stand
//! alone wait for as long as the link is away. Past the caps the oldest goes first.

use super::lifetime::{Lifetime, OtherFlow, is_quic_past_handshake};
use crate::limits::Limits;
use crate::links::LinkId;
use alloc::collections::{BTreeMap, VecDeque};
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

/// Packets of one flow that wait for longer than [`Limits::other_age`], beside its newest burst: what a QUIC sender
/// sends in a minute of probe timeouts that double, two packets each (RFC 9002, section 6.2).
pub(super) const PATIENT: usize = 16;
/// Packets of a flow's newest burst that wait for as long.
const BURST: u32 = 64;
/// Packets of a burst that wait as [`Lifetime::Acknowledging`]: two probes, which may bear none, and an acknowledgement.
const ACKNOWLEDGING: usize = 3;
/// Those that are older than this go out only if nothing of their flow passes for [`ASIDE`] after the link's return.
const ACKNOWLEDGING_AGE: Duration = Duration::from_secs(10);
/// Longer than packets take there on most links, and a busy gateway at the other end to send what it has kept: that is
/// answered by then.
const ASIDE: Duration = Duration::from_millis(100);

/// Packets that wait for their link, of one interface.
#[derive(Debug, Default)]
pub(crate) struct OtherTraffic {
    waiting: VecDeque<Kept>,
    /// How many of them wait for each link.
    links: BTreeMap<LinkId, usize>,
    /// How many of them are set aside.
    aside: usize,
    bytes: u64,
}

#[derive(Debug)]
struct Kept {
    link: LinkId,
    packet: Packet,
    since: Instant,
    lifetime: Lifetime,
    /// `None` for a segment of TCP.
    flow: Option<OtherFlow>,
    streak: Streak,
    /// Whether newer bursts of its flow go out before it.
    is_overtaken: bool,
    wait: Wait,
}

/// Whether a packet whose link is back waits for others of its flow, which make it needless.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Wait {
    /// It does not, or its link is not back.
    None,
    /// It does, until then.
    Until(Instant),
    /// It did.
    Over,
}

/// For how long a flow has sent without a pause of [`Limits::other_age`].
#[derive(Clone, Copy, Debug)]
struct Streak {
    since: Instant,
    /// The longest time between two packets.
    longest_gap: Duration,
    /// Packets before this one.
    before: u32,
}

/// A sender whose timer doubles leaves half of all its time to its longest gap; one that goes on at its pace
/// leaves less than this part.
const STEADY: u32 = 4;

impl Streak {
    const fn new(now: Instant) -> Self {
        Self {
            since: now,
            longest_gap: Duration::ZERO,
            before: 0,
        }
    }

    /// What it is with a packet `gap` after the last one.
    fn and(self, gap: Duration, now: Instant, age: Duration) -> Self {
        if gap > age {
            return Self::new(now);
        }
        Self {
            longest_gap: self.longest_gap.max(gap),
            before: self.before.saturating_add(1),
            ..self
        }
    }

    /// Whether the sender does not wait for an answer.
    fn is_steady(&self, now: Instant, age: Duration) -> bool {
        let length = now.since(self.since);
        length > age && self.longest_gap * STEADY <= length
    }
}

impl Kept {
    /// Whether it goes out now that its link is back, or is set aside first.
    fn may_go(&mut self, now: Instant, aside: &mut usize) -> bool {
        let is_old = now.since(self.since) > ACKNOWLEDGING_AGE;
        match self.wait {
            Wait::None if is_old && self.lifetime == Lifetime::Acknowledging => {
                self.wait = Wait::Until(now + ASIDE);
                *aside += 1;
                false
            }
            Wait::None | Wait::Over => true,
            Wait::Until(_) => false,
        }
    }

    const fn is_aside(&self) -> bool {
        matches!(self.wait, Wait::Until(_))
    }
}

impl OtherTraffic {
    /// Takes a packet in; returns how many older ones had to go for it.
    pub(crate) fn keep(
        &mut self,
        now: Instant,
        link: LinkId,
        packet: &Packet,
        limits: &Limits,
    ) -> u64 {
        let (lifetime, flow) = (Lifetime::of(packet), OtherFlow::of(packet));
        let age = limits.other_age;
        let is_same = |kept: &&Kept| flow.is_some() && kept.flow == flow;
        let last = self.waiting.iter().rfind(is_same);
        let streak = last.map_or(Streak::new(now), |last| {
            last.streak.and(now.since(last.since), now, age)
        });
        let is_stream = lifetime == Lifetime::UntilNext || streak.is_steady(now, age);
        let mut evicted = 0;
        if let Some(flow) = flow.filter(|_| last.is_some()) {
            evicted += match is_stream {
                true => self.remove_where(|kept| kept.flow == Some(flow)),
                false => {
                    self.thin_out(flow, streak);
                    0
                }
            };
        }
        if lifetime == Lifetime::Acknowledging {
            evicted += self.drop_superseded(flow, streak);
        }
        evicted += self.drop_stale(now, age);
        self.waiting.push_back(Kept {
            link,
            packet: packet.clone(),
            since: now,
            lifetime,
            flow,
            streak,
            is_overtaken: is_quic_past_handshake(packet),
            wait: Wait::None,
        });
        *self.links.entry(link).or_default() += 1;
        self.bytes += u64::from(packet.total_len());
        while self.waiting.len() > limits.other_packets || self.bytes > limits.other_bytes.0 {
            if self.remove(0).is_none() {
                break;
            }
            evicted += 1;
        }
        evicted
    }

    /// Drops the packets that wait on `link` for `peer` itself; returns how many these were.
    pub(crate) fn drop_for(&mut self, link: LinkId, peer: IpAddr) -> u64 {
        self.remove_where(|kept| kept.link == link && kept.packet.header().ip.destination == peer)
    }

    /// Removes the packets for which `goes` holds, the newest first; returns how many these were.
    fn remove_where(&mut self, mut goes: impl FnMut(&Kept) -> bool) -> u64 {
        let mut removed = 0;
        for place in (0..self.waiting.len()).rev() {
            if goes(&self.waiting[place]) {
                self.remove(place);
                removed += 1;
            }
        }
        removed
    }

    /// Takes their long lifetime from all but some packets of a flow, whose next one belongs to the burst `newest`:
    /// the first [`BURST`] of that burst keep it, and with the next one the newest [`PATIENT`] others.
    fn thin_out(&mut self, flow: OtherFlow, newest: Streak) {
        let mut others = PATIENT - 1;
        let of_flow = |kept: &&mut Kept| kept.flow == Some(flow);
        for kept in self.waiting.iter_mut().rev().filter(of_flow) {
            if kept.streak.since == newest.since && kept.streak.before < BURST {
                continue;
            }
            if others > 0 {
                others -= 1;
            } else if matches!(kept.lifetime, Lifetime::Patient | Lifetime::Acknowledging) {
                kept.lifetime = Lifetime::Brief;
            }
        }
    }

    /// Removes all but the newest acknowledgements of a flow's burst `newest`, to which one more belongs; returns how
    /// many these were.
    fn drop_superseded(&mut self, flow: Option<OtherFlow>, newest: Streak) -> u64 {
        let mut others = ACKNOWLEDGING - 1;
        self.remove_where(|kept| {
            let is_of_burst = kept.flow == flow && kept.streak.since == newest.since;
            if !is_of_burst || kept.lifetime != Lifetime::Acknowledging {
                return false;
            }
            let is_needless = others == 0;
            others = others.saturating_sub(1);
            is_needless
        })
    }

    /// Drops what is older than `age` and not to be kept for longer, from the front on; returns how many
    /// these were. Costs no more than what it drops, and those before it that last.
    pub(crate) fn drop_stale(&mut self, now: Instant, age: Duration) -> u64 {
        let (mut place, mut dropped) = (0, 0);
        while let Some(kept) = self.waiting.get(place)
            && now.since(kept.since) > age
        {
            if matches!(kept.lifetime, Lifetime::Brief | Lifetime::UntilNext) {
                self.remove(place);
                dropped += 1;
            } else {
                place += 1;
            }
        }
        dropped
    }

    /// The oldest packet of a link for which `ready` holds, of those that need not wait for others; of QUIC the oldest of
    /// its flow's newest burst.
    pub(crate) fn next(
        &mut self,
        now: Instant,
        ready: impl Fn(LinkId) -> bool,
    ) -> Option<(LinkId, Packet)> {
        if !self.has_waiting(&ready) {
            return None;
        }
        let mut all = self.waiting.iter_mut();
        let place = all.position(|kept| ready(kept.link) && kept.may_go(now, &mut self.aside))?;
        let newest = self.newest_burst(now, place);
        self.remove(newest.unwrap_or(place))
    }

    /// The place of the first packet of the newest burst that goes before the packet at `oldest`; `None` if none does.
    fn newest_burst(&mut self, now: Instant, oldest: usize) -> Option<usize> {
        let first = self.waiting.get(oldest).filter(|kept| kept.is_overtaken)?;
        let (link, flow) = (first.link, first.flow);
        let aside = &mut self.aside;
        let mut may_go = |kept: &mut Kept| {
            let is_same = kept.link == link && kept.flow == flow && kept.is_overtaken;
            is_same && kept.may_go(now, aside)
        };
        let mut all = self.waiting.iter_mut();
        let place = all.rposition(&mut may_go)?;
        let newest = self.waiting.get(place)?.streak.since;
        let mut all = self.waiting.iter_mut();
        all.position(|kept| kept.streak.since == newest && may_go(kept))
    }

    /// Whether [`Self::next`] has something more, now.
    pub(crate) fn has_next(&self, ready: impl Fn(LinkId) -> bool) -> bool {
        let mut all = self.waiting.iter();
        all.any(|kept| ready(kept.link) && !kept.is_aside())
    }

    /// When the first of what was set aside goes out.
    pub(crate) fn set_aside_until(&self) -> Option<Instant> {
        if self.aside == 0 {
            return None;
        }
        let waits = self.waiting.iter().filter_map(|kept| match kept.wait {
            Wait::Until(until) => Some(until),
            Wait::None | Wait::Over => None,
        });
        waits.min()
    }

    /// What was set aside for long enough goes out in its turn. Returns whether there is such.
    pub(crate) fn end_wait(&mut self, now: Instant) -> bool {
        if self.aside == 0 {
            return false;
        }
        let before = self.aside;
        for kept in &mut self.waiting {
            if matches!(kept.wait, Wait::Until(until) if until <= now) {
                kept.wait = Wait::Over;
                self.aside -= 1;
            }
        }
        self.aside < before
    }

    /// A packet passes while its link is up: what was set aside for it is dropped. Returns how many these were.
    pub(crate) fn note_passed(&mut self, packet: &Packet) -> u64 {
        if self.aside == 0 {
            return 0;
        }
        let flow = OtherFlow::of(packet);
        self.remove_where(|kept| kept.is_aside() && kept.flow == flow)
    }

    pub(crate) fn has_waiting(&self, ready: impl Fn(LinkId) -> bool) -> bool {
        self.links.keys().any(|link| ready(*link))
    }

    /// The links for which something waits.
    pub(crate) fn links(&self) -> impl Iterator<Item = LinkId> {
        self.links.keys().copied()
    }

    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    fn remove(&mut self, place: usize) -> Option<(LinkId, Packet)> {
        let kept = self.waiting.remove(place)?;
        self.aside -= usize::from(kept.is_aside());
        let Kept { link, packet, .. } = kept;
        self.bytes -= u64::from(packet.total_len());
        if let Some(count) = self.links.get_mut(&link) {
            *count -= 1;
            if *count == 0 {
                self.links.remove(&link);
            }
        }
        Some((link, packet))
    }
}
