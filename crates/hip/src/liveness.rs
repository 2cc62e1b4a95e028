//! Signs of life: whether the peer still holds its end of an association (RFC 7401, sections 4.5.4 and 6.11).
//!
//! A peer that has lost its state drops ESP without a word that can be believed: the ICMP error of RFC 7402, section
//! 5.4.1, can be forged. So this host believes its own clock. Data that the peer leaves unanswered for
//! [`PATIENCE`] has the peer asked by an UPDATE, which only a peer with the keys can acknowledge. If no sign of life
//! comes, a base exchange begins beside the association ([`crate::revival`]).
//!
//! A sign of life is authentic and new: data that passes the window against repetitions, an UPDATE with a new
//! number, or an acknowledgement that was waited for. Data sent just after a sign of life is taken for its answer, and
//! is not expected to be answered: the last acknowledgement of a transfer has nobody asked.

use outlast_base::time::{Duration, Instant};

/// Time that a peer may leave data unanswered before it is asked.
const PATIENCE: Duration = Duration::from_millis(500);

/// Age of a sign of life up to which data counts as its answer: longer than acknowledgements are delayed (RFC 9293, section
/// 3.8.6.3; 200 ms with most stacks).
const ANSWER: Duration = Duration::from_millis(250);

/// The stages of silence.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// Nothing waits for a sign of life.
    Quiet,
    /// Something was sent at this time, and nothing has come since.
    Unanswered(Instant),
    /// The peer was asked; what was left unanswered was sent at this time.
    Asked(Instant),
}

/// The signs of life of one peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Liveness {
    /// The last one.
    heard: Instant,
    stage: Stage,
}

impl Liveness {
    /// Begins with the sign of life that a base exchange is.
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            heard: now,
            stage: Stage::Quiet,
        }
    }

    /// Notes a sign of life.
    pub(crate) const fn note_heard(&mut self, now: Instant) {
        self.heard = now;
        self.stage = Stage::Quiet;
    }

    /// Time since the last sign of life.
    pub(crate) fn silence(&self, now: Instant) -> Duration {
        now.since(self.heard)
    }

    /// Notes data that has left.
    pub(crate) fn note_data(&mut self, now: Instant) {
        if now.since(self.heard) >= ANSWER {
            self.note_request(now);
        }
    }

    /// Notes a packet that has left and has to be answered.
    pub(crate) fn note_request(&mut self, now: Instant) {
        if self.stage == Stage::Quiet {
            self.stage = Stage::Unanswered(now);
        }
    }

    /// The time at which the peer is to be asked.
    pub(crate) fn due(&self) -> Option<Instant> {
        match self.stage {
            Stage::Unanswered(since) => Some(since + PATIENCE),
            Stage::Quiet | Stage::Asked(_) => None,
        }
    }

    /// Notes that the peer is asked now, if that is due; true if it is.
    pub(crate) fn ask(&mut self, now: Instant) -> bool {
        let is_due = self.due().is_some_and(|due| due <= now);
        if let (true, Stage::Unanswered(since)) = (is_due, self.stage) {
            self.stage = Stage::Asked(since);
        }
        is_due
    }

    /// True while the peer owes a sign of life that it was asked for.
    pub(crate) const fn is_asked(&self) -> bool {
        matches!(self.stage, Stage::Asked(_))
    }

    /// True once the peer has left everything unanswered for `patience`.
    pub(crate) fn is_lost(&self, now: Instant, patience: Duration) -> bool {
        matches!(self.stage, Stage::Asked(since) if now.since(since) >= patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::from_millis(millis)
    }

    #[test]
    fn data_is_owed_a_sign_of_life_unless_it_answers_one() {
        let mut peer = Liveness::new(at(0));
        peer.note_data(at(249));
        assert_eq!(peer.due(), None);
        peer.note_data(at(250));
        peer.note_data(at(400));
        assert_eq!(peer.due(), Some(at(750)), "the first one counts");
        assert!(!peer.ask(at(749)) && !peer.is_asked());
        assert!(peer.ask(at(750)) && peer.is_asked());
        assert!(!peer.ask(at(800)), "once");
        assert!(!peer.is_lost(at(1_249), Duration::from_secs(1)));
        assert!(peer.is_lost(at(1_250), Duration::from_secs(1)));
        peer.note_heard(at(1_300));
        assert_eq!((peer.due(), peer.is_asked()), (None, false));
        peer.note_request(at(1_310));
        assert_eq!(peer.due(), Some(at(1_810)), "a request always is");
    }
}
