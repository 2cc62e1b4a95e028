//! Outages: what they do to an unaided connection, and what a gateway makes of them.

mod support;

use outlast_lab::RunReport;
use support::run;

/// A download that is interrupted for five seconds.
///
/// At 20 ms and with a short queue the retransmission timeout is between 0.22 s and 0.27 s, and
/// doubles each time: counted from link-down, the sender tries for the fourth time before 4.2 s
/// have passed, and for the fifth not before 6.8 s. Left to itself it cannot resume within a
/// second of link-up.
fn interrupted_download(outlast: &str) -> Option<RunReport> {
    run(&format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 8\n\
         [link.outages]\nprocess = \"single\"\nstart = \"500 ms\"\nlength = \"5 s\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\n\
         [outlast]\n{outlast}\n[run]\ndeadline = \"60 s\"\n"
    ))
}

fn resume_s(report: &RunReport) -> f64 {
    let result = &report.result;
    assert!(
        result.completed && result.intact == Some(true),
        "{:?}",
        result.error
    );
    let [outage] = result.outages[..] else {
        panic!("one outage, not {:?}", result.outages)
    };
    assert_eq!((outage.start_s, outage.length_s), (0.5, Some(5.0)));
    outage.resume_s.expect("the transfer went on")
}

#[test]
fn an_unaided_transfer_stalls_and_a_held_one_resumes() {
    let hold = "gateway = \"hold\"\nmobile = \"hold\"";
    let (unaided, held) = std::thread::scope(|scope| {
        let unaided = scope.spawn(|| interrupted_download(""));
        let held = scope.spawn(|| interrupted_download(hold));
        (
            unaided.join().expect("no panic"),
            held.join().expect("no panic"),
        )
    });
    let (Some(unaided), Some(held)) = (unaided, held) else {
        return;
    };
    assert!(resume_s(&unaided) > 1.0, "{:?}", unaided.result.outages);
    assert!(unaided.result.timeouts.is_none_or(|timeouts| timeouts >= 4));
    assert_eq!(unaided.result.injected_packets, 0);
    assert!(
        unaided
            .result
            .dropped_packets
            .is_some_and(|drops| drops.link_down > 0)
    );
    // One round trip, measured as a fraction of the stall: a busy machine slows both.
    assert!(
        resume_s(&held) < 0.5 * resume_s(&unaided),
        "{:?}",
        held.result.outages
    );
    assert!(held.result.injected_packets > 0);
    assert!(held.gateways[0].is_some_and(|gateway| gateway.resumes > 0));
}

#[test]
fn a_transfer_over_many_outages_completes_when_held() {
    let report = run(
        "[link]\nrate = \"8 Mbit/s\"\ndelay = \"15 ms\"\nqueue = 60\n\
         [link.outages]\nprocess = \"uniform\"\nup = \"300 ms\"\ndown = \"700 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1500 kB\"\ndirection = \"upload\"\n\
         [stack]\nip = \"ipv6\"\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"60 s\"\n",
    );
    let Some(report) = report else { return };
    let result = &report.result;
    assert!(
        result.completed && result.intact == Some(true),
        "{:?}",
        result.error
    );
    assert!(result.outages.len() >= 3, "{:?}", result.outages);
}
