//! `[link.outages]` and its trace.

use super::{MAX_TRACE_BYTES, duration, read_source};
use crate::keys::outages::{DOWN, FILE, GAP, LENGTH, PROCESS, START, UP};
use crate::keys::{self, Key};
use crate::problem::{Problem, Source};
use crate::reader::Reader;
use crate::scenario::ProcessKind;
use outlast_base::time::Duration;
use outlast_link::OutageProcess;
use outlast_link::trace::{Trace, TraceError, TraceProblem};
use std::path::Path;
use std::sync::Arc;

const DEFAULT_GAP: Duration = Duration::from_secs(1);

/// The outage process; `None` if it cannot be told.
pub(super) fn process(outages: &Reader<'_>, directory: &Path) -> Option<OutageProcess> {
    if !outages.is_present() {
        return Some(OutageProcess::AlwaysUp);
    }
    if !outages.has(&PROCESS) {
        outages.missing(&PROCESS, "");
    }
    let Some(kind) = outages.choice(&PROCESS).and_then(ProcessKind::from_name) else {
        // Without the process nobody can say which keys belong; their values can be checked.
        for key in [&UP, &DOWN, &START, &LENGTH, &GAP] {
            let _ = duration(outages, key);
        }
        let _ = outages.text(&FILE);
        return None;
    };
    let (needed, optional): (&[&Key], &[&Key]) = match kind {
        ProcessKind::AlwaysUp => (&[], &[]),
        ProcessKind::Single => (&[&START, &LENGTH], &[]),
        ProcessKind::Trace => (&[&FILE], &[&GAP]),
        ProcessKind::Periodic => (&[&UP, &DOWN], &[&START]),
        _ => (&[&UP, &DOWN], &[]),
    };
    belong(outages, kind, needed, optional);
    let time = |key| duration(outages, key).unwrap_or_default();
    Some(match kind {
        ProcessKind::AlwaysUp => OutageProcess::AlwaysUp,
        ProcessKind::Single => OutageProcess::Single {
            start: time(&START),
            length: time(&LENGTH),
        },
        ProcessKind::Periodic => OutageProcess::Periodic {
            first: duration(outages, &START).unwrap_or_else(|| time(&UP)),
            up: time(&UP),
            down: time(&DOWN),
        },
        ProcessKind::Uniform => OutageProcess::Uniform {
            up: time(&UP),
            down: time(&DOWN),
        },
        ProcessKind::Normal => OutageProcess::Normal {
            up: time(&UP),
            down: time(&DOWN),
        },
        ProcessKind::Exponential => OutageProcess::Exponential {
            up: time(&UP),
            down: time(&DOWN),
        },
        ProcessKind::Trace => return trace(outages, directory),
    })
}

/// Notes which of the `needed` keys are missing, and which are there that do not belong.
fn belong(outages: &Reader<'_>, kind: ProcessKind, needed: &[&Key], optional: &[&Key]) {
    let process = format!("`process = \"{kind}\"`");
    for key in needed {
        if !outages.has(key) {
            outages.missing(key, &process);
        }
    }
    let takes: Vec<_> = needed
        .iter()
        .chain(optional)
        .map(|key| format!("`{}`", key.name))
        .collect();
    let remedy = match &takes[..] {
        [] => format!("remove it: {process} takes no other key"),
        takes => format!("remove it: {process} takes {}", takes.join(" and ")),
    };
    for key in keys::OUTAGES.keys {
        let belongs = needed
            .iter()
            .chain(optional)
            .any(|known| known.name == key.name);
        if !belongs && key.name != PROCESS.name {
            outages.forbid(key, &process, &remedy);
        }
    }
}

fn trace(outages: &Reader<'_>, directory: &Path) -> Option<OutageProcess> {
    let gap = duration(outages, &GAP);
    let path = directory.join(outages.text(&FILE)?);
    let traces = outages.problems().traces();
    let trace = match traces.known(&path) {
        Some(trace) => trace,
        None => {
            let trace = load_trace(outages, &path)?;
            traces.remember(path, &trace);
            trace
        }
    };
    Some(match trace {
        Trace::Deliveries(trace) => OutageProcess::Deliveries {
            trace,
            gap: gap.unwrap_or(DEFAULT_GAP),
        },
        Trace::States(trace) => {
            outages.forbid(
                &GAP,
                "the connectivity log",
                "remove it: it is for packet-delivery traces",
            );
            OutageProcess::States(trace)
        }
    })
}

fn load_trace(outages: &Reader<'_>, path: &Path) -> Option<Trace> {
    let span = outages.span_of(&FILE)?;
    let source = match read_source(path, path.display().to_string(), MAX_TRACE_BYTES) {
        Ok(source) => source,
        Err(mut problem) => {
            // What cannot be opened is shown where it is asked for.
            if problem.label.is_none() {
                let (source, span) = outages.problems().locate(span);
                problem.label = Some((span, "this file".to_owned()));
                problem.source = source.clone();
                problem.remedy =
                    "check the path; it counts from the scenario file's directory".to_owned();
            }
            outages.problems().push(*problem);
            return None;
        }
    };
    let trace = Trace::parse(&source.text);
    trace
        .map_err(|error| outages.problems().push(unreadable(&error, source)))
        .ok()
}

fn unreadable(error: &TraceError, source: Source) -> Problem {
    let log = "write a time in seconds and `up` or `down`, such as `12.5 down`";
    let deliveries = "write a time in whole milliseconds, such as `12500`";
    let remedy = match error.problem {
        TraceProblem::Empty => format!("{log}; or {deliveries}"),
        TraceProblem::NotAState(_) => log.to_owned(),
        TraceProblem::NotAnOpportunity(_) => deliveries.to_owned(),
        TraceProblem::OutOfRange(_) => "count from the beginning of the recording".to_owned(),
        TraceProblem::NotLater(_) | TraceProblem::Earlier(_) => {
            "sort the records by their time".to_owned()
        }
        TraceProblem::NoDuration => "let the last record say how long the trace is".to_owned(),
        TraceProblem::TooLong => "cut the trace".to_owned(),
    };
    Problem {
        message: format!("not a trace: {}", error.problem),
        label: Some((error.span.clone(), "here".to_owned())),
        remedy,
        source: Arc::new(source),
        is_absence: false,
    }
}
