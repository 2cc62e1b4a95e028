//! Records of outages: what a running gateway says of each, and of what it saved.
//!
//! On a machine that lacks what it needs, a test says so and ends.

use crate::path::{Daemon, MOBILE, Over, Path, Transfer, Version, keeps_something};
use crate::support::Place;
use outlast_base::time::Duration;
use outlast_linux::clock;
use serde_json::Value;

const BYTES: usize = 6_000_000;
/// From a change of the carrier until the daemon has heard of it, on a busy machine.
const SLACK: f64 = 1.0;

/// A daemon on the link, and a download that has begun.
fn begun(over: Over, place: &Place) -> Option<(Path, Daemon, Transfer)> {
    let path = Path::new()?;
    let daemon = Daemon::start_over(over, place, &path.gateway, "hold")?;
    let to = MOBILE.of(Version::V4);
    let mut transfer = Transfer::start(&path.fixed, &path.mobile, to, BYTES);
    transfer.wait_for(BYTES / 6);
    Some((path, daemon, transfer))
}

fn seconds(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a time: {value}"))
}

/// The record of the outage. On a machine that is too busy to answer in time there may be a silence before it.
fn without_carrier(status: &Value) -> Option<&Value> {
    let outages = status["outages"].as_array()?;
    outages.iter().find(|one| one["by"] == "carrier")
}

#[test]
fn an_outage_is_on_record_with_what_it_saved() {
    Over::BOTH.into_iter().for_each(is_on_record);
}

fn is_on_record(over: Over) {
    let place = Place::new();
    let Some((path, daemon, mut transfer)) = begun(over, &place) else {
        return;
    };
    let before = clock::now();
    path.cut();
    let cut = clock::now();
    daemon.status_when("an outage that is on record", |status| {
        keeps_something(status) && without_carrier(status).is_some_and(|one| one["stage"] == "down")
    });
    let by_itself = transfer.wait_for_long_timeout();
    let mending = clock::now();
    let up = path.mend();
    transfer.assert_resumes_before(by_itself, up);
    transfer.finish();
    let is_closed =
        |status: &Value| without_carrier(status).is_some_and(|one| one["stage"] == "over");
    let status = daemon.status_when("a closed record", is_closed);
    let outage = without_carrier(&status).expect("it was there");
    let length = seconds(&outage["length_s"]);
    let (least, most) = (mending.since(cut), up.since(before));
    let bounds = least.as_secs_f64() - SLACK..most.as_secs_f64() + SLACK;
    assert!(bounds.contains(&length), "{bounds:?}: {outage:#}");
    assert_eq!(outage["resumed"].as_u64(), Some(1), "{outage:#}");
    assert_eq!(outage["not_helped_in_all"].as_u64(), Some(0), "{outage:#}");
    let without = seconds(&outage["without_s"]);
    assert!(
        without > 0.0 && without < length + SLACK,
        "its timer would have run out by then: {outage:#}"
    );
    let (saved, slowest) = (seconds(&outage["saved_s"]), seconds(&outage["slowest_s"]));
    assert!(saved <= without && slowest < length, "{outage:#}");
    let shown = daemon.ask(&place, &["status"]);
    let line = shown.out.lines().find(|line| line.starts_with("outage "));
    assert!(
        line.is_some_and(|line| line.contains("1 connection resumed")),
        "{shown:?}"
    );
    let said = daemon.stop();
    assert!(
        said.contains("outage: ") && said.contains("1 connection resumed"),
        "{said}"
    );
}

#[test]
fn without_an_outage_none_is_on_record() {
    let place = Place::new();
    let Some((_path, daemon, transfer)) = begun(Over::Ebpf, &place) else {
        return;
    };
    transfer.finish();
    crate::path::wait(Duration::from_secs(3));
    let status = daemon.status();
    let none = serde_json::json!([]);
    let silences = status["counters"]["silences"].as_u64();
    // On a machine that is too busy to answer in time a link is silent.
    assert!(
        status["outages"] == none || silences > Some(0),
        "{status:#}"
    );
    let said = daemon.stop();
    assert!(!said.contains("outage: ") || silences > Some(0), "{said}");
}
