//! The catalogue leaves nothing out and names nothing that is not there.

use outlast_experiments::experiment::named;
use outlast_papers::ALL;
use outlast_papers::catalogue::{BESIDE, Bound, WORKS, Work, markdown};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Where the catalogue stands in the page.
const BEGIN: &str = "<!-- catalogue -->\n";
const END: &str = "<!-- end -->\n";

/// Checks that each number of `series` stands in an entry's place, as "Figure 3" or "Table 4.1".
fn assert_numbered(work: &Work, kind: &str, series: &[(Option<u32>, u32)]) {
    for &(chapter, last) in series {
        for number in 1..=last {
            let wanted = match chapter {
                Some(chapter) => format!("{kind} {chapter}.{number}"),
                None => format!("{kind} {number}"),
            };
            let is_it = |place: &str| {
                let rest = place.strip_prefix(&wanted);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
            };
            let is_there = work.entries.iter().any(|entry| is_it(entry.place));
            assert!(is_there, "{}: no {wanted}", work.cite);
        }
    }
}

#[test]
fn every_numbered_figure_and_table_has_an_entry() {
    for work in WORKS {
        assert_numbered(work, "Figure", work.figures);
        assert_numbered(work, "Table", work.tables);
    }
}

#[test]
fn every_binding_leads_to_a_figure_of_an_experiment() {
    let known = |&(experiment, figure): &(&str, &str)| {
        let found = named(ALL, experiment);
        found.is_some_and(|found| found.figures.iter().any(|known| known.name() == figure))
    };
    for work in WORKS {
        for entry in work.entries {
            let at = format!("{}, {}", work.cite, entry.place);
            match entry.bound {
                Bound::Run(figures) => assert!(!figures.is_empty(), "{at}: by nothing"),
                Bound::NotRun(reason) => assert!(!reason.is_empty(), "{at}: for no reason"),
            }
            let unknown = entry.bound.figures().iter().find(|figure| !known(figure));
            assert_eq!(unknown, None, "{at}");
        }
    }
}

#[test]
fn every_figure_of_an_experiment_is_in_the_catalogue() {
    let mut bound = WORKS
        .iter()
        .flat_map(|work| work.entries)
        .flat_map(|entry| entry.bound.figures());
    let bound: BTreeSet<_> = bound.by_ref().copied().collect();
    let mut wrong = Vec::new();
    for experiment in ALL {
        for figure in experiment.figures {
            let at = (experiment.name, figure.name());
            if bound.contains(&at) == BESIDE.contains(&at) {
                wrong.push(at);
            }
        }
    }
    assert_eq!(
        wrong,
        [],
        "neither in the catalogue nor Outlast's own, or both"
    );
}

#[test]
fn the_page_has_the_catalogue() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results/README.md");
    let written = fs::read_to_string(&path).expect("the page is there");
    let (before, rest) = written
        .split_once(BEGIN)
        .expect("the catalogue has a place");
    let (_, after) = rest.split_once(END).expect("the catalogue has an end");
    let wanted = format!("{before}{BEGIN}{}{END}{after}", markdown());
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(&path, &wanted).expect("the repository can be written");
    } else {
        assert!(
            written == wanted,
            "docs/results/README.md has another catalogue: UPDATE_REFERENCE=1 writes it anew"
        );
    }
}
