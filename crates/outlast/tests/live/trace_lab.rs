//! `outlast trace` on captures that the lab wrote of this kernel's TCP, beside what the lab did to the link.

use crate::support::{Place, Said, report, watched};
use outlast_skip::skip;
use outlast_wire::capture::{Decoder, Step};
use outlast_wire::outline::Outline;
use outlast_wire::pcapng::{Direction, ip_in_frame};
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

/// Between two datagrams of [`PULSE`], in seconds.
const PULSE_S: f64 = 0.02;

/// How long before a cut and after a return a machine that stands still is taken for the outage, in seconds.
const AROUND_S: f64 = 0.5;

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
    /// connections wait, too. Captures alone leave half a round trip open, so half a round trip of standstill makes a
    /// whole one: then a mistake shows nothing, and the case is repeated.
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
        let [fixed, mobile] = ["fixed", "mobile"].map(|end| Capture::read(&place, end));
        let began = fixed.first_payload_s().min(mobile.first_payload_s());
        let ends: [&[&Capture]; 3] = [&[&fixed], &[&mobile], &[&fixed, &mobile]];
        let mistakes = ends.into_iter().filter_map(|captures| {
            let files = captures.iter().map(|capture| capture.file.as_str());
            let said = place.run(["trace", "--json"].into_iter().chain(files));
            let mistake = self.mistake(&said, began, captures)?;
            let ends: Vec<_> = captures.iter().map(|capture| capture.end).collect();
            Some(format!("{self:?}, {ends:?}: {mistake}: {}", said.out))
        });
        Some(mistakes.collect())
    }

    /// The end at which the sender is.
    fn sender_end(&self) -> &'static str {
        match self.direction {
            "upload" => "mobile",
            _ => "fixed",
        }
    }

    /// What is wrong with what was found, if anything is; the workload's first byte came to the link at `began`,
    /// since the Unix epoch.
    fn mistake(&self, said: &Said, began: f64, captures: &[&Capture]) -> Option<String> {
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
        // What a machine did that stood still at the cut, or at the return, no capture can tell from the outage.
        let (still_before, still_after) = captures.iter().fold((0_f64, 0_f64), |most, capture| {
            let (cut, back) = (start - origin + began, end - origin + began);
            let (before, after) = (capture.silence_before(cut), capture.silence_after(back));
            (most.0.max(before), most.1.max(after))
        });
        let starts = start - still_before - ROUND_TRIP_S..=start + ROUND_TRIP_S;
        if !starts.contains(&seconds(&outage["start_s"])) {
            return Some(format!(
                "it began at {start}, silent for {still_before} before"
            ));
        }
        let (first, last) = (
            seconds(&outage["end_earliest_s"]),
            seconds(&outage["end_s"]),
        );
        let latest = end + still_after + ROUND_TRIP_S;
        let is_within = first <= latest && end < last + ROUND_TRIP_S;
        // With datagrams both ways the end is known.
        if !is_within || !self.other.is_empty() && !(end - ROUND_TRIP_S..=latest).contains(&last) {
            return Some(format!("it ended at {end}, silent for {still_after} after"));
        }
        let flows = outage["flows"].as_array().expect("flows");
        let [flow] = &flows[..] else {
            return Some(format!("{} connections stood still", flows.len()));
        };
        // Timers that double from a round trip on: the last one is a good part of the outage. Whether the sender
        // undid a timeout cannot be seen for certain where only the receiver's end was captured.
        let is_right = match flow["cause"].as_str() {
            Some("back-off") => true,
            Some("spurious-timeout") => {
                let sender = self.sender_end();
                captures.iter().all(|capture| capture.end != sender)
            }
            _ => false,
        };
        (!is_right).then(|| "it was its retransmission timer".to_owned())
    }
}

/// What one end of the link saw.
struct Capture {
    end: &'static str,
    file: String,
    packets: Vec<Captured>,
}

/// A packet of a capture.
struct Captured {
    /// Seconds since the Unix epoch.
    at_s: f64,
    /// It came out of the link.
    has_arrived: bool,
    /// It has payload of TCP.
    has_payload: bool,
}

impl Capture {
    fn read(place: &Place, end: &'static str) -> Self {
        let file = format!("case-1.{end}.pcapng");
        let bytes = fs::read(place.path().join(&file)).expect("it was written");
        let (mut decoder, mut at, mut packets) = (Decoder::default(), 0, Vec::new());
        loop {
            match decoder.decode(&bytes[at..]).expect("a whole capture") {
                Step::Packet { consumed, packet } => {
                    at += consumed;
                    let ip = ip_in_frame(packet.link_type, packet.data);
                    let outline = ip.and_then(|ip| Outline::of(ip, packet.original_len as usize));
                    let tcp = outline.as_ref().and_then(Outline::tcp);
                    packets.push(Captured {
                        at_s: packet.time.as_secs_f64(),
                        has_arrived: packet.direction == Direction::Inbound,
                        has_payload: tcp.is_some_and(|(_, payload)| payload > 0),
                    });
                }
                Step::Passed { consumed } => at += consumed as usize,
                Step::Need { .. } => return Self { end, file, packets },
            }
        }
    }

    /// When TCP's first payload was seen, in seconds since the Unix epoch.
    fn first_payload_s(&self) -> f64 {
        let first = self.packets.iter().find(|packet| packet.has_payload);
        first.expect("a workload").at_s
    }

    /// For how long nothing came out of the link at most, shortly before `cut`; both in seconds.
    fn silence_before(&self, cut: f64) -> f64 {
        let arrived = self.packets.iter().filter(|packet| packet.has_arrived);
        longest_gap(arrived, cut - AROUND_S, cut)
    }

    /// For how long nothing was seen at most, shortly after `back`, beyond what the datagrams allow; both in seconds.
    fn silence_after(&self, back: f64) -> f64 {
        (longest_gap(self.packets.iter(), back, back + AROUND_S) - PULSE_S).max(0.0)
    }
}

/// The longest time without one of `packets` between `from` and `to`; all in seconds.
fn longest_gap<'p>(packets: impl Iterator<Item = &'p Captured>, from: f64, to: f64) -> f64 {
    let times = packets.map(|packet| packet.at_s);
    let within = times.filter(|at| (from..=to).contains(at)).chain([to]);
    let step = |(last, longest): (f64, f64), at: f64| (at, longest.max(at - last));
    within.fold((from, 0.0), step).1
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
