//! The top of the file.

use super::{Key, Kind, REQUIRED};

pub(crate) static NAME: Key = Key {
    name: "name",
    kind: Kind::Text,
    example: "\"bus tunnel\"",
    default: "the file's name without `.toml`",
    meaning: "What the scenario is called in reports.",
    source: "",
};
pub(crate) static LINK: Key = table("link", REQUIRED, "The link between mobile and fixed side.");
pub(crate) static WORKLOAD: Key = table("workload", REQUIRED, "What is done over the link.");
pub(crate) static STACK: Key = table("stack", "all defaults", "The TCP of both hosts.");
pub(crate) static OUTLAST: Key =
    table("outlast", "all `\"none\"`", "What Outlast does, and where.");
pub(crate) static RUN: Key = table("run", "all defaults", "How often, and for how long.");
pub(crate) static FLOWS: Key = tables("flows", "Further connections over the same links.");
pub(crate) static TRAFFIC: Key = tables("traffic", "Datagrams of others that share a link.");
pub(crate) static HOPS: Key = tables(
    "hops",
    "Further links between `[link]` and the fixed host, in this order.",
);
pub(crate) static RATE_CHANGES: Key = tables("rate_changes", "When a link changes its rates.");
pub(crate) static HANDOFFS: Key = tables(
    "handoffs",
    "When the mobile goes to another gateway, in this order.",
);
pub(crate) static AGENTS: Key = table(
    "agents",
    "gateways do not",
    "Gateways tell each other what they have frozen.",
);
pub(crate) static HIP: Key = table(
    "hip",
    "the hosts do not",
    "Both hosts speak HIP, and connections outlast the mobile's address.",
);
pub(crate) static MOBILE_IP: Key = table(
    "mobile_ip",
    "`update` says when it is found",
    "Mobile IP finds the mobile after each hand-off.",
);
pub(crate) static CRASHES: Key = tables("crashes", "When gateways' processes die.");

const fn tables(name: &'static str, meaning: &'static str) -> Key {
    Key {
        kind: Kind::Tables,
        ..table(name, "none", meaning)
    }
}

pub(super) const fn table(name: &'static str, default: &'static str, meaning: &'static str) -> Key {
    Key {
        name,
        kind: Kind::Table,
        example: "",
        default,
        meaning,
        source: "",
    }
}
