//! Captures with outages: when they began and ended, who stood still, and why.

use crate::case::{Ends, Run, diagnose, run};
use outlast_base::time::Instant;
use outlast_diagnosis::{Cause, Findings, Outage};
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
    /// What the connection waited for, by its segments as tshark shows them.
    cause: Cause,
}

const fn case(
    length: f64,
    direction: &'static str,
    congestion: &'static str,
    sack: bool,
    dated: bool,
    ends: Ends,
    cause: Cause,
) -> Case {
    Case {
        length,
        direction,
        congestion,
        sack,
        dated,
        ends,
        cause,
    }
}

use Cause::{BackOff, LossTimer, SpuriousTimeout};
use Ends::{Both, Fixed, Mobile};

const CASES: [Case; 33] = [
    case(0.2, "download", "cubic", true, true, Mobile, LossTimer),
    case(0.2, "download", "cubic", true, false, Fixed, LossTimer),
    case(0.2, "upload", "cubic", true, true, Mobile, LossTimer),
    case(0.2, "upload", "cubic", true, false, Both, LossTimer),
    case(0.5, "download", "cubic", true, true, Mobile, BackOff),
    case(0.5, "download", "cubic", true, true, Both, BackOff),
    case(2.0, "download", "cubic", false, false, Fixed, BackOff),
    case(0.5, "upload", "bbr", true, false, Mobile, BackOff),
    case(1.0, "download", "bbr", true, false, Mobile, BackOff),
    case(1.0, "download", "bbr", true, false, Fixed, BackOff),
    case(1.0, "download", "bbr", true, true, Both, BackOff),
    case(1.0, "upload", "reno", true, true, Mobile, BackOff),
    case(2.0, "upload", "bbr", true, true, Mobile, BackOff),
    case(2.0, "upload", "bbr", true, false, Fixed, BackOff),
    case(2.0, "download", "reno", false, false, Mobile, BackOff),
    case(2.0, "download", "reno", false, true, Mobile, BackOff),
    case(2.0, "download", "reno", false, false, Fixed, BackOff),
    case(5.0, "download", "cubic", true, true, Mobile, BackOff),
    case(5.0, "download", "cubic", true, false, Fixed, BackOff),
    case(5.0, "download", "cubic", true, true, Both, BackOff),
    case(5.0, "upload", "cubic", false, true, Mobile, BackOff),
    case(5.0, "upload", "cubic", false, false, Fixed, BackOff),
    case(5.0, "upload", "cubic", false, true, Both, BackOff),
    case(10.0, "upload", "cubic", true, true, Mobile, BackOff),
    case(10.0, "upload", "reno", true, false, Both, BackOff),
    case(20.0, "download", "reno", true, true, Mobile, BackOff),
    case(20.0, "download", "reno", true, false, Fixed, BackOff),
    case(20.0, "upload", "bbr", true, true, Mobile, SpuriousTimeout),
    case(60.0, "download", "cubic", true, true, Mobile, BackOff),
    case(60.0, "download", "cubic", true, false, Fixed, BackOff),
    case(60.0, "download", "cubic", true, true, Both, BackOff),
    case(60.0, "upload", "bbr", true, false, Mobile, SpuriousTimeout),
    case(60.0, "upload", "cubic", true, true, Both, BackOff),
];

impl Case {
    fn run(&self) -> Run {
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
             direction = \"{direction}\"\n[stack]\ncongestion = \"{congestion}\"\nsack = {sack}\n{dated}"
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
        let resumed = run.report.result.outages[0].resume_s.expect("it went on");
        let noticed = flow.noticed.expect("it went on").as_secs_f64();
        if case.cause != SpuriousTimeout && noticed > end + resumed + ROUND_TRIP {
            mistakes.push(format!(
                "{case:?}: noticed at {noticed}, resumed after {resumed}"
            ));
        }
        if flow.cause != case.cause {
            wrong_causes.push(format!("{case:?}: {} {:?}", flow.cause, flow.wasted));
        }
    }
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    assert!(wrong_causes.is_empty(), "{wrong_causes:#?}");
}

/// Without SACK the sender sends one segment a round trip after a burst was lost; then the link is
/// away for half a second, and loses two of them. Loss does that, too.
#[test]
fn an_outage_that_lost_two_segments_is_not_told_from_loss() {
    let case = case(0.5, "download", "cubic", false, false, Fixed, BackOff);
    assert_eq!(case.run().findings(case.ends).outages, []);
}

/// Snap lengths that cut payload, options, and all but the fixed headers.
#[test]
fn headers_are_enough() {
    let run = case(5.0, "upload", "cubic", true, true, Mobile, BackOff).run();
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
    let run = case(5.0, "download", "cubic", true, true, Mobile, BackOff).run();
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
    let run = case(60.0, "upload", "cubic", true, false, Mobile, BackOff).run();
    let file = captured_until(&run.captures[Side::Mobile.index()], 40.0);
    let (findings, error) = diagnose(&[file], usize::MAX);
    assert_eq!(error, None);
    let [outage] = &findings.outages[..] else {
        panic!("{:?}", findings.outages);
    };
    assert_eq!((outage.end, outage.flows[0].noticed), (None, None));
    assert!((outage.start.as_secs_f64() - run.truth()[0].0).abs() < ROUND_TRIP);
}
