//! What happens to a packet that crosses: tracking, the mechanism's verdict, or hold for traffic
//! that no mechanism knows.

use super::{Gateway, Record};
use crate::flow::{Admission, FlowIndex, FlowKey, Phase, Shelf, TcpFlow};
use crate::link::{Direction, LinkId, LinkState, StateSince};
use crate::mechanisms::path::{PathMechanismKind, TakeReason, Verdict};
use crate::time::Instant;
use outlast_wire::{Packet, TcpFlags, TcpHeader};

/// One packet that crosses the gateway.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crossing<'a> {
    pub(super) now: Instant,
    pub(super) link: LinkId,
    pub(super) state: StateSince,
    pub(super) direction: Direction,
    pub(super) packet: &'a Packet,
}

impl Gateway {
    pub(super) fn handle_tcp(
        &mut self,
        crossing: &Crossing<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Verdict {
        if self.mechanism == PathMechanismKind::None {
            return Verdict::Pass;
        }
        let index = self
            .flows
            .find(&key)
            .or_else(|| self.admit(crossing, key, tcp));
        let Some((index, record)) = index.and_then(|i| Some((i, self.flows.flow_mut(i)?))) else {
            return Verdict::Pass;
        };
        let &Crossing {
            now,
            link,
            state,
            direction,
            packet,
        } = crossing;
        let was = record.tracked.phase;
        let payload_len = packet.header().payload_len;
        let Ok(observation) = record.tracked.observe(now, direction, tcp, payload_len) else {
            self.counters.odd_segments += 1;
            return Verdict::Pass;
        };
        let phase = record.tracked.phase;
        let is_elsewhere = record.link != link;
        let is_news = record.state != state.state;
        if state.state == LinkState::Down {
            record.tracked.rtt.discard();
        }
        if is_elsewhere {
            self.move_flow(index, link);
        }
        if was == Phase::Closed && phase == Phase::Opening {
            self.replace_mechanism(index);
        }
        if is_news {
            self.change_link_of(now, index, state);
        }
        self.flows.touch(now, index, shelf(phase));
        if direction == Direction::FromLink
            && let Some(schedule) = self.schedule(link.interface)
        {
            schedule.pacer.acknowledged(observation.newly_acked);
        }
        let verdict = if was == Phase::Established || phase == Phase::Established {
            self.with_mechanism(now, index, state, |mechanism, cx| {
                mechanism.handle_packet(cx, direction, packet, observation)
            })
        } else {
            None
        };
        match verdict {
            Some(taken @ Verdict::Taken(_)) => taken,
            // Connections that open or abort while the link is down have no data to keep.
            _ if stands_alone(tcp) => self.handle_other(crossing),
            _ => Verdict::Pass,
        }
    }

    /// A packet that no mechanism knows how to recover waits while the link is down.
    pub(super) fn handle_other(&mut self, crossing: &Crossing<'_>) -> Verdict {
        let &Crossing {
            link,
            state,
            direction,
            packet,
            ..
        } = crossing;
        if direction == Direction::FromLink || !self.mechanism.holds_other_traffic() {
            return Verdict::Pass;
        }
        let reason = match state.state {
            LinkState::Down => TakeReason::LinkDown,
            LinkState::Up if self.others_wait(link) => TakeReason::BehindKept,
            LinkState::Up => return Verdict::Pass,
        };
        self.keep_other(link, state, packet);
        Verdict::Taken(reason)
    }

    fn others_wait(&self, link: LinkId) -> bool {
        self.schedules
            .iter()
            .find(|schedule| schedule.interface == link.interface)
            .is_some_and(|schedule| schedule.others.wait_for(link))
    }

    pub(super) fn keep_other(&mut self, link: LinkId, state: StateSince, packet: &Packet) {
        let limits = self.limits;
        let Some(schedule) = self.schedule(link.interface) else {
            return;
        };
        let evicted = schedule.others.keep(link, packet, &limits);
        if state.state == LinkState::Up {
            schedule.give_others_a_turn();
        }
        self.counters.others_evicted += evicted;
    }

    /// A flow begins with a SYN, or with any segment of a connection that is older than the
    /// gateway. A lone RST begins nothing.
    fn admit(
        &mut self,
        crossing: &Crossing<'_>,
        key: FlowKey,
        tcp: &TcpHeader,
    ) -> Option<FlowIndex> {
        if tcp.has(TcpFlags::RST) {
            return None;
        }
        let record = Record {
            tracked: TcpFlow::new(),
            link: crossing.link,
            state: crossing.state.state,
            mechanism: self.mechanism.for_flow(),
            deadline: None,
        };
        let index = match self.flows.admit(crossing.now, key, record) {
            Admission::Admitted(index) => index,
            Admission::Displaced(index, displaced) => {
                self.counters.flows_displaced += 1;
                self.release(index, displaced);
                index
            }
        };
        self.crossings.insert((crossing.link, index));
        Some(index)
    }

    /// Whether both hosts of the flow were seen; it may have closed since.
    pub(super) fn was_established(&self, index: FlowIndex) -> bool {
        self.flows
            .flow(index)
            .is_some_and(|record| record.tracked.phase != Phase::Opening)
    }

    /// The same addresses and ports carry another connection now.
    fn replace_mechanism(&mut self, index: FlowIndex) {
        let fresh = self.mechanism.for_flow();
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        if let Some(mut old) = core::mem::replace(&mut record.mechanism, fresh) {
            old.release(&mut self.budget);
        }
    }
}

/// A SYN or a RST: of use without what the connection has sent before.
pub(super) const fn stands_alone(tcp: &TcpHeader) -> bool {
    tcp.flags.intersects(TcpFlags::SYN.union(TcpFlags::RST))
}

const fn shelf(phase: Phase) -> Shelf {
    match phase {
        Phase::Opening => Shelf::Opening,
        Phase::Established => Shelf::Established,
        Phase::Closed => Shelf::Closed,
    }
}
