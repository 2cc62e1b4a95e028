//! What an experiment is.

use crate::job::Job;
use crate::record::Runs;
use outlast_report::judgement::Judged;
use outlast_report::page::{Highlight, Section};
use outlast_report::plot;
use outlast_report::table::Table;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Figures that are measured and presented together.
pub struct Experiment {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its title.
    pub title: &'static str,
    /// Where the figures are published.
    pub source: &'static str,
    /// What it measures, in a line.
    pub measures: &'static str,
    /// How it measures, in paragraphs.
    pub method: fn(Extent) -> Vec<String>,
    /// The figures, in the order of the report. They may share runs.
    pub figures: &'static [&'static dyn Figure],
}

/// A figure or table: the runs that it needs, and what it makes of them.
pub trait Figure: Sync {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// What it shows, in a line.
    fn title(&self) -> &'static str;

    /// The runs that it needs.
    fn jobs(&self, extent: Extent) -> Vec<Job>;

    /// More runs that it needs once those of [`Self::jobs`] are done: of cells, say, of which a single run
    /// leaves a claim in doubt. `runs` holds no run but those.
    fn further_jobs(&self, extent: Extent, runs: &Runs) -> Vec<Job> {
        let _ = (extent, runs);
        Vec::new()
    }

    /// True if its judgements depend on how fast this machine is: such are not recorded.
    fn depends_on_machine(&self) -> bool {
        false
    }

    /// What it shows of the runs that there are; some or all may be missing.
    fn present(&self, extent: Extent, runs: &Runs) -> Part;
}

/// How much is measured.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// Enough to see whether a claim holds, in minutes.
    #[default]
    Quick,
    /// The publication's own parameters.
    Full,
}

/// What a figure shows: a section of the page, and the same tables and claims for a terminal.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// The section of the page.
    pub section: Section,
    /// Its tables.
    pub tables: Vec<Table>,
    /// Its claims, judged.
    pub claims: Vec<Judged>,
    /// Claims that stand in lists of their own, not in the part's tables.
    pub listed: Vec<Judged>,
    /// Numbers for the head of the page.
    pub highlights: Vec<Highlight>,
}

/// The experiment of this name among `all`.
#[must_use]
pub fn named(all: &[&'static Experiment], name: &str) -> Option<&'static Experiment> {
    all.iter()
        .copied()
        .find(|experiment| experiment.name == name)
}

impl Experiment {
    /// The runs that its figures need, each once.
    #[must_use]
    pub fn jobs(&self, extent: Extent) -> Vec<Job> {
        each_once(self.figures.iter().flat_map(|figure| figure.jobs(extent)))
    }

    /// The runs that its figures need besides [`Self::jobs`], each once, now that `runs` of those are done.
    #[must_use]
    pub fn further_jobs(&self, extent: Extent, runs: &Runs) -> Vec<Job> {
        let further = |figure: &&dyn Figure| figure.further_jobs(extent, runs);
        each_once(self.figures.iter().flat_map(further))
    }

    /// What its figures show of `runs`.
    #[must_use]
    pub fn present(&self, extent: Extent, runs: &Runs) -> Vec<Part> {
        self.figures
            .iter()
            .map(|figure| figure.present(extent, runs))
            .collect()
    }
}

fn each_once(all: impl Iterator<Item = Job>) -> Vec<Job> {
    let mut jobs: Vec<Job> = Vec::new();
    for job in all {
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    }
    jobs
}

impl fmt::Debug for Experiment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Experiment")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Extent {
    /// `quick` or `full`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Full => "full",
        }
    }

    /// One of two values.
    #[must_use]
    pub fn choose<T>(self, quick: T, full: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Full => full,
        }
    }
}

impl Part {
    /// One without content.
    #[must_use]
    pub fn new(heading: impl Into<String>) -> Self {
        Self {
            section: Section::new(heading),
            tables: Vec::new(),
            claims: Vec::new(),
            listed: Vec::new(),
            highlights: Vec::new(),
        }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn paragraph(mut self, text: impl Into<String>) -> Self {
        self.section = self.section.paragraph(text);
        self
    }

    /// Adds a table.
    #[must_use]
    pub fn table(mut self, table: Table) -> Self {
        self.section = self.section.table(table.clone());
        self.tables.push(table);
        self
    }

    /// Adds a plot, for the page only.
    #[must_use]
    pub fn figure(mut self, figure: plot::Figure, caption: impl Into<String>) -> Self {
        self.section = self.section.figure(figure, caption);
        self
    }

    /// Adds a list of claims.
    #[must_use]
    pub fn claims(mut self, claims: Vec<Judged>) -> Self {
        if !claims.is_empty() {
            self.section = self.section.claims(claims.clone());
            self.claims.extend(claims.clone());
            self.listed.extend(claims);
        }
        self
    }

    /// Adds a number for the head of the page.
    #[must_use]
    pub fn highlight(mut self, highlight: Highlight) -> Self {
        self.highlights.push(highlight);
        self
    }
}
