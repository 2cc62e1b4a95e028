//! Whose turn it is on one interface: small urgent packets first, then data, flow by flow.

use crate::flow::FlowIndex;
use crate::link::InterfaceId;
use crate::mechanisms::path::Waiting;
use crate::others::OtherTraffic;
use crate::pace::Pacer;
use crate::time::Instant;
use crate::units::BitRate;
use alloc::collections::{BTreeSet, VecDeque};

/// Who may send next.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Turn {
    Flow(FlowIndex),
    Others,
}

/// What waits for one interface.
#[derive(Debug)]
pub(super) struct Schedule {
    pub(super) interface: InterfaceId,
    pub(super) pacer: Pacer,
    pub(super) others: OtherTraffic,
    urgent: VecDeque<Turn>,
    data: VecDeque<Turn>,
    /// The flows in these queues: each is there once, whatever becomes of it meanwhile.
    queued: BTreeSet<FlowIndex>,
    others_have_turn: bool,
}

impl Schedule {
    pub(super) fn new(interface: InterfaceId, rate: Option<BitRate>) -> Self {
        Self {
            interface,
            pacer: Pacer::new(rate),
            others: OtherTraffic::default(),
            urgent: VecDeque::new(),
            data: VecDeque::new(),
            queued: BTreeSet::new(),
            others_have_turn: false,
        }
    }

    /// A flow takes part in the round, if it does not yet.
    pub(super) fn give_flow_a_turn(&mut self, index: FlowIndex, waiting: Waiting) {
        if self.queued.insert(index) {
            match waiting {
                Waiting::Urgent => self.urgent.push_back(Turn::Flow(index)),
                Waiting::Data => self.data.push_back(Turn::Flow(index)),
            }
        }
    }

    /// Other traffic takes part in the round, as one flow.
    pub(super) fn give_others_a_turn(&mut self) {
        if !self.others_have_turn {
            self.others_have_turn = true;
            self.data.push_back(Turn::Others);
        }
    }

    pub(super) fn next_turn(&mut self) -> Option<Turn> {
        let turn = self.urgent.pop_front().or_else(|| self.data.pop_front())?;
        match &turn {
            Turn::Others => self.others_have_turn = false,
            Turn::Flow(index) => {
                self.queued.remove(index);
            }
        }
        Some(turn)
    }

    /// When the next turn may be taken; `None` if nothing waits.
    pub(super) fn next_chance(&self) -> Option<Instant> {
        let waits = !self.urgent.is_empty() || !self.data.is_empty();
        waits.then(|| self.pacer.next_chance())
    }
}
