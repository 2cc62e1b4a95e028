//! `[stack]`.

use super::{Key, Kind, MS, SECOND};
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
pub(crate) static MAX_RTO: Key = Key {
    name: "max_rto",
    kind: Kind::Duration(SECOND, 120 * SECOND),
    example: "\"1 s\"",
    default: "the profile's; in the lab the kernel's, 120 s",
    meaning: "Longest retransmission timeout; in the lab the setting `net.ipv4.tcp_rto_max_ms` of \
              both hosts, which Linux has since 6.15. With a short one write `retries`, too: \
              Linux gives up after as long as that many backed-off timeouts take.",
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
pub(crate) static TIMER_PHASE: Key = Key {
    name: "timer_phase",
    kind: Kind::Duration(0, 4_095 * MS),
    example: "\"1.5 s\"",
    default: "in the simulator from `run.seed`; in the lab where it happens to be",
    meaning: "Where the hosts' timer wheels stand in their turn of 4.096 s when the first byte of \
              payload is sent, if the connection opens without a loss. Linux rounds a \
              retransmission timeout up to the wheel's next step, up to an eighth of it. The \
              lab waits for it, and must be root.",
    source: "",
};
pub(crate) static HOST_LATENCY: Key = Key {
    name: "host_latency",
    kind: Kind::Duration(0, 10 * MS),
    example: "\"150 us\"",
    default: "none",
    meaning: "What the hosts take for a packet, from its arrival to what the host sends for it, in \
              the simulator; it is added to the link's delay, each way. The lab's hosts take what \
              they take: some 0.1 to 0.3 ms.",
    source: "",
};
pub(crate) static RECEIVE_BUFFER: Key = Key {
    name: "receive_buffer",
    kind: Kind::Size(1_000, 1 << 30),
    example: "\"64 KiB\"",
    default: "the profile's",
    meaning: "How much a host offers to take before it is read, in the simulator; such a buffer does \
              not tune itself.",
    source: "",
};
pub(crate) static MOBILE: Key = Key {
    name: "mobile",
    kind: Kind::Table,
    example: "{ profile = \"linux-2.2\" }",
    default: "as `[stack]`",
    meaning: "What differs at the mobile.",
    source: "",
};
pub(crate) static FIXED: Key = Key {
    name: "fixed",
    kind: Kind::Table,
    example: "{ profile = \"aix-4.3\" }",
    default: "as `[stack]`",
    meaning: "What differs at the fixed host.",
    source: "",
};
pub(crate) static PROFILE_OF_HOST: Key = Key {
    name: "profile",
    kind: Kind::Choice(Profile::NAMES),
    example: "\"linux-2.2\"",
    default: "as `[stack]`",
    meaning: "As in `[stack]`, at this host.",
    source: "",
};
pub(crate) static MAX_RTO_OF_HOST: Key = Key {
    name: "max_rto",
    kind: Kind::Duration(SECOND, 120 * SECOND),
    example: "\"1 s\"",
    default: "as `[stack]`",
    meaning: "As in `[stack]`, at this host; in the lab, too.",
    source: "",
};
pub(crate) static RECEIVE_BUFFER_OF_HOST: Key = Key {
    name: "receive_buffer",
    kind: Kind::Size(1_000, 1 << 30),
    example: "\"64 KiB\"",
    default: "as `[stack]`",
    meaning: "As in `[stack]`, at this host.",
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
