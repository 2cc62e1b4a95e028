//! The kernel's part of the gateway: two programs in traffic control (`bpf/tracker.bpf.c`) that
//! watch an interface's TCP connections and pass every packet.
//!
//! What they track is what [`outlast_gateway::tracking::TcpFlow`] tracks. The table has a hard cap; when
//! it is full, a closed connection gives way, or one that was not used for long. Connections whose
//! handshake was not seen to be completed have a table of their own, so that who floods an
//! interface with SYNs displaces no others. Beside that they keep what a gateway needs when the
//! link is found to be down: the segments that went towards it last, in a ring whose oldest is
//! overwritten, and of each connection the newest acknowledgement in both directions.
//!
//! Nothing is pinned: programs and maps are gone when the [`Tracker`] is dropped, or the process
//! ends. Before Linux 6.6 the killed process leaves a filter that does nothing
//! (`crates/linux/src/traffic_control.rs`).

mod entry;
mod key;
mod lack;
mod pass_through;
mod recorder;
mod table;

pub use crate::lack::Lack;
pub use entry::{Acknowledgement, RESOLUTION, TrackedFlow};
pub use pass_through::PassThrough;
pub use recorder::Recorded;

use crate::netlink::{NetlinkError, RouteSocket};
use crate::sys::bpf::{self, Hook, Tags};
use crate::traffic_control::{self, Attachment, Order, Spot, Way};
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray, RingBuf};
use aya::programs::ProgramError;
use aya::programs::tc::SchedClassifier;
use aya::{Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use entry::ENTRY;
use key::{KEY, Secrets};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::{BitRate, ByteCount};
use outlast_gateway::links::Direction;
use outlast_gateway::tracking::FlowKey;
use recorder::Recorder;
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;
use std::io;
use table::{BUCKET, Room, Table};

static OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/tracker.bpf.o");

const PROGRAMS: [(Direction, &str, Hook); 2] = [
    (Direction::ToLink, "to_link", Hook::Egress),
    (Direction::FromLink, "from_link", Hook::Ingress),
];

/// `struct contest`: only the kernel reads it.
const CONTEST: usize = 120;
const LEAST_OPENINGS: u32 = 1024;
/// `struct common`, and where it has the link header's length.
const COMMON: usize = 32;
const LINK_HEADER_AT: usize = 24;
/// `enum count`.
const COUNTS: usize = 8;
/// An entry that is being written is read again this often.
const TRIES: usize = 8;

/// What a tracker is loaded with.
#[derive(Clone, Copy, Debug)]
pub struct TrackerConfig {
    /// Connections that there is room for; an eighth as many more whose handshake was not seen to
    /// be completed.
    pub flows: u32,
    /// Slots of the recorder, of 2,048 bytes each; rounded up to a power of two, at least 64.
    pub slots: u32,
    /// What is recorded at most, in the long run: on a faster link of each connection one segment
    /// in a round trip is, and one in a millisecond at most; of a super-segment its first packet.
    pub rate: BitRate,
    /// Packets with this mark are this process's own, and not recorded; zero: there are none.
    pub mark: u32,
}

impl Default for TrackerConfig {
    fn default() -> Self {
        Self {
            flows: 262_144,
            slots: 8192,
            rate: BitRate::from_bits_per_second(1_000_000_000).expect("not zero"),
            mark: 0,
        }
    }
}

/// Why the tracker does not run.
#[derive(Debug, thiserror::Error)]
pub enum TrackerError {
    /// The kernel does not take the object.
    #[error("cannot load the flow tracker")]
    Object(#[from] EbpfError),
    /// The kernel does not take a program.
    #[error("cannot load a program of the flow tracker")]
    Program(#[from] ProgramError),
    /// The kernel does not let a program be attached.
    #[error("cannot attach a program of the flow tracker")]
    Attach(#[source] io::Error),
    /// There is no such interface, or it cannot be looked at.
    #[error("cannot attach the flow tracker")]
    Interface(#[source] NetlinkError),
    /// The kernel does not let the table be read.
    #[error("cannot read the flow tracker's table")]
    Map(#[from] MapError),
    /// The kernel does not let the recorder or the whole table be read.
    #[error("cannot read what the flow tracker has recorded")]
    Read(#[source] io::Error),
    /// The kernel has no random numbers.
    #[error("cannot draw secrets for the flow tracker's table")]
    Secrets(#[source] io::Error),
    /// The kernel does not run a program for a try.
    #[error("cannot try a program of the flow tracker")]
    Try(#[source] io::Error),
}

/// A loaded tracker. Its programs and its maps are gone when it is dropped.
pub struct Tracker {
    ebpf: Ebpf,
    secrets: Secrets,
    table: Table,
    recorder: Recorder,
    suspicions: RingBuf<MapData>,
    /// The programs' ways to an interface, in their order.
    ways: [Way; 2],
    attached: Vec<Attachment>,
}

/// Packets by what became of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TrackerCounters {
    /// Segments that belong to their connection. While it streams data up to 64 of the last ones are
    /// counted only with the next segment that says more; so in `thinned`.
    pub tracked: u64,
    /// Segments that no honest host would have sent then.
    pub odd: u64,
    /// What is no whole segment and had to be looked at closely to know that, and a RST of no
    /// connection. UDP, ICMP and whatever else is known at first sight is not counted;
    /// `docs/gateway.md` has the list.
    pub not_tracked: u64,
    /// Segments that were not looked at, because another processor did not let go of the flow.
    pub contended: u64,
    /// Segments recorded.
    pub recorded: u64,
    /// Segments that were not recorded, because the link is faster than the recorder may be.
    pub thinned: u64,
    /// Connections that were suspected of having lost their far host.
    pub suspected: u64,
    /// Connections that were not closed and had to give way to others, since the table was full.
    pub evicted: u64,
}

/// Memory of a tracker's tables, all of it taken when it is loaded.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TrackerMemory {
    /// Connections with a completed handshake, as many as there is room for.
    pub connections: ByteCount,
    /// Connections without a completed handshake, as many as there is room for.
    pub openings: ByteCount,
    /// What went towards the link last.
    pub recorder: ByteCount,
}

impl Tracker {
    /// Size of a slot of the recorder.
    pub const SLOT: ByteCount = ByteCount(2048);

    /// Loads the programs; no packet goes through them yet.
    ///
    /// # Errors
    /// Without `CAP_BPF`, `CAP_PERFMON` and `CAP_NET_ADMIN`, or on a kernel without what they need.
    pub fn load(config: &TrackerConfig) -> Result<Self, TrackerError> {
        Self::load_with(
            config,
            false,
            Secrets::draw().map_err(TrackerError::Secrets)?,
        )
    }

    /// Loads the programs for [`Self::try_out`] alone: the time is what that says.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_for_trial(config: &TrackerConfig) -> Result<Self, TrackerError> {
        Self::load_with(
            config,
            true,
            Secrets::draw().map_err(TrackerError::Secrets)?,
        )
    }

    fn load_with(
        config: &TrackerConfig,
        is_trial: bool,
        secrets: Secrets,
    ) -> Result<Self, TrackerError> {
        let slots = config.slots.clamp(64, 1 << 24).next_power_of_two();
        let slot_mask = slots - 1;
        let nanos = |bytes| {
            let time = config.rate.time_for(ByteCount(bytes));
            u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
        };
        let nanos_per_kib = nanos(1024).max(1);
        // Half of the ring at once: what is there is not overwritten by what makes debts.
        let burst_nanos = nanos(u64::from(slots) * 1024);
        let room = Room::for_flows(config.flows);
        let mut ebpf = EbpfLoader::new()
            .override_global("SECRETS", secrets.of_hosts(), true)
            .override_global("INDEX_SECRETS", &secrets.of_keys()[..], true)
            .override_global("PLACES", &room.places, true)
            .override_global("BUCKET_MASK", &room.bucket_mask(), true)
            .override_global("PLACE_MASK", &room.place_mask(), true)
            .override_global("MARK", &config.mark, true)
            .override_global("SLOT_MASK", &slot_mask, true)
            .override_global("NANOS_PER_KIB", &nanos_per_kib, true)
            .override_global("BURST_NANOS", &burst_nanos, true)
            .override_global("IS_TRIAL", &u8::from(is_trial), true)
            .override_global("IS_ORDERED", &u8::from(cfg!(target_arch = "x86_64")), true)
            .map_max_entries("FLOWS", room.places)
            .map_max_entries("INDEX", room.buckets)
            .map_max_entries("OPENINGS", Self::openings_for(config.flows))
            .map_max_entries("RECORDER", slots)
            .load(OBJECT)?;
        for (_, name, _) in PROGRAMS {
            let program = ebpf.program_mut(name).expect("the object has it");
            <&mut SchedClassifier>::try_from(program)?.load()?;
        }
        let ways = [
            Way::of(program(&ebpf, "to_link")?).map_err(TrackerError::Attach)?,
            Way::of(program(&ebpf, "from_link")?).map_err(TrackerError::Attach)?,
        ];
        let [entries, index, hand] = ["FLOWS", "INDEX", "HAND"].map(|name| data(&ebpf, name));
        let table = Table::of(entries, index, hand, room).map_err(TrackerError::Read)?;
        let recorder = Recorder::of(data(&ebpf, "RECORDER"), data(&ebpf, "POSITION"), slots)
            .map_err(TrackerError::Read)?;
        let suspicions = ebpf.take_map("SUSPICIONS").expect("the object has it");
        let suspicions = RingBuf::try_from(suspicions)?;
        Ok(Self {
            ebpf,
            secrets,
            table,
            recorder,
            suspicions,
            ways,
            attached: Vec::new(),
        })
    }

    /// Lets the packets of `interface` go through the programs, and those of no other, in the
    /// network namespace of the calling thread.
    ///
    /// # Errors
    /// When there is no such interface, on a kernel without a way to attach programs, behind others' filters
    /// before Linux 6.6 (tcx), or without `CAP_NET_ADMIN`.
    pub fn attach(&mut self, interface: &str) -> Result<(), TrackerError> {
        self.detach();
        let (index, link_header) = RouteSocket::open()
            .and_then(|mut route| Ok((route.interface(interface)?, route.link_header(interface)?)))
            .map_err(TrackerError::Interface)?;
        let map = self.ebpf.map_mut(".data").expect("the object has it");
        let mut common: Array<_, [u8; COMMON]> = Array::try_from(map)?;
        let mut bytes = [0; COMMON];
        bytes[LINK_HEADER_AT..][..4].copy_from_slice(&link_header.to_ne_bytes());
        common.set(0, bytes, 0)?;
        let mut spot = Spot::at(index);
        for ((_, name, hook), way) in PROGRAMS.into_iter().zip(&self.ways) {
            // Others' programs may end the line, and may change what passes; ours do neither.
            let program = program(&self.ebpf, name)?;
            let attached = way.attach(program, &mut spot, hook, Order::First);
            self.attached.push(attached.map_err(TrackerError::Attach)?);
        }
        Ok(())
    }

    /// Lets no packets go through the programs any more.
    pub fn detach(&mut self) {
        self.attached.clear();
    }

    /// Lets one Ethernet frame go through a program, without a network, at a time that only
    /// programs loaded for it heed.
    ///
    /// # Errors
    /// When the frame is shorter than an Ethernet header or longer than a page, or without
    /// `CAP_BPF`.
    pub fn try_out(
        &self,
        at: Instant,
        direction: Direction,
        frame: &[u8],
        mark: u32,
    ) -> Result<(), TrackerError> {
        let tags = Tags {
            mark,
            ..Self::tags_at(at)
        };
        self.run(direction, frame, tags, 1).map(drop)
    }

    /// Lets one unmarked super-segment of `segment_size` go through a program, without a network.
    ///
    /// # Errors
    /// As [`Self::try_out`].
    pub fn try_out_super_segment(
        &self,
        at: Instant,
        direction: Direction,
        frame: &[u8],
        segment_size: u16,
    ) -> Result<(), TrackerError> {
        let tags = Tags {
            segment_size: segment_size.into(),
            ..Self::tags_at(at)
        };
        self.run(direction, frame, tags, 1).map(drop)
    }

    /// What tells the programs that it is `at`.
    fn tags_at(at: Instant) -> Tags {
        let nanos = at.as_nanos();
        Tags {
            cb: [nanos as u32, (nanos >> 32) as u32],
            ..Tags::default()
        }
    }

    /// Lets the same Ethernet frame go through a program so many times, without a network; how long
    /// that takes each time, on the average, with what the kernel needs for trying. In whole
    /// nanoseconds.
    ///
    /// # Errors
    /// As [`Self::try_out`].
    pub fn time(
        &self,
        direction: Direction,
        frame: &[u8],
        times: u32,
    ) -> Result<Duration, TrackerError> {
        self.run(direction, frame, Tags::default(), times)
    }

    fn run(
        &self,
        direction: Direction,
        frame: &[u8],
        tags: Tags,
        times: u32,
    ) -> Result<Duration, TrackerError> {
        let name = PROGRAMS.iter().find(|(known, ..)| *known == direction);
        let (_, name, _) = name.expect("there is one for each direction");
        bpf::run(program(&self.ebpf, name)?, frame, tags, times).map_err(TrackerError::Try)
    }

    /// What is known of a connection.
    ///
    /// # Errors
    /// When the kernel does not let the table be read.
    pub fn flow(&self, key: &FlowKey) -> Result<Option<TrackedFlow>, TrackerError> {
        let (place, hosts) = (self.secrets.key_of(key), key::hosts(key));
        if let Some((_, entry)) = self.table.find(&self.secrets, &place, &hosts) {
            return Ok(entry::tracked(&entry));
        }
        let map = self.ebpf.map("OPENINGS").expect("the object has it");
        let openings: HashMap<_, [u8; KEY], [u8; ENTRY]> = HashMap::try_from(map)?;
        let read = || match openings.get(&place, 0) {
            Ok(entry) => Ok(Some(entry)),
            Err(MapError::KeyNotFound) => Ok(None),
            Err(error) => Err(error),
        };
        for _ in 0..TRIES {
            let Some(entry) = read()? else { break };
            // Whoever writes there begins with this.
            let is_unchanged =
                read()?.is_some_and(|now| entry::begun(&now) == entry::begun(&entry));
            if is_unchanged && entry::is_settled(&entry) {
                let is_it = *entry::hosts(&entry) == hosts;
                return Ok(entry::tracked(&entry).filter(|_| is_it));
            }
        }
        Ok(None)
    }

    /// Shows every connection with a completed handshake for which `is_wanted` holds, each at least
    /// once; those that come and go meanwhile perhaps.
    pub fn flows(
        &self,
        mut is_wanted: impl FnMut(&FlowKey) -> bool,
        mut visit: impl FnMut(FlowKey, TrackedFlow),
    ) {
        self.table.read_all(|entry| {
            let key = key::named(entry::hosts(entry), entry::key(entry));
            if !is_wanted(&key) {
                return;
            }
            if let Some(flow) = entry::tracked(entry) {
                visit(key, flow);
            }
        });
    }

    /// Shows the segments that are recorded, the oldest first.
    pub fn recorded(&self, visit: impl FnMut(Recorded<'_>)) {
        self.recorder.read(visit);
    }

    /// The next connection whose near host sends again while its far host is silent, without
    /// waiting; [`Self::as_fd`] says when there is one.
    pub fn poll_suspicion(&mut self) -> Option<FlowKey> {
        loop {
            let item = self.suspicions.next()?;
            if let Some(key) = key::connection(&item) {
                return Some(key);
            }
        }
    }

    /// Forgets a connection, while no packet goes through the programs.
    ///
    /// # Errors
    /// When the kernel does not let the table be written.
    pub fn forget(&mut self, key: &FlowKey) -> Result<(), TrackerError> {
        let (place, hosts) = (self.secrets.key_of(key), key::hosts(key));
        if let Some((found, _)) = self.table.find(&self.secrets, &place, &hosts) {
            let map = self.ebpf.map_mut("INDEX").expect("the object has it");
            let mut index: Array<_, [u8; BUCKET]> = Array::try_from(map)?;
            let mut bucket = index.get(&found.bucket, 0)?;
            bucket[found.slot..][..4].fill(0);
            index.set(found.bucket, bucket, 0)?;
            let map = self.ebpf.map_mut("FLOWS").expect("the object has it");
            Array::<_, [u8; ENTRY]>::try_from(map)?.set(found.place, [0; ENTRY], 0)?;
        }
        self.remove::<[u8; ENTRY]>("OPENINGS", place)?;
        self.remove::<[u8; CONTEST]>("CONTESTS", place)
    }

    fn remove<V: aya::Pod>(&mut self, table: &str, place: [u8; KEY]) -> Result<(), TrackerError> {
        let map = self.ebpf.map_mut(table).expect("the object has it");
        let mut places: HashMap<_, [u8; KEY], V> = HashMap::try_from(map)?;
        match places.remove(&place) {
            Ok(()) | Err(MapError::KeyNotFound) => Ok(()),
            Err(MapError::SyscallError(error))
                if error.io_error.kind() == io::ErrorKind::NotFound =>
            {
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// What was counted.
    ///
    /// # Errors
    /// When the kernel does not let the counters be read.
    pub fn counters(&self) -> Result<TrackerCounters, TrackerError> {
        let map = self.ebpf.map("COUNTERS").expect("the object has it");
        let counters: PerCpuArray<_, [u64; COUNTS]> = PerCpuArray::try_from(map)?;
        let counters = counters.get(&0, 0)?;
        let count = |which: usize| counters.iter().map(|counters| counters[which]).sum();
        Ok(TrackerCounters {
            tracked: count(0),
            odd: count(1),
            not_tracked: count(2),
            contended: count(3),
            recorded: count(4),
            thinned: count(5),
            suspected: count(6),
            evicted: count(7),
        })
    }

    /// How many handshakes may be under way beside `flows` connections.
    #[must_use]
    pub fn openings_for(flows: u32) -> u32 {
        (flows / 8).max(LEAST_OPENINGS)
    }

    /// Memory of the tables, as the kernel accounts for it.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn memory(&self) -> io::Result<TrackerMemory> {
        let bytes = |name| bpf::memory_of_map(data(&self.ebpf, name));
        let of = |name| bytes(name).map(ByteCount);
        Ok(TrackerMemory {
            connections: ByteCount(bytes("FLOWS")? + bytes("INDEX")?),
            openings: of("OPENINGS")?,
            recorder: of("RECORDER")?,
        })
    }
}

/// Removes what a tracker of an ended process has left at `interface`, as it does before Linux 6.6: filters that do
/// nothing.
///
/// # Errors
/// When there is no such interface, or the kernel does not list its filters.
pub fn remove_left_filters(interface: &str) -> Result<(), NetlinkError> {
    let index = RouteSocket::open()?.interface(interface)?;
    traffic_control::remove_left_filters(index)
}

impl fmt::Debug for Tracker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracker")
            .field("ebpf", &self.ebpf)
            .field("attached", &self.attached)
            .finish_non_exhaustive()
    }
}

impl AsFd for Tracker {
    /// Readable when [`Tracker::poll_suspicion`] has something to say.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.suspicions.as_fd()
    }
}

/// The descriptor of a loaded program.
fn program<'e>(ebpf: &'e Ebpf, name: &str) -> Result<BorrowedFd<'e>, ProgramError> {
    let program = ebpf.program(name).expect("the object has it");
    Ok(<&SchedClassifier>::try_from(program)?.fd()?.as_fd())
}

/// The descriptor of a map.
fn data<'e>(ebpf: &'e Ebpf, name: &str) -> BorrowedFd<'e> {
    match ebpf.map(name).expect("the object has it") {
        Map::LruHashMap(data) | Map::Array(data) => data.fd().as_fd(),
        other => unreachable!("the object has no {other:?} of that name"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::InterfaceSettings;
    use crate::sys::bpf::Word;
    use crate::testing::fresh_namespace;
    use outlast_gateway::tracking::Phase;
    use outlast_wire::{IpHeader, Packet, SeqNumber, TcpFlags, TcpHeader};
    use std::net::{TcpListener, TcpStream};

    const FAR: &str = "[2001:db8::2]:443";

    fn connection(near: &str) -> FlowKey {
        FlowKey {
            near: near.parse().expect("literal"),
            far: FAR.parse().expect("literal"),
        }
    }

    /// A segment without payload to the far host.
    fn send(tracker: &Tracker, connection: &FlowKey, flags: TcpFlags, seq: u32) {
        let ip = IpHeader {
            source: connection.near.ip(),
            destination: connection.far.ip(),
            hop_limit: 64,
            traffic_class: 0,
            identification: 1,
        };
        let tcp = TcpHeader {
            source_port: connection.near.port(),
            destination_port: connection.far.port(),
            seq: SeqNumber(seq),
            flags,
            window: 1000,
            ..TcpHeader::default()
        };
        let packet = Packet::tcp_segment(ip, tcp, &[]).to_bytes();
        let frame = [&[2; 12][..], &[0x86, 0xdd], &packet].concat();
        let now = Instant::from_millis(1000);
        let ran = tracker.try_out(now, Direction::ToLink, &frame, 0);
        ran.expect("it runs");
    }

    /// Verifiers give up after 1,000,000 instructions, and older ones look at some of them oftener.
    #[test]
    fn the_verifier_is_far_from_giving_up() {
        let tracker = match Tracker::load(&TrackerConfig::default()) {
            Ok(tracker) => tracker,
            Err(error) => return outlast_skip::skip(error.lack().what),
        };
        for (name, program) in tracker.ebpf.programs() {
            let info = program.info().expect("loaded");
            let processed = info.verified_instruction_count();
            assert!(processed < Some(100_000), "{name}: {processed:?}");
        }
    }

    #[test]
    fn programs_of_others_that_end_the_line_hide_no_packet() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let mut tracker = match Tracker::load(&TrackerConfig::default()) {
            Ok(tracker) => tracker,
            Err(error) => return outlast_skip::skip(error.lack().what),
        };
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            let lo = route.interface("lo").expect("in every namespace");
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            route.configure(lo, &up).expect("up");
            let theirs = bpf::load_program(Word::Pass).expect("as ours");
            let way = Way::of(theirs.as_fd()).expect("as ours");
            let _attached = [Hook::Egress, Hook::Ingress].map(|hook| {
                let attached = way.attach(theirs.as_fd(), &mut Spot::at(lo), hook, Order::Last);
                attached.expect("as ours")
            });
            tracker.attach("lo").expect("as theirs");
            let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
            let server = listener.local_addr().expect("bound");
            let client = TcpStream::connect(server).expect("connect");
            let near = client.local_addr().expect("bound");
            let flow = tracker.flow(&FlowKey { near, far: server });
            let flow = flow.expect("readable").expect("tracked");
            // Sent and received.
            assert_eq!(flow.tcp.phase, Phase::Established);
        };
        namespace.run(work).expect("enter");
    }

    #[test]
    fn a_connection_whose_hash_is_another_one_s_is_not_tracked_and_harms_nothing() {
        // Without secrets these addresses have the same hash.
        let tracker = Tracker::load_with(&TrackerConfig::default(), true, Secrets::NONE);
        let tracker = match tracker {
            Ok(tracker) => tracker,
            Err(error) => return outlast_skip::skip(error.lack().what),
        };
        let (first, second) = (
            connection("[2001:db8::1]:4000"),
            connection("[2001:db8::7]:4000"),
        );
        send(&tracker, &first, TcpFlags::SYN, 7);
        let known = tracker.flow(&first).expect("readable");
        assert!(known.is_some());
        send(&tracker, &second, TcpFlags::SYN, 8);
        send(&tracker, &second, TcpFlags::ACK, 9);
        assert_eq!(tracker.flow(&second).expect("readable"), None);
        assert_eq!(tracker.flow(&first).expect("readable"), known);
        let counters = tracker.counters().expect("readable");
        assert_eq!((counters.tracked, counters.not_tracked), (1, 2));
    }
}
