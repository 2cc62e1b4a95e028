//! `outlast trace` over a corpus with known truth, made here: each header, each cause, each trap.
//!
//! [`stories`] has what happens to connections, [`headers`] what stands in front of their packets, and
//! [`files`] what they come in. Half of the captures have no outage.

mod files;
mod headers;
mod repeats;
mod stories;
mod tape;

use crate::place::{Place, Said};
use files::File;
use headers::{Header, READ, SEALED, TUNNELS};
use serde_json::Value;
use stories::{Calm, OUTAGES, Outage, Story, TRAPS, Truth};
use tape::{Packet, TRIP, Tape};

/// As far as a time may be from the truth, in seconds: a round trip and the time between two packets.
const SLACK: f64 = 2.0 * TRIP as f64 / 1_000_000.0;

/// A capture of the corpus.
struct Case {
    name: String,
    file: Vec<u8>,
    truth: Truth,
    retransmissions: u64,
}

impl Case {
    fn new(story: &Story, is_v6: bool, header: &Header, file: File) -> Self {
        let mut tape = Tape::new(is_v6);
        let truth = (story.tell)(&mut tape);
        let version = if is_v6 { "IPv6" } else { "IPv4" };
        Self {
            name: format!("{}, {version}, {}, {file:?}", story.name, header.name),
            file: files::write(&tape.packets, header, file),
            truth,
            retransmissions: repeats::count(&tape.packets),
        }
    }

    /// A capture of a tunnel, which speaks either version of IP.
    fn tunnelled(story: &Story, is_v6: bool, tunnel: &Header, is_within_v6: bool) -> Self {
        let mut tape = Tape::new(is_v6);
        let truth = (story.tell)(&mut tape);
        for packet in &mut tape.packets {
            packet.is_within_v6 = is_within_v6;
        }
        let [inner, outer] = [is_v6, is_within_v6].map(|is_v6| if is_v6 { "IPv6" } else { "IPv4" });
        Self {
            name: format!("{}, {inner}, {} in {outer}", story.name, tunnel.name),
            file: files::write(&tape.packets, tunnel, File::Pcapng),
            truth,
            retransmissions: repeats::count(&tape.packets),
        }
    }
}

const UPLOAD: Story = OUTAGES[0];
const IDLE: Story = TRAPS[0];

/// Every readable capture.
fn corpus() -> Vec<Case> {
    let mut cases = Vec::new();
    for is_v6 in [false, true] {
        for story in OUTAGES.iter().chain(&TRAPS) {
            cases.push(Case::new(story, is_v6, &READ[0], File::Pcap));
        }
        for header in &READ[1..] {
            for story in [UPLOAD, IDLE] {
                cases.push(Case::new(&story, is_v6, header, File::Pcapng));
            }
        }
        for tunnel in &TUNNELS {
            for story in [UPLOAD, IDLE] {
                for is_within_v6 in [false, true] {
                    cases.push(Case::tunnelled(&story, is_v6, tunnel, is_within_v6));
                }
            }
        }
    }
    for file in [
        File::PcapBigEndian,
        File::PcapNanoseconds,
        File::PcapModified,
        File::PcapModifiedBigEndian,
        File::Gzip,
        File::GzipInTwo,
        File::Zstd,
        File::ZstdInTwo,
    ] {
        for story in [UPLOAD, IDLE] {
            cases.push(Case::new(&story, false, &READ[0], file));
        }
    }
    cases
}

fn trace(place: &Place, file: &[u8]) -> (Said, Value) {
    std::fs::write(place.path().join("capture"), file).expect("a file in a directory of ours");
    let said = place.run(["trace", "--json", "capture"]);
    let found = serde_json::from_str(&said.out).unwrap_or(Value::Null);
    (said, found)
}

/// Fault of what was found, if it has one.
fn mistake(truth: &Truth, said: &Said, found: &Value) -> Option<String> {
    if said.code != Some(0) {
        return Some(format!("exit code {:?}: {}", said.code, said.err));
    }
    let outages = found["outages"].as_array()?;
    match truth {
        Truth::Calm(calm) => calm_mistake(calm, outages, &found["capture"]),
        Truth::Outage(truth) => match &outages[..] {
            [outage] => outage_mistake(truth, outage),
            _ => Some(format!("{} outages: {outages:#?}", outages.len())),
        },
    }
}

fn calm_mistake(calm: &Calm, outages: &[Value], capture: &Value) -> Option<String> {
    if !outages.is_empty() {
        return Some(format!("an outage: {outages:#?}"));
    }
    let count = |key: &str| capture[key].as_u64().expect("a count");
    let told = (
        count("stalled_alone"),
        count("unseen_data") > 0,
        count("one_direction"),
    );
    let right = (calm.stalled_alone, calm.has_hole, calm.one_direction);
    (told != right).then(|| format!("{told:?} instead of {right:?}"))
}

fn outage_mistake(truth: &Outage, outage: &Value) -> Option<String> {
    let differs = |key: &str, told: &Value, right: Option<f64>| match (told.as_f64(), right) {
        (Some(told), Some(right)) if (told - right).abs() <= SLACK => None,
        (None, None) => None,
        (told, right) => Some(format!("{key} {told:?} instead of {right:?}")),
    };
    let flows = outage["flows"].as_array()?;
    let flow = &flows[0];
    let saved = flow["saved_most_s"].as_f64()?;
    differs("start", &outage["start_s"], Some(truth.start))
        .or_else(|| differs("end", &outage["end_s"], truth.end))
        .or_else(|| differs("noticed", &flow["noticed_s"], truth.noticed))
        .or_else(|| {
            (flow["cause"] != truth.cause).then(|| format!("{} as its cause", flow["cause"]))
        })
        .or_else(|| ((saved > 0.0) != truth.saves).then(|| format!("{saved} s saved")))
        .or_else(|| {
            (flows.len() != truth.connections).then(|| format!("{} connections", flows.len()))
        })
}

#[test]
fn every_capture_is_told_as_it_is() {
    let place = Place::new();
    let cases = corpus();
    let mut counts = [0, 0];
    let mut mistakes = Vec::new();
    for case in &cases {
        let (said, found) = trace(&place, &case.file);
        if let Some(mistake) = mistake(&case.truth, &said, &found) {
            mistakes.push(format!("{}: {mistake}", case.name));
        }
        let (told, right) = (&found["capture"]["retransmissions"], case.retransmissions);
        if *told != right {
            mistakes.push(format!(
                "{}: {told} retransmissions instead of {right}",
                case.name
            ));
        }
        counts[usize::from(matches!(case.truth, Truth::Calm(_)))] += 1;
    }
    let count = mistakes.len();
    assert!(
        mistakes.is_empty(),
        "{count} wrong:\n{}",
        mistakes.join("\n")
    );
    let [with, without] = counts;
    assert!(with + without >= 80, "{counts:?}");
    assert!(without >= with, "{counts:?}");
    let page = include_str!("../../../../../docs/trace.md");
    let all = with + without;
    let words = format!("has {all} captures with known truth, {without} of them without an outage");
    assert!(page.contains(&words), "docs/trace.md does not say: {words}");
}

/// Each cause that `docs/trace.md` has is the truth of a story.
#[test]
fn every_cause_is_told_of() {
    let page = include_str!("../../../../../docs/trace.md");
    let (_, table) = page.split_once("| cause | ").expect("a table of causes");
    let rows = table.lines().skip(2);
    let rows = rows.map_while(|row| row.strip_prefix("| `")?.split('`').next());
    let told: Vec<&str> = OUTAGES
        .iter()
        .filter_map(|story| match (story.tell)(&mut Tape::new(false)) {
            Truth::Outage(outage) => Some(outage.cause),
            Truth::Calm(_) => None,
        })
        .collect();
    let mut count = 0;
    for cause in rows {
        assert!(told.contains(&cause), "{cause}");
        count += 1;
    }
    assert_eq!(count, 8);
}

/// Headers that hide connections are named; a capture with no others is an error.
#[test]
fn what_cannot_be_read_is_named() {
    let place = Place::new();
    for is_v6 in [false, true] {
        let mut tape = Tape::new(is_v6);
        stories::upload_backs_off(&mut tape);
        for (header, words) in &SEALED {
            let file = files::write(&tape.packets, header, File::Pcap);
            let (said, found) = trace(&place, &file);
            assert_eq!(said.code, Some(2), "{}: {said:?}", header.name);
            assert!(said.err.contains(words), "{}: {said:?}", header.name);
            let count = tape.packets.len();
            assert!(said.err.contains(&format!("{count} ")), "{said:?}");
            let unread = &found["capture"]["files"][0]["unread"][0];
            assert_eq!(unread["what"], *words, "{}", header.name);
            assert_eq!(unread["packets"], count, "{}", header.name);
            assert_eq!(found["outages"].as_array().map(Vec::len), Some(0));
        }
        let file = files::write(&tape.packets, &READ[0], File::Untimed);
        let (said, found) = trace(&place, &file);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("packets without times"), "{said:?}");
        assert_eq!(found["capture"]["packets"], tape.packets.len());
    }
}

/// Beside what can be read it is a remark.
#[test]
fn what_is_read_in_part_says_so() {
    let place = Place::new();
    let mut tape = Tape::new(false);
    let truth = stories::upload_backs_off(&mut tape);
    let mut file = files::write(&tape.packets, &READ[14], File::Pcap);
    let (esp, words) = &SEALED[5];
    let later: Vec<Packet> = tape
        .packets
        .iter()
        .map(|packet| Packet {
            at: packet.at + 30_000_000,
            ..packet.clone()
        })
        .collect();
    file.extend(&files::write(&later, esp, File::Pcap)[24..]);
    let (said, found) = trace(&place, &file);
    assert_eq!(mistake(&truth, &said, &found), None);
    let said = place.run(["trace", "capture"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let note = format!("Not read: {} packets of {words}", later.len());
    assert!(said.out.contains(&note), "{said:?}");
}

/// A connection of which all is acknowledged makes room, and that is told.
#[test]
fn what_makes_room_is_told() {
    let place = Place::new();
    let mut tape = Tape::new(false);
    stories::short_connections(&mut tape, 0, 50_000, false);
    let full = files::write(&tape.packets, &READ[0], File::Pcap);
    let truth = stories::upload_backs_off(&mut tape);
    let one_more = files::write(&tape.packets, &READ[0], File::Pcap);
    // The control: there is room for as many.
    for (file, forgotten) in [(&full, 0), (&one_more, 1)] {
        let (said, found) = trace(&place, file);
        let capture = &found["capture"];
        assert_eq!(capture["forgotten_connections"], forgotten, "{capture}");
        assert_eq!(capture["untracked_segments"], 0, "{capture}");
        if forgotten > 0 {
            assert_eq!(mistake(&truth, &said, &found), None);
        }
        let said = place.run(["trace", "capture"]);
        let note = "1 connection of which all was acknowledged, or that had been silent for two minutes, made room";
        assert_eq!(said.out.contains(note), forgotten > 0, "{said:?}");
    }
}

#[test]
fn what_holds_nothing_is_refused() {
    let place = Place::new();
    let refuses = |file: &[u8], words: &str| {
        let (said, _) = trace(&place, file);
        assert_eq!(said.code, Some(2), "{words}: {said:?}");
        assert!(said.err.contains(words), "{words}: {said:?}");
    };
    refuses(
        &files::write(&[], &READ[0], File::Pcap),
        "no packet is in it",
    );
    let mut tape = Tape::new(false);
    stories::idle(&mut tape, 0, 5);
    let arp = Header {
        name: "ARP",
        link_type: 1,
        wrap: |_| headers::hex("ffffffffffff 020000000001 0806 0001080006040001"),
    };
    let arp = files::write(&tape.packets, &arp, File::Pcap);
    refuses(&arp, "packets is IP");
    // Compressed in ways that are not unpacked: a file of `xz` that holds no byte, and what the others begin with.
    let xz = headers::hex("fd377a585a000004 e6d6b446 00000000 1cdf4421 1fb6f37d 01000000 0004595a");
    let lz4 = headers::hex("04224d18 64401a7b 00000000 00000000 00000000");
    for packed in [&xz[..], &lz4, b"BZh91AY&SY, and what follows"] {
        refuses(
            packed,
            "the file is compressed; unpack it first, as in `xz -dc",
        );
    }
}

/// Compressed files that are cut off, damaged, or hold much more than they are long.
#[test]
fn damaged_compression_is_told() {
    let place = Place::new();
    let mut tape = Tape::new(false);
    stories::upload_backs_off(&mut tape);
    for (file, format) in [(File::Gzip, "gzip"), (File::Zstd, "zstd")] {
        let whole = files::write(&tape.packets, &READ[0], file);
        for length in [8, whole.len() / 2, whole.len() - 3] {
            let (said, _) = trace(&place, &whole[..length]);
            assert_eq!(said.code, Some(2), "{format}, {length} bytes: {said:?}");
            assert!(said.err.contains(format), "{format}, {length}: {said:?}");
        }
        let mut damaged = whole.clone();
        let middle = whole.len() / 2;
        damaged[middle..middle + 40].fill(0xff);
        let (said, _) = trace(&place, &damaged);
        assert_eq!(said.code, Some(2), "{format}: {said:?}");
    }
    // A section, and then one block of another kind that is 64 MiB long.
    let mut bomb = files::write(&[], &READ[0], File::Pcapng);
    let length = 64_u32 << 20;
    bomb.extend(0x0bad_u32.to_le_bytes());
    bomb.extend(length.to_le_bytes());
    bomb.resize(bomb.len() + length as usize - 12, 0);
    bomb.extend(length.to_le_bytes());
    for packed in [files::gzip(&bomb), files::zstd(&bomb)] {
        assert!(packed.len() < 1 << 20, "it is a bomb");
        let (said, _) = trace(&place, &packed);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains("no packet is in it"), "{said:?}");
    }
}
