//! How a host's TCP is set: what the scenario asks for, and what keeps buffers and memories of
//! earlier connections from having a say.

use crate::error::LabError;
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use outlast_link::PipeConfig;
use outlast_linux::socket::set_congestion_control;
use outlast_linux::sysctl;
use outlast_scenario::{LinkSettings, Scenario, Stack};
use outlast_world::Side;
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;

/// Settings of one host, before they are applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tuning {
    /// The congestion control of `[workload]`.
    congestion: &'static str,
    /// The congestion controls of all connections.
    congestions: BTreeSet<&'static str>,
    /// What the mobile, which opens connections, offers; that of `[workload]`.
    offered: Options,
    /// What the fixed host agrees to: whatever one of the connections is to have.
    accepted: Options,
    retries: Option<u32>,
    /// Longest timeouts of the mobile and of the fixed host.
    max_rto: [Option<Duration>; 2],
    /// The largest send and receive buffer that a connection may need.
    buffer: ByteCount,
}

/// TCP options that are offered when a connection is opened, and hold if both hosts want them.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Options {
    pub(crate) sack: bool,
    pub(crate) timestamps: bool,
}

/// Settings that are left as the kernel has them, and recorded because they bear on recovery.
const RECORDED: [&str; 7] = [
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_retries2",
    MAX_RTO,
];
/// The longest retransmission timeout of all sockets, in milliseconds; since Linux 6.15.
const MAX_RTO: &str = "net.ipv4.tcp_rto_max_ms";

/// Buffers are at least this large: what Linux gives a connection anyway.
const SMALLEST_BUFFER: u64 = 6 << 20;
/// Buffers for a link without a rate, or with an absurd one.
const LARGEST_BUFFER: u64 = 512 << 20;
/// Kernel memory per byte of payload in a buffer, at most, and room for as much again that
/// waits for the application.
const OVERHEAD: u64 = 8;

impl Tuning {
    /// What `scenario` asks for.
    pub(crate) fn new(scenario: &Scenario) -> Self {
        let stack = &scenario.stack;
        let stacks = || scenario.connections().map(|connection| connection.stack);
        let any = |has: fn(Options) -> bool| stacks().any(|stack| has(Options::of(stack)));
        Self {
            congestion: congestion(stack),
            congestions: stacks().map(congestion).collect(),
            offered: Options::of(stack),
            accepted: Options {
                sack: any(|options| options.sack),
                timestamps: any(|options| options.timestamps),
            },
            retries: stack.retries,
            max_rto: [stack.mobile, stack.fixed].map(|host| host.max_rto.or(stack.max_rto)),
            buffer: buffer_for(scenario),
        }
    }

    /// Applies them to the host of `side`, in the namespace of the calling thread; answers what is
    /// in force.
    pub(crate) fn apply(&self, side: Side) -> Result<Vec<(String, String)>, LabError> {
        for name in &self.congestions {
            require_congestion_control(name)?;
        }
        let [of_mobile, of_fixed] = self.max_rto;
        let max_rto = match side {
            Side::Fixed => {
                self.accepted.apply()?;
                of_fixed
            }
            Side::Mobile => {
                self.offered.apply()?;
                of_mobile
            }
        };
        // What an earlier connection learned must not shape the next one.
        sysctl::write("net.ipv4.tcp_no_metrics_save", "1")?;
        let mut touched = vec![
            "net.ipv4.tcp_sack",
            "net.ipv4.tcp_timestamps",
            "net.ipv4.tcp_no_metrics_save",
            "net.ipv4.tcp_rmem",
            "net.ipv4.tcp_wmem",
        ];
        for buffers in ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"] {
            raise_maximum(buffers, self.buffer)?;
        }
        if let Some(retries) = self.retries {
            sysctl::write("net.ipv4.tcp_retries2", &retries.to_string())?;
        }
        if let Some(longest) = max_rto {
            sysctl::write(MAX_RTO, &longest.as_millis().to_string())?;
        }
        touched.extend(RECORDED);
        let read = |name: &str| Some((name.to_owned(), sysctl::read(name).ok()?));
        Ok(touched.into_iter().filter_map(read).collect())
    }

    /// The congestion control of connections that do not choose one: that of `[workload]`.
    pub(crate) fn congestion(&self) -> &'static str {
        self.congestion
    }

    /// What the mobile offers unless it is told otherwise.
    pub(crate) fn offered(&self) -> Options {
        self.offered
    }
}

impl Options {
    /// The options that the lab's connections have with `stack`.
    pub(crate) fn of(stack: &Stack) -> Self {
        Self {
            sack: stack.sack.unwrap_or(true),
            timestamps: stack.timestamps.unwrap_or(true),
        }
    }

    /// Makes the host in whose namespace the calling thread is offer and agree to these.
    pub(crate) fn apply(self) -> Result<(), LabError> {
        let flag = |on: bool| if on { "1" } else { "0" };
        sysctl::write("net.ipv4.tcp_sack", flag(self.sack))?;
        sysctl::write("net.ipv4.tcp_timestamps", flag(self.timestamps))?;
        Ok(())
    }
}

/// The congestion control that a connection has in the lab with `stack`.
pub(crate) fn congestion(stack: &Stack) -> &'static str {
    stack.congestion.unwrap_or(Stack::LAB_CONGESTION).name()
}

/// Whether the kernel has it; the attempt loads it if it can be loaded.
fn require_congestion_control(name: &str) -> Result<(), LabError> {
    let failed = |source| LabError::Socket {
        action: "open a socket",
        source,
    };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).map_err(failed)?;
    Ok(set_congestion_control(&socket, name)?)
}

/// Raises the last of the three numbers of `name` to `bytes`.
fn raise_maximum(name: &str, bytes: ByteCount) -> Result<(), LabError> {
    let value = sysctl::read(name)?;
    let numbers: Vec<_> = value.split(' ').collect();
    if let [least, initial, maximum] = numbers[..]
        && maximum
            .parse::<u64>()
            .is_ok_and(|maximum| maximum < bytes.0)
    {
        sysctl::write(name, &format!("{least} {initial} {}", bytes.0))?;
    }
    Ok(())
}

/// Enough that no window ever limits a connection over the links of `scenario`: what they and their
/// queues hold, with the kernel's overhead.
fn buffer_for(scenario: &Scenario) -> ByteCount {
    let mtu = u64::from(scenario.mtu_inside());
    let links = || std::iter::once(&scenario.link).chain(scenario.hops.iter().map(|hop| &hop.link));
    let round_trip = links()
        .map(|link| link.downlink.delay + link.uplink.delay)
        .sum();
    let held = |pipe: fn(&LinkSettings) -> &PipeConfig| {
        let pipes = || links().map(pipe);
        let rate = pipes().filter_map(|pipe| pipe.rate).min();
        let in_flight = rate.map_or(LARGEST_BUFFER, |rate| rate.bytes_in(round_trip).0);
        let queued = pipes().map(|pipe| (pipe.queue as u64).saturating_mul(mtu));
        queued.fold(in_flight, u64::saturating_add)
    };
    let needed = held(|link| &link.downlink).max(held(|link| &link.uplink));
    let needed = needed.saturating_mul(OVERHEAD);
    ByteCount(needed.clamp(SMALLEST_BUFFER, LARGEST_BUFFER))
}
