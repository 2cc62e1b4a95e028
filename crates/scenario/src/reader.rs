//! Takes values out of a parsed file, and notes everything that is wrong on the way.
//!
//! A value that is missing or faulty is answered with `None` and a [`Problem`]; reading goes on, so
//! that all problems of a file come to light at once.

use crate::keys::{Key, Kind, Section};
use crate::problem::{Problem, Source};
use crate::quantity::{DURATION, Fault, RATE, SIZE, Units};
use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Collects what is wrong with one file.
pub(crate) struct Problems {
    pub(crate) source: Arc<Source>,
    list: RefCell<Vec<Problem>>,
}

impl Problems {
    pub(crate) fn new(source: Arc<Source>) -> Self {
        Self {
            source,
            list: RefCell::default(),
        }
    }

    pub(crate) fn into_list(self) -> Vec<Problem> {
        self.list.into_inner()
    }

    /// Notes `message` about the text at `span`.
    pub(crate) fn note(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.push(Problem {
            message: message.into(),
            label: Some((span, label.into())),
            remedy: remedy.into(),
            source: self.source.clone(),
        });
    }

    pub(crate) fn push(&self, problem: Problem) {
        self.list.borrow_mut().push(problem);
    }
}

/// One table of the file, which may be absent.
pub(crate) struct Reader<'d> {
    section: &'static Section,
    /// Where the table begins; for an absent one, where its parent does.
    at: Range<usize>,
    table: Option<&'d DeTable<'d>>,
    problems: &'d Problems,
}

impl<'d> Reader<'d> {
    /// The whole file.
    pub(crate) fn top(
        section: &'static Section,
        table: &'d DeTable<'d>,
        problems: &'d Problems,
    ) -> Self {
        let reader = Self {
            section,
            at: 0..0,
            table: Some(table),
            problems,
        };
        reader.refuse_unknown_keys();
        reader
    }

    /// The table under `key`.
    pub(crate) fn table(&self, key: &'static Key, section: &'static Section) -> Self {
        let (mut at, mut table) = (self.at.clone(), None);
        if let Some((name, value)) = self.entry(key) {
            at = name.span();
            table = value.get_ref().as_table();
            if table.is_none() {
                self.wrong_kind(key, value);
            }
        }
        let reader = Self {
            section,
            at,
            table,
            problems: self.problems,
        };
        reader.refuse_unknown_keys();
        reader
    }

    pub(crate) fn is_present(&self) -> bool {
        self.table.is_some()
    }

    pub(crate) fn has(&self, key: &Key) -> bool {
        self.entry(key).is_some()
    }

    /// Where the value of `key` stands, if it is there.
    pub(crate) fn span_of(&self, key: &Key) -> Option<Range<usize>> {
        self.entry(key).map(|(_, value)| value.span())
    }

    /// Notes that `key` is not there though `why`.
    pub(crate) fn missing(&self, key: &Key, why: &str) {
        let (place, label) = match (self.section.name, self.is_present()) {
            ("", _) => ("the file".to_owned(), "in this file"),
            (name, true) => (format!("`[{name}]`"), "in this table"),
            (name, false) => (format!("`[{name}]`"), "in this file"),
        };
        let remedy = match key.kind {
            Kind::Table => format!("add a table `[{}]`", key.name),
            _ => format!(
                "add `{} = {}`, with {}",
                key.name,
                key.example,
                allowed(key)
            ),
        };
        let message = match why {
            "" => format!("{place} has no `{}`", key.name),
            why => format!("{place} has no `{}`, which {why} needs", key.name),
        };
        self.problems.note(self.at.clone(), message, label, remedy);
    }

    /// Notes that `key`, if it is there, has no business beside `because`.
    pub(crate) fn forbid(&self, key: &Key, because: &str, remedy: &str) {
        if let Some((name, _)) = self.entry(key) {
            let message = format!("`{}` contradicts {because}", key.name);
            self.problems
                .note(name.span(), message, "does not belong here", remedy);
        }
    }

    pub(crate) fn note(
        &self,
        span: Range<usize>,
        message: impl Into<String>,
        label: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.problems.note(span, message, label, remedy);
    }

    /// The problems of the whole file.
    pub(crate) fn problems(&self) -> &'d Problems {
        self.problems
    }

    pub(crate) fn text(&self, key: &Key) -> Option<String> {
        let value = self.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong_kind(key, value);
            return None;
        };
        if text.trim().is_empty() {
            self.problems.note(
                value.span(),
                format!("`{}` is empty", key.name),
                "nothing in it",
                format!(
                    "write {}, such as `{} = {}`",
                    key.kind.name(),
                    key.name,
                    key.example
                ),
            );
            return None;
        }
        Some(text.to_owned())
    }

    pub(crate) fn quantity(&self, key: &Key) -> Option<u64> {
        let (units, low, high) = match key.kind {
            Kind::Duration(low, high) | Kind::DurationOrOff(low, high) => (&DURATION, low, high),
            Kind::Rate(low, high) => (&RATE, low, high),
            Kind::Size(low, high) => (&SIZE, low, high),
            _ => return None,
        };
        let value = self.value(key)?;
        let written = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) => number.to_string(),
            DeValue::Float(number) => number.as_str().to_owned(),
            _ => {
                self.wrong_kind(key, value);
                return None;
            }
        };
        match units.parse(&written) {
            Ok(quantity) if (low..=high).contains(&quantity) => return Some(quantity),
            Ok(_) => self.out_of_range(key, value, &written),
            Err(fault) => self.faulty_quantity(key, value, &written, units, fault),
        }
        None
    }

    pub(crate) fn integer(&self, key: &Key) -> Option<u64> {
        let Kind::Integer(low, high) = key.kind else {
            return None;
        };
        let value = self.value(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_kind(key, value);
            return None;
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if (low..=high).contains(&number) => Some(number),
            _ => {
                self.out_of_range(key, value, &integer.to_string());
                None
            }
        }
    }

    pub(crate) fn probability(&self, key: &Key) -> Option<f64> {
        let value = self.value(key)?;
        let written = match value.get_ref() {
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Integer(number) => number.to_string(),
            _ => {
                self.wrong_kind(key, value);
                return None;
            }
        };
        match written.parse() {
            Ok(number) if (0.0..=1.0).contains(&number) => Some(number),
            _ => {
                self.out_of_range(key, value, &written);
                None
            }
        }
    }

    pub(crate) fn switch(&self, key: &Key) -> Option<bool> {
        let value = self.value(key)?;
        let switch = value.get_ref().as_bool();
        if switch.is_none() {
            self.wrong_kind(key, value);
        }
        switch
    }

    /// One of the names that `key` allows.
    pub(crate) fn choice(&self, key: &Key) -> Option<&'static str> {
        let Kind::Choice(names) = &key.kind else {
            return None;
        };
        let value = self.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong_kind(key, value);
            return None;
        };
        let known = names.iter().find(|name| **name == text).copied();
        if known.is_none() {
            let label = did_you_mean(text, names).unwrap_or_else(|| "not known".to_owned());
            self.problems.note(
                value.span(),
                format!("`{text}` is not a value of `{}`", key.name),
                label,
                format!("write one of {}", names.join(", ")),
            );
        }
        known
    }

    /// A text, or a list of texts of which the first is not empty.
    pub(crate) fn words(&self, key: &Key) -> Option<Vec<String>> {
        let value = self.value(key)?;
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_kind(key, value);
            return None;
        };
        let words: Option<Vec<_>> = array
            .iter()
            .map(|word| word.get_ref().as_str().map(str::to_owned))
            .collect();
        let words = words.filter(|words| words.first().is_some_and(|first| !first.is_empty()));
        if words.is_none() {
            self.problems.note(
                value.span(),
                format!(
                    "`{}` is not a list of a program and its arguments",
                    key.name
                ),
                "expected texts, the first not empty",
                format!(
                    "write the words as texts, or one text for the shell: {}",
                    example(key)
                ),
            );
        }
        words
    }

    /// Whether `key` holds a list.
    pub(crate) fn is_list(&self, key: &Key) -> bool {
        self.value(key)
            .is_some_and(|value| value.get_ref().is_array())
    }

    /// Whether `key` holds exactly `text`.
    pub(crate) fn is_word(&self, key: &Key, text: &str) -> bool {
        self.value(key)
            .is_some_and(|value| value.get_ref().as_str() == Some(text))
    }

    fn entry(
        &self,
        key: &Key,
    ) -> Option<(
        &'d Spanned<toml::de::DeString<'d>>,
        &'d Spanned<DeValue<'d>>,
    )> {
        self.table?
            .iter()
            .find(|(name, _)| name.get_ref() == key.name)
    }

    fn value(&self, key: &Key) -> Option<&'d Spanned<DeValue<'d>>> {
        self.entry(key).map(|(_, value)| value)
    }

    fn refuse_unknown_keys(&self) {
        let Some(table) = self.table else { return };
        let known: Vec<_> = self.section.keys.iter().map(|key| key.name).collect();
        for (name, _) in table {
            let written = name.get_ref().as_ref();
            if known.contains(&written) {
                continue;
            }
            let (place, kind) = match self.section.name {
                "" => ("a scenario file".to_owned(), "at the top of the file"),
                section => (format!("`[{section}]`"), "in this table"),
            };
            let label = did_you_mean(written, &known).unwrap_or_else(|| "not known".to_owned());
            self.problems.note(
                name.span(),
                format!("{place} has no key `{written}`"),
                label,
                format!("{kind} may stand {}", known.join(", ")),
            );
        }
    }

    fn wrong_kind(&self, key: &Key, value: &Spanned<DeValue<'_>>) {
        let found = match value.get_ref() {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) => "a whole number",
            DeValue::Float(_) => "a number with a point",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let remedy = match key.kind {
            Kind::Table => format!("open a table with a line `[{}]`", key.name),
            _ => format!("write {}, with {}", example(key), allowed(key)),
        };
        self.problems.note(
            value.span(),
            format!("`{}` takes {}, not {found}", key.name, key.kind.name()),
            format!("this is {found}"),
            remedy,
        );
    }

    fn out_of_range(&self, key: &Key, value: &Spanned<DeValue<'_>>, written: &str) {
        self.problems.note(
            value.span(),
            format!("`{} = {written}` is out of range", key.name),
            format!("allowed: {}", key.kind.range()),
            format!("write {} from {}", key.kind.name(), key.kind.range()),
        );
    }

    fn faulty_quantity(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
        written: &str,
        units: &Units,
        fault: Fault,
    ) {
        let name = key.name;
        let kind = key.kind.name();
        let (message, label) = match fault {
            Fault::NoNumber => (
                format!("`{name} = {written:?}` is not {kind}"),
                "expected a number".to_owned(),
            ),
            Fault::Negative => (
                format!("`{name} = {written}` is negative"),
                "below zero".to_owned(),
            ),
            Fault::NoUnit => (
                format!("`{name} = {written}` has no unit"),
                "a plain number".to_owned(),
            ),
            Fault::UnknownUnit { unit, meant } => (
                format!("`{unit}` is not a unit of {kind}"),
                meant.map_or_else(
                    || "unknown unit".to_owned(),
                    |meant| format!("did you mean `{meant}`?"),
                ),
            ),
            Fault::TooFine => (
                format!("`{name} = {written}` is finer than a {}", units.base),
                format!("not a whole {}", units.base),
            ),
            Fault::TooLarge => (
                format!("`{name} = {written}` is out of range"),
                "too large".to_owned(),
            ),
        };
        let remedy = format!(
            "write {}: a number and one of the units {}, from {}",
            example(key),
            units.list(),
            key.kind.range()
        );
        self.problems.note(value.span(), message, label, remedy);
    }
}

/// `key = value` as it would be right.
fn example(key: &Key) -> String {
    format!("`{} = {}`", key.name, key.example)
}

/// What `key` takes and in what range.
fn allowed(key: &Key) -> String {
    match key.kind {
        Kind::Choice(_) => format!("one of {}", key.kind.range()),
        Kind::Text | Kind::File | Kind::Command | Kind::Switch => key.kind.name().to_owned(),
        _ => format!("{} from {}", key.kind.name(), key.kind.range()),
    }
}

/// The known name nearest to `written`, as a question, if one is near.
fn did_you_mean(written: &str, known: &[&str]) -> Option<String> {
    let distance = |name: &&&str| strsim::damerau_levenshtein(written, name);
    let nearest = known.iter().min_by_key(distance)?;
    let near = distance(&nearest) <= (nearest.len().max(written.len()) / 3).max(1);
    near.then(|| format!("did you mean `{nearest}`?"))
}
