//! Rules for documents: links that lead somewhere, commands that are run, experiments that are there.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

use crate::{Offences, Repository};

/// Every relative link in Markdown leads to a file of the repository and, where it names one, to
/// a heading in it.
#[must_use]
pub fn links(repository: &Repository) -> Offences {
    let mut offences =
        Offences::new("Make the link lead to a file of the repository (or a heading in it).");
    for (path, text) in repository.texts(".md") {
        for (number, target) in targets(text) {
            if let Err(fault) = follow(repository, path, &target) {
                offences.add(format!("{path}:{number}: {target}: {fault}"));
            }
        }
    }
    offences
}

/// The targets of links and pictures, with their line numbers; a reference without a definition
/// is not one in Markdown's eyes and stays text.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        let Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) = event else {
            continue;
        };
        let number = 1 + text[..range.start].matches('\n').count();
        targets.push((number, dest_url.into_string()));
    }
    targets
}

fn follow(repository: &Repository, from: &str, target: &str) -> Result<(), &'static str> {
    let is_elsewhere = target.contains("://") || target.starts_with("mailto:");
    if is_elsewhere {
        return Ok(());
    }
    let (file, heading) = match target.split_once('#') {
        Some((file, heading)) => (file, Some(heading)),
        None => (target, None),
    };
    let path = if file.is_empty() {
        from.to_owned()
    } else {
        resolve(from, file).ok_or("leads out of the repository")?
    };
    if !repository.has(&path) {
        return Err("there is no such file");
    }
    let text = repository.text(&path).filter(|_| path.ends_with(".md"));
    match (heading, text) {
        (Some(heading), Some(text)) if !anchors(text).iter().any(|known| known == heading) => {
            Err("there is no such heading")
        }
        _ => Ok(()),
    }
}

/// `target` as seen from the file `from`; `None` if it climbs above the root.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = match target.strip_prefix('/') {
        Some(_) => Vec::new(),
        None => from
            .split('/')
            .rev()
            .skip(1)
            .collect::<Vec<_>>()
            .into_iter()
            .rev()
            .collect(),
    };
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors that the headings of a page get: lower case, words joined by hyphens, other signs
/// left out, a number behind those that occur again.
fn anchors(text: &str) -> Vec<String> {
    let mut anchors: Vec<String> = Vec::new();
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::Text(words) | Event::Code(words) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&words);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let words = heading.take().unwrap_or_default().to_lowercase();
                let kept = words
                    .chars()
                    .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
                let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
                let again = anchors.iter().filter(|known| **known == anchor).count();
                anchors.push(if again == 0 {
                    anchor
                } else {
                    format!("{anchor}-{again}")
                });
            }
            _ => {}
        }
    }
    anchors
}

/// Every command that the README tells the reader to type is run by `.ci/run`.
#[must_use]
pub fn readme_commands_are_run(repository: &Repository) -> Offences {
    let mut offences = Offences::new(
        "Run the command in .ci/run exactly as README.md writes it (behind a step's name or \
         variables is fine), or take it out of README.md's sh blocks.",
    );
    let (Some(readme), Some(ci)) = (repository.text("README.md"), repository.text(".ci/run"))
    else {
        for path in ["README.md", ".ci/run"]
            .into_iter()
            .filter(|path| !repository.has(path))
        {
            offences.add(format!("{path}: is missing"));
        }
        return offences;
    };
    let run: Vec<Vec<&str>> = commands(ci).map(|(_, line)| words(line)).collect();
    let mut count = 0;
    for (number, command) in shell_blocks(readme) {
        count += 1;
        let wanted = words(&command);
        // A step's line ends with the command, so that no further argument changes it.
        if !run.iter().any(|line| line.ends_with(&wanted)) {
            offences.add(format!("README.md:{number}: `{command}` is not run"));
        }
    }
    if count == 0 {
        offences.add("README.md: has no sh block with a command".to_owned());
    }
    offences
}

/// Every experiment that a page tells the reader to run is one of those that the command has: published works by
/// `outlast papers`, our own trials by `outlast trials`.
#[must_use]
pub fn experiments_are_there(repository: &Repository) -> Offences {
    let mut offences = Offences::new(
        "Name an experiment that `outlast papers list` or `outlast trials list` shows, by the command that shows it.",
    );
    for kind in ["papers", "trials"] {
        let command = format!("outlast {kind} run ");
        let known = format!("crates/{kind}/src/");
        let is_there = |name: &str| {
            let line = format!("name: \"{name}\",");
            let mut sources = repository.texts(".rs");
            sources.any(|(path, text)| path.starts_with(&known) && text.contains(&line))
        };
        for (path, text) in repository.texts(".md") {
            for (number, line) in (1..).zip(text.lines()) {
                for rest in line.split(&command).skip(1) {
                    let is_part =
                        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
                    let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                    let name = &rest[..end];
                    if !name.is_empty() && !is_there(name) {
                        offences.add(format!(
                            "{path}:{number}: no experiment of `{kind}` is called {name}"
                        ));
                    }
                }
            }
        }
    }
    offences
}

fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// The lines of a shell script that are no comments, with continued lines joined by their reader's
/// rule: a command that matters stands on one line.
fn commands(script: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(script.lines()).filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    })
}

/// The commands in the fenced blocks of a page that are marked as shell.
fn shell_blocks(page: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block: Option<usize> = None;
    for (event, range) in Parser::new_ext(page, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(language))) => {
                let is_shell = matches!(&*language, "sh" | "bash" | "shell" | "console");
                block = is_shell.then_some(range.start);
            }
            Event::End(TagEnd::CodeBlock) => block = None,
            Event::Text(text) if block.is_some() => {
                let first = page[..range.start].matches('\n').count();
                for (number, line) in commands(&text) {
                    let command = line.trim().trim_start_matches("$ ");
                    let command = command.split(" #").next().unwrap_or(command).trim_end();
                    found.push((first + number, command.to_owned()));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_links_are_found_and_sound_ones_are_not() {
        let page = "# One heading\n\n[a](b.md) [b](b.md#part-one-1) [c](/docs) [d](../README.md)\n\
                    [e](https://example.org/x) [f](#one-heading) ![g](picture.svg)\n\n\
                    [h](gone.md) [i](b.md#gone) [j](../../x) [k]\n\n[k]: gone.md\n\n\
                    `[l](gone.md)`\n\n```\n[m](gone.md)\n```\n";
        let repository = Repository::of(&[
            ("README.md", "[docs](docs/a.md)"),
            ("docs/a.md", page),
            ("docs/b.md", "## Part `one`\n\n## Part one\n"),
            ("docs/picture.svg", ""),
        ]);
        assert_eq!(
            links(&repository).list(),
            [
                "docs/a.md:6: gone.md: there is no such file",
                "docs/a.md:6: b.md#gone: there is no such heading",
                "docs/a.md:6: ../../x: leads out of the repository",
                "docs/a.md:6: gone.md: there is no such file",
            ]
        );
    }

    #[test]
    fn a_command_that_is_not_run_is_found() {
        let readme = "# X\n\n```sh\n# a comment\ncargo run --release -- demo   # see it\n\
                      $ cargo test --workspace\ncargo run -- doctor\n```\n\n```toml\nx = 1\n```\n";
        let ci = "# cargo run -- doctor\nstep \"demo\" cargo run --release -- demo\n\
                  cargo test --workspace --quiet\n";
        let repository = Repository::of(&[("README.md", readme), (".ci/run", ci)]);
        assert_eq!(
            readme_commands_are_run(&repository).list(),
            [
                "README.md:6: `cargo test --workspace` is not run",
                "README.md:7: `cargo run -- doctor` is not run",
            ]
        );
    }

    #[test]
    fn an_experiment_that_is_not_there_is_found() {
        let page = "By `outlast trials run herd --full` and `outlast papers run herd`, or `outlast papers run NAME`.\n";
        let repository = Repository::of(&[
            ("docs/page.md", page),
            ("crates/trials/src/herd.rs", "    name: \"herd\",\n"),
        ]);
        assert_eq!(
            experiments_are_there(&repository).list(),
            ["docs/page.md:1: no experiment of `papers` is called herd"]
        );
    }

    #[test]
    fn no_readme_and_no_commands_are_offences() {
        let none = readme_commands_are_run(&Repository::of(&[]));
        assert_eq!(
            none.list(),
            ["README.md: is missing", ".ci/run: is missing"]
        );
        let empty = Repository::of(&[("README.md", "# X\n"), (".ci/run", "")]);
        let empty = readme_commands_are_run(&empty);
        assert_eq!(empty.list(), ["README.md: has no sh block with a command"]);
    }
}
