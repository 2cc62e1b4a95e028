//! The host agent beside the mobile's kernel: an upload resumes at once; without it, it stalls.

use outlast_lab::{Cancel, Lab, LabError};
use outlast_scenario::Scenario;
use std::path::Path;
use std::thread;

/// An agent at the mobile host.
const TRIGGER: &str = "[outlast]\nmobile = \"retransmission-trigger\"\n";

/// A round trip of 40 ms and 100 ms.
const AT_ONCE: f64 = 0.14;
const RUNS: u32 = 3;

/// An agent that retransmits fast.
const FAST: &str = "[outlast]\nmobile = \"fast-retransmit\"\n";

/// What differs between links, and when their outage begins.
struct Link {
    keys: &'static str,
    start: &'static str,
}

const FAST_LINK: Link = Link {
    keys: "rate = \"10 Mbit/s\"\n",
    start: "1 s",
};

/// Its queue is longer than a round trip.
const SLOW_LINK: Link = Link {
    keys: "rate = \"4 Mbit/s\"\nqueue = 75\n",
    start: "2 s",
};

/// At both hosts.
const BOTH: &str =
    "[outlast]\nmobile = \"retransmission-trigger\"\nfixed = \"retransmission-trigger\"\n";

/// From link-up until the fixed host has new bytes; `None` where the lab cannot run.
fn resume(outlast: &str, congestion: &str, sack: bool, outage_s: f64) -> Option<f64> {
    resume_of("upload", outlast, (congestion, sack), outage_s)
}

/// From link-up until the receiver of a transfer in `direction` has new bytes; `None` where the lab cannot run.
fn resume_of(direction: &str, outlast: &str, sender: (&str, bool), outage_s: f64) -> Option<f64> {
    resume_over(&FAST_LINK, direction, outlast, sender, outage_s)
}

/// From link-up until the receiver of a transfer over `link` has new bytes; `None` where the lab cannot run.
fn resume_over(
    link: &Link,
    direction: &str,
    outlast: &str,
    (congestion, sack): (&str, bool),
    outage_s: f64,
) -> Option<f64> {
    let Link { keys, start } = link;
    let text = format!(
        "[link]\n{keys}delay = \"20 ms\"\n\
         [link.outages]\nprocess = \"single\"\nstart = \"{start}\"\nlength = \"{outage_s} s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\ndirection = \"{direction}\"\n\
         [stack]\ncongestion = \"{congestion}\"\nsack = {sack}\n{outlast}\
         [run]\ndeadline = \"60 s\"\n"
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
            outlast_skip::skip(error);
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// From link-up until new bytes with the trigger: the least of a few runs, as a busy machine may be late.
fn resume_helped(congestion: &str, sack: bool, outage_s: f64) -> Option<f64> {
    resume_helped_by(TRIGGER, congestion, sack, outage_s)
}

fn resume_helped_by(outlast: &str, congestion: &str, sack: bool, outage_s: f64) -> Option<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        least = least.min(resume(outlast, congestion, sack, outage_s)?);
        if least <= AT_ONCE {
            break;
        }
    }
    Some(least)
}

#[test]
fn an_upload_resumes_at_once_with_the_agent_and_stalls_without() {
    let Some(with) = resume_helped("reno", true, 3.0) else {
        return;
    };
    assert!(with <= AT_ONCE, "{with}");
    let without = resume("", "reno", true, 3.0).expect("it ran before");
    assert!(without > 2.0 * with, "{without}");
}

/// The acknowledgement after such an outage bears a timestamp of before: these senders take their timeout
/// for spurious then, no longer count their data as lost, and stop again.
#[test]
fn a_sender_that_stops_after_its_first_acknowledgement_is_woken_again() {
    let senders = [
        ("bbr", true),
        ("bbr", false),
        ("reno", false),
        ("cubic", false),
    ];
    thread::scope(|scope| {
        for (congestion, sack) in senders {
            scope.spawn(move || {
                let Some(with) = resume_helped(congestion, sack, 6.5) else {
                    return;
                };
                let name = format!("{congestion}, SACK {sack}");
                assert!(with <= AT_ONCE, "{name}: {with}");
                let without = resume("", congestion, sack, 6.5).expect("it ran before");
                assert!(without > 1.0, "{name}: {without}");
            });
        }
    });
}

/// Timeouts of 0.2 to 0.4 s: at one of these moments the link comes back shortly after a
/// retransmission, and the timer alone would hold the sender back.
#[test]
fn a_sender_that_has_just_retransmitted_need_not_wait_for_its_timer() {
    thread::scope(|scope| {
        for tenths in [16_u8, 17, 18, 19, 20, 21] {
            scope.spawn(move || {
                let outage_s = f64::from(tenths) / 10.0;
                if let Some(with) = resume_helped("cubic", false, outage_s) {
                    assert!(with <= AT_ONCE, "after {outage_s} s: {with}");
                }
            });
        }
    });
}

/// The fixed host's agent hears of the outage by the mobile's alone.
#[test]
fn a_download_resumes_at_once_with_agents_at_both_hosts() {
    thread::scope(|scope| {
        for sender in [
            ("cubic", true),
            ("bbr", true),
            ("cubic", false),
            ("bbr", false),
        ] {
            scope.spawn(move || {
                let mut with = f64::INFINITY;
                for _ in 0..RUNS {
                    let Some(resumed) = resume_of("download", BOTH, sender, 6.5) else {
                        return;
                    };
                    with = with.min(resumed);
                    if with <= AT_ONCE {
                        break;
                    }
                }
                assert!(with <= AT_ONCE, "{sender:?}: {with}");
                let without = resume_of("download", TRIGGER, sender, 6.5);
                let without = without.expect("it ran before");
                assert!(without > 3.0 * AT_ONCE, "{sender:?}: {without}");
            });
        }
    });
}

#[test]
fn an_upload_resumes_at_once_with_fast_retransmission_and_stalls_without() {
    thread::scope(|scope| {
        for (congestion, sack) in [
            ("cubic", true),
            ("bbr", true),
            ("reno", true),
            ("cubic", false),
        ] {
            scope.spawn(move || {
                let Some(with) = resume_helped_by(FAST, congestion, sack, 6.5) else {
                    return;
                };
                let name = format!("{congestion}, SACK {sack}");
                assert!(with <= AT_ONCE, "{name}: {with}");
                let without = resume("", congestion, sack, 6.5).expect("it ran before");
                assert!(without > 2.0 * AT_ONCE, "{name}: {without}");
            });
        }
    });
}

/// Over an outage shorter than the first timeout of a sender without SACK, which takes long to repair by itself what
/// the outage has taken.
#[test]
fn duplicate_acknowledgements_of_the_mobile_host_wake_a_download() {
    let mut tried = Vec::new();
    for _ in 0..RUNS {
        let resume = |outlast| resume_over(&SLOW_LINK, "download", outlast, ("cubic", false), 0.3);
        let Some(with) = resume(FAST) else {
            return;
        };
        let without = resume("").expect("it ran before");
        if with < without / 2.0 && with <= 2.0 * AT_ONCE {
            return;
        }
        tried.push((with, without));
    }
    panic!("{tried:?}");
}
