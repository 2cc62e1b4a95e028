//! Sending what waits, in turn and at the link's pace.

use super::{Gateway, Transmit};
use crate::links::{Direction, LinkId, LinkState};
use crate::mechanisms::path::{Outgoing, SendReason, Waiting};
use crate::release::{INITIAL_BURST, Turn};
use crate::tracking::FlowIndex;
use outlast_base::time::Instant;

/// A handshake takes as much of the link as this many bytes: what is counted in packets, or answered
/// by more than it has itself, is not to meet a full queue.
const HANDSHAKE_ROOM: u32 = 375;
const HANDSHAKES_IN_A_TURN: usize = 4;

impl Gateway {
    /// Sends what waits, flow by flow, as far as the pace of each link allows.
    pub(super) fn send_in_turn(&mut self, now: Instant) {
        for place in 0..self.releases.len() {
            while let Some(taken) = self.releases[place].next_turn(now) {
                let len = match taken.turn {
                    Turn::Handshakes => self.send_handshakes(now, place),
                    Turn::Others => self.send_other(now, place),
                    Turn::Flow(index, waiting) => self.send_for_flow(now, index, waiting, place),
                };
                self.releases[place].charge(now, taken, len);
            }
        }
    }

    /// Sends one packet of other traffic; returns its length.
    fn send_other(&mut self, now: Instant, place: usize) -> u32 {
        let links = &self.links;
        let is_up = |link| links.state(link).is_some_and(|s| s.state == LinkState::Up);
        let release = &mut self.releases[place];
        self.counters.others_evicted += release.others.drop_stale(now, self.limits.other_age);
        let Some((link, packet)) = release.others.next(is_up) else {
            return 0;
        };
        let len = packet.total_len();
        if release.others.has_waiting(is_up) {
            release.give_others_a_turn();
        }
        let direction = Direction::ToLink;
        self.transmit(
            now,
            link,
            Outgoing {
                direction,
                packet,
                reason: SendReason::Kept,
            },
        );
        len
    }

    /// Sends one packet of a connection; returns its length. The connection may be gone by now, or have
    /// moved to another interface and have its turn there.
    fn send_for_flow(
        &mut self,
        now: Instant,
        index: FlowIndex,
        waiting: Waiting,
        place: usize,
    ) -> u32 {
        let Some(link) = self.flows.flow(index).map(|record| record.link) else {
            return 0;
        };
        if link.interface != self.releases[place].interface {
            return 0;
        }
        let Some(state) = self.links.state(link) else {
            return 0;
        };
        let outgoing = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.poll_transmit(cx)
        });
        let Some(outgoing) = outgoing.flatten() else {
            return 0;
        };
        if outgoing.direction == Direction::ToLink {
            if outgoing.packet.sequence_len() > 0 {
                self.note_repetition(now, link, index);
            }
            self.note_departure(now, index, &outgoing.packet);
            self.ask(now, index);
        }
        if outgoing.reason == SendReason::Question
            && let Some(record) = self.flows.flow_mut(index)
        {
            record.silence.note_probe(now);
        }
        let len = outgoing.packet.total_len();
        self.transmit(now, link, outgoing);
        let has_standing_queue = self.has_standing_queue(index);
        if let Some(release) = self.release_at(link.interface) {
            if waiting == Waiting::InLine && release.line_is_over(now) {
                release.pacer.charge_half(len);
            } else if !has_standing_queue {
                release.pacer.charge_rest(len);
            }
        }
        len
    }

    /// Sends some of the handshakes that are due: together they take as long as one packet of data, whose
    /// length is returned.
    fn send_handshakes(&mut self, now: Instant, place: usize) -> u32 {
        let mut sent = 0;
        for count in 0..HANDSHAKES_IN_A_TURN {
            if count > 0 && !self.releases[place].pacer.allows(now) {
                break;
            }
            let Some((index, packet, reason)) = self.releases[place].handshakes.next(now) else {
                break;
            };
            let Some(record) = self.flows.flow_mut(index) else {
                continue;
            };
            // Nobody can tell which copy is answered.
            record.tracked.rtt.discard();
            let (link, len) = (record.link, packet.total_len());
            self.counters.kicks_repeated += u64::from(reason == SendReason::RepeatedKick);
            let direction = Direction::ToLink;
            self.transmit(
                now,
                link,
                Outgoing {
                    direction,
                    packet,
                    reason,
                },
            );
            let pacer = &mut self.releases[place].pacer;
            pacer.charge_more(HANDSHAKE_ROOM.saturating_sub(len));
            pacer.charge_rest(len.max(HANDSHAKE_ROOM));
            sent += len.max(HANDSHAKE_ROOM);
        }
        self.releases[place].give_handshakes_a_turn();
        sent
    }

    /// Whether the near host has more under way than a connection begins with (RFC 6928): then it has
    /// filled the link's queue, and feels from there when it sends too much.
    fn has_standing_queue(&self, index: FlowIndex) -> bool {
        self.flows.flow(index).is_some_and(|record| {
            let near = &record.tracked.near;
            u64::from(near.next.distance_from(near.acked).unsigned_abs()) > INITIAL_BURST
        })
    }

    pub(super) fn transmit(&mut self, now: Instant, link: LinkId, outgoing: Outgoing) {
        let Outgoing {
            direction,
            packet,
            reason,
        } = outgoing;
        match (direction, reason) {
            (_, SendReason::Unreachable) => self.counters.wakes += 1,
            (_, SendReason::Question) => self.counters.questions += 1,
            (Direction::FromLink, _) => self.counters.rereceived += 1,
            // Counted where it is sent.
            (Direction::ToLink, SendReason::Probe) => {}
            (Direction::ToLink, SendReason::NewestAck) => self.counters.acks_resent += 1,
            (Direction::ToLink, _) => self.counters.resent += 1,
        }
        // What this side is handed is spread as well: the answers go onto the link.
        if let Some(release) = self.release_at(link.interface) {
            release.pacer.charge(now, packet.total_len());
        }
        self.outbox.push_back(Transmit {
            link,
            direction,
            packet,
            reason,
        });
    }
}
