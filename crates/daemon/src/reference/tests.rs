use super::*;
use crate::keys::TOP;
use crate::page;
use outlast_scenario::keys::Section;
use std::fmt::Write as _;

/// The table of a section, as Markdown.
fn table(section: &Section) -> String {
    let mut table = "\n| key | takes | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in section.keys {
        let takes = match &key.kind {
            Kind::Table => "a table, see below".to_owned(),
            Kind::Tables => "any number of tables, see below".to_owned(),
            kind => takes(kind),
        };
        let default = default(key);
        let default = default.strip_prefix("Default: ").expect("it begins so");
        let (name, meaning) = (key.name, key.meaning);
        let _ = writeln!(table, "| `{name}` | {takes} | {default} | {meaning} |");
    }
    table.push('\n');
    table
}

#[test]
fn every_key_is_in_the_page() {
    for section in SECTIONS {
        let part = format!("keys: {}", section.name);
        page::assert_part("docs/configuration.md", &part, &table(section));
    }
}

#[test]
fn every_key_of_the_user_timeout_is_in_the_host_s_page() {
    let sections = [
        &crate::host::DAMPING,
        &crate::host::USER_TIMEOUT,
        &crate::host::RULES,
    ];
    for section in sections {
        let part = format!("keys: {}", section.name);
        page::assert_part("docs/host.md", &part, &table(section));
    }
}

#[test]
fn no_table_is_forgotten() {
    let tables = TOP
        .keys
        .iter()
        .filter(|key| matches!(key.kind, Kind::Table | Kind::Tables));
    let tables: Vec<_> = tables.map(|key| key.name).collect();
    let described: Vec<_> = SECTIONS
        .iter()
        .skip(1)
        .map(|section| section.name)
        .collect();
    assert_eq!(tables, described);
}

/// `text` as comments of at most 96 columns.
fn comment(text: &str) -> String {
    let text = text.replace('`', "");
    let lines = textwrap::wrap(&text, 94);
    lines.iter().map(|line| format!("# {line}\n")).collect()
}

/// The file that a package installs: every key, with its example or default, commented out.
fn example() -> String {
    let mut file = comment(
        "Configuration of the Outlast gateway, for every interface that has no file of its own \
         beside this one (INTERFACE.toml). outlast.toml(5) says more.",
    );
    file.push_str("#\n");
    file.push_str(&comment(
        "`outlast run --check-config --config FILE` checks it; `systemctl reload \
         'outlast@*'` puts changes in force. What is commented out is an example, or what holds \
         without it.",
    ));
    for section in SECTIONS {
        if !section.name.is_empty() {
            let _ = write!(file, "\n{}\n", section.header());
        }
        for key in section
            .keys
            .iter()
            .filter(|key| !matches!(key.kind, Kind::Table | Kind::Tables))
        {
            file.push('\n');
            file.push_str(&comment(key.meaning));
            file.push_str(&comment(&format!(
                "{}. {}.",
                capital(&takes(&key.kind)),
                default(key)
            )));
            let _ = writeln!(file, "#{} = {}", key.name, key.example);
        }
    }
    file
}

#[test]
fn the_package_s_file_has_every_key() {
    page::assert_is("packaging/config.toml", &example());
}

#[test]
fn the_manual_page_has_every_key_and_says_what_it_takes() {
    let page = manual_page();
    for key in SECTIONS.iter().flat_map(|section| section.keys) {
        let name = match key.kind {
            Kind::Table | Kind::Tables => format!("\\fB[{}]\\fR", key.name),
            _ => format!("\\fB{}\\fR = ", key.name),
        };
        assert!(page.contains(&name), "{name} is not in the page");
    }
    assert!(!page.contains('`'), "{page}");
    let title = page.lines().find(|line| line.starts_with(".TH"));
    let title = title.expect("a page has a title");
    assert!(
        title.starts_with(".TH outlast.toml 5 2") && title.ends_with("Outlast"),
        "{title}"
    );
}

#[test]
fn the_manual_page_s_example_is_the_one_of_the_page() {
    let page = page::text("docs/configuration.md");
    assert!(page.contains(&format!("```toml\n{EXAMPLE}```\n")));
}
