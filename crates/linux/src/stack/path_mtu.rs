//! The MTU of the path to a peer, and the next smaller one.

use rustix::net::sockopt::{ip_mtu, ipv6_mtu};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// How much less than it was: full segments are too long then, and few bytes are lost.
const STEP: u32 = 2;
/// No path is said to take less: the smallest MTU of IPv6 (RFC 8200, section 5), which hardly any path
/// of IPv4 is below.
const SMALLEST: u32 = 1280;

/// The MTU of the path to `peer` by the route there.
///
/// # Errors
/// Where no route leads there.
pub(super) fn of_route(peer: SocketAddr) -> io::Result<u32> {
    let any: IpAddr = match peer {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    // Nothing is sent: the kernel looks the route up.
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(peer)?;
    match peer {
        SocketAddr::V4(_) => Ok(ip_mtu(&socket)?),
        SocketAddr::V6(_) => Ok(ipv6_mtu(&socket)?),
    }
}

/// An MTU that is less than `known`, by which a connection goes, where the route takes `of_route`;
/// `None` where it is as small as can be. What another connection has been told is enough for this one.
pub(super) fn smaller(of_route: u32, known: u32) -> Option<u32> {
    if of_route < known {
        return Some(of_route);
    }
    let mtu = of_route.checked_sub(STEP);
    mtu.filter(|mtu| *mtu >= SMALLEST)
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
        let of_route = of_route(peer).expect("a route");
        assert_eq!(smaller(of_route, 1_500), Some(1_498));
        assert_eq!(smaller(of_route, 1_504), Some(1_500));
        configure(&mut routes, 1_281);
        let of_route = super::of_route(peer).expect("a route");
        assert_eq!(smaller(of_route, 1_281), None);
        let nowhere = "198.51.100.1:80".parse().expect("literal");
        assert!(super::of_route(nowhere).is_err());
    }
}
