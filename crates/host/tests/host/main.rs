//! The host agent beside a stack that notes what is done to it.

mod damping;
mod freezing;
mod probing;
mod silence;
mod stack;
mod trigger;
mod user_timeout;
