//! HIP between the hosts of a scenario file.

use outlast_scenario::Scenario;
use outlast_scenario::result::RunResult;
use outlast_sim::run;
use std::path::Path;
use std::sync::LazyLock;

/// A slow link for most tests: sealing takes its time without optimization. The file goes on after two outages.
const SLOW: (&str, &str) = ("2 Mbit/s", "1600 kB");

/// A download over a link that goes away every three seconds, with these lines at its end.
fn result_at((rate, bytes): (&str, &str), lines: &str) -> RunResult {
    let text = format!(
        "[link]\nrate = \"{rate}\"\ndelay = \"25 ms\"\n[link.outages]\nprocess = \"periodic\"\nup = \"3 s\"\n\
         down = \"17 s\"\n[workload]\nkind = \"bulk\"\nbytes = \"{bytes}\"\ndirection = \"download\"\n{lines}"
    );
    let scenario = Scenario::parse(&text, "test.toml", Path::new("."));
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(100)));
    run(&scenario, 0).expect("it can be simulated").result
}

fn result(lines: &str) -> RunResult {
    result_at(SLOW, lines)
}

const AGENTS: &str =
    "[outlast]\nmobile = \"retransmission-trigger\"\nfixed = \"retransmission-trigger\"\n";

/// A window of many segments, and one outage.
const FAST: (&str, &str) = ("10 Mbit/s", "5 MB");

/// With agents at both hosts, on the fast link.
static TOLD: LazyLock<RunResult> = LazyLock::new(|| result_at(FAST, &format!("{AGENTS}[hip]\n")));

fn resumes(result: &RunResult) -> Vec<f64> {
    let outages = result.outages.iter();
    outages.filter_map(|outage| outage.resume_s).collect()
}

#[test]
fn the_end_of_readdressing_has_both_hosts_retransmit() {
    let plain = result_at(FAST, "[hip]\n");
    let told = &*TOLD;
    let hip = told.hip.as_ref().expect("the hosts speak HIP");
    assert_eq!(hip.readdressing_s.len(), told.outages.len(), "{told:?}");
    assert!(told.completed && told.intact == Some(true), "{told:?}");
    let bound = 3.0 * 0.05 + 0.05;
    assert!(resumes(told).iter().all(|&after| after < bound), "{told:?}");
    assert!(
        resumes(&plain).iter().any(|&after| after > 1.0),
        "{plain:?}"
    );
}

#[test]
fn what_esp_adds_counts_in_the_ideal_time() {
    let [sealed, plain] = ["[hip]\n", ""].map(|hip| result(&format!("{AGENTS}{hip}")));
    let ideal = |result: &RunResult| result.ideal_s.expect("a bulk transfer");
    let more = ideal(&sealed) / ideal(&plain);
    assert!(more > 1.0, "{more}");
    assert!(
        sealed
            .utilisation
            .is_some_and(|share| share > 0.85 && share <= 1.0),
        "{sealed:?}"
    );
    assert!(plain.hip.is_none());
}

/// A sender with F-RTO makes no progress for a round trip after its first one: an agent that restarts it then
/// takes its window down to two segments, and half a second's worth takes more than two seconds.
#[test]
fn a_download_is_soon_as_fast_as_before() {
    let told = &*TOLD;
    let took = told
        .outages
        .iter()
        .filter_map(|outage| outage.half_second_s);
    assert!(took.clone().count() > 0, "{told:?}");
    assert!(took.into_iter().all(|took| took < 1.2), "{told:?}");
}

#[test]
fn a_later_address_is_a_later_return() {
    let late = result(&format!("{AGENTS}[hip]\naddress_delay = \"1 s\"\n"));
    for after in resumes(&late) {
        assert!((1.0..1.2).contains(&after), "{late:?}");
    }
}
