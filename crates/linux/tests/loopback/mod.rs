//! The loopback device of a namespace.

use outlast_linux::netlink::{InterfaceSettings, RouteSocket};

/// Switches it on in this thread's namespace.
pub(crate) fn switch_on() {
    let mut route = RouteSocket::open().expect("netlink");
    let loopback = route.interface("lo").expect("lo");
    let up = InterfaceSettings {
        up: Some(true),
        ..InterfaceSettings::default()
    };
    route.configure(loopback, &up).expect("up");
}
