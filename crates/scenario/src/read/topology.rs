//! `[[flows]]`, `[[traffic]]` and `[[hops]]`.

use super::{check_duration, duration, link, stack, workload};
use crate::keys::traffic::{BEGIN, DIRECTION, END, HOP, OFF, ON, PACKET, PATTERN, RATE};
use crate::keys::{self, Key, rate_changes};
use crate::quantity::format_duration;
use crate::reader::Reader;
use crate::scenario::{Direction, LinkSettings, Scenario, Stack};
use crate::topology::{Flow, Hop, Pattern, PatternKind, Traffic};
use outlast_base::time::Duration;
use outlast_base::units::{BitRate, ByteCount};
use outlast_link::{OutageProcess, RateChange};
use std::path::Path;

/// `[[hops]]`.
pub(super) fn hops(top: &Reader<'_>, mtu: u32, directory: &Path) -> Vec<Hop> {
    let hops = top.tables(&keys::top::HOPS, &keys::HOPS);
    if let Some(surplus) = hops.get(Scenario::MAX_HOPS) {
        surplus.note(
            surplus.span(),
            format!("more than {} `[[hops]]`", Scenario::MAX_HOPS),
            "one too many",
            format!("leave at most {}", Scenario::MAX_HOPS),
        );
    }
    hops.iter()
        .map(|hop| link::hop(hop, mtu, directory))
        .collect()
}

/// `[[rate_changes]]`, put down to the link that each is of.
pub(super) fn rate_changes(top: &Reader<'_>, link: &mut LinkSettings, hops: &mut [Hop]) {
    for reader in top.tables(&keys::top::RATE_CHANGES, &keys::RATE_CHANGES) {
        if !reader.has(&rate_changes::AT) {
            reader.missing(&rate_changes::AT, "");
        }
        let rate = |key| reader.quantity(key).and_then(BitRate::from_bits_per_second);
        let change = RateChange {
            at: duration(&reader, &rate_changes::AT).unwrap_or_default(),
            to_mobile: rate(&rate_changes::DOWNLINK),
            to_fixed: rate(&rate_changes::UPLINK),
        };
        let given: [&Key; 2] = [&rate_changes::DOWNLINK, &rate_changes::UPLINK];
        if !given.iter().any(|key| reader.has(key)) {
            reader.note(
                reader.span(),
                "`[[rate_changes]]` has neither `downlink` nor `uplink`",
                "changes nothing",
                "add `downlink = \"2 Mbit/s\"`, `uplink`, or both",
            );
        }
        let settings = match hop(&reader, &rate_changes::HOP, hops.len()).checked_sub(1) {
            None => &mut *link,
            Some(index) => match hops.get_mut(index) {
                Some(hop) => &mut hop.link,
                None => continue,
            },
        };
        if matches!(settings.outages, OutageProcess::Deliveries { .. }) {
            for key in given {
                reader.forbid(
                    key,
                    "the packet-delivery trace",
                    "remove it: the trace says when packets are delivered",
                );
            }
        }
        let changes = &mut settings.rate_changes;
        let behind = changes.partition_point(|earlier| earlier.at <= change.at);
        changes.insert(behind, change);
    }
}

/// `[[flows]]`, which `run` ends at its deadline.
pub(super) fn flows(
    top: &Reader<'_>,
    general: &Stack,
    (deadline, run): (Duration, &Reader<'_>),
    directory: &Path,
) -> Vec<Flow> {
    let mut all = 1_u32;
    let mut flows = Vec::new();
    for flow in top.tables(&keys::top::FLOWS, &keys::FLOWS) {
        let count = flow.integer(&keys::flows::COUNT).unwrap_or(1);
        let count = u32::try_from(count).expect("the key's range fits");
        let fitted = all <= Scenario::MAX_FLOWS;
        all = all.saturating_add(count);
        if fitted && all > Scenario::MAX_FLOWS {
            flow.note(
                flow.span_of(&keys::flows::COUNT).unwrap_or(flow.span()),
                format!("more than {} connections", Scenario::MAX_FLOWS),
                format!("makes {all} with those above"),
                "there are ports for no more: write a smaller `count`",
            );
        }
        let workload = workload::of_flow(&flow, directory);
        check_duration(&workload, deadline, &flow, run);
        flows.push(Flow {
            count,
            begin: duration(&flow, &keys::flows::BEGIN).unwrap_or_default(),
            workload,
            stack: stack::of_flow(&flow, general),
        });
    }
    flows
}

/// `[[traffic]]` over the links of a file with so many `hops`.
pub(super) fn traffic(top: &Reader<'_>, mtu: u32, hops: usize) -> Vec<Traffic> {
    top.tables(&keys::top::TRAFFIC, &keys::TRAFFIC)
        .iter()
        .map(|traffic| source(traffic, mtu, hops))
        .collect()
}

fn source(traffic: &Reader<'_>, mtu: u32, hops: usize) -> Traffic {
    for key in [&PATTERN, &RATE] {
        if !traffic.has(key) {
            traffic.missing(key, "");
        }
    }
    let begin = duration(traffic, &BEGIN).unwrap_or_default();
    let direction = traffic.choice(&DIRECTION).and_then(Direction::from_name);
    let rate = traffic
        .quantity(&RATE)
        .and_then(BitRate::from_bits_per_second);
    Traffic {
        hop: hop(traffic, &HOP, hops),
        direction: direction.unwrap_or_default(),
        pattern: pattern(traffic),
        // A stand-in where the rate is faulty, which is noted.
        rate: rate.unwrap_or(BitRate::from_bits_per_second(1).expect("not zero")),
        packet: packet(traffic, mtu),
        begin,
        end: end(traffic, begin),
    }
}

fn pattern(traffic: &Reader<'_>) -> Pattern {
    let time = |key| duration(traffic, key).unwrap_or_default();
    let Some(kind) = traffic.choice(&PATTERN).and_then(PatternKind::from_name) else {
        return Pattern::Constant;
    };
    let written = format!("`pattern = \"{kind}\"`");
    let times: [&Key; 2] = [&ON, &OFF];
    match kind {
        PatternKind::OnOff => {
            for key in times {
                if !traffic.has(key) {
                    traffic.missing(key, &written);
                }
            }
            Pattern::OnOff {
                on: time(&ON),
                off: time(&OFF),
            }
        }
        PatternKind::Constant | PatternKind::Poisson => {
            for key in times {
                traffic.forbid(key, &written, "remove it, or write `pattern = \"on-off\"`");
            }
            match kind {
                PatternKind::Poisson => Pattern::Poisson,
                _ => Pattern::Constant,
            }
        }
    }
}

fn hop(reader: &Reader<'_>, key: &'static Key, hops: usize) -> usize {
    let hop = reader.integer(key).unwrap_or(0);
    let hop = usize::try_from(hop).expect("the key's range fits");
    if let Some(span) = reader.span_of(key)
        && hop > hops
    {
        let (have, remedy) = match hops {
            0 => (
                "the file has no `[[hops]]`".to_owned(),
                "remove it, or add a `[[hops]]`".to_owned(),
            ),
            _ => (
                format!("the last of `[[hops]]` is {hops}"),
                format!("write a number from 0 to {hops}, or add a `[[hops]]`"),
            ),
        };
        reader.note(
            span,
            format!("`hop = {hop}` is no link of this file"),
            have,
            remedy,
        );
    }
    hop
}

fn packet(traffic: &Reader<'_>, mtu: u32) -> ByteCount {
    let mtu = ByteCount(mtu.into());
    let packet = traffic.quantity(&PACKET).map_or(mtu, ByteCount);
    if let Some(span) = traffic.span_of(&PACKET)
        && packet > mtu
    {
        traffic.note(
            span,
            format!("`packet = \"{packet}\"` does not fit the link"),
            format!("`[link] mtu` is {}", mtu.0),
            format!(
                "write `packet = \"{} B\"` or less, or a larger `mtu`",
                mtu.0
            ),
        );
    }
    packet
}

fn end(traffic: &Reader<'_>, begin: Duration) -> Option<Duration> {
    let end = duration(traffic, &END)?;
    if end <= begin {
        let (begin, end) = (format_duration(begin), format_duration(end));
        traffic.note(
            traffic.span_of(&END)?,
            format!("`end = \"{end}\"` is not after `begin = \"{begin}\"`"),
            "nothing would ever be sent",
            format!("write an `end` later than `\"{begin}\"`"),
        );
    }
    Some(end)
}
