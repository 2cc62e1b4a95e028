//! The repository's own rules. `tests/` holds them against the repository; the unit tests here
//! show each of them a repository that breaks it, so that no rule is one that cannot fail.
//!
//! A rule takes a [`Repository`] and returns [`Offences`]: all of them at once, each with its place
//! and, at the top, what to do about it.
#![forbid(unsafe_code)]

pub mod documents;
pub mod layers;
pub mod rust;
pub mod text;

use std::path::{Path, PathBuf};
use std::process::Command;

/// The files of a repository.
#[derive(Clone, Debug)]
pub struct Repository {
    /// Where it lies.
    pub root: PathBuf,
    /// Its files, in the order of their paths.
    pub files: Vec<File>,
}

/// A file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct File {
    /// Its path from the repository's root, with slashes.
    pub path: String,
    /// What it says; `None` if it is not text.
    pub text: Option<String>,
}

/// Where a rule is broken.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Offences {
    remedy: &'static str,
    list: Vec<String>,
}

/// A place where a rule does not hold for a good reason.
#[derive(Clone, Copy, Debug)]
pub struct Exception {
    /// The path, or the path and the function (`path::function`).
    pub place: &'static str,
    /// The reason, for the reader of the list.
    pub reason: &'static str,
}

impl Repository {
    /// This repository: what git tracks and what it would track if it were added.
    ///
    /// # Panics
    ///
    /// If git cannot be run or a file cannot be read: without them no rule can be checked.
    #[must_use]
    pub fn open() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let root = root
            .canonicalize()
            .expect("this crate lies two levels below the root");
        let output = Command::new("git")
            // In CI the checkout often belongs to another user than the one that tests.
            .args(["-c", "safe.directory=*", "ls-files", "-z"])
            .args(["--cached", "--others", "--exclude-standard"])
            .current_dir(&root)
            .output()
            .expect("git is installed");
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let listing = String::from_utf8(output.stdout).expect("paths in this repository are UTF-8");
        let mut paths: Vec<&str> = listing.split_terminator('\0').collect();
        paths.sort_unstable();
        paths.dedup();
        let files = paths.into_iter().filter_map(|path| {
            // Deleted but not yet committed, or a link to a directory.
            let bytes = root
                .join(path)
                .is_file()
                .then(|| std::fs::read(root.join(path)))?;
            let bytes = bytes.unwrap_or_else(|error| panic!("{path}: {error}"));
            let text = String::from_utf8(bytes)
                .ok()
                .filter(|text| !text.contains('\0'));
            Some(File {
                path: path.to_owned(),
                text,
            })
        });
        let files = files.collect();
        Self { root, files }
    }

    /// A repository of the given paths and texts, to try a rule on.
    #[must_use]
    pub fn of(files: &[(&str, &str)]) -> Self {
        let file = |(path, text): &(&str, &str)| File {
            path: (*path).to_owned(),
            text: Some((*text).to_owned()),
        };
        Self {
            root: PathBuf::new(),
            files: files.iter().map(file).collect(),
        }
    }

    /// The text of the file at `path`.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.files
            .iter()
            .find(|file| file.path == path)?
            .text
            .as_deref()
    }

    /// Whether there is a file at `path`, or a directory with files in it.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let is_inside = |file: &File| {
            file.path
                .strip_prefix(path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        path.is_empty() || self.files.iter().any(is_inside)
    }

    /// The text files whose path ends in `ending`.
    pub fn texts<'a>(&'a self, ending: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        let text = |file: &'a File| Some((file.path.as_str(), file.text.as_deref()?));
        self.files
            .iter()
            .filter(move |file| file.path.ends_with(ending))
            .filter_map(text)
    }
}

impl Offences {
    fn new(remedy: &'static str) -> Self {
        Self {
            remedy,
            list: Vec::new(),
        }
    }

    fn add(&mut self, offence: String) {
        self.list.push(offence);
    }

    /// Where and how the rule is broken, a line for each.
    #[must_use]
    pub fn list(&self) -> &[String] {
        &self.list
    }

    /// Takes away the offences at the places of `exceptions`; an exception that excuses nothing
    /// becomes an offence itself.
    #[must_use]
    pub fn except(mut self, exceptions: &[Exception]) -> Self {
        for Exception { place, .. } in exceptions {
            let before = self.list.len();
            let is_excused = |offence: &String| {
                offence
                    .strip_prefix(place)
                    .is_some_and(|rest| rest.starts_with(": "))
            };
            self.list.retain(|offence| !is_excused(offence));
            if self.list.len() == before {
                self.list
                    .push(format!("{place}: needs no exception any more; remove it"));
            }
        }
        self
    }

    /// Fails the test if the rule is broken anywhere.
    ///
    /// # Panics
    ///
    /// If there is an offence; the message lists all of them.
    #[track_caller]
    pub fn assert_none(&self) {
        let Self { remedy, list } = self;
        let offences = if list.len() == 1 {
            "offence"
        } else {
            "offences"
        };
        assert!(
            list.is_empty(),
            "{remedy}\n{} {offences}:\n  {}\n",
            list.len(),
            list.join("\n  ")
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_read() {
        let repository = Repository::open();
        assert!(
            repository
                .text("Cargo.toml")
                .is_some_and(|text| text.contains("[workspace]"))
        );
        assert!(repository.has("crates/tidy") && repository.has("crates/tidy/src/lib.rs"));
        assert!(!repository.has("crates/tid"));
        assert!(
            !repository
                .files
                .iter()
                .any(|file| file.path.starts_with("target/"))
        );
    }

    #[test]
    fn an_exception_excuses_its_place_and_must_be_needed() {
        let mut offences = Offences::new("Do better.");
        offences.add("a.rs: long".to_owned());
        offences.add("a.rs::f: long".to_owned());
        let excused = offences.except(&[
            Exception {
                place: "a.rs",
                reason: "a table",
            },
            Exception {
                place: "b.rs",
                reason: "was long once",
            },
        ]);
        let left = [
            "a.rs::f: long",
            "b.rs: needs no exception any more; remove it",
        ];
        assert_eq!(excused.list(), left);
    }

    #[test]
    #[should_panic(expected = "Do better.\n2 offences:\n  a.rs: x\n  b.rs: y")]
    fn all_offences_are_told_at_once() {
        let mut offences = Offences::new("Do better.");
        offences.add("a.rs: x".to_owned());
        offences.add("b.rs: y".to_owned());
        offences.assert_none();
    }
}
