//! The host agent beside the mobile's kernel: an upload resumes at once; without it, it stalls.

#![expect(
    clippy::print_stderr,
    reason = "a skipped test says which capability is missing"
)]

use outlast_lab::{Cancel, Lab, LabError};
use outlast_scenario::Scenario;
use std::path::Path;

/// The outage ends long after a retransmission and before the next one: with a timeout of 0.22 to
/// 0.37 s, 0.4 s and more after the third. A kernel whose back-off is taken back retransmits once a
/// timeout has passed since its newest retransmission, so that one shortly before link-up delays it.
///
/// From link-up until the fixed host has new bytes; `None` where the lab cannot run.
fn resume(outlast: &str, congestion: &str, sack: bool) -> Option<f64> {
    let text = format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"20 ms\"\n\
         [link.outages]\nprocess = \"single\"\nstart = \"1 s\"\nlength = \"3 s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\ndirection = \"upload\"\n\
         [stack]\ncongestion = \"{congestion}\"\nsack = {sack}\n{outlast}\
         [run]\ndeadline = \"30 s\"\n"
    );
    let scenario = Scenario::parse(&text, "agent.toml", Path::new(".")).expect("it is sound");
    let lab = Lab::new(&scenario, 0).expect("the lab has it");
    match lab.run(&Cancel::new().expect("an event"), |_| ()) {
        Ok(report) => {
            assert_eq!(
                report.result.intact,
                Some(true),
                "{congestion}, SACK {sack}"
            );
            let [outage] = report.result.outages[..] else {
                panic!("one outage: {:?}", report.result.outages)
            };
            Some(outage.resume_s.expect("it goes on"))
        }
        Err(error @ (LabError::Namespace(_) | LabError::Stack(_))) => {
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn an_upload_resumes_at_once_with_the_agent_and_stalls_without() {
    let trigger = "[outlast]\nmobile = \"retransmission-trigger\"\n";
    let Some(with) = resume(trigger, "reno", true) else {
        return;
    };
    // A round trip is 40 ms.
    assert!(with <= 0.14, "{with}");
    let without = resume("", "reno", true).expect("it ran before");
    assert!(without > 2.0 * with, "{without}");
}
