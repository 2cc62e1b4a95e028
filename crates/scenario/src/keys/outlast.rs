//! `[outlast]`.

use super::{Key, Kind, SECOND};
use crate::mechanism::Mechanism;
use crate::scenario::Indicators;

pub(super) static AT_GATEWAY: [&str; Mechanism::AT_GATEWAY.len()] =
    Mechanism::names(Mechanism::AT_GATEWAY);
static AT_MOBILE: [&str; Mechanism::AT_MOBILE.len()] = Mechanism::names(Mechanism::AT_MOBILE);
static AT_FIXED: [&str; Mechanism::AT_FIXED.len()] = Mechanism::names(Mechanism::AT_FIXED);

pub(crate) static GATEWAY: Key = Key {
    name: "gateway",
    kind: Kind::Choice(&AT_GATEWAY),
    example: "\"hold\"",
    default: "`\"none\"`",
    meaning: "What a gateway at the fixed side of the link does; with `[[handoffs]]`, each of them.",
    source: "",
};
pub(crate) static MOBILE: Key = Key {
    name: "mobile",
    kind: Kind::Choice(&AT_MOBILE),
    example: "\"hold\"",
    default: "`\"none\"`",
    meaning: "What the mobile does. `m-tcp` is the mobile's half of M-TCP, an agent beside the mobile's TCP; a supervisor host \
              in front of that is `m-tcp-adaptive`.",
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
pub(crate) static HOME_AGENT: Key = Key {
    name: "home_agent",
    kind: Kind::Choice(&AT_GATEWAY),
    example: "\"retransmission-cache\"",
    default: "`\"none\"`",
    meaning: "What a gateway does where the ways to all gateways of `[[handoffs]]` meet. It hears of \
              mobility updates alone.",
    source: "",
};
pub(crate) static INDICATORS: Key = Key {
    name: "indicators",
    kind: Kind::Choice(Indicators::NAMES),
    example: "\"silence\"",
    default: "`\"link\"`",
    meaning: "How gateways learn of outages. `link`: the link tells them at once. `silence`: nobody \
              does, and packets vanish; they go by what is not answered, and by the first packet \
              afterwards.",
    source: "",
};
pub(crate) static RATE: Key = Key {
    name: "rate",
    kind: Kind::RateOrChoice(&["link", "unknown"], 1, 1_000_000_000_000),
    example: "\"unknown\"",
    default: "`\"link\"`",
    meaning: "What gateways are told of the rate of their links, as by `rate` in the configuration of \
              `outlast run`. `link`: the link's own. `unknown`: nothing, as without that key. A rate: \
              this one, whatever the link has.",
    source: "",
};
pub(crate) static SHARE_RATE: Key = Key {
    name: "share_rate",
    kind: Kind::Switch,
    example: "true",
    default: "`false`",
    meaning: "Whether `m-tcp` and `m-tcp-adaptive` share that rate out: mobiles alike, and a mobile's \
              connections alike.",
    source: "",
};
pub(crate) static COMPRESSION: Key = Key {
    name: "compression",
    kind: Kind::Switch,
    example: "true",
    default: "`false`",
    meaning: "Whether payload is compressed between the two ends of each link that has `m-tcp` or \
              `m-tcp-adaptive` at its fixed end.",
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
