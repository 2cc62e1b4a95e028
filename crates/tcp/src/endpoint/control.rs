//! What mechanisms beside the stack may do to it (DESIGN, "Grammar"): the host agent's
//! [`EndpointControl`], and the same for who has the endpoint at hand.

use super::{Endpoint, NEVER, State, Xmit};
use crate::sender::Phase;
use alloc::vec::Vec;
use core::net::SocketAddr;
use outlast_base::time::{Duration, Instant};
use outlast_host::control::{
    Connection, ConnectionId, ControlError, EndpointControl, Needless, Outcome, Outstanding, Stage,
};
use outlast_wire::SeqNumber;

/// A connection in brief.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Summary {
    /// Own address and port.
    pub local: SocketAddr,
    /// The peer's.
    pub remote: SocketAddr,
    /// State.
    pub state: State,
    /// SND.UNA.
    pub snd_una: SeqNumber,
    /// SND.NXT.
    pub snd_nxt: SeqNumber,
    /// RCV.NXT.
    pub rcv_nxt: SeqNumber,
    /// Timeouts in a row.
    pub timeouts: u32,
    /// Segments outstanding.
    pub outstanding: u32,
    /// When anything was heard of the peer.
    pub last_heard: Instant,
}

impl Endpoint {
    /// The connection in brief.
    #[must_use]
    pub fn summary(&self) -> Summary {
        Summary {
            local: self.config.local,
            remote: self.config.remote,
            state: self.state,
            snd_una: self.snd.snd_una,
            snd_nxt: self.snd.snd_nxt,
            rcv_nxt: self.rcv.rcv_nxt,
            timeouts: self.snd.timeouts,
            outstanding: self.snd.queue.len(),
            last_heard: self.last_heard,
        }
    }

    /// Does what the stack does when the retransmission timer fires, as if it had fired just now
    /// (Schütz and others 2005, section 3.3.2), or probes the window if it is the closed window that it waits
    /// for. A back-off in force does not grow, and the attempt counts for no limit.
    pub fn retransmit_now(&mut self, now: Instant) -> Outcome {
        if self.is_frozen() {
            return Outcome::Needless(Needless::Frozen);
        }
        if self.state == State::Closed {
            return Outcome::Needless(Needless::NothingOutstanding);
        }
        if self.xmit_kind() == Some(Xmit::Persist) {
            self.probe_now(now);
            return Outcome::Done;
        }
        if self.snd.queue.is_empty() {
            return Outcome::Needless(Needless::NothingOutstanding);
        }
        self.timers.xmit = None;
        self.retransmit_unasked(now);
        Outcome::Done
    }

    /// Fast retransmission at once, as at the third duplicate (Cáceres and Iftode 1995, section IV). There is
    /// nothing to do if nothing is outstanding or recovery is under way.
    pub fn fast_retransmit_now(&mut self, now: Instant) -> Outcome {
        if self.is_frozen() {
            return Outcome::Needless(Needless::Frozen);
        }
        if self.snd.queue.is_empty() || !self.state.may_send() || self.persist.holds {
            return Outcome::Needless(Needless::NothingOutstanding);
        }
        if self.is_recovering() {
            return Outcome::Needless(Needless::Recovering);
        }
        self.force_fast_retransmit(now);
        Outcome::Done
    }

    /// Sends `count` acknowledgements of what has arrived; none before the handshake is done or
    /// after the end.
    pub fn send_duplicate_acks(&mut self, _now: Instant, count: u8) {
        if self.state.is_synchronized() && self.state != State::TimeWait {
            for _ in 0..count {
                self.send_ack();
            }
        }
    }

    /// Sends one acknowledgement of what has arrived, in the shape of a keep-alive and with the Immediate
    /// Retransmission Option; none before the handshake is done or after the end. Its number is before all that is
    /// in flight, so that it is outside the window of a peer that has nothing of that.
    pub fn send_marked_ack(&mut self, _now: Instant) {
        if self.state.is_synchronized() && self.state != State::TimeWait {
            self.marks_ack = true;
            self.send_ack_from(self.snd.snd_una - 1);
        }
    }

    /// Begins slow start anew, with the initial window: the path is another one. The threshold
    /// stays, as after idle time.
    //= RFC 5681, section 4.1
    pub fn slow_start(&mut self) {
        let initial = self.profile.initial_window.min(self.snd.window.cwnd);
        self.snd.window.set(initial);
        self.snd.algorithm.forget();
    }

    /// Stops all transmission of data and every timer that could send or give up, as if the window
    /// had closed (Brown and Singh 1997, section 4). Acknowledgements still go out.
    pub fn freeze(&mut self, now: Instant) {
        if self.is_frozen() || matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        self.frozen_at = Some(now);
        self.timers.xmit = None;
        self.timers.pacing = NEVER;
        self.timers.keepalive = NEVER;
    }

    /// Goes on after [`freeze`](Self::freeze), with the congestion window and the timeout as they
    /// were: what was `outstanding` is sent again if it is lost, then new data (Brown and Singh 1997, section 4).
    /// The time in between counts for no limit.
    pub fn thaw(&mut self, now: Instant, outstanding: Outstanding) {
        let Some(frozen_at) = self.frozen_at.take() else {
            return;
        };
        let frozen = now.since(frozen_at);
        let clocks = [&mut self.snd.retransmitting_since, &mut self.persist.since];
        for since in clocks.into_iter().flatten() {
            *since += frozen;
        }
        self.last_heard += frozen;
        self.keepalive_probes = 0;
        if matches!(self.state, State::Closed | State::TimeWait) {
            return;
        }
        if self.state.is_synchronized() {
            self.start_keepalive(now);
        }
        if self.persist.holds {
            self.probe_now(now);
        } else if !self.snd.queue.is_empty() {
            match outstanding {
                Outstanding::Lost => self.resume(now),
                Outstanding::OnItsWay => {
                    self.arm(now, Xmit::Retransmit, self.snd.rto.current());
                }
            }
        }
        self.push(now);
    }

    /// Sends everything that is outstanding again, congestion window untouched.
    fn resume(&mut self, now: Instant) {
        if !self.state.may_send() {
            self.retransmit_unasked(now);
            return;
        }
        self.count_outstanding_as_lost();
        self.arm(now, Xmit::Retransmit, self.snd.rto.current());
        self.retransmit_lost(now);
    }

    fn count_outstanding_as_lost(&mut self) {
        for index in 0..self.snd.queue.len() as usize {
            self.mark_lost(index);
        }
        self.snd.retransmit_hint = None;
        self.snd.duplicates = 0;
        if self.snd.recover.take().is_some() {
            let ssthresh = self.snd.window.ssthresh;
            self.snd.window.set(ssthresh);
        }
        if self.profile.recovery.has_scoreboard() {
            // As Linux does when the path and not congestion took the segments
            // (`tcp_simple_retransmit`): recovery without a reduction, and none to be undone.
            self.snd.undo_marker = None;
            self.snd.frto = false;
            self.snd.tlp_high_seq = None;
            self.set_phase(Phase::Loss);
        }
        self.snd.high_seq = self.snd.snd_nxt;
    }

    /// Whether [`freeze`](Self::freeze) is in force.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.frozen_at.is_some()
    }

    fn min_rtt_us(&self) -> u64 {
        let least = self.snd.min_rtt.value().map(u64::from);
        least.unwrap_or_else(|| self.snd.rto.srtt_us(&self.clock))
    }

    fn id(&self) -> ConnectionId {
        ConnectionId {
            local: self.config.local,
            remote: self.config.remote,
        }
    }

    /// How far the connection has come, if it may be acted on.
    fn stage(&self) -> Option<Stage> {
        match self.state {
            State::Listen | State::TimeWait | State::Closed => None,
            State::SynSent | State::SynReceived => Some(Stage::Opening),
            State::Established | State::CloseWait => Some(Stage::Open),
            State::FinWait1 | State::FinWait2 | State::Closing | State::LastAck => {
                Some(Stage::Closing)
            }
        }
    }

    /// Checks that `id` is this connection.
    fn known(&self, id: ConnectionId) -> Result<Stage, ControlError> {
        self.stage()
            .filter(|_| id == self.id())
            .ok_or(ControlError::Unknown(id))
    }
}

impl EndpointControl for Endpoint {
    fn connections(&mut self, found: &mut Vec<Connection>) -> Result<(), ControlError> {
        if let Some(stage) = self.stage() {
            found.push(Connection {
                id: self.id(),
                via: None,
                stage,
                snd_una: self.snd.snd_una,
                snd_nxt: self.snd.snd_nxt,
                rcv_nxt: self.rcv.rcv_nxt,
                timeouts: self.snd.timeouts,
                min_rtt: Duration::from_micros(self.min_rtt_us()),
                heard_at: self.last_heard,
                sent_at: self
                    .snd
                    .queue
                    .iter()
                    .map(|sent| sent.sent_at)
                    .max()
                    .unwrap_or(self.snd.last_sent),
                // Its peers are woken whether or not they have sent lately.
                received_at: Instant::ZERO,
                user_timeout: self.user_timeout(),
                is_frozen: self.is_frozen(),
            });
        }
        Ok(())
    }

    fn retransmit_now(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.known(id)?;
        Ok(Self::retransmit_now(self, now))
    }

    fn fast_retransmit(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        match self.known(id)? {
            Stage::Opening => Err(ControlError::NotOpen(id)),
            Stage::Open | Stage::Closing => Ok(self.fast_retransmit_now(now)),
        }
    }

    fn send_duplicate_acks(
        &mut self,
        now: Instant,
        id: ConnectionId,
        count: u8,
    ) -> Result<Outcome, ControlError> {
        if self.known(id)? == Stage::Opening {
            return Err(ControlError::NotOpen(id));
        }
        Self::send_duplicate_acks(self, now, count);
        Ok(Outcome::Done)
    }

    fn send_marked_ack(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        if self.known(id)? == Stage::Opening {
            return Err(ControlError::NotOpen(id));
        }
        Self::send_marked_ack(self, now);
        Ok(Outcome::Done)
    }

    fn slow_start(&mut self, _now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        match self.known(id)? {
            Stage::Opening => Err(ControlError::NotOpen(id)),
            Stage::Open | Stage::Closing => {
                Self::slow_start(self);
                Ok(Outcome::Done)
            }
        }
    }

    fn set_user_timeout(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        timeout: Option<Duration>,
    ) -> Result<Outcome, ControlError> {
        self.known(id)?;
        if self.user_timeouts.is_own(timeout) {
            return Ok(Outcome::Needless(Needless::Already));
        }
        Self::set_user_timeout(self, timeout);
        Ok(Outcome::Done)
    }

    fn freeze(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        self.known(id)?;
        if self.is_frozen() {
            return Ok(Outcome::Needless(Needless::Already));
        }
        Self::freeze(self, now);
        Ok(Outcome::Done)
    }

    fn thaw(
        &mut self,
        now: Instant,
        id: ConnectionId,
        outstanding: Outstanding,
    ) -> Result<Outcome, ControlError> {
        self.known(id)?;
        if !self.is_frozen() {
            return Ok(Outcome::Needless(Needless::Already));
        }
        Self::thaw(self, now, outstanding);
        Ok(Outcome::Done)
    }
}
