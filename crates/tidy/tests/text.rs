//! The rules for every text file, held against this repository.

use outlast_tidy::{Repository, text};

#[test]
fn no_tabs_and_no_spaces_at_line_ends() {
    text::white_space(&Repository::open()).assert_none();
}

#[test]
fn nothing_is_marked_as_unfinished() {
    text::unfinished(&Repository::open()).assert_none();
}

#[test]
fn no_paths_of_one_developer_s_machine() {
    text::private_paths(&Repository::open()).assert_none();
}
