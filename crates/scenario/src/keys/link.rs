//! `[link]`, and what `[link.uplink]` and `[link.downlink]` may override.

use super::{HOUR, Key, Kind, REQUIRED, top};
use crate::scenario::{IN_FLIGHT, WHILE_DOWN_NAMES};

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
              Of those in the queue and the one being sent, `while_down` says so.",
    source: "",
};
pub(crate) static WHILE_DOWN: Key = Key {
    name: "while_down",
    kind: Kind::Choice(&WHILE_DOWN_NAMES),
    example: "\"queued\"",
    default: "`\"dropped\"`",
    meaning: "What becomes of packets in the queue when the link goes down, and of those that are \
              sent into it while it is down. `queued`: they wait in the queue, as in a modem that \
              keeps its buffer; the one being sent is sent again.",
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
