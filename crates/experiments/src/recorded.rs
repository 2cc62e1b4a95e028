//! The judgements of an experiment as a repository keeps them, and what has changed since.
//!
//! A file has a line for each claim, below its figure's name:
//!
//! ```text
//! [figure-05]
//! reproduced    section IV.B: The timer fires once.
//! unexplained   section IV.B: The pause is this long.
//! ```

use crate::experiment::{Experiment, Figure, Part};
use outlast_report::judgement::{Departure, Judged, Judgement};
use std::fmt::{self, Write as _};

/// The judgements of an experiment's claims.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Recorded(Vec<Row>);

/// A claim and what was found.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Row {
    figure: String,
    /// Place and statement, which tell the claim from every other one of the figure.
    claim: String,
    found: Found,
}

/// The judgement of a claim, and whether a difference has its reason.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Found {
    /// The measurement lies within the tolerance.
    Reproduced,
    /// It does not, for a known reason.
    Differs,
    /// It does not, and no reason is known.
    Unexplained,
    /// There is no measurement.
    NotMeasured,
}

/// A claim whose judgement is not as recorded.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Change {
    /// Figure, place and statement.
    pub claim: String,
    /// The recorded judgement; `None` of a claim that is new.
    pub recorded: Option<Found>,
    /// The judgement now; `None` of a claim that is gone.
    pub now: Option<Found>,
}

/// A line that is neither a figure nor a judgement.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("line {line}: neither a figure in brackets nor a judgement with its claim")]
pub struct ParseError {
    /// The line, counted from one.
    pub line: usize,
}

impl Recorded {
    /// The judgements in `parts`, of which `experiment` has one for each figure; without those that depend on
    /// the machine.
    #[must_use]
    pub fn of(experiment: &Experiment, parts: &[Part]) -> Self {
        let rows = |(figure, part): (&&dyn Figure, &Part)| {
            let figure = figure.name();
            let row = |judged: &Judged| Row {
                figure: figure.to_owned(),
                claim: name(judged),
                found: Found::of(judged),
            };
            part.claims.iter().map(row).collect::<Vec<_>>()
        };
        let figures = experiment.figures.iter().zip(parts);
        let recorded = figures.filter(|(figure, _)| !figure.depends_on_machine());
        Self(recorded.flat_map(rows).collect())
    }

    /// The judgements in a file that [`Self::to_text`] wrote.
    ///
    /// # Errors
    /// At the first line that is of no known form.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut figure = None;
        let mut rows = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                figure = Some(name);
                continue;
            }
            let row = figure.and_then(|figure| Row::parse(figure, line));
            rows.push(row.ok_or(ParseError { line: index + 1 })?);
        }
        Ok(Self(rows))
    }

    /// The judgements as a file that `command` wrote.
    #[must_use]
    pub fn to_text(&self, command: &str) -> String {
        let mut text = format!("# Written by `{command}`.\n");
        let mut figure = "";
        for row in &self.0 {
            if row.figure != figure {
                figure = &row.figure;
                let _ = writeln!(text, "\n[{figure}]");
            }
            let _ = writeln!(text, "{:13} {}", row.found.word(), row.claim);
        }
        text
    }

    /// Every claim whose judgement `now` is another one, that is gone, or that is new.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<Change> {
        let mut changes = Vec::new();
        for row in &self.0 {
            let now = now.find(row).map(|row| row.found);
            if now != Some(row.found) {
                changes.push(row.change(Some(row.found), now));
            }
        }
        let new = now.0.iter().filter(|row| self.find(row).is_none());
        changes.extend(new.map(|row| row.change(None, Some(row.found))));
        changes
    }

    /// The number of claims of which this was found.
    #[must_use]
    pub fn count(&self, found: Found) -> usize {
        self.0.iter().filter(|row| row.found == found).count()
    }

    /// The claims, by figure, place and statement, in the order of the report.
    pub fn claims(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(Row::name)
    }

    /// The row of the same claim.
    fn find(&self, wanted: &Row) -> Option<&Row> {
        let mut rows = self.0.iter();
        rows.find(|row| (&row.figure, &row.claim) == (&wanted.figure, &wanted.claim))
    }
}

/// Place and statement of a claim, in a line.
fn name(judged: &Judged) -> String {
    let claim = judged.claim();
    let statement = claim.statement.split_whitespace();
    format!(
        "{}: {}",
        claim.source.place,
        statement.collect::<Vec<_>>().join(" ")
    )
}

impl Row {
    fn parse(figure: &str, line: &str) -> Option<Self> {
        let (word, claim) = line.split_once(' ')?;
        let found = Found::ALL.into_iter().find(|found| found.word() == word)?;
        Some(Self {
            figure: figure.to_owned(),
            claim: claim.trim_start().to_owned(),
            found,
        })
    }

    fn name(&self) -> String {
        format!("{}, {}", self.figure, self.claim)
    }

    fn change(&self, recorded: Option<Found>, now: Option<Found>) -> Change {
        Change {
            claim: self.name(),
            recorded,
            now,
        }
    }
}

impl Found {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Reproduced,
        Self::Differs,
        Self::Unexplained,
        Self::NotMeasured,
    ];

    /// The finding on `judged`.
    #[must_use]
    pub fn of(judged: &Judged) -> Self {
        match judged.judgement() {
            Judgement::Reproduced => Self::Reproduced,
            Judgement::Differs if judged.departure().is_some_and(Departure::is_known) => {
                Self::Differs
            }
            Judgement::Differs => Self::Unexplained,
            Judgement::NotMeasured => Self::NotMeasured,
        }
    }

    /// One word for a file.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::Unexplained => "unexplained",
            Self::NotMeasured => "not-measured",
        }
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reproduced => "reproduced",
            Self::Differs => "differs",
            Self::Unexplained => "differs, not explained",
            Self::NotMeasured => "not measured",
        })
    }
}

impl fmt::Display for Change {
    /// The claim, the recorded judgement and the one now.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let say = |found: Option<Found>, none: &str| {
            found.map_or_else(|| none.to_owned(), |found| found.to_string())
        };
        let recorded = say(self.recorded, "no such claim");
        let now = say(self.now, "no such claim");
        write!(f, "{} Recorded: {recorded}. Now: {now}.", self.claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Written by `outlast`.\n\n[figure-1]\nreproduced    section 1: It ends.\n\
        unexplained   section 1: It begins.\n\n[figure-2]\nnot-measured  section 1: It ends.\n";

    fn recorded(text: &str) -> Recorded {
        Recorded::parse(text).expect("a file of ours")
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(recorded(TEXT).to_text("outlast"), TEXT);
        assert_eq!(recorded(TEXT).count(Found::Unexplained), 1);
    }

    #[test]
    fn a_line_of_another_form_is_named() {
        for (text, line) in [
            ("reproduced a: b", 1),
            ("[a]\nrefuted a: b", 2),
            ("[a]\n\nrefuted", 3),
        ] {
            assert_eq!(Recorded::parse(text), Err(ParseError { line }), "{text}");
        }
    }

    #[test]
    fn every_change_is_named_in_either_direction() {
        let now = TEXT
            .replace("reproduced ", "differs    ")
            .replace("unexplained", "reproduced ")
            .replace("[figure-2]", "[figure-3]");
        let changes = recorded(TEXT).changes(&recorded(&now));
        let said: Vec<_> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(
            said,
            [
                "figure-1, section 1: It ends. Recorded: reproduced. Now: differs.",
                "figure-1, section 1: It begins. Recorded: differs, not explained. Now: reproduced.",
                "figure-2, section 1: It ends. Recorded: not measured. Now: no such claim.",
                "figure-3, section 1: It ends. Recorded: no such claim. Now: not measured.",
            ]
        );
        assert_eq!(recorded(TEXT).changes(&recorded(TEXT)), []);
    }
}
