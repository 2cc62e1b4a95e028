//! Rules for every text file.

use crate::{Offences, Repository};

/// Files that come from elsewhere and stay as they came.
fn is_foreign(path: &str) -> bool {
    path.starts_with("LICENSE") || path == "Cargo.lock" || path.ends_with("/Cargo.lock")
}

/// No tabs and no space at the end of a line. Snapshots are exempt, as they hold what a program
/// printed; so are Makefiles, which need tabs.
#[must_use]
pub fn white_space(repository: &Repository) -> Offences {
    let mut offences = Offences::new("Replace tabs by spaces and remove spaces at line ends.");
    for (path, text) in repository.texts("") {
        if is_foreign(path) || path.ends_with(".snap") || path.ends_with("Makefile") {
            continue;
        }
        for (number, line) in (1..).zip(text.split('\n')) {
            let line = line.strip_suffix('\r').unwrap_or(line);
            if line.contains('\t') {
                offences.add(format!("{path}:{number}: a tab"));
            }
            if line.ends_with(' ') {
                offences.add(format!("{path}:{number}: ends in a space"));
            }
        }
    }
    offences
}

/// No marks of work left undone.
#[must_use]
pub fn unfinished(repository: &Repository) -> Offences {
    // Put together, as this file must keep the rule too.
    const MARKS: [&str; 3] = [
        concat!("FIX", "ME"),
        concat!("TO", "DO"),
        concat!("XX", "X"),
    ];
    let mut offences =
        Offences::new("Finish it, or open an issue and say in prose what is not covered and why.");
    for (path, text) in repository.texts("") {
        if is_foreign(path) {
            continue;
        }
        for (number, line) in (1..).zip(text.lines()) {
            let words = || line.split(|c: char| !c.is_alphanumeric() && c != '_');
            if let Some(mark) = MARKS
                .into_iter()
                .find(|mark| words().any(|word| word == *mark))
            {
                offences.add(format!("{path}:{number}: {mark}"));
            }
        }
    }
    offences
}

/// No paths that exist on one developer's machine only.
#[must_use]
pub fn private_paths(repository: &Repository) -> Offences {
    const PLACES: [&str; 7] = [
        concat!("/ho", "me/"),
        concat!("/ro", "ot/"),
        concat!("/Us", "ers/"),
        concat!("C:\\Us", "ers\\"),
        concat!("/wo", "rk/"),
        concat!("/tmp/", "wt/"),
        concat!("/tmp/", "target"),
    ];
    let mut offences = Offences::new("Use a path from the repository's root, or a temporary one.");
    for (path, text) in repository.texts("") {
        for (number, line) in (1..).zip(text.lines()) {
            for place in PLACES {
                // A path of the repository may go through a directory of such a name.
                let is_absolute = |(at, _): (usize, &str)| {
                    let before = line[..at].chars().next_back();
                    before
                        .is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '_' | '-' | '}'))
                };
                if line.match_indices(place).any(is_absolute) {
                    offences.add(format!("{path}:{number}: {place}"));
                }
            }
        }
    }
    offences
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tabs_and_trailing_spaces_are_found() {
        let text = "a\tb\nc \r\nd\n";
        let repository = Repository::of(&[("a.rs", text), ("b.snap", text), ("LICENSE-MIT", text)]);
        assert_eq!(
            white_space(&repository).list(),
            ["a.rs:1: a tab", "a.rs:2: ends in a space"]
        );
    }

    #[test]
    fn marks_of_unfinished_work_are_found() {
        let text = concat!(
            "fine, this is a TO",
            "DOWN list\n// FIX",
            "ME: later\n# TO",
            "DO(x)"
        );
        let found = unfinished(&Repository::of(&[("a.sh", text)]));
        assert_eq!(
            found.list(),
            [concat!("a.sh:2: FIX", "ME"), concat!("a.sh:3: TO", "DO")]
        );
    }

    #[test]
    fn private_paths_are_found_and_relative_ones_are_not() {
        let text = concat!(
            "see docs/wo",
            "rk/x and ${a}/wo",
            "rk/\n\"/ho",
            "me/me/x\"\n"
        );
        let found = private_paths(&Repository::of(&[("a.md", text)]));
        assert_eq!(found.list(), [concat!("a.md:2: /ho", "me/")]);
    }
}
