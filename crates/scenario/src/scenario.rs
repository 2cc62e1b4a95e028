//! What a scenario file says, once it is known to be sound.

use crate::hip::Hip;
use crate::mechanism::Mechanism;
use crate::names::names;
use crate::roaming::{Agents, Crash, Handoff, MobileIp};
use crate::topology::{Flow, Hop, Traffic};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_link::ConfiguredRate;
use outlast_link::{InFlight, OutageProcess, PipeConfig, RateChange, Way, WhileDown};
use outlast_wire::pattern;
use std::path::PathBuf;

/// One experiment: a link, what is done over it, between which stacks, with what help, how often.
///
/// Made by [`Scenario::load`](Scenario::load), which leaves no value that contradicts another.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Shown in reports; by default the file's name without its extension.
    pub name: String,
    /// Where the file lies: relative paths in it count from here, and commands run here.
    pub directory: PathBuf,
    /// `[link]`.
    pub link: LinkSettings,
    /// `[workload]`.
    pub workload: Workload,
    /// What is sent, whatever the workload.
    pub content: Content,
    /// `[stack]`.
    pub stack: Stack,
    /// `[outlast]`.
    pub outlast: Outlast,
    /// `[run]`.
    pub run: Run,
    /// `[[flows]]`: further connections over the same links.
    pub flows: Vec<Flow>,
    /// `[[traffic]]`: datagrams of others.
    pub traffic: Vec<Traffic>,
    /// `[[hops]]`: further links between `[link]` and the fixed host, in this order.
    pub hops: Vec<Hop>,
    /// `[agents]`: whether and how gateways speak to each other.
    pub agents: Option<Agents>,
    /// `[hip]`: whether and how the hosts speak HIP.
    pub hip: Option<Hip>,
    /// `[mobile_ip]`: how the mobile is found after a hand-off.
    pub mobile_ip: Option<MobileIp>,
    /// `[[handoffs]]`: when the mobile goes to another gateway, in this order.
    pub handoffs: Vec<Handoff>,
    /// `[[crashes]]`: when gateways' processes die.
    pub crashes: Vec<Crash>,
}

/// The disconnecting link between the mobile and the fixed side.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSettings {
    /// Fixed side to mobile.
    pub downlink: PipeConfig,
    /// Mobile to fixed side.
    pub uplink: PipeConfig,
    /// When it is down; with hand-offs, when the mobile is at no gateway.
    pub outages: OutageProcess,
    /// What becomes of packets on their way when it goes down.
    pub in_flight: InFlight,
    /// What becomes of packets that wait while it is down.
    pub while_down: WhileDown,
    /// `[[rate_changes]]` of this link, in order of time.
    pub rate_changes: Vec<RateChange>,
    /// Largest IP packet in bytes; at least 576, with IPv6 at least 1280.
    pub mtu: u32,
}

/// What the two hosts do.
#[derive(Clone, Debug, PartialEq)]
pub enum Workload {
    /// One side sends a stream of bytes, hashed at both ends.
    Bulk {
        /// How many.
        bytes: ByteCount,
        /// Which way.
        direction: Direction,
    },
    /// What the fixed host shows changes at every multiple of `interval` after the workload's first
    /// byte. The mobile sends a request, at first and then whenever an update has arrived. The
    /// fixed host answers each with one update: at once if something has changed since its last
    /// one, else at the next change (Scott and Mapp, section 6.2.1).
    Interactive {
        /// How often there is something new.
        interval: Duration,
        /// Size of an update.
        update: ByteCount,
        /// Size of the request for an update.
        request: ByteCount,
        /// How long this goes on.
        duration: Duration,
    },
    /// The mobile asks, the fixed host answers, one exchange after the other on one connection.
    RequestResponse {
        /// How many exchanges.
        requests: u32,
        /// Size of each request.
        request: ByteCount,
        /// Size of each response.
        response: ByteCount,
        /// How long the mobile waits after a response before it asks again.
        think: Duration,
    },
    /// Programs of the user's; in the lab only.
    Command(Commands),
}

impl Workload {
    /// Its name in scenario files.
    #[must_use]
    pub const fn kind(&self) -> WorkloadKind {
        match self {
            Self::Bulk { .. } => WorkloadKind::Bulk,
            Self::Interactive { .. } => WorkloadKind::Interactive,
            Self::RequestResponse { .. } => WorkloadKind::RequestResponse,
            Self::Command(_) => WorkloadKind::Command,
        }
    }
}

names! {
    /// The kinds of workload.
    pub enum WorkloadKind {
        /// [`Workload::Bulk`].
        Bulk = "bulk",
        /// [`Workload::Interactive`].
        Interactive = "interactive",
        /// [`Workload::RequestResponse`].
        RequestResponse = "request-response",
        /// [`Workload::Command`].
        Command = "command",
    }
}

names! {
    /// Which way a bulk transfer goes.
    #[derive(Default)]
    pub enum Direction {
        /// From the fixed host to the mobile.
        #[default]
        Download = "download",
        /// From the mobile to the fixed host.
        Upload = "upload",
    }
}

names! {
    /// What bulk transfers, updates, requests and responses are made of.
    #[derive(Default)]
    pub enum Content {
        /// Random numbers: nothing makes them smaller.
        #[default]
        Random = "random",
        /// English text.
        Text = "text",
        /// What compresses as programs do.
        Binary = "binary",
    }
}

impl Content {
    /// The content of generated streams.
    #[must_use]
    pub const fn of_streams(self) -> pattern::Content {
        match self {
            Self::Random => pattern::Content::Random,
            Self::Text => pattern::Content::Text,
            Self::Binary => pattern::Content::Binary,
        }
    }
}

impl Direction {
    /// The way of the link that the payload takes.
    #[must_use]
    pub const fn way(self) -> Way {
        match self {
            Self::Download => Way::ToMobile,
            Self::Upload => Way::ToFixed,
        }
    }
}

/// A server on the fixed host and a client on the mobile.
///
/// Both run in [`Scenario::directory`], with [`Commands::FIXED_ADDRESS`],
/// [`Commands::FIXED_HOST`] and [`Commands::MOBILE_ADDRESS`] in their environment. The client's end with exit code 0 completes
/// the run; the server is then ended.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Commands {
    /// Runs on the fixed host.
    pub server: CommandLine,
    /// Runs on the mobile, as soon as the server is ready.
    pub client: CommandLine,
    /// The TCP port on which the server listens when it is ready.
    pub ready: u16,
    /// Files whose equal content shows that everything arrived as it was sent.
    pub compare: Option<Compare>,
}

impl Commands {
    /// The environment variable with the fixed host's address.
    pub const FIXED_ADDRESS: &'static str = "OUTLAST_FIXED";
    /// The environment variable with the fixed host's address as URLs want it, which is in brackets
    /// if it is IPv6.
    pub const FIXED_HOST: &'static str = "OUTLAST_FIXED_HOST";
    /// The environment variable with the mobile's address.
    pub const MOBILE_ADDRESS: &'static str = "OUTLAST_MOBILE";
}

/// Two files that must be equal after the run.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Compare {
    /// What was sent.
    pub sent: PathBuf,
    /// What was received; removed before each run.
    pub received: PathBuf,
}

/// How to start a program.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum CommandLine {
    /// One text, for `/bin/sh -c`.
    Shell(String),
    /// The program and its arguments, as they are; never empty.
    Words(Vec<String>),
}

/// The TCP of both hosts.
///
/// What is `None` is as the profile has it; the lab, which runs on the kernel at hand, then takes
/// [`Stack::LAB_CONGESTION`], and switches SACK and timestamps on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Stack {
    /// Whose behaviour; the simulator only.
    pub profile: Profile,
    /// Retransmissions of one segment before the connection is given up; `None` is the profile's
    /// (in the lab, the kernel's).
    pub retries: Option<u32>,
    /// Longest retransmission timeout; `None` is the profile's (in the lab, the kernel's).
    pub max_rto: Option<Duration>,
    /// Congestion control.
    pub congestion: Option<Congestion>,
    /// Selective acknowledgements (RFC 2018).
    pub sack: Option<bool>,
    /// Timestamps (RFC 7323).
    pub timestamps: Option<bool>,
    /// Where the hosts' timer wheels stand in their turn of [`Self::TIMER_TURN`] when the first
    /// byte of payload is sent.
    pub timer_phase: Option<Duration>,
    /// What the hosts take for a packet, each way; the simulator only.
    pub host_latency: Duration,
    /// What a host offers to take before it is read; the simulator only. `None` is the profile's.
    pub receive_buffer: Option<ByteCount>,
    /// Network protocol.
    pub ip: IpVersion,
    /// What differs at the mobile.
    pub mobile: HostStack,
    /// What differs at the fixed host.
    pub fixed: HostStack,
}

/// What differs at one host; `None` is as [`Stack`] has it. The simulator only.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct HostStack {
    /// [`Stack::profile`].
    pub profile: Option<Profile>,
    /// [`Stack::max_rto`]; in the lab, too.
    pub max_rto: Option<Duration>,
    /// [`Stack::receive_buffer`].
    pub receive_buffer: Option<ByteCount>,
}

impl Stack {
    /// After this time the kernel's timer wheel stands as before, as far as timeouts of up to two
    /// minutes are concerned.
    pub const TIMER_TURN: Duration = Duration::from_millis(4_096);

    /// The lab's congestion control where the file names none.
    pub const LAB_CONGESTION: Congestion = Congestion::Cubic;
}

names! {
    /// A TCP whose behaviour the simulator knows.
    #[derive(Default)]
    pub enum Profile {
        /// 4.3BSD-Tahoe.
        Bsd43Tahoe = "bsd-4.3-tahoe",
        /// NetBSD of 1997.
        Netbsd1997 = "netbsd-1997",
        /// FreeBSD 2.2.
        Freebsd22 = "freebsd-2.2",
        /// SunOS 5.6.
        Sunos56 = "sunos-5.6",
        /// AIX 4.3.
        Aix43 = "aix-4.3",
        /// Linux 2.2.
        Linux22 = "linux-2.2",
        /// Linux 2.4.
        Linux24 = "linux-2.4",
        /// Linux 6.
        #[default]
        Linux6 = "linux-6",
    }
}

names! {
    /// A congestion control.
    pub enum Congestion {
        /// CUBIC (RFC 9438).
        Cubic = "cubic",
        /// Reno; on Linux with the loss recovery of NewReno or SACK.
        Reno = "reno",
        /// BBR, the version that the kernel has.
        Bbr = "bbr",
    }
}

names! {
    /// The network protocol under TCP.
    #[derive(Default)]
    pub enum IpVersion {
        /// IPv4.
        #[default]
        V4 = "ipv4",
        /// IPv6.
        V6 = "ipv6",
    }
}

names! {
    /// How gateways learn that the link goes away and comes back.
    #[derive(Default)]
    pub enum Indicators {
        /// The link tells them at once.
        #[default]
        Link = "link",
        /// Nobody tells them: they go by what is not answered, and by the first packet afterwards.
        Silence = "silence",
    }
}

/// What Outlast does, and where.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Outlast {
    /// At the fixed side of the link.
    pub gateway: Mechanism,
    /// At the mobile.
    pub mobile: Mechanism,
    /// On the fixed host.
    pub fixed: Mechanism,
    /// At the router where the ways to all gateways meet.
    pub home_agent: Mechanism,
    /// How gateways learn of outages.
    pub indicators: Indicators,
    /// What gateways are told of the rates of their links.
    pub rate: ConfiguredRate,
    /// Whether supervisor hosts share that rate out among connections.
    pub shares_rate: bool,
    /// Whether payload is compressed on links behind supervisor hosts.
    pub compresses: bool,
    /// User timeout that both ends ask for (RFC 5482): whole seconds up to 32767 s, whole minutes
    /// above. `None` is off.
    pub user_timeout: Option<Duration>,
}

/// How often, and for how long at most.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Run {
    /// How many runs; at least one.
    pub repeat: u32,
    /// Seed of the first run; each later one has the next number.
    pub seed: u64,
    /// When a run is given up, counted from the workload's first byte.
    pub deadline: Duration,
}

impl Run {
    /// The seed of run `index`, counted from zero.
    #[must_use]
    pub const fn seed_of(&self, index: u32) -> u64 {
        self.seed.wrapping_add(index as u64)
    }
}

names! {
    /// The kinds of outage process.
    pub enum ProcessKind {
        /// Never down.
        AlwaysUp = "always-up",
        /// One outage.
        Single = "single",
        /// Exact periods.
        Periodic = "periodic",
        /// Periods between half and one and a half of a mean.
        Uniform = "uniform",
        /// Normally distributed periods.
        Normal = "normal",
        /// Exponentially distributed periods.
        Exponential = "exponential",
        /// As recorded.
        Trace = "trace",
    }
}

/// The names of [`InFlight`]'s variants.
pub(crate) const IN_FLIGHT: [&str; 2] = ["delivered", "lost"];

/// The names of [`WhileDown`]'s variants.
pub(crate) const WHILE_DOWN_NAMES: [&str; 2] = ["dropped", "queued"];
