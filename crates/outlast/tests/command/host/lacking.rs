//! An agent that lacks something: it says what is missing, what does not work, and what to do, and does the rest.

use super::Hosts;
use crate::operating::is_superuser;
use crate::path::skip;
use crate::support::{Place, Said};
use outlast_linux::process;
use rustix::fd::AsFd;
use std::process::Command;

/// `outlast run --role host` without these capabilities, as `setpriv` takes them; `None`, with the reason, where that
/// cannot be.
fn without(place: &Place, hosts: &Hosts, capabilities: &str) -> Option<Command> {
    let mut command = Command::new("setpriv");
    let is_there = command.arg("--version").output();
    if !is_superuser() || !is_there.is_ok_and(|output| output.status.success()) {
        skip("setpriv does not work here");
        return None;
    }
    let mut command = Command::new("setpriv");
    command
        .args([
            "--bounding-set",
            capabilities,
            env!("CARGO_BIN_EXE_outlast"),
        ])
        .args(["run", "--role", "host", "--control", "host.sock"])
        .current_dir(place.path())
        .env("NO_COLOR", "1");
    let network = hosts
        .mobile
        .as_fd()
        .try_clone_to_owned()
        .expect("a descriptor");
    process::place(&mut command, None, network);
    Some(command)
}

/// Without what lists and wakes connections there is nothing to go on with.
#[test]
fn an_agent_that_cannot_wake_connections_says_which_capability_is_missing() {
    let Some(hosts) = Hosts::new() else { return };
    for (capabilities, missing) in [
        (
            "-bpf,-perfmon,-sys_admin",
            "this process lacks CAP_BPF and CAP_PERFMON",
        ),
        ("-bpf,-sys_admin", "this process lacks CAP_BPF;"),
        ("-perfmon,-sys_admin", "this process lacks CAP_PERFMON;"),
        ("-net_raw", "this process lacks CAP_NET_RAW;"),
    ] {
        let place = Place::new();
        let Some(mut command) = without(&place, &hosts, capabilities) else {
            return;
        };
        let said = Said::of(command.output().expect("it was built"));
        said.refuses(
            3,
            &[
                missing,
                "neither list nor wake",
                "run as root",
                "outlast doctor",
            ],
        );
    }
}
