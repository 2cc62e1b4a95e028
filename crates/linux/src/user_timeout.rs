//! The User Timeout Option (RFC 5482) for the kernel's TCP, by programs at cgroups (`bpf/user_timeout.bpf.c`).
//!
//! The kernel calls a `sockops` program when a connection begins, and lets it write options and
//! read those that the kernel does not know. So the option is in the SYN, the SYN-ACK and the first
//! segments after them, and again once another timeout is adopted; what is adopted becomes the
//! socket's `TCP_USER_TIMEOUT`. Which one that is [`outlast_host::user_timeout`] says; the programs
//! decide the same. What is told is always what this host wants, not what it has adopted: otherwise
//! two ends would hold each other to the longest timeout that one of them ever had.
//!
//! A pass of a BPF iterator takes over the sockets that are there already (Linux 6.12), and another
//! gives all of them back, and the programs may begin anew with another policy. Nothing is pinned: programs and maps are gone when the process ends.
//!
//! What breaks it: middleboxes that strip options, and SYNs without room for four more bytes. An
//! application that sets `TCP_USER_TIMEOUT` is left alone from the next segment with an option on.

mod policy;

pub use crate::cgroup::{CgroupError, MOST_CGROUPS};

use crate::causes;
use crate::cgroup::Cgroup;
use crate::lack::{self, Lack, Needs};
use aya::maps::{Array, MapError, PerCpuArray};
use aya::programs::links::{CgroupAttachMode, LinkError};
use aya::programs::sock_ops::SockOpsLinkId;
use aya::programs::tc::SchedClassifier;
use aya::programs::{Iter, ProgramError, SockOps};
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use outlast_base::time::Duration;
use outlast_host::user_timeout::{AdoptionLimits, UserTimeoutOption};
use policy::Selector;
use std::io::{self, Read};
use std::net::IpAddr;
use std::path::PathBuf;

use crate::netlink::{InterfaceIndex, Prefix};
use crate::sys::bpf::{self, Tags};
use crate::sys::cookie;
use rustix::fd::AsFd;

static OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/user_timeout.bpf.o");

const SPEAK: &str = "speak";
const TAKE: &str = "take";
const GIVE_BACK: &str = "give_back";
const STRETCH: &str = "stretch";
const ASK: &str = "ask";

/// The maps of the object that are written.
const POLICY: &str = ".data.policy";
const KEPT: &str = "kept";
const OUTAGES: &str = "outages";

/// `enum count`.
const COUNTS: u32 = 10;

const SEED_OF_TRIALS: u32 = 1;

/// Rules that there may be: `MOST_RULES`.
pub const MOST_RULES: usize = 16;

/// Bytes of `struct outage`.
const OUTAGE: usize = 4 + 4 + 16;

/// The longest `TCP_USER_TIMEOUT` is 2^31 - 1 milliseconds; this is less.
pub const LONGEST: Duration = Duration::from_secs(24 * 86_400);

/// What the programs do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UserTimeoutConfig {
    /// What is told and adopted.
    pub option: UserTimeoutOption,
    /// How many connections are kept for long because their peers ask for it. Peers are told apart by
    /// a hash of their address, of IPv6 by that of their network of 64 bits; those whose hashes are alike
    /// share a limit.
    pub limits: AdoptionLimits,
    /// What this host wants holds for its own end even where the peer sends no option.
    pub is_one_sided: bool,
    /// The cgroups whose sockets are meant, and those below them; none: all sockets.
    pub cgroups: Vec<PathBuf>,
    /// For how long connections are kept while their link is away; `None`: as before.
    pub in_outage: Option<Duration>,
    /// What holds for some connections instead: the first one that is about a connection.
    pub rules: Vec<UserTimeoutRule>,
}

/// What holds for the connections of which all of this is true.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UserTimeoutRule {
    /// Their sockets are of this cgroup, or of one below it.
    pub cgroup: Option<PathBuf>,
    /// Their packets leave by the interface of that name.
    pub interface: Option<String>,
    /// The peer is of this network.
    pub peer: Option<Prefix>,
    /// One end has this port.
    pub port: Option<u16>,
    /// What peers are told instead of [`UserTimeoutOption::advertise`].
    pub advertise: Duration,
    /// As [`UserTimeoutConfig::in_outage`].
    pub in_outage: Option<Duration>,
}

/// Why the option cannot be sent here.
#[derive(Debug, thiserror::Error)]
pub enum UserTimeoutError {
    /// The cgroups are not there.
    #[error(transparent)]
    Cgroup(#[from] CgroupError),
    /// The kernel does not describe its types.
    #[error("the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")]
    Types(#[from] BtfError),
    /// The kernel does not take the object.
    #[error("cannot load the programs of the user timeout option")]
    Object(#[from] EbpfError),
    /// The kernel does not take a program.
    #[error("cannot load a program of the user timeout option")]
    Program(#[source] ProgramError),
    /// The kernel does not let the program be attached.
    #[error("cannot attach the program of the user timeout option to {}", cgroup.display())]
    Attach {
        /// Where it was to be.
        cgroup: PathBuf,
        /// The kernel's word.
        #[source]
        source: ProgramError,
    },
    /// The sockets cannot be gone through.
    #[error("cannot go through the sockets")]
    Pass(#[source] PassError),
    /// The kernel does not let a map be read or written.
    #[error("cannot reach the maps of the user timeout option")]
    Map(#[from] MapError),
    /// The kernel does not say in which network namespace this is, or has no random numbers.
    #[error("the kernel does not tell what the user timeout option needs to know")]
    Kernel(#[source] io::Error),
}

const NEEDS: Needs = Needs {
    rights: &[lack::BPF, lack::PERFMON, lack::NET_ADMIN],
    kernel: "run Linux 6.1 or newer with CONFIG_DEBUG_INFO_BTF=y and CONFIG_CGROUP_BPF=y",
};

impl UserTimeoutError {
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

/// Why the sockets could not be gone through.
#[derive(Debug, thiserror::Error)]
pub enum PassError {
    /// The iterator is not taken.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// The iterator cannot be opened.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
}

/// Counts since the programs were loaded; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UserTimeoutCounters {
    /// Segments that were sent with the option.
    pub sent: u64,
    /// Options of peers that were read.
    pub heard: u64,
    /// Times that a connection's user timeout became another one because of an option.
    pub adopted: u64,
    /// Options that asked for more than this host wants and found a limit reached.
    pub refused: u64,
    /// Options that said zero, which is reserved.
    pub zeros: u64,
    /// Connections whose application has a user timeout of its own.
    pub left_alone: u64,
    /// Segments that had no room for the option.
    pub no_room: u64,
    /// Things that the kernel refused.
    pub failures: u64,
    /// Sockets that were there before and were taken over.
    pub taken_over: u64,
    /// Times that a connection was kept for longer because its link went away.
    pub stretched: u64,
}

/// The programs. They end when this is dropped; [`UserTimeouts::give_back`] says what becomes of the
/// sockets.
#[derive(Debug)]
pub struct UserTimeouts {
    ebpf: Ebpf,
    /// The network namespace whose sockets are meant.
    namespace: u64,
    seed: u32,
    /// Where they are attached.
    attached: Vec<SockOpsLinkId>,
}

impl UserTimeouts {
    /// Loads the programs and attaches them, for the sockets of the calling thread's network namespace.
    ///
    /// # Errors
    /// Without root, cgroup v2, or on a kernel before 6.1 or without BTF.
    pub fn attach(config: &UserTimeoutConfig) -> Result<Self, UserTimeoutError> {
        // What can be told without privileges comes first.
        let cgroups = Cgroup::open_all(&config.cgroups)?;
        let mut timeouts = Self::load()?;
        timeouts.attach_to(&cgroups, config)?;
        Ok(timeouts)
    }

    /// Loads the programs, which do nothing before [`UserTimeouts::begin`], for the sockets of the
    /// calling thread's network namespace. What follows needs `CAP_NET_ADMIN` only.
    ///
    /// # Errors
    /// Without root, or on a kernel before 6.1 or without BTF.
    pub fn load() -> Result<Self, UserTimeoutError> {
        let seed = policy::draw_seed().map_err(UserTimeoutError::Kernel)?;
        let types = Btf::from_sys_fs()?;
        let mut timeouts = Self::load_object(seed, &types)?;
        for name in [TAKE, GIVE_BACK, STRETCH] {
            let iterator = timeouts.iterator(name);
            let loaded = iterator.and_then(|iterator| iterator.load("tcp", &types));
            loaded.map_err(UserTimeoutError::Program)?;
        }
        let speaker = timeouts.speaker().and_then(SockOps::load);
        speaker.map_err(UserTimeoutError::Program)?;
        Ok(timeouts)
    }

    /// Attaches the programs, to do as `config` says from now on. What they have done before must have
    /// been given back: they would take it for what applications want.
    ///
    /// # Errors
    /// Without cgroup v2, or without privileges.
    pub fn begin(&mut self, config: &UserTimeoutConfig) -> Result<(), UserTimeoutError> {
        let cgroups = Cgroup::open_all(&config.cgroups)?;
        self.attach_to(&cgroups, config)
    }

    fn attach_to(
        &mut self,
        cgroups: &[Cgroup],
        config: &UserTimeoutConfig,
    ) -> Result<(), UserTimeoutError> {
        let ids: Vec<u64> = cgroups.iter().map(Cgroup::id).collect();
        let selectors = selectors(&config.rules)?;
        self.adopt(config, &ids, &selectors)?;
        for cgroup in cgroups {
            // A link never displaces another's program.
            let attached = self
                .speaker()
                .and_then(|speaker| speaker.attach(cgroup, CgroupAttachMode::Single));
            let link = attached.map_err(|source| UserTimeoutError::Attach {
                cgroup: cgroup.path().into(),
                source,
            })?;
            self.attached.push(link);
        }
        Ok(())
    }

    /// Loads the programs for [`Self::ask`] alone; which peers share a limit is the same each time.
    ///
    /// # Errors
    /// As [`Self::attach`].
    pub fn load_for_trial(config: &UserTimeoutConfig) -> Result<Self, UserTimeoutError> {
        let mut timeouts = Self::load_object(SEED_OF_TRIALS, &Btf::from_sys_fs()?)?;
        timeouts.adopt(config, &[], &[])?;
        let program = timeouts.ebpf.program_mut(ASK).expect("the object has it");
        let loaded = <&mut SchedClassifier>::try_from(program).and_then(SchedClassifier::load);
        loaded.map_err(UserTimeoutError::Program)?;
        Ok(timeouts)
    }

    fn load_object(seed: u32, types: &Btf) -> Result<Self, UserTimeoutError> {
        Ok(Self {
            // It would read the types a second time.
            ebpf: EbpfLoader::new().btf(Some(types)).load(OBJECT)?,
            namespace: cookie::of_network_namespace().map_err(UserTimeoutError::Kernel)?,
            seed,
            attached: Vec::new(),
        })
    }

    /// Tells the programs what to do.
    fn adopt(
        &mut self,
        config: &UserTimeoutConfig,
        cgroups: &[u64],
        selectors: &[Selector],
    ) -> Result<(), UserTimeoutError> {
        let bytes = policy::bytes(config, self.namespace, cgroups, selectors, self.seed);
        let map = self.ebpf.map_mut(POLICY).expect("the object has it");
        let mut policy: Array<_, policy::Bytes> = Array::try_from(map)?;
        Ok(policy.set(0, bytes, 0)?)
    }

    /// Takes over the sockets that are there already; how many, and how many things the kernel
    /// refused, as all kernels before 6.12 do.
    ///
    /// # Errors
    /// When the sockets cannot be gone through.
    pub fn take_over(&mut self) -> Result<(u64, u64), UserTimeoutError> {
        let before = self.counters()?;
        self.pass(TAKE).map_err(UserTimeoutError::Pass)?;
        let after = self.counters()?;
        Ok((
            after.taken_over - before.taken_over,
            after.failures - before.failures,
        ))
    }

    /// Keeps connections for longer while a link, or its neighbour `peer`, is away, and as before when it
    /// is back.
    ///
    /// # Errors
    /// When the sockets cannot be gone through.
    pub fn note_link(
        &mut self,
        interface: InterfaceIndex,
        peer: Option<IpAddr>,
        is_away: bool,
    ) -> Result<(), UserTimeoutError> {
        let mut outage = interface.0.to_ne_bytes().to_vec();
        outage.extend(u32::from(is_away).to_ne_bytes());
        outage.extend(peer.map_or([0; 16], policy::address));
        let outage: [u8; OUTAGE] = outage.try_into().expect("so many are written");
        let map = self.ebpf.map_mut(OUTAGES).expect("the object has it");
        let mut outages: Array<_, [u8; OUTAGE]> = Array::try_from(map)?;
        outages.set(0, outage, 0)?;
        self.pass(STRETCH).map_err(UserTimeoutError::Pass)
    }

    /// Detaches the programs and leaves every socket to the kernel's own limits again, but for those
    /// whose application has its own. They may [begin](UserTimeouts::begin) again.
    ///
    /// # Errors
    /// When the sockets cannot be gone through; then they keep the timeouts that they have.
    pub fn give_back(&mut self) -> Result<(), UserTimeoutError> {
        for link in std::mem::take(&mut self.attached) {
            let detached = self.speaker().and_then(|speaker| speaker.detach(link));
            detached.map_err(UserTimeoutError::Program)?;
        }
        self.pass(GIVE_BACK).map_err(UserTimeoutError::Pass)?;
        // Nobody counts any longer.
        let map = self.ebpf.map_mut(KEPT).expect("the object has it");
        let mut kept: Array<_, u32> = Array::try_from(map)?;
        for place in 0..kept.len() {
            kept.set(place, 0, 0)?;
        }
        Ok(())
    }

    /// Counts so far.
    ///
    /// # Errors
    /// When the kernel does not let them be read.
    pub fn counters(&self) -> Result<UserTimeoutCounters, UserTimeoutError> {
        let map = self.ebpf.map("counts").expect("the object has it");
        let counts: PerCpuArray<_, u64> = PerCpuArray::try_from(map)?;
        let mut sums = [0; COUNTS as usize];
        for (place, sum) in (0..).zip(&mut sums) {
            *sum = counts.get(&place, 0)?.iter().sum();
        }
        let [
            sent,
            heard,
            adopted,
            refused,
            zeros,
            left_alone,
            no_room,
            failures,
            taken_over,
            stretched,
        ] = sums;
        Ok(UserTimeoutCounters {
            sent,
            heard,
            adopted,
            refused,
            zeros,
            left_alone,
            no_room,
            failures,
            taken_over,
            stretched,
        })
    }

    /// What the programs would adopt for a connection that asks for `remote`, which is not zero; whether
    /// it counts as kept for long now, and before.
    ///
    /// # Errors
    /// Without `CAP_BPF`.
    pub fn ask(
        &self,
        peer: IpAddr,
        remote: Duration,
        rto: Duration,
        is_kept: bool,
    ) -> Result<Answer, UserTimeoutError> {
        let program = self.ebpf.program(ASK).expect("the object has it");
        let program = <&SchedClassifier>::try_from(program).and_then(SchedClassifier::fd);
        let program = program.map_err(UserTimeoutError::Program)?;
        let question = policy::question(peer, remote, rto, is_kept);
        bpf::run(program.as_fd(), &question, Tags::default(), 1)
            .map_err(UserTimeoutError::Kernel)?;
        let map = self.ebpf.map("answers").expect("the object has it");
        let answers: Array<_, u64> = Array::try_from(map)?;
        let answer = answers.get(&0, 0)?.to_ne_bytes();
        let [a, b, c, d, is_kept, is_refused, ..] = answer;
        Ok(Answer {
            timeout: Duration::from_millis(u32::from_ne_bytes([a, b, c, d]).into()),
            is_kept: is_kept != 0,
            is_refused: is_refused != 0,
        })
    }

    fn speaker(&mut self) -> Result<&mut SockOps, ProgramError> {
        let program = self.ebpf.program_mut(SPEAK).expect("the object has it");
        program.try_into()
    }

    fn iterator(&mut self, name: &str) -> Result<&mut Iter, ProgramError> {
        let program = self.ebpf.program_mut(name).expect("the object has it");
        program.try_into()
    }

    fn pass(&mut self, name: &str) -> Result<(), PassError> {
        let iterator = self.iterator(name)?;
        let link = iterator.attach()?;
        let mut file = iterator.take_link(link)?.into_file()?;
        // It writes nothing: reading makes it go through the sockets.
        file.read_to_end(&mut Vec::new())?;
        Ok(())
    }
}

/// Which connections the rules hold for, in their order.
fn selectors(rules: &[UserTimeoutRule]) -> Result<Vec<Selector>, CgroupError> {
    let selector = |rule: &UserTimeoutRule| {
        let named = rule.cgroup.as_slice();
        let cgroup = match named {
            [] => Vec::new(),
            named => Cgroup::open_all(named)?,
        };
        Ok(Selector::new(rule, cgroup.first()))
    };
    rules.iter().map(selector).collect()
}

/// What the programs adopt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Answer {
    /// The user timeout.
    pub timeout: Duration,
    /// Whether the connection counts as kept for long because its peer asks for it.
    pub is_kept: bool,
    /// Whether a limit was reached.
    pub is_refused: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Verifiers give up after 1,000,000 instructions, and older ones look at some of them oftener.
    #[test]
    fn the_verifier_is_far_from_giving_up() {
        let timeouts = match UserTimeouts::load() {
            Ok(timeouts) => timeouts,
            Err(error) => return outlast_skip::skip(error.with_causes()),
        };
        for (name, program) in timeouts.ebpf.programs().filter(|(name, _)| *name != ASK) {
            let info = program.info().expect("loaded");
            let processed = info.verified_instruction_count();
            assert!(processed < Some(50_000), "{name}: {processed:?}");
        }
    }
}
