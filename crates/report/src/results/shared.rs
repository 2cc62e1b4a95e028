//! What came of several connections, of cross traffic, and of several links.

use super::{resumes_of, worst_resume};
use crate::table::{Cell, Column, Table, Tone};
use crate::unit::Unit;
use outlast_scenario::result::{FlowResult, RunResult};

/// The connections of a run by their places in [`RunResult::flows`]: first those that were given up
/// or never got new data after a return of the link, then by the longest time from link-up to new
/// data.
#[must_use]
pub fn worst_first(run: &RunResult) -> Vec<usize> {
    let badness = |flow: &FlowResult| {
        let resumes = resumes_of(run, flow);
        let never = resumes.iter().filter(|resume| resume.is_none()).count();
        let worst = resumes.into_iter().flatten().fold(0.0, f64::max);
        (!flow.completed, never, worst)
    };
    let mut places: Vec<_> = run.flows.iter().map(badness).enumerate().collect();
    places.sort_by(|(_, a), (_, b)| {
        let stalls = (b.0, b.1).cmp(&(a.0, a.1));
        stalls.then(b.2.total_cmp(&a.2))
    });
    places.into_iter().map(|(place, _)| place).collect()
}

/// The connections of a run, a row for each, the worst first, and of the others only how many there
/// are if there are more than `most`; `None` if there is only that of `[workload]`.
#[must_use]
pub fn connections(run: &RunResult, most: usize) -> Option<Table> {
    if run.flows.is_empty() {
        return None;
    }
    let mut table = Table::new([
        Column::text("connection", "Connection"),
        Column::text("workload", "Workload"),
        Column::text("tcp", "TCP"),
        Column::quantity("begin_s", "Opened", Unit::Seconds),
        Column::text("completed", "Completed"),
        Column::quantity("elapsed_s", "Time", Unit::Seconds),
        Column::quantity("bytes_received", "Received", Unit::Bytes),
        Column::quantity("resume_worst_s", "Worst resume", Unit::Seconds),
        Column::quantity("timeouts", "Timeouts", Unit::Count),
        Column::quantity("retransmitted_bytes", "Retransmitted", Unit::Bytes),
    ]);
    for place in worst_first(run).into_iter().take(most) {
        let flow = &run.flows[place];
        let number = place + 1;
        let done = flow.completed && flow.intact != Some(false);
        let words = match (done, flow.completed) {
            (true, _) => "yes",
            (false, true) => "corrupt",
            (false, false) => "no",
        };
        table.push([
            Cell::from(number.to_string()),
            Cell::from(task(flow)),
            Cell::from(tcp(flow)),
            Cell::from(flow.begin_s),
            Cell::from(words).tone(if done { Tone::Good } else { Tone::Bad }),
            Cell::from(flow.elapsed_s),
            Cell::from(flow.bytes_received),
            worst_resume(&resumes_of(run, flow)),
            Cell::from(flow.timeouts),
            Cell::from(flow.retransmitted_bytes),
        ]);
        if let Some(error) = &flow.error {
            table.note(format!("Connection {number}: {error}"));
        }
    }
    match run.flows.len().saturating_sub(most) {
        0 => {}
        1 => table.note("One more, no worse than these, is in the JSON document."),
        more => table.note(format!(
            "{more} more, none worse than these, are in the JSON document."
        )),
    }
    Some(table)
}

/// The sources of cross traffic of a run, a row for each; `None` if there is none.
#[must_use]
pub fn traffic(run: &RunResult) -> Option<Table> {
    if run.traffic.is_empty() {
        return None;
    }
    let mut table = Table::new([
        Column::text("source", "Source"),
        Column::quantity("sent_packets", "Sent", Unit::Count),
        Column::quantity("received_packets", "Came through", Unit::Count),
    ]);
    for (number, source) in (1_u64..).zip(&run.traffic) {
        table.push([
            Cell::from(number.to_string()),
            Cell::from(source.sent_packets),
            Cell::from(source.received_packets),
        ]);
    }
    Some(table)
}

/// The links of a run, from the mobile's on, a row for each; `None` if there is only one.
#[must_use]
pub fn hops(run: &RunResult) -> Option<Table> {
    if run.hops.is_empty() {
        return None;
    }
    let mut table = Table::new([
        Column::text("link", "Link"),
        Column::quantity("injected_packets", "Injected", Unit::Count),
        Column::quantity("queue_full", "Dropped: queue full", Unit::Count),
        Column::quantity("loss", "Lost", Unit::Count),
        Column::quantity("outage", "Dropped in outages", Unit::Count),
    ]);
    let first = run
        .dropped_packets
        .map(|drops| (run.injected_packets, drops));
    let further = run.hops.iter();
    let further = further.map(|hop| Some((hop.injected_packets, hop.dropped_packets)));
    for (number, link) in std::iter::once(first).chain(further).enumerate() {
        let count = |of: fn(&(u64, outlast_scenario::result::Drops)) -> u64| {
            Cell::from(link.as_ref().map(of))
        };
        table.push([
            Cell::from(match number {
                0 => "the mobile's".to_owned(),
                _ => format!("hop {number}"),
            }),
            count(|(injected, _)| *injected),
            count(|(_, drops)| drops.queue_full),
            count(|(_, drops)| drops.loss),
            count(|(_, drops)| drops.link_down + drops.flushed + drops.in_flight),
        ]);
    }
    Some(table)
}

/// What is done with a connection, in words.
fn task(flow: &FlowResult) -> String {
    match flow.direction {
        Some(direction) => direction.to_string(),
        None => flow.workload.to_string(),
    }
}

/// The TCP of a connection, in words.
fn tcp(flow: &FlowResult) -> String {
    let mut words = vec![flow.tcp.congestion.clone()];
    words.extend(flow.tcp.profile.map(|profile| profile.to_string()));
    words.extend((!flow.tcp.sack).then(|| "no SACK".to_owned()));
    words.extend((!flow.tcp.timestamps).then(|| "no timestamps".to_owned()));
    words.join(", ")
}
