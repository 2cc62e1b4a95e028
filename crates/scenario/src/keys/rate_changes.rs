//! `[[rate_changes]]`.

use super::{DAY, Key, Kind, REQUIRED};
use crate::scenario::Scenario;

pub(crate) static AT: Key = Key {
    name: "at",
    kind: Kind::Duration(0, DAY),
    example: "\"12 s\"",
    default: REQUIRED,
    meaning: "When, counted from the workload's first byte.",
    source: "",
};
pub(crate) static DOWNLINK: Key = Key {
    name: "downlink",
    kind: Kind::Rate(1, 1_000_000_000_000),
    example: "\"2 Mbit/s\"",
    default: "as before",
    meaning: "Rate from fixed side to mobile from then on.",
    source: "",
};
pub(crate) static UPLINK: Key = Key {
    name: "uplink",
    kind: Kind::Rate(1, 1_000_000_000_000),
    example: "\"1 Mbit/s\"",
    default: "as before",
    meaning: "Rate from mobile to fixed side from then on.",
    source: "",
};
pub(crate) static HOP: Key = Key {
    name: "hop",
    kind: Kind::Integer(0, Scenario::MAX_HOPS as u64),
    example: "1",
    default: "`0`",
    meaning: "Which link: 0 is `[link]`, 1 the first of `[[hops]]`, and so on.",
    source: "",
};
