//! `[stack]`.

use super::{Key, Kind};
use crate::scenario::{Congestion, IpVersion, Profile};

pub(crate) static PROFILE: Key = Key {
    name: "profile",
    kind: Kind::Choice(Profile::NAMES),
    example: "\"linux-2.4\"",
    default: "`\"linux-6\"`",
    meaning: "Whose TCP, in the simulator; the lab has the running kernel's.",
    source: "",
};
pub(crate) static RETRIES: Key = Key {
    name: "retries",
    kind: Kind::Integer(1, 255),
    example: "9",
    default: "the profile's; in the lab the kernel's",
    meaning: "Retransmissions of one segment before the connection is given up.",
    source: "",
};
pub(crate) static CONGESTION: Key = Key {
    name: "congestion",
    kind: Kind::Choice(Congestion::NAMES),
    example: "\"cubic\"",
    default: "the profile's; in the lab `\"cubic\"`",
    meaning: "Congestion control; in the lab set on each socket, in the simulator as far as \
              the profile has it.",
    source: "",
};
pub(crate) static SACK: Key = Key {
    name: "sack",
    kind: Kind::Switch,
    example: "true",
    default: "the profile's; in the lab `true`",
    meaning: "Selective acknowledgements (RFC 2018).",
    source: "",
};
pub(crate) static TIMESTAMPS: Key = Key {
    name: "timestamps",
    kind: Kind::Switch,
    example: "true",
    default: "the profile's; in the lab `true`",
    meaning: "Timestamps (RFC 7323).",
    source: "",
};
pub(crate) static IP: Key = Key {
    name: "ip",
    kind: Kind::Choice(IpVersion::NAMES),
    example: "\"ipv6\"",
    default: "`\"ipv4\"`",
    meaning: "Network protocol.",
    source: "",
};
