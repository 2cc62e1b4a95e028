//! The manual pages, as `outlast man` writes them for a package.

use crate::place::Place;
use outlast_skip::skip;
use std::fs;
use std::process::Command;

#[test]
fn manual_pages_are_there_for_everything_and_read_without_a_warning() {
    let place = Place::new();
    let said = place.run(["man", "pages/of/outlast"]);
    assert_eq!((said.code, said.out.as_str()), (Some(0), ""), "{said:?}");
    let directory = place.path().join("pages/of/outlast");
    let names: Vec<_> = fs::read_dir(&directory)
        .expect("it was made")
        .map(|entry| {
            entry
                .expect("readable")
                .file_name()
                .into_string()
                .expect("text")
        })
        .collect();
    for name in [
        "outlast.1",
        "outlast-run.1",
        "outlast-status.1",
        "outlast-papers-run.1",
        "outlast.toml.5",
    ] {
        assert!(names.iter().any(|there| there == name), "{names:?}");
    }
    assert!(
        !names
            .iter()
            .any(|name| name.contains("-man.") || name.contains("-help")),
        "{names:?}"
    );
    if Command::new("man").arg("--version").output().is_err() {
        return skip("there is no man");
    }
    for name in &names {
        let mut command = Command::new("man");
        command
            .args(["--warnings", "--encoding=UTF-8", "--local-file"])
            .arg(directory.join(name));
        let output = command
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8")
            .output()
            .expect("man");
        let complaints = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && complaints.is_empty(),
            "{name}: {complaints}"
        );
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            text.contains("SEE ALSO") && text.contains("DESCRIPTION"),
            "{name}: {text}"
        );
    }
}

#[test]
fn what_is_in_the_way_is_named() {
    let place = Place::new();
    place.file("pages", "not a directory");
    place
        .run(["man", "pages"])
        .refuses(1, &["cannot write manual pages into pages"]);
}
