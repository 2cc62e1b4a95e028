//! Security associations and their authenticators (RFC 5944, sections 3.5 and 5.1; RFC 4285).

use alloc::vec::Vec;
use core::fmt;
use core::net::Ipv6Addr;
use hmac::{Hmac, KeyInit, Mac};
use md5::Md5;
use outlast_wire::mobile_ip::{Authentication, MessageBuilder, SecuredPair};
use outlast_wire::mobile_ipv6::{self as v6, Covered};
use sha1::Sha1;
use sha2::Sha256;

/// How an authenticator is computed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    /// HMAC-MD5, which every implementation has (RFC 5944, section 5.1).
    HmacMd5,
    /// HMAC-SHA-1, which RFC 4285 demands for Mobile IPv6. No RFC of Mobile IPv4 names it.
    HmacSha1,
    /// HMAC-SHA-256, whole. No RFC of Mobile IP names it: both ends have to be told.
    HmacSha256,
}

impl Algorithm {
    const fn len(self) -> usize {
        match self {
            Self::HmacMd5 => 16,
            Self::HmacSha1 => 20,
            Self::HmacSha256 => 32,
        }
    }

    /// RFC 4285 cuts HMAC-SHA-1 to 96 bits.
    const fn len_v6(self) -> usize {
        match self {
            Self::HmacSha1 => 12,
            other => other.len(),
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
        message.authenticate(pair, self.spi, length, |covered| {
            self.authenticator(&[covered])
        })
    }

    /// Whether `extension` is this association's, and its authenticator right. Takes the same time
    /// for every wrong one.
    pub(crate) fn verify(&self, extension: &Authentication<'_>) -> bool {
        extension.spi == self.spi
            && extension.authenticator.len() == self.algorithm.len()
            && self.fits(&[extension.covered], extension.authenticator)
    }

    /// True if there is an extension in `all`, and each is this association's and right.
    pub(crate) fn verify_all<'a>(&self, all: impl Iterator<Item = Authentication<'a>>) -> bool {
        let mut all = all.peekable();
        all.peek().is_some() && all.all(|one| self.verify(&one))
    }

    /// Ends a message of Mobile IPv6 with its authentication (RFC 4285, section 5.1).
    pub(crate) fn sign_v6(
        &self,
        between: Between,
        message: v6::MessageBuilder,
    ) -> v6::MessageBuilder {
        let length = self.algorithm.len_v6();
        message.authenticate(self.spi, length, |covered| {
            let mut authenticator = self.authenticator(&between.parts(covered));
            authenticator.truncate(length);
            authenticator
        })
    }

    /// Whether a message of Mobile IPv6 is authenticated by this association.
    pub(crate) fn verify_v6(&self, between: Between, option: &v6::Authentication<'_>) -> bool {
        option.spi == Some(self.spi)
            && option.authenticator.len() == self.algorithm.len_v6()
            && self.fits(&between.parts(option.covered), option.authenticator)
    }

    fn authenticator(&self, parts: &[&[u8]]) -> Vec<u8> {
        match self.algorithm {
            Algorithm::HmacMd5 => self
                .keyed::<Hmac<Md5>>(parts)
                .finalize()
                .into_bytes()
                .to_vec(),
            Algorithm::HmacSha1 => self
                .keyed::<Hmac<Sha1>>(parts)
                .finalize()
                .into_bytes()
                .to_vec(),
            Algorithm::HmacSha256 => {
                let mac = self.keyed::<Hmac<Sha256>>(parts);
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    /// Whether `authenticator` is that of `parts`, or its beginning.
    fn fits(&self, parts: &[&[u8]], authenticator: &[u8]) -> bool {
        match self.algorithm {
            Algorithm::HmacMd5 => {
                let mac = self.keyed::<Hmac<Md5>>(parts);
                mac.verify_truncated_left(authenticator).is_ok()
            }
            Algorithm::HmacSha1 => {
                let mac = self.keyed::<Hmac<Sha1>>(parts);
                mac.verify_truncated_left(authenticator).is_ok()
            }
            Algorithm::HmacSha256 => {
                let mac = self.keyed::<Hmac<Sha256>>(parts);
                mac.verify_truncated_left(authenticator).is_ok()
            }
        }
    }

    fn keyed<M: Mac + KeyInit>(&self, parts: &[&[u8]]) -> M {
        let mac = <M as KeyInit>::new_from_slice(&self.key);
        let mac = mac.expect("HMAC takes keys of every length");
        parts.iter().fold(mac, Mac::chain_update)
    }
}

/// The addresses that an authenticator of Mobile IPv6 covers in front of the message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Between {
    care_of_address: [u8; 16],
    other: [u8; 16],
}

impl Between {
    /// A care-of address, and the home address (RFC 4285) or the correspondent's (RFC 6275).
    pub(crate) const fn new(care_of_address: Ipv6Addr, other: Ipv6Addr) -> Self {
        Self {
            care_of_address: care_of_address.octets(),
            other: other.octets(),
        }
    }

    /// All that is covered, in order.
    pub(crate) const fn parts<'a>(&'a self, covered: Covered<'a>) -> [&'a [u8]; 5] {
        let [head, checksum, tail] = covered.parts();
        [&self.care_of_address, &self.other, head, checksum, tail]
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
