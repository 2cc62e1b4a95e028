//! A packet on its way through the gateway, and what single parts are told of it.
//!
//! Its connection is looked up by whoever calls, and handed on.

use crate::connections::Entry;
use crate::event::Outbox;
use crate::limits::Limits;
use crate::links::{Direction, LinkEvidence, LinkId, LinkState, Links, StateSince};
use crate::mechanisms::path::Verdict;
use crate::release::Releases;
use crate::tracking::{Observation, Phase};
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpHeader};

/// A packet that crosses the gateway, with what is known of its link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassingPacket<'a> {
    pub(crate) now: Instant,
    pub(crate) link: LinkId,
    pub(crate) state: StateSince,
    pub(crate) direction: Direction,
    pub(crate) packet: &'a Packet,
}

impl PassingPacket<'_> {
    /// Notes for the interface's release that a peer was heard, or a handshake answered.
    ///
    /// Returns the verdict on a one-sided connection's segment with a stale echo. `was` is the connection's
    /// phase before the segment.
    #[inline]
    pub(crate) fn note_in_turns(
        &self,
        entry: &mut Entry<'_>,
        tcp: &TcpHeader,
        (was, newly_acked): (Phase, u32),
        (releases, limits, outbox): (&mut Releases, &Limits, &mut Outbox),
    ) -> Option<Verdict> {
        let interface = self.link.interface;
        let is_from_link = self.direction == Direction::FromLink;
        let is_heard = entry.connection.is_proven && was == Phase::Established;
        if let Some(release) = releases.at_mut(interface)
            && is_from_link
            && is_heard
        {
            release.hear(entry.far_host());
        }
        let Entry {
            index,
            key,
            connection,
        } = entry;
        let stale =
            releases.handle_stale_echo(self, (*index, *key), connection, tcp, limits, outbox);
        if let Some(verdict) = stale {
            return Some(verdict);
        }
        if let Some(release) = releases.at_mut(interface) {
            let has_met = was == Phase::Opening && connection.tracked.phase == Phase::Established;
            let news = (is_from_link, newly_acked, has_met);
            release.note_opened(*index, &connection.tracked.near, tcp, news);
        }
        None
    }

    /// Notes what a segment of an established connection shows of its link.
    #[inline]
    pub(crate) fn note_evidence(
        &self,
        entry: &mut Entry<'_>,
        tcp: &TcpHeader,
        observation: Observation,
        (links, outbox): (&mut Links, &mut Outbox),
    ) -> LinkEvidence {
        let &Self { now, link, .. } = self;
        let at = (link, entry.index);
        let connection = &mut *entry.connection;
        let (tracked, silence) = (&connection.tracked, &mut connection.silence);
        if self.direction == Direction::FromLink {
            let newly_acked = observation.newly_acked;
            silence.near_host.hear_echo(tcp);
            return links.hear_far(now, at, (tracked, silence), (self.packet, tcp), newly_acked);
        }
        silence.near_host.hear(tcp);
        if self.state.state == LinkState::Up {
            let silent = links.hear_near(now, at, (tracked, silence), observation);
            outbox.tell_silent(silent);
        }
        LinkEvidence::default()
    }

    /// Notes for the link's pace that a segment arrives from the link, or goes onto it if it `passes`.
    ///
    /// The segment acknowledges newly, or selectively, in so many bytes.
    #[inline]
    pub(crate) fn note_crossing(
        &self,
        entry: &mut Entry<'_>,
        passes: bool,
        news: (u32, u32),
        releases: &mut Releases,
    ) {
        let &Self { now, packet, .. } = self;
        let at = (entry.far_host(), entry.index);
        match self.direction {
            Direction::FromLink => releases.note_arrival(now, at, entry.connection, packet, news),
            Direction::ToLink if passes => {
                releases.note_departure(now, at, entry.connection, packet);
                if packet.sequence_len() > 0
                    && let Some(release) = releases.at_mut(self.link.interface)
                {
                    release.pacer.charge_counted(now, packet.total_len());
                }
            }
            Direction::ToLink => {}
        }
    }
}
