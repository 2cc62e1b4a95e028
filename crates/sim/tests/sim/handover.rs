//! Scenario files in which the mobile goes from gateway to gateway.

use outlast_scenario::Scenario;
use outlast_sim::{RunReport, run};
use std::path::Path;

/// The example, with something taken out and something put in.
fn example(without: &str, with: &str) -> RunReport {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let text = std::fs::read_to_string(directory.join("handover.toml")).expect("it is there");
    assert!(text.contains(without));
    let text = text.replace(without, "") + with;
    let scenario = Scenario::parse(&text, "handover.toml", &directory);
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(100)));
    run(&scenario, 0).expect("it can be simulated")
}

const AGENTS: &str = "[agents]\ndelay = \"5 ms\"\nlost_after = \"30 s\"\n";

#[test]
fn with_agents_the_transfer_goes_on_and_without_them_it_is_stuck() {
    let report = example("", "");
    let result = &report.result;
    assert_eq!((result.completed, result.intact), (true, Some(true)));
    let [outage] = result.outages[..] else {
        panic!("one hand-off, not {:?}", result.outages)
    };
    assert_eq!((outage.start_s, outage.length_s), (1.0, Some(5.0)));
    let resume = outage.resume_s.expect("it went on");
    assert!(resume < 60.0, "{resume}");
    let agents = report
        .outcome
        .roaming
        .as_ref()
        .expect("there are two")
        .agents
        .clone();
    assert_eq!(agents[1].expect("it runs").taken_over, 1);

    let stuck = example(AGENTS, "").result;
    assert!(
        !stuck.completed && stuck.error.is_none(),
        "{:?}",
        stuck.error
    );
    assert_eq!(stuck.outages[0].resume_s, None);
}

#[test]
fn after_a_crash_the_connection_is_reset_and_without_agents_it_is_stuck() {
    let crash = "[[crashes]]\nat = \"4 s\"\ngateway = 1\n";
    let reset = example("", crash).result;
    let error = reset.error.expect("it was reset");
    assert!(error.contains("reset"), "{error}");
    // Lost after thirty seconds.
    assert!(
        (34.0..35.0).contains(&reset.elapsed_s),
        "{}",
        reset.elapsed_s
    );
    let stuck = example(AGENTS, crash).result;
    assert_eq!((stuck.completed, stuck.error), (false, None));

    let back = format!("{crash}back_after = \"5 s\"\n");
    let result = example("", &back).result;
    assert_eq!((result.completed, result.intact), (true, Some(true)));
}

/// How long after its arrival the mobile had new bytes.
fn resumed(outlast: &str, forward: bool) -> f64 {
    let text = format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n[workload]\nkind = \"bulk\"\n\
         bytes = \"3 MB\"\n[outlast]\n{outlast}\n[[handoffs]]\nat = \"1 s\"\ngap = \"3 s\"\n\
         to = 2\nforward = {forward}\n"
    );
    let scenario = Scenario::parse(&text, "test.toml", Path::new(".")).expect("a sound scenario");
    let result = run(&scenario, 0).expect("it can be simulated").result;
    assert_eq!(result.intact, Some(true));
    result.outages[0].resume_s.expect("it went on")
}

#[test]
fn a_cached_retransmission_is_sent_on_by_the_home_agent_or_the_old_foreign_agent() {
    let without = resumed("", true);
    assert!(without > 1.0, "{without}");
    let at_home = resumed("home_agent = \"retransmission-cache\"", false);
    let at_foreign = resumed("gateway = \"retransmission-cache\"", true);
    let untold = resumed("gateway = \"retransmission-cache\"", false);
    assert!(at_home < 0.15, "{at_home}");
    assert!(at_foreign < 0.15, "{at_foreign}");
    assert!(untold > 1.0, "{untold}");
}

#[test]
fn a_mechanism_of_the_mobile_is_there_where_the_mobile_stays() {
    let text = "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n\
         [link.outages]\nprocess = \"single\"\nstart = \"1 s\"\nlength = \"3 s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"3 MB\"\ndirection = \"upload\"\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n\
         [[crashes]]\nat = \"500 ms\"\ngateway = 1\n";
    let scenario = Scenario::parse(text, "test.toml", Path::new(".")).expect("a sound scenario");
    let report = run(&scenario, 0).expect("it can be simulated");
    assert_eq!(report.result.intact, Some(true));
    let [fixed, mobile] = &report.outcome.gateways;
    assert!(fixed.is_none() && mobile.is_some(), "only the one has died");
    let resume = report.result.outages[0].resume_s.expect("it went on");
    assert!(resume < 0.1, "{resume}");
}
