//! Many hosts at one server, all of which move at once.

use super::skip;
use outlast_lab::Cancel;
use outlast_linux::namespace::Namespace;
use outlast_linux::tun::Tun;
use outlast_trials::hip_cost::trial::{CostTrial, observe};
use std::path::Path;

/// Hosts; there are more where this variable says so.
const HOSTS: usize = 50;
const VARIABLE: &str = "OUTLAST_TEST_HIP_HOSTS";

#[expect(clippy::print_stderr, reason = "a test that fails shows it")]
fn show(line: &str) {
    eprintln!("{line}");
}

#[test]
fn a_crowd_joins_and_moves_and_so_does_its_server() {
    let namespace = match Namespace::new() {
        Ok(namespace) => namespace,
        Err(error) => return skip(&error.to_string()),
    };
    if let Err(error) = namespace.run(|| Tun::create("probe")).expect("enter") {
        return skip(&error.to_string());
    }
    let hosts = std::env::var(VARIABLE).ok();
    let hosts = hosts.map_or(HOSTS, |hosts| hosts.parse().expect("a number of hosts"));
    let cancel = Cancel::new().expect("a descriptor");
    let outlast = Path::new(env!("CARGO_BIN_EXE_outlast"));
    let observed = observe(&CostTrial::Crowd { hosts }, outlast, &cancel);
    let observed = observed.expect("it can be tried");
    assert_eq!(observed.steps.len(), 3);
    for step in &observed.steps {
        show(&format!("{step:?}"));
        assert_eq!(step.complete.count, hosts, "{step:?}");
        // A datagram has come out of the server's TUN device, and its answer has gone into it.
        assert_eq!(step.answered.count, hosts, "{step:?}");
    }
}
