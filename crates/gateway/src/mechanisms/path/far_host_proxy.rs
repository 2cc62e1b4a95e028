//! Speaking to the near host on the far host's behalf: what acknowledging ahead needs.
//!
//! An acknowledgement that the near host takes for the far host's has its addresses, ports and
//! next sequence number, and a timestamp that is not older than the last one (PAWS, RFC 7323,
//! section 5). It echoes the timestamp of the segment that it acknowledges, so that the near host
//! measures no round trip that was none.

use crate::tracking::{FlowKey, TcpFlow};
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};

/// What packets of our own carry (RFC 1700's default).
const HOP_LIMIT: u8 = 64;

/// What the far host has said last.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FarHostProxy {
    /// Its newest timestamp; `None` before the first, and without the option.
    clock: Option<u32>,
}

impl FarHostProxy {
    /// A host whose newest timestamp another gateway has heard.
    pub(super) const fn with_clock(clock: Option<u32>) -> Self {
        Self { clock }
    }

    /// The far host's newest timestamp.
    pub(super) const fn clock(self) -> Option<u32> {
        self.clock
    }

    /// The far host has sent this.
    pub(super) fn hear(&mut self, tcp: &TcpHeader) {
        if let Some(stamps) = tcp.options.timestamps {
            self.clock = Some(newer(self.clock, stamps.value));
        }
    }

    /// An acknowledgement of the near host's `segment` and everything before it, that closes the
    /// window; `None` if `segment` is not TCP.
    pub(super) fn close_window(self, flow: &TcpFlow, segment: &Packet) -> Option<Packet> {
        self.speak(flow, segment, TcpFlags::ACK, 0)
    }

    /// An acknowledgement of `segment` and everything before it, that opens the window.
    ///
    /// The window is the one that the far host has offered beyond `segment`. `None` if `segment` is
    /// not TCP.
    pub(super) fn open_window(self, flow: &TcpFlow, segment: &Packet) -> Option<Packet> {
        let end = segment.tcp()?.seq + segment.sequence_len();
        self.speak(flow, segment, TcpFlags::ACK, flow.offered_beyond(end))
    }

    /// A reset of the connection to the near host, which has sent `segment` and was told that all
    /// of it has arrived. Its sequence number is the one expected next (RFC 5961, section 3.2).
    pub(super) fn reset_near(self, flow: &TcpFlow, segment: &Packet) -> Option<Packet> {
        self.speak(flow, segment, TcpFlags::RST | TcpFlags::ACK, 0)
    }

    /// An acknowledgement of everything before a number, with a window as it stands in the header;
    /// it echoes `echo` if the far host uses timestamps.
    pub(super) fn acknowledge(
        self,
        key: &FlowKey,
        flow: &TcpFlow,
        (ack, window): (SeqNumber, u16),
        echo: u32,
    ) -> Packet {
        let ip = IpHeader {
            source: key.far.ip(),
            destination: key.near.ip(),
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            identification: 0,
        };
        let timestamps = self.clock.map(|value| Timestamps { value, echo });
        let header = TcpHeader {
            source_port: key.far.port(),
            destination_port: key.near.port(),
            seq: flow.far.next,
            ack,
            flags: TcpFlags::ACK,
            window,
            options: TcpOptions {
                timestamps,
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        Packet::tcp_segment(ip, header, &[])
    }

    fn speak(
        self,
        flow: &TcpFlow,
        segment: &Packet,
        flags: TcpFlags,
        window: u16,
    ) -> Option<Packet> {
        let tcp = segment.tcp()?;
        // What the near host echoes it has heard, be it before this gateway heard anything.
        let stamps = tcp.options.timestamps.map(|of_segment| Timestamps {
            value: newer(self.clock, of_segment.echo),
            echo: of_segment.value,
        });
        let near = segment.header().ip;
        let ip = IpHeader {
            source: near.destination,
            destination: near.source,
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            ..near
        };
        let header = TcpHeader {
            source_port: tcp.destination_port,
            destination_port: tcp.source_port,
            seq: flow.far.next,
            ack: tcp.seq + segment.sequence_len(),
            flags,
            window,
            options: TcpOptions {
                timestamps: stamps,
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        Some(Packet::tcp_segment(ip, header, &[]))
    }
}

/// A reset of the connection to the far host, in the name of the near host that has sent
/// `segment`. Its sequence number is the one expected next.
pub(super) fn reset_far(flow: &TcpFlow, segment: &Packet) -> Option<Packet> {
    let tcp = segment.tcp()?;
    let header = TcpHeader {
        source_port: tcp.source_port,
        destination_port: tcp.destination_port,
        seq: flow.near.acked,
        ack: flow.far.next,
        flags: TcpFlags::RST | TcpFlags::ACK,
        ..TcpHeader::default()
    };
    Some(Packet::tcp_segment(segment.header().ip, header, &[]))
}

/// The newer of two timestamps, which wrap (RFC 7323, section 5.2).
pub(crate) fn newer(known: Option<u32>, other: u32) -> u32 {
    known.map_or(other, |known| SeqNumber(known).max(SeqNumber(other)).0)
}
