//! What the script that makes the package needs, and says when it is not there.

use crate::place::Place;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `packaging/build` where `cargo` is a script with this body.
fn build_with(place: &Place, cargo: &str) -> Output {
    let file = place.file("cargo", &format!("#!/bin/sh\n{cargo}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("chmod");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/build");
    let path = format!("{}:/usr/bin:/bin", place.path().display());
    let mut command = Command::new("bash");
    let output = command.arg(script).env("PATH", path).output();
    output.expect("bash")
}

#[test]
fn what_makes_the_package_is_looked_for_before_anything_is_compiled() {
    let place = Place::new();
    let compiled = place.path().join("compiled");
    let compile = format!("touch {}; exit 1", compiled.display());
    let without = format!("[ \"$1\" = deb ] && exit 101; {compile}");
    let old = format!("[ \"$1\" = deb ] && echo cargo-deb 2.9.1 && exit 0; {compile}");
    for (cargo, words) in [(without, "there is no cargo-deb"), (old, "version 2.9.1")] {
        let output = build_with(&place, &cargo);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{said}");
        assert!(
            said.contains(words) && said.contains("cargo install"),
            "{said}"
        );
        assert!(!compiled.exists(), "{said}");
    }
    for version in ["3.8.0", "cargo-deb 3.8.0"] {
        let right = format!("[ \"$1\" = deb ] && echo {version} && exit 0; {compile}");
        assert_eq!(
            build_with(&place, &right).status.code(),
            Some(1),
            "{version}"
        );
        assert!(compiled.exists(), "with cargo-deb it goes on to compile");
        fs::remove_file(&compiled).expect("it is there");
    }
}
