//! The Python package: scenarios, simulations and sweeps, with results as Arrow tables.
//!
//! This is the module `outlast._native`; the package around it, in `python/outlast`, has what users
//! see. `docs/python.md` describes it.
//!
//! Whatever takes long releases the interpreter's lock, and asks between two runs, or steps of one,
//! whether a signal such as Ctrl-C has come.

mod error;
mod run;
mod scenario;
mod sweep;
mod table;

use pyo3::prelude::*;

/// What another version of Outlast may do otherwise.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The compiled part of the package.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::run::{RunResults, run};
    #[pymodule_export]
    use super::scenario::Scenario;
    #[pymodule_export]
    use super::sweep::{Plan, Store};
    #[pymodule_export]
    use super::table::Table;

    #[pymodule_export]
    const VERSION: &str = super::VERSION;
}
