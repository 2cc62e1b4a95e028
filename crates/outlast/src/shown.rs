//! What `lab` and `sim` show of their runs: tables or JSON, and the report page.

use crate::failure::Failure;
use crate::page::{self, About, Run};
use crate::terminal;
use anyhow::anyhow;
use outlast_report::results;
use outlast_report::table::Table;
use outlast_scenario::Scenario;
use outlast_scenario::result::{RunResult, ScenarioResult, World};
use std::path::Path;

/// Runs of several connections whose connections are listed, at most.
const MOST_LISTED: usize = 4;
/// Rows of such a list.
const MOST_CONNECTIONS: usize = 10;

/// What the user has asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) file: &'a Path,
    pub(crate) world: World,
    /// The directory of the packaged kernel, in its world.
    pub(crate) kernel: Option<&'a Path>,
    /// Whether each run is made without Outlast, too.
    pub(crate) control: bool,
    pub(crate) json: bool,
    pub(crate) report: Option<&'a Path>,
}

/// Makes sure that there is something to compare with a control.
pub(crate) fn check_control(file: &Path, scenario: &Scenario) -> Result<(), Failure> {
    if scenario.has_outlast() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "{}: nothing of Outlast is in this scenario that --control could leave out; set `gateway` or \
         `mobile` in [outlast]",
        file.display()
    )))
}

impl Wish<'_> {
    /// What run `index` is called, or its control.
    pub(crate) fn name(&self, index: u32, is_control: bool) -> String {
        let seed = self.scenario.run.seed_of(index);
        match (self.scenario.run.repeat, self.control, is_control) {
            (1, true, false) => "with Outlast".to_owned(),
            (1, true, true) => "control".to_owned(),
            (_, _, false) => format!("seed {seed}"),
            (_, _, true) => format!("seed {seed}, control"),
        }
    }

    /// Shows `runs`.
    pub(crate) fn show(&self, runs: &[Run<'_>]) -> Result<(), Failure> {
        if self.json {
            let json = serde_json::to_string_pretty(&self.document(runs));
            terminal::print(&(json.map_err(anyhow::Error::from)? + "\n"))?;
        } else {
            self.print(runs)?;
        }
        if let Some(file) = self.report {
            let (title, command) = match self.world {
                World::Lab => ("Lab".to_owned(), "lab"),
                World::Kernel => {
                    let release = outlast_linux::kernel_release();
                    (format!("Lab on Linux {release}, in virtual time"), "lab")
                }
                World::Sim | World::Live => ("Simulation".to_owned(), "sim"),
            };
            let control = if self.control { " --control" } else { "" };
            let kernel = self
                .kernel
                .map(|kernel| format!(" --kernel {}", kernel.display()));
            let kernel = kernel.unwrap_or_default();
            let source = std::fs::read_to_string(self.file).ok();
            let about = About {
                title: &format!("{title}: {}", self.scenario.name),
                command: &format!("outlast {command} {}{kernel}{control}", self.file.display()),
                scenario: self.scenario,
                source: source.as_deref(),
            };
            page::write(file, &about, runs)?;
            terminal::say(&format!("Report: {}", file.display()));
        }
        Ok(())
    }

    fn document(&self, runs: &[Run<'_>]) -> ScenarioResult {
        let of = |is_control| {
            let of_kind = runs.iter().filter(move |run| run.is_control == is_control);
            of_kind.map(|run| run.result.clone()).collect()
        };
        ScenarioResult {
            scenario: self.scenario.name.clone(),
            world: self.world,
            kernel: (self.world == World::Kernel).then(outlast_linux::kernel_release),
            runs: of(false),
            control: of(true),
        }
    }

    fn print(&self, runs: &[Run<'_>]) -> Result<(), Failure> {
        terminal::print_table(&table(runs))?;
        if self.control && runs.len() > 2 {
            terminal::print("\n")?;
            terminal::print_table(&summary(runs))?;
        }
        if runs.len() > MOST_LISTED {
            return Ok(());
        }
        for run in runs {
            if let Some(table) = results::connections(run.result, MOST_CONNECTIONS) {
                let of = match runs.len() {
                    1 => String::new(),
                    _ => format!(" ({})", run.name),
                };
                terminal::print(&format!("\nConnections{of}, the worst first:\n"))?;
                terminal::print_table(&table)?;
            }
        }
        Ok(())
    }
}

/// All that is known of each run, or what fits a narrow terminal.
fn table(runs: &[Run<'_>]) -> Table {
    const ALL_COLUMNS: usize = 112;
    let names = || runs.iter().map(|run| run.name);
    if terminal::table_width().is_none_or(|width| width >= ALL_COLUMNS) {
        return results::runs(names().zip(runs.iter().map(|run| run.result)));
    }
    let each = runs.iter().map(|run| std::slice::from_ref(run.result));
    results::comparison(names().zip(each))
}

/// The runs with Outlast beside those without.
fn summary(runs: &[Run<'_>]) -> Table {
    let of = |is_control| -> Vec<RunResult> {
        let of_kind = runs.iter().filter(|run| run.is_control == is_control);
        of_kind.map(|run| run.result.clone()).collect()
    };
    let (with, without) = (of(false), of(true));
    results::comparison([("with Outlast", &with[..]), ("control", &without[..])])
}

/// Whether every run was sound. One that did not complete in time is, and so is a control that was
/// given up.
pub(crate) fn judge(runs: &[Run<'_>]) -> Result<(), Failure> {
    let is_corrupt = |run: &RunResult| {
        let mut flows = run.flows.iter();
        run.intact == Some(false) || flows.any(|flow| flow.intact == Some(false))
    };
    if runs.iter().any(|run| is_corrupt(run.result)) {
        return Err(Failure::Run(anyhow!("what arrived is not what was sent")));
    }
    let with_outlast = runs.iter().filter(|run| !run.is_control);
    match with_outlast
        .filter_map(|run| run.result.error.clone())
        .next()
    {
        Some(error) => Err(Failure::Run(anyhow!(error))),
        None => Ok(()),
    }
}
