//! `[workload]`, and what `[[flows]]` do.

use super::duration;
use crate::keys::workload::{
    BYTES, CLIENT, CONTENT, DIRECTION, DURATION, INTERVAL, KIND, READY, RECEIVED, REQUEST,
    REQUESTS, RESPONSE, SENT, SERVER, THINK, UPDATE,
};
use crate::keys::{self, Key};
use crate::quantity::format_duration;
use crate::reader::Reader;
use crate::scenario::{CommandLine, Commands, Compare, Content, Direction, Workload, WorkloadKind};
use outlast_base::time::Duration;
use outlast_base::units::ByteCount;
use std::path::Path;

/// What to go on with where the workload cannot be told.
const STAND_IN: Workload = Workload::Bulk {
    bytes: ByteCount(1),
    direction: Direction::Download,
};

pub(super) fn workload(workload: &Reader<'_>, directory: &Path) -> Workload {
    if !workload.has(&KIND) {
        workload.missing(&KIND, "");
    }
    match workload.choice(&KIND).and_then(WorkloadKind::from_name) {
        Some(kind) => of_kind(workload, kind, directory),
        None => STAND_IN,
    }
}

/// What is sent.
pub(super) fn content(workload: &Reader<'_>) -> Content {
    let content = workload.choice(&CONTENT).and_then(Content::from_name);
    content.unwrap_or_default()
}

/// What one of `[[flows]]` does.
pub(super) fn of_flow(flow: &Reader<'_>, directory: &Path) -> Workload {
    let key = &keys::flows::KIND;
    if !flow.has(key) {
        flow.missing(key, "");
    }
    match flow.choice(key).and_then(WorkloadKind::from_name) {
        Some(kind) => of_kind(flow, kind, directory),
        None => STAND_IN,
    }
}

fn of_kind(workload: &Reader<'_>, kind: WorkloadKind, directory: &Path) -> Workload {
    belong(workload, kind);
    let size = |key, default| ByteCount(workload.quantity(key).unwrap_or(default));
    let time = |key, default| duration(workload, key).unwrap_or(default);
    match kind {
        WorkloadKind::Bulk => Workload::Bulk {
            bytes: size(&BYTES, 1),
            direction: workload
                .choice(&DIRECTION)
                .and_then(Direction::from_name)
                .unwrap_or_default(),
        },
        WorkloadKind::Interactive => {
            let interval = time(&INTERVAL, Duration::from_millis(200));
            let duration = time(&DURATION, Duration::from_secs(100));
            check_interval(workload, interval, duration);
            let (update, request) = (size(&UPDATE, 64), size(&REQUEST, 10));
            Workload::Interactive {
                interval,
                update,
                request,
                duration,
            }
        }
        WorkloadKind::RequestResponse => Workload::RequestResponse {
            requests: u32::try_from(workload.integer(&REQUESTS).unwrap_or(100))
                .expect("the key's range fits"),
            request: size(&REQUEST, 200),
            response: size(&RESPONSE, 10_000),
            think: time(&THINK, Duration::ZERO),
        },
        WorkloadKind::Command => Workload::Command(commands(workload, directory)),
    }
}

/// Notes which keys are missing, and which are there that do not belong.
fn belong(workload: &Reader<'_>, kind: WorkloadKind) {
    let (needed, optional): (&[&Key], &[&Key]) = match kind {
        WorkloadKind::Bulk => (&[&BYTES], &[&DIRECTION, &CONTENT]),
        WorkloadKind::Interactive => (&[], &[&INTERVAL, &UPDATE, &REQUEST, &DURATION, &CONTENT]),
        WorkloadKind::RequestResponse => (&[], &[&REQUESTS, &REQUEST, &RESPONSE, &THINK, &CONTENT]),
        WorkloadKind::Command => (&[&SERVER, &CLIENT, &READY], &[&SENT, &RECEIVED]),
    };
    let written = format!("`kind = \"{kind}\"`");
    for key in needed {
        if !workload.has(key) {
            workload.missing(key, &written);
        }
    }
    let takes: Vec<_> = needed.iter().chain(optional).map(|key| key.name).collect();
    let remedy = format!("remove it: {written} takes {}", takes.join(", "));
    for key in keys::WORKLOAD.keys {
        if key.name != KIND.name && !takes.contains(&key.name) {
            workload.forbid(key, &written, &remedy);
        }
    }
}

fn check_interval(workload: &Reader<'_>, interval: Duration, duration: Duration) {
    let span = workload
        .span_of(&INTERVAL)
        .or_else(|| workload.span_of(&DURATION));
    if let Some(span) = span.filter(|_| interval > duration) {
        let (interval, duration) = (format_duration(interval), format_duration(duration));
        workload.note(
            span,
            format!("`interval = \"{interval}\"` is longer than `duration = \"{duration}\"`"),
            "no update would ever be due",
            format!("write an `interval` of at most `\"{duration}\"`"),
        );
    }
}

fn commands(workload: &Reader<'_>, directory: &Path) -> Commands {
    let ready = workload.integer(&READY).unwrap_or(1);
    Commands {
        server: command_line(workload, &SERVER),
        client: command_line(workload, &CLIENT),
        ready: u16::try_from(ready).expect("the key's range fits"),
        compare: compare(workload, directory),
    }
}

fn command_line(workload: &Reader<'_>, key: &Key) -> CommandLine {
    if workload.is_list(key) {
        CommandLine::Words(workload.words(key).unwrap_or_default())
    } else {
        CommandLine::Shell(workload.text(key).unwrap_or_default())
    }
}

fn compare(workload: &Reader<'_>, directory: &Path) -> Option<Compare> {
    for (key, other) in [(&SENT, &RECEIVED), (&RECEIVED, &SENT)] {
        if workload.has(key) && !workload.has(other) {
            workload.missing(other, &format!("`{}`", key.name));
        }
    }
    let (sent, received) = (workload.text(&SENT), workload.text(&RECEIVED));
    let (sent, received) = (directory.join(sent?), directory.join(received?));
    if sent == received {
        workload.note(
            workload.span_of(&RECEIVED)?,
            "`received` is the same file as `sent`",
            "would be removed before the run",
            "let the client write to a file of its own",
        );
    }
    Some(Compare { sent, received })
}
