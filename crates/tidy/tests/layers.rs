//! The rules for the crates, held against this repository.

use outlast_tidy::{Repository, layers};

#[test]
fn arrows_only_point_down() {
    layers::arrows_point_down(&layers::crates(&Repository::open())).assert_none();
}

#[test]
fn pure_crates_are_marked() {
    let repository = Repository::open();
    layers::pure_crates_are_marked(&repository, &layers::crates(&repository)).assert_none();
}

#[test]
fn pure_crates_are_proven() {
    let repository = Repository::open();
    layers::pure_crates_are_proven(&repository, &layers::crates(&repository)).assert_none();
}

#[test]
fn tests_are_run_where_there_are_some() {
    let repository = Repository::open();
    layers::tests_are_run_where_there_are_some(&repository, &layers::crates(&repository))
        .assert_none();
}

#[test]
fn the_architecture_page_names_every_crate() {
    let repository = Repository::open();
    layers::architecture_names_every_crate(&repository, &layers::crates(&repository)).assert_none();
}
