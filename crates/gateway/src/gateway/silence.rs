//! Silence: a link that went away without anybody saying so.
//!
//! | what happens | what is done |
//! |---|---|
//! | a host sends data towards the link | from now on the link owes an answer, if it did not yet |
//! | a segment of any tracked connection comes from the link | it owes none |
//! | data is repeated, and an answer is owed for longer than the connection's patience | the link is *suspected* |
//! | the link is suspected | packets pass as before; small probes ask whether it is back |
//! | a segment comes from a suspected link | it was down and is up: the mechanisms are told both, at once |
//!
//! The senders' own repetitions show the silence (a tail loss probe, RFC 8985; a retransmission
//! timeout, RFC 6298), so that nothing is polled. Nothing is withheld on a suspicion: a false one
//! costs probes, and what a mechanism sends when a link is back. Only a segment that an honest
//! host would send now ends a suspicion, so that nobody who guesses addresses can have anything
//! sent.
//!
//! Of the connections of a link only those that have shown the silence are believed: one whose
//! suspicion another connection's answer has refuted does not raise another before it is heard
//! itself. So a far host that is dead costs the others behind the same router one false alarm.
//!
//! A one-sided connection (`release/handshakes.rs`) makes no link suspected: who only guesses addresses can make
//! one. Where it is not answered and nobody behind its link is heard meanwhile, its own far host is asked
//! by the numbers of the near host's segments, and nothing follows for the others.
//!
//! Left out: silence where nobody sends data towards the link. A gateway on the far side of an
//! upload sees nothing that is owed an answer; the sender's side is the place for it.

mod agenda;
mod probe;

use super::crossing::Crossing;
use super::{Event, Gateway};
use crate::links::{Direction, Indicator, InterfaceId, LinkEvent, LinkId, LinkState, StateSince};
use crate::mechanisms::path::NearVoice;
use crate::tracking::{FlowIndex, Observation};
use agenda::Agenda;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{TcpFlags, TcpHeader};

/// When silence is suspicious, and what finding out about it may cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SilenceConfig {
    /// No shorter silence raises a suspicion, however short the round trip is: a receiver may
    /// delay what it owes (RFC 9293, section 3.8.6.3; hosts do by 200 ms at most).
    pub shortest: Duration,
    /// Probes in one second towards one interface, whatever the number of suspected links
    /// behind it. Zero: nobody is probed, and a link's return shows when a host sends.
    pub probes_per_second: u32,
    /// How long a link is probed at full pace: about every 20 to 50 ms. Then ever more seldom.
    pub full_pace_for: Duration,
    /// A suspicion older than this is given up: the link is as good as any other.
    pub given_up_after: Duration,
}

impl Default for SilenceConfig {
    fn default() -> Self {
        Self {
            shortest: Duration::from_millis(200),
            probes_per_second: 50,
            full_pace_for: Duration::from_secs(120),
            given_up_after: Duration::from_secs(3_600),
        }
    }
}

/// A link that is suspected, for status pages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SilentLink {
    /// Which one.
    pub link: LinkId,
    /// The first thing that was not answered went towards it then.
    pub since: Instant,
}

/// What is known of the voices behind all links.
#[derive(Debug)]
pub(super) struct Silence {
    config: SilenceConfig,
    voices: BTreeMap<LinkId, Voice>,
    suspected: usize,
    agendas: Vec<(InterfaceId, Agenda)>,
    /// When somebody behind a link was heard last, since a one-sided connection wants to know.
    heard: BTreeMap<LinkId, Option<Instant>>,
}

/// One link, as long as there are connections behind it.
#[derive(Debug, Default)]
struct Voice {
    /// When data went towards the link, and nothing has come from it since.
    unanswered_since: Option<Instant>,
    suspicion: Option<Suspicion>,
}

#[derive(Debug)]
struct Suspicion {
    since: Instant,
    /// The connection that has shown the silence last.
    raiser: FlowIndex,
    /// The connection that was probed last in the round of all others.
    cursor: FlowIndex,
    /// Whether the next probe is the round's.
    round_is_next: bool,
    pace: Duration,
}

/// What a flow contributes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FlowSilence {
    /// What the near host has said last.
    pub(super) voice: NearVoice,
    /// Probes, and questions like them, that are not answered yet.
    probes: u16,
    /// When the last one was sent.
    probed_at: Instant,
    /// Its suspicion was refuted, and it was not heard since.
    is_distrusted: bool,
}

impl FlowSilence {
    /// Something goes to the far host whose answer is not for the near host.
    pub(super) const fn note_probe(&mut self, now: Instant) {
        self.probes = self.probes.saturating_add(1);
        self.probed_at = now;
    }
}

impl Silence {
    pub(super) const fn new(config: SilenceConfig) -> Self {
        Self {
            config,
            voices: BTreeMap::new(),
            suspected: 0,
            agendas: Vec::new(),
            heard: BTreeMap::new(),
        }
    }

    pub(super) fn is_suspected(&self, link: LinkId) -> bool {
        self.suspected > 0
            && self
                .voices
                .get(&link)
                .is_some_and(|voice| voice.suspicion.is_some())
    }

    /// The link has nobody behind it any more, or somebody knows better: what was owed is not.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.heard.remove(&link);
        if let Some(voice) = self.voices.remove(&link)
            && voice.suspicion.is_some()
        {
            self.suspected -= 1;
            self.agenda(link.interface).remove(link);
        }
    }

    /// The same for all peers of an interface.
    fn forget_behind(&mut self, event: LinkId) {
        if event.peer.is_some() {
            self.forget(event);
            return;
        }
        let behind = self.voices.range(event..).map(|(link, _)| *link);
        let behind: Vec<_> = behind
            .take_while(|link| link.interface == event.interface)
            .collect();
        for link in behind {
            self.forget(link);
        }
    }

    fn note_heard(&mut self, now: Instant, link: LinkId) {
        if let Some(heard) = self.heard.get_mut(&link) {
            *heard = Some(now);
        }
    }

    /// When the next probe may go.
    pub(super) fn next_probe(&self) -> Option<Instant> {
        self.agendas
            .iter()
            .filter_map(|(_, agenda)| agenda.next())
            .min()
    }

    fn agenda(&mut self, interface: InterfaceId) -> &mut Agenda {
        let place = self.agendas.iter().position(|(id, _)| *id == interface);
        let place = place.unwrap_or_else(|| {
            self.agendas.push((interface, Agenda::default()));
            self.agendas.len() - 1
        });
        &mut self.agendas[place].1
    }
}

impl Gateway {
    /// The links that are silent although they owe an answer.
    pub fn silent_links(&self) -> impl Iterator<Item = SilentLink> {
        let voices = self.silence.iter().flat_map(|silence| &silence.voices);
        voices.filter_map(|(&link, voice)| {
            let since = voice.suspicion.as_ref()?.since;
            Some(SilentLink { link, since })
        })
    }

    /// Somebody who sees the packets in the gateway's stead has found `link` silent: it has owed
    /// an answer since `since`. Does nothing where no connection is tracked behind it.
    pub fn handle_silence(&mut self, now: Instant, link: LinkId, since: Instant) {
        let first = self.crossings.range((link, FlowIndex::FIRST)..).next();
        let Some(&(_, index)) = first.filter(|(other, _)| *other == link) else {
            return;
        };
        if self.is_up(link)
            && let Some(silence) = &mut self.silence
        {
            let voice = silence.voices.entry(link).or_default();
            let owed = voice.unanswered_since.get_or_insert(since);
            *owed = since.min(*owed);
            self.suspect(now, link, index);
        }
        self.send_in_turn(now);
    }

    pub(super) fn is_silent(&self, link: LinkId) -> bool {
        self.silence
            .as_ref()
            .is_some_and(|silence| silence.is_suspected(link))
    }

    /// A plausible segment of a connection crosses. Returns whether it only answers a probe.
    pub(super) fn listen(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        observation: Observation,
    ) -> bool {
        if !self.was_established(index) {
            return false;
        }
        match crossing.direction {
            Direction::ToLink => {
                self.note_asking(crossing, index, tcp, observation);
                false
            }
            Direction::FromLink => {
                let is_answer = self.take_answer(crossing, index, tcp, observation);
                self.note_voice(crossing.now, crossing.link, index);
                is_answer
            }
        }
    }

    /// Something else than TCP came from the link. Nobody can say whether it is honest, so that it
    /// makes a suspected link be asked, and no more.
    pub(super) fn overhear(&mut self, now: Instant, link: LinkId) {
        let Some(silence) = &mut self.silence else {
            return;
        };
        silence.note_heard(now, link);
        if !silence.is_suspected(link) {
            if let Some(voice) = silence.voices.get_mut(&link) {
                voice.unanswered_since = None;
            }
        } else if silence.config.probes_per_second > 0 {
            silence.agenda(link.interface).set(link, now);
        }
    }

    /// An indicator has spoken of `link`: it knows better.
    pub(super) fn believe_indicator(&mut self, link: LinkId) {
        if let Some(silence) = &mut self.silence {
            silence.forget_behind(link);
        }
    }

    /// A flow behind `link` is gone from there.
    pub(super) fn leave_link(&mut self, link: LinkId) {
        let Some(silence) = &mut self.silence else {
            return;
        };
        let next = self.crossings.range((link, FlowIndex::FIRST)..).next();
        if next.is_none_or(|(other, _)| *other != link) {
            silence.forget(link);
        }
    }

    /// Data of a one-sided connection crosses, towards the link.
    pub(super) fn note_one_sided(&mut self, link: LinkId, index: FlowIndex, tcp: &TcpHeader) {
        if let Some(silence) = &mut self.silence {
            silence.heard.entry(link).or_default();
        }
        if let Some(record) = self.flows.flow_mut(index) {
            record.silence.voice.hear(tcp);
        }
    }

    /// Whether nobody behind `link` was heard since then.
    pub(super) fn is_quiet(&self, link: LinkId, since: Instant) -> bool {
        let silence = self.silence.as_ref();
        let heard = silence.and_then(|silence| *silence.heard.get(&link)?);
        heard.is_none_or(|heard| heard < since) && self.is_up(link)
    }

    fn note_asking(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        observation: Observation,
    ) {
        let &Crossing { now, link, .. } = crossing;
        if let Some(record) = self.flows.flow_mut(index) {
            record.silence.voice.hear(tcp);
        }
        if crossing.state.state == LinkState::Down {
            return;
        }
        if observation.new_data {
            // From now on a duplicate acknowledgement may answer this, and its sender has to count it.
            if !self.is_silent(link)
                && let Some(record) = self.flows.flow_mut(index)
            {
                record.silence.probes = 0;
            }
            self.note_owed(now, link);
        } else if observation.repeated {
            self.note_repetition(now, link, index);
        }
    }

    /// The link owes an answer.
    fn note_owed(&mut self, now: Instant, link: LinkId) {
        if let Some(silence) = &mut self.silence {
            let voice = silence.voices.entry(link).or_default();
            voice.unanswered_since.get_or_insert(now);
        }
    }

    /// Data of a flow goes towards the link once more, from its host or from the gateway: raises a
    /// suspicion if the link has owed an answer for too long.
    pub(super) fn note_repetition(&mut self, now: Instant, link: LinkId, index: FlowIndex) {
        if self.silence.is_none() || !self.is_up(link) {
            return;
        }
        self.note_owed(now, link);
        let Some(record) = self.flows.flow(index) else {
            return;
        };
        let flow = &record.tracked;
        let is_believed = flow.near.has_outstanding() && !record.silence.is_distrusted;
        let patience = flow.rtt.patience();
        let owed_since = self.silence.as_ref().and_then(|silence| {
            let since = silence.voices.get(&link)?.unanswered_since?;
            (now.since(since) >= patience.max(silence.config.shortest)).then_some(since)
        });
        if is_believed && owed_since.is_some() {
            self.suspect(now, link, index);
        }
    }

    fn is_up(&self, link: LinkId) -> bool {
        self.links
            .state(link)
            .is_some_and(|state| state.state == LinkState::Up)
    }

    /// The link is suspected from now on, and this flow has shown it.
    fn suspect(&mut self, now: Instant, link: LinkId, raiser: FlowIndex) {
        let Some(pace) = self.flows.flow(raiser).map(|r| probe::pace(&r.tracked.rtt)) else {
            return;
        };
        let Some(silence) = &mut self.silence else {
            return;
        };
        let Some(voice) = silence.voices.get_mut(&link) else {
            return;
        };
        let Some(since) = voice.unanswered_since else {
            return;
        };
        if let Some(suspicion) = &mut voice.suspicion {
            suspicion.raiser = raiser;
            if !silence.agenda(link.interface).has(link) {
                // Nobody was there to be probed.
                self.plan_probe(now, link);
            }
            return;
        }
        voice.suspicion = Some(Suspicion {
            since,
            raiser,
            cursor: raiser,
            round_is_next: false,
            pace,
        });
        silence.suspected += 1;
        self.counters.silences += 1;
        self.events.push_back(Event::Silent { link, since });
        self.plan_probe(now, link);
    }

    /// A segment of the flow at `index` has come from `link`.
    fn note_voice(&mut self, now: Instant, link: LinkId, index: FlowIndex) {
        if let Some(record) = self.flows.flow_mut(index) {
            record.silence.is_distrusted = false;
        }
        if let Some(silence) = self.silence.as_mut().filter(|s| !s.heard.is_empty()) {
            silence.note_heard(now, link);
            self.welcome_one_sided(now, link);
        }
        let Some(voice) = self.silence.as_mut().and_then(|s| s.voices.get_mut(&link)) else {
            return;
        };
        voice.unanswered_since = None;
        let Some(suspicion) = voice.suspicion.take() else {
            return;
        };
        self.end_suspicion(link);
        if index != suspicion.raiser {
            self.distrust(suspicion.raiser);
        }
        let down = StateSince {
            state: LinkState::Down,
            since: suspicion.since,
            by: Indicator::Silence,
        };
        let up = StateSince {
            state: LinkState::Up,
            since: now,
            by: Indicator::FirstPacket,
        };
        // What waits has its turn once the packet that has come is taken in: it may say that some
        // of it has arrived.
        let flows = self.crossings.range((link, FlowIndex::FIRST)..);
        let flows: Vec<_> = flows
            .take_while(|(other, _)| *other == link)
            .copied()
            .collect();
        self.return_of(now, link, &flows, [down, up]);
    }

    fn distrust(&mut self, raiser: FlowIndex) {
        if let Some(raiser) = self.flows.flow_mut(raiser) {
            raiser.silence.is_distrusted = true;
        }
    }

    fn end_suspicion(&mut self, link: LinkId) {
        if let Some(silence) = &mut self.silence {
            silence.suspected -= 1;
            silence.agenda(link.interface).remove(link);
        }
    }

    /// The link was down and is up, without anybody having said so meanwhile: the mechanisms of
    /// `flows` are told both changes.
    pub(super) fn return_of(
        &mut self,
        now: Instant,
        link: LinkId,
        flows: &[(LinkId, FlowIndex)],
        changes: [StateSince; 2],
    ) {
        for change in changes {
            self.events.push_back(Event::Link(LinkEvent {
                link,
                state: change.state,
                indicator: change.by,
            }));
        }
        let by = changes[1].by;
        self.welcome(now, link, by, flows);
        for &(own, index) in flows {
            // A peer that is down by itself stays so.
            if self.is_up(own) {
                for change in changes {
                    self.change_link_of(now, index, change);
                }
            }
        }
    }

    /// Whether a segment from the link says nothing but that a probe has arrived. The near host
    /// has not asked, and without SACK would count it as a duplicate (RFC 5681, section 2).
    fn take_answer(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        observation: Observation,
    ) -> bool {
        let is_silent = self.is_silent(crossing.link);
        let config = self.silence.as_ref().map(|silence| silence.config);
        let shortest = config.unwrap_or_default().shortest;
        let Some(record) = self.flows.flow_mut(index) else {
            return false;
        };
        let (flow, silence) = (&record.tracked, &mut record.silence);
        if silence.probes == 0 {
            return false;
        }
        // Afterwards only those come that were on their way.
        let patience = 2 * flow.rtt.patience().max(shortest);
        if !is_silent && crossing.now.since(silence.probed_at) > patience {
            silence.probes = 0;
            return false;
        }
        let says_nothing = tcp.flags == TcpFlags::ACK
            && crossing.packet.sequence_len() == 0
            && observation.newly_acked == 0
            && tcp.ack == flow.near.acked
            && tcp.options.sack.is_empty()
            && flow.offers_what_it_did(tcp);
        silence.probes -= u16::from(says_nothing);
        says_nothing
    }
}
