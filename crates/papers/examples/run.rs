//! Runs an experiment from a shell: `run NAME [--full] [--report] [--out DIR] [--capacity N]`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "an example talks to a terminal"
)]

use anyhow::{Context, Result, bail};
use outlast_lab::Cancel;
use outlast_papers::run::{self, Order, Shown};
use outlast_papers::{ALL, Extent, batch, named};
use outlast_report::judgement;
use outlast_report::table::TextStyle;
use std::path::PathBuf;

fn main() -> Result<()> {
    let (mut name, mut extent, mut only_report) = (None, Extent::Quick, false);
    let (mut directory, mut capacity) = (PathBuf::from("papers"), batch::CAPACITY);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut value = || {
            arguments
                .next()
                .with_context(|| format!("{argument} needs a value"))
        };
        match argument.as_str() {
            "--full" => extent = Extent::Full,
            "--report" => only_report = true,
            "--out" => directory = value()?.into(),
            "--capacity" => capacity = value()?.parse()?,
            _ => name = Some(argument),
        }
    }
    let Some(name) = name else {
        for experiment in ALL {
            println!("{:14} {}", experiment.name, experiment.measures);
        }
        return Ok(());
    };
    let Some(experiment) = named(&name) else {
        bail!("there is no experiment {name:?}")
    };
    if only_report {
        show(&run::report(experiment, extent, &directory)?);
        return Ok(());
    }
    outlast_linux::user_namespace::enter()?;
    let cancel = Cancel::new()?;
    let _termination = outlast_linux::signal::Termination::wake(cancel.waker())?;
    let order = Order {
        extent,
        directory,
        capacity,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        date: String::new(),
        command: format!("outlast papers run {name} --{}", extent.name()),
        only: Vec::new(),
    };
    let mut before = None;
    let shown = run::run(experiment, &order, &cancel, |progress| {
        if before.replace((progress.done, progress.repeated))
            != Some((progress.done, progress.repeated))
        {
            eprintln!(
                "{} of {} done, {} running, {} repeated, about {} s left",
                progress.done,
                progress.total,
                progress.running,
                progress.repeated,
                progress.left.as_secs()
            );
        }
    })?;
    show(&shown);
    Ok(())
}

fn show(shown: &Shown) {
    let style = TextStyle {
        width: Some(160),
        ..TextStyle::default()
    };
    for part in &shown.parts {
        for table in &part.tables {
            println!("{}", table.to_text(&style));
        }
        if !part.listed.is_empty() {
            println!("{}", judgement::table(&part.listed).to_text(&style));
        }
    }
    println!("{}", shown.page.display());
}
