//! What a publication states, beside what was measured, and whether the two agree.
//!
//! A [`Claim`] is written down before anything is measured, with the tolerance within which it
//! counts as reproduced. [`Claim::judge`] is the only way to a [`Judged`] claim: the judgement
//! comes out of the numbers and cannot be typed in.
//!
//! ```
//! use outlast_report::judgement::{Claim, Judgement, Measured, Published, Source, Tolerance};
//! use outlast_report::unit::Unit;
//! use std::borrow::Cow::Borrowed;
//!
//! const HALVED: Claim = Claim {
//!     source: Source { work: Borrowed("Scott and Mapp 2003"), place: Borrowed("section 5.3") },
//!     statement: Borrowed("At 90 % availability unaided TCP takes 50 % longer than the optimum."),
//!     unit: Unit::Factor,
//!     published: Published::About(1.5),
//!     tolerance: Tolerance::Relative(0.1),
//!     departure: None,
//! };
//! let judged = HALVED.judge(Some(Measured::single(1.2)));
//! assert_eq!(judged.judgement(), Judgement::Differs);
//! assert_eq!(judged.why(), "Below what is accepted.");
//! ```

mod departure;

pub use departure::{Departure, Departures};

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeStruct, Serializer};

use crate::statistics::Sample;
use crate::table::{Cell, Column, Table, Tone};
use crate::unit::Unit;

/// Where a statement stands.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Source {
    /// The publication, short ("Scott and Mapp 2003").
    pub work: Cow<'static, str>,
    /// The place in it ("figure 6").
    pub place: Cow<'static, str>,
}

/// A published statement that a number can confirm or refute.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Where it is stated.
    pub source: Source,
    /// The statement, in a sentence of our own.
    pub statement: Cow<'static, str>,
    /// What the numbers count.
    pub unit: Unit,
    /// The number stated, in the base unit of `unit`.
    pub published: Published,
    /// How far off a measurement may be and still count as the same.
    pub tolerance: Tolerance,
    /// The reason for a different outcome, as far as one is known. It never changes the judgement; it is
    /// shown where that is [`Judgement::Differs`].
    pub departure: Option<Departure>,
}

/// The number that a publication states, and in which sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Published {
    /// This value.
    About(f64),
    /// This value or more.
    AtLeast(f64),
    /// This value or less.
    AtMost(f64),
    /// Something from the first value to the second.
    Between(f64, f64),
}

/// How far beyond the published number a measurement may lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Not at all.
    Exact,
    /// By this much, in the claim's base unit.
    Absolute(f64),
    /// By this share of the published number.
    Relative(f64),
    /// By this factor, which is at least one, up or down.
    Factor(f64),
}

/// A measured number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The value to be judged: a mean, a share, or the only value. Infinite for "never".
    pub value: f64,
    /// The standard deviation, if there is one.
    pub standard_deviation: Option<f64>,
    /// From how many runs it comes.
    pub count: usize,
}

/// What the numbers say.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Judgement {
    /// The measurement lies within the tolerance.
    Reproduced,
    /// It does not.
    Differs,
    /// There is no measurement, so nothing can be said.
    NotMeasured,
}

/// A claim and its measurement, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    claim: Claim,
    measured: Option<Measured>,
}

impl Measured {
    /// The value of a single run, or one that has no spread.
    #[must_use]
    pub const fn single(value: f64) -> Self {
        Self {
            value,
            standard_deviation: None,
            count: 1,
        }
    }

    fn show(&self, unit: Unit) -> String {
        match self.standard_deviation {
            Some(deviation) => unit.show_with_deviation(self.value, deviation),
            None => unit.show(self.value),
        }
    }
}

impl From<Sample> for Measured {
    fn from(sample: Sample) -> Self {
        let Sample {
            mean,
            standard_deviation,
            count,
            ..
        } = sample;
        Self {
            value: mean,
            standard_deviation,
            count,
        }
    }
}

impl Published {
    fn show(self, unit: Unit) -> String {
        match self {
            Self::About(value) => unit.show_exact(value),
            Self::AtLeast(value) => format!("≥ {}", unit.show_exact(value)),
            Self::AtMost(value) => format!("≤ {}", unit.show_exact(value)),
            Self::Between(low, high) => {
                format!("{} to {}", unit.show_exact(low), unit.show_exact(high))
            }
        }
    }
}

impl Tolerance {
    /// The lowest value still accepted for a published `value`.
    fn below(self, value: f64) -> f64 {
        match self {
            Self::Exact => value,
            Self::Absolute(by) => value - by,
            Self::Relative(share) => value - value.abs() * share,
            Self::Factor(factor) => value / factor,
        }
    }

    /// The highest value still accepted for a published `value`.
    fn above(self, value: f64) -> f64 {
        match self {
            Self::Exact => value,
            Self::Absolute(by) => value + by,
            Self::Relative(share) => value + value.abs() * share,
            Self::Factor(factor) => value * factor,
        }
    }

    fn is_sound(self) -> bool {
        match self {
            Self::Exact => true,
            Self::Absolute(by) | Self::Relative(by) => by.is_finite() && by >= 0.0,
            Self::Factor(factor) => factor.is_finite() && factor >= 1.0,
        }
    }
}

impl Claim {
    /// The lowest and the highest value that count as reproduced; infinite where there is no
    /// bound.
    ///
    /// # Panics
    ///
    /// If the tolerance is negative, infinite or a factor below one.
    #[must_use]
    pub fn accepted(&self) -> (f64, f64) {
        let tolerance = self.tolerance;
        assert!(
            tolerance.is_sound(),
            "{tolerance:?} is no tolerance: {}",
            self.statement
        );
        match self.published {
            Published::About(value) => (tolerance.below(value), tolerance.above(value)),
            Published::AtLeast(value) => (tolerance.below(value), f64::INFINITY),
            Published::AtMost(value) => (f64::NEG_INFINITY, tolerance.above(value)),
            Published::Between(low, high) => (tolerance.below(low), tolerance.above(high)),
        }
    }

    /// The claim beside its measurement; `None` if nothing could be measured.
    #[must_use]
    pub fn judge(&self, measured: Option<Measured>) -> Judged {
        Judged {
            claim: self.clone(),
            measured,
        }
    }

    fn show_accepted(&self) -> String {
        match self.accepted() {
            (low, high) if low == f64::NEG_INFINITY => format!("≤ {}", self.unit.show_exact(high)),
            (low, f64::INFINITY) => format!("≥ {}", self.unit.show_exact(low)),
            (low, high) if low == high => self.unit.show_exact(low),
            (low, high) => format!(
                "{} to {}",
                self.unit.show_exact(low),
                self.unit.show_exact(high)
            ),
        }
    }
}

impl Judgement {
    /// In a word or two.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::NotMeasured => "not measured",
        }
    }

    const fn tone(self) -> Tone {
        match self {
            Self::Reproduced => Tone::Good,
            Self::Differs => Tone::Bad,
            Self::NotMeasured => Tone::Warning,
        }
    }
}

impl Judged {
    /// The claim.
    #[must_use]
    pub const fn claim(&self) -> &Claim {
        &self.claim
    }

    /// Its measurement.
    #[must_use]
    pub const fn measured(&self) -> Option<Measured> {
        self.measured
    }

    /// What the numbers say. A measurement that is not a number differs from every claim.
    #[must_use]
    pub fn judgement(&self) -> Judgement {
        let (low, high) = self.claim.accepted();
        match self.measured {
            None => Judgement::NotMeasured,
            Some(Measured { value, .. }) if low <= value && value <= high => Judgement::Reproduced,
            Some(_) => Judgement::Differs,
        }
    }

    /// The departure, where the measurement differs.
    #[must_use]
    pub fn departure(&self) -> Option<&Departure> {
        let departure = self.claim.departure.as_ref();
        departure.filter(|_| self.judgement() == Judgement::Differs)
    }

    /// The reason for the judgement, in a sentence; where the measurement differs, the departure follows.
    #[must_use]
    pub fn why(&self) -> String {
        let reason = self.reason();
        match self.departure() {
            Some(departure) => format!("{reason} {}", departure.say()),
            None => reason.to_owned(),
        }
    }

    fn reason(&self) -> &'static str {
        let (low, high) = self.claim.accepted();
        match self.measured.map(|measured| measured.value) {
            None => "No run gave a value.",
            Some(value) if value < low => "Below what is accepted.",
            Some(value) if value > high => "Above what is accepted.",
            Some(value) if value.is_nan() => "Not a number.",
            Some(_) => "Within the tolerance.",
        }
    }
}

/// How many claims came out how.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Tally {
    /// Claims that were reproduced.
    pub reproduced: usize,
    /// Claims from which the measurement differs.
    pub differs: usize,
    /// Claims without a measurement.
    pub not_measured: usize,
}

impl Tally {
    /// Counts `claims`.
    #[must_use]
    pub fn of(claims: &[Judged]) -> Self {
        let mut tally = Self::default();
        for claim in claims {
            match claim.judgement() {
                Judgement::Reproduced => tally.reproduced += 1,
                Judgement::Differs => tally.differs += 1,
                Judgement::NotMeasured => tally.not_measured += 1,
            }
        }
        tally
    }

    /// The number of claims.
    #[must_use]
    pub const fn all(self) -> usize {
        self.reproduced + self.differs + self.not_measured
    }
}

/// The claims as a table: what was published beside what was measured. What is known of differences
/// stands in its notes.
#[must_use]
pub fn table(claims: &[Judged]) -> Table {
    let mut table = Table::new([
        Column::text("source", "Source"),
        Column::text("statement", "Statement"),
        Column::text("published", "Published"),
        Column::text("accepted", "Accepted"),
        Column::text("measured", "Measured"),
        Column::quantity("runs", "Runs", Unit::Count),
        Column::text("judgement", "Judgement"),
        Column::text("why", "Why"),
    ]);
    let mut departures = Departures::default();
    for judged in claims {
        let Judged { claim, measured } = judged;
        let judgement = judged.judgement();
        table.push([
            Cell::from(format!("{}, {}", claim.source.work, claim.source.place)),
            Cell::from(claim.statement.as_ref()),
            Cell::from(claim.published.show(claim.unit)),
            Cell::from(claim.show_accepted()),
            Cell::from(measured.map(|measured| measured.show(claim.unit))),
            Cell::from(measured.map_or(0, |measured| measured.count as u64)),
            Cell::from(judgement.word()).tone(judgement.tone()),
            Cell::from(match departures.refer(judged) {
                Some(departure) => format!("{} See {departure}.", judged.reason()),
                None => judged.reason().to_owned(),
            }),
        ]);
    }
    departures.note(&mut table);
    table
}

impl Serialize for Judged {
    /// `{"source", "statement", "unit", "accepted": [LOW, HIGH], "measured",
    /// "standard_deviation", "count", "judgement", "why"}`; a missing bound or value is `null`.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (low, high) = self.claim.accepted();
        let source = format!("{}, {}", self.claim.source.work, self.claim.source.place);
        let mut claim = serializer.serialize_struct("Judged", 9)?;
        claim.serialize_field("source", &source)?;
        claim.serialize_field("statement", &self.claim.statement)?;
        claim.serialize_field("unit", self.claim.unit.symbol())?;
        claim.serialize_field("accepted", &[low, high])?;
        claim.serialize_field("measured", &self.measured.map(|measured| measured.value))?;
        let deviation = self
            .measured
            .and_then(|measured| measured.standard_deviation);
        claim.serialize_field("standard_deviation", &deviation)?;
        claim.serialize_field("count", &self.measured.map_or(0, |measured| measured.count))?;
        claim.serialize_field("judgement", self.judgement().word())?;
        claim.serialize_field("why", &self.why())?;
        claim.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(published: Published, tolerance: Tolerance) -> Claim {
        Claim {
            source: Source {
                work: "A paper".into(),
                place: "table 1".into(),
            },
            statement: "Something is so.".into(),
            unit: Unit::Seconds,
            published,
            tolerance,
            departure: Some("another kernel.".into()),
        }
    }

    #[track_caller]
    fn judgement(published: Published, tolerance: Tolerance, value: f64) -> Judgement {
        claim(published, tolerance)
            .judge(Some(Measured::single(value)))
            .judgement()
    }

    #[test]
    fn the_bounds_themselves_are_accepted() {
        use Judgement::{Differs, Reproduced};
        use Published::{About, AtLeast, AtMost, Between};
        use Tolerance::{Absolute, Exact, Factor, Relative};
        let cases = [
            (About(2.0), Exact, 2.0, Reproduced),
            (About(2.0), Exact, 2.001, Differs),
            (About(2.0), Absolute(0.5), 1.5, Reproduced),
            (About(2.0), Absolute(0.5), 1.49, Differs),
            (About(-2.0), Relative(0.5), -3.0, Reproduced),
            (About(-2.0), Relative(0.5), -3.01, Differs),
            (About(2.0), Factor(2.0), 4.0, Reproduced),
            (About(2.0), Factor(2.0), 0.9, Differs),
            (AtLeast(2.0), Relative(0.25), 1.5, Reproduced),
            (AtLeast(2.0), Relative(0.25), 1e9, Reproduced),
            (AtLeast(2.0), Relative(0.25), 1.4, Differs),
            (AtMost(2.0), Exact, -5.0, Reproduced),
            (AtMost(2.0), Exact, f64::INFINITY, Differs),
            (Between(1.0, 2.0), Absolute(0.1), 2.05, Reproduced),
            (Between(1.0, 2.0), Absolute(0.1), 0.85, Differs),
            (AtMost(2.0), Exact, f64::NAN, Differs),
        ];
        for (published, tolerance, value, expected) in cases {
            let judged = judgement(published, tolerance, value);
            assert_eq!(judged, expected, "{published:?} {tolerance:?} {value}");
        }
    }

    #[test]
    fn no_measurement_is_no_judgement() {
        let judged = claim(Published::About(1.0), Tolerance::Exact).judge(None);
        assert_eq!(judged.judgement(), Judgement::NotMeasured);
        assert_eq!(judged.why(), "No run gave a value.");
        assert_eq!(
            Tally::of(&[judged]),
            Tally {
                not_measured: 1,
                ..Tally::default()
            }
        );
    }

    #[test]
    fn a_departure_is_only_told_where_it_matters() {
        let claim = claim(Published::AtMost(1.0), Tolerance::Absolute(0.5));
        let agrees = claim.judge(Some(Measured::single(1.2)));
        assert_eq!(agrees.why(), "Within the tolerance.");
        let differs = claim.judge(Some(Measured::single(7.0)));
        assert_eq!(
            differs.why(),
            "Above what is accepted. Known departure: another kernel."
        );
    }

    #[test]
    fn a_departure_stands_once_however_many_rows_differ() {
        let one = claim(Published::AtMost(1.0), Tolerance::Exact);
        let other = Claim {
            departure: Some("another channel.".into()),
            ..one.clone()
        };
        let at = |claim: &Claim, value| claim.judge(Some(Measured::single(value)));
        let claims = [at(&one, 2.0), at(&other, 2.0), at(&one, 0.5), at(&one, 3.0)];
        let shown = table(&claims).to_markdown();
        for departure in ["another kernel.", "another channel."] {
            assert_eq!(shown.matches(departure).count(), 1, "{shown}");
        }
        let why: Vec<&str> = shown
            .lines()
            .filter(|line| line.contains("A paper"))
            .filter_map(|line| line.split('|').nth(8).map(str::trim))
            .collect();
        let [first, second] = [1, 2].map(|n| format!("Above what is accepted. See departure {n}."));
        assert_eq!(why, [&*first, &second, "Within the tolerance.", &first]);
    }

    #[test]
    #[should_panic(expected = "is no tolerance")]
    fn a_factor_below_one_is_no_tolerance() {
        let _ = claim(Published::About(1.0), Tolerance::Factor(0.5)).accepted();
    }
}
