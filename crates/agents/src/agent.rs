//! One gateway's part in the protocol.
//!
//! For a connection that is frozen here this is the *old* agent, for one whose segment another
//! agent keeps the *new* one; every agent is both.

mod losing;
mod messages;
mod neighbour;
mod owning;
mod recent;
mod reconfigure;
mod supervising;

use crate::codec::DecodeError;
use crate::journal::{Entry, Left};
use crate::message::{FreezeId, Message, Outcome};
use crate::prefix::Prefix;
use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use neighbour::{Intent, Neighbour};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{self, Gateway};
use outlast_gateway::links::LinkId;
use outlast_gateway::tracking::FlowKey;
use outlast_wire::Packet;
use owning::Own;
use recent::Recent;
pub use reconfigure::StillNeeded;

/// What an agent is made with.
#[derive(Clone, Debug)]
pub struct Config {
    /// Drawn at random for each start: nobody else has it, and it is never used again.
    pub instance: u64,
    /// The other agents, by the address that each listens at.
    pub neighbours: Vec<SocketAddr>,
    /// The mobiles for which segments are given and taken; all of them if it is empty.
    pub mobiles: Vec<Prefix>,
    /// How long a neighbour may be away before what depends on it is reset.
    pub lost_after: Duration,
    /// Hard caps.
    pub limits: Limits,
}

/// The caps of one agent. What the segments themselves take is the gateway's to bound.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Frozen connections that one neighbour may tell of. It has nobody to reset those past it.
    pub notices: usize,
    /// Segments of others that are delivered here at once. More are refused.
    pub copies: usize,
    /// Messages that wait for one neighbour to take them, beside those of what is frozen here. If it
    /// says more past that, the session ends: a new one begins with all that there is to say.
    pub unsaid: usize,
}

impl Config {
    /// How long a neighbour may be away, unless somebody says otherwise: long enough for a daemon
    /// to be started anew, short of what an application waits.
    pub const LOST_AFTER: Duration = Duration::from_secs(30);
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            notices: 65_536,
            copies: 16_384,
            unsaid: 262_144,
        }
    }
}

/// Where an agent acts.
pub struct Site<'a> {
    /// The time.
    pub now: Instant,
    /// Its gateway.
    pub gateway: &'a mut Gateway,
    /// The link that leads to a mobile.
    pub link_to: &'a dyn Fn(IpAddr) -> LinkId,
}

/// Whether there is an authenticated channel to a neighbour.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Session {
    /// There is, and a new one.
    Up,
    /// There is none any more.
    #[default]
    Down,
}

/// Something a status page or a log tells.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// A neighbour delivers a segment that is kept here, or supervises a connection that was supervised
    /// here.
    Lent {
        /// The connection.
        flow: FlowKey,
        /// The neighbour.
        to: SocketAddr,
    },
    /// A segment that a neighbour keeps is delivered here, or a connection is supervised here that it
    /// has supervised.
    TakenOver {
        /// The connection.
        flow: FlowKey,
        /// The neighbour.
        from: SocketAddr,
    },
    /// A neighbour has ended with a segment that is kept here, or was.
    Settled {
        /// The connection.
        flow: FlowKey,
        /// The neighbour.
        by: SocketAddr,
        /// How.
        outcome: Outcome,
    },
    /// A connection was reset at both ends, because a neighbour is lost that it depended on.
    Reset {
        /// The connection.
        flow: FlowKey,
        /// The neighbour.
        lost: SocketAddr,
    },
    /// A neighbour's channel is silent: the driver is to close it, and to say so.
    Silent {
        /// The neighbour.
        agent: SocketAddr,
    },
}

/// A packet that comes so soon after its mobile's connections were handed over has been on its way.
const UNDER_WAY: Duration = Duration::from_secs(1);
/// So many mobiles whose connections neighbours have are known at most; the others take an indicator to
/// come back.
const MOST_GIVEN: usize = 4_096;

/// Why an agent wants to be called.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum TimeoutReason {
    /// A neighbour is to hear that this agent is there.
    Alive,
    /// A neighbour ought to have been heard.
    Silence,
    /// A neighbour counts as lost.
    Lost,
}

/// Counts since the agent began; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Segments and supervised connections given to neighbours.
    pub lent: u64,
    /// Segments and supervised connections taken over from neighbours.
    pub taken_over: u64,
    /// Segments that neighbours have had acknowledged.
    pub settled: u64,
    /// Segments that were refused, here or by neighbours, and supervised connections that were here.
    pub refused: u64,
    /// Connections reset because a neighbour was lost.
    pub reset: u64,
    /// Frozen connections of neighbours of which no note was taken, past the cap or of mobiles that
    /// are not served.
    pub not_noted: u64,
    /// Sessions that were ended because the neighbour took too little of what was said to it.
    pub unread: u64,
}

/// The supervised connections of one mobile, taken over from one neighbour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Move {
    /// The mobile.
    pub mobile: IpAddr,
    /// The neighbour that has supervised its connections.
    pub from: SocketAddr,
    /// How many have come, with those of which more was known here by then.
    pub connections: u64,
    /// When the mobile was known to be here.
    pub arrived: Instant,
    /// From then until the last of them was handed over.
    pub took: Duration,
}

/// No such neighbour was configured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0} is no neighbour")]
pub struct UnknownNeighbour(pub SocketAddr);

/// A neighbour, for a status page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct NeighbourView {
    /// Where it listens.
    pub agent: SocketAddr,
    /// Whether there is a channel to it.
    pub session: Session,
    /// When what depends on it is reset, unless it comes back.
    pub lost_at: Option<Instant>,
    /// Frozen connections that it has told of.
    pub frozen: usize,
}

/// A frozen connection, for a status page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct View {
    /// The connection.
    pub flow: FlowKey,
    /// Who delivers its segment, if it is not this agent.
    pub lent_to: Option<SocketAddr>,
    /// Whom it was taken over from, if it was not frozen here.
    pub taken_from: Option<SocketAddr>,
}

/// One gateway's part in the protocol.
#[derive(Debug)]
pub struct Agents {
    config: Config,
    neighbours: BTreeMap<SocketAddr, Neighbour>,
    /// What is frozen in the gateway.
    own: BTreeMap<FlowKey, Own>,
    ids: BTreeMap<FreezeId, FlowKey>,
    /// What was kept here and is over, while a neighbour has not heard of it that is there, or may be
    /// back in time.
    over: BTreeMap<FreezeId, Outcome>,
    /// How much of it was taken over.
    copies: usize,
    next_number: u64,
    /// Notices by the mobile that they are about.
    awaited: BTreeSet<(IpAddr, SocketAddr, FreezeId)>,
    /// What is lent, by mobile.
    lent: BTreeSet<(IpAddr, FlowKey)>,
    /// Mobiles that have come here. A notice of theirs may come after them.
    arrived: Recent<Instant>,
    /// Mobiles whose supervised connections neighbours have, and since when.
    given: BTreeMap<IpAddr, Instant>,
    /// The last move of a mobile's supervised connections to this agent.
    last_move: Option<Move>,
    /// Where mobiles are said to be now. They may be found missing after that.
    moved: Recent<SocketAddr>,
    packets: VecDeque<Packet>,
    records: VecDeque<Entry>,
    removals: VecDeque<Entry>,
    events: VecDeque<Event>,
    counters: Counters,
}

impl Agents {
    /// An agent without sessions, for whom nothing is frozen.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let named = config.neighbours.iter();
        let neighbours = named.map(|&agent| (agent, Neighbour::default()));
        Self {
            neighbours: neighbours.collect(),
            config,
            own: BTreeMap::new(),
            ids: BTreeMap::new(),
            over: BTreeMap::new(),
            copies: 0,
            next_number: 0,
            awaited: BTreeSet::new(),
            lent: BTreeSet::new(),
            arrived: Recent::default(),
            given: BTreeMap::new(),
            last_move: None,
            moved: Recent::default(),
            packets: VecDeque::new(),
            records: VecDeque::new(),
            removals: VecDeque::new(),
            events: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    /// Takes up what an earlier instance of this agent has left in its journal: it is delivered,
    /// or reset where it cannot be kept, and neighbours hear what is over. What is kept is recorded
    /// anew, what is over is not.
    pub fn restore(&mut self, site: &mut Site<'_>, left: Left) {
        if !left.kept.is_empty() || !left.over.is_empty() {
            for neighbour in self.neighbours.values_mut() {
                // It may know of it.
                neighbour.expect(site.now, self.config.lost_after);
            }
        }
        for id in left.over {
            // How is not written down. Who still has it lets go of it either way.
            self.end(id, Outcome::Acknowledged, None);
        }
        for kept in left.kept.into_values() {
            self.take_up(site, kept);
        }
    }

    /// A channel to a neighbour is there, or is gone. Nothing happens for one that is not
    /// configured.
    pub fn handle_session(&mut self, site: &mut Site<'_>, agent: SocketAddr, session: Session) {
        match session {
            Session::Up => self.begin_session(site.now, agent),
            Session::Down => self.end_session(site.now, agent),
        }
    }

    /// A neighbour says something.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no message, or none that may come now. The driver closes the
    /// channel and says so.
    pub fn handle_message(
        &mut self,
        site: &mut Site<'_>,
        agent: SocketAddr,
        bytes: &[u8],
    ) -> Result<(), DecodeError> {
        let message = Message::decode(bytes)?;
        self.hear(site, agent, message)
    }

    /// Something has happened at the gateway.
    pub fn handle_gateway_event(&mut self, site: &mut Site<'_>, event: &gateway::Event) {
        match *event {
            gateway::Event::Frozen { flow } => self.note_frozen(site, flow),
            gateway::Event::Thawed { flow, is_reset } => {
                let outcome = match is_reset {
                    true => Outcome::Reset,
                    false => Outcome::Acknowledged,
                };
                self.finish(flow, outcome, None);
            }
            _ => {}
        }
    }

    /// A mobile is here: an indicator says so, or a packet of its has come from the link. The
    /// latter need not be told unless [`Self::awaits`] it.
    pub fn handle_arrival(&mut self, site: &mut Site<'_>, mobile: IpAddr) {
        self.arrived.note(site.now, mobile, site.now);
        self.given.remove(&mobile);
        self.take_back(site, mobile);
        self.ask_for(site.now, mobile);
        self.ask_for_supervised(site, mobile);
    }

    /// Somebody who knows says where a mobile is now. Says how many connections were handed over.
    ///
    /// # Errors
    /// [`UnknownNeighbour`] if that is no neighbour.
    pub fn handle_moved(
        &mut self,
        site: &mut Site<'_>,
        mobile: IpAddr,
        to: SocketAddr,
    ) -> Result<usize, UnknownNeighbour> {
        if !self.neighbours.contains_key(&to) {
            return Err(UnknownNeighbour(to));
        }
        self.moved.note(site.now, mobile, to);
        let of_mobile = self.own.iter().filter(|(flow, _)| flow.far.ip() == mobile);
        let ids: Vec<_> = of_mobile.map(|(_, own)| own.id).collect();
        for id in &ids {
            self.lend(site, *id, to);
        }
        Ok(ids.len() + self.hand_off(site, mobile, to))
    }

    /// The time that [`Self::poll_timeout`] gave has come.
    pub fn handle_timeout(&mut self, site: &mut Site<'_>) {
        let now = site.now;
        let named: Vec<_> = self.neighbours.keys().copied().collect();
        for agent in named {
            let Some(neighbour) = self.neighbours.get_mut(&agent) else {
                continue;
            };
            if neighbour.is_silent(now) {
                self.events.push_back(Event::Silent { agent });
                self.end_session(now, agent);
            } else if neighbour.is_lost(now) {
                self.lose(site, agent);
            } else if neighbour.alive_at().is_some_and(|at| at <= now) {
                neighbour.say(Intent::Alive);
            }
        }
    }

    /// What is to be written down before anything is sent.
    #[must_use]
    pub fn poll_record(&mut self) -> Option<Entry> {
        self.records.pop_front()
    }

    /// What is to be written down once everything is sent. If that is lost, nothing is: it is found
    /// again, and found to be over.
    #[must_use]
    pub fn poll_removal(&mut self) -> Option<Entry> {
        self.removals.pop_front()
    }

    /// The next packet to send to wherever its destination is now, past the gateway.
    #[must_use]
    pub fn poll_packet(&mut self) -> Option<Packet> {
        self.packets.pop_front()
    }

    /// The next message to a neighbour. It is made when it is asked for: the driver need not ask
    /// before there is room for it.
    #[must_use]
    pub fn poll_transmit(&mut self, site: &mut Site<'_>, agent: SocketAddr) -> Option<Vec<u8>> {
        loop {
            let intent = self.neighbours.get_mut(&agent)?.next(site.now)?;
            if let Some(message) = self.compose(site, agent, intent) {
                return Some(message.encode());
            }
        }
    }

    /// The next thing to tell.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to call [`Self::handle_timeout`], and why.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, TimeoutReason)> {
        let of = |neighbour: &Neighbour| {
            let alive = neighbour.alive_at().map(|at| (at, TimeoutReason::Alive));
            let silence = neighbour.silent_at().map(|at| (at, TimeoutReason::Silence));
            let lost = neighbour.lost_at.map(|at| (at, TimeoutReason::Lost));
            [alive, silence, lost]
        };
        self.neighbours.values().flat_map(of).flatten().min()
    }

    /// Whether a packet of this mobile's would be news.
    #[must_use]
    pub fn awaits(&self, mobile: IpAddr) -> bool {
        self.notices_of(mobile).next().is_some() || self.lent_of(mobile).next().is_some()
    }

    /// Whether a packet of a mobile's, of a connection that `is_known` here or not, shows that it has come
    /// from a neighbour with its supervised connections: [`Self::handle_arrival`] is to be told.
    #[must_use]
    pub fn shows_move(&self, now: Instant, mobile: IpAddr, is_known: bool) -> bool {
        match self.given.get(&mobile) {
            // What comes at once was on its way.
            Some(since) => now.since(*since) >= UNDER_WAY,
            None => !is_known && self.serves(mobile) && self.arrived.said_of(now, mobile).is_none(),
        }
    }

    /// The last move of a mobile's supervised connections to this agent.
    #[must_use]
    pub const fn last_move(&self) -> Option<&Move> {
        self.last_move.as_ref()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The neighbours, in the order of their addresses.
    pub fn neighbours(&self) -> impl Iterator<Item = NeighbourView> {
        self.neighbours
            .iter()
            .map(|(&agent, neighbour)| NeighbourView {
                agent,
                session: neighbour.session,
                lost_at: neighbour.lost_at,
                frozen: neighbour.notices.len(),
            })
    }

    /// What is frozen in the gateway.
    pub fn frozen(&self) -> impl Iterator<Item = View> {
        self.own.iter().map(|(&flow, own)| View {
            flow,
            lent_to: own.borrower(),
            taken_from: own.from,
        })
    }

    fn serves(&self, mobile: IpAddr) -> bool {
        let mobiles = &self.config.mobiles;
        mobiles.is_empty() || mobiles.iter().any(|prefix| prefix.contains(mobile))
    }

    /// Notices that are about a mobile.
    fn notices_of(&self, mobile: IpAddr) -> impl Iterator<Item = (SocketAddr, FreezeId)> {
        let of_mobile = self.awaited.range((mobile, FIRST_AGENT, FIRST_ID)..);
        of_mobile
            .take_while(move |(other, _, _)| *other == mobile)
            .map(|(_, agent, id)| (*agent, *id))
    }

    fn lent_of(&self, mobile: IpAddr) -> impl Iterator<Item = FlowKey> {
        let first = FlowKey {
            near: FIRST_AGENT,
            far: FIRST_AGENT,
        };
        let of_mobile = self.lent.range((mobile, first)..);
        of_mobile
            .take_while(move |(other, _)| *other == mobile)
            .map(|(_, flow)| *flow)
    }

    fn say(&mut self, agent: SocketAddr, intent: Intent) {
        if let Some(neighbour) = self.neighbours.get_mut(&agent) {
            neighbour.say(intent);
        }
    }

    fn say_to_all(&mut self, intent: Intent) {
        for neighbour in self.neighbours.values_mut() {
            neighbour.say(intent);
        }
    }
}

/// No address comes before it.
const FIRST_AGENT: SocketAddr = SocketAddr::new(IpAddr::V4(core::net::Ipv4Addr::UNSPECIFIED), 0);
/// No freeze comes before it.
const FIRST_ID: FreezeId = FreezeId {
    instance: 0,
    number: 0,
};
