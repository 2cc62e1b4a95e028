//! KEYMAT: the keys of an association, drawn in the order of RFC 7401, section 6.5, and
//! RFC 7402, section 7.

use crate::cipher::HipCipher;
use crate::rhash::Rhash;
use crate::suite::EspSuite;
use alloc::vec::Vec;
use core::fmt;
use outlast_wire::hip::Hit;
use zeroize::Zeroizing;

/// Bytes of a key of each kind.
type Key = Zeroizing<Vec<u8>>;

/// Keying material that keys are cut from by index.
pub struct Keymat {
    rhash: Rhash,
    salt: Vec<u8>,
    secret: Zeroizing<Vec<u8>>,
    info: [u8; 32],
}

impl fmt::Debug for Keymat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keymat").finish_non_exhaustive()
    }
}

/// The keys that one host sends HIP packets with.
#[derive(Clone)]
pub struct HipKeys {
    /// For ENCRYPTED.
    pub encryption: Key,
    /// For HIP_MAC and the like.
    pub integrity: Key,
}

/// The keys that one host sends ESP packets with.
#[derive(Clone)]
pub struct EspKeys {
    /// For the payload.
    pub encryption: Key,
    /// For the integrity check value.
    pub authentication: Key,
}

/// What is drawn for both directions.
#[derive(Clone)]
pub struct Pair<T> {
    /// For what this host sends.
    pub own: T,
    /// For what the peer sends.
    pub peer: T,
}

impl<T> fmt::Debug for Pair<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

impl Keymat {
    /// The material of the secret Kij, the puzzle's numbers and both hosts.
    #[must_use]
    pub fn new(
        rhash: Rhash,
        secret: Zeroizing<Vec<u8>>,
        i: &[u8],
        j: &[u8],
        hosts: [Hit; 2],
    ) -> Self {
        let [a, b] = hosts;
        let mut info = [0; 32];
        info[..16].copy_from_slice(&a.min(b).0);
        info[16..].copy_from_slice(&a.max(b).0);
        Self {
            rhash,
            salt: [i, j].concat(),
            secret,
            info,
        }
    }

    /// The material of another secret: the numbers of the puzzle and the hosts stay (RFC 7401, section 6.5).
    #[must_use]
    pub fn renewed(&self, secret: Zeroizing<Vec<u8>>) -> Self {
        Self {
            rhash: self.rhash,
            salt: self.salt.clone(),
            secret,
            info: self.info,
        }
    }

    /// The first `length` bytes; nothing past what HKDF gives.
    #[must_use]
    pub fn bytes(&self, length: usize) -> Option<Key> {
        let mut out = Zeroizing::new(alloc::vec![0; length]);
        self.rhash
            .expand(&self.salt, &self.secret, &self.info, &mut out)
            .then_some(out)
    }

    /// Draws the keys for HIP packets, for the host `own` with the peer `peer`.
    #[must_use]
    pub fn hip_keys(&self, cipher: HipCipher, own: Hit, peer: Hit) -> Option<Pair<HipKeys>> {
        let lengths = (cipher.key_len(), self.rhash.len());
        let keys = |(encryption, integrity)| HipKeys {
            encryption,
            integrity,
        };
        let [greater, lower] = self.cut(0, lengths)?;
        Some(directed(keys(greater), keys(lower), own, peer))
    }

    /// Where the keys for ESP begin.
    #[must_use]
    pub const fn esp_index(&self, cipher: HipCipher) -> u16 {
        (2 * (cipher.key_len() + self.rhash.len())) as u16
    }

    /// Draws the keys for ESP packets from `index` on.
    #[must_use]
    pub fn esp_keys(
        &self,
        suite: EspSuite,
        index: u16,
        own: Hit,
        peer: Hit,
    ) -> Option<Pair<EspKeys>> {
        let keys = |(encryption, authentication)| EspKeys {
            encryption,
            authentication,
        };
        let [greater, lower] = self.cut(usize::from(index), suite.key_lens())?;
        Some(directed(keys(greater), keys(lower), own, peer))
    }

    /// Cuts two pairs of keys with these lengths.
    fn cut(&self, index: usize, (first, second): (usize, usize)) -> Option<[(Key, Key); 2]> {
        let all = self.bytes(index + 2 * (first + second))?;
        let key = |at: usize, length: usize| {
            let bytes = all.get(at..at + length)?;
            Some(Zeroizing::new(bytes.to_vec()))
        };
        let pair = |at: usize| Some((key(at, first)?, key(at + first, second)?));
        Some([pair(index)?, pair(index + first + second)?])
    }
}

/// The keys of the host with the greater tag come first.
fn directed<T>(greater: T, lower: T, own: Hit, peer: Hit) -> Pair<T> {
    if own > peer {
        Pair {
            own: greater,
            peer: lower,
        }
    } else {
        Pair {
            own: lower,
            peer: greater,
        }
    }
}
