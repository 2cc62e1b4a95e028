//! `outlast trace FILE...`: outages found in captures, and why connections stood still.

use crate::failure::Failure;
use crate::labs;
use crate::terminal;
use crate::trace::input::{self, Capture};
use crate::trace::page;
use crate::trace::show;
use outlast_diagnosis::Diagnosis;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Captures in the format pcap or pcapng; `-` is standard input, as in
    /// `tcpdump -i wwan0 -s 128 -w - | outlast trace -`. Several are merged by their times: both ends
    /// of a path, or the files of one capture.
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Print what was found as one JSON document (see docs/trace.md).
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print a row for each connection of each outage, as CSV.
    #[arg(long)]
    csv: bool,

    /// Write a report page with time-sequence diagrams of the connections that wasted most.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_piped = |file: &PathBuf| file.as_os_str() == "-";
    if arguments.files.iter().filter(|file| is_piped(file)).count() > 1 {
        let message = "standard input can be read once; name `-` once";
        return Err(Failure::Usage(message.to_owned()));
    }
    if let Some(report) = &arguments.report {
        labs::check_writable(report, "--report")?;
    }
    // Ctrl-C is for the program that captures; when it ends, so does its capture.
    let _patience = match arguments.files.iter().any(is_piped) {
        true => Some(labs::interruptible()?),
        false => None,
    };
    let mut capture = Capture::open(&arguments.files, arguments.report.is_some())?;
    let mut diagnosis = Diagnosis::default();
    while let Some(packet) = capture.next_packet() {
        diagnosis.handle_packet(packet.at, packet.point, packet.direction, &packet.outline);
    }
    let findings = diagnosis.finish();
    let sources = capture.sources();
    // Nothing was read: an answer would only look like one.
    let segments = findings.counters.segments;
    if sources.iter().all(|source| source.packets == 0) {
        input::judge(&sources, segments)?;
    }
    if let Some(report) = &arguments.report {
        let again = capture.again()?;
        page::write(report, &sources, &findings, again)?;
    }
    let text = match (arguments.json, arguments.csv) {
        (true, _) => show::json(&sources, &findings)?,
        (_, true) => show::rows(&findings).to_csv(),
        _ => String::new(),
    };
    if text.is_empty() {
        show::text(&sources, &findings)?;
    } else {
        terminal::print(&text)?;
    }
    input::judge(&sources, segments)
}
