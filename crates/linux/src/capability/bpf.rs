//! eBPF programs in traffic control.

use super::{ProbeResult, available, missing};
use crate::lack::Lack;
use crate::netlink::InterfaceIndex;
use crate::silence::Silence;
use crate::stack::TcpStack;
use crate::sys::bpf;
use crate::tracker::{Tracker, TrackerConfig, TrackerError};
use crate::traffic_control::{Order, Spot, Way};
use crate::tunnels::{KernelTunnelConfig, KernelTunnelError, KernelTunnels, MobileIs};
use crate::user_timeout::{UserTimeoutConfig, UserTimeouts};
use aya::programs::loaded_programs;
use outlast_host::control::EndpointControl;
use outlast_host::user_timeout::{AdoptionLimits, UserTimeoutOption};
use rustix::fd::AsFd;
use std::collections::BTreeSet;

/// Index of the loopback device in every network namespace.
const LOOPBACK: u32 = 1;
/// Tunnels of one mobile host.
const TUNNELS: KernelTunnelConfig = KernelTunnelConfig {
    entering: MobileIs::Destination,
    leaving: MobileIs::Source,
    forwards: true,
    mobiles: 1,
};

pub(super) fn traffic_control() -> ProbeResult {
    let program = match bpf::load_program(bpf::Word::Next) {
        Ok(program) => program,
        Err(error) => {
            let remedy = match error.raw_os_error() {
                Some(libc::EPERM) => "run as root (CAP_BPF and CAP_NET_ADMIN)",
                _ => "a kernel built with CONFIG_BPF_SYSCALL=y and CONFIG_NET_CLS_BPF",
            };
            return missing(format!("cannot load a program: {error}"), remedy);
        }
    };
    let attached = Way::of(program.as_fd()).and_then(|way| {
        let mut spot = Spot::at(InterfaceIndex(LOOPBACK));
        way.attach(program.as_fd(), &mut spot, bpf::Hook::Ingress, Order::Last)?;
        Ok(way.name())
    });
    match attached {
        Ok(way) => available(format!("loaded a program and attached it ({way})")),
        Err(error) => missing(
            format!("programs load, but none can be attached: {error}"),
            "Linux 6.6 or newer (tcx), or CONFIG_NET_CLS_BPF and CONFIG_NET_SCH_INGRESS",
        ),
    }
}

/// The very programs of the gateway's data path, on the loopback device.
pub(super) fn tracker() -> ProbeResult {
    let config = TrackerConfig {
        flows: 1024,
        slots: 64,
        ..TrackerConfig::default()
    };
    let attached = || -> Result<(), TrackerError> { Tracker::load(&config)?.attach("lo") };
    match attached() {
        Ok(()) => available("`outlast run` leaves passing packets in the kernel"),
        Err(error) => {
            let lack = error.lack();
            let what = format!(
                "{}; `outlast run` takes every packet to user space",
                lack.what
            );
            missing(what, lack.remedy)
        }
    }
}

/// The very programs of the roles with Mobile IP, on the loopback device.
pub(super) fn tunnels() -> ProbeResult {
    let attached = || -> Result<(), KernelTunnelError> {
        let mut tunnels = KernelTunnels::load(&TUNNELS)?;
        tunnels.attach_device(InterfaceIndex(LOOPBACK))?;
        tunnels.attach(InterfaceIndex(LOOPBACK), 14)
    };
    match attached() {
        Ok(()) => available("tunnels IP in IP of Mobile IP stay in the kernel"),
        Err(error) => {
            let lack = error.lack();
            let what = format!("{}; tunnels go through user space", lack.what);
            missing(what, lack.remedy)
        }
    }
}

/// The very programs of the role `host`, at the root of all cgroups; in a namespace without sockets
/// they have nothing to do.
pub(super) fn user_timeout() -> ProbeResult {
    match UserTimeouts::attach(&timeouts_of_nobody()) {
        Ok(_) => available("the role host sends the User Timeout Option"),
        Err(error) => lacking(error.lack()),
    }
}

/// Configuration of a probe, which looks at nobody's sockets.
fn timeouts_of_nobody() -> UserTimeoutConfig {
    UserTimeoutConfig {
        option: UserTimeoutOption::default(),
        limits: AdoptionLimits::default(),
        is_one_sided: false,
        cgroups: Vec::new(),
        in_outage: None,
        rules: Vec::new(),
    }
}

/// The congestion control by which the role `host` puts connections back into slow start.
pub(super) fn slow_start() -> ProbeResult {
    let stack = match TcpStack::open(0) {
        Ok(stack) => stack,
        Err(error) => return lacking(error.lack()),
    };
    match stack.slow_start_control() {
        Ok(_) => available("loaded a congestion control of BPF programs"),
        Err(lack) => lacking(lack),
    }
}

/// The programs by which the role `host` notices packets of silent peers.
pub(super) fn silent_peers() -> ProbeResult {
    match Silence::begin() {
        Ok(_) => available("attached to the tracepoints of TCP"),
        Err(error) => lacking(error.lack()),
    }
}

/// A program of Outlast's that the kernel has loaded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct VerifiedProgram {
    /// Its name, cut off by the kernel after 15 characters.
    pub name: String,
    /// Instructions that the verifier processed before it was satisfied; it gives up after 1,000,000.
    pub instructions: u32,
}

/// Loads every object of Outlast's that this kernel takes, and tells its programs, by their names.
pub fn verified_programs() -> Vec<VerifiedProgram> {
    let before: BTreeSet<u32> = loaded_programs().flatten().map(|info| info.id()).collect();
    let tracker = Tracker::load(&TrackerConfig::default());
    let tunnels = KernelTunnels::load(&TUNNELS);
    let timeouts = UserTimeouts::attach(&timeouts_of_nobody());
    let stack = TcpStack::open(0);
    let slow_start = stack.as_ref().map(TcpStack::slow_start_control);
    let silence = Silence::begin();
    let new = loaded_programs()
        .flatten()
        .filter(|info| !before.contains(&info.id()));
    let mut programs: Vec<VerifiedProgram> = new
        .filter_map(|info| {
            Some(VerifiedProgram {
                name: info.name_as_str()?.to_owned(),
                instructions: info.verified_instruction_count()?,
            })
        })
        .collect();
    programs.sort_by(|one, other| one.name.cmp(&other.name));
    drop((tracker, tunnels, timeouts, slow_start, silence));
    programs
}

fn lacking(Lack { what, remedy }: Lack) -> ProbeResult {
    missing(what, remedy)
}

/// The very pass of the role `host`, over the namespace's sockets.
pub(super) fn sockets() -> ProbeResult {
    let mut stack = match TcpStack::open(0) {
        Ok(stack) => stack,
        Err(error) => return lacking(error.lack()),
    };
    match stack.connections(&mut Vec::new()) {
        Ok(()) => available("made a pass over the sockets"),
        Err(error) => missing(
            format!("the program loads, but no pass can be made: {error}"),
            "Linux 5.19 or newer",
        ),
    }
}
