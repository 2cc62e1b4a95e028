//! Scenario files whose values can be replaced: what a sweep varies.

use super::{directory_of, load, scenario, stem_of, syntax};
use crate::keys;
use crate::problem::{ScenarioError, Source};
use crate::problems::{Problems, SCENARIO, Traces};
use crate::reader::Reader;
use crate::scenario::Scenario;
use outlast_link::trace::Trace;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// A file of proper TOML, of which nothing else is known yet.
#[derive(Clone, Debug)]
pub struct Document {
    source: Arc<Source>,
    directory: PathBuf,
    stem: String,
    traces: Arc<Traces>,
}

/// A value that takes the place of what a scenario file says, or adds to it.
#[derive(Clone, Debug)]
pub struct Change<'a> {
    /// The key as a dotted path, such as `link.delay`.
    pub key: &'a str,
    /// Where the author of the change has written the key.
    pub key_at: Range<usize>,
    /// The value as TOML.
    pub value: &'a str,
    /// Where the author of the change has written the value, or what it was made from.
    pub value_at: Range<usize>,
}

impl Document {
    /// Reads the file at `path`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is not TOML.
    pub fn load(path: &Path) -> Result<Self, ScenarioError> {
        Self::new(load(path)?, directory_of(path), stem_of(path))
    }

    /// A document from `text`. Messages call it `name`; relative paths in it count from
    /// `directory`.
    ///
    /// # Errors
    ///
    /// If it is not TOML.
    pub fn parse(text: &str, name: &str, directory: &Path) -> Result<Self, ScenarioError> {
        let source = Source::new(name, text);
        Self::new(source, directory, stem_of(Path::new(name)))
    }

    fn new(source: Source, directory: &Path, stem: String) -> Result<Self, ScenarioError> {
        let source = Arc::new(source);
        let (_, errors) = DeTable::parse_recoverable(&source.text);
        if !errors.is_empty() {
            let problems = syntax::explain(SCENARIO, &errors, &source, Vec::new());
            return Err(ScenarioError::new(problems));
        }
        Ok(Self {
            source,
            directory: directory.to_owned(),
            stem,
            traces: Arc::default(),
        })
    }

    /// The text, and what messages call it.
    #[must_use]
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// From where relative paths in it count.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Its name without directory and extension.
    #[must_use]
    pub fn stem(&self) -> &str {
        &self.stem
    }

    /// What it says. Places count in its text.
    #[must_use]
    pub fn table(&self) -> DeTable<'_> {
        let (table, _) = DeTable::parse_recoverable(&self.source.text);
        table.into_inner()
    }

    /// The traces that its scenarios have named so far, in the order of their paths. Each is read
    /// once.
    #[must_use]
    pub fn traces(&self) -> Vec<Trace> {
        self.traces.all()
    }

    /// The paths of these traces, in order, as they count from where this process runs.
    #[must_use]
    pub fn trace_paths(&self) -> Vec<PathBuf> {
        self.traces.paths()
    }

    /// Knows the trace at `path`, which is then not read from there: for scenarios that were sent
    /// with their traces.
    pub fn remember_trace(&self, path: PathBuf, trace: &Trace) {
        self.traces.remember(path, trace);
    }

    /// The scenario that this document describes once `author`, which may be the same document, has
    /// made its `changes`. The table `without` at the top is not looked at.
    ///
    /// # Errors
    ///
    /// As [`Scenario::load`]. What is wrong with a changed value is shown where `author` has
    /// written it.
    pub fn scenario(
        &self,
        without: &str,
        author: &Self,
        changes: &[Change<'_>],
    ) -> Result<Scenario, ScenarioError> {
        // Places count through the author's text and then through this one: spaces, which mean
        // nothing in TOML, move the latter there.
        let start = author.source.text.len();
        let mut text = String::with_capacity(start + self.source.text.len());
        text.extend(std::iter::repeat_n(' ', start));
        // The mark of UTF-8 may stand at the beginning alone.
        text.push_str(&self.source.text.replacen('\u{feff}', "   ", 1));
        let (document, _) = DeTable::parse_recoverable(&text);
        let mut table = document.into_inner();
        let _ = table.remove(&Spanned::new(0..0, without.into()));
        let problems = Problems::of_changed(
            self.source.clone(),
            author.source.clone(),
            self.traces.clone(),
        );
        for change in changes {
            if let Err(count) = put(&mut table, change.key, change) {
                refuse_number(&problems, change, count);
            }
        }
        let scenario = scenario(
            &Reader::top(&keys::TOP, &table, &problems),
            &self.directory,
            &self.stem,
        );
        let problems = problems.into_list();
        match problems.is_empty() {
            true => Ok(scenario),
            false => Err(ScenarioError::new(problems)),
        }
    }
}

/// Makes a change in the table in which `path` counts. Of a list that has no table of the number
/// asked for, the length is the error.
fn put<'t>(table: &mut DeTable<'t>, path: &'t str, change: &Change<'t>) -> Result<(), usize> {
    let (first, rest) = match path.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    let key = Spanned::new(change.key_at.clone(), first.into());
    let Some(rest) = rest else {
        let value = DeValue::parse(change.value).expect("changes are made of proper TOML");
        // Else the old key would keep its place.
        let _ = table.remove(&key);
        let _ = table.insert(
            key,
            Spanned::new(change.value_at.clone(), value.into_inner()),
        );
        return Ok(());
    };
    let is_list = keys::section(first).is_none() && keys::section(&format!("{first}.1")).is_some();
    let new = || {
        let empty = match is_list {
            true => DeValue::Array(DeArray::new()),
            false => DeValue::Table(DeTable::new()),
        };
        Spanned::new(change.key_at.clone(), empty)
    };
    match table.entry(key).or_insert_with(new).get_mut() {
        DeValue::Table(inner) => put(inner, rest, change),
        DeValue::Array(items) => {
            let (number, rest) = rest.split_once('.').unwrap_or((rest, ""));
            let count = items.len();
            let index = number.parse::<usize>().ok().and_then(|n| n.checked_sub(1));
            match index
                .and_then(|index| items.get_mut(index))
                .map(Spanned::get_mut)
            {
                Some(DeValue::Table(inner)) => put(inner, rest, change),
                Some(_) => Ok(()),
                None => Err(count),
            }
        }
        // What is neither is a mistake of the file's, which its reader finds.
        _ => Ok(()),
    }
}

/// Notes that a list of tables has but `count`.
fn refuse_number(problems: &Problems, change: &Change<'_>, count: usize) {
    let list = change.key.split('.').next().unwrap_or_default();
    let has = match count {
        0 => format!("has no `[[{list}]]`"),
        1 => format!("has one `[[{list}]]`"),
        count => format!("has {count} `[[{list}]]`"),
    };
    problems.note(
        change.key_at.clone(),
        format!("`{}` is beyond the scenario, which {has}", change.key),
        "no such table",
        format!("number them from 1, or add a `[[{list}]]` to the scenario"),
    );
}
