//! A host whose only link is a TUN device.

use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, Prefix, RouteSocket};
use outlast_linux::sysctl;

/// Addresses of host 0 and 1 in a network of 24 bits.
pub(crate) const V4: [&str; 2] = ["192.0.2.1", "192.0.2.2"];
/// Addresses of host 0 and 1 in a network of 64 bits.
pub(crate) const V6: [&str; 2] = ["2001:db8::1", "2001:db8::2"];

/// Sets up `link0`, which is there, as the link of host 0 or 1.
pub(crate) fn set_up(namespace: &Namespace, number: usize) {
    let set_up = || {
        sysctl::write("net.ipv6.conf.link0.addr_gen_mode", "1").expect("sysctl");
        let mut route = RouteSocket::open().expect("netlink");
        let link = route.interface("link0").expect("the caller made it");
        let settings = InterfaceSettings {
            up: Some(true),
            multicast: Some(false),
            mtu: Some(1400),
            queue_len: Some(2000),
        };
        route.configure(link, &settings).expect("configure");
        for (address, length) in [(V4[number], 24), (V6[number], 64)] {
            let address = address.parse().expect("literal");
            route
                .add_address(link, Prefix { address, length })
                .expect("address");
            route.await_address(address).expect("in use");
        }
    };
    namespace.run(set_up).expect("enter");
}
