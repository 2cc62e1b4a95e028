//! Grids and Monte-Carlo repetitions of a scenario, on all cores.
//!
//! A sweep file is a scenario file with a table `[sweep]`, or that table and the name of a scenario
//! file; `docs/sweep-file.md` describes it. [`Plan::load`] checks it, with every cell of its grid,
//! and then knows each run by its cell and its repetition. [`Workers`] simulate what has not been
//! simulated yet, in any number of threads, or have another [`Runner`] carry it out; a [`Journal`] keeps what they have finished, so that an
//! interrupted sweep goes on where it was. When all runs are there, [`output::write`] goes through
//! the journal in the order of the grid and writes the tables, as CSV and Parquet.
//!
//! No result depends on the number of threads, or on how often the sweep was interrupted: a run is
//! made by the file, its cell and its repetition alone, and the tables are made from the journal in
//! a fixed order.
//!
//! Memory stays small whatever the sweep's size: per run there are its place in the journal and a
//! byte, and of one cell at a time the resume times.
//!
//! ```
//! use outlast_sweep::{Plan, Run};
//! use std::path::Path;
//!
//! let text = r#"
//! [link]
//! rate = "10 Mbit/s"
//! [link.outages]
//! process = "single"
//! start = "1 s"
//! length = "8 s"
//! [workload]
//! kind = "bulk"
//! bytes = "3 MB"
//!
//! [sweep]
//! repeat = 2
//! [sweep.grid]
//! "link.delay" = ["2 ms", "20 ms"]
//! "outlast.gateway" = ["none", "hold"]
//! "#;
//! let plan = Plan::parse(text, "ferry.toml", Path::new("."))?;
//! assert_eq!((plan.cells(), plan.runs()), (4, 8));
//!
//! let plain = plan.carry_out(Run { cell: 0, repetition: 0 })?;
//! let held = plan.carry_out(Run { cell: 1, repetition: 0 })?;
//! assert!(held.outages[0].resume_s < plain.outages[0].resume_s);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod axis;
mod bundle;
mod cell;
mod check;
mod datum;
mod file;
mod journal;
mod lock;
pub mod output;
mod plan;
mod range;
mod rows;
mod runner;
mod sample;
mod workers;

pub use bundle::{Bundle, BundleError, UnbundleError};
pub use cell::{CellSummary, Width, table};
pub use check::{refusal, simulable};
pub use datum::{Column, Datum, Kind};
pub use journal::{Entry, Journal, JournalError};
pub use plan::{MAX_RUNS, Plan, Run, RunError, RunFault};
pub use runner::{Check, Origin, Refusal, Runner, Simulator};
pub use workers::{Finished, Next, Workers};
