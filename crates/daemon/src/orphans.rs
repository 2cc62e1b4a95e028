//! Connections that an earlier process has acknowledged ahead, and which were not ended at both hosts when it
//! was killed: nobody has what their senders believe delivered.
//!
//! Both hosts are asked until neither knows the connection any more. To what they answer the daemon says
//! what a host says that knows of no connection, and lets nothing of it pass.

use super::Daemon;
use super::indicators::INTERFACE;
use super::path::Waiting;
use super::pledges::{GIVES_UP_AFTER, pause_after};
use outlast_base::time::{Duration, Instant};
use outlast_gateway::gateway::{Pledge, Transmit, reset_of_unknown};
use outlast_gateway::links::{Direction, LinkId};
use outlast_gateway::mechanisms::path::SendReason;
use outlast_gateway::tracking::FlowKey;
use outlast_wire::{Packet, TcpFlags};
use std::collections::BTreeMap;
use std::io;

/// The acknowledged-ahead connections of an earlier process that are not ended yet.
#[derive(Debug)]
pub(super) struct Orphans {
    left: BTreeMap<FlowKey, Orphan>,
    /// Connections that have just ended.
    ended: Vec<FlowKey>,
    began: Instant,
    ask_at: Instant,
}

#[derive(Debug)]
struct Orphan {
    pledge: Pledge,
    /// Whether the near and the far host may still know it.
    is_known: [bool; 2],
}

impl Orphans {
    pub(super) fn new(now: Instant, left: Vec<Pledge>) -> Self {
        let orphan = |pledge: Pledge| {
            let is_known = [true; 2];
            (pledge.numbers.flow, Orphan { pledge, is_known })
        };
        Self {
            left: left.into_iter().map(orphan).collect(),
            ended: Vec::new(),
            began: now,
            ask_at: now,
        }
    }

    pub(super) fn has(&self, key: &FlowKey) -> bool {
        self.left.contains_key(key)
    }

    fn end(&mut self, key: FlowKey) {
        self.left.remove(&key);
        self.ended.push(key);
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.left.len()
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        (!self.left.is_empty()).then_some(self.ask_at)
    }

    /// The link is back: who was away is asked now.
    pub(super) fn hurry(&mut self, now: Instant) {
        self.ask_at = now;
    }

    /// The questions that are due by `now`, each with its direction.
    fn questions(&mut self, now: Instant) -> Vec<(Direction, Packet)> {
        if self.poll_timeout().is_none_or(|at| at > now) {
            return Vec::new();
        }
        let asked_for = now.since(self.began);
        if asked_for > GIVES_UP_AFTER {
            self.ended
                .extend(std::mem::take(&mut self.left).into_keys());
        }
        self.ask_at = now + pause_after(asked_for).min(Duration::from_secs(1));
        let ask = |orphan: &Orphan| {
            let [near, far] = orphan.is_known;
            let near = near.then(|| (Direction::FromLink, orphan.pledge.ask_near()));
            let far = far.then(|| (Direction::ToLink, orphan.pledge.ask_far()));
            near.into_iter().chain(far)
        };
        self.left.values().flat_map(ask).collect()
    }

    /// Answers a packet of an orphan; `None` if it is of no orphan, and may pass.
    ///
    /// `Some(None)`: the packet neither passes nor draws an answer.
    fn answer(&mut self, direction: Direction, packet: &Packet) -> Option<Option<Packet>> {
        let key = FlowKey::of_tcp(packet.header(), direction)?;
        let orphan = self.left.get_mut(&key)?;
        let tcp = packet.tcp()?;
        if tcp.has(TcpFlags::SYN) && !tcp.has(TcpFlags::ACK) {
            // Another connection on its ports: nobody knows the former.
            self.end(key);
            return None;
        }
        if tcp.has(TcpFlags::RST) {
            let place = usize::from(direction == Direction::FromLink);
            orphan.is_known[place] = false;
            if orphan.is_known == [false; 2] {
                self.end(key);
            }
            return Some(None);
        }
        Some(reset_of_unknown(packet))
    }
}

impl Daemon {
    /// Asks the hosts of connections that an earlier process has left whether they know them.
    pub(super) fn ask_for_orphans(&mut self, now: Instant) -> io::Result<()> {
        for (direction, packet) in self.orphans.questions(now) {
            self.send_of_orphan(now, direction, packet)?;
        }
        for key in std::mem::take(&mut self.orphans.ended) {
            self.pledges.note(key, None);
        }
        Ok(())
    }

    /// Whether what waits is of such a connection: it is answered, and does not pass.
    pub(super) fn ends_orphan(&mut self, now: Instant, waiting: &Waiting) -> io::Result<bool> {
        if self.orphans.len() == 0 {
            return Ok(false);
        }
        let mut is_of_orphan = false;
        for packet in &waiting.packets {
            let Some(answer) = self.orphans.answer(waiting.direction, packet) else {
                continue;
            };
            is_of_orphan = true;
            if let Some(reset) = answer {
                let back = match waiting.direction {
                    Direction::ToLink => Direction::FromLink,
                    Direction::FromLink => Direction::ToLink,
                };
                self.send_of_orphan(now, back, reset)?;
            }
        }
        if is_of_orphan {
            self.path.release(waiting, &[])?;
        }
        Ok(is_of_orphan)
    }

    fn send_of_orphan(
        &mut self,
        now: Instant,
        direction: Direction,
        packet: Packet,
    ) -> io::Result<()> {
        let transmit = Transmit {
            link: LinkId::of_interface(INTERFACE),
            direction,
            packet,
            reason: SendReason::Reset,
        };
        self.send(now, &transmit)
    }
}
