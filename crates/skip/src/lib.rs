//! What a test does that this machine cannot run: it says why, and fails where the gate runs.
#![forbid(unsafe_code)]

use std::fmt::Display;

/// Says which capability a test lacks; the test then returns.
///
/// # Panics
/// Where the gate runs (`CI=true`), which has every capability: there a skip is a failure.
#[track_caller]
#[expect(clippy::print_stderr, reason = "a skipped test names what is missing")]
pub fn skip(missing: impl Display) {
    let missing = missing.to_string();
    let missing = missing.trim();
    assert!(
        !is_gate(std::env::var("CI").ok().as_deref()),
        "skipped where nothing may be: {missing}"
    );
    eprintln!("skipped: {missing}");
}

fn is_gate(ci: Option<&str>) -> bool {
    ci == Some("true")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_gate_forbids_a_skip() {
        assert!(is_gate(Some("true")));
        assert!(!is_gate(Some("")) && !is_gate(None));
    }
}
