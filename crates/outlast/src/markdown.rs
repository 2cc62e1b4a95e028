//! An experiment's tables and claims as Markdown, for a repository.

use outlast_experiments::experiment::Experiment;
use outlast_experiments::run::Shown;
use outlast_report::judgement;
use outlast_scenario::result::World;
use std::fmt::Write as _;

/// The page: how it was measured, then every table, then the claims that no table has.
pub(crate) fn page(experiment: &Experiment, shown: &Shown) -> String {
    let meta = &shown.meta;
    let mut text = format!("# {}\n\n", experiment.title);
    for paragraph in (experiment.method)(meta.extent) {
        let _ = writeln!(text, "{paragraph}\n");
    }
    let jobs = experiment.jobs(meta.extent);
    let is_in = |world| jobs.iter().any(|job| job.world == world);
    let kernel = || format!("Linux {}", outlast_linux::kernel_release());
    let (world, at_once) = if is_in(World::Lab) {
        (kernel(), format!(" ({} runs at once)", meta.capacity))
    } else if is_in(World::Live) {
        let sites = meta.capacity.div_ceil(2);
        (kernel(), format!(" ({sites} sites at once)"))
    } else {
        ("in virtual time".to_owned(), String::new())
    };
    let _ = writeln!(
        text,
        "Measured on {} with Outlast {}, {world}, by `{}`{at_once}.\n",
        meta.date, meta.version, meta.command,
    );
    for missing in &meta.missing {
        let _ = writeln!(text, "Runs that this machine cannot do: {missing}.\n");
    }
    for part in &shown.parts {
        for table in &part.tables {
            let _ = writeln!(text, "{}", table.to_markdown());
        }
    }
    let claims: Vec<_> = shown
        .parts
        .iter()
        .flat_map(|part| part.listed.clone())
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
