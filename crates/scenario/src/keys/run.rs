//! `[run]`.

use super::{DAY, Key, Kind, SECOND};

pub(crate) static REPEAT: Key = Key {
    name: "repeat",
    kind: Kind::Integer(1, 100_000),
    example: "10",
    default: "`1`",
    meaning: "How many runs.",
    source: "",
};
pub(crate) static SEED: Key = Key {
    name: "seed",
    kind: Kind::Integer(0, i64::MAX.unsigned_abs()),
    example: "1",
    default: "`1`",
    meaning: "Seed of the first run; each later one has the next number.",
    source: "",
};
pub(crate) static DEADLINE: Key = Key {
    name: "deadline",
    kind: Kind::Duration(SECOND, DAY),
    example: "\"300 s\"",
    default: "`\"300 s\"`",
    meaning: "When a run is given up, counted from the workload's first byte.",
    source: "",
};
