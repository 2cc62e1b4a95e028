//! Compression between the two ends of the link, behind their gateways.
//!
//! What crosses the link is the compressed packet, and its length is what the link counts. The other end restores
//! it in earnest. A modelled segment has no bytes to deliver, so the original goes on if it is what was restored.

use super::load::{Carried, Form, Load};
use super::{LINK, Path, Watch};
use crate::side::Side;
use alloc::boxed::Box;
use outlast_base::time::Instant;
use outlast_compression::{Arrival, Compression, Config, Counters, Level, Part};
use outlast_gateway::mechanisms::path::SendReason;
use outlast_link::{ConfiguredRate, LinkConfig};
use outlast_wire::Packet;

/// The two ends of a link, by [`Side::index`].
#[derive(Debug)]
pub(super) struct Ends([Compression; 2]);

impl Ends {
    /// The fixed end offers, the mobile's accepts. Each compresses as is fit for its way's rate.
    ///
    /// They are told of the rate what `rate` says.
    pub(super) fn new(link: &LinkConfig, rate: ConfiguredRate) -> Box<Self> {
        Box::new(Self(Side::BOTH.map(|side| {
            Compression::new(Config {
                part: match side {
                    Side::Fixed => Part::Offers,
                    Side::Mobile => Part::Accepts,
                },
                level: Level::of_rate(link.pipe(side.outward()).rate),
                rate: rate.of(link.pipe(side.outward()).rate),
                // The model's links carry packets of any length.
                longest: u16::MAX.into(),
                seed: link.seed,
                ..Config::default()
            })
        })))
    }

    pub(super) fn counters(&self) -> [Counters; 2] {
        self.0.each_ref().map(|end| *end.counters())
    }
}

impl<W: Watch> Path<W> {
    /// A packet goes onto the link at `side`; says what crosses in its stead.
    pub(super) fn compress(
        &mut self,
        now: Instant,
        side: Side,
        frame: Carried<W::Load>,
    ) -> Carried<W::Load> {
        let (Some(ends), Form::Plain, Some(packet)) =
            (&mut self.compression, &frame.form, frame.load.packet())
        else {
            return frame;
        };
        let end = &mut ends.0[side.index()];
        let smaller = end.handle_to_link(now, packet);
        if let (Some(gateway), Some(rate)) = (&mut self.gateways[side.index()], end.poll_rate()) {
            gateway.adjust_rate(LINK.interface, rate);
        }
        let frame = match smaller {
            Some(smaller) => Carried {
                form: Form::Compressed(Box::new(smaller)),
                ..frame
            },
            None => frame,
        };
        self.send_between(now, side);
        frame
    }

    /// A packet has come out of the link at `side`; `None` if it was for this end alone, or is lost.
    pub(super) fn restore(
        &mut self,
        now: Instant,
        side: Side,
        frame: Carried<W::Load>,
    ) -> Option<Carried<W::Load>> {
        let Some(ends) = &mut self.compression else {
            return Some(frame);
        };
        let end = &mut ends.0[side.index()];
        let crossed = match &frame.form {
            Form::Compressed(packet) => Some(&**packet),
            Form::Plain | Form::Between => frame.load.packet(),
        };
        let arrival = crossed.map_or(Arrival::Unchanged, |packet| {
            end.handle_from_link(now, packet)
        });
        let Carried {
            mut load, serial, ..
        } = frame;
        let goes_on = match arrival {
            Arrival::Unchanged => true,
            Arrival::Restored(restored) => {
                let is_original = restored.to_bytes() == load.to_bytes();
                if load.packet().is_some_and(|packet| packet.bytes().is_some()) {
                    load = restored.into();
                }
                is_original
            }
            Arrival::Consumed => false,
        };
        self.send_between(now, side);
        goes_on.then_some(Carried {
            load,
            serial,
            form: Form::Plain,
        })
    }

    /// Puts offers and answers of the end at `side` onto the link.
    fn send_between(&mut self, now: Instant, side: Side) {
        while let Some(packet) = self.next_between(side) {
            let reason = SendReason::Compression;
            let mut frame = self.observer.resent(now, side, packet.into(), reason);
            frame.form = Form::Between;
            self.link.handle_packet(now, side.outward(), frame);
        }
        if self.link.has_news() {
            self.drain_link(now);
        }
    }

    fn next_between(&mut self, side: Side) -> Option<Packet> {
        let ends = self.compression.as_mut()?;
        ends.0[side.index()].poll_transmit()
    }
}
