//! Parts of the reference pages that are made from the code: between `<!-- NAME -->` and
//! `<!-- end -->`. With `UPDATE_REFERENCE=1` in the environment the tests write them anew.

use std::fs;
use std::path::{Path, PathBuf};

/// A file of the repository.
fn place(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(name)
}

/// The text of a file of the repository.
#[track_caller]
pub(super) fn text(name: &str) -> String {
    fs::read_to_string(place(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Where the part is within the page's text.
#[track_caller]
fn bounds(page: &str, text: &str, name: &str) -> std::ops::Range<usize> {
    let begin = format!("<!-- {name} -->\n");
    let start = text.find(&begin);
    let start = start.unwrap_or_else(|| panic!("{page} has no {begin}")) + begin.len();
    let length = text[start..].find("<!-- end -->");
    start..start + length.unwrap_or_else(|| panic!("{page}: {name} has no end"))
}

/// A part of a page.
#[track_caller]
pub(super) fn part(page: &str, name: &str) -> String {
    let text = text(page);
    text[bounds(page, &text, name)].to_owned()
}

/// Checks that a part of a page is as it is made.
#[track_caller]
pub(super) fn assert_part(page: &str, name: &str, made: &str) {
    let mut text = text(page);
    let bounds = bounds(page, &text, name);
    text.replace_range(bounds, made);
    assert_is(page, &text);
}

/// Checks that a file of the repository is as it is made.
#[track_caller]
pub(super) fn assert_is(name: &str, made: &str) {
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        fs::write(place(name), made).expect("a file of the repository");
        return;
    }
    let there = fs::read_to_string(place(name)).unwrap_or_default();
    assert_eq!(
        there, made,
        "{name} is out of date: run this test with UPDATE_REFERENCE=1"
    );
}
