//! The state of disconnecting links, and which indicators of it are believed.
//!
//! Indicators speak of links ([`LinkEvent`]), damping ([`DampingConfig`]) says whether they are believed, and
//! silence ([`SilenceConfig`]) finds out where nobody speaks. What comes of it are signs: a link is up or
//! down from now on, since when, and by whose word. This part knows connections by their places alone.

mod damping;
mod link;
mod neighbour;
mod silence;

use crate::counters::Counters;
use crate::tracking::{FlowIndex, Observation, TcpFlow};
use alloc::collections::BTreeSet;
pub use damping::{DampedLink, Damping, DampingConfig, FLAP, Ruling};
use link::{Applied, LinkTable};
pub use link::{
    Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState, StateSince,
};
pub use neighbour::Neighbour;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, TcpHeader};
use silence::Silence;
pub(crate) use silence::{Candidates, FlowSilence};
pub use silence::{Debt, SilenceConfig, SilentLink};

/// A change of a link's state that is believed, whoever has reported it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sign {
    /// The link: a peer, or an interface with all peers that are not down by themselves.
    pub(crate) link: LinkId,
    pub(crate) state: LinkState,
    /// Since when; for a silence that has been noticed afterwards, since its beginning.
    pub(crate) since: Instant,
    /// The indicator that has reported it.
    pub(crate) why: Indicator,
}

impl Sign {
    /// The sign as an event for a status page or a log.
    pub(crate) const fn event(&self) -> LinkEvent {
        LinkEvent {
            link: self.link,
            state: self.state,
            indicator: self.why,
        }
    }

    /// The state as mechanisms see it.
    pub(crate) const fn state(&self) -> StateSince {
        StateSince {
            state: self.state,
            since: self.since,
            by: self.why,
        }
    }
}

/// What a segment from a link shows of that link.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct LinkEvidence {
    /// The segment only answers a probe: it is not for the near host.
    pub(crate) is_to_probe: bool,
    /// One-sided connections wait for a sign of life, behind this link or another.
    pub(crate) is_awaited: bool,
    /// The link was silent, and is back: it was down, and is up.
    pub(crate) signs: Option<[Sign; 2]>,
    /// The connection by which the link was wrongly suspected to be silent, if it is another one.
    pub(crate) refuted: Option<FlowIndex>,
}

/// All links of a gateway.
#[derive(Debug)]
pub(crate) struct Links {
    table: LinkTable,
    damping: Option<Damping>,
    silence: Option<Silence>,
    /// Links with a peer for whose address nobody has answered since they are back.
    unconfirmed: BTreeSet<LinkId>,
}

impl Links {
    /// No links yet. Silence is detected, and indicators are damped, if configured.
    pub(crate) fn new(silence: Option<SilenceConfig>, damping: Option<DampingConfig>) -> Self {
        Self {
            table: LinkTable::default(),
            damping: damping.map(Damping::new),
            silence: silence.map(Silence::new),
            unconfirmed: BTreeSet::new(),
        }
    }

    pub(crate) fn add(&mut self, now: Instant, interface: InterfaceId) {
        self.table.add(now, interface);
    }

    /// The state of `link`; `None` for an interface that was never added.
    pub(crate) fn state(&self, link: LinkId) -> Option<StateSince> {
        self.table.state(link)
    }

    pub(crate) fn is_up(&self, link: LinkId) -> bool {
        self.state(link)
            .is_some_and(|state| state.state == LinkState::Up)
    }

    /// True if `link` is up, and it is clear who gets what is sent to its peer.
    pub(crate) fn delivers(&self, link: LinkId) -> bool {
        self.is_up(link) && !self.unconfirmed.contains(&link)
    }

    /// Notes whether somebody has answered for the address of the peer of `link`.
    pub(crate) fn set_unconfirmed(&mut self, link: LinkId, is_unconfirmed: bool) {
        match is_unconfirmed {
            true => self.unconfirmed.insert(link),
            false => self.unconfirmed.remove(&link),
        };
    }

    /// Hears from an indicator that a link went down or came up. Returns the change, if it is believed.
    ///
    /// At most `max_peers` peers of an interface are down at once.
    pub(crate) fn handle_event(
        &mut self,
        now: Instant,
        event: LinkEvent,
        max_peers: usize,
        counters: &mut Counters,
    ) -> Option<Sign> {
        let ruling = match &mut self.damping {
            Some(damping) if self.table.state(event.link).is_some() => damping.rule(now, event),
            _ => Some(Ruling::Tell),
        };
        match ruling {
            Some(Ruling::Tell) => self.apply(now, event, max_peers, counters),
            Some(Ruling::Later) => {
                counters.link_ups_delayed += 1;
                None
            }
            Some(Ruling::Ignore) => {
                counters.link_downs_ignored += 1;
                None
            }
            None => {
                counters.links_undamped += 1;
                self.apply(now, event, max_peers, counters)
            }
        }
    }

    /// Hears that the link of `event`, which is up, was down and is back. Returns both changes, if
    /// they are believed.
    pub(crate) fn handle_return(
        &mut self,
        now: Instant,
        event: LinkEvent,
        counters: &mut Counters,
    ) -> Option<[Sign; 2]> {
        let ruling = match &mut self.damping {
            Some(damping) => damping.rule_return(now, event),
            None => Some(Ruling::Tell),
        };
        match ruling {
            Some(Ruling::Tell) => {}
            Some(Ruling::Later | Ruling::Ignore) => {
                counters.link_downs_ignored += 1;
                return None;
            }
            None => counters.links_undamped += 1,
        }
        self.believe_indicator(now, event.link);
        let change = |state| Sign {
            link: event.link,
            state,
            since: now,
            why: event.indicator,
        };
        Some([LinkState::Down, LinkState::Up].map(change))
    }

    /// What damping has withheld for long enough.
    pub(crate) fn poll_damped(
        &mut self,
        now: Instant,
        max_peers: usize,
        counters: &mut Counters,
    ) -> Option<Sign> {
        loop {
            let due = self.damping.as_mut()?.take_due(now)?;
            if let Some(event) = due
                && let Some(sign) = self.apply(now, event, max_peers, counters)
            {
                return Some(sign);
            }
        }
    }

    /// When the state of a damped link is judged next.
    pub(crate) fn next_damped(&self) -> Option<Instant> {
        self.damping.as_ref()?.next()
    }

    /// Other damping from now on. Returns what was said last of links that were damped: it holds.
    pub(crate) fn set_damping(
        &mut self,
        damping: Option<DampingConfig>,
    ) -> impl Iterator<Item = LinkEvent> + use<> {
        let before = core::mem::replace(&mut self.damping, damping.map(Damping::new));
        let events: alloc::vec::Vec<_> = before.iter().flat_map(Damping::untold).collect();
        events.into_iter()
    }

    /// The links whose indicators are not believed at once.
    pub(crate) fn damped(&self, now: Instant) -> impl Iterator<Item = DampedLink> {
        let damping = self.damping.iter();
        damping.flat_map(move |damping| damping.damped(now))
    }

    fn apply(
        &mut self,
        now: Instant,
        event: LinkEvent,
        max_peers: usize,
        counters: &mut Counters,
    ) -> Option<Sign> {
        match self.table.apply(now, event, max_peers) {
            Applied::Unchanged => return None,
            Applied::Refused => {
                counters.link_events_refused += 1;
                return None;
            }
            Applied::Changed => {}
        }
        self.believe_indicator(now, event.link);
        Some(Sign {
            link: event.link,
            state: event.state,
            since: now,
            why: event.indicator,
        })
    }

    /// An indicator has spoken of `link`: it knows better than silence.
    fn believe_indicator(&mut self, now: Instant, link: LinkId) {
        if let Some(silence) = &mut self.silence {
            silence.begin_anew(now, link);
        }
    }

    /// Sets whether, and how, silence is detected. Suspicions are forgotten.
    pub(crate) fn set_silence(&mut self, silence: Option<SilenceConfig>) {
        self.silence = silence.map(Silence::new);
    }

    /// Whether silence is detected.
    pub(crate) const fn listens(&self) -> bool {
        self.silence.is_some()
    }

    /// The links that are suspected to be down because they leave data unanswered.
    pub(crate) fn silent(&self) -> impl Iterator<Item = SilentLink> {
        self.silence.iter().flat_map(Silence::silent)
    }

    /// Whether `link` is suspected to be down because it leaves data unanswered.
    pub(crate) fn is_suspected(&self, link: LinkId) -> bool {
        self.silence
            .as_ref()
            .is_some_and(|silence| silence.is_suspected(link))
    }

    /// Somebody who sees the packets in the gateway's stead has found by a connection that `link` is silent
    /// `since` then. Returns the link if it was not suspected before.
    pub(crate) fn handle_silence(
        &mut self,
        now: Instant,
        (link, index): (LinkId, FlowIndex),
        since: Instant,
        (flow, own): (&TcpFlow, &mut FlowSilence),
    ) -> Option<SilentLink> {
        if !self.is_up(link) {
            return None;
        }
        let silence = self.silence.as_mut()?;
        silence.suspect(now, (link, index), since, flow, own)
    }

    /// A segment of an established connection crosses towards the link. Returns the link if that makes it
    /// suspected.
    pub(crate) fn hear_near(
        &mut self,
        now: Instant,
        (link, index): (LinkId, FlowIndex),
        (flow, own): (&TcpFlow, &mut FlowSilence),
        observation: Observation,
    ) -> Option<SilentLink> {
        match (&mut self.silence, observation) {
            (Some(silence), Observation { new_data: true, .. }) => {
                silence.note_new_data(now, link, own);
                None
            }
            (None, Observation { new_data: true, .. }) => {
                own.expect_duplicates();
                None
            }
            (_, Observation { repeated: true, .. }) => {
                self.note_repetition(now, (link, index), (flow, own))
            }
            _ => None,
        }
    }

    /// Data of a connection goes towards the link once more, from its host or from the gateway. Returns
    /// the link if that makes it suspected.
    pub(crate) fn note_repetition(
        &mut self,
        now: Instant,
        (link, index): (LinkId, FlowIndex),
        (flow, own): (&TcpFlow, &mut FlowSilence),
    ) -> Option<SilentLink> {
        let silence = self.silence.as_mut()?;
        let is_up = self
            .table
            .state(link)
            .is_some_and(|state| state.state == LinkState::Up);
        match is_up {
            true => silence.note_repetition(now, (link, index), flow, own),
            false => None,
        }
    }

    /// A connection's far host is asked by a keep-alive, as its answer is late. Returns the link if that makes it suspected.
    pub(crate) fn note_overdue(
        &mut self,
        now: Instant,
        (link, index): (LinkId, FlowIndex),
        (flow, own): (&TcpFlow, &mut FlowSilence),
    ) -> Option<SilentLink> {
        let is_up = self.is_up(link);
        let silence = self.silence.as_mut().filter(|_| is_up)?;
        silence.note_overdue(now, (link, index), flow, own)
    }

    /// A segment of an established connection has come from the link.
    pub(crate) fn hear_far(
        &mut self,
        now: Instant,
        (link, index): (LinkId, FlowIndex),
        (flow, own): (&TcpFlow, &mut FlowSilence),
        (packet, tcp): (&Packet, &TcpHeader),
        newly_acked: u32,
    ) -> LinkEvidence {
        let shortest = self.silence.as_ref().map(Silence::shortest);
        let shortest = shortest.unwrap_or_else(|| SilenceConfig::default().shortest);
        let expected = (self.is_suspected(link), shortest);
        let is_to_probe = own.take_answer(now, flow, (packet, tcp), newly_acked, expected);
        own.hear();
        let Some(silence) = &mut self.silence else {
            return LinkEvidence {
                is_to_probe,
                ..LinkEvidence::default()
            };
        };
        let is_awaited = silence.note_for_one_sided(now, link);
        let over = silence.hear(now, link, index);
        let sign = |(state, since, why)| Sign {
            link,
            state,
            since,
            why,
        };
        LinkEvidence {
            is_to_probe,
            is_awaited,
            signs: over.map(|(since, _)| {
                [
                    (LinkState::Down, since, Indicator::Silence),
                    (LinkState::Up, now, Indicator::FirstPacket),
                ]
                .map(sign)
            }),
            refuted: over.and_then(|(_, refuted)| refuted),
        }
    }

    /// Something else than TCP came from the link.
    pub(crate) fn overhear(&mut self, now: Instant, link: LinkId) {
        if let Some(silence) = &mut self.silence {
            silence.overhear(now, link);
        }
    }

    /// Nobody is behind `link` any more.
    pub(crate) fn leave(&mut self, link: LinkId) {
        if let Some(silence) = &mut self.silence {
            silence.forget(link);
        }
    }

    /// Data of a one-sided connection crosses towards `link`: it is noted when somebody behind that is
    /// heard.
    pub(crate) fn watch(&mut self, link: LinkId) {
        if let Some(silence) = &mut self.silence {
            silence.watch(link);
        }
    }

    /// Whether `link` is up, and nobody behind it was heard since then.
    pub(crate) fn is_quiet(&self, link: LinkId, since: Instant) -> bool {
        let silence = self.silence.as_ref();
        silence.is_none_or(|silence| silence.is_quiet(link, since)) && self.is_up(link)
    }

    /// The connection to probe now, and its link.
    pub(crate) fn poll_probe(
        &mut self,
        now: Instant,
        candidates: &impl Candidates,
    ) -> Option<(LinkId, FlowIndex)> {
        let silence = self.silence.as_mut()?;
        loop {
            let link = silence.take_probe(now)?;
            if let Some(index) = silence.next_to_probe(link, candidates) {
                return Some((link, index));
            }
        }
    }

    /// A probe has gone towards `link`: plans the next. Returns the connection that has shown the silence, if
    /// the suspicion is given up instead.
    #[must_use]
    pub(crate) fn plan_probe(&mut self, now: Instant, link: LinkId) -> Option<FlowIndex> {
        self.silence.as_mut()?.plan_probe(now, link)
    }

    /// When a silent link is asked next.
    pub(crate) fn next_probe(&self) -> Option<Instant> {
        self.silence.as_ref()?.next_probe()
    }

    /// The pause between two probes for one-sided connections; `None` if there are none.
    pub(crate) fn probe_gap(&self) -> Option<Duration> {
        self.silence.as_ref()?.probe_gap()
    }
}
