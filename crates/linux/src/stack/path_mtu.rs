//! The MTU of the path to a peer, and the next smaller one.

use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// How much less than it was: less than any MTU of which a router would tell, and more than none.
const STEP: u32 = 8;
/// No path is said to take less: the smallest MTU of IPv6 (RFC 8200, section 5), which hardly any path
/// of IPv4 is below.
const SMALLEST: u32 = 1280;

/// An MTU less than that of the path to `peer`; `None` where it is as small as can be.
///
/// # Errors
/// Where no route leads there.
pub(super) fn smaller(peer: SocketAddr) -> io::Result<Option<u32>> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Nothing is sent: the kernel looks the route up.
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    let mtu = match peer {
        SocketAddr::V4(_) => ip_mtu(&socket)?,
        SocketAddr::V6(_) => ipv6_mtu(&socket)?,
    };
    Ok(mtu.checked_sub(STEP).filter(|mtu| *mtu >= SMALLEST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::{InterfaceSettings, Prefix, RouteSocket};

    #[test]
    fn it_is_less_than_the_interface_takes_and_never_too_small() {
        let Some(namespace) = crate::testing::fresh_namespace() else {
            return;
        };
        // Only there: the loopback interface of this machine is not ours.
        namespace.run(judge).expect("enter");
    }

    fn judge() {
        let mut routes = RouteSocket::open().expect("netlink");
        let lo = routes.interface("lo").expect("every namespace has it");
        let configure = |routes: &mut RouteSocket, mtu| {
            let settings = InterfaceSettings {
                up: Some(true),
                mtu: Some(mtu),
                ..InterfaceSettings::default()
            };
            routes.configure(lo, &settings).expect("ours");
        };
        configure(&mut routes, 1_500);
        let address = "10.9.0.1".parse().expect("literal");
        let prefix = Prefix {
            address,
            length: 24,
        };
        routes.add_address(lo, prefix).expect("an address");
        let peer = SocketAddr::new(address, 80);
        assert_eq!(smaller(peer).expect("a route"), Some(1_492));
        configure(&mut routes, 1_284);
        assert_eq!(smaller(peer).expect("a route"), None);
        let nowhere = "198.51.100.1:80".parse().expect("literal");
        assert!(smaller(nowhere).is_err());
    }
}
