//! The few statistics that the tables and plots show.

/// Mean, spread and number of a sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// How many values there were; at least one.
    pub count: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The standard deviation of the sample (divisor `count - 1`); `None` for a single value,
    /// which says nothing of the spread.
    pub standard_deviation: Option<f64>,
    /// The middle value, or the mean of the two middle ones.
    pub median: f64,
    /// The least value.
    pub least: f64,
    /// The greatest value.
    pub greatest: f64,
}

impl Sample {
    /// The sample of `values`; `None` if there are none or one of them is not finite.
    ///
    /// ```
    /// use outlast_report::statistics::Sample;
    /// let sample = Sample::of([1.0, 2.0, 6.0]).expect("three finite values");
    /// assert_eq!((sample.mean, sample.median), (3.0, 2.0));
    /// assert_eq!(Sample::of([]), None);
    /// ```
    #[must_use]
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        Self::of_all(values.into_iter().collect())
    }

    /// Compiled once, and not for each kind of iterator.
    fn of_all(mut values: Vec<f64>) -> Option<Self> {
        if values.iter().any(|value| !value.is_finite()) {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let (&least, &greatest) = (values.first()?, values.last()?);
        let count = values.len();
        let mean = values.iter().sum::<f64>() / as_f64(count);
        let squares = values
            .iter()
            .map(|value| (value - mean).powi(2))
            .sum::<f64>();
        // The mean of equal values may be rounded: they have no spread all the same.
        let deviation = || match least == greatest {
            true => 0.0,
            false => (squares / as_f64(count - 1)).sqrt(),
        };
        let standard_deviation = (count > 1).then(deviation);
        let median = f64::midpoint(values[(count - 1) / 2], values[count / 2]);
        Some(Self {
            count,
            mean,
            standard_deviation,
            median,
            least,
            greatest,
        })
    }
}

/// The 95 % Wilson score interval of a success rate, as shares of one.
///
/// Unlike the mean and deviation of zeros and ones it stays within 0 and 1 and does not shrink
/// to nothing when all trials agree: three successes of three say only "at least 44 %".
/// E. B. Wilson, "Probable inference, the law of succession, and statistical inference",
/// Journal of the American Statistical Association 22 (1927). `None` without trials or with more
/// successes than trials.
#[must_use]
pub fn wilson_interval(successes: u64, trials: u64) -> Option<(f64, f64)> {
    if trials == 0 || successes > trials {
        return None;
    }
    /// The 97.5 % quantile of the normal distribution.
    const Z: f64 = 1.959_963_985;
    let (n, share) = (trials as f64, successes as f64 / trials as f64);
    let scale = 1.0 + Z * Z / n;
    let centre = (share + Z * Z / (2.0 * n)) / scale;
    let half = Z / scale * (share * (1.0 - share) / n + Z * Z / (4.0 * n * n)).sqrt();
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_value_has_no_spread() {
        let sample = Sample::of([4.0]).expect("one finite value");
        assert_eq!(sample.standard_deviation, None);
        assert_eq!(
            (sample.least, sample.median, sample.greatest),
            (4.0, 4.0, 4.0)
        );
    }

    #[test]
    fn the_standard_deviation_is_that_of_a_sample() {
        let sample = Sample::of([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).expect("finite values");
        assert_eq!((sample.mean, sample.median), (5.0, 4.5));
        let deviation = sample.standard_deviation.expect("eight values");
        assert!(
            (deviation - (32.0f64 / 7.0).sqrt()).abs() < 1e-12,
            "{deviation}"
        );
    }

    #[test]
    fn no_statistics_of_what_is_not_finite() {
        assert_eq!(Sample::of([1.0, f64::NAN]), None);
        assert_eq!(Sample::of([f64::INFINITY]), None);
    }

    /// Values of the published formula, computed independently to four digits.
    #[test]
    fn wilson_interval_of_small_samples() {
        let close = |(a, b): (f64, f64), (c, d): (f64, f64)| {
            assert!(
                (a - c).abs() < 5e-5 && (b - d).abs() < 5e-5,
                "({a}, {b}) is not ({c}, {d})"
            );
        };
        close(wilson_interval(3, 3).expect("trials"), (0.4385, 1.0));
        close(wilson_interval(0, 14).expect("trials"), (0.0, 0.2153));
        close(wilson_interval(7, 14).expect("trials"), (0.2680, 0.7320));
        assert_eq!(wilson_interval(0, 0), None);
        assert_eq!(wilson_interval(2, 1), None);
    }
}
