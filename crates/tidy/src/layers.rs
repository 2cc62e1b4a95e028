//! Rules for the crates: who may use whom, and which of them are pure.

use std::process::Command;

use serde_json::Value;

use crate::{Offences, Repository};

/// The crates from top to bottom: arrows only point down.
pub const ORDER: [&str; 27] = [
    "in-guest",
    "outlast",
    "python",
    "papers",
    "trials",
    "experiments",
    "sweep",
    "daemon",
    "report",
    "testbed",
    "guest",
    "lab",
    "linux",
    "sim",
    "scenario",
    "world",
    "diagnosis",
    "link",
    "agents",
    "tcp",
    "host",
    "gateway",
    "compression",
    "mobility",
    "hip",
    "wire",
    "base",
];

/// The crates that do no I/O, read no clock and know no `unsafe`.
pub const PURE: [&str; 12] = [
    "world",
    "diagnosis",
    "link",
    "agents",
    "tcp",
    "host",
    "gateway",
    "compression",
    "mobility",
    "hip",
    "wire",
    "base",
];

/// Crates that hold no part of the product and stand outside the order.
const OUTSIDE: [&str; 2] = ["skip", "tidy"];

/// Crates that have no library.
const PROGRAMS: [&str; 2] = ["in-guest", "outlast"];

/// A crate and what it needs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Crate {
    /// Its directory below `crates/`.
    pub name: String,
    /// The directories of the workspace's crates that it is built with; what only its tests need
    /// is left out.
    pub needs: Vec<String>,
    /// Whether `cargo test` runs tests that stand in its library's source.
    pub has_unit_tests: bool,
    /// Whether it runs the examples in its library's documentation.
    pub has_doc_tests: bool,
}

/// The crates of the workspace, as `cargo metadata` knows them.
///
/// # Panics
///
/// If cargo fails or its answer is not of the documented form.
#[must_use]
pub fn crates(repository: &Repository) -> Vec<Crate> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(&repository.root)
        .output()
        .expect("cargo runs this test");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    let packages = metadata["packages"]
        .as_array()
        .expect("cargo lists packages");
    let mut crates: Vec<Crate> = packages.iter().map(of_package).collect();
    crates.sort_by(|a, b| a.name.cmp(&b.name));
    crates
}

fn of_package(package: &Value) -> Crate {
    let text = |value: &Value| value.as_str().expect("cargo gives text").to_owned();
    let directory = |path: &str| {
        let directory = path.trim_end_matches("/Cargo.toml").rsplit('/').next();
        directory.expect("a split has at least one part").to_owned()
    };
    let dependencies = package["dependencies"]
        .as_array()
        .expect("cargo lists dependencies");
    let is_built_with = |dependency: &&Value| dependency["kind"] != "dev";
    let needs = dependencies.iter().filter(is_built_with);
    let needs = needs
        .filter_map(|dependency| dependency["path"].as_str())
        .map(directory);
    let targets = package["targets"].as_array();
    let library = targets.expect("cargo lists targets").iter().find(|target| {
        target["src_path"]
            .as_str()
            .is_some_and(|path| path.ends_with("/src/lib.rs"))
    });
    let runs = |tests: &str| library.is_none_or(|library| library[tests] == true);
    Crate {
        name: directory(&text(&package["manifest_path"])),
        needs: needs.collect(),
        has_unit_tests: runs("test"),
        has_doc_tests: runs("doctest"),
    }
}

/// Crates only use those further down.
#[must_use]
pub fn arrows_point_down(crates: &[Crate]) -> Offences {
    let mut offences = Offences::new(
        "A crate uses only those below it. Move what both need further down. A new crate gets its \
         place in ORDER in crates/tidy/src/layers.rs and in ARCHITECTURE.md.",
    );
    let floor = |name: &str| ORDER.iter().position(|known| *known == name);
    for Crate { name, needs, .. } in crates {
        if OUTSIDE.contains(&name.as_str()) {
            for other in needs {
                offences.add(format!(
                    "crates/{name}: uses {other}, but stands outside the product"
                ));
            }
            continue;
        }
        let Some(own) = floor(name) else {
            offences.add(format!("crates/{name}: has no place in the order"));
            continue;
        };
        for other in needs {
            match floor(other) {
                Some(below) if below > own => {}
                _ => offences.add(format!(
                    "crates/{name}: uses {other}, which is not below it"
                )),
            }
        }
    }
    offences
}

/// Pure crates say so where the compiler sees it.
#[must_use]
pub fn pure_crates_are_marked(repository: &Repository, crates: &[Crate]) -> Offences {
    let mut offences = Offences::new(
        "Start src/lib.rs of a pure crate with #![no_std] and #![forbid(unsafe_code)], both \
         unconditional; tests reach std through `extern crate std` under #[cfg(test)].",
    );
    for Crate { name, .. } in crates.iter().filter(|c| PURE.contains(&c.name.as_str())) {
        let path = format!("crates/{name}/src/lib.rs");
        let Some(file) = repository
            .text(&path)
            .and_then(|text| syn::parse_file(text).ok())
        else {
            offences.add(format!("{path}: is missing or cannot be parsed"));
            continue;
        };
        let is_no_std = |attribute: &syn::Attribute| attribute.path().is_ident("no_std");
        let forbids_unsafe = |attribute: &syn::Attribute| {
            let lints = attribute
                .meta
                .require_list()
                .map(|list| list.tokens.to_string());
            attribute.path().is_ident("forbid")
                && lints
                    .is_ok_and(|lints| lints.split(',').any(|lint| lint.trim() == "unsafe_code"))
        };
        if !file.attrs.iter().any(is_no_std) {
            offences.add(format!("{path}: no #![no_std]"));
        }
        if !file.attrs.iter().any(forbids_unsafe) {
            offences.add(format!("{path}: no #![forbid(unsafe_code)]"));
        }
    }
    offences
}

/// The proof that pure crates need no standard library covers all of them.
#[must_use]
pub fn pure_crates_are_proven(repository: &Repository, crates: &[Crate]) -> Offences {
    const MANIFEST: &str = "proofs/no-std/Cargo.toml";
    const LIBRARY: &str = "proofs/no-std/src/lib.rs";
    let mut offences = Offences::new(
        "Add the pure crate to the dependencies and to the `use … as _` lines of proofs/no-std.",
    );
    let holds = |path: &str, line: &str| {
        let text = repository.text(path).unwrap_or_default();
        text.lines().any(|known| known.starts_with(line))
    };
    for Crate { name, .. } in crates.iter().filter(|c| PURE.contains(&c.name.as_str())) {
        if !holds(MANIFEST, &format!("outlast-{name} = ")) {
            offences.add(format!("{MANIFEST}: does not depend on outlast-{name}"));
        }
        if !holds(LIBRARY, &format!("use outlast_{name} as _;")) {
            offences.add(format!("{LIBRARY}: does not name outlast_{name}"));
        }
    }
    offences
}

/// A library is not compiled a second time for tests that it does not have; one that has some, has them run.
#[must_use]
pub fn tests_are_run_where_there_are_some(repository: &Repository, crates: &[Crate]) -> Offences {
    let mut offences = Offences::new(
        "Take `test = false` or `doctest = false` out of [lib] in the Cargo.toml of a crate that has got a unit test, or \
         an example in its documentation; put it in where the last one has left.",
    );
    let libraries = crates
        .iter()
        .filter(|known| !PROGRAMS.contains(&known.name.as_str()));
    for known in libraries {
        let source = format!("crates/{}/src/", known.name);
        let texts: Vec<&str> = repository
            .texts(".rs")
            .filter_map(|(path, text)| path.starts_with(&source).then_some(text))
            .collect();
        let runs = [
            (
                "a unit test",
                "test",
                known.has_unit_tests,
                texts.iter().any(|text| text.contains("#[test]")),
            ),
            (
                "an example",
                "doctest",
                known.has_doc_tests,
                texts.iter().any(|text| has_example(text)),
            ),
        ];
        for (what, key, is_run, is_there) in runs {
            match (is_run, is_there) {
                (false, true) => {
                    offences.add(format!("crates/{}: {what} and {key} = false", known.name));
                }
                (true, false) => {
                    offences.add(format!(
                        "crates/{}: not {what}, and no {key} = false",
                        known.name
                    ));
                }
                _ => {}
            }
        }
    }
    offences
}

/// Whether documentation in `text` has a block that rustdoc takes for Rust.
fn has_example(text: &str) -> bool {
    let mut is_inside = false;
    let comments = text.lines().map(str::trim_start);
    let comments = comments.filter_map(|line| {
        line.strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
    });
    for fence in comments.filter_map(|line| line.trim().strip_prefix("```")) {
        if !is_inside && fence != "text" {
            return true;
        }
        is_inside = !is_inside;
    }
    false
}

/// The architecture page knows every crate, and no crate that is gone.
#[must_use]
pub fn architecture_names_every_crate(repository: &Repository, crates: &[Crate]) -> Offences {
    let mut offences = Offences::new(
        "Give every crate its line in ARCHITECTURE.md as `crates/NAME`, and take out those that \
         are gone.",
    );
    let Some(page) = repository.text("ARCHITECTURE.md") else {
        offences.add("ARCHITECTURE.md: is missing".to_owned());
        return offences;
    };
    let named: Vec<(usize, &str)> = (1..)
        .zip(page.lines())
        .flat_map(|(number, line)| {
            line.split("crates/").skip(1).map(move |rest| {
                let end =
                    rest.find(|c: char| !c.is_ascii_alphanumeric() && !matches!(c, '_' | '-'));
                (number, &rest[..end.unwrap_or(rest.len())])
            })
        })
        .filter(|(_, name)| !name.is_empty())
        .collect();
    for Crate { name, .. } in crates {
        if !named.iter().any(|(_, known)| known == name) {
            offences.add(format!("ARCHITECTURE.md: does not name crates/{name}"));
        }
    }
    for (number, name) in named {
        if !crates.iter().any(|known| known.name == name) {
            offences.add(format!(
                "ARCHITECTURE.md:{number}: names crates/{name}, which is not there"
            ));
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    fn a_crate(name: &str, needs: &[&str]) -> Crate {
        let needs = needs.iter().map(|need| (*need).to_owned()).collect();
        Crate {
            name: name.to_owned(),
            needs,
            has_unit_tests: true,
            has_doc_tests: true,
        }
    }

    #[test]
    fn arrows_up_and_strangers_are_found() {
        let crates = [
            a_crate("wire", &["gateway"]),
            a_crate("gateway", &["wire"]),
            a_crate("link", &["link"]),
            a_crate("gadget", &[]),
            a_crate("tidy", &["wire"]),
        ];
        assert_eq!(
            arrows_point_down(&crates).list(),
            [
                "crates/wire: uses gateway, which is not below it",
                "crates/link: uses link, which is not below it",
                "crates/gadget: has no place in the order",
                "crates/tidy: uses wire, but stands outside the product",
            ]
        );
    }

    #[test]
    fn a_conditional_mark_is_no_mark() {
        let repository = Repository::of(&[
            (
                "crates/wire/src/lib.rs",
                "#![no_std]\n#![forbid(unsafe_code)]\n",
            ),
            (
                "crates/gateway/src/lib.rs",
                "#![cfg_attr(not(test), no_std)]\n#![deny(unsafe_code)]\n",
            ),
            ("crates/lab/src/lib.rs", ""),
        ]);
        let crates = ["wire", "gateway", "link", "lab"].map(|name| a_crate(name, &[]));
        assert_eq!(
            pure_crates_are_marked(&repository, &crates).list(),
            [
                "crates/gateway/src/lib.rs: no #![no_std]",
                "crates/gateway/src/lib.rs: no #![forbid(unsafe_code)]",
                "crates/link/src/lib.rs: is missing or cannot be parsed",
            ]
        );
    }

    #[test]
    fn a_pure_crate_without_a_proof_is_found() {
        let repository = Repository::of(&[
            (
                "proofs/no-std/Cargo.toml",
                "outlast-wire = { path = \"../../crates/wire\" }\n",
            ),
            (
                "proofs/no-std/src/lib.rs",
                "// use outlast_wire as _;\nuse outlast_gateway as _;\n",
            ),
        ]);
        let crates = ["wire", "gateway", "lab"].map(|name| a_crate(name, &[]));
        assert_eq!(
            pure_crates_are_proven(&repository, &crates).list(),
            [
                "proofs/no-std/src/lib.rs: does not name outlast_wire",
                "proofs/no-std/Cargo.toml: does not depend on outlast-gateway",
            ]
        );
    }

    #[test]
    fn a_test_that_is_never_run_is_found_and_a_run_without_tests_too() {
        let unit = "#[cfg(test)]\nmod tests {\n    #[test]\n    fn f() {}\n}\n";
        let example =
            "//! ```text\n//! SYN\n//! ```\n\n/// ```\n/// f();\n/// ```\npub fn f() {}\n";
        let repository = Repository::of(&[
            ("crates/wire/src/deep/down.rs", unit),
            ("crates/wire/src/lib.rs", example),
            (
                "crates/link/src/lib.rs",
                "/// ```text\n/// SYN\n/// ```\npub fn f() {}\n",
            ),
            ("crates/link/tests/link.rs", unit),
            ("crates/base/src/lib.rs", unit),
            ("crates/sim/src/lib.rs", example),
        ]);
        let mut crates = ["wire", "link", "base", "sim"].map(|name| a_crate(name, &[]));
        crates[0].has_unit_tests = false;
        crates[0].has_doc_tests = false;
        crates[2].has_doc_tests = false;
        crates[3].has_unit_tests = false;
        assert_eq!(
            tests_are_run_where_there_are_some(&repository, &crates).list(),
            [
                "crates/wire: a unit test and test = false",
                "crates/wire: an example and doctest = false",
                "crates/link: not a unit test, and no test = false",
                "crates/link: not an example, and no doctest = false",
            ]
        );
    }

    #[test]
    fn the_architecture_page_knows_no_more_and_no_less() {
        let page =
            "| `crates/wire` | formats |\nsee crates/wired/src and `crates/gateway/src/x.rs`\n";
        let repository = Repository::of(&[("ARCHITECTURE.md", page)]);
        let crates = ["wire", "gateway", "link"].map(|name| a_crate(name, &[]));
        assert_eq!(
            architecture_names_every_crate(&repository, &crates).list(),
            [
                "ARCHITECTURE.md: does not name crates/link",
                "ARCHITECTURE.md:2: names crates/wired, which is not there",
            ]
        );
        let none = Repository::of(&[]);
        let offences = architecture_names_every_crate(&none, &crates);
        assert_eq!(offences.list(), ["ARCHITECTURE.md: is missing"]);
    }

    #[test]
    fn cargo_tells_what_a_crate_is_built_with() {
        let crates = crates(&Repository::open());
        let tidy = crates
            .iter()
            .find(|known| known.name == "tidy")
            .expect("this crate");
        assert_eq!(tidy.needs, Vec::<String>::new());
        let gateway = crates
            .iter()
            .find(|known| known.name == "gateway")
            .expect("the gateway");
        assert_eq!(gateway.needs, ["base", "wire"]);
        assert!(gateway.has_unit_tests && gateway.has_doc_tests);
        assert!(!tidy.has_doc_tests);
    }
}
