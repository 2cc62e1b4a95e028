//! How packets get through tunnels IP in IP: plain ones stay in the kernel where it has what that takes,
//! all others go through user space.
//!
//! The role says after each change what tunnel a mobile node has. What the kernel may carry is put into its
//! maps at once, and taken out at once: a packet that finds no tunnel there goes on to user space.

use super::settings::TunnelPathChoice;
use crate::failure::Failure;
use outlast_linux::monitor::{self, Change};
use outlast_linux::netlink::{InterfaceIndex, RouteSocket};
use outlast_linux::offload::{self, TUNNEL_SEGMENTATION};
use outlast_linux::tunnels::{
    End, Entrance, Exit, KernelTunnelConfig, KernelTunnelCounters, KernelTunnelError,
    KernelTunnels, MobileIs,
};
use outlast_mobility::PlainTunnel;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

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
    /// Mobile nodes whose packets stay in the kernel; those of others go through user space. The kernel takes
    /// 32 bytes for each at once.
    pub(super) mobiles: u32,
}

/// An interface, as far as super-segments in tunnels matter.
#[derive(Clone, Debug)]
struct Card {
    name: String,
    has_hardware: bool,
    segments_tunnels: bool,
}

/// The first interface whose hardware may drop what left a tunnel in the kernel. Super-segments keep the mark of
/// the tunnel, which nothing can take from them: cards that cut tunnels themselves look for outer headers then.
fn in_the_way(cards: &[Card]) -> Option<&str> {
    let is_it = |card: &&Card| card.has_hardware && card.segments_tunnels;
    cards.iter().find(is_it).map(|card| &*card.name)
}

/// What a network interface does with super-segments in tunnels.
fn card(name: &str, address: Option<[u8; 6]>) -> Card {
    let has_hardware = offload::has_hardware(name, address);
    let segments_tunnels = has_hardware
        && offload::segments_tunnels(name).unwrap_or_else(|error| {
            // One that is gone meanwhile is in nobody's way.
            let is_there = offload::has_hardware(name, address);
            if is_there {
                tracing::warn!(name, %error, "the interface does not tell what it does with tunnels");
            }
            is_there
        });
    Card {
        name: name.to_owned(),
        has_hardware,
        segments_tunnels,
    }
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
    /// What `outlast status` shows: where packets go, and why.
    description: String,
    device: InterfaceIndex,
    /// No program is attached to this interface: what it receives leaves tunnels in user space.
    excluded: Option<InterfaceIndex>,
    /// Interfaces with a program, or without one for good.
    seen: BTreeSet<u32>,
    /// Names of interfaces to which no program could be attached.
    refused: BTreeMap<u32, String>,
    /// The interface because of which all tunnels end in user space; for good, so that a mobile node's packets
    /// change their way once at most.
    in_the_way: Option<String>,
    known: BTreeMap<Ipv4Addr, Known>,
    /// The programs' counts when they were last read: these never go back.
    counted: Cell<KernelTunnelCounters>,
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
            excluded: None,
            seen: BTreeSet::new(),
            refused: BTreeMap::new(),
            in_the_way: None,
            known: BTreeMap::new(),
            counted: Cell::default(),
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
            mobiles: kind.mobiles,
        })?;
        kernel.attach_device(device)?;
        Ok(kernel)
    }

    /// Leaves what `interface` receives to user space.
    pub(super) const fn exclude_ingress(&mut self, interface: InterfaceIndex) {
        self.excluded = Some(interface);
    }

    /// Attaches programs to those of the host's `interfaces` that have none yet, and tries those again that were
    /// refused.
    ///
    /// # Errors
    /// When the kernel does not list interfaces.
    pub(super) fn attach_to_interfaces(
        &mut self,
        interfaces: &BTreeSet<u32>,
    ) -> anyhow::Result<()> {
        let Some(kernel) = &mut self.kernel else {
            return Ok(());
        };
        if *interfaces == self.seen {
            return Ok(());
        }
        for gone in self.seen.difference(interfaces) {
            kernel.forget(InterfaceIndex(*gone));
        }
        self.seen.retain(|index| interfaces.contains(index));
        self.refused.retain(|index, _| interfaces.contains(index));
        let mut cards = Vec::new();
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
            cards.push(card(&name, hardware));
            let is_others = index != self.device && Some(index) != self.excluded;
            if index.0 == LOOPBACK || !is_others || kernel.is_attached(index) {
                self.seen.insert(index.0);
                continue;
            }
            let link_header = if hardware.is_some() { 14 } else { 0 };
            match kernel.attach(index, link_header) {
                Ok(()) => {
                    self.seen.insert(index.0);
                    self.refused.remove(&index.0);
                }
                Err(error) => {
                    let why = error.lack().what;
                    if self.refused.insert(index.0, name.clone()).is_none() {
                        tracing::info!(name, why, "packets from there go through user space");
                    }
                }
            }
        }
        if self.in_the_way.is_none()
            && let Some(name) = in_the_way(&cards)
        {
            self.in_the_way = Some(name.to_owned());
            self.end_in_user_space(name);
        }
        Ok(())
    }

    /// Has all tunnels end in user space, because of this interface.
    fn end_in_user_space(&mut self, name: &str) {
        tracing::warn!("tunnels end in user space: {}", remedy(name));
        for (mobile, known) in self.known.clone() {
            let next = Known {
                exit: None,
                ..known
            };
            self.change(mobile, next);
        }
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
        let ends_in_kernel = self.in_the_way.is_none();
        let next = tunnel.map_or_else(Known::default, |tunnel| Known {
            entrance: tunnel.sends.then_some(Entrance {
                source: tunnel.own,
                destination: tunnel.other,
                way,
                identification_offset: tunnel.identification_offset,
            }),
            exit: (tunnel.receives && ends_in_kernel).then_some((
                End {
                    source: tunnel.other,
                    destination: tunnel.own,
                    mobile,
                },
                exit,
            )),
        });
        self.change(mobile, next);
    }

    /// Has the kernel know `next` of a mobile node.
    fn change(&mut self, mobile: Ipv4Addr, next: Known) {
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
                let why = error.with_causes();
                tracing::warn!(why, "tunnels are in user space from now on");
                self.description = format!("user space: {why}");
                // What was counted until now stays.
                self.counters();
                self.kernel = None;
                self.known.clear();
            }
        }
    }

    /// Where packets go through tunnels and why, in one line.
    pub(super) fn describe(&self) -> String {
        let mut text = self.description.clone();
        if self.kernel.is_none() {
            return text;
        }
        if let Some(name) = &self.in_the_way {
            text.push_str("; tunnels end in user space: ");
            text.push_str(&remedy(name));
        }
        if !self.refused.is_empty() {
            let names: Vec<_> = self.refused.values().map(String::as_str).collect();
            let names = names.join(", ");
            text.push_str(&format!("; in user space what {names} receives"));
        }
        text
    }

    /// What stayed in the kernel, since the role began.
    pub(super) fn counters(&self) -> KernelTunnelCounters {
        match self.kernel.as_ref().map(KernelTunnels::counters) {
            None => {}
            Some(Ok(counters)) => self.counted.set(counters),
            Some(Err(error)) => {
                let why = error.with_causes();
                tracing::warn!(why, "what stays in the kernel is not counted");
            }
        }
        self.counted.get()
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

/// Why tunnels end in user space because of an interface, and what would help.
fn remedy(name: &str) -> String {
    format!(
        "{name} segments tunnels itself: `ethtool -K {name} {TUNNEL_SEGMENTATION} off` and a restart let the \
         kernel carry them"
    )
}

/// Has the kernel know `next` in the place of `before`; what it knows then, which is less where a map is full.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hardware_that_segments_tunnels_is_in_the_way() {
        let card = |name: &str, has_hardware, segments_tunnels| Card {
            name: name.into(),
            has_hardware,
            segments_tunnels,
        };
        let harmless = [
            card("lo", false, false),
            card("veth0", false, true),
            card("eth0", true, false),
        ];
        assert_eq!(in_the_way(&[]), None);
        assert_eq!(in_the_way(&harmless), None);
        let cards = [&harmless[..], &[card("eth1", true, true)]].concat();
        assert_eq!(in_the_way(&cards), Some("eth1"));
        assert!(remedy("eth1").contains("ethtool -K eth1 tx-ipxip4-segmentation off"));
    }
}
