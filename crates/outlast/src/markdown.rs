//! An experiment's tables and claims as Markdown, for a repository.

use outlast_papers::Experiment;
use outlast_papers::run::Shown;
use outlast_report::judgement;
use outlast_scenario::result::World;
use std::fmt::Write as _;

/// The page: how it was measured, then every table, then every claim.
pub(crate) fn page(experiment: &Experiment, shown: &Shown) -> String {
    let meta = &shown.meta;
    let mut text = format!("# {}\n\n", experiment.title);
    for paragraph in (experiment.method)(meta.extent) {
        let _ = writeln!(text, "{paragraph}\n");
    }
    let jobs = experiment.jobs(meta.extent);
    let (world, at_once) = if jobs.iter().any(|job| job.world == World::Lab) {
        let kernel = format!("Linux {}", outlast_linux::kernel_release());
        (kernel, format!(" ({} runs at once)", meta.capacity))
    } else {
        ("in virtual time".to_owned(), String::new())
    };
    let _ = writeln!(
        text,
        "Measured on {} with Outlast {}, {world}, by `{}`{at_once}.\n",
        meta.date, meta.version, meta.command,
    );
    for part in &shown.parts {
        for table in &part.tables {
            let _ = writeln!(text, "{}", table.to_markdown());
        }
    }
    let claims: Vec<_> = shown
        .parts
        .iter()
        .flat_map(|part| part.claims.clone())
        .collect();
    if !claims.is_empty() {
        let _ = writeln!(
            text,
            "## Claims\n\n{}",
            judgement::table(&claims).to_markdown()
        );
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
