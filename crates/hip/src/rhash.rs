//! RHASH: the hash of the Responder's HIT suite, for everything in an association
//! (RFC 7401, sections 5.2.10 and 6.4.1).

use alloc::vec::Vec;
use hkdf::Hkdf;
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256, Sha384};
use subtle::ConstantTimeEq;

/// The hash function of a HIT suite.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Rhash {
    /// HIT suite 1.
    Sha256,
    /// HIT suite 2.
    Sha384,
}

impl Rhash {
    /// The hash function of the HIT suite with this number.
    #[must_use]
    pub const fn of_suite(suite: u8) -> Option<Self> {
        match suite {
            1 => Some(Self::Sha256),
            2 => Some(Self::Sha384),
            _ => None,
        }
    }

    /// Bytes of a hash, a MAC or a key of this function.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a length, not a collection")]
    pub const fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    /// The hash over `parts`, one after the other.
    #[must_use]
    pub fn hash(self, parts: &[&[u8]]) -> Vec<u8> {
        fn over<D: Digest>(parts: &[&[u8]]) -> Vec<u8> {
            let mut digest = D::new();
            parts.iter().for_each(|part| digest.update(part));
            digest.finalize().to_vec()
        }
        match self {
            Self::Sha256 => over::<Sha256>(parts),
            Self::Sha384 => over::<Sha384>(parts),
        }
    }

    /// The HMAC over `parts`, one after the other (RFC 2104).
    #[must_use]
    pub fn mac(self, key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
        fn over<M: Mac + KeyInit>(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
            // HMAC takes keys of any length, so this never fails.
            let Ok(mut mac) = <M as KeyInit>::new_from_slice(key) else {
                return Vec::new();
            };
            parts.iter().for_each(|part| mac.update(part));
            mac.finalize().into_bytes().to_vec()
        }
        match self {
            Self::Sha256 => over::<Hmac<Sha256>>(key, parts),
            Self::Sha384 => over::<Hmac<Sha384>>(key, parts),
        }
    }

    /// Whether `mac` is the HMAC over `parts`, compared in constant time.
    #[must_use]
    pub fn mac_is_right(self, key: &[u8], parts: &[&[u8]], mac: &[u8]) -> bool {
        self.mac(key, parts).ct_eq(mac).into()
    }

    /// Fills `out` from `secret` by HKDF (RFC 5869); false if `out` is longer than it can give.
    #[must_use]
    pub fn expand(self, salt: &[u8], secret: &[u8], info: &[u8], out: &mut [u8]) -> bool {
        match self {
            Self::Sha256 => Hkdf::<Sha256>::new(Some(salt), secret).expand(info, out),
            Self::Sha384 => Hkdf::<Sha384>::new(Some(salt), secret).expand(info, out),
        }
        .is_ok()
    }
}
