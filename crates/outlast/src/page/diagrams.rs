//! The figures of one run: the progress of all its connections, and for each connection the
//! time-sequence diagram of the whole and of each outage.

use super::window::{self, Outage};
use super::{Run, show};
use outlast_experiments::diagram::{Ends, FlowTrace};
use outlast_report::page::Section;
use outlast_report::plot::{self, Axis, Line, Timeline};
use outlast_report::results;
use outlast_report::unit::Unit;
use outlast_report::words::capitalised;
use outlast_scenario::result::FlowResult;
use std::collections::BTreeSet;

/// How to read the diagrams.
const LEGEND: &str = "Time to the right, sequence numbers upwards, the outages shaded. Upright lines \
    are data segments, dots acknowledgements, crosses packets that the link dropped, diamonds packets \
    that Outlast took in front of a link that was down, circles and plus marks packets that it sent.";
/// Diagrams of a page, about; each has up to 100 kB.
const ON_A_PAGE: usize = 90;
/// Connections that are drawn in one run at most.
const MOST_FLOWS: usize = 12;
/// A connection that was there for less than this share of the run has a figure with its own time.
const SMALL_PART: f64 = 0.6;

/// The diagrams that one run of a page may have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share(usize);

impl Share {
    pub(super) fn of(runs: usize) -> Self {
        Self((ON_A_PAGE / runs.max(1)).max(4))
    }

    /// Connections that are drawn.
    fn flows(self) -> usize {
        self.0.div_ceil(3).min(MOST_FLOWS)
    }
}

/// A connection that is drawn.
struct Drawn {
    /// Where it stands in the scenario, or in the order of opening.
    place: usize,
    name: String,
    flow: FlowTrace,
    deliveries: Vec<(f64, u64)>,
    /// Outages that the connection met, in order.
    outages: Vec<Outage>,
    /// What is shown of them, with the place of each.
    zooms: Vec<(usize, (f64, f64))>,
}

/// Adds the figures of `run` to its section.
pub(super) fn add(mut section: Section, run: &Run<'_>, share: Share) -> Section {
    let Some((mut drawn, hidden)) = drawn(run, share) else {
        return section;
    };
    let until = run.result.ended_s().max(1.0);
    let left_out = choose_zooms(run, &mut drawn, share, until);
    if let Some(words) = omissions(&drawn, hidden, left_out) {
        section = section.paragraph(words);
    }
    if drawn.len() > 1 {
        let caption = "What had crossed the link without a gap, of each connection.";
        section = section.figure(progress(&drawn, until).draw(), caption);
    }
    let is_only_one = drawn.len() == 1;
    for (number, connection) in drawn.iter().enumerate() {
        if !is_only_one {
            section = section.subheading(capitalised(&connection.name));
        }
        section = connection.add(section, until, number == 0);
    }
    section
}

/// The connections to be drawn, the worst first, and how many are not; `None` without a trace.
fn drawn(run: &Run<'_>, share: Share) -> Option<(Vec<Drawn>, usize)> {
    let (trace, started) = run.trace?;
    let mut all = Vec::new();
    let found = Ends::in_trace(trace);
    let known = results::worst_first(run.result);
    if known.is_empty() {
        let names = (1..).map(|number| match found.len() {
            1 => "the connection".to_owned(),
            _ => format!("connection {number}"),
        });
        let each = found.iter().copied().zip(names).enumerate();
        all.extend(each.map(|(place, (ends, name))| (place, ends, name)));
    }
    for place in known {
        let port = run.ports.get(place).copied().flatten();
        let ends = port.and_then(|port| found.iter().find(|ends| ends.have_port(port)));
        let name = named(place, &run.result.flows[place]);
        all.extend(ends.map(|ends| (place, *ends, name)));
    }
    let hidden = all.len().saturating_sub(share.flows());
    let shown = all.into_iter().take(share.flows());
    let drawn = shown.filter_map(|(place, ends, name)| {
        let flow = FlowTrace::between(trace, started, ends)?;
        let deliveries = flow.deliveries();
        Some(Drawn {
            place,
            name,
            outages: met(&flow, &deliveries),
            flow,
            deliveries,
            zooms: Vec::new(),
        })
    });
    Some((drawn.collect(), hidden))
}

fn named(place: usize, flow: &FlowResult) -> String {
    let task = match (flow.direction, flow.bytes) {
        (Some(direction), Some(bytes)) => {
            format!("{direction} of {}", Unit::Bytes.show_exact(bytes as f64))
        }
        _ => flow.workload.to_string(),
    };
    format!("connection {}, {task}", place + 1)
}

/// When the first and the last segment with payload came to the link.
fn span(flow: &FlowTrace) -> (f64, f64) {
    let times = || flow.data.iter().map(|segment| segment.time_s);
    let first = times().fold(f64::INFINITY, f64::min);
    (first, times().fold(0.0, f64::max))
}

/// The outages with an end that `flow` met.
fn met(flow: &FlowTrace, deliveries: &[(f64, u64)]) -> Vec<Outage> {
    let (first, last) = span(flow);
    let of = |&(down_s, up): &(f64, Option<f64>)| {
        let up_s = up?;
        let next = deliveries.partition_point(|(time, _)| *time < up_s);
        let resume_s = deliveries.get(next).map(|(time, _)| time - up_s);
        let was_there = first <= up_s && (resume_s.is_some() || down_s <= last);
        was_there.then_some(Outage {
            down_s,
            up_s,
            resume_s,
        })
    };
    flow.outages.iter().filter_map(of).collect()
}

/// Chooses which outages to show of which connection: each outage of the connection that it has
/// harmed the most, then whatever took longest, as far as the share goes; how many are left out.
fn choose_zooms(run: &Run<'_>, drawn: &mut [Drawn], share: Share, until: f64) -> usize {
    let round_trip = run.result.settings.round_trip_s;
    let mut candidates = Vec::new();
    for (number, connection) in drawn.iter().enumerate() {
        for (place, outage) in connection.outages.iter().enumerate() {
            if let Some(window) = window::around(*outage, round_trip, until) {
                let badness = outage.resume_s.unwrap_or(f64::INFINITY);
                candidates.push((number, place, badness, outage.up_s, window));
            }
        }
    }
    // The longest first; of equals the earlier.
    candidates.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.3.total_cmp(&b.3)));
    let mut seen = BTreeSet::new();
    let (mut first, mut others) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let is_new = seen.insert(candidate.3.to_bits());
        let list = if is_new { &mut first } else { &mut others };
        list.push(candidate);
    }
    let all = first.len() + others.len();
    let room = share.0.saturating_sub(drawn.len()).min(all);
    for (number, place, _, _, window) in first.into_iter().chain(others).take(room) {
        drawn[number].zooms.push((place, window));
    }
    for connection in drawn {
        connection.zooms.sort_by_key(|(place, _)| *place);
    }
    all - room
}

/// What the figures do not show, in words.
fn omissions(drawn: &[Drawn], hidden: usize, left_out: usize) -> Option<String> {
    let mut words = Vec::new();
    if hidden > 0 {
        let shown = drawn.len();
        words.push(format!(
            "The {shown} worst connections are drawn; {hidden} are not."
        ));
    }
    if left_out > 0 {
        words.push(format!(
            "Outages are shown from near where connections took longest to resume; {left_out} such views \
             are left out."
        ));
    }
    let omitted = drawn
        .first()
        .map_or(0, |connection| connection.flow.omitted);
    if omitted > 0 {
        words.push(format!(
            "The trace has room for so many packets only: the last {omitted} are not in the figures."
        ));
    }
    (!words.is_empty()).then(|| words.join(" "))
}

/// The connections side by side.
fn progress(drawn: &[Drawn], until: f64) -> Timeline {
    let line = |connection: &Drawn| {
        let changes = connection.deliveries.iter();
        let changes = changes.map(|&(time, bytes)| (time, bytes as f64));
        let name = connection.name.split(',').next().unwrap_or_default();
        Line {
            name: name.to_owned(),
            is_control: false,
            values: changes.collect(),
        }
    };
    let outages = drawn.first().map(|connection| &connection.flow.outages);
    // In the order of the scenario, so that each looks alike in every run.
    let mut in_order: Vec<&Drawn> = drawn.iter().collect();
    in_order.sort_by_key(|connection| connection.place);
    Timeline {
        y: Axis::new("Delivered", Unit::Bytes),
        lines: in_order.into_iter().map(line).collect(),
        outages: outages
            .into_iter()
            .flatten()
            .map(|&(start_s, end_s)| plot::Outage { start_s, end_s })
            .collect(),
        window_s: (0.0, until),
    }
}

impl Drawn {
    /// From when to when the connection had something to do: all that there is, unless it was there
    /// for a small part of it only.
    fn life(&self, until: f64) -> (f64, f64) {
        let (first, last) = span(&self.flow);
        let margin = (last - first) * 0.04;
        match last - first < until * SMALL_PART {
            true => ((first - margin).max(0.0), (last + margin).min(until)),
            false => (0.0, until),
        }
    }

    fn add(&self, section: Section, until: f64, is_first: bool) -> Section {
        let name = capitalised(&self.name);
        let legend = if is_first { LEGEND } else { "" };
        let caption = format!("{name}. {legend}");
        let (from, to) = self.life(until);
        let figure = self.flow.diagram(from, to).draw();
        let mut section = section.figure(figure, caption.trim_end());
        for &(place, (from, to)) in &self.zooms {
            let figure = self.flow.diagram(from, to).draw();
            section = section.figure(figure, format!("{name}: {}", about(&self.outages[place])));
        }
        section
    }
}

/// "the outage at 3.00 s, of 80.0 ms; new data 95.0 ms after link-up."
fn about(outage: &Outage) -> String {
    let Outage {
        down_s,
        up_s,
        resume_s,
    } = *outage;
    let (start, length) = (show(down_s), show(up_s - down_s));
    let resume = resume_s.map_or_else(
        || "nothing new crossed the link after it".to_owned(),
        |resume| {
            format!(
                "the next new data crossed the link {} after link-up",
                show(resume)
            )
        },
    );
    format!("the outage at {start}, of {length}; {resume}.")
}
