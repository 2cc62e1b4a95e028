//! What is done to the interfaces of a namespace.

use super::skip;
use outlast_linux::namespace::Namespace;
use outlast_linux::netlink::{InterfaceSettings, RouteSocket};
use outlast_linux::process;
use rustix::fd::AsFd;
use std::io;
use std::process::Command;

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

/// Gives the kernel of a namespace rules of nftables; `None`, with the reason, where that is not possible.
pub(crate) fn add_rules(namespace: &Namespace, rules: &str) -> Option<()> {
    let mut command = Command::new("nft");
    command.arg(rules);
    let network = namespace.as_fd().try_clone_to_owned();
    process::place(&mut command, None, network.expect("descriptor"));
    match command.output() {
        Ok(output) if output.status.success() => Some(()),
        Ok(output) => {
            skip(String::from_utf8_lossy(&output.stderr));
            None
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            skip("there is no nft");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The rules of nftables of a table in a namespace, with their counters.
pub(crate) fn list_rules(namespace: &Namespace, table: &str) -> String {
    let run = || {
        let list = ["list", "table"].into_iter().chain(table.split(' '));
        let done = Command::new("nft").args(list).output();
        let done = done.expect("it has added them");
        String::from_utf8_lossy(&done.stdout).into_owned()
    };
    namespace.run(run).expect("enter")
}

/// Runs `ip` with these arguments in a namespace.
pub(crate) fn ip(namespace: &Namespace, line: &str) {
    let run = || {
        let done = Command::new("ip").args(line.split(' ')).output();
        let done = done.expect("iproute2 is installed");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ip {line}: {said}");
    };
    namespace.run(run).expect("enter");
}
