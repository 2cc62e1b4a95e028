//! How packets get through tunnels IP in IP: plain ones stay in the kernel where it has what that takes,
//! all others go through user space.
//!
//! The role says after each change what tunnel a mobile node has. What the kernel may carry is put into its
//! maps at once, and taken out at once: a packet that finds no tunnel there goes on to user space.

use super::settings::TunnelPathChoice;
use crate::failure::Failure;
use outlast_linux::monitor::{self, Change};
use outlast_linux::netlink::{InterfaceIndex, RouteSocket};
use outlast_linux::tunnels::{
    End, Entrance, Exit, KernelTunnelConfig, KernelTunnelCounters, KernelTunnelError,
    KernelTunnels, MobileIs,
};
use outlast_mobility::PlainTunnel;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

/// Mobile nodes whose packets stay in the kernel; those of others go through user space.
const MOST: u32 = 1 << 17;

/// Index of the loopback device in every network namespace.
const LOOPBACK: u32 = 1;

/// What a role's tunnels are like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Where a mobile node's address is in what enters a tunnel here, and in what leaves one.
    pub(super) entering: MobileIs,
    pub(super) leaving: MobileIs,
    /// Whether the role's host forwards packets.
    pub(super) forwards: bool,
}

/// What the kernel knows of a mobile node.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
struct Known {
    entrance: Option<Entrance>,
    exit: Option<(End, Exit)>,
}

/// A role's way through its tunnels.
#[derive(Debug)]
pub(super) struct DataPath {
    /// `None` if all packets go through user space.
    kernel: Option<KernelTunnels>,
    /// What is said of it.
    description: String,
    device: InterfaceIndex,
    /// What this interface receives leaves no tunnel in the kernel.
    except: Option<InterfaceIndex>,
    /// Interfaces that were looked at.
    seen: BTreeSet<u32>,
    known: BTreeMap<Ipv4Addr, Known>,
}

impl DataPath {
    /// The one for the tunnels of `device`.
    pub(super) fn open(
        choice: TunnelPathChoice,
        device: &str,
        kind: Kind,
    ) -> Result<Self, Failure> {
        let index = RouteSocket::open().and_then(|mut routes| routes.interface(device));
        let index = index.map_err(|error| Failure::Run(error.into()))?;
        let mut path = Self {
            kernel: None,
            description: "user space: so the configuration says".into(),
            device: index,
            except: None,
            seen: BTreeSet::new(),
            known: BTreeMap::new(),
        };
        if choice == TunnelPathChoice::UserSpace {
            return Ok(path);
        }
        match Self::load(index, kind) {
            Ok(kernel) => {
                path.kernel = Some(kernel);
                path.description =
                    "eBPF: plain packets in tunnels IP in IP stay in the kernel".into();
            }
            Err(error) => {
                let lack = error.lack();
                if choice == TunnelPathChoice::Ebpf {
                    return Err(Failure::Capability(format!(
                        "data_path = \"ebpf\": {}: {}",
                        lack.what, lack.remedy
                    )));
                }
                tracing::info!(why = lack.what, "tunnels are in user space");
                path.description = format!("user space: {}", lack.what);
            }
        }
        Ok(path)
    }

    fn load(device: InterfaceIndex, kind: Kind) -> Result<KernelTunnels, KernelTunnelError> {
        let mut kernel = KernelTunnels::load(&KernelTunnelConfig {
            entering: kind.entering,
            leaving: kind.leaving,
            forwards: kind.forwards,
            mobiles: MOST,
        })?;
        kernel.attach_device(device)?;
        Ok(kernel)
    }

    /// Leaves what `interface` receives to user space.
    pub(super) const fn except(&mut self, interface: InterfaceIndex) {
        self.except = Some(interface);
    }

    /// These are the host's interfaces now.
    pub(super) fn attend(&mut self, interfaces: BTreeSet<u32>) -> anyhow::Result<()> {
        let Some(kernel) = &mut self.kernel else {
            return Ok(());
        };
        if interfaces == self.seen {
            return Ok(());
        }
        for gone in self.seen.difference(&interfaces) {
            kernel.forget(InterfaceIndex(*gone));
        }
        for change in monitor::interfaces()? {
            let Change::Interface {
                index,
                hardware,
                name,
                ..
            } = change
            else {
                continue;
            };
            let is_others = index != self.device && Some(index) != self.except;
            if index.0 == LOOPBACK || !is_others || kernel.is_attached(index) {
                continue;
            }
            let link_header = if hardware.is_some() { 14 } else { 0 };
            if let Err(error) = kernel.attach(index, link_header) {
                let why = error.lack().what;
                tracing::debug!(name, why, "packets from there go through user space");
            }
        }
        self.seen = interfaces;
        Ok(())
    }

    /// Whether anything may stay in the kernel.
    pub(super) const fn is_in_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// The mobile nodes that the kernel knows.
    pub(super) fn mobiles(&self) -> Vec<Ipv4Addr> {
        self.known.keys().copied().collect()
    }

    /// A mobile node has this tunnel, or none that the kernel may carry. `way` is where its packets leave,
    /// and how long they may be outside, on a host that does not forward.
    pub(super) fn follow(
        &mut self,
        mobile: Ipv4Addr,
        tunnel: Option<PlainTunnel>,
        way: Option<(InterfaceIndex, u32)>,
        exit: Exit,
    ) {
        let next = tunnel.map_or_else(Known::default, |tunnel| Known {
            entrance: tunnel.sends.then_some(Entrance {
                source: tunnel.own,
                destination: tunnel.other,
                way,
            }),
            exit: tunnel.receives.then_some((
                End {
                    source: tunnel.other,
                    destination: tunnel.own,
                    mobile,
                },
                exit,
            )),
        });
        let before = self.known.get(&mobile).copied().unwrap_or_default();
        let Some(kernel) = &mut self.kernel else {
            return;
        };
        if next == before {
            return;
        }
        match put(kernel, mobile, before, next) {
            Ok(known) if known == Known::default() => {
                self.known.remove(&mobile);
            }
            Ok(known) => {
                self.known.insert(mobile, known);
            }
            Err(error) => {
                // An old tunnel that stays would be wrong: without the programs there is none.
                tracing::warn!(%error, "tunnels are in user space from now on");
                self.description = format!("user space: {error}");
                self.kernel = None;
                self.known.clear();
            }
        }
    }

    /// What is said of it.
    pub(super) fn describe(&self) -> String {
        self.description.clone()
    }

    /// What stayed in the kernel.
    pub(super) fn counters(&self) -> KernelTunnelCounters {
        let counters = self.kernel.as_ref().map(KernelTunnels::counters);
        match counters {
            None => KernelTunnelCounters::default(),
            Some(Ok(counters)) => counters,
            Some(Err(error)) => {
                tracing::warn!(%error, "what stays in the kernel is not counted");
                KernelTunnelCounters::default()
            }
        }
    }

    /// Adds what stayed in the kernel to a role's counts: each packet to those of `entered` and `left`, too.
    pub(super) fn add_to(
        &self,
        counts: &mut BTreeMap<String, u64>,
        entered: Option<&str>,
        left: Option<&str>,
    ) {
        let kernel = self.counters();
        let mut add = |name: Option<&str>, count: u64| {
            if let Some(name) = name {
                *counts.entry(name.to_owned()).or_default() += count;
            }
        };
        add(entered, kernel.entered);
        add(left, kernel.left);
        add(Some("dropped_unfit"), kernel.dropped);
        add(Some("entered_in_kernel"), kernel.entered);
        add(Some("left_in_kernel"), kernel.left);
    }
}

/// Has the kernel know `next` in the place of `before`; what it knows then. Of what finds no room it knows
/// nothing.
fn put(
    kernel: &mut KernelTunnels,
    mobile: Ipv4Addr,
    before: Known,
    next: Known,
) -> Result<Known, KernelTunnelError> {
    let mut known = next;
    if let Some((end, _)) = before.exit
        && next.exit.is_none_or(|(other, _)| other != end)
    {
        kernel.set_exit(&end, None)?;
    }
    if let Some((end, exit)) = &next.exit
        && let Err(error) = kernel.set_exit(end, Some(exit))
    {
        tracing::debug!(%mobile, %error, "what comes from its tunnel goes through user space");
        kernel.set_exit(end, None)?;
        known.exit = None;
    }
    match kernel.set_entrance(mobile, next.entrance.as_ref()) {
        Ok(()) => {}
        Err(error) if next.entrance.is_none() => return Err(error),
        Err(error) => {
            tracing::debug!(%mobile, %error, "what enters its tunnel goes through user space");
            kernel.set_entrance(mobile, None)?;
            known.entrance = None;
        }
    }
    Ok(known)
}
