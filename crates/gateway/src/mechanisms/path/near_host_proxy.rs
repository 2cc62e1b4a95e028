//! Speaking to the far host on the near host's behalf: asking whether it is there, and what it has sent.
//!
//! What is asked is what a host's own keep-alive asks (RFC 1122, section 4.2.3.6): a bare
//! acknowledgement whose sequence number is one before what the far host expects. It carries no data
//! and acknowledges what the near host has acknowledged, with its newest timestamps and window. Every
//! TCP answers a segment that is outside its window with an acknowledgement (RFC 9293, section
//! 3.10.7.4), whose own sequence number is the one behind all that the far host has sent. Without the
//! garbage octet: that would be answered with a DSACK, by which the sender would take what it has
//! repeated for spurious. Linux answers bare ones twice a second and connection, the first one at once.

use crate::tracking::{FlowKey, TcpFlow};
use outlast_wire::tcp::{TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};

/// What packets of our own carry (RFC 1700's default).
const HOP_LIMIT: u8 = 64;

/// What the near host has said last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct NearHostProxy {
    /// Its newest timestamps: as it sent them, or as the far host echoes them, if those are newer. What stays in the
    /// kernel is not all heard here, and Linux 6.18 does not answer an old acknowledgement with an old timestamp.
    stamps: Option<Timestamps>,
    /// Its newest window, as on the wire: also right where its SYN was not seen, and so nobody knows
    /// how many bytes that are.
    window: Option<u16>,
}

impl NearHostProxy {
    /// The near host has sent this.
    pub(crate) fn hear(&mut self, tcp: &TcpHeader) {
        self.stamps = tcp.options.timestamps;
        // That of a SYN counts in other units (RFC 7323, section 2.2).
        self.window = (!tcp.has(TcpFlags::SYN)).then_some(tcp.window);
    }

    /// The far host has sent this, and so has taken the timestamp that it echoes.
    pub(crate) fn hear_echo(&mut self, tcp: &TcpHeader) {
        let echoing = tcp.options.timestamps.filter(|_| tcp.has(TcpFlags::ACK));
        // Zero is no echo.
        let Some(far) = echoing.filter(|far| far.echo != 0) else {
            return;
        };
        let is_older = |near: Timestamps| Timestamps::is_older(far.echo, near.value);
        if !self.stamps.is_some_and(is_older) {
            self.stamps = Some(Timestamps {
                value: far.echo,
                echo: far.value,
            });
        }
    }

    /// Its newest timestamps.
    pub(crate) const fn stamps(self) -> Option<Timestamps> {
        self.stamps
    }

    /// A keep-alive of a connection, in the near host's name. Like all that is said in its name, `None` where nobody
    /// knows what that host has acknowledged.
    pub(crate) fn keep_alive(self, key: &FlowKey, flow: &TcpFlow) -> Option<Packet> {
        self.speak(key, flow, flow.near.acked - 1, self.stamps)
    }

    /// A bare acknowledgement, in the near host's name, to a far host that expects `seq` next: the far host
    /// takes the near host's newest timestamp from it (RFC 7323, section 4.3).
    pub(crate) fn acknowledge(
        self,
        key: &FlowKey,
        flow: &TcpFlow,
        seq: SeqNumber,
    ) -> Option<Packet> {
        self.speak(key, flow, seq, self.stamps)
    }

    /// A bare acknowledgement, in the near host's name, that has no timestamps also where its connection has.
    pub(crate) fn acknowledge_untimed(self, key: &FlowKey, flow: &TcpFlow) -> Option<Packet> {
        self.speak(key, flow, flow.near.next, None)
    }

    fn speak(
        self,
        key: &FlowKey,
        flow: &TcpFlow,
        seq: SeqNumber,
        timestamps: Option<Timestamps>,
    ) -> Option<Packet> {
        let ack = flow.acknowledged_by_near()?;
        let ip = IpHeader {
            source: key.near.ip(),
            destination: key.far.ip(),
            hop_limit: HOP_LIMIT,
            traffic_class: 0,
            identification: 0,
        };
        let header = TcpHeader {
            source_port: key.near.port(),
            destination_port: key.far.port(),
            seq,
            ack,
            flags: TcpFlags::ACK,
            window: self.window.unwrap_or_else(|| flow.near_window(ack)),
            options: TcpOptions {
                timestamps,
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        Some(Packet::tcp_segment(ip, header, &[]))
    }
}
