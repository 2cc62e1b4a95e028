//! Scenario files and the traces beside them, on disk.

use crate::fixture::PLAIN;
use insta::assert_snapshot;
use outlast_link::OutageProcess;
use outlast_scenario::Scenario;
use std::fs;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

const TRACED: &str = r#"[link]
rate = "12 Mbit/s"
delay = "10 ms"
[link.outages]
process = "trace"
file = "train.trace"
[workload]
kind = "bulk"
bytes = "1 MB"
"#;

/// A directory with these files.
fn directory(files: &[(&str, &[u8])]) -> TempDir {
    let directory = tempfile::tempdir().expect("a directory for the test");
    for (name, content) in files {
        fs::write(directory.path().join(name), content).expect("the directory can be written");
    }
    directory
}

/// What users read about the scenario `name` there, with the directory's name left out.
#[track_caller]
fn problems(directory: &TempDir, name: &str) -> String {
    let error = Scenario::load(&directory.path().join(name)).expect_err("a faulty scenario");
    let shown = directory.path().display().to_string();
    // Wide, so that the directory's length does not break lines.
    error.render(300).replace(&shown, "DIR")
}

#[test]
fn a_file_lends_its_name_and_directory() {
    let directory = directory(&[("ferry.toml", PLAIN.as_bytes())]);
    let scenario = Scenario::load(&directory.path().join("ferry.toml")).expect("a sound file");
    assert_eq!(scenario.name, "ferry");
    assert_eq!(scenario.directory, directory.path());
}

#[test]
fn editors_of_other_systems_are_welcome() {
    let text = format!("\u{feff}{}", PLAIN.replace('\n', "\r\n"));
    let directory = directory(&[("ferry.toml", text.as_bytes())]);
    let scenario = Scenario::load(&directory.path().join("ferry.toml")).expect("a sound file");
    assert_eq!(scenario.link.mtu, 1_500);
}

#[test]
fn paths_count_from_the_scenario() {
    let directory = directory(&[
        ("traced.toml", TRACED.as_bytes()),
        ("train.trace", b"0 up\n10 down\n12.5 up\n"),
    ]);
    let scenario = Scenario::load(&directory.path().join("traced.toml")).expect("a sound file");
    let OutageProcess::States(trace) = scenario.link.outages else {
        panic!("a connectivity log")
    };
    assert_eq!(
        trace.outages()[0].length(),
        Some(Duration::from_millis(2_500))
    );
}

#[test]
fn a_packet_delivery_trace_stands_for_the_rate() {
    let text = TRACED.replace("rate = \"12 Mbit/s\"\n", "");
    let directory = directory(&[
        ("traced.toml", text.as_bytes()),
        ("train.trace", b"1\n2\n3\n"),
    ]);
    let scenario = Scenario::load(&directory.path().join("traced.toml")).expect("a sound file");
    let rate = scenario
        .link
        .downlink
        .rate
        .expect("the mean rate of the trace");
    assert_eq!(rate.bits_per_second(), 12_032_000);
    let OutageProcess::Deliveries { gap, .. } = scenario.link.outages else {
        panic!("a packet-delivery trace")
    };
    assert_eq!(gap, Duration::from_secs(1));
}

#[test]
fn missing_file() {
    assert_snapshot!(problems(&directory(&[]), "nowhere.toml"));
}

#[test]
fn directory_in_place_of_a_file() {
    assert_snapshot!(problems(&directory(&[]), "."));
}

#[test]
fn not_utf_8() {
    let content = b"name = \"Z\xfcrich\"\n[link]\nrate = 5\n";
    assert_snapshot!(problems(
        &directory(&[("latin.toml", content)]),
        "latin.toml"
    ));
}

/// A program, say: no line of it is shown.
#[test]
fn no_text_at_all() {
    let content = b"\x7fELF\x02\x01\x01\0\0\0\x1b[31m\xff\xfe\0";
    let said = problems(&directory(&[("ls", content)]), "ls");
    assert!(said.contains("is not UTF-8 text"), "{said}");
    assert!(!said.contains("ELF"), "{said}");
}

#[test]
fn far_too_long() {
    let content = vec![b'#'; (1 << 20) + 1];
    assert_snapshot!(problems(
        &directory(&[("long.toml", &content)]),
        "long.toml"
    ));
}

#[test]
fn missing_trace() {
    assert_snapshot!(problems(
        &directory(&[("traced.toml", TRACED.as_bytes())]),
        "traced.toml"
    ));
}

#[track_caller]
fn with_trace(trace: &[u8]) -> String {
    let files: [(&str, &[u8]); 2] = [("traced.toml", TRACED.as_bytes()), ("train.trace", trace)];
    problems(&directory(&files), "traced.toml")
}

#[test]
fn trace_of_something_else() {
    assert_snapshot!(with_trace(b"time,state\n0,up\n"));
}

#[test]
fn trace_with_a_slip() {
    assert_snapshot!(with_trace(b"# from the 8:15\n0 up\n4.5 dwon\n9 up\n"));
}

#[test]
fn trace_out_of_order() {
    assert_snapshot!(with_trace(b"100\n90\n"));
}

#[test]
fn empty_trace() {
    assert_snapshot!(with_trace(b""));
}

#[test]
fn trace_not_utf_8() {
    assert_snapshot!(with_trace(b"0 up\n\xff\xfe"));
}

#[test]
fn rate_beside_a_packet_delivery_trace() {
    assert_snapshot!(with_trace(b"1\n2\n3\n"));
}

#[test]
fn gap_beside_a_connectivity_log() {
    let text = TRACED.replace("process", "gap = \"2 s\"\nprocess");
    let files: [(&str, &[u8]); 2] = [
        ("traced.toml", text.as_bytes()),
        ("train.trace", b"0 up\n5 down\n"),
    ];
    assert_snapshot!(problems(&directory(&files), "traced.toml"));
}

#[test]
fn errors_are_short_on_one_line_each() {
    let error = Scenario::parse("[link]\nrate = 5\n", "x.toml", Path::new("."))
        .expect_err("a faulty scenario");
    let lines: Vec<_> = error
        .problems()
        .iter()
        .map(|problem| format!("{}: {problem}", problem.location()))
        .collect();
    assert_snapshot!(lines.join("\n"));
}
