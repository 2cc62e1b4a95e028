//! `[link.outages]`.

use super::{DAY, HOUR, Key, Kind, MS, REQUIRED};
use crate::scenario::ProcessKind;

pub(crate) static PROCESS: Key = Key {
    name: "process",
    kind: Kind::Choice(ProcessKind::NAMES),
    example: "\"uniform\"",
    default: REQUIRED,
    meaning: "How outages come and go.",
    source: "",
};
pub(crate) static UP: Key = Key {
    name: "up",
    kind: Kind::Duration(MS, DAY),
    example: "\"500 ms\"",
    default: "required by periodic, uniform, normal, exponential",
    meaning: "Connected time: exact for periodic, else the mean. The link begins connected.",
    source: "",
};
pub(crate) static DOWN: Key = Key {
    name: "down",
    kind: Kind::Duration(0, DAY),
    example: "\"4.5 s\"",
    default: "required by periodic, uniform, normal, exponential",
    meaning: "Disconnected time, likewise. Zero never disconnects.",
    source: "",
};
pub(crate) static START: Key = Key {
    name: "start",
    kind: Kind::Duration(0, DAY),
    example: "\"10 s\"",
    default: "required by single; periodic `up`",
    meaning: "When the first outage begins, counted from the workload's first byte.",
    source: "",
};
pub(crate) static LENGTH: Key = Key {
    name: "length",
    kind: Kind::Duration(MS, DAY),
    example: "\"26 s\"",
    default: "required by single",
    meaning: "How long the outage lasts.",
    source: "",
};
pub(crate) static FILE: Key = Key {
    name: "file",
    kind: Kind::File,
    example: "\"train.trace\"",
    default: "required by trace",
    meaning: "A connectivity log or a packet-delivery trace, see below.",
    source: "",
};
pub(crate) static GAP: Key = Key {
    name: "gap",
    kind: Kind::Duration(2 * MS, HOUR),
    example: "\"1 s\"",
    default: "`\"1 s\"`",
    meaning: "With a packet-delivery trace: a longer time without an opportunity is an outage.",
    source: "longer than the scheduling gaps of a cellular link, shorter than its losses of \
             coverage (assumed)",
};
