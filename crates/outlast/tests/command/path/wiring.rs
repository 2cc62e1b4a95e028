//! What is done to the interfaces of a namespace.

use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, RouteSocket};

/// Does something in a namespace, with a conversation with its kernel.
pub(crate) fn inside(namespace: &Namespace, work: impl Fn(&mut RouteSocket) + Sync) {
    let work = || work(&mut RouteSocket::open().expect("netlink"));
    namespace.run(work).expect("enter");
}

/// Switches an interface on or off.
pub(crate) fn switch(route: &mut RouteSocket, name: &str, up: bool) {
    let index = route.interface(name).expect("made");
    let settings = InterfaceSettings {
        up: Some(up),
        ..InterfaceSettings::default()
    };
    route.configure(index, &settings).expect("configure");
}
