//! Axes: from values to positions, and the ticks that a reader counts by.

use crate::unit::Unit;

/// How an axis spreads its values.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Scale {
    /// Equal differences look equal.
    #[default]
    Linear,
    /// Equal ratios look equal. Values of zero or less are drawn at the lower end.
    Logarithmic,
}

/// An axis as the caller wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows; the unit is added.
    pub label: String,
    /// The unit of its values.
    pub unit: Unit,
    /// How it spreads them.
    pub scale: Scale,
    /// Its lower and upper end, in base units; `None` lets the data decide.
    pub range: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis whose ends the data decide.
    #[must_use]
    pub fn new(label: impl Into<String>, unit: Unit) -> Self {
        Self {
            label: label.into(),
            unit,
            scale: Scale::Linear,
            range: None,
        }
    }

    /// Makes the axis's scale logarithmic.
    #[must_use]
    pub fn logarithmic(mut self) -> Self {
        self.scale = Scale::Logarithmic;
        self
    }

    /// Has the axis go from `low` to `high`.
    #[must_use]
    pub fn range(mut self, low: f64, high: f64) -> Self {
        self.range = Some((low, high));
        self
    }

    /// The axis for `values`: ends, about as many `ticks` as wished, and label settled.
    pub(crate) fn fit(&self, values: impl Iterator<Item = f64>, ticks: u32) -> FittedAxis {
        let usable = |&value: &f64| match self.scale {
            Scale::Linear => value.is_finite(),
            Scale::Logarithmic => value.is_finite() && value > 0.0,
        };
        let ends = |(low, high): (f64, f64), value: f64| (low.min(value), high.max(value));
        let found = values
            .filter(usable)
            .fold((f64::INFINITY, f64::NEG_INFINITY), ends);
        let given = self
            .range
            .filter(|(low, high)| low < high && usable(low) && usable(high));
        match self.scale {
            Scale::Linear => self.fit_linear(found, given, ticks),
            Scale::Logarithmic => self.fit_logarithmic(found, given),
        }
    }

    fn fit_linear(&self, found: (f64, f64), given: Option<(f64, f64)>, ticks: u32) -> FittedAxis {
        let (low, high) = match (given, found) {
            (Some(given), _) => given,
            (None, (low, high)) if low < high => {
                let margin = 0.04 * (high - low);
                // Zero belongs on the axis unless the data are far from it.
                let holds_zero = low >= 0.0 && low < 0.5 * high;
                (if holds_zero { 0.0 } else { low - margin }, high + margin)
            }
            (None, (low, _)) if low.is_finite() => (low.min(0.0), low.max(0.0) + 1.0),
            (None, _) => (0.0, 1.0),
        };
        let scale = self.unit.axis_scale(low.abs().max(high.abs()));
        let step = nice_step((high - low) / scale.divisor / f64::from(ticks));
        let (first, last) = (low / scale.divisor / step, high / scale.divisor / step);
        let decimals = decimals_of(step);
        let ticks = whole_numbers(first, last)
            .map(|i| {
                let zero = if i == 0.0 { Some("0".to_owned()) } else { None };
                let label = zero.unwrap_or_else(|| format!("{:.decimals$}", i * step));
                Tick {
                    value: i * step * scale.divisor,
                    label: Some(label),
                }
            })
            .collect();
        let label = match scale.symbol {
            "" => self.label.clone(),
            symbol => format!("{} ({symbol})", self.label),
        };
        FittedAxis {
            scale: Scale::Linear,
            low,
            high,
            ticks,
            label,
        }
    }

    fn fit_logarithmic(&self, found: (f64, f64), given: Option<(f64, f64)>) -> FittedAxis {
        let (low, high) = match (given, found) {
            (Some(given), _) => given,
            (None, (low, high)) if low <= high => (
                10f64.powf(low.log10().floor()),
                10f64.powf((high * 1.000_001).log10().ceil()),
            ),
            (None, _) => (0.1, 10.0),
        };
        // Decades beyond what a number can hold would have no end.
        let low = low.clamp(SMALLEST_DECADE, LARGEST_DECADE / 10.0);
        let high = high.clamp(low * 1.000_01, LARGEST_DECADE);
        let decades = (low.log10().floor() as i32)..=(high.log10().ceil() as i32);
        let mut ticks = Vec::new();
        for decade in decades {
            for digit in 1..10 {
                let value = f64::from(digit) * 10f64.powi(decade);
                // Beyond the ends by rounding alone is not beyond.
                if value >= low * 0.999_999 && value <= high * 1.000_001 {
                    ticks.push(Tick {
                        value,
                        label: (digit == 1).then(|| self.unit.show_exact(value)),
                    });
                }
            }
        }
        FittedAxis {
            scale: Scale::Logarithmic,
            low,
            high,
            ticks,
            label: self.label.clone(),
        }
    }
}

/// The ends of the longest logarithmic axis.
const SMALLEST_DECADE: f64 = 1e-300;
const LARGEST_DECADE: f64 = 1e300;

/// An axis whose ends and ticks are settled.
#[derive(Clone, Debug)]
pub(crate) struct FittedAxis {
    scale: Scale,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) ticks: Vec<Tick>,
    pub(crate) label: String,
}

/// A tick: a labelled one, or a fine one between them.
#[derive(Clone, Debug)]
pub(crate) struct Tick {
    pub(crate) value: f64,
    pub(crate) label: Option<String>,
}

impl FittedAxis {
    /// Where `value` lies, as a share of the way from `from` to `to`; at an end if it is beyond.
    pub(crate) fn position(&self, value: f64, from: f64, to: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => {
                (value / self.low).ln() / (self.high / self.low).ln()
            }
            Scale::Logarithmic => 0.0,
        };
        from + share.clamp(0.0, 1.0) * (to - from)
    }
}

/// The least of 1, 2, 5 times a power of ten that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|digit| digit * power)
        .into_iter()
        .find(|step| *step >= rough * 0.999)
        .unwrap_or(rough)
}

/// How many decimals show a step of this size exactly.
fn decimals_of(step: f64) -> usize {
    let decimals = -step.log10().floor();
    if decimals > 0.0 { decimals as usize } else { 0 }
}

/// The whole numbers from `first` to `last`, which may be short of them by rounding.
fn whole_numbers(first: f64, last: f64) -> impl Iterator<Item = f64> {
    let first = (first - 1e-6).ceil();
    let count = (last + 1e-6 - first).floor();
    // An axis has about six ticks; the bound only guards against ends that are almost equal.
    (0..=count.clamp(0.0, 50.0) as u32).map(move |i| first + f64::from(i))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &FittedAxis) -> Vec<&str> {
        axis.ticks
            .iter()
            .filter_map(|tick| tick.label.as_deref())
            .collect()
    }

    #[test]
    fn a_logarithmic_axis_of_absurd_values_has_an_end() {
        for values in [
            [f64::MIN_POSITIVE / 1e10, f64::MAX],
            [f64::MAX, f64::MAX],
            [5e-324, 5e-324],
        ] {
            let axis = Axis::new("Time", Unit::Seconds).logarithmic();
            let axis = axis.fit(values.into_iter(), 6);
            assert!(axis.low < axis.high && axis.ticks.len() < 6_000);
        }
    }

    #[test]
    fn ticks_fall_on_round_numbers_in_a_fitting_unit() {
        let axis = Axis::new("Sequence number", Unit::Bytes).range(0.0, 2.5e6);
        let axis = axis.fit([].into_iter(), 6);
        assert_eq!(axis.label, "Sequence number (MB)");
        assert_eq!(labels(&axis), ["0", "0.5", "1.0", "1.5", "2.0", "2.5"]);

        let axis = Axis::new("Availability", Unit::Share)
            .range(0.0, 1.0)
            .fit([].into_iter(), 6);
        assert_eq!(labels(&axis), ["0", "20", "40", "60", "80", "100"]);

        let axis = Axis::new("Time", Unit::Seconds)
            .range(9.98, 10.12)
            .fit([].into_iter(), 6);
        assert_eq!(labels(&axis), ["10.00", "10.05", "10.10"]);
    }

    #[test]
    fn decades_are_labelled_and_the_rest_is_fine() {
        let axis = Axis::new("Resume", Unit::Seconds)
            .logarithmic()
            .fit([0.043, 7.1].into_iter(), 6);
        assert_eq!((axis.low, axis.high), (0.01, 10.0));
        assert_eq!(labels(&axis), ["10 ms", "100 ms", "1 s", "10 s"]);
        assert_eq!(axis.ticks.len(), 28);
        assert!((axis.position(0.1, 0.0, 3.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_lies_outside_the_axis() {
        let axis = Axis::new("Time", Unit::Seconds)
            .logarithmic()
            .range(0.01, 10.0);
        let axis = axis.fit([].into_iter(), 6);
        for (value, position) in [(0.0, 5.0), (-1.0, 5.0), (1e9, 8.0), (1e-9, 5.0)] {
            assert_eq!(axis.position(value, 5.0, 8.0), position);
        }
    }

    #[test]
    fn data_that_say_little_still_give_an_axis() {
        for scale in [Scale::Linear, Scale::Logarithmic] {
            let samples: [&[f64]; 6] = [
                &[],
                &[0.0],
                &[5.0],
                &[-3.0],
                &[f64::NAN, f64::INFINITY],
                &[1.0, 1.0 + 1e-12],
            ];
            for values in samples {
                let axis = Axis {
                    scale,
                    ..Axis::new("x", Unit::Number)
                };
                let axis = axis.fit(values.iter().copied(), 6);
                assert!(axis.low < axis.high, "{scale:?} {values:?} {axis:?}");
                assert!(
                    axis.position(5.0, 0.0, 1.0).is_finite(),
                    "{scale:?} {values:?}"
                );
            }
        }
    }
}
