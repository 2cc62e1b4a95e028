//! The key `gateway`: both roles tell a gateway's control socket of registrations.

use super::{Daemon, HOME_ADDRESS, Hosts, PLACES, configure};
use crate::hip::{PATIENCE, ip, pace};
use crate::support::Place;
use outlast_linux::clock;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A control socket that says yes to everything, and what it has been told.
struct Told {
    path: PathBuf,
    requests: Arc<Mutex<Vec<Value>>>,
}

impl Told {
    fn listen(path: PathBuf) -> Self {
        let listener = UnixListener::bind(&path).expect("a socket in a directory of ours");
        let requests = Arc::<Mutex<Vec<Value>>>::default();
        let inbox = Arc::clone(&requests);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let mut client = client.expect("a client");
                let mut line = String::new();
                let mut reader = BufReader::new(client.try_clone().expect("a descriptor"));
                reader.read_line(&mut line).expect("a request");
                let request = serde_json::from_str(&line).expect("JSON");
                inbox.lock().expect("nobody panicked").push(request);
                client.write_all(b"{\"done\":{}}\n").expect("it waits");
            }
        });
        Self { path, requests }
    }

    fn requests(&self) -> Vec<Value> {
        self.requests.lock().expect("nobody panicked").clone()
    }

    /// Waits until it has been told so much, in this order.
    fn await_all(&self, expected: &[Value]) {
        let begun = clock::now();
        while self.requests().len() < expected.len() {
            let told = self.requests();
            assert!(clock::now() - begun < PATIENCE, "{told:?}");
            pace();
        }
        assert_eq!(self.requests(), expected);
    }
}

/// What is said of the mobile node: by name at the home agent, without one at itself.
fn notice(state: &str, peer: Option<&str>) -> Value {
    json!({ "notify": { "state": state, "peer": peer } })
}

/// Adds the key to a role's file.
pub(super) fn name_gateway(place: &Place, role: &str, table: &str, gateway: &std::path::Path) {
    let file = format!("{role}.toml");
    let text = std::fs::read_to_string(place.path().join(&file)).expect("ours");
    let key = format!("[{table}]\ngateway = {gateway:?}");
    place.file(&file, &text.replacen(&format!("[{table}]"), &key, 1));
}

#[test]
fn both_roles_tell_their_gateways_of_registrations() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "key", "hmac-sha-256");
    let of_agent = Told::listen(place.path().join("agent-hold.sock"));
    let of_mobile = Told::listen(place.path().join("mobile-hold.sock"));
    name_gateway(&place, "home-agent", "home_agent", &of_agent.path);
    name_gateway(&place, "mobile-node", "mobile_node", &of_mobile.path);
    let (_agent, mobile) = super::start(&place, &hosts);
    let home = HOME_ADDRESS.to_string();
    let up = notice("up", Some(&home));
    of_agent.await_all(std::slice::from_ref(&up));
    let here = notice("up", None);
    of_mobile.await_all(std::slice::from_ref(&here));
    ip(&hosts.mobile, &["address flush dev link0 scope global"]);
    mobile.await_lines("detached", 1);
    hosts.place(PLACES[1]);
    of_agent.await_all(&[up.clone(), up.clone()]);
    mobile.await_lines(" registered", 2);
    of_mobile.await_all(&[here.clone(), notice("down", None), here]);
    mobile.signal(Signal::TERM);
    of_agent.await_all(&[up.clone(), up, notice("down", Some(&home))]);
}

#[test]
fn a_gateway_that_does_not_listen_is_said_and_hinders_nothing() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    configure(&place, "key", "key", "hmac-sha-256");
    let nobody = place.path().join("nobody.sock");
    name_gateway(&place, "home-agent", "home_agent", &nobody);
    let agent = Daemon::start(&place, &hosts.agent, "home-agent");
    agent.await_lines("home agent begins", 1);
    let mobile = Daemon::start(&place, &hosts.mobile, "mobile-node");
    mobile.await_lines(" registered", 1);
    agent.await_lines("the gateway is not told", 1);
}
