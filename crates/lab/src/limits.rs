//! What a scenario may ask of the lab, whose hosts are one kernel and whose time is real.

use crate::error::LabError;
use outlast_scenario::{Scenario, Traffic, WorkloadKind};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The most connections, each of which takes two threads.
const MAX_CONNECTIONS: usize = 1_000;

/// The most datagrams of cross traffic: each costs the emulator a microsecond or two.
const MAX_DATAGRAMS_PER_SECOND: f64 = 100_000.0;

/// File descriptors of one connection: two sockets and one that listens, an event, two timers.
const DESCRIPTORS_OF_CONNECTION: u64 = 6;
/// File descriptors of everything but connections.
///
/// There is room for whoever else runs in this process.
const OTHER_DESCRIPTORS: u64 = 256;

/// Refuses what the lab has not.
pub(crate) fn check(scenario: &Scenario) -> Result<(), LabError> {
    let refused = |table, reason| Err(LabError::Topology { table, reason });
    let connections = scenario.connections().count();
    if connections > MAX_CONNECTIONS {
        let reason = format!(
            "{connections} connections are more than the {MAX_CONNECTIONS} that it has threads for; \
             use `outlast sim`, or write smaller `count`s"
        );
        return refused("flows", reason);
    }
    if !scenario.flows.is_empty() && scenario.workload.kind() == WorkloadKind::Command {
        let reason = "what the programs of `kind = \"command\"` send could not be told from what these \
                      connections send; let the programs open them, or choose another `kind`";
        return refused("flows", reason.to_owned());
    }
    let retries = scenario.stack.retries;
    let mut flows = scenario.flows.iter();
    if let Some(flow) = flows.find(|flow| flow.stack.retries != retries) {
        let reason = format!(
            "the retransmissions after which a kernel gives up are one number for all connections of a \
             host, and here {} for one and {} for the workload; write `retries` in `[stack]` only, or \
             use `outlast sim`",
            named(flow.stack.retries),
            named(retries)
        );
        return refused("flows", reason);
    }
    let max_rto = scenario.stack.max_rto;
    if scenario
        .flows
        .iter()
        .any(|flow| flow.stack.max_rto != max_rto)
    {
        let reason = "the longest retransmission timeout is one for all connections of a host; write \
                      `max_rto` in `[stack]` only, or use `outlast sim`";
        return refused("flows", reason.to_owned());
    }
    let datagrams: f64 = scenario.traffic.iter().map(datagrams_per_second).sum();
    if datagrams > MAX_DATAGRAMS_PER_SECOND {
        let reason = format!(
            "{datagrams:.0} datagrams a second are more than the {MAX_DATAGRAMS_PER_SECOND:.0} that it \
             sends in real time; use `outlast sim`, or write lower `rate`s or a larger `packet`"
        );
        return refused("traffic", reason);
    }
    Ok(())
}

/// How much a source sends at most.
fn datagrams_per_second(traffic: &Traffic) -> f64 {
    let one = traffic.rate.time_for(traffic.packet);
    // A rate of a packet in less than a nanosecond is as good as one in a nanosecond.
    1.0 / one.as_secs_f64().max(1e-9)
}

fn named(retries: Option<u32>) -> String {
    retries.map_or_else(|| "the kernel's".to_owned(), |retries| retries.to_string())
}

/// Lets this process have the file descriptors that the connections of `scenario` need.
pub(crate) fn make_room(scenario: &Scenario) -> Result<(), LabError> {
    if scenario.flows.is_empty() {
        return Ok(());
    }
    let connections = scenario.connections().count() as u64;
    let needed = DESCRIPTORS_OF_CONNECTION * connections + OTHER_DESCRIPTORS;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let allowed = maximum.unwrap_or(u64::MAX);
    let more = Rlimit {
        current: maximum,
        maximum,
    };
    if allowed < needed || setrlimit(Resource::Nofile, more).is_err() {
        return Err(LabError::Descriptors { needed, allowed });
    }
    Ok(())
}
