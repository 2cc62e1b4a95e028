//! What came of a run.

use crate::delivery::DeliveryLog;
use crate::emulator::{Crossing, Effort};
use crate::error::LabError;
use crate::host::Host;
use crate::observer::Counts;
use crate::workload::{Outcome, SenderAccount};
use outlast_core::counters::Counters as GatewayCounters;
use outlast_core::time::{Duration, Instant};
use outlast_core::units::ByteCount;
use outlast_link::{Counters as LinkCounters, DropReason, Way};
use outlast_linux::counters::TcpCounters;
use outlast_scenario::Scenario;
use outlast_scenario::result::{Drops, OutageResult, RunResult, Settings, World};
use outlast_world::Side;
use outlast_world::trace::Trace;
use std::path::PathBuf;

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
    /// Packets at the two ends of the link.
    pub counts: Counts,
    /// What the link counted, to the mobile and to the fixed side.
    pub link: [LinkCounters; 2],
    /// What the gateways at the fixed side and at the mobile counted, where there are any.
    pub gateways: [Option<GatewayCounters>; 2],
    /// Kernel settings in force on both hosts, by name.
    pub kernel_settings: Vec<(String, String)>,
    /// What the emulation cost.
    pub effort: Effort,
    /// The capture files, of the fixed and of the mobile end, if asked for.
    pub captures: Option<[PathBuf; 2]>,
    /// What makes the numbers doubtful.
    pub warnings: Vec<String>,
}

/// A run that has ended.
pub(crate) struct Finished<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) index: u32,
    pub(crate) outcome: Outcome,
    pub(crate) crossing: Crossing,
    /// By [`Side::index`].
    pub(crate) hosts: [&'a Host; 2],
    pub(crate) files: Option<&'a [PathBuf; 2]>,
}

/// Timers later than this distort what is measured.
const TOLERABLE_DELAY: Duration = Duration::from_millis(20);

pub(crate) fn assemble(run: Finished<'_>) -> Result<RunReport, LabError> {
    let Finished {
        crossing: Crossing {
            mut path,
            effort,
            tuns,
        },
        hosts,
        ..
    } = run;
    let mut warnings = faults(hosts, path.observer.counts, effort)?;
    drop(tuns);
    if let Some(capture) = path.observer.capture.take() {
        let missing = capture.finish()?;
        if missing > 0 {
            warnings.push(format!(
                "the disk was too slow: {missing} packets are not captured"
            ));
        }
    }
    let counters = hosts[0]
        .tcp_counters()
        .and_then(|c| Ok([c, hosts[1].tcp_counters()?]))?;
    let link = Way::BOTH.map(|way| *path.link().counters(way));
    let gateways = Side::BOTH.map(|side| path.gateway(side).map(|gateway| *gateway.counters()));
    let observer = path.observer;
    let way = observer.traffic.busier();
    let traffic = observer.traffic.way(way);
    let measured = Measured {
        started: observer.started,
        deliveries: run
            .outcome
            .deliveries
            .as_ref()
            .unwrap_or(traffic.delivered()),
        sender: run.outcome.sender.unwrap_or_else(|| {
            let sender = Side::reached_by(way).peer();
            account_of_host(&counters[sender.index()], traffic.retransmitted())
        }),
        timed_out: run.outcome.timed_out || counters.iter().any(|c| c.aborted_on_timeout > 0),
        injected: observer.counts.resent + observer.counts.rereceived,
        drops: drops(&link),
    };
    let result = result(run.scenario, run.index, &run.outcome, &measured);
    Ok(RunReport {
        result,
        started: observer.started,
        trace: observer.trace,
        counts: observer.counts,
        link,
        gateways,
        kernel_settings: hosts[0].settings.clone(),
        effort,
        captures: run.files.cloned(),
        warnings,
    })
}

/// What was measured besides what the workload itself tells.
struct Measured<'a> {
    started: Option<Instant>,
    deliveries: &'a DeliveryLog,
    sender: SenderAccount,
    timed_out: bool,
    injected: u64,
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
        injected_packets: measured.injected,
        user_timeout_abort: measured.timed_out,
        error: outcome.failure.clone(),
        bytes_received: Some(received),
        updates: outcome.updates,
        ideal_updates: scenario.ideal_updates(index, framing),
        dropped_packets: Some(measured.drops),
        flows: Vec::new(),
        traffic: Vec::new(),
        hops: Vec::new(),
        settings: Settings::new(scenario, index, World::Lab, scenario.stack.in_lab(kernel)),
    }
}

/// The outages that began during the run, and how long after each the receiver had new bytes.
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
    let mut results = Vec::new();
    for outage in scenario.link_config(index).outages_until(elapsed) {
        let mut result = OutageResult::new(&outage);
        if let Some(end) = outage.end {
            let back = started + end;
            let resumed = measured.deliveries.first_since(back);
            let in_time = resumed.filter(|&at| at <= ended);
            result.resume_s = in_time.map(|at| at.since(back).as_secs_f64());
        }
        results.push(result);
    }
    results
}

/// What a host's TCP and the link tell of a sender whose socket is not at hand.
fn account_of_host(counters: &TcpCounters, retransmitted_bytes: u64) -> SenderAccount {
    SenderAccount {
        timeouts: Some(counters.timeouts),
        retransmitted_bytes: Some(retransmitted_bytes),
    }
}

fn drops(link: &[LinkCounters; 2]) -> Drops {
    let of = |reason| link.iter().map(|way| way.dropped(reason)).sum();
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
