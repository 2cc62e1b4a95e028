//! Random scenarios, each without and with what Outlast does: where do connections end later with it?
//!
//! ```text
//! cargo run --release -p outlast-sim --example search -- 1 400           # seed, cells
//! cargo run --release -p outlast-sim --example search -- 1 400 out.jsonl # writes what is worse
//! cargo run --release -p outlast-sim --example search -- 1 400 - 17      # cell 17 alone, with its scenario
//! ```
//!
//! A cell draws rate, delay, queue, loss, outage process, indicator, workload, neighbours, congestion control, SACK and
//! timestamps. Each is run with nothing, with `hold` at one end, the other, both, with `auto`, and with the hosts'
//! retransmission trigger, three times each. What looks worse is run fifteen times before it counts: the median of the
//! mean time at which its connections end is later by more than a round trip, 50 ms and 2 %, or the worst run takes three
//! times as long and 5 s more. The exit code is 1 if any cell is worse.
//!
//! The last columns are about what stays behind: cells in which a sender's smoothed round trip, of which its timeout is
//! made, is longer by more than one and five seconds half a second after a return than before the outage.

use outlast_base::random::Stream;
use outlast_base::time::Duration;
use outlast_scenario::Scenario;
use outlast_sim::trace::{Cause, VariableRow};
use outlast_sim::{Recording, Simulation};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

type Failure = Box<dyn Error + Send + Sync>;

/// One way to run a cell: its name, and the mechanisms at the gateway, the mobile and the fixed host.
struct Arm {
    name: &'static str,
    gateway: &'static str,
    mobile: &'static str,
    fixed: &'static str,
}

const fn arm(name: &'static str, [gateway, mobile, fixed]: [&'static str; 3]) -> Arm {
    Arm {
        name,
        gateway,
        mobile,
        fixed,
    }
}

const ARMS: [Arm; 7] = [
    arm("none", ["none", "none", "none"]),
    arm("gateway", ["hold", "none", "none"]),
    arm("mobile", ["none", "hold", "none"]),
    arm("both", ["hold", "hold", "none"]),
    arm("auto", ["auto", "none", "none"]),
    arm(
        "trigger",
        ["none", "retransmission-trigger", "retransmission-trigger"],
    ),
    arm(
        "trigger at the mobile",
        ["none", "retransmission-trigger", "none"],
    ),
];
/// Keys by which the worse cells are counted.
const KEYS: [&str; 7] = [
    "process",
    "indicator",
    "congestion",
    "sack",
    "timestamps",
    "loss",
    "workload",
];
/// Runs that a first look takes, and that a second one does.
const LOOKS: [u32; 2] = [3, 15];
/// A connection that has not ended counts as ending then.
const DEADLINE: f64 = 900.0;

/// A drawn scenario.
struct Cell {
    number: u64,
    round_trip: f64,
    /// The drawn values, by which tables count it.
    kind: BTreeMap<&'static str, String>,
    /// The scenario file, with `@GATEWAY`, `@MOBILE` and `@FIXED` for the mechanisms.
    text: String,
    /// The log of the link's states, for `@TRACE`.
    states: Option<String>,
}

/// Values that one stream draws.
struct Draw(Stream);

impl Draw {
    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.0.next_u64() % of.len() as u64) as usize]
    }

    fn between(&mut self, least: f64, most: f64) -> f64 {
        least + (most - least) * self.0.unit()
    }
}

impl Cell {
    fn draw(seed: u64, number: u64) -> Self {
        let mut draw = Draw(Stream::new(seed ^ (number << 20), "search.cell"));
        let rate = draw.one(&[0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
        let delay = draw.one(&[2.0, 5.0, 15.0, 33.0, 60.0, 120.0, 280.0]);
        let packets = rate * 1e6 * 2.0 * delay / 1e3 / 8.0 / 1500.0;
        let queue = f64::max(packets * draw.one(&[0.5, 1.0, 2.0, 4.0]), 8.0) as u64;
        let (process, outages, states) = draw_outages(&mut draw);
        let bytes = f64::max(rate * 125_000.0 * draw.one(&[0.5, 3.0, 8.0]), 20_000.0) as u64;
        let kind = draw.one(&["bulk", "bulk", "bulk", "request-response"]);
        let workload = match kind {
            "bulk" => format!(
                "kind = \"bulk\"\nbytes = \"{bytes} B\"\ndirection = \"{}\"",
                draw.one(&["download", "upload"])
            ),
            _ => format!(
                "kind = \"request-response\"\nrequests = {}\nresponse = \"{} kB\"\nthink = \"{} ms\"",
                draw.one(&[30, 100]),
                draw.one(&[1, 8, 40]),
                draw.one(&[0, 50, 200])
            ),
        };
        let mut neighbours = String::new();
        let others = draw.one(&[0, 0, 1, 2]);
        for _ in 0..others {
            let _infallible = write!(
                neighbours,
                "[[flows]]\nkind = \"bulk\"\nbytes = \"{bytes} B\"\ndirection = \"{}\"\n",
                draw.one(&["download", "upload"])
            );
        }
        let loss = draw.one(&[0.0, 0.0, 0.0, 0.001, 0.01]);
        let indicator = draw.one(&["link", "link", "silence"]);
        let congestion = draw.one(&["cubic", "bbr", "reno"]);
        let sack = draw.one(&[true, true, true, false]);
        let timestamps = draw.one(&[true, true, true, false]);
        let text = format!(
            "[link]\nrate = \"{rate} Mbit/s\"\ndelay = \"{delay} ms\"\nqueue = {queue}\nloss = {loss:?}\n[link.outages]\n\
             {outages}\n[workload]\n{workload}\n[stack]\ncongestion = \"{congestion}\"\nsack = {sack}\n\
             timestamps = {timestamps}\n[outlast]\ngateway = \"@GATEWAY\"\nmobile = \"@MOBILE\"\nfixed = \"@FIXED\"\n\
             indicators = \"{indicator}\"\n[run]\nrepeat = 15\nseed = {}\ndeadline = \"{DEADLINE} s\"\n{neighbours}",
            number + 1
        );
        let kind = BTreeMap::from([
            ("process", process.to_owned()),
            ("indicator", indicator.to_owned()),
            ("congestion", congestion.to_owned()),
            ("sack", sack.to_string()),
            ("timestamps", timestamps.to_string()),
            ("loss", loss.to_string()),
            ("workload", kind.to_owned()),
            ("neighbours", others.to_string()),
            ("rate", rate.to_string()),
            ("delay", delay.to_string()),
            ("outages", outages.replace('\n', ", ")),
        ]);
        Self {
            number,
            round_trip: 2.0 * delay / 1e3,
            kind,
            text,
            states,
        }
    }

    fn scenario(&self, arm: &Arm, directory: &Path) -> Result<Scenario, Failure> {
        let name = format!("{}.trace", self.number);
        if let Some(states) = &self.states {
            std::fs::write(directory.join(&name), states)?;
        }
        let text = self
            .text
            .replace("@GATEWAY", arm.gateway)
            .replace("@MOBILE", arm.mobile)
            .replace("@FIXED", arm.fixed)
            .replace("@TRACE", &name);
        let scenario = Scenario::parse(&text, "drawn", directory);
        Ok(scenario.map_err(|error| error.render(100))?)
    }
}

/// The outages of a cell: the name of their process, its keys, and a log of states if that is what they come from.
fn draw_outages(draw: &mut Draw) -> (&'static str, String, Option<String>) {
    let process = draw.one(&[
        "single",
        "flap",
        "twice",
        "uniform",
        "periodic",
        "exponential",
    ]);
    let start = draw.between(0.05, 6.0);
    let length = draw.one(&[0.2, 0.5, 1.5, 4.0, 12.0, 30.0, 80.0]) * draw.between(0.7, 1.3);
    let again = match process {
        "flap" => draw.one(&[0.6, 1.0, 3.0]),
        _ => draw.between(0.05, 2.0),
    };
    let second = match process {
        "flap" => draw.one(&[0.12, 0.2, 0.4]),
        _ => length * draw.between(0.3, 2.0),
    };
    let up = draw.one(&[0.3, 1.0, 4.0, 10.0]);
    let down = draw.one(&[0.2, 1.0, 4.0, 10.0]);
    match process {
        "single" => (
            process,
            format!("process = \"single\"\nstart = \"{start:.2} s\"\nlength = \"{length:.2} s\""),
            None,
        ),
        "flap" | "twice" => {
            let back = start + length;
            let states = format!(
                "0.000 up\n{start:.3} down\n{back:.3} up\n{:.3} down\n{:.3} up\n",
                back + again,
                back + again + second
            );
            (
                process,
                "process = \"trace\"\nfile = \"@TRACE\"".to_owned(),
                Some(states),
            )
        }
        _ => (
            process,
            format!("process = \"{process}\"\nup = \"{up} s\"\ndown = \"{down} s\""),
            None,
        ),
    }
}

/// Results of the runs of one arm.
#[derive(Clone, Default)]
struct Ends {
    /// For each run the mean time at which its connections ended, in seconds.
    means: Vec<f64>,
    /// See [`left_round_trip`].
    left: f64,
}

fn simulate(cell: &Cell, arm: &Arm, runs: u32, directory: &Path) -> Result<Ends, Failure> {
    let scenario = cell.scenario(arm, directory)?;
    let mut ends = Ends::default();
    for index in 0..runs {
        let recording = Recording {
            variables: index == 0,
            ..Recording::default()
        };
        let report = Simulation::new(&scenario, index)?
            .with_recording(recording)
            .run();
        let result = serde_json::to_value(&report.result)?;
        let flows = match result["flows"].as_array() {
            Some(flows) if !flows.is_empty() => flows.clone(),
            _ => vec![result.clone()],
        };
        let each = flows.iter().map(|flow| match flow["completed"].as_bool() {
            Some(true) => flow["elapsed_s"].as_f64().unwrap_or(DEADLINE),
            _ => DEADLINE,
        });
        ends.means.push(each.sum::<f64>() / flows.len() as f64);
        ends.left = ends.left.max(left_round_trip(
            &report.outcome,
            Duration::from_millis((1e3 * cell.round_trip) as u64),
        ));
    }
    Ok(ends)
}

/// By how much a sender's smoothed round trip is longer than before the outage, half a second and a round trip after it has
/// heard something again: the most of all returns and senders, in seconds. Who hears nothing until the next outage counts
/// with what it hears then.
fn left_round_trip(outcome: &outlast_sim::Outcome, round_trip: Duration) -> f64 {
    let Some(rows) = &outcome.variables else {
        return 0.0;
    };
    let mut longest: f64 = 0.0;
    for (number, flow) in outcome.flows.iter().enumerate() {
        for recovery in &flow.recoveries {
            for side in [0, 1] {
                let own = || {
                    rows.iter()
                        .filter(|row| row.flow == number && row.side.index() == side)
                };
                let smoothed = |row: &VariableRow| row.variables.srtt.as_secs_f64();
                let mut heard =
                    own().filter(|row| row.cause == Cause::Ack && row.at < recovery.back);
                let before = heard.next_back().map(smoothed);
                let heard_since =
                    || own().filter(|row| row.cause == Cause::Ack && row.at >= recovery.back);
                let after = heard_since().next().and_then(|first| {
                    let later = first.at + Duration::from_millis(500) + round_trip;
                    let soon = heard_since().take_while(|row| row.at <= later);
                    soon.last().map(smoothed)
                });
                if let (Some(before), Some(after)) = (before, after) {
                    longest = longest.max(after - before);
                }
            }
        }
    }
    longest
}

fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(0.0, f64::max)
}

fn is_worse(cell: &Cell, nothing: &[f64], with: &[f64]) -> bool {
    median(with) > median(nothing) * 1.02 + cell.round_trip + 0.05
        || most(with) > 3.0 * most(nothing) + 5.0
}

/// A cell's verdicts: for each arm its ends at first look, and if it is confirmed worse those of both in the second.
#[derive(Clone, Default)]
struct Verdict {
    ends: Vec<Option<Ends>>,
    worse: Vec<Option<(Vec<f64>, Vec<f64>)>>,
}

fn judge(cell: &Cell, directory: &Path) -> Result<Verdict, Failure> {
    let is_told = cell.kind["indicator"] == "link";
    let mut verdict = Verdict::default();
    for arm in &ARMS {
        let may = is_told || !arm.name.starts_with("trigger");
        let ends = may
            .then(|| simulate(cell, arm, LOOKS[0], directory))
            .transpose()?;
        verdict.ends.push(ends);
    }
    let nothing = verdict.ends[0].clone().unwrap_or_default().means;
    let mut nothing_again = None;
    for (arm, ends) in ARMS.iter().zip(&verdict.ends) {
        let looks_worse = ends
            .as_ref()
            .is_some_and(|ends| is_worse(cell, &nothing, &ends.means));
        let mut confirmed = None;
        if looks_worse {
            if nothing_again.is_none() {
                nothing_again = Some(simulate(cell, &ARMS[0], LOOKS[1], directory)?.means);
            }
            let again = simulate(cell, arm, LOOKS[1], directory)?.means;
            let nothing = nothing_again.clone().unwrap_or_default();
            confirmed = is_worse(cell, &nothing, &again).then_some((nothing, again));
        }
        verdict.worse.push(confirmed);
    }
    Ok(verdict)
}

fn show(cells: &[(Cell, Verdict)], out: &mut dyn Write) -> Result<usize, Failure> {
    let mut all_worse = 0;
    writeln!(
        out,
        "{:22} {:>7} {:>7} {:>7}   round trips left: > 1 s  > 5 s",
        "", "cells", "sooner", "worse"
    )?;
    for (index, arm) in ARMS.iter().enumerate() {
        let (mut had, mut better, mut worse, mut long, mut longer) = (0, 0, 0, 0, 0);
        for (_, verdict) in cells {
            let (Some(nothing), Some(ends)) = (&verdict.ends[0], &verdict.ends[index]) else {
                continue;
            };
            had += 1;
            better += usize::from(median(&ends.means) < median(&nothing.means) * 0.98 - 0.05);
            worse += usize::from(verdict.worse[index].is_some());
            long += usize::from(ends.left > 1.0);
            longer += usize::from(ends.left > 5.0);
        }
        all_worse += worse;
        writeln!(
            out,
            "{:22} {had:7} {better:7} {worse:7}                     {long:6} {longer:6}",
            arm.name
        )?;
    }
    for key in KEYS {
        let mut counts = BTreeMap::<&str, usize>::new();
        for (cell, verdict) in cells {
            let worse = verdict.worse.iter().flatten().count();
            *counts.entry(&cell.kind[key]).or_default() += worse;
        }
        writeln!(out, "worse by {key}: {counts:?}")?;
    }
    Ok(all_worse)
}

fn write(cells: &[(Cell, Verdict)], out: &mut dyn Write) -> Result<(), Failure> {
    let mut worst = Vec::new();
    for (cell, verdict) in cells {
        for (arm, worse) in ARMS.iter().zip(&verdict.worse) {
            if let Some((nothing, with)) = worse {
                let later = median(with) - median(nothing);
                worst.push((
                    later,
                    most(with) - most(nothing),
                    arm.name,
                    cell,
                    median(nothing),
                    median(with),
                ));
            }
        }
    }
    for (cell, verdict) in cells {
        let left = |index: usize| verdict.ends[index].as_ref().map(|ends| ends.left);
        for (index, arm) in ARMS.iter().enumerate() {
            if let (Some(nothing), Some(with)) = (left(0), left(index))
                && with > nothing.max(0.0) + 0.2 + 2.0 * cell.round_trip
            {
                writeln!(
                    out,
                    "cell {} {}: round trip left {with:+.2} s for {nothing:+.2} s {:?}",
                    cell.number, arm.name, cell.kind
                )?;
            }
        }
    }
    worst.sort_by(|one, other| other.0.max(other.1).total_cmp(&one.0.max(one.1)));
    for (later, worst, arm, cell, nothing, with) in worst {
        writeln!(
            out,
            "cell {} {arm}: {nothing:.2} -> {with:.2} s (median {later:+.2}, worst {worst:+.2}) {:?}",
            cell.number, cell.kind
        )?;
    }
    Ok(())
}

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize, default: u64| {
        arguments
            .get(index)
            .map_or(Ok(default), |text| text.parse::<u64>())
    };
    let (seed, cells) = (number(0, 1)?, number(1, 400)?);
    let traces = tempfile::tempdir()?;
    let directory = traces.path();
    let numbers = match arguments.get(3) {
        Some(list) => list
            .split(',')
            .map(str::parse)
            .collect::<Result<Vec<u64>, _>>()?,
        None => (0..cells).collect(),
    };
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let work = || -> Result<(), Failure> {
            while let Some(&number) = numbers.get(next.fetch_add(1, Ordering::Relaxed)) {
                let cell = Cell::draw(seed, number);
                let verdict = judge(&cell, directory)?;
                done.lock()
                    .map_err(|_| "a thread has failed")?
                    .push((cell, verdict));
            }
            Ok(())
        };
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .try_for_each(|worker| worker.join().map_err(|_| "a thread has failed")?)
    })?;
    let mut done = done.into_inner()?;
    done.sort_by_key(|(cell, _)| cell.number);
    let mut out = std::io::stdout().lock();
    let worse = show(&done, &mut out)?;
    match arguments.get(2).map(String::as_str) {
        Some("-") | None => write(&done, &mut out)?,
        Some(path) => write(&done, &mut std::fs::File::create(path)?)?,
    }
    if arguments.len() > 3 {
        for (cell, verdict) in &done {
            let states = cell.states.as_deref().unwrap_or_default();
            writeln!(out, "{}\n{states}", cell.text)?;
            for (arm, ends) in ARMS.iter().zip(&verdict.ends) {
                if let Some(Ends { means, left }) = ends {
                    let name = arm.name;
                    writeln!(out, "{name:22} {means:.2?} s, round trip left {left:+.2} s")?;
                }
            }
        }
    }
    Ok(ExitCode::from(u8::from(worse > 0)))
}
