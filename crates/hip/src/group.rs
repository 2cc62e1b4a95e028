//! Diffie-Hellman groups (RFC 7401, section 5.2.7; RFC 3526; RFC 5903).

use alloc::vec::Vec;
use core::fmt;
use crypto_bigint::modular::{FixedMontyForm, FixedMontyParams};
use crypto_bigint::{Odd, U512, U1536, U3072, Uint};
use p256::elliptic_curve::Generate;
use rand_core::CryptoRng;
use zeroize::{Zeroize, Zeroizing};

/// A group that this crate computes in.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Group {
    /// Number 3: 1536-bit MODP, which every implementation has.
    Modp1536,
    /// Number 4: 3072-bit MODP.
    Modp3072,
    /// Number 7: NIST P-256.
    P256,
    /// Number 8: NIST P-384.
    P384,
    /// Number 9: NIST P-521.
    P521,
}

/// The generator of both MODP groups.
const GENERATOR: u32 = 2;

/// RFC 3526, section 2.
const PRIME_1536: U1536 = U1536::from_be_hex(concat!(
    "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74",
    "020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f1437",
    "4fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7ed",
    "ee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf05",
    "98da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb",
    "9ed529077096966d670c354e4abc9804f1746c08ca237327ffffffffffffffff",
));

/// RFC 3526, section 4.
const PRIME_3072: U3072 = U3072::from_be_hex(concat!(
    "ffffffffffffffffc90fdaa22168c234c4c6628b80dc1cd129024e088a67cc74",
    "020bbea63b139b22514a08798e3404ddef9519b3cd3a431b302b0a6df25f1437",
    "4fe1356d6d51c245e485b576625e7ec6f44c42e9a637ed6b0bff5cb6f406b7ed",
    "ee386bfb5a899fa5ae9f24117c4b1fe649286651ece45b3dc2007cb8a163bf05",
    "98da48361c55d39a69163fa8fd24cf5f83655d23dca3ad961c62f356208552bb",
    "9ed529077096966d670c354e4abc9804f1746c08ca18217c32905e462e36ce3b",
    "e39e772c180e86039b2783a2ec07a28fb5c55df06f4c52c9de2bcbf695581718",
    "3995497cea956ae515d2261898fa051015728e5a8aaac42dad33170d04507a33",
    "a85521abdf1cba64ecfb850458dbef0a8aea71575d060c7db3970f85a6e1e4c7",
    "abf5ae8cdb0933d71e8c94e04a25619dcee3d2261ad2ee6bf12ffa06d98a0864",
    "d87602733ec86a64521f2b18177b200cbbe117577a615d6c770988c0bad946e2",
    "08e24fa074e5ab3143db5bfce0fd108e4b82d120a93ad2caffffffffffffffff",
));

impl Group {
    /// All groups, the preferred ones first.
    pub const ALL: [Self; 5] = [
        Self::P256,
        Self::P384,
        Self::P521,
        Self::Modp3072,
        Self::Modp1536,
    ];

    /// The group's number on the wire.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Modp1536 => 3,
            Self::Modp3072 => 4,
            Self::P256 => 7,
            Self::P384 => 8,
            Self::P521 => 9,
        }
    }

    /// Whether a public value is one of the group, as DIFFIE_HELLMAN carries it. It costs far less than an
    /// agreement.
    #[must_use]
    pub fn has(self, value: &[u8]) -> bool {
        let point = |length| with_prefix(value, length);
        match self {
            Self::Modp1536 => public_value(value, &PRIME_1536).is_some(),
            Self::Modp3072 => public_value(value, &PRIME_3072).is_some(),
            Self::P256 => point(64).is_some_and(|p| p256::PublicKey::from_sec1_bytes(&p).is_ok()),
            Self::P384 => point(96).is_some_and(|p| p384::PublicKey::from_sec1_bytes(&p).is_ok()),
            Self::P521 => point(132).is_some_and(|p| p521::PublicKey::from_sec1_bytes(&p).is_ok()),
        }
    }

    /// The group with this number.
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|group| group.number() == number)
    }
}

/// A secret of one group.
enum Secret {
    Modp1536(Exponent),
    Modp3072(Exponent),
    P256(p256::SecretKey),
    P384(p384::SecretKey),
    P521(p521::SecretKey),
}

/// A secret exponent: 512 bits are more than twice the strength of the largest group.
struct Exponent(U512);

impl Drop for Exponent {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

/// A key pair of one group.
pub struct KeyPair {
    secret: Secret,
    public: Vec<u8>,
}

impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair").finish_non_exhaustive()
    }
}

/// `base` to the power of `exponent` modulo `prime`, in constant time.
fn power<const LIMBS: usize>(
    base: &Uint<LIMBS>,
    exponent: &U512,
    prime: &Uint<LIMBS>,
) -> Uint<LIMBS> {
    // Both primes are odd.
    let Some(modulus) = Odd::new(*prime).into_option() else {
        return Uint::ZERO;
    };
    let params = FixedMontyParams::new_vartime(modulus);
    FixedMontyForm::new(base, &params).pow(exponent).retrieve()
}

/// A peer's public value, unless it lies outside 2 ..= p - 2.
fn public_value<const LIMBS: usize>(bytes: &[u8], prime: &Uint<LIMBS>) -> Option<Uint<LIMBS>> {
    let length = LIMBS * 8;
    // Leading zeros may be left out.
    let skipped = bytes.len().saturating_sub(length);
    let (zeros, bytes) = bytes.split_at(skipped);
    if zeros.iter().any(|&byte| byte != 0) {
        return None;
    }
    let mut padded = alloc::vec![0; length];
    padded
        .get_mut(length - bytes.len()..)?
        .copy_from_slice(bytes);
    let value = Uint::from_be_slice(&padded);
    let greatest = prime.wrapping_sub(&Uint::ONE);
    (value > Uint::ONE && value < greatest).then_some(value)
}

fn draw(random: &mut dyn CryptoRng) -> Exponent {
    let mut bytes = Zeroizing::new([0; 64]);
    random.fill_bytes(bytes.as_mut());
    Exponent(U512::from_be_slice(bytes.as_ref()))
}

impl KeyPair {
    /// Draws a key pair.
    #[must_use]
    pub fn new(group: Group, random: &mut dyn CryptoRng) -> Self {
        let (secret, public) = match group {
            Group::Modp1536 => {
                let exponent = draw(random);
                let public = power(&U1536::from_u32(GENERATOR), &exponent.0, &PRIME_1536);
                (
                    Secret::Modp1536(exponent),
                    public.to_be_bytes().as_ref().to_vec(),
                )
            }
            Group::Modp3072 => {
                let exponent = draw(random);
                let public = power(&U3072::from_u32(GENERATOR), &exponent.0, &PRIME_3072);
                (
                    Secret::Modp3072(exponent),
                    public.to_be_bytes().as_ref().to_vec(),
                )
            }
            Group::P256 => {
                let secret = p256::SecretKey::generate_from_rng(random);
                let point = secret.public_key().to_sec1_bytes();
                (Secret::P256(secret), without_prefix(&point))
            }
            Group::P384 => {
                let secret = p384::SecretKey::generate_from_rng(random);
                let point = secret.public_key().to_sec1_bytes();
                (Secret::P384(secret), without_prefix(&point))
            }
            Group::P521 => {
                let secret = p521::SecretKey::generate_from_rng(random);
                let point = secret.public_key().to_sec1_bytes();
                (Secret::P521(secret), without_prefix(&point))
            }
        };
        Self { secret, public }
    }

    /// The group that the pair belongs to.
    #[must_use]
    pub const fn group(&self) -> Group {
        match self.secret {
            Secret::Modp1536(_) => Group::Modp1536,
            Secret::Modp3072(_) => Group::Modp3072,
            Secret::P256(_) => Group::P256,
            Secret::P384(_) => Group::P384,
            Secret::P521(_) => Group::P521,
        }
    }

    /// The public value as DIFFIE_HELLMAN carries it.
    #[must_use]
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// The secret Kij that is shared with the owner of the public value `peer`, of fixed length
    /// with its leading zeros; nothing if the value is none of the group.
    #[must_use]
    pub fn agree(&self, peer: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let shared = match &self.secret {
            Secret::Modp1536(exponent) => {
                let value = public_value(peer, &PRIME_1536)?;
                power(&value, &exponent.0, &PRIME_1536)
                    .to_be_bytes()
                    .as_ref()
                    .to_vec()
            }
            Secret::Modp3072(exponent) => {
                let value = public_value(peer, &PRIME_3072)?;
                power(&value, &exponent.0, &PRIME_3072)
                    .to_be_bytes()
                    .as_ref()
                    .to_vec()
            }
            Secret::P256(secret) => {
                let point = p256::PublicKey::from_sec1_bytes(&with_prefix(peer, 64)?).ok()?;
                secret.diffie_hellman(&point).raw_secret_bytes().to_vec()
            }
            Secret::P384(secret) => {
                let point = p384::PublicKey::from_sec1_bytes(&with_prefix(peer, 96)?).ok()?;
                secret.diffie_hellman(&point).raw_secret_bytes().to_vec()
            }
            Secret::P521(secret) => {
                let point = p521::PublicKey::from_sec1_bytes(&with_prefix(peer, 132)?).ok()?;
                secret.diffie_hellman(&point).raw_secret_bytes().to_vec()
            }
        };
        Some(Zeroizing::new(shared))
    }
}

/// The coordinates of an uncompressed point.
fn without_prefix(point: &[u8]) -> Vec<u8> {
    point.get(1..).unwrap_or_default().to_vec()
}

/// An uncompressed point from its coordinates.
fn with_prefix(coordinates: &[u8], length: usize) -> Option<Vec<u8>> {
    (coordinates.len() == length).then(|| {
        let mut point = alloc::vec![4];
        point.extend_from_slice(coordinates);
        point
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Rng;
    use rand_core::SeedableRng;

    /// What lies outside 2 ..= p - 2 gives a secret that everybody can guess.
    #[test]
    fn values_of_small_order_are_none_of_a_modp_group() {
        let mut random = ChaCha20Rng::from_seed([1; 32]);
        let pair = KeyPair::new(Group::Modp1536, &mut random);
        let bytes = |value: &U1536| value.to_be_bytes().as_ref().to_vec();
        let less = |by: u32| bytes(&PRIME_1536.wrapping_sub(&U1536::from_u32(by)));
        let wrong = [
            alloc::vec![],
            alloc::vec![0; 192],
            bytes(&U1536::ONE),
            less(1),
            bytes(&PRIME_1536),
            alloc::vec![0xff; 192],
            alloc::vec![1; 193],
        ];
        for value in &wrong {
            assert!(pair.agree(value).is_none(), "{value:?}");
            assert!(!Group::Modp1536.has(value), "{value:?}");
        }
        assert!(pair.agree(&less(2)).is_some());
        assert!(pair.agree(&[2]).is_some());
    }

    #[test]
    fn both_ends_agree_on_a_secret_of_fixed_length() {
        let mut random = ChaCha20Rng::from_seed([1; 32]);
        let lengths = [(64, 32), (96, 48), (132, 66), (384, 384), (192, 192)];
        for (group, (public, secret)) in Group::ALL.into_iter().zip(lengths) {
            let mut pair = || KeyPair::new(group, &mut random);
            let (a, b) = (pair(), pair());
            assert_eq!(a.group(), group);
            assert_eq!(Group::from_number(group.number()), Some(group));
            assert_eq!(a.public().len(), public, "{group:?}");
            assert!(group.has(a.public()) && group.has(b.public()));
            let agreed = a.agree(b.public()).expect("a public value");
            assert_eq!(agreed.len(), secret, "{group:?}");
            assert_eq!(Some(agreed), b.agree(a.public()), "{group:?}");
        }
    }

    #[test]
    fn what_is_no_point_of_its_curve_is_refused() {
        let mut random = ChaCha20Rng::from_seed([1; 32]);
        for (group, length) in [(Group::P256, 64), (Group::P384, 96), (Group::P521, 132)] {
            let pair = KeyPair::new(group, &mut random);
            let other = KeyPair::new(group, &mut random);
            let mut off = other.public().to_vec();
            off[0] ^= 1;
            for wrong in [alloc::vec![0; length], alloc::vec![0xff; length], off] {
                assert!(pair.agree(&wrong).is_none(), "{group:?}");
                assert!(!group.has(&wrong), "{group:?}");
            }
            assert!(pair.agree(other.public()).is_some());
        }
    }
}
