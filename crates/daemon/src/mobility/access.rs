//! A link on which mobile nodes are: packets by Ethernet address, and ARP in a mobile node's place.

use super::endpoint::ACCESS;
use outlast_linux::frames::{ArpLink, BROADCAST, PacketLink, Wanted, group};
use outlast_linux::netlink::{InterfaceIndex, NetlinkError, Prefix, RouteSocket};
use outlast_linux::solicitation::ArpParty;
use outlast_linux::{monitor, sysctl};
use outlast_mobility::{Arp, LinkAddress};
use outlast_wire::Packet;
use outlast_wire::mobile_ip::PORT;
use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, Ipv4Addr};

/// Advertisements and solicitations of ICMP.
const ADVERTISEMENT: u8 = 9;
const SOLICITATION: u8 = 10;

/// One interface.
#[derive(Debug)]
pub(super) struct AccessLink {
    pub(super) name: String,
    pub(super) index: InterfaceIndex,
    hardware: [u8; 6],
    mtu: u32,
    pub(super) packets: PacketLink,
    pub(super) arp: ArpLink,
    /// Addresses that are answered for.
    proxied: BTreeSet<Ipv4Addr>,
}

/// Why there is no access link.
#[derive(Debug, thiserror::Error)]
pub(super) enum AccessError {
    #[error("{0}")]
    Netlink(#[from] NetlinkError),
    #[error("{0} is no Ethernet")]
    NoEthernet(String),
    #[error("cannot open packet sockets: {0}")]
    Socket(#[from] io::Error),
}

impl AccessLink {
    /// Opens the interface; what is sent bears `mark`.
    pub(super) fn open(name: &str, mark: u32) -> Result<Self, AccessError> {
        let mut routes = RouteSocket::open()?;
        let index = routes.interface(name)?;
        let hardware = routes.hardware_address(name)?;
        let hardware = hardware.ok_or_else(|| AccessError::NoEthernet(name.into()))?;
        let wanted = Wanted {
            port: PORT,
            icmp: [ADVERTISEMENT, SOLICITATION],
        };
        Ok(Self {
            name: name.into(),
            index,
            hardware,
            mtu: mtu_of(index)?,
            packets: PacketLink::open(index, mark, wanted)?,
            arp: ArpLink::open(index, mark)?,
            proxied: BTreeSet::new(),
        })
    }

    /// Its number, Ethernet address, and longest packet in bytes.
    pub(super) const fn frame(&self) -> (InterfaceIndex, [u8; 6], u32) {
        (self.index, self.hardware, self.mtu)
    }

    pub(super) const fn set_mtu(&mut self, mtu: u32) {
        self.mtu = mtu;
    }

    /// Sends a packet to whom its destination names: a group, or everybody.
    pub(super) fn send_to_all(&self, packet: &Packet) -> io::Result<()> {
        let to = match packet.header().ip.destination {
            IpAddr::V4(to) if to.is_multicast() => group(to),
            _ => BROADCAST,
        };
        self.send(LinkAddress(to), packet)
    }

    /// Sends a packet to a neighbour. What was put together on the way is taken apart.
    pub(super) fn send(&self, to: LinkAddress, packet: &Packet) -> io::Result<()> {
        let send = |packet: &Packet| {
            if !self.packets.send(to.0, &packet.to_bytes())? {
                tracing::debug!(interface = self.name, "a packet did not leave");
            }
            Ok(())
        };
        match packet.segment_to_mtu(self.mtu) {
            Ok(mut segments) => segments.try_for_each(|segment| send(&segment)),
            Err(_) => send(packet),
        }
    }

    /// Says or answers something by ARP from now on.
    pub(super) fn change_arp(&mut self, arp: Arp) -> io::Result<()> {
        match arp {
            Arp::Gratuitous { address, owner, .. } => {
                let hardware = owner.map_or(self.hardware, |owner| owner.0);
                let party = ArpParty { address, hardware };
                tracing::debug!(%address, ?hardware, "gratuitous ARP");
                self.arp.announce(party)?;
            }
            Arp::StartProxy { address, .. } => {
                self.proxied.insert(address);
            }
            Arp::StopProxy { address, .. } => {
                self.proxied.remove(&address);
            }
            Arp::Silence { .. } | Arp::Resume { .. } => {}
        }
        Ok(())
    }

    /// Answers requests in mobile nodes' places. A gratuitous ARP asks for nothing.
    pub(super) fn answer_arp(&self) -> io::Result<()> {
        for _ in 0..super::endpoint::BURST {
            let Some(question) = self.arp.receive()? else {
                break;
            };
            let (address, asker) = (question.target, question.asker);
            if self.proxied.contains(&address) && asker.address != address {
                let hardware = self.hardware;
                self.arp.answer(asker, ArpParty { address, hardware })?;
            }
        }
        Ok(())
    }
}

fn mtu_of(index: InterfaceIndex) -> Result<u32, NetlinkError> {
    let mtu = monitor::snapshot()?.into_iter().find_map(|one| match one {
        monitor::Change::Interface {
            index: other, mtu, ..
        } if other == index => Some(mtu),
        _ => None,
    });
    // The interface is gone already, which the monitor tells.
    Ok(mtu.unwrap_or(1500))
}

/// The prefix's length of `address` on an interface; `None` if the interface does not have it.
pub(super) fn prefix_length(name: &str, address: Ipv4Addr) -> Result<Option<u8>, NetlinkError> {
    let index = RouteSocket::open()?.interface(name)?;
    let all = monitor::snapshot()?;
    let length = all.into_iter().find_map(|one| match one {
        monitor::Change::Address {
            interface,
            address: Prefix {
                address: other,
                length,
            },
            is_present: true,
        } if interface == index && other == IpAddr::V4(address) => Some(length),
        _ => None,
    });
    Ok(length)
}

/// The addresses of this host's interfaces.
pub(super) fn own_addresses() -> Result<BTreeSet<Ipv4Addr>, NetlinkError> {
    let all = monitor::snapshot()?.into_iter();
    let own = all.filter_map(|one| match one {
        monitor::Change::Address {
            address:
                Prefix {
                    address: IpAddr::V4(address),
                    ..
                },
            is_present: true,
            ..
        } => Some(address),
        _ => None,
    });
    Ok(own.collect())
}

/// Whether the kernel drops what comes by another way than the answer would go.
pub(super) fn filters_strictly(interface: &str) -> bool {
    let value = |name: &str| {
        let read = sysctl::read(&format!("net.ipv4.conf.{name}.rp_filter"));
        read.ok().and_then(|text| text.parse::<u8>().ok())
    };
    // The greater one holds.
    value("all").max(value(interface)) == Some(1)
}

/// The link's number for the machines.
pub(super) const LINK: outlast_mobility::LinkId = ACCESS;
