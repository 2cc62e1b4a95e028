//! How a host's TCP is set: what the scenario asks for, and what keeps buffers and memories of
//! earlier connections from having a say.

use crate::error::LabError;
use outlast_core::units::ByteCount;
use outlast_linux::socket::set_congestion_control;
use outlast_linux::sysctl;
use outlast_scenario::{LinkSettings, Scenario, Stack};
use socket2::{Domain, Socket, Type};

/// Settings of one host, before they are applied.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tuning {
    congestion: &'static str,
    sack: bool,
    timestamps: bool,
    retries: Option<u32>,
    /// The largest send and receive buffer that a connection may need.
    buffer: ByteCount,
}

/// Settings that are left as the kernel has them, and recorded because they bear on recovery.
const RECORDED: [&str; 7] = [
    "net.ipv4.tcp_dsack",
    "net.ipv4.tcp_recovery",
    "net.ipv4.tcp_early_retrans",
    "net.ipv4.tcp_frto",
    "net.ipv4.tcp_slow_start_after_idle",
    "net.ipv4.tcp_retries2",
    "net.ipv4.tcp_rto_max_ms",
];

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
        let Scenario { stack, link, .. } = scenario;
        Self {
            congestion: stack.congestion.unwrap_or(Stack::LAB_CONGESTION).name(),
            sack: stack.sack.unwrap_or(true),
            timestamps: stack.timestamps.unwrap_or(true),
            retries: stack.retries,
            buffer: buffer_for(link),
        }
    }

    /// Applies them in the namespace of the calling thread; answers what is in force.
    pub(crate) fn apply(&self) -> Result<Vec<(String, String)>, LabError> {
        require_congestion_control(self.congestion)?;
        let flag = |on: bool| if on { "1" } else { "0" };
        sysctl::write("net.ipv4.tcp_sack", flag(self.sack))?;
        sysctl::write("net.ipv4.tcp_timestamps", flag(self.timestamps))?;
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
        touched.extend(RECORDED);
        let read = |name: &str| Some((name.to_owned(), sysctl::read(name).ok()?));
        Ok(touched.into_iter().filter_map(read).collect())
    }

    /// The congestion control of every connection.
    pub(crate) fn congestion(&self) -> &'static str {
        self.congestion
    }
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

/// Enough that no window ever limits a connection over `link`: what the link and its queue hold,
/// with the kernel's overhead.
fn buffer_for(link: &LinkSettings) -> ByteCount {
    let round_trip = link.downlink.delay + link.uplink.delay;
    let held = [link.downlink, link.uplink].map(|pipe| {
        let in_flight = pipe
            .rate
            .map_or(LARGEST_BUFFER, |rate| rate.bytes_in(round_trip).0);
        in_flight.saturating_add((pipe.queue as u64).saturating_mul(link.mtu.into()))
    });
    let needed = held[0].max(held[1]).saturating_mul(OVERHEAD);
    ByteCount(needed.clamp(SMALLEST_BUFFER, LARGEST_BUFFER))
}
