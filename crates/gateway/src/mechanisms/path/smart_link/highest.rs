//! The highest acknowledgement received from the link: what levels 1 and 2 keep, for as long as the
//! connection lasts.

use crate::limits::Budget;
use crate::mechanisms::path::Context;
use alloc::boxed::Box;
use outlast_wire::{Packet, SeqNumber, TcpFlags};

/// The packet with the highest acknowledgement so far, if there was memory for it.
#[derive(Debug, Default)]
pub(super) enum HighestAck {
    #[default]
    None,
    /// Of a connection that is in use.
    Whole(Box<Packet>),
    /// Of one that has been idle for a while: nothing but the packet's bytes, parsed again when they
    /// are wanted. There may be many of these.
    Resting(Box<[u8]>),
}

impl HighestAck {
    pub(super) const fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// Section 4.2: the highest acknowledgement received; of equal ones the first is kept.
    pub(super) fn offer(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        let Some(ack) = ack_of(packet) else { return };
        if self.ack().is_none_or(|kept| ack.after(kept)) {
            self.replace(packet, cx);
        }
    }

    /// A copy to insert.
    pub(super) fn packet(&self) -> Option<Packet> {
        match self {
            Self::None => None,
            Self::Whole(packet) => Some(packet.as_ref().clone()),
            Self::Resting(bytes) => Packet::parse(bytes.to_vec().into()).ok(),
        }
    }

    /// The connection is idle: its packet takes as little as it can. One without bytes of its own
    /// stays as it is.
    pub(super) fn rest(&mut self, budget: &mut Budget) {
        if let Self::Whole(packet) = self
            && let Some(bytes) = packet.bytes()
        {
            let resting = Self::Resting(bytes.to_vec().into());
            budget.give_back(self.charge() - resting.charge());
            *self = resting;
        }
    }

    pub(super) fn clear(&mut self, budget: &mut Budget) {
        budget.give_back(self.charge());
        *self = Self::None;
    }

    fn ack(&self) -> Option<SeqNumber> {
        match self {
            Self::None => None,
            Self::Whole(packet) => ack_of(packet),
            Self::Resting(_) => self.packet().as_ref().and_then(ack_of),
        }
    }

    fn replace(&mut self, packet: &Packet, cx: &mut Context<'_>) {
        cx.budget.give_back(self.charge());
        if !cx.budget.take(charge_whole(packet)) {
            cx.counters.not_kept += 1;
            *self = Self::None;
            return;
        }
        match self {
            Self::Whole(kept) => kept.as_mut().clone_from(packet),
            Self::None | Self::Resting(_) => *self = Self::Whole(Box::new(packet.clone())),
        }
    }

    /// Memory that is charged for it.
    fn charge(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Whole(packet) => charge_whole(packet),
            Self::Resting(bytes) => bytes.len() as u64,
        }
    }
}

fn charge_whole(packet: &Packet) -> u64 {
    u64::from(packet.total_len()) + size_of::<Packet>() as u64
}

/// What a segment of the established connection acknowledges; a SYN-ACK would wake nobody.
fn ack_of(packet: &Packet) -> Option<SeqNumber> {
    let tcp = packet.tcp()?;
    (tcp.has(TcpFlags::ACK) && !tcp.has(TcpFlags::SYN)).then_some(tcp.ack)
}
