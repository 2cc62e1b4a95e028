//! An experiment's tables and claims as Markdown, for a repository.

use outlast_papers::Experiment;
use outlast_papers::run::Shown;
use outlast_report::judgement;
use std::fmt::Write as _;

/// The page: how it was measured, then every table, then every claim.
pub(crate) fn page(experiment: &Experiment, shown: &Shown) -> String {
    let meta = &shown.meta;
    let mut text = format!("# {}\n\n", experiment.title);
    for paragraph in (experiment.method)(meta.extent) {
        let _ = writeln!(text, "{paragraph}\n");
    }
    let _ = writeln!(
        text,
        "Measured on {} with Outlast {}, Linux {}, by `{}` ({} runs at once).\n",
        meta.date,
        meta.version,
        outlast_linux::kernel_release(),
        meta.command,
        meta.capacity,
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
