//! The machine that is shown the packets.

use crate::FlowId;
use crate::connection::{Connection, Shown, SignsOf, back};
use crate::flow::subnet;
use crate::grouping;
use crate::half::{Segment, Signature};
use crate::outage::{Cause, Findings, Scope};
use crate::paths::{Path, Paths};
use crate::seniority::{Line, Seniority};
use crate::signs::{Gap, SHORTEST_GAP};
use crate::silence::Silence;
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use foldhash::quality::FixedState;
use hashbrown::HashMap;
use outlast_base::time::Instant;
use outlast_wire::TcpFlags;
use outlast_wire::outline::{Outline, OutlinedTransport};
use outlast_wire::pcapng::Direction;

/// How much is remembered at most.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections at once, at all points of capture. Others are counted and not looked at.
    pub connections: usize,
    /// Paths at once: pairs of hosts, neighbourhoods and hosts. Others are counted.
    pub paths: usize,
    /// Silences in all. Later ones are counted.
    pub silences: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 50_000,
            paths: 100_000,
            silences: 100_000,
        }
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Packets.
    pub packets: u64,
    /// TCP segments among them.
    pub segments: u64,
    /// Segments that were sent again, each as often as it was captured.
    pub retransmissions: u64,
    /// Acknowledgements that say what the one before said.
    pub duplicate_acks: u64,
    /// Segments that offer no window.
    pub zero_windows: u64,
    /// Connections that were looked at.
    pub connections: u64,
    /// Segments of connections that found no room.
    pub untracked_segments: u64,
    /// Packets of paths that found no room.
    pub untracked_paths: u64,
    /// Silences that found no room.
    pub omitted_silences: u64,
    /// Connections that stood still while their path was heard, while a timeout followed the loss of a
    /// flight, or with too few losses to tell from chance: no outage.
    pub stalled_alone: u64,
    /// Acknowledgements of data that is not in the capture: it has holes.
    pub unseen_data: u64,
    /// Connections of which one host was never seen, although the other was answered.
    pub one_direction: u64,
    /// Connections that never carried data and had to make room for others.
    pub forgotten_openings: u64,
    /// Other connections that had to make room: all that they sent was acknowledged, or they were silent for two
    /// minutes.
    pub forgotten_connections: u64,
    /// Packets whose time is before that of the packet before.
    pub out_of_order: u64,
}

/// A connection that is silent for so long may make room for another, in nanoseconds.
const STALE: u64 = 120_000_000_000;
/// A silence in which no sign came by the end of the capture is told of from this length on.
const OPEN: u64 = 1_000_000_000;
/// Signs of other connections fall silent with those of the connection up to so much apart, beside a
/// round trip, in nanoseconds.
const TOGETHER: u64 = 100_000_000;
/// One transmission after the path was back may be lost as any other.
const STRAGGLERS: usize = 1;
/// So many datagrams without a gap among them are a stream.
const STEADY: u32 = 20;
/// A stream that is silent for so long, in nanoseconds, has stopped.
const STREAM_ENDS: u64 = 300_000_000;

/// Finds outages in the packets of a capture.
#[derive(Debug)]
pub struct Diagnosis {
    limits: Limits,
    began: Option<Instant>,
    ended: Instant,
    connections: Vec<Connection>,
    known: HashMap<(u32, FlowId), usize, FixedState>,
    free: Vec<usize>,
    seniority: Seniority,
    paths: Paths,
    silences: Vec<Silence>,
    /// Connections that stood still without an outage, each as often as it did.
    alone: Vec<(u32, FlowId)>,
    counters: Counters,
}

impl Default for Diagnosis {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Diagnosis {
    /// A diagnosis that remembers no more than `limits`.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            began: None,
            ended: Instant::ZERO,
            connections: Vec::new(),
            known: HashMap::with_hasher(FixedState::with_seed(0)),
            free: Vec::new(),
            seniority: Seniority::default(),
            paths: Paths::new(limits.paths),
            silences: Vec::new(),
            alone: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Takes note of a packet that was captured at `at`. `point` numbers the places of the capture:
    /// a packet that passes two of them is seen twice. `direction` is what the capture says of it.
    pub fn handle_packet(
        &mut self,
        at: Instant,
        point: u32,
        direction: Direction,
        packet: &Outline,
    ) {
        self.counters.packets += 1;
        self.began.get_or_insert(at);
        // Clocks step, and cards deliver in batches: a packet is not earlier than the one before.
        self.counters.out_of_order += u64::from(at < self.ended);
        let at = at.max(self.ended);
        self.ended = at;
        let (source, destination) = (packet.source, packet.destination);
        let OutlinedTransport::Tcp {
            header,
            payload_len,
        } = &packet.transport
        else {
            if let Some(signs) = self.signs_of(point, direction, source, destination, at, false) {
                self.hear(signs, at);
            }
            let datagrams = Path::Datagrams(point, source, destination);
            if let Some(place) = self.paths.place(datagrams, at, false) {
                self.paths.hear(place, at);
            }
            return;
        };
        self.counters.segments += 1;
        let flow = FlowId {
            source: SocketAddr::new(source, header.source_port),
            destination: SocketAddr::new(destination, header.destination_port),
        };
        let is_first = header.has(TcpFlags::SYN);
        let Some(number) = self.connection(point, direction, flow, at, is_first) else {
            self.counters.untracked_segments += 1;
            return;
        };
        let connection = &mut self.connections[number];
        let from = usize::from(connection.flow != flow);
        let signs = connection.signs[from];
        let segment = Segment {
            at,
            tcp: header,
            payload_len: *payload_len,
            identification: packet.identification,
        };
        // A reset ends the connection while its silence goes on.
        let is_given_up = header.has(TcpFlags::RST);
        let unfinished = is_given_up
            .then(|| connection.waiting_sender(from, None, at))
            .flatten();
        let (shown, signature) = connection.handle(from, &segment);
        let is_over = connection.is_over;
        let line = connection.line();
        self.seniority.touch(number, line);
        self.count(signature);
        self.hear(signs, at);
        self.note(number, shown, at);
        if let Some(silence) = unfinished {
            self.judge(number, silence);
        }
        if is_over {
            self.forget(number);
        }
    }

    /// Counts what a segment is by its numbers.
    fn count(&mut self, signature: Signature) {
        let counters = &mut self.counters;
        counters.retransmissions += u64::from(signature.is_retransmission);
        counters.duplicate_acks += u64::from(signature.is_duplicate_ack);
        counters.zero_windows += u64::from(signature.is_zero_window);
        counters.unseen_data += u64::from(signature.shows_lack);
        let late = u64::from(signature.is_late);
        counters.unseen_data = counters.unseen_data.saturating_sub(late);
    }

    /// Takes note of what a packet of connection `number` shows beside itself.
    fn note(&mut self, number: usize, shown: Shown, now: Instant) {
        match shown {
            Shown::Nothing => {}
            Shown::Silence(silence, after) => {
                if let Some(place) = self.judge(number, *silence) {
                    self.connections[number].look_after(place, after, now);
                }
            }
            Shown::Later { number, at, cause } => {
                if let Some(silence) = self.silences.get_mut(number) {
                    silence.noticed = Some(at);
                    silence.cause = cause;
                    silence.is_repeated = true;
                }
            }
            Shown::Repeated { number } => {
                if let Some(silence) = self.silences.get_mut(number) {
                    silence.is_repeated = true;
                }
            }
            Shown::Refuted { number, is_lack } => {
                let silence = self.silences.get_mut(number);
                if let Some(silence) = silence.filter(|silence| !silence.is_witnessed) {
                    silence.is_refuted = true;
                    let (stood_still, name) = (silence.is_evidence, (silence.point, silence.flow));
                    // What the capture alone lacks is nobody's stall.
                    if stood_still && !is_lack {
                        self.stood_alone(name);
                    }
                }
            }
        }
    }

    /// What was found.
    #[must_use]
    pub fn finish(mut self) -> Findings {
        let ended = self.ended;
        for number in 0..self.connections.len() {
            if !self.connections[number].is_over {
                self.judge_unfinished(number, ended);
            }
        }
        for number in 0..self.connections.len() {
            if !self.connections[number].is_over {
                self.count_direction(number);
            }
        }
        let (outages, alone) = grouping::outages(self.silences, ended);
        self.alone.extend(alone);
        self.alone.sort_unstable();
        self.alone.dedup();
        self.counters.stalled_alone += self.alone.len() as u64;
        Findings {
            began: self.began.unwrap_or_default(),
            ended,
            outages,
            counters: self.counters,
        }
    }

    /// Judges the silence in which connection `number` is, if it is in one.
    fn judge_unfinished(&mut self, number: usize, now: Instant) {
        for waiting in 0..2 {
            let connection = &self.connections[number];
            let una = connection.halves[1 - waiting].ack;
            if !connection.halves[waiting].is_outstanding(una) {
                continue;
            }
            if let Some(silence) = connection.waiting_sender(waiting, None, now) {
                self.judge(number, silence);
            }
        }
    }

    /// Notes that a connection stood still without an outage.
    fn stood_alone(&mut self, name: (u32, FlowId)) {
        match self.alone.len() < self.limits.silences {
            true => self.alone.push(name),
            // Beyond what is remembered each time counts.
            false => self.counters.stalled_alone += 1,
        }
    }

    fn count_direction(&mut self, number: usize) {
        let lacks = self.connections[number].lacks_direction();
        self.counters.one_direction += u64::from(lacks);
    }

    /// Where the connection is remembered, if there is room.
    fn connection(
        &mut self,
        point: u32,
        direction: Direction,
        flow: FlowId,
        at: Instant,
        is_first: bool,
    ) -> Option<usize> {
        let key = (point, flow.unordered());
        if let Some(&number) = self.known.get(&key) {
            let reopens = is_first && self.is_stale(number, at);
            if !reopens {
                return Some(number);
            }
            self.forget(number);
        }
        if self.known.len() >= self.limits.connections && !self.make_room(at) {
            return None;
        }
        let (source, destination) = (flow.source.ip(), flow.destination.ip());
        let opposite = match direction {
            Direction::Unknown => Direction::Unknown,
            Direction::Inbound => Direction::Outbound,
            Direction::Outbound => Direction::Inbound,
        };
        let signs = loop {
            let forth = self.signs_of(point, direction, source, destination, at, true);
            let back = self.signs_of(point, opposite, destination, source, at, true);
            match forth.zip(back) {
                Some((forth, back)) => break [forth, back],
                None if self.make_room(at) => {}
                None => {
                    self.counters.untracked_paths += 1;
                    return None;
                }
            }
        };
        for place in signs.iter().flat_map(SignsOf::places) {
            self.paths.hold(place);
        }
        let connection = Connection::new(flow, point, signs);
        self.counters.connections += 1;
        let number = match self.free.pop() {
            Some(number) => {
                self.connections[number] = connection;
                number
            }
            None => {
                self.connections.push(connection);
                self.connections.len() - 1
            }
        };
        self.known.insert(key, number);
        Some(number)
    }

    fn is_stale(&self, number: usize, at: Instant) -> bool {
        let halves = &self.connections[number].halves;
        let last = halves.iter().filter_map(|half| half.last).max();
        last.is_none_or(|last| at.nanos_since(last) >= STALE)
    }

    fn forget(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        connection.is_over = true;
        let key = (connection.point, connection.flow.unordered());
        let signs = connection.signs;
        if self.known.remove(&key).is_none() {
            return;
        }
        self.count_direction(number);
        self.free.push(number);
        self.seniority.remove(number);
        for place in signs.iter().flat_map(SignsOf::places) {
            self.paths.release(place);
        }
    }

    /// Forgets a connection and the paths that are its alone; whether there was one to forget.
    ///
    /// The first to go are those that were quiet for [`STALE`]. Then those go that tell least, and of these the one that
    /// was quiet for longest: a flood of openings drives out openings alone, and one of short connections no outage.
    fn make_room(&mut self, at: Instant) -> bool {
        let running = self.seniority.oldest(Line::Running);
        let stale = running.filter(|number| self.is_stale(*number, at));
        let opening = || self.seniority.oldest(Line::Opening);
        let idle = || {
            let mut lines = [Line::Calm, Line::Settled].into_iter();
            lines.find_map(|line| self.seniority.oldest(line))
        };
        let (number, forgotten) = if let Some(number) = stale {
            self.judge_unfinished(number, at);
            (number, &mut self.counters.forgotten_connections)
        } else if let Some(number) = opening() {
            (number, &mut self.counters.forgotten_openings)
        } else if let Some(number) = idle() {
            (number, &mut self.counters.forgotten_connections)
        } else {
            return false;
        };
        *forgotten += 1;
        let signs = self.connections[number].signs;
        self.forget(number);
        for place in signs.iter().flat_map(SignsOf::places) {
            self.paths.forget(place);
        }
        true
    }

    /// The signs of what goes from `source` to `destination`, if there is room.
    fn signs_of(
        &mut self,
        point: u32,
        direction: Direction,
        source: IpAddr,
        destination: IpAddr,
        at: Instant,
        for_connection: bool,
    ) -> Option<SignsOf> {
        let [hosts, subnet, host, interface] = [
            Path::Hosts(point, source, destination),
            Path::Subnet(point, subnet(source)),
            Path::Host(point, destination),
            Path::Interface(point, direction),
        ]
        .map(|path| self.paths.place(path, at, for_connection));
        let found = hosts.zip(subnet).zip(host);
        // For a connection room is made.
        self.counters.untracked_paths += u64::from(found.is_none() && !for_connection);
        let ((hosts, subnet), host) = found?;
        Some(SignsOf {
            hosts,
            subnet,
            host,
            interface: interface.filter(|_| direction != Direction::Unknown),
        })
    }

    fn hear(&mut self, signs: SignsOf, at: Instant) {
        for place in signs.places() {
            self.paths.hear(place, at);
        }
    }

    /// Whether the paths of connection `number` were silent, too; the place of the silence if so.
    fn judge(&mut self, number: usize, mut silence: Silence) -> Option<usize> {
        let connection = &self.connections[number];
        let waiting = usize::from(connection.host(0) != silence.waiting);
        let heard = connection.signs[1 - waiting];
        let trip = silence.round_trip.unwrap_or(0);
        let due = silence.start_latest.max(silence.start).after_nanos(trip);
        let slack = trip.saturating_mul(2) + TOGETHER;
        let name = (connection.point, connection.flow);
        let hosts = self.paths.signs(heard.hosts).gap_beyond(due);
        let is_witnessed = self.is_witnessed(&silence, due);
        silence.is_evidence |= is_witnessed;
        silence.is_witnessed = is_witnessed;
        // Others were heard, and what this one repeated then was not answered.
        let late = silence.late.iter().flatten();
        let is_left = hosts
            .to
            .is_some_and(|to| late.filter(|late| **late > to).count() > STRAGGLERS);
        if is_left || !self.is_together(hosts, (due, slack)) && !is_witnessed {
            if silence.is_evidence || silence.stood_still {
                self.stood_alone(name);
            }
            return None;
        }
        // Who was never heard was perhaps never there.
        silence.is_evidence &= self.paths.signs(heard.hosts).is_heard();
        let half = trip / 2;
        // A connection that was opened in the outage does not know when it began.
        silence.start_earliest = silence.start_earliest.min(back(hosts.from, half));
        if back(hosts.from, half) > silence.start {
            silence.start = back(hosts.from, half);
            silence.start_latest = silence.start_latest.max(hosts.from);
        }
        let end = self.widen(&mut silence, heard, hosts, (due, slack));
        if !silence.sees_sender {
            // Others fell silent with it, and were back before it: that is no queue that was full.
            silence.is_evidence |= !matches!(silence.scope, Scope::Hosts(..));
            if !silence.is_evidence {
                self.stood_alone(name);
            }
        }
        let end = end.map(|end| back(end, half).max(silence.start));
        if silence.noticed.is_none() && end.is_none() {
            // The capture ends in the silence, or the connection was given up.
            if self.ended.nanos_since(silence.start) < OPEN {
                return None;
            }
        }
        silence.set_end(end);
        // What is no evidence leaves half of the room to what is.
        let room = match silence.is_evidence {
            true => self.limits.silences,
            false => self.limits.silences / 2,
        };
        if self.silences.len() >= room {
            self.counters.omitted_silences += 1;
            return None;
        }
        self.silences.push(silence);
        Some(self.silences.len() - 1)
    }

    /// Whether the silent host's datagrams, which had come at a steady pace, stopped while the connection was silent
    /// and waited for an answer that was `due`: no queue that was full for one of them does that.
    fn is_witnessed(&self, silence: &Silence, due: Instant) -> bool {
        let path = Path::Datagrams(silence.point, silence.silent, silence.waiting);
        let Some(place) = self.paths.known(&path) else {
            return false;
        };
        let gap = self.paths.signs(place).gap_beyond(due);
        let length = gap.to.unwrap_or(self.ended).nanos_since(gap.from);
        let is_amid = gap.from >= silence.start && silence.end.is_none_or(|end| gap.from <= end);
        is_amid && gap.signs_before >= STEADY && length >= STREAM_ENDS
    }

    /// Whether a gap that lasts beyond `due` began no later than `slack` nanoseconds after it.
    fn is_together(&self, gap: Gap, (due, slack): (Instant, u64)) -> bool {
        let length = gap.to.unwrap_or(self.ended).nanos_since(gap.from);
        gap.from.nanos_since(due) <= slack && length >= SHORTEST_GAP
    }

    /// The first sign after `silence`, in which its own hosts had the gap `hosts`. If others fell silent with them and
    /// were back before, the silence is theirs, too.
    fn widen(
        &self,
        silence: &mut Silence,
        heard: SignsOf,
        hosts: Gap,
        (due, slack): (Instant, u64),
    ) -> Option<Instant> {
        let mut end = hosts.to;
        let neighbours = subnet(silence.silent) != subnet(silence.waiting);
        let wider = [
            (
                neighbours,
                Some(heard.subnet),
                Scope::Subnet(subnet(silence.silent)),
            ),
            (true, Some(heard.host), Scope::Host(silence.waiting)),
            (true, heard.interface, Scope::Interface(silence.point)),
        ];
        for (applies, place, scope) in wider {
            let Some(place) = place.filter(|_| applies) else {
                continue;
            };
            let gap = self.paths.signs(place).gap_beyond(due);
            let is_same =
                self.is_together(gap, (due, slack)) && gap.from.nanos_since(hosts.from) <= slack;
            let Some(to) = gap.to.filter(|_| is_same) else {
                continue;
            };
            let late = silence.late.iter().flatten().filter(|late| **late > to);
            if end.is_none_or(|end| to < end) && late.count() <= STRAGGLERS {
                end = Some(to);
                silence.scope = scope;
            }
        }
        end
    }
}

/// Whether nothing of the time was wasted, or the timer that ended the silence is to blame.
pub(crate) fn cause_of(silence: &Silence, wasted_most: u64) -> Cause {
    let trip = silence.round_trip.unwrap_or(0).max(20_000_000);
    match silence.cause {
        Cause::SpuriousTimeout | Cause::OldTimestamps => silence.cause,
        _ if silence.noticed.is_some() && wasted_most <= trip => Cause::Path,
        cause => cause,
    }
}
