//! `outlast demo`: the same download twice at once, plain and with Outlast, over a link that is up
//! a fifth of the time.

use crate::failure::Failure;
use crate::labs;
use crate::page;
use crate::progress::Display;
use crate::terminal;
use outlast_lab::Lab;
use outlast_report::results;
use outlast_scenario::result::{ScenarioResult, World};
use outlast_scenario::{Mechanism, Scenario};
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
    labs::check_writable(&arguments.report, "--report")?;
    let (cancel, _termination) = labs::prepare()?;

    introduce(&plain)?;
    let labs = [&plain, &helped]
        .into_iter()
        .map(|scenario| Lab::new(scenario, 0).map(|lab| lab.with_trace(Lab::TRACED_PACKETS)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(anyhow::Error::from)?;
    let display = Display::new(&NAMES);
    let labs::Outcome { reports, failure } = labs::run_at_once(&labs, &cancel, &display);
    display.clear();
    if let Some(failure) = failure {
        return Err(failure);
    }

    let named: Vec<_> = NAMES
        .iter()
        .map(|name| (*name).to_owned())
        .zip(&reports)
        .collect();
    let runs: Vec<_> = reports
        .iter()
        .map(|report| vec![report.result.clone()])
        .collect();
    if arguments.json {
        let as_result = |(name, runs): (&&str, &Vec<_>)| ScenarioResult {
            scenario: (*name).to_owned(),
            world: World::Lab,
            runs: runs.clone(),
        };
        let both: Vec<_> = NAMES.iter().zip(&runs).map(as_result).collect();
        terminal::print(&format!("{:#}\n", json!({ "demo": both })))?;
    } else {
        let rows = NAMES.iter().copied().zip(runs.iter().map(Vec::as_slice));
        terminal::print_table(&results::comparison(rows))?;
    }
    page::write(&arguments.report, "Outlast demo", "outlast demo", &named)?;
    if !arguments.json {
        let report = std::path::absolute(&arguments.report)?;
        terminal::print(&format!(
            "\nReport with time-sequence diagrams: {}\n",
            report.display()
        ))?;
    }
    Ok(())
}

fn introduce(scenario: &Scenario) -> Result<(), Failure> {
    let link = &scenario.link.downlink;
    let rate = link
        .rate
        .map_or_else(|| "unlimited".to_owned(), |rate| rate.to_string());
    let round_trip = (link.delay + scenario.link.uplink.delay).as_millis();
    let kernel = outlast_linux::kernel_release();
    let prose = format!(
        "The same download twice, over a link that is up a fifth of the time: one second, then four \
         without, each give or take a half. {rate}, {round_trip} ms round trip, CUBIC, Linux {kernel}. \
         Two hosts in network namespaces, this kernel's own TCP; at most {} s.",
        scenario.run.deadline.as_secs(),
    );
    let text = terminal::wrap(&prose) + "\n\n";
    console::Term::stderr().write_str(&text)?;
    Ok(())
}
