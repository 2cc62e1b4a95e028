//! The part of the data path that is in the kernel: connections are tracked and what goes towards
//! the link is recorded where the packets pass, in traffic control.

use super::diverted::Diverted;
use super::silent::{SilenceWatch, Silent};
use super::takeover::newest_from_link;
use crate::config::Settings;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::SilenceConfig;
use outlast_gateway::links::LinkId;
use outlast_gateway::tracking::{FlowKey, Phase, TcpFlow};
use outlast_linux::clock::Stopwatch;
use outlast_linux::netfilter::rules::AddressRange;
use outlast_linux::tracker::{
    TrackedFlow, Tracker, TrackerConfig, TrackerCounters, TrackerError, TrackerMemory,
};
use outlast_wire::Packet;
use rustix::fd::{AsFd, BorrowedFd};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// How soon after a change it is looked whether something is left to do for a link.
const FIRST_LOOK: Duration = Duration::from_millis(50);
/// The longest pause between two such looks as long as nothing changes.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// How long the rules stay after the last diversion has ended.
///
/// Packets on their way to the queue arrive there, and a link that flaps finds the rules in place.
const GRACE: Duration = Duration::from_secs(1);
/// How old the count of connections may be, at least; and as many times what counting takes.
const COUNT_IS_GOOD_FOR: Duration = Duration::from_secs(1);
const COUNT_SHARE: u32 = 100;
/// How long the far host of a one-sided connection may take to answer data.
///
/// After that the daemon looks whether the link is silent.
const ANSWERED_WITHIN: Duration = Duration::from_millis(500);
/// Most one-sided connections that wait for that look; the kernel suspects others anew.
const MOST_ONE_SIDED: usize = 1_024;
/// As many connections are listed at most.
const MOST_LISTED: usize = 1_000;

/// A connection in the kernel's table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    /// When a packet of it was noted last: one from its far host, one without payload towards it,
    /// or the first one towards it that is not answered.
    pub(crate) last_packet: Instant,
    pub(crate) key: FlowKey,
    pub(crate) tcp: TcpFlow,
}

impl Listed {
    fn of(key: FlowKey, flow: &TrackedFlow) -> Self {
        let newest = flow.newest_to_link.map(|newest| newest.at);
        let noted = [flow.heard_at, flow.owed_since, newest];
        Self {
            last_packet: noted.into_iter().flatten().fold(flow.opened_at, Ord::max),
            key,
            tcp: flow.tcp,
        }
    }

    fn rank(&self) -> (Instant, &FlowKey) {
        (self.last_packet, &self.key)
    }
}

impl PartialEq for Listed {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Listed {}

impl PartialOrd for Listed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Listed {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank())
    }
}

/// The programs in the kernel, and whose packets go through user space meanwhile.
#[derive(Debug)]
pub(crate) struct KernelPath {
    tracker: Tracker,
    /// What its tables take.
    pub(crate) memory: Option<TrackerMemory>,
    diverted: Diverted,
    /// The addresses in the rules in force; `None` if no rules are installed.
    ranges: Option<Vec<AddressRange>>,
    look_at: Option<Instant>,
    pause: Duration,
    /// When the rules, which match no packets, are removed.
    end_at: Option<Instant>,
    pub(crate) silence: SilenceWatch,
    /// Connections of which only the near host was heard, when their data passed, and when to look
    /// whether it was answered: the earliest first.
    one_sided: VecDeque<(Instant, Instant, FlowKey)>,
    counted: usize,
    recount_at: Instant,
    listed: Vec<Listed>,
    relist_at: Instant,
    pub(crate) diversions: u64,
}

impl KernelPath {
    /// Loads the programs, and attaches them if the interface is there.
    pub(super) fn open(settings: &Settings) -> Result<Self, TrackerError> {
        let flows = u32::try_from(settings.limits.flows).unwrap_or(u32::MAX);
        let slots = settings.recorder.0 / Tracker::SLOT.0;
        let mut tracker = Tracker::load(&TrackerConfig {
            flows,
            slots: u32::try_from(slots).unwrap_or(u32::MAX),
            mark: settings.mark,
            ..TrackerConfig::default()
        })?;
        match tracker.attach(&settings.interface) {
            // It may come later, as a modem's does.
            Ok(()) | Err(TrackerError::Interface(_)) => {}
            Err(error) => return Err(error),
        }
        // The tracker works without these numbers: only the status page lacks them.
        let memory = tracker.memory().ok();
        Ok(Self {
            tracker,
            memory,
            diverted: Diverted::Nobody,
            ranges: None,
            look_at: None,
            pause: FIRST_LOOK,
            end_at: None,
            silence: SilenceWatch::default(),
            one_sided: VecDeque::new(),
            counted: 0,
            recount_at: Instant::ZERO,
            listed: Vec::new(),
            relist_at: Instant::ZERO,
            diversions: 0,
        })
    }

    pub(super) fn describe(&self) -> String {
        let now = match &self.diverted {
            Diverted::Nobody => "packets stay in the kernel".to_owned(),
            Diverted::Peers(peers) if peers.len() == 1 => {
                "packets of one peer go through user space for now".to_owned()
            }
            Diverted::Peers(peers) => format!(
                "packets of {} peers go through user space for now",
                peers.len()
            ),
            Diverted::Everybody => "packets go through user space for now".to_owned(),
        };
        format!("eBPF: {now}")
    }

    pub(super) fn attach(&mut self, interface: &str) -> Result<(), TrackerError> {
        self.tracker.attach(interface)
    }

    pub(super) fn detach(&mut self) {
        self.tracker.detach();
    }

    pub(super) const fn tracker(&self) -> &Tracker {
        &self.tracker
    }

    /// Whose packets go through user space.
    pub(crate) const fn diverted(&self) -> &Diverted {
        &self.diverted
    }

    pub(super) fn is_in_force(&self, ranges: &[AddressRange]) -> bool {
        match &self.ranges {
            Some(now) => now == ranges,
            None => ranges.is_empty(),
        }
    }

    pub(super) fn note_ranges(&mut self, ranges: Vec<AddressRange>) {
        self.ranges = Some(ranges);
    }

    pub(super) fn note_diversion(&mut self, now: Instant, diverted: Diverted) {
        self.diversions +=
            u64::from(self.diverted == Diverted::Nobody && diverted != Diverted::Nobody);
        self.end_at = (diverted == Diverted::Nobody && self.ranges.is_some()).then(|| now + GRACE);
        self.diverted = diverted;
        self.look_soon(now);
    }

    pub(super) fn note_end(&mut self) {
        self.ranges = None;
        self.end_at = None;
    }

    /// Plans a look soon: something has changed, and perhaps nothing is left to do.
    pub(crate) fn look_soon(&mut self, now: Instant) {
        self.pause = FIRST_LOOK;
        self.look_at = (self.diverted != Diverted::Nobody).then(|| now + self.pause);
    }

    /// Doubles the pause before the next look: nothing has changed.
    pub(crate) fn look_later(&mut self, now: Instant) {
        self.pause = (2 * self.pause).min(LONGEST_PAUSE);
        self.look_at = Some(now + self.pause);
    }

    /// Whether it is time to look whether something is left to do for those whose packets go
    /// through user space.
    pub(crate) fn is_time_to_look(&self, now: Instant) -> bool {
        self.look_at.is_some_and(|at| at <= now)
    }

    /// Whether it is time to take the rules away.
    pub(crate) fn is_time_to_end(&self, now: Instant) -> bool {
        self.end_at.is_some_and(|at| at <= now)
    }

    /// When it is time for either.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let one_sided = self.one_sided.front().map(|(at, ..)| *at);
        let silence = self.silence.poll_timeout();
        let next = [self.look_at, self.end_at, one_sided, silence];
        next.into_iter().flatten().min()
    }

    /// A connection as the kernel knows it, if it is more than a beginning, and the last
    /// acknowledgement of its far host.
    pub(crate) fn proven_flow(&self, key: &FlowKey) -> Option<(TcpFlow, Option<Packet>)> {
        // A read error counts as an unknown connection.
        let flow = self.tracker.flow(key).ok().flatten()?;
        let is_proven = flow.is_proven && flow.tcp.phase == Phase::Established;
        is_proven.then(|| (flow.tcp, newest_from_link(&flow)))
    }

    /// The links that are silent by what the kernel has told; `link_of` gives the link of a connection, if it is of
    /// interest.
    pub(crate) fn find_silent(
        &mut self,
        now: Instant,
        config: &SilenceConfig,
        link_of: impl Fn(&FlowKey) -> Option<LinkId>,
    ) -> Vec<Silent> {
        while let Some(key) = self.tracker.poll_suspicion() {
            let flow = self.tracker.flow(&key).ok().flatten();
            match flow.and_then(|flow| Some((flow.is_proven, flow.owed_since?))) {
                Some((true, _)) => self.silence.note(now, key),
                Some((false, since)) => self.ask_later(now, key, since),
                None => {}
            }
        }
        self.silence.find(now, &self.tracker, config, link_of)
    }

    /// Plans a look whether the far host has answered the data that passed at `since`.
    pub(crate) fn ask_later(&mut self, now: Instant, key: FlowKey, since: Instant) {
        if self.one_sided.len() < MOST_ONE_SIDED {
            self.one_sided
                .push_back((now + ANSWERED_WITHIN, since, key));
        }
    }

    /// The next connection whose data, which passed then, was not answered in time: only its near host
    /// was heard.
    pub(crate) fn poll_one_sided(&mut self, now: Instant) -> Option<(FlowKey, Instant)> {
        while self.one_sided.front().is_some_and(|(at, ..)| *at <= now) {
            let (_, since, key) = self.one_sided.pop_front()?;
            let flow = self.tracker.flow(&key).ok().flatten();
            if flow.is_some_and(|flow| is_one_sided(&flow)) {
                return Some((key, since));
            }
        }
        None
    }

    /// Visits the wanted connections with the time when each far host was heard last.
    ///
    /// Visits none, and returns `false`, if the last search was too short a time ago.
    pub(crate) fn search(
        &mut self,
        now: Instant,
        is_wanted: impl FnMut(&FlowKey) -> bool,
        visit: impl FnMut(FlowKey, Instant),
    ) -> bool {
        if !self.silence.may_search(now) {
            return false;
        }
        self.silence.search(now, &self.tracker, is_wanted, visit);
        true
    }

    /// Counts the connections in the kernel's table that are not closed, if the count is old.
    pub(crate) fn recount(&mut self, now: Instant) {
        if now < self.recount_at {
            return;
        }
        let work = Stopwatch::start();
        let mut count = 0;
        let count_one =
            |_, flow: TrackedFlow| count += usize::from(flow.tcp.phase != Phase::Closed);
        self.tracker.flows(|_| true, count_one);
        self.counted = count;
        let took = work.elapsed();
        self.recount_at = now + took + COUNT_IS_GOOD_FOR.max(COUNT_SHARE * took);
    }

    /// Connections in the kernel's table that were not closed when they were counted last.
    pub(crate) const fn counted(&self) -> usize {
        self.counted
    }

    /// Lists the connections in the kernel's table with the most recent packets, unless that was
    /// done but now.
    pub(crate) fn list(&mut self, now: Instant) {
        if now < self.relist_at {
            return;
        }
        let work = Stopwatch::start();
        let mut recent = BinaryHeap::with_capacity(MOST_LISTED + 1);
        self.tracker.flows(
            |_| true,
            |key, flow| {
                recent.push(Reverse(Listed::of(key, &flow)));
                if recent.len() > MOST_LISTED {
                    recent.pop();
                }
            },
        );
        let sorted = recent.into_sorted_vec();
        self.listed = sorted.into_iter().map(|Reverse(listed)| listed).collect();
        let took = work.elapsed();
        self.relist_at = now + took + COUNT_IS_GOOD_FOR.max(COUNT_SHARE * took);
    }

    /// The connections that were listed last, those with the most recent packets first.
    pub(crate) fn listed(&self) -> &[Listed] {
        &self.listed
    }

    /// What the programs have counted.
    pub(crate) fn counters(&self) -> Result<TrackerCounters, TrackerError> {
        self.tracker.counters()
    }
}

/// Whether only the near host was heard, and the connection's beginning was not seen.
pub(super) fn is_one_sided(flow: &TrackedFlow) -> bool {
    let tcp = &flow.tcp;
    let began_unseen = tcp.near.window_scale.is_none() && tcp.far.window_scale.is_none();
    tcp.phase == Phase::Opening && tcp.near.is_seen() && !tcp.far.is_seen() && began_unseen
}

impl AsFd for KernelPath {
    /// Readable when [`Self::find_silent`] may have something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.tracker.as_fd()
    }
}
