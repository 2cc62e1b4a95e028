//! Parts of Outlast that are installed on a machine already: the command, its units, hooks and user.

use anyhow::Context;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Directories in which systemd looks for units, the administrator's first.
const UNIT_DIRECTORIES: [&str; 4] = [
    "/etc/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];
/// Directories whose programs units and hooks find.
const SEARCHED: [&str; 6] = [
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/bin",
    "/sbin",
];
/// Directory of the package's hooks.
const PACKAGED_HOOKS: &str = "/usr/share/outlast/hooks";

/// Parts of Outlast that are there before anything is set up.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Ground {
    /// This program's own file.
    pub(crate) program: PathBuf,
    /// Names of units that systemd knows, apart from those that `outlast setup` has written.
    pub(crate) units: Vec<String>,
    /// True with the package's hooks.
    pub(crate) has_hooks: bool,
    /// True if the user `outlast` is there.
    pub(crate) has_account: bool,
}

impl Ground {
    /// Looks below `root` for parts of Outlast, `ours` being paths that `outlast setup` has written.
    pub(crate) fn below(root: &Path, ours: &[&Path]) -> anyhow::Result<Self> {
        let there = |path: &Path| {
            let below = path.strip_prefix("/").unwrap_or(path);
            !ours.contains(&path) && root.join(below).exists()
        };
        let names = ["outlast@.service", "outlast-host.service"].into_iter();
        let is_known = |name: &&str| {
            let mut directories = UNIT_DIRECTORIES.iter();
            directories.any(|directory| there(&Path::new(directory).join(name)))
        };
        let accounts = root.join("etc/passwd");
        let accounts = match fs::read_to_string(&accounts) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(|| format!("cannot read {}", accounts.display()))?,
        };
        let made = Path::new(super::plan::ACCOUNT_FILE);
        Ok(Self {
            program: std::env::current_exe().context("cannot tell where this program is")?,
            units: names.filter(is_known).map(str::to_owned).collect(),
            has_hooks: there(Path::new(PACKAGED_HOOKS)),
            // A user of an earlier run goes with that run.
            has_account: accounts.lines().any(|line| line.starts_with("outlast:"))
                && !ours.contains(&made),
        })
    }

    /// True where units and hooks find this program by its name, and are allowed to run it.
    pub(crate) fn is_found(&self) -> bool {
        let directory = self.program.parent();
        directory
            .is_some_and(|directory| SEARCHED.iter().any(|known| directory == Path::new(known)))
    }

    /// The directory of a packaged hook, if there is one.
    pub(crate) fn hooks(&self) -> Option<&'static str> {
        self.has_hooks.then_some(PACKAGED_HOOKS)
    }
}
