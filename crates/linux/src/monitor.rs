//! What the kernel tells of interfaces, addresses, routes and neighbours, as it changes.

use crate::netlink::{InterfaceIndex, NetlinkError, Prefix, RouteSocket};
use crate::socket::{Buffer, set_buffer};
use netlink_packet_core::{NLM_F_REPLACE, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoPortKind, LinkAttribute, LinkFlags, LinkInfo, LinkLayerType, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteMessage, RouteNextHop, RouteType,
};
use netlink_packet_route::{AddressFamily, route::RouteHeader};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use rustix::net::RecvFlags;
use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Multicast groups of `linux/rtnetlink.h`: links, neighbours, addresses and routes of IPv4 and
/// IPv6.
const GROUPS: [u32; 6] = [1, 3, 5, 7, 9, 11];

/// The table of the host's own addresses (`RT_TABLE_LOCAL`).
const TABLE_LOCAL: u8 = 255;

/// Memory for changes that nobody has taken yet, in bytes: a snapshot, for which there is none, costs far
/// more on a router that knows many routes.
const RECEIVE_BUFFER: usize = 8 << 20;
/// The longest datagram of the kernel.
const LONGEST: usize = 64 << 10;

/// Hears of every change in one network namespace: that of the thread that opened it.
#[derive(Debug)]
pub struct RouteMonitor {
    socket: Socket,
    buffer: Box<[u8]>,
    heard: VecDeque<Change>,
}

/// Something is so now.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Change {
    /// An interface is there.
    Interface {
        /// Its number.
        index: InterfaceIndex,
        /// Its name.
        name: String,
        /// Whether it is switched on.
        is_up: bool,
        /// Whether it is switched on, has carrier, and is ready to carry packets (RFC 2863).
        is_running: bool,
        /// How often it has lost its carrier so far, `None` where the kernel does not say. A loss that is
        /// over before the kernel tells of it shows here alone.
        carrier_losses: Option<u32>,
        /// Longest IP packet in bytes.
        mtu: u32,
        /// Its Ethernet address; `None` for one that is no Ethernet.
        hardware: Option<[u8; 6]>,
        /// The bridge, bond or switch that takes every packet that it receives, if there is one.
        port_of: Option<InterfaceIndex>,
    },
    /// An interface is gone.
    InterfaceGone {
        /// Its number.
        index: InterfaceIndex,
    },
    /// An interface has, or has no longer, an address that is valid beyond the link.
    Address {
        /// Whose.
        interface: InterfaceIndex,
        /// Which one, with the length of its network's prefix: of IPv4 it may have the same with
        /// another length besides.
        address: Prefix,
        /// Whether it has it.
        is_present: bool,
    },
    /// The host takes, or takes no longer, packets for an address: there is a local route to it. Linux makes
    /// that of IPv6 later than the address, and lets programs use the address meanwhile.
    Local {
        /// Which address.
        address: IpAddr,
        /// Whether the host takes its packets.
        is_present: bool,
    },
    /// A route of any table but the local one leads, or leads no longer, through an interface. One
    /// with several next hops is as many of them. The kernel does not tell which routes of IPv4 it
    /// removes when an interface is switched off.
    Route {
        /// Through which.
        interface: InterfaceIndex,
        /// Where.
        way: Way,
        /// Whether it does.
        is_present: bool,
        /// Whether it takes the place of those of the same destination, table and metric, through
        /// whichever interface.
        replaces: bool,
    },
    /// What is known of a neighbour.
    Neighbour {
        /// Behind which interface.
        interface: InterfaceIndex,
        /// Who.
        address: IpAddr,
        /// Whether it is there.
        standing: Standing,
        /// The Ethernet address at which the kernel reaches it; `None` while it knows none.
        hardware: Option<[u8; 6]>,
    },
    /// The kernel had more to tell than there was room: take a [`snapshot`]. What follows is newer
    /// than this.
    Missed,
}

/// Where a route leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Way {
    /// To these addresses.
    pub destination: Prefix,
    /// By way of this router; `None` if they are on the link itself.
    pub gateway: Option<IpAddr>,
    /// In this table; the main one is [`Self::MAIN`].
    pub table: u32,
    /// The smaller goes first.
    pub metric: u32,
}

impl Way {
    /// The table that is used unless a rule says otherwise.
    pub const MAIN: u32 = RouteHeader::RT_TABLE_MAIN as u32;
}

/// What the kernel knows of a neighbour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Standing {
    /// It has answered, or was heard of.
    Present,
    /// It was asked and did not answer.
    Failed,
    /// It is being asked, or nobody has asked.
    Unknown,
}

impl RouteMonitor {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the process is out of file descriptors or memory.
    pub fn open() -> Result<Self, NetlinkError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            set_buffer(&socket, Buffer::Receive, RECEIVE_BUFFER)?;
            socket.bind_auto()?;
            for group in GROUPS {
                socket.add_membership(group)?;
            }
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(Self {
                socket,
                buffer: vec![0; LONGEST].into(),
                heard: VecDeque::new(),
            })
        };
        open().map_err(NetlinkError::Socket)
    }

    /// The next change, without waiting; `None` if there is none.
    ///
    /// # Errors
    /// Only those of a broken descriptor, which this type never holds.
    pub fn receive(&mut self) -> io::Result<Option<Change>> {
        // What there was no room for came after what waits. After a snapshot, that would undo what
        // is newer, and nobody would tell it again.
        let mut has_missed = false;
        while self.heard.is_empty() {
            let received = rustix::net::recv(&self.socket, &mut *self.buffer, RecvFlags::DONTWAIT);
            match received {
                Ok(_) if has_missed => {}
                Ok((length, _)) => self.heard.extend(changes(&self.buffer[..length])),
                Err(Errno::AGAIN) if has_missed => return Ok(Some(Change::Missed)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(Errno::NOBUFS) => has_missed = true,
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(self.heard.pop_front())
    }
}

impl AsFd for RouteMonitor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Everything that is so at the moment, in the network namespace of the calling thread.
///
/// # Errors
/// When the kernel does not answer.
pub fn snapshot() -> Result<Vec<Change>, NetlinkError> {
    let mut route = RouteSocket::open()?;
    let mut all = Vec::new();
    let questions = [
        RouteNetlinkMessage::GetLink(LinkMessage::default()),
        RouteNetlinkMessage::GetAddress(AddressMessage::default()),
        RouteNetlinkMessage::GetRoute(RouteMessage::default()),
        RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default()),
    ];
    for question in questions {
        let answers = route.dump(question)?;
        all.extend(answers.into_iter().flat_map(|told| changes_in(told, false)));
    }
    Ok(all)
}

/// Whether the host takes packets for `address` at the moment, in the network namespace of the calling thread:
/// whether [`Change::Local`] is so.
///
/// # Errors
/// When the kernel does not answer.
pub fn takes(address: IpAddr) -> Result<bool, NetlinkError> {
    let wanted = Change::Local {
        address,
        is_present: true,
    };
    let question = RouteNetlinkMessage::GetRoute(RouteMessage::default());
    let answers = RouteSocket::open()?.dump(question)?;
    let mut changes = answers.into_iter().flat_map(|told| changes_in(told, false));
    Ok(changes.any(|change| change == wanted))
}

/// Every interface as it is at the moment, in the network namespace of the calling thread.
///
/// # Errors
/// When the kernel does not answer.
pub fn interfaces() -> Result<Vec<Change>, NetlinkError> {
    let question = RouteNetlinkMessage::GetLink(LinkMessage::default());
    let answers = RouteSocket::open()?.dump(question)?;
    Ok(answers.into_iter().filter_map(change).collect())
}

/// The changes that one datagram tells; what is malformed or of another kind is left out.
fn changes(mut rest: &[u8]) -> Vec<Change> {
    let mut changes = Vec::new();
    while let Ok(message) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest) {
        let length = message.header.length as usize;
        let replaces = message.header.flags & NLM_F_REPLACE != 0;
        if let NetlinkPayload::InnerMessage(inner) = message.payload {
            changes.extend(changes_in(inner, replaces));
        }
        rest = match rest.get(length.next_multiple_of(4)..) {
            Some(rest) if length > 0 => rest,
            _ => break,
        };
    }
    changes
}

/// What one message tells: only a route may be several changes.
fn changes_in(message: RouteNetlinkMessage, replaces: bool) -> Vec<Change> {
    match message {
        RouteNetlinkMessage::NewRoute(message) => route(&message, true, replaces),
        RouteNetlinkMessage::DelRoute(message) => route(&message, false, false),
        other => change(other).into_iter().collect(),
    }
}

fn change(message: RouteNetlinkMessage) -> Option<Change> {
    match message {
        RouteNetlinkMessage::NewLink(link) => interface(&link),
        // As a bridge tells it, it is a port no longer, and still an interface.
        RouteNetlinkMessage::DelLink(link) => {
            let is_port = link.header.interface_family == AddressFamily::Bridge;
            (!is_port).then_some(Change::InterfaceGone {
                index: InterfaceIndex(link.header.index),
            })
        }
        RouteNetlinkMessage::NewAddress(message) => address(&message, true),
        RouteNetlinkMessage::DelAddress(message) => address(&message, false),
        RouteNetlinkMessage::NewNeighbour(message) => {
            let standing = match message.header.state {
                NeighbourState::Reachable
                | NeighbourState::Stale
                | NeighbourState::Delay
                | NeighbourState::Permanent
                | NeighbourState::Noarp => Standing::Present,
                NeighbourState::Failed => Standing::Failed,
                _ => Standing::Unknown,
            };
            neighbour(&message, standing, hardware_of_neighbour(&message))
        }
        RouteNetlinkMessage::DelNeighbour(message) => neighbour(&message, Standing::Unknown, None),
        _ => None,
    }
}

fn interface(link: &LinkMessage) -> Option<Change> {
    let needed = LinkFlags::Up | LinkFlags::Running | LinkFlags::LowerUp;
    let find = |pick: fn(&LinkAttribute) -> Option<u32>| link.attributes.iter().find_map(pick);
    let name = link
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name.clone()),
            _ => None,
        })?;
    let mtu = find(|attribute| match attribute {
        LinkAttribute::Mtu(mtu) => Some(*mtu),
        _ => None,
    })?;
    Some(Change::Interface {
        index: InterfaceIndex(link.header.index),
        name,
        is_up: link.header.flags.contains(LinkFlags::Up),
        is_running: link.header.flags.contains(needed),
        carrier_losses: find(|attribute| match attribute {
            LinkAttribute::CarrierDownCount(count) => Some(*count),
            _ => None,
        }),
        mtu,
        hardware: hardware_of_interface(link),
        port_of: port_of(link),
    })
}

/// A VRF's members keep their packets; whatever else has members takes them.
fn port_of(link: &LinkMessage) -> Option<InterfaceIndex> {
    let is_of_vrf = |infos: &Vec<LinkInfo>| infos.contains(&LinkInfo::PortKind(InfoPortKind::Vrf));
    let attributes = link.attributes.iter();
    if attributes
        .clone()
        .any(|attribute| matches!(attribute, LinkAttribute::LinkInfo(infos) if is_of_vrf(infos)))
    {
        return None;
    }
    attributes
        .filter_map(|attribute| match attribute {
            LinkAttribute::Controller(index @ 1..) => Some(InterfaceIndex(*index)),
            _ => None,
        })
        .next()
}

fn address(message: &AddressMessage, is_present: bool) -> Option<Change> {
    let addresses = message.attributes.iter();
    // For IPv4 `Local` is the own address, `Address` the peer's on point-to-point devices.
    let own = addresses.clone().find_map(|attribute| match attribute {
        AddressAttribute::Local(address) => Some(*address),
        _ => None,
    });
    let address = own.or_else(|| {
        addresses.clone().find_map(|attribute| match attribute {
            AddressAttribute::Address(address) => Some(*address),
            _ => None,
        })
    })?;
    is_global(address).then_some(Change::Address {
        interface: InterfaceIndex(message.header.index),
        address: Prefix {
            address,
            length: message.header.prefix_len,
        },
        is_present,
    })
}

fn is_global(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !address.is_link_local(),
        IpAddr::V6(address) => !address.is_unicast_link_local(),
    }
}

fn route(message: &RouteMessage, is_present: bool, replaces: bool) -> Vec<Change> {
    let header = &message.header;
    if header.kind == RouteType::Local {
        return local(message, is_present).into_iter().collect();
    }
    if header.table == TABLE_LOCAL || header.kind != RouteType::Unicast {
        return Vec::new();
    }
    let any = match header.address_family {
        AddressFamily::Inet => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        AddressFamily::Inet6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
        _ => return Vec::new(),
    };
    let mut way = Way {
        destination: Prefix {
            address: any,
            length: header.destination_prefix_length,
        },
        gateway: None,
        table: header.table.into(),
        metric: 0,
    };
    let (mut interface, mut hops) = (None, Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Oif(index) => interface = Some(InterfaceIndex(*index)),
            RouteAttribute::Gateway(address) => way.gateway = ip(address),
            RouteAttribute::Destination(address) => match ip(address) {
                Some(address) => way.destination.address = address,
                None => return Vec::new(),
            },
            RouteAttribute::Table(table) => way.table = *table,
            RouteAttribute::Priority(metric) => way.metric = *metric,
            RouteAttribute::MultiPath(next_hops) => hops.extend(next_hops.iter().map(hop)),
            _ => {}
        }
    }
    hops.extend(interface.map(|interface| (interface, way.gateway)));
    let mut replaces = replaces;
    let changes = hops.into_iter().map(|(interface, gateway)| Change::Route {
        interface,
        way: Way { gateway, ..way },
        is_present,
        // The first of them takes the others' place, and the next ones stand beside it.
        replaces: std::mem::take(&mut replaces),
    });
    changes.collect()
}

/// The address of a local route; nothing for a whole network.
fn local(message: &RouteMessage, is_present: bool) -> Option<Change> {
    let mut attributes = message.attributes.iter();
    let address = attributes.find_map(|attribute| match attribute {
        RouteAttribute::Destination(address) => ip(address),
        _ => None,
    })?;
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let is_single = message.header.destination_prefix_length == whole;
    is_single.then_some(Change::Local {
        address,
        is_present,
    })
}

/// One of a route's next hops: through which interface, and by way of which router.
fn hop(hop: &RouteNextHop) -> (InterfaceIndex, Option<IpAddr>) {
    let gateway = hop.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Gateway(address) => ip(address),
        _ => None,
    });
    (InterfaceIndex(hop.interface_index), gateway)
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(address) => Some((*address).into()),
        RouteAddress::Inet6(address) => Some((*address).into()),
        _ => None,
    }
}

/// The Ethernet address of an interface; `None` for one that is no Ethernet.
pub(crate) fn hardware_of_interface(link: &LinkMessage) -> Option<[u8; 6]> {
    let mut attributes = link.attributes.iter();
    let told = attributes.find_map(|attribute| match attribute {
        LinkAttribute::Address(address) => address.as_slice().try_into().ok(),
        _ => None,
    });
    told.filter(|_| link.header.link_layer_type == LinkLayerType::Ether)
}

/// Where a neighbour is reached; `None` while that is being asked. What it was before it failed says
/// nothing.
pub(crate) fn hardware_of_neighbour(message: &NeighbourMessage) -> Option<[u8; 6]> {
    let is_known = !matches!(
        message.header.state,
        NeighbourState::Failed | NeighbourState::Incomplete | NeighbourState::None
    );
    let mut attributes = message.attributes.iter();
    let told = attributes.find_map(|attribute| match attribute {
        NeighbourAttribute::LinkLayerAddress(address) => address.as_slice().try_into().ok(),
        _ => None,
    });
    told.filter(|_| is_known)
}

fn neighbour(
    message: &NeighbourMessage,
    standing: Standing,
    hardware: Option<[u8; 6]>,
) -> Option<Change> {
    // What bridges and tunnels tell of their stations has the same form.
    if !matches!(
        message.header.family,
        AddressFamily::Inet | AddressFamily::Inet6
    ) {
        return None;
    }
    let address = message
        .attributes
        .iter()
        .find_map(|attribute| match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(address)) => {
                Some(IpAddr::V4(*address))
            }
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(address)) => {
                Some(IpAddr::V6(*address))
            }
            _ => None,
        })?;
    Some(Change::Neighbour {
        interface: InterfaceIndex(message.header.ifindex),
        address,
        standing,
        hardware,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{InterfaceSettings, Prefix};
    use crate::poller::{Interest, Poller, Token};
    use crate::testing::fresh_namespace;
    use rustix::net::sockopt;

    /// All changes that are there, in order.
    fn heard(monitor: &mut RouteMonitor) -> Vec<Change> {
        std::iter::from_fn(|| monitor.receive().expect("receive")).collect()
    }

    #[test]
    fn interfaces_addresses_and_routes_are_told_as_they_change_and_as_they_are() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            let mut monitor = RouteMonitor::open().expect("netlink");
            let mut route = RouteSocket::open().expect("netlink");
            route.add_veth("link0", "far0", None).expect("veth");
            let [near, far] = ["link0", "far0"].map(|name| route.interface(name).expect("made"));
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            let prefix = Prefix {
                address: "192.0.2.1".parse().expect("literal"),
                length: 24,
            };
            route.add_address(near, prefix).expect("address");
            route.configure(near, &up).expect("up");
            let alone = heard(&mut monitor);
            let running = |changes: &[Change]| {
                changes.iter().rev().find_map(|change| match change {
                    Change::Interface {
                        index, is_running, ..
                    } if *index == near => Some(*is_running),
                    _ => None,
                })
            };
            assert_eq!(running(&alone), Some(false), "the other end is down");
            route.configure(far, &up).expect("up");
            // The kernel tells of carrier when it comes to it.
            let mut poller = Poller::new().expect("epoll");
            let added = poller.add(&monitor, Token(0), Interest::Readable);
            added.expect("add");
            while running(&heard(&mut monitor)) != Some(true) {
                assert_eq!(poller.wait().expect("wait").count(), 1);
            }
            assert_eq!(running(&snapshot().expect("netlink")), Some(true));
            let address = Change::Address {
                interface: near,
                address: prefix,
                is_present: true,
            };
            let local = Change::Local {
                address: prefix.address,
                is_present: true,
            };
            assert!(
                alone.contains(&address) && alone.contains(&local),
                "{alone:?}"
            );
            let network = Prefix {
                address: "192.0.2.0".parse().expect("literal"),
                length: 24,
            };
            let way = Change::Route {
                interface: near,
                way: Way {
                    destination: network,
                    gateway: None,
                    table: Way::MAIN,
                    metric: 0,
                },
                is_present: true,
                replaces: false,
            };
            let now = snapshot().expect("netlink");
            for change in [&address, &local, &way] {
                assert!(now.contains(change), "{now:?}");
            }
        };
        namespace.run(work).expect("enter");
    }

    /// Gives an interface one MTU after another, up to `last`.
    fn resize_up_to(route: &mut RouteSocket, link: InterfaceIndex, last: u32) {
        for mtu in 600..=last {
            let settings = InterfaceSettings {
                mtu: Some(mtu),
                ..InterfaceSettings::default()
            };
            route.configure(link, &settings).expect("an MTU");
        }
    }

    #[test]
    fn an_interface_that_leaves_a_bridge_is_not_gone() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            route.add_veth("link0", "far0", None).expect("veth");
            route.add_bridge("bridge0").expect("bridge");
            let [link, bridge] =
                ["link0", "bridge0"].map(|name| route.interface(name).expect("made"));
            route.attach(link, bridge).expect("a port");
            let mut monitor = RouteMonitor::open().expect("netlink");
            route.detach(link).expect("it was a port");
            let changes = heard(&mut monitor);
            let gone = Change::InterfaceGone { index: link };
            assert!(
                !changes.is_empty() && !changes.contains(&gone),
                "{changes:?}"
            );
        };
        namespace.run(work).expect("enter");
    }

    #[test]
    fn a_crowd_of_changes_has_room() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            let mut route = RouteSocket::open().expect("netlink");
            route.add_veth("link0", "far0", None).expect("veth");
            let link = route.interface("link0").expect("made");
            let mut monitor = RouteMonitor::open().expect("netlink");
            let room = sockopt::socket_recv_buffer_size(&monitor).expect("a socket");
            if room < RECEIVE_BUFFER {
                return outlast_skip::skip("no more room without CAP_NET_ADMIN on the host");
            }
            resize_up_to(&mut route, link, 1500);
            let missed = heard(&mut monitor).contains(&Change::Missed);
            assert!(!missed, "in {room} bytes");
        };
        namespace.run(work).expect("enter");
    }

    #[test]
    fn what_was_told_before_an_overrun_is_not_told_after_it() {
        let Some(namespace) = fresh_namespace() else {
            return;
        };
        let work = || {
            const LAST: u32 = 1500;
            let mut route = RouteSocket::open().expect("netlink");
            route.add_veth("link0", "far0", None).expect("veth");
            let link = route.interface("link0").expect("made");
            let mut monitor = RouteMonitor::open().expect("netlink");
            // As little as the kernel gives.
            sockopt::set_socket_recv_buffer_size(&monitor, 0).expect("a socket");
            resize_up_to(&mut route, link, LAST);
            let mut known = None;
            let mut overruns = 0;
            while let Some(change) = monitor.receive().expect("receive") {
                let changes = match change {
                    Change::Missed => snapshot().expect("netlink"),
                    change => vec![change],
                };
                overruns += usize::from(changes.len() > 1);
                for change in changes {
                    if let Change::Interface { index, mtu, .. } = change
                        && index == link
                    {
                        known = Some(mtu);
                    }
                }
            }
            assert_ne!(overruns, 0, "there was room for everything");
            assert_eq!(known, Some(LAST));
        };
        namespace.run(work).expect("enter");
    }
}
