//! `[agents]`, `[mobile_ip]`, `[[handoffs]]` and `[[crashes]]`.

use super::duration;
use crate::keys::roaming::{
    ADDRESS_AFTER, ADVERTISEMENTS, BACK_AFTER, BACKBONE_DELAY, BACKBONE_LOSS, BACKBONE_RATE,
    CRASH_AT, DELAY, DETECTION, FOREIGN_AGENTS, FORWARD, GAP, GATEWAY, HANDOFF_AT, HOME,
    LOST_AFTER, REVERSE_TUNNEL, TO, UPDATE,
};
use crate::keys::{self, Key};
use crate::mechanism::Mechanism;
use crate::quantity::format_duration;
use crate::reader::Reader;
use crate::roaming::{Agents, Crash, Detection, Handoff, MobileIp, gaps};
use crate::scenario::{LinkSettings, Outlast};
use outlast_base::time::Duration;
use outlast_base::units::BitRate;

const DEFAULT_DELAY: Duration = Duration::from_millis(5);
const DEFAULT_LOST_AFTER: Duration = Duration::from_secs(30);
const DEFAULT_GAP: Duration = Duration::from_millis(100);
const DEFAULT_ADVERTISEMENTS: Duration = Duration::from_secs(1);
const DEFAULT_ADDRESS_AFTER: Duration = Duration::from_millis(500);
const DEFAULT_BACKBONE_DELAY: Duration = Duration::from_millis(30);
const DEFAULT_BACKBONE_RATE: u64 = 100_000_000;

/// What a file says of several gateways.
pub(super) struct Roaming {
    pub(super) agents: Option<Agents>,
    pub(super) mobile_ip: Option<MobileIp>,
    pub(super) handoffs: Vec<Handoff>,
    pub(super) crashes: Vec<Crash>,
}

pub(super) fn roaming(top: &Reader<'_>) -> Roaming {
    let agents = top.table(&keys::top::AGENTS, &keys::AGENTS);
    let handoffs = handoffs(top);
    let gateways = handoffs.iter().map(|handoff| handoff.to).max().unwrap_or(1);
    let crashes = top.tables(&keys::top::CRASHES, &keys::CRASHES);
    Roaming {
        agents: agents.is_present().then(|| Agents {
            delay: duration(&agents, &DELAY).unwrap_or(DEFAULT_DELAY),
            lost_after: duration(&agents, &LOST_AFTER).unwrap_or(DEFAULT_LOST_AFTER),
        }),
        mobile_ip: mobile_ip(top, gateways),
        crashes: crashes
            .iter()
            .map(|crash| read_crash(crash, gateways))
            .collect(),
        handoffs,
    }
}

fn mobile_ip(top: &Reader<'_>, gateways: usize) -> Option<MobileIp> {
    let reader = top.table(&keys::top::MOBILE_IP, &keys::MOBILE_IP);
    let home = reader.has(&HOME).then(|| number(&reader, &HOME));
    check_home(&reader, home, gateways);
    let foreign_agents = reader.switch(&FOREIGN_AGENTS).unwrap_or(true);
    if foreign_agents {
        let remedy = "write `foreign_agents = false`, or remove it";
        reader.forbid(
            &ADDRESS_AFTER,
            "foreign agents, whose addresses the mobile uses",
            remedy,
        );
    }
    let detection = reader.choice(&DETECTION).and_then(Detection::from_name);
    let rate = reader
        .quantity(&BACKBONE_RATE)
        .unwrap_or(DEFAULT_BACKBONE_RATE);
    let mobile_ip = MobileIp {
        home,
        foreign_agents,
        address_after: duration(&reader, &ADDRESS_AFTER).unwrap_or(DEFAULT_ADDRESS_AFTER),
        detection: detection.unwrap_or(Detection::Lazy),
        advertisements: duration(&reader, &ADVERTISEMENTS).unwrap_or(DEFAULT_ADVERTISEMENTS),
        reverse_tunnel: reader.switch(&REVERSE_TUNNEL).unwrap_or(true),
        delay: duration(&reader, &BACKBONE_DELAY).unwrap_or(DEFAULT_BACKBONE_DELAY),
        // A stand-in where the rate is faulty, which is noted.
        rate: BitRate::from_bits_per_second(rate).unwrap_or(BitRate::MAX),
        loss: reader.probability(&BACKBONE_LOSS).unwrap_or(0.0),
    };
    reader.is_present().then_some(mobile_ip)
}

/// Notes a home that is no gateway of the file.
fn check_home(reader: &Reader<'_>, home: Option<usize>, gateways: usize) {
    if let (Some(home), Some(span)) = (home, reader.span_of(&HOME))
        && home > gateways
    {
        reader.note(
            span,
            format!("`home = {home}` is no gateway of this file"),
            format!("the last one that `[[handoffs]]` name is {gateways}"),
            format!("write a number from 1 to {gateways}, or add a `[[handoffs]]`"),
        );
    }
}

fn handoffs(top: &Reader<'_>) -> Vec<Handoff> {
    let has_mobile_ip = top.has(&keys::top::MOBILE_IP);
    let has_hip = top.has(&keys::top::HIP);
    let (mut is_at, mut free_from) = (1, None);
    let mut handoffs = Vec::new();
    for reader in top.tables(&keys::top::HANDOFFS, &keys::HANDOFFS) {
        require(&reader, &[&HANDOFF_AT, &TO]);
        let handoff = Handoff {
            at: duration(&reader, &HANDOFF_AT).unwrap_or_default(),
            gap: duration(&reader, &GAP).unwrap_or(DEFAULT_GAP),
            to: number(&reader, &TO),
            update: duration(&reader, &UPDATE).unwrap_or_default(),
            forward: reader.switch(&FORWARD).unwrap_or_default(),
        };
        if has_mobile_ip {
            for key in [&UPDATE, &FORWARD] {
                let remedy = "remove it: the registration says where the mobile is";
                reader.forbid(key, "`[mobile_ip]`", remedy);
            }
        }
        if has_hip {
            for key in [&UPDATE, &FORWARD] {
                let remedy = "remove it: readdressing says where the mobile is";
                reader.forbid(key, "`[hip]`", remedy);
            }
        }
        check_order(&reader, &handoff, free_from);
        check_place(&reader, &handoff, is_at);
        (is_at, free_from) = (handoff.to, Some(handoff.at + handoff.gap));
        handoffs.push(handoff);
    }
    handoffs
}

/// Notes a hand-off that begins before the one above it is over.
fn check_order(reader: &Reader<'_>, handoff: &Handoff, free_from: Option<Duration>) {
    if let (Some(free), Some(span)) = (free_from, reader.span_of(&HANDOFF_AT))
        && handoff.at <= free
    {
        let (at, free) = (format_duration(handoff.at), format_duration(free));
        reader.note(
            span,
            format!("`at = \"{at}\"` is not after the hand-off above"),
            format!("the mobile is on its way until {free}"),
            "sort `[[handoffs]]` by their times, and write one that is later",
        );
    }
}

fn check_place(reader: &Reader<'_>, handoff: &Handoff, is_at: usize) {
    if let Some(span) = reader.span_of(&TO)
        && handoff.to == is_at
    {
        reader.note(
            span,
            format!("`to = {is_at}` is the gateway that the mobile is at"),
            "no hand-off",
            "write another number; for an outage without a hand-off there is `[link.outages]`",
        );
    }
}

fn read_crash(reader: &Reader<'_>, gateways: usize) -> Crash {
    require(reader, &[&CRASH_AT, &GATEWAY]);
    let gateway = number(reader, &GATEWAY);
    if let Some(span) = reader.span_of(&GATEWAY)
        && gateway > gateways
    {
        reader.note(
            span,
            format!("`gateway = {gateway}` is no gateway of this file"),
            format!("the last one that `[[handoffs]]` name is {gateways}"),
            format!("write a number from 1 to {gateways}, or add a `[[handoffs]]`"),
        );
    }
    Crash {
        at: duration(reader, &CRASH_AT).unwrap_or_default(),
        gateway,
        back_after: duration(reader, &BACK_AFTER),
    }
}

fn require(reader: &Reader<'_>, keys: &[&Key]) {
    for key in keys {
        if !reader.has(key) {
            reader.missing(key, "");
        }
    }
}

/// A gateway's number; where it is faulty, which is noted, the first one's.
fn number(reader: &Reader<'_>, key: &Key) -> usize {
    let number = reader.integer(key).unwrap_or(1);
    usize::try_from(number).expect("the key's range fits")
}

/// Notes what cannot be beside hand-offs and agents, and gives the link its outages.
pub(super) fn settle(
    roaming: &Roaming,
    settings: &mut LinkSettings,
    outlast: &Outlast,
    (top, link, of_outlast): (&Reader<'_>, &Reader<'_>, &Reader<'_>),
) {
    let hands_over = matches!(
        outlast.gateway,
        Mechanism::ZeroWindowAck | Mechanism::MTcp | Mechanism::MTcpAdaptive
    );
    if roaming.agents.is_some() && !hands_over {
        let agents = top.table(&keys::top::AGENTS, &keys::AGENTS);
        agents.note(
            agents.span(),
            "`[agents]` is of no use to this `[outlast] gateway`",
            "nothing is handed over",
            "write `gateway = \"zero-window-ack\"`, `\"m-tcp\"` or `\"m-tcp-adaptive\"`, or remove the table",
        );
    }
    if roaming.handoffs.is_empty() {
        if let Some(span) = top.span_of(&keys::top::MOBILE_IP) {
            top.note(
                span,
                "`[mobile_ip]` is of no use without `[[handoffs]]`",
                "the mobile stays where it is",
                "add a `[[handoffs]]`, or remove the table",
            );
        }
        return;
    }
    link.forbid(
        &keys::link::OUTAGES,
        "`[[handoffs]]`",
        "remove it: each gateway's link is up while the mobile is there",
    );
    let is_agent_with_hip = top.has(&keys::top::HIP) && outlast.mobile.on_host().is_some();
    if outlast.mobile != Mechanism::None
        && !is_agent_with_hip
        && let Some(span) = of_outlast.span_of(&keys::outlast::MOBILE)
    {
        of_outlast.note(
            span,
            format!(
                "`mobile = \"{}\"` contradicts `[[handoffs]]`",
                outlast.mobile
            ),
            "its gateway would be at several links",
            "write `mobile = \"none\"`",
        );
    }
    if let Some(process) = gaps(&roaming.handoffs) {
        settings.outages = process;
    }
}
