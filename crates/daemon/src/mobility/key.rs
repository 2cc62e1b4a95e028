//! Keys of mobile nodes and their home agents in files, readable by their owner alone.

use super::random;
use crate::failure::Failure;
use crate::trusted::{self, Purpose};
use anyhow::Context;
use outlast_mobility::{Algorithm, SecurityAssociation};
use serde::{Deserialize, Serialize};
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Longer than any key file.
const LONGEST: u64 = 4 << 10;

/// RFC 5944, section 5.1: keys of 128 bits at least.
const SHORTEST_KEY: usize = 16;

/// Indexes below are reserved.
const FIRST_SPI: u32 = 256;

/// How messages are authenticated.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Authenticator {
    /// HMAC-MD5, which implementations of others have.
    #[serde(rename = "hmac-md5")]
    HmacMd5,
    /// HMAC-SHA-1, which RFC 4285 demands of implementations of Mobile IPv6.
    #[serde(rename = "hmac-sha-1")]
    HmacSha1,
    /// HMAC-SHA-256, which only Outlast has.
    #[serde(rename = "hmac-sha-256")]
    HmacSha256,
}

/// What a key file says.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct KeyFile {
    spi: u32,
    algorithm: Authenticator,
    /// Hexadecimal digits.
    key: String,
}

/// Makes a key and writes it to `path`; gives its security parameter index.
pub fn make(path: &Path, algorithm: Authenticator, spi: Option<u32>) -> Result<u32, Failure> {
    let shown = path.display();
    let spi = match spi {
        Some(spi) => spi,
        None => u32::from_be_bytes(random::<4>()?).max(FIRST_SPI),
    };
    let key = match algorithm {
        Authenticator::HmacMd5 => random::<16>()?.to_vec(),
        Authenticator::HmacSha1 => random::<20>()?.to_vec(),
        Authenticator::HmacSha256 => random::<32>()?.to_vec(),
    };
    association(spi, algorithm, &key).map_err(Failure::Usage)?;
    let text = toml::to_string(&KeyFile {
        spi,
        algorithm,
        key: key.iter().map(|byte| format!("{byte:02x}")).collect(),
    })
    .context("cannot write a key as TOML")
    .map_err(Failure::Run)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|error| Failure::Usage(format!("cannot make {shown}: {error}")))?;
    file.write_all(text.as_bytes())
        .and_then(|()| file.sync_all())
        .with_context(|| format!("cannot write {shown}"))
        .map_err(Failure::Run)?;
    Ok(spi)
}

/// Reads a key.
pub(super) fn load(path: &Path) -> Result<SecurityAssociation, Failure> {
    let shown = path.display();
    let refuse = |what: String| Failure::Usage(format!("the key at {shown}: {what}"));
    let text =
        trusted::read(path, Purpose::Key, LONGEST).map_err(|reason| refuse(reason.to_string()))?;
    // What the parser says of the file may quote the key.
    let known: KeyFile = toml::from_str(&text)
        .map_err(|_| refuse("is no key; `outlast mobile-ip key` makes one".into()))?;
    let key = bytes(&known.key).ok_or_else(|| refuse("the key is not hexadecimal".into()))?;
    association(known.spi, known.algorithm, &key).map_err(refuse)
}

fn association(
    spi: u32,
    algorithm: Authenticator,
    key: &[u8],
) -> Result<SecurityAssociation, String> {
    if key.len() < SHORTEST_KEY {
        return Err(format!("is shorter than {SHORTEST_KEY} bytes"));
    }
    let algorithm = match algorithm {
        Authenticator::HmacMd5 => Algorithm::HmacMd5,
        Authenticator::HmacSha1 => Algorithm::HmacSha1,
        Authenticator::HmacSha256 => Algorithm::HmacSha256,
    };
    SecurityAssociation::new(spi, algorithm, key).map_err(|error| error.to_string())
}

/// The bytes that pairs of hexadecimal digits say.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? << 4 | digit(*low)?).ok();
    match rest {
        [] => pairs.iter().map(byte).collect(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_that_are_made_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let spi = make(&path, Authenticator::HmacSha256, None).expect("made");
        assert_eq!(load(&path).expect("read").spi(), spi);
        let other = directory.path().join("other");
        let spi = make(&other, Authenticator::HmacSha1, None).expect("made");
        assert_eq!(load(&other).expect("read").spi(), spi);
        assert!(matches!(
            make(&path, Authenticator::HmacMd5, None),
            Err(Failure::Usage(_))
        ));
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("it is ours");
        assert!(load(&path).is_err(), "open to the group");
    }

    #[test]
    fn what_is_no_key_is_refused_without_a_quotation() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("key");
        let refused = make(&path, Authenticator::HmacMd5, Some(255));
        assert!(refused.expect_err("reserved").to_string().contains("255"));
        let key = "00112233445566778899aabbccddeeff";
        let texts = [
            format!("spi = 256\nalgorithm = \"md4\"\nkey = \"{key}\"\n"),
            format!("spi = 256\nalgorithm = \"hmac-md5\"\nkey = \"{key}0\"\n"),
            format!("spi = 256\nalgorithm = \"hmac-md5\"\nkey = \"{key}\"\nmore = 1\n"),
            format!(
                "spi = 256\nalgorithm = \"hmac-md5\"\nkey = \"{}\"\n",
                &key[..30]
            ),
            format!("spi = 1\nalgorithm = \"hmac-md5\"\nkey = \"{key}\"\n"),
        ];
        for text in texts {
            std::fs::write(&path, &text).expect("a file of ours");
            std::fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("it is ours");
            let said = load(&path).expect_err(&text).to_string();
            assert!(!said.contains(key), "{said}");
        }
    }
}
