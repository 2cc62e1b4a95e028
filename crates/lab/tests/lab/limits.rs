//! Runs that cannot come to their end: they end all the same.

use crate::support::{run, scenario, skip};
use outlast_lab::{Cancel, Lab, LabError};
use outlast_scenario::Mechanism;
use std::time::Duration;

#[test]
fn the_deadline_ends_a_transfer_that_takes_too_long() {
    let report = run("[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"bulk\"\nbytes = \"100 MB\"\n[run]\ndeadline = \"3 s\"\n");
    let Some(report) = report else { return };
    let result = report.result;
    assert!(!result.completed);
    assert_eq!(
        result.intact, None,
        "what arrived is right, as far as it goes"
    );
    assert!(result.error.is_none() && !result.user_timeout_abort);
    assert!(result.elapsed_s >= 3.0, "{}", result.elapsed_s);
    // No more than the link carries in that time, and much less than was asked for.
    let most = result.elapsed_s * 1e6 / 8.0 + 100e3;
    let bytes = result.bytes_received.expect("counted") as f64;
    assert!(bytes > 0.0 && bytes < most, "{bytes} of {most}");
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
         [outlast]\ngateway = \"hold\"\nmobile = \"hold\"\n[run]\ndeadline = \"5 s\"\n");
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
         [outlast]\nuser_timeout = \"1 s\"\n[run]\ndeadline = \"2 min\"\n");
    let Some(report) = report else { return };
    let result = report.result;
    assert!(!result.completed && result.user_timeout_abort, "{result:?}");
    assert!(result.error.is_some() && result.elapsed_s < 120.0);
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
        Err(error) if error.is_missing_capability() => return skip(error),
        outcome => panic!("{outcome:?}"),
    }
    assert!(matches!(lab.run(&cancel, |_| {}), Err(LabError::Cancelled)));
}

#[test]
fn a_mechanism_that_the_lab_does_not_have_is_named() {
    let mut scenario = scenario(
        "[link]\nrate = \"1 Mbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"1 MB\"\n",
    );
    // A file that says so is refused when it is read.
    scenario.outlast.gateway = Mechanism::FastRetransmit;
    let error = Lab::new(&scenario, 0).expect_err("an endpoint mechanism");
    assert_eq!(
        error.to_string(),
        "the lab has no mechanism \"fast-retransmit\" at `outlast.gateway` (it has: none, \
         smart-link-1 to smart-link-4, hold, retransmission-cache, zero-window-ack, acknowledge-ahead, m-tcp, m-tcp-adaptive, auto)"
    );
    scenario.outlast.gateway = Mechanism::None;
    scenario.outlast.fixed = Mechanism::Hold;
    let error = Lab::new(&scenario, 0).expect_err("a mechanism of gateways");
    assert_eq!(
        error.to_string(),
        "the lab has no mechanism \"hold\" at `outlast.fixed` (it has: none, retransmission-trigger, fast-retransmit; at the mobile also m-tcp)"
    );
}

#[test]
fn cross_traffic_that_real_time_does_not_allow_is_refused() {
    let refused = scenario(
        "[link]\nrate = \"1 Gbit/s\"\ndelay = \"5 ms\"\n[workload]\nkind = \"bulk\"\nbytes = \"1 kB\"\n\
         [[traffic]]\npattern = \"poisson\"\nrate = \"40 Mbit/s\"\npacket = \"50 B\"\n\
         [[traffic]]\npattern = \"poisson\"\nrate = \"8 Mbit/s\"\npacket = \"1 kB\"\n",
    );
    let refused = Lab::new(&refused, 0).expect_err("it cannot be done");
    assert_eq!(
        refused.to_string(),
        "the lab cannot run these `[[traffic]]`: 101000 datagrams a second are more than the 100000 \
         that it sends in real time; use `outlast sim`, or write lower `rate`s or a larger `packet`"
    );
}
