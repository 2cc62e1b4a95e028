//! The flow tracker in the kernel: two programs in traffic control (`bpf/tracker.bpf.c`) that
//! watch an interface's TCP connections and pass every packet.
//!
//! What it tracks is what [`outlast_core::flow::TcpFlow`] tracks, without round-trip times. The
//! table has a hard cap; when it is full, the least recently used connection gives way.

use crate::sys::bpf;
use aya::maps::{HashMap, MapError, PerCpuArray};
use aya::programs::ProgramError;
use aya::programs::tc::{SchedClassifier, TcAttachType};
use aya::{Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use outlast_core::flow::{Acquaintance, FlowKey, Half, Phase, TcpFlow};
use outlast_core::link::Direction;
use outlast_wire::SeqNumber;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

static OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/tracker.bpf.o");

const PROGRAMS: [(Direction, &str, TcAttachType); 2] = [
    (Direction::ToLink, "to_link", TcAttachType::Egress),
    (Direction::FromLink, "from_link", TcAttachType::Ingress),
];

/// `struct key`: addresses, then ports in network order.
const KEY: usize = 2 * 16 + 2 * 2;
/// `struct half`.
const HALF: usize = 24;
/// `struct entry`: the lock, both halves, the phase.
const ENTRY: usize = 4 + 2 * HALF + 4;

/// Bits of `has` in `struct half`.
const HAS_ALLOWED: u8 = 1;
const HAS_WINDOW_SCALE: u8 = 2;
const HAS_FIN: u8 = 4;

/// Why the tracker does not run.
#[derive(Debug, thiserror::Error)]
pub enum TrackerError {
    /// The kernel does not take the object.
    #[error("cannot load the flow tracker")]
    Object(#[from] EbpfError),
    /// The kernel does not take a program.
    #[error("cannot load or attach a program of the flow tracker")]
    Program(#[from] ProgramError),
    /// The kernel does not let the table be read.
    #[error("cannot read the flow tracker's table")]
    Map(#[from] MapError),
    /// The kernel does not run a program for a try.
    #[error("cannot try a program of the flow tracker")]
    Try(#[source] io::Error),
}

/// A loaded tracker. Its programs and its table are gone when it is dropped.
#[derive(Debug)]
pub struct Tracker {
    ebpf: Ebpf,
}

/// What an interface's packets begin with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Framing {
    /// An Ethernet header, as those of the loopback device do.
    Ethernet,
    /// The IP header: TUN, WireGuard, PPP.
    Bare,
}

/// Packets by what became of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TrackerCounters {
    /// Segments that belong to their connection.
    pub tracked: u64,
    /// Segments that no honest host would have sent then.
    pub odd: u64,
    /// Anything but a whole TCP segment; a RST of no connection.
    pub not_tracked: u64,
    /// Segments that were not looked at, because another processor did not let go of the flow.
    pub contended: u64,
}

impl Tracker {
    /// Loads the programs for interfaces of one kind, with room for `flows` connections; no packet
    /// goes through them yet.
    ///
    /// # Errors
    /// Without `CAP_BPF` and `CAP_NET_ADMIN`, or on a kernel without what they need.
    pub fn load(framing: Framing, flows: u32) -> Result<Self, TrackerError> {
        let link_header: u32 = match framing {
            Framing::Ethernet => 14,
            Framing::Bare => 0,
        };
        let mut ebpf = EbpfLoader::new()
            .override_global("LINK_HEADER", &link_header, true)
            .map_max_entries("FLOWS", flows)
            .load(OBJECT)?;
        for (_, name, _) in PROGRAMS {
            classifier(&mut ebpf, name)?.load()?;
        }
        Ok(Self { ebpf })
    }

    /// Lets the packets of `interface` go through the programs, in the network namespace of the
    /// calling thread.
    ///
    /// # Errors
    /// When there is no such interface, or on a kernel before 6.6 (tcx) on which the interface has
    /// no `clsact` queueing discipline.
    pub fn attach(&mut self, interface: &str) -> Result<(), TrackerError> {
        for (_, name, kind) in PROGRAMS {
            classifier(&mut self.ebpf, name)?.attach(interface, kind)?;
        }
        Ok(())
    }

    /// Lets one Ethernet frame go through a program, without a network.
    ///
    /// # Errors
    /// When the frame is shorter than an Ethernet header or longer than a page, or without
    /// `CAP_BPF`.
    pub fn try_out(&self, direction: Direction, frame: &[u8]) -> Result<(), TrackerError> {
        let name = PROGRAMS.iter().find(|(known, ..)| *known == direction);
        let (_, name, _) = name.expect("there is one for each direction");
        let program = self.ebpf.program(name).expect("the object has it");
        let program: &SchedClassifier = program.try_into()?;
        bpf::run_once(program.fd()?.as_fd(), frame).map_err(TrackerError::Try)
    }

    /// What is known of a connection; its round-trip time never is.
    ///
    /// # Errors
    /// When the kernel does not let the table be read.
    pub fn flow(&self, key: &FlowKey) -> Result<Option<TcpFlow>, TrackerError> {
        let map = self.ebpf.map("FLOWS").expect("the object has it");
        let flows: HashMap<_, [u8; KEY], [u8; ENTRY]> = HashMap::try_from(map)?;
        match flows.get(&key_bytes(key), 0) {
            Ok(entry) => Ok(flow(&entry)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets a connection.
    ///
    /// # Errors
    /// When the kernel does not let the table be written.
    pub fn forget(&mut self, key: &FlowKey) -> Result<(), TrackerError> {
        let map = self.ebpf.map_mut("FLOWS").expect("the object has it");
        let mut flows: HashMap<_, [u8; KEY], [u8; ENTRY]> = HashMap::try_from(map)?;
        match flows.remove(&key_bytes(key)) {
            Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// What was counted.
    ///
    /// # Errors
    /// When the kernel does not let the counters be read.
    pub fn counters(&self) -> Result<TrackerCounters, TrackerError> {
        let map = self.ebpf.map("COUNTERS").expect("the object has it");
        let counters: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
        let count =
            |which: u32| -> Result<u64, MapError> { Ok(counters.get(&which, 0)?.iter().sum()) };
        Ok(TrackerCounters {
            tracked: count(0)?,
            odd: count(1)?,
            not_tracked: count(2)?,
            contended: count(3)?,
        })
    }
}

fn classifier<'e>(ebpf: &'e mut Ebpf, name: &str) -> Result<&'e mut SchedClassifier, ProgramError> {
    let program = ebpf.program_mut(name).expect("the object has it");
    program.try_into()
}

fn key_bytes(key: &FlowKey) -> [u8; KEY] {
    let mut bytes = [0; KEY];
    bytes[..16].copy_from_slice(&address(key.near));
    bytes[16..32].copy_from_slice(&address(key.far));
    bytes[32..34].copy_from_slice(&key.near.port().to_be_bytes());
    bytes[34..].copy_from_slice(&key.far.port().to_be_bytes());
    bytes
}

fn address(socket: SocketAddr) -> [u8; 16] {
    match socket.ip() {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Reads a `struct entry`; `None` if it is none that the programs write.
fn flow(entry: &[u8; ENTRY]) -> Option<TcpFlow> {
    let halves = entry.get(4..4 + 2 * HALF)?;
    let (near, far) = halves.split_at(HALF);
    Some(TcpFlow {
        near: half(near)?,
        far: half(far)?,
        phase: match word(entry, 4 + 2 * HALF)? {
            0 => Phase::Opening,
            1 => Phase::Established,
            2 => Phase::Closed,
            _ => return None,
        },
        ..TcpFlow::new()
    })
}

fn half(bytes: &[u8]) -> Option<Half> {
    let number = |at| word(bytes, at).map(SeqNumber);
    let &[window_scale, acquaintance, has, _] = bytes.get(20..24)? else {
        return None;
    };
    Some(Half {
        next: number(0)?,
        acked: number(4)?,
        allowed: number(8).filter(|_| has & HAS_ALLOWED != 0),
        largest_window: word(bytes, 12)?,
        fin: number(16).filter(|_| has & HAS_FIN != 0),
        window_scale: (has & HAS_WINDOW_SCALE != 0).then_some(window_scale),
        acquaintance: match acquaintance {
            0 => Acquaintance::None,
            1 => Acquaintance::ByPeer,
            2 => Acquaintance::Seen,
            _ => return None,
        },
    })
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_ne_bytes(*bytes))
}
