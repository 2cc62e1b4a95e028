//! What a connection really waited for, told by its hosts and never by its packets alone.
//!
//! The rule: a host sends a packet because a timer of its fired, because a packet came, or because its
//! application wrote. The first packet after the link's return that wants an answer and crosses the
//! link tells what the connection waited for: whatever made its host send it. If that packet did not
//! get the connection going, so that a further timer of the sender's had to fire before the receiver
//! got a new byte, then the connection waited for that timer: because its receiver dropped segments
//! with old timestamps, or because the sender took the first timeout for spurious and undid it.

use outlast_base::time::{Duration, Instant};
use outlast_diagnosis::Cause;
use outlast_tcp::Reason;

/// Why a host sent a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Why {
    /// A timer fired.
    Timer(Reason),
    /// A packet came.
    Arrival,
    /// The application wrote, or opened the connection.
    Application,
}

impl Why {
    /// Whether it is a timer that a sender sets for want of an answer.
    fn is_wait(self) -> bool {
        use Reason::{LossProbe, Reordering, Retransmission, WindowProbe};
        matches!(
            self,
            Self::Timer(Retransmission | LossProbe | Reordering | WindowProbe)
        )
    }
}

/// A packet of the sender's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    pub(crate) at: Instant,
    pub(crate) why: Why,
    pub(crate) is_syn: bool,
    /// Whether the receiver answers it: it has payload, or probes the receiver's window.
    pub(crate) wants_answer: bool,
    /// When it came to the receiver.
    pub(crate) arrived: Option<Instant>,
}

/// What the hosts of one connection did.
#[derive(Clone, Debug, Default)]
pub(crate) struct Course {
    /// What the sender sent, in order.
    pub(crate) sent: Vec<Sent>,
    /// When the sender undid what a timeout had done.
    pub(crate) undone: Vec<Instant>,
    /// When the receiver dropped a segment for its old timestamp.
    pub(crate) rejected: Vec<Instant>,
    /// When the receiver's application got new bytes, or for an opening its host the SYN.
    pub(crate) delivered: Vec<Instant>,
}

/// What a connection waited for, and until when.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Truth {
    pub(crate) cause: Cause,
    pub(crate) noticed: Instant,
}

impl Course {
    /// What the connection waited for after the link was back at `up`; `None` if it did not go on. Who
    /// sent less than a `round_trip` before had never stopped.
    pub(crate) fn truth(&self, up: Instant, round_trip: Duration) -> Option<Truth> {
        let after = |sent: &&Sent| sent.at >= up && sent.wants_answer && sent.arrived.is_some();
        let first = self.sent.iter().find(after)?;
        let resumed = self.delivered.iter().copied().find(|at| *at >= first.at);
        // What was on its way all the time may have come before.
        let resumed = resumed.or(first.arrived)?;
        let brought =
            |sent: &&Sent| after(sent) && sent.arrived.is_some_and(|arrived| arrived <= resumed);
        let last = self.sent.iter().rfind(brought).unwrap_or(first);
        // Not the packets that one timer makes the sender send.
        let waited = |sent: &Sent| sent.at > first.at && sent.at <= last.at && sent.why.is_wait();
        let between = |times: &[Instant]| times.iter().any(|at| (first.at..=last.at).contains(at));
        let later = self.sent.iter().rfind(|sent| waited(sent));
        let (cause, noticed) = match later {
            Some(later) if between(&self.rejected) => (Cause::OldTimestamps, later.at),
            Some(later) if between(&self.undone) => (Cause::SpuriousTimeout, later.at),
            _ => (Self::cause_of(first), first.at),
        };
        let before = self.sent.iter().rfind(|sent| sent.at < first.at);
        let never_stopped = before.is_some_and(|sent| first.at.since(sent.at) < round_trip);
        let cause = match cause {
            Cause::ApplicationIdle if never_stopped => Cause::Path,
            cause => cause,
        };
        Some(Truth { cause, noticed })
    }

    fn cause_of(first: &Sent) -> Cause {
        match first.why {
            _ if first.is_syn => Cause::Handshake,
            Why::Timer(Reason::LossProbe | Reason::Reordering) => Cause::LossTimer,
            Why::Timer(Reason::WindowProbe) => Cause::ClosedWindow,
            Why::Timer(Reason::Retransmission) => Cause::BackOff,
            Why::Application => Cause::ApplicationIdle,
            // It went on with what it was about, or the peer woke it.
            Why::Arrival => Cause::Path,
            why => panic!("{why:?} woke the connection: {first:?}"),
        }
    }
}
