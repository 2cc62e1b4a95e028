//! What came of each connection, where there are several.

use super::returns::Measure;
use crate::delivery::DeliveryLog;
use crate::workload::FlowOutcome;
use outlast_base::time::{Duration, Instant};
use outlast_scenario::result::{FlowResult, Return, TcpInForce};
use outlast_scenario::{Connection, Framing, Scenario, Workload};

/// Every connection of run `index` whose workload's first byte came at `started`, that of
/// `[workload]` first; none if it is the only one.
pub(super) fn results(
    scenario: &Scenario,
    index: u32,
    flows: &[FlowOutcome],
    started: Option<Instant>,
) -> Vec<FlowResult> {
    if scenario.flows.is_empty() {
        return Vec::new();
    }
    let ended = flows.iter().map(|flow| flow.outcome.ended).max();
    let returns = match (started, ended) {
        (Some(started), Some(ended)) => returns(scenario, index, started, ended),
        _ => Vec::new(),
    };
    let each = scenario.connections().zip(flows);
    each.map(|(connection, flow)| {
        let after = after_returns(
            scenario,
            index,
            connection.workload,
            flow,
            &returns,
            started,
        );
        result(connection, flow, &after)
    })
    .collect()
}

/// When the link came back, while anything went on.
fn returns(scenario: &Scenario, index: u32, started: Instant, ended: Instant) -> Vec<Instant> {
    let outages = scenario
        .link_config(index)
        .outages_until(ended.since(started));
    let back = |end: Option<Duration>| Some(started + end?);
    outages
        .iter()
        .filter_map(|outage| back(outage.end))
        .collect()
}

fn result(connection: Connection<'_>, flow: &FlowOutcome, after: &[Return]) -> FlowResult {
    let Connection {
        begin,
        workload,
        stack,
    } = connection;
    let outcome = &flow.outcome;
    let (direction, bytes) = workload.transfer();
    let elapsed = flow
        .began
        .map_or(Duration::ZERO, |began| outcome.ended.since(began));
    let wished = stack.in_lab(outlast_linux::kernel_release());
    FlowResult {
        completed: outcome.completed,
        intact: outcome.intact,
        begin_s: begin.as_secs_f64(),
        elapsed_s: elapsed.as_secs_f64(),
        resume_s: after.iter().map(|back| back.resume_s).collect(),
        half_second_s: after.iter().map(|back| back.half_second_s).collect(),
        first_five_seconds_share: after
            .iter()
            .map(|back| back.first_five_seconds_share)
            .collect(),
        timeouts: outcome.sender.and_then(|sender| sender.timeouts),
        retransmitted_bytes: outcome.sender.and_then(|sender| sender.retransmitted_bytes),
        user_timeout_abort: outcome.timed_out,
        error: outcome.failure.clone(),
        bytes_received: outcome.deliveries.as_ref().map_or(0, DeliveryLog::total),
        updates: outcome.updates,
        workload: workload.kind(),
        direction,
        bytes,
        tcp: match &flow.terms {
            Some(terms) => TcpInForce {
                congestion: terms.congestion.clone(),
                sack: terms.options.sack,
                timestamps: terms.options.timestamps,
                ..wished
            },
            None => wished,
        },
    }
}

/// What came to its receiver after each return of the link while there was the connection.
fn after_returns(
    scenario: &Scenario,
    index: u32,
    workload: &Workload,
    flow: &FlowOutcome,
    returns: &[Instant],
    started: Option<Instant>,
) -> Vec<Return> {
    let (Some(began), Some(started)) = (flow.began, started) else {
        return Vec::new();
    };
    let ended = flow.outcome.ended;
    let timestamps = flow.terms.as_ref().map(|terms| terms.options.timestamps);
    let framing = scenario.framing();
    let framing = Framing {
        timestamps: timestamps.unwrap_or(framing.timestamps),
        ..framing
    };
    let there = returns
        .iter()
        .filter(|&&back| began <= back && back <= ended);
    there
        .map(|&back| {
            let deliveries = flow.outcome.deliveries.as_ref();
            let measure = deliveries.map(|deliveries| Measure {
                scenario,
                index,
                framing,
                started,
                ended,
                workload,
                deliveries,
            });
            measure.map_or(Return::default(), |measure| measure.after(back))
        })
        .collect()
}
