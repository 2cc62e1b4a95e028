//! `in-guest TEST_EXE ARGUMENTS...`: a runner for cargo that gives each live test a guest of its own.
//!
//! With `CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER` set to this program, and `OUTLAST_KERNEL` to the directory of an
//! unpacked kernel, `cargo test` runs the targets in `LIVE` in guests, in virtual time. It starts everything else as it is, and the
//! live tests, too, where no kernel is named.

mod arguments;
mod contents;
mod report;
mod suite;

use anyhow::Context;
use arguments::Arguments;
use outlast_guest::Kernel;
use std::ffi::OsStr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use suite::Suite;

/// Packages and their test targets that live in guests.
const LIVE: [(&str, &str); 1] = [("outlast", "live")];
/// Modules of live tests that compute more than they wait, which the emulator makes slow, or that judge what things cost: they run on
/// this machine's kernel unless [`ALL`] is set. So does `kernel_tunnels`, which expects that a host sends what it has just heard to be
/// too long, as Linux 6.12 does not.
const COSTLY: [&str; 8] = [
    "aggregates",
    "amid",
    "compression",
    "killing",
    "mobile_ip::agents::programs",
    "mobile_ip::kernel_tunnels",
    "silent_peer",
    "without_sack",
];
/// The variable that brings all live tests into guests, if it is not empty.
const ALL: &str = "OUTLAST_ALL_IN_GUESTS";
/// The variable that names the kernel's directory.
const KERNEL: &str = "OUTLAST_KERNEL";
/// The exit code of libtest when a test has failed.
const FAILED: u8 = 101;

fn main() -> ExitCode {
    // In a guest, this program is the init process.
    outlast_guest::init::run();
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            report::trouble(&error);
            ExitCode::FAILURE
        }
    }
}

/// True if all tests have passed.
fn run() -> anyhow::Result<bool> {
    let mut words = std::env::args_os().skip(1);
    let program = words.next().map(PathBuf::from);
    let program = program.context("usage: in-guest TEST_EXE ARGUMENTS...")?;
    let words: Vec<_> = words.collect();
    let kernel = std::env::var_os(KERNEL).filter(|directory| !directory.is_empty());
    let package = std::env::var_os("CARGO_PKG_NAME");
    let arguments = Arguments::parse(&words);
    let (Some(kernel), true, Some(arguments)) =
        (kernel, is_live(package.as_deref(), &program), arguments)
    else {
        let error = Command::new(&program).args(&words).exec();
        return Err(error).with_context(|| format!("cannot start {}", program.display()));
    };
    let kernel = Kernel::open(Path::new(&kernel))?;
    let program = program
        .canonicalize()
        .with_context(|| format!("there is no {}", program.display()))?;
    let costly = match std::env::var_os(ALL).is_some_and(|value| !value.is_empty()) {
        true => &[][..],
        false => &COSTLY[..],
    };
    let suite = Suite::new(&program, &arguments, costly)?;
    let have_passed = suite.run_here(&arguments)?;
    Ok(suite.run_in_guests(&kernel, &arguments)? && have_passed)
}

/// True for test executables of [`LIVE`]: cargo names them by target and a hash.
fn is_live(package: Option<&OsStr>, program: &Path) -> bool {
    let name = program.file_name().and_then(OsStr::to_str);
    let target = name.and_then(|name| name.rsplit_once('-'));
    target.is_some_and(|(target, _)| {
        LIVE.iter()
            .any(|(of, live)| package == Some(OsStr::new(of)) && target == *live)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn live_targets_are_known_by_package_and_name() {
        let is =
            |package: &str, program: &str| is_live(Some(OsStr::new(package)), Path::new(program));
        let (package, target) = LIVE[0];
        let program = format!("/t/debug/deps/{target}-0123456789abcdef");
        assert!(is(package, &program));
        assert!(!is("another", &program));
        assert!(!is(package, "/t/debug/deps/cli-0123456789abcdef"));
        assert!(!is(package, "/t/debug/outlast"));
        assert!(!is_live(None, Path::new(&program)));
    }
}
