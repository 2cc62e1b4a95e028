//! The ESP suites: how a packet's payload is sealed (RFC 7402, section 5.1.2; RFC 4303, 4868, 4106).

use aes::cipher::block_padding::NoPadding;
use aes::cipher::{
    BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit,
};
use aes_gcm::aead::AeadInOut;
use aes_gcm::{Aes128Gcm, KeyInit, Nonce, Tag};
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use hmac::{Hmac, Mac};
use outlast_wire::hip::EspHeader;
use rand_core::CryptoRng;
use sha2::Sha256;
use subtle::ConstantTimeEq;

use crate::keymat::EspKeys;

/// Bytes of the integrity check value of every suite here.
const ICV: usize = 16;

/// An AES block, and the initialisation vector of CBC.
const BLOCK: usize = 16;

/// The initialisation vector of GCM.
const GCM_IV: usize = 8;

/// How ESP packets are sealed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum EspSuite {
    /// Number 7: HMAC-SHA-256 alone. Everybody on the path reads what is sent.
    NullSha256,
    /// Number 8, which every implementation has: AES-128-CBC with HMAC-SHA-256.
    Aes128CbcSha256,
    /// Number 9: AES-256-CBC with HMAC-SHA-256.
    Aes256CbcSha256,
    /// Number 13: AES-128-GCM with 16 bytes of check value.
    Aes128Gcm,
}

impl EspSuite {
    /// All suites, the preferred ones first.
    pub const ALL: [Self; 4] = [
        Self::Aes128Gcm,
        Self::Aes128CbcSha256,
        Self::Aes256CbcSha256,
        Self::NullSha256,
    ];

    /// Those that encrypt, the preferred ones first.
    pub const ENCRYPTING: [Self; 3] = [
        Self::Aes128Gcm,
        Self::Aes128CbcSha256,
        Self::Aes256CbcSha256,
    ];

    /// The number on the wire.
    #[must_use]
    pub const fn number(self) -> u16 {
        match self {
            Self::NullSha256 => 7,
            Self::Aes128CbcSha256 => 8,
            Self::Aes256CbcSha256 => 9,
            Self::Aes128Gcm => 13,
        }
    }

    /// The suite with this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|suite| suite.number() == number)
    }

    /// Bytes of the encryption key (with GCM's salt) and of the authentication key.
    #[must_use]
    pub const fn key_lens(self) -> (usize, usize) {
        match self {
            Self::NullSha256 => (0, 32),
            Self::Aes128CbcSha256 => (16, 32),
            Self::Aes256CbcSha256 => (32, 32),
            Self::Aes128Gcm => (20, 0),
        }
    }

    /// The most bytes of payload that an ESP packet of at most `room` bytes carries.
    #[must_use]
    pub const fn payload_room(self, room: usize) -> usize {
        let (iv, align) = match self {
            Self::NullSha256 => (0, 4),
            Self::Aes128CbcSha256 | Self::Aes256CbcSha256 => (BLOCK, BLOCK),
            Self::Aes128Gcm => (GCM_IV, 4),
        };
        let sealed = room.saturating_sub(EspHeader::LEN + iv + ICV);
        (sealed / align * align).saturating_sub(2)
    }
}

/// AES in the mode that a suite has, with its key.
enum Kind {
    Null(Hmac<Sha256>),
    Cbc128(Box<aes::Aes128>, Hmac<Sha256>),
    Cbc256(Box<aes::Aes256>, Hmac<Sha256>),
    /// With the salt that is part of every nonce.
    Gcm(Box<Aes128Gcm>, [u8; 4]),
}

/// A suite with the keys of one direction.
///
/// What follows from the keys alone is computed once, not for each packet.
pub struct EspCipher(Kind);

impl fmt::Debug for EspCipher {
    /// Shows no key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EspCipher")
    }
}

impl EspCipher {
    /// Readies `suite` with `keys`; nothing if a key has a wrong length.
    #[must_use]
    pub fn new(suite: EspSuite, keys: &EspKeys) -> Option<Self> {
        let mac = || <Hmac<Sha256> as KeyInit>::new_from_slice(&keys.authentication).ok();
        Some(Self(match suite {
            EspSuite::NullSha256 => Kind::Null(mac()?),
            EspSuite::Aes128CbcSha256 => {
                let cipher = aes::Aes128::new_from_slice(&keys.encryption).ok()?;
                Kind::Cbc128(Box::new(cipher), mac()?)
            }
            EspSuite::Aes256CbcSha256 => {
                let cipher = aes::Aes256::new_from_slice(&keys.encryption).ok()?;
                Kind::Cbc256(Box::new(cipher), mac()?)
            }
            EspSuite::Aes128Gcm => {
                let (key, salt) = keys.encryption.split_at_checked(16)?;
                let gcm = Aes128Gcm::new_from_slice(key).ok()?;
                Kind::Gcm(Box::new(gcm), salt.try_into().ok()?)
            }
        }))
    }

    /// Seals `payload` of the protocol `next` into an ESP packet; nothing if it is too long for any.
    #[must_use]
    pub fn seal(
        &self,
        spi: u32,
        sequence: u64,
        (next, payload): (u8, &[u8]),
        random: &mut dyn CryptoRng,
    ) -> Option<Vec<u8>> {
        let mut packet = Vec::with_capacity(payload.len() + 64);
        let header = EspHeader {
            spi,
            sequence_low: sequence as u32,
        };
        header.write(&mut packet);
        match &self.0 {
            Kind::Null(mac) => {
                append_padded(&mut packet, payload, next, 4);
                let icv = check_value(mac, &packet, sequence)?;
                packet.extend_from_slice(&icv);
            }
            Kind::Cbc128(cipher, mac) => {
                let (iv, body) = append_block(&mut packet, (next, payload), random)?;
                encrypt::<aes::Aes128>(cipher, iv, body)?;
                let icv = check_value(mac, &packet, sequence)?;
                packet.extend_from_slice(&icv);
            }
            Kind::Cbc256(cipher, mac) => {
                let (iv, body) = append_block(&mut packet, (next, payload), random)?;
                encrypt::<aes::Aes256>(cipher, iv, body)?;
                let icv = check_value(mac, &packet, sequence)?;
                packet.extend_from_slice(&icv);
            }
            Kind::Gcm(gcm, salt) => {
                // The number of a packet is never used twice under one key.
                let iv = sequence.to_be_bytes();
                packet.extend_from_slice(&iv);
                let at = packet.len();
                append_padded(&mut packet, payload, next, 4);
                let body = packet.get_mut(at..)?;
                let tag = gcm
                    .encrypt_inout_detached(
                        &nonce(*salt, iv),
                        &associated(spi, sequence),
                        body.into(),
                    )
                    .ok()?;
                packet.extend_from_slice(&tag);
            }
        }
        Some(packet)
    }

    /// Opens an ESP packet with the whole number `sequence`: the next protocol and the payload.
    #[must_use]
    pub fn open(&self, sequence: u64, packet: &[u8]) -> Option<(u8, Vec<u8>)> {
        let (sealed, icv) = packet.split_at_checked(packet.len().checked_sub(ICV)?)?;
        let (header, rest) = EspHeader::parse(sealed).ok()?;
        let mut plain = match &self.0 {
            Kind::Null(mac) => checked(mac, sequence, (sealed, icv), rest)?.to_vec(),
            Kind::Cbc128(cipher, mac) => {
                let body = checked(mac, sequence, (sealed, icv), rest)?;
                decrypt::<aes::Aes128>(cipher, body)?
            }
            Kind::Cbc256(cipher, mac) => {
                let body = checked(mac, sequence, (sealed, icv), rest)?;
                decrypt::<aes::Aes256>(cipher, body)?
            }
            Kind::Gcm(gcm, salt) => {
                let (iv, body) = rest.split_first_chunk::<GCM_IV>()?;
                let mut plain = body.to_vec();
                let tag = Tag::try_from(icv).ok()?;
                let associated = associated(header.spi, sequence);
                let nonce = nonce(*salt, *iv);
                gcm.decrypt_inout_detached(&nonce, &associated, plain.as_mut_slice().into(), &tag)
                    .ok()?;
                plain
            }
        };
        let next = plain.pop()?;
        let padding = usize::from(plain.pop()?);
        let payload = plain.len().checked_sub(padding)?;
        let counts_up = plain.get(payload..)?.iter().zip(1_u8..);
        if counts_up.clone().any(|(&byte, count)| byte != count) {
            return None;
        }
        plain.truncate(payload);
        Some((next, plain))
    }
}

/// A nonce of GCM.
type GcmNonce = Nonce<<Aes128Gcm as aes_gcm::aead::AeadCore>::NonceSize>;

/// The nonce of a packet: the salt behind the key, and the packet's vector.
fn nonce(salt: [u8; 4], iv: [u8; GCM_IV]) -> GcmNonce {
    let mut nonce = [0; 12];
    let (first, rest) = nonce.split_at_mut(4);
    first.copy_from_slice(&salt);
    rest.copy_from_slice(&iv);
    nonce.into()
}

/// Appends a random vector, and a payload padded to whole blocks; gives both.
fn append_block<'p>(
    packet: &'p mut Vec<u8>,
    (next, payload): (u8, &[u8]),
    random: &mut dyn CryptoRng,
) -> Option<([u8; BLOCK], &'p mut [u8])> {
    let mut iv = [0; BLOCK];
    random.fill_bytes(&mut iv);
    packet.extend_from_slice(&iv);
    let at = packet.len();
    append_padded(packet, payload, next, BLOCK);
    Some((iv, packet.get_mut(at..)?))
}

/// Encrypts whole blocks where they are.
fn encrypt<C: BlockCipherEncrypt + Clone>(
    cipher: &C,
    iv: [u8; BLOCK],
    body: &mut [u8],
) -> Option<()>
where
    cbc::Encryptor<C>: InnerIvInit<Inner = C> + BlockModeEncrypt,
{
    let length = body.len();
    let encryptor = cbc::Encryptor::<C>::inner_iv_slice_init(cipher.clone(), &iv).ok()?;
    encryptor.encrypt_padded::<NoPadding>(body, length).ok()?;
    Some(())
}

/// Decrypts whole blocks behind their vector.
fn decrypt<C: BlockCipherDecrypt + Clone>(cipher: &C, sealed: &[u8]) -> Option<Vec<u8>>
where
    cbc::Decryptor<C>: InnerIvInit<Inner = C> + BlockModeDecrypt,
{
    let (iv, body) = sealed.split_at_checked(BLOCK)?;
    let decryptor = cbc::Decryptor::<C>::inner_iv_slice_init(cipher.clone(), iv).ok()?;
    decryptor.decrypt_padded_vec::<NoPadding>(body).ok()
}

/// `rest`, if the check value is right.
fn checked<'p>(
    mac: &Hmac<Sha256>,
    sequence: u64,
    (sealed, icv): (&[u8], &[u8]),
    rest: &'p [u8],
) -> Option<&'p [u8]> {
    let expected = check_value(mac, sealed, sequence)?;
    bool::from(expected.ct_eq(icv)).then_some(rest)
}

/// Appends the payload and a trailer that fills it up to a multiple of `align`.
fn append_padded(packet: &mut Vec<u8>, payload: &[u8], next: u8, align: usize) {
    let padding = (payload.len() + 2).next_multiple_of(align) - payload.len() - 2;
    packet.extend_from_slice(payload);
    packet.extend((1..=padding).map(|count| count as u8));
    packet.extend_from_slice(&[padding as u8, next]);
}

/// The check value of the suites with HMAC: the upper half of the sequence number is covered, too.
fn check_value(mac: &Hmac<Sha256>, sealed: &[u8], sequence: u64) -> Option<[u8; ICV]> {
    let mut mac = mac.clone();
    mac.update(sealed);
    mac.update(&((sequence >> 32) as u32).to_be_bytes());
    let whole = mac.finalize().into_bytes();
    whole.first_chunk::<ICV>().copied()
}

/// What GCM authenticates beside the payload (RFC 4106, section 5).
fn associated(spi: u32, sequence: u64) -> [u8; 12] {
    let mut out = [0; 12];
    out[..4].copy_from_slice(&spi.to_be_bytes());
    out[4..].copy_from_slice(&sequence.to_be_bytes());
    out
}
