//! Peers that have fallen silent, and the first packet that comes from one of them (`bpf/silence.bpf.c`).
//!
//! | program | runs at | tells |
//! |---|---|---|
//! | `note_timeout` | each retransmission | a connection has had its second timeout in a row |
//! | `note_packet` | each packet of an open connection, while a silent peer is [watched](Silence::watch) | its peer is heard again |
//!
//! Both are attached to tracepoints of the kernel (`tcp_retransmit_skb`, `tcp_probe`), which cost nothing while
//! nobody is attached. Of a peer one timeout is told, and then one packet, until it is [forgotten](Silence::forget). Up to
//! [`MOST_PEERS`] peers are remembered, and there is room for all that is told of them; timeouts of further peers are
//! [counted](Silence::refused), and not told.
//!
//! What breaks it: a peer that is heard by another protocol than TCP, or whose only packets belong to the
//! handshake of a new connection.

use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::programs::{BtfTracePoint, ProgramError};
use aya::sys::SyscallError;
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr};

use crate::causes;
use crate::lack::{self, Lack, Needs};
use crate::sys::cookie;

/// Peers that are remembered at once: `MOST_PEERS` of `bpf/silence.bpf.c`.
pub const MOST_PEERS: usize = 4_096;

static OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/silence.bpf.o");

const NOTE_TIMEOUT: &str = "note_timeout";
const NOTE_PACKET: &str = "note_packet";

/// `BPF_NOEXIST`.
const NO_EXIST: u64 = 1;

/// Where they run.
const TIMEOUTS: &str = "tcp_retransmit_skb";
const PACKETS: &str = "tcp_probe";

const PEERS: &str = "peers";
const NAMESPACES: &str = "namespaces";
const EVENTS: &str = "events";
const REFUSED: &str = "refused";

/// `TOLD_OF_TIMEOUT`.
const TOLD_OF_TIMEOUT: u8 = 1;

/// Why silent peers cannot be noticed here.
#[derive(Debug, thiserror::Error)]
pub enum SilenceError {
    /// The kernel does not describe its types.
    #[error("the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")]
    Types(#[from] BtfError),
    /// The kernel does not take the object.
    #[error("cannot load the programs that notice silent peers")]
    Object(#[from] EbpfError),
    /// The kernel does not have it.
    #[error("the kernel has no tracepoint {0}")]
    Tracepoint(&'static str),
    /// The kernel does not take a program, or does not let it be attached.
    #[error("cannot load or attach a program that notices silent peers")]
    Program(#[from] ProgramError),
    /// The kernel does not let a map be read or written.
    #[error("cannot reach the maps of the programs that notice silent peers")]
    Map(#[from] MapError),
    /// The kernel does not say in which network namespace this is.
    #[error("the kernel does not tell the network namespace")]
    Namespace(#[source] io::Error),
}

const NEEDS: Needs = Needs {
    rights: &[lack::BPF, lack::PERFMON],
    kernel: "run Linux 5.8 or newer with CONFIG_DEBUG_INFO_BTF=y and CONFIG_BPF_SYSCALL=y",
};

impl SilenceError {
    /// What this machine or this process lacks, and what would help.
    #[must_use]
    pub fn lack(&self) -> Lack {
        NEEDS.lack(self)
    }

    /// The error with its causes, in one line; of a verifier's log only the reason.
    #[must_use]
    pub fn with_causes(&self) -> String {
        causes::in_one_line(self)
    }
}

/// What the programs tell of a peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum PeerEvent {
    /// One of its connections has had two timeouts in a row or more.
    TimedOut(IpAddr),
    /// A packet has come from it, by the interface of that number.
    Heard(IpAddr, u32),
}

/// The programs. They end when this is dropped.
pub struct Silence {
    ebpf: Ebpf,
    events: RingBuf<MapData>,
    /// Where the program of packets is attached, if it is.
    watching: Option<BtfTracePointLinkId>,
}

impl Silence {
    /// Loads the programs for the sockets of the calling thread's network namespace, and has timeouts noticed. What
    /// follows needs `CAP_NET_ADMIN` only.
    ///
    /// # Errors
    /// Without root, or on a kernel before 5.8 or without BTF.
    pub fn begin() -> Result<Self, SilenceError> {
        let types = Btf::from_sys_fs()?;
        let mut ebpf = EbpfLoader::new().btf(Some(&types)).load(OBJECT)?;
        let namespace = cookie::of_network_namespace().map_err(SilenceError::Namespace)?;
        let map = ebpf.map_mut(NAMESPACES).expect("the object has it");
        Array::<_, u64>::try_from(map)?.set(0, namespace, 0)?;
        for (name, tracepoint) in [(NOTE_PACKET, PACKETS), (NOTE_TIMEOUT, TIMEOUTS)] {
            let loaded = program(&mut ebpf, name)?.load(tracepoint, &types);
            loaded.map_err(|error| match lack::has_no_target(&error) {
                true => SilenceError::Tracepoint(tracepoint),
                false => error.into(),
            })?;
        }
        program(&mut ebpf, NOTE_TIMEOUT)?.attach()?;
        let events = ebpf.take_map(EVENTS).expect("the object has it");
        Ok(Self {
            events: RingBuf::try_from(events)?,
            ebpf,
            watching: None,
        })
    }

    /// Has packets of silent peers noticed from now on, or no longer.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn watch(&mut self, is_wanted: bool) -> Result<(), SilenceError> {
        match (is_wanted, self.watching.take()) {
            (true, None) => self.watching = Some(program(&mut self.ebpf, NOTE_PACKET)?.attach()?),
            (false, Some(link)) => program(&mut self.ebpf, NOTE_PACKET)?.detach(link)?,
            (_, as_before) => self.watching = as_before,
        }
        Ok(())
    }

    /// Has the next packet of `peer` told while packets are [noticed](Self::watch), as after a timeout that was told.
    ///
    /// # Errors
    /// When the kernel refuses, or [`MOST_PEERS`] peers are remembered.
    pub fn remember(&mut self, peer: IpAddr) -> Result<(), SilenceError> {
        match self
            .peers()?
            .insert(octets(peer), TOLD_OF_TIMEOUT, NO_EXIST)
        {
            // It is remembered already, and what it has said is told.
            Err(MapError::SyscallError(error)) if errno(&error) == Some(libc::EEXIST) => Ok(()),
            inserted => Ok(inserted?),
        }
    }

    /// Has the next timeout of a connection with `peer` told again, and no packet before that.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn forget(&mut self, peer: IpAddr) -> Result<(), SilenceError> {
        match self.peers()?.remove(&octets(peer)) {
            // It was forgotten before.
            Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
            Err(MapError::SyscallError(error)) if errno(&error) == Some(libc::ENOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn peers(&mut self) -> Result<HashMap<&mut MapData, [u8; 16], u8>, MapError> {
        let map = self.ebpf.map_mut(PEERS).expect("the object has it");
        HashMap::try_from(map)
    }

    /// Timeouts that were not told, as [`MOST_PEERS`] peers were remembered.
    ///
    /// # Errors
    /// When the kernel does not let it be read.
    pub fn refused(&self) -> Result<u64, SilenceError> {
        let map = self.ebpf.map(REFUSED).expect("the object has it");
        let counts: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
        Ok(counts.get(&0, 0)?.iter().sum())
    }

    /// The next thing that is told of a peer. The descriptor is readable while there is one.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        loop {
            let item = self.events.next()?;
            if let Some(event) = event(&item) {
                return Some(event);
            }
        }
    }
}

impl fmt::Debug for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Silence")
            .field("watching", &self.watching)
            .finish_non_exhaustive()
    }
}

impl AsFd for Silence {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.events.as_fd()
    }
}

fn program<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut BtfTracePoint, ProgramError> {
    ebpf.program_mut(name)
        .expect("the object has it")
        .try_into()
}

fn errno(error: &SyscallError) -> Option<i32> {
    error.io_error.raw_os_error()
}

/// An address as the programs have it: one of IPv4 as IPv6 writes it.
fn octets(peer: IpAddr) -> [u8; 16] {
    match peer {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// What a `struct event` tells; `None` for one that is none.
fn event(bytes: &[u8]) -> Option<PeerEvent> {
    let word = |at: usize| Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let octets: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    let peer = Ipv6Addr::from(octets).to_canonical();
    match word(16)? {
        1 => Some(PeerEvent::TimedOut(peer)),
        2 => Some(PeerEvent::Heard(peer, word(20)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[test]
    fn an_event_names_its_peer() {
        let peer = IpAddr::from([198, 51, 100, 7]);
        let mut bytes = [0; 24];
        bytes[..16].copy_from_slice(&octets(peer));
        assert_eq!(event(&bytes), None);
        bytes[16..20].copy_from_slice(&1_u32.to_ne_bytes());
        bytes[20..].copy_from_slice(&3_u32.to_ne_bytes());
        assert_eq!(event(&bytes), Some(PeerEvent::TimedOut(peer)));
        bytes[16..20].copy_from_slice(&2_u32.to_ne_bytes());
        assert_eq!(event(&bytes), Some(PeerEvent::Heard(peer, 3)));
        assert_eq!(event(&bytes[..20]), None);
    }

    #[test]
    fn the_kernel_takes_the_programs() {
        let Some(namespace) = crate::testing::fresh_namespace() else {
            return;
        };
        let begun = || -> Result<_, SilenceError> {
            let mut silence = Silence::begin()?;
            for is_wanted in [true, true, false, false, true] {
                silence.watch(is_wanted)?;
            }
            let peer = IpAddr::from([192, 0, 2, 1]);
            for _ in 0..2 {
                silence.remember(peer)?;
                silence.remember(peer)?;
                silence.forget(peer)?;
                silence.forget(peer)?;
            }
            for number in 0..u32::try_from(MOST_PEERS).expect("small") {
                silence.remember(Ipv4Addr::from_bits(number).into())?;
            }
            assert!(silence.remember(peer).is_err(), "there is no more room");
            assert_eq!(silence.refused()?, 0);
            Ok(silence.poll_event())
        };
        match namespace.run(begun).expect("enter") {
            Ok(event) => assert_eq!(event, None),
            Err(SilenceError::Program(ProgramError::LoadError { io_error, .. }))
                if io_error.raw_os_error() != Some(libc::EPERM) =>
            {
                panic!("{io_error}")
            }
            Err(error) => outlast_skip::skip(error.with_causes()),
        }
    }
}
