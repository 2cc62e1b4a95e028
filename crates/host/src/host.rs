//! The machine: indicators in, actions on the TCP stack out.
//!
//! | what happens | what is done |
//! |---|---|
//! | a link is restored | one pass: each connection over it that has data outstanding, or whose peer may have, joins the queue |
//! | the queue has an entry and the budget a token | one connection is restarted, as [`Mechanism`] says |
//! | a restarted connection has made no progress for a round trip or [`Limits::retry`] | it is restarted again, at most [`Limits::attempts`] times in all, the wait doubling |
//! | it has retransmitted later than it was restarted | it is looked at a round trip after that |
//! | it has made progress | it is looked at again, until 2.5 s after its first restart, at ever longer intervals: a sender that takes its timeout for spurious, or loses much in its first burst, stops again, and is restarted as soon as it has nothing on its way |
//! | it sends on, and its oldest segment stays | it is restarted after three looks |
//! | its own timer has not backed off | it is left to it, and looked at every round trip for as long as a timeout may last |
//! | its peer may wait, too | the peer is woken, and once more a round trip later if nothing has come; looks at the connection itself wake no peer |
//! | a link is restored again while its connections are looked at | they join the queue again, as at the first return |
//! | a link flaps | [`Damping`] says which changes are believed at once, as at a gateway |
//! | a link is restored again within [`Limits::interval`] | the next pass waits until the interval is over |
//! | the stack cannot list its connections | the pass is repeated after the interval, [`Limits::attempts`] times in all; a look is repeated a round trip later |
//! | a connection has had two timeouts in a row | its peer is silent if no connection has heard it for half a second; packets of silent peers are noticed |
//! | a peer stays silent | one of its connections retransmits, at pauses that grow slowly (`probing`) |
//! | a silent peer is heard again | as an indicator for the link that is this peer |
//! | a link is lost, with [`Mechanism::MTcp`] | each connection over it is frozen, where the stack allows it |
//! | it is restored | each connection sends an acknowledgement that is marked as a reconnection, and thaws or is restarted |
//! | the peer of a frozen connection is heard | it thaws, and sends nothing again: packets were only slow |
//! | a peer asks for it | its connection joins the queue, once in [`Limits::interval`] |
//!
//! Models: Schütz and others 2005, section 3.3.2 (retransmission trigger, rate limit, bursts, forced slow start);
//! Cáceres and Iftode 1995, section IV (fast retransmission); Brown and Singh 1997, section 4.2 and figure 5 (M-TCP at
//! the mobile). The peer of an *asymmetric* indicator is woken by
//! [`EndpointControl::wake_peer`]: by gratuitous duplicate acknowledgements, the second of the two ways
//! of Schütz and others 2005, or by the first one, the Immediate Retransmission Option. Who reads that option in a
//! peer's segment calls [`Host::handle_request`].
//!
//! What breaks it: an indicator that comes before packets pass. The attempts that follow bound the
//! damage, as section 3.3.3 of Schütz and others 2005 describes the race for HIP.

use crate::budget::Budget;
use crate::concern::{Task, by_peer, is_idle, is_meant, may_wait};
use crate::config::{HostConfig, Limits, Mechanism};
use crate::control::{
    Action, Connection, ConnectionId, ControlError, EndpointControl, Needless, Outcome, Outstanding,
};
use crate::counters::Counters;
use crate::entry::Entry;
use crate::event::{Event, Events};
use crate::freezing::Freezing;
use crate::indicator::{Heard, Kind, Links, Network, Restored};
use crate::passes::{Admission, Passes};
use crate::requests::Requests;
use crate::restarts::Restarts;
use crate::silence::{Silence, Watch};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;
use core::cmp::Reverse;
use core::net::IpAddr;
use outlast_base::time::Instant;
use outlast_gateway::links::{
    DampedLink, Damping, DampingConfig, Indicator, LinkEvent, LinkId, LinkState, Ruling,
};

/// Connections with nothing outstanding either way that tell of one return by a marked acknowledgement. Whoever keeps
/// data for the others learns of the return from these.
const IDLE_MARKS: u32 = 256;

/// Connections whose peers are asked after one return although nothing had come of them for a while before the outage: they may
/// have sent something since.
const IDLE_ASKED: u32 = 256;

/// Why the agent wants to be called.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Reason {
    /// The budget has a token again.
    Budget,
    /// A connection may have made no progress.
    Retry,
    /// A peer has asked for a retransmission shortly after a pass.
    Request,
    /// A link was restored shortly after a pass.
    Interval,
    /// A link that flaps may be calm again.
    Damping,
    /// A connection has timed out, or silent peers are looked at again.
    Silence,
}

/// The agent beside a host's TCP stack.
///
/// After each `handle_*` call the driver drains the stack, then [`Host::poll_event`], then reads
/// [`Host::poll_timeout`].
#[derive(Debug)]
pub struct Host {
    config: HostConfig,
    links: Links,
    damping: Option<Damping>,
    /// Links whose next return is by another path than before.
    new_paths: BTreeSet<LinkId>,
    budget: Budget,
    passes: Passes,
    restarts: Restarts,
    requests: Requests,
    freezing: Freezing,
    silence: Silence,
    events: Events,
    counters: Counters,
    /// Reused by each pass.
    found: Vec<Connection>,
}

impl Host {
    /// An agent that has heard nothing.
    #[must_use]
    pub fn new(now: Instant, config: HostConfig) -> Self {
        let mut silence = Silence::new(config.limits.links);
        silence.set_probing(config.probes_silent_peers);
        Self {
            links: Links::new(config.limits.links),
            damping: config.damping.map(Damping::new),
            new_paths: BTreeSet::new(),
            budget: Budget::new(now, config.limits.per_second, config.limits.burst),
            config,
            passes: Passes::default(),
            restarts: Restarts::new(now),
            requests: Requests::new(now),
            freezing: Freezing::default(),
            silence,
            events: Events::default(),
            counters: Counters::default(),
            found: Vec::new(),
        }
    }

    /// The way to some addresses is another from now on, through the interface of `link`; nobody has said that it was
    /// away. If it was, its connections have stalled: they alone are restarted.
    ///
    /// `link` is the new way: the next hop, or the whole interface for addresses on the link itself.
    pub fn handle_moved_route(
        &mut self,
        now: Instant,
        link: LinkId,
        to: Network,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let by = Indicator::Route;
        let restored = Restored {
            link,
            by,
            kind: Kind::of(by),
            outage: None,
            is_path_new: true,
            moved: Some(to),
        };
        if self.is_believed(now, &restored) && self.admit(now, restored, stack) {
            self.pass(now, &[restored], stack);
        }
        self.act(now, stack);
    }

    /// Whether damping believes a return of which no loss was told.
    fn is_believed(&mut self, now: Instant, restored: &Restored) -> bool {
        let event = LinkEvent {
            link: restored.link,
            state: LinkState::Up,
            indicator: restored.by,
        };
        let damping = self.damping.as_mut();
        let ruling = damping.and_then(|damping| damping.rule_return(now, event));
        let is_believed = ruling != Some(Ruling::Ignore);
        self.counters.link_changes_ignored += u64::from(!is_believed);
        is_believed
    }

    /// A link is back, and packets take another path from now on than before, of which the indicator itself does not tell: an
    /// explicit notification, for instance.
    pub fn handle_return_by_new_path(
        &mut self,
        now: Instant,
        event: LinkEvent,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        if self.new_paths.len() < self.config.limits.links {
            self.new_paths.insert(event.link);
        }
        self.handle_link(now, event, stack);
    }

    /// An indicator has spoken of a link.
    pub fn handle_link(
        &mut self,
        now: Instant,
        event: LinkEvent,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let damping = self.damping.as_mut();
        // Where too many flap, the others are believed.
        let ruling = damping.and_then(|damping| damping.rule(now, event));
        match (ruling, event.state) {
            (None | Some(Ruling::Tell), _) => self.hear(now, event, stack),
            // It is away all the same, but nothing is done about it.
            (Some(_), LinkState::Down) => {
                self.counters.link_changes_ignored += 1;
                if self.links.handle(now, event) == Heard::Refused {
                    self.counters.links_refused += 1;
                }
            }
            (Some(Ruling::Later), LinkState::Up) => self.counters.link_ups_delayed += 1,
            (Some(Ruling::Ignore), LinkState::Up) => self.counters.link_changes_ignored += 1,
        }
        self.act(now, stack);
    }

    /// Acts upon what an indicator has said of a link.
    fn hear(
        &mut self,
        now: Instant,
        event: LinkEvent,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        match self.links.handle(now, event) {
            Heard::Restored(restored) => {
                let is_path_new = self.new_paths.remove(&event.link) || restored.is_path_new;
                let restored = Restored {
                    is_path_new,
                    ..restored
                };
                self.restore(now, restored, stack);
            }
            Heard::Noted => self.freeze(now, event, stack),
            Heard::Refused => self.counters.links_refused += 1,
        }
    }

    /// Acts upon what damping has withheld for long enough.
    fn hear_damped(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        while let Some(due) = self.damping.as_mut().and_then(|one| one.take_due(now)) {
            if let Some(event) = due {
                self.hear(now, event, stack);
            }
        }
    }

    /// The links whose indicators flap, and are not believed at once.
    pub fn damped_links(&self, now: Instant) -> impl Iterator<Item = DampedLink> {
        let damping = self.damping.iter();
        damping.flat_map(move |damping| damping.damped(now))
    }

    /// Other damping from now on. What was said last of a damped link holds at once, and all penalties are forgiven.
    pub fn set_damping(
        &mut self,
        now: Instant,
        damping: Option<DampingConfig>,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let before = core::mem::replace(&mut self.damping, damping.map(Damping::new));
        let untold: Vec<LinkEvent> = before.iter().flat_map(Damping::untold).collect();
        for event in untold {
            self.hear(now, event, stack);
        }
        self.act(now, stack);
    }

    /// The peer is heard: a connection was as `before`, the stack has taken a packet, and now it is
    /// as `after`. A connection that waited for a retransmission timeout need not wait any longer;
    /// one whose data was acknowledged is looked at a round trip later.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        before: &Connection,
        after: &Connection,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        if after.is_frozen {
            if self.freezing.is_only_slow(now, after.id) {
                self.thaw(now, after.id, Outstanding::OnItsWay, stack);
            }
            return;
        }
        if before.timeouts == 0 || !after.is_outstanding() {
            return;
        }
        let Some(interface) = after.via.map(|via| via.interface) else {
            return;
        };
        if before.snd_una != after.snd_una {
            self.supervise(now, after);
            return;
        }
        let link = LinkId {
            interface,
            peer: Some(after.id.remote.ip()),
        };
        let event = LinkEvent {
            link,
            state: LinkState::Up,
            indicator: Indicator::FirstPacket,
        };
        self.handle_link(now, event, stack);
    }

    /// A connection with `peer` has had two timeouts in a row: the peer may be silent. Who drives the agent notices packets
    /// of silent peers as [`Host::poll_watch`] says.
    pub fn handle_timeouts_of(
        &mut self,
        now: Instant,
        peer: IpAddr,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        if !self.silence.suspect(peer) {
            self.counters.links_refused += 1;
        }
        self.judge_silence(now, stack);
    }

    /// A packet has come from the peer of each of these links by the link's interface. If the peer was silent, that is an
    /// indicator (Schütz and others 2005, section 3.3.1). All of them are seen to in one pass: many peers may come back at once.
    pub fn handle_arrivals(
        &mut self,
        now: Instant,
        links: impl IntoIterator<Item = LinkId>,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let mut due = Vec::new();
        for link in links {
            let Some(since) = link.peer.and_then(|peer| self.silence.hear(peer)) else {
                continue;
            };
            let by = Indicator::FirstPacket;
            let restored = Restored {
                link,
                by,
                kind: Kind::of(by),
                outage: Some(now.since(since)),
                is_path_new: false,
                moved: None,
            };
            if self.is_believed(now, &restored) && self.admit(now, restored, stack) {
                due.push(restored);
            }
        }
        self.pass(now, &due, stack);
        self.act(now, stack);
    }

    /// Whose packets are to be noticed from now on, or no longer.
    #[must_use]
    pub fn poll_watch(&mut self) -> Option<Watch> {
        self.silence.poll_watch()
    }

    /// All connections, in the list that each pass reuses and gives back; `None` if the stack cannot list them, which is told.
    fn list(&mut self, stack: &mut (impl EndpointControl + ?Sized)) -> Option<Vec<Connection>> {
        let mut found = core::mem::take(&mut self.found);
        found.clear();
        match stack.connections(&mut found) {
            Ok(()) => Some(found),
            Err(error) => {
                self.found = found;
                self.counters.errors += 1;
                self.tell(Event::ListFailed(error));
                None
            }
        }
    }

    /// Looks which peers are silent, if there is anything to look at.
    fn judge_silence(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        if self
            .silence
            .due(self.restarts.next_pass())
            .is_none_or(|at| at > now)
        {
            return;
        }
        let found = self.list(stack).unwrap_or_default();
        self.restarts.pause(now, found.len());
        let is_restarted = |id| self.restarts.has(id);
        let judged = self.silence.judge(now, &found, is_restarted);
        self.counters.peers_silent += judged.begun;
        if !judged.back.is_empty() {
            self.handle_arrivals(now, judged.back, stack);
        }
        self.probe(now, &found, stack);
        self.found = found;
    }

    /// Has connections try whether their silent peers are back, where a probe is due.
    fn probe(
        &mut self,
        now: Instant,
        found: &[Connection],
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let (links, restarts) = (&self.links, &self.restarts);
        // Where a link is known to be away its return is the indicator.
        let may_probe =
            |one: &Connection| !one.is_frozen && !is_away(links, one) && !restarts.has(one.id);
        for id in self.silence.choose_probes(now, found, may_probe) {
            if !self.budget.take(now) {
                return;
            }
            let result = stack.probe(now, id);
            self.counters.probes += u64::from(self.note(result));
        }
    }

    /// The peer of a connection asks for an immediate retransmission (Schütz and others 2005, section 3.3.2): its link
    /// is back. Requests share the budget of all restarts and the pauses between passes; a further one of
    /// the same connection within [`Limits::interval`] is refused.
    pub fn handle_request(
        &mut self,
        now: Instant,
        id: ConnectionId,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let Limits {
            interval,
            connections,
            ..
        } = self.config.limits;
        if !self.requests.ask(now, id, interval, connections) {
            self.counters.requests_refused += 1;
            return;
        }
        self.counters.requests += 1;
        self.grant(now, stack);
        self.act(now, stack);
    }

    /// Puts the connections whose peers have asked into the queue, in one pass for all of them.
    fn grant(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        if self.requests.is_empty() || now < self.restarts.next_pass() {
            return;
        }
        let found = self.list(stack).unwrap_or_default();
        self.restarts.pause(now, found.len());
        let requested = self.requests.take();
        for connection in &found {
            if requested.contains(&connection.id) && self.enqueue_requested(now, connection) {
                stack.note_request(connection.id);
            }
        }
        self.found = found;
    }

    /// Puts a connection whose peer has asked into the queue, and returns whether it is there now for that reason.
    fn enqueue_requested(&mut self, now: Instant, connection: &Connection) -> bool {
        let is_known = self.restarts.has(connection.id);
        if is_known || connection.is_frozen || !connection.is_outstanding() || !self.has_room() {
            return false;
        }
        self.restarts.push(Entry::restart_of(now, connection));
        true
    }

    /// Whether one more connection may be restarted; if not, it is counted as left out.
    fn has_room(&mut self) -> bool {
        let has_room = self.restarts.connections().len() < self.config.limits.connections;
        self.counters.connections_left_out += u64::from(!has_room);
        has_room
    }

    /// Has a connection looked at that moves by itself so far.
    fn supervise(&mut self, now: Instant, connection: &Connection) {
        let is_known = self.restarts.has(connection.id);
        if is_known || connection.is_frozen || !self.has_room() {
            return;
        }
        let entry = Entry::restart_of(now, connection);
        self.restarts.wait(now, entry, &self.config.limits);
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        self.hear_damped(now, stack);
        self.look(now, stack);
        self.grant(now, stack);
        self.judge_silence(now, stack);
        let due = self.passes.take_due(now);
        self.pass(now, &due, stack);
        self.act(now, stack);
    }

    /// Something to tell.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.poll()
    }

    /// When to call [`Host::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, Reason)> {
        let budget = self.budget.next().filter(|_| !self.restarts.is_empty());
        let budget = budget.map(|at| (at, Reason::Budget));
        let retry = self.restarts.next().map(|at| (at, Reason::Retry));
        let next_pass = self.restarts.next_pass();
        let request = (!self.requests.is_empty()).then_some((next_pass, Reason::Request));
        let interval = self.passes.next().map(|at| (at, Reason::Interval));
        let silence = self.silence.due(next_pass);
        let silence = silence.map(|at| (at, Reason::Silence));
        let damping = self.damping.as_ref().and_then(Damping::next);
        let damping = damping.map(|at| (at, Reason::Damping));
        let all = [budget, retry, request, interval, silence, damping];
        let all = all.into_iter().flatten();
        all.min_by_key(|&(at, _)| at)
    }

    /// Other limits hold from now on; what is queued already stays so.
    pub fn set_limits(&mut self, now: Instant, limits: Limits) {
        self.budget.set_rate(now, limits.per_second, limits.burst);
        self.links.set_most(limits.links);
        self.silence.set_most(limits.links);
        self.config.limits = limits;
    }

    /// What restarts connections from now on.
    pub fn set_mechanism(&mut self, mechanism: Mechanism) {
        self.config.mechanism = mechanism;
    }

    /// Silent peers are probed from now on, or not any more.
    pub fn set_probing(&mut self, probes_silent_peers: bool) {
        self.config.probes_silent_peers = probes_silent_peers;
        self.silence.set_probing(probes_silent_peers);
    }

    /// Whether connections start slowly on a new path from now on, if they were away for less than their timeouts.
    pub fn set_forces_slow_start(&mut self, forces_slow_start: bool) {
        self.config.forces_slow_start = forces_slow_start;
    }

    /// Counts so far.
    #[must_use]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Connections that wait to be restarted, or whose progress is to be looked at.
    #[must_use]
    pub fn waiting(&self) -> impl ExactSizeIterator<Item = &ConnectionId> {
        self.restarts.connections()
    }

    /// Whether an indicator has said that `link` is away.
    #[must_use]
    pub fn is_away(&self, link: LinkId) -> bool {
        self.links.is_away(link)
    }

    /// A neighbour that was missing is there, and its connections are to wait for the return of a link before or
    /// beyond it: another event tells of that.
    pub fn forget_absence(&mut self, neighbour: LinkId) {
        self.links.forget(neighbour);
    }

    /// Freezes the connections over a link that is away.
    fn freeze(
        &mut self,
        now: Instant,
        event: LinkEvent,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let is_meant = self.config.mechanism == Mechanism::MTcp && event.state == LinkState::Down;
        if !is_meant || !self.freezing.is_possible() {
            return;
        }
        let Some(found) = self.list(stack) else {
            return;
        };
        let still: BTreeSet<ConnectionId> = found
            .iter()
            .filter(|connection| connection.is_frozen)
            .map(|connection| connection.id)
            .collect();
        self.freezing.retain(|id| still.contains(&id));
        let over = found
            .iter()
            .filter(|connection| connection.crosses(event.link));
        let most = self.config.limits.connections;
        let outcome = self.freezing.freeze(now, over, most, stack);
        self.counters.frozen += outcome.frozen;
        self.counters.connections_left_out += outcome.left_out;
        self.counters.errors += outcome.refused;
        self.found = found;
    }

    fn thaw(
        &mut self,
        now: Instant,
        id: ConnectionId,
        outstanding: Outstanding,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let result = self.freezing.thaw(now, id, outstanding, stack);
        if self.note(result) {
            self.counters.thawed += 1;
        }
    }

    /// Whether another link that the connection's packets cross is still away.
    fn is_still_away(&self, connection: &Connection) -> bool {
        is_away(&self.links, connection)
    }

    /// Has those go on that are frozen for no link any more: their packets take another way, or the return of their
    /// link found no room. Who waits to tell of it goes on then.
    fn thaw_strays<'a>(
        &mut self,
        now: Instant,
        found: impl IntoIterator<Item = &'a Connection>,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        if self.freezing.is_empty() {
            return;
        }
        for connection in found {
            let id = connection.id;
            let is_ours = connection.is_frozen && self.freezing.has(id);
            if is_ours && !self.restarts.has(id) && !self.is_still_away(connection) {
                self.thaw(now, id, Outstanding::Lost, stack);
            }
        }
    }

    /// Lists the connections for [`thaw_strays`](Self::thaw_strays).
    fn thaw_all_that_is_back(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        if self.freezing.is_empty() {
            return;
        }
        if let Some(found) = self.list(stack) {
            self.thaw_strays(now, &found, stack);
            self.found = found;
        }
    }

    /// Looks through the connections now, or as soon as the last pass is long enough ago.
    fn restore(
        &mut self,
        now: Instant,
        restored: Restored,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        if self.admit(now, restored, stack) {
            self.pass(now, &[restored], stack);
        }
    }

    /// Whether the connections are to be looked through now; if not, they are as soon as the last pass is long enough ago.
    fn admit(
        &mut self,
        now: Instant,
        restored: Restored,
        stack: &mut (impl EndpointControl + ?Sized),
    ) -> bool {
        self.counters.restored += 1;
        let Limits {
            interval, links, ..
        } = self.config.limits;
        match self.passes.admit(now, restored, interval, links) {
            Admission::Now => return true,
            Admission::Later => self.counters.passes_delayed += 1,
            Admission::NoRoom => {
                self.counters.links_refused += 1;
                self.thaw_all_that_is_back(now, stack);
            }
        }
        false
    }

    /// Puts the connections that these returns concern into the queue, in one pass for all of them.
    fn pass(
        &mut self,
        now: Instant,
        returns: &[Restored],
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        if returns.is_empty() {
            return;
        }
        self.counters.passes += 1;
        for restored in returns {
            let interval = self.config.limits.interval;
            self.passes.begin(now, restored, interval);
        }
        let Some(found) = self.list(stack) else {
            // Who is frozen has nothing else to wait for.
            let most = match self.freezing.is_empty() {
                true => self.config.limits.attempts,
                false => u8::MAX,
            };
            self.passes.fail(returns, most);
            return;
        };
        self.passes.succeed();
        let is_other = |one: &&Connection| !returns.iter().any(|all| is_meant(one, all));
        self.thaw_strays(now, found.iter().filter(is_other), stack);
        let by_peer = (returns.len() > 1).then(|| by_peer(&found));
        for restored in returns {
            let of_peer = restored.link.peer.filter(|_| restored.moved.is_none());
            let those = match (&by_peer, of_peer) {
                (Some(by_peer), Some(peer)) => by_peer.get(&peer).cloned().unwrap_or_default(),
                _ => found
                    .iter()
                    .filter(|one| is_meant(one, restored))
                    .copied()
                    .collect(),
            };
            self.enqueue_all(now, restored, those, stack);
        }
        self.found = found;
    }

    /// Puts those of the connections into the queue that a return concerns.
    fn enqueue_all(
        &mut self,
        now: Instant,
        restored: &Restored,
        mut found: Vec<Connection>,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        found.retain(|connection| is_meant(connection, restored));
        for connection in &found {
            // What has merely moved was not heard of.
            if restored.moved.is_none() {
                self.silence.attend(now, connection.id.remote.ip());
            }
        }
        let connections = u32::try_from(found.len()).unwrap_or(u32::MAX);
        if self.config.mechanism == Mechanism::MTcp {
            // Who is frozen waits for the last link of his way.
            found.retain(|connection| !connection.is_frozen || !self.is_still_away(connection));
        }
        // Those for which somebody may wait, or keep data, come first, then those whose data is the newest.
        found.sort_by_key(|connection| {
            let is_idle = is_idle(now, connection, restored);
            is_idle.then_some(Reverse(connection.received_at))
        });
        let (mut stalled, mut idle, mut asked) = (0, 0, 0);
        for connection in &found {
            let is_ours = self.freezing.has(connection.id);
            let mut task = Task::of(now, connection, restored, &self.config, is_ours);
            let is_idle = is_idle(now, connection, restored);
            idle += u32::from(is_idle);
            task.marks &= idle <= IDLE_MARKS;
            if task.wakes_peer && !may_wait(now, connection, restored) {
                asked += 1;
                task.wakes_peer = asked <= IDLE_ASKED;
            }
            // What its peer has in flight nobody knows.
            let may_have_stalled = !connection.is_outstanding()
                || connection.is_frozen
                || connection.has_stalled(now, self.config.limits.retry);
            let is_queued = self.enqueue(now, connection, task, restored, stack);
            stalled += u32::from(is_queued && may_have_stalled && !is_idle);
        }
        self.tell(Event::Pass {
            restored: *restored,
            connections,
            stalled,
        });
    }

    /// Puts a connection into the queue if something is to be done for it. Returns whether it may have stalled.
    fn enqueue(
        &mut self,
        now: Instant,
        connection: &Connection,
        task: Task,
        restored: &Restored,
        stack: &mut (impl EndpointControl + ?Sized),
    ) -> bool {
        let is_frozen_by_another = connection.is_frozen && !task.thaws;
        if !task.has_work() || is_frozen_by_another {
            return false;
        }
        // It was only looked at because of an earlier return: what this one asks for is due now.
        if restored.by != Indicator::FirstPacket && !connection.is_frozen {
            self.restarts.stop_looking(connection.id);
        }
        let is_known = self.restarts.has(connection.id);
        // An earlier return is about to have it restarted; of this one it tells all the same.
        let task = Task {
            restarts: task.restarts && !is_known,
            ..task
        };
        let is_told = !task.marks || self.restarts.is_telling(connection.id);
        let has_entry = is_known && is_told;
        if has_entry || !self.has_room() {
            // Without an entry of its own it goes on at once: nothing else thaws it.
            if task.thaws {
                self.thaw(now, connection.id, Outstanding::Lost, stack);
            }
            return has_entry;
        }
        // Where nobody tells when data came, nobody tells that the peer has slept on. An idle one is not looked at.
        let may_sleep =
            connection.received_at != Instant::ZERO && may_wait(now, connection, restored);
        let rcv_nxt = may_sleep.then_some(connection.rcv_nxt);
        self.restarts.push(Entry {
            is_beside_another: is_known,
            ..Entry::of(now, connection, task, rcv_nxt)
        });
        !task.marks || !is_idle(now, connection, restored)
    }

    /// Restarts connections as long as the budget lasts.
    fn act(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        while !self.restarts.is_empty() && self.budget.take(now) {
            if let Some(entry) = self.restarts.pop() {
                self.restart(now, entry, stack);
            }
        }
    }

    /// Looks at the restarted connections that are due: who has made no progress is restarted again.
    fn look(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        if self.restarts.next().is_none_or(|at| at > now) {
            return;
        }
        let Some(found) = self.list(stack) else {
            self.restarts.pause(now, 0);
            self.restarts.look_in_vain(now, &self.config.limits);
            return;
        };
        self.restarts.pause(now, found.len());
        self.thaw_strays(now, &found, stack);
        self.restarts.look(now, &found, &self.config.limits);
        self.found = found;
    }

    /// Does for a connection what its entry says.
    fn restart(
        &mut self,
        now: Instant,
        mut entry: Entry,
        stack: &mut (impl EndpointControl + ?Sized),
    ) {
        let Entry { id, task, .. } = entry;
        if entry.attempts > 0 {
            self.counters.retries += 1;
        } else if entry.advances == 0 {
            entry.begin(now);
        }
        if task.slow_start && entry.is_first() {
            // Where the stack does not do it, all is as on a former path.
            entry.task.slow_start = self.note(stack.slow_start(now, id));
            self.counters.slow_starts += u64::from(entry.task.slow_start);
        }
        if task.wakes_peer && entry.is_first() && self.note(stack.wake_peer(now, id)) {
            self.counters.peers_woken += 1;
            self.restarts.await_peer(now, entry, &self.config.limits);
        }
        if task.marks {
            self.restarts.has_told(id);
            if self.note(stack.send_marked_ack(now, id)) {
                self.counters.marked_acks += 1;
                self.restarts.await_peer(now, entry, &self.config.limits);
            }
            // A repetition comes by an entry of its own.
            entry.task.marks = false;
        }
        if task.thaws {
            self.thaw(now, id, Outstanding::Lost, stack);
        }
        if !task.restarts {
            if !entry.is_beside_another {
                self.restarts.forget(id);
            }
            return;
        }
        let result = match self.config.mechanism {
            // A connection that was forced into slow start goes back as after a timeout.
            Mechanism::FastRetransmit if entry.attempts == 0 && !entry.task.slow_start => {
                stack.fast_retransmit(now, id)
            }
            Mechanism::FastRetransmit | Mechanism::RetransmissionTrigger | Mechanism::MTcp => {
                stack.retransmit_now(now, id)
            }
        };
        if self.note(result) {
            self.counters.retransmissions += 1;
        }
        if result == Ok(Outcome::Needless(Needless::NotBackedOff)) {
            // Its own timer comes, and may leave it as silent as a restart.
            entry.looks += 1;
        } else {
            entry.attempts += 1;
        }
        if matches!(result, Err(ControlError::Unknown(_))) {
            self.restarts.forget(id);
        } else {
            self.restarts.wait(now, entry, &self.config.limits);
        }
    }

    /// Whether the stack has done it; what it refused is counted.
    fn note(&mut self, result: Result<Outcome, ControlError>) -> bool {
        match result {
            Ok(outcome) => outcome == Outcome::Done,
            // It has ended since the pass.
            Err(ControlError::Unknown(_) | ControlError::NotSupported(Action::SlowStart)) => false,
            Err(_) => {
                self.counters.errors += 1;
                false
            }
        }
    }

    fn tell(&mut self, event: Event) {
        self.events.tell(event, self.config.limits.links);
    }
}

/// True if a link that the connection's packets cross is away.
fn is_away(links: &Links, connection: &Connection) -> bool {
    let Some(via) = connection.via else {
        return false;
    };
    let peers = [None, Some(connection.id.remote.ip()), via.next_hop];
    peers.into_iter().any(|peer| {
        links.is_away(LinkId {
            interface: via.interface,
            peer,
        })
    })
}
