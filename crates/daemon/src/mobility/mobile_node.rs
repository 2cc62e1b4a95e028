//! The role `mobile-node`: a TUN device bears the home address, and rules lead applications there.
//!
//! The care-of address is the one from which the kernel would speak to the home agent. It is looked
//! up again whenever addresses, routes or interfaces change. Where an address translator gives the
//! same address in another network, the return of the link is the only sign of the move.

use super::endpoint::{Endpoint, Role};
use super::settings::MobileNodeSettings;
use super::{ntp_clock, random};
use crate::failure::Failure;
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::monitor::Way;
use outlast_linux::netlink::{Prefix, RouteSocket, Rule, Selector, TableRoute};
use outlast_mobility::{
    Arrival, CoLocation, Detection, LinkAddress, LinkId, MobileNode, MobileNodeConfig, NodeEvent,
    Transmit,
};
use outlast_wire::Packet;
use outlast_wire::mobile_ip::Lifetime;
use std::net::Ipv4Addr;
use std::path::Path;

/// The table with the routes into the tunnel, and the mark of what is in the tunnel already.
const TABLE: u32 = 434;
const MARK: u32 = 0x6d6f_6269;
/// The first rule's priority; the main table's own is 32766.
const PRIORITY: u32 = 4340;

const LINK: LinkId = LinkId(0);
const ARRIVAL: Arrival = Arrival {
    link: LINK,
    from: LinkAddress([0; 6]),
};

/// A mobile node and its routes.
pub(super) struct Mobile {
    settings: MobileNodeSettings,
    node: MobileNode,
    care_of_address: Option<Ipv4Addr>,
    /// Replies that were ignored when the last registration was complete.
    ignored: u64,
    _routing: Routing,
}

impl Mobile {
    pub(super) fn start(settings: MobileNodeSettings) -> Result<(Endpoint, Self), Failure> {
        let now = clock::now();
        let node = machine(now, &settings)?;
        let endpoint = Endpoint::open(&settings.device, settings.mtu, MARK)?;
        let routing = Routing::lead(&settings).map_err(Failure::Run)?;
        let (home_address, home_agent) = (settings.home_address, settings.home_agent);
        tracing::info!(%home_address, %home_agent, device = settings.device, "mobile node begins");
        let mobile = Self {
            settings,
            node,
            care_of_address: None,
            ignored: 0,
            _routing: routing,
        };
        Ok((endpoint, mobile))
    }

    /// Looks which care-of address this host has now, and registers it if it is another one.
    pub(super) fn relocate(&mut self, now: Instant, endpoint: &mut Endpoint) -> anyhow::Result<()> {
        let towards = endpoint.address_towards(self.settings.home_agent)?;
        let care_of_address = towards.filter(|own| *own != self.settings.home_address);
        let care_of_address = endpoint.settle(care_of_address)?;
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
    const FORWARDS: bool = false;

    fn handle_device(&mut self, now: Instant, packet: Packet) {
        // The home agent drops what is not from the home address.
        if packet.header().ip.source == self.settings.home_address {
            let _ = self.node.handle_outgoing(now, packet);
        }
    }

    fn handle_network(&mut self, now: Instant, packet: Packet) {
        // The kernel answers what is not for the node.
        let _ = self.node.handle_packet(now, ARRIVAL, &packet);
        let ignored = self.node.counters().ignored;
        if ignored > self.ignored && !self.node.is_registered() {
            tracing::warn!(
                "a reply to no request, or not authentic: has the home agent the same key?"
            );
        }
        self.ignored = ignored;
    }

    fn handle_change(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        is_link_back: bool,
    ) -> anyhow::Result<()> {
        let before = self.care_of_address;
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
    }

    fn reload(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
        config: &Path,
    ) -> anyhow::Result<()> {
        let read = MobileNodeSettings::load(config);
        let read = read.and_then(|settings| Ok((machine(now, &settings)?, settings)));
        match read {
            Ok((_, settings)) if !settings.has_same_device(&self.settings) => tracing::error!(
                "nothing has changed: another home_address, device, mtu or destinations needs a restart"
            ),
            Ok((node, settings)) => {
                self.settings = settings;
                self.node = node;
                self.care_of_address = None;
                self.relocate(now, endpoint)?;
                tracing::info!("the configuration was read again");
            }
            Err(failure) => tracing::error!("nothing has changed: {failure}"),
        }
        Ok(())
    }

    fn end(&mut self, now: Instant) {
        self.node.deregister(now);
        tracing::info!(counters = ?self.node.counters(), "mobile node ends");
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.node.poll_transmit()
    }

    fn tell(&mut self) {
        while let Some(event) = self.node.poll_event() {
            tell(&event, self.node.has_udp_tunnel());
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.node.poll_timeout().map(|(at, _)| at)
    }
}

fn machine(now: Instant, settings: &MobileNodeSettings) -> Result<MobileNode, Failure> {
    let config = MobileNodeConfig {
        home_address: settings.home_address,
        home_agent: settings.home_agent,
        home: settings.association()?,
        foreign: None,
        detection: Detection::Link,
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
            has_moved, took, ..
        } => {
            let took_ms = took.as_secs_f64() * 1e3;
            match has_moved {
                true => tracing::info!(took_ms, in_udp, "registered"),
                false => tracing::debug!(took_ms, "registration renewed"),
            }
        }
        NodeEvent::Detached => tracing::info!("detached"),
        NodeEvent::Refused { code, .. } => tracing::warn!(%code, "registration refused"),
        NodeEvent::Expired => tracing::warn!("registration has expired"),
    }
}

/// The rules and routes by which applications use the home address; gone when dropped.
struct Routing {
    rules: Vec<Rule>,
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
        for network in &settings.destinations {
            routes.add_table_route(&TableRoute {
                table: TABLE,
                destination: network.0,
                interface: device,
                source: home_address,
            })?;
        }
        let rule = |place, selector, table| Rule {
            priority: PRIORITY + place,
            selector,
            table,
            without_default: false,
        };
        let mut routing = Self { rules: Vec::new() };
        let rules = [
            rule(0, Selector::Mark(MARK), Way::MAIN),
            rule(1, Selector::Source(home_address), TABLE),
            Rule {
                without_default: true,
                ..rule(2, Selector::All, Way::MAIN)
            },
            rule(3, Selector::Source(Ipv4Addr::UNSPECIFIED), TABLE),
        ];
        for rule in rules {
            routes.add_rule(&rule)?;
            routing.rules.push(rule);
        }
        Ok(routing)
    }
}

impl Drop for Routing {
    fn drop(&mut self) {
        let Ok(mut routes) = RouteSocket::open() else {
            return;
        };
        for rule in &self.rules {
            if let Err(error) = routes.remove_rule(rule) {
                tracing::warn!(%error, "a rule stays");
            }
        }
    }
}
