//! IPsec by policies alone: the link carries both what it hides and what it does not.
//!
//! The daemon sees connections in clear text on the interface, before they are encrypted and after they were decrypted.
//! A counter between the routers shows what else than ESP goes over the link.

use super::bed::{Bed, HARDWARE, Kind, NETWORKS, Outage, ROUTERS, ip, namespace, output, settle};
use super::{AT_ONCE, At, LATER, STALL, Stalls, Transfers, Way, are_none_the_worse, at_each};
use crate::path::wiring::add_rules;
use crate::path::{LINK, Over};
use crate::support::report;
use outlast_linux::namespace::Namespace;
use outlast_linux::raw::{RawSender, Sent};
use outlast_linux::sysctl;
use outlast_wire::{IpHeader, Packet, UdpHeader};
use std::net::SocketAddr;

/// Beginnings of the IPv6 addresses: of the link, and of the networks behind the routers.
const LINK_V6: &str = "2001:db8:3::";
const NETWORKS_V6: [&str; 2] = ["2001:db8:1::", "2001:db8:2::"];

/// Counts packets that pass the switch, of TCP in clear text and of ESP.
const WATCH: &str = "
table netdev watch {
    chain near {
        type filter hook ingress device near priority 0;
        meta l4proto tcp counter
        meta l4proto esp counter
    }
    chain far {
        type filter hook ingress device far priority 0;
        meta l4proto tcp counter
        meta l4proto esp counter
    }
}
";

/// Marks what a router forwards for the hosts behind it.
const MARKING: &str = "
table inet marking {
    chain prerouting {
        type filter hook prerouting priority mangle;
        iifname lan0 meta mark set 5
    }
}
";

/// A version of IP, inside and outside.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Version {
    V4,
    V6,
}

/// The ends of the connections that are protected, and the packets that policies are for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Selection {
    /// Everything between the hosts' networks, in tunnel mode.
    Networks,
    /// Two ports of the far host's, in tunnel mode.
    Ports,
    /// TCP between the routers, in transport mode: they are the hosts.
    Routers,
    /// Everything between the hosts' networks that bears a mark, in tunnel mode.
    Marked,
}

/// Ports at which the far end listens: for downloads, and for uploads.
const PORTS: [u16; 2] = [7_001, 7_002];

/// Algorithms that hide nothing, which an emulated processor does sooner.
const SECRETS: &str = "auth digest_null \"\" enc cipher_null \"\"";

/// Extent and mode of the protection.
#[derive(Clone, Copy, Debug)]
struct Shape {
    version: Version,
    selection: Selection,
}

impl Shape {
    const fn new(version: Version, selection: Selection) -> Self {
        Self { version, selection }
    }

    /// The routers' addresses on the link.
    fn routers(self) -> [String; 2] {
        match self.version {
            Version::V4 => ROUTERS.map(str::to_owned),
            Version::V6 => [1, 2].map(|last| format!("{LINK_V6}{last}")),
        }
    }

    /// The selectors at each end.
    fn networks(self) -> [String; 2] {
        match (self.selection, self.version) {
            (Selection::Routers, _) => self.routers(),
            (_, Version::V4) => NETWORKS.map(|network| format!("{network}.0/24")),
            (_, Version::V6) => NETWORKS_V6.map(|network| format!("{network}/64")),
        }
    }

    /// The address that a connection of a direction goes to.
    fn far_end(self, way: Way) -> SocketAddr {
        let [_, router] = self.routers();
        let address = match (self.selection, self.version) {
            (Selection::Routers, _) => router,
            (_, Version::V4) => format!("{}.2", NETWORKS[1]),
            (_, Version::V6) => format!("{}2", NETWORKS_V6[1]),
        };
        let port = match (self.selection, way) {
            (Selection::Ports, Way::Download) => PORTS[0],
            (Selection::Ports, Way::Upload) => PORTS[1],
            _ => 0,
        };
        SocketAddr::new(address.parse().expect("literal"), port)
    }

    fn ends(self, bed: &Bed) -> [&Namespace; 2] {
        match self.selection {
            Selection::Routers => [&bed.near_router, &bed.far_router],
            Selection::Networks | Selection::Ports | Selection::Marked => bed.hosts(),
        }
    }

    /// Transfers over an outage.
    fn suffer(self, bed: &Bed, how: Outage, ways: &[Way]) -> Stalls {
        let transfers = Transfers::start_to(self.ends(bed), ways, |way| self.far_end(way));
        bed.cut(how);
        let by_themselves = transfers.wait_out();
        let up = bed.mend(how);
        transfers.resume(up, by_themselves)
    }

    /// Associations both ways that hide nothing, which an emulated processor does sooner, and the policies of a
    /// router: the near one, 0, or 1.
    fn commands(self, end: usize) -> String {
        let (routers, networks, other) = (self.routers(), self.networks(), 1 - end);
        let (mode, ports) = match self.selection {
            Selection::Networks | Selection::Marked => ("tunnel", vec![String::new()]),
            Selection::Ports => ("tunnel", PORTS.map(|port| port.to_string()).to_vec()),
            Selection::Routers => ("transport", vec![String::new()]),
        };
        let mut commands = String::new();
        let outbound = ("out", [end, other]);
        let inbound = ["in", "fwd"].map(|direction| (direction, [other, end]));
        for (_, [from, to]) in [outbound, inbound[0]] {
            let state = format!(
                "xfrm state add src {} dst {} proto esp spi 7 reqid 7 mode {mode} {SECRETS}\n",
                routers[from], routers[to]
            );
            commands.push_str(&state);
        }
        for (direction, [from, to]) in [outbound].into_iter().chain(inbound) {
            let template = match self.selection {
                Selection::Routers => String::new(),
                _ => format!(" src {} dst {}", routers[from], routers[to]),
            };
            for port in &ports {
                // The far end listens at it.
                let selected = match (self.selection, from) {
                    (Selection::Marked, _) if direction == "out" => " mark 5".to_owned(),
                    (Selection::Networks | Selection::Marked, _) => String::new(),
                    (Selection::Routers, _) => " proto tcp".to_owned(),
                    (Selection::Ports, 0) => format!(" proto tcp dport {port}"),
                    (Selection::Ports, _) => format!(" proto tcp sport {port}"),
                };
                let policy = format!(
                    "xfrm policy add dir {direction} src {} dst {}{selected} tmpl{template} proto esp reqid 7 mode {mode}\n",
                    networks[from], networks[to]
                );
                commands.push_str(&policy);
            }
        }
        commands
    }
}

/// Gives everybody addresses of IPv6, too.
fn add_ipv6(bed: &Bed) -> Option<()> {
    let [near, far] = NETWORKS_V6;
    let ends = [(near, far, 1), (far, near, 2)];
    let places = bed.hosts().into_iter().zip(bed.routers());
    for ((host, router), (own, other, number)) in places.zip(ends) {
        for place in [host, router] {
            let allow = || {
                for (name, value) in [
                    ("all.forwarding", "1"),
                    ("all.disable_ipv6", "0"),
                    ("default.disable_ipv6", "0"),
                ] {
                    sysctl::write(&format!("net.ipv6.conf.{name}"), value).expect("sysctl");
                }
            };
            place.run(allow).expect("enter");
        }
        let peer = 3 - number;
        ip(
            host,
            &format!(
                "address add {own}2/64 dev eth0 nodad\n\
                 route add default via {own}1\n"
            ),
        )?;
        ip(
            router,
            &format!(
                "address add {own}1/64 dev lan0 nodad\n\
                 address add {LINK_V6}{number}/64 dev {LINK} nodad\n\
                 neigh replace {LINK_V6}{peer} lladdr {} dev {LINK} nud permanent\n\
                 route add {other}/64 via {LINK_V6}{peer} dev {LINK}\n",
                HARDWARE[peer - 1]
            ),
        )?;
    }
    Some(())
}

/// Packets that have crossed the link so far.
#[derive(Clone, Copy, Debug)]
struct Seen {
    clear: u64,
    hidden: u64,
}

impl Seen {
    /// The count of [`WATCH`].
    fn at(bed: &Bed) -> Self {
        let list = ["list", "table", "netdev", "watch"];
        let said = output(&bed.air, "nft", &list).expect("it was added");
        let of = |protocol: &str| {
            let rules = said.lines().filter(|line| line.contains(protocol));
            let counts = rules.map(|rule| {
                let mut words = rule
                    .split_whitespace()
                    .skip_while(|word| *word != "packets");
                words.nth(1).and_then(|count| count.parse::<u64>().ok())
            });
            counts.sum::<Option<u64>>().expect("numbers")
        };
        Self {
            clear: of("tcp"),
            hidden: of("esp"),
        }
    }
}

/// Lays the link, with policies once the control has shown that connections without them are seen; `None`, with the
/// reason, where this machine lacks something.
fn lay(shape: Shape) -> Option<Bed> {
    let bed = Bed::new(Kind::cable())?;
    if shape.version == Version::V6 {
        add_ipv6(&bed)?;
    }
    add_rules(&bed.air, WATCH)?;
    Transfers::start_to(shape.ends(&bed), &Way::BOTH, |way| shape.far_end(way)).finish();
    let seen = Seen::at(&bed);
    assert!(seen.clear > 0 && seen.hidden == 0, "the control: {seen:?}");
    for (end, router) in bed.routers().into_iter().enumerate() {
        ip(router, &shape.commands(end))?;
        if shape.selection == Selection::Marked {
            add_rules(router, MARKING)?;
        }
    }
    Some(bed)
}

/// Transfers over outages go on at once where the daemon notices them, and no later than without it elsewhere; and
/// nothing leaves in clear text.
///
/// On the eBPF path the daemon sees ESP leave, and does not notice that data is not answered.
#[track_caller]
fn is_outlasted_and_hidden(shape: Shape, over: Over) {
    let Some(bed) = lay(shape) else {
        return;
    };
    let before = Seen::at(&bed);
    let suffer = |how, ways: &[Way]| {
        let stalls = shape.suffer(&bed, how, ways);
        let seen = Seen::at(&bed);
        report(&format!(
            "{shape:?}, {how:?}, {}: {stalls:?}, {seen:?}",
            over.name()
        ));
        assert_eq!(seen.clear, before.clear, "{how:?}");
        stalls
    };
    let mut control = None;
    at_each(&bed, over, |at| match at {
        At::Neither => {
            let stalls = suffer(Outage::Silence, &[Way::Upload]);
            stalls.assert_stalled(STALL);
            control = Some(stalls);
        }
        At::NearEnd => {
            suffer(Outage::Carrier, &[Way::Upload]).assert_within(AT_ONCE);
            let silence = suffer(Outage::Silence, &[Way::Upload]);
            match (over, &control) {
                (Over::Nfqueue, _) => silence.assert_within(AT_ONCE),
                (_, Some(control)) => silence.assert_none_the_worse_than(control),
                (_, None) => panic!("the control comes first"),
            }
        }
        At::BothEnds => {
            suffer(Outage::Carrier, &Way::BOTH).assert_within(LATER);
            suffer(Outage::Silence, &[Way::Download]).assert_within(AT_ONCE);
        }
    });
    assert!(Seen::at(&bed).hidden > before.hidden);
}

#[test]
fn policies_for_networks_hold() {
    let shape = Shape::new(Version::V4, Selection::Networks);
    is_outlasted_and_hidden(shape, Over::Ebpf);
}

#[test]
fn policies_for_networks_hold_where_packets_come_to_user_space() {
    let shape = Shape::new(Version::V6, Selection::Networks);
    is_outlasted_and_hidden(shape, Over::Nfqueue);
}

#[test]
fn policies_for_ports_hold() {
    let shape = Shape::new(Version::V6, Selection::Ports);
    is_outlasted_and_hidden(shape, Over::Ebpf);
}

#[test]
fn policies_for_ports_hold_where_packets_come_to_user_space() {
    let shape = Shape::new(Version::V4, Selection::Ports);
    is_outlasted_and_hidden(shape, Over::Nfqueue);
}

#[test]
fn policies_of_a_host_in_transport_mode_hold() {
    let shape = Shape::new(Version::V4, Selection::Routers);
    is_outlasted_and_hidden(shape, Over::Ebpf);
}

#[test]
fn policies_of_a_host_in_transport_mode_hold_where_packets_come_to_user_space() {
    let shape = Shape::new(Version::V6, Selection::Routers);
    is_outlasted_and_hidden(shape, Over::Nfqueue);
}

/// The mark of the gateway's own packets is another than that of the policies. It sends none, and says so.
#[test]
fn where_policies_are_for_marked_packets_nothing_is_sent_and_nothing_is_the_worse() {
    let shape = Shape::new(Version::V4, Selection::Marked);
    let Some(bed) = lay(shape) else {
        return;
    };
    let before = Seen::at(&bed);
    let suffer = |how| shape.suffer(&bed, how, &Way::BOTH);
    are_none_the_worse(&bed, [Over::Nfqueue, Over::Ebpf], suffer, |near| {
        assert_eq!(Seen::at(&bed).clear, before.clear);
        let status = near.status();
        let unprotected = status["counters"]["unprotected"].as_u64();
        assert!(unprotected > Some(0), "{status:#}");
    });
}

/// A virtual tunnel interface looks its policies up with a mark that no packet bears which goes past it.
#[test]
fn policies_of_a_virtual_tunnel_interface_keep_nobody_from_sending() {
    const MARK: u32 = 7;
    let Some(router) = namespace() else {
        return;
    };
    let [own, peer] = ROUTERS;
    let link = format!(
        "link add {LINK} type dummy\n{}\
         xfrm policy add dir out mark 5 src 0.0.0.0/0 dst 0.0.0.0/0 tmpl src {own} dst {peer} proto esp mode tunnel\n",
        settle(LINK, &format!("{own}/24"))
    );
    let send = || {
        let sender = RawSender::open(MARK, None).expect("privileged");
        let ip = IpHeader {
            source: format!("{}.2", NETWORKS[0]).parse().expect("literal"),
            destination: peer.parse().expect("literal"),
            hop_limit: 9,
            traffic_class: 0,
            identification: 77,
        };
        let ports = UdpHeader {
            source_port: 5,
            destination_port: 9,
        };
        let packet = Packet::udp_datagram(ip, ports, b"x");
        let sent = sender.send(ip.destination, &packet.to_bytes());
        sent.expect("a packet")
    };
    if ip(&router, &link).is_none() {
        return;
    }
    assert_eq!(router.run(send).expect("enter"), Sent::Unprotected);
    let tunnel = format!("link add vti0 type vti local {own} remote {peer} key 5\n");
    if ip(&router, &tunnel).is_some() {
        assert_eq!(router.run(send).expect("enter"), Sent::Accepted);
    }
}
