//! `outlast top`: a daemon's status, looked at again and again, as a picture in a terminal.
//!
//! [`Snapshot`](snapshot::Snapshot) is what one status document of any role says, without anything that a terminal would
//! obey. [`History`](history::History) is a series of them, [`View`](view::View) what the user wants to see of it, and
//! [`draw`](draw::draw) makes a frame of both. None of these reads a clock, a socket or a key: `commands/top.rs` does.

pub(crate) mod draw;
pub(crate) mod history;
pub(crate) mod snapshot;
#[cfg(test)]
mod tests;
pub(crate) mod view;
