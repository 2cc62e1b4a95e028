//! What passing packets show of a link that is back: how fast it is, and who answers.

use super::Gateway;
use crate::links::{Indicator, LinkId};
use crate::release::{Departure, seen_before};
use crate::tracking::{FlowIndex, LinkRtt, Observation};
use outlast_base::time::Instant;
use outlast_wire::{Packet, SeqNumber, TcpFlags};

/// What a duplicate acknowledgement stands for, in bytes: a segment that has arrived.
const SEGMENT: u32 = 1_460;

impl Gateway {
    /// `link` is back, and `behind` are the connections that cross it: how they have worked before is
    /// where its pace begins.
    pub(super) fn welcome(
        &mut self,
        now: Instant,
        link: LinkId,
        by: Indicator,
        behind: &[(LinkId, FlowIndex)],
    ) {
        let flows = &self.flows;
        let round_trips = behind
            .iter()
            .filter_map(|(_, index)| Some(&flows.flow(*index)?.tracked.rtt));
        let known = round_trips.clone().filter(|rtt| rtt.measured().is_some());
        let longest = known.map(LinkRtt::patience).max();
        let deliveries = round_trips.filter_map(|rtt| Some((rtt.delivery()?, rtt.smoothed())));
        let seen = seen_before(deliveries);
        if let Some(release) = self.release_at(link.interface) {
            release.welcome(now, link, by, seen, longest);
            release.give_others_a_turn();
        }
    }

    /// A plausible segment of a connection came from its far host.
    pub(super) fn note_answer(&mut self, link: LinkId, index: FlowIndex) {
        if let Some(key) = self.flows.key(index)
            && let Some(release) = self.release_at(link.interface)
        {
            release.hear(key.far.ip());
        }
    }

    /// A packet of a connection was sent that its far host answers.
    pub(super) fn ask(&mut self, now: Instant, index: FlowIndex) {
        let Some((key, record)) = self.flows.key(index).zip(self.flows.flow(index)) else {
            return;
        };
        let (interface, patience) = (record.link.interface, record.tracked.rtt.patience());
        if let Some(release) = self.release_at(interface) {
            release.ask(now, key.far.ip(), patience);
        }
    }

    /// A packet of a connection goes onto the link.
    pub(super) fn note_departure(&mut self, now: Instant, index: FlowIndex, packet: &Packet) {
        let len = packet.sequence_len();
        let Some(tcp) = packet.tcp().filter(|_| len > 0) else {
            return;
        };
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        let rtt = record.tracked.rtt;
        let Some(release) = self
            .releases
            .iter_mut()
            .find(|release| release.interface == record.link.interface)
            .filter(|release| release.pacer.is_measuring())
        else {
            return;
        };
        record.departed = record.departed.saturating_add(len);
        if let Some(key) = self.flows.key(index) {
            let departure = Departure {
                peer: key.far.ip(),
                index,
                end: tcp.seq + len,
                data: len,
                len: packet.total_len(),
                round_trip: rtt.measured().unwrap_or_default(),
                patience: rtt.patience(),
            };
            release.pacer.depart(now, departure);
        }
    }

    /// A segment of a connection came from its far host: it may show that some of what went out has
    /// arrived.
    pub(super) fn note_arrival(
        &mut self,
        now: Instant,
        index: FlowIndex,
        packet: &Packet,
        observation: Observation,
    ) {
        let Some(record) = self.flows.flow_mut(index) else {
            return;
        };
        let selectively = core::mem::take(&mut self.arrived);
        let Some(release) = self
            .releases
            .iter_mut()
            .find(|release| release.interface == record.link.interface)
            .filter(|release| release.pacer.is_measuring())
        else {
            return;
        };
        let near = &record.tracked.near;
        let repeats = packet.sequence_len() == 0
            && packet.tcp().is_some_and(|tcp| {
                tcp.flags == TcpFlags::ACK && tcp.ack == near.acked && tcp.options.sack.is_empty()
            });
        let arrived = match observation.newly_acked {
            0 if repeats && near.has_outstanding() => SEGMENT,
            newly_acked => newly_acked.saturating_add(selectively),
        };
        let arrived = arrived.min(record.departed);
        record.departed -= arrived;
        let sacked = packet.tcp().map(|tcp| &tcp.options.sack);
        let sacked = sacked.into_iter().flatten().map(|block| block.right);
        // What is selectively acknowledged was sent, or says nothing.
        let sacked = sacked.filter(|right| !right.after(near.next));
        let reached = sacked.fold(near.acked, SeqNumber::max);
        if let Some(key) = self.flows.key(index) {
            let whose = (key.far.ip(), index);
            release.pacer.delivered(now, whose, arrived, reached);
        }
    }
}
