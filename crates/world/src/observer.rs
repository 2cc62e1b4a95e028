//! Everything that is watched while packets cross: counts, trace, capture.

use crate::capture::{Capture, Mark};
use crate::frame::SimFrame;
use crate::side::Side;
use crate::trace::{Fate, Origin, Trace, TracedPacket, TracedSegment};
use alloc::boxed::Box;
use outlast_core::mechanisms::path::{SendReason, TakeReason};
use outlast_core::time::Instant;
use outlast_link::{DropReason, Way};
use outlast_wire::Packet;

/// Told of every step that a packet takes.
#[derive(Debug)]
pub(crate) struct Observer {
    next_serial: u64,
    pub(crate) counts: Counts,
    pub(crate) trace: Option<Trace>,
    pub(crate) capture: Option<Capture>,
}

/// What the path counts besides the link's own counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Packets that hosts sent.
    pub sent: u64,
    /// Packets handed to hosts.
    pub received: u64,
    /// Packets that gateways took.
    pub taken: u64,
    /// Packets that gateways sent into the link.
    pub resent: u64,
    /// Packets that gateways handed to their own host.
    pub rereceived: u64,
}

impl Observer {
    pub(crate) fn new(trace: Option<Trace>, capture: Option<Capture>) -> Self {
        Self {
            next_serial: 0,
            counts: Counts::default(),
            trace,
            capture,
        }
    }

    /// A host has sent something. Gives it its number.
    pub(crate) fn sent(&mut self, now: Instant, side: Side, packet: Box<Packet>) -> SimFrame {
        self.counts.sent += 1;
        self.enter(now, side, side.outward(), Origin::Host, packet)
    }

    /// The gateway of `side` sends a packet into the link. Gives it its number.
    pub(crate) fn resent(
        &mut self,
        now: Instant,
        side: Side,
        packet: Box<Packet>,
        reason: SendReason,
    ) -> SimFrame {
        self.counts.resent += 1;
        self.enter(now, side, side.outward(), Origin::Resent(reason), packet)
    }

    /// The gateway of `side` hands a packet to its own host.
    pub(crate) fn rereceived(
        &mut self,
        now: Instant,
        side: Side,
        packet: Box<Packet>,
        reason: SendReason,
    ) -> SimFrame {
        self.counts.rereceived += 1;
        let way = side.peer().outward();
        self.enter(now, side, way, Origin::Rereceived(reason), packet)
    }

    /// The gateway of `side` took a packet on its way into the link.
    pub(crate) fn taken(&mut self, frame: &SimFrame, side: Side, reason: TakeReason) {
        self.counts.taken += 1;
        self.settle(frame.serial, Fate::Taken(reason));
        if let Some(capture) = &mut self.capture {
            capture.settle(side, frame.serial, Mark::Taken(reason));
        }
    }

    /// The gateway of `side` took a packet that came out of the link.
    pub(crate) fn taken_behind(
        &mut self,
        now: Instant,
        frame: &SimFrame,
        side: Side,
        reason: TakeReason,
    ) {
        self.counts.taken += 1;
        self.settle(frame.serial, Fate::Taken(reason));
        if let Some(capture) = &mut self.capture {
            capture.settle(side.peer(), frame.serial, Mark::Crossed);
            capture.arrived(now, side, &frame.packet, Some(Mark::Taken(reason)));
        }
    }

    /// A packet comes to the host of a side, over the link or from its own gateway.
    pub(crate) fn arrived(&mut self, now: Instant, frame: &SimFrame) {
        self.counts.received += 1;
        self.settle(frame.serial, Fate::Arrived(now));
    }

    /// A packet came out of the link at `side`, and goes on to the host.
    pub(crate) fn crossed(&mut self, now: Instant, frame: &SimFrame, side: Side) {
        if let Some(capture) = &mut self.capture {
            capture.settle(side.peer(), frame.serial, Mark::Crossed);
            capture.arrived(now, side, &frame.packet, None);
        }
    }

    /// The link dropped a packet.
    pub(crate) fn dropped(&mut self, now: Instant, way: Way, frame: &SimFrame, why: DropReason) {
        self.settle(frame.serial, Fate::Dropped(now, why));
        if let Some(capture) = &mut self.capture {
            let near_end = Side::reached_by(way).peer();
            capture.settle(near_end, frame.serial, Mark::Dropped(why));
        }
    }

    /// The link went up or down.
    pub(crate) fn carrier(&mut self, now: Instant, up: bool) {
        if let Some(trace) = &mut self.trace {
            trace.carrier_change(now, up);
        }
        if let Some(capture) = &mut self.capture {
            capture.carrier(now, up);
        }
    }

    fn enter(
        &mut self,
        now: Instant,
        side: Side,
        way: Way,
        origin: Origin,
        packet: Box<Packet>,
    ) -> SimFrame {
        let serial = self.next_serial;
        self.next_serial += 1;
        if let Some(trace) = &mut self.trace {
            let traced = TracedPacket {
                at: now,
                way,
                origin,
                length: packet.total_len(),
                segment: TracedSegment::of(&packet),
                fate: Fate::OnTheWay,
            };
            trace.push(serial, traced);
        }
        if let Some(capture) = &mut self.capture {
            match origin {
                Origin::Rereceived(reason) => {
                    capture.arrived(now, side, &packet, Some(Mark::Injected(reason)));
                }
                Origin::Resent(reason) => capture.sent(now, side, serial, &packet, Some(reason)),
                Origin::Host => capture.sent(now, side, serial, &packet, None),
            }
        }
        SimFrame { packet, serial }
    }

    fn settle(&mut self, serial: u64, fate: Fate) {
        if let Some(trace) = &mut self.trace {
            trace.settle(serial, fate);
        }
    }
}
