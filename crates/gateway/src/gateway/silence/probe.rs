//! Asking a silent link whether it is back.
//!
//! A probe is what a host's own keep-alive is, in the near host's name.
//!
//! A link is probed, not its connections: every other probe is for the connection that has shown
//! the silence last, the others in turn for all, so that a far host that is dead hides nobody.

use super::{Gateway, Suspicion};
use crate::links::{Direction, LinkId};
use crate::mechanisms::path::{Outgoing, SendReason};
use crate::tracking::{FlowIndex, LinkRtt, Phase};
use outlast_base::time::{Duration, Instant};

/// Until the probe's answer has come and what was kept has crossed the link, one and a half round
/// trips pass. With the pause before the probe they make one round trip and this.
const PROMISE: Duration = Duration::from_millis(50);
/// The shortest pause between two probes of one link.
const SHORTEST_PAUSE: Duration = Duration::from_millis(20);
/// The longest, however old the suspicion is.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);
/// Past the full pace, the pause is this part of the time since then.
const SLOWING: u32 = 200;
/// Connections of a link that are looked at for one that can be probed.
const LOOKED_AT: usize = 16;

/// The pause between two probes of a link whose round trips are these.
pub(super) fn pace(rtt: &LinkRtt) -> Duration {
    let half = rtt.smoothed() / 2;
    PROMISE.saturating_sub(half).clamp(SHORTEST_PAUSE, PROMISE)
}

impl Suspicion {
    /// The pause after a probe at `now`; `None` once the suspicion is to be given up.
    fn pause(&self, now: Instant, full_pace_for: Duration, gives_up: Duration) -> Option<Duration> {
        let age = now.since(self.since);
        let beyond = age.saturating_sub(full_pace_for) / SLOWING;
        (age < gives_up).then(|| beyond.min(LONGEST_PAUSE).max(self.pace))
    }
}

impl Gateway {
    /// Probes those whose time has come.
    pub(in super::super) fn send_probes(&mut self, now: Instant) {
        let Some(silence) = &mut self.silence else {
            return;
        };
        let per_second = silence.config.probes_per_second.max(1);
        let gap = Duration::from_secs(1) / per_second;
        for place in 0..silence.agendas.len() {
            while let Some(link) = self
                .silence
                .as_mut()
                .and_then(|silence| silence.agendas[place].1.take(now, gap))
            {
                if let Some(index) = self.next_to_probe(link) {
                    self.probe(now, link, index);
                    self.plan_probe(now, link);
                }
            }
        }
    }

    /// Plans the next probe of a suspected link.
    pub(super) fn plan_probe(&mut self, now: Instant, link: LinkId) {
        let Some(silence) = &mut self.silence else {
            return;
        };
        let config = silence.config;
        let Some(voice) = silence.voices.get_mut(&link) else {
            return;
        };
        let Some(suspicion) = &voice.suspicion else {
            return;
        };
        match suspicion.pause(now, config.full_pace_for, config.given_up_after) {
            Some(pause) if config.probes_per_second > 0 => {
                silence.agenda(link.interface).set(link, now + pause);
            }
            Some(_) => {}
            None => {
                let raiser = suspicion.raiser;
                voice.suspicion = None;
                voice.unanswered_since = None;
                self.end_suspicion(link);
                self.distrust(raiser);
            }
        }
    }

    /// The connection of a suspected link whose turn it is; `None` if there is none to ask.
    fn next_to_probe(&mut self, link: LinkId) -> Option<FlowIndex> {
        let silence = self.silence.as_mut()?;
        let suspicion = silence.voices.get_mut(&link)?.suspicion.as_mut()?;
        let raiser = suspicion.raiser;
        let is_round = core::mem::replace(&mut suspicion.round_is_next, true);
        let cursor = suspicion.cursor;
        let of_round = || self.next_in_round(link, cursor);
        let of_raiser = || self.can_be_probed(link, raiser).then_some(raiser);
        let next = match is_round {
            true => of_round().or_else(of_raiser),
            false => of_raiser().or_else(of_round),
        }?;
        let suspicion = self.silence.as_mut()?.voices.get_mut(&link)?;
        let suspicion = suspicion.suspicion.as_mut()?;
        if next == raiser {
            suspicion.round_is_next = true;
        } else {
            suspicion.cursor = next;
            suspicion.round_is_next = false;
        }
        Some(next)
    }

    /// The next connection of the link after `cursor`, the first one after the last.
    fn next_in_round(&self, link: LinkId, cursor: FlowIndex) -> Option<FlowIndex> {
        let behind = self
            .crossings
            .range((link, cursor)..)
            .skip_while(|at| at.1 == cursor);
        let before = self
            .crossings
            .range((link, FlowIndex::FIRST)..=(link, cursor));
        behind
            .take_while(|(other, _)| *other == link)
            .chain(before)
            .take(LOOKED_AT)
            .map(|(_, index)| *index)
            .find(|index| self.can_be_probed(link, *index))
    }

    /// The pause between two probes for one-sided connections; `None` if there are none.
    pub(in super::super) fn probe_gap(&self) -> Option<Duration> {
        let per_second = self.silence.as_ref()?.config.probes_per_second;
        let gap = Duration::from_secs(1).checked_div(per_second);
        gap.map(|gap| gap.max(SHORTEST_PAUSE))
    }

    fn can_be_probed(&self, link: LinkId, index: FlowIndex) -> bool {
        self.flows
            .flow(index)
            .is_some_and(|record| record.link == link && record.tracked.phase == Phase::Established)
    }

    pub(in super::super) fn probe(&mut self, now: Instant, link: LinkId, index: FlowIndex) {
        let (Some(key), Some(record)) = (self.flows.key(index), self.flows.flow_mut(index)) else {
            return;
        };
        let packet = record.silence.voice.keep_alive(&key, &record.tracked);
        record.silence.note_probe(now);
        self.counters.probes += 1;
        self.transmit(
            now,
            link,
            Outgoing {
                direction: Direction::ToLink,
                packet,
                reason: SendReason::Probe,
            },
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn suspicion() -> Suspicion {
        Suspicion {
            since: Instant::ZERO,
            raiser: FlowIndex::FIRST,
            cursor: FlowIndex::FIRST,
            round_is_next: false,
            pace: Duration::from_millis(25),
        }
    }

    #[test]
    fn an_hour_of_silence_costs_some_thousand_probes() {
        let (full, gives_up) = (Duration::from_secs(120), Duration::from_secs(3_600));
        let suspicion = suspicion();
        let mut now = Instant::ZERO;
        let mut probes = 0;
        while let Some(pause) = suspicion.pause(now, full, gives_up) {
            probes += 1;
            now += pause;
        }
        // 4,800 in two minutes, and a logarithm of them afterwards.
        assert!((5_500..6_500).contains(&probes), "{probes} probes");
        assert!(now < Instant::ZERO + gives_up + LONGEST_PAUSE);
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
}
