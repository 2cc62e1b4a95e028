//! The keys that a sweep varies, and their values.

use crate::datum::{Column, Datum, Digits};
use outlast_scenario::keys::{Key, Kind};
use std::ops::Range;
use toml::de::DeValue;

/// A key with the values that it takes, one after the other.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    pub(crate) path: String,
    pub(crate) key: &'static Key,
    pub(crate) key_at: Range<usize>,
    /// At least one.
    pub(crate) values: Vec<Value>,
}

/// A value of a key.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    /// As TOML.
    pub(crate) toml: String,
    /// Where it, or what it was made from, is written.
    pub(crate) at: Range<usize>,
    /// As readers see it.
    pub(crate) label: String,
    /// In the tables. Missing also if it is none that the key takes, which the scenario's reader
    /// then says.
    pub(crate) datum: Datum,
}

/// Axes that move together: a single one, or several of one length.
#[derive(Clone, Debug)]
pub(crate) struct Dimension {
    /// At least one.
    pub(crate) axes: Vec<Axis>,
}

impl Dimension {
    /// How many values each of its axes has.
    pub(crate) fn len(&self) -> usize {
        self.axes[0].values.len()
    }

    /// Where the first of its keys is written, which is its place among the others.
    pub(crate) fn at(&self) -> usize {
        let starts = self.axes.iter().map(|axis| axis.key_at.start);
        starts.min().unwrap_or_default()
    }
}

impl Axis {
    pub(crate) fn column(&self) -> Column {
        Column::of_key(&self.path, self.key)
    }

    /// Labels computed values so that readers can tell them apart, with no more digits than that
    /// takes.
    pub(crate) fn label_computed(&mut self) {
        let column = self.column();
        let exact = |value: &Value| column.show(&value.datum, Digits::All);
        let short = |value: &Value| {
            let (exact, rounded) = (exact(value), column.show(&value.datum, Digits::Three));
            if exact.len() <= rounded.len() {
                exact
            } else {
                rounded
            }
        };
        let mut labels: Vec<String> = self.values.iter().map(short).collect();
        if labels.windows(2).any(|pair| pair[0] == pair[1]) {
            labels = self.values.iter().map(exact).collect();
        }
        for (value, label) in self.values.iter_mut().zip(labels) {
            value.label = label;
        }
    }
}

impl Value {
    /// The value that is written as `toml` at `at`.
    pub(crate) fn written(key: &Key, toml: &str, at: Range<usize>, value: &DeValue<'_>) -> Self {
        Self {
            toml: toml.to_owned(),
            at,
            label: toml.trim_matches(['"', '\'']).to_owned(),
            datum: datum(key, value),
        }
    }

    /// The value that is `number` in the key's base unit, rounded to what the key can take.
    pub(crate) fn computed(key: &Key, number: f64, at: Range<usize>) -> Self {
        let (toml, datum) = match key.kind {
            Kind::Probability => {
                // Sums of decimal fractions end in digits that nobody wrote.
                let number = format!("{number:.12e}").parse().unwrap_or(number);
                (format!("{number:?}"), Datum::Number(number))
            }
            Kind::Integer(..) => {
                let number = whole(number);
                (number.to_string(), Datum::Integer(number))
            }
            _ => {
                let number = whole(number);
                let text = key.kind.write(number).unwrap_or_default();
                (format!("\"{text}\""), quantity(key, number))
            }
        };
        Self {
            label: toml.trim_matches('"').to_owned(),
            toml,
            at,
            datum,
        }
    }
}

/// What `value` is in the tables.
fn datum(key: &Key, value: &DeValue<'_>) -> Datum {
    match (&key.kind, value) {
        (
            Kind::Duration(..) | Kind::DurationOrOff(..) | Kind::Rate(..) | Kind::Size(..),
            DeValue::String(text),
        ) => {
            let number = key.kind.quantity(text);
            number.map_or(Datum::Missing, |number| quantity(key, number))
        }
        (Kind::Integer(..), _) => whole_number(value).into(),
        (Kind::Probability, _) => number(key, value).into(),
        (Kind::Switch, DeValue::Boolean(flag)) => Datum::Flag(*flag),
        (
            Kind::Choice(_) | Kind::RateOrChoice(..) | Kind::Text | Kind::File,
            DeValue::String(text),
        ) => Datum::Text(text.to_string()),
        _ => Datum::Missing,
    }
}

/// `value` as a number in the key's base unit, if the key takes numbers and this is one.
pub(crate) fn number(key: &Key, value: &DeValue<'_>) -> Option<f64> {
    match (&key.kind, value) {
        (Kind::Probability, DeValue::Float(number)) => number.as_str().parse().ok(),
        (Kind::Integer(..) | Kind::Probability, DeValue::Integer(_)) => {
            whole_number(value).map(as_f64)
        }
        (_, DeValue::String(text)) => key.kind.quantity(text).map(as_f64),
        _ => None,
    }
}

pub(crate) fn whole_number(value: &DeValue<'_>) -> Option<u64> {
    let integer = value.as_integer()?;
    u64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// Least and greatest number that the key takes, in its base unit; `None` if it takes no numbers.
pub(crate) fn bounds(key: &Key) -> Option<(f64, f64)> {
    match key.kind {
        Kind::Probability => Some((0.0, 1.0)),
        _ => key
            .kind
            .bounds()
            .map(|(low, high)| (as_f64(low), as_f64(high))),
    }
}

/// A number of base units in the tables' unit, which for durations is the second.
fn quantity(key: &Key, number: u64) -> Datum {
    match key.kind {
        Kind::Duration(..) | Kind::DurationOrOff(..) => Datum::Number(as_f64(number) / 1e9),
        _ => Datum::Integer(number),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "keys that take numbers beyond 2^53 are not computed with"
)]
fn as_f64(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates, and keys take no negative numbers"
)]
fn whole(number: f64) -> u64 {
    number.round() as u64
}
