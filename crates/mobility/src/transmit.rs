//! What the machines ask of their drivers, and how packets come to them.

use core::net::Ipv4Addr;
use outlast_wire::Packet;

/// A link of the node's, numbered by the driver.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkId(pub u32);

/// A link-layer address; on a point-to-point device the driver makes one up for the peer.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct LinkAddress(pub [u8; 6]);

/// Where a packet came in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Arrival {
    /// The link.
    pub link: LinkId,
    /// The frame's source.
    pub from: LinkAddress,
}

/// What is to be done next; the order of outputs is the order in which they have to happen.
#[derive(Clone, Debug, Eq, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all of them are packets, which a box would allocate for"
)]
pub enum Transmit {
    /// Send a packet.
    Packet {
        /// The packet.
        packet: Packet,
        /// How.
        via: Via,
    },
    /// Change what ARP says; nothing on point-to-point devices.
    Arp(Arp),
}

/// How a packet is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Via {
    /// By the node's routing table.
    Route,
    /// To this node's own programs.
    Local,
    /// On a link, without a tunnel, whatever binding there is.
    Link(LinkId),
    /// On a link, in a frame to this address: nobody is asked by ARP.
    Neighbour(LinkId, LinkAddress),
}

/// A change of what ARP says on a link (RFC 5944, section 4.6).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Arp {
    /// Send a gratuitous ARP: `address` is at `owner`, or at this node if that is `None`.
    Gratuitous {
        /// The link.
        link: LinkId,
        /// The address.
        address: Ipv4Addr,
        /// Who has it.
        owner: Option<LinkAddress>,
    },
    /// Answer requests for `address` in the mobile node's place.
    StartProxy {
        /// The link.
        link: LinkId,
        /// The address.
        address: Ipv4Addr,
    },
    /// Answer them no longer.
    StopProxy {
        /// The link.
        link: LinkId,
        /// The address.
        address: Ipv4Addr,
    },
    /// Answer no request for the own home address, and send no broadcast ARP.
    Silence {
        /// The address.
        address: Ipv4Addr,
    },
    /// Use ARP again as every host does.
    Resume {
        /// The address.
        address: Ipv4Addr,
    },
}

/// What became of a packet that a machine was given.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Verdict {
    /// The machine has taken it, and may ask to send something.
    Taken,
    /// The machine has nothing to do with it.
    Pass,
}
