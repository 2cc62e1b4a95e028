//! Carrying an experiment out, and reporting what is stored.

use crate::batch::{self, BatchError, Gap, Plan, Progress};
use crate::experiment::{Experiment, Extent, Part};
use crate::job::Job;
use crate::page;
use crate::record::{Record, Runs};
use crate::store::{Meta, Store, StoreError};
use outlast_lab::Cancel;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// What the user asks for, and what only the caller knows.
#[derive(Clone, Debug)]
pub struct Order {
    /// How much is measured.
    pub extent: Extent,
    /// Where everything is stored.
    pub directory: PathBuf,
    /// How much goes on at once, see [`batch::CAPACITY`].
    pub capacity: u32,
    /// The version of Outlast.
    pub version: String,
    /// Today, as people write dates.
    pub date: String,
    /// The command that repeats it.
    pub command: String,
    /// Only the runs whose cell's name contains each of these, anew; all others stay as they are
    /// stored. Empty: all runs.
    pub only: Vec<String>,
}

/// What an experiment has to show.
#[derive(Clone, Debug)]
pub struct Shown {
    /// A part for each figure.
    pub parts: Vec<Part>,
    /// The report.
    pub page: PathBuf,
    /// What they belong to.
    pub meta: Meta,
}

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The runs ended early. What was done is stored, and the same order goes on from there.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The stored runs cannot be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nothing is stored.
    #[error("nothing is stored in {} for {experiment} ({})", directory.display(), extent.name())]
    Nothing {
        /// Of which experiment.
        experiment: &'static str,
        /// In which extent.
        extent: Extent,
        /// Where.
        directory: PathBuf,
    },
}

impl RunError {
    /// Whether this machine lacks something, rather than a run having failed.
    #[must_use]
    pub fn is_missing_capability(&self) -> bool {
        matches!(self, Self::Batch(error) if error.is_missing_capability())
    }
}

/// Carries `experiment` out and writes its report.
///
/// Runs of an experiment that was interrupted are not repeated if scenario, seed and version are
/// the same; one that was complete is carried out anew.
///
/// # Errors
/// When a run fails, the user asks for an end, or something cannot be stored.
pub fn run(
    experiment: &'static Experiment,
    order: &Order,
    cancel: &Cancel,
    mut progress: impl FnMut(&Progress),
) -> Result<Shown, RunError> {
    let store = Store::new(&order.directory, experiment.name, order.extent);
    let jobs = experiment.jobs(order.extent);
    let before = match order.only.is_empty() {
        true => unfinished(&store, &order.version)?,
        false => order.others(&store)?,
    };
    let before = belonging(experiment, order.extent, before);
    let known: BTreeSet<String> = before
        .iter()
        .map(|record| record.fingerprint.clone())
        .collect();
    let is_known = |job: &&Job| known.contains(&job.fingerprint());
    let is_left = |job: &&Job| !is_known(job) && order.is_wanted(&job.cell);
    let is_all = jobs.iter().all(|job| is_known(&job) || is_left(&job));
    let left: Vec<Job> = jobs.iter().filter(is_left).cloned().collect();
    let mut meta = Meta {
        experiment: experiment.name.to_owned(),
        extent: order.extent,
        version: order.version.clone(),
        date: order.date.clone(),
        command: order.command.clone(),
        capacity: order.capacity,
        complete: false,
        missing: Vec::new(),
    };
    store.set_meta(&meta)?;
    let mut appending = store.append_to(&before)?;
    let plan = Plan {
        capacity: order.capacity,
        version: order.version.clone(),
    };
    let mut done = before.len();
    let mut finished = |record: &Record| appending.push(record);
    let mut gaps = batch::run(left, done, &plan, cancel, &mut finished, &mut progress)?;
    let runs = Store::belonging(store.records()?, &jobs);
    done = done.max(runs.len());
    let further = experiment.further_jobs(order.extent, &Runs::new(runs));
    let further: Vec<Job> = further.iter().filter(is_left).cloned().collect();
    if !further.is_empty() {
        gaps.extend(batch::run(
            further, done, &plan, cancel, finished, progress,
        )?);
    }
    meta.complete = is_all;
    meta.missing = reasons(&gaps);
    store.set_meta(&meta)?;
    report(experiment, order.extent, &order.directory)
}

/// Writes the report of what is stored, without carrying anything out.
///
/// # Errors
/// When nothing is stored, or it cannot be read.
pub fn report(
    experiment: &'static Experiment,
    extent: Extent,
    directory: &Path,
) -> Result<Shown, RunError> {
    let store = Store::new(directory, experiment.name, extent);
    let Some(meta) = store.meta()? else {
        let directory = directory.to_owned();
        return Err(RunError::Nothing {
            experiment: experiment.name,
            extent,
            directory,
        });
    };
    let runs = Runs::new(belonging(experiment, extent, store.records()?));
    let parts = experiment.present(extent, &runs);
    let html = page::page(experiment, &meta, &runs, &parts).to_html();
    Ok(Shown {
        parts,
        page: store.set_page(&html)?,
        meta,
    })
}

impl Order {
    /// Whether the runs of this cell are carried out.
    #[must_use]
    pub fn is_wanted(&self, cell: &str) -> bool {
        self.only.iter().all(|text| cell.contains(text))
    }

    /// The stored runs of the same version that are not to be carried out.
    fn others(&self, store: &Store) -> Result<Vec<Record>, StoreError> {
        let mut records = store.records()?;
        records.retain(|record| record.version == self.version && !self.is_wanted(&record.cell));
        Ok(records)
    }
}

/// The runs of an earlier, interrupted process of the same version.
fn unfinished(store: &Store, version: &str) -> Result<Vec<Record>, StoreError> {
    match store.meta()? {
        Some(meta) if !meta.complete && meta.version == version => {
            let mut records = store.records()?;
            records.retain(|record| record.version == version);
            Ok(records)
        }
        _ => Ok(Vec::new()),
    }
}

/// The records of the experiment's runs, and of those further ones that these ask for.
fn belonging(experiment: &Experiment, extent: Extent, records: Vec<Record>) -> Vec<Record> {
    let mut all = Store::belonging(records.clone(), &experiment.jobs(extent));
    let further = experiment.further_jobs(extent, &Runs::new(all.clone()));
    all.extend(Store::belonging(records, &further));
    all
}

/// Each reason once.
fn reasons(gaps: &[Gap]) -> Vec<String> {
    let mut reasons: Vec<String> = Vec::new();
    for gap in gaps {
        if !reasons.contains(&gap.reason) {
            reasons.push(gap.reason.clone());
        }
    }
    reasons
}
