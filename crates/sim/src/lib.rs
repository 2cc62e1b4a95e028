//! Scenario files in virtual time: the files that the lab takes, answered in the same result format.
//!
//! [`Simulation`] turns a run of a scenario into a [`World`], lets it run, and makes its outcome
//! into a result. The world itself, which needs no standard library and knows no files, is
//! [`outlast_world`]; what of it a caller needs is here too.
//!
//! ```
//! use outlast_scenario::Scenario;
//! use std::path::Path;
//!
//! let text = r#"
//! [link]
//! rate = "10 Mbit/s"
//! delay = "25 ms"
//! [link.outages]
//! process = "single"
//! start = "1 s"
//! length = "5 s"
//! [workload]
//! kind = "bulk"
//! bytes = "2 MB"
//! "#;
//! let scenario = Scenario::parse(text, "tunnel.toml", Path::new("."))?;
//! let report = outlast_sim::run(&scenario, 0)?;
//! assert!(report.result.completed);
//! assert!(report.result.outages[0].resume_s.is_some_and(|resume| resume > 0.05));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod error;
mod result;
mod setup;
mod simulation;
pub mod topology;

pub use error::SimError;
pub use outlast_link::ConfiguredRate;
pub use outlast_world::{
    AgentsSetup, Counts, Crash, FlowOutcome, FlowSetup, Handoff, HopOutcome, HopSetup, Indicators,
    IpVersion, Lost, Outcome, Pattern, Progress, Recording, Recovery, RoamingOutcome, RoamingSetup,
    Setup, Side, Stack, TrafficOutcome, TrafficSetup, Workload, World, trace,
};
pub use simulation::{RunReport, Running, Simulation, run};
