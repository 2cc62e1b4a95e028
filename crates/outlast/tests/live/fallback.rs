//! The demo on a machine that has no lab: from the simulator, and said plainly.
//!
//! The machine's lack is real: the command runs where the kernel refuses what a lab needs.

use crate::support::{Place, Said};
use outlast_skip::skip;
use serde_json::Value;
use std::process::Command;

/// A process without capabilities in a user namespace that may have no further ones.
const NO_NAMESPACES: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
    exec setpriv --bounding-set=-all --inh-caps=-all --no-new-privs \"$@\"";
/// A process with all powers over its own namespaces, but something else in place of the TUN driver.
const NO_TUN: &str = "mount --bind /dev/null /dev/net/tun && exec \"$@\"";

/// `outlast` with `arguments` after `restrict`, a shell's commands in a user namespace. `None`, and
/// the test is to return, where even that cannot be had.
fn restricted(place: &Place, restrict: &str, arguments: &[&str]) -> Option<Said> {
    let outlast = place.command(arguments);
    let below = |script: &str| {
        let mut command = Command::new("unshare");
        command
            .args([
                "--user",
                "--map-root-user",
                "--mount",
                "sh",
                "-c",
                script,
                "sh",
            ])
            .current_dir(place.path());
        command
    };
    let probe = below(restrict).arg("true").output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        skip("no user namespace to take the lab away in (or no unshare, mount, setpriv)");
        return None;
    }
    let mut command = below(restrict);
    command.arg(outlast.get_program()).args(outlast.get_args());
    for (name, value) in outlast.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(Said::of(command.output().expect("unshare was there")))
}

#[test]
fn the_demo_runs_in_the_simulator_where_there_is_no_lab() {
    for (restrict, missing) in [(NO_NAMESPACES, "user namespaces"), (NO_TUN, "TUN device")] {
        let place = Place::new();
        let Some(said) = restricted(&place, restrict, &["demo", "--json"]) else {
            return;
        };
        assert_eq!(said.code, Some(0), "{said:?}");
        // Line breaks depend on the width of the terminal.
        let told = said.err.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            told.contains("cannot run the demo on its own kernel"),
            "{told}"
        );
        assert!(told.contains(missing), "{told}");
        assert!(told.contains("in the simulator instead"), "{told}");
        let document: Value = serde_json::from_str(&said.out).expect("one JSON document");
        let runs = [0, 1].map(|run| &document["demo"][run]["runs"][0]);
        for run in runs {
            assert_eq!(run["world"], "sim");
            assert_eq!(run["kernel"], Value::Null);
        }
        let [plain, helped] = runs;
        assert_eq!(plain["completed"], false, "{plain:#}");
        assert_eq!(helped["completed"], true, "{helped:#}");
        let report = place.path().join("outlast-report/demo.html");
        let page = std::fs::read_to_string(report).expect("the report page");
        assert!(page.contains("simulated in virtual time"));
        assert!(page.matches("<figure").count() >= 2, "a diagram for each");
    }
}

#[test]
fn a_lab_that_was_asked_for_is_not_replaced() {
    let place = Place::new();
    place.file(
        "tunnel.toml",
        "[link]\nrate = \"4 Mbit/s\"\ndelay = \"20 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n",
    );
    if let Some(said) = restricted(&place, NO_NAMESPACES, &["lab", "tunnel.toml"]) {
        said.refuses(3, &["user namespaces"]);
    }
}
