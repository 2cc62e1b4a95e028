//! TCP connections with one peer, as their packets show them, and how each moves again once a readdressing
//! is complete.
//!
//! A sender whose retransmission timer has backed off sends nothing for a long time after the path
//! is back. The last segment with data that it sent is then the oldest that its peer has not acknowledged.
//!
//! - Where that is old, ICMP errors to the host's own TCP take the back-off back (RFC 6069): TCP sends it again
//!   itself, at once. They do nothing to a sender whose first timeout is still to come, or whose socket is in use
//!   at this moment. If TCP is still silent a little later, the segment is sent again from below.
//! - One that is recent is sent again from below, and so is a receiver's last segment: it repeats its
//!   acknowledgement, which may have been lost.
//!
//! Where the peer is at a new address, data goes there again before the test of the address, within the credit;
//! acknowledgements after it.
//!
//! The peer may have more than it could acknowledge, because the outage took its acknowledgements. Its first one
//! afterwards names the oldest byte that it lacks. TCP takes its timeout for spurious then (RFC 5682): it sends a window
//! of new data, and what is missing a round trip later, behind all of that. So the segment with that byte goes out
//! before TCP has the acknowledgement.
//!
//! What a connection moves again with may be lost: others go on at the same moment, and fill the path's queue. Then its
//! timer is as far backed off as before. So a connection of which nothing was acknowledged sends its last segment again
//! after [`PAUSE`], and three more times, each time after twice as long.
//!
//! One that goes on may stop again, as its TCP has forgotten what is lost ([`Watch`]). Then its oldest segment is sent again from
//! below. Where the peer answers, TCP is told that the path takes packets of two bytes less (RFC 8201), too: it sends everything
//! again that is too long then.
//!
//! A segment from below, and one that has waited for a path, bears the timestamps that TCP would give it now
//! ([`Recent::refresh`]). With the old ones a sender would hear an echo from before the outage: it would take its
//! timeout for spurious (RFC 3522), count what is lost as on its way again, and measure a round trip as long as the
//! outage. Its next timeout would then come long after the next outage, without a back-off that could be taken back.
//!
//! Neither timestamp may be ahead of its clock: TCP takes no round trip from an echo out of the future. And what
//! TCP hands down later must not be behind what has gone out, or the peer drops it (RFC 7323, section 5): a segment
//! may have waited for this host's attention with a timestamp from before another one was sent again. Such a
//! segment gets fresh timestamps, too.
//!
//! Other protocols are left alone: their packets must not come twice.

use crate::association::Data;
use crate::beet::Inner;
use crate::path_mtu::PathMtu;
use crate::watch::{Overdue, Watch};
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_wire::hip::Hit;
use outlast_wire::tcp::Timestamps;
use outlast_wire::{IcmpNotice, Packet, SeqNumber, TcpFlags};

/// The protocol number of TCP.
pub(crate) const TCP: u8 = 6;

/// Connections that are remembered for one peer; the one that was silent longest makes room.
pub(crate) const MOST_CONNECTIONS: usize = 256;

/// Bytes of segments that are kept of one connection, beside the last one; the oldest ones make room. The host's TCP
/// keeps as many at least.
const MOST_KEPT: usize = 256 << 10;

/// Whoever has sent a segment so long ago, and none since, waits for no first timeout (RFC 6298, section 2.1).
const OLD: Duration = Duration::from_secs(1);

/// How long a sender that was told of its vain back-off has to send something. Linux does within the call that
/// delivers the error.
const ANSWER: Duration = Duration::from_millis(10);

/// How long what a connection moves again with may take until the peer's acknowledgement is there, before it is sent again
/// from below; and how often it is.
const PAUSE: Duration = Duration::from_millis(200);
const REPETITIONS: u32 = 4;

/// How long a reading of the peer's clock is kept for a better one. Clocks differ by some milliseconds meanwhile.
const READING: Duration = Duration::from_secs(60);

/// The peer's clock may be slower than this host's by one part of so many: two oscillators, each wrong by 100 parts in a
/// million, and some more.
const DRIFT: u64 = 4_096;

/// Errors about one segment. Each takes one back-off back, and those that are too many do nothing: a
/// connection has no more back-offs than Linux repeats a segment (`tcp_retries2`).
pub(crate) const ERRORS: usize = 15;

/// Length of a TCP header without options.
const HEADER_LEN: usize = 20;

/// Length of the timestamps option with its padding.
const TIMESTAMP_LEN: usize = 12;

/// Source and destination port of what this host sends on a connection.
pub(crate) type Ports = [u8; 4];

/// What the peer's acknowledgement of a connection says that is new.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Acknowledged {
    pub(crate) ports: Ports,
    /// How many bytes, and control bits, are acknowledged; none at the first one that is seen.
    pub(crate) bytes: u32,
    /// Whether nothing is left that the peer may lack, and the peer does not say that it had this before.
    pub(crate) is_all: bool,
    /// When the newest segment went out that is acknowledged.
    pub(crate) sent_at: Option<Instant>,
}

/// What a segment of the peer shows.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) acknowledged: Option<Acknowledged>,
    /// The segment that the peer lacks, if it is to go out before TCP has the acknowledgement.
    pub(crate) missing: Option<Sent>,
}

/// A segment's fields that tell what it is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Outline {
    ports: Ports,
    seq: SeqNumber,
    ack: SeqNumber,
    flags: TcpFlags,
    /// Sequence numbers that it takes.
    length: u32,
    /// Whether the receiver has got something twice (RFC 2883), by the first block of SACK, laid out as usual.
    is_duplicate: bool,
    /// The sender's clock, if that is the first option, laid out as usual (RFC 7323, appendix A).
    timestamp: Option<u32>,
}

impl Outline {
    fn of(segment: &[u8]) -> Option<Self> {
        let header = segment.first_chunk::<HEADER_LEN>()?;
        let [
            a,
            b,
            c,
            d,
            s0,
            s1,
            s2,
            s3,
            a0,
            a1,
            a2,
            a3,
            offset,
            flags,
            ..,
        ] = *header;
        let flags = TcpFlags(flags);
        let payload = segment.len().checked_sub(usize::from(offset >> 4) * 4)?;
        let control = [TcpFlags::SYN, TcpFlags::FIN];
        let control = control.iter().filter(|&&bit| flags.contains(bit)).count();
        let timestamp = match segment.get(HEADER_LEN..HEADER_LEN + TIMESTAMP_LEN) {
            Some(&[1, 1, 8, 10, t0, t1, t2, t3, ..]) => Some(u32::from_be_bytes([t0, t1, t2, t3])),
            _ => None,
        };
        let ack = SeqNumber(u32::from_be_bytes([a0, a1, a2, a3]));
        let sack_at = HEADER_LEN + timestamp.map_or(0, |_| TIMESTAMP_LEN);
        let options = segment.get(sack_at..usize::from(offset >> 4) * 4);
        let is_duplicate = match options {
            Some(&[1, 1, 5, _, l0, l1, l2, l3, ..]) => {
                SeqNumber(u32::from_be_bytes([l0, l1, l2, l3])).before(ack)
            }
            _ => false,
        };
        Some(Self {
            ports: [a, b, c, d],
            seq: SeqNumber(u32::from_be_bytes([s0, s1, s2, s3])),
            ack,
            flags,
            is_duplicate,
            // At most 65,535 bytes and two control bits.
            length: (payload + control) as u32,
            timestamp,
        })
    }

    fn end(&self) -> SeqNumber {
        self.seq + self.length
    }
}

/// The connection of a segment with data or control bits; nothing for other packets.
pub(crate) fn ports_of_data(data: &Data) -> Option<Ports> {
    let outline = Outline::of(&data.payload).filter(|_| data.next == TCP)?;
    (outline.length > 0).then_some(outline.ports)
}

/// Whether two packets are one segment, of which the later one is a retransmission.
pub(crate) fn is_repetition(earlier: &Data, later: &Data) -> bool {
    let outline = |data: &Data| {
        Some(&data.payload)
            .filter(|_| data.next == TCP)
            .and_then(|it| Outline::of(it))
    };
    match (outline(earlier), outline(later)) {
        (Some(earlier), Some(later)) => {
            later.length > 0
                && (earlier.ports, earlier.seq, earlier.length)
                    == (later.ports, later.seq, later.length)
        }
        _ => false,
    }
}

/// A clock of TCP timestamps, read at a time, or some time before that.
#[derive(Clone, Copy, Debug)]
struct Clock {
    value: u32,
    at: Instant,
}

impl Clock {
    /// What it shows now, at least. Linux counts milliseconds, or microseconds, of which so few are harmless; whole
    /// ones, so that the result is never ahead.
    fn now(self, now: Instant) -> u32 {
        self.after(now.nanos_since(self.at))
    }

    /// What the peer's shows now, at least. It may be slower than the clock that tells this time.
    fn now_elsewhere(self, now: Instant) -> u32 {
        let nanos = now.nanos_since(self.at);
        self.after(nanos - nanos / DRIFT)
    }

    fn after(self, nanos: u64) -> u32 {
        self.value.wrapping_add((nanos / 1_000_000) as u32)
    }

    /// The better one of two readings of the peer's clock: the other was longer on its way, as through a queue that is
    /// full. One that is too old proves nothing, because no two clocks are equally fast.
    fn better_elsewhere(self, later: Self) -> Self {
        let is_fresh = later.at.since(self.at) < READING;
        let is_ahead = is_after(self.now_elsewhere(later.at), later.value);
        if is_fresh && is_ahead { self } else { later }
    }

    /// The better one of two readings of this host's own clock, which is as fast as the one that tells the time.
    fn better(self, other: Self) -> Self {
        let is_later = self.at <= other.at;
        let (earlier, later) = if is_later {
            (self, other)
        } else {
            (other, self)
        };
        let is_ahead = is_after(earlier.now(later.at), later.value);
        if is_ahead { earlier } else { later }
    }
}

/// Whether one timestamp is later than another (RFC 7323, section 5.2).
const fn is_after(one: u32, other: u32) -> bool {
    SeqNumber(one).after(SeqNumber(other))
}

/// The whole packet of a segment between two hosts.
fn parse(segment: &[u8], [own, peer]: [Hit; 2]) -> Option<Packet> {
    let inner = Inner {
        source: own,
        destination: peer,
        next: TCP,
        payload: segment,
    };
    Packet::parse(inner.emit()?.into()).ok()
}

/// What has a connection move again.
#[derive(Debug)]
pub(crate) enum Wake {
    /// An ICMP error for this host's TCP, to be delivered [`ERRORS`] times.
    Tell(Vec<u8>),
    /// Another one, to be delivered once.
    Shorten(Vec<u8>),
    /// A segment for the peer.
    Repeat(Sent),
}

/// A segment that went to the peer.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) data: Data,
    /// Its first sequence number, and the one behind its last.
    pub(crate) seq: SeqNumber,
    pub(crate) end: SeqNumber,
    pub(crate) at: Instant,
    /// Where it went from and to.
    pub(crate) path: [IpAddr; 2],
}

/// Segments with data that the peer is not known to have, by their sequence numbers.
#[derive(Debug, Default)]
struct Earlier {
    segments: VecDeque<Sent>,
    /// Of all of them.
    bytes: usize,
}

impl Earlier {
    /// Puts a segment in its place; the oldest ones make room.
    fn insert(&mut self, sent: Sent) {
        self.bytes += sent.data.payload.len();
        let is_older = |other: &Sent| other.seq.before(sent.seq);
        let place = self.segments.partition_point(is_older);
        self.segments.insert(place, sent);
        while self.bytes > MOST_KEPT && self.pop().is_some() {}
    }

    fn pop(&mut self) -> Option<Sent> {
        let oldest = self.segments.pop_front()?;
        self.bytes -= oldest.data.payload.len();
        Some(oldest)
    }

    /// Takes the segment at which `is_older` ends, if it is the one.
    fn take(
        &mut self,
        is_older: impl Fn(&Sent) -> bool,
        is_it: impl Fn(&Sent) -> bool,
    ) -> Option<Sent> {
        let place = self.segments.partition_point(is_older);
        self.segments.get(place).filter(|&sent| is_it(sent))?;
        let sent = self.segments.remove(place)?;
        self.bytes -= sent.data.payload.len();
        Some(sent)
    }

    /// Forgets what the peer has; when the newest of that went out.
    fn acknowledge(&mut self, ack: SeqNumber) -> Option<Instant> {
        let has = |sent: &Sent| sent.end.at_or_before(ack);
        let mut newest = None;
        while self.segments.front().is_some_and(has) {
            newest = newest.max(self.pop().map(|sent| sent.at));
        }
        newest
    }
}

/// The present path, and since when whatever took it is not lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Working {
    pub(crate) path: [IpAddr; 2],
    pub(crate) since: Instant,
}

impl Working {
    /// Whether a segment has taken this path since then.
    fn has_carried(&self, sent: &Sent) -> bool {
        sent.path == self.path && sent.at >= self.since
    }
}

#[derive(Debug, Default)]
struct Connection {
    /// The last segment with data that the peer is not known to have.
    data: Option<Sent>,
    earlier: Earlier,
    /// The path that works again, until the peer's first acknowledgement.
    resumes: Option<Working>,
    /// The last segment without data, if none with data came after it.
    acknowledgement: Option<Sent>,
    /// The oldest byte that the peer has not acknowledged.
    snd_una: Option<SeqNumber>,
    /// The clock of the peer's TCP.
    peer_clock: Option<Clock>,
    /// The clock of this host's.
    own_clock: Option<Clock>,
    /// The latest timestamp that went out.
    newest: Option<u32>,
    /// When TCP was told of its vain back-off, until it sends something.
    told_at: Option<Instant>,
    /// When it sends its last segment once more, until the peer acknowledges something.
    again: Option<Again>,
    /// Whether what the outage took is acknowledged, until all of it is.
    watch: Option<Watch>,
}

/// The next repetition of a segment that may have been lost.
#[derive(Clone, Copy, Debug)]
struct Again {
    at: Instant,
    /// Repetitions so far.
    times: u32,
}

impl Connection {
    /// Notes a segment with data as the last one, in place of an earlier one that begins where it does.
    fn put(&mut self, sent: Sent) {
        let seq = sent.seq;
        self.earlier
            .take(|other| other.seq.before(seq), |other| other.seq == seq);
        let former = self.data.replace(sent);
        if let Some(former) = former.filter(|former| former.seq != seq) {
            self.earlier.insert(former);
        }
    }

    /// Takes back what was to go again.
    fn put_back(&mut self, sent: Sent) {
        if sent.end == sent.seq {
            self.acknowledgement.get_or_insert(sent);
        } else if self.data.is_none() {
            self.data = Some(sent);
        } else {
            self.earlier.insert(sent);
        }
    }

    /// All segments with data that the peer is not known to have.
    fn segments(&self) -> impl Iterator<Item = &Sent> {
        self.earlier.segments.iter().chain(&self.data)
    }

    /// The one of them with the oldest byte.
    fn oldest(&self) -> Option<&Sent> {
        let of_earlier = self.earlier.segments.front();
        match (of_earlier, &self.data) {
            (Some(earlier), Some(data)) if data.seq.before(earlier.seq) => Some(data),
            (earlier, data) => earlier.or(data.as_ref()),
        }
    }

    /// Bytes of the longest one.
    fn longest(&self) -> usize {
        let lengths = self.segments().map(|sent| sent.data.payload.len());
        lengths.max().unwrap_or(0)
    }

    fn take_oldest(&mut self) -> Option<Sent> {
        let seq = self.oldest()?.seq;
        let of_data = self.data.take_if(|sent| sent.seq == seq);
        of_data.or_else(|| self.earlier.pop())
    }

    /// Looks from now on whether the peer acknowledges what was sent so far.
    fn begin_watch(&mut self, now: Instant) {
        let ends = self.segments().map(|sent| sent.end);
        let until = ends.reduce(SeqNumber::max);
        self.watch = until.map(|until| Watch::begin(now, until));
    }

    /// Whether it was made to move again, and has stopped.
    fn overdue(&mut self, now: Instant) -> Option<Overdue> {
        let sent_at = self.oldest()?.at;
        self.watch.as_mut()?.overdue(now, sent_at)
    }

    /// Forgets what the peer has; when the newest of that went out.
    fn acknowledge(&mut self, ack: SeqNumber) -> Option<Instant> {
        let newest = self.earlier.acknowledge(ack);
        let has = |sent: &mut Sent| sent.end.at_or_before(ack);
        let Some(last) = self.data.take_if(has) else {
            return newest;
        };
        self.told_at = None;
        self.data = self.earlier.pop();
        newest.max(Some(last.at))
    }

    /// The segment with the oldest byte that the peer lacks, by its first acknowledgement since a path works again;
    /// nothing if the segment has taken that path.
    fn missing(&mut self, ack: SeqNumber) -> Option<Sent> {
        let working = self.resumes.take()?;
        let is_it = |sent: &Sent| {
            let has = sent.seq.at_or_before(ack) && sent.end.after(ack);
            has && !working.has_carried(sent)
        };
        let last = self.data.take_if(|sent| is_it(sent));
        last.or_else(|| {
            let is_older = |other: &Sent| other.end.at_or_before(ack);
            self.earlier.take(is_older, is_it)
        })
    }

    /// When it is to be looked at next.
    fn due(&self) -> Option<Instant> {
        let told = self.told_at.map(|told_at| told_at + ANSWER);
        let again = self.again.map(|again| again.at);
        let both = self.watch.zip(self.oldest());
        let overdue = both.and_then(|(watch, oldest)| watch.due(oldest.at));
        told.into_iter().chain(again).chain(overdue).min()
    }

    /// Whether its last segment is to be sent from below by now. Each answer is given once.
    fn is_due(&mut self, now: Instant) -> bool {
        let is_silent = self.told_at.take_if(|told_at| *told_at + ANSWER <= now);
        let again = self.again.take_if(|again| again.at <= now);
        if let Some(Again { times, .. }) = again
            && self.data.is_some()
            && times + 1 < REPETITIONS
        {
            let at = now + PAUSE * 2_u32.pow(times + 1);
            self.again = Some(Again {
                at,
                times: times + 1,
            });
        }
        is_silent.is_some() || again.is_some()
    }

    /// Notes the timestamp of what goes out.
    fn note_timestamp(&mut self, read: Clock) {
        let best = self.own_clock.map_or(read, |known| known.better(read));
        self.own_clock = Some(best);
        if !self.is_overtaken(Some(read.value)) {
            self.newest = Some(read.value);
        }
    }

    /// Whether the peer would drop this timestamp, because it has heard a later one.
    fn is_overtaken(&self, timestamp: Option<u32>) -> bool {
        let both = self.newest.zip(timestamp);
        both.is_some_and(|(newest, timestamp)| is_after(newest, timestamp))
    }

    /// When it last sent something that may still be missing.
    fn last_sent(&self) -> Option<Instant> {
        let both = [&self.data, &self.acknowledgement];
        both.into_iter().flatten().map(|sent| sent.at).max()
    }
}

/// A segment with fresh timestamps; nothing if it has none.
fn refreshed(
    data: &Data,
    connection: Option<&Connection>,
    now: Instant,
    hosts: [Hit; 2],
) -> Option<Vec<u8>> {
    let packet = parse(&data.payload, hosts)?;
    let old = packet.tcp()?.options.timestamps?;
    let read = Clock {
        value: old.value,
        at: data.handed_at,
    };
    let own_clock = connection.and_then(|it| it.own_clock);
    let own_clock = own_clock.map_or(read, |known| known.better(read));
    let peer_clock = connection.and_then(|it| it.peer_clock);
    let mut edit = packet.edit();
    let fresh = Timestamps {
        value: own_clock.now(now),
        echo: peer_clock.map_or(old.echo, |clock| clock.now_elsewhere(now)),
    };
    edit.set_timestamps(fresh).ok()?;
    let bytes = edit.finish().to_bytes();
    bytes.get(crate::beet::HEADER_LEN..).map(<[u8]>::to_vec)
}

/// The ICMP error that takes a sender's back-off back; nothing if its timer has not backed off.
fn error(
    data: &Data,
    snd_una: Option<SeqNumber>,
    now: Instant,
    hosts: [Hit; 2],
) -> Option<Vec<u8>> {
    if now.since(data.handed_at) < OLD {
        return None;
    }
    let mut edit = parse(&data.payload, hosts)?.edit();
    if let Some(snd_una) = snd_una {
        edit.set_seq(snd_una).ok()?;
    }
    let [_, peer] = hosts;
    let router = peer.address().into();
    let error = Packet::icmp_error(router, IcmpNotice::NetworkUnreachable, &edit.finish());
    Some(error.ok()?.to_bytes().to_vec())
}

/// The ICMP error by which a sender's segments are too long.
fn too_big(data: &Data, mtu: u32, hosts: [Hit; 2]) -> Option<Vec<u8>> {
    let [_, peer] = hosts;
    let router = peer.address().into();
    let notice = IcmpNotice::TooBig { mtu };
    let error = Packet::icmp_error(router, notice, &parse(&data.payload, hosts)?);
    Some(error.ok()?.to_bytes().to_vec())
}

/// The TCP connections with one peer, by this host's port and the peer's.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    connections: BTreeMap<Ports, Connection>,
    path_mtu: PathMtu,
    /// When a sender that was told is to have sent something.
    pub(crate) deadline: Option<Instant>,
}

impl Recent {
    /// Notes a packet that goes out.
    pub(crate) fn note_sent(&mut self, now: Instant, data: Data, path: [IpAddr; 2]) {
        let outline = Outline::of(&data.payload).filter(|_| data.next == TCP);
        let Some(outline) = outline else {
            return;
        };
        if outline.flags.contains(TcpFlags::RST) || outline.flags.contains(TcpFlags::SYN) {
            self.connections.remove(&outline.ports);
        }
        if outline.flags.contains(TcpFlags::RST) {
            return;
        }
        self.make_room(outline.ports);
        let connection = self.connections.entry(outline.ports).or_default();
        if let Some(value) = outline.timestamp {
            let at = data.handed_at;
            connection.note_timestamp(Clock { value, at });
        }
        let sent = Sent {
            data,
            seq: outline.seq,
            end: outline.end(),
            at: now,
            path,
        };
        if outline.length > 0 {
            connection.put(sent);
            connection.acknowledgement = None;
            connection.told_at = None;
        } else {
            connection.acknowledgement = Some(sent);
        }
    }

    fn make_room(&mut self, ports: Ports) {
        if self.connections.len() < MOST_CONNECTIONS || self.connections.contains_key(&ports) {
            return;
        }
        let all = self.connections.iter();
        let oldest = all.min_by_key(|(_, connection)| connection.last_sent());
        if let Some(oldest) = oldest.map(|(ports, _)| *ports) {
            self.connections.remove(&oldest);
        }
    }

    /// Takes a segment back that was to go again, and may not go now.
    pub(crate) fn put_back(&mut self, sent: Sent) {
        let outline = Outline::of(&sent.data.payload);
        let connection = outline.and_then(|it| self.connections.get_mut(&it.ports));
        if let Some(connection) = connection {
            connection.put_back(sent);
        }
    }

    /// Gives a segment the timestamps that it would bear if TCP handed it down now, and had heard its peer just now:
    /// one that was handed down a while ago, or whose timestamp another one has overtaken.
    pub(crate) fn refresh(&self, now: Instant, data: Data, hosts: [Hit; 2]) -> Data {
        let outline = Outline::of(&data.payload).filter(|_| data.next == TCP);
        let Some(outline) = outline else {
            return data;
        };
        // A SYN begins another connection.
        let is_first = outline.flags.contains(TcpFlags::SYN);
        let connection = self.connections.get(&outline.ports).filter(|_| !is_first);
        let is_overtaken = connection.is_some_and(|it| it.is_overtaken(outline.timestamp));
        if data.handed_at >= now && !is_overtaken {
            return data;
        }
        let payload = refreshed(&data, connection, now, hosts);
        Data {
            payload: payload.unwrap_or(data.payload),
            handed_at: now,
            ..data
        }
    }

    /// Notes what the peer acknowledges, and its clock.
    pub(crate) fn note_received(&mut self, now: Instant, next: u8, segment: &[u8]) -> Heard {
        let outline = Outline::of(segment).filter(|_| next == TCP);
        let Some(outline) = outline.filter(|it| it.flags.contains(TcpFlags::ACK)) else {
            return Heard::default();
        };
        let [a, b, c, d] = outline.ports;
        let ports = [c, d, a, b];
        let Some(connection) = self.connections.get_mut(&ports) else {
            return Heard::default();
        };
        if let Some(value) = outline.timestamp {
            let read = Clock { value, at: now };
            let known = connection.peer_clock;
            let best = known.map_or(read, |known| known.better_elsewhere(read));
            connection.peer_clock = Some(best);
        }
        let ack = outline.ack;
        let before = connection.snd_una;
        let snd_una = before.map_or(ack, |una| una.max(ack));
        connection.snd_una = Some(snd_una);
        let is_new = before != Some(snd_una);
        if is_new {
            connection.again = None;
        }
        let sent_at = connection.acknowledge(snd_una);
        let missing = connection.missing(snd_una);
        connection
            .watch
            .take_if(|watch| !watch.hear(now, snd_una, is_new));
        let due = connection.watch.and_then(|_| connection.due());
        let heard = Heard {
            missing,
            acknowledged: is_new.then(|| Acknowledged {
                ports,
                bytes: before.map_or(0, |it| snd_una.distance_from(it).unsigned_abs()),
                is_all: connection.data.is_none() && !outline.is_duplicate,
                sent_at,
            }),
        };
        self.deadline = self.deadline.into_iter().chain(due).min();
        heard
    }

    /// The connections with data that the peer may lack.
    pub(crate) fn senders(&self) -> Vec<Ports> {
        let all = self.connections.iter();
        let senders = all.filter(|(_, connection)| connection.data.is_some());
        senders.map(|(ports, _)| *ports).collect()
    }

    /// The data that [`Self::wake_senders`] would act on.
    pub(crate) fn missing(&self, working: Working) -> impl Iterator<Item = &Data> {
        let sent = self.connections.values().filter_map(|it| it.data.as_ref());
        sent.filter(move |sent| !working.has_carried(sent))
            .map(|sent| &sent.data)
    }

    /// What has each connection move again on a path that works.
    pub(crate) fn wake(&mut self, now: Instant, hosts: [Hit; 2], working: Working) -> Vec<Wake> {
        let mut wakes = self.wake_senders(now, hosts, working);
        let acknowledgements = self.connections.values_mut().filter_map(|connection| {
            let sent = &mut connection.acknowledgement;
            sent.take_if(|sent| !working.has_carried(sent))
        });
        wakes.extend(acknowledgements.map(Wake::Repeat));
        wakes
    }

    /// What has each connection with data that the peer may lack move again.
    pub(crate) fn wake_senders(
        &mut self,
        now: Instant,
        hosts: [Hit; 2],
        working: Working,
    ) -> Vec<Wake> {
        let mut wakes = Vec::new();
        for connection in self.connections.values_mut() {
            connection.resumes = Some(working);
            connection.begin_watch(now);
            let is_told = connection.told_at.is_some();
            let waits = |sent: &mut Sent| !is_told && !working.has_carried(sent);
            let Some(sent) = connection.data.take_if(waits) else {
                continue;
            };
            let at = now + PAUSE;
            connection.again = Some(Again { at, times: 0 });
            self.deadline = Some(self.deadline.map_or(at, |other| other.min(at)));
            match error(&sent.data, connection.snd_una, now, hosts) {
                Some(error) => {
                    wakes.push(Wake::Tell(error));
                    connection.data = Some(sent);
                    connection.told_at = Some(now);
                    let due = now + ANSWER;
                    self.deadline = Some(self.deadline.map_or(due, |other| other.min(due)));
                }
                None => wakes.push(Wake::Repeat(sent)),
            }
        }
        wakes
    }

    /// What has those connections move again that have sent nothing since they were told, those of which nothing
    /// was acknowledged since, and those that have stopped again.
    pub(crate) fn wake_silent(&mut self, now: Instant, hosts: [Hit; 2]) -> Vec<Wake> {
        let mut wakes = Vec::new();
        self.deadline = None;
        for connection in self.connections.values_mut() {
            let repeats = connection.is_due(now);
            let data = connection.data.take_if(|_| repeats);
            wakes.extend(data.map(Wake::Repeat));
            if let Some(overdue) = connection.overdue(now) {
                let mtu = match overdue {
                    Overdue::Silent => None,
                    Overdue::Forgotten => self.path_mtu.shorter(now, connection.longest()),
                };
                let oldest = connection.take_oldest();
                let error = mtu.zip(oldest.as_ref());
                let error = error.and_then(|(mtu, sent)| too_big(&sent.data, mtu, hosts));
                wakes.extend(error.map(Wake::Shorten));
                wakes.extend(oldest.map(Wake::Repeat));
            }
            let due = connection.due();
            self.deadline = self.deadline.into_iter().chain(due).min();
        }
        wakes
    }
}
