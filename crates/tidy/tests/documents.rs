//! The rules for documents, held against this repository.

use outlast_tidy::{Repository, documents};

#[test]
fn links_lead_somewhere() {
    documents::links(&Repository::open()).assert_none();
}

#[test]
fn the_readme_s_commands_are_run() {
    documents::readme_commands_are_run(&Repository::open()).assert_none();
}

#[test]
fn experiments_are_there() {
    documents::experiments_are_there(&Repository::open()).assert_none();
}
