//! From the text of a scenario file to a [`Scenario`].

pub(crate) mod document;
pub(crate) mod form;
mod hip;
mod link;
mod outages;
mod roaming;
mod stack;
mod syntax;
mod topology;
pub(crate) mod typed;
mod workload;

use crate::keys;
use crate::problem::{Problem, ScenarioError, Source};
use crate::problems::SCENARIO;
use crate::reader::Reader;
use crate::scenario::{IpVersion, Run, Scenario, Workload};
use outlast_base::time::Duration;
use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

/// No scenario is longer; whoever names a larger file means another one.
const MAX_SCENARIO_BYTES: u64 = 1 << 20;

/// No trace is longer: [`outlast_link::trace::MAX_LINES`] lines of usual length.
const MAX_TRACE_BYTES: u64 = 1 << 28;

impl Scenario {
    /// Reads the scenario file at `path`, and the trace that it names.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, as far as that can be told at once.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        let source = load(path)?;
        read(source, directory_of(path), &stem_of(path))
    }

    /// Reads a scenario from `text`. Messages call it `name`; relative paths in it count from
    /// `directory`.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Self, ScenarioError> {
        let source = Source::new(name, text);
        read(source, directory, &stem_of(Path::new(name)))
    }
}

/// Reads the text of a scenario file.
fn load(path: &Path) -> Result<Source, ScenarioError> {
    read_source(path, path.display().to_string(), MAX_SCENARIO_BYTES)
        .map_err(|problem| ScenarioError::new(vec![*problem]))
}

/// From where relative paths in the file at `path` count.
fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The name of a scenario that gives itself none.
fn stem_of(path: &Path) -> String {
    path.file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn read(source: Source, directory: &Path, stem: &str) -> Result<Scenario, ScenarioError> {
    form::read(SCENARIO, &keys::TOP, source, |top| {
        scenario(top, directory, stem)
    })
}

/// Reads every table. Where something is wrong a stand-in is taken, and the problem noted.
fn scenario(top: &Reader<'_>, directory: &Path, stem: &str) -> Scenario {
    let name = top
        .text(&keys::top::NAME)
        .unwrap_or_else(|| stem.to_owned());
    let link = top.table(&keys::top::LINK, &keys::LINK);
    let workload = top.table(&keys::top::WORKLOAD, &keys::WORKLOAD);
    let stack = top.table(&keys::top::STACK, &keys::STACK);
    let outlast = top.table(&keys::top::OUTLAST, &keys::OUTLAST);
    let run = top.table(&keys::top::RUN, &keys::RUN);
    top.missing_table(&keys::top::LINK, "`rate` and `delay`");
    top.missing_table(&keys::top::WORKLOAD, "`kind` and what that needs");
    let mut settings = link::link(&link, directory);
    let roaming = roaming::roaming(top);
    let help = stack::outlast(&outlast);
    roaming::settle(&roaming, &mut settings, &help, (top, &link, &outlast));
    hip::settle(top, &help, &outlast);
    let (mtu, tcp, limits) = (settings.mtu, stack::stack(&stack), read_run(&run));
    let mut hops = topology::hops(top, mtu, directory);
    topology::rate_changes(top, &mut settings, &mut hops);
    let scenario = Scenario {
        name,
        directory: directory.to_owned(),
        link: settings,
        workload: workload::workload(&workload, directory),
        content: workload::content(&workload),
        stack: tcp,
        outlast: help,
        run: limits,
        flows: topology::flows(top, &tcp, (limits.deadline, &run), directory),
        traffic: topology::traffic(top, mtu, hops.len()),
        hops,
        agents: roaming.agents,
        hip: hip::hip(top),
        mobile_ip: roaming.mobile_ip,
        handoffs: roaming.handoffs,
        crashes: roaming.crashes,
    };
    check_mtu(&scenario, &link, &stack);
    hip::check_mtu(&scenario, &link);
    check_duration(&scenario.workload, limits.deadline, &workload, &run);
    scenario
}

fn read_run(run: &Reader<'_>) -> Run {
    let repeat = run.integer(&keys::run::REPEAT).unwrap_or(1);
    Run {
        repeat: u32::try_from(repeat).expect("the key's range fits"),
        seed: run.integer(&keys::run::SEED).unwrap_or(1),
        deadline: duration(run, &keys::run::DEADLINE).unwrap_or(Duration::from_secs(300)),
    }
}

/// IPv6 needs a larger MTU than IPv4 (RFC 8200, section 5).
fn check_mtu(scenario: &Scenario, link: &Reader<'_>, stack: &Reader<'_>) {
    const IPV6_LEAST: u32 = 1_280;
    let mtu = scenario.link.mtu;
    if scenario.stack.ip != IpVersion::V6 || mtu >= IPV6_LEAST {
        return;
    }
    let key = &keys::link::MTU;
    if let Some(span) = link
        .span_of(key)
        .or_else(|| stack.span_of(&keys::stack::IP))
    {
        link.note(
            span,
            format!("`mtu = {mtu}` is too small for `ip = \"ipv6\"`"),
            format!("IPv6 needs {IPV6_LEAST}"),
            format!("write `mtu = {IPV6_LEAST}` or more, or `ip = \"ipv4\"`"),
        );
    }
}

/// Notes a workload, read by `reader`, that goes on after the deadline of `run`.
fn check_duration(workload: &Workload, deadline: Duration, reader: &Reader<'_>, run: &Reader<'_>) {
    let &Workload::Interactive { duration, .. } = workload else {
        return;
    };
    if duration <= deadline {
        return;
    }
    let at_workload = reader.span_of(&keys::workload::DURATION);
    if let Some(span) = at_workload.or_else(|| run.span_of(&keys::run::DEADLINE)) {
        let written = crate::quantity::format_duration;
        let (duration, deadline) = (written(duration), written(deadline));
        reader.note(
            span,
            format!("`duration = \"{duration}\"` ends after `deadline = \"{deadline}\"`"),
            "would never complete",
            format!("shorten `duration`, or set `[run] deadline = \"{duration}\"` or more"),
        );
    }
}

/// The duration under `key`.
fn duration(reader: &Reader<'_>, key: &keys::Key) -> Option<Duration> {
    reader.quantity(key).map(Duration::from_nanos)
}

/// Reads a text file, refusing one that is too long or no text.
fn read_source(path: &Path, name: String, limit: u64) -> Result<Source, Box<Problem>> {
    let unreadable = |error: &io::Error| Problem {
        message: format!("cannot read `{name}`: {error}"),
        label: None,
        remedy: "check the path and its permissions".to_owned(),
        source: Arc::new(Source::new(name.clone(), "")),
        is_absence: false,
    };
    let mut bytes = Vec::new();
    fs::File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > limit {
        return Err(Box::new(Problem {
            message: format!("`{name}` is longer than {limit} bytes"),
            label: None,
            remedy: "check the path; this is not a file that Outlast reads".to_owned(),
            source: Arc::new(Source::new(name, "")),
            is_absence: false,
        }));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => return Ok(Source::new(name, text)),
        Err(error) => error,
    };
    let (offset, text) = (text.utf8_error().valid_up_to(), text.into_bytes());
    let text = String::from_utf8_lossy(&text).into_owned();
    let replacement = offset..offset + char::REPLACEMENT_CHARACTER.len_utf8();
    let label = (replacement, "this byte is not UTF-8".to_owned());
    // A program or a picture has no lines that anybody could read.
    let is_binary = text.contains('\0');
    Err(Box::new(Problem {
        message: format!("`{name}` is not UTF-8 text"),
        label: (!is_binary).then_some(label),
        remedy: "save the file as UTF-8, or check that it is the right one".to_owned(),
        source: Arc::new(Source::new(name, text)),
        is_absence: false,
    }))
}
