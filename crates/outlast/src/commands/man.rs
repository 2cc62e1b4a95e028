//! `outlast man DIRECTORY`: the manual pages, made from the command line's own description, for
//! packages.

use crate::cli::Cli;
use crate::failure::Failure;
use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use clap_mangen::roff::{Inline, Roff, bold, italic, roman};
use outlast_daemon::reference;
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
    manual.render_title(&mut page)?;
    manual.render_name_section(&mut page)?;
    synopsis(command).to_writer(&mut page)?;
    manual.render_description_section(&mut page)?;
    manual.render_options_section(&mut page)?;
    if visible(command).next().is_some() {
        manual.render_subcommands_section(&mut page)?;
    }
    manual.render_extra_section(&mut page)?;
    ending(command).to_writer(&mut page)?;
    pages.push((manual.get_filename(), page));
    for below in visible(command) {
        add(below, pages)?;
    }
    Ok(())
}

/// How the command is written: each option with what it takes, then the arguments, and in further
/// lines the commands below it.
fn synopsis(command: &clap::Command) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let name = page_of(command).replace('-', " ");
    let arguments = || {
        command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
    };
    let below: Vec<_> = visible(command).collect();
    let mut is_begun = false;
    if below.is_empty() || arguments().any(clap::Arg::is_positional) {
        is_begun = true;
        let mut line = vec![bold(name.clone())];
        let options = arguments().filter(|argument| !argument.is_positional());
        let places = arguments().filter(|argument| argument.is_positional());
        for argument in options.chain(places) {
            line.push(roman(" "));
            line.extend(written(argument));
        }
        roff.text(line);
    }
    for command in below {
        if is_begun {
            roff.control("br", []);
        }
        is_begun = true;
        let mut line = vec![bold(page_of(command).replace('-', " "))];
        let required = command
            .get_positionals()
            .filter(|argument| argument.is_required_set());
        for argument in required {
            line.push(roman(" "));
            line.extend(written(argument));
        }
        line.push(roman(" ..."));
        roff.text(line);
    }
    roff
}

/// `[-i NAME]`, `[--json]`, `FILE` or `[FILE]...`.
fn written(argument: &clap::Arg) -> Vec<Inline> {
    let flag = match (argument.get_short(), argument.get_long()) {
        (Some(short), _) => Some(format!("-{short}")),
        (None, Some(long)) => Some(format!("--{long}")),
        (None, None) => None,
    };
    let takes = argument.get_action().takes_values();
    let names = argument.get_value_names().unwrap_or_default().iter();
    let names: Vec<_> = names.map(ToString::to_string).collect();
    let value = match names.is_empty() {
        true => argument.get_id().as_str().to_uppercase(),
        false => names.join(" "),
    };
    let mut inline = Vec::new();
    inline.extend((!argument.is_required_set()).then(|| roman("[")));
    let is_option = flag.is_some();
    inline.extend(flag.map(bold));
    inline.extend((is_option && takes).then(|| roman(" ")));
    inline.extend((takes || !is_option).then(|| italic(value)));
    inline.extend((!argument.is_required_set()).then(|| roman("]")));
    let many = argument
        .get_num_args()
        .is_some_and(|number| number.max_values() > 1);
    inline.extend(many.then(|| roman("...")));
    inline
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

    /// The text of the section SYNOPSIS, without its markup.
    fn synopsis_of(name: &str) -> String {
        let pages = pages().expect("written to memory");
        let page = pages.iter().find(|(file, _)| file == name).expect("a page");
        let page = String::from_utf8_lossy(&page.1).into_owned();
        let (_, after) = page.split_once(".SH SYNOPSIS\n").expect("a synopsis");
        // What the next section begins with.
        let (section, _) = after.split_once(".ie ").expect("more follows");
        let plain = ["\\fB", "\\fI", "\\fR"].iter();
        let plain = plain.fold(section.to_owned(), |text, font| text.replace(font, ""));
        plain.replace("\\-", "-")
    }

    #[test]
    fn a_synopsis_says_what_options_take() {
        insta::assert_snapshot!(synopsis_of("outlast-run.1"), @"outlast run [--role ROLE] [-i NAME] [-m NAME] [--data-path PATH] [-c FILE] [--check-config] [--control SOCKET] [--log-level LEVEL] [--log-format FORM] [-v] [-h]");
        insta::assert_snapshot!(synopsis_of("outlast-lab.1"), @r"
        outlast lab [--json] [--capture DIR] [--report FILE] [--control] [--jobs N] [--kernel DIR] [-v] [-h] FILE
        .br
        outlast lab shell ...
        ");
        insta::assert_snapshot!(synopsis_of("outlast-notify.1"), @"outlast notify [--peer ADDRESS] [--link NAME] [-i NAME] [--control SOCKET] [-v] [-h] STATE");
        insta::assert_snapshot!(synopsis_of("outlast-papers.1"), @r"
        outlast papers list ...
        .br
        outlast papers run NAME ...
        .br
        outlast papers report NAME ...
        ");
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
