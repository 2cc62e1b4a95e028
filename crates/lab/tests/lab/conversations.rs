//! Interactive and request-response workloads.

use crate::support::run;

#[test]
fn the_mobile_sees_every_change_of_the_display_while_the_link_is_up() {
    let report = run("[link]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n\
         [workload]\nkind = \"interactive\"\ninterval = \"100 ms\"\nduration = \"2 s\"\n");
    let Some(report) = report else { return };
    let result = report.result;
    assert!(
        result.completed && result.intact == Some(true),
        "{:?}",
        result.error
    );
    // No shorter than it was to be; how much longer is the machine's affair.
    assert!(result.elapsed_s > 1.9, "{}", result.elapsed_s);
    let (updates, ideal) = (result.updates.expect("counted"), result.ideal_updates);
    // One change per tick; a busy machine may merge most, but none is seen twice.
    assert!(
        (2..=20).contains(&updates) && ideal == Some(19),
        "{updates} of {ideal:?}"
    );
    assert_eq!(result.bytes_received, Some(u64::from(updates) * 64));
}

#[test]
fn no_update_comes_while_the_link_is_down() {
    let report = run("[link]\nrate = \"2 Mbit/s\"\ndelay = \"10 ms\"\n\
         [link.outages]\nprocess = \"single\"\nstart = \"500 ms\"\nlength = \"1 h\"\n\
         [workload]\nkind = \"interactive\"\ninterval = \"100 ms\"\nduration = \"4 s\"\n");
    let Some(report) = report else { return };
    let result = report.result;
    assert!(
        result.completed,
        "it lasted as long as it was to: {:?}",
        result.error
    );
    // Five, unless somebody was late; without the outage there would be 39.
    assert!(
        result.updates.is_some_and(|updates| updates <= 15),
        "{:?}",
        result.updates
    );
}

#[test]
fn requests_are_answered_one_after_the_other() {
    let report = run("[link]\nrate = \"10 Mbit/s\"\ndelay = \"5 ms\"\n\
         [workload]\nkind = \"request-response\"\nrequests = 20\nrequest = \"300 B\"\n\
         response = \"40 kB\"\nthink = \"10 ms\"\n");
    let Some(report) = report else { return };
    let result = report.result;
    assert!(
        result.completed && result.intact == Some(true),
        "{:?}",
        result.error
    );
    assert_eq!(result.bytes_received, Some(20 * 40_000));
    // A round trip for each, and the time to think between them.
    assert!(
        result.elapsed_s > 20.0 * 0.010 + 19.0 * 0.010,
        "{}",
        result.elapsed_s
    );
}
