//! What recovers connections.

pub mod path;
