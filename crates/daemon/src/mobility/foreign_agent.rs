//! The role `foreign-agent`: visitors on an access link, whose tunnels end here.
//!
//! What home agents send for a visitor goes out in a frame to where the visitor was heard. What a
//! visitor sends is routed into a TUN device, by a rule of its own, and from there into its reverse
//! tunnel. A host route and a pinned neighbour let this host's own programs reach the visitor, and let
//! the kernel take the visitor's packets for true (`rp_filter`).

use super::access::{self, LINK};
use super::data_path::{DataPath, Kind};
use super::endpoint::{Endpoint, Role};
use super::operating::fixed;
use super::random;
use super::settings::ForeignAgentSettings;
use super::status::{Mobile, Report};
use crate::failure::Failure;
use outlast_base::time::{Duration, Instant};
use outlast_linux::clock;
use outlast_linux::netlink::{
    InterfaceIndex, IpVersion, Prefix, Route, RouteSocket, Rule, Selector, TableRoute,
};
use outlast_linux::sysctl;
use outlast_linux::tunnels::{Exit, MobileIs};
use outlast_mobility::{
    Arrival, ForeignAgent, ForeignAgentConfig, ForeignCounters, ForeignEvent, ForeignLimits,
    LinkAddress, LinkId, Transmit,
};
use outlast_wire::mobile_ip::Lifetime;
use outlast_wire::{Packet, Transport};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

/// The table with the route into the device, and the priority of the visitors' rules.
const TABLE: u32 = 434;
const PRIORITY: u32 = 4340;

/// A request waits so long for its home agent (RFC 5944, section 3.7.2.3).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(7);

/// The type of a registration request.
const REQUEST: u8 = 1;

/// What comes from elsewhere than the access link.
const OUTSIDE: Arrival = Arrival {
    link: LinkId(1),
    from: LinkAddress([0; 6]),
};

/// What visitors send enters tunnels, and what is for them leaves those.
const TUNNELS: Kind = Kind {
    entering: MobileIs::Source,
    leaving: MobileIs::Destination,
    forwards: true,
    mobiles: 1 << 12,
};

/// A foreign agent, and what the kernel knows of its visitors.
pub(super) struct Foreign {
    agent: ForeignAgent,
    settings: ForeignAgentSettings,
    care_of_address: Ipv4Addr,
    routes: RouteSocket,
    access: InterfaceIndex,
    visitors: BTreeSet<Ipv4Addr>,
    data_path: DataPath,
    /// The access link's interface, its Ethernet address, and its longest packet in bytes.
    frame: Option<(InterfaceIndex, [u8; 6], u32)>,
}

impl Foreign {
    pub(super) fn start(
        settings: &ForeignAgentSettings,
        control: Option<&Path>,
    ) -> Result<(Endpoint, Self), Failure> {
        let now = clock::now();
        let config = ForeignAgentConfig {
            care_of_address: settings.care_of_address,
            link: LINK,
            advertising: settings.advertising()?,
            longest_lifetime: Lifetime(settings.lifetime_s),
            demands_registration: settings.registration_required,
            reverse_tunnels: settings.reverse_tunnels(),
            mobiles: settings.mobiles()?,
            home_agents: settings.home_agents()?,
            request_timeout: REQUEST_TIMEOUT,
            limits: ForeignLimits::default(),
            seed: u64::from_ne_bytes(random()?),
        };
        let mut endpoint = Endpoint::open(settings.operating(control), 0)?;
        let (interface, care_of_address) = (&settings.interface, settings.care_of_address);
        endpoint.use_access(interface).map_err(Failure::Run)?;
        if endpoint.settle(Some(care_of_address.into()))?.is_none() {
            return Err(Failure::Usage(format!(
                "care_of_address = \"{care_of_address}\": no interface has it"
            )));
        }
        let agent = ForeignAgent::new(now, config);
        let data_path = DataPath::open(settings.data_path, &settings.device, TUNNELS)?;
        let foreign = Self::with_routes(agent, settings, data_path);
        let mut foreign = foreign.map_err(Failure::Run)?;
        foreign
            .look_at_interfaces(&endpoint)
            .map_err(Failure::Run)?;
        tracing::info!(%care_of_address, interface, "foreign agent begins");
        Ok((endpoint, foreign))
    }

    fn with_routes(
        agent: ForeignAgent,
        settings: &ForeignAgentSettings,
        data_path: DataPath,
    ) -> anyhow::Result<Self> {
        if sysctl::read("net.ipv4.ip_forward")? == "0" {
            tracing::warn!("this host forwards nothing: set net.ipv4.ip_forward to 1");
        }
        let mut routes = RouteSocket::open()?;
        let device = routes.interface(&settings.device)?;
        let access = routes.interface(&settings.interface)?;
        // An agent that was killed has left its visitors' rules behind.
        let left_behind = rule(Selector::All);
        let mut most = ForeignLimits::default().visitors;
        while most > 0 && routes.remove_rule(&left_behind).is_ok() {
            most -= 1;
        }
        routes.add_table_route(&TableRoute {
            table: TABLE,
            destination: Prefix {
                address: Ipv4Addr::UNSPECIFIED.into(),
                length: 0,
            },
            interface: device,
            gateway: None,
            source: None,
        })?;
        Ok(Self {
            agent,
            settings: settings.clone(),
            care_of_address: settings.care_of_address,
            routes,
            access,
            visitors: BTreeSet::new(),
            data_path,
            frame: None,
        })
    }

    /// Has the kernel carry what it may of visitors' packets, by the interfaces that there are now. What comes
    /// from the visitors' link is out of no home agent's tunnel, whoever it says it is from.
    fn look_at_interfaces(&mut self, endpoint: &Endpoint) -> anyhow::Result<()> {
        self.agent.set_own_addresses(access::own_addresses()?);
        self.data_path.exclude_ingress(self.access);
        self.data_path
            .attach_to_interfaces(&endpoint.interfaces())?;
        let frame = endpoint.access_frame();
        if frame != self.frame {
            self.frame = frame;
            for visitor in self.data_path.mobiles() {
                self.follow(visitor);
            }
        }
        Ok(())
    }

    /// Has the kernel carry what it may of a visitor's packets.
    fn follow(&mut self, visitor: Ipv4Addr) {
        let tunnel = self.agent.plain_tunnel(visitor);
        let node = self.agent.visitor(visitor);
        let exit = self.frame.zip(node).map(|((interface, from, mtu), node)| {
            let to = node.0;
            Exit::Frame {
                interface,
                mtu,
                to,
                from,
            }
        });
        let tunnel = tunnel.filter(|_| exit.is_some());
        let exit = exit.unwrap_or(Exit::ReceivedBy(self.access));
        self.data_path.follow(visitor, tunnel, None, exit);
    }

    /// Has the kernel reach a visitor on the link, and lead its packets into the device.
    fn admit(&mut self, visitor: Ipv4Addr) -> anyhow::Result<()> {
        let Some(node) = self.agent.visitor(visitor) else {
            return Ok(());
        };
        self.routes
            .pin_neighbour(self.access, visitor.into(), node.0)?;
        self.routes.replace_route(&self.way(visitor))?;
        self.routes
            .add_rule(&rule(Selector::Source(visitor.into())))?;
        self.visitors.insert(visitor);
        Ok(())
    }

    fn dismiss(&mut self, visitor: Ipv4Addr) {
        if !self.visitors.remove(&visitor) {
            return;
        }
        let way = self.way(visitor);
        let done = [
            self.routes
                .remove_rule(&rule(Selector::Source(visitor.into()))),
            self.routes.remove_route(&way),
            self.routes.forget_neighbour(self.access, visitor.into()),
        ];
        // An interface that went down has taken its routes with it.
        for error in done.into_iter().filter_map(Result::err) {
            tracing::debug!(%error, "already gone");
        }
    }

    fn way(&self, visitor: Ipv4Addr) -> Route<'static> {
        Route {
            destination: Prefix::of_host(visitor.into()),
            interface: self.access,
            gateway: None,
            congestion_control: None,
        }
    }
}

const fn rule(selector: Selector) -> Rule {
    Rule {
        version: IpVersion::V4,
        priority: PRIORITY,
        selector,
        table: TABLE,
        without_default: false,
    }
}

/// Whether a packet is a registration request.
fn is_request(packet: &Packet) -> bool {
    let is_datagram = matches!(packet.header().transport, Transport::Udp(_));
    is_datagram && packet.payload().and_then(<[u8]>::first) == Some(&REQUEST)
}

impl Role for Foreign {
    const NAME: &'static str = "foreign-agent";
    const FORWARDS: bool = false;
    const TELLS_FIRST: bool = true;

    fn handle_device(&mut self, now: Instant, packet: Packet) {
        let IpAddr::V4(source) = packet.header().ip.source else {
            return;
        };
        // The kernel has routed it here because its source is a visitor's.
        if let Some(from) = self.agent.visitor(source) {
            let _ = self
                .agent
                .handle_packet(now, Arrival { link: LINK, from }, packet);
        }
    }

    fn handle_network(&mut self, now: Instant, packet: Packet) {
        // Requests are heard on the link, where it is known who has sent them.
        if !is_request(&packet) {
            let _ = self.agent.handle_packet(now, OUTSIDE, packet);
        }
    }

    fn handle_link_packet(&mut self, now: Instant, from: LinkAddress, packet: Packet) {
        let is_datagram = matches!(packet.header().transport, Transport::Udp(_));
        if !is_datagram || is_request(&packet) {
            let _ = self
                .agent
                .handle_packet(now, Arrival { link: LINK, from }, packet);
        }
    }

    fn handle_change(
        &mut self,
        _now: Instant,
        endpoint: &mut Endpoint,
        _is_link_back: bool,
    ) -> anyhow::Result<()> {
        endpoint.settle(Some(self.care_of_address.into()))?;
        self.look_at_interfaces(endpoint)?;
        if let Some(access) = endpoint.access()
            && access != self.access
        {
            self.access = access;
            self.look_at_interfaces(endpoint)?;
            for visitor in self.visitors.clone() {
                self.admit(visitor)?;
            }
        }
        Ok(())
    }

    fn handle_link(&mut self, _now: Instant, is_up: bool) {
        if is_up {
            // Taking an interface down takes the routes through it away.
            for visitor in self.visitors.clone() {
                if let Err(error) = self.admit(visitor) {
                    tracing::warn!(%visitor, "{error:#}");
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.agent.handle_timeout(now);
    }

    fn reload(
        &mut self,
        _now: Instant,
        endpoint: &mut Endpoint,
        config: &Path,
    ) -> Result<Vec<&'static str>, Failure> {
        let next = ForeignAgentSettings::load(config)?;
        fixed(&self.settings.fixed_differences(&next))?;
        let changed = self.settings.free_differences(&next);
        let (mobiles, home_agents) = (next.mobiles()?, next.home_agents()?);
        endpoint.move_metrics(next.metrics.as_ref())?;
        self.agent.set_associations(mobiles, home_agents);
        self.settings = next;
        Ok(changed)
    }

    fn report(&self, _now: Instant) -> Report {
        let mobiles = self.visitors.iter().map(|home_address| Mobile {
            home_address: (*home_address).into(),
            at: self
                .agent
                .visitor(*home_address)
                .map(shown)
                .into_iter()
                .collect(),
        });
        let mut counters = counts(self.agent.counters());
        let (entered, left) = (Some("reverse_tunnelled"), Some("delivered"));
        self.data_path.add_to(&mut counters, entered, left);
        Report {
            address: Some(self.care_of_address.into()),
            data_path: Some(self.data_path.describe()),
            place: None,
            mobiles: mobiles.collect(),
            counters,
        }
    }

    fn end(&mut self, _now: Instant) {
        for visitor in self.visitors.clone() {
            self.dismiss(visitor);
        }
        tracing::info!(counters = ?self.agent.counters(), "foreign agent ends");
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.agent.poll_transmit()
    }

    fn tell(&mut self) -> anyhow::Result<()> {
        while let Some(event) = self.agent.poll_event() {
            match event {
                ForeignEvent::Registered {
                    home_address,
                    is_new,
                } => {
                    self.follow(home_address);
                    if is_new {
                        tracing::info!(%home_address, "visitor registered");
                        self.admit(home_address)?;
                    } else {
                        tracing::debug!(%home_address, "registration renewed");
                    }
                }
                ForeignEvent::Left { home_address } => {
                    tracing::info!(%home_address, "visitor has left");
                    self.follow(home_address);
                    self.dismiss(home_address);
                }
                ForeignEvent::Refused { home_address, code } => {
                    tracing::warn!(%home_address, %code, "registration refused");
                }
            }
        }
        Ok(())
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agent.poll_timeout().map(|(at, _)| at)
    }
}

/// An Ethernet address, for people.
fn shown(LinkAddress(bytes): LinkAddress) -> String {
    bytes.map(|byte| format!("{byte:02x}")).join(":")
}

/// All counts by name: who adds one is told here that it is to be shown.
fn counts(counters: &ForeignCounters) -> BTreeMap<String, u64> {
    let ForeignCounters {
        relayed,
        repeated,
        accepted,
        refused,
        unanswered,
        timed_out,
        malformed,
        delivered,
        reverse_tunnelled,
        dropped_strangers,
        dropped_unfit,
    } = *counters;
    let all = [
        ("relayed", relayed),
        ("repeated", repeated),
        ("accepted", accepted),
        ("refused", refused),
        ("unanswered", unanswered),
        ("timed_out", timed_out),
        ("malformed", malformed),
        ("delivered", delivered),
        ("reverse_tunnelled", reverse_tunnelled),
        ("dropped_strangers", dropped_strangers),
        ("dropped_unfit", dropped_unfit),
    ];
    all.map(|(name, count)| (name.to_owned(), count)).into()
}
