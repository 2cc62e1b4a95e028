//! Scenario texts to start from.

use outlast_scenario::Scenario;
use std::path::{Path, PathBuf};

/// A sound scenario in its shortest form.
pub(crate) const PLAIN: &str = r#"[link]
rate = "12 Mbit/s"
delay = "10 ms"

[workload]
kind = "bulk"
bytes = "1 MB"
"#;

/// The scenario in `text`, which is sound.
#[track_caller]
pub(crate) fn scenario(text: &str) -> Scenario {
    match Scenario::parse(text, "test.toml", Path::new(".")) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{}", error.render(100)),
    }
}

/// All that is wrong with `text`, as users read it.
#[track_caller]
pub(crate) fn problems(text: &str) -> String {
    match Scenario::parse(text, "test.toml", Path::new(".")) {
        Ok(scenario) => panic!("no problem found: {scenario:#?}"),
        Err(error) => error.render(80),
    }
}

/// The root of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
