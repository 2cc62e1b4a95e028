//! When a silent link is asked whether it is back, and who behind it.
//!
//! A probe is what a host's own keep-alive is, in the near host's name.
//!
//! A link is probed, not its connections: every other probe is for the connection that has shown
//! the silence last, the others in turn for all, so that a far host that is dead hides nobody.

use super::{Silence, Suspicion};
use crate::links::LinkId;
use crate::tracking::{FlowIndex, LinkRtt};
use outlast_base::time::{Duration, Instant};

/// Until the probe's answer has come and what was kept has crossed the link, one and a half round
/// trips pass. With the pause before the probe they make one round trip and this.
const PROMISE: Duration = Duration::from_millis(50);
/// The shortest pause between two probes of one link.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// Probes of one link in a round trip, at most: answers to more would fill the way back of a slow link.
const MOST_IN_A_ROUND_TRIP: u32 = 16;
/// The longest pause for that reason, however long a queue has made the round trips.
const LONGEST_PACE: Duration = Duration::from_millis(250);
/// The longest, however old the suspicion is.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Past the full pace, the pause is this part of the time since then.
const SLOWING: u32 = 200;
/// Connections of a link that are looked at for one that can be probed.
const LOOKED_AT: usize = 16;

/// The connections of one link, for whoever looks for one to probe.
pub(crate) trait Candidates {
    /// Connections behind `link`: those after `from` first, those up to `from` last.
    fn in_turn(&self, link: LinkId, from: FlowIndex) -> impl Iterator<Item = FlowIndex>;

    /// Whether a keep-alive of the connection can be made, and crosses `link`.
    fn can_be_probed(&self, link: LinkId, index: FlowIndex) -> bool;
}

/// The pause between two probes of a link whose round trips are these.
pub(super) fn pace(rtt: &LinkRtt) -> Duration {
    let round_trip = rtt.smoothed();
    let promised = PROMISE.saturating_sub(round_trip / 2);
    promised
        .clamp(SHORTEST_PAUSE, PROMISE)
        .max((round_trip / MOST_IN_A_ROUND_TRIP).min(LONGEST_PACE))
}

impl Suspicion {
    /// The pause after a probe at `now`; `None` once the suspicion is to be given up.
    fn pause(&self, now: Instant, full_pace_for: Duration, gives_up: Duration) -> Option<Duration> {
        let age = now.since(self.since);
        let beyond = age.saturating_sub(full_pace_for) / SLOWING;
        (age < gives_up).then(|| beyond.min(LONGEST_PAUSE).max(self.pace))
    }
}

impl Silence {
    /// The next suspected link whose time has come. It is planned no more.
    pub(in crate::links) fn take_probe(&mut self, now: Instant) -> Option<LinkId> {
        let gap = Duration::from_secs(1) / self.config.probes_per_second.max(1);
        self.agendas
            .iter_mut()
            .find_map(|(_, agenda)| agenda.take(now, gap))
    }

    /// Plans the next probe of a suspected link. Returns the connection that has shown the silence, if the
    /// suspicion is given up instead.
    #[must_use]
    pub(in crate::links) fn plan_probe(&mut self, now: Instant, link: LinkId) -> Option<FlowIndex> {
        let config = self.config;
        let behind = self.behind.get_mut(&link)?;
        let suspicion = behind.suspicion.as_ref()?;
        match suspicion.pause(now, config.full_pace_for, config.given_up_after) {
            Some(pause) if config.probes_per_second > 0 => {
                self.agenda(link.interface).set(link, now + pause);
                None
            }
            Some(_) => None,
            None => {
                let raiser = suspicion.raiser;
                behind.suspicion = None;
                behind.heard = Some(now);
                self.end_suspicion(link);
                Some(raiser)
            }
        }
    }

    /// The connection of a suspected link whose turn it is; `None` if there is none to ask.
    pub(in crate::links) fn next_to_probe(
        &mut self,
        link: LinkId,
        candidates: &impl Candidates,
    ) -> Option<FlowIndex> {
        let suspicion = self.behind.get_mut(&link)?.suspicion.as_mut()?;
        let raiser = suspicion.raiser;
        let is_round = core::mem::replace(&mut suspicion.round_is_next, true);
        let cursor = suspicion.cursor;
        let of_round = || {
            let mut others = candidates.in_turn(link, cursor).take(LOOKED_AT);
            others.find(|index| candidates.can_be_probed(link, *index))
        };
        let of_raiser = || candidates.can_be_probed(link, raiser).then_some(raiser);
        let next = match is_round {
            true => of_round().or_else(of_raiser),
            false => of_raiser().or_else(of_round),
        }?;
        if next == raiser {
            suspicion.round_is_next = true;
        } else {
            suspicion.cursor = next;
            suspicion.round_is_next = false;
        }
        Some(next)
    }

    /// The pause between two probes for one-sided connections; `None` if there are none.
    pub(in crate::links) fn probe_gap(&self) -> Option<Duration> {
        let gap = Duration::from_secs(1).checked_div(self.config.probes_per_second);
        gap.map(|gap| gap.max(SHORTEST_PAUSE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspicion() -> Suspicion {
        Suspicion {
            since: Instant::ZERO,
            first: FlowIndex::FIRST,
            raiser: FlowIndex::FIRST,
            cursor: FlowIndex::FIRST,
            round_is_next: false,
            pace: Duration::from_millis(25),
        }
    }

    /// Probes in so much silence, and the last pause.
    fn probes(full: Duration, silence: Duration, pace: Duration) -> (u32, Duration) {
        let suspicion = Suspicion {
            pace,
            ..suspicion()
        };
        let (mut now, mut last, mut count) = (Instant::ZERO, Duration::ZERO, 0);
        while let Some(pause) = suspicion.pause(now, full, silence) {
            count += 1;
            last = pause;
            now += pause;
        }
        (count, last)
    }

    #[test]
    fn an_hour_of_silence_costs_some_thousand_probes() {
        let (full, gives_up) = (Duration::from_secs(120), Duration::from_secs(3_600));
        let (count, last) = probes(full, gives_up, Duration::from_millis(25));
        // 4,800 in two minutes, and a logarithm of them afterwards.
        assert!((5_500..6_500).contains(&count), "{count} probes");
        assert!(last <= LONGEST_PAUSE);
    }

    #[test]
    fn probes_of_a_shorter_full_pace_are_fewer_and_later() {
        let short = Duration::from_secs(15);
        let count = |full, silence| probes(Duration::from_secs(full), silence, SHORTEST_PAUSE);
        assert_eq!(count(120, short).0, 750);
        let (few, last) = count(1, short);
        assert!((490..510).contains(&few), "{few} probes");
        let later = last - SHORTEST_PAUSE;
        assert!((45..=50).contains(&later.as_millis()), "{later:?}");
        let (hour, _) = count(1, Duration::from_secs(3_600));
        assert!((1_550..1_700).contains(&hour), "{hour} probes");
    }

    #[test]
    fn the_pause_and_one_and_a_half_round_trips_keep_the_promise() {
        let mut rtt = LinkRtt::default();
        rtt.sent(
            Instant::ZERO,
            outlast_wire::SeqNumber(1),
            outlast_wire::SeqNumber(0),
        );
        rtt.acknowledged(Instant::from_millis(50), outlast_wire::SeqNumber(1));
        assert_eq!(pace(&rtt), Duration::from_millis(25));
        assert_eq!(pace(&LinkRtt::default()), SHORTEST_PAUSE);
    }

    #[test]
    fn a_round_trip_has_sixteen_probes_at_most_and_a_second_four_at_least() {
        let after = |round_trip_ms| {
            let mut rtt = LinkRtt::default();
            let (end, acked) = (outlast_wire::SeqNumber(1), outlast_wire::SeqNumber(0));
            rtt.sent(Instant::ZERO, end, acked);
            rtt.acknowledged(Instant::from_millis(round_trip_ms), end);
            pace(&rtt)
        };
        assert_eq!(after(320), SHORTEST_PAUSE);
        assert_eq!(after(640), Duration::from_millis(40));
        assert_eq!(after(8_000), LONGEST_PACE);
    }
}
