//! Fixtures of this crate's tests.

use outlast_linux::monitor::{Change, RouteMonitor};
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, Prefix, RouteSocket};
use outlast_linux::poller::{Interest, Poller, Token};
use std::net::IpAddr;
use std::process::Command;

/// A network namespace for a test; `None`, with the reason said, where there are none.
pub(crate) fn fresh_namespace() -> Option<Namespace> {
    Namespace::new()
        .inspect_err(|error| outlast_skip::skip(error))
        .ok()
}

/// A network namespace whose loopback device is up; `None`, with the reason said, where there are none.
pub(crate) fn namespace_with_loopback() -> Option<Namespace> {
    let namespace = fresh_namespace()?;
    let work = || {
        let mut routes = RouteSocket::open().expect("netlink");
        let loopback = routes.interface("lo").expect("every namespace has it");
        let up = InterfaceSettings {
            up: Some(true),
            ..InterfaceSettings::default()
        };
        routes.configure(loopback, &up).expect("up");
    };
    namespace.run(work).expect("enter");
    Some(namespace)
}

/// A network namespace with an address of IPv6 that the kernel takes packets for, or not.
pub(crate) struct LateAddress {
    namespace: Namespace,
}

impl LateAddress {
    const TEXT: &str = "2001:db8:1::7";

    /// `None`, with the reason said, where there are no namespaces.
    pub(crate) fn new() -> Option<Self> {
        fresh_namespace().map(|namespace| Self { namespace })
    }

    /// Calls `look` in the namespace while the kernel takes packets for the address, does not, and does again.
    pub(crate) fn through_its_states(&self, look: impl Fn(IpAddr, bool) + Sync) {
        let address: IpAddr = Self::TEXT.parse().expect("literal");
        let work = || {
            let mut monitor = RouteMonitor::open().expect("netlink");
            let mut routes = RouteSocket::open().expect("netlink");
            routes.add_veth("link0", "far0", None).expect("veth");
            let interface = routes.interface("link0").expect("made");
            let prefix = Prefix {
                address,
                length: 64,
            };
            let up = InterfaceSettings {
                up: Some(true),
                ..InterfaceSettings::default()
            };
            routes.configure(interface, &up).expect("up");
            routes.add_address(interface, prefix).expect("address");
            for (act, is_present) in [(None, true), (Some("del"), false), (Some("add"), true)] {
                if let Some(act) = act {
                    let mut ip = Command::new("ip");
                    ip.args(["-6", "route", act, "local", Self::TEXT]);
                    ip.args(["dev", "link0", "table", "local"]);
                    assert!(ip.status().expect("it runs").success(), "{act}");
                }
                let change = Change::Local {
                    address,
                    is_present,
                };
                await_change(&mut monitor, |told| *told == change);
                look(address, is_present);
            }
        };
        self.namespace.run(work).expect("enter");
    }
}

/// Waits until the kernel has told something of this kind.
pub(crate) fn await_change(
    monitor: &mut RouteMonitor,
    mut is_awaited: impl FnMut(&Change) -> bool,
) {
    let mut poller = Poller::new().expect("epoll");
    let added = poller.add(&*monitor, Token(0), Interest::Readable);
    added.expect("add");
    loop {
        match monitor.receive().expect("netlink") {
            Some(change) if is_awaited(&change) => return,
            Some(_) => {}
            None => assert_eq!(poller.wait().expect("wait").count(), 1),
        }
    }
}
