//! What recovers connections.

pub mod endpoint;
pub mod path;
mod resume_timer;
