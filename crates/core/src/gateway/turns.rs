//! Sending what waits, in turn and at the link's pace.

use super::schedule::Turn;
use super::{Gateway, Transmit};
use crate::flow::FlowIndex;
use crate::link::{Direction, LinkId, LinkState};
use crate::mechanisms::path::{Outgoing, SendReason, Waiting};
use crate::pace::INITIAL_BURST;
use crate::time::Instant;

/// A handshake takes as much of the link as this many bytes: what is counted in packets, or answered
/// by more than it has itself, is not to meet a full queue.
const HANDSHAKE_ROOM: u32 = 375;
const HANDSHAKES_IN_A_TURN: usize = 4;

impl Gateway {
    /// Sends what waits, flow by flow, as far as the pace of each link allows.
    pub(super) fn send_in_turn(&mut self, now: Instant) {
        for place in 0..self.schedules.len() {
            while self.schedules[place].pacer.allows(now) {
                let Some(turn) = self.schedules[place].next_turn(now) else {
                    break;
                };
                match turn {
                    Turn::Handshakes => self.send_handshakes(now, place),
                    Turn::Others => self.send_other(now, place),
                    Turn::Flow(index, waiting) => self.send_for_flow(now, index, waiting, place),
                }
            }
        }
    }

    fn send_other(&mut self, now: Instant, place: usize) {
        let links = &self.links;
        let is_up = |link| links.state(link).is_some_and(|s| s.state == LinkState::Up);
        let schedule = &mut self.schedules[place];
        let Some((link, packet)) = schedule.others.next(is_up) else {
            return;
        };
        if schedule.others.has_waiting(is_up) {
            schedule.give_others_a_turn();
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
    }

    /// The flow may be gone by now, or have moved to another interface and have its turn there.
    fn send_for_flow(&mut self, now: Instant, index: FlowIndex, waiting: Waiting, place: usize) {
        let Some(link) = self.flows.flow(index).map(|record| record.link) else {
            return;
        };
        if link.interface != self.schedules[place].interface {
            return;
        }
        let Some(state) = self.links.state(link) else {
            return;
        };
        let outgoing = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.poll_transmit(cx)
        });
        if let Some(outgoing) = outgoing.flatten() {
            if outgoing.direction == Direction::ToLink && outgoing.packet.sequence_len() > 0 {
                self.note_repetition(now, link, index);
            }
            if outgoing.reason == SendReason::Question
                && let Some(record) = self.flows.flow_mut(index)
            {
                record.silence.note_probe(now);
            }
            let len = outgoing.packet.total_len();
            self.transmit(now, link, outgoing);
            let has_standing_queue = self.has_standing_queue(index);
            if let Some(schedule) = self.schedule(link.interface) {
                if waiting == Waiting::InLine && schedule.line_is_over(now) {
                    schedule.pacer.charge_half(len);
                } else if !has_standing_queue {
                    schedule.pacer.charge_rest(len);
                }
            }
        }
    }

    /// Sends some of the handshakes that are due: together they take as long as one packet of data.
    fn send_handshakes(&mut self, now: Instant, place: usize) {
        for count in 0..HANDSHAKES_IN_A_TURN {
            if count > 0 && !self.schedules[place].pacer.allows(now) {
                break;
            }
            let Some((index, packet, reason)) = self.schedules[place].handshakes.next(now) else {
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
            let pacer = &mut self.schedules[place].pacer;
            pacer.charge_more(HANDSHAKE_ROOM.saturating_sub(len));
            pacer.charge_rest(len.max(HANDSHAKE_ROOM));
        }
        self.schedules[place].give_handshakes_a_turn();
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
        if let Some(schedule) = self.schedule(link.interface) {
            schedule.pacer.charge(now, packet.total_len());
        }
        self.outbox.push_back(Transmit {
            link,
            direction,
            packet,
            reason,
        });
    }
}
