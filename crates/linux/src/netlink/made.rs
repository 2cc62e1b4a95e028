//! Interfaces that are made of nothing: cables, switches, interfaces upon others.

use super::exchange::Request;
use super::{InterfaceIndex, NetlinkError, RouteSocket};
use netlink_packet_core::{NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoMacVlan, InfoVeth, LinkAttribute, LinkInfo, LinkMessage, MacVlanMode,
};
use rustix::fd::{AsRawFd, BorrowedFd};

impl RouteSocket {
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
        self.add_veth_with_queues(name, peer, elsewhere, 1)
    }

    /// Makes a pair of Ethernet interfaces as [`Self::add_veth`] does, with several queues.
    ///
    /// Both ends have `queues` queues, 1..=4096, in both directions.
    ///
    /// # Errors
    /// As [`Self::add_veth`], and for another number of queues.
    pub fn add_veth_with_queues(
        &mut self,
        name: &str,
        peer: &str,
        elsewhere: Option<BorrowedFd<'_>>,
        queues: u32,
    ) -> Result<(), NetlinkError> {
        let queues = [
            LinkAttribute::NumTxQueues(queues),
            LinkAttribute::NumRxQueues(queues),
        ];
        let mut far = LinkMessage::default();
        far.attributes.push(LinkAttribute::IfName(peer.into()));
        far.attributes
            .extend(elsewhere.map(|fd| LinkAttribute::NetNsFd(fd.as_raw_fd())));
        far.attributes.extend(queues.clone());
        let data = InfoData::Veth(InfoVeth::Peer(far));
        let info = vec![LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(data)];
        self.add_link(name, info, &queues)
    }

    /// Makes a switch that has no ports yet.
    ///
    /// # Errors
    /// When the name is taken or unusable, or without `CAP_NET_ADMIN`.
    pub fn add_bridge(&mut self, name: &str) -> Result<(), NetlinkError> {
        self.add_link(name, vec![LinkInfo::Kind(InfoKind::Bridge)], &[])
    }

    /// Makes an Ethernet interface with an address of its own upon `below`, whose link it shares.
    ///
    /// # Errors
    /// When the name is taken or unusable, when the kernel has no macvlan, or without
    /// `CAP_NET_ADMIN`.
    pub fn add_macvlan(&mut self, name: &str, below: InterfaceIndex) -> Result<(), NetlinkError> {
        let data = InfoData::MacVlan(vec![InfoMacVlan::Mode(MacVlanMode::Bridge)]);
        let info = vec![LinkInfo::Kind(InfoKind::MacVlan), LinkInfo::Data(data)];
        self.add_link(name, info, &[LinkAttribute::Link(below.0)])
    }

    fn add_link(
        &mut self,
        name: &str,
        info: Vec<LinkInfo>,
        others: &[LinkAttribute],
    ) -> Result<(), NetlinkError> {
        let mut message = LinkMessage::default();
        message.attributes.push(LinkAttribute::IfName(name.into()));
        message.attributes.extend_from_slice(others);
        message.attributes.push(LinkAttribute::LinkInfo(info));
        let request = Request::new(
            NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL,
            format!("make the interface {name}"),
        );
        self.change(RouteNetlinkMessage::NewLink(message), request)
    }
}
