//! Any bytes as TCP options.
#![no_main]

#[path = "../../../crates/wire/tests/wire/common/exercise.rs"]
#[expect(dead_code, reason = "the other targets use the rest")]
mod exercise;

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| exercise::options(data));
