//! Scenario files whose values are replaced.

use crate::fixture::{PLAIN, scenario};
use insta::assert_snapshot;
use outlast_scenario::keys::{self, Kind};
use outlast_scenario::{Change, Document, Scenario, ScenarioError};
use proptest::prelude::*;
use std::path::Path;

/// Who changes the scenario: each line is `KEY = VALUE`.
const AUTHOR: &str = "\"link.delay\" = \"20 ms\"\n\"link.outages.process\" = \"single\"\n\
    \"link.outages.start\" = \"1 s\"\n\"link.outages.length\" = \"two\"\n\
    \"link.queue\" = 0\n\"link.loss\" = 0.25\n";

fn document(text: &str, name: &str) -> Document {
    Document::parse(text, name, Path::new(".")).expect("proper TOML")
}

/// The plain scenario with the changes of `keys` from [`AUTHOR`].
fn changed(base: &str, keys: &[&str]) -> Result<Scenario, ScenarioError> {
    let (base, author) = (document(base, "base.toml"), document(AUTHOR, "author.toml"));
    let table = author.table();
    let changes: Vec<_> = keys
        .iter()
        .map(|key| {
            let mut entries = table.iter();
            let (name, value) = entries
                .find(|(name, _)| name.get_ref() == key)
                .expect("one of the author's");
            Change {
                key,
                key_at: name.span(),
                value: &AUTHOR[value.span()],
                value_at: value.span(),
            }
        })
        .collect();
    base.scenario("sweep", &author, &changes)
}

#[track_caller]
fn refused(base: &str, keys: &[&str]) -> String {
    changed(base, keys).expect_err("a faulty change").render(80)
}

#[test]
fn without_changes_it_is_the_scenario() {
    let with_sweep = format!("{PLAIN}\n[sweep]\nanything = true\n");
    let named = |mut scenario: Scenario| {
        scenario.name = "base".to_owned();
        scenario
    };
    assert_eq!(
        changed(&with_sweep, &[]).expect("sound"),
        named(scenario(PLAIN))
    );
}

#[test]
fn a_change_replaces_or_adds() {
    let changes = changed(PLAIN, &["link.delay", "link.loss"]).expect("sound");
    let expected = PLAIN.replace("delay = \"10 ms\"", "delay = \"20 ms\"\nloss = 0.25");
    assert_eq!(changes.link, scenario(&expected).link);
}

#[test]
fn a_faulty_change_is_shown_where_its_author_has_written_it() {
    assert_snapshot!(refused(PLAIN, &["link.queue"]));
}

#[test]
fn a_table_that_only_changes_fill_is_found_at_their_keys() {
    assert_snapshot!(refused(
        PLAIN,
        &["link.outages.process", "link.outages.start"]
    ));
    assert_snapshot!(refused(
        PLAIN,
        &[
            "link.outages.process",
            "link.outages.start",
            "link.outages.length"
        ]
    ));
}

#[test]
fn what_is_wrong_with_the_scenario_itself_is_shown_there() {
    let base = PLAIN.replace("\"12 Mbit/s\"", "\"12 Mb\"");
    assert_snapshot!(refused(&base, &["link.delay"]));
    assert_snapshot!(refused(
        "[workload]\nkind = \"bulk\"\nbytes = \"1 kB\"\n",
        &[]
    ));
}

#[test]
fn a_mark_at_the_beginning_changes_nothing() {
    let marked = format!("\u{feff}{PLAIN}");
    let loss = |base| changed(base, &["link.loss"]).expect("sound").link;
    assert_eq!(loss(&marked), loss(PLAIN));
}

#[test]
fn what_is_no_toml_is_no_document() {
    let error = Document::parse("[link\nrate = 3\n", "base.toml", Path::new("."));
    assert_snapshot!(error.expect_err("no TOML").render(80));
}

#[test]
fn keys_are_found_by_their_paths() {
    let name = |path| keys::find(path).map(|key| key.name);
    assert_eq!(name("link.outages.up"), Some("up"));
    assert_eq!(name("link.uplink.rate"), Some("rate"));
    assert_eq!(name("name"), Some("name"));
    for unknown in ["", "link.", "link.outages.rate", "outages.up", ".name"] {
        assert_eq!(name(unknown), None, "{unknown}");
    }
}

proptest! {
    /// What is written is read as what it was, for every kind of quantity.
    #[test]
    fn written_quantities_are_read_back(value in 0..1_u64 << 53) {
        for kind in [Kind::Duration(0, 1), Kind::Rate(0, 1), Kind::Size(0, 1)] {
            let text = kind.write(value).expect("a quantity");
            prop_assert_eq!(kind.quantity(&text), Some(value), "{}", text);
        }
    }
}
