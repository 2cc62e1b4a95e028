//! What the calling process may do to the network that it is in, which no namespace of its own
//! shows.

use super::{Probe, available, missing};
use rustix::thread::{CapabilitySet, capabilities};

const NEEDED: [(CapabilitySet, &str); 2] = [
    (CapabilitySet::NET_ADMIN, "CAP_NET_ADMIN"),
    (CapabilitySet::NET_RAW, "CAP_NET_RAW"),
];

/// Whether the calling thread has what a gateway on a real interface needs. To be asked before it
/// enters a user namespace, where everybody has everything.
#[must_use]
pub fn of_this_process() -> Probe {
    let effective = capabilities(None).map(|sets| sets.effective);
    let result = match effective {
        Ok(effective) => judge(effective),
        Err(error) => missing(format!("cannot be told: {error}"), REMEDY),
    };
    Probe {
        name: "rights of this process",
        needed_for: "run: a gateway on a real interface",
        required_by: super::RUN,
        result,
    }
}

const REMEDY: &str = "run as root, or with CAP_NET_ADMIN and CAP_NET_RAW";

fn judge(effective: CapabilitySet) -> super::ProbeResult {
    let lacking: Vec<_> = NEEDED
        .iter()
        .filter(|(capability, _)| !effective.contains(*capability))
        .map(|(_, name)| *name)
        .collect();
    match &lacking[..] {
        [] => available("CAP_NET_ADMIN and CAP_NET_RAW"),
        lacking => missing(lacking.join(" and "), REMEDY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::capability::ProbeResult;

    #[test]
    fn what_is_lacking_is_named() {
        assert!(judge(CapabilitySet::all()).is_available());
        let lacking = |set| match judge(set) {
            ProbeResult::Missing { what, .. } => what,
            ProbeResult::Available { detail } => panic!("{detail}"),
        };
        assert_eq!(lacking(CapabilitySet::NET_ADMIN), "CAP_NET_RAW");
        assert_eq!(lacking(CapabilitySet::BPF), "CAP_NET_ADMIN and CAP_NET_RAW");
    }
}
