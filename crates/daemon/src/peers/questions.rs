//! Questions for neighbours that the daemon asks itself, beside those of the kernel.

use crate::indicators::Indicators;
use outlast_linux::netlink::{InterfaceIndex, Prefix};
use outlast_linux::solicitation::{ArpParty, ArpSolicitor, Solicitor};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Addresses in whose name a peer is asked for, at most.
const MOST_NAMES: usize = 4;

/// Asks for neighbours by ARP and by neighbour solicitations.
#[derive(Debug)]
pub(crate) struct Questions {
    /// `None` where the kernel cannot: then the kernel alone asks for peers of IPv4, and they for us.
    arp: Option<ArpSolicitor>,
    /// What the packets bear.
    mark: u32,
}

impl Questions {
    pub(crate) fn open(mark: u32) -> io::Result<Self> {
        let arp = ArpSolicitor::open(mark)?;
        Ok(Self { arp, mark })
    }

    /// Asks for `peer` in the name of the addresses of the interface `name`: there and nowhere else,
    /// if it is said where, and else everybody. Nobody is asked on a link without Ethernet addresses,
    /// on which nobody needs to be found.
    pub(crate) fn ask(
        &self,
        name: &str,
        indicators: &Indicators,
        peer: IpAddr,
        place: Option<[u8; 6]>,
    ) {
        let (Some(index), Some(own_hardware)) = (indicators.index(), indicators.stations().own())
        else {
            return;
        };
        match peer {
            IpAddr::V4(peer) => self.ask_by_arp(indicators, (index, own_hardware), peer, place),
            IpAddr::V6(peer) => {
                let solicitor = Solicitor::new(name, index, own_hardware, self.mark);
                solicit(&solicitor, indicators, peer, place.is_some());
            }
        }
    }

    fn ask_by_arp(
        &self,
        indicators: &Indicators,
        (index, own_hardware): (InterfaceIndex, [u8; 6]),
        peer: Ipv4Addr,
        place: Option<[u8; 6]>,
    ) {
        let Some(arp) = &self.arp else { return };
        let own = indicators.prefixes().filter_map(as_ipv4);
        let names: Vec<Ipv4Addr> = match place {
            Some(_) => own.map(|(address, _)| address).take(MOST_NAMES).collect(),
            // All hear it: one name is enough, of the network that both are in.
            None => own
                .min_by_key(|(_, prefix)| !prefix.contains(peer.into()))
                .map(|(address, _)| address)
                .into_iter()
                .collect(),
        };
        let party = |address, hardware| ArpParty { address, hardware };
        for name in names {
            let own = party(name, own_hardware);
            let asked = match place {
                Some(hardware) => arp.remind(index, own, party(peer, hardware)),
                None => arp.ask(index, own, peer),
            };
            note(peer, name, asked);
        }
    }
}

fn solicit(solicitor: &Solicitor, indicators: &Indicators, peer: Ipv6Addr, is_known: bool) {
    let own = indicators.addresses().filter_map(as_ipv6);
    for own in own.take(MOST_NAMES) {
        let asked = match is_known {
            true => solicitor.remind(own, peer),
            false => solicitor.ask(own, peer),
        };
        note(peer, own, asked);
    }
}

/// Logs a question that failed at level `debug`: nothing is lost but time.
fn note(peer: impl Into<IpAddr>, own: impl Into<IpAddr>, asked: io::Result<bool>) {
    if let Err(error) = asked {
        let (peer, own) = (peer.into(), own.into());
        tracing::debug!(%peer, %own, "cannot ask for a neighbour: {error}");
    }
}

fn as_ipv4(prefix: Prefix) -> Option<(Ipv4Addr, Prefix)> {
    match prefix.address {
        IpAddr::V4(address) => Some((address, prefix)),
        IpAddr::V6(_) => None,
    }
}

const fn as_ipv6(address: IpAddr) -> Option<Ipv6Addr> {
    match address {
        IpAddr::V6(address) => Some(address),
        IpAddr::V4(_) => None,
    }
}
