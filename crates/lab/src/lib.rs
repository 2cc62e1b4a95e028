//! The lab: two hosts in network namespaces, joined by a link that goes away and comes back.
//!
//! The hosts are this machine's kernel, with its real TCP; the link is emulated in user space
//! between two TUN devices, with a gateway of `outlast-core` at either or both ends. Nothing in here
//! touches the host's own network, and nothing is left when the process ends, however it ends.
//!
#![forbid(unsafe_code)]

mod capture;
mod delivery;
mod emulator;
mod error;
mod frame;
mod host;
mod mechanism;
mod observer;
mod path;
mod side;
mod status;
mod stop;
pub mod trace;
mod traffic;
mod tuning;
mod workload;

pub use emulator::Effort;
pub use error::LabError;
pub use observer::Counts;
pub use side::Side;
pub use status::Progress;
pub use trace::Trace;
