//! What mechanisms beside the stack may do to it: the shape that the core's `EndpointControl`
//! wraps (DESIGN, "Grammar").

use super::{Endpoint, State, Xmit};
use core::net::SocketAddr;
use outlast_core::time::{Duration, Instant};
use outlast_wire::SeqNumber;

/// A connection, as a mechanism sees it.
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

    /// Does what the stack does when the retransmission timer fires, without another back-off: as
    /// if it had been due just now (paper 000, section 3.2). Nothing happens if nothing is
    /// outstanding.
    pub fn retransmit_now(&mut self, now: Instant) {
        if self.snd.queue.is_empty() || self.state == State::Closed {
            return;
        }
        if self.snd.timeouts > 0 {
            // The timer goes on from the timeout that is running.
            self.snd.rto.revert(&self.clock);
        }
        self.timers.xmit = None;
        self.on_retransmission_timeout(now);
    }

    /// Fast retransmission at once, as at the third duplicate (paper 002, section IV). Nothing
    /// happens if nothing is outstanding or recovery is under way.
    pub fn fast_retransmit_now(&mut self, now: Instant) {
        if !self.snd.queue.is_empty() && self.state.may_send() {
            self.force_fast_retransmit(now);
        }
    }

    /// Sends `count` acknowledgements of what has arrived.
    pub fn send_duplicate_acks(&mut self, _now: Instant, count: u8) {
        if self.state.is_synchronized() && self.state != State::TimeWait {
            for _ in 0..count {
                self.send_ack();
            }
        }
    }

    /// Sets the local user timeout; `None` leaves it to the retry limit.
    pub fn set_user_timeout(&mut self, timeout: Option<Duration>) {
        self.config.user_timeout = timeout;
    }

    /// Stops all transmission of data and its timers, as if the window had closed (M-TCP, paper
    /// 001, section 4: the sender at the mobile freezes). Acknowledgements still go out.
    pub fn freeze(&mut self, _now: Instant) {
        self.is_frozen = true;
        self.timers.xmit = None;
        self.timers.pacing = None;
    }

    /// Goes on after [`freeze`](Self::freeze), with the window and the timeout as they were; what
    /// was outstanding is timed anew.
    pub fn thaw(&mut self, now: Instant) {
        if !self.is_frozen {
            return;
        }
        self.is_frozen = false;
        if !self.snd.queue.is_empty() {
            self.arm(now, Xmit::Retransmit, self.snd.rto.current());
        }
        if self.state.may_send() {
            self.push(now);
        }
    }

    /// Whether [`freeze`](Self::freeze) is in force.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.is_frozen
    }
}
