//! Flow tracking: what a gateway knows of a connection that passes it.

mod chunks;
mod frozen;
mod key;
mod rtt;
mod table;
mod tcp;

pub use frozen::{FrozenFlow, FrozenNumbers, Implausible};
pub use key::FlowKey;
pub use rtt::{Delivery, LinkRtt, Timed};
pub(crate) use table::{Admission, FlowIndex, FlowTable, Removed, Shelf};
pub use tcp::{Acquaintance, Half, Observation, Oddity, Phase, Reopening, TcpFlow};
