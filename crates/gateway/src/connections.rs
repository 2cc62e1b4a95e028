//! The connections that a gateway tracks, and by which link each crosses.

use crate::limits::Limits;
use crate::links::{
    Candidates, Direction, FlowSilence, InterfaceId, LinkId, LinkState, Neighbour, StateSince,
};
use crate::mechanisms::path::{PathMechanism, Standing};
use crate::tracking::{
    Admission, Contest, FlowIndex, FlowKey, FlowTable, Heard, Observation, Oddity, Phase, Removed,
    Shelf, TcpFlow,
};
use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// The smallest maximum segment size that is obeyed, in bytes: Linux sends no smaller segments either.
const SMALLEST_MSS: u16 = 88;

/// A flow without packets for so long gives back what it does not need. A pause that is shorter
/// than what people make between two actions would take and give back the same memory all the time.
const PAUSE_BEFORE_REST: Duration = Duration::from_secs(5);

/// One tracked connection: what each part of the gateway knows of it.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) tracked: TcpFlow,
    /// Segments on its addresses and ports that do not belong to it; `None` while there are none.
    pub(crate) contest: Option<Box<Contest>>,
    pub(crate) link: LinkId,
    /// The link's state that the mechanism knows, with its beginning and the indicator that reported it.
    pub(crate) known_link_state: StateSince,
    /// Holder of the far host's address: unless it is the same host, the link is down for the mechanism.
    pub(crate) neighbour: Neighbour,
    pub(crate) silence: FlowSilence,
    /// The maximum segment size that the SYN of the near and of the far host offers; `None`: it was not seen.
    mss: [Option<u16>; 2],
    /// The longest packet with data that went to the far host, in bytes; zero: none is known.
    longest_to_link: u16,
    /// Whether the handshake was seen to be completed: nobody who only guesses gets so far.
    pub(crate) is_proven: bool,
    /// Whether segments may have crossed unseen since the last one, by [`Direction`].
    pub(crate) is_doubtful: [bool; 2],
    /// Whether something was acknowledged that nobody else has: then the flow keeps its place.
    pub(crate) is_pledged: bool,
    /// `None` while there is nothing for it to remember.
    pub(crate) mechanism: Option<Box<dyn PathMechanism>>,
    /// What the mechanism has made of the connection, as last reported by an event.
    pub(crate) standing: Standing,
    pub(crate) deadline: Option<Instant>,
    /// Bytes of data that went towards the link since it is back, and are not known to have arrived.
    /// Counted only while the link's rate is measured.
    pub(crate) departed: u32,
    /// What the mechanism keeps, as charged against [`Limits::held_in_all`].
    pub(crate) held: ByteCount,
}

/// A connection with its place and its key: looked up once, and handed from part to part.
#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) index: FlowIndex,
    pub(crate) key: FlowKey,
    pub(crate) connection: &'a mut Connection,
}

impl Entry<'_> {
    /// The connection's far host.
    pub(crate) const fn far_host(&self) -> IpAddr {
        self.key.far.ip()
    }

    /// The interface that the connection crosses.
    pub(crate) const fn interface(&self) -> InterfaceId {
        self.connection.link.interface
    }
}

/// Whether a segment arrives in the order in which it was sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Order {
    InTurn,
    /// Segments that were sent later have come before it.
    Overtaken,
}

impl Connection {
    /// A connection whose first packet crosses on `link`, which is in `state`.
    pub(crate) fn new(tracked: TcpFlow, link: LinkId, state: StateSince) -> Self {
        Self {
            tracked,
            contest: None,
            link,
            known_link_state: state,
            neighbour: Neighbour::Same,
            silence: FlowSilence::default(),
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

    /// The state in which the connection meets its link, which is in `state`.
    pub(crate) const fn met(&self, state: StateSince) -> StateSince {
        match (self.neighbour, state.state) {
            (Neighbour::Same, _) | (_, LinkState::Down) => state,
            (Neighbour::Unconfirmed | Neighbour::Changed, LinkState::Up) => StateSince {
                state: LinkState::Down,
                ..self.known_link_state
            },
        }
    }

    /// Has the tracker judge a segment with the connection's addresses and ports.
    #[inline]
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: &Packet,
        tcp: &TcpHeader,
    ) -> Heard {
        let payload_len = packet.header().payload_len;
        let Self {
            tracked, contest, ..
        } = self;
        let heard = Contest::observe(contest, tracked, now, direction, tcp, payload_len);
        match heard {
            // What was acknowledged ahead is not given up for a number.
            Heard::Odd(Oddity::AcknowledgesUnsent) | Heard::OfRival(Oddity::AcknowledgesUnsent)
                if !self.is_pledged && tracked.catch_up(direction, tcp) =>
            {
                Contest::observe(contest, tracked, now, direction, tcp, payload_len)
            }
            heard => heard,
        }
    }

    /// Whether the connection may have gone on unseen, as a segment suggests that does not fit.
    pub(crate) fn may_have_gone_on(&self, direction: Direction, oddity: Oddity) -> bool {
        self.is_doubtful[direction as usize] && !self.is_pledged && oddity.is_of_numbers()
    }

    /// Takes in a segment of the connection, whose phase before `was` this.
    #[inline]
    pub(crate) fn take_in(
        &mut self,
        direction: Direction,
        packet: &Packet,
        tcp: &TcpHeader,
        observation: Observation,
        was: Phase,
    ) -> Order {
        self.is_doubtful[direction as usize] = false;
        self.note_syn(direction, packet, tcp);
        self.is_proven |= self.is_proven_by(tcp, observation);
        let payload_len = packet.header().payload_len;
        let is_late =
            was == Phase::Established && self.tracked.has_overtaken(direction, tcp, payload_len);
        match is_late {
            true => Order::Overtaken,
            false => Order::InTurn,
        }
    }

    /// Notes what a SYN offers; any other segment offers nothing.
    pub(crate) fn note_syn(&mut self, direction: Direction, packet: &Packet, tcp: &TcpHeader) {
        if !tcp.has(TcpFlags::SYN) {
            return;
        }
        if !tcp.has(TcpFlags::ACK) {
            self.mss = [None; 2];
        }
        self.mss[direction as usize] = Some(offered_mss(packet, tcp));
    }

    /// Forgets the offers of SYNs: another connection has the addresses and ports.
    pub(crate) const fn forget_offers(&mut self) {
        self.mss = [None; 2];
        self.longest_to_link = 0;
    }

    /// Whether its handshake was seen to be completed; it may have closed since.
    pub(crate) fn was_established(&self) -> bool {
        self.is_proven && self.tracked.phase != Phase::Opening
    }

    /// Whether it is older than the gateway, and its far host was not heard yet.
    pub(crate) fn is_one_sided(&self) -> bool {
        let TcpFlow { near, far, .. } = &self.tracked;
        self.tracked.phase == Phase::Opening
            && near.is_seen()
            && near.window_scale.is_none()
            && far.window_scale.is_none()
    }

    /// Whether `segment`, of which tracking has made `observation`, shows that both hosts hear each other.
    /// Somebody who writes a false source address draws a SYN-ACK, but cannot acknowledge it: he does not
    /// know its number. Where no SYN was seen, numbers that fit have to do.
    pub(crate) fn is_proven_by(&self, segment: &TcpHeader, observation: Observation) -> bool {
        let TcpFlow { near, far, .. } = &self.tracked;
        let began_unseen = near.window_scale.is_none() && far.window_scale.is_none();
        self.tracked.phase == Phase::Established
            && !segment.has(TcpFlags::SYN)
            && (began_unseen || observation.newly_acked > 0)
    }

    /// The longest packet, in bytes and with its IP header, that `packet`'s receiver has offered to take. If
    /// its SYN was not seen, the longest that went to it; `None` if that is not known either.
    pub(crate) fn longest_packet(&self, packet: &Packet, direction: Direction) -> Option<u32> {
        let receiver = match direction {
            Direction::ToLink => Direction::FromLink,
            Direction::FromLink => Direction::ToLink,
        };
        if let Some(mss) = self.mss[receiver as usize] {
            let mss = mss.max(SMALLEST_MSS);
            return Some(fixed_headers(packet.header().ip.source) + u32::from(mss));
        }
        let seen = (direction == Direction::ToLink).then_some(self.longest_to_link)?;
        (seen > 0).then_some(seen.into())
    }

    /// Notes the length of a packet that crosses towards the link as its sender has cut it. The first that
    /// tells of others is one behind which more data follows: it does not ask to be delivered at once
    /// (PSH, RFC 9293, section 3.9.1.2), so it has no room for more. It is at least as long as a host takes that
    /// has said nothing.
    pub(crate) fn note_length(&mut self, packet: &Packet, tcp: &TcpHeader) {
        const LAST: TcpFlags = TcpFlags::PSH.union(TcpFlags::FIN);
        let known = self.longest_to_link;
        let is_full = !stands_alone(tcp) && !tcp.flags.intersects(LAST);
        // Somebody off the path does not know where the connection is, and would have what its
        // hosts send cut into slivers. He may guess a number within the window: then his segment is at
        // least as long as every host takes.
        let source = packet.header().ip.source;
        let shortest = fixed_headers(source) + u32::from(assumed_mss(source));
        let is_full = is_full && packet.total_len() >= shortest;
        let next = self.tracked.near.next;
        let belongs = tcp.seq == next || tcp.seq + packet.sequence_len() == next;
        if belongs && (is_full || known > 0) {
            let length = u16::try_from(packet.total_len()).unwrap_or(u16::MAX);
            self.longest_to_link = known.max(length);
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

/// Whether this is a SYN or a RST, which is of use without the connection's earlier segments.
pub(crate) const fn stands_alone(tcp: &TcpHeader) -> bool {
    tcp.flags.intersects(TcpFlags::SYN.union(TcpFlags::RST))
}

/// The maximum segment size that a SYN offers, or implies by having no such option.
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

/// Bytes of IP and TCP headers without options, which a maximum segment size leaves out (RFC 6691, section 2).
const fn fixed_headers(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => 20 + 20,
        IpAddr::V6(_) => 40 + 20,
    }
}

/// All tracked connections.
#[derive(Debug)]
pub(crate) struct Connections {
    table: FlowTable<Connection>,
    /// Where the packets of each cross, in the order of links: one link's change costs no more than its
    /// own connections.
    by_link: BTreeSet<(LinkId, FlowIndex)>,
}

impl Connections {
    pub(crate) fn new(limits: &Limits, seed: u64) -> Self {
        Self {
            table: FlowTable::new(limits.flows, limits.timeouts(), seed),
            by_link: BTreeSet::new(),
        }
    }

    /// Other bounds from now on; what is tracked above lower ones stays.
    pub(crate) fn set_bounds(&mut self, limits: &Limits) {
        self.table.set_bounds(limits.flows, limits.timeouts());
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn find(&self, key: &FlowKey) -> Option<FlowIndex> {
        self.table.find(key)
    }

    #[inline]
    pub(crate) fn at(&self, index: FlowIndex) -> Option<&Connection> {
        self.table.flow(index)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, index: FlowIndex) -> Option<&mut Connection> {
        self.table.flow_mut(index)
    }

    /// The connection at `index`, for the parts that serve it.
    #[inline]
    pub(crate) fn entry(&mut self, index: FlowIndex) -> Option<Entry<'_>> {
        let (key, connection) = self.table.entry_mut(index)?;
        Some(Entry {
            index,
            key,
            connection,
        })
    }

    #[inline]
    pub(crate) fn key(&self, index: FlowIndex) -> Option<FlowKey> {
        self.table.key(index)
    }

    /// Each connection with when its last packet crossed, in an order that only depends on what the gateway
    /// was shown.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (FlowKey, Instant, &Connection)> {
        self.table.iter()
    }

    /// The connection at `index` as [`Self::iter`] has it.
    pub(crate) fn report_at(&self, index: FlowIndex) -> Option<(FlowKey, Instant, &Connection)> {
        self.table.report_at(index)
    }

    /// The connections of a peer, or of all peers of an interface.
    pub(crate) fn behind(&self, link: LinkId) -> Vec<(LinkId, FlowIndex)> {
        self.iter_behind(link).collect()
    }

    /// The connections of a peer, or of all peers of an interface, one by one.
    pub(crate) fn iter_behind(&self, link: LinkId) -> impl Iterator<Item = (LinkId, FlowIndex)> {
        let behind = self.by_link.range((link, FlowIndex::FIRST)..).copied();
        behind.take_while(move |(other, _)| link.covers(*other))
    }

    /// Those of a peer, or of all peers of an interface, for which `is_wanted` holds.
    pub(crate) fn keys_behind(
        &self,
        link: LinkId,
        is_wanted: impl Fn(&Connection) -> bool,
    ) -> Vec<FlowKey> {
        let behind = self.iter_behind(link).map(|(_, index)| index);
        let wanted = behind.filter(|index| self.at(*index).is_some_and(&is_wanted));
        wanted.filter_map(|index| self.key(index)).collect()
    }

    /// Packets have crossed unseen `since` then: those whose link was not down all the time may have gone on.
    /// Returns how many these are.
    pub(crate) fn doubt_since(&mut self, since: Instant) -> usize {
        let mut doubtful = 0;
        for (_, index) in &self.by_link {
            if let Some(connection) = self.table.flow_mut(*index) {
                let known = connection.known_link_state;
                let was_down = known.state == LinkState::Down && known.since <= since;
                connection.is_doubtful = [!was_down; 2];
                doubtful += usize::from(!was_down);
            }
        }
        doubtful
    }

    /// What the connection at `index` shows of its link's silence is not believed before it is heard itself.
    pub(crate) fn distrust(&mut self, index: FlowIndex) {
        if let Some(connection) = self.at_mut(index) {
            connection.silence.distrust();
        }
    }

    /// The connections that cross on `link` itself, and not behind a peer of it.
    pub(crate) fn on(&self, link: LinkId) -> impl Iterator<Item = (LinkId, FlowIndex)> {
        let on = self.by_link.range((link, FlowIndex::FIRST)..).copied();
        on.take_while(move |(other, _)| *other == link)
    }

    /// Enters a connection that is not in the table yet, if there is room or another gives way. Its link
    /// is to be [noted](Self::note_link) once the displaced one has been seen off.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        key: FlowKey,
        connection: Connection,
    ) -> Admission<Connection> {
        let admission = self.table.admit(now, key, connection);
        if let Admission::Displaced(_, displaced) = &admission {
            self.forget_link(displaced);
        }
        admission
    }

    /// A connection that was admitted is found by its link from now on.
    pub(crate) fn note_link(&mut self, link: LinkId, index: FlowIndex) {
        self.by_link.insert((link, index));
    }

    /// Moves a connection to `link`. Returns the link before, if it was another one.
    pub(crate) fn move_to(&mut self, index: FlowIndex, link: LinkId) -> Option<LinkId> {
        let connection = self.table.flow_mut(index)?;
        if connection.link == link {
            return None;
        }
        let before = core::mem::replace(&mut connection.link, link);
        self.by_link.remove(&(before, index));
        self.by_link.insert((link, index));
        Some(before)
    }

    /// Notes a packet of the connection: of its [shelf](Shelf) it is now the last to give way.
    ///
    /// Returns the connection that gives way to it.
    #[must_use]
    pub(crate) fn touch(&mut self, now: Instant, index: FlowIndex) -> Option<Removed<Connection>> {
        let shelf = self.table.flow(index)?.shelf();
        let displaced = self.table.touch(now, index, shelf)?;
        self.forget_link(&displaced);
        Some(displaced)
    }

    pub(crate) fn remove(&mut self, index: FlowIndex) -> Option<Removed<Connection>> {
        let removed = self.table.remove(index)?;
        self.forget_link(&removed);
        Some(removed)
    }

    /// Removes one connection that has been idle for too long.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Removed<Connection>> {
        let expired = self.table.expire(now)?;
        self.forget_link(&expired);
        Some(expired)
    }

    /// When the next connection has been idle for too long.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.table.next_expiry()
    }

    /// When the next connection has been idle for long enough to give memory back.
    pub(crate) fn next_rest(&self) -> Option<Instant> {
        self.table.next_rest(PAUSE_BEFORE_REST)
    }

    /// One connection that has been idle for long enough to give memory back: each once after its last
    /// packet.
    pub(crate) fn rest(&mut self, now: Instant) -> Option<FlowIndex> {
        self.table.rest(now, PAUSE_BEFORE_REST)
    }

    /// Whether a connection has been idle for long enough to give memory back.
    pub(crate) fn is_idle(&self, now: Instant, index: FlowIndex) -> bool {
        let last_seen = self.table.last_seen(index);
        last_seen.is_some_and(|at| now.since(at) >= PAUSE_BEFORE_REST)
    }

    /// Of these connections, those that have no mechanism and are established: as many as `most`, those with the newest
    /// packets.
    pub(crate) fn newest_at_rest(
        &self,
        among: &[(LinkId, FlowIndex)],
        most: usize,
    ) -> Vec<FlowIndex> {
        let rests = |index: &FlowIndex| {
            let connection = self.at(*index);
            connection.is_some_and(|connection| {
                connection.mechanism.is_none()
                    && connection.is_proven
                    && connection.tracked.phase == Phase::Established
            })
        };
        let all = among.iter().map(|(_, index)| *index).filter(rests);
        let mut newest: Vec<_> = all
            .map(|index| (Reverse(self.table.last_seen(index)), index))
            .collect();
        newest.sort_unstable();
        newest.truncate(most);
        newest.into_iter().map(|(_, index)| index).collect()
    }

    fn forget_link(&mut self, removed: &Removed<Connection>) {
        self.by_link.remove(&(removed.flow.link, removed.index));
    }
}

impl Candidates for Connections {
    fn in_turn(&self, link: LinkId, from: FlowIndex) -> impl Iterator<Item = FlowIndex> {
        let behind = self.by_link.range((link, from)..);
        let behind = behind.skip_while(move |at| at.1 == from);
        let before = self.by_link.range((link, FlowIndex::FIRST)..=(link, from));
        behind
            .take_while(move |(other, _)| *other == link)
            .chain(before)
            .map(|(_, index)| *index)
    }

    fn can_be_probed(&self, link: LinkId, index: FlowIndex) -> bool {
        self.at(index).is_some_and(|connection| {
            connection.link == link && connection.tracked.phase == Phase::Established
        })
    }
}
