//! What a mechanism beside a TCP stack may do to it.
//!
//! Endpoint mechanisms - the retransmission trigger and the user timeout of Schütz and others 2005, fast
//! retransmission after a hand-off of Cáceres and Iftode 1995, the sender of Brown and Singh 1997 that freezes - act on a
//! stack only through [`EndpointControl`]. The endpoint model implements it by its own methods, a
//! running kernel by what it offers from outside. A mechanism cannot tell which of the two it acts
//! on, except by [`ControlError::NotSupported`].

use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::links::{InterfaceId, LinkId};
use outlast_wire::SeqNumber;
use thiserror::Error;

/// Acknowledgements alike that make a peer without SACK retransmit: one that it may have missed
/// before, and three duplicates (RFC 5681, section 3.2).
pub const DUPLICATE_ACKS: u8 = 4;

/// What tells one connection of a host from another.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionId {
    /// Address and port at this host.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
}

/// The interface and next hop that a connection's packets leave by.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Via {
    /// The interface.
    pub interface: InterfaceId,
    /// The router; `None` where the peer itself is the next hop, or nobody knows.
    pub next_hop: Option<IpAddr>,
}

/// How far a connection has come (RFC 9293, section 3.3.2).
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Stage {
    /// A SYN is out: SYN-SENT or SYN-RECEIVED.
    Opening,
    /// Data may go both ways, or still from here: ESTABLISHED or CLOSE-WAIT.
    Open,
    /// This host has nothing new to send: FIN-WAIT-1, FIN-WAIT-2, CLOSING or LAST-ACK.
    Closing,
}

/// A connection, as far as a mechanism needs to know it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Connection {
    /// Which one it is.
    pub id: ConnectionId,
    /// Which way its packets leave the host; `None` on a host that has one way.
    pub via: Option<Via>,
    /// How far it has come.
    pub stage: Stage,
    /// Oldest sequence number that is not acknowledged.
    pub snd_una: SeqNumber,
    /// Next sequence number to be sent; equal to `snd_una` if nothing is outstanding.
    pub snd_nxt: SeqNumber,
    /// Next sequence number that is expected.
    pub rcv_nxt: SeqNumber,
    /// Retransmission timeouts since the last progress.
    pub timeouts: u32,
    /// Least round-trip time of late, or the smoothed one where the stack keeps no least; zero before
    /// the first sample.
    pub min_rtt: Duration,
    /// When the peer was last heard of; zero where the stack does not tell.
    pub heard_at: Instant,
    /// When data was last sent; zero where the stack does not tell.
    pub sent_at: Instant,
    /// When data last came from the peer; zero where the stack does not tell.
    pub received_at: Instant,
    /// User timeout in force; `None` where the stack's own limits hold.
    pub user_timeout: Option<Duration>,
    /// [`EndpointControl::freeze`] is in force.
    pub is_frozen: bool,
}

impl Connection {
    /// Whether something was sent that is not acknowledged.
    #[must_use]
    pub fn is_outstanding(&self) -> bool {
        self.snd_una != self.snd_nxt
    }

    /// Whether it has sent nothing since it last heard from its peer, although data is outstanding. After
    /// its first acknowledgement a restarted connection for which that holds has nothing on its way: it
    /// waits for its timer.
    #[must_use]
    pub fn is_silent(&self) -> bool {
        let is_told = self.sent_at != Instant::ZERO;
        is_told && self.is_outstanding() && self.sent_at < self.heard_at
    }

    /// Whether the connection waits for its peer in vain: data is outstanding, and after a timeout, or for at least `pause`
    /// and a round trip with empty queues, nothing has come. Where the stack does not tell when something came, whatever
    /// is outstanding counts.
    #[must_use]
    pub fn has_stalled(&self, now: Instant, pause: Duration) -> bool {
        let round_trip = self.min_rtt + self.min_rtt / 4;
        let is_overdue = self.heard_at == Instant::ZERO
            || now.since(self.heard_at) >= pause.max(round_trip)
                && now.since(self.sent_at) >= round_trip;
        self.is_outstanding() && (self.timeouts > 0 || is_overdue)
    }

    /// Whether the connection's packets cross `link`.
    #[must_use]
    pub fn crosses(&self, link: LinkId) -> bool {
        let interface = self.via.is_none_or(|via| via.interface == link.interface);
        let next_hop = self.via.and_then(|via| via.next_hop);
        let peer = link
            .peer
            .is_none_or(|peer| peer == self.id.remote.ip() || Some(peer) == next_hop);
        interface && peer
    }
}

/// One of the things that [`EndpointControl`] does.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Action {
    /// [`EndpointControl::connections`].
    List,
    /// [`EndpointControl::retransmit_now`].
    Retransmit,
    /// [`EndpointControl::fast_retransmit`].
    FastRetransmit,
    /// [`EndpointControl::send_duplicate_acks`].
    DuplicateAcks,
    /// [`EndpointControl::wake_peer`].
    WakePeer,
    /// [`EndpointControl::send_marked_ack`].
    MarkedAck,
    /// [`EndpointControl::slow_start`].
    SlowStart,
    /// [`EndpointControl::set_user_timeout`].
    UserTimeout,
    /// [`EndpointControl::freeze`].
    Freeze,
    /// [`EndpointControl::thaw`].
    Thaw,
}

/// What came of an action.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outcome {
    /// The stack has done it.
    Done,
    /// There was nothing to do.
    Needless(Needless),
}

/// What has become of what was outstanding when a connection was frozen (Brown and Singh 1997, figure 5).
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Outstanding {
    /// The link was away: all of it must have been lost.
    Lost,
    /// Packets were only slow: it is still on its way.
    OnItsWay,
}

/// Why there was nothing to do.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Needless {
    /// Nothing was sent that is not acknowledged.
    NothingOutstanding,
    /// The stack is already recovering.
    Recovering,
    /// The connection is frozen.
    Frozen,
    /// The stack's own timer has not backed off yet, and fires within one timeout.
    NotBackedOff,
    /// It was so before.
    Already,
}

/// Why an action failed.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum ControlError {
    /// The host has no such connection, or no longer.
    #[error("there is no connection from {} to {}", .0.local, .0.remote)]
    Unknown(ConnectionId),
    /// The connection has not come far enough, or too far.
    #[error("the connection to {} is not open", .0.remote)]
    NotOpen(ConnectionId),
    /// This stack cannot be made to do it from outside.
    #[error("this stack cannot do {0:?}")]
    NotSupported(Action),
    /// The operating system refused.
    #[error("the system refused {action:?} with error {code}")]
    Refused {
        /// What was tried.
        action: Action,
        /// The system's error number.
        code: i32,
    },
}

/// A host's TCP stack, as endpoint mechanisms act on it.
///
/// The caller bounds how often it acts (Schütz and others 2005, section 3.3.2, end: a trigger may be flooded).
/// After any action the driver drains the stack as after an arrival.
pub trait EndpointControl {
    /// Appends the connections that may be acted on, in an order that is the same in each run.
    /// Those that listen, have ended or only wait out TIME-WAIT are none.
    ///
    /// # Errors
    ///
    /// [`ControlError::NotSupported`] or [`ControlError::Refused`]; then nothing was appended.
    fn connections(&mut self, found: &mut Vec<Connection>) -> Result<(), ControlError>;

    /// Does what the stack does when its retransmission timer fires, as if it had fired just now
    /// (Schütz and others 2005, section 3.3.2): it goes back to slow start and sends the oldest segment - or,
    /// where it is the peer's closed window that it waits for, a window probe. That a mechanism
    /// asked is no sign of congestion and no failed attempt: a back-off that is in force does not
    /// grow, and the connection comes no closer to being given up.
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s.
    fn retransmit_now(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError>;

    /// Sends the oldest segment again, to find out whether packets pass. As [`retransmit_now`](Self::retransmit_now), but a
    /// back-off that is in force is taken back no further than that needs: the stack's own timer is to stay longer than
    /// the pause between two probes.
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s.
    fn probe(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.retransmit_now(now, id)
    }

    /// The peer of a connection that is retransmitted next has asked for it: its link was away, and what was in flight
    /// then is lost, whatever its acknowledgement has made of that. Nothing is done for it here.
    fn note_request(&mut self, _id: ConnectionId) {}

    /// Does what the stack does at the third duplicate acknowledgement (Cáceres and Iftode 1995, section IV: the
    /// mobile is the sender, and no round trip must pass before the peer's duplicates come).
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s.
    fn fast_retransmit(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError>;

    /// Sends `count` acknowledgements of what has arrived (Cáceres and Iftode 1995, section IV: the peer is the
    /// sender and knows nothing of the hand-off). Three make a peer without SACK retransmit if it
    /// has seen the same acknowledgement before; one more if it has not.
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s; [`ControlError::NotOpen`] before the handshake is done.
    fn send_duplicate_acks(
        &mut self,
        now: Instant,
        id: ConnectionId,
        count: u8,
    ) -> Result<Outcome, ControlError>;

    /// Has the peer send again what it has in flight, if it waits for a retransmission timeout. A stack
    /// that knows no better way sends [`DUPLICATE_ACKS`].
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s; [`ControlError::NotOpen`] before the handshake is done.
    fn wake_peer(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.send_duplicate_acks(now, id, DUPLICATE_ACKS)
    }

    /// Sends one acknowledgement of what has arrived that is marked as a reconnection (Brown and Singh 1997, section
    /// 4.2): whoever keeps data for this host learns that what was in flight is lost. The mark is the Immediate
    /// Retransmission Option, in a segment with the sequence number of a keep-alive (RFC 9293, section 3.8.4). A peer that is no
    /// supervisor host answers it and heeds nothing in it: an acknowledgement that the outage has taken, sent
    /// again, would make a sender take its timeout for spurious and wait for another one (RFC 3522).
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s; [`ControlError::NotOpen`] before the handshake is done.
    fn send_marked_ack(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError>;

    /// Forgets what was learned about the old path's capacity: the next data goes out in slow
    /// start, from the initial window (Schütz and others 2005, section 3.3.2, on outages shorter than the RTO).
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s.
    fn slow_start(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError>;

    /// Sets how long sent data may stay unacknowledged (RFC 9293, section 3.9.1.2) from now on;
    /// `None` leaves it to the stack's own limits. A stack with the user timeout option tells its
    /// peer (RFC 5482).
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s.
    fn set_user_timeout(
        &mut self,
        now: Instant,
        id: ConnectionId,
        timeout: Option<Duration>,
    ) -> Result<Outcome, ControlError>;

    /// Stops sending and every timer that could send or give up, until [`thaw`](Self::thaw); what
    /// arrives is still taken and acknowledged (Brown and Singh 1997, section 4).
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s.
    fn freeze(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError>;

    /// Goes on after [`freeze`](Self::freeze) with congestion window and timeout as they were: what
    /// was outstanding is sent again if it is `Lost`, then new data (Brown and Singh 1997, section 4).
    /// The time in between counts for nothing: neither for the user timeout nor for any other limit.
    ///
    /// # Errors
    ///
    /// Any of [`ControlError`]'s.
    fn thaw(
        &mut self,
        now: Instant,
        id: ConnectionId,
        outstanding: Outstanding,
    ) -> Result<Outcome, ControlError>;
}

/// Several stacks, or the endpoints of one, as one host: each action goes to the first that knows
/// the connection.
impl<C: EndpointControl> EndpointControl for [C] {
    fn connections(&mut self, found: &mut Vec<Connection>) -> Result<(), ControlError> {
        let before = found.len();
        for control in self {
            if let Err(error) = control.connections(found) {
                found.truncate(before);
                return Err(error);
            }
        }
        Ok(())
    }

    fn retransmit_now(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.retransmit_now(now, id))
    }

    fn probe(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.probe(now, id))
    }

    fn fast_retransmit(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.fast_retransmit(now, id))
    }

    fn send_duplicate_acks(
        &mut self,
        now: Instant,
        id: ConnectionId,
        count: u8,
    ) -> Result<Outcome, ControlError> {
        first(self, id, |control| {
            control.send_duplicate_acks(now, id, count)
        })
    }

    fn wake_peer(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.wake_peer(now, id))
    }

    fn send_marked_ack(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.send_marked_ack(now, id))
    }

    fn slow_start(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.slow_start(now, id))
    }

    fn set_user_timeout(
        &mut self,
        now: Instant,
        id: ConnectionId,
        timeout: Option<Duration>,
    ) -> Result<Outcome, ControlError> {
        first(self, id, |control| {
            control.set_user_timeout(now, id, timeout)
        })
    }

    fn freeze(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.freeze(now, id))
    }

    fn thaw(
        &mut self,
        now: Instant,
        id: ConnectionId,
        outstanding: Outstanding,
    ) -> Result<Outcome, ControlError> {
        first(self, id, |control| control.thaw(now, id, outstanding))
    }
}

fn first<C>(
    controls: &mut [C],
    id: ConnectionId,
    mut act: impl FnMut(&mut C) -> Result<Outcome, ControlError>,
) -> Result<Outcome, ControlError> {
    for control in controls {
        match act(control) {
            Err(ControlError::Unknown(_)) => {}
            result => return result,
        }
    }
    Err(ControlError::Unknown(id))
}
