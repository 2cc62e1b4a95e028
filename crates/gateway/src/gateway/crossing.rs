//! What happens to a packet that crosses: tracking, the mechanism's verdict, or hold for traffic
//! that no mechanism knows.

use super::{FlowSilence, Gateway, Record};
use crate::flow::{
    Admission, Contest, FlowIndex, FlowKey, Heard, Observation, Oddity, Phase, Removed, Shelf,
    TcpFlow,
};
use crate::link::{Direction, LinkId, LinkState, StateSince};
use crate::mechanisms::path::{PathMechanismKind, Standing, TakeReason, Verdict};
use core::net::IpAddr;
use outlast_base::time::Instant;
use outlast_base::units::ByteCount;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// Nobody is sent smaller segments than this, whatever he offers to take: Linux sends none either.
const SMALLEST_MSS: u16 = 88;

/// One packet that crosses the gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing<'a> {
    pub(super) now: Instant,
    pub(super) link: LinkId,
    pub(super) state: StateSince,
    pub(super) direction: Direction,
    pub(super) packet: &'a Packet,
}

impl Gateway {
    /// The longest packet, in bytes and with its IP header, that `packet`'s receiver has offered to
    /// take on that connection. If its SYN was not seen, the longest that went to it
    /// ([`Self::note_length`]); `None` if that is not known either. A super-segment stands for packets
    /// that are no longer than that.
    #[must_use]
    pub fn longest_packet(&self, packet: &Packet, direction: Direction) -> Option<u32> {
        let key = FlowKey::of_tcp(packet.header(), direction)?;
        let record = self.flows.flow(self.flows.find(&key)?)?;
        let receiver = match direction {
            Direction::ToLink => Direction::FromLink,
            Direction::FromLink => Direction::ToLink,
        };
        if let Some(mss) = record.mss[receiver as usize] {
            let mss = mss.max(SMALLEST_MSS);
            return Some(fixed_headers(packet.header().ip.source) + u32::from(mss));
        }
        let seen = (direction == Direction::ToLink).then_some(record.longest_to_link)?;
        (seen > 0).then_some(seen.into())
    }

    /// Notes how long a packet is that crosses towards the link just as its sender has cut it, or
    /// somebody who knew how: not a super-segment, nor what a driver has made of one. The first that
    /// tells of others is one behind which more data follows: it does not ask to be delivered at once
    /// (PSH, RFC 9293, section 3.9.1.2), so it has no room for more. It is at least as long as a host takes
    /// that has said nothing.
    pub fn note_length(&mut self, packet: &Packet) {
        const LAST: TcpFlags = TcpFlags::PSH.union(TcpFlags::FIN);
        let Some(tcp) = packet.tcp().filter(|_| packet.sequence_len() > 0) else {
            return;
        };
        let key = FlowKey::of_tcp(packet.header(), Direction::ToLink);
        let index = key.and_then(|key| self.flows.find(&key));
        if let Some(record) = index.and_then(|index| self.flows.flow_mut(index)) {
            let known = record.longest_to_link;
            let is_full = !stands_alone(tcp) && !tcp.flags.intersects(LAST);
            // Somebody off the path does not know where the connection is, and would have what its
            // hosts send cut into slivers. He may guess a number within the window: then his segment is at
            // least as long as every host takes.
            let next = record.tracked.near.next;
            let belongs = tcp.seq == next || tcp.seq + packet.sequence_len() == next;
            let source = packet.header().ip.source;
            let shortest = fixed_headers(source) + u32::from(assumed_mss(source));
            let is_full = is_full && packet.total_len() >= shortest;
            if belongs && (is_full || known > 0) {
                let length = u16::try_from(packet.total_len()).unwrap_or(u16::MAX);
                record.longest_to_link = known.max(length);
            }
        }
    }

    pub(super) fn handle_tcp(
        &mut self,
        crossing: &Crossing<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Verdict {
        if self.is_idle() {
            return Verdict::Pass;
        }
        if is_damaged(crossing.packet) {
            self.counters.odd_segments += 1;
            return Verdict::Pass;
        }
        let index = self
            .flows
            .find(&key)
            .or_else(|| self.admit(crossing, key, tcp));
        let Some((index, record)) = index.and_then(|i| Some((i, self.flows.flow_mut(i)?))) else {
            return Verdict::Pass;
        };
        let &Crossing {
            now,
            direction,
            packet,
            ..
        } = crossing;
        let (was, rtt) = (record.tracked.phase, record.tracked.rtt);
        let payload_len = packet.header().payload_len;
        let is_doubtful = record.is_doubtful[direction as usize] && !record.is_pledged;
        let Record {
            tracked, contest, ..
        } = record;
        let observation = match Contest::observe(contest, tracked, now, direction, tcp, payload_len)
        {
            Heard::Honest(observation) => observation,
            Heard::Odd(oddity) | Heard::Ripe(oddity) if is_doubtful && oddity.is_of_numbers() => {
                return self.meet_anew(crossing, index, key, tcp);
            }
            Heard::Odd(oddity) => return self.pass_odd(crossing, index, tcp, oddity),
            Heard::Ripe(oddity) => {
                self.give_place_to_rival(crossing, index);
                return self.pass_odd(crossing, index, tcp, oddity);
            }
        };
        if observation.begins_anew {
            self.take_place_back(crossing, index);
        }
        if tcp.has(TcpFlags::RST) {
            self.end_pledged(index);
        }
        let Some(record) = self.flows.flow_mut(index) else {
            return Verdict::Pass;
        };
        record.is_doubtful[direction as usize] = false;
        let phase = record.tracked.phase;
        record.note_syn(direction, packet, tcp);
        record.is_proven |=
            phase == Phase::Established && proves(&record.tracked, tcp, observation);
        if was == Phase::Established && record.tracked.has_overtaken(direction, tcp, payload_len) {
            // It is no retransmission of what is timed.
            record.tracked.rtt = rtt;
            return Verdict::Pass;
        }
        self.handle_observed(crossing, index, tcp, (was, observation))
    }

    /// A segment of which its connection's tracker has said what is new; `was` is the phase before.
    #[inline]
    fn handle_observed(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        (was, observation): (Phase, Observation),
    ) -> Verdict {
        let &Crossing {
            now,
            link,
            state,
            direction,
            packet,
        } = crossing;
        self.follow(crossing, index, was);
        let Some(record) = self.flows.flow_mut(index) else {
            return Verdict::Pass;
        };
        let (phase, is_proven) = (record.tracked.phase, record.is_proven);
        if direction == Direction::FromLink && is_proven && was == Phase::Established {
            self.note_answer(link, index);
        }
        if let Some(verdict) = self.handle_stale_echo(crossing, index, tcp) {
            return verdict;
        }
        let has_met = was == Phase::Opening && phase == Phase::Established;
        self.note_opened(crossing, index, tcp, observation.newly_acked, has_met);
        let only_answers_probe = self.listen(crossing, index, tcp, observation);
        let verdict = if is_proven && (was == Phase::Established || phase == Phase::Established) {
            self.wake_mechanism(index);
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.handle_packet(cx, direction, packet, observation)
            })
        } else {
            None
        };
        match direction {
            Direction::FromLink => self.note_arrival(now, index, packet, observation),
            Direction::ToLink if matches!(verdict, None | Some(Verdict::Pass)) => {
                self.note_departure(now, index, packet);
            }
            Direction::ToLink => {}
        }
        match verdict {
            _ if only_answers_probe => Verdict::Taken(TakeReason::AnswersProbe),
            Some(taken @ Verdict::Taken(reason)) => {
                if reason == TakeReason::BehindKept
                    && let Some(record) = self.flows.flow_mut(index)
                {
                    // What it waits here is no part of the link's round trip.
                    record.tracked.rtt.discard();
                }
                taken
            }
            // Connections that open or abort while the link is down have no data to keep.
            _ if tcp.has(TcpFlags::SYN) => self.handle_opening(crossing, index),
            _ if stands_alone(tcp) => self.handle_other(crossing),
            _ if !is_proven => self.handle_one_sided(crossing, index),
            _ => Verdict::Pass,
        }
    }

    /// A segment that does not belong to its connection as tracked is of no use to a mechanism. If
    /// its receiver might open or abort one for it, it waits for the link as such segments do.
    fn pass_odd(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        oddity: Oddity,
    ) -> Verdict {
        self.counters.odd_segments += 1;
        if crossing.direction == Direction::FromLink && oddity == Oddity::AcknowledgesUnsent {
            self.note_gone_on(crossing.now, index, tcp);
        }
        let begins = oddity == Oddity::UnexpectedSyn && !tcp.has(TcpFlags::ACK);
        // A client that has forgotten the connection begins another; a reset within the window, though
        // not exact, draws one that is.
        if begins || oddity == Oddity::InexactReset {
            return self.handle_other(crossing);
        }
        Verdict::Pass
    }

    /// The flow is where its packets cross, and in the state of that link; before this packet it
    /// `was` in another phase perhaps.
    fn follow(&mut self, crossing: &Crossing<'_>, index: FlowIndex, was: Phase) {
        let &Crossing {
            now,
            link,
            state,
            direction,
            ..
        } = crossing;
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        let phase = record.tracked.phase;
        // What comes from a link before both hosts are known may come from anybody.
        let is_followed = phase != Phase::Opening || direction == Direction::ToLink;
        let is_elsewhere = is_followed && record.link != link;
        let is_news = is_followed && record.state != state.state;
        if state.state == LinkState::Down {
            record.tracked.rtt.discard();
        }
        if is_elsewhere {
            self.move_flow(index, link);
        }
        if was == Phase::Closed && phase == Phase::Opening {
            self.begin_anew(index);
        }
        if is_news {
            self.change_link_of(now, index, state);
        }
        self.note_life(now, index);
    }

    /// A packet that no mechanism knows how to recover waits while the link is down.
    pub(super) fn handle_other(&mut self, crossing: &Crossing<'_>) -> Verdict {
        let &Crossing {
            link,
            state,
            direction,
            packet,
            ..
        } = crossing;
        if direction == Direction::FromLink || !self.mechanism.holds_other_traffic() {
            return Verdict::Pass;
        }
        if state.state == LinkState::Up {
            // Nothing that is fresh waits behind what is old.
            return Verdict::Pass;
        }
        self.keep_other(crossing.now, link, state, packet);
        Verdict::Taken(TakeReason::LinkDown)
    }

    pub(super) fn keep_other(
        &mut self,
        now: Instant,
        link: LinkId,
        state: StateSince,
        packet: &Packet,
    ) {
        let limits = self.limits;
        let Some(release) = self.release_at(link.interface) else {
            return;
        };
        let evicted = release.others.keep(now, link, packet, &limits);
        if state.state == LinkState::Up {
            release.give_others_a_turn();
        }
        self.counters.others_evicted += evicted;
    }

    /// A flow begins with a SYN, or with any segment of a connection that is older than the
    /// gateway. A lone RST begins nothing, nor does a segment that no host sends.
    fn admit(
        &mut self,
        crossing: &Crossing<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Option<FlowIndex> {
        if tcp.has(TcpFlags::RST) || self.mechanism == PathMechanismKind::None {
            return None;
        }
        let &Crossing {
            now,
            link,
            state,
            direction,
            packet,
        } = crossing;
        let payload_len = packet.header().payload_len;
        let first_sight = TcpFlow::new().observe(now, direction, tcp, payload_len);
        if first_sight.is_err() {
            self.counters.odd_segments += 1;
            return None;
        }
        self.enter(now, link, state, key, TcpFlow::new())
    }

    /// Enters a flow that is not in the table yet, if somebody gives way for it.
    pub(super) fn enter(
        &mut self,
        now: Instant,
        link: LinkId,
        state: StateSince,
        key: FlowKey,
        tracked: TcpFlow,
    ) -> Option<FlowIndex> {
        let record = Record::new(tracked, link, state);
        let index = match self.flows.admit(now, key, record) {
            Admission::Admitted(index) => index,
            Admission::Displaced(index, displaced) => {
                self.displaced(displaced);
                index
            }
            Admission::Refused => {
                self.counters.flows_refused += 1;
                return None;
            }
        };
        self.crossings.insert((link, index));
        Some(index)
    }

    /// The flow goes to the end of the shelf on which it stands now.
    pub(super) fn note_life(&mut self, now: Instant, index: FlowIndex) {
        let Some(shelf) = self.flows.flow(index).map(Record::shelf) else {
            return;
        };
        if let Some(displaced) = self.flows.touch(now, index, shelf) {
            self.displaced(displaced);
        }
    }

    fn displaced(&mut self, displaced: Removed<Record>) {
        self.counters.flows_displaced += 1;
        self.release(displaced);
    }

    /// Whether the flow's handshake was seen to be completed; it may have closed since.
    pub(super) fn was_established(&self, index: FlowIndex) -> bool {
        self.flows
            .flow(index)
            .is_some_and(|record| record.is_proven && record.tracked.phase != Phase::Opening)
    }

    /// The same addresses and ports carry another connection now.
    pub(super) fn begin_anew(&mut self, index: FlowIndex) {
        self.end_pledged(index);
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        record.is_proven = false;
        record.is_pledged = false;
        let link = record.link;
        let was = core::mem::take(&mut record.standing);
        if let Some(mut old) = record.mechanism.take() {
            let held = core::mem::replace(&mut record.held, ByteCount(0));
            old.release(&mut self.budget);
            if let Some(key) = self.flows.key(index) {
                self.shares.change(key.far.ip(), held.0, 0);
            }
        }
        self.forget_handshake(link, index);
        if let Some(key) = self.flows.key(index) {
            // Whoever follows what is frozen hears that the old connection is not.
            self.tell_standing(key, was, Standing::Running);
        }
    }
}

/// What a SYN says of the segments that its sender takes, or means by saying nothing.
fn offered_mss(packet: &Packet, tcp: &TcpHeader) -> u16 {
    let assumed = assumed_mss(packet.header().ip.source);
    tcp.options.mss.unwrap_or(assumed)
}

/// The maximum segment size of a host that has said nothing of it (RFC 9293, section 3.7.1).
const fn assumed_mss(address: IpAddr) -> u16 {
    match address {
        IpAddr::V4(_) => 536,
        IpAddr::V6(_) => 1220,
    }
}

/// What a maximum segment size does not count (RFC 6691, section 2): IP and TCP headers without
/// options.
const fn fixed_headers(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 20 + 20,
        IpAddr::V6(_) => 40 + 20,
    }
}

/// Whether no host will take the segment: its checksum is wrong, and no network card is to fill it in.
fn is_damaged(packet: &Packet) -> bool {
    !packet.checksums_ok() && !packet.has_partial_checksum()
}

/// A SYN or a RST: of use without what the connection has sent before.
pub(super) const fn stands_alone(tcp: &TcpHeader) -> bool {
    tcp.flags.intersects(TcpFlags::SYN.union(TcpFlags::RST))
}

/// Whether a segment of a connection, both hosts of which were seen, shows that they hear each other.
/// Somebody who writes a false source address draws a SYN-ACK, but cannot acknowledge it: he does not
/// know its number. Where no SYN was seen, numbers that fit have to do.
fn proves(flow: &TcpFlow, tcp: &TcpHeader, observation: Observation) -> bool {
    let began_unseen = flow.near.window_scale.is_none() && flow.far.window_scale.is_none();
    !tcp.has(TcpFlags::SYN) && (began_unseen || observation.newly_acked > 0)
}

impl Record {
    /// A connection that is met on `link`, in the state of that.
    pub(super) fn new(tracked: TcpFlow, link: LinkId, state: StateSince) -> Self {
        Self {
            tracked,
            contest: None,
            link,
            state: state.state,
            told: state,
            silence: FlowSilence::default(),
            permits_sack: [None; 2],
            mss: [None; 2],
            longest_to_link: 0,
            is_proven: tracked.phase != Phase::Opening,
            is_doubtful: [false; 2],
            is_pledged: false,
            mechanism: None,
            standing: Standing::default(),
            deadline: None,
            departed: 0,
            held: ByteCount(0),
        }
    }

    /// Notes what a SYN offers; any other segment offers nothing.
    fn note_syn(&mut self, direction: Direction, packet: &Packet, tcp: &TcpHeader) {
        if !tcp.has(TcpFlags::SYN) {
            return;
        }
        if !tcp.has(TcpFlags::ACK) {
            self.permits_sack = [None; 2];
            self.mss = [None; 2];
        }
        self.permits_sack[direction as usize] = Some(tcp.options.sack_permitted);
        self.mss[direction as usize] = Some(offered_mss(packet, tcp));
    }

    /// Whether both hosts permit SACK; `None` if a SYN was not seen.
    pub(super) const fn sack(&self) -> Option<bool> {
        match self.permits_sack {
            [Some(near), Some(far)] => Some(near && far),
            _ => None,
        }
    }

    const fn shelf(&self) -> Shelf {
        match self.tracked.phase {
            Phase::Closed => Shelf::Closed,
            Phase::Established if self.is_pledged => Shelf::Pledged,
            Phase::Established if self.is_proven => Shelf::Established,
            Phase::Opening | Phase::Established => Shelf::Opening,
        }
    }
}
