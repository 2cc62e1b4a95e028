//! `[agents]`, `[mobile_ip]`, `[[handoffs]]` and `[[crashes]]`.

use super::{DAY, HOUR, Key, Kind, MS, REQUIRED, SECOND};
use crate::roaming::Detection;
use crate::scenario::Scenario;

pub(crate) static DELAY: Key = Key {
    name: "delay",
    kind: Kind::Duration(0, 5 * SECOND),
    example: "\"20 ms\"",
    default: "`\"5 ms\"`",
    meaning: "How long a message from one gateway to another takes.",
    source: "assumed",
};
pub(crate) static LOST_AFTER: Key = Key {
    name: "lost_after",
    kind: Kind::Duration(5 * SECOND, 600 * SECOND),
    example: "\"30 s\"",
    default: "`\"30 s\"`",
    meaning: "How long a gateway may be away before the connections that depend on it are reset.",
    source: "that of `outlast run`",
};
pub(crate) static HANDOFF_AT: Key = Key {
    name: "at",
    kind: Kind::Duration(0, DAY),
    example: "\"10 s\"",
    default: REQUIRED,
    meaning: "When the mobile leaves the gateway that it is at, counted from the workload's first byte.",
    source: "",
};
pub(crate) static TO: Key = Key {
    name: "to",
    kind: Kind::Integer(1, Scenario::MAX_GATEWAYS as u64),
    example: "2",
    default: REQUIRED,
    meaning: "The gateway that it comes to: 1 is the one that it begins at.",
    source: "",
};
pub(crate) static GAP: Key = Key {
    name: "gap",
    kind: Kind::Duration(MS, HOUR),
    example: "\"500 ms\"",
    default: "`\"100 ms\"`",
    meaning: "How long it is at none.",
    source: "assumed",
};
pub(crate) static UPDATE: Key = Key {
    name: "update",
    kind: Kind::Duration(0, HOUR),
    example: "\"50 ms\"",
    default: "`\"0 s\"`",
    meaning: "How long after its arrival packets for it are sent to the new gateway (a mobility update); \
              until then they go to the old one.",
    source: "",
};
pub(crate) static FORWARD: Key = Key {
    name: "forward",
    kind: Kind::Switch,
    example: "true",
    default: "`false`",
    meaning: "Whether the old gateway is told by then, too, and sends on to the new one what it has \
              and what still comes.",
    source: "",
};
pub(crate) static CRASH_AT: Key = Key {
    name: "at",
    kind: Kind::Duration(0, DAY),
    example: "\"12 s\"",
    default: REQUIRED,
    meaning: "When its process dies, counted from the workload's first byte. Packets cross all the same.",
    source: "",
};
pub(crate) static GATEWAY: Key = Key {
    name: "gateway",
    kind: Kind::Integer(1, Scenario::MAX_GATEWAYS as u64),
    example: "1",
    default: REQUIRED,
    meaning: "Which one: 1 is the one that the mobile begins at.",
    source: "",
};
pub(crate) static BACK_AFTER: Key = Key {
    name: "back_after",
    kind: Kind::Duration(MS, DAY),
    example: "\"5 s\"",
    default: "never",
    meaning: "How long after that it is started again; with `[agents]`, it knows from its journal what \
              it had frozen.",
    source: "",
};
pub(crate) static DETECTION: Key = Key {
    name: "detection",
    kind: Kind::Choice(Detection::NAMES),
    example: "\"eager\"",
    default: "`\"lazy\"`",
    meaning: "When the mobile believes that it has moved, see above.",
    source: "RFC 5944, section 2.4.2.1",
};
pub(crate) static HOME: Key = Key {
    name: "home",
    kind: Kind::Integer(1, Scenario::MAX_GATEWAYS as u64),
    example: "1",
    default: "none",
    meaning: "The gateway at which the mobile is at home: it hears its home agent there, and needs no tunnel.",
    source: "",
};
pub(crate) static FOREIGN_AGENTS: Key = Key {
    name: "foreign_agents",
    kind: Kind::Switch,
    example: "false",
    default: "`true`",
    meaning: "Whether there is a foreign agent at each gateway away from home. If not, the mobile gets an \
              address of its own there, and the tunnel ends at the mobile.",
    source: "",
};
pub(crate) static ADDRESS_AFTER: Key = Key {
    name: "address_after",
    kind: Kind::Duration(0, 60 * SECOND),
    example: "\"300 ms\"",
    default: "`\"500 ms\"`",
    meaning: "How long after it came there the mobile has that address.",
    source: "assumed",
};
pub(crate) static ADVERTISEMENTS: Key = Key {
    name: "advertisements",
    kind: Kind::Duration(50 * MS, 60 * SECOND),
    example: "\"500 ms\"",
    default: "`\"1 s\"`",
    meaning: "Mean time between two advertisements of an agent. Each is true for three times as \
              long, in whole seconds.",
    source: "the thesis, section 4.2",
};
pub(crate) static REVERSE_TUNNEL: Key = Key {
    name: "reverse_tunnel",
    kind: Kind::Switch,
    example: "false",
    default: "`true`",
    meaning: "Whether what the mobile sends goes through the tunnel, too.",
    source: "the thesis, section 4.3",
};
pub(crate) static BACKBONE_DELAY: Key = Key {
    name: "delay",
    kind: Kind::Duration(0, 60 * SECOND),
    example: "\"20 ms\"",
    default: "`\"30 ms\"`",
    meaning: "How long a packet takes between home agent and a gateway away from home, one way.",
    source: "the thesis, section 4.3",
};
pub(crate) static BACKBONE_RATE: Key = Key {
    name: "rate",
    kind: Kind::Rate(1, 1_000_000_000_000),
    example: "\"10 Mbit/s\"",
    default: "`\"100 Mbit/s\"`",
    meaning: "The rate between them, each way.",
    source: "assumed",
};
pub(crate) static BACKBONE_LOSS: Key = Key {
    name: "loss",
    kind: Kind::Probability,
    example: "0.01",
    default: "`0.0`",
    meaning: "Probability that a packet between them is lost.",
    source: "",
};
