//! One table, five ways to write it: terminal, Markdown, HTML, CSV and JSON.
//!
//! The first three are for readers: numbers are rounded and carry units. CSV and JSON are for
//! programs: full precision, base units, and the columns' keys, which name their unit last.

mod csv;
mod html;
mod json;
mod markdown;
mod text;

use crate::unit::Unit;

pub use text::{Charset, TextStyle};

/// A table: columns, rows of as many cells, an optional title and notes below.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    title: Option<String>,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
}

/// A column: its key for programs, its heading for readers, and how its numbers look.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    key: String,
    heading: String,
    format: Format,
}

/// How the numbers of a column look; text in the same column is shown as it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Format {
    /// Text, set flush left.
    Text,
    /// Three significant digits in the unit that fits.
    Quantity(Unit),
    /// A fixed number of decimals; the unit is the heading's business.
    Fixed { decimals: usize },
}

/// A cell: a value and its tone.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    value: Value,
    tone: Tone,
}

/// What a cell holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing was measured, or there is nothing to measure.
    Missing,
    /// Words.
    Text(String),
    /// Yes or no.
    Flag(bool),
    /// A whole number in the column's base unit.
    Integer(u64),
    /// A number in the column's base unit.
    Number(f64),
}

/// What a cell tells at a glance. Never the only carrier of a meaning: the words say it too.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// A column's heading or the table's title (chosen by the table, not by cells).
    Heading,
    /// As hoped.
    Good,
    /// To be looked at.
    Warning,
    /// Not as hoped.
    Bad,
    /// Of less interest.
    Weak,
}

impl Column {
    /// A column of words (or of numbers that are names).
    #[must_use]
    pub fn text(key: impl Into<String>, heading: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            heading: heading.into(),
            format: Format::Text,
        }
    }

    /// A column of quantities, each shown in the unit that fits it; `key` should end in the base
    /// unit (`resume_s`), as CSV and JSON give values in it.
    #[must_use]
    pub fn quantity(key: impl Into<String>, heading: impl Into<String>, unit: Unit) -> Self {
        Self {
            key: key.into(),
            heading: heading.into(),
            format: Format::Quantity(unit),
        }
    }

    /// A column of numbers with a fixed number of decimals.
    #[must_use]
    pub fn fixed(key: impl Into<String>, heading: impl Into<String>, decimals: usize) -> Self {
        Self {
            key: key.into(),
            heading: heading.into(),
            format: Format::Fixed { decimals },
        }
    }

    /// Numbers are set flush right, so that their sizes can be compared.
    fn is_numeric(&self) -> bool {
        self.format != Format::Text
    }

    /// The cell as a reader sees it.
    fn show(&self, value: &Value) -> String {
        match (value, self.format) {
            (Value::Missing, _) => "–".to_owned(),
            (Value::Text(text), _) => text.clone(),
            (Value::Flag(true), _) => "yes".to_owned(),
            (Value::Flag(false), _) => "no".to_owned(),
            (Value::Integer(number), Format::Quantity(unit)) if unit != Unit::Count => {
                unit.show(*number as f64)
            }
            (Value::Integer(number), _) => number.to_string(),
            (Value::Number(number), Format::Text) => Unit::Number.show(*number),
            (Value::Number(number), Format::Quantity(unit)) => unit.show(*number),
            (Value::Number(number), Format::Fixed { decimals }) => format!("{number:.decimals$}"),
        }
    }
}

impl Cell {
    /// A cell without a value: shown as a dash, empty in CSV, `null` in JSON.
    #[must_use]
    pub const fn missing() -> Self {
        Self {
            value: Value::Missing,
            tone: Tone::Plain,
        }
    }

    /// Sets the tone of the cell.
    #[must_use]
    pub const fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self {
            value: Value::Text(text),
            tone: Tone::Plain,
        }
    }
}

impl From<bool> for Cell {
    fn from(flag: bool) -> Self {
        Self {
            value: Value::Flag(flag),
            tone: Tone::Plain,
        }
    }
}

impl From<f64> for Cell {
    fn from(number: f64) -> Self {
        Self {
            value: Value::Number(number),
            tone: Tone::Plain,
        }
    }
}

impl From<u64> for Cell {
    fn from(number: u64) -> Self {
        Self {
            value: Value::Integer(number),
            tone: Tone::Plain,
        }
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Self::from(u64::from(number))
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or_else(Self::missing, Into::into)
    }
}

impl Table {
    /// A table without rows.
    ///
    /// # Panics
    ///
    /// If two columns have the same key: programs could not tell them apart.
    #[must_use]
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        let columns: Vec<Column> = columns.into_iter().collect();
        for (i, column) in columns.iter().enumerate() {
            let taken = columns[..i].iter().any(|earlier| earlier.key == column.key);
            assert!(!taken, "two columns have the key {:?}", column.key);
        }
        Self {
            title: None,
            columns,
            rows: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Sets the title of the table.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Adds a row.
    ///
    /// # Panics
    ///
    /// If it has not exactly one cell per column.
    pub fn push(&mut self, row: impl IntoIterator<Item = Cell>) {
        let row: Vec<Cell> = row.into_iter().collect();
        assert_eq!(
            row.len(),
            self.columns.len(),
            "a row has one cell per column: {row:?}"
        );
        self.rows.push(row);
    }

    /// Adds a note below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// The table without those of the columns `keys` that have no value in any row.
    #[must_use]
    pub(crate) fn without_empty(mut self, keys: &[&str]) -> Self {
        let is_empty = |place: usize| {
            let mut cells = self.rows.iter().map(|row| &row[place].value);
            !self.rows.is_empty() && cells.all(|value| *value == Value::Missing)
        };
        let places = 0..self.columns.len();
        let goes = |place: &usize| keys.contains(&self.columns[*place].key.as_str());
        let gone: Vec<usize> = places
            .filter(|place| goes(place) && is_empty(*place))
            .collect();
        for place in gone.into_iter().rev() {
            self.columns.remove(place);
            for row in &mut self.rows {
                row.remove(place);
            }
        }
        self
    }

    /// The title, if it has one.
    #[must_use]
    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The number of rows.
    #[must_use]
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Every row's cells beside their columns, for the writers.
    fn rows(&self) -> impl Iterator<Item = impl Iterator<Item = (&Column, &Cell)>> {
        self.rows.iter().map(|row| self.columns.iter().zip(row))
    }
}
