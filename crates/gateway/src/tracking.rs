//! Flow tracking: what a gateway knows of a connection that passes it.

mod chunks;
mod contest;
mod frozen;
mod half;
mod key;
mod meeting;
mod rtt;
mod supervised;
mod table;
mod tcp;

pub use contest::{Contest, Heard, PATIENCE};
pub use frozen::{FrozenFlow, FrozenNumbers, Implausible};
pub use half::{Acquaintance, Half};
pub use key::FlowKey;
pub use rtt::{Delivery, LinkRtt, Timed};
pub use supervised::{SupervisedFlow, ToldWindow};
pub(crate) use table::{Admission, FlowIndex, FlowTable, Removed, Shelf};
pub use tcp::{Observation, Oddity, Phase, TcpFlow};
