//! Runs that cannot come to their end: they end all the same.

mod support;

use outlast_lab::{Cancel, Lab, LabError};
use std::time::Duration;
use support::{run, scenario, skip};

#[test]
fn the_deadline_ends_a_transfer_that_takes_too_long() {
    let report = run("[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"100 MB\"\n[run]\ndeadline = \"1 s\"\n");
    let Some(report) = report else { return };
    let result = report.result;
    assert!(!result.completed);
    assert_eq!(
        result.intact, None,
        "what arrived is right, as far as it goes"
    );
    assert!(result.error.is_none() && !result.user_timeout_abort);
    assert!(result.elapsed_s >= 1.0, "{}", result.elapsed_s);
    assert!(
        result
            .bytes_received
            .is_some_and(|bytes| bytes > 0 && bytes < 200_000)
    );
}

#[test]
fn the_deadline_ends_a_connection_that_never_opens() {
    let report = run(
        "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\nloss = 1.0\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 kB\"\n[run]\ndeadline = \"1 s\"\n",
    );
    let Some(report) = report else { return };
    assert!(!report.result.completed);
    assert_eq!(report.started, None, "no byte was ever sent");
    assert_eq!(report.result.elapsed_s, 0.0);
    assert_eq!(report.result.bytes_received, Some(0));
}

#[test]
fn the_deadline_ends_a_transfer_whose_link_does_not_come_back() {
    let report = run("[link]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n\
         [link.outages]\nprocess = \"single\"\nstart = \"100 ms\"\nlength = \"1 h\"\n\
         [workload]\nkind = \"request-response\"\nrequests = 1000\n\
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"1 s\"\n");
    let Some(report) = report else { return };
    assert!(!report.result.completed);
    let [outage] = report.result.outages[..] else {
        panic!("{:?}", report.result.outages)
    };
    assert_eq!(outage.resume_s, None);
}

#[test]
fn the_user_timeout_ends_a_connection_in_a_long_outage() {
    // The kernel looks at the user timeout when a retransmission is due.
    let report = run("[link]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n\
         [link.outages]\nprocess = \"single\"\nstart = \"200 ms\"\nlength = \"1 h\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"10 MB\"\n\
         [outlast]\nuser_timeout = \"1 s\"\n[run]\ndeadline = \"30 s\"\n");
    let Some(report) = report else { return };
    let result = report.result;
    assert!(!result.completed && result.user_timeout_abort, "{result:?}");
    assert!(result.error.is_some() && result.elapsed_s < 30.0);
}

#[test]
fn cancelling_ends_a_run_and_those_that_come_later() {
    let scenario = scenario(
        "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"100 MB\"\n",
    );
    let lab = Lab::new(&scenario, 0).expect("the lab has it");
    let cancel = Cancel::new().expect("eventfd");
    let mut seen = Duration::ZERO;
    let outcome = lab.run(&cancel, |progress| {
        seen = seen.max(progress.elapsed);
        if progress.received > 0 {
            cancel.cancel();
        }
    });
    match outcome {
        Err(LabError::Cancelled) => assert!(seen > Duration::ZERO),
        Err(error) if error.is_missing_capability() => return skip(&error),
        outcome => panic!("{outcome:?}"),
    }
    assert!(matches!(lab.run(&cancel, |_| {}), Err(LabError::Cancelled)));
}

#[test]
fn a_mechanism_that_the_lab_does_not_have_is_named() {
    let scenario = scenario(
        "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n\
         [outlast]\nmobile = \"fast-retransmit\"\n",
    );
    let error = Lab::new(&scenario, 0).expect_err("an endpoint mechanism");
    assert_eq!(
        error.to_string(),
        "the lab has no mechanism \"fast-retransmit\" at `outlast.mobile` (it has: none, \
         smart-link-1 to smart-link-4, hold, retransmission-cache, zero-window-ack, acknowledge-ahead)"
    );
}

#[test]
fn more_than_one_link_and_one_connection_are_refused() {
    let plain = "[link]\nrate = \"5 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"1 kB\"\n";
    for (table, more) in [
        ("flows", "kind = \"bulk\"\nbytes = \"1 kB\""),
        ("traffic", "pattern = \"poisson\"\nrate = \"1 Mbit/s\""),
        ("hops", "rate = \"1 Mbit/s\"\ndelay = \"1 ms\""),
    ] {
        let scenario = scenario(&format!("{plain}[[{table}]]\n{more}\n"));
        let refused = Lab::new(&scenario, 0).expect_err("it cannot be done");
        let message = refused.to_string();
        assert!(message.contains(&format!("no `[[{table}]]`")), "{message}");
        assert!(message.contains("outlast sim"), "{message}");
    }
}
