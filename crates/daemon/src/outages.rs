//! Outages of links, and what the gateway saved at the end of each: the records behind `outlast status`, the log's line of
//! an outage, and the metrics.
//!
//! A record begins when a link goes down. [`SETTLING`] after its return it is closed: connections that have not moved by then
//! count as not helped. What each connection would have waited is the [model of its sender's timer](sender_timer).
//!
//! Nothing here is done for a packet: a record changes with a link, and with a connection that resumes.

mod journal;

use super::Daemon;
use super::status::Saved;
use journal::Journal;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{Activity, FlowReport, Gateway};
use outlast_gateway::links::{Indicator, LinkEvent, LinkId, LinkState};
use outlast_gateway::sender_timer;
use outlast_gateway::tracking::{FlowKey, Phase};
use outlast_linux::clock;
use std::collections::{HashSet, VecDeque};

/// Outages that are remembered; the oldest goes first.
const REMEMBERED: usize = 64;
/// Connections of one outage that are named; of others only how many there are.
const NAMED: usize = 16;
/// Connections of which it is remembered until the record is closed that they resumed, or did not.
const KNOWN: usize = 1 << 16;
/// Silent links whose beginning is remembered.
const SUSPECTED: usize = 64;
/// Time after link-up in which connections are expected to move.
const SETTLING: Duration = Duration::from_secs(2);
/// The journal is written no more often.
const JOURNAL_PAUSE: Duration = Duration::from_secs(5);
/// A receiver that heard its far host so shortly before a silence may have been amid a download.
const AMID: Duration = Duration::from_millis(500);

/// The last outages.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// Those of an earlier daemon, the newest last, with its times.
    earlier: VecDeque<Saved>,
    journal: Option<Journal>,
    /// The journal lacks what was closed since it was written.
    is_behind: bool,
    /// The journal may be written from then on.
    may_write_at: Instant,
    /// The newest last.
    records: VecDeque<Outage>,
    /// Links that leave data unanswered, and since when.
    suspected: VecDeque<(LinkId, Instant)>,
}

/// One outage of one link.
#[derive(Clone, Debug)]
pub(super) struct Outage {
    pub(super) link: LinkId,
    pub(super) by: Indicator,
    pub(super) began: Instant,
    /// The wall clock's time then, since 1970: the host may be suspended later.
    pub(super) began_unix: Duration,
    pub(super) stage: Stage,
    /// Connections that resumed.
    pub(super) resumed: u64,
    /// The first of them.
    pub(super) named: Vec<Resumption>,
    /// Connections that resumed, as far as there is room, until the record is closed.
    moved: HashSet<FlowKey>,
    /// Connections that are counted as not helped, likewise.
    unhelped: HashSet<FlowKey>,
    /// The longest time from link-up that one of them took.
    pub(super) slowest: Duration,
    /// The longest time that one of them would have taken by itself, about; zero if that is not known.
    pub(super) without: Duration,
    /// Time that was saved for all of them, about.
    pub(super) saved: Duration,
    /// Connections that did not resume.
    pub(super) not_helped: u64,
    /// The first of them, and why.
    pub(super) left: Vec<(FlowKey, Reason)>,
}

/// Progress of an outage.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Stage {
    /// The link is down.
    Down,
    /// The link has just come back, and nobody has looked yet who was left out by a silence.
    Back(Instant),
    /// Connections resume.
    Settling(Instant),
    /// The record is closed; the link came back then.
    Over(Instant),
}

/// A connection that resumed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resumption {
    pub(super) flow: FlowKey,
    /// From link-up until new bytes were acknowledged.
    pub(super) after: Duration,
    /// Time from link-up until new bytes would have been acknowledged without the gateway, about; `None` if the outage's length is not known.
    pub(super) without: Option<Duration>,
}

/// Cause for which a connection was not helped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Reason {
    /// It was sent what it had lost, and its far host is silent.
    Unanswered,
    /// Others came first.
    Waiting,
    /// It may have been amid a download when the link fell silent.
    SilentDownload,
}

impl Reason {
    pub(super) const fn to_text(self) -> &'static str {
        match self {
            Self::Unanswered => {
                "what was kept has been sent again, and its far host does not answer"
            }
            Self::Waiting => "its turn on the link had not come two seconds after link-up",
            Self::SilentDownload => {
                "silent outage: if this was a download, nothing here can know; run outlast at the \
                 sender's end, too"
            }
        }
    }
}

impl Outages {
    /// The outages of a daemon that begins, after those that an earlier one has written down.
    pub(super) fn open(interface: &str) -> Self {
        let journal = Journal::of(interface);
        Self {
            earlier: journal.as_ref().map_or_else(VecDeque::new, Journal::read),
            journal,
            ..Self::default()
        }
    }

    /// A link leaves data unanswered: if its silence is found to be an outage, that began then. The newest word counts: an
    /// earlier suspicion was dropped.
    pub(super) fn note_silent(&mut self, link: LinkId, since: Instant) {
        self.suspected.retain(|(known, _)| *known != link);
        if self.suspected.len() == SUSPECTED {
            self.suspected.pop_front();
        }
        self.suspected.push_back((link, since));
    }

    /// A link has changed its state; `unix_offset` is the wall clock's time at [`Instant::ZERO`].
    pub(super) fn note_link(&mut self, now: Instant, unix_offset: Duration, event: &LinkEvent) {
        let mut suspected = self.suspected.iter();
        let since = suspected.find(|(link, _)| *link == event.link).copied();
        self.suspected.retain(|(link, _)| !event.link.covers(*link));
        let open = self
            .records
            .iter_mut()
            .rev()
            .find(|one| one.link == event.link);
        match (event.state, open) {
            (LinkState::Down, Some(open)) if open.stage == Stage::Down => {}
            (LinkState::Down, _) => {
                // A silence is told late, and others speak when they see something.
                let since = since.filter(|_| event.indicator == Indicator::Silence);
                let began = since.map_or(now, |(_, since)| since.min(now));
                let began_unix = unix_offset + began.since(Instant::ZERO);
                let link = (event.link, event.indicator);
                self.begin(Outage::new(link, began, began_unix));
            }
            (LinkState::Up, Some(open)) if open.stage == Stage::Down => {
                open.stage = Stage::Back(now);
            }
            (LinkState::Up, _) => {}
        }
    }

    fn begin(&mut self, outage: Outage) {
        if self.records.len() == REMEMBERED {
            let closed = |one: &Outage| matches!(one.stage, Stage::Over(_));
            let oldest_closed = self.records.iter().position(closed);
            if oldest_closed.is_none() {
                tracing::warn!(
                    "more than {REMEMBERED} links are away at once: the record of the oldest outage is given up"
                );
            }
            self.records.remove(oldest_closed.unwrap_or(0));
        }
        while self.earlier.len() + self.records.len() >= REMEMBERED && !self.earlier.is_empty() {
            self.earlier.pop_front();
        }
        self.records.push_back(outage);
    }

    /// A connection on `link` has resumed.
    pub(super) fn note_resumed(
        &mut self,
        flow: FlowKey,
        link: LinkId,
        after: Duration,
        round_trip: Option<Duration>,
    ) {
        let mut newest = self.records.iter_mut().rev();
        if let Some(outage) = newest.find(|one| one.link.covers(link) && one.stage != Stage::Down) {
            outage.note_resumed(flow, after, round_trip);
        }
    }

    /// All that is known of each, the newest last; `unix_offset` is the wall clock's time at [`Instant::ZERO`].
    pub(super) fn told(&self, now: Instant, unix_offset: Duration) -> impl Iterator<Item = Saved> {
        let earlier = self.earlier.iter();
        let earlier = earlier.map(move |saved| saved.at(now, unix_offset));
        let own = self.records.iter();
        earlier.chain(own.map(move |outage| Saved::of(now, outage)))
    }

    /// Writes down what is closed, if that is due.
    fn keep(&mut self, now: Instant, unix_offset: Duration) {
        if !self.is_behind || now < self.may_write_at {
            return;
        }
        self.is_behind = false;
        let Some(mut journal) = self.journal.take() else {
            return;
        };
        self.may_write_at = now + JOURNAL_PAUSE;
        let closed: Vec<Saved> = self.told(now, unix_offset).filter(Saved::is_over).collect();
        journal.write(closed.iter());
        self.journal = Some(journal);
    }

    /// Time at which [`Daemon::account_outages`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let records = self.records.iter().filter_map(Outage::due);
        let journal = self.is_behind.then_some(self.may_write_at);
        records.chain(journal).min()
    }

    /// Does what is due by `now`. Calls `closed` with each record that is closed.
    fn handle_timeout(&mut self, now: Instant, gateway: &Gateway, mut closed: impl FnMut(&Outage)) {
        for outage in &mut self.records {
            if outage.due().is_some_and(|at| at <= now) && outage.advance(now, gateway) {
                closed(outage);
                self.is_behind = true;
            }
        }
    }
}

impl Outage {
    fn new((link, by): (LinkId, Indicator), began: Instant, began_unix: Duration) -> Self {
        Self {
            link,
            by,
            began,
            began_unix,
            stage: Stage::Down,
            resumed: 0,
            named: Vec::with_capacity(NAMED),
            moved: HashSet::new(),
            unhelped: HashSet::new(),
            slowest: Duration::ZERO,
            without: Duration::ZERO,
            saved: Duration::ZERO,
            not_helped: 0,
            left: Vec::new(),
        }
    }

    /// Time of the link's return; `None` while it is away.
    pub(super) const fn ended(&self) -> Option<Instant> {
        match self.stage {
            Stage::Down => None,
            Stage::Back(at) | Stage::Settling(at) | Stage::Over(at) => Some(at),
        }
    }

    /// Length of an outage that is over; `None` if nobody knows when it began.
    pub(super) fn length(&self) -> Option<Duration> {
        let length = self.ended()?.since(self.began);
        (length > Duration::ZERO).then_some(length)
    }

    fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Down | Stage::Over(_) => None,
            Stage::Back(at) => Some(at),
            Stage::Settling(at) => Some(at + SETTLING),
        }
    }

    /// Goes on to the next stage. Returns whether the record is closed by that.
    fn advance(&mut self, now: Instant, gateway: &Gateway) -> bool {
        match self.stage {
            Stage::Down | Stage::Over(_) => false,
            Stage::Back(at) => {
                if matches!(self.by, Indicator::Silence | Indicator::FirstPacket) {
                    self.leave(gateway, Self::left_by_silence);
                }
                self.stage = Stage::Settling(at);
                false
            }
            Stage::Settling(at) => {
                debug_assert!(at + SETTLING <= now, "it is due");
                // Of more than there was room for, nobody knows which have moved.
                if self.resumed <= KNOWN as u64 {
                    self.leave(gateway, |_, flow| left_waiting(flow));
                }
                self.moved = HashSet::new();
                self.unhelped = HashSet::new();
                self.stage = Stage::Over(at);
                true
            }
        }
    }

    /// Notes the connections that were not helped, for the reason that `why` gives.
    fn leave(&mut self, gateway: &Gateway, why: impl Fn(&Self, &FlowReport) -> Option<Reason>) {
        for flow in gateway.flow_reports_behind(self.link) {
            let Some(reason) = why(self, &flow) else {
                continue;
            };
            if self.moved.contains(&flow.key) || self.unhelped.contains(&flow.key) {
                continue;
            }
            self.not_helped += 1;
            if self.unhelped.len() < KNOWN {
                self.unhelped.insert(flow.key);
            }
            if self.left.len() < NAMED {
                self.left.push((flow.key, reason));
            }
        }
    }

    fn left_by_silence(&self, flow: &FlowReport) -> Option<Reason> {
        let was_amid = flow.last_packet + AMID >= self.began && flow.outstanding == 0;
        let is_quiet = self.ended().is_some_and(|at| flow.last_packet < at);
        (flow.phase == Phase::Established && was_amid && is_quiet).then_some(Reason::SilentDownload)
    }

    fn note_resumed(&mut self, flow: FlowKey, after: Duration, round_trip: Option<Duration>) {
        let without = self
            .length()
            .map(|away| sender_timer::wait_after(away, round_trip));
        let named = self.left.iter().position(|(left, _)| *left == flow);
        if let Some(place) = named {
            self.left.remove(place);
        }
        if self.unhelped.remove(&flow) || named.is_some() {
            self.not_helped = self.not_helped.saturating_sub(1);
        }
        self.resumed += 1;
        if self.moved.len() < KNOWN && !matches!(self.stage, Stage::Over(_)) {
            self.moved.insert(flow);
        }
        self.slowest = self.slowest.max(after);
        if let Some(without) = without {
            self.without = self.without.max(without);
            self.saved += without.saturating_sub(after);
        }
        if self.named.len() < NAMED {
            self.named.push(Resumption {
                flow,
                after,
                without,
            });
        }
    }
}

/// Cause for which a connection has not moved [`SETTLING`] after link-up.
fn left_waiting(flow: &FlowReport) -> Option<Reason> {
    match flow.activity {
        Activity::Awaiting if flow.outstanding > 0 => Some(Reason::Unanswered),
        Activity::Delivering => Some(Reason::Waiting),
        _ => None,
    }
}

impl Daemon {
    /// Closes the records of outages that are due, and tells of each in the log.
    pub(super) fn account_outages(&mut self, now: Instant) {
        let Self {
            outages,
            gateway,
            tally,
            ..
        } = self;
        if outages.poll_timeout().is_none_or(|at| at > now) {
            return;
        }
        let unix_offset = clock::unix_offset();
        outages.handle_timeout(now, gateway, |outage| {
            tally.note_outage(outage);
            let told = Saved::of(now, outage);
            tracing::info!(
                by = told.by,
                length_s = told.length_s,
                peer = outage.link.peer.map(tracing::field::display),
                resumed = told.resumed,
                not_helped = told.not_helped_in_all,
                saved_s = told.saved_s,
                "outage: {}",
                told.to_text()
            );
        });
        outages.keep(now, unix_offset);
    }
}

#[cfg(test)]
mod tests;
