//! Closing (RFC 9293, sections 3.6 and 3.10.4 to 3.10.5) and TIME-WAIT (section 3.6.1,
//! RFC 1337).

use super::input::Incoming;
use super::{Endpoint, Error, Event, NEVER, State};
use outlast_base::time::Instant;
use outlast_wire::TcpFlags;

impl Endpoint {
    /// The application has nothing more to send. What was written is sent first; the peer may go
    /// on, for as long as it likes, and what it sends can be read.
    //= RFC 9293, section 3.10.4
    //= RFC 9293, section 3.6
    pub fn shutdown(&mut self, now: Instant) {
        if self.is_shut {
            return;
        }
        self.is_shut = true;
        match self.state {
            State::SynSent if self.snd.written > 0 => self.snd.fin_wanted = true,
            State::Listen | State::SynSent => {
                self.end();
                self.emit(Event::Closed);
            }
            State::SynReceived | State::Established => {
                self.snd.fin_wanted = true;
                // During the handshake the FIN waits for its end.
                if self.state == State::Established {
                    self.state = State::FinWait1;
                }
                self.push(now);
            }
            State::CloseWait => {
                self.snd.fin_wanted = true;
                self.state = State::LastAck;
                self.push(now);
            }
            _ => {}
        }
    }

    /// The application goes: nobody sends, and nobody reads. What was written is sent first, but
    /// nothing is waited for as long as before, and data that comes from now on is answered with a
    /// reset. Whether unread data is, too, is the profile's matter.
    //= RFC 9293, section 3.6 (half-duplex close)
    pub fn close(&mut self, now: Instant) {
        if self.is_closed {
            return;
        }
        self.is_closed = true;
        let is_unread = self.rcv.unread() > 0;
        let _ = self.rcv.read(u64::MAX);
        let may_reset = self.state.is_synchronized() && self.state != State::TimeWait;
        if is_unread && may_reset && *self.profile.unread_resets {
            self.is_shut = true;
            self.send_reset();
            self.fail(Error::Aborted);
            return;
        }
        self.shutdown(now);
        if self.state == State::FinWait2 {
            self.limit_fin_wait_2(now);
        }
    }

    /// A segment that nobody is left to read is reset; tells whether it was one.
    //= RFC 9293, section 3.6 (SHLD-3)
    pub(super) fn refuses_data(&mut self, segment: &Incoming<'_>) -> bool {
        let is_new =
            segment.payload > 0 && (segment.header.seq + segment.payload).after(self.rcv.rcv_nxt);
        let is_waiting = matches!(self.state, State::FinWait1 | State::FinWait2);
        if !self.is_closed || !is_new || !is_waiting {
            return false;
        }
        self.reset_reply(segment.header, segment.payload);
        self.fail(Error::Aborted);
        true
    }

    fn limit_fin_wait_2(&mut self, now: Instant) {
        self.timers.linger = now + *self.profile.fin_wait_2;
    }

    /// Ends the connection at once, with a reset.
    pub fn abort(&mut self, _now: Instant) {
        //= RFC 9293, section 3.10.5
        if self.state.is_synchronized() && self.state != State::TimeWait
            || self.state == State::SynReceived
        {
            self.send_reset();
        }
        (self.is_shut, self.is_closed) = (true, true);
        self.fail(Error::Aborted);
    }

    /// State changes that follow from what is acknowledged.
    pub(super) fn after_acknowledgement(&mut self, now: Instant) {
        let fin_acknowledged = self.snd.fin_sent && self.snd.snd_una == self.snd.snd_nxt;
        if !fin_acknowledged {
            return;
        }
        match self.state {
            State::FinWait1 => {
                //= RFC 9293, section 3.6, figure 12
                self.state = State::FinWait2;
                // An application that is still there may read for as long as it likes.
                if self.is_closed {
                    self.limit_fin_wait_2(now);
                }
            }
            State::Closing => self.wait_out(now),
            State::LastAck => {
                self.end();
                self.emit(Event::Closed);
            }
            _ => {}
        }
    }

    /// The peer's FIN has come in order.
    //= RFC 9293, section 3.10.7.4, eighth check
    pub(super) fn on_fin(&mut self, now: Instant) {
        match self.state {
            State::SynReceived | State::Established => {
                self.rcv.fin_arrived();
                self.state = State::CloseWait;
                self.emit(Event::PeerClosed);
            }
            State::FinWait1 => {
                //= RFC 9293, section 3.6, figure 13
                self.rcv.schedule_ack_now();
                self.state = State::Closing;
                self.emit(Event::PeerClosed);
            }
            State::FinWait2 => {
                self.emit(Event::PeerClosed);
                self.send_ack();
                self.wait_out(now);
            }
            _ => {}
        }
    }

    fn wait_out(&mut self, now: Instant) {
        self.state = State::TimeWait;
        self.timers.xmit = None;
        self.timers.keepalive = NEVER;
        self.timers.linger = now + *self.profile.time_wait;
        self.emit(Event::Closed);
    }

    //= RFC 9293, section 3.6.1
    pub(super) fn on_time_wait(&mut self, now: Instant, segment: &Incoming<'_>) {
        // A reset does not end the wait.
        //= RFC 1337, section 3 (fix F1)
        if segment.header.has(TcpFlags::RST) {
            return;
        }
        if segment.header.has(TcpFlags::SYN) || segment.end() != segment.header.seq {
            self.send_ack();
        }
        if segment.header.has(TcpFlags::FIN) {
            self.timers.linger = now + *self.profile.time_wait;
        }
    }

    pub(super) fn on_linger(&mut self) {
        if self.state == State::FinWait2 {
            // The application is gone and the peer does not end.
            self.end();
            self.emit(Event::Closed);
        } else {
            self.end();
        }
    }
}
