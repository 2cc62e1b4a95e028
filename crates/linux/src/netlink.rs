//! Setting up interfaces, addresses and routes (rtnetlink), without the `ip` program.

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_DUMP, NLM_F_EXCL, NLM_F_REPLACE, NLM_F_REQUEST, NetlinkHeader,
    NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};
use rustix::fd::{AsRawFd, BorrowedFd};
use std::fmt;
use std::io;
use std::net::IpAddr;

/// A conversation with the routing part of the kernel about one network namespace: that of the
/// thread that opened it.
#[derive(Debug)]
pub struct RouteSocket {
    socket: Socket,
    sequence: u32,
}

/// Number of an interface within its namespace.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
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

    /// Gives `interface` an address, usable at once: no duplicate address detection.
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
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
            format!("add {route:?}"),
        );
        self.change(RouteNetlinkMessage::NewRoute(message), request)
    }

    /// Makes a pair of Ethernet interfaces that are each other's link. The second one is made in
    /// `elsewhere`, if that is given.
    ///
    /// # Errors
    /// When a name is taken or unusable, or without `CAP_NET_ADMIN` in both namespaces.
    pub fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        elsewhere: Option<BorrowedFd<'_>>,
    ) -> Result<(), NetlinkError> {
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.into()));
        far.attributes
            .extend(elsewhere.map(|fd| LinkAttribute::NetNsFd(fd.as_raw_fd())));
        let data = InfoData::Veth(InfoVeth::Peer(far));
        let info = vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(data)];
        self.add_link(name, info)
    }

    /// Makes a switch that has no ports yet.
    ///
    /// # Errors
    /// When the name is taken or unusable, or without `CAP_NET_ADMIN`.
    pub fn add_bridge(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.add_link(name, vec![LinkInfo::Kind(InfoKind::Bridge)])
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

    fn add_link(&mut self, name: &str, info: Vec<LinkInfo>) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        message.attributes.push(LinkAttribute::LinkInfo(info));
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
            format!("make the interface {name}"),
        );
        self.change(RouteNetlinkMessage::NewLink(message), request)
    }

    /// Makes the kernel ask whether a neighbour is there, unless it knows; the answer comes as a
    /// [`Change`](crate::monitor::Change).
    ///
    /// # Errors
    /// When the interface is down or gone, or without `CAP_NET_ADMIN`.
    pub fn probe_neighbour(
        &mut self,
        interface: InterfaceIndex,
        address: IpAddr,
    ) -> Result<(), NetlinkError> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(address);
        message.header.ifindex = interface.0;
        message.header.state = NeighbourState::None;
        message.header.flags = NeighbourFlags::Use;
        let destination = match address {
            IpAddr::V4(address) => NeighbourAddress::Inet(address),
            IpAddr::V6(address) => NeighbourAddress::Inet6(address),
        };
        message
            .attributes
            .push(NeighbourAttribute::Destination(destination));
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE,
            format!("ask for the neighbour {address} on {interface}"),
        );
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

    fn change(&mut self, ask: RouteNetlinkMessage, request: Request) -> Result<(), NetlinkError> {
        match self.exchange(ask, request)? {
            None => Ok(()),
            Some(answer) => Err(NetlinkError::Malformed(format!(
                "{answer:?} instead of an acknowledgement"
            ))),
        }
    }

    /// Asks for all objects of a kind.
    pub(crate) fn dump(
        &mut self,
        ask: RouteNetlinkMessage,
    ) -> Result<Vec<RouteNetlinkMessage>, NetlinkError> {
        let request = Request::new(NLM_F_DUMP, "list the network's state".into());
        self.send(ask, request.flags)?;
        let mut answers = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full().map_err(NetlinkError::Socket)?;
            let mut rest = datagram.as_slice();
            while !rest.is_empty() {
                let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(rest)
                    .map_err(|error| NetlinkError::Malformed(error.to_string()))?;
                let length = (answer.header.length as usize).next_multiple_of(4);
                rest = rest.get(length..).unwrap_or_default();
                if answer.header.sequence_number != self.sequence {
                    continue;
                }
                match answer.payload {
                    NetlinkPayload::InnerMessage(inner) => answers.push(inner),
                    NetlinkPayload::Done(_) => return Ok(answers),
                    NetlinkPayload::Error(error) => {
                        return Err(NetlinkError::Refused {
                            request: request.what,
                            source: error.to_io(),
                        });
                    }
                    other => return Err(NetlinkError::Malformed(format!("{other:?}"))),
                }
            }
        }
    }

    fn send(&mut self, ask: RouteNetlinkMessage, flags: u16) -> Result<(), NetlinkError> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut header = NetlinkHeader::default();
        header.flags = NLM_F_REQUEST | flags;
        header.sequence_number = self.sequence;
        let mut message = NetlinkMessage::new(header, NetlinkPayload::from(ask));
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(NetlinkError::Socket)?;
        Ok(())
    }

    /// Sends `ask` and waits for its answer: a message, or `None` for a bare acknowledgement.
    fn exchange(
        &mut self,
        ask: RouteNetlinkMessage,
        request: Request,
    ) -> Result<Option<RouteNetlinkMessage>, NetlinkError> {
        self.send(ask, request.flags)?;
        loop {
            let (answer, _) = self.socket.recv_from_full().map_err(NetlinkError::Socket)?;
            let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer)
                .map_err(|error| NetlinkError::Malformed(error.to_string()))?;
            if answer.header.sequence_number != self.sequence {
                continue;
            }
            return match answer.payload {
                NetlinkPayload::InnerMessage(inner) => Ok(Some(inner)),
                NetlinkPayload::Error(error) if error.code.is_none() => Ok(None),
                NetlinkPayload::Error(error) => Err(NetlinkError::Refused {
                    request: request.what,
                    source: error.to_io(),
                }),
                other => Err(NetlinkError::Malformed(format!("{other:?}"))),
            };
        }
    }
}

/// Flags of a request, and what it asks for in words.
struct Request {
    flags: u16,
    what: String,
}

impl Request {
    fn new(flags: u16, what: String) -> Self {
        Self { flags, what }
    }
}

fn family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
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
