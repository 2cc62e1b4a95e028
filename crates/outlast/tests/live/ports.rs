//! The daemon of an interface whose packets another one takes: a bridge's port.
//!
//! Where this machine lacks what that needs, the test says so and ends.

use crate::path::wiring::{inside, switch};
use crate::path::{Daemon, LINK, Over, Path, until};
use crate::support::Place;

const BRIDGE: &str = "br-lan";

/// Makes the gateway's end of the link a port of a bridge, or takes it out of it.
fn put_into_bridge(path: &Path, is_port: bool) {
    inside(&path.gateway, |route| {
        let link = route.interface(LINK).expect("made");
        let outcome = match is_port {
            true => {
                let bridge = route.interface(BRIDGE).expect("made");
                route.attach(link, bridge)
            }
            false => route.detach(link),
        };
        outcome.expect("a port");
    });
}

#[test]
fn who_names_a_bridge_s_port_is_told_to_name_the_bridge() {
    let warning = format!("{LINK} is a port of {BRIDGE}, which takes every packet");
    for over in Over::BOTH {
        let place = Place::new();
        let Some(path) = Path::new() else { return };
        inside(&path.gateway, |route| {
            route.add_bridge(BRIDGE).expect("bridge");
            switch(route, BRIDGE, true);
        });
        let start = || Daemon::start_over(over, &place, &path.gateway, "hold");
        let Some(mut daemon) = start() else { return };
        assert!(daemon.status()["port_of"].is_null());
        put_into_bridge(&path, true);
        until("a warning", || daemon.has_said(&warning));
        assert_eq!(daemon.status()["port_of"], BRIDGE);
        put_into_bridge(&path, false);
        let is_free = |status: &serde_json::Value| status["port_of"].is_null();
        daemon.status_when("an interface of its own", is_free);
        daemon.stop();
        // And who starts there.
        put_into_bridge(&path, true);
        let Some(mut daemon) = start() else { return };
        until("a warning", || daemon.has_said(&warning));
        daemon.stop();
    }
}
