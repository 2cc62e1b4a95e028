//! What else than one connection and one link a scenario file may ask for.

use crate::mechanism::Mechanism;
use crate::names::names;
use crate::scenario::{Direction, LinkSettings, Scenario, Stack, Workload};
use outlast_base::random::derived_seed;
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::LinkConfig;

/// Further connections, all alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Flow {
    /// How many; at least one.
    pub count: u32,
    /// When the mobile opens them, counted from when it opens that of `[workload]`.
    pub begin: Duration,
    /// What the hosts do with each; no commands.
    pub workload: Workload,
    /// The TCP of both hosts for it.
    pub stack: Stack,
}

/// One connection of a scenario: that of `[workload]`, or one of `[[flows]]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Connection<'a> {
    /// When the mobile opens it, counted from when it opens that of `[workload]`.
    pub begin: Duration,
    /// What the hosts do with it.
    pub workload: &'a Workload,
    /// The TCP of both hosts for it.
    pub stack: &'a Stack,
}

/// A source of datagrams that share a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// The link: zero is `[link]`, one the first of `[[hops]]`, and so on.
    pub hop: usize,
    /// Which way.
    pub direction: Direction,
    /// When packets are sent.
    pub pattern: Pattern,
    /// How much while it sends, counted from the IP header on.
    pub rate: BitRate,
    /// Size of each IP packet.
    pub packet: ByteCount,
    /// When it begins, counted from when the mobile opens the connection of `[workload]`.
    pub begin: Duration,
    /// When it ends, counted likewise; `None` is with the run.
    pub end: Option<Duration>,
}

/// When a source sends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Pattern {
    /// At equal intervals.
    Constant,
    /// At exponentially distributed intervals.
    Poisson,
    /// At equal intervals for a while, then not for a while, both exponentially distributed.
    OnOff {
        /// How long it sends, on average.
        on: Duration,
        /// How long it pauses, on average.
        off: Duration,
    },
}

names! {
    /// The kinds of pattern.
    pub enum PatternKind {
        /// [`Pattern::Constant`].
        Constant = "constant",
        /// [`Pattern::Poisson`].
        Poisson = "poisson",
        /// [`Pattern::OnOff`].
        OnOff = "on-off",
    }
}

/// A further link, behind `[link]` and the hops before it, towards the fixed host.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// The link; its `mtu` is that of `[link]`.
    pub link: LinkSettings,
    /// What a gateway at its end towards the fixed host does.
    pub fixed_end: Mechanism,
    /// What a gateway at its end towards the mobile does.
    pub mobile_end: Mechanism,
}

impl Scenario {
    /// The most `[[hops]]` of a file.
    pub const MAX_HOPS: usize = 32;
    /// The most connections of a file, that of `[workload]` among them.
    pub const MAX_FLOWS: u32 = 20_000;

    /// Link `number` of `[[hops]]`, counted from zero, in run `index`. Each has chances of its own.
    #[must_use]
    pub fn hop_config(&self, index: u32, number: usize) -> Option<LinkConfig> {
        let seed = derived_seed(self.run.seed_of(index), &format!("hop.{}", number + 1));
        Some(self.hops.get(number)?.link.config(seed))
    }

    /// Every connection, that of `[workload]` first, then `[[flows]]` in order.
    pub fn connections(&self) -> impl Iterator<Item = Connection<'_>> {
        let further = self.flows.iter().flat_map(|flow| {
            let connection = Connection {
                begin: flow.begin,
                workload: &flow.workload,
                stack: &flow.stack,
            };
            std::iter::repeat_n(connection, flow.count as usize)
        });
        let first = Connection {
            begin: Duration::ZERO,
            workload: &self.workload,
            stack: &self.stack,
        };
        std::iter::once(first).chain(further)
    }

    /// Whether there is more than one link with one connection on it.
    #[must_use]
    pub fn has_topology(&self) -> bool {
        !(self.flows.is_empty() && self.traffic.is_empty() && self.hops.is_empty())
    }
}
