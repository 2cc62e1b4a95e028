//! The agents' protocol in the daemon: sessions with neighbours, and the journal, around the pure
//! [`Agents`].
//!
//! Of two neighbours the one with the lower address dials. Whoever says that it is a neighbour, and
//! has the key, replaces the session that this neighbour had: it would not have begun another.

mod connection;
pub mod key;
mod noise;
mod reload;
pub(crate) mod settings;
mod store;
mod strangers;

use super::indicators::Indicators;
use super::listening::{self, Door};
use crate::failure::Failure;
use anyhow::Context;
use connection::{Connection, Ended};
use key::SharedKey;
use outlast_agents::{Agents, Entry, Event, Left, Session, Site};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{self, Gateway};
use outlast_gateway::links::Direction;
use outlast_gateway::tracking::FlowKey;
use outlast_linux::poller::{Poller, Token};
use outlast_wire::{Packet, TcpFlags};
pub use settings::AgentSettings;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, TcpListener};
use store::Store;
use strangers::Strangers;

/// The first pause before a neighbour is dialled again, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How the poller calls the listener, and connections from which token on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens {
    pub(super) listener: Token,
    pub(super) first: u64,
}

/// This gateway's part among its neighbours.
#[derive(Debug)]
pub(super) struct Driver {
    agents: Agents,
    store: Store,
    /// What an earlier process has left.
    left: Left,
    sessions: Option<Sessions>,
}

#[derive(Debug)]
struct Sessions {
    own: SocketAddr,
    key: SharedKey,
    mark: u32,
    door: Door<TcpListener>,
    /// By token: the oldest has the lowest.
    connections: BTreeMap<u64, Connection>,
    next_token: u64,
    neighbours: BTreeMap<SocketAddr, Neighbour>,
    strangers: Strangers,
}

/// What is known of the way to a neighbour.
#[derive(Clone, Debug, Default)]
struct Neighbour {
    /// The connection that its session is on.
    session: Option<u64>,
    /// The connection that it is being dialled by.
    dialling: Option<u64>,
    /// When it is dialled next, if it is.
    dial_at: Option<Instant>,
    pause: Duration,
    failures: Failures,
}

/// Why there is no session with somebody, though it was tried.
#[derive(Clone, Debug, Default)]
pub(super) struct Failures {
    /// How often it was tried in vain since the last session.
    pub(super) count: u64,
    /// What was wrong the last time.
    pub(super) last: Option<String>,
}

/// What the gateway's part acts on.
pub(super) struct Place<'a> {
    pub(super) now: Instant,
    pub(super) gateway: &'a mut Gateway,
    pub(super) indicators: &'a Indicators,
    pub(super) poller: &'a Poller,
}

impl Driver {
    /// Opens journal and listener. `instance` is a number that nobody else has.
    pub(super) fn open(
        now: Instant,
        settings: &AgentSettings,
        (mark, instance): (u32, u64),
        poller: &Poller,
        tokens: Tokens,
    ) -> Result<Self, Failure> {
        let sessions = settings.listen.as_ref().map(|(own, key)| {
            let key = SharedKey::load(key)?;
            let listener = listening::listen("neighbours", *own, mark).map_err(|error| {
                Failure::Usage(format!(
                    "cannot listen for neighbours at {own}: {error}; `listen` in `[agents]` is an \
                     address of this host with a free port"
                ))
            })?;
            let door = Door::open(listener, tokens.listener, poller)
                .context("cannot wait for neighbours")?;
            let neighbours = settings.neighbours.iter().map(|neighbour| {
                let known = Neighbour {
                    dial_at: (own < neighbour).then_some(now),
                    pause: FIRST_PAUSE,
                    ..Neighbour::default()
                };
                (*neighbour, known)
            });
            Ok::<_, Failure>(Sessions {
                own: *own,
                key,
                mark,
                door,
                connections: BTreeMap::new(),
                next_token: tokens.first,
                neighbours: neighbours.collect(),
                strangers: Strangers::default(),
            })
        });
        let sessions = sessions.transpose()?;
        let (store, left) = Store::open(&settings.journal)?;
        Ok(Self {
            agents: Agents::new(settings.config(instance)),
            store,
            left,
            sessions,
        })
    }

    /// The state machine, for a status page.
    pub(super) const fn agents(&self) -> &Agents {
        &self.agents
    }

    /// Why there is no session with a neighbour, if there is none.
    pub(super) fn failures(&self, neighbour: SocketAddr) -> Option<&Failures> {
        let known = self.sessions.as_ref()?.neighbours.get(&neighbour)?;
        Some(&known.failures)
    }

    /// How often somebody has connected and no session has come of it.
    pub(super) fn strangers(&self) -> u64 {
        self.sessions.as_ref().map_or(0, |s| s.strangers.count())
    }

    /// Whether the journal could not be written.
    pub(super) fn is_store_broken(&self) -> bool {
        !self.store.is_sound()
    }

    /// Takes up what an earlier process has left, once links are known. How much that was.
    pub(super) fn restore(&mut self, place: &mut Place<'_>) -> usize {
        let left = std::mem::take(&mut self.left);
        let count = left.kept.len();
        self.act(place, |agents, site| agents.restore(site, left));
        count
    }

    /// Whether a packet is one of the neighbours' conversation, which is none of the gateway's.
    pub(super) fn is_own(&self, packet: &Packet) -> bool {
        let (Some(sessions), Some(tcp)) = (&self.sessions, packet.tcp()) else {
            return false;
        };
        let ip = packet.header().ip;
        let ends = [
            SocketAddr::new(ip.source, tcp.source_port),
            SocketAddr::new(ip.destination, tcp.destination_port),
        ];
        let is_neighbour = |end: &SocketAddr| sessions.neighbours.contains_key(end);
        let is_ours = |end: &SocketAddr| end.ip() == sessions.own.ip();
        (ends.iter().any(is_neighbour) && ends.iter().any(is_ours)) || ends.contains(&sessions.own)
    }

    pub(super) fn handle_gateway_event(&mut self, place: &mut Place<'_>, event: &gateway::Event) {
        self.act(place, |agents, site| {
            agents.handle_gateway_event(site, event);
        });
    }

    /// A packet of a mobile host's has come from the link.
    pub(super) fn handle_packet_of(
        &mut self,
        place: &mut Place<'_>,
        mobile: IpAddr,
        packet: &Packet,
    ) {
        if self.agents.awaits(mobile) || self.has_moved_here(place, mobile, packet) {
            self.handle_arrival(place, mobile);
        }
    }

    /// Whether the packet is of a connection that another supervisor host may have had so far.
    fn has_moved_here(&self, place: &Place<'_>, mobile: IpAddr, packet: &Packet) -> bool {
        if !place.gateway.supervises() {
            return false;
        }
        let is_amid = packet
            .tcp()
            .is_some_and(|tcp| !tcp.has(TcpFlags::SYN) && !tcp.has(TcpFlags::RST));
        let key = FlowKey::of_tcp(packet.header(), Direction::FromLink).filter(|_| is_amid);
        key.is_some_and(|key| {
            let is_known = place.gateway.is_tracked(&key);
            self.agents.shows_move(place.now, mobile, is_known)
        })
    }

    /// An indicator says that a mobile host is there.
    pub(super) fn handle_arrival(&mut self, place: &mut Place<'_>, mobile: IpAddr) {
        self.act(place, |agents, site| agents.handle_arrival(site, mobile));
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let sessions = self.sessions.iter();
        let dials = sessions
            .clone()
            .flat_map(|s| s.neighbours.values().filter_map(|n| n.dial_at));
        let doors = sessions.clone().filter_map(|s| s.door.poll_timeout());
        let waiting = sessions.flat_map(|s| s.connections.values());
        let waiting = waiting.filter(|c| !c.is_up()).map(|c| c.until);
        let agents = self.agents.poll_timeout().map(|(at, _)| at);
        dials.chain(doors).chain(waiting).chain(agents).min()
    }

    pub(super) fn handle_timeout(&mut self, place: &mut Place<'_>) {
        let now = place.now;
        if self.agents.poll_timeout().is_some_and(|(at, _)| at <= now) {
            self.act(place, Agents::handle_timeout);
        }
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        sessions.door.handle_timeout(now, place.poller);
        let is_late = |c: &Connection| !c.is_up() && c.until <= now;
        let late = sessions.connections.iter().filter(|(_, c)| is_late(c));
        for token in late.map(|(token, _)| *token).collect::<Vec<_>>() {
            self.close(place, token, "no session in time");
        }
        self.dial_all(place);
    }

    /// Somebody connects.
    pub(super) fn accept(&mut self, place: &mut Place<'_>) {
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        let (stream, from) = match sessions.door.accept(place.now, place.poller) {
            Ok(Some(accepted)) => accepted,
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%error, "cannot accept a neighbour");
                return;
            }
        };
        let token = sessions.fresh_token();
        let (key, own, mark) = (&sessions.key, sessions.own, sessions.mark);
        let at = (place.poller, Token(token));
        match Connection::accept(place.now, key, own, stream, mark, at) {
            Ok(connection) => drop(sessions.connections.insert(token, connection)),
            Err(error) => sessions.strangers.tell(from.ip(), &error.to_string()),
        }
        let unknown = sessions.connections.iter().filter(|(_, c)| !c.is_up());
        let unknown = unknown.map(|(token, connection)| (*token, connection.from()));
        let neighbours = &sessions.neighbours;
        let is_neighbour = |from| neighbours.keys().any(|neighbour| neighbour.ip() == from);
        if let Some(token) = strangers::one_too_many(unknown, is_neighbour) {
            self.close(place, token, "too many at once");
        }
    }

    /// A connection is ready.
    pub(super) fn serve(&mut self, place: &mut Place<'_>, token: u64) {
        let sessions = self.sessions.as_mut();
        let connection = sessions.and_then(|s| s.connections.get_mut(&token));
        let Some(connection) = connection else {
            return;
        };
        let received = match connection.serve(place.poller) {
            Ok(received) => received,
            Err(error) => return self.close(place, token, &error.to_string()),
        };
        let Some(peer) = connection.peer() else {
            return;
        };
        if received.is_new
            && let Some(dialled) = self.dialled_by(token).filter(|dialled| *dialled != peer)
        {
            let why = format!("it is not there: {peer} answers at {dialled}");
            return self.close(place, token, &why);
        }
        if received.is_new && !self.begin(place, token, peer) {
            let why = format!("{peer} is none of `neighbours`");
            return self.close(place, token, &why);
        }
        for message in received.messages {
            let heard = self.act(place, |agents, site| {
                agents.handle_message(site, peer, &message)
            });
            if let Err(error) = heard {
                return self.close(place, token, &format!("a message that is none: {error}"));
            }
        }
    }

    /// Makes durable what has to be, before packets and messages are sent that say so.
    pub(super) fn write_down(&mut self) {
        let records: Vec<_> = std::iter::from_fn(|| self.agents.poll_record()).collect();
        self.append(&records, true);
    }

    /// The next packet to send past the gateway, to wherever its destination is.
    pub(super) fn poll_packet(&mut self) -> Option<Packet> {
        self.agents.poll_packet()
    }

    /// Sends messages, tells what has happened, and writes down what is over. Whether anything was
    /// to be told.
    pub(super) fn settle(&mut self, place: &mut Place<'_>) -> bool {
        self.send_messages(place);
        let removals: Vec<_> = std::iter::from_fn(|| self.agents.poll_removal()).collect();
        self.append(&removals, false);
        let events: Vec<_> = std::iter::from_fn(|| self.agents.poll_event()).collect();
        for event in &events {
            tell(event);
            if let Event::Silent { agent } = event
                && let Some(token) = self.session_of(*agent)
            {
                self.close(place, token, "nothing was heard of it");
            }
        }
        !events.is_empty()
    }

    fn act<T>(
        &mut self,
        place: &mut Place<'_>,
        what: impl FnOnce(&mut Agents, &mut Site<'_>) -> T,
    ) -> T {
        let indicators = place.indicators;
        let mut site = Site {
            now: place.now,
            gateway: place.gateway,
            link_to: &|far| indicators.link_to(far),
        };
        what(&mut self.agents, &mut site)
    }

    fn append(&mut self, entries: &[Entry], is_durable: bool) {
        let was_broken = self.is_store_broken();
        match self.store.append(entries, is_durable) {
            Err(error) if !was_broken => tracing::error!(
                %error,
                "the journal cannot be written: what is frozen from now on is lost in a crash"
            ),
            Err(error) => tracing::debug!(%error, "the journal cannot be written"),
            Ok(()) if was_broken && !self.is_store_broken() => {
                tracing::info!("the journal is written again, and has all that is frozen");
            }
            Ok(()) => {}
        }
    }

    fn send_messages(&mut self, place: &mut Place<'_>) {
        let sessions = self.sessions.iter();
        let up = sessions.flat_map(|s| s.neighbours.iter());
        let up: Vec<_> = up
            .filter_map(|(n, known)| Some((*n, known.session?)))
            .collect();
        for (neighbour, token) in up {
            if let Err(error) = self.send_messages_to(place, neighbour, token) {
                self.close(place, token, &error.to_string());
            }
        }
    }

    fn send_messages_to(
        &mut self,
        place: &mut Place<'_>,
        neighbour: SocketAddr,
        token: u64,
    ) -> Result<(), Ended> {
        loop {
            let sessions = self.sessions.as_mut();
            let connection = sessions.and_then(|s| s.connections.get_mut(&token));
            let Some(connection) = connection else {
                return Ok(());
            };
            if !connection.has_room() {
                connection.flush(place.poller)?;
            }
            if !connection.has_room() {
                return Ok(());
            }
            let poll =
                |agents: &mut Agents, site: &mut Site<'_>| agents.poll_transmit(site, neighbour);
            let Some(message) = self.act(place, poll) else {
                break;
            };
            if let Some(connection) = self.connection(token) {
                connection.send(&message)?;
            }
        }
        match self.connection(token) {
            Some(connection) => connection.flush(place.poller),
            None => Ok(()),
        }
    }

    fn connection(&mut self, token: u64) -> Option<&mut Connection> {
        self.sessions.as_mut()?.connections.get_mut(&token)
    }

    /// Who is dialled by a connection that has no session yet.
    fn dialled_by(&self, token: u64) -> Option<SocketAddr> {
        let mut known = self.sessions.as_ref()?.neighbours.iter();
        let dialled = known.find(|(_, known)| known.dialling == Some(token));
        dialled.map(|(neighbour, _)| *neighbour)
    }

    fn session_of(&self, neighbour: SocketAddr) -> Option<u64> {
        self.sessions.as_ref()?.neighbours.get(&neighbour)?.session
    }

    /// A session begins with who says to be `peer`; whether that is a neighbour.
    fn begin(&mut self, place: &mut Place<'_>, token: u64, peer: SocketAddr) -> bool {
        let sessions = self.sessions.as_mut();
        let Some(known) = sessions.and_then(|s| s.neighbours.get_mut(&peer)) else {
            return false;
        };
        let before = known.session.replace(token);
        known.dial_at = None;
        known.dialling = None;
        known.pause = FIRST_PAUSE;
        known.failures = Failures::default();
        if let Some(sessions) = &mut self.sessions {
            sessions.strangers.forget(peer.ip());
        }
        if let Some(before) = before
            && let Some(sessions) = &mut self.sessions
        {
            sessions.connections.remove(&before);
        }
        tracing::info!(neighbour = %peer, "session with a neighbour");
        if before.is_some() {
            self.act(place, |agents, site| {
                agents.handle_session(site, peer, Session::Down);
            });
        }
        self.act(place, |agents, site| {
            agents.handle_session(site, peer, Session::Up);
        });
        true
    }

    fn close(&mut self, place: &mut Place<'_>, token: u64, why: &str) {
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        let Some(connection) = sessions.connections.remove(&token) else {
            return;
        };
        let of_session = sessions
            .neighbours
            .iter_mut()
            .find(|(_, known)| known.session == Some(token) || known.dialling == Some(token));
        let Some((&neighbour, known)) = of_session else {
            if let Some(from) = connection.from() {
                sessions.strangers.tell(from, why);
                let of_it = sessions.neighbours.iter_mut();
                for (_, known) in of_it.filter(|(n, k)| n.ip() == from && k.session.is_none()) {
                    known.failures.note(why);
                }
            }
            return;
        };
        let (now, was_up) = (place.now, known.session == Some(token));
        (known.session, known.dialling) = (None, None);
        let dials = sessions.own < neighbour;
        if was_up {
            tracing::warn!(%neighbour, "the session with a neighbour has ended: {why}");
            self.act(place, |agents, site| {
                agents.handle_session(site, neighbour, Session::Down);
            });
        } else {
            known.tell_missing(neighbour, why);
        }
        if dials && let Some(known) = self.known(neighbour) {
            known.wait(now);
        }
    }

    fn known(&mut self, neighbour: SocketAddr) -> Option<&mut Neighbour> {
        self.sessions.as_mut()?.neighbours.get_mut(&neighbour)
    }

    fn dial_all(&mut self, place: &mut Place<'_>) {
        let Some(sessions) = &mut self.sessions else {
            return;
        };
        let is_due = |known: &Neighbour| known.dial_at.is_some_and(|at| at <= place.now);
        let due = sessions
            .neighbours
            .iter()
            .filter(|(_, known)| is_due(known));
        let due: Vec<_> = due.map(|(neighbour, _)| *neighbour).collect();
        for neighbour in due {
            let token = sessions.fresh_token();
            let (key, own, mark) = (&sessions.key, sessions.own, sessions.mark);
            let at = (place.poller, Token(token));
            let dialled = Connection::dial(place.now, key, own, neighbour, mark, at);
            let Some(known) = sessions.neighbours.get_mut(&neighbour) else {
                continue;
            };
            match dialled {
                Ok(connection) => {
                    known.dial_at = None;
                    known.dialling = Some(token);
                    sessions.connections.insert(token, connection);
                }
                Err(error) => {
                    known.tell_missing(neighbour, &error.to_string());
                    known.wait(place.now);
                }
            }
        }
    }
}

impl Neighbour {
    /// Has the neighbour dialled again later.
    fn wait(&mut self, now: Instant) {
        self.dial_at = Some(now + self.pause);
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
    }

    /// Logs that the neighbour is missing, as a warning if the reason is new.
    fn tell_missing(&mut self, neighbour: SocketAddr, why: &str) {
        match self.failures.note(why) {
            true => tracing::warn!(%neighbour, "no session with a neighbour: {why}"),
            false => tracing::debug!(%neighbour, "no session with a neighbour yet: {why}"),
        }
    }
}

impl Failures {
    /// One more; whether its reason is another one than the last.
    fn note(&mut self, why: &str) -> bool {
        self.count += 1;
        let is_news = self.last.as_deref() != Some(why);
        self.last = Some(why.to_owned());
        is_news
    }
}

impl Sessions {
    fn fresh_token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }
}

fn tell(event: &Event) {
    match event {
        Event::Lent { flow, to } => {
            tracing::debug!(near = %flow.near, far = %flow.far, %to, "lent");
        }
        Event::TakenOver { flow, from } => {
            tracing::debug!(near = %flow.near, far = %flow.far, %from, "taken over");
        }
        Event::Settled { flow, by, outcome } => {
            tracing::debug!(near = %flow.near, far = %flow.far, %by, ?outcome, "settled");
        }
        Event::Reset { flow, lost } => {
            tracing::warn!(near = %flow.near, far = %flow.far, %lost, "reset: a neighbour is lost");
        }
        Event::Silent { agent } => tracing::warn!(neighbour = %agent, "silent"),
    }
}

#[cfg(test)]
mod tests;
