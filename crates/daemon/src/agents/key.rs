//! The key that neighbours share: 32 random bytes, written as 64 hexadecimal digits in a file that
//! nobody but its owner can read.

use crate::failure::Failure;
use crate::trusted::{self, Purpose};
use anyhow::Context;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fmt;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const LENGTH: usize = 32;

/// A shared key.
#[derive(Clone)]
pub(super) struct SharedKey(pub(super) [u8; LENGTH]);

impl fmt::Debug for SharedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SharedKey")
    }
}

impl SharedKey {
    /// Reads the file at `path`.
    pub(super) fn load(path: &Path) -> Result<Self, Failure> {
        let shown = path.display();
        // A longer file is none of ours.
        let text = trusted::read(path, Purpose::Key, 256).map_err(|reason| {
            Failure::Usage(match reason.is_absence() {
                true => format!(
                    "there is no key at {shown}: `outlast agents key {shown}` makes one, which all \
                     neighbours are to have"
                ),
                false => format!("cannot take the key at {shown}: {reason}"),
            })
        })?;
        decode(text.trim()).map(Self).ok_or_else(|| {
            Failure::Usage(format!(
                "{shown} is no key: `outlast agents key` writes {} hexadecimal digits",
                2 * LENGTH
            ))
        })
    }
}

/// Writes a new key to `path`, where nothing is yet.
pub fn make(path: &Path) -> Result<(), Failure> {
    let mut key = [0; LENGTH];
    let length = getrandom(&mut key, GetRandomFlags::empty()).context("no random numbers")?;
    debug_assert_eq!(length, LENGTH, "short reads begin at 256 bytes");
    let text: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600);
    let mut file = options.open(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Failure::Usage(format!(
            "{} is there already: remove it first if no neighbour needs it any more",
            path.display()
        )),
        _ => Failure::Usage(format!("cannot write {}: {error}", path.display())),
    })?;
    writeln!(file, "{text}").context("cannot write the key")?;
    Ok(file.sync_all().context("cannot write the key")?)
}

fn decode(text: &str) -> Option<[u8; LENGTH]> {
    let mut key = [0; LENGTH];
    if text.len() != 2 * LENGTH || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
        let digits = str::from_utf8(digits).ok()?;
        if digits.starts_with('+') {
            return None;
        }
        *byte = u8::from_str_radix(digits, 16).ok()?;
    }
    Some(key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[track_caller]
    fn refused(path: &Path, word: &str) {
        match SharedKey::load(path) {
            Err(failure) => assert!(failure.to_string().contains(word), "{failure}"),
            Ok(_) => panic!("it was taken"),
        }
    }

    #[test]
    fn a_key_is_made_once_and_read_by_its_owner_alone() {
        let place = tempfile::TempDir::new().expect("a directory");
        let path = place.path().join("agents.key");
        refused(&path, "outlast agents key");
        assert!(make(&path).is_ok());
        let key = SharedKey::load(&path).expect("as it was made");
        assert_ne!(key.0, [0; LENGTH]);
        assert!(make(&path).is_err(), "it is not written over");
        let open = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(&path, open).expect("ours");
        refused(&path, "chmod 600");
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let place = tempfile::TempDir::new().expect("a directory");
        for (index, text) in [
            "",
            "abc",
            &"x".repeat(64),
            &"0".repeat(65),
            &"+1".repeat(32),
        ]
        .iter()
        .enumerate()
        {
            let path = place.path().join(index.to_string());
            let mut options = OpenOptions::new();
            let file = options.write(true).create_new(true).mode(0o600).open(&path);
            write!(file.expect("new"), "{text}").expect("written");
            refused(&path, "hexadecimal");
        }
    }
}
