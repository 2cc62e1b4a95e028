//! Everything that is watched while packets cross: counts, traffic, trace, capture.

use crate::capture::{Capture, Mark};
use crate::frame::{Content, LabFrame};
use crate::status::Status;
use crate::traffic::BothWays;
use outlast_core::mechanisms::path::{SendReason, TakeReason};
use outlast_core::time::Instant;
use outlast_link::{DropReason, Frame, Way};
use outlast_wire::{Packet, Transport};
use outlast_world::Side;
use outlast_world::trace::{Fate, Origin, Trace, TracedPacket, TracedSegment};
use std::sync::Arc;

/// Told of every step that a packet takes.
#[derive(Debug)]
pub(crate) struct Observer {
    next_serial: u64,
    pub(crate) counts: Counts,
    pub(crate) traffic: BothWays,
    pub(crate) trace: Option<Trace>,
    pub(crate) capture: Option<Capture>,
    /// When the workload's first byte came to the link.
    pub(crate) started: Option<Instant>,
    status: Arc<Status>,
}

/// What the path counts besides the link's own counters.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Packets that hosts sent, those that no gateway could look into among them.
    pub sent: u64,
    /// Packets handed to hosts.
    pub received: u64,
    /// Packets from hosts that are no whole IP packets.
    pub opaque: u64,
    /// Packets that gateways took.
    pub taken: u64,
    /// Packets that gateways sent into the link.
    pub resent: u64,
    /// Packets that gateways handed to their own host.
    pub rereceived: u64,
    /// Packets that a host's kernel had no room for.
    pub refused: u64,
}

impl Observer {
    pub(crate) fn new(trace: Option<Trace>, capture: Option<Capture>, status: Arc<Status>) -> Self {
        Self {
            next_serial: 0,
            counts: Counts::default(),
            traffic: BothWays::default(),
            trace,
            capture,
            started: None,
            status,
        }
    }

    /// Whether `content` is the workload's first byte. Handshakes carry none.
    pub(crate) fn is_first_byte(&self, content: &Content) -> bool {
        let carries = |packet: &Packet| {
            let header = packet.header();
            let transport = matches!(header.transport, Transport::Tcp(_) | Transport::Udp(_));
            transport && header.payload_len > 0
        };
        self.started.is_none() && content.packet().is_some_and(carries)
    }

    /// The workload's first byte is at the link.
    pub(crate) fn start(&mut self, now: Instant) {
        self.started = Some(now);
        self.status.start(now);
    }

    /// A host has sent something. Gives it its number.
    pub(crate) fn sent(&mut self, now: Instant, side: Side, content: Content) -> LabFrame {
        self.counts.sent += 1;
        match content.packet() {
            Some(packet) => self.traffic.way_mut(side.outward()).sent(packet),
            None => self.counts.opaque += 1,
        }
        self.enter(now, side, side.outward(), Origin::Host, content)
    }

    /// The gateway of `side` sends a packet into the link. Gives it its number.
    pub(crate) fn resent(
        &mut self,
        now: Instant,
        side: Side,
        packet: Packet,
        reason: SendReason,
    ) -> LabFrame {
        self.counts.resent += 1;
        self.status.count_injected();
        self.enter(
            now,
            side,
            side.outward(),
            Origin::Resent(reason),
            Content::Packet(packet),
        )
    }

    /// The gateway of `side` hands a packet to its own host.
    pub(crate) fn rereceived(
        &mut self,
        now: Instant,
        side: Side,
        packet: Packet,
        reason: SendReason,
    ) -> LabFrame {
        self.counts.rereceived += 1;
        self.status.count_injected();
        let way = side.peer().outward();
        self.enter(
            now,
            side,
            way,
            Origin::Rereceived(reason),
            Content::Packet(packet),
        )
    }

    /// The gateway of `side` took a packet on its way into the link.
    pub(crate) fn taken(&mut self, frame: &LabFrame, side: Side, reason: TakeReason) {
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
        frame: &LabFrame,
        side: Side,
        reason: TakeReason,
    ) {
        self.counts.taken += 1;
        self.settle(frame.serial, Fate::Taken(reason));
        if let Some(capture) = &mut self.capture {
            capture.settle(side.peer(), frame.serial, Mark::Crossed);
            capture.arrived(now, side, &frame.content, Some(Mark::Taken(reason)));
        }
    }

    /// A packet comes to the host of `side`, over the link or from its own gateway.
    pub(crate) fn arrived(&mut self, now: Instant, frame: &LabFrame, side: Side) {
        self.counts.received += 1;
        let way = side.peer().outward();
        if let Some(packet) = frame.content.packet() {
            self.traffic.way_mut(way).arrived(now, packet);
            self.status
                .set_delivered(way, self.traffic.way(way).delivered().total());
        }
        self.settle(frame.serial, Fate::Arrived(now));
    }

    /// A packet came out of the link at `side`, and goes on to the host.
    pub(crate) fn crossed(&mut self, now: Instant, frame: &LabFrame, side: Side) {
        if let Some(capture) = &mut self.capture {
            capture.settle(side.peer(), frame.serial, Mark::Crossed);
            capture.arrived(now, side, &frame.content, None);
        }
    }

    /// The link dropped a packet.
    pub(crate) fn dropped(&mut self, now: Instant, way: Way, frame: &LabFrame, why: DropReason) {
        self.settle(frame.serial, Fate::Dropped(now, why));
        if let Some(capture) = &mut self.capture {
            capture.settle(
                Side::reached_by(way).peer(),
                frame.serial,
                Mark::Dropped(why),
            );
        }
    }

    /// The link went up or down.
    pub(crate) fn carrier(&mut self, now: Instant, up: bool) {
        self.status.set_link_up(up);
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
        content: Content,
    ) -> LabFrame {
        let serial = self.next_serial;
        self.next_serial += 1;
        let frame = LabFrame { content, serial };
        if let Some(trace) = &mut self.trace {
            let traced = TracedPacket {
                at: now,
                way,
                origin,
                length: u32::try_from(frame.wire_len().0).unwrap_or(u32::MAX),
                segment: frame.content.packet().and_then(TracedSegment::of),
                fate: Fate::OnTheWay,
            };
            trace.push(serial, traced);
        }
        if let Some(capture) = &mut self.capture {
            match origin {
                Origin::Rereceived(reason) => {
                    capture.arrived(now, side, &frame.content, Some(Mark::Injected(reason)));
                }
                Origin::Resent(reason) => {
                    capture.sent(now, side, serial, &frame.content, Some(reason));
                }
                Origin::Host => capture.sent(now, side, serial, &frame.content, None),
            }
        }
        frame
    }

    fn settle(&mut self, serial: u64, fate: Fate) {
        if let Some(trace) = &mut self.trace {
            trace.settle(serial, fate);
        }
    }
}
