//! Undoing of a set-up, from its record: what the user has changed since is kept and told of.

use crate::setup::manifest::{
    Entry, Manifest, digest_of, directory, remove_if_empty, remove_if_there, write_atomically,
};
use crate::setup::plan::below;
use crate::setup::services::Services;
use anyhow::Context;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::Path;

/// Undoes the entries of `manifest`, the last first, and takes them out of it; a line for each thing.
///
/// After an error the entries that are left stand in `manifest`.
pub(crate) fn undo(
    manifest: &mut Manifest,
    root: &Path,
    services: &mut dyn Services,
) -> anyhow::Result<Vec<String>> {
    let mut lines = Vec::new();
    // Units come first in the list, so that all else is undone between their end and their return.
    let is_unit = |entry: &Entry| matches!(entry, Entry::Unit { .. });
    manifest.entries.sort_by_key(|entry| !is_unit(entry));
    let units = manifest.entries.iter().filter(|entry| is_unit(entry));
    for unit in units.cloned().collect::<Vec<_>>() {
        if let Entry::Unit {
            name,
            was_enabled,
            was_active: false,
        } = &unit
        {
            services.stop(name, *was_enabled, false)?;
            lines.push(format!("stopped {name}"));
            manifest.entries.retain(|entry| *entry != unit);
        }
    }
    let mut reads_units = !lines.is_empty();
    while let Some(entry) = manifest.entries.last().cloned() {
        match &entry {
            Entry::Unit {
                name, was_enabled, ..
            } => {
                if std::mem::take(&mut reads_units) {
                    services.read_units()?;
                }
                services.stop(name, *was_enabled, true)?;
                lines.push(format!("{name} ran before, and goes on as before"));
            }
            Entry::Account => {
                services.remove_account()?;
                lines.push("removed the user outlast".into());
            }
            Entry::File {
                path,
                digest,
                replaced,
            } => lines.push(undo_file(root, path, digest, replaced.as_deref())?),
            Entry::Directory { path } => {
                if !remove_if_empty(&below(root, path))? {
                    lines.push(format!("kept {}, which is not empty", path.display()));
                }
            }
        }
        manifest.entries.pop();
    }
    if reads_units {
        services.read_units()?;
    }
    Ok(lines)
}

/// The things that would be undone, a line each.
pub(crate) fn steps(manifest: &Manifest) -> String {
    let lines = manifest.entries.iter().rev().map(|entry| match entry {
        Entry::Unit {
            name,
            was_active: true,
            ..
        } => format!("have {name} read its former configuration\n"),
        Entry::Unit { name, .. } => format!("run systemctl disable --now {name}\n"),
        Entry::Account => "run userdel outlast\n".into(),
        Entry::File {
            path,
            replaced: Some(_),
            ..
        } => format!("put {} back, unless it was changed\n", path.display()),
        Entry::File { path, .. } => format!("remove {}, unless it was changed\n", path.display()),
        Entry::Directory { path } => format!("remove {}, if it is empty\n", path.display()),
    });
    lines.collect()
}

/// Removes a file that is as it was written, or puts back the one that it has replaced.
fn undo_file(
    root: &Path,
    path: &Path,
    written: &str,
    replaced: Option<&str>,
) -> anyhow::Result<String> {
    let at = below(root, path);
    let shown = path.display();
    let copy = replaced.map(|name| directory(root).join(name));
    let now = digest_of(&at)?;
    let Some(copy) = copy else {
        return Ok(match now {
            None => format!("{shown} is gone already"),
            Some(now) if now == written => {
                remove_if_there(&at)?;
                format!("removed {shown}")
            }
            Some(_) => format!("kept {shown}, which was changed since"),
        });
    };
    let before = digest_of(&copy)?;
    if now.as_deref().is_some_and(|now| now != written) && now != before {
        return Ok(format!(
            "kept {shown}, which was changed since; the file that was there before is {}",
            copy.display()
        ));
    }
    let failed = || format!("cannot put {shown} back from {}", copy.display());
    let metadata = fs::metadata(&copy).with_context(failed)?;
    let bytes = fs::read(&copy).with_context(failed)?;
    write_atomically(&at, &bytes, metadata.mode() & 0o7777)?;
    chown(&at, Some(metadata.uid()), Some(metadata.gid())).with_context(failed)?;
    remove_if_there(&copy)?;
    Ok(format!("put {shown} back as it was"))
}
