//! Filling holes after an outage, for a sender that cannot know them and waits for its timeout.
//!
//! A sender without SACK finds one hole in each round trip, by duplicate acknowledgements. When all that is
//! on its way has arrived and holes are left, nothing draws another one, and it waits for its timeout: after
//! an outage, of which it has taken a round trip, that is about as long as the outage. Linux comes to this
//! more easily than others: what has come twice it takes for reordering, and then waits for as many duplicates
//! (`tcp_check_reno_reordering`). The gateway has copies of all that is not acknowledged. So if nothing
//! crosses for longer than a round trip and the shortest timeout, it sends the oldest segment again, and with
//! each acknowledgement that this draws the next, as the sender would (RFC 6582, section 3.2) - until the
//! sender repeats something itself. Each acknowledgement puts off the sender's timeout, though, and a timeout brings everything
//! back in a few round trips. So this is not done after a short outage, of which the timeout is short, too, if timestamps tell
//! the sender that it was no spurious one (RFC 3522): without them it takes its timeout back, and waits for another.
//!
//! A sender with SACK knows its holes, but may take what it has lost for under way: Linux forgets to look
//! again at a segment that it held for lost, if it takes that back before it has repeated the segment
//! (`tcp_try_undo_partial`, `tcp_rack_detect_loss`). A paced sender comes to this easily, as it repeats
//! nothing for a while. It sends new data, so the connection does not stand still. So if the far host shows
//! a hole for that long, and its sender repeats nothing, the gateway sends what is missing.

use outlast_base::time::{Duration, Instant};
use outlast_wire::SeqNumber;

/// No stack's retransmission timeout is shorter, beyond the round trip (Linux, `TCP_RTO_MIN`).
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);
/// After a shorter outage a sender with timestamps and without SACK is left to its timeout: `cargo run --release -p outlast-sim --example
/// ablation -- 24 sackless`.
const SHORTEST_OUTAGE: Duration = Duration::from_secs(3);
/// The longest pause between two attempts that nobody answers.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// A timeout that was learnt from an outage lasts for some times the outage's length, and at least this long.
const SHORTEST_AFTERMATH: Duration = Duration::from_secs(10);
/// See [`SHORTEST_AFTERMATH`]: so many times.
const AFTERMATH: u32 = 4;
/// However long the outage was, this is over by then.
const LONGEST_AFTERMATH: Duration = Duration::from_secs(120);

/// The sign by which a sender shows that it cannot fill a hole.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Watch {
    /// Nothing crosses in either direction: the sender has no SACK.
    #[default]
    NoTraffic,
    /// The far host shows the hole, and the sender repeats nothing.
    ShownHole,
}

/// Watches a connection after an outage.
#[derive(Debug, Default)]
pub(super) struct StandIn {
    /// When the last outage began.
    away_since: Instant,
    /// When watching ends: until then the sender's timeout may be that of the outage. `None`: nothing is watched.
    until: Option<Instant>,
    watch: Watch,
    /// What the far host shows to lack.
    hole: Option<SeqNumber>,
    /// The gateway takes over then, unless the sign ends before; `None` if nothing is outstanding, or no hole shown.
    still_at: Option<Instant>,
    /// How long the sign lasts before that.
    pause: Duration,
    /// Holes that begin before it are filled.
    fills_until: Option<SeqNumber>,
}

impl StandIn {
    /// The link went away.
    pub(super) fn suspend(&mut self, since: Instant) {
        *self = Self {
            away_since: since,
            ..Self::default()
        };
    }

    /// The link is back; the sender may send timestamps. Returns whether it may come to filling holes.
    pub(super) fn begin(&mut self, now: Instant, watch: Watch, has_timestamps: bool) -> bool {
        self.watch = watch;
        let length = now.since(self.away_since);
        let lasts = (length * AFTERMATH).clamp(SHORTEST_AFTERMATH, LONGEST_AFTERMATH);
        let is_quick = has_timestamps && length < SHORTEST_OUTAGE;
        let is_watched = watch == Watch::ShownHole || !is_quick;
        self.until = is_watched.then(|| now + lasts);
        is_watched
    }

    /// Something crosses, after which data `is_outstanding`: an answer is due within `round_trip`.
    pub(super) fn note_crossing(
        &mut self,
        now: Instant,
        round_trip: Duration,
        is_outstanding: bool,
    ) {
        if self.watch == Watch::ShownHole {
            return;
        }
        self.until.take_if(|until| *until <= now);
        let is_watched = self.until.is_some() && is_outstanding;
        self.pause = round_trip + SHORTEST_TIMEOUT;
        self.still_at = is_watched.then(|| now + self.pause);
    }

    /// The far host shows that it lacks what begins at `hole`, of which there is a copy, and has what follows;
    /// an answer takes `round_trip`.
    pub(super) fn note_hole(
        &mut self,
        now: Instant,
        round_trip: Duration,
        hole: Option<SeqNumber>,
    ) {
        if self.watch == Watch::NoTraffic {
            return;
        }
        self.until.take_if(|until| *until <= now);
        let hole = hole.filter(|_| self.until.is_some());
        if self.hole != hole {
            self.hole = hole;
            self.pause = round_trip + SHORTEST_TIMEOUT;
            self.still_at = hole.map(|_| now + self.pause);
        }
    }

    /// The sender has repeated something: it is awake.
    pub(super) fn yield_to_sender(&mut self) {
        self.fills_until = None;
        if self.hole.take().is_some() {
            self.still_at = None;
        }
    }

    /// The far host has newly acknowledged everything before `acked`. Returns whether the gateway fills the hole
    /// that begins there.
    pub(super) fn hear_news(&mut self, acked: SeqNumber) -> bool {
        self.fills_until.take_if(|end| end.at_or_before(acked));
        self.fills_until.is_some()
    }

    /// Takes over from the sender if that is due by `now`. Returns the sign by which it is due.
    ///
    /// With [`Watch::NoTraffic`] each hole before `end` is filled from now on. If the time after the outage in which
    /// this may be done is over, this is the last time.
    pub(super) fn takes_over(&mut self, now: Instant, end: Option<SeqNumber>) -> Option<Watch> {
        self.still_at.take_if(|at| *at <= now)?;
        self.until.take_if(|until| *until <= now);
        if self.until.is_some() {
            self.fills_until = end.filter(|_| self.watch == Watch::NoTraffic);
            self.pause = (self.pause * 2).min(LONGEST_PAUSE);
            self.still_at = Some(now + self.pause);
        }
        Some(self.watch)
    }

    /// When [`Self::takes_over`] is due.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.still_at
    }

    /// The sender's timeout is its own again, or the connection is gone.
    pub(super) fn stop(&mut self) {
        *self = Self::default();
    }
}
