//! What came of a run.

use crate::delivery::DeliveryLog;
use crate::emulator::{Effort, Emulated};
use crate::error::LabError;
use crate::host::Host;
use crate::observer::{Counts, Observer};
use crate::path::Crossed;
use crate::workload::{FlowOutcome, Outcome, SenderAccount};
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_gateway::counters::Counters as GatewayCounters;
use outlast_link::{Counters as LinkCounters, DropReason};
use outlast_linux::counters::TcpCounters;
use outlast_scenario::Scenario;
use outlast_scenario::result::{
    Drops, HopResult, OutageResult, RunResult, Settings, TrafficResult, World,
};
use outlast_sim::topology;
use outlast_world::path::PathOutcome;
use outlast_world::trace::Trace;
use outlast_world::{Counts as PathCounts, RoamingOutcome, Side, TrafficOutcome};
use returns::Measure;
use std::path::PathBuf;

mod flows;
mod returns;

/// What came of a run: the result, and what only the lab can tell.
#[derive(Clone, Debug)]
pub struct RunReport {
    /// The result, in the form that lab and simulator share.
    pub result: RunResult,
    /// When the workload's first byte came to the link, on the clock of
    /// [`outlast_linux::clock::now`]; the times of the trace are on the same clock. `None` if
    /// none did.
    pub started: Option<Instant>,
    /// What happened to each packet, if asked for.
    pub trace: Option<Trace>,
    /// The port at which the fixed host listened for each connection, that of `[workload]` first;
    /// `None` of one that was not established, and of programs'.
    pub server_ports: Vec<Option<u16>>,
    /// Packets at the two ends of the link.
    pub counts: Counts,
    /// What the link counted, to the mobile and to the fixed side.
    pub link: [LinkCounters; 2],
    /// What the gateways at the fixed side and at the mobile counted, where there are any.
    pub gateways: [Option<GatewayCounters>; 2],
    /// What came of further gateways, their agents and the home agent, if there are any; the capture
    /// files of their links are with the others.
    pub roaming: Option<RoamingOutcome>,
    /// Kernel settings in force on both hosts, by name; where they differ, the name says at which.
    pub kernel_settings: Vec<(String, String)>,
    /// What the emulation cost.
    pub effort: Effort,
    /// The capture files, if asked for: of the fixed and of the mobile end of the mobile's link, then
    /// of those behind it, then of further gateways' links.
    pub captures: Vec<PathBuf>,
    /// What makes the numbers doubtful.
    pub warnings: Vec<String>,
}

/// A run that has ended.
pub(crate) struct Finished<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) index: u32,
    /// Every connection, that of `[workload]` first.
    pub(crate) flows: &'a [FlowOutcome],
    pub(crate) emulated: Emulated,
    /// By [`Side::index`].
    pub(crate) hosts: [&'a Host; 2],
    /// What was to be said before the run began.
    pub(crate) warning: Option<String>,
    pub(crate) files: &'a [[PathBuf; 2]],
}

/// Timers later than this distort what is measured.
const TOLERABLE_DELAY: Duration = Duration::from_millis(20);

pub(crate) fn assemble(run: Finished<'_>) -> Result<RunReport, LabError> {
    let Finished {
        scenario,
        index,
        flows,
        emulated: Emulated { path, effort, tuns },
        hosts,
        warning,
        files,
    } = run;
    let outcome = &flows[0].outcome;
    let Crossed {
        started,
        mut first,
        mut further,
        roaming,
        mut cells,
        hip,
        counts,
        tally,
        cross_traffic,
    } = path.finish();
    let mut warnings = faults(hosts, counts, effort)?;
    warnings.extend(warning);
    drop(tuns);
    let chain = std::iter::once(&mut first).chain(&mut further);
    for watch in chain.map(|link| &mut link.watch).chain(&mut cells) {
        warnings.extend(finish_capture(watch)?);
    }
    let counters = hosts[0]
        .tcp_counters()
        .and_then(|c| Ok([c, hosts[1].tcp_counters()?]))?;
    let way = tally.busier();
    let traffic = tally.way(way);
    let measured = Measured {
        started,
        deliveries: outcome.deliveries.as_ref().unwrap_or(traffic.delivered()),
        sender: outcome.sender.unwrap_or_else(|| {
            let sender = Side::reached_by(way).peer();
            account_of_host(&counters[sender.index()], traffic.retransmitted())
        }),
        // A host counts for all its connections.
        timed_out: outcome.timed_out
            || flows.len() == 1 && counters.iter().any(|c| c.aborted_on_timeout > 0),
        gateways: at_gateways(&first, roaming.as_ref()),
        drops: drops(&links(&first, roaming.as_ref())),
    };
    let result = RunResult {
        flows: flows::results(scenario, index, flows, started),
        traffic: cross_traffic.iter().map(source).collect(),
        hops: further.iter().map(hop).collect(),
        hip: hip.as_ref().map(topology::hip_result),
        ..result(scenario, index, outcome, &measured)
    };
    Ok(RunReport {
        result,
        started,
        trace: first.trace,
        server_ports: server_ports(flows),
        counts,
        link: first.link,
        gateways: first.gateways,
        roaming,
        kernel_settings: settings(hosts),
        effort,
        captures: files.concat(),
        warnings,
    })
}

/// The port of each connection, if it was established and is no program's.
fn server_ports(flows: &[FlowOutcome]) -> Vec<Option<u16>> {
    let ports = flows.iter();
    let ports = ports.map(|flow| Some(flow.terms.as_ref()?.server_port));
    ports.collect()
}

/// Waits for the rest of a capture; a warning if packets are missing.
fn finish_capture(observer: &mut Observer) -> Result<Option<String>, LabError> {
    let Some(capture) = observer.capture.take() else {
        return Ok(None);
    };
    let missing = capture.finish()?;
    Ok((missing > 0).then(|| format!("the disk was too slow: {missing} packets are not captured")))
}

/// A source of cross traffic.
fn source(outcome: &TrafficOutcome) -> TrafficResult {
    TrafficResult {
        sent_packets: outcome.sent,
        received_packets: outcome.received,
    }
}

/// One of the links behind the mobile's.
fn hop(link: &PathOutcome<Observer>) -> HopResult {
    HopResult {
        injected_packets: link.counts.injected(),
        dropped_packets: drops(&link.link),
    }
}

/// Kernel settings in force; where the hosts differ, each with its name.
fn settings(hosts: [&Host; 2]) -> Vec<(String, String)> {
    let of_host = |host: &Host, (name, value): &(String, String)| {
        (format!("{name} ({} host)", host.side), value.clone())
    };
    let [fixed, mobile] = hosts.map(|host| &host.settings);
    if fixed == mobile {
        return fixed.clone();
    }
    let mut settings = Vec::new();
    for setting in fixed {
        if mobile.contains(setting) {
            settings.push(setting.clone());
        } else {
            let other = mobile.iter().find(|(name, _)| *name == setting.0);
            settings.push(of_host(hosts[0], setting));
            settings.extend(other.map(|other| of_host(hosts[1], other)));
        }
    }
    settings
}

/// What was measured besides what the workload itself tells.
struct Measured<'a> {
    started: Option<Instant>,
    deliveries: &'a DeliveryLog,
    sender: SenderAccount,
    timed_out: bool,
    /// Packets wherever gateways look after the mobile's link.
    gateways: Vec<PathCounts>,
    drops: Drops,
}

fn result(
    scenario: &Scenario,
    index: u32,
    outcome: &Outcome,
    measured: &Measured<'_>,
) -> RunResult {
    let elapsed = measured
        .started
        .map_or(Duration::ZERO, |started| outcome.ended.since(started));
    let received = measured.deliveries.total();
    let framing = scenario.framing();
    let kernel = outlast_linux::kernel_release();
    let settings = Settings::new(scenario, index, World::Lab, scenario.stack.in_lab(kernel));
    RunResult {
        completed: outcome.completed,
        intact: outcome.intact,
        elapsed_s: elapsed.as_secs_f64(),
        ideal_s: scenario
            .ideal_time(index, framing)
            .map(|ideal| ideal.as_secs_f64()),
        utilisation: scenario.utilisation(index, framing, ByteCount(received), elapsed),
        outages: outages(scenario, index, elapsed, outcome.ended, measured),
        timeouts: measured.sender.timeouts,
        retransmitted_bytes: measured.sender.retransmitted_bytes,
        injected_packets: measured.gateways.iter().map(PathCounts::injected).sum(),
        injected_bytes: Some(measured.gateways.iter().map(|c| c.injected_bytes).sum()),
        user_timeout_abort: measured.timed_out,
        error: outcome.failure.clone(),
        bytes_received: Some(received),
        updates: outcome.updates,
        ideal_updates: scenario.ideal_updates(index, framing),
        dropped_packets: Some(measured.drops),
        ..RunResult::new(settings)
    }
}

/// The outages that began during the run, and what came after each.
fn outages(
    scenario: &Scenario,
    index: u32,
    elapsed: Duration,
    ended: Instant,
    measured: &Measured<'_>,
) -> Vec<OutageResult> {
    let Some(started) = measured.started else {
        return Vec::new();
    };
    let measure = Measure {
        scenario,
        index,
        framing: scenario.framing(),
        started,
        ended,
        workload: &scenario.workload,
        deliveries: measured.deliveries,
    };
    let outages = scenario.link_config(index).outages_until(elapsed);
    outages
        .iter()
        .map(|outage| {
            let after = outage.end.map(|end| measure.after(started + end));
            OutageResult::followed_by(outage, after.unwrap_or_default())
        })
        .collect()
}

/// What a host's TCP and the link tell of a sender whose socket is not at hand.
fn account_of_host(counters: &TcpCounters, retransmitted_bytes: u64) -> SenderAccount {
    SenderAccount {
        timeouts: Some(counters.timeouts),
        retransmitted_bytes: Some(retransmitted_bytes),
    }
}

/// What was counted on the mobile's link, wherever it went, and by the home agent.
fn at_gateways(first: &PathOutcome<Observer>, roaming: Option<&RoamingOutcome>) -> Vec<PathCounts> {
    let further = roaming.into_iter().flat_map(RoamingOutcome::counts);
    std::iter::once(&first.counts)
        .chain(further)
        .copied()
        .collect()
}

/// The links that the mobile may have been on, each both ways.
fn links(first: &PathOutcome<Observer>, roaming: Option<&RoamingOutcome>) -> Vec<LinkCounters> {
    let further = roaming.into_iter().flat_map(RoamingOutcome::links);
    first.link.iter().chain(further).copied().collect()
}

/// What the ways of links have dropped.
fn drops(ways: &[LinkCounters]) -> Drops {
    let of = |reason| ways.iter().map(|way| way.dropped(reason)).sum();
    Drops {
        queue_full: of(DropReason::QueueFull),
        loss: of(DropReason::Loss),
        link_down: of(DropReason::LinkDown),
        flushed: of(DropReason::Flushed),
        in_flight: of(DropReason::InFlight),
    }
}

/// What went wrong outside the emulated link.
fn faults(hosts: [&Host; 2], counts: Counts, effort: Effort) -> Result<Vec<String>, LabError> {
    let mut faults = Vec::new();
    for host in hosts {
        let lost = host.statistics()?.sent_dropped;
        if lost > 0 {
            let side = host.side;
            faults.push(format!(
                "the emulator could not keep up: {lost} packets of the {side} host are lost"
            ));
        }
    }
    if counts.refused > 0 {
        faults.push(format!("the kernel refused {} packets", counts.refused));
    }
    if effort.worst_delay > TOLERABLE_DELAY {
        let millis = effort.worst_delay.as_millis();
        faults.push(format!(
            "this machine is busy: the link was late by up to {millis} ms"
        ));
    }
    Ok(faults)
}
