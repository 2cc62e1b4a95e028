//! Every key of a scenario file: what it takes, by default what, and what it means.
//!
//! The reader takes its limits from here and `docs/scenario-file.md` its table, so the two cannot
//! differ.

pub(crate) mod flows;
pub(crate) mod hip;
pub(crate) mod hops;
pub(crate) mod link;
pub(crate) mod outages;
pub(crate) mod outlast;
pub(crate) mod rate_changes;
pub(crate) mod roaming;
pub(crate) mod run;
pub(crate) mod stack;
pub(crate) mod top;
pub(crate) mod traffic;
pub(crate) mod workload;

use crate::quantity::{DURATION, RATE, SIZE};

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// Its name, empty for the top of the file.
    pub name: &'static str,
    /// What may stand in it.
    pub keys: &'static [&'static Key],
    /// Whether there may be several of it, each under a header of its own.
    pub is_list: bool,
}

impl Section {
    /// Its header in the file.
    #[must_use]
    pub fn header(&self) -> String {
        match self.is_list {
            true => format!("[[{}]]", self.name),
            false => format!("[{}]", self.name),
        }
    }
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// An example of a value, as it is written in the file.
    pub example: &'static str,
    /// What holds without it, for the reference page.
    pub default: &'static str,
    /// What it means, for the reference page.
    pub meaning: &'static str,
    /// Where the default comes from, for the reference page; may be empty.
    pub source: &'static str,
}

/// What a key takes. Ranges are inclusive and in base units.
#[derive(Debug)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
    /// A duration, in nanoseconds.
    Duration(u64, u64),
    /// A duration, in nanoseconds, or `"off"`.
    DurationOrOff(u64, u64),
    /// A rate in bits per second, or `"unlimited"`.
    Rate(u64, u64),
    /// A rate in bits per second, or one of some names. A text for sweeps.
    RateOrChoice(&'static [&'static str], u64, u64),
    /// A size in bytes.
    Size(u64, u64),
    /// A whole number.
    Integer(u64, u64),
    /// A number from 0.0 to 1.0.
    Probability,
    /// `true` or `false`.
    Switch,
    /// One of some names.
    Choice(&'static [&'static str]),
    /// A path.
    File,
    /// A text for the shell, or a list of the program and its arguments.
    Command,
    /// A list of texts.
    Texts,
    /// A table of its own.
    Table,
    /// Any number of tables of its own.
    Tables,
}

impl Kind {
    /// What it takes, in words.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Duration(..) => "a duration",
            Self::DurationOrOff(..) => "a duration or \"off\"",
            Self::Rate(..) => "a rate",
            Self::RateOrChoice(..) => "a rate or a name",
            Self::Size(..) => "a size",
            Self::Integer(..) => "a whole number",
            Self::Probability => "a probability",
            Self::Switch => "true or false",
            Self::Choice(_) => "a name",
            Self::File => "a file's path",
            Self::Command => "a command line",
            Self::Texts => "a list of texts",
            Self::Table => "a table",
            Self::Tables => "a list of tables",
        }
    }

    /// What values are allowed, in words.
    #[must_use]
    pub fn range(&self) -> String {
        let between = |low: String, high: String| format!("{low} to {high}");
        match self {
            Self::Text | Self::File | Self::Command | Self::Texts => "not empty".to_owned(),
            Self::Duration(low, high) | Self::DurationOrOff(low, high) => {
                between(DURATION.format(*low), DURATION.format(*high))
            }
            Self::Rate(low, high) => between(RATE.format(*low), RATE.format(*high)),
            Self::RateOrChoice(names, low, high) => {
                let rates = between(RATE.format(*low), RATE.format(*high));
                format!("{}, or {rates}", names.join(", "))
            }
            Self::Size(low, high) => between(SIZE.format(*low), SIZE.format(*high)),
            Self::Integer(low, high) => between(low.to_string(), high.to_string()),
            Self::Probability => between("0.0".to_owned(), "1.0".to_owned()),
            Self::Switch => "true, false".to_owned(),
            Self::Choice(names) => names.join(", "),
            Self::Table | Self::Tables => String::new(),
        }
    }

    /// A value with its unit, such as `25 ms`, in base units; `None` if `text` is not a quantity of
    /// this kind. Whether it is in range is not looked at.
    #[must_use]
    pub fn quantity(&self, text: &str) -> Option<u64> {
        match self {
            Self::Duration(..) | Self::DurationOrOff(..) => DURATION.parse(text).ok(),
            Self::Rate(..) => RATE.parse(text).ok(),
            Self::Size(..) => SIZE.parse(text).ok(),
            _ => None,
        }
    }

    /// Writes `value` base units with a unit; whole numbers have none. `None` if this kind is not
    /// a quantity or a whole number.
    #[must_use]
    pub fn write(&self, value: u64) -> Option<String> {
        match self {
            Self::Duration(..) | Self::DurationOrOff(..) => Some(DURATION.format(value)),
            Self::Rate(..) => Some(RATE.format(value)),
            Self::Size(..) => Some(SIZE.format(value)),
            Self::Integer(..) => Some(value.to_string()),
            _ => None,
        }
    }

    /// Least and greatest value in base units, both allowed; `None` if this kind is not a quantity
    /// or a whole number.
    #[must_use]
    pub fn bounds(&self) -> Option<(u64, u64)> {
        match *self {
            Self::Duration(low, high)
            | Self::DurationOrOff(low, high)
            | Self::Rate(low, high)
            | Self::Size(low, high)
            | Self::Integer(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// The units in which it is written; empty if it has none.
    #[must_use]
    pub fn units(&self) -> String {
        match self {
            Self::Duration(..) | Self::DurationOrOff(..) => DURATION.list(),
            Self::Rate(..) => RATE.list(),
            Self::Size(..) => SIZE.list(),
            _ => String::new(),
        }
    }
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
const MB: u64 = 1_000_000;
const TB: u64 = 1_000_000 * MB;
const REQUIRED: &str = "required";

/// Every table and all its keys, in the order of the reference page.
///
/// `[hops.uplink]`, `[hops.downlink]` and `[hops.outages]` take what those of `[link]` do.
pub static SECTIONS: [&Section; 20] = [
    &TOP,
    &LINK,
    &UPLINK,
    &DOWNLINK,
    &OUTAGES,
    &WORKLOAD,
    &STACK,
    &STACK_MOBILE,
    &STACK_FIXED,
    &OUTLAST,
    &RUN,
    &FLOWS,
    &TRAFFIC,
    &HOPS,
    &RATE_CHANGES,
    &HANDOFFS,
    &HIP,
    &MOBILE_IP,
    &AGENTS,
    &CRASHES,
];

pub(crate) static TOP: Section = Section {
    name: "",
    is_list: false,
    keys: &[
        &top::NAME,
        &top::LINK,
        &top::WORKLOAD,
        &top::STACK,
        &top::OUTLAST,
        &top::RUN,
        &top::FLOWS,
        &top::TRAFFIC,
        &top::HOPS,
        &top::RATE_CHANGES,
        &top::HANDOFFS,
        &top::HIP,
        &top::MOBILE_IP,
        &top::AGENTS,
        &top::CRASHES,
    ],
};
pub(crate) static LINK: Section = Section {
    name: "link",
    is_list: false,
    keys: &[
        &link::RATE,
        &link::DELAY,
        &link::QUEUE,
        &link::LOSS,
        &link::DUPLICATE,
        &link::REORDER,
        &link::IN_FLIGHT_FATE,
        &link::WHILE_DOWN,
        &link::MTU,
        &link::UPLINK,
        &link::DOWNLINK,
        &link::OUTAGES,
    ],
};
const PIPE_KEYS: &[&Key] = &[
    &link::RATE,
    &link::DELAY,
    &link::QUEUE,
    &link::LOSS,
    &link::DUPLICATE,
    &link::REORDER,
];
pub(crate) static UPLINK: Section = Section {
    name: "link.uplink",
    is_list: false,
    keys: PIPE_KEYS,
};
pub(crate) static DOWNLINK: Section = Section {
    name: "link.downlink",
    is_list: false,
    keys: PIPE_KEYS,
};
pub(crate) static OUTAGES: Section = Section {
    name: "link.outages",
    is_list: false,
    keys: &[
        &outages::PROCESS,
        &outages::UP,
        &outages::DOWN,
        &outages::START,
        &outages::LENGTH,
        &outages::FILE,
        &outages::GAP,
    ],
};
pub(crate) static WORKLOAD: Section = Section {
    name: "workload",
    is_list: false,
    keys: &[
        &workload::KIND,
        &workload::BYTES,
        &workload::DIRECTION,
        &workload::CONTENT,
        &workload::INTERVAL,
        &workload::UPDATE,
        &workload::DURATION,
        &workload::REQUESTS,
        &workload::REQUEST,
        &workload::RESPONSE,
        &workload::THINK,
        &workload::SERVER,
        &workload::CLIENT,
        &workload::READY,
        &workload::SENT,
        &workload::RECEIVED,
    ],
};
pub(crate) static STACK: Section = Section {
    name: "stack",
    is_list: false,
    keys: &[
        &stack::PROFILE,
        &stack::RETRIES,
        &stack::MAX_RTO,
        &stack::CONGESTION,
        &stack::SACK,
        &stack::TIMESTAMPS,
        &stack::TIMER_PHASE,
        &stack::HOST_LATENCY,
        &stack::RECEIVE_BUFFER,
        &stack::IP,
        &stack::MOBILE,
        &stack::FIXED,
    ],
};
const HOST_KEYS: &[&Key] = &[
    &stack::PROFILE_OF_HOST,
    &stack::MAX_RTO_OF_HOST,
    &stack::RECEIVE_BUFFER_OF_HOST,
];
pub(crate) static STACK_MOBILE: Section = Section {
    name: "stack.mobile",
    is_list: false,
    keys: HOST_KEYS,
};
pub(crate) static STACK_FIXED: Section = Section {
    name: "stack.fixed",
    is_list: false,
    keys: HOST_KEYS,
};
pub(crate) static OUTLAST: Section = Section {
    name: "outlast",
    is_list: false,
    keys: &[
        &outlast::GATEWAY,
        &outlast::MOBILE,
        &outlast::FIXED,
        &outlast::HOME_AGENT,
        &outlast::INDICATORS,
        &outlast::RATE,
        &outlast::SHARE_RATE,
        &outlast::COMPRESSION,
        &outlast::USER_TIMEOUT,
    ],
};
pub(crate) static RUN: Section = Section {
    name: "run",
    is_list: false,
    keys: &[&run::REPEAT, &run::SEED, &run::DEADLINE],
};
pub(crate) static FLOWS: Section = Section {
    name: "flows",
    is_list: true,
    keys: &[
        &flows::KIND,
        &flows::COUNT,
        &flows::BEGIN,
        &workload::BYTES,
        &workload::DIRECTION,
        &workload::INTERVAL,
        &workload::UPDATE,
        &workload::DURATION,
        &workload::REQUESTS,
        &workload::REQUEST,
        &workload::RESPONSE,
        &workload::THINK,
        &stack::PROFILE,
        &stack::RETRIES,
        &stack::MAX_RTO,
        &stack::CONGESTION,
        &stack::SACK,
        &stack::TIMESTAMPS,
        &stack::RECEIVE_BUFFER,
    ],
};
pub(crate) static TRAFFIC: Section = Section {
    name: "traffic",
    is_list: true,
    keys: &[
        &traffic::PATTERN,
        &traffic::RATE,
        &traffic::PACKET,
        &traffic::DIRECTION,
        &traffic::ON,
        &traffic::OFF,
        &traffic::BEGIN,
        &traffic::END,
        &traffic::HOP,
    ],
};
pub(crate) static HOPS: Section = Section {
    name: "hops",
    is_list: true,
    keys: &[
        &link::RATE,
        &link::DELAY,
        &link::QUEUE,
        &link::LOSS,
        &link::DUPLICATE,
        &link::REORDER,
        &link::IN_FLIGHT_FATE,
        &link::WHILE_DOWN,
        &hops::FIXED_END,
        &hops::MOBILE_END,
        &hops::UPLINK,
        &hops::DOWNLINK,
        &link::OUTAGES,
    ],
};
pub(crate) static RATE_CHANGES: Section = Section {
    name: "rate_changes",
    is_list: true,
    keys: &[
        &rate_changes::AT,
        &rate_changes::DOWNLINK,
        &rate_changes::UPLINK,
        &rate_changes::HOP,
    ],
};
pub(crate) static HANDOFFS: Section = Section {
    name: "handoffs",
    is_list: true,
    keys: &[
        &roaming::HANDOFF_AT,
        &roaming::TO,
        &roaming::GAP,
        &roaming::UPDATE,
        &roaming::FORWARD,
    ],
};
pub(crate) static HIP: Section = Section {
    name: "hip",
    is_list: false,
    keys: &[&hip::CREDIT, &hip::ADDRESS_DELAY, &hip::WAITING],
};
pub(crate) static MOBILE_IP: Section = Section {
    name: "mobile_ip",
    is_list: false,
    keys: &[
        &roaming::DETECTION,
        &roaming::HOME,
        &roaming::FOREIGN_AGENTS,
        &roaming::ADDRESS_AFTER,
        &roaming::ADVERTISEMENTS,
        &roaming::REVERSE_TUNNEL,
        &roaming::BACKBONE_DELAY,
        &roaming::BACKBONE_RATE,
        &roaming::BACKBONE_LOSS,
    ],
};
pub(crate) static AGENTS: Section = Section {
    name: "agents",
    is_list: false,
    keys: &[&roaming::DELAY, &roaming::LOST_AFTER],
};
pub(crate) static CRASHES: Section = Section {
    name: "crashes",
    is_list: true,
    keys: &[&roaming::CRASH_AT, &roaming::GATEWAY, &roaming::BACK_AFTER],
};
pub(crate) static HOP_UPLINK: Section = Section {
    name: "hops.uplink",
    is_list: false,
    keys: PIPE_KEYS,
};
pub(crate) static HOP_DOWNLINK: Section = Section {
    name: "hops.downlink",
    is_list: false,
    keys: PIPE_KEYS,
};
pub(crate) static HOP_OUTAGES: Section = Section {
    name: "hops.outages",
    is_list: false,
    keys: OUTAGES.keys,
};

/// The key at a dotted path, such as `link.outages.up`. Tables of which there may be several are
/// numbered from one, as in `flows.2.bytes`.
#[must_use]
pub fn find(path: &str) -> Option<&'static Key> {
    let (table, name) = match path.rsplit_once('.') {
        Some(("", _)) => return None,
        Some(parts) => parts,
        None => ("", path),
    };
    let keys = section(table)?.keys;
    keys.iter().copied().find(|key| key.name == name)
}

/// The table at a dotted path, such as `link.outages` or, numbered from one, `hops.2.uplink`.
#[must_use]
pub fn section(path: &str) -> Option<&'static Section> {
    let named = |name: &str| {
        let below = [&HOP_UPLINK, &HOP_DOWNLINK, &HOP_OUTAGES];
        let mut all = SECTIONS.into_iter().chain(below);
        all.find(|section| section.name == name)
    };
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    if !named(first).is_some_and(|section| section.is_list) {
        return named(path);
    }
    let (number, rest) = rest.split_once('.').unwrap_or((rest, ""));
    let _ = number.parse::<usize>().ok().filter(|number| *number > 0)?;
    match rest {
        "" => named(first),
        rest => named(&format!("{first}.{rest}")),
    }
}
