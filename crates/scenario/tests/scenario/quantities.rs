//! Numbers with a unit.

use crate::fixture::{PLAIN, scenario};
use outlast_base::units::{BitRate, ByteCount};
use outlast_scenario::{Scenario, Workload};
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

fn delay(text: &str) -> Option<Duration> {
    let text = PLAIN.replace("\"10 ms\"", &format!("{text:?}"));
    let scenario = Scenario::parse(&text, "test.toml", Path::new(".")).ok()?;
    Some(scenario.link.downlink.delay)
}

fn size(text: &str) -> ByteCount {
    let Workload::Bulk { bytes, .. } = scenario(&PLAIN.replace("1 MB", text)).workload else {
        panic!("the plain scenario is a bulk transfer")
    };
    bytes
}

fn rate(text: &str) -> Option<u64> {
    let rate = scenario(&PLAIN.replace("12 Mbit/s", text)).link.uplink.rate;
    rate.map(BitRate::bits_per_second)
}

#[test]
fn durations() {
    for (text, nanos) in [
        ("25 ms", 25_000_000),
        ("25ms", 25_000_000),
        (" 25  ms ", 25_000_000),
        ("4.5 s", 4_500_000_000),
        ("0.000000001 s", 1),
        ("7 ns", 7),
        ("1.5 us", 1_500),
        ("2 min", 120_000_000_000),
        ("1 h", 3_600_000_000_000),
        ("0 s", 0),
    ] {
        assert_eq!(delay(text), Some(Duration::from_nanos(nanos)), "{text}");
    }
    for text in [
        "", "s", "1.2.3 s", ".5 s", "5. s", "1e3 s", "1,5 s", "5 S s", "+5 s", "- 5 s", "5 d",
    ] {
        assert_eq!(delay(text), None, "{text}");
    }
}

#[test]
fn sizes() {
    for (text, bytes) in [
        ("50 MB", 50_000_000),
        ("5 MiB", 5 << 20),
        ("1.5 kB", 1_500),
        ("0.5 KiB", 512),
        ("2 GiB", 2 << 30),
        ("1 TB", 1_000_000_000_000),
        ("1 B", 1),
    ] {
        assert_eq!(size(text), ByteCount(bytes), "{text}");
    }
}

#[test]
fn rates() {
    for (text, bits) in [
        ("10 Mbit/s", 10_000_000),
        ("9.6 kbit/s", 9_600),
        ("2.5 Gbit/s", 2_500_000_000),
        ("300 bit/s", 300),
    ] {
        assert_eq!(rate(text), Some(bits), "{text}");
    }
    assert_eq!(rate("unlimited"), None);
}

proptest! {
    #[test]
    fn every_duration_up_to_an_hour_can_be_written(nanos in 0..3_600_000_000_000_u64) {
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(delay(&format!("{nanos} ns")), Some(duration));
        prop_assert_eq!(delay(&format!("{seconds}.{rest:09} s")), Some(duration));
    }

    /// Whatever stands in a file, reading it ends with a scenario or with problems.
    #[test]
    fn no_text_makes_the_reader_panic(text in ".{0,200}") {
        let _ = Scenario::parse(&text, "test.toml", Path::new(".")).map_err(|error| error.render(80));
    }

    /// Whatever slip a nearly sound file has, reading it does not panic.
    #[test]
    fn no_slip_makes_the_reader_panic(
        at in 0..PLAIN.len(),
        slip in prop_oneof![".", "\"", "\n", "\\[", "\\]", "=", "'", "#", "é", "-", "0"],
        cut in any::<bool>(),
    ) {
        let mut text = PLAIN.to_owned();
        if cut {
            text.truncate(at);
        }
        text.insert_str(at, &slip);
        match Scenario::parse(&text, "test.toml", Path::new(".")) {
            Ok(_) => {}
            Err(error) => {
                prop_assert!(!error.problems().is_empty());
                prop_assert!(!error.render(80).is_empty());
            }
        }
    }

    #[test]
    fn no_value_makes_the_reader_panic(value in "[ -~é]{0,30}", key in 0..4_usize) {
        let line = ["\"12 Mbit/s\"", "\"10 ms\"", "\"bulk\"", "\"1 MB\""][key];
        for value in [value.clone(), format!("{value:?}")] {
            let text = PLAIN.replace(line, &value);
            let parsed = Scenario::parse(&text, "test.toml", Path::new("."));
            let _ = parsed.map_err(|error| error.render(80));
        }
    }
}
