//! The rules for Rust sources, held against this repository.

use outlast_tidy::{Exception, Repository, rust};

/// Functions longer than a screen that would not be clearer in parts.
const LONG_FUNCTIONS: [Exception; 0] = [];

/// Files outside crates/linux/src/sys that cannot do without `unsafe`.
const UNSAFE: [Exception; 4] = [
    Exception {
        place: "crates/gateway/tests/counting/mod.rs",
        reason: "a global allocator that counts what is in use, for the memory tests of two crates",
    },
    Exception {
        place: "crates/link/tests/allocation.rs",
        reason: "a global allocator that counts what the link allocates",
    },
    Exception {
        place: "crates/wire/tests/allocation.rs",
        reason: "a global allocator that counts what parsing and editing allocate",
    },
    Exception {
        place: "proofs/no-std/src/lib.rs",
        reason: "a global allocator in place of the standard library's",
    },
];

#[test]
fn functions_fit_a_screen() {
    rust::function_length(&Repository::open())
        .except(&LONG_FUNCTIONS)
        .assert_none();
}

#[test]
fn names_say_what_a_thing_is() {
    rust::names(&Repository::open()).assert_none();
}

#[test]
fn unsafe_stays_where_it_is_looked_after() {
    rust::unsafe_code(&Repository::open())
        .except(&UNSAFE)
        .assert_none();
}

#[test]
fn nothing_is_switched_off_or_promised() {
    rust::switched_off(&Repository::open()).assert_none();
}

#[test]
fn mechanisms_and_figures_say_what_they_model() {
    rust::headers(&Repository::open()).assert_none();
}
