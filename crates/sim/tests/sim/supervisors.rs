//! A thousand connections of a mobile that goes from one supervisor host to another one.

use outlast_scenario::Scenario;
use outlast_sim::{RunReport, run};
use std::path::Path;

/// A thousand transfers to a mobile that is away for three seconds, and then at the second supervisor
/// host, and so on to the third; with `more` in the scenario.
fn move_thousand(mechanism: &str, profile: &str, more: &str) -> RunReport {
    let text = format!(
        "[link]\nrate = \"200 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 8000\n\
         [workload]\nkind = \"bulk\"\nbytes = \"60 kB\"\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"60 kB\"\ncount = 999\n\
         [stack]\nprofile = \"{profile}\"\n\
         [outlast]\ngateway = \"{mechanism}\"\n\
         [[handoffs]]\nat = \"700 ms\"\ngap = \"3 s\"\nto = 2\n\
         [[handoffs]]\nat = \"4500 ms\"\ngap = \"3 s\"\nto = 3\n\
         [run]\ndeadline = \"600 s\"\n{more}"
    );
    let scenario = Scenario::parse(&text, "test.toml", Path::new(".")).expect("a sound scenario");
    run(&scenario, 0).expect("it can be simulated")
}

/// What the supervisor hosts have taken over.
fn taken_over(report: &RunReport) -> Vec<u64> {
    let roaming = report.outcome.roaming.as_ref().expect("there are three");
    let agents = roaming.agents.iter().flatten();
    agents.map(|counters| counters.taken_over).collect()
}

#[track_caller]
fn assert_all_intact(report: &RunReport) {
    let flows = &report.result.flows;
    assert_eq!(flows.len(), 1_000);
    for (index, flow) in flows.iter().enumerate() {
        assert_eq!(
            (flow.completed, flow.intact),
            (true, Some(true)),
            "flow {index}: {flow:?}"
        );
    }
}

/// How long after its first return the mobile had something new on half of the connections.
fn median_resume(report: &RunReport) -> f64 {
    let flows = report.result.flows.iter();
    let never = f64::INFINITY;
    let mut times: Vec<f64> = flows
        .map(|flow| flow.resume_s[0].unwrap_or(never))
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

#[test]
fn a_thousand_connections_are_moved_while_transferring() {
    let [with, without] = ["[agents]\n", ""].map(|agents| {
        let report = move_thousand("m-tcp", "netbsd-1997", agents);
        assert_all_intact(&report);
        report
    });
    assert_eq!(taken_over(&with)[1], 1_000);
    let [moved, stalled] = [&with, &without].map(median_resume);
    assert!(moved < 1.0, "{moved}");
    assert!(stalled > moved * 2.0, "the control: {stalled}, not {moved}");
}

#[test]
fn senders_on_linux_are_moved_too() {
    let report = move_thousand("m-tcp-adaptive", "linux-6", "[agents]\n");
    assert_all_intact(&report);
    assert_eq!(taken_over(&report)[1], 1_000);
}

#[test]
fn the_crash_of_a_supervisor_host_that_has_a_thousand_connections_ends_none() {
    // The old one amid the gap, with all windows shrunk; the new one when it has taken over some.
    for (at, gateway) in [("3 s", 1), ("3706 ms", 2)] {
        let crash = format!("[agents]\n[[crashes]]\nat = \"{at}\"\ngateway = {gateway}\n");
        assert_all_intact(&move_thousand("m-tcp", "netbsd-1997", &crash));
    }
}
