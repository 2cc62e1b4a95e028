//! The lab: two hosts in network namespaces, joined by a link that goes away and comes back.
//!
//! The hosts are this machine's kernel, with its real TCP; the link is emulated in user space
//! between two TUN devices, with a gateway of `outlast-core` at either or both ends. Nothing in here
//! touches the host's own network, and nothing is left when the process ends, however it ends.
//!
//! ```no_run
//! use outlast_lab::{Cancel, Lab};
//! use outlast_scenario::Scenario;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let scenario = Scenario::load("tunnel.toml".as_ref())?;
//! let report = Lab::new(&scenario, 0)?.run(&Cancel::new()?, |progress| {
//!     eprintln!("{} bytes, link {}", progress.received, progress.link_up);
//! })?;
//! assert!(report.result.completed);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod cancel;
mod capture;
mod delivery;
mod emulator;
mod error;
mod frame;
mod host;
mod lab;
mod mechanism;
mod observer;
mod path;
pub mod registry;
mod report;
mod status;
mod stop;
mod traffic;
mod tuning;
mod workload;

pub use cancel::Cancel;
pub use emulator::Effort;
pub use error::LabError;
pub use lab::Lab;
pub use observer::Counts;
pub use outlast_world::{Side, trace};
pub use report::RunReport;
pub use status::Progress;
pub use trace::Trace;
