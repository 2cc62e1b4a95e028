//! The two hosts of a connection, as honest as the script lets them be.

use super::link;
use outlast_base::time::Instant;
use outlast_gateway::links::Direction::{self, FromLink, ToLink};
use outlast_gateway::links::LinkId;
use outlast_wire::tcp::{Experimental, SackBlock, TcpOptions, Timestamps};
use outlast_wire::{IpHeader, ModelledPayload, Packet, SeqNumber, TcpFlags, TcpHeader};
use std::net::{Ipv4Addr, Ipv6Addr};

const ACK: TcpFlags = TcpFlags::ACK;

/// One host's side of an honest connection; numbers count from behind the SYN.
#[derive(Clone, Copy)]
pub(crate) struct Host {
    pub(crate) isn: SeqNumber,
    sent: u32,
    /// How much of it has been acknowledged.
    acked: u32,
    pub(crate) window: u16,
}

pub(crate) struct Connection {
    pub(crate) port: u16,
    pub(crate) link: LinkId,
    pub(crate) near: Host,
    pub(crate) far: Host,
    echo: u32,
}

impl Host {
    pub(crate) fn new(isn: u32) -> Self {
        Self {
            isn: SeqNumber(isn),
            sent: 0,
            acked: 0,
            window: 8_192,
        }
    }

    pub(crate) fn seq(&self, at: u32) -> SeqNumber {
        self.isn + 1 + at
    }
}

impl Connection {
    pub(crate) fn new(number: u8) -> Self {
        let isn = (u32::from(number) << 30).wrapping_sub(3_000);
        Self {
            port: 5_000 + u16::from(number),
            link: link(number),
            near: Host::new(isn),
            far: Host::new(!isn),
            echo: 0,
        }
    }

    /// Where a packet crosses: now and then elsewhere than those before.
    pub(crate) fn way(&self, kind: u8) -> LinkId {
        match kind >> 5 {
            7 => link(kind),
            _ => self.link,
        }
    }

    pub(crate) fn halves(&mut self, direction: Direction) -> (&mut Host, &mut Host) {
        match direction {
            ToLink => (&mut self.near, &mut self.far),
            FromLink => (&mut self.far, &mut self.near),
        }
    }

    /// `kind` says how long and whether with FIN, `back` where it begins, counted from the end of
    /// what was sent in units of a hundred bytes; zero is new data.
    pub(crate) fn data(
        &mut self,
        direction: Direction,
        now: Instant,
        kind: u8,
        back: u8,
    ) -> Packet {
        let (sender, receiver) = self.halves(direction);
        let len = [1, 100, 500, 1_000, 1_400, 1_400, 4_000, 0][usize::from(kind % 8)];
        let fin = kind & 8 != 0;
        let at = sender.sent.saturating_sub(u32::from(back) * 100);
        sender.sent = sender.sent.max(at + len + u32::from(fin));
        let flags = if fin { ACK | TcpFlags::FIN } else { ACK };
        let header = TcpHeader {
            seq: sender.seq(at),
            ack: receiver.seq(receiver.acked),
            flags,
            ..TcpHeader::default()
        };
        self.build(direction, now, header, len)
    }

    /// `part` of 255 of what is outstanding; SACK for what follows in `blocks`.
    pub(crate) fn acknowledgement(
        &mut self,
        direction: Direction,
        now: Instant,
        part: u8,
        blocks: u8,
    ) -> Packet {
        let (sender, receiver) = self.halves(direction);
        let outstanding = receiver.sent - receiver.acked;
        receiver.acked +=
            u32::try_from(u64::from(outstanding) * u64::from(part) / 255).unwrap_or(0);
        let mut header = TcpHeader {
            seq: sender.seq(sender.sent),
            ack: receiver.seq(receiver.acked),
            flags: ACK,
            ..TcpHeader::default()
        };
        if blocks == 15 {
            // A mobile's reconnection, in the shape of a keep-alive.
            header.seq = header.seq - 1;
            header.options.experimental = Some(Experimental::immediate_retransmission());
        } else if blocks != 0 {
            let left = receiver.acked + u32::from(blocks & 15) * 100;
            let right = left + u32::from(blocks >> 4) * 200;
            header.options.sack.push(SackBlock {
                left: receiver.seq(left),
                right: receiver.seq(right),
            });
        }
        self.build(direction, now, header, 0)
    }

    pub(crate) fn syn(&mut self, direction: Direction, now: Instant, flags: TcpFlags) -> Packet {
        let (sender, receiver) = self.halves(direction);
        let ack = if flags.contains(ACK) {
            receiver.seq(0)
        } else {
            SeqNumber(0)
        };
        let header = TcpHeader {
            seq: sender.isn,
            ack,
            flags,
            ..TcpHeader::default()
        };
        self.build(direction, now, header, 0)
    }

    pub(crate) fn control(
        &mut self,
        direction: Direction,
        now: Instant,
        flags: TcpFlags,
        offset: u32,
    ) -> Packet {
        let (sender, receiver) = self.halves(direction);
        let header = TcpHeader {
            seq: sender.seq(sender.sent) + offset,
            ack: receiver.seq(receiver.acked),
            flags,
            ..TcpHeader::default()
        };
        self.build(direction, now, header, 0)
    }

    pub(crate) fn spoofed(
        &mut self,
        direction: Direction,
        flags: TcpFlags,
        seq: u32,
        ack: u32,
        len: u8,
    ) -> Packet {
        let (sender, receiver) = self.halves(direction);
        let mut header = TcpHeader {
            seq: sender.seq(sender.sent) + seq,
            ack: receiver.seq(receiver.acked) + ack,
            flags,
            ..TcpHeader::default()
        };
        if len % 4 == 3 {
            header.options.experimental = Some(Experimental::immediate_retransmission());
        }
        self.build(direction, Instant::ZERO, header, u32::from(len) * 10)
    }

    pub(crate) fn build(
        &mut self,
        direction: Direction,
        now: Instant,
        header: TcpHeader,
        len: u32,
    ) -> Packet {
        // A quarter of the connections goes without timestamps.
        let timestamps = (!self.port.is_multiple_of(4)).then(|| {
            let value = (now.as_nanos() / 1_000_000) as u32;
            let echo = core::mem::replace(&mut self.echo, value);
            Timestamps { value, echo }
        });
        let syn = header.flags.contains(TcpFlags::SYN);
        let options = TcpOptions {
            timestamps,
            sack_permitted: syn && self.port % 4 < 2,
            window_scale: (syn && self.port % 4 != 3).then_some(2),
            ..header.options
        };
        let is_v6 = self.port % 4 == 2;
        let address = |last| match is_v6 {
            true => Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last).into(),
            false => Ipv4Addr::new(10, 0, 0, last.to_be_bytes()[1]).into(),
        };
        let (near, far) = ((address(2), self.port), (address(1), 80));
        let (host, source, destination) = match direction {
            ToLink => (self.near, near, far),
            FromLink => (self.far, far, near),
        };
        let payload = ModelledPayload {
            stream: u64::from(source.1),
            offset: u64::from(header.seq.0),
        };
        let header = TcpHeader {
            source_port: source.1,
            destination_port: destination.1,
            window: host.window,
            options,
            ..header
        };
        let packet =
            Packet::modelled_tcp(IpHeader::new(source.0, destination.0), header, payload, len);
        match is_v6 {
            // As a live driver has it: a packet of bytes.
            true => Packet::parse(packet.to_bytes()).expect("what is built is well-formed"),
            false => packet,
        }
    }
}
