//! Every key of a scenario file: what it takes, by default what, and what it means.
//!
//! The reader takes its limits from here and `docs/scenario-file.md` its table, so the two cannot
//! differ.

pub(crate) mod link;
pub(crate) mod outages;
pub(crate) mod outlast;
pub(crate) mod run;
pub(crate) mod stack;
pub(crate) mod top;
pub(crate) mod workload;

use crate::quantity::{DURATION, RATE, SIZE};

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// Its name, empty for the top of the file.
    pub name: &'static str,
    /// What may stand in it.
    pub keys: &'static [&'static Key],
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
    /// The same, or `"off"`.
    DurationOrOff(u64, u64),
    /// A rate in bits per second, or `"unlimited"`.
    Rate(u64, u64),
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
    /// A table of its own.
    Table,
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
            Self::Size(..) => "a size",
            Self::Integer(..) => "a whole number",
            Self::Probability => "a probability",
            Self::Switch => "true or false",
            Self::Choice(_) => "a name",
            Self::File => "a file's path",
            Self::Command => "a command line",
            Self::Table => "a table",
        }
    }

    /// What values are allowed, in words.
    #[must_use]
    pub fn range(&self) -> String {
        let between = |low: String, high: String| format!("{low} to {high}");
        match self {
            Self::Text | Self::File | Self::Command => "not empty".to_owned(),
            Self::Duration(low, high) | Self::DurationOrOff(low, high) => {
                between(DURATION.format(*low), DURATION.format(*high))
            }
            Self::Rate(low, high) => between(RATE.format(*low), RATE.format(*high)),
            Self::Size(low, high) => between(SIZE.format(*low), SIZE.format(*high)),
            Self::Integer(low, high) => between(low.to_string(), high.to_string()),
            Self::Probability => between("0.0".to_owned(), "1.0".to_owned()),
            Self::Switch => "true, false".to_owned(),
            Self::Choice(names) => names.join(", "),
            Self::Table => String::new(),
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
pub static SECTIONS: [&Section; 11] = [
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
];

pub(crate) static TOP: Section = Section {
    name: "",
    keys: &[
        &top::NAME,
        &top::LINK,
        &top::WORKLOAD,
        &top::STACK,
        &top::OUTLAST,
        &top::RUN,
    ],
};
pub(crate) static LINK: Section = Section {
    name: "link",
    keys: &[
        &link::RATE,
        &link::DELAY,
        &link::QUEUE,
        &link::LOSS,
        &link::DUPLICATE,
        &link::REORDER,
        &link::IN_FLIGHT_FATE,
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
    keys: PIPE_KEYS,
};
pub(crate) static DOWNLINK: Section = Section {
    name: "link.downlink",
    keys: PIPE_KEYS,
};
pub(crate) static OUTAGES: Section = Section {
    name: "link.outages",
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
    keys: &[
        &workload::KIND,
        &workload::BYTES,
        &workload::DIRECTION,
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
    keys: &[
        &stack::PROFILE,
        &stack::RETRIES,
        &stack::CONGESTION,
        &stack::SACK,
        &stack::TIMESTAMPS,
        &stack::RECEIVE_BUFFER,
        &stack::IP,
        &stack::MOBILE,
        &stack::FIXED,
    ],
};
const HOST_KEYS: &[&Key] = &[&stack::PROFILE_OF_HOST, &stack::RECEIVE_BUFFER_OF_HOST];
pub(crate) static STACK_MOBILE: Section = Section {
    name: "stack.mobile",
    keys: HOST_KEYS,
};
pub(crate) static STACK_FIXED: Section = Section {
    name: "stack.fixed",
    keys: HOST_KEYS,
};
pub(crate) static OUTLAST: Section = Section {
    name: "outlast",
    keys: &[
        &outlast::GATEWAY,
        &outlast::MOBILE,
        &outlast::FIXED,
        &outlast::USER_TIMEOUT,
    ],
};
pub(crate) static RUN: Section = Section {
    name: "run",
    keys: &[&run::REPEAT, &run::SEED, &run::DEADLINE],
};
