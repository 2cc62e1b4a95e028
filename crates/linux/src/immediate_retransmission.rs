//! The Immediate Retransmission Option for the kernel's TCP, by programs at the root cgroup
//! (`bpf/immediate_retransmission.bpf.c`).
//!
//! The option is that of Schütz, Eggert, Schmid and Brunner, "Protocol Enhancements for
//! Intermittently Connected Hosts", section 3.3.2. A host whose link is back sends it, and a peer
//! that reads it retransmits as if its retransmission timer had expired. It has no kind of its own:
//! it is of kind 253 with the experiment number `0x4f4c4952` (RFC 6994), which is not registered.
//!
//! | bytes | value |
//! |---|---|
//! | kind | 253 |
//! | length | 6 |
//! | experiment | 0x4f 0x4c 0x49 0x52 |
//!
//! [`ImmediateRetransmission::ask`] has the next pure acknowledgement of a connection bear the option;
//! whoever calls it also has the kernel send one. A segment with data never bears it, as a full one
//! would have to be cut. What peers ask for is read by [`ImmediateRetransmission::poll_request`]: one request of each
//! connection in half a second, and only where data is outstanding. Requests that find no room are
//! counted and lost, so that a flood of them costs a bounded amount of memory and of wake-ups.
//!
//! What breaks it: middleboxes that strip options, a peer without the agent, and a lost
//! acknowledgement. Then the connection goes on as if nobody had asked. Sockets that are there before the agent
//! take part from Linux 6.12 on.

use aya::maps::{Array, HashMap, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::links::{CgroupAttachMode, LinkError};
use aya::programs::sock_ops::SockOpsLinkId;
use aya::programs::{Iter, ProgramError, SockOps};
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use outlast_host::control::ConnectionId;
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;
use std::io::{self, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use crate::causes;
use crate::cgroup::{Cgroup, CgroupError};
use crate::lack::{self, Lack, Needs};
use crate::sys::cookie;

static OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/immediate_retransmission.bpf.o");

const SPEAK: &str = "speak";
const TAKE: &str = "take";
const GIVE_BACK: &str = "give_back";
const ASK: &str = "ask";

const NAMESPACES: &str = "namespaces";
const ASKERS: &str = "askers";
const REQUESTS: &str = "requests";
const COUNTS_MAP: &str = "counts";

/// `enum count`.
const COUNTS: usize = 7;

/// Why the option cannot be used here.
#[derive(Debug, thiserror::Error)]
pub enum ImmediateError {
    /// There is no cgroup to attach to.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The kernel does not describe its types.
    #[error("the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")]
    Types(#[from] BtfError),
    /// The kernel does not take the object.
    #[error("cannot load the programs of the immediate retransmission option")]
    Object(#[from] EbpfError),
    /// The kernel does not take a program, or does not let it be attached.
    #[error("cannot load or attach a program of the immediate retransmission option")]
    Program(#[from] ProgramError),
    /// The sockets cannot be gone through.
    #[error("cannot start a pass over the sockets")]
    Attach(#[from] LinkError),
    /// A pass over the sockets fails.
    #[error("cannot go through the sockets")]
    Read(#[source] io::Error),
    /// The kernel does not let a map be read or written.
    #[error("cannot reach the maps of the immediate retransmission option")]
    Map(#[from] MapError),
    /// The kernel does not say in which network namespace this is.
    #[error("the kernel does not tell the network namespace")]
    Namespace(#[source] io::Error),
}

const NEEDS: Needs = Needs {
    rights: &[lack::BPF, lack::PERFMON, lack::NET_ADMIN],
    kernel: "run Linux 6.1 or newer with CONFIG_DEBUG_INFO_BTF=y and CONFIG_CGROUP_BPF=y",
};

impl ImmediateError {
    /// What this machine or this process lacks, and what would help.
    #[must_use]
    pub fn lack(&self) -> Lack {
        match self {
            Self::Cgroup(error) => error.lack(),
            _ => NEEDS.lack(self),
        }
    }

    /// The error with its causes, in one line; of a verifier's log only the reason.
    #[must_use]
    pub fn with_causes(&self) -> String {
        causes::in_one_line(self)
    }
}

/// Counts since the programs were loaded; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ImmediateCounters {
    /// Acknowledgements that were sent with the option.
    pub sent: u64,
    /// Options of peers that were read.
    pub heard: u64,
    /// Requests that the agent was told of.
    pub passed_on: u64,
    /// Requests for connections with nothing outstanding.
    pub needless: u64,
    /// Requests within half a second after one of the same connection.
    pub too_soon: u64,
    /// Requests and segments that found no room.
    pub no_room: u64,
    /// Things that the kernel refused.
    pub failures: u64,
}

/// The programs. They end when this is dropped.
pub struct ImmediateRetransmission {
    ebpf: Ebpf,
    requests: RingBuf<MapData>,
    /// Where they are attached, if they are.
    attached: Option<SockOpsLinkId>,
}

impl ImmediateRetransmission {
    /// Loads the programs, which do nothing before [`Self::begin`], for the sockets of the calling
    /// thread's network namespace. What follows needs `CAP_NET_ADMIN` only.
    ///
    /// # Errors
    /// Without root, or on a kernel before 6.1 or without BTF.
    pub fn load() -> Result<Self, ImmediateError> {
        let types = Btf::from_sys_fs()?;
        // It would read the types a second time.
        let mut ebpf = EbpfLoader::new().btf(Some(&types)).load(OBJECT)?;
        for name in [TAKE, GIVE_BACK, ASK] {
            iterator(&mut ebpf, name)?.load("tcp", &types)?;
        }
        speaker(&mut ebpf)?.load()?;
        let namespace = cookie::of_network_namespace().map_err(ImmediateError::Namespace)?;
        let map = ebpf.map_mut(NAMESPACES).expect("the object has it");
        let mut namespaces: Array<_, u64> = Array::try_from(map)?;
        namespaces.set(0, namespace, 0)?;
        let requests = ebpf.take_map(REQUESTS).expect("the object has it");
        Ok(Self {
            requests: RingBuf::try_from(requests)?,
            ebpf,
            attached: None,
        })
    }

    /// Attaches the programs and takes over the connections that are there already; how many things
    /// the kernel refused, as all kernels before 6.12 do.
    ///
    /// # Errors
    /// Without cgroup v2, or without privileges.
    pub fn begin(&mut self) -> Result<u64, ImmediateError> {
        if self.attached.is_none() {
            let root = Cgroup::open_all(&[])?;
            let root = root.first().expect("the root is one");
            // A link never displaces another's program.
            let link = speaker(&mut self.ebpf)?.attach(root, CgroupAttachMode::Single)?;
            self.attached = Some(link);
        }
        let before = self.counters()?.failures;
        self.pass(TAKE)?;
        Ok(self.counters()?.failures - before)
    }

    /// Detaches the programs. They may [begin](Self::begin) again. Unless something `else_hears`, as the
    /// user timeout option does, the kernel looks for unknown options no longer.
    ///
    /// # Errors
    /// When the sockets cannot be gone through.
    pub fn end(&mut self, else_hears: bool) -> Result<(), ImmediateError> {
        if let Some(link) = self.attached.take() {
            speaker(&mut self.ebpf)?.detach(link)?;
        }
        if !else_hears {
            self.pass(GIVE_BACK)?;
        }
        Ok(())
    }

    /// The next pure acknowledgement of each of these connections bears the option. They are named by
    /// what the kernel calls their sockets.
    ///
    /// # Errors
    /// When the sockets cannot be gone through.
    pub fn ask(&mut self, cookies: &[u64]) -> Result<(), ImmediateError> {
        if cookies.is_empty() || self.attached.is_none() {
            return Ok(());
        }
        for cookie in cookies {
            self.askers()?.insert(cookie, 1, 0)?;
        }
        self.pass(ASK)?;
        for cookie in cookies {
            self.askers()?.remove(cookie)?;
        }
        Ok(())
    }

    /// The next connection whose peer has asked for an immediate retransmission. The descriptor is
    /// readable while there is one.
    pub fn poll_request(&mut self) -> Option<ConnectionId> {
        loop {
            let item = self.requests.next()?;
            if let Some(id) = request(&item) {
                return Some(id);
            }
        }
    }

    /// Counts so far.
    ///
    /// # Errors
    /// When the kernel does not let them be read.
    pub fn counters(&self) -> Result<ImmediateCounters, ImmediateError> {
        let map = self.ebpf.map(COUNTS_MAP).expect("the object has it");
        let counts: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
        let mut sums = [0; COUNTS];
        for (place, sum) in (0..).zip(&mut sums) {
            *sum = counts.get(&place, 0)?.iter().sum();
        }
        let [
            sent,
            heard,
            passed_on,
            needless,
            too_soon,
            no_room,
            failures,
        ] = sums;
        Ok(ImmediateCounters {
            sent,
            heard,
            passed_on,
            needless,
            too_soon,
            no_room,
            failures,
        })
    }

    fn askers(&mut self) -> Result<HashMap<&mut MapData, u64, u8>, MapError> {
        let map = self.ebpf.map_mut(ASKERS).expect("the object has it");
        HashMap::try_from(map)
    }

    fn pass(&mut self, name: &str) -> Result<(), ImmediateError> {
        let iterator = iterator(&mut self.ebpf, name)?;
        let link = iterator.attach()?;
        let mut file = iterator.take_link(link)?.into_file()?;
        // It writes nothing: reading makes it go through the sockets.
        file.read_to_end(&mut Vec::new())
            .map_err(ImmediateError::Read)?;
        Ok(())
    }
}

impl fmt::Debug for ImmediateRetransmission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImmediateRetransmission")
            .field("attached", &self.attached)
            .finish_non_exhaustive()
    }
}

impl AsFd for ImmediateRetransmission {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.requests.as_fd()
    }
}

fn iterator<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Iter, ProgramError> {
    ebpf.program_mut(name)
        .expect("the object has it")
        .try_into()
}

fn speaker(ebpf: &mut Ebpf) -> Result<&mut SockOps, ProgramError> {
    ebpf.program_mut(SPEAK)
        .expect("the object has it")
        .try_into()
}

/// The connection of a `struct request`; `None` for a family that is none.
fn request(bytes: &[u8]) -> Option<ConnectionId> {
    let half = |at: usize| Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let family = half(36)?;
    let address = |at: usize| -> Option<IpAddr> {
        let octets: [u8; 16] = bytes.get(at..at + 16)?.try_into().ok()?;
        match i32::from(family) {
            libc::AF_INET => {
                let [a, b, c, d, ..] = octets;
                Some(Ipv4Addr::new(a, b, c, d).into())
            }
            // IPv4 over a socket of IPv6 is IPv4 on the wire.
            libc::AF_INET6 => Some(Ipv6Addr::from(octets).to_canonical()),
            _ => None,
        }
    };
    Some(ConnectionId {
        local: SocketAddr::new(address(0)?, half(32)?),
        remote: SocketAddr::new(address(16)?, half(34)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_names_its_connection() {
        let mut bytes = [0; 40];
        bytes[..4].copy_from_slice(&[192, 0, 2, 1]);
        bytes[16..20].copy_from_slice(&[198, 51, 100, 7]);
        bytes[32..34].copy_from_slice(&443_u16.to_ne_bytes());
        bytes[34..36].copy_from_slice(&40_000_u16.to_ne_bytes());
        let family = |number: i32| u16::try_from(number).expect("small").to_ne_bytes();
        bytes[36..38].copy_from_slice(&family(libc::AF_INET));
        let id = request(&bytes).expect("a family of TCP's");
        assert_eq!(id.local.to_string(), "192.0.2.1:443");
        assert_eq!(id.remote.to_string(), "198.51.100.7:40000");
        bytes[..16].copy_from_slice(&Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets());
        bytes[36..38].copy_from_slice(&family(libc::AF_INET6));
        let id = request(&bytes).expect("a family of TCP's");
        assert_eq!(id.local.to_string(), "192.0.2.1:443");
        assert_eq!(request(&[0; 40]), None);
        assert_eq!(request(&bytes[..20]), None);
    }

    #[test]
    fn the_kernel_takes_the_programs() {
        let Some(namespace) = crate::testing::fresh_namespace() else {
            return;
        };
        let begun = || {
            let mut programs = ImmediateRetransmission::load()?;
            let refused = programs.begin()?;
            programs.ask(&[7])?;
            programs.end(false)?;
            Ok((refused, programs.counters()?))
        };
        let begun: Result<_, ImmediateError> = namespace.run(begun).expect("enter");
        match begun {
            Ok(begun) => assert_eq!(begun, (0, ImmediateCounters::default())),
            Err(ImmediateError::Program(ProgramError::LoadError { io_error, .. }))
                if io_error.raw_os_error() != Some(libc::EPERM) =>
            {
                panic!("{io_error}")
            }
            Err(error) => outlast_skip::skip(error.with_causes()),
        }
    }
}
