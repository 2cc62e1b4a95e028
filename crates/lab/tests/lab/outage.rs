//! Outages: what they do to an unaided connection, and what a gateway makes of them.

use crate::support::{run, run_lab, scenario};
use outlast_base::time::Duration;
use outlast_lab::trace::Fate;
use outlast_lab::{Lab, RunReport};

/// A download that is interrupted for five and a half seconds.
///
/// At 20 ms and with a short queue the retransmission timeout is between 0.22 s and 0.27 s, and
/// doubles each time: counted from link-down, the sender tries for the fourth time before 4.2 s
/// have passed, and for the fifth not before 6.8 s. Left to itself it cannot resume within a
/// second of link-up.
fn interrupted_download(outlast: &str) -> Option<RunReport> {
    let scenario = scenario(&format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\nqueue = 8\n\
         [link.outages]\nprocess = \"single\"\nstart = \"500 ms\"\nlength = \"5500 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"2 MB\"\n\
         [outlast]\n{outlast}\n[run]\ndeadline = \"2 min\"\n"
    ));
    let lab = Lab::new(&scenario, 0).expect("the lab has it");
    run_lab(&lab.with_trace(Lab::TRACED_PACKETS))
}

/// A lateness of the link beyond this makes round trips, and so timeouts, longer than they are taken
/// for here.
const TOLERABLE: Duration = Duration::from_millis(30);

/// The download with these settings without a gateway and with one; the first is to stall, and the
/// second is not. Where the machine was too late for the link's timers that is tried again.
#[track_caller]
fn stalling_and_held(unaided: &str, held: &str) -> Option<(RunReport, RunReport)> {
    let mut tries = 0;
    loop {
        let (unaided, held) = std::thread::scope(|scope| {
            let unaided = scope.spawn(|| interrupted_download(unaided));
            let held = scope.spawn(|| interrupted_download(held));
            let unaided = unaided.join().expect("no panic");
            (unaided, held.join().expect("no panic"))
        });
        let (unaided, held) = (unaided?, held?);
        tries += 1;
        // One round trip, measured as a fraction of the stall.
        let (stall, resume) = (resume_s(&unaided), resume_s(&held));
        let holds = stall > 1.0 && resume < 0.5 * stall;
        let late = unaided.effort.worst_delay.max(held.effort.worst_delay);
        assert!(
            holds || (late > TOLERABLE && tries < 5),
            "{stall} s unaided, {resume} s held; {late:?} late"
        );
        if holds {
            return Some((unaided, held));
        }
    }
}

/// Whether the first data that crossed after link-up was the gateway's, not the host's.
fn is_resumed_by_the_gateway(report: &RunReport) -> bool {
    let trace = report.trace.as_ref().expect("asked for");
    let up = trace.carrier().iter().find(|change| change.up);
    let up = up.expect("the link came back").at;
    let first = trace.packets().iter().find(|packet| {
        let is_data = packet
            .segment
            .is_some_and(|segment| segment.payload_len > 0);
        packet.at >= up && is_data && !matches!(packet.fate, Fate::Dropped(..))
    });
    first.expect("it went on").origin.is_injected()
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
    assert_eq!((outage.start_s, outage.length_s), (0.5, Some(5.5)));
    outage.resume_s.expect("the transfer went on")
}

#[test]
fn an_unaided_transfer_stalls_and_a_held_one_resumes() {
    let hold = "gateway = \"hold\"\nmobile = \"hold\"";
    let Some((unaided, held)) = stalling_and_held("", hold) else {
        return;
    };
    assert!(unaided.result.timeouts.is_none_or(|timeouts| timeouts >= 4));
    assert_eq!(unaided.result.injected_packets, 0);
    assert!(
        unaided
            .result
            .dropped_packets
            .is_some_and(|drops| drops.link_down > 0)
    );
    assert!(!is_resumed_by_the_gateway(&unaided) && is_resumed_by_the_gateway(&held));
    assert!(held.result.injected_packets > 0);
    assert!(held.gateways[0].is_some_and(|gateway| gateway.resumes > 0));
}

#[test]
fn a_held_transfer_resumes_although_nobody_tells_of_the_outage() {
    let silent = "indicators = \"silence\"";
    let hold = format!("{silent}\ngateway = \"hold\"");
    let Some((unaided, held)) = stalling_and_held(silent, &hold) else {
        return;
    };
    assert!(!is_resumed_by_the_gateway(&unaided));
    let gateway = held.gateways[0].expect("there is one");
    assert!(gateway.silences >= 1 && gateway.probes >= 1, "{gateway:?}");
    assert!(gateway.resumes >= 1, "{gateway:?}");
}

#[test]
fn a_transfer_over_many_outages_completes_when_held() {
    let report = run(
        "[link]\nrate = \"8 Mbit/s\"\ndelay = \"15 ms\"\nqueue = 60\n\
         [link.outages]\nprocess = \"uniform\"\nup = \"300 ms\"\ndown = \"700 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1500 kB\"\ndirection = \"upload\"\n\
         [stack]\nip = \"ipv6\"\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"2 min\"\n",
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

/// Small requests of the mobile, with a gateway at the fixed end alone: what the link drops is lost beyond
/// the gateway, and the mobile waits for its timeout. Think time and round trip are such that the link
/// mostly goes while the mobile thinks; else the last acknowledgement may be lost with it, which is not
/// helped.
#[test]
fn a_client_that_waits_for_its_timeout_is_woken_from_the_far_end() {
    let requests = |gateway: &str| {
        let scenario = scenario(&format!(
            "[link]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
             [link.outages]\nprocess = \"single\"\nstart = \"690 ms\"\nlength = \"4200 ms\"\n\
             [workload]\nkind = \"request-response\"\nrequests = 12\nrequest = \"200 B\"\n\
             response = \"600 B\"\nthink = \"200 ms\"\n\
             [outlast]\ngateway = \"{gateway}\"\n[run]\ndeadline = \"2 min\"\n"
        ));
        run_lab(&Lab::new(&scenario, 0).expect("the lab has it"))
    };
    for attempt in 1.. {
        let (unaided, woken) = std::thread::scope(|scope| {
            let unaided = scope.spawn(|| requests("none"));
            let woken = scope.spawn(|| requests("hold"));
            let unaided = unaided.join().expect("no panic");
            (unaided, woken.join().expect("no panic"))
        });
        let (Some(unaided), Some(woken)) = (unaided, woken) else {
            return;
        };
        let first = |report: &RunReport| report.result.outages[0].resume_s.expect("it goes on");
        let (stall, resume) = (first(&unaided), first(&woken));
        // The fifth repetition comes 6.8 s after the first loss at the earliest.
        if stall > 1.0 && resume < 0.25 * stall {
            return;
        }
        assert!(attempt < 4, "{stall} s unaided, {resume} s woken");
    }
}
