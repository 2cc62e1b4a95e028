//! Table 1 as a table of measured behaviour, for every mechanism on the path.

use outlast_experiments::experiment::{Extent, Figure, Part};
use outlast_experiments::job::Job;
use outlast_experiments::record::{Record, Runs};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table};
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;
use outlast_scenario::result::World;

/// Table 1.
#[derive(Debug)]
pub struct Table1;

/// What a column tries.
const TRIALS: [(&str, &str, &str); 3] = [
    ("loss", "2 % loss", "loss = 0.02\n"),
    (
        "long",
        "60 s away",
        "[link.outages]\nprocess = \"periodic\"\nup = \"30 s\"\ndown = \"60 s\"\n",
    ),
    (
        "frequent",
        "2.5 s in 7.5 s away",
        "[link.outages]\nprocess = \"normal\"\nup = \"5 s\"\ndown = \"2.5 s\"\n",
    ),
];
const STACKS: [&str; 2] = ["netbsd-1997", "linux-6"];

fn cell(stack: &str, trial: &str, gateway: Mechanism) -> String {
    format!("{stack}, {trial}, {gateway}")
}

fn text(stack: &str, trial: &str, gateway: Mechanism) -> String {
    format!(
        "name = \"table 1\"\n[link]\nrate = \"1 Mbit/s\"\ndelay = \"20 ms\"\nqueue = 30\n{trial}\
         [workload]\nkind = \"bulk\"\nbytes = \"6 MB\"\n[stack]\nprofile = \"{stack}\"\n\
         [outlast]\ngateway = \"{gateway}\"\n[run]\nseed = 1\ndeadline = \"1200 s\"\n"
    )
}

fn mechanisms() -> impl Iterator<Item = Mechanism> {
    Mechanism::AT_GATEWAY
        .into_iter()
        .filter(|mechanism| mechanism.on_path().is_some())
}

impl Figure for Table1 {
    fn name(&self) -> &'static str {
        "table-1"
    }

    fn title(&self) -> &'static str {
        "What each mechanism does under loss, long and frequent disconnections"
    }

    fn jobs(&self, extent: Extent) -> Vec<Job> {
        let mut jobs = Vec::new();
        for gateway in mechanisms() {
            for stack in STACKS {
                for (name, _, trial) in TRIALS {
                    for index in 0..extent.choose(3, 10) {
                        let text = text(stack, trial, gateway);
                        let job = Job::from_toml(cell(stack, name, gateway), text, index);
                        jobs.push(job.in_world(World::Sim));
                    }
                }
            }
        }
        jobs
    }

    fn present(&self, _extent: Extent, runs: &Runs) -> Part {
        let mut columns = vec![
            Column::text("mechanism", "Mechanism"),
            Column::text("acknowledges", "Acknowledgements"),
        ];
        for stack in STACKS {
            for (name, heading, _) in TRIALS {
                columns.push(Column::quantity(
                    format!("{}_{name}", stack.replace('-', "_")),
                    format!("{stack}: {heading}"),
                    Unit::Factor,
                ));
            }
        }
        let mut table = Table::new(columns);
        for gateway in mechanisms() {
            let ahead = gateway
                .on_path()
                .is_some_and(|kind| kind.info().acknowledges_ahead);
            let mut row = vec![
                Cell::from(gateway.name()),
                Cell::from(if ahead { "ahead" } else { "end to end" }),
            ];
            for stack in STACKS {
                for (name, ..) in TRIALS {
                    let records = runs.of(&cell(stack, name, gateway));
                    // One that is given up did not do it.
                    let is_done = records.iter().all(Record::succeeded);
                    let times = records.iter().filter_map(Record::times_ideal);
                    let mean = Sample::of(times).map(|sample| sample.mean);
                    row.push(match is_done {
                        true => Cell::from(mean),
                        false => Cell::from("given up"),
                    });
                }
            }
            table.push(row);
        }
        table.note(
            "Transfer time over the ideal, 6 MB over 1 Mbit/s with 20 ms each way and room for 30 \
             packets. \"Given up\": not every transfer was complete within 1,200 s.",
        );
        let title = "Table 1, measured";
        Part::new(title)
            .paragraph(
                "The paper's table 1 ticks what each solution handles. Here each mechanism is given the \
                 same transfers. \"End to end\" says that nothing is acknowledged to the fixed host that \
                 the mobile has not acknowledged.",
            )
            .table(table.titled(title))
    }
}
