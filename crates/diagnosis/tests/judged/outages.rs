//! Captures with outages: when they began and ended, who stood still, and why.

use crate::case::{Ends, Run, diagnose, run};
use outlast_base::time::{Duration, Instant};
use outlast_diagnosis::{Findings, Outage};
use outlast_sim::Side;

/// What a connection of the scenarios takes there and back without queues, in seconds.
const ROUND_TRIP: f64 = 0.0525;

/// A scenario and what its link does.
#[derive(Clone, Copy, Debug)]
struct Case {
    length: f64,
    direction: &'static str,
    congestion: &'static str,
    sack: bool,
    /// Datagrams towards whoever is captured show when the path is back.
    dated: bool,
    ends: Ends,
}

const fn case(
    length: f64,
    direction: &'static str,
    congestion: &'static str,
    sack: bool,
    dated: bool,
    ends: Ends,
) -> Case {
    Case {
        length,
        direction,
        congestion,
        sack,
        dated,
        ends,
    }
}

use Ends::{Both, Fixed, Mobile};

const CASES: [Case; 33] = [
    case(0.2, "download", "cubic", true, true, Mobile),
    case(0.2, "download", "cubic", true, false, Fixed),
    case(0.2, "upload", "cubic", true, true, Mobile),
    case(0.2, "upload", "cubic", true, false, Both),
    case(0.5, "download", "cubic", true, true, Mobile),
    case(0.5, "download", "cubic", true, true, Both),
    case(2.0, "download", "cubic", false, false, Fixed),
    case(0.5, "upload", "bbr", true, false, Mobile),
    case(1.0, "download", "bbr", true, false, Mobile),
    case(1.0, "download", "bbr", true, false, Fixed),
    case(1.0, "download", "bbr", true, true, Both),
    case(1.0, "upload", "reno", true, true, Mobile),
    case(2.0, "upload", "bbr", true, true, Mobile),
    case(2.0, "upload", "bbr", true, false, Fixed),
    case(2.0, "download", "reno", false, false, Mobile),
    case(2.0, "download", "reno", false, true, Mobile),
    case(2.0, "download", "reno", false, false, Fixed),
    case(5.0, "download", "cubic", true, true, Mobile),
    case(5.0, "download", "cubic", true, false, Fixed),
    case(5.0, "download", "cubic", true, true, Both),
    case(5.0, "upload", "cubic", false, true, Mobile),
    case(5.0, "upload", "cubic", false, false, Fixed),
    case(5.0, "upload", "cubic", false, true, Both),
    case(10.0, "upload", "cubic", true, true, Mobile),
    case(10.0, "upload", "reno", true, false, Both),
    case(20.0, "download", "reno", true, true, Mobile),
    case(20.0, "download", "reno", true, false, Fixed),
    case(20.0, "upload", "bbr", true, true, Mobile),
    case(60.0, "download", "cubic", true, true, Mobile),
    case(60.0, "download", "cubic", true, false, Fixed),
    case(60.0, "download", "cubic", true, true, Both),
    case(60.0, "upload", "bbr", true, false, Mobile),
    case(60.0, "upload", "cubic", true, true, Both),
];

impl Case {
    fn run(&self) -> Run {
        self.run_with("none")
    }

    /// With this mechanism at both ends of the link.
    fn run_with(&self, mechanism: &str) -> Run {
        let Self {
            length,
            direction,
            congestion,
            sack,
            ends,
            ..
        } = self;
        let dated = match (self.dated, ends) {
            (false, _) => String::new(),
            (true, ends) => format!(
                "[[traffic]]\npattern = \"constant\"\nrate = \"64 kbit/s\"\npacket = \"80 B\"\n\
                 direction = \"{}\"\n",
                match ends {
                    Mobile | Both => "download",
                    Fixed => "upload",
                }
            ),
        };
        run(&format!(
            "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n[link.outages]\nprocess = \"single\"\n\
             start = \"2 s\"\nlength = \"{length} s\"\n[workload]\nkind = \"bulk\"\nbytes = \"5 MB\"\n\
             direction = \"{direction}\"\n[stack]\ncongestion = \"{congestion}\"\nsack = {sack}\n\
             [outlast]\ngateway = \"{mechanism}\"\nmobile = \"{mechanism}\"\n{dated}"
        ))
    }
}

/// What is wrong with `found`, if anything is, where the link was away from `start` to `end`.
fn mistake(found: &[Outage], start: f64, end: f64, is_dated: bool) -> Option<String> {
    let [outage] = found else {
        return Some(format!("{} outages instead of one", found.len()));
    };
    let at = |instant: Instant| instant.as_secs_f64();
    if (at(outage.start) - start).abs() > ROUND_TRIP {
        return Some(format!("starts at {} instead of {start}", outage.start));
    }
    let Some(back) = outage.end else {
        return Some("never ends".to_owned());
    };
    if is_dated && (at(back) - end).abs() > ROUND_TRIP {
        return Some(format!("ends at {back} instead of {end}"));
    }
    let bounds = at(outage.end_earliest) - ROUND_TRIP..at(back) + ROUND_TRIP;
    if !bounds.contains(&end) {
        return Some(format!("ends in {bounds:?}, which {end} is not in"));
    }
    (outage.flows.len() != 1).then(|| format!("{} connections", outage.flows.len()))
}

#[test]
fn outages_are_found_where_the_link_was_away() {
    let mut wrong_causes = Vec::new();
    let mut mistakes = Vec::new();
    for case in CASES {
        let run = case.run();
        let [(start, Some(end))] = run.truth()[..] else {
            panic!("one outage, not {:?}", run.truth());
        };
        let Findings { outages, .. } = run.findings(case.ends);
        if let Some(mistake) = mistake(&outages, start, end, case.dated) {
            mistakes.push(format!("{case:?}: {mistake}"));
            continue;
        }
        let flow = &outages[0].flows[0];
        let sender = match case.direction {
            "download" => Side::Fixed,
            _ => Side::Mobile,
        };
        let up = Instant::ZERO + Duration::from_secs_f64(end);
        let truth = run
            .course(0, sender)
            .truth(up, Duration::from_secs_f64(ROUND_TRIP))
            .expect("it went on");
        let noticed = flow.noticed.expect("it went on").as_secs_f64();
        if (noticed - truth.noticed.as_secs_f64()).abs() > ROUND_TRIP {
            mistakes.push(format!("{case:?}: noticed at {noticed}, not {truth:?}"));
        }
        if flow.cause != truth.cause {
            wrong_causes.push(format!(
                "{case:?}: {} {:?}, not {truth:?}",
                flow.cause, flow.wasted
            ));
        }
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    assert!(wrong_causes.is_empty(), "{wrong_causes:#?}");
}

/// Without SACK the sender sends one segment a round trip after a burst was lost; then the link is
/// away for half a second, and loses two of them. Loss does that, too.
#[test]
fn an_outage_that_lost_two_segments_is_not_told_from_loss() {
    let case = case(0.5, "download", "cubic", false, false, Fixed);
    assert_eq!(case.run().findings(case.ends).outages, []);
}

/// Snap lengths that cut payload, options, and all but the fixed headers.
#[test]
fn headers_are_enough() {
    let run = case(5.0, "upload", "cubic", true, true, Mobile).run();
    let [(start, Some(end))] = run.truth()[..] else {
        panic!("one outage");
    };
    for snap_len in [96, 60, 40] {
        let (findings, error) = diagnose(&[&run.captures[Side::Mobile.index()]], snap_len);
        assert_eq!(error, None);
        let mistake = mistake(&findings.outages, start, end, true);
        assert_eq!(mistake, None, "snap length {snap_len}");
    }
}

/// What a killed program leaves, and what a bad disk makes of it, up to where it can be read.
#[test]
fn a_damaged_capture_is_read_as_far_as_it_goes() {
    let run = case(5.0, "download", "cubic", true, true, Mobile).run();
    let [(start, Some(end))] = run.truth()[..] else {
        panic!("one outage");
    };
    let whole = &run.captures[Side::Mobile.index()];
    let cut = &whole[..whole.len() - 1_001];
    let (findings, error) = diagnose(&[cut], usize::MAX);
    let error = error.expect("it is cut off").to_string();
    assert!(
        error.contains("ends within the packet or block at byte"),
        "{error}"
    );
    assert_eq!(mistake(&findings.outages, start, end, true), None);

    let mut damaged = whole.clone();
    let at = whole.len() - 200_000;
    damaged[at..at + 4_000].fill(0xff);
    let (findings, error) = diagnose(&[&damaged], usize::MAX);
    let error = error.expect("it is damaged").to_string();
    assert!(error.contains("at byte"), "{error}");
    assert_eq!(mistake(&findings.outages, start, end, true), None);

    // A capture that ends in the outage has none that is over.
    let in_outage = captured_until(whole, 6.0);
    let (findings, _) = diagnose(&[in_outage], usize::MAX);
    assert!(findings.outages.iter().all(|outage| outage.end.is_none()));
}

/// The beginning of a capture, about as far as its share of the bytes before `seconds`.
fn captured_until(file: &[u8], seconds: f64) -> &[u8] {
    use outlast_wire::capture::{Decoder, Step};
    let mut decoder = Decoder::default();
    let mut at = 0;
    while let Ok(step) = decoder.decode(&file[at..]) {
        match step {
            Step::Packet { packet, .. } if packet.time.as_secs_f64() > seconds => break,
            Step::Packet { consumed, .. } => at += consumed,
            Step::Passed { consumed } => at += usize::try_from(consumed).expect("64 bits"),
            Step::Need { .. } => break,
        }
    }
    &file[..at]
}

/// The mobile end of an upload that never comes back.
#[test]
fn an_outage_that_outlasts_the_capture_has_no_end() {
    let run = case(60.0, "upload", "cubic", true, false, Mobile).run();
    let file = captured_until(&run.captures[Side::Mobile.index()], 40.0);
    let (findings, error) = diagnose(&[file], usize::MAX);
    assert_eq!(error, None);
    let [outage] = &findings.outages[..] else {
        panic!("{:?}", findings.outages);
    };
    assert_eq!((outage.end, outage.flows[0].noticed), (None, None));
    assert!((outage.start.as_secs_f64() - run.truth()[0].0).abs() < ROUND_TRIP);
}

/// What is told to be saved, beside what the same connection saves in the simulator with `hold` at
/// both ends of the link.
#[test]
fn what_would_be_saved_is_what_hold_saves() {
    let mut wrong = Vec::new();
    let cases = CASES.into_iter().filter(|case| case.dated);
    for case in cases {
        let control = case.run();
        let findings = control.findings(case.ends);
        let flow = &findings.outages[0].flows[0];
        let resumed = |run: &Run| run.report.result.outages[0].resume_s.expect("it went on");
        let (without, with) = (resumed(&control), resumed(&case.run_with("hold")));
        let saved = flow.saved();
        let bounds = saved.least.as_secs_f64() - ROUND_TRIP..saved.most.as_secs_f64() + ROUND_TRIP;
        if !bounds.contains(&(without - with)) {
            wrong.push(format!(
                "{case:?}: {without} s without, {with} s with hold; told {saved:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
