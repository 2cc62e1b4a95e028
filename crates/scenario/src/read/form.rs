//! Files of other kinds, read in the manner of scenario files.

use super::{load, syntax};
use crate::keys::Section;
use crate::problem::{ScenarioError, Source};
use crate::problems::Problems;
use crate::reader::Reader;
use std::path::Path;
use std::sync::Arc;
use toml::de::DeTable;

/// Reads the TOML file at `path`. Messages call it a `kind`, as in "scenario file". `take` takes the
/// values out of it, beginning at the `top`; where it finds something wrong it notes that and goes
/// on with a stand-in, so that all problems come to light at once.
///
/// ```
/// use outlast_scenario::keys::{Key, Kind, Section};
/// use outlast_scenario::parse_file;
///
/// static SPEED: Key = Key {
///     name: "speed",
///     kind: Kind::Rate(1, 1_000_000),
///     example: "\"9600 bit/s\"",
///     default: "none",
///     meaning: "Speed of the modem.",
///     source: "",
/// };
/// static TOP: Section = Section { name: "", is_list: false, keys: &[&SPEED] };
///
/// let modem = |text| parse_file("modem file", &TOP, text, "modem.toml", |top| top.quantity(&SPEED));
/// assert_eq!(modem("speed = \"9.6 kbit/s\"").expect("sound"), Some(9_600));
/// let error = modem("sped = 1").expect_err("misspelt");
/// assert_eq!(error.problems()[0].location(), "modem.toml:1:1");
/// ```
///
/// # Errors
///
/// Everything that is wrong with it, as far as that can be told at once.
pub fn load_file<T>(
    kind: &'static str,
    top: &'static Section,
    path: &Path,
    take: impl FnOnce(&Reader<'_>) -> T,
) -> Result<T, ScenarioError> {
    read(kind, top, load(path)?, take)
}

/// Reads a file's `text` as [`load_file`] does. Messages call the file `name`.
///
/// # Errors
///
/// As [`load_file`].
pub fn parse_file<T>(
    kind: &'static str,
    top: &'static Section,
    text: &str,
    name: &str,
    take: impl FnOnce(&Reader<'_>) -> T,
) -> Result<T, ScenarioError> {
    let source = Source::new(name, text);
    read(kind, top, source, take)
}

pub(super) fn read<T>(
    kind: &'static str,
    top: &'static Section,
    source: Source,
    take: impl FnOnce(&Reader<'_>) -> T,
) -> Result<T, ScenarioError> {
    let source = Arc::new(source);
    let (document, syntax_errors) = DeTable::parse_recoverable(&source.text);
    let problems = Problems::new(kind, source.clone());
    let taken = take(&Reader::top(top, document.get_ref(), &problems));
    let problems = match &syntax_errors[..] {
        [] => problems.into_list(),
        errors => syntax::explain(kind, errors, &source, problems.into_list()),
    };
    match problems.is_empty() {
        true => Ok(taken),
        false => Err(ScenarioError::new(problems)),
    }
}
