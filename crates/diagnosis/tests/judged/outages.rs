//! Captures with outages.

use crate::case::{Ends, run};

fn scenario(length: f64, direction: &str, congestion: &str, sack: bool, other: &str) -> String {
    format!(
        "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n[link.outages]\nprocess = \"single\"\n\
         start = \"3 s\"\nlength = \"{length} s\"\n[workload]\nkind = \"bulk\"\nbytes = \"12 MB\"\n\
         direction = \"{direction}\"\n[stack]\ncongestion = \"{congestion}\"\nsack = {sack}\n{other}"
    )
}

#[test]
fn explore() {
    for (length, direction, congestion, sack) in [
        (2.0, "download", "reno", false),
        (5.0, "upload", "cubic", false),
        (5.0, "download", "cubic", true),
        (20.0, "download", "reno", true),
        (60.0, "download", "cubic", true),
        (60.0, "upload", "bbr", false),
    ] {
        for other in [
            "",
            "[[traffic]]\npattern = \"constant\"\nrate = \"64 kbit/s\"\npacket = \"80 B\"\n",
        ] {
            let run = run(&scenario(length, direction, congestion, sack, other));
            println!(
                "== {length} {direction} {congestion} sack={sack} {} truth {:?} resume {:?}",
                !other.is_empty(),
                run.truth(),
                run.report.result.outages
            );
            for ends in [Ends::Mobile, Ends::Fixed, Ends::Both] {
                let findings = run.findings(ends);
                println!("  {ends:?} {:?}", findings.counters.stalled_alone);
                for outage in &findings.outages {
                    println!(
                        "    {:.3} [{:.3}..{:.3}] end {:?} from {:.3} {:?}",
                        outage.start.as_secs_f64(),
                        outage.start_earliest.as_secs_f64(),
                        outage.start_latest.as_secs_f64(),
                        outage.end.map(|e| e.as_secs_f64()),
                        outage.end_earliest.as_secs_f64(),
                        outage.scope
                    );
                    for flow in &outage.flows {
                        println!(
                            "       {} {:?} {:?} {} rtt {:?} n={}",
                            flow.flow,
                            flow.noticed.map(|e| e.as_secs_f64()),
                            flow.wasted,
                            flow.cause,
                            flow.round_trip,
                            flow.unanswered
                        );
                    }
                }
            }
        }
    }
}
