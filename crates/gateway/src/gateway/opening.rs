//! Connections that open around an outage: their handshakes wait for the link, and are repeated until
//! they are answered.

use super::Gateway;
use super::crossing::Crossing;
use crate::links::{Direction, LinkId, LinkState};
use crate::mechanisms::path::{TakeReason, Verdict};
use crate::tracking::{FlowIndex, FlowKey, Phase, TcpFlow};
use alloc::vec::Vec;
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

impl Gateway {
    /// A SYN or SYN-ACK of a connection that no mechanism serves yet.
    pub(super) fn handle_opening(&mut self, crossing: &Crossing<'_>, index: FlowIndex) -> Verdict {
        let &Crossing {
            now,
            link,
            state,
            direction,
            packet,
        } = crossing;
        if direction == Direction::FromLink || !self.mechanism.holds_other_traffic() {
            return Verdict::Pass;
        }
        if !self.awaits_answer(index) {
            return self.handle_other(crossing);
        }
        let limits = self.limits;
        let Some(release) = self.release_at(link.interface) else {
            return Verdict::Pass;
        };
        let is_down = state.state == LinkState::Down;
        let evicted = if is_down {
            release.handshakes.keep(index, packet, &limits)
        } else {
            let (is_urgent, _) = release.line(now, state.since);
            let handshakes = &mut release.handshakes;
            handshakes.pass(now, index, packet, is_urgent, &limits)
        };
        self.counters.others_evicted += evicted;
        match is_down {
            true => Verdict::Taken(TakeReason::LinkDown),
            false => Verdict::Pass,
        }
    }

    /// A segment with data of a connection whose far host was not heard. If its beginning was not seen
    /// either, it waits for the link, or is remembered in case that the link is silent; and nothing but
    /// that is done for the connection.
    pub(super) fn handle_one_sided(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
    ) -> Verdict {
        let &Crossing {
            now,
            link,
            state,
            direction,
            packet,
        } = crossing;
        let is_data = direction == Direction::ToLink && packet.sequence_len() > 0;
        if !is_data || !self.mechanism.holds_other_traffic() || !self.is_one_sided(index) {
            return Verdict::Pass;
        }
        let (limits, listens) = (self.limits, self.silence.is_some());
        if let Some(tcp) = packet.tcp() {
            self.note_one_sided(link, index, tcp);
        }
        let Some(release) = self.release_at(link.interface) else {
            return Verdict::Pass;
        };
        let (evicted, verdict) = match state.state {
            LinkState::Down => (
                release.handshakes.keep(index, packet, &limits),
                Verdict::Taken(TakeReason::LinkDown),
            ),
            LinkState::Up if listens => (
                release
                    .handshakes
                    .pass_one_sided(now, index, packet, &limits),
                Verdict::Pass,
            ),
            LinkState::Up => (0, Verdict::Pass),
        };
        self.counters.others_evicted += evicted;
        verdict
    }

    /// Whether the connection is older than the gateway, and its far host was not heard yet.
    pub(super) fn is_one_sided(&self, index: FlowIndex) -> bool {
        self.flows.flow(index).is_some_and(|record| {
            let TcpFlow { near, far, .. } = &record.tracked;
            record.tracked.phase == Phase::Opening
                && near.is_seen()
                && near.window_scale.is_none()
                && far.window_scale.is_none()
        })
    }

    /// The link dropped a SYN or SYN-ACK with all that it had been given. Returns whether its
    /// connection is known, and waits for the answer.
    pub(super) fn handle_opening_drop(
        &mut self,
        now: Instant,
        link: LinkId,
        packet: &Packet,
    ) -> bool {
        let is_syn = packet.tcp().is_some_and(|tcp| tcp.has(TcpFlags::SYN));
        let index = FlowKey::of_tcp(packet.header(), Direction::ToLink)
            .filter(|_| is_syn)
            .and_then(|key| self.flows.find(&key))
            .filter(|index| self.awaits_answer(*index));
        let own = index.and_then(|index| self.flows.flow(index));
        let Some((index, own)) = index.zip(own.map(|record| (record.link, record.state))) else {
            return false;
        };
        let limits = self.limits;
        if own.0.interface != link.interface {
            return false;
        }
        if let Some(release) = self.release_at(link.interface) {
            self.counters.others_evicted += release.handshakes.keep(index, packet, &limits);
        }
        if own.1 == LinkState::Up {
            // Told only when the link is back already.
            self.resume_opening(now, index, LinkState::Up);
        }
        true
    }

    /// A segment of a connection shows whether its handshake needs no further copies; with it the hosts may
    /// have met of whom only one was heard.
    pub(super) fn note_opened(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        newly_acked: u32,
        has_met: bool,
    ) {
        let is_from_link = crossing.direction == Direction::FromLink;
        let Some(near) = self.flows.flow(index).map(|record| record.tracked.near) else {
            return;
        };
        let Some(release) = self.release_at(crossing.link.interface) else {
            return;
        };
        // Of a one-sided connection nobody knows what was acknowledged before.
        let is_answer = is_from_link
            && (newly_acked > 0
                || tcp.has(TcpFlags::ACK) && release.handshakes.is_acknowledged(index, tcp.ack));
        // Once the hosts have met, it is known whether the far host lacks what is kept.
        let is_past = has_met && !release.handshakes.is_lacking(index, near.acked, near.next);
        if is_answer || is_past || tcp.has(TcpFlags::RST) {
            release.handshakes.remove(index);
        }
    }

    /// The link of a connection went or came.
    pub(super) fn resume_opening(&mut self, now: Instant, index: FlowIndex, state: LinkState) {
        let Some(link) = self.flows.flow(index).map(|record| record.link) else {
            return;
        };
        let Some(release) = self.release_at(link.interface) else {
            return;
        };
        match state {
            LinkState::Down => release.handshakes.go_away(index),
            LinkState::Up => {
                release.handshakes.come_back(now, index);
                release.give_handshakes_a_turn();
            }
        }
    }

    /// Handshakes whose answer was not seen in time have their turn again; so has the question for the far
    /// host of a one-sided connection.
    pub(super) fn repeat_handshakes(&mut self, now: Instant) {
        for place in 0..self.releases.len() {
            let release = &mut self.releases[place];
            release.handshakes.handle_timeout(now);
            release.give_handshakes_a_turn();
            while let Some((index, asked_at)) = self.releases[place].handshakes.next_unanswered() {
                let link = self.flows.flow(index).map(|record| record.link);
                if link.is_some_and(|link| self.is_quiet(link, asked_at)) {
                    self.releases[place].handshakes.begin_to_probe(now, index);
                }
            }
            let Some(gap) = self.probe_gap() else {
                // Nobody is asked any more, or was ever.
                self.releases[place].handshakes.stop_probing();
                continue;
            };
            while let Some(index) = self.releases[place].handshakes.next_to_probe(now, gap) {
                if let Some(link) = self.flows.flow(index).map(|record| record.link) {
                    self.probe(now, link, index);
                }
            }
        }
    }

    /// Somebody behind `link` was heard: it is back for one-sided connections whose far hosts are asked.
    pub(super) fn welcome_one_sided(&mut self, now: Instant, link: LinkId) {
        let flows = &self.flows;
        let place = self
            .releases
            .iter()
            .position(|s| s.interface == link.interface);
        let Some(release) = place.map(|place| &mut self.releases[place]) else {
            return;
        };
        let is_behind =
            |index: &FlowIndex| flows.flow(*index).is_some_and(|record| record.link == link);
        let behind: Vec<_> = release.handshakes.probed().filter(is_behind).collect();
        for index in behind {
            release.handshakes.come_back(now, index);
        }
        release.give_handshakes_a_turn();
    }

    /// The connection at `index` is another one from now on, or none, or crosses elsewhere.
    pub(super) fn forget_handshake(&mut self, link: LinkId, index: FlowIndex) {
        if let Some(release) = self.release_at(link.interface) {
            release.handshakes.remove(index);
        }
    }

    /// Whether the far host has not acknowledged what the near host has begun with.
    fn awaits_answer(&self, index: FlowIndex) -> bool {
        self.flows
            .flow(index)
            .is_some_and(|record| record.tracked.near.has_outstanding())
    }
}
