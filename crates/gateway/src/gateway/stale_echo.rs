//! One-sided connections whose far host echoes a timestamp from before the outage.
//!
//! What is done for them, and why, stands in [`handshakes`](crate::handshakes).

use super::Gateway;
use super::crossing::Crossing;
use crate::flow::FlowIndex;
use crate::link::{Direction, LinkState};
use crate::mechanisms::path::{Outgoing, SendReason, TakeReason, Verdict, unreachable_from};
use outlast_wire::{SeqNumber, TcpHeader};

/// ICMP errors for one near host: as many as a stack makes back-offs in 50 seconds. The gateway does not
/// know how long the outage was; those that are too many do nothing.
const BACK_OFFS: u8 = 8;

impl Gateway {
    /// Withholds an answer with a stale echo, or what its near host repeats for it; `None` for every other
    /// segment.
    pub(super) fn handle_stale_echo(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
    ) -> Option<Verdict> {
        let &Crossing {
            now,
            link,
            state,
            direction,
            packet,
        } = crossing;
        let limits = self.limits;
        let release = self.release_at(link.interface)?;
        if release.handshakes.is_empty() || state.state == LinkState::Down {
            return None;
        }
        match direction {
            Direction::FromLink if packet.sequence_len() > 0 => None,
            Direction::FromLink => {
                let begins = release.handshakes.withhold_stale(now, index, tcp)?;
                self.make_repeat(crossing, index, begins);
                Some(Verdict::Taken(TakeReason::AnswersProbe))
            }
            Direction::ToLink => {
                let expected = release.handshakes.renew(index, packet, &limits)?;
                self.renew_timestamp(crossing, index, tcp, expected);
                if let Some(release) = self.release_at(link.interface) {
                    release.give_handshakes_a_turn();
                }
                Some(Verdict::Taken(TakeReason::BehindKept))
            }
        }
    }

    /// Makes the near host repeat the segment that begins with `begins`.
    fn make_repeat(&mut self, crossing: &Crossing<'_>, index: FlowIndex, begins: SeqNumber) {
        let (Some(key), Some(record)) = (self.flows.key(index), self.flows.flow(index)) else {
            return;
        };
        let flow = record.tracked;
        for _ in 0..BACK_OFFS {
            if let Some(packet) = unreachable_from(&key, &flow, Direction::ToLink, begins) {
                let outgoing = Outgoing {
                    direction: Direction::FromLink,
                    packet,
                    reason: SendReason::Unreachable,
                };
                self.transmit(crossing.now, crossing.link, outgoing);
            }
        }
    }

    /// Gives the far host, which expects `expected` next, the timestamp of what the near host repeats.
    fn renew_timestamp(
        &mut self,
        crossing: &Crossing<'_>,
        index: FlowIndex,
        tcp: &TcpHeader,
        expected: SeqNumber,
    ) {
        let (Some(key), Some(record)) = (self.flows.key(index), self.flows.flow_mut(index)) else {
            return;
        };
        let voice = &mut record.silence.voice;
        voice.hear(tcp);
        let packet = voice.acknowledge(&key, &record.tracked, expected);
        let outgoing = Outgoing {
            direction: Direction::ToLink,
            packet,
            reason: SendReason::NewestAck,
        };
        self.transmit(crossing.now, crossing.link, outgoing);
    }
}
