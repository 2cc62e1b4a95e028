//! The JSON of results.

use crate::fixture::{PLAIN, scenario};
use outlast_link::Outage;
use outlast_scenario::result::{
    Drops, FlowResult, HipResult, HopResult, OutageResult, RunResult, ScenarioResult, Settings,
    TcpInForce, TrafficResult, World,
};
use outlast_scenario::{Direction, Profile, Scenario, WorkloadKind};
use std::time::Duration;

fn outage(start: u64, end: Option<u64>) -> OutageResult {
    let (start, end) = (Duration::from_secs(start), end.map(Duration::from_secs));
    OutageResult::new(&Outage { start, end })
}

fn aided() -> Scenario {
    scenario(&format!(
        "{PLAIN}\n[outlast]\ngateway = \"hold\"\nmobile = \"hold\"\nuser_timeout = \"10 min\"\n"
    ))
}

/// A run over several links, with cross traffic and two connections.
fn shared(alone: &RunResult) -> RunResult {
    let tcp = alone.settings.tcp.clone();
    let flow = FlowResult {
        completed: true,
        intact: Some(true),
        begin_s: 0.0,
        elapsed_s: 12.75,
        resume_s: vec![Some(0.125)],
        half_second_s: vec![Some(0.75)],
        first_five_seconds_share: vec![Some(0.5)],
        timeouts: Some(3),
        retransmitted_bytes: Some(28_960),
        user_timeout_abort: false,
        error: None,
        bytes_received: 1_000_000,
        updates: None,
        workload: WorkloadKind::Bulk,
        direction: Some(Direction::Download),
        bytes: Some(1_000_000),
        tcp,
    };
    let exchange = FlowResult {
        begin_s: 2.5,
        resume_s: vec![None],
        half_second_s: vec![None],
        first_five_seconds_share: vec![None],
        bytes_received: 20_000,
        workload: WorkloadKind::RequestResponse,
        direction: None,
        bytes: None,
        ..flow.clone()
    };
    RunResult {
        flows: vec![flow, exchange],
        traffic: vec![TrafficResult {
            sent_packets: 2_500,
            received_packets: 2_419,
        }],
        hops: vec![HopResult {
            injected_packets: 0,
            dropped_packets: Drops {
                queue_full: 81,
                ..Drops::default()
            },
        }],
        ..alone.clone()
    }
}

/// A completed run of the lab, one of the simulator that was given up, and one that shared its link.
pub(crate) fn results() -> [ScenarioResult; 3] {
    let scenario = aided();
    let in_lab = scenario.stack.in_lab("6.18.5".to_owned());
    let completed = RunResult {
        completed: true,
        intact: Some(true),
        elapsed_s: 12.5,
        ideal_s: Some(12.25),
        utilisation: Some(0.96875),
        outages: vec![OutageResult {
            resume_s: Some(0.125),
            half_second_s: Some(0.625),
            first_five_seconds_share: Some(0.9375),
            ..outage(2, Some(6))
        }],
        timeouts: Some(3),
        retransmitted_bytes: Some(28_960),
        injected_packets: 17,
        injected_bytes: Some(8_840),
        user_timeout_abort: false,
        error: None,
        bytes_received: Some(1_000_000),
        updates: None,
        ideal_updates: None,
        dropped_packets: Some(Drops {
            link_down: 20,
            flushed: 5,
            ..Drops::default()
        }),
        flows: Vec::new(),
        traffic: Vec::new(),
        hops: Vec::new(),
        hip: Some(HipResult {
            readdressing_s: vec![0.075, 0.125],
            strayed_packets: 3,
        }),
        settings: Settings::new(&scenario, 0, World::Lab, in_lab),
    };
    let tcp = TcpInForce {
        profile: Some(Profile::Bsd43Tahoe),
        kernel: None,
        congestion: "tahoe".to_owned(),
        sack: false,
        timestamps: false,
    };
    let aborted = RunResult {
        completed: false,
        intact: None,
        elapsed_s: 300.0,
        ideal_s: None,
        utilisation: None,
        outages: vec![outage(2, None)],
        timeouts: None,
        retransmitted_bytes: None,
        user_timeout_abort: true,
        error: Some("the fixed host gave the connection up".to_owned()),
        settings: Settings::new(&scenario, 4, World::Sim, tcp),
        ..completed.clone()
    };
    let shared = shared(&aborted);
    let result = |world, run| ScenarioResult {
        kernel: None,
        scenario: "bus tunnel".to_owned(),
        world,
        runs: vec![run],
        control: Vec::new(),
    };
    let compared = ScenarioResult {
        kernel: None,
        control: vec![aborted.clone()],
        ..result(World::Lab, completed)
    };
    [
        compared,
        result(World::Sim, aborted),
        result(World::Sim, shared),
    ]
}

#[test]
fn results_in_json() {
    insta::assert_json_snapshot!(results());
}

#[test]
fn results_can_be_read_again() {
    for result in results() {
        let json = serde_json::to_string(&result).expect("results become JSON");
        let again: ScenarioResult = serde_json::from_str(&json).expect("and JSON results");
        assert_eq!(again, result);
    }
}

#[test]
fn the_lab_fills_in_what_the_file_leaves_open() {
    let tcp = scenario(PLAIN).stack.in_lab("6.18.5".to_owned());
    assert_eq!(
        (tcp.congestion.as_str(), tcp.sack, tcp.timestamps),
        ("cubic", true, true)
    );
    let text = format!("{PLAIN}\n[stack]\ncongestion = \"bbr\"\nsack = false\n");
    let tcp = scenario(&text).stack.in_lab("6.18.5".to_owned());
    assert_eq!(
        (tcp.congestion.as_str(), tcp.sack, tcp.timestamps),
        ("bbr", false, true)
    );
}
