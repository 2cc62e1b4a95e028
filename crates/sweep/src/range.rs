//! Values at regular distances: `{ from = "1 ms", to = "1 s", count = 7, scale = "log" }`.

use crate::axis::{Axis, Value, bounds, number, whole_number};
use crate::file::{Sheet, Table};
use toml::Spanned;
use toml::de::DeValue;

const KEYS: [&str; 5] = ["from", "to", "count", "step", "scale"];
/// No axis has more values.
const MAX_VALUES: u64 = 100_000;
const SCALES: [&str; 2] = ["linear", "log"];

/// The values of a range; none if something is wrong with it.
pub(crate) fn values(sheet: &Sheet, axis: &Axis, table: &Table<'_>) -> Vec<Value> {
    sheet.refuse_unknown(table, "a range", &KEYS);
    let Some((low, high)) = ends(sheet, axis, table) else {
        return Vec::new();
    };
    let Some(points) = points(sheet, axis, table, low, high) else {
        return Vec::new();
    };
    let mut values: Vec<Value> = Vec::with_capacity(points.len());
    for point in points {
        let value = Value::computed(axis.key, point, table.at.clone());
        if values.last().is_some_and(|last| last.datum == value.datum) {
            sheet.note(
                table.at.clone(),
                format!("the values of `{}` are too close together", axis.path),
                format!("`{}` would come twice", value.toml),
                "write a smaller `count`",
            );
            return Vec::new();
        }
        values.push(value);
    }
    values
}

/// `from` and `to` of a range or a distribution, in base units.
pub(crate) fn ends(sheet: &Sheet, axis: &Axis, table: &Table<'_>) -> Option<(f64, f64)> {
    let low = end(sheet, axis, table, "from");
    let high = end(sheet, axis, table, "to");
    let (low, high) = (low?, high?);
    if low >= high {
        sheet.note(
            table.at.clone(),
            format!("the range of `{}` does not go upwards", axis.path),
            "`from` is not less than `to`",
            "swap them, or write a list of values",
        );
        return None;
    }
    Some((low, high))
}

fn end(sheet: &Sheet, axis: &Axis, table: &Table<'_>, name: &'static str) -> Option<f64> {
    let Some(value) = table.value(name) else {
        sheet.note(
            table.at.clone(),
            format!("`{}` has no `{name}`", axis.path),
            "in this table",
            format!("add `{name} = {}`", axis.key.example),
        );
        return None;
    };
    in_bounds(sheet, axis, value, name)
}

/// A number that the axis' key takes.
pub(crate) fn in_bounds(
    sheet: &Sheet,
    axis: &Axis,
    value: &Spanned<DeValue<'_>>,
    name: &str,
) -> Option<f64> {
    let kind = &axis.key.kind;
    let Some((least, greatest)) = bounds(axis.key) else {
        sheet.note(
            value.span(),
            format!(
                "`{}` takes {}, of which there is no range",
                axis.path,
                kind.name()
            ),
            "not a number",
            "write a list of values",
        );
        return None;
    };
    match number(axis.key, value.get_ref()) {
        Some(number) if (least..=greatest).contains(&number) => Some(number),
        Some(_) => {
            sheet.note(
                value.span(),
                format!("`{name} = {}` is out of range", sheet.written(value.span())),
                format!("allowed: {}", kind.range()),
                format!(
                    "`{}` takes {} from {}",
                    axis.path,
                    kind.name(),
                    kind.range()
                ),
            );
            None
        }
        None => {
            let units = match kind.units() {
                units if units.is_empty() => String::new(),
                units => format!("; units are {units}"),
            };
            sheet.note(
                value.span(),
                format!(
                    "`{name} = {}` is not {}",
                    sheet.written(value.span()),
                    kind.name()
                ),
                format!("`{}` takes {}", axis.path, kind.name()),
                format!("write `{name} = {}`{units}", axis.key.example),
            );
            None
        }
    }
}

fn points(sheet: &Sheet, axis: &Axis, table: &Table<'_>, low: f64, high: f64) -> Option<Vec<f64>> {
    let is_log = sheet.choice(table, "scale", &SCALES)? == "log";
    match (table.value("count"), table.value("step")) {
        (Some(count), None) => {
            let count = self::count(sheet, count)?;
            if !is_log {
                return Some(spread(low, high, count).collect());
            }
            if low <= 0.0 {
                sheet.note(
                    table.at.clone(),
                    format!("the range of `{}` begins at zero", axis.path),
                    "zero has no logarithm",
                    "write a `from` above zero, or `scale = \"linear\"`",
                );
                return None;
            }
            let logs = spread(libm::log(low), libm::log(high), count);
            let mut points: Vec<f64> = logs.map(libm::exp).collect();
            // What was written comes exactly.
            points[0] = low;
            points[count - 1] = high;
            Some(points)
        }
        (None, Some(step)) if !is_log => steps(sheet, axis, step, low, high),
        (None, Some(step)) => {
            let remedy = "write a `count` instead";
            sheet.note(
                step.span(),
                "a logarithmic range has no `step`",
                "here",
                remedy,
            );
            None
        }
        (Some(_), Some(step)) => {
            let message = "`count` and `step` contradict each other";
            sheet.note(step.span(), message, "the second", "keep one of them");
            None
        }
        (None, None) => {
            sheet.note(
                table.at.clone(),
                format!(
                    "the range of `{}` has neither `count` nor `step`",
                    axis.path
                ),
                "in this table",
                "add `count = 5`, or the `step` from one value to the next",
            );
            None
        }
    }
}

fn count(sheet: &Sheet, value: &Spanned<DeValue<'_>>) -> Option<usize> {
    let count = whole_number(value.get_ref()).filter(|count| (2..=MAX_VALUES).contains(count));
    if count.is_none() {
        sheet.note(
            value.span(),
            format!("`count = {}` is out of range", sheet.written(value.span())),
            format!("allowed: 2 to {MAX_VALUES}"),
            "write a whole number, such as `count = 5`",
        );
    }
    count.and_then(|count| usize::try_from(count).ok())
}

/// `count` points from `low` to `high`, both included.
fn spread(low: f64, high: f64, count: usize) -> impl Iterator<Item = f64> {
    #[expect(clippy::cast_precision_loss, reason = "ranges are shorter than 2^53")]
    let share = move |index: usize| index as f64 / (count - 1) as f64;
    (0..count).map(move |index| low + (high - low) * share(index))
}

fn steps(
    sheet: &Sheet,
    axis: &Axis,
    value: &Spanned<DeValue<'_>>,
    low: f64,
    high: f64,
) -> Option<Vec<f64>> {
    let step = in_bounds_of_step(sheet, axis, value)?;
    // A little more, as tenths do not sum up exactly.
    let count = (high - low) / step + 1.0 + 1e-9;
    #[expect(clippy::cast_precision_loss, reason = "a limit, not a count")]
    if count > MAX_VALUES as f64 {
        sheet.note(
            value.span(),
            format!("`{}` would have more than {MAX_VALUES} values", axis.path),
            "too small a step",
            "write a larger `step`",
        );
        return None;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a small number that is not negative"
    )]
    let count = count as u32;
    Some(
        (0..count)
            .map(|index| low + step * f64::from(index))
            .collect(),
    )
}

/// A step may be any positive number of the key's unit.
fn in_bounds_of_step(sheet: &Sheet, axis: &Axis, value: &Spanned<DeValue<'_>>) -> Option<f64> {
    let step = number(axis.key, value.get_ref()).filter(|step| *step > 0.0);
    if step.is_none() {
        sheet.note(
            value.span(),
            format!(
                "`step = {}` is not {} above zero",
                sheet.written(value.span()),
                axis.key.kind.name()
            ),
            "from one value to the next",
            format!("write `step = {}`", axis.key.example),
        );
    }
    step
}
