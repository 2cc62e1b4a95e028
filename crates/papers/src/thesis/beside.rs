//! Published numbers beside ours.

use outlast_experiments::experiment::Part;
use outlast_report::judgement::{Claim, Departures, Judged, Judgement, Measured, Published, Tally};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table, Tone};

/// A published number and what our runs make of it.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What tells it from the others, in the first columns.
    pub labels: Vec<Cell>,
    /// The published number.
    pub claim: Claim,
    /// Our number; `None` if no run gave one.
    pub ours: Option<Sample>,
}

/// `part` with the table of `rows`, whose first columns are `labels`, and their judgements. The table
/// has all that a list of claims has, in the order of the publication.
#[must_use]
pub fn beside(
    part: Part,
    title: impl Into<String>,
    labels: Vec<Column>,
    rows: Vec<Beside>,
) -> Part {
    beside_reference(part, title, "Published", labels, rows)
}

/// `part` with a table that says what `rows` work out to, and judges nothing.
///
/// For numbers that a formula gives on both sides: no run can make them differ.
#[must_use]
pub fn arithmetic(
    part: Part,
    title: impl Into<String>,
    labels: Vec<Column>,
    rows: Vec<Beside>,
) -> Part {
    let note = "Arithmetic: nothing is measured, and nothing is judged.";
    shown(part, title, labels, rows, "Stated", false, note)
}

/// `part` with a table of `rows` that judges nothing, for the reason in `note`.
///
/// For published numbers that the model is built from.
#[must_use]
pub fn unjudged(
    part: Part,
    title: impl Into<String>,
    labels: Vec<Column>,
    rows: Vec<Beside>,
    note: &str,
) -> Part {
    let is_spread = is_spread(&rows);
    shown(part, title, labels, rows, "Published", is_spread, note)
}

fn shown(
    part: Part,
    title: impl Into<String>,
    labels: Vec<Column>,
    rows: Vec<Beside>,
    reference: &str,
    is_spread: bool,
    note: &str,
) -> Part {
    let mut columns = labels;
    columns.extend(columns_of_numbers(reference, is_spread));
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = row.labels;
        cells.extend(numbers(&row.claim, row.ours, is_spread));
        // The last one is what is accepted.
        cells.pop();
        table.push(cells);
    }
    table.note(note);
    part.table(table.titled(title))
}

/// Whether a number is of several runs: a single run has no spread.
fn is_spread(rows: &[Beside]) -> bool {
    rows.iter()
        .any(|row| row.ours.is_some_and(|ours| ours.count > 1))
}

/// The columns of [`numbers`] but for what is accepted.
fn columns_of_numbers(reference: &str, is_spread: bool) -> Vec<Column> {
    let mut columns = vec![
        Column::text(reference.to_lowercase(), reference),
        Column::text("ours", "Ours"),
    ];
    if is_spread {
        columns.extend([
            Column::text("least", "Least"),
            Column::text("greatest", "Greatest"),
            Column::text("runs", "Runs"),
        ]);
    }
    columns.push(Column::text("difference", "Difference"));
    columns
}

/// `part` with the table of `rows` beside a `reference`, such as "Model".
#[must_use]
pub fn beside_reference(
    mut part: Part,
    title: impl Into<String>,
    reference: &str,
    labels: Vec<Column>,
    rows: Vec<Beside>,
) -> Part {
    let mut columns = labels;
    let is_spread = is_spread(&rows);
    columns.extend(columns_of_numbers(reference, is_spread));
    columns.extend([
        Column::text("accepted", "Accepted"),
        Column::text("judgement", "Judgement"),
    ]);
    let mut table = Table::new(columns);
    let mut claims = Vec::new();
    let mut departures = Departures::default();
    for Beside {
        labels,
        claim,
        ours,
    } in rows
    {
        let judged = claim.judge(ours.map(measured));
        let mut row = labels;
        row.extend(numbers(&claim, ours, is_spread));
        row.push(word(&judged, &mut departures));
        table.push(row);
        claims.push(judged);
    }
    let tally = Tally::of(&claims);
    let (reproduced, all) = (tally.reproduced, tally.all());
    table.note(format!("{reproduced} of {all} reproduced."));
    departures.note(&mut table);
    part = part.table(table.titled(title));
    part.claims.extend(claims);
    part
}

/// The sample as a measurement. Equal values have a deviation of zero, whatever the rounding of
/// their mean makes of it.
fn measured(ours: Sample) -> Measured {
    let mut measured = Measured::from(ours);
    if ours.greatest - ours.least < NOTHING {
        measured.standard_deviation = measured.standard_deviation.map(|_| 0.0);
    }
    measured
}

/// Less than every number here is given to.
const NOTHING: f64 = 1e-9;

fn numbers(claim: &Claim, ours: Option<Sample>, is_spread: bool) -> Vec<Cell> {
    let show = |value| Cell::from(claim.unit.show(value));
    let (published, reference) = match claim.published {
        Published::About(value) => (claim.unit.show_exact(value), Some(value)),
        Published::AtLeast(value) => (format!("≥ {}", claim.unit.show_exact(value)), None),
        Published::AtMost(value) => (format!("≤ {}", claim.unit.show_exact(value)), None),
        Published::Between(low, high) => {
            let [low, high] = [low, high].map(|value| claim.unit.show_exact(value));
            (format!("{low} to {high}"), None)
        }
    };
    let difference = ours
        .zip(reference)
        .map(|(ours, published)| match ours.mean - published {
            difference if difference.abs() < NOTHING => "0".to_owned(),
            difference if difference < 0.0 => format!("−{}", claim.unit.show(-difference)),
            difference => format!("+{}", claim.unit.show(difference)),
        });
    let of_ours = |of: fn(Sample) -> f64| ours.map_or_else(Cell::missing, |ours| show(of(ours)));
    let mut cells = vec![Cell::from(published), of_ours(|ours| ours.mean)];
    if is_spread {
        cells.extend([of_ours(|ours| ours.least), of_ours(|ours| ours.greatest)]);
        let runs = ours.map_or(0, |ours| ours.count);
        cells.push(Cell::from(runs.to_string()));
    }
    cells.extend([Cell::from(difference), Cell::from(accepted(claim))]);
    cells
}

fn accepted(claim: &Claim) -> String {
    let show = |value| claim.unit.show(value);
    match claim.accepted() {
        (low, high) if low == f64::NEG_INFINITY => format!("≤ {}", show(high)),
        (low, f64::INFINITY) => format!("≥ {}", show(low)),
        (low, high) if low == high => show(low),
        // Everything that is counted here is counted from zero on.
        (low, high) => format!("{} to {}", show(low.max(0.0)), show(high)),
    }
}

fn word(judged: &Judged, departures: &mut Departures) -> Cell {
    let judgement = judged.judgement();
    let word = match departures.refer(judged) {
        Some(departure) => format!("{} ({departure})", judgement.word()),
        None => judgement.word().to_owned(),
    };
    Cell::from(word).tone(match judgement {
        Judgement::Reproduced => Tone::Good,
        Judgement::Differs => Tone::Bad,
        Judgement::NotMeasured => Tone::Warning,
    })
}
