//! `[[traffic]]`.

use super::{DAY, HOUR, Key, Kind, MS, REQUIRED};
use crate::scenario::{Direction, Scenario};
use crate::topology::PatternKind;

pub(crate) static PATTERN: Key = Key {
    name: "pattern",
    kind: Kind::Choice(PatternKind::NAMES),
    example: "\"poisson\"",
    default: REQUIRED,
    meaning: "When packets are sent, see above.",
    source: "",
};
pub(crate) static RATE: Key = Key {
    name: "rate",
    kind: Kind::Rate(1, 1_000_000_000_000),
    example: "\"2 Mbit/s\"",
    default: REQUIRED,
    meaning: "How much, counted from the IP header on; for on-off while it is on.",
    source: "",
};
pub(crate) static PACKET: Key = Key {
    name: "packet",
    kind: Kind::Size(48, 65_535),
    example: "\"1 kB\"",
    default: "`[link] mtu`",
    meaning: "Size of each IP packet; not more than `[link] mtu`.",
    source: "",
};
pub(crate) static DIRECTION: Key = Key {
    name: "direction",
    kind: Kind::Choice(Direction::NAMES),
    example: "\"upload\"",
    default: "`\"download\"`",
    meaning: "`download` is towards the mobile, `upload` towards the fixed host.",
    source: "",
};
pub(crate) static ON: Key = Key {
    name: "on",
    kind: Kind::Duration(MS, HOUR),
    example: "\"500 ms\"",
    default: "required by on-off",
    meaning: "on-off: how long it sends, on average.",
    source: "",
};
pub(crate) static OFF: Key = Key {
    name: "off",
    kind: Kind::Duration(MS, HOUR),
    example: "\"500 ms\"",
    default: "required by on-off",
    meaning: "on-off: how long it pauses, on average.",
    source: "",
};
pub(crate) static BEGIN: Key = Key {
    name: "begin",
    kind: Kind::Duration(0, DAY),
    example: "\"5 s\"",
    default: "`\"0 s\"`",
    meaning: "When it begins, counted from when the mobile opens the connection of `[workload]`.",
    source: "",
};
pub(crate) static END: Key = Key {
    name: "end",
    kind: Kind::Duration(MS, DAY),
    example: "\"20 s\"",
    default: "with the run",
    meaning: "When it ends, counted likewise.",
    source: "",
};
pub(crate) static HOP: Key = Key {
    name: "hop",
    kind: Kind::Integer(0, Scenario::MAX_HOPS as u64),
    example: "1",
    default: "`0`",
    meaning: "Which link it crosses: 0 is `[link]`, 1 the first of `[[hops]]`, and so on.",
    source: "",
};
