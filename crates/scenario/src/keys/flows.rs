//! `[[flows]]`, beside the keys that it has in common with `[workload]` and `[stack]`.

use super::{DAY, Key, Kind, REQUIRED};
use crate::scenario::WorkloadKind;

/// What a further connection can do: programs run once.
const KINDS: [&str; 3] = [
    WorkloadKind::Bulk.name(),
    WorkloadKind::Interactive.name(),
    WorkloadKind::RequestResponse.name(),
];

pub(crate) static KIND: Key = Key {
    name: "kind",
    kind: Kind::Choice(&KINDS),
    example: "\"bulk\"",
    default: REQUIRED,
    meaning: "What the two hosts do with the connection.",
    source: "",
};
pub(crate) static COUNT: Key = Key {
    name: "count",
    kind: Kind::Integer(1, 10_000),
    example: "4",
    default: "`1`",
    meaning: "How many such connections.",
    source: "",
};
pub(crate) static BEGIN: Key = Key {
    name: "begin",
    kind: Kind::Duration(0, DAY),
    example: "\"5 s\"",
    default: "`\"0 s\"`",
    meaning: "When the mobile opens it, counted from when it opens that of `[workload]`.",
    source: "",
};
