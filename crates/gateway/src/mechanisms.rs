//! What recovers connections.

pub mod endpoint;
pub mod path;
