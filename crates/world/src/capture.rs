//! Captures in memory of both ends of a link. Times count from the beginning of the simulation.

use crate::path::{Seen, Watch};
use crate::side::Side;
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use outlast_base::time::Duration;
use outlast_wire::Packet;
use outlast_wire::pcapng::{Encoder, EnhancedPacket, InterfaceId, Section};

/// The files, by [`Side::index`], if they are asked for.
#[derive(Debug)]
pub(crate) struct Captures(Option<[(Encoder, InterfaceId); 2]>);

impl Captures {
    /// Captures of the two ends of the link that is called `link`, or none.
    pub(crate) fn new(link: &str, is_wanted: bool) -> Self {
        let end = |side| {
            let mut encoder = Encoder::new(&Section::of_application("outlast"));
            let interface = encoder.interface(&format!("{link}, {side} end"));
            (encoder, interface)
        };
        Self(is_wanted.then(|| Side::BOTH.map(end)))
    }

    /// The files, by [`Side::index`].
    pub(crate) fn finish(self) -> Option<[Vec<u8>; 2]> {
        Some(self.0?.map(|(mut encoder, _)| encoder.take()))
    }
}

impl Watch for Captures {
    type Load = Box<Packet>;

    fn captured(&mut self, side: Side, seen: Seen) {
        let Some(ends) = &mut self.0 else { return };
        let (encoder, interface) = &mut ends[side.index()];
        let time = Duration::from_nanos(seen.at.as_nanos());
        encoder.packet(&EnhancedPacket {
            direction: seen.direction,
            comment: seen.comment.map(Into::into),
            ..EnhancedPacket::new(*interface, time, &seen.bytes)
        });
    }
}
