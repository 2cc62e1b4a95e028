//! What this machine offers, found by trying.
//!
//! Each probe really does what Outlast would do, inside a network namespace made for it, so that
//! the host's own network is never touched. What is missing comes with what would help.

mod bpf;
mod kernel;
mod namespaces;
mod netfilter;
mod rights;
mod sockets;
mod tcp;

use crate::namespace::Namespace;
pub use bpf::{VerifiedProgram, verified_programs};
pub use rights::of_this_process;

/// One capability: what it is, what needs it, and whether it is there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Probe {
    /// What was looked for.
    pub name: &'static str,
    /// Which parts of Outlast need it.
    pub needed_for: &'static str,
    /// Which commands cannot do without it.
    pub required_by: &'static [MainCommand],
    /// Whether it is there.
    pub result: ProbeResult,
}

/// A command that this machine may lack something for. The others need nothing of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MainCommand {
    /// `outlast lab`, and whatever else runs on this machine's kernel in namespaces.
    Lab,
    /// `outlast run`.
    Run,
}

impl MainCommand {
    /// All that there are.
    pub const ALL: [Self; 2] = [Self::Lab, Self::Run];

    /// As it is called.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Run => "run",
        }
    }
}

const LAB: &[MainCommand] = &[MainCommand::Lab];
const RUN: &[MainCommand] = &[MainCommand::Run];
const EVERYBODY: &[MainCommand] = &MainCommand::ALL;
/// Something else does instead, or only what a user asks for by name needs it.
const NOBODY: &[MainCommand] = &[];

/// Whether a capability is there.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum ProbeResult {
    /// It works.
    Available {
        /// What exactly was found.
        detail: String,
    },
    /// It does not.
    Missing {
        /// What is missing, in the kernel's words where it answered.
        what: String,
        /// What would help.
        remedy: String,
    },
}

/// A probe that runs inside a fresh network namespace.
struct Inside {
    name: &'static str,
    needed_for: &'static str,
    required_by: &'static [MainCommand],
    attempt: fn() -> ProbeResult,
}

const INSIDE: [Inside; 18] = [
    Inside {
        name: "TUN devices",
        needed_for: "demo, lab, live papers; run: the roles of HIP and Mobile IP",
        required_by: LAB,
        attempt: namespaces::tun,
    },
    Inside {
        name: "congestion control cubic",
        needed_for: "demo, lab, live papers",
        required_by: LAB,
        attempt: || tcp::congestion_control("cubic"),
    },
    Inside {
        name: "congestion control reno",
        needed_for: "lab with congestion = \"reno\"",
        required_by: NOBODY,
        attempt: || tcp::congestion_control("reno"),
    },
    Inside {
        name: "congestion control bbr",
        needed_for: "lab with congestion = \"bbr\"",
        required_by: NOBODY,
        attempt: || tcp::congestion_control("bbr"),
    },
    Inside {
        name: "sysctl tcp_rto_max_ms",
        needed_for: "comparison with a shorter maximal timeout",
        required_by: NOBODY,
        attempt: tcp::rto_max,
    },
    Inside {
        name: "kernel types (BTF)",
        needed_for: "run: the eBPF fast path, and the role host",
        required_by: NOBODY,
        attempt: kernel::types,
    },
    Inside {
        name: "eBPF in traffic control",
        needed_for: "run: the eBPF fast path",
        required_by: NOBODY,
        attempt: bpf::traffic_control,
    },
    Inside {
        name: "eBPF data path",
        needed_for: "run: the eBPF fast path",
        required_by: NOBODY,
        attempt: bpf::tracker,
    },
    Inside {
        name: "eBPF tunnels",
        needed_for: "run: the roles of Mobile IP with tunnels in the kernel",
        required_by: NOBODY,
        attempt: bpf::tunnels,
    },
    Inside {
        name: "eBPF at cgroups (sockops)",
        needed_for: "run: the role host with [host.user_timeout]",
        required_by: NOBODY,
        attempt: bpf::user_timeout,
    },
    Inside {
        name: "eBPF socket iterator",
        needed_for: "run: the role host",
        required_by: NOBODY,
        attempt: bpf::sockets,
    },
    Inside {
        name: "eBPF congestion control (struct_ops)",
        needed_for: "run: the role host's slow start on a new path",
        required_by: NOBODY,
        attempt: bpf::slow_start,
    },
    Inside {
        name: "eBPF tracepoints of TCP",
        needed_for: "run: the role host's silent peers",
        required_by: NOBODY,
        attempt: bpf::silent_peers,
    },
    Inside {
        name: "NFQUEUE",
        needed_for: "run: gateways without eBPF",
        required_by: RUN,
        attempt: netfilter::queue,
    },
    Inside {
        name: "packet sockets",
        needed_for: "run: gateways on a bridge, Mobile IP on a link",
        required_by: NOBODY,
        attempt: sockets::packet,
    },
    Inside {
        name: "raw sockets",
        needed_for: "run: the roles of HIP and Mobile IP",
        required_by: NOBODY,
        attempt: sockets::raw,
    },
    Inside {
        name: "AF_XDP",
        needed_for: "run: gateways at high rates",
        required_by: NOBODY,
        attempt: sockets::xdp,
    },
    Inside {
        name: "transparent sockets (TPROXY)",
        needed_for: "run: m-tcp and acknowledge-ahead",
        required_by: NOBODY,
        attempt: sockets::transparent,
    },
];

/// Tries everything, in the order in which Outlast would need it.
#[must_use]
pub fn probe_all() -> Vec<Probe> {
    let namespace = Namespace::new();
    let mut probes = vec![
        kernel::version(),
        namespaces::user(),
        namespaces::network(namespace.as_ref().map(|_| ())),
    ];
    for Inside {
        name,
        needed_for,
        required_by,
        attempt,
    } in INSIDE
    {
        let result = match &namespace {
            Ok(namespace) => namespace
                .run(attempt)
                .unwrap_or_else(|error| missing(describe(&error), "see \"network namespaces\"")),
            Err(_) => missing("cannot be tried without a network namespace", "see above"),
        };
        probes.push(Probe {
            name,
            needed_for,
            required_by,
            result,
        });
    }
    probes
}

impl ProbeResult {
    /// Whether the capability is there.
    #[must_use]
    pub fn is_available(&self) -> bool {
        matches!(self, Self::Available { .. })
    }
}

fn available(detail: impl Into<String>) -> ProbeResult {
    ProbeResult::Available {
        detail: detail.into(),
    }
}

fn missing(what: impl Into<String>, remedy: impl Into<String>) -> ProbeResult {
    ProbeResult::Missing {
        what: what.into(),
        remedy: remedy.into(),
    }
}

/// An error with its causes, in one line.
fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_answers_and_names_a_remedy_for_what_is_missing() {
        let probes = probe_all();
        assert_eq!(probes.len(), 21);
        for Probe { name, result, .. } in probes {
            match result {
                ProbeResult::Available { detail } => assert!(!detail.is_empty(), "{name}"),
                ProbeResult::Missing { what, remedy } => {
                    assert!(!what.is_empty() && !remedy.is_empty(), "{name}");
                }
            }
        }
    }

    #[test]
    fn every_kernel_has_reno_and_none_has_nonesuch() {
        if crate::testing::fresh_namespace().is_none() {
            return;
        }
        assert!(tcp::congestion_control("reno").is_available());
        let result = tcp::congestion_control("nonesuch");
        let ProbeResult::Missing { what, .. } = result else {
            panic!("{result:?}")
        };
        assert!(what.contains("nonesuch"), "{what}");
    }
}
