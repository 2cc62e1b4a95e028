//! What recovers connections.

pub mod path;
mod resume_timer;
