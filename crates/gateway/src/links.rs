//! Disconnecting links: their state, and who tells it.

mod link;

pub(crate) use link::{Applied, LinkTable};
pub use link::{
    Direction, Indicator, InterfaceId, LinkConfig, LinkEvent, LinkId, LinkState, StateSince,
};
