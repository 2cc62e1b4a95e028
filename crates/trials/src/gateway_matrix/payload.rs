//! What is transferred, and whether it has come as it was.

use std::fs;
use std::io;
use std::path::Path;

/// Bytes that no program can make fewer (a linear congruential generator of Knuth's constants).
pub(crate) fn payload(seed: u64, length: u64) -> Vec<u8> {
    let mut state = seed;
    (0..length)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (state >> 56) as u8
        })
        .collect()
}

/// Whether the two files hold the same; not if the second one is not there.
pub(crate) fn is_same(sent: &Path, got: &Path) -> io::Result<bool> {
    let hash = |path: &Path| Ok::<_, io::Error>(blake3::hash(&fs::read(path)?));
    match (hash(sent)?, hash(got)) {
        (sent, Ok(got)) => Ok(sent == got),
        (_, Err(error)) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        (_, Err(error)) => Err(error),
    }
}
