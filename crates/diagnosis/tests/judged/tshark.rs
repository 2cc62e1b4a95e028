//! What the diagnosis counts of a capture, beside what tshark's analysis of TCP counts.

use crate::case::{diagnose, run};
use crate::causes::closed_window;
use crate::pair::Plan;
use outlast_sim::Side;
use std::io::{ErrorKind, Write};
use std::process::Command;

/// Packets of `file` that match tshark's `filter`; `None` without tshark.
fn count(file: &std::path::Path, filter: &str) -> Option<u64> {
    let output = Command::new("tshark")
        .args(["-Y", filter, "-r"])
        .arg(file)
        .output();
    let output = match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            outlast_skip::skip("tshark is not installed");
            return None;
        }
        output => output.expect("tshark can be started"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    Some(output.stdout.iter().filter(|byte| **byte == b'\n').count() as u64)
}

#[test]
fn tshark_counts_the_same() {
    let outage = |stack: &str| {
        run(&format!(
            "[link]\nrate = \"10 Mbit/s\"\ndelay = \"25 ms\"\n[link.outages]\nprocess = \"single\"\n\
             start = \"2 s\"\nlength = \"3 s\"\n[workload]\nkind = \"bulk\"\nbytes = \"5 MB\"\n\
             [stack]\n{stack}\n"
        ))
    };
    let closed = closed_window(Side::Fixed, 4_000);
    let always_up = Plan {
        outage: None,
        ..closed.clone()
    };
    let mut files = Vec::new();
    for stack in [
        "congestion = \"cubic\"",
        "congestion = \"bbr\"",
        "sack = false",
    ] {
        let run = outage(stack);
        for side in Side::BOTH {
            files.push((
                format!("{stack}, {side}"),
                run.captures[side.index()].clone(),
            ));
        }
    }
    for (name, plan) in [
        ("closed window", closed),
        ("closed window, always up", always_up),
    ] {
        let ran = plan.run();
        for side in Side::BOTH {
            files.push((format!("{name}, {side}"), ran.capture(side)));
        }
    }
    let mut kinds = [0; 3];
    for (name, bytes) in files {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(&bytes).expect("written");
        // A repetition that comes soon after what is lost is out of order to tshark.
        let filters = [
            "tcp.analysis.retransmission or tcp.analysis.out_of_order",
            "tcp.analysis.duplicate_ack",
            "tcp.analysis.zero_window",
        ];
        let mut told = [0; 3];
        for (told, filter) in told.iter_mut().zip(filters) {
            let Some(count) = count(file.path(), filter) else {
                return;
            };
            *told = count;
        }
        let (findings, error) = diagnose(&[&bytes], usize::MAX);
        assert_eq!(error, None);
        let counters = findings.counters;
        let found = [
            counters.retransmissions,
            counters.duplicate_acks,
            counters.zero_windows,
        ];
        assert_eq!(
            found, told,
            "{name}: retransmissions, duplicate ACKs, zero windows"
        );
        for (kind, told) in kinds.iter_mut().zip(told) {
            *kind += told;
        }
    }
    assert!(
        kinds.iter().all(|count| *count > 3),
        "each is compared: {kinds:?}"
    );
}
