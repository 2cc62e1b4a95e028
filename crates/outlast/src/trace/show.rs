//! What was found, as text, JSON or CSV.

use super::input::Source;
use crate::failure::Failure;
use crate::terminal;
use anyhow::Context;
use outlast_base::time::{Duration, Instant};
use outlast_diagnosis::{Affected, Findings, Outage, Scope, Wasted};
use outlast_report::table::{Cell, Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_wire::frame::NotIp;
use serde::Serialize;
use std::collections::BTreeMap;

/// Connections that a terminal shows of an outage.
const MOST_ROWS: usize = 20;

#[derive(Serialize)]
struct Document<'a> {
    capture: CaptureOf<'a>,
    outages: Vec<OutageOf>,
}

#[derive(Serialize)]
struct CaptureOf<'a> {
    /// The first packet, since the Unix epoch or the origin of a simulation: all other times count
    /// from it.
    began_s: f64,
    length_s: f64,
    packets: u64,
    connections: u64,
    retransmissions: u64,
    duplicate_acks: u64,
    zero_windows: u64,
    stalled_alone: u64,
    unseen_data: u64,
    one_direction: u64,
    forgotten_openings: u64,
    forgotten_connections: u64,
    untracked_segments: u64,
    untracked_paths: u64,
    omitted_silences: u64,
    files: Vec<FileOf<'a>>,
}

#[derive(Serialize)]
struct FileOf<'a> {
    file: &'a str,
    packets: u64,
    not_ip: u64,
    untimed: u64,
    lost: u64,
    unread: Vec<UnreadOf>,
    error: Option<String>,
}

#[derive(Serialize)]
struct UnreadOf {
    what: String,
    packets: u64,
}

#[derive(Serialize)]
struct OutageOf {
    start_s: f64,
    start_earliest_s: f64,
    start_latest_s: f64,
    end_s: Option<f64>,
    end_earliest_s: f64,
    scope: String,
    flows: Vec<FlowOf>,
}

#[derive(Serialize)]
struct FlowOf {
    src: String,
    dst: String,
    noticed_s: Option<f64>,
    wasted_s: f64,
    wasted_most_s: f64,
    saved_s: f64,
    saved_most_s: f64,
    cause: &'static str,
    round_trip_s: Option<f64>,
    unanswered: u32,
}

/// The times of a capture, counted from its first packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin(Instant);

impl Origin {
    pub(crate) fn of(findings: &Findings) -> Self {
        Self(findings.began)
    }

    pub(crate) fn seconds(self, at: Instant) -> f64 {
        at.since(self.0).as_secs_f64() - self.0.since(at).as_secs_f64()
    }
}

fn unread((what, packets): (&NotIp, &u64)) -> UnreadOf {
    UnreadOf {
        what: what.to_string(),
        packets: *packets,
    }
}

/// One JSON document.
pub(crate) fn json(sources: &[Source], findings: &Findings) -> Result<String, Failure> {
    let origin = Origin::of(findings);
    let counters = findings.counters;
    let files = sources.iter().map(|source| FileOf {
        file: &source.name,
        packets: source.packets,
        not_ip: source.not_ip,
        untimed: source.untimed,
        lost: source.lost,
        unread: source.unread.iter().map(unread).collect(),
        error: source.error.as_ref().map(ToString::to_string),
    });
    let flow = |flow: &Affected| FlowOf {
        src: flow.flow.source.to_string(),
        dst: flow.flow.destination.to_string(),
        noticed_s: flow.noticed.map(|at| origin.seconds(at)),
        wasted_s: flow.wasted.least.as_secs_f64(),
        wasted_most_s: flow.wasted.most.as_secs_f64(),
        saved_s: flow.saved().least.as_secs_f64(),
        saved_most_s: flow.saved().most.as_secs_f64(),
        cause: flow.cause.name(),
        round_trip_s: flow.round_trip.map(|trip| trip.as_secs_f64()),
        unanswered: flow.unanswered,
    };
    let outage = |outage: &Outage| OutageOf {
        start_s: origin.seconds(outage.start),
        start_earliest_s: origin.seconds(outage.start_earliest),
        start_latest_s: origin.seconds(outage.start_latest),
        end_s: outage.end.map(|end| origin.seconds(end)),
        end_earliest_s: origin.seconds(outage.end_earliest),
        scope: scope(outage.scope),
        flows: outage.flows.iter().map(flow).collect(),
    };
    let document = Document {
        capture: CaptureOf {
            began_s: findings.began.as_secs_f64(),
            length_s: origin.seconds(findings.ended),
            packets: sources.iter().map(|source| source.packets).sum(),
            connections: counters.connections,
            retransmissions: counters.retransmissions,
            duplicate_acks: counters.duplicate_acks,
            zero_windows: counters.zero_windows,
            stalled_alone: counters.stalled_alone,
            unseen_data: counters.unseen_data,
            one_direction: counters.one_direction,
            forgotten_openings: counters.forgotten_openings,
            forgotten_connections: counters.forgotten_connections,
            untracked_segments: counters.untracked_segments,
            untracked_paths: counters.untracked_paths,
            omitted_silences: counters.omitted_silences,
            files: files.collect(),
        },
        outages: findings.outages.iter().map(outage).collect(),
    };
    let text = serde_json::to_string_pretty(&document);
    Ok(text.context("cannot write JSON")? + "\n")
}

/// A row for each connection of each outage.
pub(crate) fn rows(findings: &Findings) -> Table {
    let origin = Origin::of(findings);
    let seconds = |key: &str, heading: &str| Column::quantity(key, heading, Unit::Seconds);
    let mut table = Table::new([
        Column::text("outage", "Outage"),
        seconds("start_s", "Start"),
        seconds("start_earliest_s", "Start, earliest"),
        seconds("start_latest_s", "Start, latest"),
        seconds("end_s", "End"),
        seconds("end_earliest_s", "End, earliest"),
        Column::text("scope", "Scope"),
        Column::text("src", "Source"),
        Column::text("dst", "Destination"),
        seconds("noticed_s", "Noticed"),
        seconds("wasted_s", "Wasted, at least"),
        seconds("wasted_most_s", "Wasted, at most"),
        seconds("saved_s", "Saved, at least"),
        seconds("saved_most_s", "Saved, at most"),
        Column::text("cause", "Cause"),
        seconds("round_trip_s", "Round trip"),
        Column::quantity("unanswered", "Unanswered", Unit::Count),
    ]);
    for (outage, number) in findings.outages.iter().zip(1_u32..) {
        for flow in &outage.flows {
            table.push([
                Cell::from(number),
                Cell::from(origin.seconds(outage.start)),
                Cell::from(origin.seconds(outage.start_earliest)),
                Cell::from(origin.seconds(outage.start_latest)),
                Cell::from(outage.end.map(|end| origin.seconds(end))),
                Cell::from(origin.seconds(outage.end_earliest)),
                Cell::from(scope(outage.scope)),
                Cell::from(flow.flow.source.to_string()),
                Cell::from(flow.flow.destination.to_string()),
                Cell::from(flow.noticed.map(|at| origin.seconds(at))),
                Cell::from(flow.wasted.least.as_secs_f64()),
                Cell::from(flow.wasted.most.as_secs_f64()),
                Cell::from(flow.saved().least.as_secs_f64()),
                Cell::from(flow.saved().most.as_secs_f64()),
                Cell::from(flow.cause.name()),
                Cell::from(flow.round_trip.map(|trip| trip.as_secs_f64())),
                Cell::from(flow.unanswered),
            ]);
        }
    }
    table
}

/// For a terminal.
pub(crate) fn text(sources: &[Source], findings: &Findings) -> Result<(), Failure> {
    terminal::print(&format!("{}\n", heading(sources, findings)))?;
    for (outage, number) in findings.outages.iter().zip(1..) {
        let about = about(findings, outage);
        terminal::print(&format!("\nOutage {number}: {about}\n"))?;
        let table = connections(findings, outage, MOST_ROWS);
        terminal::print_table(&table)?;
    }
    for note in notes(sources, findings) {
        terminal::print(&format!("\n{note}\n"))?;
    }
    Ok(())
}

/// "2 outages in 61.2 s of capture: 45678 packets, 3 connections"
pub(crate) fn heading(sources: &[Source], findings: &Findings) -> String {
    let length = Origin::of(findings).seconds(findings.ended);
    let found = match findings.outages.len() {
        _ if findings.counters.segments == 0 => "no TCP".to_owned(),
        0 => "no outage".to_owned(),
        1 => "1 outage".to_owned(),
        count => format!("{count} outages"),
    };
    let connections = match findings.counters.connections {
        1 => "1 connection".to_owned(),
        count => format!("{count} connections"),
    };
    let packets: u64 = sources.iter().map(|source| source.packets).sum();
    format!(
        "{found} in {} of capture ({packets} packets, {connections})",
        Unit::Seconds.show(length),
    )
}

/// What is known of an outage, in a sentence or two.
pub(crate) fn about(findings: &Findings, outage: &Outage) -> String {
    let origin = Origin::of(findings);
    let start = instant(origin.seconds(outage.start));
    let scope = scope(outage.scope);
    let Some(end) = outage.end else {
        return format!("{scope}, silent from {start} until the capture ends");
    };
    let length = Unit::Seconds.show(end.since(outage.start).as_secs_f64());
    let mut text = format!(
        "{scope}, silent from {start} to {} ({length})",
        instant(origin.seconds(end))
    );
    let unsure = end.since(outage.end_earliest.max(outage.start));
    if unsure > Duration::from_millis(100) {
        text.push_str(&format!(
            "; it may have been back from {} on, but nothing was sent that would show it",
            instant(origin.seconds(outage.end_earliest))
        ));
    }
    text
}

/// The connections of an outage, at most so many.
pub(crate) fn connections(findings: &Findings, outage: &Outage, most: usize) -> Table {
    let origin = Origin::of(findings);
    let mut table = Table::new([
        Column::text("connection", "Connection"),
        Column::text("noticed", "Noticed"),
        Column::text("wasted", "Wasted"),
        Column::text("saved", "Outlast saves"),
        Column::text("cause", "Cause"),
    ]);
    for flow in outage.flows.iter().take(most) {
        let noticed = flow.noticed.map(|at| instant(origin.seconds(at)));
        let is_worse = flow.wasted.most > Duration::from_millis(500);
        let tone = if is_worse { Tone::Bad } else { Tone::Plain };
        table.push([
            Cell::from(flow.flow.to_string()),
            Cell::from(noticed.unwrap_or_else(|| "never".to_owned())),
            Cell::from(range(flow.wasted)).tone(tone),
            Cell::from(range(flow.saved())),
            Cell::from(flow.cause.name()),
        ]);
    }
    if outage.flows.len() > most {
        let more = outage.flows.len() - most;
        table.note(format!("{more} more connections are in --json and --csv"));
    }
    let mut causes: Vec<_> = outage.flows.iter().map(|flow| flow.cause).collect();
    causes.sort_unstable();
    causes.dedup();
    for cause in causes {
        table.note(format!("{cause}: {}", cause.explanation()));
    }
    table
}

/// What a reader has to know of how complete the findings are.
pub(crate) fn notes(sources: &[Source], findings: &Findings) -> Vec<String> {
    let counters = findings.counters;
    let mut notes = Vec::new();
    let mut hidden: BTreeMap<String, u64> = BTreeMap::new();
    for (count, what) in sources.iter().flat_map(Source::hidden) {
        *hidden.entry(what).or_default() += count;
    }
    if !hidden.is_empty() {
        let list = hidden.iter().map(|(what, count)| format!("{count} {what}"));
        let list: Vec<String> = list.collect();
        notes.push(format!("Not read: {}", list.join(", ")));
    }
    let mut note = |count: u64, [one, many]: [&str; 2], text: &str| match count {
        0 => {}
        1 => notes.push(format!("1 {one} {text}")),
        count => notes.push(format!("{count} {many} {text}")),
    };
    let connections = ["connection", "connections"];
    let packets = ["packet", "packets"];
    note(
        sources.iter().map(|source| source.lost).sum(),
        packets,
        "lost by the program that captured, as the file says: the capture has holes",
    );
    note(
        counters.unseen_data,
        ["acknowledgement", "acknowledgements"],
        "of data that is not in the capture: it has holes, which are no outages",
    );
    note(
        counters.one_direction,
        connections,
        "captured in one direction only: nothing shows what the other host answered",
    );
    note(
        counters.stalled_alone,
        connections,
        "stood still while others over the path were heard, or lost too little to tell: no outage",
    );
    note(
        counters.forgotten_openings,
        connections,
        "that never carried data made room for others",
    );
    note(
        counters.forgotten_connections,
        connections,
        "of which all was acknowledged, or that had been silent for two minutes, made room for others",
    );
    note(
        counters.untracked_segments,
        ["segment", "segments"],
        "of more connections than are remembered at once, not looked at",
    );
    note(
        counters.untracked_paths,
        packets,
        "of more paths than are remembered, not looked at",
    );
    note(
        counters.omitted_silences,
        ["silence", "silences"],
        "left out: more than are remembered",
    );
    notes
}

/// Whose silence it was.
pub(crate) fn scope(scope: Scope) -> String {
    match scope {
        Scope::Hosts(a, b) => format!("path between {a} and {b}"),
        Scope::Subnet(network) => match network.is_ipv4() {
            true => format!("paths to {network}/24"),
            false => format!("paths to {network}/64"),
        },
        Scope::Host(host) => format!("every path of {host}"),
        Scope::Interface(_) => "everything beyond one side of the capture".to_owned(),
    }
}

/// A time of a capture, to the millisecond.
fn instant(seconds: f64) -> String {
    format!("{seconds:.3} s")
}

/// "4.20 s", or "0 to 4.20 s" where it is not known better.
fn range(wasted: Wasted) -> String {
    let (least, most) = (wasted.least.as_secs_f64(), wasted.most.as_secs_f64());
    if most - least <= (most / 10.0).max(0.02) {
        return Unit::Seconds.show(most);
    }
    let least = match wasted.least.is_zero() {
        true => "0".to_owned(),
        false => Unit::Seconds.show(least),
    };
    format!("{least} to {}", Unit::Seconds.show(most))
}
