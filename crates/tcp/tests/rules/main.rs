//! Each rule of each RFC that the model follows stands in `docs/tcp-model.md`, with the code that
//! follows it and the tests that hold it to that.
//!
//! Code and tests cite a rule in a line of its own, `//= RFC 6298, section 5.4`, a test within its
//! body; what follows a colon or an opening parenthesis is a remark. The table is made of the list
//! in `list.rs` and of what is found; it cannot name a test that is not there. `UPDATE_RULES=1` writes it.

mod list;

use list::RULES;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Key = (u16, String);

/// What cites a rule: files of the model, and tests.
#[derive(Default)]
struct Citations {
    code: BTreeSet<String>,
    tests: BTreeSet<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_path_buf()
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of this crate");
    for entry in entries {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// The rule that a line cites.
fn cited(line: &str) -> Option<Key> {
    let text = line.trim().strip_prefix("//= RFC ")?;
    let (number, section) = text.split_once(", section ")?;
    let end = section.find([':', '(']).unwrap_or(section.len());
    Some((number.parse().ok()?, section[..end].trim().to_owned()))
}

fn scan() -> BTreeMap<Key, Citations> {
    let mut all: BTreeMap<Key, Citations> = BTreeMap::new();
    let mut paths = Vec::new();
    for folder in ["src", "tests"] {
        files(&root().join(folder), &mut paths);
    }
    paths.sort();
    for path in paths
        .iter()
        .filter(|path| !path.starts_with(root().join("tests/rules")))
    {
        let text = fs::read_to_string(path).expect("a source file");
        let name = path.strip_prefix(root()).expect("of this crate");
        let name = name.to_str().expect("ASCII").replace('\\', "/");
        let mut is_test = false;
        let mut test = None;
        for line in text.lines() {
            if line.trim() == "#[test]" {
                is_test = true;
            } else if let Some(function) = line.trim().strip_prefix("fn ") {
                let function = function.split(['(', '<']).next().unwrap_or(function);
                test = is_test.then(|| function.to_owned());
                is_test = false;
            } else if line == "}" {
                test = None;
            }
            let Some(key) = cited(line) else {
                assert!(
                    !line.trim().starts_with("//= "),
                    "{name}: cannot read {line}"
                );
                continue;
            };
            let citations = all.entry(key).or_default();
            match &test {
                Some(test) => citations.tests.insert(format!("`{name}` `{test}`")),
                None => citations.code.insert(name.clone()),
            };
        }
    }
    all
}

fn table(found: &BTreeMap<Key, Citations>) -> String {
    let mut table =
        String::from("| RFC | section | rule | code | tests |\n|---|---|---|---|---|\n");
    for (number, section, rule) in RULES {
        let citations = &found[&(*number, (*section).to_owned())];
        let code: Vec<_> = citations
            .code
            .iter()
            .map(|file| {
                let short = file.trim_start_matches("src/");
                format!("[`{short}`](../crates/tcp/{file})")
            })
            .collect();
        let tests: Vec<_> = citations
            .tests
            .iter()
            .map(|test| test.replace("tests/tcp/", "").replace("src/", ""))
            .collect();
        table += &format!(
            "| [{number}](https://www.rfc-editor.org/rfc/rfc{number}) | {section} | {rule} | {} | {} |\n",
            code.join(", "),
            tests.join(", ")
        );
    }
    table
}

#[test]
fn every_rule_has_code_and_a_test_and_every_citation_is_of_a_rule() {
    let found = scan();
    let mut missing = Vec::new();
    for (number, section, _) in RULES {
        let key = (*number, (*section).to_owned());
        match found.get(&key) {
            None => missing.push(format!("RFC {number}, section {section}: nothing cites it")),
            Some(citations) => {
                if citations.code.is_empty() {
                    missing.push(format!("RFC {number}, section {section}: no code"));
                }
                if citations.tests.is_empty() {
                    missing.push(format!("RFC {number}, section {section}: no test"));
                }
            }
        }
    }
    for ((number, section), citations) in &found {
        if !RULES
            .iter()
            .any(|rule| rule.0 == *number && rule.1 == section)
        {
            missing.push(format!(
                "RFC {number}, section {section}: not in the list, cited by {:?} {:?}",
                citations.code, citations.tests
            ));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn the_table_in_the_documentation_is_up_to_date() {
    const BEGIN: &str = "<!-- rules: begin -->\n";
    const END: &str = "<!-- rules: end -->";
    let path = root().join("../../docs/tcp-model.md");
    let page = fs::read_to_string(&path).expect("docs/tcp-model.md");
    let (head, rest) = page.split_once(BEGIN).expect("a beginning mark");
    let (old, tail) = rest.split_once(END).expect("an end mark");
    let new = table(&scan());
    if std::env::var_os("UPDATE_RULES").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{new}{END}{tail}")).expect("it is written");
        return;
    }
    assert_eq!(
        old, new,
        "UPDATE_RULES=1 cargo test -p outlast-tcp --test rules writes it"
    );
}
