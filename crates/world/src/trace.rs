//! What happened to every packet of a run, in memory: the matter of time-sequence diagrams. And
//! what congestion control made of it: the variables of a sender at each acknowledgement.

use crate::side::Side;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::net::SocketAddr;
use outlast_base::time::Instant;
use outlast_gateway::mechanisms::path::{SendReason, TakeReason};
use outlast_link::{DropReason, Way};
use outlast_wire::{Packet, SeqNumber, TcpFlags};

/// The packets of a run, in the order in which they were put into an end of the link.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    packets: Vec<TracedPacket>,
    cap: usize,
    omitted: u64,
    carrier: Vec<CarrierChange>,
}

/// The link went up or down.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CarrierChange {
    /// When.
    pub at: Instant,
    /// Whether it is up from now on.
    pub up: bool,
}

/// One packet.
#[derive(Clone, Debug, PartialEq)]
pub struct TracedPacket {
    /// When it came to the link's near end.
    pub at: Instant,
    /// Where it was to go.
    pub way: Way,
    /// Who put it there.
    pub origin: Origin,
    /// Length of the IP packet in bytes.
    pub length: u32,
    /// Its TCP header, if it has one.
    pub segment: Option<TracedSegment>,
    /// What became of it.
    pub fate: Fate,
}

/// What a time-sequence diagram shows of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TracedSegment {
    /// Sender.
    pub source: SocketAddr,
    /// Receiver.
    pub destination: SocketAddr,
    /// SEG.SEQ
    pub seq: SeqNumber,
    /// SEG.ACK; meaningful only with [`TcpFlags::ACK`].
    pub ack: SeqNumber,
    /// Control bits.
    pub flags: TcpFlags,
    /// Payload in bytes.
    pub payload_len: u32,
}

/// Who put a packet on the path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// The host of that end.
    Host,
    /// The gateway of the end where the packet enters the link.
    Resent(SendReason),
    /// The gateway of the end to which the packet goes: it never crossed the link.
    Rereceived(SendReason),
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It is in the link.
    OnTheWay,
    /// It came to the receiving host.
    Arrived(Instant),
    /// The link dropped it.
    Dropped(Instant, DropReason),
    /// A gateway took it, at the near end before the link, or behind it.
    Taken(TakeReason),
}

impl Trace {
    /// A trace of at most `cap` packets; later ones are only counted.
    #[must_use]
    pub fn new(cap: usize) -> Self {
        Self {
            packets: Vec::new(),
            cap,
            omitted: 0,
            carrier: Vec::new(),
        }
    }

    /// The packets, in the order in which they came to an end of the link.
    #[must_use]
    pub fn packets(&self) -> &[TracedPacket] {
        &self.packets
    }

    /// Packets that found the trace full.
    #[must_use]
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// When the link went and came, in order.
    #[must_use]
    pub fn carrier(&self) -> &[CarrierChange] {
        &self.carrier
    }

    /// Adds a packet, whose number must be that of all packets before it.
    pub fn push(&mut self, serial: u64, packet: TracedPacket) {
        if self.packets.len() < self.cap {
            debug_assert_eq!(serial, self.packets.len() as u64, "every packet is traced");
            self.packets.push(packet);
        } else {
            self.omitted += 1;
        }
    }

    /// Sets what became of a packet. The first answer stays: a copy may come later.
    pub fn settle(&mut self, serial: u64, fate: Fate) {
        let index = usize::try_from(serial).unwrap_or(usize::MAX);
        if let Some(packet) = self.packets.get_mut(index)
            && packet.fate == Fate::OnTheWay
        {
            packet.fate = fate;
        }
    }

    /// The link went up or down.
    pub fn carrier_change(&mut self, at: Instant, up: bool) {
        if self.carrier.len() < self.cap {
            self.carrier.push(CarrierChange { at, up });
        }
    }
}

impl TracedSegment {
    /// What `packet` has of it; `None` unless it is a whole TCP segment.
    #[must_use]
    pub fn of(packet: &Packet) -> Option<Self> {
        let tcp = packet.tcp()?;
        let ip = packet.header().ip;
        Some(Self {
            source: SocketAddr::new(ip.source, tcp.source_port),
            destination: SocketAddr::new(ip.destination, tcp.destination_port),
            seq: tcp.seq,
            ack: tcp.ack,
            flags: tcp.flags,
            payload_len: packet.header().payload_len,
        })
    }
}

impl Origin {
    /// Whether Outlast put the packet there.
    #[must_use]
    pub fn is_injected(self) -> bool {
        !matches!(self, Self::Host)
    }
}

impl TracedPacket {
    /// The end at which the packet was put on the path.
    #[must_use]
    pub fn side(&self) -> Side {
        let receiver = Side::reached_by(self.way);
        match self.origin {
            Origin::Rereceived(_) => receiver,
            Origin::Host | Origin::Resent(_) => receiver.peer(),
        }
    }
}

/// The variables of a sender, after an acknowledgement or a timeout.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct VariableRow {
    /// When.
    pub at: Instant,
    /// Which flow, by its place in the setup.
    pub flow: usize,
    /// Whose variables.
    pub side: Side,
    /// What happened.
    pub cause: Cause,
    /// The variables.
    pub variables: outlast_tcp::Trace,
}

/// What may have changed a sender's variables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Cause {
    /// An acknowledgement came.
    Ack,
    /// A timer of the endpoint fired: which.
    Timeout(outlast_tcp::Reason),
}

/// The head of [`variables_csv`].
const CSV_HEAD: &str = "time_s,flow,side,cause,cwnd_segments,ssthresh_segments,rto_s,srtt_s,\
                        snd_una,snd_nxt,snd_wnd_bytes,in_flight_segments\n";

/// `rows` as CSV with a head; times in seconds since the simulation began, an ssthresh that is not
/// set yet as an empty field.
#[must_use]
pub fn variables_csv(rows: &[VariableRow]) -> String {
    let mut csv = String::from(CSV_HEAD);
    for row in rows {
        let of = &row.variables;
        let cause = match row.cause {
            Cause::Ack => "ack",
            Cause::Timeout(_) => "timeout",
        };
        let _infallible = write!(
            csv,
            "{:.9},{},{},{cause},{},",
            row.at.as_secs_f64(),
            row.flow,
            row.side,
            of.cwnd
        );
        if let Some(ssthresh) = of.ssthresh {
            let _infallible = write!(csv, "{ssthresh}");
        }
        let _infallible = writeln!(
            csv,
            ",{:.6},{:.6},{},{},{},{}",
            of.rto.as_secs_f64(),
            of.srtt.as_secs_f64(),
            of.snd_una.0,
            of.snd_nxt.0,
            of.snd_wnd,
            of.in_flight
        );
    }
    csv
}
