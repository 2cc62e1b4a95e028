//! One association: its state (RFC 7401, section 4.4) and the data that waits for it.

use crate::backoff::Backoff;
use crate::config::Retransmission;
use crate::context::Context;
use crate::event::{Failure, Reason};
use crate::initiator::{Draft, Offer};
use crate::revival::Revival;
use crate::session::Session;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use arrayvec::ArrayVec;
use outlast_base::time::{Duration, Instant};

/// The longest time that a packet stays in the network (RFC 7401, section 4.4.2).
pub(crate) const MAXIMUM_SEGMENT_LIFETIME: Duration = Duration::from_secs(120);

/// The states of RFC 7401, section 4.4.2; UNASSOCIATED is no entry in the host's table.
#[derive(Debug)]
pub(crate) enum State {
    /// An I1 was sent; its R1's puzzle may be in work.
    I1Sent {
        backoff: Backoff,
        offer: Option<Box<Offer>>,
    },
    /// An I2 was sent.
    I2Sent {
        backoff: Backoff,
        draft: Box<Draft>,
        packet: Vec<u8>,
    },
    /// An R2 was sent; the peer may not have it yet.
    R2Sent {
        session: Box<Session>,
        until: Instant,
    },
    /// Both have keys.
    Established { session: Box<Session> },
    /// A CLOSE was sent.
    Closing {
        session: Box<Session>,
        backoff: Backoff,
        nonce: Vec<u8>,
        until: Instant,
    },
    /// The peer's CLOSE was acknowledged.
    Closed {
        session: Box<Session>,
        until: Instant,
        /// Time of its last acknowledgement.
        answered: Instant,
    },
    /// An exchange failed.
    Failed { failure: Failure, until: Instant },
}

/// The name of a state, for a status page.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(
    missing_docs,
    reason = "the names are those of RFC 7401, section 4.4.2"
)]
pub enum StateName {
    I1Sent,
    I2Sent,
    R2Sent,
    Established,
    Closing,
    Closed,
    Failed,
}

impl StateName {
    /// As a status page has it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::I1Sent => "i1-sent",
            Self::I2Sent => "i2-sent",
            Self::R2Sent => "r2-sent",
            Self::Established => "established",
            Self::Closing => "closing",
            Self::Closed => "closed",
            Self::Failed => "failed",
        }
    }
}

/// A packet of an application.
#[derive(Clone, Debug)]
pub(crate) struct Data {
    /// The inner protocol.
    pub(crate) next: u8,
    pub(crate) payload: Vec<u8>,
    /// When this host's stack handed it down; for a segment of TCP, when its timestamp was right.
    pub(crate) handed_at: Instant,
}

/// The SPIs of one association: the newest one, the one before, one on offer, and that of an exchange beside it.
pub(crate) type Spis = ArrayVec<u32, 4>;

/// One association.
#[derive(Debug)]
pub(crate) struct Association {
    pub(crate) state: State,
    /// A base exchange beside the session, whose peer is silent.
    pub(crate) revival: Option<Revival>,
    pub(crate) waiting: VecDeque<Data>,
    /// When the host's agenda has it.
    pub(crate) armed: Option<(Instant, Reason)>,
    /// The SPIs by which the host finds it.
    pub(crate) spis: Spis,
}

impl Association {
    pub(crate) const fn new(state: State) -> Self {
        Self {
            state,
            revival: None,
            waiting: VecDeque::new(),
            armed: None,
            spis: Spis::new_const(),
        }
    }

    /// The session in states that send and receive data.
    pub(crate) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.state {
            State::R2Sent { session, .. } | State::Established { session } => Some(session),
            _ => None,
        }
    }

    /// Takes the session out of a state that is about to be replaced.
    pub(crate) fn take_session(&mut self) -> Option<Session> {
        let until = Instant::ZERO;
        let failure = Failure::NoAnswer;
        match core::mem::replace(&mut self.state, State::Failed { failure, until }) {
            State::R2Sent { session, .. } | State::Established { session } => Some(*session),
            _ => None,
        }
    }

    /// The session in every state that has one.
    pub(crate) fn any_session(&self) -> Option<&Session> {
        match &self.state {
            State::R2Sent { session, .. }
            | State::Established { session }
            | State::Closing { session, .. }
            | State::Closed { session, .. } => Some(session),
            _ => None,
        }
    }

    /// Begins an exchange beside a session whose peer owes a sign of life; ends one that is not needed.
    pub(crate) fn revive_if_silent(&mut self, now: Instant, times: &Retransmission) {
        let is_asked = match &self.state {
            State::R2Sent { session, .. } | State::Established { session } => {
                session.liveness.is_asked()
            }
            _ => return self.revival = None,
        };
        match &self.revival {
            None if is_asked => self.revival = Some(Revival::begin(now, times)),
            Some(revival) if !is_asked && revival.is_idle() => self.revival = None,
            _ => {}
        }
    }

    /// Makes what waits for an answer due at once.
    pub(crate) fn hurry(&mut self, context: &Context<'_>) {
        if let Some(revival) = &mut self.revival {
            revival.hurry(context.now, &context.config.retransmission);
        }
        match &mut self.state {
            State::R2Sent { session, .. } | State::Established { session } => {
                session.updates.hurry(context);
            }
            State::I1Sent { backoff, .. }
            | State::I2Sent { backoff, .. }
            | State::Closing { backoff, .. } => {
                backoff.hurry(context.now, &context.config.retransmission);
            }
            State::Closed { .. } | State::Failed { .. } => {}
        }
    }

    /// The name of the state.
    pub(crate) const fn name(&self) -> StateName {
        match self.state {
            State::I1Sent { .. } => StateName::I1Sent,
            State::I2Sent { .. } => StateName::I2Sent,
            State::R2Sent { .. } => StateName::R2Sent,
            State::Established { .. } => StateName::Established,
            State::Closing { .. } => StateName::Closing,
            State::Closed { .. } => StateName::Closed,
            State::Failed { .. } => StateName::Failed,
        }
    }

    /// The SPIs that packets for it carry.
    pub(crate) fn current_spis(&self) -> Spis {
        match &self.state {
            State::I2Sent { draft, .. } => core::iter::once(draft.spi()).collect(),
            State::R2Sent { session, .. } | State::Established { session } => {
                let draft = match &self.revival {
                    Some(Revival::Answered { draft, .. }) => Some(draft.spi()),
                    _ => None,
                };
                session.spis().chain(draft).collect()
            }
            _ => Spis::new(),
        }
    }

    /// When it wants to be called, and why.
    pub(crate) fn deadline(
        &self,
        now: Instant,
        unused_at: Option<Instant>,
    ) -> Option<(Instant, Reason)> {
        let retransmission = |backoff: &Backoff| (backoff.due, Reason::Retransmission);
        let lifetime = |until: &Instant| (*until, Reason::Lifetime);
        match &self.state {
            State::I1Sent { offer: Some(_), .. } => Some((now, Reason::Puzzle)),
            State::I1Sent { backoff, .. } | State::I2Sent { backoff, .. } => {
                Some(retransmission(backoff))
            }
            State::R2Sent { session, until } => self.session_deadline(session, Some(*until)),
            State::Established { session } => self.session_deadline(session, unused_at),
            State::Closing { backoff, until, .. } => {
                Some(retransmission(backoff).min(lifetime(until)))
            }
            State::Closed { until, .. } | State::Failed { until, .. } => Some(lifetime(until)),
        }
    }

    /// The next deadline of a session whose state ends at `ends`.
    fn session_deadline(
        &self,
        session: &Session,
        ends: Option<Instant>,
    ) -> Option<(Instant, Reason)> {
        let previous = session.previous.as_ref().and_then(|(_, until)| *until);
        let flight = session.first_flight.as_ref().map(|flight| flight.until);
        let all = [
            ends.map(|at| (at, Reason::Lifetime)),
            previous.map(|at| (at, Reason::Lifetime)),
            session.renewal.map(|at| (at, Reason::Registration)),
            session.recent.deadline.map(|at| (at, Reason::Silence)),
            flight.map(|at| (at, Reason::FirstFlight)),
            session.liveness.due().map(|at| (at, Reason::Liveness)),
            self.revival.as_ref().map(Revival::deadline),
            session.updates.deadline(),
        ];
        all.into_iter().flatten().min()
    }
}
