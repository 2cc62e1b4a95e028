//! Every key of a scenario file: what it takes, by default what, and what it means.
//!
//! The reader takes its limits from here and `docs/scenario-file.md` its table, so the two cannot
//! differ.

use crate::mechanism::Mechanism;
use crate::quantity::{DURATION, RATE, SIZE};
use crate::scenario::{Congestion, Direction, IpVersion, Profile, WorkloadKind};

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// Its name, empty for the top of the file.
    pub name: &'static str,
    /// What may stand in it.
    pub keys: &'static [&'static Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// An example of a value, as it is written in the file.
    pub example: &'static str,
    /// What holds without it, for the reference page.
    pub default: &'static str,
    /// What it means, for the reference page.
    pub meaning: &'static str,
    /// Where the default comes from, for the reference page; may be empty.
    pub source: &'static str,
}

/// What a key takes. Ranges are inclusive and in base units.
#[derive(Debug)]
pub enum Kind {
    /// Any text but an empty one.
    Text,
    /// A duration, in nanoseconds.
    Duration(u64, u64),
    /// The same, or `"off"`.
    DurationOrOff(u64, u64),
    /// A rate in bits per second, or `"unlimited"`.
    Rate(u64, u64),
    /// A size in bytes.
    Size(u64, u64),
    /// A whole number.
    Integer(u64, u64),
    /// A number from 0.0 to 1.0.
    Probability,
    /// `true` or `false`.
    Switch,
    /// One of some names.
    Choice(&'static [&'static str]),
    /// A path.
    File,
    /// A text for the shell, or a list of the program and its arguments.
    Command,
    /// A table of its own.
    Table,
}

impl Kind {
    /// What it takes, in words.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Duration(..) => "a duration",
            Self::DurationOrOff(..) => "a duration or \"off\"",
            Self::Rate(..) => "a rate",
            Self::Size(..) => "a size",
            Self::Integer(..) => "a whole number",
            Self::Probability => "a probability",
            Self::Switch => "true or false",
            Self::Choice(_) => "a name",
            Self::File => "a file's path",
            Self::Command => "a command line",
            Self::Table => "a table",
        }
    }

    /// What values are allowed, in words.
    #[must_use]
    pub fn range(&self) -> String {
        let between = |low: String, high: String| format!("{low} to {high}");
        match self {
            Self::Text | Self::File | Self::Command => "not empty".to_owned(),
            Self::Duration(low, high) | Self::DurationOrOff(low, high) => {
                between(DURATION.format(*low), DURATION.format(*high))
            }
            Self::Rate(low, high) => between(RATE.format(*low), RATE.format(*high)),
            Self::Size(low, high) => between(SIZE.format(*low), SIZE.format(*high)),
            Self::Integer(low, high) => between(low.to_string(), high.to_string()),
            Self::Probability => between("0.0".to_owned(), "1.0".to_owned()),
            Self::Switch => "true, false".to_owned(),
            Self::Choice(names) => names.join(", "),
            Self::Table => String::new(),
        }
    }

    /// The units in which it is written; empty if it has none.
    #[must_use]
    pub fn units(&self) -> String {
        match self {
            Self::Duration(..) | Self::DurationOrOff(..) => DURATION.list(),
            Self::Rate(..) => RATE.list(),
            Self::Size(..) => SIZE.list(),
            _ => String::new(),
        }
    }
}

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
const HOUR: u64 = 3_600 * SECOND;
const DAY: u64 = 24 * HOUR;
const MB: u64 = 1_000_000;
const TB: u64 = 1_000_000 * MB;
const REQUIRED: &str = "required";

/// The top of the file.
pub(crate) mod top {
    use super::{Key, Kind, REQUIRED};

    pub(crate) static NAME: Key = Key {
        name: "name",
        kind: Kind::Text,
        example: "\"bus tunnel\"",
        default: "the file's name without `.toml`",
        meaning: "What the scenario is called in reports.",
        source: "",
    };
    pub(crate) static LINK: Key =
        table("link", REQUIRED, "The link between mobile and fixed side.");
    pub(crate) static WORKLOAD: Key = table("workload", REQUIRED, "What is done over the link.");
    pub(crate) static STACK: Key = table("stack", "all defaults", "The TCP of both hosts.");
    pub(crate) static OUTLAST: Key =
        table("outlast", "all `\"none\"`", "What Outlast does, and where.");
    pub(crate) static RUN: Key = table("run", "all defaults", "How often, and for how long.");

    pub(super) const fn table(
        name: &'static str,
        default: &'static str,
        meaning: &'static str,
    ) -> Key {
        Key {
            name,
            kind: Kind::Table,
            example: "",
            default,
            meaning,
            source: "",
        }
    }
}

/// `[link]`, and what `[link.uplink]` and `[link.downlink]` may override.
pub(crate) mod link {
    use super::{HOUR, Key, Kind, REQUIRED, top};
    use crate::scenario::IN_FLIGHT;

    pub(crate) static RATE: Key = Key {
        name: "rate",
        kind: Kind::Rate(1, 1_000_000_000_000),
        example: "\"10 Mbit/s\"",
        default: REQUIRED,
        meaning: "Rate at which packets are sent, counted from the IP header on. `\"unlimited\"` \
                  sends at once and never queues. Not with a packet-delivery trace, which has its \
                  own.",
        source: "",
    };
    pub(crate) static DELAY: Key = Key {
        name: "delay",
        kind: Kind::Duration(0, HOUR),
        example: "\"25 ms\"",
        default: REQUIRED,
        meaning: "Propagation delay, one way.",
        source: "",
    };
    pub(crate) static QUEUE: Key = Key {
        name: "queue",
        kind: Kind::Integer(1, 1_000_000),
        example: "75",
        default: "rate × 2 × delay ÷ mtu, at least 20",
        meaning: "Packets that may wait in front of the link, drop-tail; the one being sent does \
                  not count.",
        source: "one bandwidth-delay product",
    };
    pub(crate) static LOSS: Key = Key {
        name: "loss",
        kind: Kind::Probability,
        example: "0.01",
        default: "`0.0`",
        meaning: "Probability that a packet is lost on its way while the link is up.",
        source: "",
    };
    pub(crate) static DUPLICATE: Key = Key {
        name: "duplicate",
        kind: Kind::Probability,
        example: "0.01",
        default: "`0.0`",
        meaning: "Probability that a packet arrives twice, the copy right behind it.",
        source: "",
    };
    pub(crate) static REORDER: Key = Key {
        name: "reorder",
        kind: Kind::Probability,
        example: "0.01",
        default: "`0.0`",
        meaning: "Probability that a packet is held back until three later ones have overtaken \
                  it, but no longer than 10 ms or four times its sending time, whichever is more.",
        source: "",
    };
    pub(crate) static IN_FLIGHT_FATE: Key = Key {
        name: "in_flight",
        kind: Kind::Choice(&IN_FLIGHT),
        example: "\"lost\"",
        default: "`\"delivered\"`",
        meaning: "What becomes of packets that have left the transmitter when the link goes down. \
                  Those in the queue and the one being sent are lost in either case.",
        source: "",
    };
    pub(crate) static MTU: Key = Key {
        name: "mtu",
        kind: Kind::Integer(576, 65_535),
        example: "1500",
        default: "`1500`",
        meaning: "Largest IP packet, in bytes. IPv6 needs at least 1280.",
        source: "Ethernet",
    };
    pub(crate) static OUTAGES: Key = top::table("outages", "always up", "When the link is down.");
    pub(crate) static UPLINK: Key = top::table(
        "uplink",
        "as `[link]`",
        "What differs from mobile to fixed side.",
    );
    pub(crate) static DOWNLINK: Key = top::table(
        "downlink",
        "as `[link]`",
        "What differs from fixed side to mobile.",
    );
}

/// `[link.outages]`.
pub(crate) mod outages {
    use super::{DAY, HOUR, Key, Kind, MS, REQUIRED};
    use crate::scenario::ProcessKind;

    pub(crate) static PROCESS: Key = Key {
        name: "process",
        kind: Kind::Choice(ProcessKind::NAMES),
        example: "\"uniform\"",
        default: REQUIRED,
        meaning: "How outages come and go.",
        source: "",
    };
    pub(crate) static UP: Key = Key {
        name: "up",
        kind: Kind::Duration(MS, DAY),
        example: "\"500 ms\"",
        default: "required by periodic, uniform, normal, exponential",
        meaning: "Connected time: exact for periodic, else the mean. The link begins connected.",
        source: "",
    };
    pub(crate) static DOWN: Key = Key {
        name: "down",
        kind: Kind::Duration(0, DAY),
        example: "\"4.5 s\"",
        default: "required by periodic, uniform, normal, exponential",
        meaning: "Disconnected time, likewise. Zero never disconnects.",
        source: "",
    };
    pub(crate) static START: Key = Key {
        name: "start",
        kind: Kind::Duration(0, DAY),
        example: "\"10 s\"",
        default: "required by single",
        meaning: "When the outage begins, counted from the workload's first byte.",
        source: "",
    };
    pub(crate) static LENGTH: Key = Key {
        name: "length",
        kind: Kind::Duration(MS, DAY),
        example: "\"26 s\"",
        default: "required by single",
        meaning: "How long the outage lasts.",
        source: "",
    };
    pub(crate) static FILE: Key = Key {
        name: "file",
        kind: Kind::File,
        example: "\"train.trace\"",
        default: "required by trace",
        meaning: "A connectivity log or a packet-delivery trace, see below.",
        source: "",
    };
    pub(crate) static GAP: Key = Key {
        name: "gap",
        kind: Kind::Duration(2 * MS, HOUR),
        example: "\"1 s\"",
        default: "`\"1 s\"`",
        meaning: "With a packet-delivery trace: a longer time without an opportunity is an outage.",
        source: "longer than the scheduling gaps of a cellular link, shorter than its losses of \
                 coverage (assumed)",
    };
}

/// `[workload]`.
pub(crate) mod workload {
    use super::{DAY, Direction, HOUR, Key, Kind, MB, MS, REQUIRED, SECOND, TB, WorkloadKind};

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
}

/// `[stack]`.
pub(crate) mod stack {
    use super::{Congestion, IpVersion, Key, Kind, Profile};

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
}

/// `[outlast]`.
pub(crate) mod outlast {
    use super::{Key, Kind, Mechanism, SECOND};

    static AT_GATEWAY: [&str; Mechanism::AT_GATEWAY.len()] =
        Mechanism::names(Mechanism::AT_GATEWAY);
    static AT_MOBILE: [&str; Mechanism::AT_MOBILE.len()] = Mechanism::names(Mechanism::AT_MOBILE);
    static AT_FIXED: [&str; Mechanism::AT_FIXED.len()] = Mechanism::names(Mechanism::AT_FIXED);

    pub(crate) static GATEWAY: Key = Key {
        name: "gateway",
        kind: Kind::Choice(&AT_GATEWAY),
        example: "\"hold\"",
        default: "`\"none\"`",
        meaning: "What a gateway at the fixed side of the link does.",
        source: "",
    };
    pub(crate) static MOBILE: Key = Key {
        name: "mobile",
        kind: Kind::Choice(&AT_MOBILE),
        example: "\"hold\"",
        default: "`\"none\"`",
        meaning: "What the mobile does.",
        source: "",
    };
    pub(crate) static FIXED: Key = Key {
        name: "fixed",
        kind: Kind::Choice(&AT_FIXED),
        example: "\"retransmission-trigger\"",
        default: "`\"none\"`",
        meaning: "What the fixed host does.",
        source: "",
    };
    pub(crate) static USER_TIMEOUT: Key = Key {
        name: "user_timeout",
        kind: Kind::DurationOrOff(SECOND, 32_767 * 60 * SECOND),
        example: "\"30 min\"",
        default: "`\"off\"`",
        meaning: "User timeout that both ends ask for: whole seconds up to 32767 s, whole minutes \
                  above.",
        source: "RFC 5482, section 2",
    };
}

/// `[run]`.
pub(crate) mod run {
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
}

/// Every table and all its keys, in the order of the reference page.
pub static SECTIONS: [&Section; 9] = [
    &TOP, &LINK, &UPLINK, &DOWNLINK, &OUTAGES, &WORKLOAD, &STACK, &OUTLAST, &RUN,
];

pub(crate) static TOP: Section = Section {
    name: "",
    keys: &[
        &top::NAME,
        &top::LINK,
        &top::WORKLOAD,
        &top::STACK,
        &top::OUTLAST,
        &top::RUN,
    ],
};
pub(crate) static LINK: Section = Section {
    name: "link",
    keys: &[
        &link::RATE,
        &link::DELAY,
        &link::QUEUE,
        &link::LOSS,
        &link::DUPLICATE,
        &link::REORDER,
        &link::IN_FLIGHT_FATE,
        &link::MTU,
        &link::UPLINK,
        &link::DOWNLINK,
        &link::OUTAGES,
    ],
};
const PIPE_KEYS: &[&Key] = &[
    &link::RATE,
    &link::DELAY,
    &link::QUEUE,
    &link::LOSS,
    &link::DUPLICATE,
    &link::REORDER,
];
pub(crate) static UPLINK: Section = Section {
    name: "link.uplink",
    keys: PIPE_KEYS,
};
pub(crate) static DOWNLINK: Section = Section {
    name: "link.downlink",
    keys: PIPE_KEYS,
};
pub(crate) static OUTAGES: Section = Section {
    name: "link.outages",
    keys: &[
        &outages::PROCESS,
        &outages::UP,
        &outages::DOWN,
        &outages::START,
        &outages::LENGTH,
        &outages::FILE,
        &outages::GAP,
    ],
};
pub(crate) static WORKLOAD: Section = Section {
    name: "workload",
    keys: &[
        &workload::KIND,
        &workload::BYTES,
        &workload::DIRECTION,
        &workload::INTERVAL,
        &workload::UPDATE,
        &workload::DURATION,
        &workload::REQUESTS,
        &workload::REQUEST,
        &workload::RESPONSE,
        &workload::THINK,
        &workload::SERVER,
        &workload::CLIENT,
        &workload::READY,
        &workload::SENT,
        &workload::RECEIVED,
    ],
};
pub(crate) static STACK: Section = Section {
    name: "stack",
    keys: &[
        &stack::PROFILE,
        &stack::RETRIES,
        &stack::CONGESTION,
        &stack::SACK,
        &stack::TIMESTAMPS,
        &stack::IP,
    ],
};
pub(crate) static OUTLAST: Section = Section {
    name: "outlast",
    keys: &[
        &outlast::GATEWAY,
        &outlast::MOBILE,
        &outlast::FIXED,
        &outlast::USER_TIMEOUT,
    ],
};
pub(crate) static RUN: Section = Section {
    name: "run",
    keys: &[&run::REPEAT, &run::SEED, &run::DEADLINE],
};
