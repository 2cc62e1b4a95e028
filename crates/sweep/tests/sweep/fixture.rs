//! Sweeps to start from, and a way to carry them out.

use outlast_sweep::output::Detail;
use outlast_sweep::{Datum, Journal, Next, Origin, Plan, Run, Workers, output};
use std::collections::BTreeMap;
use std::fs;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// A sound scenario with a short outage.
pub(crate) const PLAIN: &str = r#"[link]
rate = "10 Mbit/s"
delay = "10 ms"

[link.outages]
process = "exponential"
up = "300 ms"
down = "400 ms"

[workload]
kind = "bulk"
bytes = "300 kB"

[run]
deadline = "20 s"
"#;

/// The version in the journals of tests.
pub(crate) const VERSION: &str = "0.0.0";

/// The plan of a sweep of the plain scenario, which is sound.
#[track_caller]
pub(crate) fn plan(sweep: &str) -> Plan {
    plan_of(&format!("{PLAIN}\n{sweep}"))
}

#[track_caller]
pub(crate) fn plan_of(text: &str) -> Plan {
    match Plan::parse(text, "test.toml", Path::new(".")) {
        Ok(plan) => plan,
        Err(error) => panic!("{}", error.render(100)),
    }
}

/// The values of a cell.
pub(crate) fn cell(plan: &Plan, cell: u64) -> Vec<Datum> {
    plan.parameters(Run {
        cell,
        repetition: 0,
    })
}

/// A directory for what a sweep writes.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().expect("a temporary directory"))
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn journal(&self) -> PathBuf {
        self.path().join("journal.jsonl")
    }

    #[track_caller]
    pub(crate) fn open(&self, plan: &Plan) -> Journal {
        Journal::open(&self.journal(), plan, &Origin::SIMULATOR, VERSION)
            .expect("a journal in our directory")
    }

    /// Carries out what is missing, and writes all tables; how many runs were carried out.
    #[track_caller]
    pub(crate) fn complete(&self, plan: &Arc<Plan>, threads: usize) -> u64 {
        let mut journal = self.open(plan);
        let before = journal.done();
        let threads = NonZero::new(threads).expect("some threads");
        let workers = Workers::start(plan, journal.is_done(), threads);
        let mut workers = workers.expect("threads start");
        loop {
            match workers.next(Duration::from_secs(60)) {
                Next::Finished(finished) => {
                    journal.append(plan, &finished).expect("a journal of ours");
                }
                Next::Over => break,
                other => panic!("{other:?}"),
            }
        }
        let written = output::write(plan, &journal, self.path(), &Detail::ALL, |_| Ok(()));
        written.expect("tables in our directory");
        journal.done() - before
    }

    /// The bytes of every table.
    pub(crate) fn tables(&self) -> BTreeMap<String, Vec<u8>> {
        let mut tables = BTreeMap::new();
        for name in [output::RUNS, output::CELLS, "outages", "flows"] {
            for format in ["csv", "parquet"] {
                let name = format!("{name}.{format}");
                let bytes = fs::read(self.path().join(&name)).expect("the table was written");
                tables.insert(name, bytes);
            }
        }
        tables
    }

    pub(crate) fn csv(&self, name: &str) -> String {
        fs::read_to_string(self.path().join(name)).expect("the table was written")
    }
}
