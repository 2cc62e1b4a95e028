//! Execution of a plan: each step is recorded first, and a step that fails takes all of this run back.

use crate::failure::Failure;
use crate::setup::manifest::{Entry, Manifest, digest, directory, forget, write_atomically};
use crate::setup::plan::{NewFile, Plan, Purpose, below};
use crate::setup::services::Services;
use crate::setup::undo;
use anyhow::{Context, ensure};
use outlast_daemon::config::Given;
use outlast_daemon::host;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// A file of the plan, and what becomes of one that is there already.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Intent {
    pub(crate) file: NewFile,
    pub(crate) fate: Fate,
}

/// The outcome for one file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    /// There is none: it is written.
    New,
    /// It is there as it is to be.
    Same,
    /// An earlier set-up has written another one.
    Renewed,
    /// Another one is there: it is kept elsewhere, to be put back.
    Replaced,
    /// The user has a file of their own that does.
    Kept,
}

impl Fate {
    pub(crate) const fn writes(self) -> bool {
        matches!(self, Self::New | Self::Renewed | Self::Replaced)
    }
}

/// Compares a plan with the files below `root`.
pub(crate) fn intents(
    plan: &Plan,
    root: &Path,
    manifest: Option<&Manifest>,
) -> anyhow::Result<Vec<Intent>> {
    let files = plan.files.iter();
    let intents = files.map(|file| {
        let fate = fate(file, root, manifest)?;
        let file = file.clone();
        Ok(Intent { file, fate })
    });
    intents.collect()
}

fn fate(file: &NewFile, root: &Path, manifest: Option<&Manifest>) -> anyhow::Result<Fate> {
    let path = below(root, &file.path);
    let metadata = match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Fate::New),
        read => read.with_context(|| format!("cannot look at {}", path.display()))?,
    };
    ensure!(
        metadata.is_file(),
        "{} is no regular file: move it away first",
        path.display()
    );
    let there = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    if there == file.contents.bytes()? {
        return Ok(Fate::Same);
    }
    let mut entries = manifest.into_iter().flat_map(|manifest| &manifest.entries);
    let recorded = entries.find_map(|entry| match entry {
        Entry::File {
            path,
            digest,
            replaced,
        } if *path == file.path => Some((digest, replaced)),
        _ => None,
    });
    match recorded {
        Some((known, _)) if *known == digest(&there) => return Ok(Fate::Renewed),
        // A change of the user's, beside which there is no place for a second copy.
        Some((_, Some(_))) => return Ok(Fate::Kept),
        _ => {}
    }
    let is_sound = match file.purpose {
        Purpose::Gateway => is_sound_gateway(&path, &file.path),
        Purpose::Agent => host::check(Some(&path)).is_ok(),
        Purpose::Part => false,
    };
    Ok(if is_sound { Fate::Kept } else { Fate::Replaced })
}

/// True if `outlast run` would take the file for the interface that it is named after.
fn is_sound_gateway(path: &Path, named: &Path) -> bool {
    let interface = named.file_stem().and_then(|stem| stem.to_str());
    let given = Given {
        interface: interface.map(str::to_owned),
        config: Some(path.to_owned()),
        ..Given::default()
    };
    given.settle().is_ok()
}

/// Carries a plan out below `root`; what fails is taken back as far as this run has come.
pub(crate) fn apply(
    plan: &Plan,
    intents: &[Intent],
    root: &Path,
    services: &mut dyn Services,
) -> Result<(), Failure> {
    let manifest = Manifest::load(root)?;
    let begun = manifest.as_ref().map_or(0, |found| found.entries.len());
    let was_complete = manifest.as_ref().is_some_and(|found| found.is_complete);
    let mut run = Run {
        manifest: manifest.unwrap_or_else(Manifest::new),
        root,
        services,
    };
    run.manifest.is_complete = false;
    match run.carry_out(plan, intents) {
        Ok(()) => Ok(()),
        Err(error) => {
            let mut later = run.manifest.clone();
            later.entries.drain(..begun);
            let undone = undo::undo(&mut later, root, run.services);
            let mut earlier = run.manifest;
            earlier.entries.truncate(begun);
            earlier.is_complete = was_complete;
            // Things that could not be taken back stay in the record.
            earlier.entries.extend(later.entries);
            match earlier.entries.is_empty() {
                true => forget(root)?,
                false => earlier.save(root)?,
            }
            let error = match undone {
                Ok(_) => error.context("nothing was set up, and all is as it was before"),
                Err(undoing) => error.context(format!(
                    "taking back what was done failed, too ({undoing:#}); `outlast setup --remove` tries again"
                )),
            };
            Err(Failure::Run(error))
        }
    }
}

/// A plan that is being carried out.
struct Run<'a> {
    manifest: Manifest,
    root: &'a Path,
    services: &'a mut dyn Services,
}

impl Run<'_> {
    fn carry_out(&mut self, plan: &Plan, intents: &[Intent]) -> anyhow::Result<()> {
        for Intent { file, fate } in intents {
            if fate.writes() {
                self.write(file, *fate)?;
            }
        }
        if plan.makes_account && !self.manifest.entries.contains(&Entry::Account) {
            self.record(Entry::Account)?;
            self.services.make_account()?;
        }
        if !plan.units.is_empty() {
            self.services.read_units()?;
        }
        for unit in &plan.units {
            self.start(unit)?;
        }
        self.manifest.is_complete = true;
        self.manifest.save(self.root)
    }

    fn record(&mut self, entry: Entry) -> anyhow::Result<()> {
        self.manifest.entries.push(entry);
        self.manifest.save(self.root)
    }

    fn start(&mut self, unit: &str) -> anyhow::Result<()> {
        let mut entries = self.manifest.entries.iter();
        if !entries.any(|entry| matches!(entry, Entry::Unit { name, .. } if name == unit)) {
            let entry = Entry::Unit {
                name: unit.to_owned(),
                was_enabled: self.services.is_enabled(unit)?,
                was_active: self.services.is_active(unit)?,
            };
            self.record(entry)?;
        }
        self.services.start(unit)
    }

    fn write(&mut self, file: &NewFile, fate: Fate) -> anyhow::Result<()> {
        let path = below(self.root, &file.path);
        let bytes = file.contents.bytes()?;
        let new = digest(&bytes);
        let parent = file.path.parent().unwrap_or(Path::new("/"));
        self.make_directories(parent)?;
        let mut entries = self.manifest.entries.iter_mut();
        let recorded = entries.find_map(|entry| match entry {
            Entry::File { path, digest, .. } if *path == file.path => Some(digest),
            _ => None,
        });
        match recorded {
            Some(digest) => {
                *digest = new;
                self.manifest.save(self.root)?;
            }
            None => {
                let replaced = match fate {
                    Fate::Replaced => Some(self.keep(&path)?),
                    _ => None,
                };
                self.record(Entry::File {
                    path: file.path.clone(),
                    digest: new,
                    replaced,
                })?;
            }
        }
        write_atomically(&path, &bytes, file.mode)
    }

    /// Makes a directory and those above it, as far as they are not there.
    fn make_directories(&mut self, directory: &Path) -> anyhow::Result<()> {
        let above: Vec<_> = directory.ancestors().collect();
        for directory in above.into_iter().rev() {
            let path = below(self.root, directory);
            if path.is_dir() {
                continue;
            }
            self.record(Entry::Directory {
                path: directory.to_owned(),
            })?;
            let failed = || format!("cannot make {}", path.display());
            fs::create_dir(&path).with_context(failed)?;
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(&path, mode).with_context(failed)?;
        }
        Ok(())
    }

    /// Copies a file that is to be replaced, with owner and mode; the copy's name.
    fn keep(&self, path: &Path) -> anyhow::Result<String> {
        let failed = || format!("cannot keep a copy of {}", path.display());
        let directory = directory(self.root);
        // An earlier set-up may have left a copy that could not be put back.
        let mut names = (1..).map(|number| format!("replaced-{number}"));
        let name = names.find(|name| !directory.join(name).exists());
        let name = name.with_context(failed)?;
        let copy = directory.join(&name);
        let metadata = fs::metadata(path).with_context(failed)?;
        let bytes = fs::read(path).with_context(failed)?;
        write_atomically(&copy, &bytes, metadata.mode() & 0o7777)?;
        chown(&copy, Some(metadata.uid()), Some(metadata.gid())).with_context(failed)?;
        Ok(name)
    }
}

#[cfg(test)]
#[path = "apply/tests.rs"]
mod tests;
