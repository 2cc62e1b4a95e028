//! The report page: the outages, and the time-sequence diagrams of the connections that wasted most.

use super::input::{Capture, PIPE, Source};
use super::show::{self, Origin};
use crate::failure::Failure;
use anyhow::Context;
use outlast_base::time::{Duration, Instant};
use outlast_diagnosis::{Affected, Findings, FlowId, Outage};
use outlast_report::page::{Highlight, Page, Provenance, Section};
use outlast_report::plot::{self, Acknowledgement, DataSegment, Fate, TimeSequence};
use outlast_report::table::{Column, Table, Tone};
use outlast_report::unit::Unit;
use outlast_report::words::capitalised;
use outlast_wire::{SeqNumber, TcpFlags};
use std::net::SocketAddr;
use std::path::Path;

/// Diagrams of a page.
const MOST_DIAGRAMS: usize = 8;
/// Outages that a page tells of one by one.
const MOST_OUTAGES: usize = 50;
/// Connections of an outage in its table.
const MOST_ROWS: usize = 20;
/// Segments of a diagram.
const MOST_SEGMENTS: usize = 50_000;

/// How to read the diagrams.
const LEGEND: &str = "Time to the right, sequence numbers upwards; shaded while the path was silent. Upright lines are data segments, dots acknowledgements.";

/// A connection in an outage, to be drawn.
struct Drawn {
    /// Which outage.
    number: u32,
    flow: FlowId,
    point: u32,
    window: (Instant, Instant),
    outage: (Instant, Option<Instant>),
    words: String,
    segments: Vec<Seen>,
    omitted: u64,
}

/// A segment in a window.
#[derive(Clone, Copy)]
struct Seen {
    at: Instant,
    source: SocketAddr,
    seq: SeqNumber,
    ack: Option<SeqNumber>,
    payload_len: u32,
}

/// Writes the page; `capture` is read from its start.
pub(crate) fn write(
    file: &Path,
    sources: &[Source],
    findings: &Findings,
    capture: Capture,
) -> Result<(), Failure> {
    let mut drawn = chosen(findings);
    collect(&mut drawn, capture);
    let html = page(sources, findings, &drawn).to_html();
    std::fs::write(file, html).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

/// The connections that wasted most, in the order of their outages.
fn chosen(findings: &Findings) -> Vec<Drawn> {
    let outages = findings.outages.iter().zip(1..).take(MOST_OUTAGES);
    let all = outages
        .flat_map(|(outage, number)| outage.flows.iter().map(move |flow| (number, outage, flow)));
    let mut all: Vec<(u32, &Outage, &Affected)> = all.collect();
    all.sort_by_key(|(_, _, flow)| std::cmp::Reverse((flow.wasted.least, flow.wasted.most)));
    all.truncate(MOST_DIAGRAMS);
    all.sort_by_key(|(number, _, _)| *number);
    let draw = |(number, outage, flow): (u32, &Outage, &Affected)| {
        let until = flow.noticed.or(outage.end).unwrap_or(findings.ended);
        let margin = (until.since(outage.start) / 6).max(Duration::from_millis(300));
        Drawn {
            number,
            flow: flow.flow,
            point: flow.point,
            window: (outage.start - margin, until + margin),
            outage: (outage.start, outage.end),
            words: words(flow),
            segments: Vec::new(),
            omitted: 0,
        }
    };
    all.into_iter().map(draw).collect()
}

fn words(flow: &Affected) -> String {
    let mut words = flow.flow.to_string();
    words.push_str(": ");
    words.push_str(flow.cause.explanation());
    if flow.noticed.is_none() {
        words.push_str("; it never went on");
    }
    words
}

/// Reads the segments of the windows.
fn collect(drawn: &mut [Drawn], mut capture: Capture) {
    let Some(until) = drawn.iter().map(|drawn| drawn.window.1).max() else {
        return;
    };
    while let Some(packet) = capture.next_packet() {
        if packet.at > until {
            break;
        }
        let Some((tcp, payload_len)) = packet.outline.tcp() else {
            continue;
        };
        let flow = FlowId {
            source: SocketAddr::new(packet.outline.source, tcp.source_port),
            destination: SocketAddr::new(packet.outline.destination, tcp.destination_port),
        };
        let of_flow = |drawn: &&mut Drawn| {
            let (from, to) = drawn.window;
            let is_same = drawn.flow == flow || drawn.flow.reversed() == flow;
            is_same && drawn.point == packet.point && from <= packet.at && packet.at <= to
        };
        for drawn in drawn.iter_mut().filter(of_flow) {
            if drawn.segments.len() >= MOST_SEGMENTS {
                drawn.omitted += 1;
                continue;
            }
            drawn.segments.push(Seen {
                at: packet.at,
                source: flow.source,
                seq: tcp.seq,
                ack: tcp.has(TcpFlags::ACK).then_some(tcp.ack),
                payload_len,
            });
        }
    }
}

fn page(sources: &[Source], findings: &Findings, drawn: &[Drawn]) -> Page {
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    let provenance = Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: jiff::Timestamp::now()
            .strftime("%Y-%m-%d %H:%M UTC")
            .to_string(),
        command: format!("outlast trace {} --report FILE", names.join(" ")).replace(PIPE, "-"),
        ..Provenance::default()
    };
    let mut page = Page::new("Outages in a capture", provenance)
        .subtitle(capitalised(&show::heading(sources, findings)));
    for highlight in highlights(findings) {
        page.highlight(highlight);
    }
    page.push(overview(findings, sources));
    for (outage, number) in findings.outages.iter().zip(1..).take(MOST_OUTAGES) {
        let about = show::about(findings, outage);
        let mut section = Section::new(format!("Outage {number}"))
            .paragraph(format!("{}.", capitalised(&about)))
            .table(show::connections(findings, outage, MOST_ROWS));
        for drawn in drawn.iter().filter(|drawn| drawn.number == number) {
            section = drawn.add(section, Origin::of(findings));
        }
        page.push(section);
    }
    page
}

fn highlights(findings: &Findings) -> Vec<Highlight> {
    let affected = || findings.outages.iter().flat_map(|outage| &outage.flows);
    let least: f64 = affected().map(|flow| flow.wasted.least.as_secs_f64()).sum();
    let most: f64 = affected().map(|flow| flow.wasted.most.as_secs_f64()).sum();
    let away = findings.outages.iter();
    let away: f64 = away
        .map(|outage| {
            let end = outage.end.unwrap_or(findings.ended);
            end.since(outage.start).as_secs_f64()
        })
        .sum();
    let bad = |is_bad: bool| if is_bad { Tone::Bad } else { Tone::Good };
    vec![
        Highlight {
            label: "Paths silent".to_owned(),
            value: Unit::Seconds.show(away),
            note: format!("in {}", plural(findings.outages.len(), "outage")),
            tone: bad(away > 0.0),
        },
        Highlight {
            label: "Wasted after their return".to_owned(),
            value: match most - least <= most / 10.0 {
                true => Unit::Seconds.show(most),
                false => format!(
                    "{} to {}",
                    Unit::Seconds.show(least),
                    Unit::Seconds.show(most)
                ),
            },
            note: format!("by {}", plural(affected().count(), "connection")),
            tone: bad(most > 0.5),
        },
    ]
}

fn plural(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        count => format!("{count} {noun}s"),
    }
}

fn overview(findings: &Findings, sources: &[Source]) -> Section {
    let mut section = Section::new("What was found").paragraph(
        "A path is silent while packets that should be answered remain unanswered, more of them than plain \
         loss explains. Wasted is the time from when the path was back until the connection sent what \
         got it going again. Outlast saves all of it but a round trip. Where only bounds are known, \
         nothing was sent in between that would have shown the path.",
    );
    for source in sources {
        if let Some(error) = &source.error {
            let (name, packets) = (&source.name, source.packets);
            section = section.paragraph(format!(
                "`{name}` was read up to its packet {packets} only: {error}."
            ));
        }
    }
    for note in show::notes(sources, findings) {
        section = section.paragraph(format!("{note}."));
    }
    if findings.outages.len() > MOST_OUTAGES {
        section = section.paragraph(format!(
            "The first {MOST_OUTAGES} outages are shown; `--csv` and `--json` have all."
        ));
    }
    let origin = Origin::of(findings);
    let mut table = Table::new([
        Column::text("outage", "Outage"),
        Column::fixed("start_s", "From, s", 3),
        Column::fixed("end_s", "To, s", 3),
        Column::text("scope", "Silent"),
        Column::quantity("flows", "Connections", Unit::Count),
    ]);
    for (outage, number) in findings.outages.iter().zip(1_u32..).take(MOST_OUTAGES) {
        table.push([
            number.into(),
            origin.seconds(outage.start).into(),
            outage.end.map(|end| origin.seconds(end)).into(),
            show::scope(outage.scope).into(),
            (outage.flows.len() as u64).into(),
        ]);
    }
    match findings.outages.is_empty() {
        true => section.paragraph("There is no outage in this capture."),
        false => section.table(table),
    }
}

impl Drawn {
    fn add(&self, section: Section, origin: Origin) -> Section {
        let Some(diagram) = self.diagram(origin) else {
            return section;
        };
        let mut caption = format!("{}. {LEGEND}", capitalised(&self.words));
        if self.omitted > 0 {
            caption.push_str(&format!(
                " The last {} segments are left out.",
                self.omitted
            ));
        }
        section.figure(diagram.draw(), caption)
    }

    fn diagram(&self, origin: Origin) -> Option<TimeSequence> {
        // The payload went mostly one way.
        let sources = [self.flow.source, self.flow.destination];
        let sent = |source: &SocketAddr| -> u64 {
            let of_source = self.segments.iter().filter(|seen| seen.source == *source);
            of_source.map(|seen| u64::from(seen.payload_len)).sum()
        };
        let sender = sources.into_iter().max_by_key(sent)?;
        let is_data = |seen: &&Seen| seen.source == sender && seen.payload_len > 0;
        let first = self.segments.iter().find(is_data)?.seq;
        let mut last = (first, 0_i64);
        let mut place = |seq: SeqNumber| {
            let place = last.1 + i64::from(seq.distance_from(last.0));
            if place > last.1 {
                last = (seq, place);
            }
            place
        };
        let mut data = Vec::new();
        let mut acknowledgements = Vec::new();
        for seen in &self.segments {
            match (seen.source == sender, seen.ack) {
                (true, _) if seen.payload_len > 0 => {
                    data.push((seen.at, place(seen.seq), seen.payload_len));
                }
                (false, Some(ack)) => acknowledgements.push((seen.at, place(ack))),
                _ => {}
            }
        }
        let lowest = data.iter().map(|(_, place, _)| *place);
        let lowest = lowest.chain(acknowledgements.iter().map(|(_, place)| *place));
        let lowest = lowest.min()?;
        let up = |place: i64| place.abs_diff(lowest);
        let (from, to) = self.window;
        let (start, end) = self.outage;
        Some(TimeSequence {
            data: data
                .into_iter()
                .map(|(at, place, length)| DataSegment {
                    time_s: origin.seconds(at),
                    sequence: up(place),
                    length,
                    fate: Fate::Captured,
                })
                .collect(),
            acknowledgements: acknowledgements
                .into_iter()
                .map(|(at, place)| Acknowledgement {
                    time_s: origin.seconds(at),
                    number: up(place),
                    fate: Fate::Captured,
                })
                .collect(),
            outages: vec![plot::Outage {
                start_s: origin.seconds(start),
                end_s: end.map(|end| origin.seconds(end)),
            }],
            window_s: Some((origin.seconds(from).max(0.0), origin.seconds(to))),
        })
    }
}
