//! A resolver of names that asks again when nobody answers, and the server that it asks.
//!
//! The resolver has the timing of glibc's (`resolv.conf(5)`): five seconds for each of two attempts, both of
//! the same query from the same port. It asks for the next name a little after each answer, or after
//! the second attempt.

use super::arrivals::Arrival;
use super::machine::Machine;
use outlast_base::time::{Duration, Instant};
use std::net::SocketAddr;

/// How long the resolver waits for an answer to one attempt.
pub const ATTEMPT: Duration = Duration::from_secs(5);
const ATTEMPTS: u32 = 2;
/// From an answer to the next question.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes of a header (RFC 1035, section 4.1.1).
const HEADER: usize = 12;
/// Flags of a query that wants recursion, and of its answer.
const ASKED: [u8; 2] = [0x01, 0x00];
const ANSWERED: [u8; 2] = [0x81, 0x80];
/// `www.example`, type A, class IN.
const QUESTION: &[u8] = b"\x03www\x07example\x00\x00\x01\x00\x01";
/// Of the name in the question, type A, class IN, for a minute: 192.0.2.80.
const ANSWER: &[u8] = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc0\x00\x02\x50";

/// The end that asks.
#[derive(Debug)]
pub struct Resolver {
    server: SocketAddr,
    /// The query that is asked now, or next.
    number: u64,
    state: State,
    /// Each answer to a query that was asked, with the time of its first attempt.
    pub arrivals: Vec<Arrival>,
    asked: Vec<Instant>,
    /// Queries that were never answered.
    pub failed: u64,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Nothing to ask until then.
    Pausing(Instant),
    /// So many attempts were sent, and until then an answer is waited for.
    Waiting { attempts: u32, until: Instant },
}

/// The end that answers.
#[derive(Debug, Default)]
pub struct Server {
    outbox: Vec<(SocketAddr, Vec<u8>)>,
}

impl Resolver {
    /// Asks `server`, from `begin` on.
    #[must_use]
    pub const fn new(server: SocketAddr, begin: Instant) -> Self {
        Self {
            server,
            number: 0,
            state: State::Pausing(begin),
            arrivals: Vec::new(),
            asked: Vec::new(),
            failed: 0,
        }
    }

    fn query(&self) -> Vec<u8> {
        let mut query = vec![0; HEADER];
        query[..2].copy_from_slice(&(self.number as u16).to_be_bytes());
        query[2..4].copy_from_slice(&ASKED);
        query[5] = 1;
        query.extend_from_slice(QUESTION);
        query
    }
}

impl Machine for Resolver {
    fn handle_datagram(&mut self, now: Instant, _from: SocketAddr, datagram: &[u8]) {
        let Some(&[high, low, first, second, ..]) = datagram.get(..HEADER) else {
            return;
        };
        // Fewer queries are asked in a run than there are identifiers.
        let number = u64::from(u16::from_be_bytes([high, low]));
        let Some(&asked) = self.asked.get(number as usize) else {
            return;
        };
        if [first, second] != ANSWERED {
            return;
        }
        self.arrivals.push(Arrival {
            at: now,
            sent: Some(asked),
            number: Some(number),
            bytes: datagram.len() as u64,
        });
        if number == self.number && matches!(self.state, State::Waiting { .. }) {
            self.number += 1;
            self.state = State::Pausing(now + PAUSE);
        }
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        let attempts = match self.state {
            State::Pausing(until) | State::Waiting { until, .. } if now < until => return None,
            State::Waiting { attempts, .. } if attempts < ATTEMPTS => attempts,
            State::Waiting { .. } => {
                self.failed += 1;
                self.number += 1;
                0
            }
            State::Pausing(_) => 0,
        };
        if attempts == 0 {
            self.asked.push(now);
        }
        self.state = State::Waiting {
            attempts: attempts + 1,
            until: now + ATTEMPT,
        };
        Some((self.server, self.query()))
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        match self.state {
            State::Pausing(until) | State::Waiting { until, .. } => Some(until),
        }
    }
}

impl Machine for Server {
    fn handle_datagram(&mut self, _now: Instant, from: SocketAddr, datagram: &[u8]) {
        if datagram.get(2..4) != Some(&ASKED) {
            return;
        }
        let mut answer = datagram.to_vec();
        answer[2..4].copy_from_slice(&ANSWERED);
        if let Some(count) = answer.get_mut(7) {
            *count = 1;
        }
        answer.extend_from_slice(ANSWER);
        self.outbox.push((from, answer));
    }

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, _now: Instant) -> Option<(SocketAddr, Vec<u8>)> {
        self.outbox.pop()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_asked_twice_and_then_given_up() {
        let at = Instant::from_millis;
        let to = SocketAddr::from(([192, 0, 2, 2], 53));
        let mut resolver = Resolver::new(to, at(0));
        let mut server = Server::default();
        let (_, query) = resolver.poll_transmit(at(0)).expect("the first attempt");
        assert_eq!(resolver.poll_transmit(at(4_999)), None);
        let (_, again) = resolver
            .poll_transmit(at(5_000))
            .expect("the second attempt");
        assert_eq!(query, again);
        let (_, next) = resolver
            .poll_transmit(at(10_000))
            .expect("the next question");
        assert_eq!(resolver.failed, 1);
        server.handle_datagram(at(10_020), to, &next);
        let (_, answer) = server.poll_transmit(at(10_020)).expect("an answer");
        resolver.handle_datagram(at(10_040), to, &answer);
        let arrival = resolver.arrivals[0];
        assert_eq!((arrival.at, arrival.sent), (at(10_040), Some(at(10_000))));
        assert_eq!(resolver.poll_timeout(), Some(at(11_040)));
    }
}
