//! The lab: two hosts in network namespaces, joined by links that go away and come back.
//!
//! The hosts are this machine's kernel, with its real TCP; the link, or the chain of links, is
//! emulated in user space between two TUN devices, with a gateway of `outlast-gateway` at either or
//! both ends of each, and so are further gateways that the mobile host goes to, with the agents and
//! the home agent that help it. So is cross traffic, which no kernel sees: the simulator's generator
//! puts it on the emulated link. Nothing in here touches the host's own network, and nothing is left
//! when the process ends, however it ends.
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

mod agent;
mod cancel;
mod capture;
mod delivery;
mod emulator;
mod error;
mod frame;
mod host;
mod lab;
mod limits;
mod mechanism;
mod observer;
mod opening;
mod path;
pub mod registry;
mod report;
mod status;
mod stop;
mod traffic;
mod tuning;
mod user_timeout;
mod workload;

pub use cancel::Cancel;
pub use emulator::Effort;
pub use error::LabError;
pub use lab::Lab;
pub use observer::Counts;
pub use outlast_world::{Progress, Side, trace};
pub use report::RunReport;
pub use trace::Trace;
