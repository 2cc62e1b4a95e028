//! What a gateway wants sent, and what it tells.

use crate::counters::Counters;
use crate::links::{Direction, LinkEvent, LinkId, SilentLink};
use crate::mechanisms::path::{Outgoing, SendReason, Standing};
use crate::tracking::FlowKey;
use alloc::collections::VecDeque;
use outlast_base::time::{Duration, Instant};
use outlast_wire::Packet;

/// A packet to send.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// The link that it is sent on, or seems to come from.
    pub link: LinkId,
    /// [`Direction::ToLink`]: into the link's queue. [`Direction::FromLink`]: to this side, as
    /// if it had come from the link.
    pub direction: Direction,
    /// The packet.
    pub packet: Packet,
    /// Why it is sent.
    pub reason: SendReason,
}

/// An event for a status page or a log.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// A link changed its state.
    Link(LinkEvent),
    /// A link leaves data unanswered: it may be down. Packets towards it pass as before.
    Silent {
        /// Which one.
        link: LinkId,
        /// When the first of that data went towards it.
        since: Instant,
    },
    /// A flow resumed, this long after its link was back: the far host acknowledges new bytes, or the next
    /// that the near host lacks crosses. An indicator's word counts also where silence followed it.
    Resumed {
        /// The flow.
        flow: FlowKey,
        /// Its link.
        link: LinkId,
        /// Time since link-up.
        after: Duration,
        /// Smoothed round-trip time across the link before the outage, if it was measured.
        round_trip: Option<Duration>,
    },
    /// A segment was acknowledged for the flow's far host: the gateway has the only copy. Whoever
    /// makes that known, or writes it down, does so before the packets that the gateway wants sent.
    Frozen {
        /// The flow.
        flow: FlowKey,
    },
    /// That is over: the far host has acknowledged, or the connection has ended.
    Thawed {
        /// The flow.
        flow: FlowKey,
        /// The gateway has ended it: a reset to each host is among the packets to send.
        is_reset: bool,
    },
}

/// Packets that wait for the driver to send them and events that wait to be told, oldest first; and counts.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    packets: VecDeque<Transmit>,
    events: VecDeque<Event>,
    pub(crate) counters: Counters,
}

impl Outbox {
    pub(crate) fn send(&mut self, packet: Transmit) {
        self.packets.push_back(packet);
    }

    /// Sends what a part of the gateway wants sent on `link`, and counts it by its reason.
    pub(crate) fn send_counted(&mut self, link: LinkId, outgoing: Outgoing) {
        let Outgoing {
            direction,
            packet,
            reason,
        } = outgoing;
        let counters = &mut self.counters;
        match (direction, reason) {
            (_, SendReason::Unreachable) => counters.wakes += 1,
            (_, SendReason::TooBig) => counters.path_mtus_lowered += 1,
            (_, SendReason::Question | SendReason::Overdue) => counters.questions += 1,
            (Direction::FromLink, _) => counters.rereceived += 1,
            // Counted where it is sent.
            (Direction::ToLink, SendReason::Probe) => {}
            (Direction::ToLink, SendReason::NewestAck | SendReason::Untimed) => {
                counters.acks_resent += 1;
            }
            (Direction::ToLink, _) => counters.resent += 1,
        }
        self.send(Transmit {
            link,
            direction,
            packet,
            reason,
        });
    }

    pub(crate) fn tell(&mut self, event: Event) {
        self.events.push_back(event);
    }

    /// Tells of a link that is suspected from now on, if there is one.
    pub(crate) fn tell_silent(&mut self, silent: Option<SilentLink>) {
        if let Some(SilentLink { link, since }) = silent {
            self.counters.silences += 1;
            self.tell(Event::Silent { link, since });
        }
    }

    /// Tells the event, if there is one.
    pub(crate) fn tell_if(&mut self, event: Option<Event>) {
        self.events.extend(event);
    }

    /// Takes the oldest packet.
    pub(crate) fn next_packet(&mut self) -> Option<Transmit> {
        self.packets.pop_front()
    }

    /// Takes the oldest event.
    pub(crate) fn next_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }
}

/// Why the link dropped a packet that it had been given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum DropCause {
    /// It was down, or went down with the packet in its queue.
    Outage,
    /// Its queue was full: a sign of congestion, for the sender to see.
    Congestion,
}

impl Event {
    /// The event for a connection that has come from one standing to another.
    pub(crate) const fn of_standing(flow: FlowKey, was: Standing, is: Standing) -> Option<Self> {
        match (was, is) {
            (_, Standing::Frozen) => Some(Self::Frozen { flow }),
            (Standing::Frozen, _) => Some(Self::Thawed {
                flow,
                is_reset: matches!(is, Standing::Broken),
            }),
            _ => None,
        }
    }
}
