//! The decision: which role at which place helps a machine, by the measurements in docs/placement.md and docs/host.md.
//!
//! A gateway with `hold` on an end host resumes both directions once it is told of the outage; the agent beside the
//! host's own TCP resumes what the host sends. So a host whose own link goes away gets the gateway, and a wired
//! server, whose clients go away, the agent. A router gets the gateway on its uplink, a VPN's end on the tunnel, where
//! the connections are seen as TCP.

use crate::setup::machine::{Interface, Kind, Machine};

/// Role and place for one machine, and why.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Proposal {
    pub(crate) situation: Situation,
    /// Gateways, one daemon each.
    pub(crate) gateways: Vec<Gateway>,
    /// Interfaces of the agent beside the host's own TCP; none without an agent.
    pub(crate) agent: Vec<String>,
    pub(crate) hooks: Vec<Hook>,
    /// Limits that the user should know of.
    pub(crate) notes: Vec<String>,
}

/// The machine's part in the network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Situation {
    /// Its programs have the connections, and its own link goes away.
    EndHost,
    /// Its programs have the connections, and its clients' links go away.
    Server,
    /// It forwards the packets of a network behind it.
    Router,
    /// Its connections go through a tunnel whose peers come and go.
    Tunnel,
    /// The user has named the interfaces.
    Named,
}

/// A gateway on an interface; its mechanism is `hold`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Gateway {
    pub(crate) interface: String,
    pub(crate) watch: Watch,
    /// True where only this machine's own connections cross.
    pub(crate) is_end: bool,
}

/// The indicators that tell something of the link.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Watch {
    /// All of them: the interface is the link's end.
    Link,
    /// Neighbours: an access point's own carrier says nothing of a station.
    Stations,
    /// The carrier, and silence: a tunnel is always up and has no neighbours.
    Tunnel,
}

/// A script that tells gateways of links, and who calls it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Hook {
    NetworkManager,
    ModemManager,
    /// For the access point on this interface.
    Hostapd(String),
    /// For the peers of this interface.
    WireGuard(String),
}

/// A machine for which nothing can be proposed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Refusal {
    /// Even the superuser may not configure networks.
    Confined { is_container: bool },
    /// There is no interface but the loopback.
    NoInterface,
    /// No default route, modem or tunnel shows where the link is.
    NoUplink { there: Vec<String> },
    /// The user has named an interface that is not there.
    Unknown { name: String, there: Vec<String> },
}

/// Decides what helps `machine`; `named` are interfaces that the user wants, none for all that seem to go away.
pub(crate) fn decide(machine: &Machine, named: &[String]) -> Result<Proposal, Refusal> {
    let there = || machine.interfaces.iter().map(|found| found.name.clone());
    if machine.is_confined {
        let is_container = machine.is_container;
        return Err(Refusal::Confined { is_container });
    }
    if machine.interfaces.is_empty() {
        return Err(Refusal::NoInterface);
    }
    let unknown = named.iter().find(|name| machine.interface(name).is_none());
    if let Some(name) = unknown {
        let (name, there) = (name.clone(), there().collect());
        return Err(Refusal::Unknown { name, there });
    }
    let (situation, interfaces) = match named {
        [] => situation(machine),
        named => (Situation::Named, named.to_vec()),
    };
    if interfaces.is_empty() {
        let there = there().collect();
        return Err(Refusal::NoUplink { there });
    }
    let mut proposal = Proposal {
        situation,
        gateways: Vec::new(),
        agent: Vec::new(),
        hooks: Vec::new(),
        notes: Vec::new(),
    };
    if situation == Situation::Server && machine.can_run_agent() {
        proposal.agent = interfaces;
    } else {
        let is_end = !machine.forwards;
        let gateways = interfaces.iter();
        proposal.gateways = gateways
            .filter_map(|name| machine.interface(name))
            .map(|interface| gateway(machine, interface, is_end))
            .collect();
    }
    proposal.hooks = hooks(machine, &proposal.gateways, &proposal.agent);
    proposal.notes = notes(machine, &proposal);
    Ok(proposal)
}

/// The machine's part in the network, and the interfaces whose links go away.
fn situation(machine: &Machine) -> (Situation, Vec<String>) {
    let all = || machine.interfaces.iter();
    let is_access_point = |interface: &&Interface| {
        machine.services.access_points.contains(&interface.name)
            || interface
                .ports
                .iter()
                .any(|port| machine.services.access_points.contains(port))
    };
    let is_tunnel = |interface: &&Interface| match interface.kind {
        Kind::WireGuard => true,
        Kind::Tunnel => interface.is_default || interface.has_network,
        _ => false,
    };
    let is_free = |interface: &&Interface| interface.master.is_none() && !is_tunnel(interface);
    let names = |found: Vec<&Interface>| -> Vec<String> {
        found.iter().map(|found| found.name.clone()).collect()
    };
    let tunnels: Vec<_> = all().filter(is_tunnel).collect();
    // Without a route at the moment, a modem's link and a laptop's Wi-Fi are those that go away.
    let comes_and_goes = |interface: &&Interface| match interface.kind {
        Kind::Modem => true,
        Kind::WiFi => machine.is_portable && !is_access_point(interface),
        _ => false,
    };
    let uplinks: Vec<_> = all()
        .filter(is_free)
        .filter(|interface| interface.is_default || comes_and_goes(interface))
        .collect();
    let is_local_network = |interface: &&Interface| match interface.kind {
        Kind::Bridge => machine.bridges_devices(interface),
        Kind::Ethernet | Kind::WiFi => true,
        // A VLAN or a bond, unlike an end of a container's pair, has an address of a network.
        Kind::Virtual => interface.has_network && !machine.is_container,
        _ => false,
    };
    let networks = all().filter(is_free).filter(|interface| {
        !uplinks.contains(interface) && interface.has_network && is_local_network(interface)
    });
    let routes = machine.forwards && !uplinks.is_empty() && networks.count() > 0;
    let is_wired = uplinks
        .iter()
        .all(|uplink| !matches!(uplink.kind, Kind::WiFi | Kind::Modem));
    if routes {
        let stations = all().filter(is_free).filter(is_access_point);
        let mut interfaces = uplinks.clone();
        interfaces.extend(tunnels);
        interfaces.extend(stations.filter(|found| !uplinks.contains(found)));
        (Situation::Router, names(interfaces))
    } else if !tunnels.is_empty() && is_wired && !machine.is_portable {
        (Situation::Tunnel, names(tunnels))
    } else if is_wired && !machine.is_portable && !machine.is_container {
        (Situation::Server, names(uplinks))
    } else {
        let mut interfaces = uplinks;
        interfaces.extend(tunnels);
        (Situation::EndHost, names(interfaces))
    }
}

fn gateway(machine: &Machine, interface: &Interface, is_end: bool) -> Gateway {
    let points = &machine.services.access_points;
    let serves_stations = points.contains(&interface.name)
        || interface.ports.iter().any(|port| points.contains(port));
    Gateway {
        interface: interface.name.clone(),
        watch: match interface.kind {
            Kind::WireGuard | Kind::Tunnel => Watch::Tunnel,
            _ if serves_stations => Watch::Stations,
            _ => Watch::Link,
        },
        is_end,
    }
}

/// The hooks that tell the gateways, or the agent of these interfaces, of what they cannot see themselves.
fn hooks(machine: &Machine, gateways: &[Gateway], agent: &[String]) -> Vec<Hook> {
    let mut hooks = Vec::new();
    let services = &machine.services;
    let kind_of = |interface: &str| machine.interface(interface).map(|found| found.kind);
    let kind = |gateway: &Gateway| kind_of(&gateway.interface);
    let mut watched = gateways
        .iter()
        .map(|gateway| &gateway.interface)
        .chain(agent)
        .peekable();
    if services.network_manager && watched.peek().is_some() {
        hooks.push(Hook::NetworkManager);
    }
    let has_modem = watched.any(|interface| kind_of(interface) == Some(Kind::Modem));
    if services.modem_manager && has_modem {
        hooks.push(Hook::ModemManager);
    }
    // Both run as daemons of their own, beside the gateway's.
    if !services.systemd {
        return hooks;
    }
    let is_watched = |point: &&String| {
        let found = machine.interface(point);
        let above = found
            .and_then(|found| found.master.as_ref())
            .unwrap_or(point);
        let mut gateways = gateways.iter();
        gateways.any(|gateway| gateway.watch == Watch::Stations && gateway.interface == *above)
    };
    let points = services.access_points.iter().filter(is_watched);
    hooks.extend(points.cloned().map(Hook::Hostapd));
    let peers = gateways
        .iter()
        .filter(|gateway| services.wireguard_tools && kind(gateway) == Some(Kind::WireGuard));
    hooks.extend(peers.map(|gateway| Hook::WireGuard(gateway.interface.clone())));
    hooks
}

fn notes(machine: &Machine, proposal: &Proposal) -> Vec<String> {
    let mut notes = Vec::new();
    if machine.masquerades && proposal.situation == Situation::Router {
        notes.push(
            "masquerading forgets connections when the interface goes down or loses its address; those end whatever \
             is done here, and SNAT to an address that stays keeps them"
                .into(),
        );
    }
    let wakes_no_peers = !machine.services.wireguard_tools
        && proposal
            .gateways
            .iter()
            .filter_map(|gateway| machine.interface(&gateway.interface))
            .any(|interface| interface.kind == Kind::WireGuard);
    if wakes_no_peers {
        notes.push(
            "`wg` is not installed, so that peers that only receive are missed: install wireguard-tools and set up \
             again"
                .into(),
        );
    }
    if proposal.situation == Situation::Server && proposal.agent.is_empty() {
        notes.push(
            "the agent beside this host's own TCP needs Linux 5.19 or newer with BTF, so that a gateway takes its \
             place"
                .into(),
        );
    }
    if !proposal.agent.is_empty() {
        notes.push(
            "uploads to this machine are helped at their senders: set up the clients, too".into(),
        );
    }
    if proposal.situation == Situation::EndHost && machine.forwards {
        notes.push(
            "connections of containers and virtual machines behind this host are helped, too"
                .into(),
        );
    }
    notes
}

#[cfg(test)]
#[path = "proposal/tests.rs"]
mod tests;
