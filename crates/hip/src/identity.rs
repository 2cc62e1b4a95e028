//! Host identities and their tags (RFC 7401, sections 3.2 and 5.2.9; RFC 7343, section 2).
//!
//! RSA signs with PSS and a salt as long as the hash; ECDSA gives r and s of fixed length. The
//! public point of ECDSA follows its curve label uncompressed, as SEC 1 writes it.

use crate::rhash::Rhash;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use chacha20::ChaCha20Rng;
use core::fmt;
use outlast_wire::hip::Hit;
use p256::ecdsa::signature::hazmat::{PrehashSigner, PrehashVerifier};
use p256::elliptic_curve::Generate;
use p256::pkcs8::{DecodePrivateKey, EncodePrivateKey, LineEnding};
use rand_core::{CryptoRng, SeedableRng};
use rsa::traits::PublicKeyParts;
use rsa::{BoxedUint, PrivateKey as RsaPrivateKey, PublicKey as RsaPublicKey};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The context of RFC 7401's tags (section 3.2).
const CONTEXT: [u8; 16] = [
    0xf0, 0xef, 0xf0, 0x2f, 0xbf, 0xf4, 0x3d, 0x0f, 0xe7, 0x93, 0x0c, 0x3c, 0x6e, 0x61, 0x74, 0xea,
];

/// The shortest RSA modulus that is accepted: 112 bits of strength.
const MIN_RSA_BITS: u32 = 2048;

/// The longest: a host identity has to fit a packet.
const MAX_RSA_BITS: usize = 4096;

/// The numbers of HI algorithms.
mod algorithm {
    pub(super) const RSA: u16 = 5;
    pub(super) const ECDSA: u16 = 7;
}

/// The curve labels of ECDSA.
mod curve {
    pub(super) const P256: [u8; 2] = [0, 1];
    pub(super) const P384: [u8; 2] = [0, 2];
}

/// A kind of key that an identity is made with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// ECDSA on NIST P-256.
    EcdsaP256,
    /// ECDSA on NIST P-384.
    EcdsaP384,
}

/// Why a key is no identity.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum IdentityError {
    /// No PKCS #8 of RSA, P-256 or P-384.
    #[error("this is no private key of RSA, P-256 or P-384 in PKCS #8")]
    Unreadable,
    /// The algorithm is not known.
    #[error("host identity algorithm {0} is not known")]
    Algorithm(u16),
    /// The encoding of the public key is malformed.
    #[error("the encoded public key is malformed")]
    Malformed,
    /// The RSA modulus is too short or too long.
    #[error("an RSA key needs 2048 to 4096 bits")]
    Strength,
    /// A key could not be made or written.
    #[error("the key could not be made")]
    Failed,
}

enum PrivateKey {
    Rsa(alloc::boxed::Box<RsaPrivateKey>),
    P256(p256::ecdsa::SigningKey),
    P384(p384::ecdsa::SigningKey),
}

#[derive(Clone, Debug)]
enum PublicKey {
    Rsa(RsaPublicKey),
    P256(p256::ecdsa::VerifyingKey),
    P384(p384::ecdsa::VerifyingKey),
}

/// A host's public key.
#[derive(Clone, Debug)]
pub struct PublicIdentity {
    key: PublicKey,
    encoding: Vec<u8>,
    hit: Hit,
}

/// A host's key pair.
pub struct Identity {
    key: PrivateKey,
    public: PublicIdentity,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identity").field(&self.public.hit).finish()
    }
}

impl PublicKey {
    const fn algorithm(&self) -> u16 {
        match self {
            Self::Rsa(_) => algorithm::RSA,
            Self::P256(_) | Self::P384(_) => algorithm::ECDSA,
        }
    }

    /// The encoding that HOST_ID carries.
    fn encode(&self) -> Vec<u8> {
        match self {
            Self::Rsa(key) => {
                // RFC 3110: length of the exponent, exponent, modulus.
                let exponent = key.e_bytes();
                let mut out = match u8::try_from(exponent.len()) {
                    Ok(length) => alloc::vec![length],
                    Err(_) => alloc::vec![0, (exponent.len() >> 8) as u8, exponent.len() as u8],
                };
                out.extend_from_slice(&exponent);
                out.extend_from_slice(&key.n_bytes());
                out
            }
            Self::P256(key) => [&curve::P256[..], key.to_sec1_point(false).as_bytes()].concat(),
            Self::P384(key) => [&curve::P384[..], key.to_sec1_point(false).as_bytes()].concat(),
        }
    }

    fn decode(algorithm: u16, encoding: &[u8]) -> Result<Self, IdentityError> {
        match algorithm {
            algorithm::RSA => decode_rsa(encoding),
            algorithm::ECDSA => match encoding.split_first_chunk::<2>() {
                Some((&curve::P256, point)) => p256::ecdsa::VerifyingKey::from_sec1_bytes(point)
                    .map(Self::P256)
                    .map_err(|_| IdentityError::Malformed),
                Some((&curve::P384, point)) => p384::ecdsa::VerifyingKey::from_sec1_bytes(point)
                    .map(Self::P384)
                    .map_err(|_| IdentityError::Malformed),
                _ => Err(IdentityError::Malformed),
            },
            other => Err(IdentityError::Algorithm(other)),
        }
    }
}

fn decode_rsa(encoding: &[u8]) -> Result<PublicKey, IdentityError> {
    let (exponent_len, rest) = match encoding {
        [0, high, low, rest @ ..] => (usize::from(*high) << 8 | usize::from(*low), rest),
        [length, rest @ ..] => (usize::from(*length), rest),
        [] => return Err(IdentityError::Malformed),
    };
    let (exponent, modulus) = rest
        .split_at_checked(exponent_len)
        .ok_or(IdentityError::Malformed)?;
    // The exponents that are in use have at most 32 bits; a long one would cost time.
    if exponent.len() > 4 || modulus.len() > MAX_RSA_BITS / 8 {
        return Err(IdentityError::Strength);
    }
    let exponent = BoxedUint::from_be_slice_vartime(exponent);
    let modulus = BoxedUint::from_be_slice_vartime(modulus);
    if modulus.bit_width_vartime() < MIN_RSA_BITS {
        return Err(IdentityError::Strength);
    }
    let bits = MIN_RSA_BITS as usize..=MAX_RSA_BITS;
    RsaPublicKey::new_with_size_limits(modulus, exponent, bits)
        .map(PublicKey::Rsa)
        .map_err(|_| IdentityError::Malformed)
}

/// The tag of an encoded public key in the HIT suite with this number and hash.
fn hit_of(suite: u8, encoding: &[u8]) -> Hit {
    let Some(rhash) = Rhash::of_suite(suite) else {
        return Hit::NULL;
    };
    let hash = rhash.hash(&[&CONTEXT, encoding]);
    let mut hit = [
        0x20,
        0x01,
        0x00,
        0x20 | suite,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
        0,
    ];
    // The middle 96 bits.
    let start = hash.len() / 2 - 6;
    if let (Some(place), Some(middle)) = (hit.get_mut(4..), hash.get(start..start + 12)) {
        place.copy_from_slice(middle);
    }
    Hit(hit)
}

impl PublicIdentity {
    fn new(key: PublicKey) -> Self {
        let encoding = key.encode();
        let suite = match key {
            PublicKey::Rsa(_) => 1,
            PublicKey::P256(_) | PublicKey::P384(_) => 2,
        };
        let hit = hit_of(suite, &encoding);
        Self { key, encoding, hit }
    }

    /// Reads what HOST_ID carries.
    ///
    /// # Errors
    /// [`IdentityError`] says why it is no public key that can be used.
    pub fn decode(algorithm: u16, encoding: &[u8]) -> Result<Self, IdentityError> {
        let identity = Self::new(PublicKey::decode(algorithm, encoding)?);
        // A second encoding of one key would have a tag of its own.
        if identity.encoding == encoding {
            Ok(identity)
        } else {
            Err(IdentityError::Malformed)
        }
    }

    /// The tag.
    #[must_use]
    pub const fn hit(&self) -> Hit {
        self.hit
    }

    /// The algorithm's number.
    #[must_use]
    pub const fn algorithm(&self) -> u16 {
        self.key.algorithm()
    }

    /// The encoding that HOST_ID carries.
    #[must_use]
    pub fn encoding(&self) -> &[u8] {
        &self.encoding
    }

    /// The hash function of the identity's HIT suite.
    #[must_use]
    pub const fn rhash(&self) -> Rhash {
        match self.key {
            PublicKey::Rsa(_) => Rhash::Sha256,
            PublicKey::P256(_) | PublicKey::P384(_) => Rhash::Sha384,
        }
    }

    /// Whether `signature` is this host's over `message`.
    #[must_use]
    pub fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let prehash = || self.rhash().hash(&[message]);
        match &self.key {
            PublicKey::Rsa(key) => key.pss_verify::<Sha256>(message, signature).is_ok(),
            PublicKey::P256(key) => p256::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_prehash(&prehash(), &signature).is_ok()),
            PublicKey::P384(key) => p384::ecdsa::Signature::from_slice(signature)
                .is_ok_and(|signature| key.verify_prehash(&prehash(), &signature).is_ok()),
        }
    }
}

impl Identity {
    /// Makes a new identity.
    ///
    /// # Errors
    /// [`IdentityError::Failed`] if no key comes about.
    pub fn generate(
        algorithm: Algorithm,
        random: &mut dyn CryptoRng,
    ) -> Result<Self, IdentityError> {
        let rsa = |bits, random| {
            let key = RsaPrivateKey::new(random, bits).map_err(|_| IdentityError::Failed)?;
            Ok(PrivateKey::Rsa(key.into()))
        };
        let key = match algorithm {
            Algorithm::Rsa2048 => rsa(2048, random)?,
            Algorithm::Rsa3072 => rsa(3072, random)?,
            Algorithm::EcdsaP256 => {
                PrivateKey::P256(p256::SecretKey::generate_from_rng(random).into())
            }
            Algorithm::EcdsaP384 => {
                PrivateKey::P384(p384::SecretKey::generate_from_rng(random).into())
            }
        };
        Ok(Self::of(key))
    }

    /// Makes a new identity from 32 bytes drawn at random.
    ///
    /// # Errors
    /// [`IdentityError::Failed`] if no key comes about.
    pub fn from_seed(algorithm: Algorithm, seed: [u8; 32]) -> Result<Self, IdentityError> {
        Self::generate(algorithm, &mut ChaCha20Rng::from_seed(seed))
    }

    fn of(key: PrivateKey) -> Self {
        let public = PublicIdentity::new(match &key {
            PrivateKey::Rsa(key) => PublicKey::Rsa(key.to_public_key()),
            PrivateKey::P256(key) => PublicKey::P256(*key.verifying_key()),
            PrivateKey::P384(key) => PublicKey::P384(*key.verifying_key()),
        });
        Self { key, public }
    }

    /// Reads a private key in PKCS #8, PEM.
    ///
    /// # Errors
    /// [`IdentityError::Unreadable`], or [`IdentityError::Strength`] for a weak RSA key.
    pub fn from_pem(pem: &str) -> Result<Self, IdentityError> {
        let key = if let Ok(key) = RsaPrivateKey::from_pkcs8_pem(pem) {
            let bits = key.n_bytes().len() * 8;
            if bits < MIN_RSA_BITS as usize || bits > MAX_RSA_BITS {
                return Err(IdentityError::Strength);
            }
            PrivateKey::Rsa(key.into())
        } else if let Ok(key) = p256::SecretKey::from_pkcs8_pem(pem) {
            PrivateKey::P256(key.into())
        } else if let Ok(key) = p384::SecretKey::from_pkcs8_pem(pem) {
            PrivateKey::P384(key.into())
        } else {
            return Err(IdentityError::Unreadable);
        };
        Ok(Self::of(key))
    }

    /// The private key in PKCS #8, PEM.
    ///
    /// # Errors
    /// [`IdentityError::Failed`] if the key cannot be written.
    pub fn to_pem(&self) -> Result<Zeroizing<String>, IdentityError> {
        let pem = match &self.key {
            PrivateKey::Rsa(key) => key.to_pkcs8_pem(LineEnding::LF),
            PrivateKey::P256(key) => key.to_pkcs8_pem(LineEnding::LF),
            PrivateKey::P384(key) => key.to_pkcs8_pem(LineEnding::LF),
        };
        pem.map(|pem| Zeroizing::new(pem.to_string()))
            .map_err(|_| IdentityError::Failed)
    }

    /// The public key.
    #[must_use]
    pub const fn public(&self) -> &PublicIdentity {
        &self.public
    }

    /// The tag.
    #[must_use]
    pub const fn hit(&self) -> Hit {
        self.public.hit
    }

    /// Signs `message`; nothing if the key cannot.
    #[must_use]
    pub fn sign(&self, message: &[u8], random: &mut dyn CryptoRng) -> Option<Vec<u8>> {
        let prehash = || self.public.rhash().hash(&[message]);
        match &self.key {
            PrivateKey::Rsa(key) => key.pss_sign_with_rng::<Sha256, _>(random, message).ok(),
            PrivateKey::P256(key) => {
                let signature: p256::ecdsa::Signature = key.sign_prehash(&prehash()).ok()?;
                Some(signature.to_bytes().to_vec())
            }
            PrivateKey::P384(key) => {
                let signature: p384::ecdsa::Signature = key.sign_prehash(&prehash()).ok()?;
                Some(signature.to_bytes().to_vec())
            }
        }
    }
}
