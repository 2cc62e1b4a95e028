//! The role `mobile-node`: a TUN device bears the home address, and rules lead applications there.
//!
//! The care-of address is the one from which the kernel would speak to the home agent. It is looked
//! up again whenever addresses, routes or interfaces change. Where an address translator gives the
//! same address in another network, the return of the link is the only sign of the move.
//!
//! With `interface`, agents are heard there. Through a foreign agent packets go to the agent's Ethernet
//! address; what is for this host comes to the kernel by the link itself. At home the routes lead to
//! the link, and ARP is answered; elsewhere it is not (`arp_ignore`).

use super::access::{self, LINK};
use super::aftermath::Aftermath;
use super::data_path::{DataPath, Kind};
use super::endpoint::{Endpoint, Role, path_mtu};
use super::operating::fixed;
use super::settings::MobileNodeSettings;
use super::status::{Place, Report};
use super::{ntp_clock, random};
use crate::failure::Failure;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::monitor::Way;
use outlast_linux::netlink::{
    InterfaceIndex, IpVersion, Prefix, RouteSocket, Rule, Selector, TableRoute,
};
use outlast_linux::sysctl;
use outlast_linux::tunnels::{Exit, MobileIs};
use outlast_mobility::{
    Arp, Arrival, Attachment, CoLocation, LinkAddress, MobileNode, MobileNodeConfig, NodeCounters,
    NodeEvent, PlainTunnel, Transmit,
};
use outlast_wire::mobile_ip::Lifetime;
use outlast_wire::{Packet, Transport};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// The table with the routes into the tunnel, and the mark of what is in the tunnel already.
pub(super) const TABLE: u32 = 434;
pub(super) const MARK: u32 = 0x6d6f_6269;
/// The first rule's priority; the main table's own is 32766.
pub(super) const PRIORITY: u32 = 4340;

/// What does not come from the access link has no neighbour.
const ARRIVAL: Arrival = Arrival {
    link: LINK,
    from: LinkAddress([0; 6]),
};

/// What this host sends enters the tunnel, and what is for it leaves it.
const TUNNELS: Kind = Kind {
    entering: MobileIs::Source,
    leaving: MobileIs::Destination,
    forwards: false,
    mobiles: 1,
};

/// A mobile node and its routes.
pub(super) struct Mobile {
    settings: MobileNodeSettings,
    node: MobileNode,
    care_of_address: Option<Ipv4Addr>,
    /// Replies that were ignored when the last registration was complete.
    ignored: u64,
    routing: Routing,
    aftermath: Aftermath,
    data_path: DataPath,
    /// What the kernel was told last: a tunnel, or that there is none that it may carry; `None` if it has to be
    /// told again, because routes have changed.
    told_to_kernel: Option<Option<PlainTunnel>>,
}

impl Mobile {
    pub(super) fn start(
        settings: MobileNodeSettings,
        control: Option<&Path>,
    ) -> Result<(Endpoint, Self), Failure> {
        let now = clock::now();
        let node = machine(now, &settings)?;
        let mut endpoint = Endpoint::open(settings.operating(control), MARK)?;
        if let Some(interface) = &settings.interface {
            endpoint.use_access(interface).map_err(Failure::Run)?;
            if access::filters_strictly(interface) {
                tracing::warn!(
                    "packets through foreign agents are dropped: set net.ipv4.conf.{interface}.rp_filter to 2"
                );
            }
        }
        let routing = Routing::lead(&settings).map_err(Failure::Run)?;
        let (home_address, home_agent) = (settings.home_address, settings.home_agent);
        tracing::info!(%home_address, %home_agent, device = settings.device, "mobile node begins");
        let aftermath = Aftermath::new(settings.trigger, settings.gateway.clone());
        let mut data_path = DataPath::open(settings.data_path, &settings.device, TUNNELS)?;
        let interfaces = endpoint.interfaces();
        let attached = data_path.attach_to_interfaces(&interfaces);
        attached.map_err(Failure::Run)?;
        let mobile = Self {
            settings,
            node,
            care_of_address: None,
            ignored: 0,
            routing,
            aftermath,
            data_path,
            told_to_kernel: None,
        };
        Ok((endpoint, mobile))
    }

    /// Has the kernel carry what it may, unless nothing has changed.
    fn follow(&mut self) -> anyhow::Result<()> {
        let tunnel = self.node.plain_tunnel();
        if self.told_to_kernel == Some(tunnel) || !self.data_path.is_in_kernel() {
            return Ok(());
        }
        self.told_to_kernel = Some(tunnel);
        let way = match tunnel {
            Some(tunnel) => self.routing.way(tunnel)?,
            None => None,
        };
        // Without a way the packets that enter are user space's, and so are those that leave.
        let tunnel = tunnel.filter(|_| way.is_some());
        let exit = Exit::ReceivedBy(self.routing.device);
        self.data_path
            .follow(self.settings.home_address, tunnel, way, exit);
        Ok(())
    }

    /// Looks which care-of address this host has now, and registers it if it is another one.
    pub(super) fn relocate(&mut self, now: Instant, endpoint: &mut Endpoint) -> anyhow::Result<()> {
        let towards = endpoint.address_towards(self.settings.home_agent.into())?;
        let care_of_address = towards.filter(|own| *own != self.settings.home_address);
        let care_of_address = match endpoint.settle(care_of_address)? {
            Some(IpAddr::V4(own)) => Some(own),
            _ => None,
        };
        if care_of_address != self.care_of_address {
            match care_of_address {
                Some(address) => tracing::info!(care_of_address = %address, "elsewhere"),
                None => tracing::info!("there is no way to the home agent"),
            }
            self.care_of_address = care_of_address;
            self.attach(now);
        }
        Ok(())
    }

    /// Says that a reply was not believed, unless all is well.
    fn tell_ignored(&mut self) {
        let ignored = self.node.counters().ignored;
        if ignored > self.ignored && !self.node.is_registered() {
            tracing::warn!(
                "a reply to no request, or not authentic: has the home agent the same key?"
            );
        }
        self.ignored = ignored;
    }

    fn attach(&mut self, now: Instant) {
        let address = self.care_of_address;
        let address = address.map(|address| CoLocation {
            address,
            link: LINK,
        });
        self.node.handle_care_of_address(now, address);
    }
}

impl Role for Mobile {
    const NAME: &'static str = "mobile-node";
    const FORWARDS: bool = false;

    fn handle_device(&mut self, now: Instant, packet: Packet) {
        // The home agent drops what is not from the home address.
        if packet.header().ip.source == self.settings.home_address {
            let _ = self.node.handle_outgoing(now, packet);
        }
    }

    fn handle_network(&mut self, now: Instant, packet: Packet) {
        // Replies by way of agents are heard on their link.
        let is_tunnels = matches!(self.node.attachment(), Attachment::CoLocated(_));
        if is_tunnels || self.settings.interface.is_none() {
            // The kernel answers what is not for the node.
            let _ = self.node.handle_packet(now, ARRIVAL, &packet);
            self.tell_ignored();
        }
    }

    fn handle_link_packet(&mut self, now: Instant, from: LinkAddress, packet: Packet) {
        let is_datagram = matches!(packet.header().transport, Transport::Udp(_));
        let home_address = IpAddr::V4(self.settings.home_address);
        if !is_datagram || packet.header().ip.destination == home_address {
            let arrival = Arrival { link: LINK, from };
            let _ = self.node.handle_packet(now, arrival, &packet);
            self.tell_ignored();
        }
    }

    fn handle_link(&mut self, now: Instant, is_up: bool) {
        self.node.handle_link(now, LINK, is_up);
    }

    fn change_arp(&mut self, arp: Arp, endpoint: &mut Endpoint) -> anyhow::Result<()> {
        match (arp, endpoint.access()) {
            (Arp::Resume { .. }, Some(access)) => self.routing.go_home(access),
            (Arp::Silence { .. }, _) => self.routing.go_away(),
            _ => endpoint.change_arp(arp),
        }
    }

    fn handle_change(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        is_link_back: bool,
    ) -> anyhow::Result<()> {
        let before = self.care_of_address;
        self.told_to_kernel = None;
        self.data_path
            .attach_to_interfaces(&endpoint.interfaces())?;
        self.relocate(now, endpoint)?;
        if is_link_back && before.is_some() && self.care_of_address == before {
            tracing::info!("a link is back");
            self.node.handle_care_of_address(now, None);
            self.attach(now);
        }
        Ok(())
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.node.handle_timeout(now);
        self.aftermath.handle_timeout(now);
    }

    fn reload(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        config: &Path,
    ) -> Result<Vec<&'static str>, Failure> {
        let next = MobileNodeSettings::load(config)?;
        fixed(&self.settings.fixed_differences(&next))?;
        let changed = self.settings.free_differences(&next);
        let node = machine(now, &next)?;
        endpoint.move_metrics(next.metrics.as_ref())?;
        self.settings = next;
        self.node = node;
        self.ignored = 0;
        self.care_of_address = None;
        self.relocate(now, endpoint)?;
        Ok(changed)
    }

    fn handle_notice(&mut self, now: Instant) -> bool {
        tracing::info!("the link is said to be back");
        self.node.handle_link(now, LINK, true);
        if self.care_of_address.is_some() {
            self.node.handle_care_of_address(now, None);
            self.attach(now);
        }
        true
    }

    fn keeps_privileges(&self) -> bool {
        self.aftermath.has_trigger()
    }

    fn report(&self, now: Instant) -> Report {
        let mut counters = counts(self.node.counters());
        self.data_path.add_to(&mut counters, None, None);
        Report {
            address: Some(self.settings.home_address.into()),
            data_path: Some(self.data_path.describe()),
            place: Some(Place {
                at: shown(&self.node.attachment()),
                is_registered: self.node.is_registered(),
                in_udp: self.node.has_udp_tunnel(),
                last_move: self.aftermath.last_move(now),
            }),
            mobiles: Vec::new(),
            counters,
        }
    }

    fn end(&mut self, now: Instant) {
        self.node.deregister(now);
        tracing::info!(counters = ?self.node.counters(), "mobile node ends");
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.node.poll_transmit()
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.node.poll_event() {
            tell(&event, self.node.has_udp_tunnel());
            match event {
                NodeEvent::Detached => {
                    self.routing.go_away()?;
                    self.aftermath.handle_detachment();
                }
                NodeEvent::Registered {
                    has_moved: true,
                    took,
                    ..
                } => {
                    // First the kernel: what a gateway releases is not to be overtaken.
                    self.follow()?;
                    let interfaces = self.routing.interfaces();
                    self.aftermath.handle_move(took, interfaces)?;
                }
                _ => {}
            }
        }
        self.follow()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let node = self.node.poll_timeout().map(|(at, _)| at);
        node.into_iter().chain(self.aftermath.poll_timeout()).min()
    }
}

fn machine(now: Instant, settings: &MobileNodeSettings) -> Result<MobileNode, Failure> {
    let config = MobileNodeConfig {
        home_address: settings.home_address,
        home_agent: settings.home_agent,
        home: settings.association()?,
        foreign: settings.foreign_association()?,
        detection: settings.detection(),
        lifetime: Lifetime(settings.lifetime_s),
        reverse_tunnel: true,
        simultaneous_bindings: false,
        udp_tunnel: settings.udp_tunnel,
        clock: ntp_clock(now),
        seed: u64::from_ne_bytes(random()?),
    };
    Ok(MobileNode::new(now, config))
}

fn tell(event: &NodeEvent, in_udp: bool) {
    match event {
        NodeEvent::Registered {
            at,
            has_moved,
            took,
        } => {
            let took_ms = took.as_secs_f64() * 1e3;
            let at = shown(at);
            match has_moved {
                true => tracing::info!(at, took_ms, in_udp, "registered"),
                false => tracing::debug!(took_ms, "registration renewed"),
            }
        }
        NodeEvent::Detached => tracing::info!("detached"),
        NodeEvent::Refused { code, .. } => tracing::warn!(%code, "registration refused"),
        NodeEvent::Expired => tracing::warn!("registration has expired"),
    }
}

/// Where a mobile node is, for people.
pub(super) fn shown(at: &Attachment) -> String {
    match at {
        Attachment::Nowhere => "nowhere".into(),
        Attachment::Home { .. } => "home".into(),
        Attachment::Foreign {
            agent,
            care_of_address,
        } => format!("{care_of_address} of agent {agent}"),
        Attachment::CoLocated(at) => at.address.to_string(),
    }
}

/// The rules and routes by which applications use the home address; gone when dropped.
struct Routing {
    home_address: Ipv4Addr,
    routes: RouteSocket,
    device: InterfaceIndex,
    destinations: Vec<Prefix>,
    home_network: Option<Prefix>,
    home_gateway: Ipv4Addr,
    rules: Vec<Rule>,
    arp: Option<ArpSetting>,
    is_home: bool,
    /// The home link, while the mobile node is there.
    link: Option<InterfaceIndex>,
}

/// Whether the kernel answers ARP at an interface for addresses of others (`arp_ignore`).
struct ArpSetting {
    name: String,
    former: String,
}

impl ArpSetting {
    fn read(interface: &str) -> Result<Self, sysctl::SysctlError> {
        let name = format!("net.ipv4.conf.{interface}.arp_ignore");
        let former = sysctl::read(&name)?;
        Ok(Self { name, former })
    }

    /// The home address is the device's: this interface is silent about it, or as it was.
    fn set(&self, is_silent: bool) {
        let value = if is_silent { "1" } else { &self.former };
        if let Err(error) = sysctl::write(&self.name, value) {
            tracing::warn!(%error, "ARP goes on as before");
        }
    }
}

impl Routing {
    /// In this order: what is in the tunnel goes by the main table; what is from the home address
    /// into the tunnel; what has no source yet to where the main table knows a network, or else into
    /// the tunnel.
    fn lead(settings: &MobileNodeSettings) -> anyhow::Result<Self> {
        let home_address = settings.home_address;
        let mut routes = RouteSocket::open()?;
        let device = routes.interface(&settings.device)?;
        routes.add_address(device, Prefix::of_host(home_address.into()))?;
        let rule = |place, selector, table| Rule {
            version: IpVersion::V4,
            priority: PRIORITY + place,
            selector,
            table,
            without_default: false,
        };
        let interface = settings.interface.as_deref();
        let arp = interface.map(ArpSetting::read).transpose()?;
        let mut routing = Self {
            home_address,
            routes,
            device,
            destinations: settings.destinations.iter().map(|one| one.0).collect(),
            home_network: settings.home_network.map(|one| one.0),
            home_gateway: settings.home_gateway(),
            rules: Vec::new(),
            arp,
            is_home: true,
            link: None,
        };
        routing.go_away()?;
        let rules = [
            rule(0, Selector::Mark(MARK), Way::MAIN),
            rule(1, Selector::Source(home_address.into()), TABLE),
            Rule {
                without_default: true,
                ..rule(2, Selector::All, Way::MAIN)
            },
            rule(3, Selector::Source(Ipv4Addr::UNSPECIFIED.into()), TABLE),
        ];
        for rule in rules {
            routing.routes.add_rule(&rule)?;
            routing.rules.push(rule);
        }
        Ok(routing)
    }

    fn route(
        &mut self,
        destination: Prefix,
        interface: InterfaceIndex,
        gateway: Option<Ipv4Addr>,
    ) -> anyhow::Result<()> {
        let source = Some(self.home_address.into());
        Ok(self.routes.add_table_route(&TableRoute {
            table: TABLE,
            destination,
            interface,
            gateway: gateway.map(IpAddr::V4),
            source,
        })?)
    }

    /// Where packets in a tunnel leave, and how many bytes they may have; `None` if there is no way.
    fn way(&mut self, tunnel: PlainTunnel) -> anyhow::Result<Option<(InterfaceIndex, u32)>> {
        let (own, other) = (tunnel.own.into(), tunnel.other.into());
        let interface = self.routes.interface_towards(own, other, MARK)?;
        let of_way = path_mtu(own, other)?;
        let way = interface.zip(of_way);
        Ok(way.map(|(interface, mtu)| (interface, tunnel.mtu.map_or(mtu, |said| said.min(mtu)))))
    }

    /// By which interface applications' packets leave.
    fn interfaces(&self) -> impl Iterator<Item = InterfaceIndex> {
        [Some(self.device), self.link].into_iter().flatten()
    }

    /// From now on packets go into the device, and nobody hears of the home address by ARP.
    fn go_away(&mut self) -> anyhow::Result<()> {
        if !self.is_home {
            return Ok(());
        }
        self.is_home = false;
        self.link = None;
        if let Some(arp) = &self.arp {
            arp.set(true);
        }
        let device = self.device;
        for destination in self
            .destinations
            .clone()
            .into_iter()
            .chain(self.home_network)
        {
            self.route(destination, device, None)?;
        }
        Ok(())
    }

    /// From now on packets go by the home link, as on every host.
    fn go_home(&mut self, link: InterfaceIndex) -> anyhow::Result<()> {
        self.is_home = true;
        self.link = Some(link);
        if let Some(arp) = &self.arp {
            arp.set(false);
        }
        for destination in self.destinations.clone() {
            let gateway = Some(self.home_gateway);
            // It is the home network itself that has no router on the way.
            if Some(destination) != self.home_network {
                self.route(destination, link, gateway)?;
            }
        }
        if let Some(network) = self.home_network {
            self.route(network, link, None)?;
        }
        Ok(())
    }
}

impl Drop for Routing {
    fn drop(&mut self) {
        if let Some(arp) = &self.arp {
            arp.set(false);
        }
        for rule in &self.rules {
            if let Err(error) = self.routes.remove_rule(rule) {
                tracing::warn!(%error, "a rule stays");
            }
        }
    }
}

/// All counts by name: who adds one is told here that it is to be shown.
fn counts(counters: &NodeCounters) -> BTreeMap<String, u64> {
    let NodeCounters {
        advertisements,
        solicitations,
        requests,
        repeated,
        put_off,
        accepted,
        refused,
        ignored,
        resynchronised,
        forgotten_agents,
        dropped_detached,
        dropped_unfit,
    } = *counters;
    let all = [
        ("advertisements", advertisements),
        ("solicitations", solicitations),
        ("requests", requests),
        ("repeated", repeated),
        ("put_off", put_off),
        ("accepted", accepted),
        ("refused", refused),
        ("ignored", ignored),
        ("resynchronised", resynchronised),
        ("forgotten_agents", forgotten_agents),
        ("dropped_detached", dropped_detached),
        ("dropped_unfit", dropped_unfit),
    ];
    all.map(|(name, count)| (name.to_owned(), count)).into()
}
