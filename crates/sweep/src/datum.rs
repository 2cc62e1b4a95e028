//! Typed cells of the tables.

use outlast_report::unit::Unit;
use outlast_scenario::keys;
use serde::{Serialize, Serializer};

/// What a column holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// True or false.
    Flag,
    /// A whole number that is not negative.
    Integer,
    /// A number.
    Number,
    /// A name or other words.
    Text,
}

/// A column of a table.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Column {
    /// Its name, with the unit last where there is one.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// How its numbers are shown to readers.
    pub unit: Unit,
}

/// A value in a table, of its column's kind.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// There is none, or it is without bound, such as an unlimited rate.
    Missing,
    /// Of [`Kind::Flag`].
    Flag(bool),
    /// Of [`Kind::Integer`].
    Integer(u64),
    /// Of [`Kind::Number`]; finite.
    Number(f64),
    /// Of [`Kind::Text`].
    Text(String),
}

impl Column {
    /// A column of what has no unit.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Kind) -> Self {
        Self {
            name: name.into(),
            kind,
            unit: Unit::Number,
        }
    }

    /// A column of numbers with a unit.
    #[must_use]
    pub fn quantity(name: impl Into<String>, kind: Kind, unit: Unit) -> Self {
        Self {
            unit,
            ..Self::new(name, kind)
        }
    }

    /// The column for the values of a scenario's key, which is at `path`.
    pub(crate) fn of_key(path: &str, key: &keys::Key) -> Self {
        match key.kind {
            keys::Kind::Duration(..) | keys::Kind::DurationOrOff(..) => {
                Self::quantity(format!("{path}_s"), Kind::Number, Unit::Seconds)
            }
            keys::Kind::Rate(..) => Self::quantity(
                format!("{path}_bits_per_s"),
                Kind::Integer,
                Unit::BitsPerSecond,
            ),
            keys::Kind::Size(..) if key.name == "bytes" => {
                Self::quantity(path, Kind::Integer, Unit::Bytes)
            }
            keys::Kind::Size(..) => {
                Self::quantity(format!("{path}_bytes"), Kind::Integer, Unit::Bytes)
            }
            keys::Kind::Integer(..) => Self::new(path, Kind::Integer),
            keys::Kind::Probability => Self::new(path, Kind::Number),
            keys::Kind::Switch => Self::new(path, Kind::Flag),
            _ => Self::new(path, Kind::Text),
        }
    }

    /// `datum` as a reader sees it.
    #[must_use]
    pub fn show(&self, datum: &Datum) -> String {
        match datum {
            Datum::Missing => "–".to_owned(),
            Datum::Flag(flag) => flag.to_string(),
            Datum::Integer(number) if self.unit == Unit::Number => number.to_string(),
            #[expect(clippy::cast_precision_loss, reason = "six digits are shown")]
            Datum::Integer(number) => self.unit.show_exact(*number as f64),
            Datum::Number(number) => self.unit.show_exact(*number),
            Datum::Text(text) => text.clone(),
        }
    }
}

impl Datum {
    /// In CSV: numbers with as many digits as they need, nothing for what is missing.
    #[must_use]
    pub fn to_csv(&self) -> String {
        match self {
            Self::Missing => String::new(),
            Self::Flag(flag) => flag.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Number(number) => number.to_string(),
            Self::Text(text) => text.clone(),
        }
    }
}

impl Serialize for Datum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Missing => serializer.serialize_none(),
            Self::Flag(flag) => serializer.serialize_bool(*flag),
            Self::Integer(number) => serializer.serialize_u64(*number),
            Self::Number(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl From<bool> for Datum {
    fn from(flag: bool) -> Self {
        Self::Flag(flag)
    }
}

impl From<u64> for Datum {
    fn from(number: u64) -> Self {
        Self::Integer(number)
    }
}

impl From<u32> for Datum {
    fn from(number: u32) -> Self {
        Self::Integer(number.into())
    }
}

impl From<f64> for Datum {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Datum {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Datum {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Missing, Into::into)
    }
}
