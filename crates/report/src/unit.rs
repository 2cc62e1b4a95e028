//! Quantities as a reader sees them: three significant digits and a unit that fits the size.

/// What a number counts, and so how it is shown.
///
/// Values are always in the base unit (seconds, bytes, bits per second, shares of one); only
/// their appearance is scaled.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Unit {
    /// A bare number.
    #[default]
    Number,
    /// A whole number of things.
    Count,
    /// Seconds; shown in milliseconds below one second.
    Seconds,
    /// A share of one, shown in percent.
    Share,
    /// How many times as much.
    Factor,
    /// Bytes, shown in kB, MB and GB of powers of 1000.
    Bytes,
    /// Bits per second, shown in kbit/s, Mbit/s and Gbit/s of powers of 1000.
    BitsPerSecond,
}

/// The scale chosen for the ticks of an axis: divide by `divisor` and name `symbol` in its label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AxisScale {
    pub(crate) divisor: f64,
    pub(crate) symbol: &'static str,
}

impl Unit {
    /// A measured `value`: three significant digits and the unit that fits.
    ///
    /// ```
    /// use outlast_report::unit::Unit;
    /// assert_eq!(Unit::Seconds.show(0.0868), "86.8 ms");
    /// assert_eq!(Unit::Share.show(0.953), "95.3 %");
    /// assert_eq!(Unit::Bytes.show(50e6), "50.0 MB");
    /// ```
    #[must_use]
    pub fn show(self, value: f64) -> String {
        let shape = self.shape(value);
        shape.with_unit(&shape.number(value, shape.decimals))
    }

    /// A given `value`, as a publication or a scenario states it: all its digits (at most six
    /// significant ones) and the unit that fits.
    ///
    /// ```
    /// use outlast_report::unit::Unit;
    /// assert_eq!(Unit::Seconds.show_exact(0.09), "90 ms");
    /// assert_eq!(Unit::Factor.show_exact(1.5), "1.5×");
    /// ```
    #[must_use]
    pub fn show_exact(self, value: f64) -> String {
        let shape = self.shape(value);
        let number = shape.number(value, decimals_for(value / shape.divisor, 6));
        let trimmed = match number.split_once('.') {
            Some(_) => number.trim_end_matches('0').trim_end_matches('.'),
            None => &number,
        };
        shape.with_unit(trimmed)
    }

    /// A measured `value` with its `deviation`, both in the same unit and to the same decimal, as
    /// in `1.21 ± 0.08×`.
    #[must_use]
    pub fn show_with_deviation(self, value: f64, deviation: f64) -> String {
        let shape = self.shape(value);
        let [value, deviation] = [value, deviation].map(|v| shape.number(v, shape.decimals));
        shape.with_unit(&format!("{value} ± {deviation}"))
    }

    /// How to show numbers of the size of `value`.
    fn shape(self, value: f64) -> Shape {
        let (divisor, symbol) = match self {
            Self::Number | Self::Count => (1.0, ""),
            Self::Factor => (1.0, "×"),
            Self::Share => (0.01, " %"),
            // Zero is a number of the base unit.
            Self::Seconds if value == 0.0 => (1.0, " s"),
            Self::Seconds | Self::Bytes | Self::BitsPerSecond => fitting(value, self.steps()),
        };
        let decimals = match self {
            Self::Count => 0,
            // A byte or a bit is not divided.
            Self::Bytes | Self::BitsPerSecond if divisor == 1.0 => 0,
            // A tenth of a percent is as much as the number of runs ever supports.
            Self::Share if value == 0.0 || value.abs() >= 0.001 => {
                decimals_for(value / divisor, 3).min(1)
            }
            _ => decimals_for(value / divisor, 3),
        };
        Shape {
            divisor,
            symbol,
            decimals,
        }
    }

    /// The units to choose from, largest first.
    const fn steps(self) -> &'static [(f64, &'static str)] {
        match self {
            Self::Number | Self::Count | Self::Factor => &[(1.0, "")],
            Self::Share => &[(0.01, " %")],
            Self::Seconds => &[(1.0, " s"), (1e-3, " ms"), (1e-6, " µs")],
            Self::Bytes => &[(1e9, " GB"), (1e6, " MB"), (1e3, " kB"), (1.0, " B")],
            Self::BitsPerSecond => &[
                (1e9, " Gbit/s"),
                (1e6, " Mbit/s"),
                (1e3, " kbit/s"),
                (1.0, " bit/s"),
            ],
        }
    }

    /// The symbol of the base unit, in which CSV and JSON give the values; empty for none.
    #[must_use]
    pub const fn symbol(self) -> &'static str {
        match self {
            Self::Number | Self::Count | Self::Factor | Self::Share => "",
            Self::Seconds => "s",
            Self::Bytes => "B",
            Self::BitsPerSecond => "bit/s",
        }
    }

    /// The scale for an axis whose greatest value is `largest`.
    pub(crate) fn axis_scale(self, largest: f64) -> AxisScale {
        let (divisor, symbol) = fitting(largest, self.steps());
        AxisScale {
            divisor,
            symbol: symbol.trim_start(),
        }
    }
}

/// The unit and the number of decimals for numbers of one size.
#[derive(Clone, Copy, Debug)]
struct Shape {
    divisor: f64,
    symbol: &'static str,
    decimals: usize,
}

impl Shape {
    fn number(self, value: f64, decimals: usize) -> String {
        let value = value / self.divisor;
        match value {
            v if v.is_nan() => "not a number".to_owned(),
            v if v == f64::INFINITY => "∞".to_owned(),
            v if v == f64::NEG_INFINITY => "−∞".to_owned(),
            0.0 => "0".to_owned(),
            v if v.abs() < 1e-4 => format!("{v:.1e}"),
            v => format!("{v:.decimals$}"),
        }
    }

    fn with_unit(self, number: &str) -> String {
        format!("{number}{}", self.symbol)
    }
}

/// The first of `steps` (largest first) that `value` reaches, or the last.
fn fitting(value: f64, steps: &[(f64, &'static str)]) -> (f64, &'static str) {
    // 0.9995 of a step already rounds up to the step itself.
    let reached = steps.iter().find(|(size, _)| value.abs() >= size * 0.9995);
    *reached
        .or(steps.last())
        .expect("every unit lists at least one step")
}

/// How many decimals show `digits` significant digits of `value`.
fn decimals_for(value: f64, digits: usize) -> usize {
    let tens = |power: usize| 10f64.powi(i32::try_from(power).unwrap_or(i32::MAX));
    // What rounds up to another digit has it: 9.996 is 10.0, not 10.00.
    let full = tens(digits - 1) * (1.0 - 0.5 / tens(digits));
    (0..digits + 4)
        .find(|&decimals| value.abs() * tens(decimals) >= full)
        .unwrap_or(digits - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measured_values_have_three_significant_digits_in_a_fitting_unit() {
        let cases = [
            (Unit::Seconds, 0.0, "0 s"),
            (Unit::Seconds, 0.000_4, "400 µs"),
            (Unit::Seconds, 0.043, "43.0 ms"),
            (Unit::Seconds, 0.9999, "1.00 s"),
            (Unit::Seconds, 9.9996, "10.0 s"),
            (Unit::Seconds, 7.1, "7.10 s"),
            (Unit::Seconds, 28.44, "28.4 s"),
            (Unit::Seconds, 924.6, "925 s"),
            (Unit::Seconds, 0.000_000_5, "0.500 µs"),
            (Unit::Share, 1.0, "100 %"),
            (Unit::Share, 0.953_1, "95.3 %"),
            (Unit::Share, 0.081, "8.1 %"),
            (Unit::Share, 0.0, "0 %"),
            (Unit::Share, 0.000_12, "0.0120 %"),
            (Unit::Factor, 1.523, "1.52×"),
            (Unit::Bytes, 999_960.0, "1.00 MB"),
            (Unit::Bytes, 43.0, "43 B"),
            (Unit::Bytes, 0.0, "0 B"),
            (Unit::BitsPerSecond, 4e6, "4.00 Mbit/s"),
            (Unit::Number, 1e-9, "1.0e-9"),
            (Unit::Number, -2.5, "-2.50"),
            (Unit::Count, 34_012.0, "34012"),
            (Unit::Seconds, f64::INFINITY, "∞ s"),
        ];
        for (unit, value, shown) in cases {
            assert_eq!(unit.show(value), shown, "{unit:?} {value}");
        }
    }

    #[test]
    fn given_values_keep_their_digits() {
        let cases = [
            (Unit::Seconds, 0.09, "90 ms"),
            (Unit::Seconds, 10.0, "10 s"),
            (Unit::Seconds, 100.0, "100 s"),
            (Unit::Share, 0.95, "95 %"),
            (Unit::Factor, 1.35, "1.35×"),
            (Unit::Bytes, 50e6, "50 MB"),
            (Unit::Number, 0.0, "0"),
            (Unit::Number, 3.0, "3"),
        ];
        for (unit, value, shown) in cases {
            assert_eq!(unit.show_exact(value), shown, "{unit:?} {value}");
        }
    }

    #[test]
    fn a_deviation_has_the_decimals_of_its_value() {
        assert_eq!(
            Unit::Factor.show_with_deviation(1.21, 0.0812),
            "1.21 ± 0.08×"
        );
        assert_eq!(
            Unit::Seconds.show_with_deviation(0.043, 0.0021),
            "43.0 ± 2.1 ms"
        );
        assert_eq!(Unit::Share.show_with_deviation(1.0, 0.0), "100 ± 0 %");
    }
}
