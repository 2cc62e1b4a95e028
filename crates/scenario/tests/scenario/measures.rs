//! Ideal time, ideal updates and utilisation.

use crate::fixture::{PLAIN, scenario};
use outlast_base::units::ByteCount;
use outlast_scenario::{Framing, IpVersion, Scenario};
use std::time::Duration;

const MS: Duration = Duration::from_millis(1);

fn with(workload: &str, outages: &str) -> Scenario {
    let text = PLAIN.replace("kind = \"bulk\"\nbytes = \"1 MB\"", workload);
    scenario(&format!("{text}\n[link.outages]\n{outages}\n"))
}

fn ideal(scenario: &Scenario) -> Option<Duration> {
    scenario.ideal_time(0, scenario.framing())
}

#[test]
fn payload_becomes_segments_with_headers() {
    let framing = |ip, timestamps| Framing {
        mtu: 1_500,
        ip,
        timestamps,
        added: 0,
    };
    assert_eq!(framing(IpVersion::V4, true).headers(), 52);
    assert_eq!(framing(IpVersion::V6, false).headers(), 60);
    // 1448 bytes of payload fill a segment.
    let wire = |payload| framing(IpVersion::V4, true).wire_bytes(ByteCount(payload));
    assert_eq!(wire(1_448), ByteCount(1_500));
    assert_eq!(wire(1_449), ByteCount(1_449 + 2 * 52));
    assert_eq!(wire(0), ByteCount(0));
}

#[test]
fn timestamps_and_ipv6_count_where_they_are_on() {
    let framing = |lines: &str| scenario(&format!("{PLAIN}\n[stack]\n{lines}\n")).framing();
    assert_eq!(framing("").headers(), 52);
    assert_eq!(framing("timestamps = false").headers(), 40);
    assert_eq!(framing("ip = \"ipv6\"").headers(), 72);
}

#[test]
fn bulk_takes_a_round_trip_its_bytes_and_the_outages() {
    // A hundred full segments, each of which takes a millisecond at 12 Mbit/s.
    let bulk = "kind = \"bulk\"\nbytes = \"144800 B\"";
    assert_eq!(
        ideal(&with(bulk, "process = \"always-up\"")),
        Some(120 * MS)
    );
    let outage = "process = \"single\"\nstart = \"50 ms\"\nlength = \"3 s\"";
    assert_eq!(ideal(&with(bulk, outage)), Some(3_120 * MS));
}

#[test]
fn bulk_that_cannot_be_done_has_no_ideal() {
    let text = PLAIN.replace("1 MB", "1 TB");
    assert_eq!(ideal(&scenario(&text)), None);
}

#[test]
fn each_run_has_the_ideal_of_its_own_outages() {
    let scenario = with(
        "kind = \"bulk\"\nbytes = \"1 MB\"",
        "process = \"uniform\"\nup = \"50 ms\"\ndown = \"1 s\"",
    );
    let times: Vec<_> = (0..5)
        .map(|run| scenario.ideal_time(run, scenario.framing()))
        .collect();
    let mut different = times.clone();
    different.sort();
    different.dedup();
    assert_eq!(different.len(), 5, "{times:?}");
    assert_eq!(times[3], scenario.ideal_time(3, scenario.framing()));
}

#[test]
fn request_and_response_alternate() {
    // 1448 bytes each way: one millisecond, and ten on the way.
    let exchanges = "kind = \"request-response\"\nrequests = 3\nthink = \"100 ms\"\n\
                     request = \"1448 B\"\nresponse = \"1448 B\"";
    // A round trip, three times 22 ms, and twice a pause.
    assert_eq!(
        ideal(&with(exchanges, "process = \"always-up\"")),
        Some((20 + 66 + 200) * MS)
    );
    // The first response, sent from 31 ms on, finds the link down.
    let outage = "process = \"single\"\nstart = \"31 ms\"\nlength = \"1 s\"";
    assert_eq!(
        ideal(&with(exchanges, outage)),
        Some((1_031 + 11 + 44 + 200) * MS)
    );
}

#[test]
fn interactive_lasts_as_long_as_it_should() {
    let interactive = with(
        "kind = \"interactive\"\nduration = \"60 s\"",
        "process = \"always-up\"",
    );
    assert_eq!(ideal(&interactive), Some(Duration::from_secs(60)));
}

fn updates(outages: &str) -> Option<u32> {
    let scenario = with("kind = \"interactive\"\nduration = \"10 s\"", outages);
    scenario.ideal_updates(0, scenario.framing())
}

#[test]
fn an_update_each_interval_if_the_link_is_up() {
    // The fiftieth change is at 10 s, too late to arrive.
    assert_eq!(updates("process = \"always-up\""), Some(49));
}

#[test]
fn updates_stop_for_an_outage_and_the_next_is_shown_at_once() {
    // Changes from 1 s to 4.8 s are not shown; the request of 0.8 s waits for link-up at 4.9 s,
    // is answered at once, and the change of 5 s comes in time again.
    let outage = "process = \"single\"\nstart = \"810 ms\"\nlength = \"4.09 s\"";
    assert_eq!(updates(outage), Some(4 + 1 + 25));
}

#[test]
fn only_interactive_has_updates() {
    let bulk = scenario(PLAIN);
    assert_eq!(bulk.ideal_updates(0, bulk.framing()), None);
}

#[test]
fn utilisation_is_wire_time_over_connected_time() {
    let outage = "process = \"single\"\nstart = \"50 ms\"\nlength = \"3 s\"";
    let scenario = with("kind = \"bulk\"\nbytes = \"144800 B\"", outage);
    let utilisation = |payload, elapsed| {
        scenario.utilisation(0, scenario.framing(), ByteCount(payload), elapsed * MS)
    };
    // 100 ms on the wire, in 200 ms connected.
    assert_eq!(utilisation(144_800, 3_200), Some(0.5));
    // The deadline came after half of it, in the outage.
    assert_eq!(utilisation(72_400, 1_000), Some(1.0));
    assert_eq!(utilisation(0, 0), None, "nothing could be carried");
}

#[test]
fn utilisation_needs_a_rate_and_a_bulk_transfer() {
    let elapsed = Duration::from_secs(1);
    let unlimited = scenario(&PLAIN.replace("12 Mbit/s", "unlimited"));
    let utilisation = |scenario: &Scenario| {
        scenario.utilisation(0, scenario.framing(), ByteCount(1_000), elapsed)
    };
    assert_eq!(utilisation(&unlimited), None);
    assert_eq!(
        utilisation(&with("kind = \"interactive\"", "process = \"always-up\"")),
        None
    );
    assert!(utilisation(&scenario(PLAIN)).is_some());
}
