//! `outlast man DIRECTORY`: the manual pages, made from the command line's own description, for
//! packages.

use crate::cli::Cli;
use crate::daemon::reference;
use crate::failure::Failure;
use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};
use std::fs;
use std::io;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Where to write them; made if it is not there.
    directory: PathBuf,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let directory = &arguments.directory;
    let failed = || format!("cannot write manual pages into {}", directory.display());
    fs::create_dir_all(directory).with_context(failed)?;
    for (name, page) in pages()? {
        fs::write(directory.join(name), page).with_context(failed)?;
    }
    Ok(())
}

/// Every page with its file's name: the command, each subcommand, and the configuration file.
fn pages() -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = vec![(
        "outlast.toml.5".into(),
        reference::manual_page().into_bytes(),
    )];
    add(&command, &mut pages)?;
    Ok(pages)
}

/// The pages of a command and of those below it.
fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> io::Result<()> {
    let manual = Man::new(command.clone())
        .date(reference::date())
        .source(reference::VERSION)
        .manual("Outlast");
    let mut page = Vec::new();
    manual.render(&mut page)?;
    ending(command).to_writer(&mut page)?;
    pages.push((manual.get_filename(), page));
    for below in visible(command) {
        add(below, pages)?;
    }
    Ok(())
}

fn visible(command: &clap::Command) -> impl Iterator<Item = &clap::Command> {
    command
        .get_subcommands()
        .filter(|below| !below.is_hide_set())
}

/// What every page ends with: exit codes, files, and where more is said.
fn ending(command: &clap::Command) -> Roff {
    const CODES: [(&str, &str); 4] = [
        ("0", "Done."),
        ("1", "The run itself failed."),
        ("2", "Bad input or usage."),
        (
            "3",
            "This machine lacks a needed capability; the message names it.",
        ),
    ];
    const FILES: [(&str, &str); 3] = [
        (
            "/etc/outlast/INTERFACE.toml",
            "Configuration of the gateway of an interface.",
        ),
        (
            "/etc/outlast/config.toml",
            "The same, of interfaces that have none of their own.",
        ),
        (
            "/run/outlast/INTERFACE.sock",
            "Control socket of the gateway of an interface.",
        ),
    ];
    let name = page_of(command);
    let is_about_the_gateway = ["run", "status", "notify", "reload"]
        .map(|below| format!("outlast-{below}"))
        .contains(&name);
    let mut roff = Roff::new();
    roff.control("SH", ["EXIT STATUS"]);
    list(&mut roff, &CODES);
    if is_about_the_gateway {
        roff.control("SH", ["FILES"]);
        list(&mut roff, &FILES);
    }
    roff.control("SH", ["SEE ALSO"]);
    let mut others: Vec<_> = visible(command)
        .map(|below| (page_of(below), "1"))
        .collect();
    if name != "outlast" {
        others.insert(0, ("outlast".into(), "1"));
    }
    if name == "outlast" || is_about_the_gateway {
        others.push(("outlast.toml".into(), "5"));
    }
    let mut line = Vec::new();
    for (name, section) in others {
        line.extend((!line.is_empty()).then(|| roman(", ")));
        line.extend([bold(name), roman(format!("({section})"))]);
    }
    roff.text(line);
    roff
}

fn page_of(command: &clap::Command) -> String {
    let name = command.get_display_name().unwrap_or(command.get_name());
    name.to_owned()
}

fn list(roff: &mut Roff, items: &[(&str, &str)]) {
    for (what, meaning) in items {
        roff.control("TP", []);
        roff.text([bold(*what)]);
        roff.text([roman(*meaning)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a command's page names all that it takes, and so on for those below it.
    fn assert_complete(command: &clap::Command, pages: &[(String, Vec<u8>)]) {
        let file = format!("{}.1", page_of(command));
        let page = pages
            .iter()
            .find(|(name, _)| *name == file)
            .map(|(_, page)| page);
        let page = page.unwrap_or_else(|| panic!("there is no {file}"));
        let page = String::from_utf8_lossy(page).replace("\\-", "-");
        for argument in command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
        {
            let name = match (argument.get_long(), argument.get_value_names()) {
                (Some(long), _) => format!("--{long}"),
                (None, Some([name, ..])) => name.to_string(),
                (None, _) => continue,
            };
            assert!(page.contains(&name), "{file} does not name {name}");
        }
        for below in visible(command) {
            assert!(
                page.contains(&page_of(below)),
                "{file} does not name {}",
                page_of(below)
            );
            assert_complete(below, pages);
        }
    }

    #[test]
    fn every_subcommand_and_every_option_has_its_place() {
        let pages = pages().expect("written to memory");
        let mut command = Cli::command().disable_help_subcommand(true);
        command.build();
        assert_complete(&command, &pages);
        let run = pages
            .iter()
            .find(|(name, _)| name == "outlast-run.1")
            .expect("a page");
        assert!(String::from_utf8_lossy(&run.1).contains("check\\-config"));
    }
}
