//! Setting a machine up: facts, a decision over them, a plan of steps, and their execution and undoing.

pub(crate) mod apply;
pub(crate) mod check;
pub(crate) mod ground;
pub(crate) mod look;
pub(crate) mod machine;
pub(crate) mod manifest;
pub(crate) mod plan;
pub(crate) mod proposal;
pub(crate) mod services;
pub(crate) mod undo;
pub(crate) mod words;
