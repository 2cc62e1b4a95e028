//! The lab: two hosts in network namespaces, joined by a link that goes away and comes back.
//!
//! The hosts are this machine's kernel, with its real TCP; the link is emulated in user space
//! between two TUN devices, with a gateway of `outlast-core` at either or both ends. Nothing in here
//! touches the host's own network, and nothing is left when the process ends, however it ends.
//!
#![forbid(unsafe_code)]

mod error;
mod host;
mod mechanism;
mod side;
mod tuning;

pub use error::LabError;
pub use side::Side;
