//! Everything that is watched while packets cross: counts, trace, captures.

use super::ledger::{Ledger, Mark, Seen};
use super::load::{Carried, Form, Load};
use crate::side::Side;
use crate::trace::{Fate, Origin, Trace, TracedPacket, TracedSegment};
use outlast_base::time::Instant;
use outlast_gateway::mechanisms::path::{SendReason, TakeReason};
use outlast_link::{DropReason, Way};

/// What a driver wants to be told besides, and where captured packets go.
pub trait Watch {
    /// What crosses.
    type Load: Load;

    /// The end at `side` saw a packet, whose fate is known by now: in the order of time, if
    /// captures are asked for.
    fn captured(&mut self, side: Side, seen: Seen);
}

/// Told of every step that a packet takes.
#[derive(Debug)]
pub(super) struct Observer<W> {
    next_serial: u64,
    pub(super) counts: Counts,
    /// How often the link went down.
    pub(super) outages: u64,
    pub(super) trace: Option<Trace>,
    ledger: Option<Ledger>,
    /// There is a trace or a ledger.
    is_recording: bool,
    pub(super) watch: W,
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
    /// Bytes of what gateways sent, either way: of whole IP packets.
    pub injected_bytes: u64,
}

impl Counts {
    /// Packets that gateways put on the path, either way.
    #[must_use]
    pub fn injected(&self) -> u64 {
        self.resent + self.rereceived
    }
}

impl<W: Watch> Observer<W> {
    pub(super) fn new(trace: Option<Trace>, is_captured: bool, watch: W) -> Self {
        Self {
            next_serial: 0,
            counts: Counts::default(),
            outages: 0,
            is_recording: trace.is_some() || is_captured,
            trace,
            ledger: is_captured.then(Ledger::default),
            watch,
        }
    }

    /// A host has sent something. Gives it its number.
    #[inline]
    pub(super) fn sent(&mut self, now: Instant, side: Side, load: W::Load) -> Carried<W::Load> {
        self.counts.sent += 1;
        if !self.is_recording {
            let serial = self.next_serial;
            self.next_serial += 1;
            return Carried {
                load,
                serial,
                form: Form::Plain,
            };
        }
        self.enter(now, side, side.outward(), Origin::Host, load)
    }

    /// The gateway of `side` sends a packet into the link. Gives it its number.
    pub(super) fn resent(
        &mut self,
        now: Instant,
        side: Side,
        load: W::Load,
        reason: SendReason,
    ) -> Carried<W::Load> {
        self.counts.resent += 1;
        self.counts.injected_bytes += u64::from(load.wire_len());
        self.enter(now, side, side.outward(), Origin::Resent(reason), load)
    }

    /// The gateway of `side` hands a packet to its own host.
    pub(super) fn rereceived(
        &mut self,
        now: Instant,
        side: Side,
        load: W::Load,
        reason: SendReason,
    ) -> Carried<W::Load> {
        self.counts.rereceived += 1;
        self.counts.injected_bytes += u64::from(load.wire_len());
        let way = side.peer().outward();
        self.enter(now, side, way, Origin::Rereceived(reason), load)
    }

    /// The gateway of `side` took a packet on its way into the link.
    pub(super) fn taken(&mut self, frame: &Carried<W::Load>, side: Side, reason: TakeReason) {
        self.counts.taken += 1;
        self.settle(frame.serial, Fate::Taken(reason));
        self.note(|ledger| ledger.settle(side, frame.serial, Mark::Taken(reason)));
    }

    /// The gateway of `side` took a packet that came out of the link.
    pub(super) fn taken_behind(
        &mut self,
        now: Instant,
        frame: &Carried<W::Load>,
        side: Side,
        reason: TakeReason,
    ) {
        self.counts.taken += 1;
        self.settle(frame.serial, Fate::Taken(reason));
        self.note(|ledger| {
            ledger.settle(side.peer(), frame.serial, Mark::Crossed);
            ledger.arrived(now, side, &frame.load, Some(Mark::Taken(reason)));
        });
    }

    /// A packet leaves the path, over the link or from the gateway of its own side.
    #[inline]
    pub(super) fn arrived(&mut self, now: Instant, frame: &Carried<W::Load>) {
        self.counts.received += 1;
        if self.is_recording {
            self.settle(frame.serial, Fate::Arrived(now));
        }
    }

    /// A packet came out of the link at `side`, and goes on to the host.
    #[inline]
    pub(super) fn crossed(&mut self, now: Instant, frame: &Carried<W::Load>, side: Side) {
        if !self.is_recording {
            return;
        }
        self.note(|ledger| {
            ledger.settle(side.peer(), frame.serial, Mark::Crossed);
            ledger.arrived(now, side, &frame.load, None);
        });
    }

    /// The link dropped a packet.
    pub(super) fn dropped(
        &mut self,
        now: Instant,
        way: Way,
        frame: &Carried<W::Load>,
        why: DropReason,
    ) {
        self.settle(frame.serial, Fate::Dropped(now, why));
        let near_end = Side::reached_by(way).peer();
        self.note(|ledger| ledger.settle(near_end, frame.serial, Mark::Dropped(why)));
    }

    /// The link went up or down.
    pub(super) fn carrier(&mut self, now: Instant, up: bool) {
        self.outages += u64::from(!up);
        if let Some(trace) = &mut self.trace {
            trace.carrier_change(now, up);
        }
        self.note(|ledger| ledger.carrier(now, up));
    }

    /// Nothing more is to come.
    pub(super) fn close(&mut self) {
        self.note(Ledger::close);
    }

    #[inline(never)]
    fn enter(
        &mut self,
        now: Instant,
        side: Side,
        way: Way,
        origin: Origin,
        load: W::Load,
    ) -> Carried<W::Load> {
        let serial = self.next_serial;
        self.next_serial += 1;
        if let Some(trace) = &mut self.trace {
            let traced = TracedPacket {
                at: now,
                way,
                origin,
                length: load.wire_len(),
                segment: load.packet().and_then(TracedSegment::of),
                fate: Fate::OnTheWay,
            };
            trace.push(serial, traced);
        }
        self.note(|ledger| match origin {
            Origin::Rereceived(reason) => {
                ledger.arrived(now, side, &load, Some(Mark::Injected(reason)));
            }
            Origin::Resent(reason) => ledger.sent(now, side, serial, &load, Some(reason)),
            Origin::Host => ledger.sent(now, side, serial, &load, None),
        });
        Carried {
            load,
            serial,
            form: Form::Plain,
        }
    }

    /// Has something written into the ledger, if there is one, and gives out what is decided.
    #[inline]
    fn note(&mut self, write: impl FnOnce(&mut Ledger)) {
        let Some(ledger) = &mut self.ledger else {
            return;
        };
        write(ledger);
        for side in Side::BOTH {
            while let Some(seen) = ledger.poll(side) {
                self.watch.captured(side, seen);
            }
        }
    }

    #[inline]
    fn settle(&mut self, serial: u64, fate: Fate) {
        if let Some(trace) = &mut self.trace {
            trace.settle(serial, fate);
        }
    }
}
