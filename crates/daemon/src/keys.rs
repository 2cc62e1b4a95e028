//! Every key of the configuration file: what it takes, by default what, and what it means.
//!
//! The reader takes its limits from here, and so do outlast.toml(5), `docs/configuration.md` and the
//! package's `config.toml`: they cannot differ.

use super::agents::settings::{AGENTS, AGENTS_TABLE};
use outlast_scenario::keys::{Key, Kind, Section};

const MILLISECOND: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MILLISECOND;
const DAY: u64 = 86_400 * SECOND;
const KIB: u64 = 1 << 10;
const GIB: u64 = 1 << 30;

/// What messages call the file.
pub(super) const FILE: &str = "configuration file";

pub(super) static TOP: Section = Section {
    name: "",
    is_list: false,
    keys: &[
        &INTERFACE,
        &MECHANISM,
        &DATA_PATH,
        &RATE,
        &SHARE_RATE,
        &COMPRESSION,
        &CONTROL,
        &CONTROL_OWNER,
        &CONTROL_GROUP,
        &CONTROL_MODE,
        &METRICS,
        &QUEUE,
        &MARK,
        &LIMITS_TABLE,
        &INDICATORS_TABLE,
        &SILENCE_TABLE,
        &DAMPING_TABLE,
        &AGENTS_TABLE,
        &LOG_TABLE,
    ],
};
pub(super) static LIMITS: Section = Section {
    name: "limits",
    is_list: false,
    keys: &[
        &FLOWS,
        &HELD_PER_FLOW,
        &HELD_IN_ALL,
        &OTHER_PACKETS,
        &OTHER_BYTES,
        &OTHER_AGE,
        &PEERS,
        &CLOSED_TIMEOUT,
        &OPENING_TIMEOUT,
        &ESTABLISHED_TIMEOUT,
    ],
};
pub(super) static INDICATORS: Section = Section {
    name: "indicators",
    is_list: false,
    keys: &[&CARRIER, &ADDRESS, &ROUTE, &NEIGHBOUR, &SILENCE],
};
pub(super) static SILENCES: Section = Section {
    name: "silence",
    is_list: false,
    keys: &[
        &SHORTEST_SILENCE,
        &PROBES_PER_SECOND,
        &FULL_PACE_FOR,
        &GIVEN_UP_AFTER,
    ],
};
pub(super) static DAMPING: Section = Section {
    name: "damping",
    is_list: false,
    keys: &[&DAMPING_ENABLED, &HALF_LIFE, &CUT_OFF, &REUSE, &HOLD_DOWN],
};
pub(super) static LOG: Section = Section {
    name: "log",
    is_list: false,
    keys: &[&LOG_LEVEL, &LOG_FORMAT],
};

/// Every table and all its keys, in the order of the reference.
pub(super) static SECTIONS: [&Section; 7] = [
    &TOP,
    &LIMITS,
    &INDICATORS,
    &SILENCES,
    &DAMPING,
    &AGENTS,
    &LOG,
];

/// The mechanisms that the daemon offers; a test compares them with those that it knows.
pub(super) const MECHANISMS: &[&str] = &[
    "none",
    "smart-link-1",
    "smart-link-2",
    "smart-link-3",
    "smart-link-4",
    "hold",
    "retransmission-cache",
    "zero-window-ack",
    "acknowledge-ahead",
    "m-tcp",
    "m-tcp-adaptive",
    "auto",
];

pub(super) static INTERFACE: Key = Key {
    name: "interface",
    kind: Kind::Text,
    example: "\"wwan0\"",
    default: "what `--interface` names",
    meaning: "The interface that leads to the disconnecting link.",
    source: "",
};
pub(super) static MECHANISM: Key = Key {
    name: "mechanism",
    kind: Kind::Choice(MECHANISMS),
    example: "\"hold\"",
    default: "`\"hold\"`",
    meaning: "What to do for the connections that cross. A supervisor takes `m-tcp-adaptive`, its \
              default, or `m-tcp`. `zero-window-ack` and `acknowledge-ahead` acknowledge what the \
              receiver has not, and may so lose data. A reload changes it for connections that \
              begin later.",
    source: "",
};
pub(super) static DATA_PATH: Key = Key {
    name: "data_path",
    kind: Kind::Choice(&["auto", "ebpf", "nfqueue"]),
    example: "\"auto\"",
    default: "`\"auto\"`",
    meaning: "How packets get to the gateway. `ebpf`: they stay in the kernel, and only those of a \
              link that is down go through user space. `nfqueue`: all of them go through user \
              space. `auto`: the former where kernel, permissions and mechanism allow it. Not \
              changed by a reload.",
    source: "",
};
pub(super) static RATE: Key = Key {
    name: "rate",
    kind: Kind::Rate(1, 1_000_000_000_000),
    example: "\"10 Mbit/s\"",
    default: "not known",
    meaning: "Rate of the link, towards it: what is kept goes out at this pace. Without it, at \
              what the link is seen to deliver. A rate that is [too high](hold.md#at-which-pace) does no harm.",
    source: "",
};
pub(super) static SHARE_RATE: Key = Key {
    name: "share_rate",
    kind: Kind::Switch,
    example: "true",
    default: "`false`",
    meaning: "Whether a supervisor [shares that rate out](m-tcp.md#sharing-the-links-rate): mobiles alike, and \
              a mobile's connections alike. Needs `rate`.",
    source: "",
};
pub(super) static COMPRESSION: Key = Key {
    name: "compression",
    kind: Kind::Choice(&["off", "offer", "accept"]),
    example: "\"offer\"",
    default: "`\"off\"`",
    meaning: "Whether TCP payload is [compressed](m-tcp.md#compression) on the link. `offer`: where hosts behind \
              the link accept it, for a supervisor host. `accept`: where an offer came, for the mobile. Every \
              packet then goes through user space. Not changed by a reload.",
    source: "",
};
pub(super) static CONTROL: Key = Key {
    name: "control",
    kind: Kind::File,
    example: "\"/run/outlast/wwan0.sock\"",
    default: "`\"/run/outlast/INTERFACE.sock\"`",
    meaning: "Where the control socket is. Not changed by a reload.",
    source: "",
};
pub(super) static CONTROL_OWNER: Key = Key {
    name: "control_owner",
    kind: Kind::Text,
    example: "\"root\"",
    default: "who runs the daemon",
    meaning: "The user, by name or number, who owns the control socket. Not changed by a reload.",
    source: "",
};
pub(super) static CONTROL_GROUP: Key = Key {
    name: "control_group",
    kind: Kind::Text,
    example: "\"netdev\"",
    default: "that of who runs the daemon",
    meaning: "The group, by name or number, that owns the control socket. Its members may notify \
              and reload, if `control_mode` lets them connect. Not changed by a reload.",
    source: "",
};
pub(super) static CONTROL_MODE: Key = Key {
    name: "control_mode",
    kind: Kind::Text,
    example: "\"0660\"",
    default: "`\"0600\"`; `\"0660\"` with `control_group`",
    meaning: "Who may connect to the control socket, in octal, as chmod(1) takes it; at most 0666. \
              Who is neither its owner nor in its group may ask for the status and nothing else. \
              Not changed by a reload.",
    source: "",
};
pub(super) static METRICS: Key = Key {
    name: "metrics",
    kind: Kind::Text,
    example: "\"127.0.0.1:9464\"",
    default: "off",
    meaning: "Where Prometheus gets its metrics by HTTP: an address with a port, or \
              `unix:/run/outlast/wwan0.metrics`. Anybody who reaches it may read them.",
    source: "",
};
pub(super) static QUEUE: Key = Key {
    name: "queue",
    kind: Kind::Integer(0, 65_535),
    example: "20300",
    default: "the first that is free from 20300 on",
    meaning: "Number of the NFQUEUE. Not changed by a reload.",
    source: "",
};
pub(super) static MARK: Key = Key {
    name: "mark",
    kind: Kind::Integer(1, 0xffff_ffff),
    example: "0x6f75746c",
    default: "`0x6f75746c`",
    meaning: "Mark of the packets that the gateway sends, for rules of your own. Not changed by a \
              reload.",
    source: "",
};

const fn table(name: &'static str, meaning: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Table,
        example: "",
        default: "as below",
        meaning,
        source: "",
    }
}
pub(super) static LIMITS_TABLE: Key = table("limits", "Hard caps of what is tracked and kept.");
pub(super) static INDICATORS_TABLE: Key = table("indicators", "What tells the link's state.");
pub(super) static SILENCE_TABLE: Key = table(
    "silence",
    "When silence is suspicious, and what finding out about it may cost.",
);
pub(super) static DAMPING_TABLE: Key = table(
    "damping",
    "What is made of indicators that flap (RFC 2439).",
);
pub(super) static LOG_TABLE: Key = table("log", "What is told on standard error, and how.");

pub(super) static FLOWS: Key = Key {
    name: "flows",
    kind: Kind::Integer(1, 16_777_216),
    example: "262144",
    default: "`16384`, less with less than 256 MiB of memory",
    meaning: "Connections that are tracked. When full, the least recently used one gives way: \
              closed ones first, then those that never opened. On the eBPF path it is \
              one of a few that are looked at, and a reload does not change this.",
    source: "",
};
pub(super) static HELD_PER_FLOW: Key = Key {
    name: "held_per_flow",
    kind: Kind::Size(2 * KIB, GIB),
    example: "\"16 MiB\"",
    default: "`\"16 MiB\"`, less with less than 512 MiB of memory",
    meaning: "Memory for what is kept of one connection. Past it, one packet is kept instead.",
    source: "",
};
pub(super) static HELD_IN_ALL: Key = Key {
    name: "held_in_all",
    kind: Kind::Size(2 * KIB, 1024 * GIB),
    example: "\"256 MiB\"",
    default: "`\"256 MiB\"`, less with less than 2 GiB of memory",
    meaning: "Memory for what is kept of all connections together.",
    source: "",
};
pub(super) static OTHER_PACKETS: Key = Key {
    name: "other_packets",
    kind: Kind::Integer(0, 1_000_000),
    example: "512",
    default: "`512`",
    meaning: "Packets of UDP and everything else that are kept, and as many handshakes; the oldest is dropped first.",
    source: "",
};
pub(super) static OTHER_BYTES: Key = Key {
    name: "other_bytes",
    kind: Kind::Size(0, GIB),
    example: "\"512 KiB\"",
    default: "`\"512 KiB\"`",
    meaning: "Memory for the packets that `other_packets` counts; the oldest is dropped first.",
    source: "",
};
pub(super) static OTHER_AGE: Key = Key {
    name: "other_age",
    kind: Kind::Duration(0, DAY),
    example: "\"250 ms\"",
    default: "`\"250 ms\"`",
    meaning: "How old UDP and everything else may be when the link is back; what is older is dropped. \
              Of each flow of QUIC, WireGuard, ESP, SCTP, DCCP and DNS that pauses the newest burst, up to 64 packets, \
              and 16 others wait for any time, and so does TCP.",
    source: "",
};
pub(super) static PEERS: Key = Key {
    name: "peers",
    kind: Kind::Integer(1, 1_000_000),
    example: "65536",
    default: "`65536`, less with less than 4 GiB of memory",
    meaning: "Peers that are down at once. Past it, what is said of another one is ignored.",
    source: "",
};
pub(super) static CLOSED_TIMEOUT: Key = Key {
    name: "closed_timeout",
    kind: Kind::Duration(SECOND, DAY),
    example: "\"2 min\"",
    default: "`\"2 min\"`",
    meaning: "How long a closed connection is remembered.",
    source: "",
};
pub(super) static OPENING_TIMEOUT: Key = Key {
    name: "opening_timeout",
    kind: Kind::Duration(SECOND, DAY),
    example: "\"4 min\"",
    default: "`\"4 min\"`",
    meaning: "How long a connection is remembered that was not seen in both directions.",
    source: "",
};
pub(super) static ESTABLISHED_TIMEOUT: Key = Key {
    name: "established_timeout",
    kind: Kind::Duration(60 * SECOND, 30 * DAY),
    example: "\"124 min\"",
    default: "`\"124 min\"`",
    meaning: "How long an idle connection is remembered.",
    source: "RFC 5382, REQ-5",
};

const fn indicator(name: &'static str, meaning: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Switch,
        example: "true",
        default: "`true`",
        meaning,
        source: "",
    }
}
pub(super) static CARRIER: Key = indicator(
    "carrier",
    "Whether the interface's operational state tells the link's.",
);
pub(super) static ADDRESS: Key = indicator(
    "address",
    "Whether the link is down while the interface has lost its addresses.",
);
pub(super) static NEIGHBOUR: Key = indicator(
    "neighbour",
    "Whether a peer is down that does not answer the kernel's questions.",
);

pub(super) static ROUTE: Key = indicator(
    "route",
    "Whether a router is down that no route through the interface leads to any more, and the link \
     while the interface has lost its routes.",
);
pub(super) static SILENCE: Key = indicator(
    "silence",
    "Whether a link is asked whether it is there that owes an answer, and was away when it gives \
     one.",
);

pub(super) static SHORTEST_SILENCE: Key = Key {
    name: "shortest",
    kind: Kind::Duration(MILLISECOND, 60 * SECOND),
    example: "\"200 ms\"",
    default: "`\"200 ms\"`",
    meaning: "No shorter silence is suspicious, however short the round trip is.",
    source: "the longest that hosts delay an acknowledgement",
};
pub(super) static PROBES_PER_SECOND: Key = Key {
    name: "probes_per_second",
    kind: Kind::Integer(0, 1_000),
    example: "50",
    default: "`50`",
    meaning: "Probes in one second at most, whatever the number of silent links. With 0 none goes, \
              and a link's return shows when a host sends.",
    source: "",
};
pub(super) static FULL_PACE_FOR: Key = Key {
    name: "full_pace_for",
    kind: Kind::Duration(SECOND, DAY),
    example: "\"2 min\"",
    default: "`\"2 min\"`",
    meaning: "How long a silent link is probed every 20 to 50 ms; then ever more seldom.",
    source: "",
};
pub(super) static GIVEN_UP_AFTER: Key = Key {
    name: "given_up_after",
    kind: Kind::Duration(SECOND, DAY),
    example: "\"1 h\"",
    default: "`\"1 h\"`",
    meaning: "How long a silent link is probed at all.",
    source: "",
};
pub(super) static DAMPING_ENABLED: Key = Key {
    name: "enabled",
    kind: Kind::Switch,
    example: "true",
    default: "`true`",
    meaning: "Whether indicators that flap are damped.",
    source: "",
};
pub(super) static HALF_LIFE: Key = Key {
    name: "half_life",
    kind: Kind::Duration(100 * MILLISECOND, 3_600 * SECOND),
    example: "\"2 s\"",
    default: "`\"2 s\"`",
    meaning: "In this time a link's penalty halves. Each change to down adds 1000.",
    source: "RFC 2439, section 4.2",
};
pub(super) static CUT_OFF: Key = Key {
    name: "cut_off",
    kind: Kind::Integer(1_000, 1_000_000),
    example: "4000",
    default: "`4000`",
    meaning: "From this penalty on, a link is down at once but up late.",
    source: "RFC 2439, section 4.2",
};
pub(super) static REUSE: Key = Key {
    name: "reuse",
    kind: Kind::Integer(1, 1_000_000),
    example: "2000",
    default: "`2000`",
    meaning: "A penalty that has fallen so far is forgiven; less than `cut_off`.",
    source: "RFC 2439, section 4.2",
};
pub(super) static HOLD_DOWN: Key = Key {
    name: "hold_down",
    kind: Kind::Duration(100 * MILLISECOND, 3_600 * SECOND),
    example: "\"4 s\"",
    default: "`\"4 s\"`",
    meaning: "No change is believed later than this. Who still flaps then is not believed any more, \
              and packets pass.",
    source: "RFC 2439, section 4.2",
};

pub(super) static LOG_LEVEL: Key = Key {
    name: "level",
    kind: Kind::Choice(&["error", "warn", "info", "debug", "trace"]),
    example: "\"info\"",
    default: "`\"info\"`",
    meaning: "What is logged: the link's changes at `info`, connections that resume at `debug`, \
              single packets at `trace`.",
    source: "",
};
pub(super) static LOG_FORMAT: Key = Key {
    name: "format",
    kind: Kind::Choice(&["text", "json"]),
    example: "\"text\"",
    default: "`\"text\"`",
    meaning: "Lines for people, or one JSON object each. Not changed by a reload.",
    source: "",
};
