//! Directories for what is kept between runs.

use std::path::PathBuf;

/// The directory that the environment variable `named` names, or `name` in the user's cache; none where nothing names one.
pub(crate) fn of(named: &str, name: &str) -> Option<PathBuf> {
    let variable = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    let cache = || variable("XDG_CACHE_HOME").or_else(|| Some(variable("HOME")?.join(".cache")));
    variable(named).or_else(|| Some(cache()?.join("outlast").join(name)))
}
