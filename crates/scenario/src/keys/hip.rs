//! `[hip]`.

use super::{HOUR, Key, Kind};

pub(crate) static CREDIT: Key = Key {
    name: "credit",
    kind: Kind::Switch,
    example: "false",
    default: "`true`",
    meaning: "Whether data goes to an address that is not verified yet, as much as came from the peer.",
    source: "RFC 8046, section 5.6",
};
pub(crate) static ADDRESS_DELAY: Key = Key {
    name: "address_delay",
    kind: Kind::Duration(0, HOUR),
    example: "\"300 ms\"",
    default: "`\"0 s\"`",
    meaning: "How long after its link is back the mobile has its new address.",
    source: "",
};
pub(crate) static WAITING: Key = Key {
    name: "waiting",
    kind: Kind::Integer(0, 4_096),
    example: "0",
    default: "`64`",
    meaning: "Packets that wait at each host while it has no path to the other; the oldest make room.",
    source: "that of `outlast run`",
};
