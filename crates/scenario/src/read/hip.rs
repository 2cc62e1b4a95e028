//! `[hip]`.

use super::duration;
use crate::hip::Hip;
use crate::keys::hip::{ADDRESS_DELAY, CREDIT, WAITING};
use crate::keys::{self, Key};
use crate::mechanism::Mechanism;
use crate::reader::Reader;
use crate::scenario::{Outlast, Scenario};

const DEFAULT_WAITING: u64 = 64;

pub(super) fn hip(top: &Reader<'_>) -> Option<Hip> {
    let reader = top.table(&keys::top::HIP, &keys::HIP);
    let waiting = reader.integer(&WAITING).unwrap_or(DEFAULT_WAITING);
    let hip = Hip {
        credit: reader.switch(&CREDIT).unwrap_or(true),
        address_delay: duration(&reader, &ADDRESS_DELAY).unwrap_or_default(),
        waiting: usize::try_from(waiting).expect("the key's range fits"),
    };
    reader.is_present().then_some(hip)
}

/// Notes what cannot be beside HIP.
pub(super) fn settle(top: &Reader<'_>, outlast: &Outlast, of_outlast: &Reader<'_>) {
    if !top.has(&keys::top::HIP) {
        return;
    }
    let remedy = "keep one of the two tables: both say where the mobile is found";
    top.forbid(&keys::top::MOBILE_IP, "`[hip]`", remedy);
    let gateways: [(&Key, Mechanism); 3] = [
        (&keys::outlast::GATEWAY, outlast.gateway),
        (&keys::outlast::MOBILE, outlast.mobile),
        (&keys::outlast::HOME_AGENT, outlast.home_agent),
    ];
    for (key, mechanism) in gateways {
        let is_agent = key.name == keys::outlast::MOBILE.name && mechanism.on_host().is_some();
        let is_gateway = mechanism != Mechanism::None && !is_agent;
        if is_gateway && let Some(span) = of_outlast.span_of(key) {
            of_outlast.note(
                span,
                format!("`{} = \"{mechanism}\"` contradicts `[hip]`", key.name),
                "HIP encrypts the connections, and no gateway sees them",
                "write `mobile = \"retransmission-trigger\"` and the same for `fixed`, or remove `[hip]`",
            );
        }
    }
}

/// The connections inside need room for what HIP adds, and an MTU that IPv6 takes (RFC 8200, section 5).
pub(super) fn check_mtu(scenario: &Scenario, link: &Reader<'_>) {
    const LEAST: u32 = 1_280 + Hip::ROOM;
    let mtu = scenario.link.mtu;
    if scenario.hip.is_none() || mtu >= LEAST {
        return;
    }
    if let Some(span) = link.span_of(&keys::link::MTU) {
        link.note(
            span,
            format!("`mtu = {mtu}` is too small for `[hip]`"),
            format!("the connections inside need {LEAST}"),
            format!("write `mtu = {LEAST}` or more"),
        );
    }
}
