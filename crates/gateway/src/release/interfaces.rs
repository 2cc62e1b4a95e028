//! What waits for all interfaces, and what goes out to them.

use super::{Allotment, Handshakes, Release, Taken};
use crate::connections::{Connection, Connections};
use crate::event::Outbox;
use crate::limits::Limits;
use crate::links::{Direction, Indicator, InterfaceId, LinkId, LinkState};
use crate::mechanisms::path::{Outgoing, SendReason, TakeReason, Verdict, unreachable_from};
use crate::passing::PassingPacket;
use crate::tracking::{FlowIndex, FlowKey, LinkRtt};
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_wire::{Packet, SeqNumber, TcpHeader};

/// Handshakes that go out in one turn, at most.
const HANDSHAKES_IN_A_TURN: usize = 4;
/// ICMP errors for one near host that is to repeat a segment: as many as a stack makes back-offs in 50
/// seconds. The gateway does not know how long the outage was; those that are too many do nothing.
const BACK_OFFS_REVERSED: u8 = 8;

/// What waits for each interface.
#[derive(Debug, Default)]
pub(crate) struct Releases {
    all: Vec<Release>,
}

impl Releases {
    /// Adds an interface that sends at `rate`, unless the interface is known.
    pub(crate) fn add(&mut self, interface: InterfaceId, rate: Option<BitRate>) {
        if self.at(interface).is_none() {
            self.all.push(Release::new(interface, rate));
        }
    }

    /// What waits for `interface`.
    pub(crate) fn at(&self, interface: InterfaceId) -> Option<&Release> {
        self.all
            .iter()
            .find(|release| release.interface == interface)
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, interface: InterfaceId) -> Option<&mut Release> {
        self.all
            .iter_mut()
            .find(|release| release.interface == interface)
    }

    /// How many interfaces there are; each has its place below that.
    pub(crate) const fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes kept that are no data of connections with a mechanism.
    pub(crate) fn bytes(&self) -> ByteCount {
        let of = |release: &Release| release.others.bytes() + release.handshakes.bytes();
        ByteCount(self.all.iter().map(of).sum())
    }

    /// When the next turn may be taken.
    pub(crate) fn next_chance(&self) -> Option<Instant> {
        self.all.iter().filter_map(Release::next_chance).min()
    }

    /// When a handshake is due again.
    pub(crate) fn next_handshake(&self) -> Option<Instant> {
        self.all.iter().filter_map(Release::next_handshake).min()
    }

    /// When other traffic that was set aside has its turn.
    pub(crate) fn others_set_aside_until(&self) -> Option<Instant> {
        let all = self.all.iter();
        all.filter_map(|one| one.others.set_aside_until()).min()
    }

    /// Whether the new data of a connection, whose link is up `since` then, goes no faster than what was
    /// kept.
    pub(crate) fn is_paced(&self, now: Instant, interface: InterfaceId, since: Instant) -> bool {
        self.at(interface)
            .is_some_and(|release| release.is_paced(now, since))
    }

    /// What of its link's rate the connection at `index` with `far_host` gets, if that is shared out.
    pub(crate) fn allotment(
        &self,
        interface: InterfaceId,
        far_host: IpAddr,
        index: FlowIndex,
    ) -> Option<Allotment> {
        self.at(interface)?.allotment(far_host, index)
    }

    // What crosses.

    /// A packet has crossed, or was taken: the pace counts what was not said to cross already.
    pub(crate) fn note_verdict(&mut self, passing: &PassingPacket<'_>, verdict: Verdict) {
        let Some(release) = self.at_mut(passing.link.interface) else {
            return;
        };
        match (verdict, passing.direction) {
            (Verdict::Pass, Direction::ToLink) => {
                let len = passing.packet.total_len();
                release.pacer.charge_uncounted(passing.now, len);
            }
            (_, Direction::FromLink) => release.pacer.heard(),
            _ => {}
        }
    }

    /// A packet of a connection with `far_host` goes onto the link.
    pub(crate) fn note_departure(
        &mut self,
        now: Instant,
        (far_host, index): (IpAddr, FlowIndex),
        connection: &mut Connection,
        packet: &Packet,
    ) {
        if packet.sequence_len() == 0 {
            return;
        }
        let release = self.at_mut(connection.link.interface);
        if let Some(release) = release.filter(|release| release.pacer.is_measuring()) {
            let (rtt, departed) = (&connection.tracked.rtt, &mut connection.departed);
            release.note_departure(now, (far_host, index), rtt, departed, packet);
        }
    }

    /// A segment of a connection came from `far_host`: it may show that some of what went out has arrived, as it
    /// acknowledges newly, or selectively, in so many bytes.
    pub(crate) fn note_arrival(
        &mut self,
        now: Instant,
        (far_host, index): (IpAddr, FlowIndex),
        connection: &mut Connection,
        packet: &Packet,
        (newly_acked, selectively): (u32, u32),
    ) {
        let release = self.at_mut(connection.link.interface);
        if let Some(release) = release.filter(|release| release.pacer.is_measuring()) {
            let (near, departed) = (&connection.tracked.near, &mut connection.departed);
            let news = (packet, newly_acked, selectively);
            release.note_arrival(now, (far_host, index), near, departed, news);
        }
    }

    // Links that go and come.

    /// `link` is back, as `by` has said; its connections have worked with these round trips before.
    pub(crate) fn welcome<'a>(
        &mut self,
        now: Instant,
        link: LinkId,
        by: Indicator,
        round_trips: impl Iterator<Item = &'a LinkRtt> + Clone,
    ) {
        if let Some(release) = self.at_mut(link.interface) {
            release.welcome(now, link, by, round_trips);
        }
    }

    /// The link of a connection with `far_host` went or came.
    pub(crate) fn change_link(
        &mut self,
        now: Instant,
        interface: InterfaceId,
        (far_host, index): (IpAddr, FlowIndex),
        state: LinkState,
    ) {
        if let Some(release) = self.at_mut(interface) {
            if state == LinkState::Up {
                release.expect(far_host);
            }
            release.change_link(now, index, state);
        }
    }

    // Packets that no mechanism serves.

    /// Keeps a packet that no mechanism knows how to recover until its link is up.
    pub(crate) fn keep_other(
        &mut self,
        now: Instant,
        link: LinkId,
        state: LinkState,
        packet: &Packet,
        limits: &Limits,
        outbox: &mut Outbox,
    ) {
        let Some(release) = self.at_mut(link.interface) else {
            return;
        };
        outbox.counters.others_evicted += release.others.keep(now, link, packet, limits);
        if state == LinkState::Up {
            release.give_others_a_turn();
        }
    }

    /// Drops what waits without a mechanism on `link` for `peer` itself; returns how many packets.
    pub(crate) fn drop_others(&mut self, link: LinkId, peer: IpAddr) -> u64 {
        self.at_mut(link.interface)
            .map_or(0, |release| release.others.drop_for(link, peer))
    }

    /// Other traffic takes part in the round of `interface`.
    pub(crate) fn give_others_a_turn(&mut self, interface: InterfaceId) {
        if let Some(release) = self.at_mut(interface) {
            release.give_others_a_turn();
        }
    }

    /// A packet that no mechanism serves passes towards `link`, which is up.
    pub(crate) fn pass_other(&mut self, link: LinkId, packet: &Packet, outbox: &mut Outbox) {
        if let Some(release) = self.at_mut(link.interface) {
            outbox.counters.others_evicted += release.others.note_passed(packet);
        }
    }

    /// Other traffic that was set aside for long enough has its turn.
    pub(crate) fn end_wait_of_others(&mut self, now: Instant) {
        for release in &mut self.all {
            if release.others.end_wait(now) {
                release.give_others_a_turn();
            }
        }
    }

    /// A SYN or SYN-ACK that waits for its answer crosses towards the link.
    pub(crate) fn pass_opening(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        limits: &Limits,
        outbox: &mut Outbox,
    ) -> Verdict {
        let &PassingPacket {
            now, state, packet, ..
        } = passing;
        let Some(release) = self.at_mut(passing.link.interface) else {
            return Verdict::Pass;
        };
        outbox.counters.others_evicted += release.pass_handshake(now, index, packet, state, limits);
        match state.state {
            LinkState::Down => Verdict::Taken(TakeReason::LinkDown),
            LinkState::Up => Verdict::Pass,
        }
    }

    /// Data of a one-sided connection crosses towards the link. It waits for the link; or, where somebody
    /// `listens` for silence, is remembered in case that the link is silent.
    pub(crate) fn pass_one_sided(
        &mut self,
        passing: &PassingPacket<'_>,
        index: FlowIndex,
        listens: bool,
        limits: &Limits,
        outbox: &mut Outbox,
    ) -> Verdict {
        let &PassingPacket { now, packet, .. } = passing;
        let Some(release) = self.at_mut(passing.link.interface) else {
            return Verdict::Pass;
        };
        let handshakes = &mut release.handshakes;
        let (evicted, verdict) = match passing.state.state {
            LinkState::Down => (
                handshakes.keep(index, packet, limits),
                Verdict::Taken(TakeReason::LinkDown),
            ),
            LinkState::Up if listens => (
                handshakes.pass_one_sided(now, index, packet, limits),
                Verdict::Pass,
            ),
            LinkState::Up => (0, Verdict::Pass),
        };
        outbox.counters.others_evicted += evicted;
        verdict
    }

    /// The link has dropped a SYN or SYN-ACK of a connection that waits for its answer.
    pub(crate) fn keep_dropped_opening(
        &mut self,
        now: Instant,
        (index, connection): (FlowIndex, &Connection),
        packet: &Packet,
        limits: &Limits,
        outbox: &mut Outbox,
    ) {
        let Some(release) = self.at_mut(connection.link.interface) else {
            return;
        };
        outbox.counters.others_evicted += release.handshakes.lose(index, packet, limits);
        if connection.known_link_state.state == LinkState::Up {
            // Told only when the link is back already.
            release.change_link(now, index, LinkState::Up);
        }
    }

    /// Gives handshakes whose answer was not seen in time their turn again. The far host of a one-sided
    /// connection is to be asked if nobody behind its link was heard since its data passed (`is_quiet`).
    pub(crate) fn repeat_handshakes(
        &mut self,
        now: Instant,
        is_quiet: impl Fn(FlowIndex, Instant) -> bool,
    ) {
        for release in &mut self.all {
            release.handshakes.handle_timeout(now);
            release.give_handshakes_a_turn();
            while let Some((index, asked_at)) = release.handshakes.next_unanswered() {
                if is_quiet(index, asked_at) {
                    release.handshakes.begin_to_probe(now, index);
                }
            }
        }
    }

    /// The next one-sided connection whose far host is asked now; `gap` is the pause between two questions,
    /// `None` if nobody is asked any more, or was ever.
    pub(crate) fn next_to_probe(
        &mut self,
        now: Instant,
        gap: Option<Duration>,
    ) -> Option<FlowIndex> {
        let mut handshakes = self.all.iter_mut().map(|release| &mut release.handshakes);
        let Some(gap) = gap else {
            handshakes.for_each(Handshakes::stop_probing);
            return None;
        };
        handshakes.find_map(|one| one.next_to_probe(now, gap))
    }

    /// Somebody behind `link` was heard: it is back for one-sided connections whose far hosts are asked.
    pub(crate) fn welcome_one_sided(
        &mut self,
        now: Instant,
        link: LinkId,
        connections: &Connections,
    ) {
        let Some(release) = self.at_mut(link.interface) else {
            return;
        };
        let is_behind = |index: &FlowIndex| {
            let connection = connections.at(*index);
            connection.is_some_and(|connection| connection.link == link)
        };
        let behind: Vec<_> = release.handshakes.probed().filter(is_behind).collect();
        for index in behind {
            release.handshakes.come_back(now, index);
        }
        release.give_handshakes_a_turn();
    }

    /// Withholds a far host's answer to a one-sided connection that echoes a timestamp from before the outage,
    /// or what its near host repeats for it; `None` for every other segment. `handshakes.rs` says why.
    pub(crate) fn handle_stale_echo(
        &mut self,
        passing: &PassingPacket<'_>,
        (index, key): (FlowIndex, FlowKey),
        connection: &mut Connection,
        tcp: &TcpHeader,
        limits: &Limits,
        outbox: &mut Outbox,
    ) -> Option<Verdict> {
        let &PassingPacket {
            now, link, packet, ..
        } = passing;
        let release = self.at_mut(link.interface)?;
        if release.handshakes.is_empty() || passing.state.state == LinkState::Down {
            return None;
        }
        match passing.direction {
            Direction::FromLink if packet.sequence_len() > 0 => None,
            Direction::FromLink => {
                let begins = release.handshakes.withhold_stale(now, index, tcp)?;
                self.make_near_host_repeat((now, link), &key, connection, begins, outbox);
                Some(Verdict::Taken(TakeReason::AnswersProbe))
            }
            Direction::ToLink => {
                let expected = release.handshakes.renew(index, packet, limits)?;
                release.give_handshakes_a_turn();
                // The far host gets the timestamp of what the near host repeats.
                let near_host = &mut connection.silence.near_host;
                near_host.hear(tcp);
                if let Some(packet) = near_host.acknowledge(&key, &connection.tracked, expected) {
                    self.transmit_to_link((now, link), packet, SendReason::NewestAck, outbox);
                }
                Some(Verdict::Taken(TakeReason::BehindKept))
            }
        }
    }

    /// Makes the near host repeat the segment that begins with `begins`.
    fn make_near_host_repeat(
        &mut self,
        (now, link): (Instant, LinkId),
        key: &FlowKey,
        connection: &Connection,
        begins: SeqNumber,
        outbox: &mut Outbox,
    ) {
        for _ in 0..BACK_OFFS_REVERSED {
            if let Some(packet) =
                unreachable_from(key, &connection.tracked, Direction::ToLink, begins)
            {
                let outgoing = Outgoing {
                    direction: Direction::FromLink,
                    packet,
                    reason: SendReason::Unreachable,
                };
                self.transmit((now, link), outgoing, outbox);
            }
        }
    }

    /// The connection at `index` is another one from now on, or none, or crosses elsewhere than on `link`.
    pub(crate) fn forget_handshake(&mut self, link: LinkId, index: FlowIndex) {
        if let Some(release) = self.at_mut(link.interface) {
            release.handshakes.remove(index);
        }
    }

    // What goes out.

    /// Takes the next turn on the interface at `place`, if one may be taken now.
    pub(crate) fn next_turn(&mut self, place: usize, now: Instant) -> Option<Taken> {
        self.all.get_mut(place)?.next_turn(now)
    }

    /// What has taken a turn on the interface at `place` has sent `len` bytes.
    pub(crate) fn charge(&mut self, place: usize, now: Instant, taken: Taken, len: u32) {
        if let Some(release) = self.all.get_mut(place) {
            release.charge(now, taken, len);
        }
    }

    /// The interface at `place`.
    pub(crate) fn interface(&self, place: usize) -> Option<InterfaceId> {
        self.all.get(place).map(|release| release.interface)
    }

    /// Sends one packet of other traffic that is no older than `age` and whose link `is_up`; returns its length.
    pub(crate) fn send_other(
        &mut self,
        place: usize,
        now: Instant,
        age: Duration,
        is_up: impl Fn(LinkId) -> bool,
        outbox: &mut Outbox,
    ) -> u32 {
        let (next, dropped) = self.all[place].next_other(now, age, is_up);
        outbox.counters.others_evicted += dropped;
        let Some((link, packet)) = next else {
            return 0;
        };
        let len = packet.total_len();
        self.transmit_to_link((now, link), packet, SendReason::Kept, outbox);
        len
    }

    /// Sends some of the handshakes that are due: together they take as long as one packet of data, whose
    /// length is returned.
    pub(crate) fn send_handshakes(
        &mut self,
        place: usize,
        now: Instant,
        connections: &mut Connections,
        outbox: &mut Outbox,
    ) -> u32 {
        let mut sent = 0;
        for count in 0..HANDSHAKES_IN_A_TURN {
            if count > 0 && !self.all[place].pacer.allows(now) {
                break;
            }
            let Some((index, packet, reason)) = self.all[place].handshakes.next(now) else {
                break;
            };
            let Some(connection) = connections.at_mut(index) else {
                continue;
            };
            // Nobody can tell which copy is answered.
            connection.tracked.rtt.discard();
            let (link, len) = (connection.link, packet.total_len());
            outbox.counters.kicks_repeated += u64::from(reason == SendReason::RepeatedKick);
            self.transmit_to_link((now, link), packet, reason, outbox);
            sent += self.all[place].charge_handshake(len);
        }
        self.all[place].give_handshakes_a_turn();
        sent
    }

    /// Sends a packet towards `link`.
    pub(crate) fn transmit_to_link(
        &mut self,
        (now, link): (Instant, LinkId),
        packet: Packet,
        reason: SendReason,
        outbox: &mut Outbox,
    ) {
        let direction = Direction::ToLink;
        let outgoing = Outgoing {
            direction,
            packet,
            reason,
        };
        self.transmit((now, link), outgoing, outbox);
    }

    /// Sends and counts a packet. What the near side is handed takes from the link's pace as well: the answers
    /// go onto the link.
    pub(crate) fn transmit(
        &mut self,
        (now, link): (Instant, LinkId),
        outgoing: Outgoing,
        outbox: &mut Outbox,
    ) {
        if let Some(release) = self.at_mut(link.interface) {
            release.pacer.charge(now, outgoing.packet.total_len());
        }
        outbox.send_counted(link, outgoing);
    }
}
