//! The arguments of libtest that a suite in guests understands.

use std::ffi::OsString;

/// Environment variable with which libtest shows the output of tests that pass.
const NO_CAPTURE: &str = "RUST_TEST_NOCAPTURE";

/// The arguments of a test executable.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    /// Those that choose tests, as the executable itself takes them.
    pub(crate) choice: Vec<String>,
    /// True if ignored tests are wanted, alone or among others.
    pub(crate) wants_ignored: bool,
    /// True if the output of tests that pass is wanted.
    pub(crate) shows_output: bool,
    /// Guests at once, if the user says how many.
    pub(crate) guests: Option<usize>,
}

impl Arguments {
    /// The arguments, or `None` if they ask for something else than to run tests.
    pub(crate) fn parse(words: &[OsString]) -> Option<Self> {
        let mut arguments = Self {
            shows_output: std::env::var_os(NO_CAPTURE).is_some_and(|value| value != "0"),
            ..Self::default()
        };
        let mut words = words.iter().map(|word| word.to_str());
        while let Some(word) = words.next() {
            let word = word?;
            let (option, value) = match word.split_once('=') {
                Some((option, value)) if word.starts_with("--") => (option, Some(value)),
                _ => (word, None),
            };
            match option {
                "--exact" => arguments.choice.push(word.to_owned()),
                "--ignored" | "--include-ignored" => {
                    arguments.wants_ignored = true;
                    arguments.choice.push(word.to_owned());
                }
                "--skip" => {
                    let value = value.or_else(|| words.next()?)?;
                    arguments.choice.push(format!("--skip={value}"));
                }
                "--nocapture" | "--no-capture" | "--show-output" => arguments.shows_output = true,
                "--test-threads" => {
                    let value = value.or_else(|| words.next()?)?;
                    arguments.guests = Some(value.parse().ok()?);
                }
                "-q" | "--quiet" => {}
                "--color" | "--format" => drop(value.or_else(|| words.next()?)?),
                filter if !filter.starts_with('-') => arguments.choice.push(word.to_owned()),
                _ => return None,
            }
        }
        Some(arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Option<Arguments> {
        let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
        Arguments::parse(&words)
    }

    #[test]
    fn what_chooses_tests_is_passed_on() {
        let arguments = parse("host:: --skip idle --exact --test-threads=3 --nocapture").unwrap();
        assert_eq!(arguments.choice, ["host::", "--skip=idle", "--exact"]);
        assert_eq!(arguments.guests, Some(3));
        assert!(arguments.shows_output && !arguments.wants_ignored);
        assert!(parse("--ignored").unwrap().wants_ignored);
    }

    #[test]
    fn what_runs_no_test_is_left_to_the_executable() {
        assert!(parse("--list").is_none());
        assert!(parse("--help").is_none());
        assert!(parse("--skip").is_none());
    }
}
