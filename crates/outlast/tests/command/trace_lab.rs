//! `outlast trace` on captures that the lab wrote of this kernel's TCP, beside what the lab did to the link.

use crate::support::{Place, Said, report, watched};
use outlast_skip::skip;
use outlast_wire::capture::{Decoder, Step};
use outlast_wire::outline::Outline;
use outlast_wire::pcapng::ip_in_frame;
use serde_json::Value;
use std::fs;
use std::thread;

/// The link's round trip, by which starts and ends may be missed, in seconds.
const ROUND_TRIP_S: f64 = 0.1;

/// How often a case is carried out at most.
const TRIES: u32 = 3;

/// A transfer in the lab.
#[derive(Clone, Copy, Debug)]
struct Case {
    direction: &'static str,
    congestion: &'static str,
    sack: bool,
    ip: &'static str,
    /// Start and length of the outage in seconds, if there is one.
    outage: Option<(f64, f64)>,
    /// What else the link has.
    link: &'static str,
    /// What the scenario has besides.
    other: &'static str,
}

/// Datagrams both ways, which show when the path is back.
const PULSE: &str = "[[traffic]]\npattern = \"constant\"\nrate = \"64 kbit/s\"\npacket = \"160 B\"\ndirection = \"download\"\n\
                     [[traffic]]\npattern = \"constant\"\nrate = \"64 kbit/s\"\npacket = \"160 B\"\ndirection = \"upload\"\n";

const BASE: Case = Case {
    direction: "download",
    congestion: "cubic",
    sack: true,
    ip: "ipv4",
    outage: Some((1.5, 2.0)),
    link: "",
    other: "",
};

const CASES: [Case; 7] = [
    Case {
        other: PULSE,
        ..BASE
    },
    // Without the datagrams, a sender without SACK that has lost a whole flight makes a path look silent.
    Case {
        direction: "upload",
        sack: false,
        outage: Some((1.5, 3.0)),
        other: PULSE,
        ..BASE
    },
    Case {
        congestion: "reno",
        ip: "ipv6",
        outage: Some((1.2, 2.5)),
        other: PULSE,
        ..BASE
    },
    Case {
        direction: "upload",
        congestion: "bbr",
        outage: Some((1.5, 2.5)),
        other: PULSE,
        ..BASE
    },
    Case {
        outage: None,
        ..BASE
    },
    Case {
        outage: None,
        link: "loss = 0.01\n",
        ..BASE
    },
    Case {
        outage: None,
        direction: "upload",
        congestion: "reno",
        sack: false,
        link: "queue = 10\n",
        ..BASE
    },
];

impl Case {
    fn scenario(&self) -> String {
        let Self {
            direction,
            congestion,
            sack,
            ip,
            link,
            other,
            ..
        } = self;
        let outage = self.outage.map_or(String::new(), |(start, length)| {
            format!(
                "[link.outages]\nprocess = \"single\"\nstart = \"{start} s\"\nlength = \"{length} s\"\n"
            )
        });
        format!(
            "[link]\nrate = \"6 Mbit/s\"\ndelay = \"50 ms\"\n{link}{outage}\
             [workload]\nkind = \"bulk\"\nbytes = \"1600 kB\"\ndirection = \"{direction}\"\n\
             [stack]\ncongestion = \"{congestion}\"\nsack = {sack}\nip = \"{ip}\"\n{other}\
             [run]\ndeadline = \"60 s\"\n"
        )
    }

    /// Runs it, and judges its captures; `None` where this machine lacks something. A machine that stands still makes
    /// the link silent, too, or cuts it late. Captures alone leave half a round trip open, so half a round trip of
    /// standstill makes a whole one: then a mistake shows nothing, and the case is repeated.
    fn judge_awake(&self) -> Option<Vec<String>> {
        for _ in 1..TRIES {
            let (mistakes, standstill) = watched(|| self.judge());
            let mistakes = mistakes?;
            if mistakes.is_empty() || standstill.as_secs_f64() < ROUND_TRIP_S / 2.0 {
                return Some(mistakes);
            }
            report(&format!("stood still for {standstill:?}: {mistakes:?}"));
        }
        self.judge()
    }

    /// Runs it once, and judges its captures.
    fn judge(&self) -> Option<Vec<String>> {
        let place = Place::new();
        place.file("case.toml", &self.scenario());
        let said = place.run(["lab", "case.toml", "--json", "--capture", "."]);
        if said.code == Some(3) {
            skip(&said.err);
            return None;
        }
        assert_eq!(said.code, Some(0), "{self:?}: {said:?}");
        let files = ["fixed", "mobile"].map(|end| format!("case-1.{end}.pcapng"));
        let began = files.each_ref().map(|file| first_payload_s(&place, file));
        let began = began[0].min(began[1]);
        let [fixed, mobile] = &files;
        let ends: [&[&String]; 3] = [&[fixed], &[mobile], &[fixed, mobile]];
        let mistakes = ends.into_iter().filter_map(|files| {
            let arguments = files.iter().map(|file| file.as_str());
            let said = place.run(["trace", "--json"].into_iter().chain(arguments));
            let has_sender = files.contains(&self.sender_end(fixed, mobile));
            let mistake = self.mistake(&said, began, has_sender)?;
            Some(format!("{self:?}, {files:?}: {mistake}: {}", said.out))
        });
        Some(mistakes.collect())
    }

    /// Which of both captures is of the sender's end.
    fn sender_end<'f>(&self, fixed: &'f String, mobile: &'f String) -> &'f String {
        match self.direction {
            "upload" => mobile,
            _ => fixed,
        }
    }

    /// What is wrong with what was found, if anything is; the workload's first byte came to the link at `began`,
    /// since the Unix epoch. `has_sender` says whether the sender's end was captured.
    fn mistake(&self, said: &Said, began: f64, has_sender: bool) -> Option<String> {
        assert_eq!(said.code, Some(0), "{said:?}");
        let found: Value = serde_json::from_str(&said.out).expect("one JSON document");
        let outages = found["outages"].as_array().expect("outages");
        let Some((start, length)) = self.outage else {
            return (!outages.is_empty()).then(|| "there was no outage".to_owned());
        };
        let [outage] = &outages[..] else {
            return Some(format!("{} outages", outages.len()));
        };
        let seconds = |value: &Value| value.as_f64().expect("a number");
        let origin = began - seconds(&found["capture"]["began_s"]);
        let (start, end) = (origin + start, origin + start + length);
        let is_near = |found: f64, truth: f64| (found - truth).abs() <= ROUND_TRIP_S;
        if !is_near(seconds(&outage["start_s"]), start) {
            return Some(format!("it began at {start}"));
        }
        let (first, last) = (
            seconds(&outage["end_earliest_s"]),
            seconds(&outage["end_s"]),
        );
        let is_within = (first - ROUND_TRIP_S..last + ROUND_TRIP_S).contains(&end);
        // With datagrams both ways the end is known.
        if !is_within || !self.other.is_empty() && !is_near(last, end) {
            return Some(format!("it ended at {end}"));
        }
        let flows = outage["flows"].as_array().expect("flows");
        let [flow] = &flows[..] else {
            return Some(format!("{} connections stood still", flows.len()));
        };
        // Timers that double from a round trip on: the last one is a good part of the outage. Whether the sender
        // undid a timeout cannot be seen for certain where only the receiver's end was captured.
        let is_right = match flow["cause"].as_str() {
            Some("back-off") => true,
            Some("spurious-timeout") => !has_sender,
            _ => false,
        };
        (!is_right).then(|| "it was its retransmission timer".to_owned())
    }
}

/// When the first payload of TCP in that capture was seen, in seconds since the Unix epoch.
fn first_payload_s(place: &Place, file: &str) -> f64 {
    let bytes = fs::read(place.path().join(file)).expect("it was written");
    let (mut decoder, mut at) = (Decoder::default(), 0);
    loop {
        match decoder.decode(&bytes[at..]).expect("a whole capture") {
            Step::Packet { consumed, packet } => {
                at += consumed;
                let ip = ip_in_frame(packet.link_type, packet.data);
                let outline = ip.and_then(|ip| Outline::of(ip, packet.original_len as usize));
                let tcp = outline.as_ref().and_then(Outline::tcp);
                if tcp.is_some_and(|(_, payload)| payload > 0) {
                    return packet.time.as_secs_f64();
                }
            }
            Step::Passed { consumed } => at += consumed as usize,
            Step::Need { .. } => panic!("no payload in {file}"),
        }
    }
}

#[test]
fn what_the_lab_does_to_its_link_is_found_in_its_captures() {
    let judged = thread::scope(|scope| {
        let running = CASES.map(|case| scope.spawn(move || case.judge_awake()));
        running.map(|case| {
            case.join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    });
    let mistakes: Vec<String> = judged.into_iter().flatten().flatten().collect();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
}
