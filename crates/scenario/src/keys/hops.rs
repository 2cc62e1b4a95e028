//! `[[hops]]`, beside the keys that it has in common with `[link]`.

use super::{Key, Kind, outlast, top};

pub(crate) static FIXED_END: Key = Key {
    name: "fixed_end",
    kind: Kind::Choice(&outlast::AT_GATEWAY),
    example: "\"hold\"",
    default: "`\"none\"`",
    meaning: "What a gateway at the link's end towards the fixed host does.",
    source: "",
};
pub(crate) static MOBILE_END: Key = Key {
    name: "mobile_end",
    kind: Kind::Choice(&outlast::AT_GATEWAY),
    example: "\"hold\"",
    default: "`\"none\"`",
    meaning: "What a gateway at the link's end towards the mobile does.",
    source: "",
};
pub(crate) static UPLINK: Key = top::table(
    "uplink",
    "as `[[hops]]`",
    "What differs from mobile to fixed side.",
);
pub(crate) static DOWNLINK: Key = top::table(
    "downlink",
    "as `[[hops]]`",
    "What differs from fixed side to mobile.",
);
