//! The running kernel's TCP as endpoint mechanisms act on it: [`EndpointControl`] for its sockets.
//!
//! One pass of a BPF iterator (`bpf/sockets.bpf.c`) lists the connections of the calling thread's
//! network namespace; between passes nothing runs, and no packet costs anything. No call makes
//! Linux retransmit. An ICMP error that says that the network is unreachable and quotes the oldest
//! unacknowledged byte does, once a retransmission timeout has backed off (RFC 6069): it comes from
//! this host over the loopback interface. Each one takes one doubling back.
//!
//! A probe takes back only as many doublings as make the kernel retransmit. Its next timeout is then longer than the time since the
//! segment was sent before, so that nothing else is sent until the next probe.
//!
//! That leaves three kinds of connections to their timers. One that has retransmitted less than a
//! timeout ago: even without back-off its timer holds it. One that stops again: after an outage that
//! took an acknowledgement with it, the next one bears a timestamp from before. The sender takes its timeout
//! for spurious (RFC 3522), no longer counts its data as lost, and measures a round trip as long as
//! the outage, by which it sets its next timeout. And one whose first timeout is still to come. They are
//! told that the path takes packets of two bytes less (RFC 1191, RFC 8201): what is in flight is too
//! long then, and the kernel sends it again at once. The kernel keeps to that size with this peer for ten
//! minutes.
//!
//! A sender with SACK may forget its oldest segment: one that it has retransmitted by its timer, if an acknowledgement of
//! later data makes that timeout look spurious (F-RTO, RFC 5682). The kernel clears the segment's mark as lost and
//! leaves the one as retransmitted (`tcp_undo_cwnd_reduction`); counted as lost again, it passes for being on its way
//! (`tcp_mark_skb_lost`) until the next timeout. A smaller path MTU marks it once more, and then it is sent.
//!
//! That marks the whole window. A sender with SACK and a threshold goes back to the initial window before (`initial_window`): all
//! at once would overflow a short queue, and the kernel would forget what is lost there in turn.
//!
//! Fast retransmission (Cáceres and Iftode 1995, section IV) is nearest to this, by what a connection has gone through:
//!
//! - A connection that has had a timeout and sets its window by a threshold: its back-off is taken back, and the window
//!   of before the timeout is forgotten. It goes on in slow start up to the threshold that the timeout has set.
//! - A connection without a timeout yet and without SACK, with a threshold and four or more segments outstanding: it
//!   hears three duplicate acknowledgements in the peer's name, and the kernel retransmits fast.
//! - Any other connection: [`EndpointControl::retransmit_now`] acts on it.
//!
//! No call sets a connection's window. A connection with SACK whose path is new, and which has had no timeout, is put back into
//! slow start by a congestion control of ours that is chosen for a moment (`initial_window`): before its data is sent again, so
//! that no more than the initial window leaves at once, and after that, as the kernel has set a threshold by that window then.
//!
//! Nobody freezes the kernel's timers from outside ([`EndpointControl::freeze`] is not supported). An acknowledgement
//! is marked as a reconnection (Brown and Singh 1997, section 4.2) by the Immediate Retransmission Option, in a raw packet.
//!
//! With SACK the kernel counts no duplicates that tell of nothing new (RFC 8985), and nobody here knows what the
//! peer could truthfully tell.
//!
//! A peer that sends less than full segments, and whose answer an outage has taken, is told by the same errors about the
//! byte that is expected next from it: it has heard by then what has arrived, so that this byte is its oldest.
//!
//! What breaks it: small segments, which are never too long; a socket bound to an interface does not
//! hear an error from loopback; an application that has set `IP_RECVERR` sees the error.

mod acknowledgement;
mod initial_window;
mod path_mtu;
mod record;

use acknowledgement::{Acknowledgements, Progress, bare};
use aya::maps::{Array, HashMap, MapData, MapError};
use aya::programs::links::LinkError;
use aya::programs::{Iter, Program, ProgramError};
use aya::{Btf, BtfError, Ebpf, EbpfError, EbpfLoader, include_bytes_aligned};
use initial_window::InitialWindow;
use outlast_base::time::{Duration, Instant};
use outlast_host::control::{
    Action, Connection, ConnectionId, ControlError, DUPLICATE_ACKS, EndpointControl, Needless,
    Outcome, Outstanding, Stage,
};
use outlast_wire::{IcmpNotice, Packet, SeqNumber, TcpHeader};
use record::Record;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};
use std::net::IpAddr;

use crate::immediate_retransmission::{ImmediateError, ImmediateRetransmission};
use crate::lack::{self, Lack, Needs};
use crate::raw::{RawSender, Sent};
use crate::{clock, ticks};

static OBJECT: &[u8] = include_bytes_aligned!("../../../bpf/sockets.bpf.o");

/// The programs of the object, and the map of those that are to start slowly.
const LIST: &str = "list";
const START_SLOWLY: &str = "start_slowly";
const START_ANEW: &str = "start_anew";
const SLOW_STARTS: &str = "slow_starts";
const INITIAL_WINDOWS: &str = "initial_windows";

/// Doublings that Linux counts at most: its timer is at its longest before.
const MOST_DOUBLINGS: u8 = 16;

/// Duplicate acknowledgements that make a sender retransmit (RFC 5681, section 3.2).
const DUPLICATES: u8 = DUPLICATE_ACKS - 1;

/// Errors that a peer is sent whose answer an outage has taken. Each takes one doubling of its timeout back (RFC 6069), and
/// after eight of them it waits for less than a second, whatever the outage was.
const ERRORS_TO_PEER: u8 = 8;

/// Round trips in which a sender with SACK has sent its oldest segment again, and heard of it.
const RECOVERY: u32 = 3;

/// Linux's shortest timeout, and smoothed round trips that the rest of it lasts at most where they vary little.
const LEAST_RTO: Duration = Duration::from_millis(200);
const STEADY: u32 = 3;

/// How long a receiver may keep an acknowledgement back, usually.
const DELAYED_ACK: Duration = Duration::from_millis(40);

/// Why the kernel's TCP cannot be acted on.
#[derive(Debug, thiserror::Error)]
pub enum StackError {
    /// The kernel does not describe its types.
    #[error("the kernel has no BTF (CONFIG_DEBUG_INFO_BTF)")]
    Types(#[from] BtfError),
    /// The kernel does not take the object.
    #[error("cannot load the socket iterator")]
    Object(#[from] EbpfError),
    /// The kernel does not have it.
    #[error("the kernel has no BPF iterator over TCP sockets")]
    Iterator,
    /// The kernel does not take a program.
    #[error("cannot load a program of the socket iterator")]
    Program(#[from] ProgramError),
    /// The kernel does not let a program be read.
    #[error("cannot start a pass over the sockets")]
    Attach(#[from] LinkError),
    /// The kernel does not let a program be told what to do.
    #[error("cannot tell the socket iterator what to do")]
    Map(#[from] MapError),
    /// A pass fails.
    #[error("cannot read the sockets")]
    Read(#[source] io::Error),
    /// Raw packets cannot be sent.
    #[error("cannot send ICMP errors")]
    Send(#[source] io::Error),
    /// Peers cannot be asked for an immediate retransmission.
    #[error(transparent)]
    Immediate(#[from] Box<ImmediateError>),
}

const NEEDS: Needs = Needs {
    rights: &[lack::BPF, lack::PERFMON],
    kernel: "run Linux 5.19 or newer with CONFIG_DEBUG_INFO_BTF=y and CONFIG_BPF_SYSCALL=y",
};
const NEEDS_TO_SEND: Needs = Needs {
    rights: &[lack::NET_RAW],
    kernel: "run Linux with raw sockets",
};
const NEEDS_FOR_SLOW_START: Needs = Needs {
    rights: &[lack::BPF, lack::PERFMON],
    kernel: "run Linux 6.4 or newer with CONFIG_DEBUG_INFO_BTF=y, CONFIG_BPF_SYSCALL=y and CONFIG_BPF_JIT=y",
};

impl StackError {
    /// What this machine or this process lacks, and what would help.
    #[must_use]
    pub fn lack(&self) -> Lack {
        match self {
            Self::Send(error) => NEEDS_TO_SEND.lack(error),
            _ => NEEDS.lack(self),
        }
    }
}

/// Counts since the stack was opened; each only grows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StackCounters {
    /// Passes over the sockets.
    pub passes: u64,
    /// ICMP errors sent to this host's own sockets.
    pub icmp_errors: u64,
    /// ICMP errors that the kernel did not take.
    pub icmp_errors_refused: u64,
    /// Connections told of a smaller path MTU, as their timers would have held them.
    pub path_mtus_lowered: u64,
    /// Connections that start slowly, whatever they think of their timeout.
    pub slow_starts: u64,
    /// Connections that duplicate acknowledgements in their peers' names made retransmit fast.
    pub fast_retransmits: u64,
    /// Duplicate acknowledgements that were sent to peers.
    pub duplicate_acks: u64,
    /// Acknowledgements, marked as a reconnection, that the kernel took.
    pub marked_acks: u64,
}

/// The TCP of the network namespace of the thread that opened it.
///
/// After each call of an [`EndpointControl`] method the driver calls [`TcpStack::flush`].
#[derive(Debug)]
pub struct TcpStack {
    ebpf: Ebpf,
    sender: RawSender,
    /// As the last pass found them.
    known: BTreeMap<ConnectionId, Known>,
    /// To be kicked by the next [`TcpStack::flush`].
    kicks: Vec<ConnectionId>,
    /// To send their oldest segments again by the next [`TcpStack::flush`], with as long a back-off as that leaves.
    probes: Vec<ConnectionId>,
    /// Whose peers are to be woken by the next [`TcpStack::flush`].
    peers: Vec<(ConnectionId, PeerNews)>,
    /// Connections whose peers were told what has arrived.
    told: BTreeMap<ConnectionId, Told>,
    /// What peers without the agent are told.
    waking: Waking,
    /// The option by which peers with the agent are asked.
    immediate: Option<ImmediateRetransmission>,
    /// To be kept from getting their former window back, by the next [`TcpStack::flush`].
    slow_starts: Vec<u64>,
    /// By which connections go back to the initial window, where this kernel takes it.
    initial_window: io::Result<InitialWindow>,
    /// To go back to the initial window, by the next [`TcpStack::flush`].
    anew: BTreeSet<u64>,
    /// Connections whose path is new, with their oldest unacknowledged byte then.
    on_new_path: BTreeMap<ConnectionId, SeqNumber>,
    /// Connections that were woken, with their oldest unacknowledged byte then.
    kicked: BTreeMap<ConnectionId, SeqNumber>,
    /// Whose peers have asked for what is in flight, until it is sent again.
    asked: BTreeSet<ConnectionId>,
    /// Oldest unacknowledged bytes of connections that were retransmitted, and no longer counted as lost.
    forgotten: BTreeMap<ConnectionId, SeqNumber>,
    /// Connections with SACK that were left to themselves: since when, with their oldest unacknowledged byte then.
    left: BTreeMap<ConnectionId, (SeqNumber, Instant)>,
    /// To be made to retransmit fast by the next [`TcpStack::flush`].
    fast: Vec<ConnectionId>,
    /// To be told of a smaller path MTU by the next [`TcpStack::flush`].
    stopped: Vec<ConnectionId>,
    /// Length of a tick of the kernel's clock.
    tick: Duration,
    counters: StackCounters,
    buffer: Vec<u8>,
}

/// How peers that wait for a timeout are woken.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Waking {
    /// By one acknowledgement, which bears the Immediate Retransmission Option where that is in use.
    #[default]
    Request,
    /// By that, and then by a smaller path MTU, which every peer heeds.
    PathMtu,
    /// By the request and three duplicates of it (Cáceres and Iftode 1995, section IV).
    DuplicateAcks,
}

/// How it was with a connection when its peer was told what has arrived.
#[derive(Clone, Copy, Debug)]
struct Told {
    at: Instant,
    rcv_nxt: SeqNumber,
    /// It had sent something that was not acknowledged, and may have an answer.
    had_asked: bool,
}

/// What a peer is told, so that it sends again.
#[derive(Clone, Copy, Debug)]
enum PeerNews {
    /// What has arrived: the acknowledgement of that may have been lost.
    Arrived,
    /// A path that takes less than what it has in flight.
    PathMtu,
    /// That what it sent next did not arrive, as its router may have said.
    Unreachable,
    /// What has arrived, so many times.
    Duplicates(u8),
    /// What has arrived, marked for a supervisor host.
    Reconnection,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    snd_una: SeqNumber,
    rcv_nxt: SeqNumber,
    retransmits: u8,
    backoff: u8,
    path_mtu: u32,
    /// Its timeout without doublings.
    rto: Duration,
    min_rtt: Duration,
    /// The smoothed round trip.
    srtt: Duration,
    /// How long ago it sent data.
    since_sent: Duration,
    is_silent: bool,
    has_sack: bool,
    restores_window: bool,
    has_threshold: bool,
    cookie: u64,
    /// What the peer's full packets are long; zero: it has sent none.
    peer_mtu: u32,
    /// When anything last came.
    heard_at: Instant,
    /// Segments outstanding.
    packets_out: u32,
    /// Something that was retransmitted does not count as lost.
    has_forgotten: bool,
    acknowledgements: Acknowledgements,
    progress: Progress,
}

impl Known {
    /// Whether its timer, with the whole back-off taken back, would still hold it.
    fn is_held(&self) -> bool {
        self.since_sent < self.rto
    }

    /// Whether nothing that it has sent can be on its way any more.
    fn is_stopped(&self) -> bool {
        let is_answered = self.is_silent && self.since_sent >= self.min_rtt;
        is_answered || self.since_sent >= self.round_trip() + DELAYED_ACK
    }

    /// Doublings that have to be taken back until the kernel retransmits.
    fn doublings_to_probe(&self) -> u8 {
        // At its longest a timeout hides how long it is without doublings.
        doublings_to_probe(self.rto.max(self.srtt), self.backoff, self.since_sent)
    }

    /// How long recovery by SACK takes.
    fn recovery(&self) -> Duration {
        recovery(self.round_trip(), self.srtt, self.rto)
    }

    /// A round trip, as long as it is once the queues have emptied.
    fn round_trip(&self) -> Duration {
        self.min_rtt + self.min_rtt / 4
    }

    /// Whether duplicate acknowledgements make it retransmit: the kernel counts fewer than are outstanding.
    /// Their number is no measure for a sender that sets its window itself.
    fn counts_duplicates(&self) -> bool {
        let is_counted = !self.has_sack && self.has_threshold;
        is_counted && self.retransmits == 0 && self.packets_out > DUPLICATES.into()
    }
}

/// Doublings among `backoff` of a timeout to take back, so that it is over after `since_sent`.
fn doublings_to_probe(rto: Duration, backoff: u8, since_sent: Duration) -> u8 {
    let is_over = |left: u8| rto * (1 << left.min(MOST_DOUBLINGS)) <= since_sent;
    let left = (0..backoff).rev().find(|&left| is_over(left));
    backoff - left.unwrap_or(0)
}

/// How long recovery by SACK takes, for a round trip with empty queues, the smoothed one, and the timeout without doublings.
/// The smoothed one is far longer where a sender's own data fills the link's queue, and after an outage over which a round trip
/// was measured. Then, and only then, the timeout is far longer still: by four times the variation, which is as much as the smoothed
/// one itself (RFC 6298, section 2).
fn recovery(round_trip: Duration, srtt: Duration, rto: Duration) -> Duration {
    let least = round_trip * RECOVERY;
    let is_over_outage = rto > srtt * STEADY + LEAST_RTO;
    if is_over_outage {
        least
    } else {
        least.max(srtt + srtt / 2)
    }
}

impl TcpStack {
    /// Loads the program. Raw packets bear `mark`.
    ///
    /// # Errors
    /// Without root, or on a kernel before 5.18 or without BTF.
    pub fn open(mark: u32) -> Result<Self, StackError> {
        let types = Btf::from_sys_fs()?;
        let mut ebpf = EbpfLoader::new().btf(Some(&types)).load(OBJECT)?;
        for name in [LIST, START_SLOWLY, START_ANEW] {
            let loaded = iterator(&mut ebpf, name)?.load("tcp", &types);
            loaded.map_err(|error| match lack::has_no_target(&error) {
                true => StackError::Iterator,
                false => error.into(),
            })?;
        }
        // Without it connections keep their windows.
        let initial_window = InitialWindow::begin();
        if let Ok(chosen) = &initial_window {
            let map = ebpf.map_mut(INITIAL_WINDOWS).expect("the object has it");
            Array::<_, [u8; initial_window::NAME]>::try_from(map)?.set(0, chosen.name(), 0)?;
        }
        Ok(Self {
            ebpf,
            sender: RawSender::open(mark, None).map_err(StackError::Send)?,
            known: BTreeMap::new(),
            kicks: Vec::new(),
            probes: Vec::new(),
            peers: Vec::new(),
            told: BTreeMap::new(),
            waking: Waking::default(),
            immediate: None,
            slow_starts: Vec::new(),
            initial_window,
            anew: BTreeSet::new(),
            on_new_path: BTreeMap::new(),
            kicked: BTreeMap::new(),
            asked: BTreeSet::new(),
            forgotten: BTreeMap::new(),
            left: BTreeMap::new(),
            fast: Vec::new(),
            stopped: Vec::new(),
            tick: ticks::length(),
            counters: StackCounters::default(),
            buffer: Vec::new(),
        })
    }

    /// Counts so far.
    #[must_use]
    pub fn counters(&self) -> &StackCounters {
        &self.counters
    }

    /// The congestion control by which connections are put back into slow start, or why none can be.
    ///
    /// # Errors
    /// What this machine or this process lacks.
    pub fn slow_start_control(&self) -> Result<&str, Lack> {
        match &self.initial_window {
            Ok(chosen) => Ok(chosen.shown_name()),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => Err(Lack {
                what: format!(
                    "this kernel takes no congestion control of BPF programs that ends with its process: {error}"
                ),
                remedy: NEEDS_FOR_SLOW_START.kernel,
            }),
            Err(error) => Err(NEEDS_FOR_SLOW_START.lack(error)),
        }
    }

    /// How peers are woken from now on.
    pub fn set_waking(&mut self, waking: Waking) {
        self.waking = waking;
    }

    /// The option by which peers are asked for an immediate retransmission, if it is in use.
    #[must_use]
    pub const fn immediate(&self) -> Option<&ImmediateRetransmission> {
        self.immediate.as_ref()
    }

    /// The option by which peers are asked for an immediate retransmission, to pass requests on or to change it.
    pub const fn immediate_mut(&mut self) -> Option<&mut ImmediateRetransmission> {
        self.immediate.as_mut()
    }

    /// Uses that option from now on, or none. Returns what was used before.
    pub fn set_immediate(
        &mut self,
        immediate: Option<ImmediateRetransmission>,
    ) -> Option<ImmediateRetransmission> {
        std::mem::replace(&mut self.immediate, immediate)
    }

    /// Does what was asked for since the last call.
    ///
    /// # Errors
    /// When raw packets can no longer be sent, or peers no longer asked.
    pub fn flush(&mut self) -> Result<(), StackError> {
        let slow_starts = std::mem::take(&mut self.slow_starts);
        self.change(START_SLOWLY, &slow_starts)?;
        self.counters.slow_starts += slow_starts.len() as u64;
        let anew = Vec::from_iter(std::mem::take(&mut self.anew));
        self.change(START_ANEW, &anew)?;
        self.prepare_requests()?;
        for id in std::mem::take(&mut self.kicks) {
            if let Some(known) = self.known.get(&id).copied() {
                self.take_back(id, known, known.backoff)?;
            }
        }
        for id in std::mem::take(&mut self.probes) {
            if let Some(known) = self.known.get(&id).copied() {
                self.take_back(id, known, known.doublings_to_probe())?;
            }
        }
        for id in std::mem::take(&mut self.fast) {
            if let Some(known) = self.known.get(&id).copied() {
                self.retransmit_fast(id, known)?;
            }
        }
        for (id, news) in std::mem::take(&mut self.peers) {
            if let Some(known) = self.known.get(&id).copied() {
                self.tell_peer(id, known, news)?;
            }
        }
        // Thousands of connections may have one peer.
        let mut of_routes = BTreeMap::new();
        for id in std::mem::take(&mut self.stopped) {
            if let Some(known) = self.known.get(&id).copied() {
                self.lower_path_mtu(id, known, &mut of_routes)?;
            }
        }
        // Sending again has set a threshold.
        self.change(START_ANEW, &anew)
    }

    /// Has the acknowledgements that wake peers bear the option.
    fn prepare_requests(&mut self) -> Result<(), StackError> {
        let Some(immediate) = &mut self.immediate else {
            return Ok(());
        };
        let asks = |(id, news): &(ConnectionId, PeerNews)| match news {
            PeerNews::Arrived => Some(self.known.get(id)?.cookie),
            PeerNews::PathMtu
            | PeerNews::Unreachable
            | PeerNews::Duplicates(_)
            | PeerNews::Reconnection => None,
        };
        let cookies: Vec<u64> = self.peers.iter().filter_map(asks).collect();
        Ok(immediate.ask(&cookies).map_err(Box::new)?)
    }

    /// One pass of a program that changes connections of these cookies: [`START_SLOWLY`] has them keep the small window of
    /// their timeout, [`START_ANEW`] has them go back to the initial window.
    fn change(&mut self, program: &str, cookies: &[u64]) -> Result<(), StackError> {
        if cookies.is_empty() {
            return Ok(());
        }
        for cookie in cookies {
            self.wanted()?.insert(cookie, 1, 0)?;
        }
        self.pass(program)?;
        for cookie in cookies {
            self.wanted()?.remove(cookie)?;
        }
        Ok(())
    }

    /// The connections that are to start slowly.
    fn wanted(&mut self) -> Result<HashMap<&mut MapData, u64, u8>, MapError> {
        let map = self.ebpf.map_mut(SLOW_STARTS).expect("the object has it");
        HashMap::try_from(map)
    }

    /// Takes so many doublings of a connection's timeout back.
    fn take_back(
        &mut self,
        id: ConnectionId,
        known: Known,
        doublings: u8,
    ) -> Result<(), StackError> {
        let Some(error) = icmp_error(id, known, IcmpNotice::NetworkUnreachable) else {
            return Ok(());
        };
        for _ in 0..doublings.min(MOST_DOUBLINGS) {
            self.tell(id.local.ip(), &error)?;
        }
        Ok(())
    }

    /// Has a connection send again at once what is in flight. What the routes to peers take is in
    /// `of_routes`.
    fn lower_path_mtu(
        &mut self,
        id: ConnectionId,
        known: Known,
        of_routes: &mut BTreeMap<IpAddr, u32>,
    ) -> Result<(), StackError> {
        let of_route = match of_routes.entry(id.remote.ip()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => match path_mtu::of_route(id.remote) {
                Ok(mtu) => entry.insert(mtu),
                // A peer that cannot be asked for has no route either.
                Err(_) => return Ok(()),
            },
        };
        let Some(mtu) = path_mtu::smaller(*of_route, known.path_mtu) else {
            return Ok(());
        };
        *of_route = mtu;
        if let Some(error) = icmp_error(id, known, IcmpNotice::TooBig { mtu }) {
            self.tell(id.local.ip(), &error)?;
            self.counters.path_mtus_lowered += 1;
        }
        Ok(())
    }

    /// Has a connection count three duplicate acknowledgements.
    fn retransmit_fast(&mut self, id: ConnectionId, known: Known) -> Result<(), StackError> {
        let duplicate = known.acknowledgements.of_peer(id, known.progress);
        let mut are_sent = true;
        for _ in 0..DUPLICATES {
            are_sent &= self.send(id.local.ip(), &duplicate)?;
        }
        self.counters.fast_retransmits += u64::from(are_sent);
        Ok(())
    }

    /// Wakes a peer.
    fn tell_peer(
        &mut self,
        id: ConnectionId,
        known: Known,
        news: PeerNews,
    ) -> Result<(), StackError> {
        match news {
            // A keep-alive in the peer's name, which this host's own TCP answers.
            PeerNews::Arrived => {
                let question = peer_segment(id, known.rcv_nxt - 1, known.snd_una);
                self.tell(id.local.ip(), &question)
            }
            PeerNews::PathMtu => {
                let Some(mtu) = path_mtu::smaller(known.peer_mtu, known.peer_mtu) else {
                    return Ok(());
                };
                match error_to_peer(id, known, IcmpNotice::TooBig { mtu }) {
                    Some(error) => self.tell(id.remote.ip(), &error),
                    None => Ok(()),
                }
            }
            PeerNews::Unreachable => {
                let Some(error) = error_to_peer(id, known, IcmpNotice::NetworkUnreachable) else {
                    return Ok(());
                };
                for _ in 0..ERRORS_TO_PEER {
                    self.tell(id.remote.ip(), &error)?;
                }
                Ok(())
            }
            PeerNews::Reconnection => {
                let marked = known.acknowledgements.own_marked(id, known.progress);
                let is_sent = self.send(id.remote.ip(), &marked)?;
                self.counters.marked_acks += u64::from(is_sent);
                Ok(())
            }
            PeerNews::Duplicates(count) => {
                let duplicate = known.acknowledgements.own(id, known.progress);
                for _ in 0..count {
                    let is_sent = self.send(id.remote.ip(), &duplicate)?;
                    self.counters.duplicate_acks += u64::from(is_sent);
                }
                Ok(())
            }
        }
    }

    /// Sends an ICMP error, or a question in a peer's name, inside this host or to a peer.
    fn tell(&mut self, to: IpAddr, packet: &Packet) -> Result<(), StackError> {
        match self.send(to, packet)? {
            true => self.counters.icmp_errors += 1,
            false => self.counters.icmp_errors_refused += 1,
        }
        Ok(())
    }

    /// Sends a packet, inside this host or to a peer, and returns whether the kernel has taken it.
    fn send(&mut self, to: IpAddr, packet: &Packet) -> Result<bool, StackError> {
        let sent = self.sender.send(to, &packet.to_bytes());
        let sent = sent.map_err(StackError::Send)?;
        Ok(matches!(sent, Sent::Accepted))
    }

    /// One pass of a program over all sockets.
    fn pass(&mut self, name: &str) -> Result<(), StackError> {
        self.counters.passes += 1;
        let program = iterator(&mut self.ebpf, name)?;
        let link = program.attach()?;
        let mut file = program.take_link(link)?.into_file()?;
        self.buffer.clear();
        file.read_to_end(&mut self.buffer)
            .map_err(StackError::Read)?;
        Ok(())
    }
}

fn iterator<'a>(ebpf: &'a mut Ebpf, name: &str) -> Result<&'a mut Iter, ProgramError> {
    let program: &mut Program = ebpf.program_mut(name).expect("the object has it");
    program.try_into()
}

/// An error about the oldest byte that the peer has not acknowledged.
fn icmp_error(id: ConnectionId, known: Known, notice: IcmpNotice) -> Option<Packet> {
    let header = TcpHeader {
        seq: known.snd_una,
        ack: known.rcv_nxt,
        ..TcpHeader::default()
    };
    let about = bare(id.local, id.remote, header);
    Packet::icmp_error(id.local.ip(), notice, &about).ok()
}

/// An error about the byte that is expected next from the peer, which is the oldest that it has in flight.
fn error_to_peer(id: ConnectionId, known: Known, notice: IcmpNotice) -> Option<Packet> {
    let about = peer_segment(id, known.rcv_nxt, known.snd_una);
    Packet::icmp_error(id.local.ip(), notice, &about).ok()
}

/// A segment without data, as the peer may have sent it.
fn peer_segment(id: ConnectionId, seq: SeqNumber, ack: SeqNumber) -> Packet {
    let header = TcpHeader {
        seq,
        ack,
        ..TcpHeader::default()
    };
    bare(id.remote, id.local, header)
}

impl EndpointControl for TcpStack {
    fn connections(&mut self, found: &mut Vec<Connection>) -> Result<(), ControlError> {
        let refused = |error| match error {
            StackError::Read(error) => ControlError::Refused {
                action: Action::List,
                code: error.raw_os_error().unwrap_or(0),
            },
            _ => ControlError::NotSupported(Action::List),
        };
        self.pass(LIST).map_err(refused)?;
        self.known.clear();
        let now = clock::now();
        for bytes in self.buffer.chunks_exact(Record::SIZE) {
            let Some(record) = Record::read(bytes, self.tick) else {
                continue;
            };
            let connection = record.connection(now);
            let known = Known {
                snd_una: connection.snd_una,
                rcv_nxt: connection.rcv_nxt,
                retransmits: record.retransmits,
                backoff: record.backoff,
                path_mtu: record.path_mtu,
                rto: record.rto / (1 << record.backoff.min(MOST_DOUBLINGS)),
                min_rtt: connection.min_rtt,
                srtt: Duration::from_micros(record.srtt_us.into()),
                since_sent: now.since(connection.sent_at),
                is_silent: connection.is_silent(),
                has_sack: record.has_sack,
                restores_window: record.restores_window,
                has_threshold: record.has_threshold,
                cookie: record.cookie,
                peer_mtu: record.peer_mtu(),
                heard_at: connection.heard_at,
                packets_out: record.packets_out,
                has_forgotten: record.has_forgotten,
                acknowledgements: record.acknowledgements,
                progress: record.progress(),
            };
            if known.has_forgotten && known.retransmits == 0 {
                self.forgotten.insert(connection.id, known.snd_una);
            }
            self.known.insert(connection.id, known);
            found.push(connection);
        }
        let known = &self.known;
        self.kicked.retain(|id, _| known.contains_key(id));
        self.on_new_path
            .retain(|id, snd_una| known.get(id).is_some_and(|one| one.snd_una == *snd_una));
        self.told.retain(|id, _| known.contains_key(id));
        self.asked.retain(|id| known.contains_key(id));
        self.forgotten
            .retain(|id, snd_una| known.get(id).is_some_and(|one| one.snd_una == *snd_una));
        self.left
            .retain(|id, (snd_una, _)| known.get(id).is_some_and(|one| one.snd_una == *snd_una));
        Ok(())
    }

    fn retransmit_now(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        let known = self.known.get(&id).ok_or(ControlError::Unknown(id))?;
        let is_asked = self.asked.remove(&id);
        if known.retransmits > 0 {
            self.kicked.insert(id, known.snd_una);
            self.kicks.push(id);
            if !known.has_sack && known.restores_window {
                self.slow_starts.push(known.cookie);
            }
            if known.is_held() {
                self.stopped.push(id);
            }
            return Ok(Outcome::Done);
        }
        // Once after each kick: it was acknowledged, and no more since. It may send new data, and without
        // SACK never find out what is lost.
        let kicked = self.kicked.get(&id);
        let is_stuck = kicked.is_some_and(|snd_una| *snd_una != known.snd_una);
        // The acknowledgement that has brought a request may have made the timeout look spurious: then, too, unless the
        // program that read the request has had the connection forget its window, and so go back by itself.
        let finds_no_loss = is_asked && !known.has_sack && !known.has_threshold;
        // Once what came later has shown that its oldest segment is lost.
        let is_shown = !known.has_forgotten && self.forgotten.contains_key(&id);
        // Or has not been acknowledged for longer than recovery by SACK takes.
        let since = self.left.get(&id).map(|&(_, since)| now.since(since));
        let is_overdue = since.is_some_and(|since| since >= known.recovery());
        if is_stuck || finds_no_loss || is_shown || is_overdue || known.is_stopped() {
            self.kicked.remove(&id);
            self.forgotten.remove(&id);
            self.left.remove(&id);
            self.stopped.push(id);
            // What it sends again now is a whole window, of which the link's queue may be full already.
            let is_repaired = known.has_sack && known.has_threshold && (is_shown || is_overdue);
            if self.on_new_path.remove(&id).is_some() || is_repaired {
                self.anew.insert(known.cookie);
            }
            return Ok(Outcome::Done);
        }
        if known.has_sack {
            self.left.entry(id).or_insert((known.snd_una, now));
        }
        Ok(Outcome::Needless(Needless::NotBackedOff))
    }

    fn probe(&mut self, _now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        let known = self.known.get(&id).ok_or(ControlError::Unknown(id))?;
        if known.retransmits == 0 || known.backoff == 0 {
            return Ok(Outcome::Needless(Needless::NotBackedOff));
        }
        self.probes.push(id);
        Ok(Outcome::Done)
    }

    fn note_request(&mut self, id: ConnectionId) {
        self.asked.insert(id);
    }

    fn fast_retransmit(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        let known = self.known.get(&id).ok_or(ControlError::Unknown(id))?;
        let is_asked = self.asked.contains(&id);
        if known.counts_duplicates() && known.is_stopped() && !is_asked {
            self.kicked.remove(&id);
            self.fast.push(id);
            return Ok(Outcome::Done);
        }
        // Without SACK that is done for every sender.
        if known.retransmits > 0 && known.has_sack && known.restores_window {
            self.slow_starts.push(known.cookie);
        }
        self.retransmit_now(now, id)
    }

    fn send_duplicate_acks(
        &mut self,
        _now: Instant,
        id: ConnectionId,
        count: u8,
    ) -> Result<Outcome, ControlError> {
        if !self.known.contains_key(&id) {
            return Err(ControlError::Unknown(id));
        }
        self.peers.push((id, PeerNews::Duplicates(count)));
        Ok(Outcome::Done)
    }

    fn wake_peer(&mut self, now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        let known = self.known.get(&id).ok_or(ControlError::Unknown(id))?;
        let is_bulk = path_mtu::smaller(known.peer_mtu, known.peer_mtu).is_some();
        let had_asked = known.packets_out > 0;
        let asks = self.immediate.is_some() || self.waking != Waking::Request;
        if !asks && (is_bulk || !had_asked && !self.told.contains_key(&id)) {
            // Without the option only answers are asked for.
            return Ok(Outcome::Needless(Needless::NothingOutstanding));
        }
        let told = Told {
            at: now,
            rcv_nxt: known.rcv_nxt,
            had_asked,
        };
        let before = self.told.insert(id, told);
        let before = before.filter(|before| before.rcv_nxt == known.rcv_nxt);
        let news = match (before, self.waking) {
            // It has woken, and finds out by SACK what is lost.
            (Some(before), Waking::PathMtu | Waking::DuplicateAcks)
                if is_bulk && known.has_sack && known.heard_at > before.at =>
            {
                return Ok(Outcome::Needless(Needless::Recovering));
            }
            (Some(_), Waking::PathMtu) if is_bulk => PeerNews::PathMtu,
            // It sends little at a time, and has heard meanwhile what has arrived: its answer is what it sent next.
            (Some(before), Waking::Request | Waking::PathMtu) if !is_bulk && before.had_asked => {
                PeerNews::Unreachable
            }
            // The first one bears the option, by which a peer with the agent needs no duplicates.
            (_, Waking::DuplicateAcks) if self.immediate.is_some() => {
                self.peers.push((id, PeerNews::Arrived));
                PeerNews::Duplicates(DUPLICATES)
            }
            (_, Waking::DuplicateAcks) => PeerNews::Duplicates(DUPLICATE_ACKS),
            _ => PeerNews::Arrived,
        };
        self.peers.push((id, news));
        Ok(Outcome::Done)
    }

    fn send_marked_ack(
        &mut self,
        _now: Instant,
        id: ConnectionId,
    ) -> Result<Outcome, ControlError> {
        if !self.known.contains_key(&id) {
            return Err(ControlError::Unknown(id));
        }
        self.peers.push((id, PeerNews::Reconnection));
        Ok(Outcome::Done)
    }

    fn slow_start(&mut self, _now: Instant, id: ConnectionId) -> Result<Outcome, ControlError> {
        if self.initial_window.is_err() {
            return Err(ControlError::NotSupported(Action::SlowStart));
        }
        let known = self.known.get(&id).ok_or(ControlError::Unknown(id))?;
        // What slow start loses in its last round trip costs such a sender a timeout, and more than a burst does.
        if !known.has_sack {
            return Err(ControlError::NotSupported(Action::SlowStart));
        }
        self.anew.insert(known.cookie);
        self.on_new_path.insert(id, known.snd_una);
        Ok(Outcome::Done)
    }

    fn set_user_timeout(
        &mut self,
        _now: Instant,
        _id: ConnectionId,
        _timeout: Option<Duration>,
    ) -> Result<Outcome, ControlError> {
        Err(ControlError::NotSupported(Action::UserTimeout))
    }

    fn freeze(&mut self, _now: Instant, _id: ConnectionId) -> Result<Outcome, ControlError> {
        Err(ControlError::NotSupported(Action::Freeze))
    }

    fn thaw(
        &mut self,
        _now: Instant,
        _id: ConnectionId,
        _outstanding: Outstanding,
    ) -> Result<Outcome, ControlError> {
        Err(ControlError::NotSupported(Action::Thaw))
    }
}

/// How far a connection has come, by Linux's number of its state.
fn stage(state: u8) -> Option<Stage> {
    match state {
        1 | 8 => Some(Stage::Open),
        2 | 3 => Some(Stage::Opening),
        4 | 5 | 9 | 11 => Some(Stage::Closing),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_leaves_as_long_a_timeout_as_it_can() {
        let millis = Duration::from_millis;
        let to_probe = |backoff, since_sent| doublings_to_probe(millis(250), backoff, since_sent);
        // The timeouts are 0.25, 0.5, 1 and 2 s; one that is left doubles when the kernel retransmits.
        assert_eq!(to_probe(3, millis(600)), 2);
        assert_eq!(to_probe(3, millis(1_000)), 1);
        assert_eq!(to_probe(1, millis(510)), 1);
        assert_eq!(to_probe(9, millis(510)), 8);
        assert_eq!(to_probe(3, millis(100)), 3, "all of it is too long");
    }

    #[test]
    fn recovery_takes_longer_where_a_full_queue_makes_the_round_trip_longer() {
        let millis = Duration::from_millis;
        assert_eq!(
            recovery(millis(50), Duration::ZERO, millis(200)),
            millis(150)
        );
        assert_eq!(recovery(millis(50), millis(60), millis(260)), millis(150));
        assert_eq!(recovery(millis(50), millis(400), millis(700)), millis(600));
    }

    #[test]
    fn it_takes_no_longer_where_a_round_trip_was_measured_over_an_outage() {
        let millis = Duration::from_millis;
        let (round_trip, outage) = (millis(50), millis(10_000));
        let mut srtt = (round_trip * 7 + outage) / 8;
        let mut variation = outage / 4;
        for _ in 0..12 {
            assert_eq!(
                recovery(round_trip, srtt, srtt + variation * 4),
                millis(150)
            );
            variation = (variation * 3 + (srtt - round_trip)) / 4;
            srtt = (srtt * 7 + round_trip) / 8;
        }
    }
}
