//! One connection at one point of capture.

use crate::FlowId;
use crate::bins::{Bin, Kind};
use crate::evidence::is_more_than_loss;
use crate::half::{Half, Segment, Signature, is_newer};
use crate::outage::{Cause, Scope};
use crate::seniority::Line;
use crate::signs::SHORTEST_GAP;
use crate::silence::{LATE, Silence};
use alloc::boxed::Box;
use outlast_base::time::Instant;
use outlast_wire::{SeqNumber, TcpFlags};

/// No retransmission timeout of a running connection is shorter (RFC 6298 asks for a second, Linux
/// takes 200 ms), in nanoseconds.
const SHORTEST_TIMEOUT: u64 = 200_000_000;
/// Longest initial retransmission timeout (RFC 6298, section 2.1).
const FIRST_TIMEOUT: u64 = 1_000_000_000;
/// New data in flight that is lost to the last packet, and this many packets of it, is an outage.
const STREAM: u32 = 8;
/// An answer that comes late, but to what was sent first, ends a silence only of this length, in
/// nanoseconds.
const LATE_ANSWER: u64 = 1_000_000_000;
/// An answer may come so much later than a round trip and a quarter, in nanoseconds.
const PROMPT: u64 = 5_000_000;
/// As few lost packets as `FEW` show an outage if it took this long, in nanoseconds: more than a
/// timeout after the loss of a tail.
const LONG_PAUSE: u64 = 1_500_000_000;
const FEW: u32 = 3;
/// As many duplicate acknowledgements tell a sender of a loss (RFC 5681, section 3.2).
const DUPLICATES: u32 = 3;
/// What was sent at one moment and comes over so long a time has waited in a queue, in nanoseconds.
const BURST: u64 = 20_000_000;
/// A sender that repeats itself without an answer for so long stands still, in nanoseconds, however little of
/// it was lost.
const STANDS_STILL: u64 = 3_000_000_000;
/// For so long after a silence its consequences are looked for, in nanoseconds.
const AFTERMATH: u64 = 60_000_000_000;

/// Where in a table the signs of a direction are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignsOf {
    /// From the one host to the other.
    pub(crate) hosts: usize,
    /// From the neighbourhood of the one host.
    pub(crate) subnet: usize,
    /// To the other host.
    pub(crate) host: usize,
    /// Into the interface, or out of it.
    pub(crate) interface: Option<usize>,
}

impl SignsOf {
    /// All places.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> + use<> {
        let three = [self.hosts, self.subnet, self.host];
        three.into_iter().chain(self.interface)
    }
}

/// A connection.
#[derive(Clone, Debug)]
pub(crate) struct Connection {
    pub(crate) flow: FlowId,
    pub(crate) point: u32,
    /// What the source sent, and what the destination sent.
    pub(crate) halves: [Half; 2],
    pub(crate) signs: [SignsOf; 2],
    is_established: bool,
    pub(crate) is_over: bool,
    finished: [bool; 2],
    aftermath: Option<Aftermath>,
    doubt: Option<Doubt>,
    skipped: Option<Skipped>,
    lacks_direction: bool,
}

/// A silence after which a host skipped data: lost on its way, or by the capture alone.
#[derive(Clone, Copy, Debug)]
struct Skipped {
    /// Number of the silence.
    number: usize,
    /// Whose: which half.
    silent: usize,
}

/// What would show that answers which are taken for lost only came late.
#[derive(Clone, Copy, Debug)]
struct Doubt {
    /// Which silence rests on them.
    number: usize,
    /// Who was silent, and echoes them if they came: which half.
    silent: usize,
    /// The timestamp that its first segment after the silence echoed.
    echoed: u32,
    /// That of the last answer before.
    newest: u32,
}

/// What is looked for after a silence.
#[derive(Clone, Copy, Debug)]
struct Aftermath {
    /// Number of the silence.
    number: usize,
    since: Instant,
    /// Who had data to send: which half.
    sender: usize,
    /// The silence is over for good when this is acknowledged.
    until: SeqNumber,
    /// What the peer had acknowledged when it was heard again.
    first_ack: SeqNumber,
    /// Whether what the sender sent was captured before it was lost.
    sees_sender: bool,
    old_timestamps: u32,
    /// True if the sender sent new data instead of what was lost.
    went_on: bool,
    /// True if it repeated something.
    has_repeated: bool,
}

impl Aftermath {
    /// True if `segment` of the `sender` repeats something, rather than being new data that comes as late.
    fn is_again(&self, segment: &Segment<'_>, sender: &Half) -> bool {
        // That the receiver lacks something shows by what is beyond.
        let is_lacking = sender.snd_nxt.is_some_and(|nxt| nxt.after(self.first_ack));
        let keeps_alive = segment.payload_len <= 1 && segment.tcp.seq + 1 == self.first_ack;
        !keeps_alive && segment.tcp.seq.before(self.first_ack) || is_lacking
    }

    /// Event that the connection waited for.
    ///
    /// That the receiver went on lacking what it was sent shows that it had dropped it; that the sender went
    /// on with new data, that it took its timeout for spurious.
    const fn cause(&self) -> Cause {
        match (self.old_timestamps, self.went_on) {
            (0, true) => Cause::SpuriousTimeout,
            (0, false) => Cause::BackOff,
            _ => Cause::OldTimestamps,
        }
    }
}

/// What a packet shows beyond itself.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// Nothing.
    Nothing,
    /// A silence is over.
    Silence(Box<Silence>, After),
    /// An earlier silence had consequences: from `at` on the connection went on, because of `cause`.
    Later {
        number: usize,
        at: Instant,
        cause: Cause,
    },
    /// After silence `number` its sender repeated something: some of it was lost.
    Repeated { number: usize },
    /// Silence `number` is none: what seemed lost came late.
    Refuted {
        number: usize,
        /// True if the capture lacks what seemed lost.
        is_lack: bool,
    },
}

/// How to look for the consequences of a silence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct After {
    sender: usize,
    sees_sender: bool,
    /// True if the sender went on behind data that was not seen.
    skips: bool,
}

impl Connection {
    pub(crate) fn new(flow: FlowId, point: u32, signs: [SignsOf; 2]) -> Self {
        Self {
            flow,
            point,
            halves: [Half::default(), Half::default()],
            signs,
            is_established: false,
            is_over: false,
            finished: [false; 2],
            aftermath: None,
            doubt: None,
            skipped: None,
            lacks_direction: false,
        }
    }

    /// The line in which it waits to be forgotten when room is needed.
    pub(crate) fn line(&self) -> Line {
        let is_heard = self.halves.iter().all(|half| half.last.is_some());
        let has_data = self.halves.iter().any(Half::has_sent_data);
        let may_tell = self.aftermath.is_some() || self.doubt.is_some() || self.skipped.is_some();
        if !is_heard || !has_data {
            Line::Opening
        } else if may_tell || !self.all_is_acknowledged() {
            Line::Running
        } else if self.halves.iter().any(may_have_more) {
            Line::Settled
        } else {
            Line::Calm
        }
    }

    fn all_is_acknowledged(&self) -> bool {
        (0..2).all(|half| !self.halves[half].is_outstanding(self.halves[1 - half].ack))
    }

    /// Notes `segment` of the host of half `from`.
    pub(crate) fn handle(&mut self, from: usize, segment: &Segment<'_>) -> (Shown, Signature) {
        let to = 1 - from;
        let lacks = self.notice_lack(from, segment);
        let mut shown = match lacks {
            // The other host was heard by its peer, if not by the capture.
            true => self.refuted_by_lack(to),
            false => self.end_of_silence(from, segment),
        };
        if matches!(shown, Shown::Nothing) {
            shown = self.refutation(from, segment);
        }
        if matches!(shown, Shown::Nothing) {
            shown = self.consequence(from, segment);
        }
        let una = self.halves[to].ack;
        let in_aftermath = self
            .aftermath
            .is_some_and(|aftermath| aftermath.sender == from);
        let answers_probe = self.halves[to].probes > 0;
        let mut signature = self.halves[from].send(segment, una, in_aftermath);
        signature.is_duplicate_ack &= !answers_probe;
        signature.shows_lack = lacks;
        if signature.is_late {
            self.halves[to].heard_unseen = None;
        }
        self.halves[to].hear(segment);
        let flags = segment.tcp.flags;
        self.is_established |= flags.contains(TcpFlags::ACK) && !flags.contains(TcpFlags::SYN);
        self.finished[from] |= flags.contains(TcpFlags::FIN);
        self.is_over |= flags.contains(TcpFlags::RST)
            || self.finished == [true; 2] && self.all_is_acknowledged();
        (shown, signature)
    }

    /// Notes if `segment` shows that its host heard what the capture does not have.
    fn notice_lack(&mut self, from: usize, segment: &Segment<'_>) -> bool {
        let to = 1 - from;
        let flags = segment.tcp.flags;
        let lacks_data = flags.contains(TcpFlags::ACK)
            && !flags.contains(TcpFlags::RST)
            && self.halves[to].acknowledge(segment.tcp.ack);
        let lacks_direction =
            self.halves[to].last.is_none() && self.halves[from].follows_unseen_answer(segment);
        if lacks_data || lacks_direction {
            self.halves[from].heard_unseen = Some(segment.at);
        }
        self.lacks_direction |= lacks_direction;
        lacks_data
    }

    /// True if one host was never seen, although the other goes on as if it were answered.
    pub(crate) fn lacks_direction(&self) -> bool {
        self.lacks_direction && self.halves.iter().any(|half| half.last.is_none())
    }

    /// The latest silence of the host of half `silent`, if it rests on data that only the capture lacks.
    fn refuted_by_lack(&mut self, silent: usize) -> Shown {
        match self.skipped.take_if(|skipped| skipped.silent == silent) {
            Some(skipped) => Shown::Refuted {
                number: skipped.number,
                is_lack: true,
            },
            None => Shown::Nothing,
        }
    }

    /// Whether `segment` ends a silence of the host of half `from`.
    fn end_of_silence(&self, from: usize, segment: &Segment<'_>) -> Shown {
        let Some(last) = self.halves[from].last else {
            return self.end_of_opening(from, segment);
        };
        if segment.at.nanos_since(last) < SHORTEST_GAP {
            return Shown::Nothing;
        }
        let waiter = &self.halves[1 - from];
        if waiter.is_outstanding(self.halves[from].ack)
            && let Some(silence) = self.waiting_sender(1 - from, Some(segment), segment.at)
        {
            let after = After {
                sender: 1 - from,
                sees_sender: true,
                skips: false,
            };
            return Shown::Silence(Box::new(silence), after);
        }
        self.waiting_receiver(1 - from, segment, last)
    }

    /// Whether `segment` is the first answer to a SYN that was repeated.
    fn end_of_opening(&self, from: usize, segment: &Segment<'_>) -> Shown {
        match self.waiting_sender(1 - from, Some(segment), segment.at) {
            Some(silence) => Shown::Silence(
                Box::new(silence),
                After {
                    sender: 1 - from,
                    sees_sender: true,
                    skips: false,
                },
            ),
            None => Shown::Nothing,
        }
    }

    /// The silence in which the host of half `waiting` sent and was not answered until `now`, when
    /// `answer` came, if one came.
    pub(crate) fn waiting_sender(
        &self,
        waiting: usize,
        answer: Option<&Segment<'_>>,
        now: Instant,
    ) -> Option<Silence> {
        let (waiter, silent) = (&self.halves[waiting], &self.halves[1 - waiting]);
        let trip = waiter.round_trip.unwrap_or(0);
        let last = silent.last;
        let usual = waiter.usual_round_trip().max(trip);
        let echo = answer.and_then(Segment::echo);
        let (run, answered) = Self::run(waiter, silent, answer, now);
        let (first, last_unanswered) = run.span?;
        // Of a long stream the first are no longer remembered one by one.
        let first = match waiter.asked.filter(|_| waiter.bins.is_full()) {
            Some(asked) => first.min(asked),
            None => first,
        };
        if run.was_answered(waiter, last, answer) {
            return None;
        }
        let quiet = now.nanos_since(last.unwrap_or(first).max(first));
        // An answer to the first transmission: nothing was lost, and a queue that fills up delays as much.
        let is_late = matches!((echo, run.newest), (Some(a), Some(b)) if is_newer(b, a));
        // An answer a round trip after a repetition is an answer to it: to one that was received before,
        // receivers echo an older timestamp.
        let is_prompt = answered
            .is_some_and(|bin| now.nanos_since(bin.last) <= trip.saturating_mul(5) / 4 + PROMPT);
        // To a stream of new data it may be late all the same: a host that stood still answers all of it at once.
        let is_repetition = answered.is_some_and(|bin| bin.kind.is_repeated());
        let is_prompt = is_prompt && (is_repetition || quiet >= SHORTEST_TIMEOUT);
        if is_late && !is_prompt && quiet < LATE_ANSWER.max(usual.saturating_mul(4)) {
            return None;
        }
        let own = run.repeated + u32::from(answered.is_some_and(|bin| bin.kind.is_repeated()));
        let others = waiter.losses.saturating_sub(u64::from(own));
        let is_evidence = is_more_than_loss(run.unanswered, waiter.sent, others);
        if !run.is_silence(quiet, usual, trip) || !is_evidence && quiet < SHORTEST_TIMEOUT {
            return None;
        }
        let (start_earliest, start, start_latest) = start_of(last, first, trip);
        let end = answer.map(|_| back(now, trip / 2));
        let noticed = answered.map(|bin| bin.last).or(end);
        Some(Silence {
            flow: self.flow,
            point: self.point,
            waiting: self.host(waiting),
            silent: self.host(1 - waiting),
            start,
            start_earliest,
            start_latest,
            late: run.late,
            end_earliest: last_unanswered.max(start),
            end,
            noticed,
            cause: self.cause(waiting, answered, &run, usual),
            round_trip: waiter.round_trip,
            unanswered: run.unanswered,
            is_repeated: run.repeated > 0 || is_repetition,
            stood_still: run.repeated >= 2 && quiet >= STANDS_STILL,
            scope: Scope::Hosts(self.host(waiting), self.host(1 - waiting)),
            sees_sender: true,
            is_evidence,
            is_witnessed: false,
            is_refuted: false,
        })
    }

    /// The transmissions of `waiter` that `silent` has left unanswered until `now`, when `answer` came, if one
    /// came, and what of them was answered.
    fn run(
        waiter: &Half,
        silent: &Half,
        answer: Option<&Segment<'_>>,
        now: Instant,
    ) -> (Run, Option<Bin>) {
        let trip = waiter.round_trip.unwrap_or(0);
        // Before the first answer nothing is known of the path but that the SYN was sent.
        let asked_since = silent.last.map_or(Instant::ZERO, |last| back(last, trip));
        // What was sent less than a round trip ago may be what is answered.
        let answered_since = match answer {
            Some(_) => back(now, trip - trip / 10),
            None => now,
        };
        let within = (asked_since, answered_since);
        let echoes = (silent.echo, answer.and_then(Segment::echo));
        Run::of(waiter, within, echoes, answer.map(|_| now))
    }

    /// What the sender of half `waiting` waited for until it sent what was `answered`, after what was
    /// not: `run`. A round trip usually takes `usual` nanoseconds.
    fn cause(&self, waiting: usize, answered: Option<Bin>, run: &Run, usual: u64) -> Cause {
        let repeated = run.repeated;
        let pause = |bin: Bin| run.span.map_or(0, |(_, last)| bin.first.nanos_since(last));
        let goes_on = |bin: Bin| bin.kind == Kind::New && pause(bin) <= usual.saturating_mul(3) / 2;
        match answered {
            // The sender never stopped.
            Some(bin) if repeated == 0 && goes_on(bin) => Cause::Path,
            _ if !self.is_established => Cause::Handshake,
            _ if self.halves[1 - waiting].window_is_closed => Cause::ClosedWindow,
            Some(bin) => match bin.kind {
                Kind::Newest => Cause::LossTimer,
                // A tail-loss probe may be new data, but it comes before any repetition.
                Kind::New if repeated == 0 && !run.was_short => Cause::LossTimer,
                // After a timeout no new data is sent before an answer came.
                Kind::New => Cause::ApplicationIdle,
                _ => Cause::BackOff,
            },
            None => Cause::BackOff,
        }
    }

    /// Whether the host of half `waiting`, which receives, had not been heard before `segment` came.
    fn waiting_receiver(&self, waiting: usize, segment: &Segment<'_>, last: Instant) -> Shown {
        let (waiter, silent) = (&self.halves[waiting], &self.halves[1 - waiting]);
        let (Some(rcv_nxt), Some(_)) = (waiter.ack, silent.snd_nxt) else {
            return Shown::Nothing;
        };
        let is_probe = segment.payload_len <= 1 && segment.tcp.seq + 1 == rcv_nxt;
        if segment.len() == 0 || is_probe || waiter.heard_unseen.is_some_and(|at| at >= last) {
            return Shown::Nothing;
        }
        let trip = waiter.round_trip.unwrap_or(0);
        let now = segment.at;
        let gap = now.nanos_since(last);
        let lost_answers = lost_answers(waiter, segment, rcv_nxt);
        let lost_data = silent.lost_before(segment, rcv_nxt);
        let usual = waiter.usual_round_trip().max(trip);
        // A slow link delivers at such intervals all the time.
        let is_long = gap >= (usual.saturating_mul(3) / 2).max(silent.interval.saturating_mul(3));
        let answers_show =
            is_more_than_loss(lost_answers, waiter.sent + silent.sent, silent.losses);
        let is_enough = lost_data >= STREAM || lost_data >= FEW && gap >= LONG_PAUSE;
        let data_shows = is_enough
            && gap >= (usual.saturating_mul(5) / 2).max(SHORTEST_GAP)
            && is_more_than_loss(lost_data, silent.sent, silent.losses);
        if !is_long || !(answers_show || data_shows) {
            return Shown::Nothing;
        }
        let half = trip / 2;
        // Each timeout is twice the one before: the last but one was in the middle.
        let end_earliest = last.after_nanos(gap.saturating_sub(FIRST_TIMEOUT) / 2);
        // As many packets are missing as the sender would have sent meanwhile: it never stopped.
        let missing = lost_data.max(silent.not_seen_before(segment));
        let is_stream = u64::from(missing).saturating_mul(silent.interval) >= gap / 2;
        let cause = match cause_at_receiver(segment, rcv_nxt, waiter.window_is_closed) {
            Cause::LossTimer if is_stream => Cause::Path,
            cause => cause,
        };
        let silence = Silence {
            flow: self.flow,
            point: self.point,
            waiting: self.host(waiting),
            silent: self.host(1 - waiting),
            start: back(last, half),
            start_earliest: back(last, trip),
            start_latest: last,
            late: [None; LATE],
            end_earliest,
            end: Some(back(now, half)),
            noticed: Some(back(now, half)),
            cause,
            round_trip: waiter.round_trip,
            unanswered: lost_answers.max(lost_data),
            is_repeated: silent
                .snd_nxt
                .is_some_and(|nxt| segment.tcp.seq.before(nxt)),
            stood_still: false,
            scope: Scope::Hosts(self.host(waiting), self.host(1 - waiting)),
            sees_sender: false,
            is_evidence: answers_show || !is_one_flight(waiter, silent, segment, gap),
            is_witnessed: false,
            is_refuted: false,
        };
        let after = After {
            sender: 1 - waiting,
            sees_sender: false,
            skips: silent.snd_nxt.is_some_and(|nxt| segment.tcp.seq.after(nxt)),
        };
        Shown::Silence(Box::new(silence), after)
    }

    /// Looks from now on for the consequences of silence `number`, which `segment` ended.
    pub(crate) fn look_after(&mut self, number: usize, after: After, now: Instant) {
        let receiver = &self.halves[1 - after.sender];
        let sender = &self.halves[after.sender];
        let (Some(first_ack), Some(until)) = (receiver.ack, sender.snd_nxt) else {
            return;
        };
        let skips = !after.sees_sender && after.skips;
        self.skipped = skips.then_some(Skipped {
            number,
            silent: after.sender,
        });
        self.doubt = match (after.sees_sender, sender.echo, receiver.newest_timestamp) {
            (false, Some(echoed), Some(newest)) => Some(Doubt {
                number,
                silent: after.sender,
                echoed,
                newest,
            }),
            _ => None,
        };
        self.aftermath = Some(Aftermath {
            number,
            since: now,
            sender: after.sender,
            until,
            first_ack,
            sees_sender: after.sees_sender,
            old_timestamps: u32::from(sender.is_behind),
            went_on: after.skips,
            has_repeated: false,
        });
    }

    /// Whether `segment` echoes an answer that an earlier silence takes for lost.
    fn refutation(&mut self, from: usize, segment: &Segment<'_>) -> Shown {
        let Some(doubt) = self.doubt.filter(|doubt| doubt.silent == from) else {
            return Shown::Nothing;
        };
        let Some(echo) = segment.echo().filter(|echo| is_newer(*echo, doubt.echoed)) else {
            return Shown::Nothing;
        };
        self.doubt = None;
        if is_newer(echo, doubt.newest) {
            return Shown::Nothing;
        }
        if self
            .aftermath
            .is_some_and(|aftermath| aftermath.number == doubt.number)
        {
            self.aftermath = None;
        }
        Shown::Refuted {
            number: doubt.number,
            is_lack: false,
        }
    }

    /// Whether `segment` is a consequence of an earlier silence.
    fn consequence(&mut self, from: usize, segment: &Segment<'_>) -> Shown {
        let Some(aftermath) = &mut self.aftermath else {
            return Shown::Nothing;
        };
        let receiver = &self.halves[1 - aftermath.sender];
        let sender = &self.halves[aftermath.sender];
        let is_stuck = receiver.ack == Some(aftermath.first_ack);
        let is_over = match aftermath.sees_sender {
            true => receiver
                .ack
                .is_some_and(|ack| ack.at_or_after(aftermath.until)),
            false => !is_stuck,
        };
        if is_over || segment.at.nanos_since(aftermath.since) > AFTERMATH {
            self.aftermath = None;
            return Shown::Nothing;
        }
        let is_data = from == aftermath.sender && segment.len() > 0;
        let repeats = is_data
            && sender
                .snd_nxt
                .is_some_and(|nxt| segment.end().at_or_before(nxt));
        let shown = match repeats && !aftermath.has_repeated {
            true => Shown::Repeated {
                number: aftermath.number,
            },
            false => Shown::Nothing,
        };
        aftermath.has_repeated |= repeats;
        if !is_data || !is_stuck {
            return shown;
        }
        let stamp = segment.tcp.options.timestamps.map(|stamps| stamps.value);
        let is_behind =
            matches!((stamp, sender.newest_timestamp), (Some(a), Some(b)) if is_newer(b, a));
        let trip = sender
            .round_trip
            .unwrap_or(0)
            .max(receiver.round_trip.unwrap_or(0));
        let pause = segment.at.nanos_since(aftermath.since);
        let is_oldest = segment.tcp.seq.at_or_before(aftermath.first_ack);
        let is_again = aftermath.is_again(segment, sender);
        if is_oldest && is_again && pause >= SHORTEST_TIMEOUT.max(trip.saturating_mul(2)) {
            let number = aftermath.number;
            let way = match aftermath.sees_sender {
                true => 0,
                false => receiver.round_trip.unwrap_or(0) / 2,
            };
            let cause = aftermath.cause();
            match is_behind {
                true => aftermath.old_timestamps += 1,
                false => self.aftermath = None,
            }
            return Shown::Later {
                number,
                at: back(segment.at, way),
                cause,
            };
        }
        aftermath.old_timestamps += u32::from(is_behind && is_oldest);
        aftermath.went_on |= sender.snd_nxt.is_some_and(|nxt| segment.end().after(nxt));
        shown
    }

    pub(crate) fn host(&self, half: usize) -> core::net::IpAddr {
        match half {
            0 => self.flow.source.ip(),
            _ => self.flow.destination.ip(),
        }
    }
}

/// Transmissions that were not answered, in a row.
#[derive(Default)]
struct Run {
    unanswered: u32,
    /// How many of them were sent once more.
    repeated: u32,
    span: Option<(Instant, Instant)>,
    /// The last ones.
    late: [Option<Instant>; LATE],
    /// The timestamp of the last.
    newest: Option<u32>,
    /// Behind the newest data among them.
    end: Option<SeqNumber>,
    /// Whether the last new data before what was answered was less than a full segment.
    was_short: bool,
}

impl Run {
    /// What `waiter` sent after the first of these times and was not answered, and what of it was
    /// answered `now`, if something was. What was sent after the second may be answered yet. `echoed`
    /// is the last timestamp that the peer echoed before, `echo` that of the answer.
    fn of(
        waiter: &Half,
        (asked_since, answered_since): (Instant, Instant),
        (echoed, echo): (Option<u32>, Option<u32>),
        now: Option<Instant>,
    ) -> (Self, Option<Bin>) {
        let mut run = Self::default();
        let mut answered: Option<Bin> = None;
        // Alone in its bin, so that its timestamp tells whether it was received.
        let was_answered = |bin: &Bin| {
            let stamps = (bin.timestamp, echoed);
            bin.count == 1 && matches!(stamps, (Some(a), Some(b)) if !is_newer(a, b))
        };
        let asked =
            |bin: &&Bin| bin.kind.wants_answer() && bin.last > asked_since && !was_answered(bin);
        // The newest of all came late, but it came, and with it what was sent at the same time.
        let newest = waiter.bins.iter().rev().find(|bin| bin.kind.wants_answer());
        let late_echo = echo.filter(|_| newest.and_then(|bin| bin.timestamp) == echo);
        let is_echoed = |bin: &Bin| late_echo.is_some() && bin.timestamp == late_echo;
        for bin in waiter.bins.iter().filter(asked) {
            if now.is_some() && bin.first > answered_since {
                continue;
            }
            if let Some(earlier) = answered.replace(*bin)
                && !is_echoed(&earlier)
            {
                run.add(&earlier);
            }
        }
        // The last of them is what was answered, unless it is older than any round trip.
        let usual = waiter.usual_round_trip();
        let patience = usual.saturating_mul(2).max(SHORTEST_GAP);
        let is_old = |bin: &Bin| now.is_none_or(|now| now.nanos_since(bin.last) > patience);
        let is_lost = |bin: &Bin| is_old(bin) && !is_echoed(bin);
        if let Some(bin) = answered.take_if(|bin| is_lost(bin)) {
            run.add(&bin);
        }
        (run, answered)
    }

    /// True if the transmissions of `waiter` may have been answered after all: by what only the capture
    /// lacks, or late by `answer`. Its peer was seen `last`.
    fn was_answered(
        &self,
        waiter: &Half,
        last: Option<Instant>,
        answer: Option<&Segment<'_>>,
    ) -> bool {
        let began = last.or(self.span.map(|(first, _)| first));
        let was_heard =
            matches!((waiter.heard_unseen, began), (Some(heard), Some(began)) if heard >= began);
        // Nothing had to be repeated.
        let has_all = answer.is_some_and(|answer| {
            answer.tcp.has(TcpFlags::ACK)
                && self.end.is_some_and(|end| answer.tcp.ack.at_or_after(end))
        });
        was_heard || self.repeated == 0 && (last.is_none() || has_all)
    }

    /// Whether nothing is heard for long enough, `quiet` nanoseconds, where a round trip usually takes
    /// `usual` nanoseconds and at least `trip`.
    fn is_silence(&self, quiet: u64, usual: u64, trip: u64) -> bool {
        let Some((first, last)) = self.span else {
            return false;
        };
        let late = usual.saturating_mul(3) / 2;
        let repeats = self.repeated >= 1 && quiet > late.max(SHORTEST_GAP);
        let stream = self.unanswered >= STREAM
            && last.nanos_since(first) >= (trip / 2).max(20_000_000)
            && quiet >= late.max(SHORTEST_GAP);
        repeats || stream
    }

    fn add(&mut self, bin: &Bin) {
        self.unanswered = self.unanswered.saturating_add(bin.count);
        self.repeated += u32::from(bin.kind.is_repeated());
        let first = self.span.map_or(bin.first, |(first, _)| first);
        self.span = Some((first, bin.last));
        self.late.rotate_left(1);
        self.late[LATE - 1] = Some(bin.last);
        self.newest = bin.timestamp;
        self.end = Some(self.end.map_or(bin.end, |end| end.max(bin.end)));
        if bin.kind == Kind::New {
            self.was_short = bin.is_short;
        }
    }
}

/// How many answers of `waiter` its peer does not know when it sends `segment`; all before `rcv_nxt` was
/// acknowledged.
fn lost_answers(waiter: &Half, segment: &Segment<'_>, rcv_nxt: SeqNumber) -> u32 {
    let was_received = segment.tcp.seq.before(rcv_nxt);
    let echo = segment.echo();
    let has_all = waiter
        .snd_nxt
        .is_some_and(|nxt| segment.tcp.ack.at_or_after(nxt));
    let due = back(segment.at, waiter.usual_echo().max(SHORTEST_GAP / 2));
    let is_lost = |bin: &&Bin| {
        let is_older = match (bin.timestamp, echo) {
            (Some(stamp), Some(echo)) => is_newer(stamp, echo),
            _ => was_received && bin.ack.after(segment.tcp.seq),
        };
        // The echo says nothing of data that fill a gap (RFC 7323, section 4.3).
        let is_acknowledged = bin.kind.wants_answer() && has_all;
        bin.last < due && is_older && !is_acknowledged
    };
    waiter
        .bins
        .iter()
        .filter(is_lost)
        .map(|bin| bin.count)
        .sum()
}

/// Whether a queue that was full explains as well what `silent` lost before `segment`, after a silence of `gap`
/// nanoseconds.
///
/// All answers came: what was lost may be the end of a flight, and the pause one timeout. So it is if the answers said
/// that something is lacking, or the last packets came from a queue.
fn is_one_flight(waiter: &Half, silent: &Half, segment: &Segment<'_>, gap: u64) -> bool {
    let echo = segment.echo();
    let answers_came = echo.is_some() && echo == waiter.newest_timestamp;
    let is_known_loss = waiter.duplicate_acks >= DUPLICATES || silent.queued() >= BURST;
    answers_came && (is_known_loss || gap < LONG_PAUSE)
}

/// When a path went silent at the earliest, most likely and at the latest, from which `last` was the
/// last sign, and `first` was sent first of what was not answered.
fn start_of(last: Option<Instant>, first: Instant, trip: u64) -> (Instant, Instant, Instant) {
    let half = trip / 2;
    match last {
        Some(last) if first <= last => (back(last, trip), back(last, half), last),
        Some(last) => (back(last, half), first, first.after_nanos(half)),
        None => (first, first, first.after_nanos(half)),
    }
}

/// What the far sender of `segment` waited for, as far as its receiver's end shows it.
fn cause_at_receiver(segment: &Segment<'_>, rcv_nxt: SeqNumber, window_is_closed: bool) -> Cause {
    if segment.tcp.has(TcpFlags::SYN) {
        Cause::Handshake
    } else if window_is_closed {
        Cause::ClosedWindow
    } else if segment.tcp.seq.after(rcv_nxt) {
        Cause::LossTimer
    } else {
        Cause::BackOff
    }
}

/// The instant `nanos` before `at`.
pub(crate) const fn back(at: Instant, nanos: u64) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(nanos))
}

/// Packets of a host that make its connection more than one of a flood's.
const MANY_PACKETS: u64 = 8;

/// True if the host lost something or sent much: an outage that its receiver sees leaves nothing outstanding.
const fn may_have_more(half: &Half) -> bool {
    half.losses > 0 || half.sent > MANY_PACKETS
}
