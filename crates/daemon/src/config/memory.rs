//! How much memory the gateway takes where the configuration file does not say: a share of the
//! machine's, so that a small router has some left.

use outlast_base::units::ByteCount;
use outlast_gateway::limits::Limits;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// Connections that are tracked on a large machine. The kernel's table of them is there from the start on, and is
/// counted as the daemon's own memory: 8 MB with these.
const MOST_FLOWS: u64 = 16_384;

/// Sizes for a machine.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Sizes {
    pub(crate) limits: Limits,
    /// What the kernel's part keeps copies in of what went towards the link last.
    pub(crate) recorder: ByteCount,
}

impl Sizes {
    /// Sizes for the machine, or the control group, in which this process is.
    pub(crate) fn of_this_machine() -> Self {
        Self::of(outlast_linux::memory::of_this_process())
    }

    /// Sizes for a machine with so much memory. `docs/configuration.md` has the shares.
    pub(crate) fn of(memory: ByteCount) -> Self {
        let part = |one_in: u64, least: u64, most: u64| (memory.0 / one_in).clamp(least, most);
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let held_in_all = part(8, 2 * MIB, 256 * MIB);
        Self {
            limits: Limits {
                flows: count(part(16 * KIB, 1024, MOST_FLOWS)),
                held_per_flow: ByteCount((held_in_all / 4).min(16 * MIB)),
                held_in_all: ByteCount(held_in_all),
                peers: count(part(64 * KIB, 1024, 65_536)),
                ..Limits::default()
            },
            recorder: ByteCount(part(64, 256 * KIB, 16 * MIB)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page;

    #[test]
    fn a_large_machine_has_the_plain_limits_and_a_small_table() {
        let large = Sizes::of(ByteCount(64 << 30));
        let plain = Limits {
            flows: 16_384,
            ..Limits::default()
        };
        assert_eq!(large.limits, plain);
        assert_eq!(large.recorder, ByteCount(16 * MIB));
    }

    /// What all of it may come to: 512 bytes in the kernel and as many again in user space for a
    /// connection, the recorder, and all that may be kept.
    fn in_all(sizes: &Sizes) -> u64 {
        let Limits {
            flows,
            held_in_all,
            other_bytes,
            ..
        } = sizes.limits;
        flows as u64 * 1024 + sizes.recorder.0 + held_in_all.0 + 2 * other_bytes.0
    }

    #[test]
    fn a_router_of_64_mib_keeps_three_quarters_for_itself() {
        for mib in [32, 48, 64, 128, 512, 1024, 4096] {
            let memory = mib * MIB;
            let sizes = Sizes::of(ByteCount(memory));
            assert!(in_all(&sizes) * 4 <= memory, "{mib} MiB: {sizes:?}");
        }
    }

    #[test]
    fn the_sizes_are_in_the_page() {
        let mib = |bytes: ByteCount| format!("{} MiB", bytes.0 as f64 / MIB as f64);
        let mut table =
            "\n| memory | `flows` | `held_per_flow` | `held_in_all` | `peers` | recorder |\n\
                         |---|---|---|---|---|---|\n"
                .to_owned();
        for memory in [64, 128, 256, 512, 1024, 2048, 4096] {
            let Sizes { limits, recorder } = Sizes::of(ByteCount(memory * MIB));
            table.push_str(&format!(
                "| {memory} MiB | {} | {} | {} | {} | {} |\n",
                limits.flows,
                mib(limits.held_per_flow),
                mib(limits.held_in_all),
                limits.peers,
                mib(recorder),
            ));
        }
        page::assert_part("docs/configuration.md", "memory", &format!("{table}\n"));
    }
}
