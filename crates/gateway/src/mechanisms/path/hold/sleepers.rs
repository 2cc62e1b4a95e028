//! Senders that wait for a timeout after their link is back: they are found, and woken by ICMP.
//!
//! What is kept wakes the near host's data. Two senders are left:
//!
//! - *The far host's.* What it has lost was lost beyond the link. Duplicate acknowledgements restart it
//!   only if it has a whole window on its way, and not where it asks or answers little at a time: its
//!   timer has backed off to as long as the outage. Whether it waits, its next acknowledgement says: its
//!   sequence number is behind all that it has sent, and if the near host lacks some of that, it was
//!   lost. Where nothing goes out that draws one, a [question](super::super::near_host_proxy) does.
//! - *The near host's*, if nothing is kept of what it has outstanding.
//!
//! Either is sent the [ICMP error](super::super::unreachable) that takes a back-off back: as many as
//! the outage may have made back-offs, for one may be short of making the timer run out, and those that
//! are too many do nothing. If nothing comes of a round it is repeated, twice at most. A repeated round goes
//! behind data that waits.
//!
//! Whoever was sent as little as an answer to its last request, and asks and waits again, would go on a round trip later if
//! the errors waited for its acknowledgement. So they go right behind what is kept, as long as there are few such hosts.
//!
//! After less than [`SHORTEST_OUTAGE`] nobody is asked or told: a timer is not much longer than that,
//! and a connection has seen a timeout or two at most. An application that has asked for such errors
//! (`IP_RECVERR`) gets one here as from any router; so nobody else gets one who does not wait.

use super::super::unreachable::unreachable;
use super::super::{Context, Outgoing, SendReason};
use super::lately_told::SEGMENT;
use super::rules::HoldRule;
use crate::links::{Direction, Indicator};
use crate::tracking::Phase;
use alloc::boxed::Box;
use outlast_base::time::{Duration, Instant};

/// Shorter outages leave timers that run out soon.
const SHORTEST_OUTAGE: Duration = Duration::from_secs(1);
/// The shortest first timeout of a modern stack (Linux, `TCP_RTO_MIN`).
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(200);
/// About what an error has on the link, over IPv6.
const ERROR_BYTES: u64 = 110;
/// As often as Linux repeats a segment (`tcp_retries2`): a connection has no more back-offs.
const MOST_BACK_OFFS: u32 = 15;
/// Rounds of errors, and questions, after one return.
const ROUNDS: u8 = 3;
/// Linux answers a question twice a second at most (`tcp_invalid_ratelimit`).
const SHORTEST_PAUSE: Duration = Duration::from_millis(500);

/// Whether a sender of the connection waits for a timeout.
#[derive(Debug, Default)]
pub(super) struct Sleepers {
    /// When the link went away, after which no sender was seen to be awake yet.
    away_since: Option<Instant>,
    /// The near host had just answered the far host then: that may have the answer, and have gone on.
    had_answered: bool,
    wake: Option<Box<Wake>>,
}

/// Both senders of one connection, from their link's return until they are awake.
#[derive(Debug)]
struct Wake {
    /// When the link came back, and who said so.
    back: (Instant, Indicator),
    /// Back-offs that the outage may have made.
    back_offs: u8,
    far: Sleeper,
    near: Sleeper,
}

/// One sender.
#[derive(Debug)]
enum Sleeper {
    /// Nothing is to be done.
    Awake,
    /// The next acknowledgement says whether it waits; something is on its way that draws it.
    Unknown,
    /// As before, and it is told without having been asked: so many packets have not gone out.
    Presumed(u8),
    /// The next acknowledgement says whether it waits; a question draws it.
    Asked(Rounds),
    /// It waits for its timeout.
    Asleep(Rounds),
}

/// What goes out, and when it goes out again.
#[derive(Debug)]
struct Rounds {
    /// Packets of this round that have not gone out.
    due: u8,
    left: u8,
    pause: Duration,
    again: Option<Instant>,
}

impl Rounds {
    const fn of(packets: u8) -> Self {
        Self {
            due: packets,
            left: ROUNDS,
            pause: SHORTEST_PAUSE,
            again: None,
        }
    }

    const fn is_first(&self) -> bool {
        self.due > 0 && self.left == ROUNDS
    }

    /// One packet goes out.
    fn sent(&mut self, now: Instant, patience: Duration) {
        self.due -= 1;
        if self.due == 0 {
            self.left -= 1;
            self.again = Some(now + self.pause.max(patience));
            self.pause *= 2;
        }
    }

    /// As [`Self::of`], but all of the first round has gone out.
    fn behind_the_first(now: Instant, patience: Duration) -> Self {
        let mut rounds = Self::of(1);
        rounds.sent(now, patience);
        rounds
    }

    /// Whether it was all in vain.
    fn handle_timeout(&mut self, now: Instant, packets: u8) -> bool {
        if self.again.take_if(|at| *at <= now).is_none() {
            return false;
        }
        if self.left > 0 {
            self.due = packets;
        }
        self.left == 0
    }
}

impl Sleeper {
    const fn rounds(&self) -> Option<&Rounds> {
        match self {
            Self::Asked(rounds) | Self::Asleep(rounds) => Some(rounds),
            Self::Awake | Self::Unknown | Self::Presumed(_) => None,
        }
    }

    fn handle_timeout(&mut self, now: Instant, back_offs: u8) {
        let is_in_vain = match self {
            Self::Asked(rounds) => rounds.handle_timeout(now, 1),
            Self::Asleep(rounds) => rounds.handle_timeout(now, back_offs),
            Self::Awake | Self::Unknown | Self::Presumed(_) => false,
        };
        if is_in_vain {
            *self = Self::Awake;
        }
    }

    fn is_due(&self) -> bool {
        match self {
            Self::Presumed(due) => *due > 0,
            _ => self.rounds().is_some_and(|rounds| rounds.due > 0),
        }
    }
}

impl Sleepers {
    /// The link went away at `since`. The near host `has_answered` with little what the far host had asked last.
    pub(super) fn suspend(&mut self, since: Instant, has_answered: bool) {
        self.away_since.get_or_insert(since);
        self.had_answered = has_answered;
        self.wake = None;
    }

    /// For how long a sender may have waited.
    pub(super) fn away(&self, now: Instant) -> Duration {
        let since = self.away_since;
        since.map_or(Duration::ZERO, |since| now.since(since))
    }

    /// The link is back. Data that goes out, if it `has_kept` some, draws the far host's
    /// acknowledgement.
    pub(super) fn begin(&mut self, cx: &mut Context<'_>, has_kept: bool) {
        let is_open = cx.flow.phase == Phase::Established;
        let away = self.away_since.filter(|_| is_open);
        let away = away.map(|since| cx.now.since(since));
        let long = away.filter(|away| *away >= SHORTEST_OUTAGE);
        self.wake = long.map(|away| Box::new(Wake::new(cx, away, has_kept, self.had_answered)));
    }

    /// The near host has sent data while the link is up.
    pub(super) fn hear_near(&mut self) {
        if let Some(wake) = &mut self.wake {
            wake.near = Sleeper::Awake;
            self.end_if_awake();
        }
    }

    /// The far host sends something while the link is up: it `has_data`, for the first time or again, or
    /// new bytes of the near host's have arrived. Says since when it waits for its timeout, once that
    /// is known.
    pub(super) fn hear_far(
        &mut self,
        cx: &Context<'_>,
        has_data: bool,
        is_acknowledged: bool,
    ) -> Option<(Instant, Indicator)> {
        let Some(wake) = &mut self.wake else {
            if has_data || is_acknowledged {
                self.away_since = None;
            }
            return None;
        };
        if is_acknowledged {
            wake.near = Sleeper::Awake;
        }
        let lacks = cx.flow.far.has_outstanding();
        match (&wake.far, lacks) {
            _ if has_data => wake.far = Sleeper::Awake,
            (Sleeper::Presumed(0), true) => {
                let patience = cx.flow.rtt.patience();
                wake.far = Sleeper::Asleep(Rounds::behind_the_first(cx.now, patience));
            }
            (Sleeper::Unknown | Sleeper::Presumed(_) | Sleeper::Asked(_), true)
                if cx.rules.has(HoldRule::WakeFar) =>
            {
                wake.far = Sleeper::Asleep(Rounds::of(wake.back_offs));
            }
            (Sleeper::Asleep(_), true) => {}
            (_, true) | (_, false) => wake.far = Sleeper::Awake,
        }
        let is_asleep = matches!(wake.far, Sleeper::Asleep(_));
        let back = is_asleep.then_some(wake.back);
        self.end_if_awake();
        back
    }

    /// Whether a sender may wait.
    pub(super) const fn are_watched(&self) -> bool {
        self.wake.is_some()
    }

    /// Whether a sender is known to wait.
    pub(super) fn are_being_woken(&self) -> bool {
        let is_asleep = |sleeper: &Sleeper| matches!(sleeper, Sleeper::Asleep(_));
        let wake = self.wake.as_ref();
        wake.is_some_and(|wake| is_asleep(&wake.far) || is_asleep(&wake.near))
    }

    pub(super) fn is_due(&self) -> bool {
        let wake = self.wake.as_ref();
        wake.is_some_and(|wake| wake.far.is_due() || wake.near.is_due())
    }

    /// Whether a packet of a first round is due. One that is repeated waits for data: nobody answers an
    /// ICMP error, and of a peer that is silent only an answer shows that it is there.
    pub(super) fn goes_first(&self) -> bool {
        let is_first = |sleeper: &Sleeper| sleeper.rounds().is_some_and(Rounds::is_first);
        let wake = self.wake.as_ref();
        wake.is_some_and(|wake| is_first(&wake.far) || is_first(&wake.near))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let wake = self.wake.as_ref()?;
        let of = |sleeper: &Sleeper| sleeper.rounds().and_then(|rounds| rounds.again);
        of(&wake.far).into_iter().chain(of(&wake.near)).min()
    }

    pub(super) fn handle_timeout(&mut self, now: Instant) {
        if let Some(wake) = &mut self.wake {
            wake.far.handle_timeout(now, wake.back_offs);
            wake.near.handle_timeout(now, wake.back_offs);
            self.end_if_awake();
        }
    }

    /// Whether the far host is asked or woken next.
    pub(super) fn is_far_next(&self) -> bool {
        let is_next = |wake: &Wake| wake.far.is_due() && !wake.near.is_due();
        self.wake.as_deref().is_some_and(is_next)
    }

    pub(super) fn poll_transmit(&mut self, cx: &Context<'_>) -> Option<Outgoing> {
        let wake = self.wake.as_mut()?;
        let patience = cx.flow.rtt.patience();
        let (direction, packet, reason) = match (&mut wake.near, &mut wake.far) {
            (Sleeper::Asleep(rounds), _) if rounds.due > 0 => {
                rounds.sent(cx.now, patience);
                let error = unreachable(cx.key, cx.flow, Direction::ToLink)?;
                (Direction::FromLink, error, SendReason::Unreachable)
            }
            (_, Sleeper::Asleep(rounds)) if rounds.due > 0 => {
                rounds.sent(cx.now, patience);
                let error = unreachable(cx.key, cx.flow, Direction::FromLink)?;
                (Direction::ToLink, error, SendReason::Unreachable)
            }
            (_, Sleeper::Presumed(due)) if *due > 0 => {
                *due -= 1;
                let error = unreachable(cx.key, cx.flow, Direction::FromLink)?;
                (Direction::ToLink, error, SendReason::Unreachable)
            }
            (_, Sleeper::Asked(rounds)) if rounds.due > 0 => {
                rounds.sent(cx.now, patience);
                let question = cx.near_host_proxy.keep_alive(cx.key, cx.flow)?;
                (Direction::ToLink, question, SendReason::Question)
            }
            _ => return None,
        };
        Some(Outgoing {
            direction,
            packet,
            reason,
        })
    }

    /// Once no sender waits, or all was in vain, the outage is over for the connection.
    fn end_if_awake(&mut self) {
        let is_over = |wake: &mut Box<Wake>| {
            matches!((&wake.far, &wake.near), (Sleeper::Awake, Sleeper::Awake))
        };
        if self.wake.take_if(is_over).is_some() {
            self.away_since = None;
        }
    }
}

impl Wake {
    fn new(cx: &mut Context<'_>, away: Duration, has_kept: bool, had_answered: bool) -> Self {
        let back_offs = back_offs(away);
        let asleep = || Sleeper::Asleep(Rounds::of(back_offs));
        let rules = cx.rules;
        let far = if cx.flow.far.has_outstanding() {
            asleep()
        } else if has_kept && had_answered && presumes(cx, back_offs) {
            Sleeper::Presumed(back_offs)
        } else if has_kept {
            Sleeper::Unknown
        } else {
            Sleeper::Asked(Rounds::of(1))
        };
        let far = match far {
            Sleeper::Asleep(_) if !rules.has(HoldRule::WakeFar) => Sleeper::Awake,
            Sleeper::Asked(_) if !rules.has(HoldRule::AskFar) => Sleeper::Awake,
            far => far,
        };
        let wakes_near = rules.has(HoldRule::WakeNear);
        let near = match cx.flow.near.has_outstanding() && !has_kept && wakes_near {
            true => asleep(),
            false => Sleeper::Awake,
        };
        Self {
            back: (cx.now, cx.link.by),
            back_offs,
            far,
            near,
        }
    }
}

/// Whether the far host is told so often without having been asked: what the near host has outstanding is little, and not
/// many hosts were told already.
fn presumes(cx: &mut Context<'_>, errors: u8) -> bool {
    let near = &cx.flow.near;
    let is_little = near.next.distance_from(near.acked) <= SEGMENT;
    let rules = cx.rules;
    let may = is_little && rules.has(HoldRule::WakeFar) && rules.has(HoldRule::WakeUnasked);
    let left = cx.unasked.checked_sub(u64::from(errors) * ERROR_BYTES);
    let Some(left) = left.filter(|_| may) else {
        return false;
    };
    *cx.unasked = left;
    true
}

/// How often a sender doubles its timeout in an outage of this length, at most.
pub(super) fn back_offs(away: Duration) -> u8 {
    let timeouts = away.as_nanos() / SHORTEST_TIMEOUT.as_nanos();
    let doublings = (timeouts + 1).ilog2();
    doublings.clamp(1, MOST_BACK_OFFS) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Timeouts at 0.2, 0.6, 1.4, 3.0, 6.2, 12.6, 25.4 s.
    #[test]
    fn back_offs_are_those_of_the_fastest_timer() {
        for (ms, expected) in [
            (1_000, 2),
            (1_400, 3),
            (12_599, 5),
            (12_600, 6),
            (20_000, 6),
            (45_000, 7),
            (100_000_000, 15),
        ] {
            assert_eq!(back_offs(Duration::from_millis(ms)), expected, "{ms} ms");
        }
    }
}
