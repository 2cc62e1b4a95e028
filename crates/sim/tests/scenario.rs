//! Scenario files, and the results that they give.

use outlast_scenario::Scenario;
use outlast_sim::{SimError, run};
use std::path::Path;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml", Path::new(".")).expect("a sound scenario")
}

const INTERRUPTED: &str = "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n\
    [link.outages]\nprocess = \"single\"\nstart = \"1 s\"\nlength = \"5 s\"\n\
    [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\n";

#[test]
fn a_result_has_what_the_format_promises() {
    let result = run(&scenario(INTERRUPTED), 0)
        .expect("it can be simulated")
        .result;
    assert!(result.completed);
    assert_eq!(result.intact, Some(true));
    assert_eq!(result.bytes_received, Some(2_000_000));
    assert_eq!(result.injected_packets, 0);
    assert!(result.timeouts.is_some_and(|timeouts| timeouts >= 4));
    let [outage] = result.outages[..] else {
        panic!("one outage, not {:?}", result.outages)
    };
    assert_eq!((outage.start_s, outage.length_s), (1.0, Some(5.0)));
    assert!(outage.resume_s.is_some_and(|resume| resume > 0.05));
    let ideal = result.ideal_s.expect("a bulk transfer has one");
    assert!(ideal > 6.0 && ideal < result.elapsed_s, "{ideal}");
    let drops = result.dropped_packets.expect("they are counted");
    assert!(drops.link_down >= 4);
    let json = serde_json::to_value(&result).expect("serialisable");
    assert_eq!(json["world"], "sim");
    assert_eq!(json["profile"], "linux-6");
    assert_eq!(json["congestion"], "cubic");
    assert_eq!(json["kernel"], serde_json::Value::Null);
}

#[test]
fn hold_resumes_and_the_result_says_so() {
    let text = format!("{INTERRUPTED}[outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n");
    let result = run(&scenario(&text), 0)
        .expect("it can be simulated")
        .result;
    assert!(
        result.outages[0]
            .resume_s
            .is_some_and(|resume| resume <= 0.05)
    );
    assert!(result.injected_packets > 0);
}

#[test]
fn what_an_old_stack_lacks_is_told() {
    let text = format!("{INTERRUPTED}[stack]\nprofile = \"bsd-4.3-tahoe\"\n");
    let result = run(&scenario(&text), 0)
        .expect("it can be simulated")
        .result;
    let tcp = &result.settings.tcp;
    assert!(result.completed && !tcp.sack && !tcp.timestamps);
    let text = format!("{text}congestion = \"cubic\"\n");
    let refused = run(&scenario(&text), 0).expect_err("Tahoe has no CUBIC");
    assert!(
        matches!(refused, SimError::NoSuchCongestionControl { .. }),
        "{refused}"
    );
}

#[test]
fn the_hosts_may_differ() {
    let text = format!(
        "{INTERRUPTED}[stack.fixed]\nprofile = \"aix-4.3\"\n\
         [stack.mobile]\nprofile = \"linux-2.2\"\nreceive_buffer = \"10 kB\"\n"
    );
    let result = run(&scenario(&text), 0)
        .expect("it can be simulated")
        .result;
    let json = serde_json::to_value(&result).expect("serialisable");
    // The sender's name; Linux would have timestamps, but both have to.
    assert_eq!(json["profile"], "aix-4.3");
    assert_eq!(json["timestamps"], false);
    // 10 kB in each round trip of 50 ms are 200 kB/s.
    assert!(result.completed && result.elapsed_s > 2_000_000.0 / 200_000.0);
}

#[test]
fn what_the_simulator_has_not_is_refused() {
    let text = format!("{INTERRUPTED}[outlast]\ngateway = \"m-tcp\"\n");
    let refused = run(&scenario(&text), 0).expect_err("there is none");
    assert!(
        refused
            .to_string()
            .contains("\"m-tcp\" at `outlast.gateway`"),
        "{refused}"
    );
    let text = format!("{INTERRUPTED}[outlast]\nfixed = \"fast-retransmit\"\n");
    let refused = run(&scenario(&text), 0).expect_err("there is none");
    assert!(refused.to_string().contains("outlast.fixed"), "{refused}");
}

#[test]
fn every_example_but_commands_can_be_simulated() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/scenarios");
    let mut simulated = 0;
    for entry in std::fs::read_dir(directory).expect("the examples") {
        let path = entry.expect("the examples").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let scenario = Scenario::load(&path).expect("examples are sound");
        match run(&scenario, 0) {
            Ok(report) => {
                assert!(report.result.intact != Some(false), "{}", path.display());
                simulated += 1;
            }
            Err(error) => assert_eq!(error, SimError::Command, "{}", path.display()),
        }
    }
    assert!(simulated >= 5);
}
