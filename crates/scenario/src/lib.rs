//! Scenario files, workloads and the result format, shared by lab and simulator.
//!
//! [`Scenario::load`] turns a file into a [`Scenario`] in which nothing contradicts, or says all
//! that is wrong with it. The file's keys are described in `docs/scenario-file.md`.
//!
//! ```
//! use outlast_scenario::{Mechanism, Scenario};
//! use std::path::Path;
//!
//! let text = r#"
//! [link]
//! rate = "10 Mbit/s"
//! delay = "25 ms"
//! [link.outages]
//! process = "single"
//! start = "10 s"
//! length = "26 s"
//! [workload]
//! kind = "bulk"
//! bytes = "50 MB"
//! [outlast]
//! gateway = "hold"
//! "#;
//! let scenario = Scenario::parse(text, "ferry.toml", Path::new("."))?;
//! assert_eq!(scenario.name, "ferry");
//! assert_eq!(scenario.outlast.gateway, Mechanism::Hold);
//!
//! let error = Scenario::parse("[link]\nrate = 10", "ferry.toml", Path::new(".")).unwrap_err();
//! assert!(error.render(80).contains("`rate = 10` has no unit"));
//! # Ok::<(), outlast_scenario::ScenarioError>(())
//! ```
#![forbid(unsafe_code)]

mod control;
mod hip;
pub mod keys;
mod measure;
mod mechanism;
mod names;
mod problem;
mod problems;
mod quantity;
mod read;
mod reader;
pub mod result;
mod roaming;
mod scenario;
mod topology;

pub use hip::Hip;
pub use measure::Framing;
pub use mechanism::Mechanism;
pub use problem::{Problem, ScenarioError, Source};
pub use read::document::{Change, Document};
pub use read::form::{load_file, parse_file};
pub use read::typed::parse_as;
pub use reader::Reader;
pub use roaming::{Agents, Crash, Detection, Handoff, MobileIp};
pub use scenario::{
    CommandLine, Commands, Compare, Congestion, Content, Direction, HostStack, Indicators,
    IpVersion, LinkSettings, Outlast, ProcessKind, Profile, Run, Scenario, Stack, Workload,
    WorkloadKind,
};
pub use topology::{Connection, Flow, Hop, Pattern, PatternKind, Traffic};
