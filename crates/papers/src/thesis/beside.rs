//! Published numbers beside ours.

use outlast_report::judgement::{Claim, Judged, Judgement, Measured, Published};
use outlast_report::statistics::Sample;
use outlast_report::table::{Cell, Column, Table, Tone};

/// A published number and what our runs make of it.
#[derive(Clone, Debug)]
pub struct Beside {
    /// What tells it from the others, in the first columns.
    pub labels: Vec<Cell>,
    /// The published number.
    pub claim: Claim,
    /// Ours; `None` if no run gave one.
    pub ours: Option<Sample>,
}

/// The table of `rows`, whose first columns are `labels`, and the judgements.
#[must_use]
pub fn beside(labels: Vec<Column>, rows: Vec<Beside>) -> (Table, Vec<Judged>) {
    let mut columns = labels;
    columns.extend([
        Column::text("published", "Published"),
        Column::text("ours", "Ours"),
        Column::text("least", "Least"),
        Column::text("greatest", "Greatest"),
        Column::text("difference", "Difference"),
        Column::text("judgement", "Judgement"),
    ]);
    let mut table = Table::new(columns);
    let mut claims = Vec::new();
    for Beside {
        labels,
        claim,
        ours,
    } in rows
    {
        let judged = claim.judge(ours.map(measured));
        let mut row = labels;
        row.extend(numbers(&claim, ours));
        row.push(word(judged.judgement()));
        table.push(row);
        claims.push(judged);
    }
    (table, claims)
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

fn numbers(claim: &Claim, ours: Option<Sample>) -> [Cell; 5] {
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
    [
        Cell::from(published),
        ours.map_or_else(Cell::missing, |ours| show(ours.mean)),
        ours.map_or_else(Cell::missing, |ours| show(ours.least)),
        ours.map_or_else(Cell::missing, |ours| show(ours.greatest)),
        Cell::from(difference),
    ]
}

fn word(judgement: Judgement) -> Cell {
    Cell::from(judgement.word()).tone(match judgement {
        Judgement::Reproduced => Tone::Good,
        Judgement::Differs => Tone::Bad,
        Judgement::NotMeasured => Tone::Warning,
    })
}
