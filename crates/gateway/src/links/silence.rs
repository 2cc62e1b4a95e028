//! Silence: a link that went away without anybody saying so.
//!
//! | what happens | what is done |
//! |---|---|
//! | a host sends data towards the link | from now on its far host owes an answer, if it did not yet |
//! | a segment of the connection comes from the link | its far host owes none |
//! | data is repeated, or a mechanism asks as an answer is late; its far host owes an answer, and nobody behind the link was heard, for longer than the connection's patience | the link is *suspected* |
//! | the link is suspected | packets pass as before; small probes ask whether it is back |
//! | a segment comes from a suspected link | it was down and is up: the mechanisms are told both, at once |
//!
//! The senders' own repetitions show the silence (a tail loss probe, RFC 8985; a retransmission
//! timeout, RFC 6298), so that nothing is polled. Nothing is withheld on a suspicion: a false one
//! costs probes, and what a mechanism sends when a link is back. Only a segment that an honest
//! host would send now ends a suspicion, so that nobody who guesses addresses can have anything
//! sent.
//!
//! A driver that tracks connections in the gateway's stead decides by the same rule ([`Debt`]), and tells the
//! gateway.
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

use super::{InterfaceId, LinkId};
use crate::mechanisms::path::NearHostProxy;
use crate::tracking::{FlowIndex, LinkRtt, TcpFlow};
use agenda::Agenda;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use outlast_base::time::{Duration, Instant};
use outlast_wire::{Packet, TcpFlags, TcpHeader};
pub(crate) use probe::Candidates;

/// When silence is suspicious, and what finding out about it may cost.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SilenceConfig {
    /// No shorter silence raises a suspicion, however short the round trip is: a receiver may
    /// delay what it owes (RFC 9293, section 3.8.6.3; hosts do by 200 ms at most).
    pub shortest: Duration,
    /// Probes in one second towards one interface, whatever the number of suspected links
    /// behind it. Zero: nobody is probed, and a link's return shows when a host sends.
    pub probes_per_second: u32,
    /// Time for which a link is probed at full pace: about every 20 to 50 ms, or 16 times in a round trip if that is less
    /// often. Then ever more seldom.
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

/// Data of one connection that its far host has left unanswered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Debt {
    /// The time of the first such data since the far host was heard last.
    pub since: Instant,
    /// The longest time that an answer may take.
    pub patience: Duration,
}

impl Debt {
    /// The silence of the link, if it has lasted for longer than the answer may take: since when.
    ///
    /// Counts from the last sign of life of anybody behind the link, `heard`, or from the debt if that is younger.
    #[must_use]
    pub fn silent_since(&self, now: Instant, heard: Option<Instant>) -> Option<Instant> {
        let since = heard.map_or(self.since, |heard| heard.max(self.since));
        (now.since(since) >= self.patience).then_some(since)
    }
}

impl SilenceConfig {
    /// The debt of a far host whose round trips are these.
    #[must_use]
    pub fn debt(&self, since: Instant, rtt: &LinkRtt) -> Debt {
        let patience = rtt.patience().max(self.shortest);
        Debt { since, patience }
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

/// What is known of the silence behind each link.
#[derive(Debug)]
pub(super) struct Silence {
    config: SilenceConfig,
    behind: BTreeMap<LinkId, Behind>,
    suspected: usize,
    agendas: Vec<(InterfaceId, Agenda)>,
    /// When somebody behind a link was heard last, since a one-sided connection wants to know.
    heard: BTreeMap<LinkId, Option<Instant>>,
}

/// One link, as long as there are connections behind it.
#[derive(Debug, Default)]
struct Behind {
    /// The last sign of life behind the link, or report of an indicator, since an answer was owed.
    heard: Option<Instant>,
    suspicion: Option<Suspicion>,
}

#[derive(Debug)]
struct Suspicion {
    since: Instant,
    /// The connection that has shown the silence first.
    first: FlowIndex,
    /// The connection that has shown it last.
    raiser: FlowIndex,
    /// The connection that was probed last in the round of all others.
    cursor: FlowIndex,
    /// Whether the next probe is the round's.
    round_is_next: bool,
    pace: Duration,
}

/// What a connection contributes: what its near host has said, and which probes wait for an answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FlowSilence {
    /// What the near host has said last.
    pub(crate) near_host: NearHostProxy,
    /// Probes, and questions like them, that are not answered yet.
    probes: u16,
    /// When the last one was sent.
    probed_at: Instant,
    /// The time of the oldest data that the far host has left unanswered.
    owed_since: Option<Instant>,
    /// The window that the far host has offered last ends before another one that it has offered.
    has_shrunk: bool,
    /// Its suspicion was refuted, and it was not heard since.
    is_distrusted: bool,
    /// The newest acknowledgement stood in a segment that the near host heeds nothing of.
    is_untold: bool,
}

impl FlowSilence {
    /// Something goes to the far host whose answer is not for the near host.
    pub(crate) const fn note_probe(&mut self, now: Instant) {
        self.probes = self.probes.saturating_add(1);
        self.probed_at = now;
    }

    /// The connection itself was heard: its far host owes nothing, and its suspicions count again.
    pub(super) const fn hear(&mut self) {
        self.owed_since = None;
        self.is_distrusted = false;
    }

    /// New data goes out: a duplicate acknowledgement may answer that, and its sender has to count it.
    pub(super) const fn expect_duplicates(&mut self) {
        self.probes = 0;
    }

    /// Notes that another connection's answer has refuted this one's suspicion.
    pub(crate) const fn distrust(&mut self) {
        self.is_distrusted = true;
    }

    /// True if a segment from the link, `packet` with its header `tcp`, says nothing but that a probe has
    /// arrived. The near host has not asked, and without SACK would count it as a duplicate (RFC 5681,
    /// section 2).
    ///
    /// An acknowledgement that came before only in a keep-alive is news to the near host, though not to the gateway: a
    /// keep-alive's sequence number is old, and a host answers and drops it (RFC 9293, section 3.10.7.4).
    pub(super) fn take_answer(
        &mut self,
        now: Instant,
        flow: &TcpFlow,
        (packet, tcp): (&Packet, &TcpHeader),
        newly_acked: u32,
        (is_silent, shortest): (bool, Duration),
    ) -> bool {
        let end = tcp.seq + packet.sequence_len();
        let is_heeded = end.after(flow.far.acked) || tcp.seq == flow.far.acked;
        let was_untold = self.is_untold;
        if tcp.has(TcpFlags::ACK) && tcp.ack == flow.near.acked {
            self.is_untold = !is_heeded && (was_untold || newly_acked > 0);
        }
        let offers_most = flow.offers_most(tcp);
        // A window that is open again to where it was is news.
        let offers_the_same = offers_most && !self.has_shrunk;
        if tcp.has(TcpFlags::ACK) {
            self.has_shrunk = !offers_most;
        }
        if self.probes == 0 {
            return false;
        }
        // Afterwards only those come that were on their way.
        let patience = 2 * flow.rtt.patience().max(shortest);
        if !is_silent && now.since(self.probed_at) > patience {
            self.probes = 0;
            return false;
        }
        let says_nothing = tcp.flags == TcpFlags::ACK
            && packet.sequence_len() == 0
            && newly_acked == 0
            && !(was_untold && is_heeded)
            && tcp.ack == flow.near.acked
            && tcp.options.sack.is_empty()
            && offers_the_same;
        self.probes -= u16::from(says_nothing);
        says_nothing
    }
}

impl Silence {
    pub(super) const fn new(config: SilenceConfig) -> Self {
        Self {
            config,
            behind: BTreeMap::new(),
            suspected: 0,
            agendas: Vec::new(),
            heard: BTreeMap::new(),
        }
    }

    pub(super) fn is_suspected(&self, link: LinkId) -> bool {
        self.suspected > 0
            && self
                .behind
                .get(&link)
                .is_some_and(|behind| behind.suspicion.is_some())
    }

    /// The link has nobody behind it any more.
    pub(super) fn forget(&mut self, link: LinkId) {
        self.heard.remove(&link);
        if let Some(behind) = self.behind.remove(&link)
            && behind.suspicion.is_some()
        {
            self.end_suspicion(link);
        }
    }

    /// Somebody knows better of `link`, a peer or all peers of an interface: silence counts from now on.
    pub(super) fn begin_anew(&mut self, now: Instant, link: LinkId) {
        let links: Vec<_> = match link.peer {
            Some(_) => Vec::from([link]),
            None => {
                let behind = self.behind.range(link..).map(|(behind, _)| *behind);
                behind
                    .take_while(|behind| behind.interface == link.interface)
                    .collect()
            }
        };
        for link in links {
            self.heard.remove(&link);
            if let Some(behind) = self.behind.get_mut(&link) {
                behind.heard = Some(now);
                if behind.suspicion.take().is_some() {
                    self.end_suspicion(link);
                }
            }
        }
    }

    /// No shorter silence raises a suspicion.
    pub(super) const fn shortest(&self) -> Duration {
        self.config.shortest
    }

    /// The links that are silent although they owe an answer.
    pub(super) fn silent(&self) -> impl Iterator<Item = SilentLink> {
        self.behind.iter().filter_map(|(&link, behind)| {
            let since = behind.suspicion.as_ref()?.since;
            Some(SilentLink { link, since })
        })
    }

    /// Something else than TCP came from the link. Nobody can say whether it is honest, so that it
    /// makes a suspected link be asked, and no more.
    pub(super) fn overhear(&mut self, now: Instant, link: LinkId) {
        self.note_heard(now, link);
        if !self.is_suspected(link) {
            if let Some(behind) = self.behind.get_mut(&link) {
                behind.heard = Some(now);
            }
        } else if self.config.probes_per_second > 0 {
            self.agenda(link.interface).set(link, now);
        }
    }

    /// New data of a connection crosses towards the link: its far host owes an answer.
    pub(super) fn note_new_data(&mut self, now: Instant, link: LinkId, own: &mut FlowSilence) {
        if !self.is_suspected(link) {
            own.expect_duplicates();
        }
        self.note_owed(now, link, own);
    }

    /// Somebody behind a one-sided connection's `link` is to be noted when heard.
    pub(super) fn watch(&mut self, link: LinkId) {
        self.heard.entry(link).or_default();
    }

    /// Whether nobody behind `link` was heard since then.
    pub(super) fn is_quiet(&self, link: LinkId, since: Instant) -> bool {
        let heard = self.heard.get(&link).copied().flatten();
        heard.is_none_or(|heard| heard < since)
    }

    /// The connection's far host owes an answer; since when.
    fn note_owed(&mut self, now: Instant, link: LinkId, own: &mut FlowSilence) -> Instant {
        self.behind.entry(link).or_insert_with(|| {
            // What was owed before nobody has listened for.
            own.owed_since = None;
            Behind::default()
        });
        *own.owed_since.get_or_insert(now)
    }

    /// Data of a flow goes towards the link once more, from its host or from the gateway: raises a
    /// suspicion if its far host owes an answer, and nobody behind the link was heard, for too long.
    pub(super) fn note_repetition(
        &mut self,
        now: Instant,
        (link, index): (LinkId, FlowIndex),
        flow: &TcpFlow,
        own: &mut FlowSilence,
    ) -> Option<SilentLink> {
        let owed_since = self.note_owed(now, link, own);
        let is_believed = flow.near.has_outstanding() && !own.is_distrusted;
        let heard = self.behind.get(&link)?.heard;
        let debt = self.config.debt(owed_since, &flow.rtt);
        let since = debt.silent_since(now, heard).filter(|_| is_believed)?;
        self.suspect(now, (link, index), since, flow, own)
    }

    /// A flow's far host is asked, as its answer is late: as for a repetition, but it has owed the answer since somebody behind
    /// the link was heard, even if no data has crossed since.
    pub(super) fn note_overdue(
        &mut self,
        now: Instant,
        place: (LinkId, FlowIndex),
        flow: &TcpFlow,
        own: &mut FlowSilence,
    ) -> Option<SilentLink> {
        let heard = self.behind.get(&place.0)?.heard;
        own.owed_since = own.owed_since.or(heard);
        self.note_repetition(now, place, flow, own)
    }

    /// The link, silent since then, is suspected from now on, and this flow has shown it. Returns the link unless
    /// it was suspected before.
    pub(super) fn suspect(
        &mut self,
        now: Instant,
        (link, raiser): (LinkId, FlowIndex),
        since: Instant,
        flow: &TcpFlow,
        own: &mut FlowSilence,
    ) -> Option<SilentLink> {
        let pace = probe::pace(&flow.rtt);
        let behind = self.behind.entry(link).or_default();
        let is_new = behind.suspicion.is_none();
        if let Some(suspicion) = &mut behind.suspicion {
            suspicion.raiser = raiser;
        } else {
            behind.suspicion = Some(Suspicion {
                since,
                first: raiser,
                raiser,
                cursor: raiser,
                round_is_next: false,
                pace,
            });
            self.suspected += 1;
        }
        // One that is known already and has no probe planned had nobody behind it to be asked.
        if (is_new || !self.agenda(link.interface).has(link))
            && self.plan_probe(now, link).is_some()
        {
            own.distrust();
        }
        is_new.then_some(SilentLink { link, since })
    }

    /// A segment of the connection at `index` has come from `link`. Returns the suspicion that is over by
    /// that: since when the link was silent, and the connection whose word is not taken again, if it is
    /// another one.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        link: LinkId,
        index: FlowIndex,
    ) -> Option<(Instant, Option<FlowIndex>)> {
        let behind = self.behind.get_mut(&link)?;
        behind.heard = Some(now);
        let suspicion = behind.suspicion.take()?;
        self.end_suspicion(link);
        let first = suspicion.first;
        Some((suspicion.since, (first != index).then_some(first)))
    }

    /// Notes when somebody was heard, if a one-sided connection wants to know. Returns whether one does, on any link.
    pub(super) fn note_for_one_sided(&mut self, now: Instant, link: LinkId) -> bool {
        let is_wanted = !self.heard.is_empty();
        if is_wanted {
            self.note_heard(now, link);
        }
        is_wanted
    }

    fn end_suspicion(&mut self, link: LinkId) {
        self.suspected -= 1;
        self.agenda(link.interface).remove(link);
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
