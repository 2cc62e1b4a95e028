//! `outlast trace`: what it prints of captures with an outage, without one, and of files that are none.

use crate::place::{Place, Said};
use outlast_wire::capture::{Decoder, Step};
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::Stdio;

const TUNNEL: &str = r#"
[link]
rate = "10 Mbit/s"
delay = "25 ms"

[link.outages]
process = "single"
start = "2 s"
length = "5 s"

[workload]
kind = "bulk"
bytes = "4 MB"

[[traffic]]
pattern = "constant"
rate = "64 kbit/s"
packet = "80 B"
direction = "download"
"#;

/// A place with the captures of the tunnel's two ends, and their names.
fn captured() -> (Place, [String; 2]) {
    let place = Place::new();
    place.file("tunnel.toml", TUNNEL);
    let said = place.run(["sim", "tunnel.toml", "--capture", "captures"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let mut files: Vec<String> = fs::read_dir(place.path().join("captures"))
        .expect("it was made")
        .map(|entry| {
            format!(
                "captures/{}",
                entry.expect("an entry").file_name().display()
            )
        })
        .collect();
    files.sort();
    let files: [String; 2] = files.try_into().expect("one for each end");
    (place, files)
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {said:?}"))
}

/// Checks that the one outage is the tunnel's, and that one connection stood still.
#[track_caller]
fn assert_is_tunnel(found: &Value) {
    let outages = found["outages"].as_array().expect("outages");
    assert_eq!(outages.len(), 1, "{found:#}");
    let outage = &outages[0];
    let seconds = |value: &Value| value.as_f64().expect("a number");
    let (start, end) = (seconds(&outage["start_s"]), seconds(&outage["end_s"]));
    assert!((end - start - 5.0).abs() < 0.1, "{outage:#}");
    let flows = outage["flows"].as_array().expect("flows");
    assert_eq!(flows.len(), 1, "{outage:#}");
    assert_eq!(flows[0]["cause"], "back-off");
    assert!(seconds(&flows[0]["noticed_s"]) > end, "{outage:#}");
    assert!(seconds(&flows[0]["saved_s"]) > 0.5, "{outage:#}");
    assert!(seconds(&flows[0]["saved_s"]) <= seconds(&flows[0]["wasted_s"]));
}

#[test]
fn the_outage_of_a_capture_is_told_in_every_form() {
    let (place, [fixed, mobile]) = captured();
    // The datagrams that date the return arrive at the mobile's end.
    for files in [vec!["--json", &mobile], vec!["--json", &fixed, &mobile]] {
        let said = place.run([vec!["trace"], files.clone()].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        let found = json(&said);
        assert_is_tunnel(&found);
        let named = found["capture"]["files"].as_array().expect("files");
        assert_eq!(named.len(), files.len() - 1);
    }
    let found = json(&place.run(["trace", "--json", &fixed]));
    let outage = &found["outages"][0];
    let seconds = |key: &str| outage[key].as_f64().expect("a number");
    let back = seconds("start_s") + 5.0;
    assert!(
        (seconds("end_earliest_s")..seconds("end_s")).contains(&back),
        "{outage:#}"
    );

    let text = place.run(["trace", &mobile]);
    assert_eq!(text.code, Some(0), "{text:?}");
    for words in [
        "1 outage in",
        "Outage 1:",
        "back-off",
        "192.0.2.",
        "Outlast saves",
        "had backed off",
    ] {
        assert!(text.out.contains(words), "{words:?} is not in {}", text.out);
    }

    let rows = place.run(["trace", &mobile, "--csv"]);
    let lines: Vec<&str> = rows.out.lines().collect();
    let [head, row] = lines[..] else {
        panic!("a head and a row, not {lines:?}")
    };
    for column in [
        "start_s",
        "end_s",
        "noticed_s",
        "wasted_s",
        "saved_s",
        "cause",
    ] {
        assert!(
            head.split(',').any(|name| name == column),
            "{column} is not in {head}"
        );
    }
    assert_eq!(head.split(',').count(), row.split(',').count());
    assert!(row.contains("back-off"), "{row}");
}

#[test]
fn standard_input_is_a_capture_and_gets_a_page_too() {
    let (place, [_, mobile]) = captured();
    let bytes = fs::read(place.path().join(&mobile)).expect("it was written");
    let mut child = place
        .command(["trace", "-", "--json", "--report", "page.html"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("outlast was built");
    let mut pipe = child.stdin.take().expect("piped");
    pipe.write_all(&bytes).expect("it reads to the end");
    drop(pipe);
    let said = Said::of(child.wait_with_output().expect("it ends"));
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_is_tunnel(&json(&said));
    let page = fs::read_to_string(place.path().join("page.html")).expect("written");
    for words in [
        "<svg",
        "Outage 1",
        "Wasted after their return",
        "outlast trace -",
    ] {
        assert!(page.contains(words), "{words:?} is not in the page");
    }
    place
        .run(["trace", "-", "-"])
        .refuses(2, &["standard input can be read once"]);
}

#[test]
fn a_damaged_capture_is_told_as_far_as_it_can_be_read() {
    let (place, [_, mobile]) = captured();
    let whole = fs::read(place.path().join(&mobile)).expect("it was written");
    fs::write(place.path().join("cut.pcapng"), &whole[..whole.len() - 501]).expect("a file");
    let said = place.run(["trace", "cut.pcapng", "--json"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_is_tunnel(&json(&said));
    assert!(
        said.err.contains("cut.pcapng: ") && said.err.contains("byte"),
        "{said:?}"
    );

    let mut damaged = whole.clone();
    let at = whole.len() - 50_000;
    damaged[at..at + 4_000].fill(0xff);
    fs::write(place.path().join("damaged.pcapng"), &damaged).expect("a file");
    let said = place.run(["trace", "damaged.pcapng", "--report", "page.html"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.out.contains("Outage 1"), "{said:?}");
    let page = fs::read_to_string(place.path().join("page.html")).expect("written");
    assert!(
        page.contains("damaged.pcapng"),
        "the page names what was not read"
    );
}

#[test]
fn what_is_no_capture_is_refused() {
    let place = Place::new();
    place.file(
        "notes.txt",
        "not a capture, but long enough to be read as one",
    );
    place.file("empty.pcap", "");
    let said = place.run(["trace", "notes.txt"]);
    said.refuses(2, &["notes.txt", "pcap"]);
    place
        .run(["trace", "empty.pcap"])
        .refuses(2, &["empty.pcap"]);
    place
        .run(["trace", "missing.pcap"])
        .refuses(2, &["missing.pcap"]);
    place.run(["trace", "."]).refuses(2, &["directory"]);
    place.run(["trace"]).refuses(2, &["<FILE>"]);
    place
        .run(["trace", "notes.txt", "--json", "--csv"])
        .refuses(2, &["--json", "--csv"]);
}

#[test]
fn a_capture_without_an_outage_has_none() {
    let place = Place::new();
    let calm = TUNNEL.replace(
        "process = \"single\"\nstart = \"2 s\"\nlength = \"5 s\"",
        "process = \"always-up\"",
    );
    place.file("calm.toml", &calm);
    let said = place.run(["sim", "calm.toml", "--capture", "."]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let files = fs::read_dir(place.path()).expect("it is there");
    let names = files.map(|entry| entry.expect("an entry").file_name().display().to_string());
    let capture = names.filter(|name| name.ends_with(".pcapng")).min();
    let capture = capture.expect("it was written");
    let said = place.run(["trace", &capture, "--report", "page.html"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with("no outage in"), "{said:?}");
    let page = fs::read_to_string(place.path().join("page.html")).expect("written");
    assert!(page.contains("There is no outage in this capture"));
    let said = place.run(["trace", &capture, "--csv"]);
    assert_eq!(said.out.lines().count(), 1, "a head alone: {said:?}");
}

/// `file` in so many files, as a ring buffer has them: each has the blocks before the first packet, and its share of
/// the packets.
fn cut_up(file: &[u8], count: usize) -> Vec<Vec<u8>> {
    let mut decoder = Decoder::default();
    let (mut at, mut packets) = (0, Vec::new());
    loop {
        match decoder.decode(&file[at..]).expect("a whole capture") {
            Step::Packet { consumed, .. } => {
                packets.push(at..at + consumed);
                at += consumed;
            }
            Step::Passed { consumed } => at += usize::try_from(consumed).expect("64 bits"),
            Step::Need { .. } => break,
        }
    }
    let header = &file[..packets[0].start];
    let share = packets.len().div_ceil(count);
    let parts = packets.chunks(share).map(|packets| {
        let bytes = packets.iter().flat_map(|packet| &file[packet.clone()]);
        header.iter().chain(bytes).copied().collect()
    });
    parts.collect()
}

/// The files of two ring buffers, one at each end: the outage and the connection cross from file to file.
#[test]
fn files_of_a_ring_buffer_are_one_capture() {
    let (place, files) = captured();
    let mut names = Vec::new();
    for (end, file) in files.iter().enumerate() {
        let whole = fs::read(place.path().join(file)).expect("a capture");
        for (number, part) in cut_up(&whole, 7 + end).into_iter().enumerate() {
            let name = format!("host{end}_{number:05}.pcapng");
            fs::write(place.path().join(&name), part).expect("it can be written");
            names.push(name);
        }
    }
    let of_end = |end: usize| {
        let start = format!("host{end}");
        names.iter().filter(move |name| name.starts_with(&start))
    };
    let found = |files: &[&String]| {
        let names = files.iter().map(|name| name.as_str());
        let said = place.run(["trace", "--json"].into_iter().chain(names));
        assert_eq!(said.code, Some(0), "{said:?}");
        json(&said)
    };
    let parts: [Vec<&String>; 3] = [
        of_end(0).collect(),
        of_end(1).collect(),
        names.iter().rev().collect(),
    ];
    let wholes = [vec![&files[0]], vec![&files[1]], files.iter().collect()];
    for (parts, whole) in parts.iter().zip(wholes) {
        let (parts, whole) = (found(parts), found(&whole));
        assert_eq!(parts["outages"], whole["outages"]);
        assert_eq!(parts["outages"].as_array().map(Vec::len), Some(1));
        let connections = |found: &Value| found["capture"]["connections"].clone();
        assert_eq!(connections(&parts), connections(&whole));
    }
}
