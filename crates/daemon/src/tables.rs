//! Configuration files of roles whose tables serde reads.

use crate::failure::Failure;
use crate::trusted;
use outlast_scenario::{Source, parse_as};
use serde::de::DeserializeOwned;
use std::path::Path;

/// Reads the file at `path`.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Result<T, Failure> {
    let shown = path.display();
    let text = trusted::read_configuration(path)
        .map_err(|error| Failure::Usage(format!("cannot read {shown}: {error}")))?;
    Ok(parse_as(Source::new(shown.to_string(), text))?)
}
