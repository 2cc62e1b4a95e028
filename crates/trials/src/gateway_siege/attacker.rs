//! Somebody who knows connections' addresses and ports, and no sequence number.
//!
//! He sends from two places: off the path, behind the fixed host's router, in the fixed host's name and in
//! made-up names; and on the link, in the mobile host's name. All numbers in his packets are random.

use super::random::Random;
use super::transfers::Ends;
use crate::gateway_matrix::trial::{TrialError, pause_until};
use outlast_base::time::Duration;
use outlast_lab::{Cancel, LabError};
use outlast_linux::clock;
use outlast_linux::raw::{RawSender, Sent};
use outlast_scenario::IpVersion;
use outlast_testbed::site::{Place, Site};
use outlast_wire::{IcmpNotice, IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader, UdpHeader};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU8, Ordering};

/// What he does at the moment, as whoever runs the round says.
#[derive(Debug, Default)]
pub(super) struct Orders(AtomicU8);

/// How he attacks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Pace {
    /// At [`PACE`], from both places: the link keeps room for what is honest.
    WithLink,
    /// As fast as he can, off the path: the link is away.
    Flood,
    /// Not at all, and no more.
    Over,
}

/// Packets in a second while the link is up. A small frame is 40 to 60 bytes and some have an answer, so
/// that this is less than a tenth of a link of 10 Mbit/s each way.
pub(super) const PACE: u64 = 1_000;
/// How often he sends some at that pace.
const TURN: Duration = Duration::from_millis(10);
/// Packets of a flood between two looks at the orders.
const BATCH: usize = 64;
/// Between the numbers of a sweep: less than the window that each of its segments offers.
const STRIDE: u32 = 60_000;

/// An attack: packets that belong together.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// A SYN in one host's name and a reset in the other's that answers it.
    Refused,
    /// A SYN, its SYN|ACK, and a conversation after it.
    Conversation,
    /// One-byte segments with the widest window, and a reset at the number just planted.
    Sweep,
    /// Flags, numbers, window and length at random.
    Noise,
    /// SYNs from ports and addresses that are nobody's.
    SynFlood,
    /// An ICMP error that quotes the connection.
    IcmpError,
    /// A reset.
    Reset,
    /// An acknowledgement that closes the window.
    ZeroWindow,
    /// The end of the stream.
    Fin,
    /// A segment that is cut short, or whose checksum is wrong.
    Damaged,
    /// A datagram.
    Datagram,
}

const ATTACKS: [Attack; 11] = [
    Attack::Refused,
    Attack::Conversation,
    Attack::Sweep,
    Attack::Noise,
    Attack::SynFlood,
    Attack::IcmpError,
    Attack::Reset,
    Attack::ZeroWindow,
    Attack::Fin,
    Attack::Damaged,
    Attack::Datagram,
];

const NOTICES: [IcmpNotice; 5] = [
    IcmpNotice::NetworkUnreachable,
    IcmpNotice::HostUnreachable,
    IcmpNotice::PortUnreachable,
    IcmpNotice::TooBig { mtu: 600 },
    IcmpNotice::HopLimitExceeded,
];

/// In whose name a packet is sent, and so from which place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Name {
    /// The fixed host's, off the path.
    Fixed,
    /// The mobile host's, on the link.
    Mobile,
}

/// The attacker.
#[derive(Debug)]
pub(super) struct Attacker {
    off_path: RawSender,
    on_link: RawSender,
    random: Random,
    /// Where the sweep is.
    swept: u32,
    packets: u64,
}

impl Orders {
    /// Gives an order.
    pub(super) fn give(&self, pace: Pace) {
        self.0.store(pace as u8, Ordering::Release);
    }

    fn heard(&self) -> Pace {
        match self.0.load(Ordering::Acquire) {
            0 => Pace::WithLink,
            1 => Pace::Flood,
            _ => Pace::Over,
        }
    }
}

impl Attacker {
    /// One at this site.
    pub(super) fn new(site: &Site, random: Random) -> Result<Self, TrialError> {
        let off_path = site.fixed.run(|| RawSender::open(0, None));
        let on_link = site.mobile.run(|| RawSender::open(0, None));
        Ok(Self {
            off_path: off_path.map_err(LabError::from)?.map_err(io_error)?,
            on_link: on_link.map_err(LabError::from)?.map_err(io_error)?,
            random,
            swept: 0,
            packets: 0,
        })
    }

    /// Packets that the kernel has taken from him so far.
    pub(super) const fn packets(&self) -> u64 {
        self.packets
    }

    /// Attacks these connections until that is over.
    pub(super) fn attack(
        &mut self,
        all: &[Ends],
        orders: &Orders,
        cancel: &Cancel,
    ) -> Result<(), TrialError> {
        loop {
            let before = self.packets;
            match orders.heard() {
                Pace::Over => return Ok(()),
                Pace::Flood => {
                    for _ in 0..BATCH {
                        let ends = self.random.choose(all);
                        self.strike(&ends, &[Name::Fixed])?;
                    }
                }
                Pace::WithLink => {
                    let some = PACE * TURN.as_millis() as u64 / 1_000;
                    while self.packets - before < some {
                        let ends = self.random.choose(all);
                        self.strike(&ends, &[Name::Fixed, Name::Mobile])?;
                    }
                    pause_until(cancel, clock::now() + TURN)?;
                }
            }
            if cancel.is_cancelled() {
                return Err(LabError::Cancelled.into());
            }
        }
    }

    /// One attack on a connection, in these names.
    fn strike(&mut self, ends: &Ends, names: &[Name]) -> Result<(), TrialError> {
        let name = self.random.choose(names);
        let answerer = match name {
            Name::Fixed => Name::Mobile,
            Name::Mobile => Name::Fixed,
        };
        let answerer = names.iter().copied().find(|&name| name == answerer);
        let (seq, ack) = (self.random.word(), self.random.word());
        let mut segment = Segment {
            flags: TcpFlags::ACK,
            seq,
            ack,
            window: u16::MAX,
            length: 0,
        };
        match self.random.choose(&ATTACKS) {
            Attack::Refused => {
                segment.flags = TcpFlags::SYN;
                self.send(ends, name, segment)?;
                segment = segment.answered(TcpFlags::RST | TcpFlags::ACK, ack);
                self.send(ends, answerer.unwrap_or(name), segment)
            }
            Attack::Conversation => self.converse(ends, [name, answerer.unwrap_or(name)], segment),
            Attack::Sweep => {
                self.swept = self.swept.wrapping_add(STRIDE);
                segment.seq = self.swept;
                segment.length = 1;
                self.send(ends, name, segment)?;
                segment.seq = segment.seq.wrapping_add(1);
                (segment.flags, segment.length) = (TcpFlags::RST, 0);
                self.send(ends, name, segment)
            }
            Attack::Noise => {
                segment.flags = TcpFlags(self.random.word() as u8);
                segment.window = self.random.word() as u16;
                segment.length = self.random.below(40) as usize;
                self.send(ends, name, segment)
            }
            Attack::SynFlood => self.syn(ends, name),
            Attack::IcmpError => self.icmp_error(ends, name, segment),
            Attack::Reset => {
                segment.flags = self
                    .random
                    .choose(&[TcpFlags::RST, TcpFlags::RST | TcpFlags::ACK]);
                self.send(ends, name, segment)
            }
            Attack::ZeroWindow => {
                segment.window = 0;
                self.send(ends, name, segment)
            }
            Attack::Fin => {
                segment.flags = TcpFlags::FIN | TcpFlags::ACK;
                self.send(ends, name, segment)
            }
            Attack::Damaged => self.damaged(ends, name, segment),
            Attack::Datagram => self.datagram(ends, name),
        }
    }

    /// A connection that is made up altogether, with the client's data.
    fn converse(
        &mut self,
        ends: &Ends,
        [client, server]: [Name; 2],
        mut segment: Segment,
    ) -> Result<(), TrialError> {
        let (seq, ack) = (segment.seq, segment.ack);
        segment.flags = TcpFlags::SYN;
        self.send(ends, client, segment)?;
        let answer = segment.answered(TcpFlags::SYN | TcpFlags::ACK, ack);
        self.send(ends, server, answer)?;
        for turn in 0..4 {
            let mut data = answer.answered(TcpFlags::ACK, seq.wrapping_add(1 + turn));
            data.length = 1;
            self.send(ends, client, data)?;
        }
        Ok(())
    }

    /// A segment with a wrong byte in its header, or cut short.
    fn damaged(&mut self, ends: &Ends, name: Name, segment: Segment) -> Result<(), TrialError> {
        let whole = segment
            .packet(source(ends, name), target(ends, name))
            .to_bytes();
        let mut bytes = whole.to_vec();
        match self.random.below(2) {
            // Somewhere in the TCP header, behind the ports.
            0 => {
                let place = bytes.len() - 1 - self.random.below(16) as usize;
                bytes[place] ^= 1 + self.random.below(255) as u8;
            }
            _ => bytes.truncate(whole.len() - 1 - self.random.below(18) as usize),
        }
        self.transmit(name, target(ends, name).ip(), &bytes)
    }

    /// A datagram to the port of the connection.
    fn datagram(&mut self, ends: &Ends, name: Name) -> Result<(), TrialError> {
        let (from, to) = (source(ends, name), target(ends, name));
        let header = UdpHeader {
            source_port: self.random.word() as u16,
            destination_port: to.port(),
        };
        let ip = IpHeader::new(from.ip(), to.ip());
        let packet = Packet::udp_datagram(ip, header, &[0; 16]);
        self.transmit(name, to.ip(), &packet.to_bytes())
    }

    /// A SYN from a port that nobody has; off the path from an address that nobody has, too.
    fn syn(&mut self, ends: &Ends, name: Name) -> Result<(), TrialError> {
        let mut from = source(ends, name);
        from.set_port(1_024 + self.random.below(60_000) as u16);
        if let (Name::Fixed, IpAddr::V4(_)) = (name, from.ip()) {
            // RFC 5737.
            let host = self.random.word() as u8;
            from.set_ip(Ipv4Addr::new(203, 0, 113, host).into());
        }
        let syn = Segment {
            flags: TcpFlags::SYN,
            seq: self.random.word(),
            ack: 0,
            window: u16::MAX,
            length: 0,
        };
        let to = target(ends, name);
        self.transmit(name, to.ip(), &syn.packet(from, to).to_bytes())
    }

    /// An error about a segment that the host it is sent to may have sent.
    fn icmp_error(&mut self, ends: &Ends, name: Name, about: Segment) -> Result<(), TrialError> {
        let (from, to) = (source(ends, name), target(ends, name));
        let version = match to {
            SocketAddr::V4(_) => IpVersion::V4,
            SocketAddr::V6(_) => IpVersion::V6,
        };
        let router = match name {
            Name::Fixed => Place::Fixed.address(version),
            Name::Mobile => Place::Mobile.address(version),
        };
        let notice = self.random.choose(&NOTICES);
        let error = Packet::icmp_error(router, notice, &about.packet(to, from));
        let error = error.map_err(|refusal| io_error(io::Error::other(refusal)))?;
        self.transmit(name, to.ip(), &error.to_bytes())
    }

    fn send(&mut self, ends: &Ends, name: Name, segment: Segment) -> Result<(), TrialError> {
        let (from, to) = (source(ends, name), target(ends, name));
        self.transmit(name, to.ip(), &segment.packet(from, to).to_bytes())
    }

    fn transmit(&mut self, name: Name, to: IpAddr, packet: &[u8]) -> Result<(), TrialError> {
        let sender = match name {
            Name::Fixed => &self.off_path,
            Name::Mobile => &self.on_link,
        };
        // What finds no room, or no way while the link is away, is not counted.
        if sender.send(to, packet).map_err(io_error)? == Sent::Accepted {
            self.packets += 1;
        }
        Ok(())
    }
}

/// What a made-up segment says.
#[derive(Clone, Copy, Debug)]
struct Segment {
    flags: TcpFlags,
    seq: u32,
    ack: u32,
    window: u16,
    length: usize,
}

impl Segment {
    /// A segment without payload that acknowledges this one, which has one number.
    fn answered(self, flags: TcpFlags, seq: u32) -> Self {
        Self {
            flags,
            seq,
            ack: self.seq.wrapping_add(1),
            length: 0,
            ..self
        }
    }

    fn packet(self, from: SocketAddr, to: SocketAddr) -> Packet {
        const PAYLOAD: [u8; 40] = [0x55; 40];
        let tcp = TcpHeader {
            source_port: from.port(),
            destination_port: to.port(),
            seq: SeqNumber(self.seq),
            ack: SeqNumber(self.ack),
            flags: self.flags,
            window: self.window,
            ..TcpHeader::default()
        };
        let payload = &PAYLOAD[..self.length.min(PAYLOAD.len())];
        Packet::tcp_segment(IpHeader::new(from.ip(), to.ip()), tcp, payload)
    }
}

const fn source(ends: &Ends, name: Name) -> SocketAddr {
    match name {
        Name::Fixed => ends.fixed,
        Name::Mobile => ends.mobile,
    }
}

const fn target(ends: &Ends, name: Name) -> SocketAddr {
    match name {
        Name::Fixed => ends.mobile,
        Name::Mobile => ends.fixed,
    }
}

fn io_error(source: io::Error) -> TrialError {
    TrialError::Io {
        what: "send hostile packets",
        source,
    }
}
