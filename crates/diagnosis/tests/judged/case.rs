//! One scenario, its captures, and what the link did.

use crate::truth::{Course, Sent, Why};
use outlast_base::time::Instant;
use outlast_diagnosis::{Diagnosis, Findings};
use outlast_scenario::Scenario;
use outlast_sim::trace::{self, Fate, VariableRow};
use outlast_sim::{Recording, Recovery, RunReport, Side, Simulation};
use outlast_tcp::Reason;
use outlast_wire::TcpFlags;
use outlast_wire::capture::{CaptureError, Decoder, Step};
use outlast_wire::outline::Outline;
use outlast_wire::pcapng::ip_in_frame;
use std::path::Path;

/// Which ends of the link are captured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Ends {
    Mobile,
    Fixed,
    Both,
}

/// A run with its captures.
pub(crate) struct Run {
    pub(crate) report: RunReport,
    pub(crate) captures: [Vec<u8>; 2],
}

/// Runs the scenario of this text.
pub(crate) fn run(text: &str) -> Run {
    let scenario = Scenario::parse(text, "case.toml", Path::new("."));
    let scenario = scenario.unwrap_or_else(|error| panic!("{}\n{text}", error.render(100)));
    let recording = Recording {
        captures: true,
        traced_packets: Some(usize::MAX),
        variables: true,
    };
    let simulation = Simulation::new(&scenario, 0).expect("it can be simulated");
    let mut report = simulation.with_recording(recording).run();
    let captures = report.outcome.captures.take().expect("they were asked for");
    Run { report, captures }
}

impl Run {
    /// When the link went down and came back, in seconds since the capture's origin.
    pub(crate) fn truth(&self) -> Vec<(f64, Option<f64>)> {
        let origin = self.report.outcome.started.expect("it began").as_secs_f64();
        let outages = self.report.result.outages.iter();
        outages
            .map(|outage| {
                let start = origin + outage.start_s;
                (start, outage.length_s.map(|length| start + length))
            })
            .collect()
    }

    /// What the hosts of flow `number` did, whose payload `sender` sends.
    pub(crate) fn course(&self, number: usize, sender: Side) -> Course {
        let outcome = &self.report.outcome;
        let flow = &outcome.flows[number];
        let rows = outcome.variables.as_ref().expect("asked for").iter();
        let rows: Vec<_> = rows
            .filter(|row| row.flow == flow.number && row.side == sender)
            .collect();
        let why = |at: Instant| {
            let here = rows.iter().filter(|row| row.at == at);
            // What a host does at one instant it does for its timer, if one fired.
            let whys = here.map(|row| match row.cause {
                trace::Cause::Timeout(Reason::Pacing) | trace::Cause::Ack => Why::Arrival,
                trace::Cause::Timeout(reason) => Why::Timer(reason),
            });
            whys.max_by_key(|why| matches!(why, Why::Timer(_)))
                .unwrap_or(Why::Application)
        };
        let trace = outcome.trace.as_ref().expect("asked for");
        let mut course = Course::default();
        for packet in trace.packets() {
            let Some(segment) = packet.segment else {
                continue;
            };
            let ports = [segment.source.port(), segment.destination.port()];
            if Side::reached_by(packet.way) == sender || !ports.contains(&flow.client_port) {
                continue;
            }
            let arrived = match packet.fate {
                Fate::Arrived(at) => Some(at),
                _ => None,
            };
            let is_syn = segment.flags.contains(TcpFlags::SYN);
            course.sent.push(Sent {
                at: packet.at,
                why: why(packet.at),
                is_syn,
                wants_answer: segment.payload_len > 0 || is_syn,
                arrived,
            });
            if is_syn {
                course.delivered.extend(arrived);
            }
        }
        let new_bytes = |back: &Recovery| Some(back.back + back.first?);
        course
            .delivered
            .extend(flow.recoveries.iter().filter_map(new_bytes));
        course.delivered.sort_unstable();
        let undone = |pair: &[&VariableRow]| pair[0].variables.undone < pair[1].variables.undone;
        course.undone = rows
            .windows(2)
            .filter(|pair| undone(pair))
            .map(|pair| pair[1].at)
            .collect();
        course
    }

    /// What is found in the captures of `ends`.
    pub(crate) fn findings(&self, ends: Ends) -> Findings {
        let sides = match ends {
            Ends::Mobile => vec![Side::Mobile],
            Ends::Fixed => vec![Side::Fixed],
            Ends::Both => vec![Side::Mobile, Side::Fixed],
        };
        let files: Vec<&[u8]> = sides
            .iter()
            .map(|side| &self.captures[side.index()][..])
            .collect();
        let (findings, error) = diagnose(&files, usize::MAX);
        assert_eq!(error, None);
        findings
    }
}

/// What is found in `files`, of each packet no more than `snap_len` bytes.
pub(crate) fn diagnose(files: &[&[u8]], snap_len: usize) -> (Findings, Option<CaptureError>) {
    let mut packets = Vec::new();
    let mut failure = None;
    for (point, file) in (0..).zip(files) {
        let mut decoder = Decoder::default();
        let mut at = 0;
        loop {
            match decoder.decode(&file[at..]) {
                Ok(Step::Packet { consumed, packet }) => {
                    let time = Instant::ZERO + packet.time;
                    let ip = ip_in_frame(packet.link_type, packet.data).expect("raw IP");
                    let ip = &ip[..ip.len().min(snap_len)];
                    let outline = Outline::of(ip, packet.original_len as usize);
                    packets.push((time, point, packet.direction, outline.expect("a packet")));
                    at += consumed;
                }
                Ok(Step::Passed { consumed }) => at += usize::try_from(consumed).expect("64 bits"),
                Ok(Step::Need { .. }) => {
                    failure = failure.or(decoder.end(file.len() - at).err());
                    break;
                }
                Err(error) => {
                    failure = Some(error);
                    break;
                }
            }
        }
    }
    packets.sort_by_key(|(time, ..)| *time);
    let mut diagnosis = Diagnosis::default();
    for (time, point, direction, outline) in &packets {
        diagnosis.handle_packet(*time, *point, *direction, outline);
    }
    (diagnosis.finish(), failure)
}
