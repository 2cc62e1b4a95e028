//! Policy routing: tables beside the main one, and the rules that choose among them.

use super::exchange::Request;
use super::{InterfaceIndex, NetlinkError, Prefix, RouteSocket, family, route_address};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::route::{
    RouteAttribute, RouteFlags, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};
use netlink_packet_route::rule::{RuleAction, RuleAttribute, RuleHeader, RuleMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use std::io;
use std::net::IpAddr;

/// Which version of IP a rule is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IpVersion {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Which packets a rule is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Selector {
    /// All.
    All,
    /// Those that bear this mark.
    Mark(u32),
    /// Those with this source. Unspecified, it is that of sockets of IPv4 that have no source yet; the
    /// kernel matches those of IPv6 by no source.
    Source(IpAddr),
}

/// A rule of policy routing.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Rule {
    /// For which version of IP.
    pub version: IpVersion,
    /// The smaller goes first.
    pub priority: u32,
    /// For which packets.
    pub selector: Selector,
    /// Where their routes are.
    pub table: u32,
    /// Whether the table's default routes are passed over.
    pub without_default: bool,
}

/// A route in a table beside the main one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TableRoute {
    /// The table.
    pub table: u32,
    /// Where it leads.
    pub destination: Prefix,
    /// Through which interface.
    pub interface: InterfaceIndex,
    /// By way of which router on the interface's link; `None` if the destination is on the link itself.
    pub gateway: Option<IpAddr>,
    /// The source of sockets that have none; `None` leaves it to the kernel.
    pub source: Option<IpAddr>,
}

impl RouteSocket {
    /// Adds a rule. One that is there already stays.
    ///
    /// # Errors
    /// When the kernel lacks policy routing, or without `CAP_NET_ADMIN`.
    pub fn add_rule(&mut self, rule: &Rule) -> Result<(), NetlinkError> {
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        let request = Request::new(flags, format!("add {rule:?}"));
        match self.change(RouteNetlinkMessage::NewRule(rule_message(rule)), request) {
            Err(NetlinkError::Refused { source, .. })
                if source.kind() == io::ErrorKind::AlreadyExists =>
            {
                Ok(())
            }
            done => done,
        }
    }

    /// Removes a rule.
    ///
    /// # Errors
    /// When there is none such, or without `CAP_NET_ADMIN`.
    pub fn remove_rule(&mut self, rule: &Rule) -> Result<(), NetlinkError> {
        let request = Request::new(NLM_F_ACK, format!("remove {rule:?}"));
        self.change(RouteNetlinkMessage::DelRule(rule_message(rule)), request)
    }

    /// Adds a route to a table, in the place of the one to the same destination, if there is one.
    ///
    /// # Errors
    /// When the interface is down or the source is no address of this host's, or without `CAP_NET_ADMIN`.
    pub fn add_table_route(&mut self, route: &TableRoute) -> Result<(), NetlinkError> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(route.destination.address),
            destination_prefix_length: route.destination.length,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = vec![
            RouteAttribute::Table(route.table),
            RouteAttribute::Destination(route_address(route.destination.address)),
            RouteAttribute::Oif(route.interface.0),
        ];
        if let Some(source) = route.source {
            let source = RouteAttribute::PrefSource(route_address(source));
            message.attributes.push(source);
        }
        if let Some(gateway) = route.gateway {
            message.header.scope = RouteScope::Universe;
            // The router's network may be in no table that the kernel would look into.
            message.header.flags |= RouteFlags::Onlink;
            let gateway = RouteAttribute::Gateway(route_address(gateway));
            message.attributes.push(gateway);
        }
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        let request = Request::new(flags, format!("add {route:?}"));
        self.change(RouteNetlinkMessage::NewRoute(message), request)
    }
}

fn rule_message(rule: &Rule) -> RuleMessage {
    let mut message = RuleMessage::default();
    message.header = RuleHeader {
        family: match rule.version {
            IpVersion::V4 => AddressFamily::Inet,
            IpVersion::V6 => AddressFamily::Inet6,
        },
        action: RuleAction::ToTable,
        ..RuleHeader::default()
    };
    message.attributes = vec![
        RuleAttribute::Priority(rule.priority),
        RuleAttribute::Table(rule.table),
    ];
    match rule.selector {
        Selector::All => {}
        Selector::Mark(mark) => message.attributes.push(RuleAttribute::FwMark(mark)),
        Selector::Source(source) => {
            message.header.src_len = match source {
                IpAddr::V4(_) => 32,
                IpAddr::V6(_) => 128,
            };
            message.attributes.push(RuleAttribute::Source(source));
        }
    }
    if rule.without_default {
        message.attributes.push(RuleAttribute::SuppressPrefixLen(0));
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::InterfaceSettings;
    use crate::raw::RawSender;
    use crate::testing::fresh_namespace;
    use crate::tun::Tun;
    use std::net::Ipv4Addr;

    const TABLE: u32 = 434;
    const MARK: u32 = 7;
    const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(198, 51, 100, 9));
    const HERE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
    const LASTING: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 5);

    /// Sockets without a source take the table's, and those with a mark the main table's.
    #[test]
    fn a_rule_chooses_the_source() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let look = || {
            let mut routes = RouteSocket::open().expect("netlink");
            let (_real, _other) = (
                Tun::create("real").expect("a device"),
                Tun::create("other").expect("a device"),
            );
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            let mut prepare = |name: &str, address: Ipv4Addr, length| {
                let device = routes.interface(name).expect("it was made");
                routes.configure(device, &up).expect("it comes up");
                let address = address.into();
                routes
                    .add_address(device, Prefix { address, length })
                    .expect("it is free");
                device
            };
            let (real, other) = (prepare("real", HERE, 24), prepare("other", LASTING, 32));
            let default = Prefix {
                address: Ipv4Addr::UNSPECIFIED.into(),
                length: 0,
            };
            routes
                .add_route(&crate::netlink::Route {
                    destination: default,
                    interface: real,
                    gateway: None,
                    congestion_control: None,
                })
                .expect("a default route");
            routes
                .add_table_route(&TableRoute {
                    table: TABLE,
                    destination: default,
                    interface: other,
                    gateway: None,
                    source: Some(LASTING.into()),
                })
                .expect("a route");
            let marked = Rule {
                version: IpVersion::V4,
                priority: 100,
                selector: Selector::Mark(MARK),
                table: 254,
                without_default: false,
            };
            let unbound = Rule {
                version: IpVersion::V4,
                priority: 101,
                selector: Selector::Source(Ipv4Addr::UNSPECIFIED.into()),
                table: TABLE,
                without_default: false,
            };
            let plain = RawSender::open(0, None).expect("raw sockets");
            let own = |sender: &RawSender| sender.own_address(FAR).expect("no error");
            assert_eq!(own(&plain), Some(HERE.into()), "without rules");
            for rule in [&marked, &unbound, &unbound] {
                routes.add_rule(rule).expect("a rule");
            }
            assert_eq!(own(&plain), Some(LASTING.into()));
            let sender = RawSender::open(MARK, None).expect("raw sockets");
            assert_eq!(own(&sender), Some(HERE.into()));
            routes.remove_rule(&unbound).expect("it was there");
            assert_eq!(own(&plain), Some(HERE.into()), "without the rule");
            assert!(routes.remove_rule(&unbound).is_err(), "it is gone");
        };
        namespace.run(look).expect("a namespace");
    }
}
