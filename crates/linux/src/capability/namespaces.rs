//! Namespaces and TUN devices.

use super::{Probe, ProbeResult, available, describe, missing};
use crate::namespace::NamespaceError;
use crate::tun::Tun;
use crate::user_namespace;

pub(super) fn user() -> Probe {
    let result = match user_namespace::attempt() {
        Ok(()) => available("a child process could enter one"),
        Err(error) => missing(describe(&error), "running as root works without"),
    };
    Probe {
        name: "user namespaces",
        needed_for: "demo, lab and live papers as an ordinary user",
        required_by: super::NOBODY,
        result,
    }
}

pub(super) fn network(outcome: Result<(), &NamespaceError>) -> Probe {
    let result = match outcome {
        Ok(()) if user_namespace::is_privileged() => available("made one"),
        Ok(()) => available("made one inside a user namespace"),
        Err(error) => missing(
            describe(error),
            "run as root, or allow user namespaces to ordinary users",
        ),
    };
    Probe {
        name: "network namespaces",
        needed_for: "demo, lab, live papers",
        required_by: super::LAB,
        result,
    }
}

pub(super) fn tun() -> ProbeResult {
    match Tun::create("probe0") {
        Ok(_) => available("made one"),
        Err(error) => missing(describe(&error), "access to /dev/net/tun, read and write"),
    }
}
