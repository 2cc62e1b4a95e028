//! Kernels in the distribution's packages.

use crate::{Architecture, GuestError, Kernel, place};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A packaged kernel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Package {
    /// Its version, such as `6.12`.
    pub version: String,
    /// Name of the package, such as `linux-image-6.12.117+deb12-cloud-amd64`.
    pub name: String,
}

/// The packaged kernels for guests of an architecture: the newest package of each version, the oldest version first.
///
/// # Errors
/// Without `apt-cache`, or when it knows none.
pub fn list(architecture: Architecture) -> Result<Vec<Package>, GuestError> {
    let ending = format!("-cloud-{}", architecture.name());
    let pattern = format!("^linux-image-[0-9].*{ending}$");
    let known = said(Command::new("apt-cache").args(["search", "--names-only", &pattern]))?;
    let mut newest: Vec<(Vec<u64>, Package)> = Vec::new();
    for line in known.lines() {
        let name = line.split_whitespace().next().unwrap_or_default();
        let release = name
            .strip_prefix("linux-image-")
            .and_then(|name| name.strip_suffix(&ending));
        let Some(release) = release else { continue };
        let numbers = numbers(release);
        // Packages that follow a version have two numbers; they hold nothing themselves.
        let [major, minor, _, ..] = numbers[..] else {
            continue;
        };
        let package = Package {
            version: format!("{major}.{minor}"),
            name: name.to_owned(),
        };
        match newest
            .iter_mut()
            .find(|(_, other)| other.version == package.version)
        {
            Some(other) if other.0 < numbers => *other = (numbers, package),
            Some(_) => {}
            None => newest.push((numbers, package)),
        }
    }
    newest.sort_by(|(one, _), (other, _)| one.cmp(other));
    if newest.is_empty() {
        let name = architecture.name();
        let remedy = match Architecture::HOST == Some(architecture) {
            true => "`apt-get update` may help".to_owned(),
            false => format!("`dpkg --add-architecture {name} && apt-get update` may help"),
        };
        return Err(GuestError::Package(format!(
            "apt knows no packaged kernel (linux-image-*{ending}); {remedy}"
        )));
    }
    Ok(newest.into_iter().map(|(_, package)| package).collect())
}

/// Downloads the packaged kernel of `version`, such as `6.12`, and unpacks it into `directory`, which must be empty or
/// not there. Nothing is installed.
///
/// # Errors
/// Without the tools, without such a package, or when it cannot be had.
pub fn get(
    version: &str,
    directory: &Path,
    architecture: Architecture,
) -> Result<Kernel, GuestError> {
    let all = list(architecture)?;
    let fits = |package: &&Package| package.version == version || package.name == version;
    let Some(package) = all.iter().find(fits) else {
        let versions: Vec<&str> = all.iter().map(|package| package.version.as_str()).collect();
        return Err(GuestError::Package(format!(
            "there is no packaged kernel {version}; there are {}",
            versions.join(", ")
        )));
    };
    let is_free = match fs::read_dir(directory) {
        Ok(mut entries) => entries.next().is_none(),
        Err(_) => !directory.exists(),
    };
    if !is_free {
        return Err(GuestError::Package(format!(
            "{} is not an empty directory: name another one",
            directory.display()
        )));
    }
    fs::create_dir_all(directory).map_err(GuestError::file("make", directory))?;
    let work = TempDir::new_in(directory).map_err(GuestError::file("write to", directory))?;
    // apt reads packages as another user where it may.
    let name = format!("{}:{}", package.name, architecture.name());
    said(
        Command::new("apt-get")
            .args(["download", "-qq", "-o", "APT::Sandbox::User=root", &name])
            .current_dir(work.path()),
    )?;
    let files = fs::read_dir(work.path()).map_err(GuestError::file("read", work.path()))?;
    for file in files.flatten() {
        said(
            Command::new("dpkg-deb")
                .arg("-x")
                .arg(file.path())
                .arg(directory),
        )?;
    }
    drop(work);
    Kernel::open(directory)
}

/// The packaged kernel of `version` for this program's architecture; downloaded at the first use.
///
/// Kernels are kept below `$OUTLAST_KERNELS`, or `$XDG_CACHE_HOME/outlast/kernels`, by their versions.
///
/// # Errors
/// As [`get`].
pub fn cached(version: &str) -> Result<Kernel, GuestError> {
    let architecture = Architecture::HOST;
    let architecture = architecture
        .ok_or_else(|| GuestError::Package("guests are for amd64 and arm64 only".into()))?;
    let home = place::of("OUTLAST_KERNELS", "kernels");
    let home = home.ok_or_else(|| {
        GuestError::Package(
            "there is no place for kernels: set OUTLAST_KERNELS to a directory".into(),
        )
    })?;
    fs::create_dir_all(&home).map_err(GuestError::file("make", &home))?;
    let directory = home.join(version);
    if !directory.exists() {
        // Whoever looks meanwhile finds all of it or nothing.
        let work = TempDir::new_in(&home).map_err(GuestError::file("write to", &home))?;
        let made = work.path().join(version);
        get(version, &made, architecture)?;
        match fs::rename(&made, &directory) {
            // Another process was faster.
            Err(_) if directory.exists() => {}
            renamed => renamed.map_err(GuestError::file("make", &directory))?,
        }
    }
    Kernel::open(&directory)
}

/// All numbers in a release, for comparison.
fn numbers(release: &str) -> Vec<u64> {
    let digits = release.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|digits| digits.parse().ok()).collect()
}

/// Standard output of a program that succeeds.
fn said(command: &mut Command) -> Result<String, GuestError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => GuestError::Program {
                package: if program == "dpkg-deb" { "dpkg" } else { "apt" },
                program: program.clone(),
            },
            _ => GuestError::Package(format!("{program}: {error}")),
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(GuestError::Package(format!(
        "{program} failed: {complaint}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_compared_by_their_numbers() {
        assert!(numbers("6.12.117+deb12") > numbers("6.12.99+deb12"));
        assert!(numbers("6.1.0-56") < numbers("6.12.8"));
    }
}
