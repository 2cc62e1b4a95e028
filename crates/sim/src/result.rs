//! From what came of a world to the result of a run.

use crate::setup::profile;
use outlast_core::time::Duration;
use outlast_core::units::ByteCount;
use outlast_link::DropReason;
use outlast_scenario::result::{Drops, OutageResult, RunResult, Settings, TcpInForce, World};
use outlast_scenario::{Congestion as Name, Framing, Scenario};
use outlast_tcp::profile::Congestion;
use outlast_world::{FlowOutcome, Outcome, Side, Stack};

pub(crate) fn result(
    scenario: &Scenario,
    index: u32,
    stacks: &[Stack; 2],
    outcome: &Outcome,
) -> RunResult {
    let flow = &outcome.flows[0];
    let elapsed = outcome
        .started
        .map_or(Duration::ZERO, |started| flow.ended.since(started));
    let received = flow.received[flow.receiver.index()];
    let tcp = in_force(scenario, stacks, flow.receiver.peer());
    let framing = Framing {
        timestamps: tcp.timestamps,
        ..scenario.framing()
    };
    let sender = flow.sender();
    let drops = |reason| outcome.link.iter().map(|way| way.dropped(reason)).sum();
    RunResult {
        completed: flow.is_complete,
        intact: flow.is_intact(),
        elapsed_s: elapsed.as_secs_f64(),
        ideal_s: scenario
            .ideal_time(index, framing)
            .map(|ideal| ideal.as_secs_f64()),
        utilisation: scenario.utilisation(index, framing, ByteCount(received), elapsed),
        outages: outages(scenario, index, elapsed, flow),
        timeouts: Some(sender.timeouts),
        retransmitted_bytes: Some(sender.retransmitted_bytes),
        injected_packets: outcome.counts.resent + outcome.counts.rereceived,
        user_timeout_abort: flow.is_given_up(),
        error: flow.lost.map(|lost| lost.to_string()),
        bytes_received: Some(received),
        updates: flow.updates,
        ideal_updates: scenario.ideal_updates(index, framing),
        dropped_packets: Some(Drops {
            queue_full: drops(DropReason::QueueFull),
            loss: drops(DropReason::Loss),
            link_down: drops(DropReason::LinkDown),
            flushed: drops(DropReason::Flushed),
            in_flight: drops(DropReason::InFlight),
        }),
        settings: Settings::new(scenario, index, World::Sim, tcp),
    }
}

/// The outages that began during the run, and how long after each the receiver had new bytes.
fn outages(
    scenario: &Scenario,
    index: u32,
    elapsed: Duration,
    flow: &FlowOutcome,
) -> Vec<OutageResult> {
    let resumed = flow.resumed.iter().copied().chain(std::iter::repeat(None));
    let outages = scenario.link_config(index).outages_until(elapsed);
    outages
        .iter()
        .zip(resumed)
        .map(|(outage, resumed)| OutageResult {
            resume_s: resumed.map(|after| after.as_secs_f64()),
            ..OutageResult::new(outage)
        })
        .collect()
}

/// The TCP of the payload's `sender`, with the options that both ends agree on.
fn in_force(scenario: &Scenario, stacks: &[Stack; 2], sender: Side) -> TcpInForce {
    let stack = &stacks[sender.index()];
    let congestion = stack.congestion.unwrap_or(*stack.profile.congestion);
    let sack = |stack: &Stack| stack.sack.unwrap_or(stack.profile.offers.sack);
    let timestamps = |stack: &Stack| stack.timestamps.unwrap_or(stack.profile.offers.timestamps);
    TcpInForce {
        profile: Some(profile(&scenario.stack, sender)),
        kernel: None,
        congestion: match congestion {
            Congestion::Reno => Name::Reno,
            Congestion::Cubic => Name::Cubic,
            Congestion::Bbr => Name::Bbr,
        }
        .to_string(),
        sack: stacks.iter().all(sack),
        timestamps: stacks.iter().all(timestamps),
    }
}
