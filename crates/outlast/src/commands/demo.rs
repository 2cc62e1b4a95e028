//! `outlast demo`: the same download twice at once, plain and with Outlast, over a link that is up
//! a fifth of the time. Where this machine has no lab, in the simulator.

use crate::failure::Failure;
use crate::labs;
use crate::page;
use crate::progress::Display;
use crate::terminal;
use crate::virtual_time::Watch;
use anyhow::anyhow;
use outlast_lab::Lab;
use outlast_report::results;
use outlast_scenario::result::{ScenarioResult, World};
use outlast_scenario::{Mechanism, Scenario};
use outlast_sim::{Recording, Simulation};
use serde_json::json;
use std::path::{Path, PathBuf};

/// The scenario; the user finds the same file among the examples.
const SCENARIO: &str = include_str!("../../../../examples/scenarios/demo.toml");
/// The two runs.
const NAMES: [&str; 2] = ["plain TCP", "with Outlast"];

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print one JSON document instead of the table.
    #[arg(long)]
    json: bool,

    /// Where the report page goes.
    #[arg(long, value_name = "FILE", default_value = "outlast-report/demo.html")]
    report: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let plain = Scenario::parse(SCENARIO, "demo.toml", Path::new("."))?;
    let mut helped = plain.clone();
    helped.outlast.gateway = Mechanism::Hold;
    helped.outlast.mobile = Mechanism::Hold;
    let scenarios = [&plain, &helped];
    labs::check_writable(&arguments.report, "--report")?;
    match in_lab(arguments, scenarios) {
        Err(Failure::Capability(missing)) => in_sim(arguments, scenarios, &missing),
        outcome => outcome,
    }
}

/// On this machine's kernel.
fn in_lab(arguments: &Arguments, scenarios: [&Scenario; 2]) -> Result<(), Failure> {
    let (cancel, _termination) = labs::prepare()?;
    let labs = scenarios
        .into_iter()
        .map(|scenario| Lab::new(scenario, 0).map(|lab| lab.with_trace(Lab::TRACED_PACKETS)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(anyhow::Error::from)?;
    let kernel = outlast_linux::kernel_release();
    introduce(
        scenarios[0],
        &format!("Two hosts in network namespaces, with the TCP of this kernel, Linux {kernel}"),
    )?;
    let display = Display::new(&NAMES);
    let labs::Outcome { reports, failure } = labs::run_at_once(&labs, &cancel, &display);
    display.clear();
    if let Some(failure) = failure {
        return Err(failure);
    }
    let reports: Vec<_> = reports.into_iter().flatten().collect();
    let [plain, helped] = &reports[..] else {
        return Err(anyhow!("a run of the demo has no report").into());
    };
    let runs = [
        page::Run::in_lab(NAMES[0], plain).into_control(),
        page::Run::in_lab(NAMES[1], helped),
    ];
    show(arguments, scenarios[1], World::Lab, &runs)
}

/// In virtual time, because this machine has no lab: `missing` says why.
fn in_sim(arguments: &Arguments, scenarios: [&Scenario; 2], missing: &str) -> Result<(), Failure> {
    let prose = format!(
        "This machine cannot run the demo on its own kernel: {missing}. `outlast doctor` says more. \
         Here is the same demo in the simulator instead."
    );
    console::Term::stderr().write_str(&(terminal::wrap(&prose) + "\n\n"))?;
    introduce(
        scenarios[0],
        "Simulated: virtual time, and a model of Linux 6's TCP in place of a kernel",
    )?;
    let recording = Recording {
        traced_packets: Some(Lab::TRACED_PACKETS),
        ..Recording::default()
    };
    let mut watch = Watch::new(2);
    let [plain, helped] = scenarios.map(|scenario| {
        let simulation = Simulation::new(scenario, 0).map_err(anyhow::Error::from)?;
        Ok::<_, Failure>(watch.run(simulation.with_recording(recording)))
    });
    watch.clear();
    let (plain, helped) = (plain?, helped?);
    let runs = [
        page::Run::in_sim(NAMES[0], &plain).into_control(),
        page::Run::in_sim(NAMES[1], &helped),
    ];
    show(arguments, scenarios[1], World::Sim, &runs)
}

fn show(
    arguments: &Arguments,
    scenario: &Scenario,
    world: World,
    runs: &[page::Run<'_>],
) -> Result<(), Failure> {
    if arguments.json {
        let as_result = |run: &page::Run<'_>| ScenarioResult {
            kernel: None,
            scenario: run.name.to_owned(),
            world,
            runs: vec![run.result.clone()],
            control: Vec::new(),
        };
        let both: Vec<_> = runs.iter().map(as_result).collect();
        terminal::print(&format!("{:#}\n", json!({ "demo": both })))?;
    } else {
        let rows = runs
            .iter()
            .map(|run| (run.name, std::slice::from_ref(run.result)));
        terminal::print_table(&results::comparison(rows))?;
    }
    let about = page::About {
        title: "Outlast demo",
        command: "outlast demo",
        scenario,
        source: Some(SCENARIO),
    };
    page::write(&arguments.report, &about, runs)?;
    if !arguments.json {
        let report = std::path::absolute(&arguments.report)?;
        terminal::print(&format!(
            "\nReport with time-sequence diagrams: {}\n",
            report.display()
        ))?;
    }
    Ok(())
}

/// Says what is tried, and on `what`.
fn introduce(scenario: &Scenario, what: &str) -> Result<(), Failure> {
    let link = &scenario.link.downlink;
    let rate = link
        .rate
        .map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string());
    let round_trip = (link.delay + scenario.link.uplink.delay).as_millis();
    let prose = format!(
        "The same download twice, over a link that is up a fifth of the time: one second, then four \
         without, each give or take a half. {rate}, {round_trip} ms round trip, CUBIC. {what}; at most \
         {} s.",
        scenario.run.deadline.as_secs(),
    );
    let text = terminal::wrap(&prose) + "\n\n";
    console::Term::stderr().write_str(&text)?;
    Ok(())
}
