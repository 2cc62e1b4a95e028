//! What is known of one direction of a connection: what one host sent.

use crate::bins::{Bin, Bins, Kind};
use crate::seen::Seen;
use outlast_base::time::Instant;
use outlast_wire::{SeqNumber, TcpFlags, TcpHeader};

/// Packets with consecutive identifications after which a gap in them counts as loss.
const COUNTING: u8 = 6;
/// A wider gap is a host that counts in another way.
const WIDEST_ID_GAP: u16 = 20_000;

/// New data so long after what was not answered shows that it was, in nanoseconds: longer than the first
/// timeout (RFC 6298, section 2.1).
const BEYOND_TIMEOUT: u64 = 2_000_000_000;

/// A longer pause counts as so much of the usual time between packets, in nanoseconds.
const LONGEST_INTERVAL: u64 = 1_000_000_000;

/// A TCP segment as it passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segment<'a> {
    pub(crate) at: Instant,
    pub(crate) tcp: &'a TcpHeader,
    pub(crate) payload_len: u32,
    pub(crate) identification: u16,
}

impl Segment<'_> {
    /// Sequence numbers that it occupies.
    pub(crate) fn len(&self) -> u32 {
        self.payload_len.saturating_add(self.tcp.control_len())
    }

    pub(crate) fn end(&self) -> SeqNumber {
        self.tcp.seq + self.len()
    }

    fn timestamp(&self) -> Option<u32> {
        self.tcp.options.timestamps.map(|stamps| stamps.value)
    }

    pub(crate) fn echo(&self) -> Option<u32> {
        let stamps = self.tcp.options.timestamps?;
        self.tcp.has(TcpFlags::ACK).then_some(stamps.echo)
    }
}

/// What a segment is by its numbers alone.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Signature {
    pub(crate) is_retransmission: bool,
    pub(crate) is_duplicate_ack: bool,
    pub(crate) is_zero_window: bool,
    /// Acknowledges what is not in the capture.
    pub(crate) shows_lack: bool,
    /// Was acknowledged before it was captured.
    pub(crate) is_late: bool,
}

/// What one host sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    /// Behind the newest data that it sent.
    pub(crate) snd_nxt: Option<SeqNumber>,
    /// The newest that it has acknowledged.
    pub(crate) ack: Option<SeqNumber>,
    /// The first that it acknowledged.
    first_ack: Option<SeqNumber>,
    /// Data of its own that the capture shows.
    seen: Seen,
    /// Time at which it last showed that it had heard its peer, though the capture did not.
    pub(crate) heard_unseen: Option<Instant>,
    /// The first packet that wants an answer since its peer was last heard.
    pub(crate) asked: Option<Instant>,
    /// Its last packet.
    pub(crate) last: Option<Instant>,
    pub(crate) window_is_closed: bool,
    pub(crate) bins: Bins,
    pub(crate) newest_timestamp: Option<u32>,
    /// The timestamp of its last packet, and when the first packet with it was seen.
    stamped: Option<(u32, Instant)>,
    /// Whether its last packet had an older timestamp than one before: its receiver drops such
    /// packets (PAWS).
    pub(crate) is_behind: bool,
    /// The last timestamp of its peer's that it echoed.
    pub(crate) echo: Option<u32>,
    /// How often it has said in a row that it lacks what follows its acknowledgement.
    pub(crate) duplicate_acks: u32,
    /// The window of its last segment, as it stands in the header.
    window: u16,
    /// What its last segment acknowledged.
    last_ack: Option<SeqNumber>,
    /// The longest payload that it sent, in bytes.
    largest: u32,
    /// The least time from its packets to the answers, in nanoseconds.
    pub(crate) round_trip: Option<u64>,
    smoothed: Option<u64>,
    /// The smoothed time from one packet to the next, in nanoseconds.
    pub(crate) interval: u64,
    /// What it takes at present from its timestamps to their echoes in data, in nanoseconds.
    echo_trip: Option<u64>,
    timed_data: Option<(SeqNumber, Instant)>,
    timed_stamp: Option<(u32, Instant)>,
    /// Packets with data or control bits.
    pub(crate) sent: u64,
    /// Losses, as repetitions show them: one for each window, and one for each repetition that was
    /// itself repeated. A burst that overflows a queue is one.
    pub(crate) losses: u64,
    /// What had been sent when the last loss was repeated, and what was repeated.
    repeated: Option<(SeqNumber, SeqNumber)>,
    identification: u16,
    counted: u8,
    /// Unanswered keep-alive or window probes.
    pub(crate) probes: u32,
}

/// Whether timestamp `a` is newer than `b`.
pub(crate) const fn is_newer(a: u32, b: u32) -> bool {
    SeqNumber(a).after(SeqNumber(b))
}

impl Half {
    /// What `segment` is for whoever waits for an answer; `una` is what the peer has acknowledged.
    fn kind(&self, segment: &Segment<'_>, una: Option<SeqNumber>) -> Kind {
        let (seq, end) = (segment.tcp.seq, segment.end());
        let Some(snd_nxt) = self.snd_nxt else {
            return match segment.len() {
                0 => Kind::Acknowledgement,
                _ => Kind::New,
            };
        };
        let is_reset = segment.tcp.has(TcpFlags::RST);
        if segment.len() == 0 {
            // A keep-alive or window probe is before what is expected, so that it is answered.
            let is_probe = seq + 1 == snd_nxt && !is_reset;
            return if is_probe {
                Kind::Oldest
            } else {
                Kind::Acknowledgement
            };
        }
        if end.after(snd_nxt) {
            return Kind::New;
        }
        match una {
            Some(una) if seq.after(una) && end == snd_nxt => Kind::Newest,
            Some(una) if seq.after(una) => Kind::Again,
            _ => Kind::Oldest,
        }
    }

    /// Notes a packet that the host sent. What it repeats in the aftermath of an outage tells nothing
    /// of the loss at other times.
    pub(crate) fn send(
        &mut self,
        segment: &Segment<'_>,
        una: Option<SeqNumber>,
        in_aftermath: bool,
    ) -> Signature {
        let kind = self.kind(segment, una);
        if kind.wants_answer() {
            self.asked.get_or_insert(segment.at);
        }
        let is_late =
            !segment.tcp.has(TcpFlags::RST) && self.seen.add(segment.tcp.seq, segment.end());
        let signature = Signature {
            is_late,
            ..self.signature(segment, kind)
        };
        if signature.is_duplicate_ack {
            self.duplicate_acks = self.duplicate_acks.saturating_add(1);
        }
        let is_probe = kind == Kind::Oldest && segment.len() == 0;
        self.probes += u32::from(is_probe);
        self.largest = self.largest.max(segment.payload_len);
        self.bins.push(
            Bin {
                kind,
                count: 1,
                first: segment.at,
                last: segment.at,
                timestamp: segment.timestamp(),
                ack: segment.tcp.ack,
                end: segment.end(),
                is_short: segment.payload_len < self.largest,
            },
            self.round_trip.unwrap_or(0),
        );
        match kind {
            Kind::Acknowledgement => {}
            Kind::New => {
                self.sent += 1;
                let end = segment.end();
                self.timed_data.get_or_insert((end, segment.at));
                self.snd_nxt = Some(self.snd_nxt.map_or(end, |nxt| nxt.max(end)));
            }
            Kind::Oldest | Kind::Newest | Kind::Again => {
                self.sent += 1;
                let seq = segment.tcp.seq;
                let is_loss = self
                    .repeated
                    .is_none_or(|(until, last)| seq.at_or_after(until) || seq == last);
                if is_loss {
                    self.losses += u64::from(!is_probe && !in_aftermath);
                    self.repeated = self.snd_nxt.map(|nxt| (nxt, seq));
                }
                // Which of the two would be answered is not known (Karn).
                self.timed_data = None;
            }
        }
        if self.snd_nxt.is_none() {
            self.snd_nxt = Some(segment.end());
        }
        self.note_header(segment);
        self.note_identification(segment.identification);
        if let Some(last) = self.last {
            let interval = segment.at.nanos_since(last).min(LONGEST_INTERVAL);
            self.interval = self.interval - self.interval / 8 + interval / 8;
        }
        self.last = Some(segment.at);
        signature
    }

    /// Notes whether identifications count packets, as far as this one shows it.
    fn note_identification(&mut self, identification: u16) {
        self.counted = match identification.wrapping_sub(self.identification) {
            1 => self.counted.saturating_add(1),
            gap if gap <= WIDEST_ID_GAP && self.counted >= COUNTING => self.counted,
            _ => 0,
        };
        self.identification = identification;
    }

    /// What Wireshark's analysis of sequence numbers calls `segment`.
    fn signature(&self, segment: &Segment<'_>, kind: Kind) -> Signature {
        let flags = segment.tcp.flags;
        let is_plain = !flags.intersects(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        let is_keep_alive =
            is_plain && segment.payload_len <= 1 && self.snd_nxt == Some(segment.end());
        let window = segment.tcp.window;
        let says_the_same = self.last_ack == Some(segment.tcp.ack) && self.window == window;
        Signature {
            is_retransmission: kind.is_repeated() && segment.len() > 0 && !is_keep_alive,
            is_duplicate_ack: is_plain
                && segment.payload_len == 0
                && window > 0
                && says_the_same
                && self.snd_nxt == Some(segment.tcp.seq),
            is_zero_window: is_plain && window == 0,
            shows_lack: false,
            is_late: false,
        }
    }

    /// Notes what the header says beside sequence numbers: timestamp, acknowledgement, window.
    fn note_header(&mut self, segment: &Segment<'_>) {
        let newest = self.newest_timestamp;
        let stamp = segment.timestamp();
        self.is_behind = matches!((stamp, newest), (Some(a), Some(b)) if is_newer(b, a));
        if self.stamped.map(|(last, _)| last) != stamp {
            self.stamped = stamp.map(|stamp| (stamp, segment.at));
        }
        if let Some(stamp) = segment.timestamp()
            && newest.is_none_or(|newest| is_newer(stamp, newest))
        {
            self.newest_timestamp = Some(stamp);
            self.timed_stamp.get_or_insert((stamp, segment.at));
        }
        self.echo = segment.echo().or(self.echo);
        if segment.tcp.has(TcpFlags::ACK) {
            let ack = segment.tcp.ack;
            if self.ack.is_some_and(|known| ack.after(known)) {
                self.duplicate_acks = 0;
            }
            self.ack = Some(self.ack.map_or(ack, |known| known.max(ack)));
            self.first_ack.get_or_insert(ack);
        }
        self.window = segment.tcp.window;
        if segment.tcp.has(TcpFlags::ACK) {
            self.last_ack = Some(segment.tcp.ack);
        }
        if !segment.tcp.flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
            self.window_is_closed = segment.tcp.window == 0;
        }
    }

    /// Notes an answer to what the host sent: a packet of its peer.
    pub(crate) fn hear(&mut self, answer: &Segment<'_>) {
        self.probes = 0;
        self.asked = None;
        if let Some((end, sent)) = self.timed_data
            && answer.tcp.has(TcpFlags::ACK)
            && answer.tcp.ack.at_or_after(end)
        {
            self.timed_data = None;
            let sample = answer.at.nanos_since(sent);
            self.round_trip = Some(self.round_trip.map_or(sample, |least| least.min(sample)));
            self.smoothed = Some(
                self.smoothed
                    .map_or(sample, |old| old - old / 8 + sample / 8),
            );
        }
        if let (Some((stamp, sent)), Some(echo)) = (self.timed_stamp, answer.echo()) {
            if echo == stamp && answer.len() > 0 {
                let sample = answer.at.nanos_since(sent);
                self.round_trip = Some(self.round_trip.map_or(sample, |least| least.min(sample)));
                let usual = self.echo_trip.unwrap_or(sample);
                self.echo_trip = Some(usual - usual / 8 + sample / 8);
            }
            if !is_newer(stamp, echo) {
                self.timed_stamp = None;
            }
        }
    }

    /// Notes that its peer acknowledges all before `ack`; true if the capture lacks some of it.
    pub(crate) fn acknowledge(&mut self, ack: SeqNumber) -> bool {
        self.seen.acknowledge(ack)
    }

    /// True if `segment`, of its peer's, which was never seen to be answered, follows an answer.
    ///
    /// Its numbers go on, although nothing that they acknowledge or echo is in the capture.
    pub(crate) fn follows_unseen_answer(&self, segment: &Segment<'_>) -> bool {
        let echo = segment.echo().filter(|echo| *echo != 0);
        let has_new_echo =
            matches!((echo, self.echo), (Some(echo), Some(last)) if is_newer(echo, last));
        let has_new_ack = segment.tcp.has(TcpFlags::ACK)
            && self
                .first_ack
                .is_some_and(|first| segment.tcp.ack.after(first));
        // It opened the connection, and answers what answered that.
        let is_opened = segment.tcp.has(TcpFlags::ACK) && self.ack.is_none() && self.last.is_some();
        // Without an answer a timeout comes first, and behind it no new data.
        let is_new = self.snd_nxt.is_some_and(|nxt| segment.end().after(nxt));
        let waited = self.asked.map_or(0, |asked| segment.at.nanos_since(asked));
        has_new_echo || has_new_ack || is_opened || is_new && waited >= BEYOND_TIMEOUT
    }

    /// Packets that were lost before `segment`, which shows by its number that some were.
    ///
    /// Data that it skips is counted in packets of the largest size. Where it fills a hole, or repeats what its peer has
    /// acknowledged up to `una`, the host's identifications count: it has repeated that before. Where it goes on with the
    /// next byte, nothing is known to be lost: several connections may share the identifications.
    pub(crate) fn lost_before(&self, segment: &Segment<'_>, una: SeqNumber) -> u32 {
        let Some(snd_nxt) = self.snd_nxt else {
            return 0;
        };
        if segment.tcp.seq.after(snd_nxt) {
            let skipped = segment.tcp.seq.0.wrapping_sub(snd_nxt.0);
            return skipped.div_ceil(self.largest.max(segment.payload_len).max(1));
        }
        // What was seen before, and not acknowledged, has been lost behind the capture, if it was.
        let seq = segment.tcp.seq;
        let is_lacking = self.seen.lacks(seq) || seq == una && self.seen.may_lack(seq);
        let fills_hole = seq.before(snd_nxt) && is_lacking;
        match fills_hole || segment.end().at_or_before(una) {
            true => self.not_seen_before(segment),
            false => 0,
        }
    }

    /// Packets between the last one and `segment`, as the host's identifications count them, of this
    /// connection or of others.
    pub(crate) fn not_seen_before(&self, segment: &Segment<'_>) -> u32 {
        let gap = segment.identification.wrapping_sub(self.identification);
        match gap {
            1..=WIDEST_ID_GAP if self.counted >= COUNTING => u32::from(gap) - 1,
            _ => 0,
        }
    }

    /// For how long its last packet waited in a queue behind others that it had sent at the same
    /// moment, in nanoseconds.
    pub(crate) fn queued(&self) -> u64 {
        match (self.stamped, self.last) {
            (Some((_, first)), Some(last)) => last.nanos_since(first),
            _ => 0,
        }
    }

    /// True if it sent payload.
    pub(crate) const fn has_sent_data(&self) -> bool {
        self.largest > 0
    }

    /// Whether something that it sent is not acknowledged by `una`.
    pub(crate) fn is_outstanding(&self, una: Option<SeqNumber>) -> bool {
        let unacknowledged = match (self.snd_nxt, una) {
            (Some(nxt), Some(una)) => nxt.after(una),
            (Some(_), None) => true,
            _ => false,
        };
        unacknowledged || self.probes > 0
    }

    /// After how long data may be expected to echo the newest timestamp, in nanoseconds.
    pub(crate) fn usual_echo(&self) -> u64 {
        let trip = self.echo_trip.unwrap_or(0);
        (trip + trip / 2).max(self.round_trip.unwrap_or(0))
    }

    /// What a round trip takes at present, in nanoseconds; zero if unknown.
    pub(crate) fn usual_round_trip(&self) -> u64 {
        self.smoothed.or(self.round_trip).unwrap_or(0)
    }
}
