//! Mobile IP between gateways: hand-offs are found, take their time, and are acted on.

use outlast_base::time::Duration;
use outlast_scenario::Scenario;
use outlast_sim::{RunReport, run};
use outlast_world::MobileIpOutcome;
use std::path::Path;

const HANDOFFS: usize = 6;

/// A download through hand-offs to and fro, ten seconds apart.
fn report(mobile_ip: &str, outlast: &str, seed: u64) -> RunReport {
    let handoffs: String = (0..HANDOFFS)
        .map(|number| {
            let (at, to) = (5_000 + 10_130 * number, 2 - number % 2);
            format!("[[handoffs]]\nat = \"{at} ms\"\ngap = \"10 ms\"\nto = {to}\n")
        })
        .collect();
    let text = format!(
        "[link]\nrate = \"2 Mbit/s\"\ndelay = \"1 ms\"\n[workload]\nkind = \"interactive\"\n\
         interval = \"50 ms\"\nduration = \"70 s\"\n[stack]\nprofile = \"linux-6\"\n[outlast]\n{outlast}\n\
         [mobile_ip]\n{mobile_ip}\n[run]\nseed = {seed}\ndeadline = \"120 s\"\n{handoffs}"
    );
    let scenario = Scenario::parse(&text, "test.toml", Path::new("."));
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(100)));
    run(&scenario, 0).expect("it can be simulated")
}

fn outcome(report: &RunReport) -> &MobileIpOutcome {
    let roaming = report.outcome.roaming.as_ref().expect("there are two");
    roaming.mobile_ip.as_ref().expect("it runs")
}

fn handoffs(detection: &str) -> Vec<Duration> {
    let mut all = Vec::new();
    for seed in 1..=5 {
        let report = report(&format!("detection = \"{detection}\""), "", seed);
        assert_eq!(report.result.intact, Some(true));
        all.extend(outcome(&report).handoffs.iter().copied());
    }
    assert_eq!(all.len(), 5 * HANDOFFS, "{detection}");
    all
}

fn mean(times: &[Duration]) -> Duration {
    times.iter().sum::<Duration>() / u32::try_from(times.len()).expect("few")
}

/// Table 4.1 of the thesis with L = 10 ms and T = 31 ms: on average 541 ms eager, 2531 ms lazy.
#[test]
fn handoffs_take_as_long_as_their_detection() {
    let ms = Duration::from_millis;
    let near = |detection: &str, expected: Duration| {
        let mean = mean(&handoffs(detection));
        assert!(mean.abs_diff(expected) < ms(250), "{detection}: {mean:?}");
    };
    near("eager", ms(541));
    near("lazy", ms(2_531));
    near("prefix", ms(2_531));
    let slowest = handoffs("link").into_iter().max();
    assert!(slowest < Some(ms(60)), "{slowest:?}");
}

#[test]
fn lost_messages_make_handoffs_longer_and_all_end() {
    let clean = report("detection = \"link\"", "", 1);
    let lossy = report("detection = \"link\"\nloss = 0.3", "", 1);
    let (clean, lossy) = (outcome(&clean), outcome(&lossy));
    assert_eq!(lossy.handoffs.len(), HANDOFFS);
    assert!(lossy.mobile_node.repeated > 0, "{:?}", lossy.mobile_node);
    assert!(mean(&lossy.handoffs) > mean(&clean.handoffs));
}

/// The registration is what the gateway at the home agent acts on, and without it the sender waits
/// for its retransmission timeout.
#[test]
fn a_completed_registration_sends_what_was_kept() {
    let wait = |outlast: &str| {
        let report = report("detection = \"lazy\"", outlast, 3);
        let found = &outcome(&report).handoffs;
        assert_eq!(found.len(), HANDOFFS);
        let after = report.result.outages.iter().zip(found);
        let after = after.map(|(outage, found)| {
            let resume = outage.resume_s.expect("it went on");
            // From the reply on, which the home agent sends that long after the departure.
            resume + outage.length_s.expect("it ended") - found.as_secs_f64()
        });
        after.sum::<f64>() / HANDOFFS as f64
    };
    let without = wait("");
    let with = wait("home_agent = \"hold\"");
    assert!(with < 0.12, "{with}");
    assert!(without > with * 2.0, "{without} against {with}");
}

/// Where the mobile host is at home, it is as soon as it hears its home agent; there is no tunnel then.
#[test]
fn a_mobile_comes_home_and_leaves_again() {
    let ms = Duration::from_millis;
    let report = report("detection = \"link\"\nhome = 1", "", 1);
    assert_eq!(report.result.intact, Some(true));
    let outcome = outcome(&report);
    assert_eq!(outcome.handoffs.len(), HANDOFFS);
    let away = outcome.handoffs.iter().step_by(2);
    let home = outcome.handoffs.iter().skip(1).step_by(2);
    // 30 ms from the foreign agent to the home agent, which is at the home network itself.
    assert!(
        away.clone().all(|took| *took > ms(40) && *took < ms(60)),
        "{away:?}"
    );
    assert!(home.clone().all(|took| *took < ms(30)), "{home:?}");
}

#[test]
fn without_foreign_agents_a_mobile_registers_the_address_that_it_gets() {
    let ms = Duration::from_millis;
    let keys = "detection = \"link\"\nforeign_agents = false\naddress_after = \"300 ms\"";
    for reverse_tunnel in [true, false] {
        let keys = format!("{keys}\nreverse_tunnel = {reverse_tunnel}");
        let report = report(&keys, "", 1);
        assert_eq!(report.result.intact, Some(true));
        let outcome = outcome(&report);
        assert_eq!(outcome.handoffs.len(), HANDOFFS);
        // The 10 ms of the hand-off, the address, and the way to the home agent.
        let all = &outcome.handoffs;
        assert!(
            all.iter().all(|took| *took > ms(340) && *took < ms(360)),
            "{all:?}"
        );
        // Nobody advertises.
        assert_eq!(outcome.mobile_node.advertisements, 0);
    }
}

/// Lost requests and replies are repeated, at home and away.
#[test]
fn a_mobile_with_addresses_of_its_own_is_found_in_spite_of_losses() {
    let keys = "home = 1\nforeign_agents = false\nloss = 0.3";
    for seed in 1..=5 {
        let report = report(keys, "", seed);
        let outcome = outcome(&report);
        assert_eq!(outcome.handoffs.len(), HANDOFFS, "seed {seed}");
        assert_eq!(report.result.intact, Some(true), "seed {seed}");
    }
}

/// The home agent's gateway hears of a mobile host that has been away and is where it was registered before.
#[test]
fn a_mobile_that_comes_back_before_it_was_found_elsewhere_is_found() {
    let report = |address_after: &str| {
        let text = format!(
            "[link]\nrate = \"4 Mbit/s\"\ndelay = \"10 ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"12 MB\"\n\
             [stack]\nprofile = \"linux-6\"\n[outlast]\nhome_agent = \"hold\"\n\
             [mobile_ip]\ndetection = \"link\"\nhome = 1\nforeign_agents = false\n\
             address_after = \"{address_after}\"\n\
             [[handoffs]]\nat = \"10 s\"\ngap = \"1 s\"\nto = 2\n\
             [[handoffs]]\nat = \"11300 ms\"\ngap = \"1 s\"\nto = 1\n"
        );
        let scenario = Scenario::parse(&text, "test.toml", Path::new("."));
        let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(100)));
        run(&scenario, 0).expect("it can be simulated")
    };
    // With an address at once it is registered at gateway 2 in between; with one after half a second never.
    for (address_after, found) in [("0 s", 2), ("500 ms", 1)] {
        let report = report(address_after);
        assert_eq!(outcome(&report).handoffs.len(), found, "{address_after}");
        let resumed = report
            .result
            .outages
            .iter()
            .filter_map(|outage| outage.resume_s)
            .next_back();
        let last = resumed.expect("it goes on");
        assert!(last < 0.2, "{address_after}: {last}");
    }
}
