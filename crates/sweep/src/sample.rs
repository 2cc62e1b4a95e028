//! Values that are drawn for each run: `{ distribution = "uniform", from = "5 s", to = "15 s" }`.

use crate::axis::{Axis, Value, bounds, number};
use crate::file::{Sheet, Table};
use crate::range::{ends, in_bounds};
use outlast_base::random::Stream;
use std::f64::consts::TAU;
use std::ops::Range;

const KEYS: [&str; 5] = ["distribution", "from", "to", "mean", "deviation"];
const DISTRIBUTIONS: [&str; 3] = ["uniform", "log-uniform", "normal"];

/// A key whose value is drawn for each run.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The key, with the least and the greatest value that are drawn.
    pub(crate) axis: Axis,
    at: Range<usize>,
    law: Law,
    low: f64,
    high: f64,
}

/// How values are distributed between `low` and `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Law {
    Uniform,
    /// The logarithm is uniform.
    LogUniform,
    /// Normal; what falls outside is drawn again.
    Normal {
        mean: f64,
        deviation: f64,
    },
}

impl Sample {
    /// What a table says of how to draw the key of `axis`.
    pub(crate) fn read(sheet: &Sheet, mut axis: Axis, table: &Table<'_>) -> Option<Self> {
        sheet.refuse_unknown(table, "a distribution", &KEYS);
        if table.value("distribution").is_none() {
            sheet.note(
                table.at.clone(),
                format!("`{}` has no `distribution`", axis.path),
                "in this table",
                format!(
                    "add `distribution = \"uniform\"`; there are {}",
                    DISTRIBUTIONS.join(", ")
                ),
            );
            return None;
        }
        let name = sheet.choice(table, "distribution", &DISTRIBUTIONS)?;
        if name != "normal" {
            for key in ["mean", "deviation"] {
                sheet.forbid(table, key, &format!("`distribution = \"{name}\"`"));
            }
        }
        let (law, low, high) = match name {
            "normal" => normal(sheet, &axis, table)?,
            name => {
                let (low, high) = ends(sheet, &axis, table)?;
                if name == "log-uniform" && low <= 0.0 {
                    sheet.note(
                        table.at.clone(),
                        format!("the distribution of `{}` begins at zero", axis.path),
                        "zero has no logarithm",
                        "write a `from` above zero, or `distribution = \"uniform\"`",
                    );
                    return None;
                }
                let law = if name == "uniform" {
                    Law::Uniform
                } else {
                    Law::LogUniform
                };
                (law, low, high)
            }
        };
        axis.values = vec![
            Value::computed(axis.key, low, table.at.clone()),
            Value::computed(axis.key, high, table.at.clone()),
        ];
        Some(Self {
            axis,
            at: table.at.clone(),
            law,
            low,
            high,
        })
    }

    /// The value in the run with `seed`. Each key has a random stream of its own, so that what is
    /// drawn for one says nothing of, and depends on nothing of, another.
    pub(crate) fn draw(&self, seed: u64) -> Value {
        let mut stream = Stream::new(seed, &format!("sweep {}", self.axis.path));
        let number = match self.law {
            Law::Uniform => self.low + (self.high - self.low) * stream.unit(),
            Law::LogUniform => {
                let (low, high) = (libm::log(self.low), libm::log(self.high));
                libm::exp(low + (high - low) * stream.unit())
            }
            Law::Normal { mean, deviation } => loop {
                let drawn = mean + deviation * standard_normal(&mut stream);
                if (self.low..=self.high).contains(&drawn) {
                    break drawn;
                }
            },
        };
        Value::computed(
            self.axis.key,
            number.clamp(self.low, self.high),
            self.at.clone(),
        )
    }

    /// All that decides what is drawn, in words.
    pub(crate) fn description(&self) -> String {
        format!(
            "{} {:?} {:?} {:?}",
            self.axis.path, self.law, self.low, self.high
        )
    }
}

/// Box and Muller's transform, the cosine half.
fn standard_normal(stream: &mut Stream) -> f64 {
    // 1 - unit is never zero, so the logarithm is finite.
    let radius = libm::sqrt(-2.0 * libm::log(1.0 - stream.unit()));
    radius * libm::cos(TAU * stream.unit())
}

/// A normal distribution, by default cut off where the key's range ends.
fn normal(sheet: &Sheet, axis: &Axis, table: &Table<'_>) -> Option<(Law, f64, f64)> {
    let mean = parameter(sheet, axis, table, "mean");
    let deviation = deviation(sheet, axis, table);
    let whole = bounds(axis.key);
    let end = |name, default: Option<f64>| match table.value(name) {
        Some(value) => in_bounds(sheet, axis, value, name),
        None => default,
    };
    let low = end("from", whole.map(|(low, _)| low));
    let high = end("to", whole.map(|(_, high)| high));
    let (mean, deviation, low, high) = (mean?, deviation?, low?, high?);
    // Then at least a third of what is drawn can be kept.
    if !(low..=high).contains(&mean) || high - low < deviation {
        sheet.note(
            table.at.clone(),
            format!(
                "hardly any value of `{}` would lie between `from` and `to`",
                axis.path
            ),
            "values outside are drawn again",
            "let them hold the mean, and be at least a deviation apart",
        );
        return None;
    }
    Some((Law::Normal { mean, deviation }, low, high))
}

fn parameter(sheet: &Sheet, axis: &Axis, table: &Table<'_>, name: &str) -> Option<f64> {
    match table.value(name) {
        Some(value) => in_bounds(sheet, axis, value, name),
        None => {
            missing(sheet, axis, table, name);
            None
        }
    }
}

/// A deviation may be any positive number of the key's unit.
fn deviation(sheet: &Sheet, axis: &Axis, table: &Table<'_>) -> Option<f64> {
    let Some(value) = table.value("deviation") else {
        missing(sheet, axis, table, "deviation");
        return None;
    };
    let deviation = number(axis.key, value.get_ref()).filter(|number| *number > 0.0);
    if deviation.is_none() {
        sheet.note(
            value.span(),
            format!(
                "`deviation = {}` is not {} above zero",
                sheet.written(value.span()),
                axis.key.kind.name()
            ),
            "here",
            format!("write `deviation = {}`", axis.key.example),
        );
    }
    deviation
}

fn missing(sheet: &Sheet, axis: &Axis, table: &Table<'_>, name: &str) {
    sheet.note(
        table.at.clone(),
        format!(
            "`{}` has no `{name}`, which `distribution = \"normal\"` needs",
            axis.path
        ),
        "in this table",
        format!("add `{name} = {}`", axis.key.example),
    );
}
