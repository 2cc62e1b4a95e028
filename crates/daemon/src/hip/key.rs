//! Host identities in files: private keys in PKCS #8, readable by their owner alone.

use crate::failure::Failure;
use crate::trusted::{self, Purpose};
use anyhow::{Context, anyhow};
use outlast_hip::identity::{Algorithm, Identity};
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Longer than any key.
const LONGEST: u64 = 16 << 10;

/// Makes an identity and writes it to `path`; gives its tag.
pub fn make(path: &Path, algorithm: Algorithm) -> Result<String, Failure> {
    let shown = path.display();
    let mut seed = [0; 32];
    getrandom(&mut seed, GetRandomFlags::empty())
        .map_err(|errno| Failure::Run(anyhow!(errno).context("no randomness")))?;
    let made = Identity::from_seed(algorithm, seed).map_err(|error| Failure::Run(anyhow!(error)));
    let identity = made?;
    let pem = identity
        .to_pem()
        .map_err(|error| Failure::Run(anyhow!(error)))?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Failure::Usage(format!("cannot make {shown}: {error}")))?;
    file.write_all(pem.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {shown}"))
        .map_err(Failure::Run)?;
    Ok(identity.hit().to_string())
}

/// Reads an identity.
pub fn load(path: &Path) -> Result<Identity, Failure> {
    let shown = path.display();
    let refuse = |what: String| Failure::Usage(format!("the key at {shown}: {what}"));
    let pem =
        trusted::read(path, Purpose::Key, LONGEST).map_err(|reason| refuse(reason.to_string()))?;
    let identity = Identity::from_pem(&pem);
    identity.map_err(|error| refuse(format!("{error}; `outlast hip key` makes one")))
}
