//! The role `mobile-node` of Mobile IPv6: a TUN device bears the home address, and rules lead applications
//! there.
//!
//! The care-of address is the one from which the kernel would speak to the home agent. It is looked up
//! again whenever addresses, routes or interfaces change.

use super::home_agent::lifetime;
use super::settings::MobileNodeSettings;
use crate::failure::Failure;
use crate::mobility::aftermath::Aftermath;
use crate::mobility::endpoint::{Endpoint, Role};
use crate::mobility::mobile_node::{MARK, PRIORITY, TABLE};
use crate::mobility::operating::fixed;
use crate::mobility::status::{Place, Report};
use crate::mobility::{ntp_clock, random};
use outlast_base::time::Instant;
use outlast_linux::clock;
use outlast_linux::monitor::Way;
use outlast_linux::netlink::{
    InterfaceIndex, IpVersion, Prefix, RouteSocket, Rule, Selector, TableRoute,
};
use outlast_mobility::v6::{Attachment, MobileNode, MobileNodeConfig, NodeCounters, NodeEvent};
use outlast_mobility::{Transmit, Verdict};
use outlast_wire::Packet;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::path::Path;

/// A mobile node and its routes.
pub(in crate::mobility) struct Mobile {
    settings: MobileNodeSettings,
    node: MobileNode,
    care_of_address: Option<Ipv6Addr>,
    /// Messages that were ignored when that was last told.
    ignored: u64,
    routing: Routing,
    aftermath: Aftermath,
}

impl Mobile {
    pub(in crate::mobility) fn start(
        settings: MobileNodeSettings,
        control: Option<&Path>,
    ) -> Result<(Endpoint, Self), Failure> {
        let now = clock::now();
        let node = machine(now, &settings)?;
        let endpoint = Endpoint::open_v6(settings.operating(control), MARK)?;
        let routing = Routing::lead(&settings).map_err(Failure::Run)?;
        let (home_address, home_agent) = (settings.home_address, settings.home_agent);
        tracing::info!(%home_address, %home_agent, device = settings.device, "mobile node begins");
        let aftermath = Aftermath::new(settings.trigger, settings.gateway.clone());
        let mobile = Self {
            settings,
            node,
            care_of_address: None,
            ignored: 0,
            routing,
            aftermath,
        };
        Ok((endpoint, mobile))
    }

    /// Looks which care-of address this host has now, and registers it if it is another one.
    pub(in crate::mobility) fn relocate(
        &mut self,
        now: Instant,
        endpoint: &mut Endpoint,
    ) -> anyhow::Result<()> {
        let towards = endpoint.address_towards(self.settings.home_agent.into())?;
        let home_address = IpAddr::V6(self.settings.home_address);
        let towards = towards.filter(|own| *own != home_address);
        let care_of_address = match endpoint.settle(towards)? {
            Some(IpAddr::V6(own)) => Some(own),
            _ => None,
        };
        if care_of_address != self.care_of_address {
            match care_of_address {
                Some(address) => tracing::info!(care_of_address = %address, "elsewhere"),
                None => tracing::info!("there is no way to the home agent"),
            }
            self.care_of_address = care_of_address;
            self.routing.spare(care_of_address)?;
            self.attach(now);
        }
        Ok(())
    }

    fn attach(&mut self, now: Instant) {
        let at = self
            .care_of_address
            .map_or(Attachment::Nowhere, Attachment::Foreign);
        self.node.handle_attachment(now, at);
    }

    /// Registers anew at the same address, whose link was away.
    fn come_back(&mut self, now: Instant) {
        self.node.handle_attachment(now, Attachment::Nowhere);
        self.attach(now);
    }

    /// Says that an answer was not believed, unless all is well.
    fn tell_ignored(&mut self) {
        let ignored = self.node.counters().ignored;
        if ignored > self.ignored && !self.node.is_registered() {
            tracing::warn!(
                "an answer to nothing, or not authentic: has the home agent the same key?"
            );
        }
        self.ignored = ignored;
    }
}

impl Role for Mobile {
    const NAME: &'static str = "mobile-node";
    const FORWARDS: bool = false;

    fn handle_device(&mut self, now: Instant, packet: Packet) {
        // The home agent drops what is not from the home address.
        if packet.header().ip.source == IpAddr::V6(self.settings.home_address) {
            let _ = self.node.handle_outgoing(now, packet);
        }
    }

    fn handle_network(&mut self, now: Instant, packet: Packet) {
        // The kernel answers what is not for the node.
        let _ = self.node.handle_packet(now, &packet);
    }

    fn handle_extension(&mut self, now: Instant, packet: Packet) -> Verdict {
        let verdict = self.node.handle_packet(now, &packet);
        self.tell_ignored();
        verdict
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
            self.come_back(now);
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
        self.come_back(now);
        true
    }

    fn keeps_privileges(&self) -> bool {
        self.aftermath.has_trigger()
    }

    fn report(&self, now: Instant) -> Report {
        Report {
            address: Some(self.settings.home_address.into()),
            data_path: None,
            place: Some(Place {
                at: shown(&self.node.attachment()),
                is_registered: self.node.is_registered(),
                in_udp: false,
                last_move: self.aftermath.last_move(now),
            }),
            mobiles: Vec::new(),
            counters: counts(self.node.counters()),
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
            tell(&event);
            match event {
                NodeEvent::Detached => {
                    self.aftermath.handle_detachment();
                }
                NodeEvent::Registered {
                    has_moved: true,
                    took,
                    ..
                } => {
                    let interfaces = std::iter::once(self.routing.device);
                    self.aftermath.handle_move(took, interfaces)?;
                }
                _ => {}
            }
        }
        Ok(())
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
        lifetime: lifetime(settings.lifetime_s),
        route_optimization: settings.route_optimization,
        clock: ntp_clock(now),
        secret: random()?,
    };
    Ok(MobileNode::new(now, config))
}

fn tell(event: &NodeEvent) {
    match event {
        NodeEvent::Registered {
            at,
            has_moved,
            took,
        } => {
            let took_ms = took.as_secs_f64() * 1e3;
            let at = shown(at);
            match has_moved {
                true => tracing::info!(at, took_ms, "registered"),
                false => tracing::debug!(took_ms, "registration renewed"),
            }
        }
        NodeEvent::Detached => tracing::info!("detached"),
        NodeEvent::Refused { status, .. } => tracing::warn!(%status, "registration refused"),
        NodeEvent::Expired => tracing::warn!("registration has expired"),
        NodeEvent::Optimized { correspondent, .. } => {
            tracing::info!(%correspondent, "packets go past the home agent");
        }
        NodeEvent::NotOptimized { correspondent } => {
            tracing::debug!(%correspondent, "packets go through the home agent");
        }
    }
}

/// Where a mobile node is, for people.
fn shown(at: &Attachment) -> String {
    match at {
        Attachment::Nowhere => "nowhere".into(),
        Attachment::Home => "home".into(),
        Attachment::Foreign(care_of_address) => care_of_address.to_string(),
    }
}

/// The rules and routes by which applications use the home address; gone when dropped.
struct Routing {
    routes: RouteSocket,
    device: InterfaceIndex,
    rules: Vec<Rule>,
    /// What is from the care-of address goes by the main table.
    spared: Option<Rule>,
}

const fn rule(place: u32, selector: Selector, table: u32) -> Rule {
    Rule {
        version: IpVersion::V6,
        priority: PRIORITY + place,
        selector,
        table,
        without_default: false,
    }
}

impl Routing {
    /// In this order: what is in the tunnel goes by the main table; what is from the home address into the
    /// tunnel; everything to where the main table knows a network; what is from the care-of address by
    /// the main table, too; the rest, which has no source yet, into the tunnel.
    fn lead(settings: &MobileNodeSettings) -> anyhow::Result<Self> {
        let home_address = settings.home_address;
        let mut routes = RouteSocket::open()?;
        let device = routes.interface(&settings.device)?;
        routes.add_address(device, Prefix::of_host(home_address.into()))?;
        for destination in &settings.destinations {
            routes.add_table_route(&TableRoute {
                table: TABLE,
                destination: destination.0,
                interface: device,
                gateway: None,
                source: Some(home_address.into()),
            })?;
        }
        let mut routing = Self {
            routes,
            device,
            rules: Vec::new(),
            spared: None,
        };
        let rules = [
            rule(0, Selector::Mark(MARK), Way::MAIN),
            rule(1, Selector::Source(home_address.into()), TABLE),
            Rule {
                without_default: true,
                ..rule(2, Selector::All, Way::MAIN)
            },
            rule(4, Selector::All, TABLE),
        ];
        for rule in rules {
            routing.routes.add_rule(&rule)?;
            routing.rules.push(rule);
        }
        Ok(routing)
    }

    /// Leaves to the main table what programs send from the care-of address.
    fn spare(&mut self, care_of_address: Option<Ipv6Addr>) -> anyhow::Result<()> {
        if let Some(former) = self.spared.take() {
            self.routes.remove_rule(&former)?;
        }
        if let Some(address) = care_of_address {
            let spared = rule(3, Selector::Source(address.into()), Way::MAIN);
            self.routes.add_rule(&spared)?;
            self.spared = Some(spared);
        }
        Ok(())
    }
}

impl Drop for Routing {
    fn drop(&mut self) {
        for rule in self.rules.iter().chain(&self.spared) {
            if let Err(error) = self.routes.remove_rule(rule) {
                tracing::warn!(%error, "a rule stays");
            }
        }
    }
}

/// All counts by name: who adds one is told here that it is to be shown.
fn counts(counters: &NodeCounters) -> BTreeMap<String, u64> {
    let NodeCounters {
        requests,
        repeated,
        put_off,
        accepted,
        refused,
        ignored,
        resynchronised,
        correspondent_messages,
        forgotten_correspondents,
        optimized_out,
        optimized_in,
        dropped_detached,
        dropped_unfit,
    } = *counters;
    let all = [
        ("requests", requests),
        ("repeated", repeated),
        ("put_off", put_off),
        ("accepted", accepted),
        ("refused", refused),
        ("ignored", ignored),
        ("resynchronised", resynchronised),
        ("correspondent_messages", correspondent_messages),
        ("forgotten_correspondents", forgotten_correspondents),
        ("optimized_out", optimized_out),
        ("optimized_in", optimized_in),
        ("dropped_detached", dropped_detached),
        ("dropped_unfit", dropped_unfit),
    ];
    all.map(|(name, count)| (name.to_owned(), count)).into()
}
