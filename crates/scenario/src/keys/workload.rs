//! `[workload]`.

use super::{DAY, HOUR, Key, Kind, MB, MS, REQUIRED, SECOND, TB};
use crate::scenario::{Content, Direction, WorkloadKind};

pub(crate) static KIND: Key = Key {
    name: "kind",
    kind: Kind::Choice(WorkloadKind::NAMES),
    example: "\"bulk\"",
    default: REQUIRED,
    meaning: "What the two hosts do.",
    source: "",
};
pub(crate) static BYTES: Key = Key {
    name: "bytes",
    kind: Kind::Size(1, TB),
    example: "\"50 MB\"",
    default: "required by bulk",
    meaning: "bulk: how much is transferred.",
    source: "",
};
pub(crate) static DIRECTION: Key = Key {
    name: "direction",
    kind: Kind::Choice(Direction::NAMES),
    example: "\"upload\"",
    default: "`\"download\"`",
    meaning: "bulk: `download` is from the fixed host to the mobile, `upload` the other way.",
    source: "",
};
pub(crate) static CONTENT: Key = Key {
    name: "content",
    kind: Kind::Choice(Content::NAMES),
    example: "\"text\"",
    default: "`\"random\"`",
    meaning: "What is sent, also by `[[flows]]`: `random` does not compress, `text` is English, `binary` \
              compresses as programs do. It matters where payload is compressed.",
    source: "",
};
pub(crate) static INTERVAL: Key = Key {
    name: "interval",
    kind: Kind::Duration(MS, HOUR),
    example: "\"200 ms\"",
    default: "`\"200 ms\"`",
    meaning: "interactive: how often what the fixed host shows changes.",
    source: "Scott and Mapp, section 6.2.2",
};
pub(crate) static UPDATE: Key = Key {
    name: "update",
    kind: Kind::Size(1, MB),
    example: "\"64 B\"",
    default: "`\"64 B\"`",
    meaning: "interactive: size of an update.",
    source: "a dot of 4 by 4 pixels of 3 bytes with its RFB headers (RFC 6143, 7.6.1)",
};
pub(crate) static DURATION: Key = Key {
    name: "duration",
    kind: Kind::Duration(SECOND, DAY),
    example: "\"100 s\"",
    default: "`\"100 s\"`",
    meaning: "interactive: how long updates are counted. Not beyond `[run] deadline`.",
    source: "Scott and Mapp, section 6.2.2",
};
pub(crate) static REQUESTS: Key = Key {
    name: "requests",
    kind: Kind::Integer(1, 1_000_000),
    example: "100",
    default: "`100`",
    meaning: "request-response: how many exchanges, one after the other on one connection.",
    source: "assumed",
};
pub(crate) static REQUEST: Key = Key {
    name: "request",
    kind: Kind::Size(1, MB),
    example: "\"200 B\"",
    default: "interactive `\"10 B\"`, request-response `\"200 B\"`",
    meaning: "interactive, request-response: size of a request.",
    source: "a framebuffer update request (RFC 6143, 7.5.3); assumed",
};
pub(crate) static RESPONSE: Key = Key {
    name: "response",
    kind: Kind::Size(1, 1_000 * MB),
    example: "\"10 kB\"",
    default: "`\"10 kB\"`",
    meaning: "request-response: size of a response.",
    source: "assumed",
};
pub(crate) static THINK: Key = Key {
    name: "think",
    kind: Kind::Duration(0, HOUR),
    example: "\"1 s\"",
    default: "`\"0 s\"`",
    meaning: "request-response: how long the mobile waits before it asks again.",
    source: "",
};
pub(crate) static SERVER: Key = Key {
    name: "server",
    kind: Kind::Command,
    example: "\"python3 -m http.server 8080\"",
    default: "required by command",
    meaning: "command: runs on the fixed host until the client has ended.",
    source: "",
};
pub(crate) static CLIENT: Key = Key {
    name: "client",
    kind: Kind::Command,
    example: "\"curl -o out http://$OUTLAST_FIXED_HOST:8080/in\"",
    default: "required by command",
    meaning: "command: runs on the mobile once the server is ready; exit code 0 completes the \
              run.",
    source: "",
};
pub(crate) static READY: Key = Key {
    name: "ready",
    kind: Kind::Integer(1, 65_535),
    example: "8080",
    default: "required by command",
    meaning: "command: the TCP port on which the server listens when it is ready.",
    source: "",
};
pub(crate) static SENT: Key = Key {
    name: "sent",
    kind: Kind::File,
    example: "\"in\"",
    default: "no comparison",
    meaning: "command: the file that is sent; with `received`.",
    source: "",
};
pub(crate) static RECEIVED: Key = Key {
    name: "received",
    kind: Kind::File,
    example: "\"out\"",
    default: "no comparison",
    meaning: "command: the file that the client writes, removed before each run. The run is \
              intact if its hash is that of `sent`.",
    source: "",
};
