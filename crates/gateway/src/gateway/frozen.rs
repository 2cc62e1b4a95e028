//! Frozen connections that one gateway hands to another: the agents' part of `zero-window-ack`.
//!
//! What comes from another gateway is believed as far as it is plausible; that this other gateway
//! is one that may tell such things is the driver's to make sure. An imported connection is the one
//! exception to the rule that nothing is sent for a connection that was not seen in both
//! directions: the other gateway has seen it.

mod pledge;

pub use pledge::{Pledge, reset_of_unknown};

use super::{Event, Gateway, Record, Transmit};
use crate::links::{Direction, LinkId, LinkState};
use crate::mechanisms::path::{PathMechanismKind, SendReason, Standing, ZeroWindowAck};
use crate::tracking::{
    Admission, FlowIndex, FlowKey, FrozenFlow, FrozenNumbers, Implausible, Phase, TcpFlow,
};
use alloc::vec::Vec;
use outlast_base::time::Instant;
use outlast_wire::{Packet, TcpHeader};

/// What became of a connection that another gateway has handed over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Imported {
    /// Its segment is delivered from here.
    Frozen,
    /// The far host has acknowledged the segment already, or the connection has ended.
    Over,
}

/// Why a connection cannot be taken over.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ImportError {
    /// The gateway's mechanism is another one.
    WrongMechanism,
    /// No such interface.
    UnknownLink,
    /// What is told of it contradicts itself.
    Implausible(Implausible),
    /// What is told of it contradicts what was seen here.
    Contradiction,
    /// The flow table is full, or the memory for what is kept.
    NoRoom,
}

/// Numbers of one connection, seen at two places, are at most this far apart: the largest window
/// there is (RFC 7323, section 2.3).
pub(super) const LARGEST_DISTANCE: u32 = 1 << 30;

impl Gateway {
    /// The frozen connections behind `link`: those of a peer, or of all peers of an interface.
    #[must_use]
    pub fn frozen_behind(&self, link: LinkId) -> Vec<FlowKey> {
        let frozen = |index: &FlowIndex| {
            let record = self.flows.flow(*index);
            record.is_some_and(|record| record.standing == Standing::Frozen)
        };
        let behind = self.flows_behind(link).into_iter();
        let frozen = behind.map(|(_, index)| index).filter(frozen);
        frozen.filter_map(|index| self.flows.key(index)).collect()
    }

    /// A frozen connection, for another gateway to take over; `None` if it is not frozen. It stays
    /// here until [`Self::release_frozen`].
    #[must_use]
    pub fn export_frozen(&mut self, flow: FlowKey) -> Option<FrozenFlow> {
        let index = self.flows.find(&flow)?;
        // Whoever corrected the connection meanwhile may know that the segment is not needed.
        export(self.flows.flow_mut(index)?).filter(|frozen| frozen.numbers().is_ok())
    }

    /// Takes a connection over that another gateway, or this one before it was started anew, has
    /// frozen. Its segment is sent on `link` while that is up, until the far host acknowledges it;
    /// deliveries without an answer count at once if the far host `is_heard` there, or else from
    /// its first sign of life on.
    ///
    /// # Errors
    /// [`ImportError`] if it can be of no connection here, or there is no room; nothing is kept
    /// then, and no connection gives way for it.
    pub fn import_frozen(
        &mut self,
        now: Instant,
        link: LinkId,
        frozen: &FrozenFlow,
        is_heard: bool,
    ) -> Result<Imported, ImportError> {
        if self.mechanism != PathMechanismKind::ZeroWindowAck {
            return Err(ImportError::WrongMechanism);
        }
        let state = self.links.state(link).ok_or(ImportError::UnknownLink)?;
        let numbers = frozen.numbers().map_err(ImportError::Implausible)?;
        let index = match self.flows.find(&numbers.flow) {
            Some(index) => match self.meet(index, frozen, &numbers)? {
                Meeting::Over => return Ok(Imported::Over),
                Meeting::Here => return Ok(Imported::Frozen),
                Meeting::Merged => index,
            },
            None => self
                .admit_frozen(now, link, frozen, numbers.flow)
                .ok_or(ImportError::NoRoom)?,
        };
        self.move_flow(index, link);
        if let Some(record) = self.flows.flow_mut(index) {
            record.state = state.state;
            record.told = state;
            record.is_proven = true;
        }
        self.wake_mechanism(index);
        self.note_life(now, index);
        let adopted = self.with_mechanism(now, index, state, |mechanism, cx| {
            mechanism
                .zero_window_ack()
                .is_some_and(|mechanism| mechanism.adopt(cx, frozen, is_heard))
        });
        if adopted != Some(true) {
            return Err(ImportError::NoRoom);
        }
        self.send_in_turn(now);
        Ok(Imported::Frozen)
    }

    /// Another gateway delivers the segment from now on, or does so no longer. While it does, this
    /// one keeps the segment and answers the near host's probes.
    pub fn lend_frozen(&mut self, now: Instant, flow: FlowKey, is_lent: bool) {
        if let Some(index) = self.flows.find(&flow)
            && let Some(record) = self.flows.flow(index)
            && let Some(state) = self.links.state(record.link)
        {
            self.with_mechanism(now, index, state, |mechanism, cx| {
                if let Some(mechanism) = mechanism.zero_window_ack() {
                    mechanism.lend(cx, is_lent);
                }
            });
            self.send_in_turn(now);
        }
    }

    /// The far host has acknowledged the segment where this gateway does not see it: the
    /// connection is the hosts' own again.
    pub fn release_frozen(&mut self, now: Instant, flow: FlowKey) {
        if let Some(index) = self.flows.find(&flow)
            && let Some(record) = self.flows.flow(index)
            && record.standing == Standing::Frozen
            && let Some(state) = self.links.state(record.link)
        {
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.release(cx.budget);
            });
        }
    }

    /// Gives a frozen connection up: a reset for each host, the near one's first, which the caller
    /// sends to wherever the hosts are now; `None` if it is not frozen.
    #[must_use]
    pub fn reset_frozen(&mut self, now: Instant, flow: FlowKey) -> Option<[Packet; 2]> {
        let numbers = self.export_frozen(flow)?.numbers().ok()?;
        self.release_frozen(now, flow);
        self.counters.resets += 1;
        Some([numbers.reset_near(), numbers.reset_far()])
    }

    /// The far host acknowledges what was never seen here. If the connection is frozen here, it has
    /// gone on elsewhere, or while nobody ran here: it is the hosts' own again, and is met anew.
    /// Only the far host, and who reads what it sends, knows the exact number that is asked for; and
    /// it is believed only when it was given the segment and had time to acknowledge that.
    pub(super) fn note_gone_on(&mut self, now: Instant, index: FlowIndex, tcp: &TcpHeader) {
        let Some(record) = self.flows.flow(index) else {
            return;
        };
        let (near, far) = (record.tracked.near, record.tracked.far);
        let beyond = tcp.ack.distance_from(near.next).unsigned_abs();
        let is_frozen = record.standing == Standing::Frozen;
        if !is_frozen || tcp.seq != far.next || beyond > LARGEST_DISTANCE {
            return;
        }
        let Some(state) = self.links.state(record.link) else {
            return;
        };
        let is_believed = self.with_mechanism(now, index, state, |mechanism, cx| {
            let mechanism = mechanism.zero_window_ack();
            mechanism.is_some_and(|mechanism| mechanism.doubt(cx))
        });
        if is_believed != Some(true) {
            return;
        }
        if let Some(flow) = self.flows.key(index) {
            self.release_frozen(now, flow);
        }
        if let Some(removed) = self.flows.remove(index) {
            self.release(removed);
        }
    }

    /// A connection is tracked here already that is handed over.
    fn meet(
        &mut self,
        index: FlowIndex,
        frozen: &FrozenFlow,
        numbers: &FrozenNumbers,
    ) -> Result<Meeting, ImportError> {
        let Some(record) = self.flows.flow_mut(index) else {
            return Err(ImportError::NoRoom);
        };
        if record.tracked.phase == Phase::Closed {
            return Ok(Meeting::Over);
        }
        let seen = record.tracked.near;
        if seen.is_seen() {
            let distance = seen.acked.distance_from(numbers.acked).unsigned_abs();
            if distance > LARGEST_DISTANCE {
                return Err(ImportError::Contradiction);
            }
            if seen.window_scale.is_some() && seen.acked.at_or_after(numbers.until) {
                return Ok(Meeting::Over);
            }
        }
        if record.standing == Standing::Frozen {
            return Ok(Meeting::Here);
        }
        let (near, far) = frozen.merged_into(&record.tracked);
        record.tracked.near = near;
        record.tracked.far = far;
        record.tracked.phase = Phase::Established;
        Ok(Meeting::Merged)
    }

    fn admit_frozen(
        &mut self,
        now: Instant,
        link: LinkId,
        frozen: &FrozenFlow,
        flow: FlowKey,
    ) -> Option<FlowIndex> {
        if self.flows.len() >= self.limits.flows {
            self.counters.flows_refused += 1;
            return None;
        }
        let state = self.links.state(link)?;
        let tracked = TcpFlow {
            near: frozen.near,
            far: frozen.far,
            phase: Phase::Established,
            ..TcpFlow::new()
        };
        let record = Record::new(tracked, link, state);
        let Admission::Admitted(index) = self.flows.admit(now, flow, record) else {
            return None;
        };
        self.crossings.insert((link, index));
        Some(index)
    }

    /// A connection has come to another standing.
    pub(super) fn tell_standing(&mut self, flow: FlowKey, was: Standing, is: Standing) {
        match (was, is) {
            (_, Standing::Frozen) => self.events.push_back(Event::Frozen { flow }),
            (Standing::Frozen, _) => self.events.push_back(Event::Thawed {
                flow,
                is_reset: is == Standing::Broken,
            }),
            _ => {}
        }
    }

    /// A connection leaves the table, or its place. If the gateway has the only copy of what it has
    /// acknowledged, the connection cannot go on: both hosts are told.
    pub(super) fn say_last_words(&mut self, link: LinkId, words: LastWords) {
        self.counters.resets += u64::from(words.resets.is_some());
        for (direction, packet) in DIRECTIONS.into_iter().zip(words.resets.iter().flatten()) {
            let state = self.links.state(link);
            let is_away = state.filter(|state| state.state == LinkState::Down);
            match is_away.filter(|_| self.mechanism.holds_other_traffic()) {
                Some(state) if direction == Direction::ToLink => {
                    // A segment of TCP is kept however old it is.
                    self.keep_other(Instant::ZERO, link, state, packet);
                }
                _ => self.outbox.push_back(Transmit {
                    link,
                    direction,
                    packet: packet.clone(),
                    reason: SendReason::Reset,
                }),
            }
        }
        // Whoever corrected the connection meanwhile may know that the segment is not needed: then
        // nobody is reset, but it is frozen no longer.
        if let Some(flow) = words.frozen {
            self.events.push_back(Event::Thawed {
                flow,
                is_reset: words.resets.is_some(),
            });
        }
    }
}

/// Where the resets of [`LastWords`] go.
const DIRECTIONS: [Direction; 2] = [Direction::FromLink, Direction::ToLink];

/// What is left to say of a connection that ends with something acknowledged that nobody else has.
pub(super) struct LastWords {
    /// A reset for the near and for the far host; `None` if the far host has it all.
    resets: Option<[Packet; 2]>,
    /// The connection, if it was [frozen](Standing::Frozen): it is no longer.
    frozen: Option<FlowKey>,
}

impl LastWords {
    /// Those of a connection; `None` if there are none. They are not said twice.
    pub(super) fn of(record: &mut Record) -> Option<Self> {
        let frozen = export(record);
        record.standing = match record.standing {
            Standing::Frozen => Standing::Running,
            standing => standing,
        };
        match frozen {
            Some(frozen) => {
                let numbers = frozen.numbers().ok();
                Some(Self {
                    resets: numbers.map(|numbers| [numbers.reset_near(), numbers.reset_far()]),
                    frozen: FlowKey::of_tcp(frozen.segment.header(), Direction::ToLink),
                })
            }
            None => {
                let resets = record.mechanism.as_ref()?.resets(&record.tracked)?;
                Some(Self {
                    resets: Some(resets),
                    frozen: None,
                })
            }
        }
    }
}

/// What is known here of a connection that is handed over.
enum Meeting {
    /// It needs nobody any more.
    Over,
    /// It is frozen here, too.
    Here,
    /// Both views of it are one now.
    Merged,
}

fn export(record: &mut Record) -> Option<FrozenFlow> {
    let mechanism: &ZeroWindowAck = record.mechanism.as_mut()?.zero_window_ack()?;
    mechanism.export(&record.tracked)
}
