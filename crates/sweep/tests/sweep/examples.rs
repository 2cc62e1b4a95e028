//! The examples of the repository and of the reference page.

use crate::fixture::{Place, plan};
use outlast_sweep::Plan;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_example_is_sound() {
    let directory = repository().join("examples/sweeps");
    let mut count = 0;
    for entry in fs::read_dir(directory).expect("examples") {
        let path = entry.expect("an entry").path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            if let Err(error) = Plan::load(&path) {
                panic!("{}", error.render(100));
            }
            count += 1;
        }
    }
    assert!(count >= 3, "{count} examples");
}

#[test]
fn whole_sweeps_in_the_page_are_sound() {
    let page = fs::read_to_string(repository().join("docs/sweep-file.md")).expect("the page");
    let mut count = 0;
    for block in page.split("```toml\n").skip(1) {
        let text = block.split("```").next().expect("the block's text");
        // Others are parts.
        if !text.contains("[sweep]") || !text.contains("[link]") {
            continue;
        }
        let directory = repository().join("examples/sweeps");
        if let Err(error) = Plan::parse(text, "page.toml", &directory) {
            panic!("{}", error.render(100));
        }
        count += 1;
    }
    assert!(count >= 1, "{count} sweeps in the page");
}

/// The columns that the page lists are those that the tables have, in their order.
#[test]
fn the_page_lists_every_column() {
    let page = fs::read_to_string(repository().join("docs/sweep-file.md")).expect("the page");
    let place = Place::new();
    place.complete(&Arc::new(plan("[sweep.grid]\n\"link.mtu\" = [1400]\n")), 1);
    for table in ["runs", "cells", "outages"] {
        let csv = place.csv(&format!("{table}.csv"));
        let names = csv.lines().next().expect("a line of names").split(',');
        let fixed: Vec<&str> = names.filter(|name| *name != "link.mtu").collect();
        let heading = format!("### `{table}`\n");
        let section = page
            .split(&heading)
            .nth(1)
            .expect("a section for each table");
        let section = section.split("\n#").next().expect("its text");
        let listed: Vec<&str> = section
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| line.split_once('`'))
            .map(|(name, _)| name)
            .collect();
        assert_eq!(listed, fixed, "{table}");
    }
}
