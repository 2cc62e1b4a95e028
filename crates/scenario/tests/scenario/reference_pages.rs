//! The reference pages say what the code does.
//!
//! With `UPDATE_REFERENCE=1` in the environment the tables of `docs/scenario-file.md` are written
//! anew.

use crate::fixture::{PLAIN, repository, scenario};
use crate::results::results;
use outlast_scenario::Scenario;
use outlast_scenario::keys::{Key, Kind, SECTIONS, Section};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

fn page(name: &str) -> String {
    fs::read_to_string(repository().join("docs").join(name)).expect("the page can be read")
}

/// The table of a section, as Markdown.
fn table(section: &Section) -> String {
    let mut table = "| key | takes | default | meaning |\n|---|---|---|---|\n".to_owned();
    for key in section.keys {
        let takes = match &key.kind {
            Kind::Table => "a table, see below".to_owned(),
            Kind::Tables => "any number of tables, see below".to_owned(),
            Kind::Text | Kind::File | Kind::Command => key.kind.name().to_owned(),
            Kind::Switch => "`true` or `false`".to_owned(),
            Kind::Choice(names) => {
                let names: Vec<_> = names.iter().map(|name| format!("`\"{name}\"`")).collect();
                names.join(", ")
            }
            _ => format!("{}, {}", key.kind.name(), key.kind.range()),
        };
        let (default, meaning) = match (overridden(section, key), key.source) {
            (Some((default, meaning)), _) => (default, meaning.to_owned()),
            (None, "") => (key.default, key.meaning.to_owned()),
            (None, source) => (key.default, format!("{} Default: {source}.", key.meaning)),
        };
        let name = key.name;
        writeln!(table, "| `{name}` | {takes} | {default} | {meaning} |")
            .expect("a string takes everything written to it");
    }
    table
}

/// What a key says of its default and its meaning where it overrides that of another table.
fn overridden(section: &Section, key: &Key) -> Option<(&'static str, &'static str)> {
    let is_of = |name: &str| {
        let mut sections = SECTIONS.iter().filter(|other| other.name == name);
        sections.any(|other| other.keys.iter().any(|other| std::ptr::eq(*other, key)))
    };
    match section.name {
        "link.uplink" | "link.downlink" if is_of("link") => {
            Some(("as `[link]`", "As in `[link]`, in this direction."))
        }
        "flows" if key.name == "profile" => Some(("as `[stack]`", "As in `[stack]`.")),
        "flows" if is_of("stack") => Some((
            "as `[stack]`; with `profile` that one's",
            "As in `[stack]`.",
        )),
        _ => None,
    }
}

#[test]
fn every_key_is_in_the_page_as_the_reader_takes_it() {
    let path = repository().join("docs/scenario-file.md");
    let mut text = page("scenario-file.md");
    let update = std::env::var_os("UPDATE_REFERENCE").is_some();
    for section in SECTIONS {
        let begin = format!("<!-- keys: {} -->\n", section.name);
        let start = text
            .find(&begin)
            .unwrap_or_else(|| panic!("the page has no `{}`", begin.trim()));
        let start = start + begin.len();
        let end = start
            + text[start..]
                .find("<!-- end -->")
                .expect("the table has an end");
        let expected = format!("\n{}\n", table(section));
        if update {
            text.replace_range(start..end, &expected);
        } else {
            assert_eq!(
                &text[start..end],
                expected,
                "the table of `{}` is out of date: run this test with UPDATE_REFERENCE=1",
                section.header()
            );
        }
    }
    if update {
        fs::write(path, text).expect("the page can be written");
    }
}

#[test]
fn every_unit_is_in_the_page() {
    let page = page("scenario-file.md");
    for kind in [Kind::Duration(0, 0), Kind::Rate(0, 0), Kind::Size(0, 0)] {
        let units: Vec<_> = kind
            .units()
            .split(", ")
            .map(|unit| format!("`{unit}`"))
            .collect();
        assert!(page.contains(&units.join(", ")), "{units:?}");
    }
}

/// Blocks of TOML that begin with `[link]` or a name are whole scenarios.
#[test]
fn whole_scenarios_in_the_page_are_sound() {
    let page = page("scenario-file.md");
    let blocks = page
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next());
    let whole: Vec<_> = blocks
        .filter(|block| block.contains("[link]") && block.contains("[workload]"))
        .collect();
    assert!(!whole.is_empty());
    for block in whole {
        scenario(block);
    }
}

/// The lines of a table for `others`, but for the one of `name`.
fn beside(others: &[(&str, &str)], name: &str) -> String {
    let others = others.iter().filter(|(other, _)| *other != name);
    others
        .map(|(other, value)| format!("{other} = {value}\n"))
        .collect()
}

const HANDOFF: &str = "[[handoffs]]\nat = \"1 s\"\nto = 2\n";

/// A scenario in which `key` of `section` belongs, with its example as its value.
fn with_example(section: &Section, key: &Key, directory: &Path) -> String {
    let line = format!("{} = {}", key.name, key.example);
    let times = "up = \"1 s\"\ndown = \"1 s\"\n";
    let mut text = match (section.name, key.name) {
        ("link.outages", "process") => format!("{PLAIN}[link.outages]\n{times}"),
        ("link.outages", "up") => {
            format!("{PLAIN}[link.outages]\nprocess = \"normal\"\ndown = \"1 s\"\n")
        }
        ("link.outages", "down") => {
            format!("{PLAIN}[link.outages]\nprocess = \"normal\"\nup = \"1 s\"\n")
        }
        ("link.outages", "start") => {
            format!("{PLAIN}[link.outages]\nprocess = \"single\"\nlength = \"1 s\"\n")
        }
        ("link.outages", "length") => {
            format!("{PLAIN}[link.outages]\nprocess = \"single\"\nstart = \"1 s\"\n")
        }
        ("link.outages", name) => {
            fs::write(directory.join("train.trace"), "1\n2\n").expect("a file in a new directory");
            let file = if name == "file" {
                ""
            } else {
                "file = \"train.trace\"\n"
            };
            let plain = PLAIN.replace("rate = \"12 Mbit/s\"\n", "");
            format!("{plain}[link.outages]\nprocess = \"trace\"\n{file}")
        }
        ("workload" | "flows", name) => {
            let others: &[(&str, &str)] = match name {
                "kind" | "bytes" | "direction" | "content" => {
                    &[("kind", "\"bulk\""), ("bytes", "\"1 B\"")]
                }
                "interval" | "update" | "duration" => &[("kind", "\"interactive\"")],
                "requests" | "request" | "response" | "think" => {
                    &[("kind", "\"request-response\"")]
                }
                _ if section.name == "flows" => &[("kind", "\"interactive\"")],
                _ => &[
                    ("kind", "\"command\""),
                    ("server", "\"s\""),
                    ("client", "\"c\""),
                    ("ready", "1"),
                    ("sent", "\"a\""),
                    ("received", "\"b\""),
                ],
            };
            let others = beside(others, name);
            match section.name {
                "flows" => format!("{PLAIN}[[flows]]\n{others}"),
                _ => PLAIN.replace("kind = \"bulk\"\nbytes = \"1 MB\"\n", &others),
            }
        }
        ("traffic", name) => {
            let pattern = if matches!(name, "on" | "off") {
                "on-off"
            } else {
                "constant"
            };
            let others = [
                ("pattern", format!("\"{pattern}\"")),
                ("rate", "\"1 Mbit/s\"".to_owned()),
                ("on", "\"1 s\"".to_owned()),
                ("off", "\"1 s\"".to_owned()),
            ];
            let belongs = |other: &str| pattern == "on-off" || !matches!(other, "on" | "off");
            let others = others
                .iter()
                .filter(|(other, _)| *other != name && belongs(other));
            let others: String = others
                .map(|(other, value)| format!("{other} = {value}\n"))
                .collect();
            let hop = "[[hops]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
            format!("{PLAIN}{hop}[[traffic]]\n{others}")
        }
        ("hops", name) => {
            let others = [("rate", "\"1 Mbit/s\""), ("delay", "\"1 ms\"")];
            let others = beside(&others, name);
            format!("{PLAIN}[[hops]]\n{others}")
        }
        ("handoffs", name) => {
            let others = [("at", "\"1 s\""), ("to", "2")];
            let others = beside(&others, name);
            format!("{PLAIN}[[handoffs]]\n{others}")
        }
        ("rate_changes", name) => {
            let hop = "[[hops]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\n";
            let others = [("at", "\"1 s\""), ("downlink", "\"2 Mbit/s\"")];
            let others = beside(&others, name);
            format!("{PLAIN}{hop}[[rate_changes]]\n{others}")
        }
        ("crashes", name) => {
            let others = [("at", "\"1 s\""), ("gateway", "1")];
            let others = beside(&others, name);
            format!("{PLAIN}[[crashes]]\n{others}")
        }
        ("mobile_ip", "address_after") => {
            format!("{PLAIN}{HANDOFF}[mobile_ip]\nforeign_agents = false\n")
        }
        ("mobile_ip", _) => format!("{PLAIN}{HANDOFF}[mobile_ip]\n"),
        ("outlast", "compression") => {
            format!("{PLAIN}[outlast]\ngateway = \"m-tcp\"\n")
        }
        ("agents", _) => {
            format!("{PLAIN}[outlast]\ngateway = \"zero-window-ack\"\n[agents]\n")
        }
        ("", _) => return format!("{line}\n{PLAIN}"),
        ("link", name) => {
            let others: String = PLAIN
                .lines()
                .filter(|line| !line.starts_with(name))
                .fold(String::new(), |text, line| text + line + "\n");
            return others.replace("[link]\n", &format!("[link]\n{line}\n"));
        }
        (section, _) => format!("{PLAIN}[{section}]\n"),
    };
    text.push_str(&line);
    text.push('\n');
    text
}

#[test]
fn every_example_value_is_accepted() {
    let directory = tempfile::tempdir().expect("a directory for the test");
    for section in SECTIONS {
        for key in section
            .keys
            .iter()
            .filter(|key| !matches!(key.kind, Kind::Table | Kind::Tables))
        {
            let text = with_example(section, key, directory.path());
            if let Err(error) = Scenario::parse(&text, "example.toml", directory.path()) {
                panic!(
                    "`{} {}`:\n{}",
                    section.header(),
                    key.name,
                    error.render(100)
                );
            }
        }
    }
}

/// Every field name of a result, at any depth.
fn field_names(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                names.insert(name.clone());
                field_names(value, names);
            }
        }
        Value::Array(values) => values.iter().for_each(|value| field_names(value, names)),
        _ => {}
    }
}

#[test]
fn every_field_of_a_result_is_in_its_page_and_the_other_way_round() {
    let mut names = BTreeSet::new();
    for result in results() {
        let json = serde_json::to_value(&result).expect("results become JSON");
        field_names(&json, &mut names);
    }
    let page = page("result-format.md");
    let rows = page
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let described: BTreeSet<_> = rows.map(str::to_owned).collect();
    assert_eq!(described, names);
}
