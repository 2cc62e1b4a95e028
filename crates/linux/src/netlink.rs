//! Setting up interfaces, addresses and routes (rtnetlink), without the `ip` program.

mod exchange;
pub(crate) mod filters;
mod made;
mod own;
mod queues;
mod rules;
mod towards;

use crate::monitor;
use exchange::Request;
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REPLACE};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkLayerType, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use std::fmt;
use std::io;
use std::net::IpAddr;

pub use rules::{IpVersion, Rule, Selector, TableRoute};

/// A conversation with the routing part of the kernel about one network namespace: that of the
/// thread that opened it.
#[derive(Debug)]
pub struct RouteSocket {
    socket: Socket,
    sequence: u32,
}

/// Number of an interface within its namespace.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct InterfaceIndex(pub u32);

/// What to change of an interface; `None` leaves things as they are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InterfaceSettings {
    /// Whether it carries packets.
    pub up: Option<bool>,
    /// Whether it takes part in multicast; off, the kernel sends no group reports.
    pub multicast: Option<bool>,
    /// Longest IP packet in bytes.
    pub mtu: Option<u32>,
    /// Packets that wait in the device until the other end takes them.
    pub queue_len: Option<u32>,
}

/// An address and the length of its network's prefix in bits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Prefix {
    /// The address; with host bits for an interface, without for a route.
    pub address: IpAddr,
    /// 0..=32 or 0..=128.
    pub length: u8,
}

impl Prefix {
    /// The first address of the network; `None` if no address is as long as the prefix.
    #[must_use]
    pub fn network(self) -> Option<IpAddr> {
        let cut = |bits: u32| bits.checked_sub(u32::from(self.length));
        Some(match self.address {
            IpAddr::V4(address) => {
                let mask = u32::MAX.checked_shl(cut(u32::BITS)?).unwrap_or(0);
                IpAddr::V4((address.to_bits() & mask).into())
            }
            IpAddr::V6(address) => {
                let mask = u128::MAX.checked_shl(cut(u128::BITS)?).unwrap_or(0);
                IpAddr::V6((address.to_bits() & mask).into())
            }
        })
    }

    /// Whether `address` is one of the network's.
    #[must_use]
    pub fn contains(self, address: IpAddr) -> bool {
        let network = self.network();
        let other = Self { address, ..self };
        network.is_some() && network == other.network()
    }
}

/// A way to other hosts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Route<'a> {
    /// Where it leads.
    pub destination: Prefix,
    /// Through which interface.
    pub interface: InterfaceIndex,
    /// By way of which router; `None` if the destination is on the link itself.
    pub gateway: Option<IpAddr>,
    /// The congestion control of connections that go this way and choose none themselves; it
    /// may be one that the kernel reserves for root.
    pub congestion_control: Option<&'a str>,
}

/// What an interface has carried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct InterfaceStatistics {
    /// Packets that the host received.
    pub received_packets: u64,
    /// Packets that the host sent.
    pub sent_packets: u64,
    /// Received packets that the host had no room for.
    pub received_dropped: u64,
    /// Packets to send that found the device's queue full.
    pub sent_dropped: u64,
}

/// Why the kernel did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The socket does not work.
    #[error("netlink does not answer")]
    Socket(#[source] io::Error),
    /// An answer cannot be understood.
    #[error("netlink's answer cannot be understood: {0}")]
    Malformed(String),
    /// The kernel refused.
    #[error("cannot {request}")]
    Refused {
        /// What was asked for.
        request: String,
        /// What the kernel says.
        #[source]
        source: io::Error,
    },
}

impl Prefix {
    /// The prefix of a single host.
    #[must_use]
    pub const fn of_host(address: IpAddr) -> Self {
        let length = if address.is_ipv4() { 32 } else { 128 };
        Self { address, length }
    }
}

impl RouteSocket {
    /// Opens a conversation about the namespace of the calling thread.
    ///
    /// # Errors
    /// When the process is out of file descriptors or memory.
    pub fn open() -> Result<Self, NetlinkError> {
        let open = || {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            Ok(Self {
                socket,
                sequence: 0,
            })
        };
        open().map_err(NetlinkError::Socket)
    }

    /// The index of the interface `name`.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn interface(&mut self, name: &str) -> Result<InterfaceIndex, NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        let request = Request::new(0, format!("find the interface {name}"));
        self.link(message, request)
            .map(|link| InterfaceIndex(link.header.index))
    }

    /// The name of an interface.
    ///
    /// # Errors
    /// When it is not there.
    pub fn name(&mut self, interface: InterfaceIndex) -> Result<String, NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = interface.0;
        let link = self.link(message, Request::new(0, format!("find {interface}")))?;
        let mut names = link.attributes.into_iter();
        let name = names.find_map(|attribute| match attribute {
            LinkAttribute::IfName(name) => Some(name),
            _ => None,
        });
        Ok(name.unwrap_or_else(|| interface.to_string()))
    }

    /// Bytes that the packets of the interface `name` have in front of the IP header: 14 on
    /// Ethernet and the loopback device, none on TUN, WireGuard, PPP and whatever else.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn link_header(&mut self, name: &str) -> Result<u32, NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        let request = Request::new(0, format!("find the interface {name}"));
        let link = self.link(message, request)?;
        Ok(match link.header.link_layer_type {
            LinkLayerType::Ether | LinkLayerType::Loopback => 14,
            _ => 0,
        })
    }

    /// The Ethernet address of the interface `name`; `None` for one that is no Ethernet.
    ///
    /// # Errors
    /// When there is none of that name.
    pub fn hardware_address(&mut self, name: &str) -> Result<Option<[u8; 6]>, NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        let request = Request::new(0, format!("find the interface {name}"));
        Ok(monitor::hardware_of_interface(
            &self.link(message, request)?,
        ))
    }

    /// Changes `interface` as `settings` say.
    ///
    /// # Errors
    /// When the kernel refuses a value, or without `CAP_NET_ADMIN`.
    pub fn configure(
        &mut self,
        interface: InterfaceIndex,
        settings: &InterfaceSettings,
    ) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = interface.0;
        let flags = [
            (LinkFlags::Up, settings.up),
            (LinkFlags::Multicast, settings.multicast),
        ];
        for (flag, wanted) in flags {
            if let Some(wanted) = wanted {
                message.header.change_mask |= flag;
                message.header.flags.set(flag, wanted);
            }
        }
        message
            .attributes
            .extend(settings.mtu.map(LinkAttribute::Mtu));
        message
            .attributes
            .extend(settings.queue_len.map(LinkAttribute::TxQueueLen));
        let request = Request::new(
            NLM_F_ACK,
            format!("configure {interface} with {settings:?}"),
        );
        self.change(RouteNetlinkMessage::SetLink(message), request)
    }

    /// Gives `interface` another name; one that is switched on may need Linux 6.2 for that.
    ///
    /// # Errors
    /// When the name is taken or unusable, or without `CAP_NET_ADMIN`.
    pub fn rename(&mut self, interface: InterfaceIndex, name: &str) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = interface.0;
        message.attributes.push(LinkAttribute::IfName(name.into()));
        let request = Request::new(NLM_F_ACK, format!("name {interface} {name}"));
        self.change(RouteNetlinkMessage::SetLink(message), request)
    }

    /// Gives `interface` an address, without duplicate address detection. One of IPv6 may be used a
    /// moment later: [`await_address`](Self::await_address).
    ///
    /// The kernel adds the route to the address's network itself.
    ///
    /// # Errors
    /// When the interface has it already, or without `CAP_NET_ADMIN`.
    pub fn add_address(
        &mut self,
        interface: InterfaceIndex,
        prefix: Prefix,
    ) -> Result<(), NetlinkError> {
        let mut message = AddressMessage::default();
        message.header.family = family(prefix.address);
        message.header.prefix_len = prefix.length;
        message.header.index = interface.0;
        message.header.flags = AddressHeaderFlags::Nodad;
        // For IPv4 `Local` is the own address, `Address` the peer's on point-to-point devices.
        message
            .attributes
            .push(AddressAttribute::Local(prefix.address));
        message
            .attributes
            .push(AddressAttribute::Address(prefix.address));
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
            format!("add the address {prefix} to {interface}"),
        );
        self.change(RouteNetlinkMessage::NewAddress(message), request)
    }

    /// Adds a route.
    ///
    /// # Errors
    /// When there is one to the same destination, the gateway cannot be reached, the congestion
    /// control is not known, or without `CAP_NET_ADMIN`.
    pub fn add_route(&mut self, route: &Route<'_>) -> Result<(), NetlinkError> {
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        let request = Request::new(flags, format!("add {route:?}"));
        self.change(RouteNetlinkMessage::NewRoute(route_message(route)), request)
    }

    /// Adds a route in the place of the one to the same destination, if there is one.
    ///
    /// # Errors
    /// As [`Self::add_route`], but for the first.
    pub fn replace_route(&mut self, route: &Route<'_>) -> Result<(), NetlinkError> {
        self.put_route(route, None)
    }

    /// Adds a route in the place of the one to the same destination, for packets of at most `mtu` bytes.
    ///
    /// # Errors
    /// As [`Self::replace_route`].
    pub fn replace_route_with_mtu(
        &mut self,
        route: &Route<'_>,
        mtu: u32,
    ) -> Result<(), NetlinkError> {
        self.put_route(route, Some(mtu))
    }

    /// Replaces or adds a route, with the kernel's MTU of the way or, in bytes, with `mtu`.
    fn put_route(&mut self, route: &Route<'_>, mtu: Option<u32>) -> Result<(), NetlinkError> {
        let mut wanted = format!("replace by {route:?}");
        let mut message = route_message(route);
        if let Some(mtu) = mtu {
            wanted += &format!(" of {mtu} bytes");
            let metrics = vec![RouteMetric::Mtu(mtu)];
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        let request = Request::new(NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE, wanted);
        self.change(RouteNetlinkMessage::NewRoute(message), request)
    }

    /// Adds a route to nowhere: packets to `destination` are dropped.
    ///
    /// # Errors
    /// When there is one to the same destination, or without `CAP_NET_ADMIN`.
    pub fn add_black_hole(&mut self, destination: Prefix) -> Result<(), NetlinkError> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family(destination.address),
            destination_prefix_length: destination.length,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Universe,
            kind: RouteType::BlackHole,
            ..RouteHeader::default()
        };
        let address = route_address(destination.address);
        message
            .attributes
            .push(RouteAttribute::Destination(address));
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL;
        let request = Request::new(flags, format!("add a black hole at {destination}"));
        self.change(RouteNetlinkMessage::NewRoute(message), request)
    }

    /// Removes a route.
    ///
    /// # Errors
    /// When there is none such, or without `CAP_NET_ADMIN`.
    pub fn remove_route(&mut self, route: &Route<'_>) -> Result<(), NetlinkError> {
        let request = Request::new(NLM_F_ACK, format!("remove {route:?}"));
        self.change(RouteNetlinkMessage::DelRoute(route_message(route)), request)
    }

    /// Makes `interface` a port of `bridge`.
    ///
    /// # Errors
    /// When either is not there or not of the kind, or without `CAP_NET_ADMIN`.
    pub fn attach(
        &mut self,
        interface: InterfaceIndex,
        bridge: InterfaceIndex,
    ) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = interface.0;
        message.attributes.push(LinkAttribute::Controller(bridge.0));
        let request = Request::new(NLM_F_ACK, format!("make {interface} a port of {bridge}"));
        self.change(RouteNetlinkMessage::SetLink(message), request)
    }

    /// Takes `interface` out of the bridge that it is a port of. It keeps its carrier.
    ///
    /// # Errors
    /// When it is not there, or without `CAP_NET_ADMIN`.
    pub fn detach(&mut self, interface: InterfaceIndex) -> Result<(), NetlinkError> {
        self.attach(interface, InterfaceIndex(0))
    }

    /// Makes the kernel ask whether a neighbour is there, unless it knows or is asking; the answer
    /// comes as a [`Change`](crate::monitor::Change).
    ///
    /// # Errors
    /// When the interface is down or gone, or without `CAP_NET_ADMIN`.
    pub fn probe_neighbour(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
    ) -> Result<(), NetlinkError> {
        let mut message = neighbour_message(interface, address);
        message.header.flags = NeighbourFlags::Use;
        self.change_neighbour(message, "ask for", address)
    }

    /// Makes the kernel ask at once whether a neighbour is there.
    ///
    /// It asks even if it is asking already and would wait for a second before it asks again
    /// (`retrans_time_ms`). Packets that wait for the answer are dropped.
    ///
    /// # Errors
    /// As [`Self::probe_neighbour`].
    pub fn probe_neighbour_now(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
    ) -> Result<(), NetlinkError> {
        let mut message = neighbour_message(interface, address);
        message.header.state = NeighbourState::Failed;
        self.change_neighbour(message, "give up asking for", address)?;
        self.probe_neighbour(interface, address)
    }

    /// The Ethernet address at which the kernel reaches a neighbour; `None` while it knows none.
    ///
    /// # Errors
    /// When the kernel does not answer. Needs Linux 5.0.
    pub fn neighbour_hardware(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
    ) -> Result<Option<[u8; 6]>, NetlinkError> {
        let message = neighbour_message(interface, address);
        let request = Request::new(0, format!("find the neighbour {address}"));
        let told = match self.exchange(RouteNetlinkMessage::GetNeighbour(message), request) {
            Ok(Some(RouteNetlinkMessage::NewNeighbour(told))) => told,
            Ok(answer) => {
                return Err(NetlinkError::Malformed(format!(
                    "{answer:?} instead of a neighbour"
                )));
            }
            // It was never asked for.
            Err(NetlinkError::Refused { source, .. })
                if source.raw_os_error() == Some(libc::ENOENT) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        Ok(monitor::hardware_of_neighbour(&told))
    }

    /// Says for good which Ethernet address a neighbour has.
    ///
    /// # Errors
    /// As [`Self::probe_neighbour`].
    pub fn pin_neighbour(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
        hardware: [u8; 6],
    ) -> Result<(), NetlinkError> {
        let mut message = neighbour_message(interface, address);
        message.header.state = NeighbourState::Permanent;
        let hardware = NeighbourAttribute::LinkLayerAddress(hardware.to_vec());
        message.attributes.push(hardware);
        self.change_neighbour(message, "pin", address)
    }

    /// Forgets which Ethernet address a neighbour has, pinned or not. One that is not known is none.
    ///
    /// # Errors
    /// When the interface is gone, or without `CAP_NET_ADMIN`.
    pub fn forget_neighbour(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
    ) -> Result<(), NetlinkError> {
        let message = neighbour_message(interface, address);
        let request = Request::new(NLM_F_ACK, format!("forget the neighbour {address}"));
        match self.change(RouteNetlinkMessage::DelNeighbour(message), request) {
            Err(NetlinkError::Refused { source, .. })
                if source.raw_os_error() == Some(libc::ENOENT) =>
            {
                Ok(())
            }
            done => done,
        }
    }

    fn change_neighbour(
        &mut self,
        message: NeighbourMessage,
        doing: &str,
        address: IpAddr,
    ) -> Result<(), NetlinkError> {
        let flags = NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE;
        let request = Request::new(flags, format!("{doing} the neighbour {address}"));
        self.change(RouteNetlinkMessage::NewNeighbour(message), request)
    }

    /// What `interface` has carried since it was made.
    ///
    /// # Errors
    /// When there is no such interface.
    pub fn statistics(
        &mut self,
        interface: InterfaceIndex,
    ) -> Result<InterfaceStatistics, NetlinkError> {
        let mut message = LinkMessage::default();
        message.header.index = interface.0;
        let request = Request::new(0, format!("read the statistics of {interface}"));
        let link = self.link(message, request)?;
        let stats = link
            .attributes
            .iter()
            .find_map(|attribute| match attribute {
                LinkAttribute::Stats64(stats) => Some(InterfaceStatistics {
                    received_packets: stats.rx_packets,
                    sent_packets: stats.tx_packets,
                    received_dropped: stats.rx_dropped,
                    sent_dropped: stats.tx_dropped,
                }),
                _ => None,
            });
        stats.ok_or_else(|| NetlinkError::Malformed("a link without statistics".into()))
    }

    /// Asks for one interface.
    fn link(&mut self, ask: LinkMessage, request: Request) -> Result<LinkMessage, NetlinkError> {
        match self.exchange(RouteNetlinkMessage::GetLink(ask), request)? {
            Some(RouteNetlinkMessage::NewLink(link)) => Ok(link),
            answer => Err(NetlinkError::Malformed(format!(
                "{answer:?} instead of a link"
            ))),
        }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn route_message(route: &Route<'_>) -> RouteMessage {
    let mut message = RouteMessage::default();
    let on_link = route.gateway.is_none();
    message.header = RouteHeader {
        address_family: family(route.destination.address),
        destination_prefix_length: route.destination.length,
        table: RouteHeader::RT_TABLE_MAIN,
        protocol: RouteProtocol::Static,
        scope: if on_link {
            RouteScope::Link
        } else {
            RouteScope::Universe
        },
        kind: RouteType::Unicast,
        ..RouteHeader::default()
    };
    let destination = route_address(route.destination.address);
    message
        .attributes
        .push(RouteAttribute::Destination(destination));
    message
        .attributes
        .push(RouteAttribute::Oif(route.interface.0));
    let gateway = route.gateway.map(route_address);
    message
        .attributes
        .extend(gateway.map(RouteAttribute::Gateway));
    if let Some(name) = route.congestion_control {
        let metrics = vec![RouteMetric::CcAlgo(name.into())];
        message.attributes.push(RouteAttribute::Metrics(metrics));
    }
    message
}

fn neighbour_message(interface: InterfaceIndex, address: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(address);
    message.header.ifindex = interface.0;
    let destination = match address {
        IpAddr::V4(address) => NeighbourAddress::Inet(address),
        IpAddr::V6(address) => NeighbourAddress::Inet6(address),
    };
    message
        .attributes
        .push(NeighbourAttribute::Destination(destination));
    message
}

fn route_address(address: IpAddr) -> RouteAddress {
    match address {
        IpAddr::V4(address) => RouteAddress::Inet(address),
        IpAddr::V6(address) => RouteAddress::Inet6(address),
    }
}

impl fmt::Display for InterfaceIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interface {}", self.0)
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}
