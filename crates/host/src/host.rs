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
//! | a connection has had two timeouts in a row | its peer is silent if no connection has heard it for half a second; packets of silent peers are noticed |
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
use crate::control::{
    Action, Connection, ConnectionId, ControlError, EndpointControl, Needless, Outcome,
    Outstanding, Stage,
};
use crate::freezing::Freezing;
use crate::indicator::{Heard, Kind, Links, Network, Restored};
use crate::silence::{Silence, Watch};
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::IpAddr;
use outlast_base::time::{Duration, Instant};
use outlast_gateway::link::{
    DampedLink, Damping, DampingConfig, Indicator, LinkEvent, LinkId, LinkState, Ruling,
};
use outlast_wire::SeqNumber;

/// What restarts a connection.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Mechanism {
    /// Retransmission as if the retransmission timer had expired (Schütz and others 2005, section 3.3.2).
    RetransmissionTrigger,
    /// Fast retransmission as at the third duplicate acknowledgement (Cáceres and Iftode 1995, section IV).
    FastRetransmit,
    /// M-TCP at the mobile: connections are frozen while their link is away, and tell of its return by a marked
    /// acknowledgement (Brown and Singh 1997, section 4.2). A stack that nobody freezes from outside is made to
    /// retransmit at the return as if its retransmission timer had expired.
    MTcp,
}

/// What the agent does, and how often.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HostConfig {
    /// What restarts a connection.
    pub mechanism: Mechanism,
    /// Wake the peer of an asymmetric indicator ([`EndpointControl::wake_peer`]).
    pub wakes_peer: bool,
    /// Start a connection slowly on a new path even if it was away for less than its timeout.
    pub forces_slow_start: bool,
    /// How indicators that flap are damped; `None`: each is believed at once.
    pub damping: Option<DampingConfig>,
    /// Hard limits.
    pub limits: Limits,
}

/// Hard limits of the agent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Connections restarted in a second.
    pub per_second: u32,
    /// Connections restarted at once.
    pub burst: u32,
    /// Least time between two passes over the connections of one link.
    pub interval: Duration,
    /// Restarts of one connection after one return of its link.
    pub attempts: u8,
    /// Least time until the second restart; it is longer where the round trip is, and doubles with
    /// each further restart.
    pub retry: Duration,
    /// Connections in the queue; further ones of a pass are left to their own timers.
    pub connections: usize,
    /// Links remembered; further ones are not heard.
    pub links: usize,
}

impl Default for Limits {
    /// Ten thousand connections take less than a second.
    fn default() -> Self {
        Self {
            per_second: 16_384,
            burst: 256,
            interval: Duration::from_millis(500),
            attempts: 4,
            retry: Duration::from_millis(50),
            connections: 65_536,
            links: 4_096,
        }
    }
}

impl HostConfig {
    /// `mechanism` with the default limits; wakes peers and forces slow start, and damps nothing.
    #[must_use]
    pub fn new(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            wakes_peer: true,
            forces_slow_start: true,
            damping: None,
            limits: Limits::default(),
        }
    }
}

/// Counts since the agent began; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Returns of links.
    pub restored: u64,
    /// Returns that damping has told late.
    pub link_ups_delayed: u64,
    /// Losses and returns that damping did not believe.
    pub link_changes_ignored: u64,
    /// Passes over the connections.
    pub passes: u64,
    /// Returns that had to wait because of a pass shortly before, or were taken for one with it.
    pub passes_delayed: u64,
    /// Connections whose retransmission was brought forward.
    pub retransmissions: u64,
    /// Connections restarted again for want of progress.
    pub retries: u64,
    /// Peers that were woken.
    pub peers_woken: u64,
    /// Peers that have fallen silent.
    pub peers_silent: u64,
    /// Requests of peers for an immediate retransmission that were granted.
    pub requests: u64,
    /// Further requests of the same connection within [`Limits::interval`], and those that found no room.
    pub requests_refused: u64,
    /// Connections frozen because their link was lost.
    pub frozen: u64,
    /// Connections that went on after that.
    pub thawed: u64,
    /// Acknowledgements that were marked as a reconnection.
    pub marked_acks: u64,
    /// Connections put back into slow start on a new path.
    pub slow_starts: u64,
    /// Connections left to their timers because the queue was full.
    pub connections_left_out: u64,
    /// Events of links that found no room.
    pub links_refused: u64,
    /// Actions that the stack refused or cannot do.
    pub errors: u64,
}

/// Something that the driver may tell.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// Connections were looked through.
    Pass {
        /// Why.
        restored: Restored,
        /// Connections over the link.
        connections: u32,
        /// Stalled connections, which are to be restarted.
        stalled: u32,
    },
    /// The stack could not list its connections.
    ListFailed(ControlError),
}

/// A connection that has made progress is looked at until so long after its first restart, whatever its round trip: a
/// sender without SACK may fill the link's queue, lose many segments, and wait for a timeout as long as the outage.
const WATCH: Duration = Duration::from_millis(2_500);

/// The first looks that find an advance are a round trip apart; then the pause doubles, as many times as follow.
const QUICK_ADVANCES: u8 = 2;
const MOST_DOUBLINGS: u8 = 3;

/// Looks at a connection that sends on and has no oldest segment acknowledged, after which the stack is asked.
const IN_VAIN: u8 = 2;

/// Looks at a connection that is left to its own timer: more than a timeout that has not backed off lasts.
const LOOKS: u8 = 16;

/// Least time between two looks, as thousands of connections are restarted one after the other.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// And for each connection that a look goes through: looks leave most of the time to restarts.
const LOOK_PAUSE_PER_CONNECTION: Duration = Duration::from_micros(15);

/// Events that are kept until they are polled, besides one of each link; the oldest goes first.
const EVENTS: usize = 64;

/// Connections with nothing outstanding either way that tell of one return by a marked acknowledgement. Whoever keeps
/// data for the others learns of the return from these.
const IDLE_MARKS: u32 = 256;

/// A peer whose newest data came longer than this before the outage waits for nothing.
const RECENT: Duration = Duration::from_secs(3);

/// What is on its way when an outage is noticed may still arrive.
const GRACE: Duration = Duration::from_millis(500);

/// Whether the peer may have data on its way that the outage has taken.
fn may_wait(now: Instant, connection: &Connection, restored: &Restored) -> bool {
    if connection.received_at == Instant::ZERO {
        // Nobody tells.
        return true;
    }
    let silence = now.since(connection.received_at);
    restored
        .outage
        .is_some_and(|outage| silence + GRACE >= outage && silence <= outage + RECENT)
}

/// Whether a connection is one of those that a return concerns.
fn is_meant(connection: &Connection, restored: &Restored) -> bool {
    match restored.moved {
        None => connection.crosses(restored.link),
        // Which next hop the connection takes is for the addresses to say.
        Some(to) => {
            let whole = LinkId::of_interface(restored.link.interface);
            connection.crosses(whole) && to.contains(connection.id.remote.ip())
        }
    }
}

/// The connections by the peers and the next hops that they may be restored by.
fn by_peer(found: &[Connection]) -> BTreeMap<IpAddr, Vec<Connection>> {
    let mut all = BTreeMap::<IpAddr, Vec<Connection>>::new();
    for connection in found {
        let remote = connection.id.remote.ip();
        all.entry(remote).or_default().push(*connection);
        let next_hop = connection.via.and_then(|via| via.next_hop);
        if let Some(next_hop) = next_hop.filter(|next_hop| *next_hop != remote) {
            all.entry(next_hop).or_default().push(*connection);
        }
    }
    all
}

/// Whether nothing is known that either end of the connection may wait for.
fn is_idle(now: Instant, connection: &Connection, restored: &Restored) -> bool {
    !connection.is_outstanding() && !may_wait(now, connection, restored)
}

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
    /// Links with a pass within the last [`Limits::interval`], and whether another is due after it.
    recent: BTreeMap<LinkId, Recent>,
    queue: VecDeque<Entry>,
    /// The connections of `queue` and `waiting`, and when those of `waiting` are looked at.
    queued: BTreeMap<ConnectionId, Option<Instant>>,
    /// Those with an entry in `queue` that tells of a return: one is enough for any number of returns.
    telling: BTreeSet<ConnectionId>,
    /// Restarted connections by when their progress is looked at.
    waiting: BTreeMap<(Instant, ConnectionId), Entry>,
    /// Peers that were woken, by when their progress is looked at, with what was expected of them next.
    woken: BTreeMap<(Instant, ConnectionId), Woken>,
    /// Connections whose peers have asked for a retransmission, not looked at yet.
    requested: BTreeSet<ConnectionId>,
    /// When the last request of a connection was granted, within the last [`Limits::interval`].
    granted: BTreeMap<ConnectionId, Instant>,
    /// When older ones were last forgotten.
    granted_purged: Instant,
    /// No look is before that: each one is a pass over all connections.
    next_look: Instant,
    freezing: Freezing,
    silence: Silence,
    events: VecDeque<Event>,
    counters: Counters,
    /// Reused by each pass.
    found: Vec<Connection>,
}

#[derive(Clone, Copy, Debug)]
struct Recent {
    /// When the next pass may be.
    until: Instant,
    due: Option<Restored>,
}

/// A connection to be restarted.
#[derive(Clone, Copy, Debug)]
struct Entry {
    id: ConnectionId,
    task: Task,
    snd_una: SeqNumber,
    min_rtt: Duration,
    /// Restarts so far.
    attempts: u8,
    /// Times that it was found to have made progress.
    advances: u8,
    /// A connection that has made progress is looked at until then.
    until: Instant,
    /// Times that it was left to its own timer.
    looks: u8,
    /// Looks since its last advance that found data on its way.
    in_vain: u8,
    /// An earlier return has the same connection restarted by another entry.
    is_beside_another: bool,
    /// What was expected of the peer next, where it is looked at again whether it has made progress.
    rcv_nxt: Option<SeqNumber>,
}

/// What a look finds of a connection with data outstanding.
#[derive(Clone, Copy, Debug)]
struct Seen {
    snd_una: SeqNumber,
    sent_at: Instant,
    is_silent: bool,
}

impl Seen {
    fn of(connection: &Connection) -> Self {
        Self {
            snd_una: connection.snd_una,
            sent_at: connection.sent_at,
            is_silent: connection.is_silent(),
        }
    }
}

impl Entry {
    /// Whether nothing has been done for it so far: what is due once after a return is due now.
    fn is_first(&self) -> bool {
        self.attempts == 0 && self.looks == 0
    }

    /// A connection that is to retransmit, and no more.
    fn restart_of(now: Instant, connection: &Connection) -> Self {
        Self {
            id: connection.id,
            task: Task {
                restarts: true,
                ..Task::default()
            },
            snd_una: connection.snd_una,
            min_rtt: connection.min_rtt,
            attempts: 0,
            advances: 0,
            until: now + WATCH,
            looks: 0,
            in_vain: 0,
            is_beside_another: false,
            rcv_nxt: None,
        }
    }
}

/// A peer that was woken.
#[derive(Clone, Copy, Debug)]
struct Woken {
    rcv_nxt: SeqNumber,
    entry: Entry,
}

#[derive(Clone, Copy, Debug, Default)]
struct Task {
    /// Its own data is outstanding.
    restarts: bool,
    /// It is frozen, and goes on.
    thaws: bool,
    /// It tells of the return by a marked acknowledgement.
    marks: bool,
    /// Its peer is to be woken.
    wakes_peer: bool,
    /// It goes on in slow start.
    slow_start: bool,
}

impl Host {
    /// An agent that has heard nothing.
    #[must_use]
    pub fn new(now: Instant, config: HostConfig) -> Self {
        Self {
            links: Links::new(config.limits.links),
            damping: config.damping.map(Damping::new),
            new_paths: BTreeSet::new(),
            budget: Budget::new(now, config.limits.per_second, config.limits.burst),
            config,
            recent: BTreeMap::new(),
            queue: VecDeque::new(),
            queued: BTreeMap::new(),
            telling: BTreeSet::new(),
            waiting: BTreeMap::new(),
            woken: BTreeMap::new(),
            requested: BTreeSet::new(),
            granted: BTreeMap::new(),
            granted_purged: now,
            next_look: now,
            freezing: Freezing::default(),
            silence: Silence::new(config.limits.links),
            events: VecDeque::new(),
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

    /// All connections, in the list that each pass reuses and gives back; an error is told.
    fn list(&mut self, stack: &mut (impl EndpointControl + ?Sized)) -> Vec<Connection> {
        let mut found = core::mem::take(&mut self.found);
        found.clear();
        if let Err(error) = stack.connections(&mut found) {
            self.counters.errors += 1;
            self.tell(Event::ListFailed(error));
        }
        found
    }

    /// Looks which peers are silent, if there is anything to look at.
    fn judge_silence(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        if self.silence.due(self.next_look).is_none_or(|at| at > now) {
            return;
        }
        let found = self.list(stack);
        self.pause_looks(now, found.len());
        let queued = &self.queued;
        let is_restarted = |id| queued.contains_key(&id);
        self.counters.peers_silent += self.silence.judge(now, &found, is_restarted);
        self.found = found;
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
        let interval = self.config.limits.interval;
        let is_recent = |granted: &Instant| now.since(*granted) < interval;
        // Seldom: each request would go through all of them.
        if now.since(self.granted_purged) >= interval {
            self.granted.retain(|_, granted| is_recent(granted));
            self.granted_purged = now;
        }
        let is_full = self.granted.len() >= self.config.limits.connections;
        if is_full || self.granted.get(&id).is_some_and(is_recent) {
            self.counters.requests_refused += 1;
            return;
        }
        self.granted.insert(id, now);
        self.requested.insert(id);
        self.counters.requests += 1;
        self.grant(now, stack);
        self.act(now, stack);
    }

    /// Puts the connections whose peers have asked into the queue, in one pass for all of them.
    fn grant(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        if self.requested.is_empty() || now < self.next_look {
            return;
        }
        let found = self.list(stack);
        self.pause_looks(now, found.len());
        let requested = core::mem::take(&mut self.requested);
        for connection in &found {
            if requested.contains(&connection.id) && self.enqueue_requested(now, connection) {
                stack.note_request(connection.id);
            }
        }
        self.found = found;
    }

    /// Puts a connection whose peer has asked into the queue, and returns whether it is there now for that reason.
    fn enqueue_requested(&mut self, now: Instant, connection: &Connection) -> bool {
        let is_queued = self.queued.contains_key(&connection.id);
        if is_queued || connection.is_frozen || !connection.is_outstanding() {
            return false;
        }
        if self.queued.len() >= self.config.limits.connections {
            self.counters.connections_left_out += 1;
            return false;
        }
        self.queued.insert(connection.id, None);
        self.queue.push_back(Entry::restart_of(now, connection));
        true
    }

    /// Has a connection looked at that moves by itself so far.
    fn supervise(&mut self, now: Instant, connection: &Connection) {
        if self.queued.contains_key(&connection.id) || connection.is_frozen {
            return;
        }
        if self.queued.len() >= self.config.limits.connections {
            self.counters.connections_left_out += 1;
            return;
        }
        self.queued.insert(connection.id, None);
        self.wait(now, Entry::restart_of(now, connection));
    }

    /// Time has come to `now`.
    pub fn handle_timeout(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        self.hear_damped(now, stack);
        self.look(now, stack);
        self.grant(now, stack);
        self.judge_silence(now, stack);
        let over: Vec<LinkId> = self
            .recent
            .iter()
            .filter(|(_, recent)| recent.until <= now)
            .map(|(&link, _)| link)
            .collect();
        let over = over
            .into_iter()
            .filter_map(|link| self.recent.remove(&link));
        let due: Vec<Restored> = over.filter_map(|recent| recent.due).collect();
        self.pass(now, &due, stack);
        self.act(now, stack);
    }

    /// Something to tell.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Host::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, Reason)> {
        let budget = self.budget.next().filter(|_| !self.queue.is_empty());
        let budget = budget.map(|at| (at, Reason::Budget));
        let looks = [self.waiting.keys().next(), self.woken.keys().next()];
        let looks = looks.into_iter().flatten().map(|&(at, _)| at).min();
        let retry = looks.map(|at| (at.max(self.next_look), Reason::Retry));
        let is_asked = !self.requested.is_empty();
        let request = is_asked.then_some((self.next_look, Reason::Request));
        let due = self.recent.values().filter(|recent| recent.due.is_some());
        let interval = due.map(|recent| recent.until).min();
        let interval = interval.map(|at| (at, Reason::Interval));
        let silence = self.silence.due(self.next_look);
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
        self.queued.keys()
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
        let mut found = core::mem::take(&mut self.found);
        found.clear();
        match stack.connections(&mut found) {
            Err(error) => {
                self.counters.errors += 1;
                self.tell(Event::ListFailed(error));
            }
            Ok(()) => {
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
            }
        }
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
        let Some(via) = connection.via else {
            return false;
        };
        let peers = [None, Some(connection.id.remote.ip()), via.next_hop];
        peers.into_iter().any(|peer| {
            self.links.is_away(LinkId {
                interface: via.interface,
                peer,
            })
        })
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
            if is_ours && !self.queued.contains_key(&id) && !self.is_still_away(connection) {
                self.thaw(now, id, Outstanding::Lost, stack);
            }
        }
    }

    /// Lists the connections for [`thaw_strays`](Self::thaw_strays).
    fn thaw_all_that_is_back(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        if self.freezing.is_empty() {
            return;
        }
        let found = self.list(stack);
        self.thaw_strays(now, &found, stack);
        self.found = found;
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
        if let Some(recent) = self.recent.get_mut(&restored.link)
            && recent.until > now
        {
            recent.due = Some(recent.due.map_or(restored, |due| due.then(restored)));
            self.counters.passes_delayed += 1;
            return false;
        }
        self.recent
            .retain(|_, recent| recent.until > now || recent.due.is_some());
        if self.recent.len() >= self.config.limits.links {
            self.counters.links_refused += 1;
            self.thaw_all_that_is_back(now, stack);
            return false;
        }
        // Another one of the same batch waits for the next pass.
        let recent = Recent {
            until: now + self.config.limits.interval,
            due: None,
        };
        self.recent.insert(restored.link, recent);
        true
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
            let recent = Recent {
                until: now + self.config.limits.interval,
                due: None,
            };
            self.recent.insert(restored.link, recent);
        }
        let mut found = core::mem::take(&mut self.found);
        found.clear();
        if let Err(error) = stack.connections(&mut found) {
            self.counters.errors += 1;
            for restored in returns {
                if let Some(recent) = self.recent.get_mut(&restored.link) {
                    // Who is frozen has nothing else to wait for.
                    recent.due = Some(*restored).filter(|_| !self.freezing.is_empty());
                }
            }
            self.tell(Event::ListFailed(error));
        } else {
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
            // Those for which somebody may keep data tell of the return first.
            found.sort_by_key(|connection| is_idle(now, connection, restored));
        }
        let (mut stalled, mut idle) = (0, 0);
        for connection in &found {
            let mut task = self.task(now, connection, restored);
            idle += u32::from(is_idle(now, connection, restored));
            task.marks &= idle <= IDLE_MARKS;
            // What its peer has in flight nobody knows.
            let may_have_stalled = !connection.is_outstanding()
                || connection.is_frozen
                || connection.has_stalled(now, self.config.limits.retry);
            let is_queued = self.enqueue(now, connection, task, restored, stack);
            stalled += u32::from(is_queued && may_have_stalled);
        }
        self.tell(Event::Pass {
            restored: *restored,
            connections,
            stalled,
        });
    }

    /// What is to be done for a connection because of the return.
    fn task(&self, now: Instant, connection: &Connection, restored: &Restored) -> Task {
        let is_open = connection.stage == Stage::Open;
        let is_told = restored.by != Indicator::FirstPacket;
        let thaws = connection.is_frozen && self.freezing.has(connection.id);
        let has_stalled = connection.has_stalled(now, self.config.limits.retry);
        // Where nobody knows of an outage the connection shows it.
        let was_away = restored.moved.is_none() || has_stalled;
        let restarts = connection.is_outstanding() && !connection.is_frozen && was_away;
        if self.config.mechanism == Mechanism::MTcp {
            return Task {
                restarts,
                thaws,
                marks: is_open && is_told,
                ..Task::default()
            };
        }
        Task {
            restarts,
            thaws,
            marks: false,
            // A peer that was heard just now needs no waking.
            wakes_peer: self.config.wakes_peer
                && is_open
                && may_wait(now, connection, restored)
                && restored.kind == Kind::Asymmetric
                && is_told,
            slow_start: self.config.forces_slow_start
                && connection.stage != Stage::Opening
                && restored.is_path_new
                && has_stalled
                && connection.timeouts == 0,
        }
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
        let has_work =
            task.restarts || task.thaws || task.marks || task.wakes_peer || task.slow_start;
        if !has_work || is_frozen_by_another {
            return false;
        }
        // It was only looked at because of an earlier return: what this one asks for is due now.
        if restored.by != Indicator::FirstPacket && !connection.is_frozen {
            self.stop_looking(connection.id);
        }
        let is_queued = self.queued.contains_key(&connection.id);
        // An earlier return is about to have it restarted; of this one it tells all the same.
        let task = Task {
            restarts: task.restarts && !is_queued,
            ..task
        };
        let is_told = !task.marks || self.telling.contains(&connection.id);
        let has_entry = is_queued && is_told;
        let is_full = !has_entry && self.queued.len() >= self.config.limits.connections;
        if has_entry || is_full {
            // Without an entry of its own it goes on at once: nothing else thaws it.
            if task.thaws {
                self.thaw(now, connection.id, Outstanding::Lost, stack);
            }
            self.counters.connections_left_out += u64::from(is_full);
            return !is_full;
        }
        self.queued.insert(connection.id, None);
        if task.marks {
            self.telling.insert(connection.id);
        }
        self.queue.push_back(Entry {
            id: connection.id,
            task,
            snd_una: connection.snd_una,
            min_rtt: connection.min_rtt,
            attempts: 0,
            advances: 0,
            until: now + WATCH,
            looks: 0,
            in_vain: 0,
            is_beside_another: is_queued,
            // Where nobody tells when data came, nobody tells that the peer has slept on. An idle one is not looked at.
            rcv_nxt: (connection.received_at != Instant::ZERO
                && may_wait(now, connection, restored))
            .then_some(connection.rcv_nxt),
        });
        !task.marks || !is_idle(now, connection, restored)
    }

    /// Restarts connections as long as the budget lasts.
    fn act(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        while !self.queue.is_empty() && self.budget.take(now) {
            if let Some(entry) = self.queue.pop_front() {
                self.restart(now, entry, stack);
            }
        }
    }

    /// Looks at the restarted connections that are due: who has made no progress is restarted again.
    fn look(&mut self, now: Instant, stack: &mut (impl EndpointControl + ?Sized)) {
        let is_due = |key: &(Instant, ConnectionId)| key.0 <= now;
        let first = [self.waiting.keys().next(), self.woken.keys().next()];
        if now < self.next_look || !first.into_iter().flatten().any(is_due) {
            return;
        }
        let found = self.list(stack);
        self.pause_looks(now, found.len());
        self.thaw_strays(now, &found, stack);
        let outstanding = found
            .iter()
            .filter(|connection| connection.is_outstanding());
        let at: BTreeMap<ConnectionId, Seen> = outstanding
            .map(|connection| (connection.id, Seen::of(connection)))
            .collect();
        let expected = found
            .iter()
            .map(|connection| (connection.id, connection.rcv_nxt));
        if !self.woken.is_empty() {
            self.look_at_peers(now, &expected.collect());
        }
        self.found = found;
        while let Some(first) = self
            .waiting
            .first_entry()
            .filter(|first| is_due(first.key()))
        {
            let mut entry = first.remove();
            match at.get(&entry.id) {
                None => {
                    self.queued.remove(&entry.id);
                }
                Some(seen) if seen.snd_una == entry.snd_una => {
                    let may_arrive = seen.sent_at + self.round_trip(&entry);
                    // A look that its stack has left to its own timer is no reason to wait for that.
                    let has_grace = entry.attempts > 0 || entry.looks == 0;
                    if entry.advances == 0 && has_grace && may_arrive > now {
                        // It retransmitted later than it was restarted, or moves by itself.
                        entry.looks += 1;
                        self.wait_until(may_arrive, entry);
                    } else if entry.advances == 0 || seen.is_silent || entry.in_vain >= IN_VAIN {
                        entry.in_vain = 0;
                        self.queue.push_back(entry);
                    } else {
                        // What it sent upon an acknowledgement may still be on its way (F-RTO; RFC 5682, section 2.1).
                        entry.looks += 1;
                        entry.in_vain += 1;
                        self.watch(now, entry);
                    }
                }
                Some(seen) => {
                    entry.snd_una = seen.snd_una;
                    entry.advances = entry.advances.saturating_add(1);
                    entry.in_vain = 0;
                    // What it was restarted with has come back, and brought nothing on its way.
                    if entry.attempts > 0 && entry.advances == 1 && seen.is_silent {
                        self.queue.push_back(entry);
                    } else {
                        self.watch(now, entry);
                    }
                }
            }
        }
    }

    /// A pass has gone through so many connections: the next look is after a pause.
    fn pause_looks(&mut self, now: Instant, connections: usize) {
        let count = u32::try_from(connections).unwrap_or(u32::MAX);
        self.next_look = now + LOOK_PAUSE.max(LOOK_PAUSE_PER_CONNECTION * count);
    }

    /// When a restarted connection is looked at next.
    fn next_look_at(&self, now: Instant, entry: &Entry) -> Instant {
        let running = entry.advances.saturating_sub(QUICK_ADVANCES);
        let doublings = match running.min(MOST_DOUBLINGS) {
            0 => entry.attempts.saturating_sub(1).min(16),
            doublings => doublings,
        };
        now + self.round_trip(entry) * (1 << doublings)
    }

    /// Looks at a restarted connection later, if it may be restarted again.
    fn wait(&mut self, now: Instant, entry: Entry) {
        self.wait_until(self.next_look_at(now, &entry), entry);
    }

    /// Looks later at a connection that has made progress, for the last time at the end of [`WATCH`].
    fn watch(&mut self, now: Instant, entry: Entry) {
        // A round trip is the least that shows anything new.
        if now + self.round_trip(&entry) > entry.until {
            self.queued.remove(&entry.id);
        } else {
            let at = self.next_look_at(now, &entry).min(entry.until);
            self.wait_until(at, entry);
        }
    }

    /// Looks at a restarted connection at that time, if it may be restarted again.
    fn wait_until(&mut self, at: Instant, entry: Entry) {
        let most = self.config.limits.attempts;
        let looks_in_vain = entry.looks >= LOOKS;
        if entry.attempts >= most || looks_in_vain {
            self.queued.remove(&entry.id);
            return;
        }
        self.queued.insert(entry.id, Some(at));
        self.waiting.insert((at, entry.id), entry);
    }

    /// Looks no more at a connection that waits for it.
    fn stop_looking(&mut self, id: ConnectionId) {
        if let Some(&Some(at)) = self.queued.get(&id)
            && self.waiting.remove(&(at, id)).is_some()
        {
            self.queued.remove(&id);
        }
    }

    /// Looks a round trip later whether the peer has made progress.
    fn await_peer(&mut self, now: Instant, entry: Entry) {
        let Some(rcv_nxt) = entry.rcv_nxt else {
            return;
        };
        if self.woken.len() < self.config.limits.connections {
            let attempts = entry.attempts + 1;
            // An indicator may come before packets pass: marks are repeated as restarts are, a peer is woken twice.
            let is_last = !entry.task.marks || attempts + 1 >= self.config.limits.attempts;
            let again = Entry {
                attempts: if entry.task.marks {
                    attempts
                } else {
                    entry.attempts
                },
                task: Task {
                    marks: entry.task.marks,
                    wakes_peer: entry.task.wakes_peer,
                    ..Task::default()
                },
                is_beside_another: true,
                rcv_nxt: entry.rcv_nxt.filter(|_| !is_last),
                ..entry
            };
            let doublings = u32::from(entry.attempts.min(16));
            let at = now + self.round_trip(&entry) * (1 << doublings);
            let woken = Woken {
                rcv_nxt,
                entry: again,
            };
            self.woken.insert((at, entry.id), woken);
        }
    }

    /// Who was woken and has made no progress is woken once more.
    fn look_at_peers(&mut self, now: Instant, at: &BTreeMap<ConnectionId, SeqNumber>) {
        while let Some(first) = self
            .woken
            .first_entry()
            .filter(|first| first.key().0 <= now)
        {
            let woken = first.remove();
            let id = woken.entry.id;
            if at.get(&id) != Some(&woken.rcv_nxt) {
                continue;
            }
            // A later return may have it tell already.
            let is_new = !woken.entry.task.marks || self.telling.insert(id);
            if is_new {
                self.queue.push_back(woken.entry);
            }
        }
    }

    /// A round trip, as long as it is once the queues have emptied.
    fn round_trip(&self, entry: &Entry) -> Duration {
        let round_trip = entry.min_rtt + entry.min_rtt / 4;
        self.config.limits.retry.max(round_trip)
    }

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
            entry.until = now + WATCH;
        }
        if task.slow_start && entry.is_first() {
            // Where the stack does not do it, all is as on a former path.
            entry.task.slow_start = self.note(stack.slow_start(now, id));
            self.counters.slow_starts += u64::from(entry.task.slow_start);
        }
        if task.wakes_peer && entry.is_first() && self.note(stack.wake_peer(now, id)) {
            self.counters.peers_woken += 1;
            self.await_peer(now, entry);
        }
        if task.marks {
            self.telling.remove(&id);
            if self.note(stack.send_marked_ack(now, id)) {
                self.counters.marked_acks += 1;
                self.await_peer(now, entry);
            }
            // A repetition comes by an entry of its own.
            entry.task.marks = false;
        }
        if task.thaws {
            self.thaw(now, id, Outstanding::Lost, stack);
        }
        if !task.restarts {
            if !entry.is_beside_another {
                self.queued.remove(&id);
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
            self.queued.remove(&id);
        } else {
            self.wait(now, entry);
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
        // As many links as may come back in one pass.
        if self.events.len() >= EVENTS + self.config.limits.links {
            self.events.pop_front();
        }
        self.events.push_back(event);
    }
}
