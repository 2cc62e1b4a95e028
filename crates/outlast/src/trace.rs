//! Captures that somebody made: reading them, and showing what a diagnosis found in them.

mod compressed;
pub(crate) mod input;
pub(crate) mod page;
pub(crate) mod show;
