//! The daemon of an interface that is given another name, and its own again.
//!
//! Where this machine lacks what that needs, the test says so and ends.

use crate::path::{Daemon, LINK, MOBILE, Over, Path, Transfer, Version, skip};
use crate::support::Place;
use outlast_linux::netlink::RouteSocket;
use serde_json::Value;

const BYTES: usize = 4_000_000;
const OTHER: &str = "other0";

/// Gives an interface of the gateway's another name; whether the kernel does that.
fn rename(path: &Path, from: &str, to: &str) -> bool {
    let work = || {
        let mut route = RouteSocket::open().expect("netlink");
        let interface = route.interface(from).expect("it has this name");
        route.rename(interface, to)
    };
    let renamed = path.gateway.run(work).expect("enter");
    if let Err(error) = &renamed {
        skip(error);
    }
    renamed.is_ok()
}

fn is(state: &str) -> impl Fn(&Value) -> bool {
    move |status| status["link"]["state"] == state
}

#[test]
fn the_link_is_away_while_the_interface_has_another_name() {
    for over in Over::BOTH {
        let place = Place::new();
        let Some(path) = Path::new() else { return };
        let Some(daemon) = Daemon::start_over(over, &place, &path.gateway, "hold") else {
            return;
        };
        let programs = path.programs();
        let to = MOBILE.of(Version::V4);
        let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
        transfer.wait_for(BYTES / 6);
        if !rename(&path, LINK, OTHER) {
            return;
        }
        daemon.status_when("a link that is away", is("down"));
        assert_eq!(path.programs_at(OTHER), 0, "they are not wanted there");
        assert!(rename(&path, OTHER, LINK));
        // It has its addresses and its routes still, of which nobody tells again.
        daemon.status_when("a link that is back", is("up"));
        assert_eq!(path.programs(), programs);
        transfer.finish();
        daemon.stop();
    }
}

#[test]
fn an_interface_that_gets_its_name_late_is_known_with_all_that_it_has() {
    let place = Place::new();
    let Some(path) = Path::new() else { return };
    if !rename(&path, LINK, OTHER) {
        return;
    }
    let Some(daemon) = Daemon::start(&place, &path.gateway, "hold") else {
        return;
    };
    daemon.wait_until_asked();
    assert!(rename(&path, OTHER, LINK));
    daemon.status_when("a link that is there", is("up"));
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    let is_listed = |status: &Value| !status["flow_list"][0].is_null();
    let status = daemon.flows_when("the connection", is_listed);
    let peer = to.to_string();
    assert_eq!(status["flow_list"][0]["peer"], peer.as_str(), "{status:#}");
    transfer.finish();
    daemon.stop();
}
