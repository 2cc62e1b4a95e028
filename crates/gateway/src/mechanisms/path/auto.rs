//! `auto`: for each connection the least that works.
//!
//! What a connection loses is kept as with `hold`. What is done with it at reconnection is decided
//! when the link goes, from what the connection has shown by then, and once more when it is back:
//!
//! | what the connection shows | what is done | why |
//! |---|---|---|
//! | nothing is on its way, and no acknowledgement is owed | `none` | nobody waits |
//! | only acknowledgements go towards the link | `hold` | the newest one wakes the sender beyond it |
//! | data, with timestamps or SACK | `hold` | the sender finds out that its timeout was spurious, if all of its window arrives, and goes on with it |
//! | data with neither, a small window | `hold` | it arrives in one burst, and nothing is left to repeat |
//! | data with neither, a large window, not timed out | `hold` | few segments would make its sender fill one hole in each round trip |
//! | data with neither, a large window, timed out | `hold-few` | a sender that was given its window back goes on with more than the link holds, and can neither tell what that costs nor time it anew |
//!
//! `hold-few` is `hold` without the rest of the window: the newest acknowledgement, the oldest
//! segment twice, and the first that was certainly lost go out; if none is known to be, the one that
//! the far host then lacks. What comes twice draws a duplicate acknowledgement, by which the sender
//! knows that its timeout was not spurious (RFC 5682, section 2.1, step 3a) before the third segment
//! could make it think so; it repeats the rest, faster with each round trip. Where the sender may have
//! heard already what is missing, others go before that and draw the duplicate.
//! `docs/auto.md` has the measurements behind the table. Nothing that acknowledges ahead is ever
//! chosen: that is for the operator to ask for by name.
//!
//! A sender is nudged while the link is down (see `hold/nudge.rs`) only if the link had been up for
//! less than ten seconds since an outage before: otherwise what BBR's PROBE_RTT costs is 200 ms in
//! ten seconds, which it costs without outages, too. A sender with neither SACK nor timestamps and a
//! small window is nudged in any case: it answers duplicate acknowledgements by sending more of its
//! window, which is then known to be lost.

use super::hold::{Hold, Scope};
use super::{Account, Context, Info, Outgoing, PathMechanism, Verdict, Waiting};
use crate::limits::Budget;
use crate::links::{Direction, Indicator, LinkState};
use crate::tracking::{Observation, TcpFlow};
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

pub(super) const INFO: Info = Info {
    name: "auto",
    source: "after the measurements in docs/auto.md",
    summary: "per connection the least that works: nothing, hold, or hold of a few segments",
    acknowledges_ahead: false,
};

/// BBR measures its round trip anew this often (draft-ietf-ccwg-bbr, ProbeRTTInterval and
/// MinRTTFilterLen: its filter is ten seconds long).
const PROBE_RTT_INTERVAL: Duration = Duration::from_secs(10);

/// Up to here a window is small, in bytes: what stacks without SACK and timestamps had, and less
/// than what the queue of a link holds.
const SMALL_WINDOW: u32 = 32 << 10;

/// One connection's part.
#[derive(Debug, Default)]
pub(super) struct Auto {
    hold: Hold,
    choice: Choice,
    /// The near host's segments carry timestamps.
    has_timestamps: bool,
    /// A host was seen to acknowledge selectively.
    has_sacked: bool,
    /// When the last outage was over, if one was seen.
    back_since: Option<Instant>,
    /// The link was up for a short time only, between two outages.
    flaps: bool,
    /// The near host has repeated something since the link went.
    has_timed_out: bool,
}

/// What is done for the connection, and why.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Choice {
    #[default]
    Open,
    Nothing,
    Acknowledgement,
    AllForTimestamps,
    AllForSack,
    AllOfLittle,
    AllInTime,
    Few,
}

impl Choice {
    const fn account(self) -> (Option<&'static str>, &'static str) {
        match self {
            Self::Open => (None, "its link has not been down: nothing is decided"),
            Self::Nothing => (Some("none"), "nothing was on its way when the link went"),
            Self::Acknowledgement => (
                Some("hold"),
                "the data comes from beyond the link: the newest acknowledgement wakes its sender",
            ),
            Self::AllForTimestamps => (
                Some("hold"),
                "timestamps: the sender goes on with its window if all of it arrives",
            ),
            Self::AllForSack => (
                Some("hold"),
                "SACK: the sender goes on with its window if all of it arrives",
            ),
            Self::AllOfLittle => (
                Some("hold"),
                "neither SACK nor timestamps, but a small window: all of it arrives at once",
            ),
            Self::AllInTime => (
                Some("hold"),
                "neither SACK nor timestamps, but its sender has not timed out: all of it arrives",
            ),
            Self::Few => (
                Some("hold-few"),
                "neither SACK nor timestamps: two segments wake the sender, which repeats the rest",
            ),
        }
    }

    const fn scope(self) -> Scope {
        match self {
            Self::Few => Scope::Few,
            _ => Scope::All,
        }
    }
}

impl Auto {
    fn decide(&mut self, cx: &Context<'_>) {
        let permits = self.has_sacked || cx.sack == Some(true);
        let near = &cx.flow.near;
        let outstanding = near.next.distance_from(near.acked).max(0).unsigned_abs();
        self.choice = if !self.hold.has_kept() && !cx.flow.near.has_outstanding() {
            match self.hold.owes_acknowledgement() {
                true => Choice::Acknowledgement,
                false => Choice::Nothing,
            }
        } else if self.has_timestamps {
            Choice::AllForTimestamps
        } else if permits {
            Choice::AllForSack
        } else if outstanding <= SMALL_WINDOW {
            Choice::AllOfLittle
        } else if cx.link.state == LinkState::Up && !self.has_timed_out {
            Choice::AllInTime
        } else {
            Choice::Few
        };
        self.hold.set_scope(self.choice.scope());
        self.hold
            .set_nudging(self.flaps || self.choice == Choice::AllOfLittle);
    }
}

impl PathMechanism for Auto {
    fn handle_packet(
        &mut self,
        cx: &mut Context<'_>,
        direction: Direction,
        packet: &Packet,
        observation: Observation,
    ) -> Verdict {
        if let Some(tcp) = packet.tcp() {
            self.has_sacked |= !tcp.options.sack.is_empty();
            if direction == Direction::ToLink && packet.sequence_len() > 0 {
                self.has_timestamps = tcp.options.timestamps.is_some();
            }
        }
        let verdict = self.hold.handle_packet(cx, direction, packet, observation);
        if cx.link.state == LinkState::Down {
            self.has_timed_out |= direction == Direction::ToLink && observation.repeated;
            // What is sent meanwhile has a say.
            self.decide(cx);
        }
        verdict
    }

    fn handle_drop(&mut self, cx: &mut Context<'_>, packet: &Packet) {
        self.hold.handle_drop(cx, packet);
    }

    fn handle_link(&mut self, cx: &mut Context<'_>) {
        match cx.link.state {
            LinkState::Down => {
                let was_up = self.back_since.map(|since| cx.link.since.since(since));
                // Whoever noticed the silence has seen repetitions.
                self.has_timed_out = cx.link.by == Indicator::Silence;
                self.flaps = was_up.is_some_and(|was_up| was_up < PROBE_RTT_INTERVAL);
                self.hold.handle_link(cx);
                self.decide(cx);
            }
            LinkState::Up => {
                self.back_since = Some(cx.now);
                self.decide(cx);
                self.hold.handle_link(cx);
            }
        }
    }

    fn handle_timeout(&mut self, cx: &mut Context<'_>) {
        self.hold.handle_timeout(cx);
    }

    fn waiting(&self) -> Option<Waiting> {
        self.hold.waiting()
    }

    fn poll_transmit(&mut self, cx: &mut Context<'_>) -> Option<Outgoing> {
        self.hold.poll_transmit(cx)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.hold.poll_timeout()
    }

    fn account(&self) -> Account {
        let (chosen, why) = self.choice.account();
        let own = self.hold.account();
        Account {
            chosen,
            why: if own.why.is_empty() { why } else { own.why },
            ..own
        }
    }

    fn may_rest(&self, now: Instant, flow: &TcpFlow) -> bool {
        self.hold.may_rest(now, flow)
    }

    fn release(&mut self, budget: &mut Budget) {
        self.hold.release(budget);
    }
}
