//! `--check`, `--strict` and `--record`: judgements against those that are recorded.

use super::Shelf;
use crate::failure::Failure;
use crate::labs;
use anyhow::{Context, anyhow};
use outlast_experiments::experiment::{Experiment, Extent};
use outlast_experiments::recorded::{Found, Recorded};
use outlast_experiments::run::Shown;
use outlast_report::judgement::{Judged, Judgement};
use std::path::PathBuf;

/// Demands on the judgements.
#[derive(Debug, clap::Args)]
pub(super) struct JudgementArguments {
    /// Exit with code 1 if a judgement is not the recorded one, or a claim is new or gone. Of trials
    /// nothing is recorded: there it is --strict.
    #[arg(long)]
    check: bool,

    /// Exit with code 1 if a claim is not reproduced, or not measured.
    #[arg(long)]
    strict: bool,

    /// Write the judgements to DIR, as a build with these files has them recorded
    /// (crates/papers/judgements in the source).
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    record: Option<PathBuf>,
}

impl JudgementArguments {
    /// Refuses what cannot be had of `experiment`, before anything is measured.
    pub(super) fn refuse_impossible(
        &self,
        shelf: &Shelf,
        experiment: &Experiment,
        extent: Extent,
    ) -> Result<(), Failure> {
        match &self.record {
            Some(_) if shelf.recorded.is_none() => Err(Failure::Usage(format!(
                "of {} nothing is recorded: --check wants every claim of a trial reproduced; leave --record out",
                experiment.name
            ))),
            Some(directory) => labs::make_directory(directory, "--record"),
            None => self.recorded(shelf, experiment, extent).map(drop),
        }
    }

    /// The judgements that `--check` holds the others against; `None` if it does not, or none are kept of such experiments.
    fn recorded(
        &self,
        shelf: &Shelf,
        experiment: &Experiment,
        extent: Extent,
    ) -> Result<Option<Recorded>, Failure> {
        let Some(recorded) = shelf.recorded.filter(|_| self.check) else {
            return Ok(None);
        };
        recorded(experiment.name, extent).map(Some).ok_or_else(|| {
            Failure::Usage(format!(
                "nothing is recorded of {} --{}: record it with --record DIR and name the file in \
                 crates/papers/src/judgements.rs, or use --strict",
                experiment.name,
                extent.name()
            ))
        })
    }

    /// Records or checks the judgements that are shown; `is_partial` if only some cells were measured.
    pub(super) fn apply(
        &self,
        shelf: &Shelf,
        experiment: &Experiment,
        shown: &Shown,
        is_partial: bool,
    ) -> Result<(), Failure> {
        if let Some(directory) = &self.record {
            record(directory, experiment, shown)?;
        }
        if let Some(recorded) = self.recorded(shelf, experiment, shown.meta.extent)? {
            check(&recorded, experiment, shown, is_partial)?;
        }
        if self.strict || self.check && shelf.recorded.is_none() {
            strict(shown, is_partial)?;
        }
        Ok(())
    }
}

/// Writes the judgements as a file of the repository.
fn record(
    directory: &std::path::Path,
    experiment: &Experiment,
    shown: &Shown,
) -> Result<(), Failure> {
    let extent = shown.meta.extent.name();
    if !shown.meta.complete {
        return Err(anyhow!("not every run is there: nothing is recorded").into());
    }
    let command = format!(
        "outlast papers run {} --{extent} --record {}",
        experiment.name,
        directory.display()
    );
    let file = directory.join(format!("{}-{extent}.txt", experiment.name));
    let text = Recorded::of(experiment, &shown.parts).to_text(&command);
    std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(())
}

/// Holds the judgements against those that are recorded, and names each that has changed.
fn check(
    recorded: &Recorded,
    experiment: &Experiment,
    shown: &Shown,
    is_partial: bool,
) -> Result<(), Failure> {
    let changes = recorded.changes(&Recorded::of(experiment, &shown.parts));
    if changes.is_empty() {
        return Ok(());
    }
    let mut message = format!("{} judgements are not as recorded:", changes.len());
    for change in &changes {
        message.push_str(&format!("\n  {change}"));
    }
    if changes
        .iter()
        .any(|change| change.now == Some(Found::NotMeasured))
    {
        message.push_str(&format!("\n{}", remedy(is_partial)));
    }
    Err(anyhow!(message).into())
}

/// A claim of which nothing was measured is not reproduced: a check that measures nothing cannot fail.
fn strict(shown: &Shown, is_partial: bool) -> Result<(), Failure> {
    let claims = shown.parts.iter().flat_map(|part| &part.claims);
    let of = |wanted| move |claim: &&Judged| claim.judgement() == wanted;
    let differ = claims.clone().filter(of(Judgement::Differs)).count();
    let missing: Vec<_> = claims.clone().filter(of(Judgement::NotMeasured)).collect();
    match (differ, missing.first()) {
        (0, None) if claims.count() > 0 => Ok(()),
        (0, None) => Err(anyhow!("nothing was measured of which there is a claim").into()),
        (differ, None) => Err(anyhow!("{differ} claims are not reproduced").into()),
        (differ, Some(first)) => Err(anyhow!(
            "{differ} claims are not reproduced, and {} not measured, as {:?}; {}",
            missing.len(),
            first.claim().statement,
            remedy(is_partial)
        )
        .into()),
    }
}

/// The way to measure the claims that were not.
fn remedy(is_partial: bool) -> &'static str {
    match is_partial {
        true => {
            "leave --only out, or have it name cells of which these claims speak as well; what is \
             measured by then is kept"
        }
        false => {
            "no run gave a value that can be judged: carry the experiment out on a machine with less \
             to do and everything that it needs, and with another --out, as what is stored is kept"
        }
    }
}
