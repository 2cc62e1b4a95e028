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
use std::collections::VecDeque;

/// Outages that are remembered; the oldest goes first.
const REMEMBERED: usize = 64;
/// Connections of one outage that are named; of others only how many there are.
const NAMED: usize = 16;
/// Connections that resumed of which the keys are kept until the record is closed.
const MOVED: usize = 1024;
/// Silent links whose beginning is remembered.
const SUSPECTED: usize = 64;
/// Time after link-up in which connections are expected to move.
const SETTLING: Duration = Duration::from_secs(2);
/// A receiver that heard its far host so shortly before a silence may have been amid a download.
const AMID: Duration = Duration::from_millis(500);

/// The last outages.
#[derive(Debug, Default)]
pub(super) struct Outages {
    /// Those of an earlier daemon, the newest last, with its times.
    earlier: VecDeque<Saved>,
    journal: Option<Journal>,
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
    pub(super) stage: Stage,
    /// Connections that resumed.
    pub(super) resumed: u64,
    /// The first of them.
    pub(super) named: Vec<Resumption>,
    /// Connections that resumed, as far as there is room, until the record is closed.
    moved: Vec<FlowKey>,
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
    /// The same time without the gateway, about; `None` if the outage's length is not known.
    pub(super) without: Option<Duration>,
}

/// Why a connection was not helped.
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
        let mut journal = Journal::of(interface);
        Self {
            earlier: journal.as_mut().map_or_else(VecDeque::new, Journal::read),
            journal,
            ..Self::default()
        }
    }

    /// A link leaves data unanswered: if it is found to be down, it has been so since then.
    pub(super) fn note_silent(&mut self, link: LinkId, since: Instant) {
        if self.suspected.iter().any(|(known, _)| *known == link) {
            return;
        }
        if self.suspected.len() == SUSPECTED {
            self.suspected.pop_front();
        }
        self.suspected.push_back((link, since));
    }

    /// A link has changed its state.
    pub(super) fn note_link(&mut self, now: Instant, event: &LinkEvent) {
        let place = self
            .suspected
            .iter()
            .position(|(link, _)| *link == event.link);
        let since = place.and_then(|place| self.suspected.remove(place));
        let open = self
            .records
            .iter_mut()
            .rev()
            .find(|one| one.link == event.link);
        match (event.state, open) {
            (LinkState::Down, Some(open)) if open.stage == Stage::Down => {}
            (LinkState::Down, _) => {
                // The carrier is lost when that is told; other indicators are late.
                let since = since.filter(|_| event.indicator != Indicator::Carrier);
                let began = since.map_or(now, |(_, since)| since.min(now));
                self.begin(Outage::new(event.link, event.indicator, began));
            }
            (LinkState::Up, Some(open)) if open.stage == Stage::Down => {
                open.stage = Stage::Back(now);
            }
            (LinkState::Up, _) => {}
        }
    }

    fn begin(&mut self, outage: Outage) {
        if self.records.len() == REMEMBERED {
            self.records.pop_front();
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
        if let Some(outage) = newest.find(|one| one.is_of(link) && one.stage != Stage::Down) {
            outage.note_resumed(flow, after, round_trip);
        }
    }

    /// All that is known of each, the newest last; `unix_offset` is the wall clock's time at [`Instant::ZERO`].
    pub(super) fn told(&self, now: Instant, unix_offset: Duration) -> impl Iterator<Item = Saved> {
        let earlier = self.earlier.iter();
        let earlier = earlier.map(move |saved| saved.at(now, unix_offset));
        let own = self.records.iter();
        earlier.chain(own.map(move |outage| Saved::of(now, unix_offset, outage)))
    }

    /// Writes down what is closed.
    fn keep(&mut self, now: Instant, unix_offset: Duration) {
        let Some(mut journal) = self.journal.take() else {
            return;
        };
        let closed: Vec<Saved> = self.told(now, unix_offset).filter(Saved::is_over).collect();
        journal.write(closed.iter());
        self.journal = Some(journal);
    }

    /// Time at which [`Daemon::account_outages`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.records.iter().filter_map(Outage::due).min()
    }

    /// Does what is due by `now`. Calls `closed` with each record that is closed.
    fn handle_timeout(&mut self, now: Instant, gateway: &Gateway, mut closed: impl FnMut(&Outage)) {
        for outage in &mut self.records {
            if outage.due().is_some_and(|at| at <= now) && outage.advance(now, gateway) {
                closed(outage);
            }
        }
    }
}

impl Outage {
    fn new(link: LinkId, by: Indicator, began: Instant) -> Self {
        Self {
            link,
            by,
            began,
            stage: Stage::Down,
            resumed: 0,
            named: Vec::with_capacity(NAMED),
            moved: Vec::with_capacity(NAMED),
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

    /// True for the connections of a peer also where the whole interface was away.
    fn is_of(&self, link: LinkId) -> bool {
        self.link == link || self.link == LinkId::of_interface(link.interface)
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
                if self.resumed <= MOVED as u64 {
                    self.leave(gateway, |_, flow| left_waiting(flow));
                }
                self.moved = Vec::new();
                self.stage = Stage::Over(at);
                true
            }
        }
    }

    /// Notes the connections that were not helped, for the reason that `why` gives.
    fn leave(&mut self, gateway: &Gateway, why: impl Fn(&Self, &FlowReport) -> Option<Reason>) {
        for flow in gateway.flow_reports() {
            if !self.is_of(flow.link) {
                continue;
            }
            // Few have a reason; only these are looked for among those that have moved.
            let reason = why(self, &flow);
            let Some(reason) = reason.filter(|_| !self.moved.contains(&flow.key)) else {
                continue;
            };
            self.not_helped += 1;
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
        if let Some(place) = self.left.iter().position(|(left, _)| *left == flow) {
            self.left.remove(place);
            self.not_helped = self.not_helped.saturating_sub(1);
        }
        self.resumed += 1;
        if self.moved.len() < MOVED && !matches!(self.stage, Stage::Over(_)) {
            self.moved.push(flow);
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

/// Why a connection has not moved by the time that it ought to have.
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
        let mut has_closed = false;
        outages.handle_timeout(now, gateway, |outage| {
            has_closed = true;
            tally.note_outage(outage);
            let told = Saved::of(now, unix_offset, outage);
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
        if has_closed {
            outages.keep(now, unix_offset);
        }
    }
}

#[cfg(test)]
mod tests;
