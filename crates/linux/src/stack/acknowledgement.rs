//! Acknowledgements as this host's TCP, or a peer's, would send them now.

use outlast_host::control::ConnectionId;
use outlast_wire::tcp::{Experimental, SackBlock, TcpOptions, Timestamps};
use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::SocketAddr;

/// Ranges that the kernel remembers of what has arrived out of order.
pub(super) const SACK_BLOCKS: usize = 4;
/// Ranges that fit beside timestamps (RFC 2018, section 3).
const BESIDE_TIMESTAMPS: usize = 3;

/// What acknowledgements of both directions say, as a pass found it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Acknowledgements {
    /// Window fields on the wire, not scaled.
    pub(super) own_window: u16,
    pub(super) peer_window: u16,
    /// `None` where timestamps were not agreed on.
    pub(super) timestamps: Option<Timestamps>,
    /// What has arrived out of order, the newest first.
    pub(super) sack: [SackBlock; SACK_BLOCKS],
    pub(super) sack_count: usize,
}

/// What has been acknowledged in both directions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) snd_una: SeqNumber,
    pub(super) snd_nxt: SeqNumber,
    pub(super) rcv_nxt: SeqNumber,
}

impl Acknowledgements {
    /// The acknowledgement that this host would send of what has arrived, with the selective
    /// acknowledgements that are due.
    pub(super) fn own(&self, id: ConnectionId, progress: Progress) -> Packet {
        let mut options = TcpOptions {
            timestamps: self.timestamps,
            ..TcpOptions::default()
        };
        let room = match self.timestamps {
            Some(_) => BESIDE_TIMESTAMPS,
            None => SACK_BLOCKS,
        };
        let blocks = self.sack.iter().take(self.sack_count.min(room));
        options.sack.extend(blocks.copied());
        let header = TcpHeader {
            seq: progress.snd_nxt,
            ack: progress.rcv_nxt,
            window: self.own_window,
            options,
            ..TcpHeader::default()
        };
        bare(id.local, id.remote, header)
    }

    /// [`own`](Self::own), marked as a reconnection, with the sequence number of a keep-alive. What is in flight may
    /// be lost: only the number before it is outside the peer's window for certain.
    pub(super) fn own_marked(&self, id: ConnectionId, progress: Progress) -> Packet {
        let header = TcpHeader {
            seq: progress.snd_una - 1,
            ack: progress.rcv_nxt,
            window: self.own_window,
            options: TcpOptions {
                timestamps: self.timestamps,
                experimental: Some(Experimental::immediate_retransmission()),
                ..TcpOptions::default()
            },
            ..TcpHeader::default()
        };
        bare(id.local, id.remote, header)
    }

    /// The peer's acknowledgement that came last, once more: what is outstanding has not arrived. It
    /// bears no timestamps, as nobody but the peer knows the peer's clock; Linux takes it all the same.
    pub(super) fn of_peer(&self, id: ConnectionId, progress: Progress) -> Packet {
        let header = TcpHeader {
            seq: progress.rcv_nxt,
            ack: progress.snd_una,
            window: self.peer_window,
            ..TcpHeader::default()
        };
        bare(id.remote, id.local, header)
    }
}

/// A segment without data.
pub(super) fn bare(from: SocketAddr, to: SocketAddr, header: TcpHeader) -> Packet {
    let ip = IpHeader {
        source: from.ip(),
        destination: to.ip(),
        hop_limit: 64,
        traffic_class: 0,
        identification: 0,
    };
    let header = TcpHeader {
        source_port: from.port(),
        destination_port: to.port(),
        flags: TcpFlags::ACK,
        ..header
    };
    Packet::tcp_segment(ip, header, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acknowledgements(timestamps: Option<Timestamps>) -> Acknowledgements {
        let block = |left: u32| SackBlock {
            left: SeqNumber(left),
            right: SeqNumber(left + 100),
        };
        Acknowledgements {
            own_window: 700,
            peer_window: 500,
            timestamps,
            sack: [block(9_000), block(7_000), block(5_000), block(4_000)],
            sack_count: 4,
        }
    }

    const PROGRESS: Progress = Progress {
        snd_una: SeqNumber(100),
        snd_nxt: SeqNumber(300),
        rcv_nxt: SeqNumber(2_000),
    };

    fn id() -> ConnectionId {
        ConnectionId {
            local: "192.0.2.1:80".parse().expect("literal"),
            remote: "192.0.2.2:90".parse().expect("literal"),
        }
    }

    fn header(packet: &Packet) -> TcpHeader {
        let packet = Packet::parse(packet.to_bytes()).expect("it was built");
        packet.tcp().expect("TCP").clone()
    }

    #[test]
    fn what_this_host_says_is_what_has_arrived() {
        let clock = Timestamps { value: 7, echo: 8 };
        let said = header(&acknowledgements(Some(clock)).own(id(), PROGRESS));
        assert_eq!((said.seq, said.ack), (SeqNumber(300), SeqNumber(2_000)));
        assert_eq!((said.source_port, said.window), (80, 700));
        assert_eq!(said.options.timestamps, Some(clock));
        assert_eq!(said.options.sack.len(), 3, "no more fit beside timestamps");
        let said = header(&acknowledgements(None).own(id(), PROGRESS));
        assert_eq!(said.options.sack.len(), 4);
    }

    /// [`PROGRESS`] has data in flight, of which the peer may have nothing.
    #[test]
    fn a_reconnection_is_marked_and_acceptable_to_no_peer() {
        let clock = Timestamps { value: 7, echo: 8 };
        let said = header(&acknowledgements(Some(clock)).own_marked(id(), PROGRESS));
        assert_eq!((said.seq, said.ack), (SeqNumber(99), SeqNumber(2_000)));
        assert_eq!(said.options.timestamps, Some(clock));
        let option = said.options.experimental.expect("an option");
        assert!(option.is_immediate_retransmission());
    }

    #[test]
    fn what_the_peer_says_acknowledges_nothing_new() {
        let clock = Timestamps { value: 7, echo: 8 };
        let said = header(&acknowledgements(Some(clock)).of_peer(id(), PROGRESS));
        assert_eq!((said.seq, said.ack), (SeqNumber(2_000), SeqNumber(100)));
        assert_eq!((said.source_port, said.window), (90, 500));
        assert_eq!(said.options, TcpOptions::default());
    }
}
