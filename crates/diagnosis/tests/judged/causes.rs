//! Captures in which a connection stands still for each of the causes, judged by what its hosts did.

use crate::case::{Ends, run};
use crate::pair::Plan;
use crate::truth::Truth;
use outlast_base::time::{Duration, Instant};
use outlast_diagnosis::{Cause, Findings, Outage};
use outlast_sim::Side;
use std::collections::BTreeMap;

/// Starts, ends and notices may miss the truth by a round trip, in seconds.
const ROUND_TRIP: f64 = 0.06;

/// What was found in a capture, and what was true.
struct Judged {
    name: String,
    /// When the link went down and came back, in seconds.
    outage: (f64, f64),
    truth: Truth,
    /// The mobile's port of the connection.
    port: u16,
    findings: Findings,
    /// Whether so much is sent that the start is known to a round trip; else it is within its bounds.
    is_dense: bool,
}

impl Judged {
    /// What is wrong, if anything is.
    fn mistake(&self) -> Option<String> {
        let (start, end) = self.outage;
        let near =
            |instant: Instant, truth: f64| (instant.as_secs_f64() - truth).abs() <= ROUND_TRIP;
        let [found] = &self.findings.outages[..] else {
            return Some(format!("{} outages", self.findings.outages.len()));
        };
        let within = |truth: f64, earliest: Instant, latest: Option<Instant>| {
            let latest = latest.map_or(f64::INFINITY, Instant::as_secs_f64);
            (earliest.as_secs_f64() - ROUND_TRIP..latest + ROUND_TRIP).contains(&truth)
        };
        let is_in_bounds = within(start, found.start_earliest, Some(found.start_latest));
        if !is_in_bounds || self.is_dense && !near(found.start, start) {
            return Some(format!("starts at {} instead of {start}", found.start));
        }
        if !within(end, found.end_earliest, found.end) {
            let Outage {
                end_earliest,
                end: latest,
                ..
            } = found;
            return Some(format!(
                "ends from {end_earliest} to {latest:?} instead of at {end}"
            ));
        }
        let ports = |flow: &&outlast_diagnosis::Affected| {
            [flow.flow.source.port(), flow.flow.destination.port()].contains(&self.port)
        };
        let Some(flow) = found.flows.iter().find(ports) else {
            return Some("the connection is not among those that stood still".to_owned());
        };
        if !flow
            .noticed
            .is_some_and(|at| near(at, self.truth.noticed.as_secs_f64()))
        {
            return Some(format!("noticed {:?}, not {:?}", flow.noticed, self.truth));
        }
        (flow.cause != self.truth.cause).then(|| format!("{}, not {:?}", flow.cause, self.truth))
    }
}

/// A case of two hosts with their own applications.
fn of_pair(name: &str, plan: &Plan, ends: Ends) -> Judged {
    let ran = plan.run();
    let (start, length) = plan.outage.expect("there is one");
    let up = Instant::from_millis(start + length);
    Judged {
        name: format!("{name}, {ends:?}"),
        outage: (start as f64 / 1e3, up.as_secs_f64()),
        truth: ran
            .course
            .truth(up, Duration::from_secs_f64(ROUND_TRIP))
            .expect("it went on"),
        port: 40_000,
        findings: ran.findings(ends),
        is_dense: plan.deaf.is_none(),
    }
}

/// A case of the simulator: flow `number`, which `sender` has to wake.
fn of_scenario(name: &str, text: &str, number: usize, sender: Side, ends: Ends) -> Judged {
    let run = run(text);
    let [(start, Some(end))] = run.truth()[..] else {
        panic!("one outage");
    };
    let trace = run.report.outcome.trace.as_ref().expect("asked for");
    let up = trace
        .carrier()
        .iter()
        .find(|change| change.up)
        .expect("it was back")
        .at;
    Judged {
        name: format!("{name}, {ends:?}"),
        outage: (start, end),
        truth: run
            .course(number, sender)
            .truth(up, Duration::from_secs_f64(ROUND_TRIP))
            .expect("it went on"),
        port: run.report.outcome.flows[number].client_port,
        findings: run.findings(ends),
        is_dense: true,
    }
}

/// A receiver whose application does not read, so that its window is closed when the link goes.
pub(crate) fn closed_window(sender: Side, length: u64) -> Plan {
    Plan {
        sender,
        writes: vec![(0, 30_000_000)],
        deaf: Some((2_500, 5_000)),
        receive_buffer: Some(65_536),
        set_back: None,
        outage: Some((2_700, length)),
        until: 60_000,
    }
}

/// A firewall beside the sender restarts during the outage, and begins with older timestamps.
fn old_timestamps(sender: Side, length: u64, by: u32) -> Plan {
    Plan {
        sender,
        writes: vec![(0, 6_000_000)],
        deaf: None,
        receive_buffer: None,
        set_back: Some((2_000 + length / 2, by)),
        outage: Some((2_000, length)),
        until: 90_000,
    }
}

/// An application that writes a little, and has nothing to write just when the link is back.
fn idle(sender: Side) -> Plan {
    let often = (0..40).map(|number| (500 + 60 * number, 300));
    // The link goes at 3.000 s and is back at 3.310 s; the last write before is lost, and the next
    // comes before any retransmission timeout.
    let late = [
        (2_960, 300),
        (3_020, 300),
        (3_080, 300),
        (3_140, 300),
        (3_200, 300),
        (3_460, 300),
    ];
    let after = (0..20).map(|number| (3_600 + 60 * number, 300));
    Plan {
        sender,
        writes: often.chain(late).chain(after).collect(),
        deaf: None,
        receive_buffer: None,
        set_back: None,
        outage: Some((3_000, 310)),
        until: 8_000,
    }
}

/// A second connection is opened while the link is away, or so that its SYN-ACK is lost.
fn handshake(begin: &str, length: &str) -> String {
    format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n[link.outages]\nprocess = \"single\"\n\
         start = \"2 s\"\nlength = \"{length}\"\n[workload]\nkind = \"bulk\"\nbytes = \"4 MB\"\n\
         [[flows]]\nkind = \"bulk\"\nbytes = \"200 kB\"\nbegin = \"{begin}\"\n"
    )
}

/// An application that writes a little all the time: no timer fires before the link is back.
fn never_stopped(sender: Side) -> Plan {
    // A burst before opens the congestion window.
    let size = |number| if number == 210 { 300_000 } else { 300 };
    let often = (0..700).map(|number| (500 + 10 * number, size(number)));
    Plan {
        sender,
        writes: often.collect(),
        deaf: None,
        receive_buffer: None,
        set_back: None,
        outage: Some((3_003, 200)),
        until: 9_000,
    }
}

#[test]
fn each_cause_is_told_from_the_others() {
    use Ends::{Both, Fixed, Mobile};
    use Side::{Fixed as FromFixed, Mobile as FromMobile};
    let mut cases: Vec<Judged> = Vec::new();
    for ends in [Fixed, Both] {
        cases.push(of_pair(
            "closed window, 4 s",
            &closed_window(FromFixed, 4_000),
            ends,
        ));
        cases.push(of_pair(
            "closed window, 20 s",
            &closed_window(FromFixed, 20_000),
            ends,
        ));
        cases.push(of_pair("idle download", &idle(FromFixed), ends));
    }
    for ends in [Mobile, Both] {
        cases.push(of_pair(
            "closed window of the fixed host",
            &closed_window(FromMobile, 10_000),
            ends,
        ));
        cases.push(of_pair("idle upload", &idle(FromMobile), ends));
    }
    for ends in [Mobile, Fixed, Both] {
        cases.push(of_pair(
            "old timestamps, download",
            &old_timestamps(FromFixed, 2_000, 8_000),
            ends,
        ));
        cases.push(of_pair(
            "old timestamps, upload",
            &old_timestamps(FromMobile, 3_000, 20_000),
            ends,
        ));
        // The fixed end sees nothing of a SYN that is lost before it.
        if ends != Fixed {
            let text = handshake("3 s", "5 s");
            cases.push(of_scenario(
                "opened in the outage",
                &text,
                1,
                FromMobile,
                ends,
            ));
        }
        let text = handshake("2.030 s", "4 s");
        cases.push(of_scenario("SYN-ACK lost", &text, 1, FromMobile, ends));
        cases.push(of_pair(
            "download that never stopped",
            &never_stopped(FromFixed),
            ends,
        ));
        cases.push(of_pair(
            "upload that never stopped",
            &never_stopped(FromMobile),
            ends,
        ));
    }
    let mut causes: BTreeMap<Cause, usize> = BTreeMap::new();
    let mut mistakes = Vec::new();
    for case in &cases {
        *causes.entry(case.truth.cause).or_default() += 1;
        if let Some(mistake) = case.mistake() {
            mistakes.push(format!("{}: {mistake}", case.name));
        }
    }
    for cause in [
        Cause::ClosedWindow,
        Cause::OldTimestamps,
        Cause::ApplicationIdle,
        Cause::Handshake,
        Cause::Path,
    ] {
        assert!(
            causes.contains_key(&cause),
            "no case of {cause}: {causes:?}"
        );
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}

/// Applications that pause and do not read, and firewalls that restart, over a link that stays.
#[test]
fn the_same_without_an_outage_is_none() {
    let plans = [
        closed_window(Side::Fixed, 1),
        closed_window(Side::Mobile, 1),
        idle(Side::Fixed),
        idle(Side::Mobile),
        never_stopped(Side::Fixed),
    ];
    for plan in plans {
        let ran = Plan {
            outage: None,
            ..plan.clone()
        }
        .run();
        if plan.deaf.is_some() {
            assert!(ran.zero_windows > 0, "the window was closed");
        }
        for ends in [Ends::Mobile, Ends::Fixed, Ends::Both] {
            assert_eq!(ran.findings(ends).outages, [], "{plan:?}, {ends:?}");
        }
    }
}
