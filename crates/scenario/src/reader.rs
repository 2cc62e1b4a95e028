//! Takes values out of a parsed file, and notes everything that is wrong on the way.
//!
//! A value that is missing or faulty is answered with `None` and a [`Problem`](crate::Problem); reading
//! goes on, so that all problems of a file come to light at once.

use crate::keys::{Key, Kind, Section};
use crate::problems::Problems;
use crate::quantity::{DURATION, Fault, RATE, SIZE, Units};
use std::ops::{Range, RangeInclusive};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// One table of the file, which may be absent.
pub struct Reader<'d> {
    section: &'static Section,
    /// Where the table begins; for an absent one, where its parent does.
    at: Range<usize>,
    table: Option<&'d DeTable<'d>>,
    /// Keys that a misspelt one was taken for.
    guessed: Vec<&'static str>,
    problems: &'d Problems,
}

impl<'d> Reader<'d> {
    /// The whole file.
    pub(crate) fn top(
        section: &'static Section,
        table: &'d DeTable<'d>,
        problems: &'d Problems,
    ) -> Self {
        let start = problems.start();
        Self::new(section, start..start, Some(table), problems)
    }

    /// The table under `key`.
    pub fn table(&self, key: &'static Key, section: &'static Section) -> Self {
        let (mut at, mut table) = (self.at.clone(), None);
        if let Some((name, value)) = self.entry(key) {
            at = name.span();
            table = value.get_ref().as_table();
            if table.is_none() {
                self.wrong_kind(key, value);
            }
        }
        Self::new(section, at, table, self.problems)
    }

    /// The tables under `key`, in their order.
    pub fn tables(&self, key: &'static Key, section: &'static Section) -> Vec<Self> {
        let Some((_, value)) = self.entry(key) else {
            return Vec::new();
        };
        let Some(list) = value.get_ref().as_array() else {
            self.wrong_kind(key, value);
            return Vec::new();
        };
        let mut readers = Vec::new();
        for element in list {
            match element.get_ref().as_table() {
                Some(table) => {
                    let reader = Self::new(section, element.span(), Some(table), self.problems);
                    readers.push(reader);
                }
                None => self.wrong_kind(key, element),
            }
        }
        readers
    }

    fn new(
        section: &'static Section,
        at: Range<usize>,
        table: Option<&'d DeTable<'d>>,
        problems: &'d Problems,
    ) -> Self {
        let mut reader = Self {
            section,
            at,
            table,
            guessed: Vec::new(),
            problems,
        };
        reader.guessed = reader.refuse_unknown_keys();
        reader
    }

    /// Where the table begins.
    pub fn span(&self) -> Range<usize> {
        self.at.clone()
    }

    /// Whether the table is there.
    pub fn is_present(&self) -> bool {
        self.table.is_some()
    }

    /// Whether `key` is there.
    pub fn has(&self, key: &Key) -> bool {
        self.entry(key).is_some()
    }

    /// Where the value of `key` stands, if it is there.
    pub fn span_of(&self, key: &Key) -> Option<Range<usize>> {
        self.entry(key).map(|(_, value)| value.span())
    }

    /// Notes that `key` is not there, though `why` (or, if that is empty, every file) needs it.
    ///
    /// Says nothing where the table itself is missing, or a misspelt key was taken for this one.
    pub fn missing(&self, key: &Key, why: &str) {
        if !self.is_present() || self.guessed.contains(&key.name) {
            return;
        }
        let header = self.section.header();
        let message = match why {
            "" => format!("`{header}` has no `{}`", key.name),
            why => format!("`{header}` has no `{}`, which {why} needs", key.name),
        };
        let remedy = format!("add {}", right(key));
        self.problems.note_absence(self.at.clone(), message, remedy);
    }

    /// Notes that the file has no table `key`, in which `needed` keys must stand.
    pub(crate) fn missing_table(&self, key: &Key, needed: &str) {
        if !self.has(key) && !self.guessed.contains(&key.name) {
            let message = format!("the file has no table `[{}]`", key.name);
            let remedy = format!("add a line `[{}]`, and below it {needed}", key.name);
            self.problems.note_absence(self.at.clone(), message, remedy);
        }
    }

    /// Notes that `key`, if it is there, has no business beside `because`.
    pub(crate) fn forbid(&self, key: &Key, because: &str, remedy: &str) {
        if let Some((name, _)) = self.entry(key) {
            let message = format!("`{}` contradicts {because}", key.name);
            self.problems
                .note(name.span(), message, "does not belong here", remedy);
        }
    }

    /// Notes `message` about the text at `span`: what to write under it, and what to do about it.
    pub fn note(
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

    /// A text that is not empty.
    pub fn text(&self, key: &Key) -> Option<String> {
        let value = self.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong_kind(key, value);
            return None;
        };
        if text.trim().is_empty() {
            self.note(
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

    /// A number with its unit, in base units.
    pub fn quantity(&self, key: &Key) -> Option<u64> {
        let (units, range) = quantities(key);
        let value = self.value(key)?;
        let outcome = match value.get_ref() {
            DeValue::String(text) => units.parse(text),
            DeValue::Integer(_) | DeValue::Float(_) => units.parse(self.written(value)),
            _ => {
                self.wrong_kind(key, value);
                return None;
            }
        };
        match outcome {
            Ok(quantity) if range.contains(&quantity) => return Some(quantity),
            Ok(_) | Err(Fault::TooLarge) => self.out_of_range(key, value),
            Err(fault) => self.faulty_quantity(key, value, (units, range), fault),
        }
        None
    }

    /// A whole number in the range that `key` allows.
    pub fn integer(&self, key: &Key) -> Option<u64> {
        let Kind::Integer(low, high) = key.kind else {
            unreachable!("`{}` is not a whole number", key.name)
        };
        let value = self.value(key)?;
        let Some(integer) = value.get_ref().as_integer() else {
            self.wrong_kind(key, value);
            return None;
        };
        match u64::from_str_radix(integer.as_str(), integer.radix()) {
            Ok(number) if (low..=high).contains(&number) => Some(number),
            _ => {
                self.out_of_range(key, value);
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
                self.out_of_range(key, value);
                None
            }
        }
    }

    /// `true` or `false`.
    pub fn switch(&self, key: &Key) -> Option<bool> {
        let value = self.value(key)?;
        let switch = value.get_ref().as_bool();
        if switch.is_none() {
            self.wrong_kind(key, value);
        }
        switch
    }

    /// One of the names that `key` allows.
    pub fn choice(&self, key: &Key) -> Option<&'static str> {
        let Kind::Choice(names) = &key.kind else {
            unreachable!("`{}` is not a choice", key.name)
        };
        let value = self.value(key)?;
        let Some(text) = value.get_ref().as_str() else {
            self.wrong_kind(key, value);
            return None;
        };
        let known = names.iter().find(|name| **name == text).copied();
        if known.is_none() {
            self.note(
                value.span(),
                format!("`{text}` is not a value of `{}`", key.name),
                did_you_mean(nearest(text, names)),
                format!(
                    "write one of {}{}",
                    names.join(", "),
                    self.value_elsewhere(text)
                ),
            );
        }
        known
    }

    /// Which other keys of this table take `text`, as the end of a remedy.
    fn value_elsewhere(&self, text: &str) -> String {
        let takes = |key: &&&Key| matches!(key.kind, Kind::Choice(names) if names.contains(&text));
        let others = self.section.keys.iter().filter(takes);
        let others: Vec<_> = others.map(|key| format!("`{}`", key.name)).collect();
        match &others[..] {
            [] => String::new(),
            others => format!("; `{text}` is a value of {}", others.join(" and ")),
        }
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
            self.note(
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

    /// A list of texts, each as `parse` takes it.
    pub fn texts<T>(&self, key: &Key, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
        let value = self.value(key)?;
        let Some(array) = value.get_ref().as_array() else {
            self.wrong_kind(key, value);
            return None;
        };
        let mut all = Vec::new();
        for item in array {
            let parsed = item.get_ref().as_str().and_then(&parse);
            if parsed.is_none() {
                self.note(
                    item.span(),
                    format!("this cannot be one of `{}`", key.name),
                    "not as expected",
                    format!("write them as in {}", example(key)),
                );
            }
            all.extend(parsed);
        }
        Some(all)
    }

    /// Whether `key` holds a list.
    pub(crate) fn is_list(&self, key: &Key) -> bool {
        self.value(key)
            .is_some_and(|value| value.get_ref().is_array())
    }

    /// Whether `key` holds exactly `text`.
    pub fn is_word(&self, key: &Key, text: &str) -> bool {
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

    /// Notes the keys that do not belong here; tells which of the known ones they may be.
    fn refuse_unknown_keys(&self) -> Vec<&'static str> {
        let mut guessed = Vec::new();
        let known: Vec<_> = self.section.keys.iter().map(|key| key.name).collect();
        for (name, _) in self.table.into_iter().flatten() {
            let written = name.get_ref().as_ref();
            if known.contains(&written) {
                continue;
            }
            let (place, allowed) = match self.section.name {
                "" => (format!("the top of a {}", self.problems.kind()), "there"),
                _ => (format!("`{}`", self.section.header()), "in this table"),
            };
            let nearest = nearest(written, &known);
            guessed.extend(nearest);
            self.note(
                name.span(),
                format!("{place} has no key `{written}`"),
                did_you_mean(nearest),
                format!("{allowed} may stand {}", known.join(", ")),
            );
        }
        guessed
    }

    /// A value as it stands in the file.
    fn written(&self, value: &Spanned<DeValue<'_>>) -> &'d str {
        self.problems.written(value.span())
    }

    /// `key = value` as it stands in the file, shortened if it is long.
    fn assignment(&self, key: &Key, value: &Spanned<DeValue<'_>>) -> String {
        const LONGEST: usize = 40;
        let written = self.written(value);
        let mut shown: String = written
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(LONGEST)
            .collect();
        if shown.len() < written.len() {
            shown.push_str("...");
        }
        format!("`{} = {shown}`", key.name)
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
            Kind::Tables => format!("open each table with a line `[[{}]]`", key.name),
            _ => format!("write {}", right(key)),
        };
        self.note(
            value.span(),
            format!("`{}` takes {}, not {found}", key.name, key.kind.name()),
            format!("this is {found}"),
            remedy,
        );
    }

    fn out_of_range(&self, key: &Key, value: &Spanned<DeValue<'_>>) {
        self.note(
            value.span(),
            format!("{} is out of range", self.assignment(key, value)),
            format!("allowed: {}", key.kind.range()),
            format!("write {}", right(key)),
        );
    }

    fn faulty_quantity(
        &self,
        key: &Key,
        value: &Spanned<DeValue<'_>>,
        (units, range): (&Units, RangeInclusive<u64>),
        fault: Fault,
    ) {
        let assignment = self.assignment(key, value);
        let kind = key.kind.name();
        let (mut number, mut unit) = key
            .example
            .trim_matches('"')
            .split_once(' ')
            .unwrap_or_default();
        let digits = self.written(value).trim_matches('"').trim();
        let digits = &digits[..digits
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(digits.len())];
        // Whoever follows the advice is not to meet the next error.
        let suits = |unit: &str| {
            let quantity = units.parse(&format!("{digits} {unit}"));
            quantity.is_ok_and(|quantity| range.contains(&quantity))
        };
        let (message, label) = match fault {
            Fault::NoNumber => (
                format!("{assignment} is not {kind}"),
                "no number here".to_owned(),
            ),
            Fault::Negative => (format!("{assignment} is negative"), "below zero".to_owned()),
            Fault::NoUnit => {
                let names = units.units.iter().map(|(name, _)| *name);
                if let Some(suitable) = [unit].into_iter().chain(names).find(|unit| suits(unit)) {
                    (number, unit) = (digits, suitable);
                }
                (
                    format!("{assignment} has no unit"),
                    "a plain number".to_owned(),
                )
            }
            Fault::UnknownUnit {
                unit: unknown,
                meant,
            } => {
                if let Some(meant) = meant.filter(|meant| suits(meant)) {
                    (number, unit) = (digits, meant);
                }
                (
                    format!("`{unknown}` is not a unit of {kind}"),
                    did_you_mean(meant),
                )
            }
            Fault::TooFine => (
                format!("{assignment} is finer than a {}", units.base),
                format!("not a whole {}", units.base),
            ),
            Fault::TooLarge => (
                format!("{assignment} is out of range"),
                "too large".to_owned(),
            ),
        };
        let remedy = format!(
            "write `{} = \"{number} {unit}\"`; units are {}, allowed is {}",
            key.name,
            units.list(),
            key.kind.range()
        );
        self.note(value.span(), message, label, remedy);
    }
}

/// The units of a key that takes a quantity, and its range in base units.
fn quantities(key: &Key) -> (&'static Units, RangeInclusive<u64>) {
    match key.kind {
        Kind::Duration(low, high) | Kind::DurationOrOff(low, high) => (&DURATION, low..=high),
        Kind::Rate(low, high) | Kind::RateOrChoice(_, low, high) => (&RATE, low..=high),
        Kind::Size(low, high) => (&SIZE, low..=high),
        _ => unreachable!("`{}` is not a quantity", key.name),
    }
}

/// `key = value` as it would be right.
fn example(key: &Key) -> String {
    format!("`{} = {}`", key.name, key.example)
}

/// How to write `key`, and what is allowed.
fn right(key: &Key) -> String {
    let example = example(key);
    match key.kind {
        Kind::Switch => format!("`{0} = true` or `{0} = false`", key.name),
        Kind::Text | Kind::File | Kind::Command | Kind::Texts | Kind::Table | Kind::Tables => {
            example
        }
        Kind::Choice(_) => format!("{example}; values are {}", key.kind.range()),
        _ => format!("{example}; allowed is {}", key.kind.range()),
    }
}

/// The known name that `written` may be a slip for.
pub(crate) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |name: &&str| strsim::damerau_levenshtein(written, name);
    let nearest = known.iter().copied().min_by_key(distance)?;
    let near = distance(&nearest) <= (nearest.len().max(written.len()) / 3).max(1);
    near.then_some(nearest)
}

pub(crate) fn did_you_mean(name: Option<&str>) -> String {
    name.map_or_else(
        || "not known".to_owned(),
        |name| format!("did you mean `{name}`?"),
    )
}
