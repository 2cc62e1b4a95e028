//! An agent that lacks something: it says what is missing, what does not work, and what to do, and does the rest.

use super::operating::{asked, status, status_when};
use super::{Agent, Hosts};
use crate::operating::is_superuser;
use crate::path::skip;
use crate::support::{Place, Said};
use outlast_linux::process;
use rustix::fd::AsFd;
use std::fs::File;
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

/// Without what hears peers it wakes its own connections all the same.
#[test]
fn an_agent_without_programs_at_cgroups_says_so_and_does_the_rest() {
    let Some(hosts) = Hosts::new() else { return };
    let place = Place::new();
    let Some(mut command) = without(&place, &hosts, "-net_admin,-sys_admin") else {
        return;
    };
    let log = place.path().join("agent.log");
    let file = File::create(&log).expect("a file in a directory of ours");
    let child = command.stderr(file).spawn().expect("it was built");
    let mut agent = Agent { child, log };
    agent.wait_for("the host agent begins");
    let told = status(&place);
    let lacking = &told["lacking"][0];
    assert_eq!(
        lacking["what"], "this process lacks CAP_NET_ADMIN",
        "{told:#}"
    );
    assert!(
        agent
            .said()
            .contains("neither asked to send again nor heard")
    );
    let text = asked(&place, &["status"]).out;
    assert!(
        text.contains("lacking       peers with the agent"),
        "{text}"
    );
    hosts.resume();
    status_when(&place, |status| status["returns"][0]["stalled"] == 1);
    assert_eq!(status(&place)["counters"]["errors"], 0);
}
