//! What several figures present in the same way.

use crate::record::Record;
use outlast_report::judgement::{Claim, Measured, Published, Source, Tolerance};
use outlast_report::statistics::Sample;
use outlast_report::unit::Unit;
use outlast_scenario::Mechanism;
use std::borrow::Cow::{self, Borrowed};

/// A claim of `work`, which is `published` and held against a measurement within `tolerance`.
pub const fn claim(
    work: &'static str,
    place: &'static str,
    statement: Cow<'static, str>,
    unit: Unit,
    published: Published,
    tolerance: Tolerance,
) -> Claim {
    let source = Source {
        work: Borrowed(work),
        place: Borrowed(place),
    };
    Claim {
        source,
        statement,
        unit,
        published,
        tolerance,
        departure: None,
    }
}

/// What we state ourselves of what the experiment `place` measures, to be held to the letter.
pub fn own_claim(
    place: &'static str,
    statement: impl Into<Cow<'static, str>>,
    unit: Unit,
    published: Published,
) -> Claim {
    let statement = statement.into();
    claim(
        "Outlast",
        place,
        statement,
        unit,
        published,
        Tolerance::Exact,
    )
}

/// The share of `records` for which `holds`; `None` if there are none.
pub fn share<'a>(
    records: impl IntoIterator<Item = &'a Record>,
    holds: impl Fn(&Record) -> bool,
) -> Option<Measured> {
    let (mut all, mut those) = (0, 0);
    for record in records {
        all += 1;
        those += usize::from(holds(record));
    }
    (all > 0).then(|| Measured {
        value: those as f64 / all as f64,
        standard_deviation: None,
        count: all,
    })
}

/// The mean of `values`, with its spread.
pub fn mean(values: impl IntoIterator<Item = f64>) -> Option<Measured> {
    Sample::of(values).map(Measured::from)
}

/// The middle of `times`, of which `None` is one that never came; infinite if that is the middle.
pub fn median(times: impl IntoIterator<Item = Option<f64>>) -> Option<Measured> {
    middle(
        times
            .into_iter()
            .map(|t| t.unwrap_or(f64::INFINITY))
            .collect(),
    )
}

/// Compiled once, and not for each kind of iterator.
fn middle(mut times: Vec<f64>) -> Option<Measured> {
    times.sort_by(f64::total_cmp);
    let count = times.len();
    let (&low, &high) = (times.get(count.checked_sub(1)? / 2)?, times.get(count / 2)?);
    // Between a number and infinity there is no middle: the larger one is the honest answer.
    let value = if high.is_finite() {
        f64::midpoint(low, high)
    } else {
        high
    };
    Some(Measured {
        value,
        standard_deviation: None,
        count,
    })
}

/// The median time after a run's first outage until half a second's worth of data had come, in seconds;
/// `None` where none was measured, or that is what the middle is.
pub fn half_second(records: &[Record]) -> Option<f64> {
    let outages = records.iter().filter_map(|run| run.result.outages.first());
    let middle = median(outages.map(|outage| outage.half_second_s))?;
    Some(middle.value).filter(|value| value.is_finite())
}

/// The median share of the link that the five seconds after a run's first outage used.
pub fn five_seconds(records: &[Record]) -> Option<f64> {
    let outages = records.iter().filter_map(|run| run.result.outages.first());
    let shares = outages.filter_map(|outage| outage.first_five_seconds_share);
    Some(median(shares.map(Some))?.value)
}

/// What readers call a mechanism: the paper's level and what it does.
pub const fn title(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::None => "0: unaided",
        Mechanism::SmartLink1 => "1: re-receive",
        Mechanism::SmartLink2 => "2: re-receive 5×",
        Mechanism::SmartLink3 => "3: re-send",
        Mechanism::SmartLink4 => "4: re-send 5×",
        other => other.name(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn median_of(times: &[Option<f64>]) -> Option<f64> {
        median(times.iter().copied()).map(|measured| measured.value)
    }

    #[test]
    fn the_median_counts_what_never_came_as_later_than_everything() {
        assert_eq!(median_of(&[]), None);
        assert_eq!(median_of(&[Some(3.0)]), Some(3.0));
        assert_eq!(median_of(&[Some(1.0), None, Some(2.0)]), Some(2.0));
        assert_eq!(median_of(&[Some(1.0), None]), Some(f64::INFINITY));
        assert_eq!(median_of(&[Some(4.0), Some(1.0)]), Some(2.5));
    }
}
