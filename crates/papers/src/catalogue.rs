//! Every figure, table and quantitative claim of the five works, each with what reproduces it.
//!
//! An entry is bound to a figure of an experiment, or says why it is not run. Tests hold the entries
//! against the experiments: no figure, table or experiment can be left out silently.

mod brown_singh;
mod caceres_iftode;
mod schuetz;
mod scott_mapp;
mod thesis;

use std::fmt::{self, Write as _};

/// A published work with all that it shows and claims.
#[derive(Debug)]
pub struct Work {
    /// Authors and year.
    pub cite: &'static str,
    /// Title.
    pub title: &'static str,
    /// The figures that the work numbers: its chapter, or none, and the last number.
    pub figures: &'static [(Option<u32>, u32)],
    /// The tables that the work numbers, likewise.
    pub tables: &'static [(Option<u32>, u32)],
    /// Figures, tables and claims in the order of the work.
    pub entries: &'static [Entry],
}

/// A figure, a table, or a claim with a number in it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Where it stands in the work, such as "Figure 5" or "Section 4.2".
    pub place: &'static str,
    /// What it shows or claims, with the published numbers.
    pub says: &'static str,
    /// What reproduces it.
    pub bound: Bound,
}

/// What reproduces an entry.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Bound {
    /// Figures of experiments of `outlast papers`, at least one: the names of the experiment and of the figure.
    Run(&'static [(&'static str, &'static str)]),
    /// Nothing, for this reason.
    NotRun(&'static str),
}

/// The five works, in the order of their years; the thesis, which names none, in the middle.
pub const WORKS: [&Work; 5] = [
    &caceres_iftode::WORK,
    &brown_singh::WORK,
    &thesis::WORK,
    &scott_mapp::WORK,
    &schuetz::WORK,
];

/// Figures of experiments that no work shows: Outlast's own, beside the published ones.
pub const BESIDE: [(&str, &str); 5] = [
    ("scott-mapp", "figure-hold"),
    ("scott-mapp-sim", "figure-hold"),
    ("scott-mapp-sim", "figure-stacks"),
    ("hip", "figure-12-today"),
    ("schuetz", "figure-12-linux-6"),
];

/// Drawings: nothing in them is measured.
const DRAWING: &str = "a drawing: nothing is measured";
/// What the work itself takes from elsewhere.
const CITED: &str = "cited from another work";
/// What follows from the given numbers without a measurement.
const RECKONED: &str = "a reckoning of the authors: nothing is measured";

const fn run(
    place: &'static str,
    says: &'static str,
    by: &'static [(&'static str, &'static str)],
) -> Entry {
    let bound = Bound::Run(by);
    Entry { place, says, bound }
}

const fn not_run(place: &'static str, says: &'static str, reason: &'static str) -> Entry {
    let bound = Bound::NotRun(reason);
    Entry { place, says, bound }
}

impl Entry {
    /// True if the entry says of a number that no claim holds a measurement against it.
    #[must_use]
    pub fn is_not_judged(&self) -> bool {
        self.says.contains("not judged")
    }
}

impl Work {
    /// How many entries an experiment reproduces.
    #[must_use]
    pub fn count_run(&self) -> usize {
        let is_run = |entry: &&Entry| !entry.bound.figures().is_empty();
        self.entries.iter().filter(is_run).count()
    }
}

impl Bound {
    /// The figures that reproduce it, with their experiments; none if it is not run.
    #[must_use]
    pub const fn figures(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Run(figures) => figures,
            Self::NotRun(_) => &[],
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run(figures) => {
                let named = figures
                    .iter()
                    .map(|(experiment, figure)| format!("{experiment}: {figure}"));
                f.write_str(&named.collect::<Vec<_>>().join(", "))
            }
            Self::NotRun(reason) => write!(f, "not run: {reason}"),
        }
    }
}

/// The catalogue as Markdown, for the page beside the pages of results.
#[must_use]
pub fn markdown() -> String {
    let mut text = String::new();
    for work in WORKS {
        let Work {
            cite,
            title,
            entries,
            ..
        } = work;
        let _ = write!(
            text,
            "\n### {cite}\n\n*{title}.* {} of {} entries are run.\n\n\
             | place | published | reproduced by |\n|---|---|---|\n",
            work.count_run(),
            entries.len(),
        );
        for Entry { place, says, bound } in *entries {
            let by = match bound {
                Bound::Run(figures) => {
                    let linked = figures.iter().map(|(experiment, figure)| {
                        format!("[{experiment}]({experiment}.md), `{figure}`")
                    });
                    linked.collect::<Vec<_>>().join("; ")
                }
                Bound::NotRun(_) => bound.to_string(),
            };
            let _ = writeln!(text, "| {place} | {says} | {by} |");
        }
    }
    text
}
