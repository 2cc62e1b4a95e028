//! Who has a connection's place, and how one that loses it ends: what may be given up for what only
//! looks like another connection.

use super::crossing::Crossing;
use super::frozen::LastWords;
use super::{Gateway, Record};
use crate::links::{LinkState, StateSince};
use crate::tracking::{FlowIndex, PATIENCE, Phase, Removed};
use outlast_base::time::Instant;

impl Gateway {
    /// Another connection has the place of the one at `index`, if nothing is lost by that.
    #[cold]
    pub(super) fn give_place_to_rival(&mut self, crossing: &Crossing<'_>, index: FlowIndex) {
        let &Crossing { now, state, .. } = crossing;
        if !self.may_yield(now, index) {
            return;
        }
        self.end_for_another(now, index, state);
        if let Some(record) = self.flows.flow_mut(index)
            && let Some(contest) = &mut record.contest
        {
            contest.yield_to_rival(&mut record.tracked);
        }
    }

    /// The connection that had the place first has it again.
    #[cold]
    pub(super) fn take_place_back(&mut self, crossing: &Crossing<'_>, index: FlowIndex) {
        self.end_for_another(crossing.now, index, crossing.state);
        if let Some(record) = self.flows.flow_mut(index) {
            record.is_proven = true;
        }
    }

    /// Whether a connection of which nothing was seen for [`PATIENCE`] gives its place to another. One of
    /// which something is kept does so only if its far host could have answered all that time.
    fn may_yield(&self, now: Instant, index: FlowIndex) -> bool {
        let Some(record) = self.flows.flow(index) else {
            return false;
        };
        let could_answer = || {
            let told = record.told;
            let is_up = record.state == LinkState::Up && now.since(told.since) >= PATIENCE;
            is_up && !self.is_silent(record.link)
        };
        let is_kept = record.held.0 > 0 || record.is_pledged;
        record.tracked.phase == Phase::Closed || !is_kept || could_answer()
    }

    /// What was acknowledged ahead of a connection is to be given up, and the far host may lack it:
    /// both hosts hear that the connection is over.
    #[cold]
    pub(super) fn end_pledged(&mut self, index: FlowIndex) {
        let record = self.flows.flow_mut(index).filter(|one| one.is_pledged);
        let words = record.and_then(|record| Some((record.link, LastWords::of(record)?)));
        if let Some((link, words)) = words {
            self.say_last_words(link, words);
        }
    }

    /// Another connection has the ports of the one at `index`.
    pub(super) fn end_for_another(&mut self, now: Instant, index: FlowIndex, state: StateSince) {
        self.end_pledged(index);
        self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism.release(cx.budget);
        });
        self.begin_anew(index);
        if let Some(record) = self.flows.flow_mut(index) {
            record.permits_sack = [None; 2];
            record.mss = [None; 2];
            record.longest_to_link = 0;
        }
    }

    /// A flow is gone.
    pub(super) fn release(&mut self, removed: Removed<Record>) {
        let Removed {
            index,
            key,
            flow: mut record,
        } = removed;
        if let Some(words) = LastWords::of(&mut record) {
            self.say_last_words(record.link, words);
        }
        self.forget_handshake(record.link, index);
        self.crossings.remove(&(record.link, index));
        self.leave_link(record.link);
        if let Some(at) = record.deadline {
            self.deadlines.remove(&(at, index));
        }
        if let Some(mechanism) = &mut record.mechanism {
            mechanism.release(&mut self.budget);
        }
        self.shares.change(key.far.ip(), record.held.0, 0);
    }
}
