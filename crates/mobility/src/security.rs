//! Security associations and their authenticators (RFC 5944, sections 3.5 and 5.1).

use alloc::vec::Vec;
use core::fmt;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use outlast_wire::mobile_ip::{Authentication, MessageBuilder, SecuredPair};
use sha2::Sha256;

/// How an authenticator is computed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    /// HMAC-MD5, which every implementation has (RFC 5944, section 5.1).
    HmacMd5,
    /// HMAC-SHA-256, whole. No RFC of Mobile IP names it: both ends have to be told.
    HmacSha256,
}

impl Algorithm {
    const fn len(self) -> usize {
        match self {
            Self::HmacMd5 => 16,
            Self::HmacSha256 => 32,
        }
    }
}

/// What two nodes authenticate each other with: index, algorithm and key.
#[derive(Clone, Eq, PartialEq)]
pub struct SecurityAssociation {
    spi: u32,
    algorithm: Algorithm,
    key: Vec<u8>,
}

/// Security parameter indexes below 256 are reserved (RFC 5944, section 3.5.1).
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("security parameter index {0} is reserved: use 256 or more")]
pub struct InvalidSpi(pub u32);

impl SecurityAssociation {
    /// An association that `spi` names.
    ///
    /// # Errors
    ///
    /// [`InvalidSpi`] below 256.
    pub fn new(spi: u32, algorithm: Algorithm, key: &[u8]) -> Result<Self, InvalidSpi> {
        match spi {
            0..256 => Err(InvalidSpi(spi)),
            _ => Ok(Self {
                spi,
                algorithm,
                key: key.to_vec(),
            }),
        }
    }

    /// Its security parameter index.
    #[must_use]
    pub const fn spi(&self) -> u32 {
        self.spi
    }

    /// Appends the extension by which `pair` authenticates `message`.
    pub(crate) fn sign(&self, pair: SecuredPair, message: MessageBuilder) -> MessageBuilder {
        let length = self.algorithm.len();
        message.authenticate(pair, self.spi, length, |covered| match self.algorithm {
            Algorithm::HmacMd5 => {
                let mac = self.hmac_md5().chain_update(covered);
                mac.finalize().into_bytes().to_vec()
            }
            Algorithm::HmacSha256 => {
                let mac = self.hmac_sha256().chain_update(covered);
                mac.finalize().into_bytes().to_vec()
            }
        })
    }

    /// Whether `extension` is this association's, and its authenticator right. Takes the same time
    /// for every wrong one.
    pub(crate) fn verify(&self, extension: &Authentication<'_>) -> bool {
        let (covered, authenticator) = (extension.covered, extension.authenticator);
        extension.spi == self.spi
            && match self.algorithm {
                Algorithm::HmacMd5 => {
                    let mac = self.hmac_md5().chain_update(covered);
                    mac.verify_slice(authenticator).is_ok()
                }
                Algorithm::HmacSha256 => {
                    let mac = self.hmac_sha256().chain_update(covered);
                    mac.verify_slice(authenticator).is_ok()
                }
            }
    }

    fn hmac_md5(&self) -> Hmac<Md5> {
        Hmac::new_from_slice(&self.key).expect("HMAC takes keys of every length")
    }

    fn hmac_sha256(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.key).expect("HMAC takes keys of every length")
    }
}

impl fmt::Debug for SecurityAssociation {
    /// Leaves the key out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecurityAssociation")
            .field("spi", &self.spi)
            .field("algorithm", &self.algorithm)
            .finish_non_exhaustive()
    }
}
