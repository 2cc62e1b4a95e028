//! Calling a connection's mechanism, and taking note of what it wants.

use super::{Event, Gateway, Transmit, release_at};
use crate::flow::{FlowIndex, FlowKey};
use crate::link::{Direction, StateSince};
use crate::mechanisms::path::{Context, PathMechanism, SendReason};
use outlast_base::time::Instant;
use outlast_base::units::ByteCount;

impl Gateway {
    /// Calls a flow's mechanism, then takes note of its deadline and of what it wants sent.
    pub(super) fn with_mechanism<R>(
        &mut self,
        now: Instant,
        index: FlowIndex,
        link: StateSince,
        call: impl FnOnce(&mut dyn PathMechanism, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let key = self.flows.key(index)?;
        self.allot_memory(&key);
        let record = self.flows.flow_mut(index)?;
        let link = match link.state == record.state {
            true => record.told,
            false => link,
        };
        let silence = self.silence.as_ref();
        let is_silent = silence.is_some_and(|silence| silence.is_suspected(record.link));
        let release = release_at(&mut self.releases, record.link.interface);
        let (has_line, is_paced) = release.map_or((false, false), |one| one.line(now, link.since));
        let sack = record.sack();
        let mechanism = record.mechanism.as_mut()?;
        let (mut resumed, mut arrived, mut rewritten) = (None, 0, None);
        let at = record.link;
        let held_before = self.budget.used();
        let mut cx = Context {
            now,
            key: &key,
            flow: &record.tracked,
            link,
            is_silent,
            has_line,
            is_paced,
            near_voice: record.silence.voice,
            sack,
            limits: &self.limits,
            budget: &mut self.budget,
            counters: &mut self.counters,
            resumed: &mut resumed,
            arrived: &mut arrived,
            rewritten: &mut rewritten,
        };
        let result = call(mechanism.as_mut(), &mut cx);
        self.arrived = arrived;
        // Nobody else takes from the budget meanwhile: what is kept of others stays as it was.
        let held = record.held.0 + self.budget.used().0;
        let held = held.saturating_sub(held_before.0);
        self.shares.change(key.far.ip(), record.held.0, held);
        record.held = ByteCount(held);
        if let Some(after) = resumed {
            self.events.push_back(Event::Resumed { flow: key, after });
        }
        if let Some(packet) = rewritten {
            // In its place among what comes from the link, so that no turn is waited for.
            self.outbox.push_back(Transmit {
                link: at,
                direction: Direction::FromLink,
                packet,
                reason: SendReason::Supervised,
            });
        }
        self.note_wishes(now, index, key);
        Some(result)
    }

    /// What the connections of a peer may take of the memory that all share.
    fn allot_memory(&mut self, key: &FlowKey) {
        if self.shares.become_scarce(&self.budget) {
            let flows = self.flows.iter();
            self.shares
                .count(flows.map(|(key, _, record)| (key.far.ip(), record.held.0)));
        }
        let room = self.shares.room(key.far.ip(), &self.budget);
        self.budget.allot(room);
    }

    /// Takes note of what a flow's mechanism wants now: to be called, to send, to keep its place.
    fn note_wishes(&mut self, now: Instant, index: FlowIndex, key: FlowKey) {
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        let Some(mechanism) = &record.mechanism else {
            return;
        };
        let deadline = mechanism.poll_timeout();
        if record.deadline != deadline {
            if let Some(at) = record.deadline {
                self.deadlines.remove(&(at, index));
            }
            if let Some(at) = deadline {
                self.deadlines.insert((at, index));
            }
            record.deadline = deadline;
        }
        let is_pledged = mechanism.account().acknowledged_ahead;
        let changes_shelf = core::mem::replace(&mut record.is_pledged, is_pledged) != is_pledged;
        if let Some(waiting) = mechanism.waiting()
            && let Some(release) = release_at(&mut self.releases, record.link.interface)
        {
            release.give_flow_a_turn(index, key.far.ip(), waiting);
        }
        let standing = mechanism.standing();
        if record.standing != standing {
            let was = core::mem::replace(&mut record.standing, standing);
            self.tell_standing(key, was, standing);
        }
        if changes_shelf {
            self.note_life(now, index);
        }
    }

    /// The flow is about to meet something that its mechanism must know.
    pub(super) fn wake_mechanism(&mut self, index: FlowIndex) {
        if let Some(record) = self.flows.flow_mut(index)
            && record.mechanism.is_none()
        {
            record.mechanism = self.mechanism.for_flow();
        }
    }
}
