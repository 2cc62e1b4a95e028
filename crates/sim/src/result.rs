//! From what came of a world to the result of a run.

use crate::setup::profile;
use crate::topology;
use outlast_base::time::{Duration, Instant};
use outlast_base::units::ByteCount;
use outlast_link::{Counters, DropReason};
use outlast_scenario::result::{
    Drops, FlowResult, HopResult, OutageResult, Return, RunResult, Settings, TcpInForce,
    TrafficResult, World,
};
use outlast_scenario::{
    Congestion as Name, Connection, Direction, Framing, Scenario, Stack as StackWish, Workload,
};
use outlast_tcp::profile::Congestion;
use outlast_world::{
    Counts, FlowOutcome, HopOutcome, Outcome, Recovery, RoamingOutcome, Side, Stack, TrafficOutcome,
};

/// The result of run `index`, whose connections had `stacks`.
pub(crate) fn result(
    scenario: &Scenario,
    index: u32,
    stacks: &[[Stack; 2]],
    outcome: &Outcome,
) -> RunResult {
    // That of `[workload]` begins at once.
    let flow = &outcome.flows[0];
    let elapsed = outcome
        .started
        .map_or(Duration::ZERO, |started| flow.ended.since(started));
    let received = flow.received[flow.receiver.index()];
    let tcp = in_force(&scenario.stack, &stacks[0], flow.receiver.peer());
    let framing = Framing {
        timestamps: tcp.timestamps,
        ..scenario.framing()
    };
    let sender = flow.sender();
    let measure = Measure {
        scenario,
        index,
        framing,
        started: outcome.started,
        workload: &scenario.workload,
    };
    RunResult {
        completed: flow.is_complete,
        intact: flow.is_intact(),
        elapsed_s: elapsed.as_secs_f64(),
        ideal_s: scenario
            .ideal_time(index, framing)
            .map(|ideal| ideal.as_secs_f64()),
        utilisation: scenario.utilisation(index, framing, ByteCount(received), elapsed),
        outages: outages(scenario, index, elapsed, measure.returns(flow)),
        timeouts: Some(sender.timeouts),
        retransmitted_bytes: Some(sender.retransmitted_bytes),
        injected_packets: counts(outcome).map(Counts::injected).sum(),
        injected_bytes: Some(counts(outcome).map(|counts| counts.injected_bytes).sum()),
        user_timeout_abort: flow.is_given_up(),
        error: flow.lost.map(|lost| lost.to_string()),
        bytes_received: Some(received),
        updates: flow.updates,
        ideal_updates: scenario.ideal_updates(index, framing),
        dropped_packets: Some(drops(&links(outcome))),
        flows: flows(scenario, index, stacks, outcome),
        traffic: outcome.traffic.iter().map(traffic).collect(),
        hops: outcome.hops.iter().map(hop).collect(),
        hip: outcome.hip.as_ref().map(topology::hip_result),
        settings: Settings::new(scenario, index, World::Sim, tcp),
    }
}

/// What gateways sent on `[link]` and those like it, and where the ways to them meet.
fn counts(outcome: &Outcome) -> impl Iterator<Item = &Counts> {
    let roaming = outcome.roaming.iter().flat_map(RoamingOutcome::counts);
    std::iter::once(&outcome.counts).chain(roaming)
}

/// What `[link]` and those like it have counted, both ways.
fn links(outcome: &Outcome) -> Vec<Counters> {
    let further = outcome.roaming.iter().flat_map(RoamingOutcome::links);
    outcome.link.iter().chain(further).copied().collect()
}

fn drops(link: &[Counters]) -> Drops {
    let of = |reason| link.iter().map(|way| way.dropped(reason)).sum();
    Drops {
        queue_full: of(DropReason::QueueFull),
        loss: of(DropReason::Loss),
        link_down: of(DropReason::LinkDown),
        flushed: of(DropReason::Flushed),
        in_flight: of(DropReason::InFlight),
    }
}

fn traffic(outcome: &TrafficOutcome) -> TrafficResult {
    TrafficResult {
        sent_packets: outcome.sent,
        received_packets: outcome.received,
    }
}

fn hop(outcome: &HopOutcome) -> HopResult {
    HopResult {
        injected_packets: outcome.counts.injected(),
        dropped_packets: drops(&outcome.link),
    }
}

/// Every connection, if there is more than one.
fn flows(
    scenario: &Scenario,
    index: u32,
    stacks: &[[Stack; 2]],
    outcome: &Outcome,
) -> Vec<FlowResult> {
    if scenario.flows.is_empty() {
        return Vec::new();
    }
    let all = scenario.connections().zip(stacks);
    let started = outcome.started;
    let mut begun = outcome.flows.iter().peekable();
    let mut results = Vec::with_capacity(stacks.len());
    for (number, (connection, stacks)) in all.enumerate() {
        let Connection {
            begin,
            workload,
            stack: wishes,
        } = connection;
        let outcome = begun.next_if(|flow| flow.number == number);
        let tcp = in_force(wishes, stacks, sender(workload));
        let measure = Measure {
            scenario,
            index,
            framing: Framing {
                timestamps: tcp.timestamps,
                ..scenario.framing()
            },
            started,
            workload,
        };
        results.push(flow(&measure, begin, tcp, outcome));
    }
    results
}

/// The side that sends the payload.
fn sender(workload: &Workload) -> Side {
    match workload {
        Workload::Bulk { direction, .. } => Side::reached_by(direction.way()).peer(),
        Workload::Interactive { .. } | Workload::RequestResponse { .. } | Workload::Command(_) => {
            Side::Fixed
        }
    }
}

/// A connection that was to begin at `begin`; without an outcome, the run ended before.
fn flow(
    measure: &Measure<'_>,
    begin: Duration,
    tcp: TcpInForce,
    outcome: Option<&FlowOutcome>,
) -> FlowResult {
    let workload = measure.workload;
    let (direction, bytes) = workload.transfer();
    let sender = outcome.map(|flow| *flow.sender()).unwrap_or_default();
    let elapsed = outcome.map_or(Duration::ZERO, |flow| flow.ended.since(flow.began));
    let received = outcome.map_or(0, |flow| flow.received[flow.receiver.index()]);
    let returns = || outcome.into_iter().flat_map(|flow| measure.returns(flow));
    let error = outcome.and_then(|flow| flow.lost);
    FlowResult {
        completed: outcome.is_some_and(|flow| flow.is_complete),
        intact: outcome.and_then(FlowOutcome::is_intact),
        begin_s: begin.as_secs_f64(),
        elapsed_s: elapsed.as_secs_f64(),
        resume_s: returns().map(|back| back.resume_s).collect(),
        half_second_s: returns().map(|back| back.half_second_s).collect(),
        first_five_seconds_share: returns()
            .map(|back| back.first_five_seconds_share)
            .collect(),
        timeouts: Some(sender.timeouts),
        retransmitted_bytes: Some(sender.retransmitted_bytes),
        user_timeout_abort: outcome.is_some_and(FlowOutcome::is_given_up),
        error: error.map(|lost| lost.to_string()),
        bytes_received: received,
        updates: outcome.and_then(|flow| flow.updates),
        workload: workload.kind(),
        direction,
        bytes,
        tcp,
    }
}

/// What a connection's returns are measured by.
struct Measure<'a> {
    scenario: &'a Scenario,
    index: u32,
    framing: Framing,
    /// When the run's first byte of payload came to a link.
    started: Option<Instant>,
    workload: &'a Workload,
}

impl Measure<'_> {
    /// What came to the receiver of `flow` after each return of the link.
    fn returns(&self, flow: &FlowOutcome) -> impl Iterator<Item = Return> {
        let ended = flow.ended;
        flow.recoveries
            .iter()
            .map(move |back| self.return_of(back, ended))
    }

    fn return_of(&self, recovery: &Recovery, ended: Instant) -> Return {
        let Self {
            scenario,
            index,
            framing,
            ..
        } = *self;
        let seconds = |after: Option<Duration>| after.map(|after| after.as_secs_f64());
        let way = self.workload.transfer().0.map(Direction::way);
        let way = way.filter(|&way| scenario.half_second(index, way).is_some());
        Return {
            resume_s: seconds(recovery.first),
            half_second_s: way.and_then(|_| seconds(recovery.half_second)),
            first_five_seconds_share: way.zip(self.started).and_then(|(way, started)| {
                let [back, ended] = [recovery.back, ended].map(|at| at.since(started));
                let payload = ByteCount(recovery.five_seconds);
                scenario.share_after(index, framing, way, back, ended, payload)
            }),
        }
    }
}

/// The outages that began during the run, and what came after each.
fn outages(
    scenario: &Scenario,
    index: u32,
    elapsed: Duration,
    returns: impl Iterator<Item = Return>,
) -> Vec<OutageResult> {
    let returns = returns.chain(std::iter::repeat(Return::default()));
    let outages = scenario.link_config(index).outages_until(elapsed);
    outages
        .iter()
        .zip(returns)
        .map(|(outage, after)| OutageResult::followed_by(outage, after))
        .collect()
}

/// The TCP of the payload's `sender`, with the options that both ends agree on.
fn in_force(wishes: &StackWish, stacks: &[Stack; 2], sender: Side) -> TcpInForce {
    let stack = &stacks[sender.index()];
    let congestion = stack.congestion.unwrap_or(*stack.profile.congestion);
    let sack = |stack: &Stack| stack.sack.unwrap_or(stack.profile.offers.sack);
    let timestamps = |stack: &Stack| stack.timestamps.unwrap_or(stack.profile.offers.timestamps);
    TcpInForce {
        profile: Some(profile(wishes, sender)),
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
